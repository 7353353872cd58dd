"""What was done to the user's files since the last snapshot, and how it is undone.

Each record is written before the thing happens: what a file was, that it was renamed, that a folder was made. Undone in
reverse order, they lead from any instant back to a snapshot; and undoing twice is undoing once, so that a death on the
way does no harm.
"""

from __future__ import annotations

import json
from pathlib import Path

from .. import _fs
from .._types import Json
from ._portable import Portable

_LONG = 2000


class Journal:
    """The records, in ``files.jsonl``.

    Parameters
    ----------
    path : Path
        Its file.
    portable : Portable
        Knows how paths are written down.
    """

    def __init__(self, path: Path, portable: Portable) -> None:
        self.path, self._portable = path, portable
        self.next = 0
        """Number of the next snapshot: what happens now is not in the one before."""
        self.records = self._read()

    def _read(self) -> list[Json]:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        found: list[Json] = []
        for line in lines:
            try:
                record = self._portable.opened(json.loads(line))
            except ValueError:
                continue  # torn by a death: then what it tells of has not happened
            found.append(record)
            if record["op"] == "undone":
                found = [one for one in found[:-1] if one["seq"] <= record["to"]]
        return found

    def add(self, op: str, *, durable: bool = False, **facts: object) -> None:
        """Note what is about to happen."""
        record: Json = {"op": op, "seq": self.next, **facts}
        self.records.append(record)
        if durable:
            _fs.append(self.path, self._line(record))
        else:
            with _fs.open_log(self.path) as log:
                log.write(self._line(record))

    def since(self, seq: int) -> list[Json]:
        """Return what happened after a snapshot."""
        return [record for record in self.records if record["seq"] > seq]

    def undone(self, seq: int) -> None:
        """Note that all since a snapshot has been undone."""
        if self.since(seq):
            _fs.append(self.path, self._line({"op": "undone", "to": seq}))
            self.records = [record for record in self.records if record["seq"] <= seq]

    def at_launch(self) -> list[Json]:
        """Return the first record of each file that was there when the run was launched."""
        first: dict[str, Json] = {}
        for record in self.records:
            if record["op"] == "was":
                first.setdefault(record["path"], record)
        return [record for record in first.values() if record["length"] is not None or "link" in record]

    def forget(self, oldest: int) -> None:
        """Leave out what no snapshot that is kept needs."""
        if len(self.records) < _LONG:
            return
        launch = {id(record) for record in self.at_launch()}
        self.records = [record for record in self.records if record["seq"] > oldest or id(record) in launch]
        _fs.write(self.path, b"".join(map(self._line, self.records)))

    def _line(self, record: Json) -> bytes:
        return json.dumps(self._portable.sealed("done", record)).encode() + b"\n"
