"""What happens to files between two snapshots, noted before it happens so that it can be undone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .._types import Json
from ._back import identity_of
from ._copies import Copies
from ._hidden import Hidden
from ._known import How, Known, look, signature
from ._undo import Journal


class Changes:
    """Notes changes; told of them by the audit hook.

    Parameters
    ----------
    path_of : callable
        Returns a file's path, or None for one that does not count.
    known : dict of str to Known
        Files by path; what is touched is added.
    copies, journal, hidden
        Where things are kept, noted and looked at.
    """

    def __init__(
        self,
        path_of: Callable[[str], str | None],
        known: dict[str, Known],
        *,
        copies: Copies,
        journal: Journal,
        hidden: Hidden,
    ) -> None:
        self._path, self._known = path_of, known
        self._copies, self._journal, self._hidden = copies, journal, hidden
        self.folders: dict[str, bool] = {}
        """Folders made or removed, and whether they are there."""
        self.away = False
        """Whether what happens to files is dropped: it happens on the way back."""
        self.touched: set[str] = set()
        self.lost: dict[str, int | None] = {}
        """Files too large to be kept, and their bytes; None where the disk refused."""
        self._last: dict[str, Json] = {}
        self._noted: dict[str, bool] = {}
        """Files noted since the last snapshot; whether with all their content."""
        self._new: set[str] = set()

    def since(self, recorded: list[Json]) -> None:
        """Begin anew at a snapshot that knows these files."""
        self._last = {entry["path"]: entry for entry in recorded}
        for memory in (self._noted, self.touched, self._new, self.lost):
            memory.clear()

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
        if self._journal.next == 0 and not self.away and source not in self._new:
            self._note(source, destroys=True, stays=False)  # the set-up will rename it again
        self._touch(target, None, destroys=True)
        if not self.away and source not in self._new:
            found = look(Path(source))
            self._add("renamed", durable=True, to=target, id=identity_of(Path(source)), **found)
            self._noted.pop(target, None)
            self._last.pop(target, None)  # it is another file now, which no snapshot knows by this name
        for path in [path for path in self._known if path == source or path.startswith(source + os.sep)]:
            known = self._known[path]
            known.entry = {}
            self._known[target + path[len(source) :]] = known
            self._known[path] = Known(known.how, lasting=known.lasting)
        self._known.setdefault(source, Known(lasting=True))
        self._known.setdefault(target, Known("whole", lasting=True))
        self.folders |= {target + one[len(source) :]: there for one, there in self._inside(source).items()}
        self.folders |= dict.fromkeys(self._inside(source), False)

    def _inside(self, folder: str) -> dict[str, bool]:
        return {one: there for one, there in self.folders.items() if one == folder or one.startswith(folder + os.sep)}

    def about_to_make_folder(self, path: str) -> None:
        """Know that a folder is made."""
        if self._path(path) is None or os.path.lexists(path):
            return
        self.folders[path] = True
        self._hidden.made.add(path)
        if not self.away:
            self._add("made", path=path)

    def about_to_remove_folder(self, path: str) -> None:
        """Know that a folder is removed."""
        if self._path(path) is None or not os.path.isdir(path):  # noqa: PTH112
            return
        self.folders[path] = False
        if not self.away:
            self._add("unmade", path=path)

    def _touch(self, path: str, how: How | None, *, destroys: bool) -> None:
        if self._path(path) is None or os.path.isdir(path):  # noqa: PTH112
            return
        there = os.path.lexists(path)
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = Known(lasting=there or self._journal.next == 0, first=signature(Path(path)))
        known.how = how or known.how
        self.touched.add(path)
        if not there and not self.away:
            self._new.add(path)
        if not self.away:
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
        there = os.path.lexists(path)
        try:
            self._keep(path, destroys=destroys, stays=stays)
        except OSError:
            # A full disk is no reason to fail the user's own writing: the next boundary says that it is not protected.
            self.lost[path] = None
        self._noted[path] = destroys or not there

    def _add(self, op: str, *, path: str, durable: bool = False, **facts: object) -> None:
        try:
            self._journal.add(op, durable=durable, path=path, **facts)
        except OSError:
            self.lost[path] = None

    def _keep(self, path: str, *, destroys: bool, stays: bool) -> None:
        record = look(Path(path))
        size = record["length"]
        if size is not None and destroys:
            keep = self._copies.keep if stays else self._copies.keep_before_removal
            record["copy"] = keep(Path(path), size)
            if record["copy"] is None:
                record["lost"] = True
                self.lost[path] = size
        self._journal.add("was", durable=size is not None, **record)
