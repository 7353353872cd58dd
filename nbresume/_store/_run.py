"""The folder of a run, and the store that holds them.

::

    .nbresume/<name>-<id>/
        run.json          launch record, written once
        journal.jsonl     events, appended
        snapshots/        complete HDF5 files, they appear by rename
        latest            advisory; never trusted over a verified file
        log.txt           what the cell printed
        log.jsonl         which attempt did so, when and where
        status.json       where a running attempt stands
        aside/            what was cut from the user's files
        files/            copies of them, by digest
        files.jsonl       what was done to them since a snapshot
        once/             results of what is done once, and claims
        pins/             names of snapshots that are kept for good
        trusted           fingerprints of what a person trusts
        owner, lock       who writes
        requests/         what other processes ask of that one
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from .. import _fs, _processes
from .._events import Event, Kind, decode, encode, now
from .._lineage import Lineage, fold
from .._types import FORMAT, Json
from ..errors import CorruptError, NotFoundError, StoreError
from ._owner import Claim, is_alive, refuse_while_alive, take, wait_for
from ._retention import pinned
from ._seal import SnapshotError
from ._trust import of_change, of_record, sign

if TYPE_CHECKING:
    from ._snapshot import Snapshot
    from ._staging import BlockLike
    from ._writer import Writer

_SNAPSHOT = re.compile(r"\d+-\d+\.h5")


@dataclass(slots=True)
class RunFolder:
    """One run on disk.

    Attributes
    ----------
    path : Path
        Its folder.
    record : dict
        The launch record, ``run.json``.
    successor : dict or None
        The launch record of the run that superseded it.
    """

    path: Path
    record: Json
    successor: Json | None = None
    _read: tuple[bytes, list[Event]] = field(default=(b"", []), repr=False, compare=False)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Read a run's launch record.

        Raises
        ------
        StoreError
            When it can't be read, or its format is newer.
        """
        try:
            record = json.loads((path / "run.json").read_bytes())
            newer = record["format"] > FORMAT
            _ = record["id"], record["name"], record["number"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"the record of {path.name} can't be read: {error}", str(path)) from error
        if newer:
            found = record["format"]
            raise StoreError(
                f"{path.name} has format {found}; this nbresume reads up to {FORMAT}. Update nbresume", str(path)
            )
        return cls(path, record)

    @property
    def id(self) -> str:
        """Folder name, unique in its store."""
        return str(self.record["id"])

    @property
    def name(self) -> str:
        """Name on the magic line."""
        return str(self.record["name"])

    # -------------------------------------------------------------- events

    def events(self) -> list[Event]:
        """Read the journal: what has been read once stays, since lines are only added."""
        try:
            data = (self.path / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        if data != self._read[0]:
            self._read = data, decode(data.splitlines())
        return list(self._read[1])

    def note(self, kind: Kind, attempt: int, **facts: Any) -> Event:
        """Append an event to the journal; durably, but for a snapshot: its file is what counts."""
        if kind == "changed":  # it can say that another identity is the same run
            facts["signature"] = sign(*of_change(self.id, attempt, facts))
        event = Event(kind, attempt, now(), facts)
        _fs.append(self.path / "journal.jsonl", encode(event), durable=kind != "snapshot")
        return event

    def lineage(self) -> Lineage:
        """Tell the lineage, with a look at whether the last attempt lives."""
        return fold(self.events(), alive=self.is_alive(), successor=self.successor)

    def identity(self) -> Json:
        """Return what identifies the run: as launched, or as a later attempt was continued with a change."""
        known: Json = self.record.get("identity", {})
        changed = [event.facts["identity"] for event in self.events() if "identity" in event.facts]
        return changed[-1] if changed else known

    # -------------------------------------------------------------- ownership

    def is_alive(self) -> bool:
        """Whether another process, or this one, is at work on the run."""
        return is_alive(self.path)

    def refuse_while_alive(self) -> None:
        """Wait a moment for a process that holds the run to end; a ``BusyError`` when it does not."""
        refuse_while_alive(self.path, self.name)

    def take(self, attempt: int = 1) -> Claim:
        """Become the one that writes.

        Raises
        ------
        BusyError
            When another process holds the run.
        """
        return take(self.path, self.name, attempt)

    # -------------------------------------------------------------- a person's word

    def say(self, word: str) -> None:
        """Record the decision that the next execution of the cell follows."""
        _fs.write(self.path / "word", word.encode())

    def said(self) -> str:
        """Return the recorded decision, or an empty text."""
        try:
            return (self.path / "word").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def unsay(self) -> None:
        """Forget the recorded decision: it is followed once."""
        _fs.remove(self.path / "word")

    # -------------------------------------------------------------- snapshots

    def snapshots(self) -> list[Snapshot]:
        """List snapshots, oldest first, without those of an attempt that woke after it had been replaced."""
        from ._snapshot import Snapshot

        stop: dict[int, tuple[int, int]] = {}
        for event in self.events():
            if event.kind == "resumed":
                begun = event.facts.get("snapshot")
                stop[event.attempt] = Snapshot(Path(f"{begun}.h5")).order if begun else (-1, -1)
        found = []
        for path in (self.path / "snapshots").glob("*.h5"):
            if not _SNAPSHOT.fullmatch(path.name):
                continue  # a copy that a sync tool made, or anything else that is not ours
            snapshot = Snapshot(path)
            later = [order for attempt, order in stop.items() if attempt > snapshot.attempt]
            if all(snapshot.order <= order for order in later):
                found.append(snapshot)
        return sorted(found, key=lambda snapshot: snapshot.order)

    def latest(
        self, believe: Callable[[Snapshot], None] | None = None
    ) -> tuple[Snapshot | None, list[tuple[Snapshot, str]]]:
        """Find the newest snapshot that can be believed.

        Parameters
        ----------
        believe : callable, optional
            Reads all of a snapshot, and raises a ``SnapshotError`` when it can't be believed; default: verify it.

        Returns
        -------
        snapshot : Snapshot or None
            None when none was ever published.
        rejected : list of (Snapshot, str)
            Newer ones that could not be believed, and why.

        Raises
        ------
        CorruptError
            When there are snapshots and none can be believed: unreadable is never "first run".
        UntrustedError
            When the newest that holds is not signed with a key of ours, and nobody has said that it is trusted.
        """
        rejected: list[tuple[Snapshot, str]] = []
        for snapshot in reversed(self.snapshots()):
            try:
                (believe or type(snapshot).verify)(snapshot)
            except SnapshotError as error:
                rejected.append((snapshot, str(error)))
            else:
                snapshot.check_signature()
                return snapshot, rejected
        if rejected:
            what = "; ".join(f"{snapshot.path.name}: {why}" for snapshot, why in rejected)
            raise CorruptError(
                f"no snapshot of {self.name} can be believed ({what}). Nothing was touched. Put back a copy of "
                f"{self.path / 'snapshots'}, or start anew with --on-restart supersede",
                str(self.path),
            )
        return None, []

    def writer(self) -> Writer:
        """Return what writes snapshots of this run; it remembers what it wrote, and writes only what has changed."""
        from ._writer import Writer

        return Writer()

    def snapshot_path(self, attempt: int, seq: int) -> Path:
        """Return the path of a snapshot that is to be written."""
        from ._snapshot import Snapshot

        return self.path / "snapshots" / Snapshot.name(attempt, seq)

    def prune(self, goes: set[int], attempt: int, among: Iterable[Snapshot] | None = None) -> None:
        """Remove snapshots by sequence number; those of later attempts are not ours to remove.

        Parameters
        ----------
        goes : set of int
            Sequence numbers.
        attempt : int
            Whose writer asks.
        among : iterable of Snapshot, optional
            The snapshots there are, for a writer that knows them; default: look.
        """
        pins = pinned(self)
        for snapshot in self.snapshots() if among is None else among:
            if snapshot.ident not in pins and snapshot.seq in goes and snapshot.attempt <= attempt:
                _fs.remove(snapshot.path)

    # -------------------------------------------------------------- results of what is done once

    def kept_path(self, key: str) -> Path:
        """Return where the result of a key is kept: a file like a snapshot, of no attempt, numbered by its key."""
        from ._snapshot import Snapshot

        return self.path / "once" / Snapshot.name(0, xxhash.xxh3_64_intdigest(key.encode()))

    def keep(self, key: str, meta: Json, stream: bytes, tables: bytes, blocks: Sequence[BlockLike]) -> None:
        """Keep a result for all later attempts."""
        writer = self.writer()
        writer.commit(writer.stage(self.kept_path(key), {**meta, "run": self.id}, stream, tables, blocks))

    def kept(self, key: str) -> Snapshot | None:
        """Return the kept result of a key, if there is one."""
        from ._snapshot import Snapshot

        path = self.kept_path(key)
        return Snapshot(path) if path.exists() else None


class Store:
    """A folder of runs.

    Parameters
    ----------
    root : Path
        Created when the first run starts.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def __iter__(self) -> Iterator[RunFolder]:
        """Yield the runs that can be read, oldest first."""
        found = []
        for path in self.root.iterdir() if self.root.is_dir() else ():
            if path.name.startswith("."):  # the lock of a name
                continue
            try:
                found.append(RunFolder.open(path))
            except StoreError:
                continue
        heirs = {run.record.get("supersedes"): run.record for run in found}
        for run in found:
            run.successor = heirs.get(run.id)
        yield from sorted(found, key=lambda run: (run.record.get("created", ""), run.name, run.record["number"]))

    def unreadable(self, name: str) -> str:
        """Tell why a run of this name can't be read; empty when all can."""
        for path in self.root.glob(f"{name}-*") if self.root.is_dir() else ():
            if re.fullmatch(re.escape(name) + r"-[0-9a-f]{6}", path.name):
                try:
                    RunFolder.open(path)
                except StoreError as error:
                    if any((path / "snapshots").glob("*.h5")) or (path / "run.json").exists():
                        return str(error)
        return ""

    def named(self, name: str) -> list[RunFolder]:
        """Return the runs of a name, oldest first."""
        return sorted((run for run in self if run.name == name), key=lambda run: int(run.record["number"]))

    def find(self, name: str) -> RunFolder:
        """Return the newest run of a name, or the run of an id.

        Raises
        ------
        NotFoundError
            When there is none; the message names those that are there.
        """
        runs = list(self)
        for run in runs:
            if run.id == name:
                return run
        named = self.named(name)
        if not named:
            there = ", ".join(sorted({run.name for run in runs})) or "none"
            raise NotFoundError(f"no run named {name!r} in {self.root}. Runs there: {there}")
        return named[-1]

    @contextlib.contextmanager
    def opening(self, name: str) -> Iterator[None]:
        """Decide about a name while no other kernel does: two that start at once would each make a run of it.

        Raises
        ------
        BusyError
            When another kernel is at it and does not end.
        """
        self._make()
        lock = _processes.Lock(self.root / f".{name}.lock")
        wait_for(lock, name)
        try:
            yield
        finally:
            lock.release()

    def _make(self) -> None:
        try:
            _fs.make_folder(self.root)
        except OSError as error:
            raise StoreError(
                f"no runs can be kept in {self.root}: {error.strerror or error}. Choose another place with --store",
                str(self.root),
            ) from error
        ignore = self.root / ".gitignore"
        if not ignore.exists():
            _fs.write(ignore, b"*\n")

    def create(self, name: str, record: Json) -> RunFolder:
        """Make the folder of a new run; its record is written once and never changed."""
        self._make()
        number = max((int(run.record["number"]) for run in self.named(name)), default=0) + 1
        ident = f"{name}-{secrets.token_hex(3)}"
        path = self.root / ident
        _fs.make_folder(path / "snapshots")
        full = {"format": FORMAT, "id": ident, "name": name, "number": number, "created": now(), **record}
        full["signature"] = sign(*of_record(full))
        _fs.write(path / "run.json", json.dumps(full, ensure_ascii=False, indent=1).encode())
        return RunFolder(path, full)
