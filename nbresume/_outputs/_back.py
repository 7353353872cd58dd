"""The way back of the user's files: what was done since a snapshot undone, and each file as the snapshot knew it.

Before the set-up or a ``with`` runs again, every recorded file is moved aside, and what was there at the launch stands
there instead; what they write is dropped. What is cut off or replaced is kept in the run's folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from .. import _fs
from .._types import Json
from ..errors import ReplayError
from ._copies import COPY_LIMIT, Copies
from ._hidden import Hidden
from ._known import Known, look, signature, tail_digest, whole_digest
from ._moves import Moves
from ._portable import Portable
from ._undo import Journal

Cut = list[tuple[str, int]]
"""Names of files, and the bytes of each that were cut off or put away."""


class Back:
    """Puts files back.

    Parameters
    ----------
    folder : Path
        The run's folder.
    known : dict of str to Known
        Files by path, with the handles that are open.
    copies, journal, hidden
        What was kept, noted and seen.
    portable : Portable
        Knows how paths are written down.
    warn : callable
        Shows a warning.
    """

    def __init__(
        self,
        folder: Path,
        known: dict[str, Known],
        *,
        copies: Copies,
        journal: Journal,
        hidden: Hidden,
        portable: Portable,
        warn: Callable[[str], None],
    ) -> None:
        self._warn = warn
        self._known, self._copies, self._journal, self._hidden = known, copies, journal, hidden
        self.moves = Moves(folder / "aside", portable)

    # ------------------------------------------------------------------ before anything is touched

    def check(self, recorded: list[Json], seq: int) -> None:
        """Check that every recorded file can be put back.

        Raises
        ------
        ReplayError
            When one is gone, or was changed by someone else, or by the cell without a copy.
        """
        since = self._journal.since(seq)
        for record in since:
            if record.get("lost") and look(Path(record["path"])).get("sig") != record["sig"]:
                raise ReplayError(
                    f"{Path(record['path']).name} was changed or removed after the snapshot, and with "
                    f"{record['length']:,} bytes it was too large for a copy. Put it back, or supersede the run"
                )
        undone = {record[key] for record in since for key in ("path", "to") if key in record}
        for entry in recorded:
            path = Path(entry["path"])
            if not undone.intersection([entry["path"], *map(str, path.parents)]):
                self._check(path, entry)

    def _check(self, path: Path, entry: Json) -> None:
        copy, length = entry.get("copy"), entry["length"]
        if length is None or (copy and self._can_be_copied(path, entry)):
            return
        if not path.exists() and length:
            raise ReplayError(f"{path.name}, which the run had written, is gone. Put it back, or supersede the run")
        in_part = entry.get("how", "append") != "append" and path.is_file() and path.stat().st_size != length
        if length and (in_part or tail_digest(path, length) != entry["tail"]):
            raise ReplayError(
                f"{path.name} was changed by someone else since the snapshot. Put it back, or supersede the run"
            )

    def _can_be_copied(self, path: Path, entry: Json) -> bool:
        """Whether the copy is the file's content: of one written row by row, only where it is but cut short."""
        if not self._copies.is_there(entry["copy"]):
            return False
        return entry["how"] != "append" or self._is_cut_short(path, entry)

    def _is_cut_short(self, path: Path, entry: Json) -> bool:
        """Whether a file is the beginning of what it was: an earlier cell has truncated it and written its header."""
        size = path.stat().st_size if path.exists() else 0
        return "copy" in entry and size < entry["length"] and self._copies.starts_with(entry["copy"], path)

    # ------------------------------------------------------------------ what happened since

    def undo(self, recorded: list[Json], seq: int, seen: Json) -> Cut:
        """Undo what was done to files since a snapshot.

        Parameters
        ----------
        recorded : list of dict
            Files that the snapshot knows.
        seq : int
            Its number; -1 for the launch.
        seen : dict
            What it saw of other files.
        """
        cut: Cut = []
        for record in reversed(self._journal.since(seq)):
            match record["op"]:
                case "was":
                    cut += self._restore(record)
                case "renamed":
                    self._rename_back(record)
                case "made" if Path(record["path"]).is_dir():
                    self._unmake(Path(record["path"]))
                case "unmade":
                    _fs.make_open_folder(Path(record["path"]))
        if seen:
            cut += self._undo_hidden(seen, {entry["path"] for entry in recorded})
        self._journal.undone(seq)
        for entry in recorded:
            self._check(Path(entry["path"]), entry)
        return cut

    def _rename_back(self, record: Json) -> None:
        source, target = Path(record["path"]), Path(record["to"])
        if not os.path.lexists(target) or not (identity_of(target) == record["id"] or self._holds(target, record)):
            return  # undone already
        if os.path.lexists(source):
            self.moves.keep(source)
        _fs.make_open_folder(source.parent)
        _fs.give_name(target, source)

    def _unmake(self, folder: Path) -> None:
        """Take a folder away that the cell has made; what is still in it was written by something that tells nobody."""
        _fs.remove_empty(folder)
        if folder.exists():
            self.moves.keep(folder)

    def _undo_hidden(self, seen: Json, recorded: set[str]) -> Cut:
        """Undo what changed in the folders without a word of anybody."""
        changed, gone, new = self._hidden.compare(seen)
        cut: Cut = []
        unkept = sorted({*changed, *gone} - recorded - seen["kept"].keys())
        if unkept:
            self._warn(
                f"{Path(unkept[0]).name} and {len(unkept) - 1} other files that the cell names are not what they were "
                "at the snapshot. If the cell writes them, supersede the run"
            )
        for path in sorted(({*changed, *gone} - recorded) & seen["kept"].keys()):
            cut += self._restore({"path": path, **seen["kept"][path]})
        for path in sorted(set(new) - recorded):
            cut += self._restore({"path": path, "length": None})
        return cut

    def _restore(self, record: Json) -> Cut:
        """Make a file what it was."""
        path = Path(record["path"])
        if record.get("lost") or self._is_as(path, record):
            return []  # of what was lost, check() has seen that it is unchanged
        if record["length"] is not None and not record.get("copy"):
            if "tail" not in record:
                raise ReplayError(
                    f"{path.name} is not what it was at the snapshot: a library has written it since, or somebody "
                    "else, and there is no copy. Put it back, or supersede the run"
                )
            self._check(path, record)
        before = path.stat().st_size if path.is_file() else 0
        aside = self.moves.keep(path) if os.path.lexists(path) else None
        if not (record.get("copy") and self._copies.give_back(record["copy"], path)):
            self._bring(path, aside, record)
        length = record["length"] or 0
        return [(path.name, before - length)] if before > length else []

    def _is_as(self, path: Path, record: Json) -> bool:
        """Whether a file is untouched."""
        if "link" in record:
            return look(path).get("link") == str(record["link"])
        if record["length"] is None:
            return not os.path.lexists(path)
        if record.get("copy") and self._copies.is_there(record["copy"]):
            return self._copies.equals(record["copy"], path)  # two writes in one tick of the clock look alike
        found, sig = signature(path), record["sig"]
        if found is None or found == sig:
            return found is not None
        return "digest" in record and found[0] == sig[0] and whole_digest(path) == str(record["digest"])

    # ------------------------------------------------------------------ as the snapshot knew them

    def set_aside(self, recorded: list[Json], attempt: int) -> None:
        """Move every recorded file away, so that what runs again finds the world of the launch."""
        files = [entry for entry in recorded if "folder" not in entry]
        self.moves.begin([Path(entry["path"]) for entry in files], attempt)
        for folder in sorted((entry["path"] for entry in recorded if entry.get("folder")), reverse=True):
            _fs.remove_empty(Path(folder))
        for record in self._journal.at_launch():
            self._bring_as_at_launch(record)

    def _bring_as_at_launch(self, record: Json) -> None:
        path = Path(record["path"])
        if os.path.lexists(path) or not path.parent.is_dir():
            return
        aside = self.moves.of(path)
        has_prefix = aside is not None and "tail" in record and record["length"] <= COPY_LIMIT
        if "link" in record or (record.get("copy") and self._copies.is_there(record["copy"])):
            self._bring(path, None, record)
        elif aside is not None and has_prefix and tail_digest(aside, record["length"]) == record["tail"]:
            _fs.copy_prefix(aside, path, record["length"])

    def put_back(self, recorded: list[Json], *, whole: bool = False) -> Cut:
        """Put every recorded file back as the snapshot knew it.

        Parameters
        ----------
        recorded : list of dict
            As ``Files.state`` gave them.
        whole : bool
            Cut nothing: the run is complete.
        """
        cut: Cut = []
        for folder in sorted(entry["path"] for entry in recorded if entry.get("folder")):
            _fs.make_open_folder(Path(folder))
        for entry in recorded:
            if "folder" not in entry:
                cut += self._put_back_one(Path(entry["path"]), entry, whole=whole)
        for folder in sorted((entry["path"] for entry in recorded if entry.get("folder") is False), reverse=True):
            _fs.remove_empty(Path(folder))
        self.moves.done()
        return cut

    def _put_back_one(self, path: Path, entry: Json, *, whole: bool) -> Cut:
        known = self._known.get(str(path))
        handles = known.open_handles() if known else []
        for handle in handles:
            handle.flush()
        aside, length = self.moves.take(path), entry["length"]
        if aside is not None and not handles and os.path.lexists(path):
            _fs.remove(path)  # what ran again on the way has written it
        if aside is None and os.path.lexists(path):
            if length is None and not handles:
                self.moves.keep(path)
                return []
            aside = self.moves.copy(path)
        had = aside.stat().st_size if aside is not None and aside.is_file() else 0
        if whole and aside is not None and not self._is_cut_short(aside, entry):
            if entry.get("copy") and entry.get("how") != "append" and not self._holds(aside, entry):
                self._warn(f"{path.name} is not what it was when the run was complete; it is left as it is")
            entry = {"length": had, "at": entry.get("at")} if "link" not in entry else entry
            length = entry["length"]
        replaced = self._bring(path, aside, entry)
        _stand(handles, entry.get("at") or [])
        if length is not None and had > length:
            return [(path.name, had - length)]
        if aside is not None and length is not None and not replaced:
            _fs.remove(aside)
        return []

    def _bring(self, path: Path, aside: Path | None, entry: Json) -> bool:
        """Make a name what a record says, of what stood there or of a copy; returns whether of the copy."""
        length, copy = entry["length"], entry.get("copy")
        if "link" in entry:
            if not path.is_symlink():
                _fs.make_link(path, entry["link"])
        elif length is None:
            if path.exists():
                _fs.truncate(path, 0)  # under a handle that is open
        elif copy and not (aside is not None and self._holds(aside, entry)):
            _fs.make_open_folder(path.parent)
            self._copies.put(copy, path)
            return True
        elif aside is not None:
            _fs.make_open_folder(path.parent)
            if not path.exists() and aside.stat().st_size == length:
                _fs.move(aside, path)  # the very file, times and all
            elif not path.exists() or path.stat().st_size != length or not self._holds(path, entry):
                _fs.copy_prefix(aside, path, length)
        return False

    def _holds(self, path: Path, entry: Json) -> bool:
        """Whether a file begins with what a record says, or is it where it is written as a whole."""
        if entry.get("copy") and entry.get("how") != "append":
            return self._copies.equals(entry["copy"], path)
        return "tail" in entry and path.is_file() and tail_digest(path, entry["length"]) == entry["tail"]


def _stand(handles: list[IO[Any]], at: list[int | None]) -> None:
    """Let handles stand where they stood, or at the end."""
    for handle, where in zip(handles, at or [None] * len(handles), strict=False):
        if where is None:
            handle.seek(0, os.SEEK_END)
        else:
            handle.seek(where)


def identity_of(path: Path) -> list[int]:
    """Tell a file or folder from any other that may get its name."""
    found = path.lstat()
    return [found.st_dev, found.st_ino]
