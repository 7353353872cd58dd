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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .. import _fs
from .._types import Json
from ..errors import RefusedError
from . import _audit
from ._back import Back, Cut, identity_of
from ._copies import COPY_LIMIT, INLINE, Copies, names_in
from ._descriptors import mapped_for_writing, writable_descriptors
from ._hidden import Hidden
from ._known import SETTLED, How, Known, descriptors, look, positions, signature, tail_digest
from ._open import ManagedOpen
from ._undo import Journal

_SEEN_LIMIT = 1 << 20
"""Bytes up to which a file that the cell names, and has not been seen to write, is copied in advance."""


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
    """

    def __init__(
        self,
        folder: Path,
        store: Path,
        namespace: dict[str, Any],
        *,
        sources: Iterable[str] = (),
        values: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.folder = folder
        self._store = str(store.resolve())
        self._ignored = tuple(f"{root}{os.sep}" for root in (self._store, sys.prefix, sys.base_prefix, *_own_folders()))
        self._open = ManagedOpen(namespace, self._path)
        self._known = self._open.written
        self._folders: dict[str, bool] = {}
        self._copies = Copies(folder / "files")
        self._journal = Journal(folder / "files.jsonl")
        self._hidden = Hidden(self._path, sources, values)
        self._seen_copies: dict[str, tuple[Any, Json]] = {}
        self._back = Back(folder, self._known, copies=self._copies, journal=self._journal, hidden=self._hidden)
        self._away = False
        """Whether what happens to files is dropped: it happens on the way back."""
        self._last: dict[str, Json] = {}
        self._noted: dict[str, bool] = {}
        """Files noted since the last snapshot; whether with all their content."""
        self._touched: set[str] = set()
        self._new: set[str] = set()
        self._lost: dict[str, int] = {}
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
        _audit.follow(self)

    def stop(self) -> None:
        """Follow nothing any more."""
        _audit.unfollow(self)
        self._open.stop()

    def inherit(self, files: Files) -> None:
        """Take over the handles that an earlier attempt in this process has left open."""
        for path, known in files._known.items():  # noqa: SLF001  # its own kind
            if known.open_handles():
                self._known[path] = Known(known.how, known.handles, known.keeper)

    def _path(self, path: str) -> str | None:
        """Return a path, or None where it is not a file of the user's."""
        ours = path.startswith((*self._ignored, "/dev/", "/proc/", "/sys/")) and not path.startswith("/dev/shm/")  # noqa: S108  # users do write there
        return None if ours or path.endswith(".pyc") else path

    # ------------------------------------------------------------------ told before it happens

    def about_to_open(self, path: str, flags: int) -> None:
        """Know that a file is opened for writing."""
        whole = bool(flags & (os.O_TRUNC | os.O_EXCL))
        how: How = "append" if flags & os.O_APPEND else "whole" if whole else "place"
        self._touch(path, how, destroys=how != "append")

    def about_to_change(self, path: str) -> None:
        """Know that a file is written in place, and a database's journals beside it."""
        self._touch(path, "place", destroys=True)
        for ending in ("-wal", "-shm", "-journal"):
            if os.path.exists(path + ending):  # noqa: PTH110
                self._touch(path + ending, "place", destroys=True)

    def about_to_remove(self, path: str) -> None:
        """Know that a name is removed, or made for something that is no new file."""
        self._touch(path, None, destroys=True)

    def about_to_rename(self, source: str, target: str) -> None:
        """Know that something gets another name: what has that name already is lost."""
        if self._path(source) is None or self._path(target) is None or not os.path.lexists(source):
            return
        if self._journal.next == 0 and not self._away and source not in self._new:
            self._note(source, destroys=True, stays=False)  # the set-up will rename it again
        self._touch(target, None, destroys=True)
        if not self._away and source not in self._new:
            found = look(Path(source))
            self._journal.add("renamed", durable=True, to=target, id=identity_of(Path(source)), **found)
            self._noted.pop(target, None)
            self._last.pop(target, None)  # it is another file now, which no snapshot knows by this name
        for path in [path for path in self._known if path == source or path.startswith(source + os.sep)]:
            known = self._known[path]
            known.entry = {}
            self._known[target + path[len(source) :]] = known
            self._known[path] = Known(known.how, lasting=known.lasting)
        self._known.setdefault(source, Known(lasting=True))
        self._known.setdefault(target, Known("whole", lasting=True))
        self._folders |= {target + one[len(source) :]: there for one, there in self._inside(source).items()}
        self._folders |= dict.fromkeys(self._inside(source), False)

    def _inside(self, folder: str) -> dict[str, bool]:
        return {
            one: there for one, there in self._folders.items() if one == folder or one.startswith(folder + os.sep)
        }

    def about_to_make_folder(self, path: str) -> None:
        """Know that a folder is made."""
        if self._path(path) is None or os.path.lexists(path):
            return
        self._folders[path] = True
        self._hidden.made.add(path)
        if not self._away:
            self._journal.add("made", path=path)

    def about_to_remove_folder(self, path: str) -> None:
        """Know that a folder is removed."""
        if self._path(path) is None or not os.path.isdir(path):  # noqa: PTH112
            return
        self._folders[path] = False
        if not self._away:
            self._journal.add("unmade", path=path)

    def _touch(self, path: str, how: How | None, *, destroys: bool) -> None:
        if self._path(path) is None or os.path.isdir(path):  # noqa: PTH112
            return
        there = os.path.lexists(path)
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = Known(lasting=there or self._journal.next == 0, first=signature(Path(path)))
        known.how = how or known.how
        self._touched.add(path)
        if not there and not self._away:
            self._new.add(path)
        if not self._away:
            self._note(path, destroys=destroys, stays=how is not None)

    def _note(self, path: str, *, destroys: bool, stays: bool) -> None:
        """Note what a file is, once after each snapshot, unless the snapshot knows.

        Parameters
        ----------
        path : str
            The file.
        destroys, stays : bool
            Whether its content goes, and whether in the very file, so that a second name would not keep it.
        """
        noted = self._noted.get(path)
        if noted or (noted is False and not destroys):
            return
        last = self._last.get(path)
        if noted is None and last is not None and ("copy" in last or last["length"] is None or not destroys):
            return
        record = look(Path(path))
        size = record["length"]
        if size is not None and destroys:
            keep = self._copies.keep if stays else self._copies.keep_before_removal
            record["copy"] = keep(Path(path), size)
            if record["copy"] is None:
                record["lost"] = True
                self._lost[path] = size
        self._noted[path] = destroys or size is None
        self._journal.add("was", durable=size is not None, **record)

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
        folders = [{"path": path, "length": None, "folder": there} for path, there in self._folders.items()]
        return {"known": [entry for entry in found if entry is not None] + folders, **self._seen()}

    def committed(self, state: Json, seq: int, kept: list[int]) -> None:
        """Know that a snapshot with this state is complete, and which ones are kept."""
        self._last = {entry["path"]: entry for entry in state["known"]}
        for memory in (self._noted, self._touched, self._new, self._lost):
            memory.clear()
        self._journal.next = seq + 1
        self._journal.forget(min(kept, default=seq))
        records = [*state["known"], *state["kept"].values()]
        self._used[seq] = names_in(records)
        if set(kept) <= self._used.keys():  # else there are some of an earlier attempt
            self._used = {one: self._used[one] for one in kept}
            self._copies.prune(set().union(*self._used.values(), names_in(self._journal.records)))

    def reader_positions(self) -> list[Json]:
        """Tell where files open for reading stand; one whose position can't be told is a loop's own iterable."""
        found: list[Json] = []
        for path, known in self._open.read.items():
            for nth, handle in enumerate(known.open_handles()):
                try:
                    found.append({"path": path, "nth": nth, "at": handle.tell()})
                except OSError:
                    continue
        return found

    def _find_hidden(self) -> None:
        for path in self._hidden.changed():
            known = self._known.get(path)
            if known is None:
                self._known[path] = Known("hidden", lasting=True)
            elif path not in self._touched and not known.open_handles():
                known.how = "hidden"

    def _seen(self) -> Json:
        """Describe what the cell names and has not been seen to write: a death may come before we see it."""
        record = self._hidden.record()
        record["seen"] = {path: look for path, look in record["seen"].items() if path not in self._known}
        record["kept"] = {path: self._kept(path, look) for path, look in record["seen"].items()}
        return record

    def _kept(self, path: str, sig: list[int]) -> Json:
        known_sig, kept = self._seen_copies.get(path, (None, {}))
        if known_sig != sig:
            kept = look(Path(path))
            if sig[0] <= _SEEN_LIMIT and path not in self._open.read:
                kept["copy"] = self._copies.keep(Path(path), sig[0])
            self._seen_copies[path] = sig, kept
        return kept

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
        for path, size in list(self._lost.items()):
            del self._lost[path]  # what is there now can be described; a death before now could not have been undone
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
            if os.path.realpath(path).startswith((self._store, *self._ignored)):
                continue
            raise RefusedError(
                f"{Path(path).name} is open for writing in place, by a library (HDF5, SQLite, a memory map)",
                "Open and close it in the body of the loop; or collect the results and write them after the loop",
            )

    # ------------------------------------------------------------------ on a resume

    def check(self, state: Json, seq: int) -> None:
        """Check, before anything is touched, that every recorded file can be put back.

        Raises
        ------
        ReplayError
            When one is gone or was changed by someone else.
        """
        self._back.check(state.get("known", []), seq)

    def undo(self, state: Json, seq: int) -> Cut:
        """Undo what was done to files since a snapshot, or since the launch where there is none."""
        saw = next((record for record in self._journal.records if record["op"] == "saw"), {})
        return self._back.undo(state.get("known", []), seq, state or saw)

    def set_aside(self, state: Json, attempt: int) -> None:
        """Move every recorded file away, so that what runs again finds the world of the launch."""
        self._away = True
        self._adopt(state)
        self._back.set_aside(state.get("known", []), attempt)

    def _adopt(self, state: Json) -> None:
        for entry in state.get("known", []):
            if "folder" in entry:
                self._folders.setdefault(entry["path"], entry["folder"])
            else:
                self._known.setdefault(entry["path"], Known(entry.get("how", "append"), lasting=True))

    def recover(self) -> None:
        """Put files back that an attempt had moved aside and could not put back itself."""
        self._back.recover()

    def put_back(self, state: Json, *, whole: bool = False) -> Cut:
        """Put every recorded file back as the snapshot knew it, and note again what happens to files.

        Parameters
        ----------
        state : dict
            As ``state`` gave it.
        whole : bool
            Cut nothing: the run is complete.

        Returns
        -------
        list of (str, int)
            Names, and the bytes cut off.
        """
        self._away = True
        self._adopt(state)
        cut = self._back.put_back(state.get("known", []), whole=whole)
        self._last = {entry["path"]: entry for entry in state.get("known", [])}
        self._hidden.start()
        self._away = False
        return cut

    def put_readers(self, reading: list[Json]) -> None:
        """Put files open for reading where they stood."""
        for entry in reading:
            known = self._open.read.get(entry["path"])
            handles = known.open_handles() if known else []
            if entry["nth"] < len(handles):
                handles[entry["nth"]].seek(entry["at"])


def _own_folders() -> list[str]:
    """Return folders in which programs keep things of their own: caches, histories, settings."""
    home = os.path.expanduser("~")  # noqa: PTH111
    named = [os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "IPYTHONDIR", "JUPYTER_DATA_DIR", "TORCH_HOME")]
    hidden = [os.path.join(home, one) for one in (".cache", ".ipython", ".jupyter", ".local", ".config", ".matplotlib")]  # noqa: PTH118
    return [os.path.realpath(one) for one in (*named, *hidden) if one]
