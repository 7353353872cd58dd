"""The files a cell writes by itself.

While a cell runs, three look out for them: ``open`` is managed, so that a file's handle can be flushed and put where it
stood; an audit hook hears of every change that Python makes, before it is made; and folders are looked at for what is
written below Python. What a file was at a snapshot is its length, a fingerprint of its end, and a copy where that does
not tell it: where it is rewritten as a whole or written in place.

A copy is made no earlier than needed. A small one stands in the snapshot. A larger file that Python rewrites is copied
when it is about to be, so that one which is written once costs nothing; what is written in place, or by something that
tells nobody, is copied at each snapshot that finds it changed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from .. import _fs
from .._types import Json
from ..errors import RefusedError, StoreError
from . import _audit
from ._back import Back, Cut
from ._changes import Changes
from ._copies import COPY_LIMIT, INLINE, Copies, names_in
from ._descriptors import is_no_file, mapped_for_writing, writable_descriptors
from ._excess import Excess, excess
from ._hidden import Hidden
from ._known import SETTLED, Known, descriptors, look, positions, signature, tail_digest
from ._open import ManagedOpen
from ._portable import Portable, Sign
from ._undo import Journal


class Files:
    """Follows the files that a cell writes.

    Parameters
    ----------
    folder : Path
        The run's folder: what is cut off goes into ``aside/``, copies into ``files/``, what was done into
        ``files.jsonl``.
    store : Path
        Root of the store, whose own files do not count.
    namespace : dict
        The notebook's globals.
    sources : iterable of str
        The code that the cell reaches, whose texts may name files.
    values : callable
        Returns the texts that the cell reads just now.
    warn, told : callable
        Show a warning; show that a file was cut back, by how many bytes.
    sign : callable
        Signs a record of what was done to files.
    """

    def __init__(  # noqa: PLR0913  # what a cell's files have to do with
        self,
        folder: Path,
        store: Path,
        namespace: dict[str, Any],
        *,
        sources: Iterable[str] = (),
        values: Callable[[], Iterable[str]] = tuple,
        warn: Callable[[str], None] = lambda _text: None,
        told: Callable[[str, int], None] = lambda _name, _length: None,
        sign: Sign = lambda _kind, _record: {},
    ) -> None:
        self.folder = folder
        self._store = str(store.resolve())
        self._ignored = tuple(f"{root}{os.sep}" for root in (self._store, sys.prefix, sys.base_prefix, *_own_folders()))
        self._open = ManagedOpen(namespace, self._path)
        self._known = self._open.written
        self._copies = Copies(folder / "files")
        self._portable = Portable(store.parent, sign)
        self._journal = Journal(folder / "files.jsonl", self._portable)
        self._hidden = Hidden(self._path, sources, values, self._copies)
        self._doubted: set[str] = set()
        self._warn, self._told = warn, told
        self._goal: Json = {}
        self._goal_seq = -1
        self._changes = Changes(
            self._path, self._known, copies=self._copies, journal=self._journal, hidden=self._hidden
        )
        self._back = Back(
            folder,
            self._known,
            copies=self._copies,
            journal=self._journal,
            hidden=self._hidden,
            portable=self._portable,
            warn=warn,
        )
        self._before: set[tuple[str, int]] = set()
        self._mapped_before: set[str] = set()
        self._used: dict[int, set[str]] = {}

    # ------------------------------------------------------------------ following

    def start(self, seq: int) -> None:
        """Follow files from here on.

        Parameters
        ----------
        seq : int
            Number of the next snapshot.
        """
        self._journal.next = seq
        self._before = writable_descriptors()
        self._mapped_before = mapped_for_writing()
        self._hidden.start()
        if not seq:
            self._journal.add("saw", **self._seen())
        self._open.start()
        _audit.follow(self._changes)

    def stop(self) -> None:
        """Follow nothing any more."""
        _audit.unfollow(self._changes)
        self._open.stop()

    def inherit(self, files: Files) -> None:
        """Take over the handles that an earlier attempt in this process has left open."""
        for path, known in files._known.items():  # its own kind
            if known.open_handles():
                self._known[path] = Known(known.how, known.handles, known.keeper)

    def _path(self, path: str) -> str | None:
        """Return a path, or None where it is not a file of the user's."""
        return None if path.startswith(self._ignored) or is_no_file(path) or path.endswith(".pyc") else path

    # ------------------------------------------------------------------ at a boundary

    def state(self) -> Json:
        """Describe the files as they are, after making their bytes durable.

        Raises
        ------
        RefusedError
            When a file can't be described so that it could be put back.
        """
        self._find_hidden()
        self._refuse_lost()
        self._refuse_in_place()
        found = [self._describe(path, known) for path, known in list(self._known.items())]
        folders = [{"path": path, "length": None, "folder": there} for path, there in self._changes.folders.items()]
        return {"known": [entry for entry in found if entry is not None] + folders, **self._seen()}

    def portable(self, state: Json) -> Json:
        """Return a state as a snapshot keeps it: a notebook may be moved together with its files."""
        found: Json = self._portable.pack(state)
        return found

    def staged(self, state: Json, seq: int) -> None:
        """Know that a snapshot has this state: what happens from here on is not in it.

        Should it never be committed, then what happens now still leads back to the one before, which knows its own
        copies: what was noted since that one stays noted.
        """
        self._changes.since(state["known"])
        self._journal.next = seq + 1
        self._used[seq] = names_in([*state["known"], *state["kept"].values()])

    def committed(self, kept: list[int]) -> None:
        """Know which snapshots are kept; the latest of them has just been committed."""
        self._journal.forget(min(kept))
        if set(kept) <= self._used.keys():  # else there are some of an earlier attempt
            self._used = {one: self._used[one] for one in kept}
            self._copies.prune(set().union(*self._used.values(), names_in(self._journal.records)))

    def reader_positions(self) -> list[Json]:
        """Tell where files open for reading stand; one whose position can't be told is a loop's own iterable."""
        found: list[Json] = []
        for path, known in self._open.read.items():
            for nth, handle in enumerate(known.open_handles()):
                try:
                    found.append({"path": self._portable.pack(path), "nth": nth, "at": handle.tell()})
                except OSError:
                    continue
        return found

    def _find_hidden(self) -> None:
        changed, doubtful = self._hidden.changed()
        for path in changed:
            known = self._known.get(path)
            if known is None:
                self._known[path] = Known("hidden", lasting=True)
            elif path not in self._changes.touched and not known.open_handles():
                known.how = "hidden"
        for path in sorted(doubtful - self._known.keys() - self._doubted):
            self._doubted.add(path)
            self._warn(
                f"{Path(path).name} was written while the cell ran, by a library or by another program: it is not "
                "followed. If the cell writes it, put its whole name into a variable of the notebook"
            )

    def _seen(self) -> Json:
        return self._hidden.record(self._known, self._open.read)

    def _describe(self, path: str, known: Known) -> Json | None:
        handles = known.open_handles()
        for handle in handles:
            handle.flush()
        file = Path(path)
        sig = signature(file)
        if sig is None:
            if os.path.lexists(path) and not file.is_symlink():
                return None  # a pipe, a device
            known.entry = {}
            return look(file) if known.lasting or file.is_symlink() else None
        if not handles and known.settled and known.entry.get("sig") == sig and known.entry["how"] == known.how:
            return known.entry
        _fs.sync_file(file)
        known.settled = time.time_ns() - sig[1] > SETTLED
        known.entry = self._entry(file, known, sig, positions(handles))
        return known.entry

    def _entry(self, file: Path, known: Known, sig: list[int], at: list[int | None]) -> Json:
        length = sig[0]
        entry: Json = {
            "path": str(file), "length": length, "tail": tail_digest(file, length), "at": at, "sig": sig,
            "how": known.how,
        }  # fmt: skip
        in_the_middle = known.how != "append" and any(where not in (None, length) for where in at)
        in_place = in_the_middle or known.how == "hidden" or (known.how == "place" and sig != known.first)
        if length <= INLINE or in_place:
            entry["copy"] = self._copies.keep(file, length)
            if entry["copy"] is None:
                raise RefusedError(
                    f"{file.name} is written in place, and with {length:,} bytes it is too large to be copied at each "
                    f"snapshot (at most {COPY_LIMIT:,})",
                    "Write parts, a file of its own in each iteration; or write the new one under another name and "
                    "os.replace() it",
                )
        return entry

    def _refuse_lost(self) -> None:
        for path, size in list(self._changes.lost.items()):
            del self._changes.lost[path]  # the file as it is now can be described: only its past is lost
            if size is None:
                raise StoreError(
                    f"the disk refused to keep what {Path(path).name} was before the cell changed it. Free some space"
                )
            raise RefusedError(
                f"{Path(path).name} is changed or removed by the loop, and with {size:,} bytes it is too large to be "
                f"copied before (at most {COPY_LIMIT:,})",
                "Write the new one under another name and os.replace() it: then the old one is kept without a copy",
            )

    def _refuse_in_place(self) -> None:
        managed: set[int] = set()
        for path, known in self._known.items():
            handles = known.open_handles()
            managed |= descriptors(handles)
            if handles and known.keeper:
                raise RefusedError(
                    f"{Path(path).name} is held open for writing by {known.keeper}, whose place in it can't be put "
                    "back",
                    "Open and close it in the body; or write it after the loop",
                )
        found = [path for path, number in writable_descriptors() - self._before if number not in managed]
        for path in [*found, *(mapped_for_writing() - self._mapped_before)]:
            if os.path.realpath(path).startswith(self._ignored):
                continue
            raise RefusedError(
                f"{Path(path).name} is open for writing in place, by a library (HDF5, SQLite, a memory map)",
                "Open and close it in the body of the loop; or collect the results and write them after the loop",
            )

    # ------------------------------------------------------------------ on a resume

    def back_to(self, state: Json, seq: int) -> None:
        """Know which snapshot to go back to; without this it is the launch."""
        self._goal, self._goal_seq = self._portable.unpack(state), seq

    @property
    def _recorded(self) -> list[Json]:
        found: list[Json] = self._goal.get("known", [])
        return found

    def check(self) -> None:
        """Check, before anything is touched, that every recorded file can be put back.

        Raises
        ------
        ReplayError
            When one is gone or was changed by someone else.
        """
        self._back.check(self._recorded, self._goal_seq)

    def undo(self) -> None:
        """Undo what was done to files since the snapshot, or since the launch."""
        saw = next((record for record in self._journal.records if record["op"] == "saw"), {})
        self._tell(self._back.undo(self._recorded, self._goal_seq, self._goal or saw))

    def excess(self) -> Iterator[Excess]:
        """Yield what recorded files hold beyond the snapshot, and what will be cut off when they are put back."""
        for entry in self._recorded:
            if "folder" not in entry and "link" not in entry and entry["length"] is not None:
                of_rows = entry.get("how", "append") == "append"
                yield from excess(Path(entry["path"]), entry["length"], of_rows=of_rows)

    def set_aside(self, attempt: int) -> None:
        """Move every recorded file away, so that what runs again finds the world of the launch."""
        self._changes.away = True
        self._adopt()
        self._back.set_aside(self._recorded, attempt)

    def recover(self) -> None:
        """Put files back that an attempt had moved aside and could not put back itself."""
        self._back.moves.recover()

    def put_back(self, *, whole: bool = False) -> None:
        """Put every recorded file back as the snapshot knew it, and note again what happens to files.

        Parameters
        ----------
        whole : bool
            Cut nothing: the run is complete.
        """
        self._changes.away = True
        self._adopt()
        self._tell(self._back.put_back(self._recorded, whole=whole))
        self._changes.since(self._recorded)
        self._hidden.start()
        self._changes.away = False

    def _adopt(self) -> None:
        for entry in self._recorded:
            if "folder" in entry:
                self._changes.folders.setdefault(entry["path"], entry["folder"])
            else:
                self._known.setdefault(entry["path"], Known(entry.get("how", "append"), lasting=True))

    def _tell(self, cut: Cut) -> None:
        for name, length in cut:
            self._told(name, length)

    def put_readers(self, reading: list[Json]) -> None:
        """Put files open for reading where they stood."""
        for entry in reading:
            known = self._open.read.get(self._portable.unpack(entry["path"]))
            handles = known.open_handles() if known else []
            if entry["nth"] < len(handles):
                handles[entry["nth"]].seek(entry["at"])


def _own_folders() -> list[str]:
    """Return folders in which programs keep things of their own: caches, histories, settings."""
    home = os.path.expanduser("~")  # noqa: PTH111
    named = [os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "IPYTHONDIR", "JUPYTER_DATA_DIR", "TORCH_HOME")]
    hidden = [os.path.join(home, one) for one in (".cache", ".ipython", ".jupyter", ".local", ".config", ".matplotlib")]  # noqa: PTH118
    return [os.path.realpath(one) for one in (*named, *hidden) if one]
