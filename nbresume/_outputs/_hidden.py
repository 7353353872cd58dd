"""Files that are written by something that tells nobody: HDF5, torch's archive writer, Arrow, a program that is called.

They open files below Python, so no hook hears of it. What was tried and left: wrapping their entry points covers the
names on a list and no other; inotify tells of everybody's writing, the editor's and the other notebook's too, and its
queue dies with the process, when it is needed most; replacing libc's ``open`` in the loaded libraries calls Python from
code that holds foreign locks. What remains is to look: folders are compared with how they looked at the snapshot, and
that works after a death as well.

Not every file that changes in a folder is the cell's, and to put another notebook's file back would be a disaster. So a
file counts only if the cell *names* it: its name, or the beginning and end of a name that it puts together, stands in
the code that the cell reaches or in a variable that it reads; or it lies in a folder that the cell has made. A name of
which only the end is the cell's is spoken of, and left alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

from .._types import Json
from ._copies import COPY_LIMIT, Copies
from ._known import SETTLED, Signature, signature, whole_digest
from ._names import Names

_NOT, _DOUBTFUL, _SURE = 1, 2, 3
_NEVER = (".ipynb", ".py", ".pyc")
_LIMIT = 1 << 20
"""Bytes up to which a file that the cell names, and has not been seen to write, is copied in advance."""

_MANY = 200
"""Files above which they are a collection, which the cell rather reads: none is copied, a change is spoken of."""


class Hidden:
    """Looks at the folders that the cell has to do with.

    Parameters
    ----------
    path_of : callable
        Returns a file's path, or None for one that does not count.
    sources : iterable of str
        The code that the cell reaches.
    values : callable
        Returns the texts that the cell reads just now.
    copies : Copies
        Where small ones are kept in advance.
    """

    def __init__(
        self,
        path_of: Callable[[str], str | None],
        sources: Iterable[str],
        values: Callable[[], Iterable[str]],
        copies: Copies,
    ) -> None:
        self._path_of, self._values, self._copies = path_of, values, copies
        self.names = Names(folders={os.path.realpath(".")})
        for source in sources:
            self.names.add_source(source)
        self.made: set[str] = set()
        """Folders that the cell has made: all in them is its own."""
        self.seen: dict[str, Signature] = {}
        self.doubtful: dict[str, Signature] = {}
        """Files of which the cell names only the end."""
        self._kept: dict[str, tuple[Signature, Json]] = {}
        self._verdicts: dict[str, int] = {}
        self._looked = 0

    def start(self) -> None:
        """Look for the first time."""
        self._looked = time.time_ns()
        self._learn()
        self.seen = self._list()

    def changed(self) -> tuple[set[str], set[str]]:
        """Look again.

        Returns
        -------
        changed : set of str
            Files that something has written since.
        doubtful : set of str
            Files of which the cell names only the end, and that somebody has written since.
        """
        seen, doubtful = self.seen, self.doubtful
        since, self._looked = self._looked - SETTLED, time.time_ns()
        self._learn()
        self.seen = self._list()
        return _differing(seen, self.seen, since), _differing(doubtful, self.doubtful, since)

    def _learn(self) -> None:
        """Learn names from what has been bound since, and folders that are there now."""
        size = self.names.size()
        self.names.folders.add(os.path.realpath("."))  # the cell may have gone elsewhere
        for text in self._values():
            self.names.add_value(text)
        self.names.look_again()
        if self.names.size() != size:
            self._verdicts.clear()

    def record(self, known: Container[str], read: Container[str]) -> Json:
        """Describe what was seen of files that nobody has been seen to write: a death may come before we see it.

        Parameters
        ----------
        known, read : container of str
            Files that are followed, and files that Python reads: those are described elsewhere, or not written.
        """
        seen = {path: found for path, found in self.seen.items() if path not in known}
        few = len(seen) <= _MANY
        kept = {path: self._keep(path, found, copy=path not in read) for path, found in seen.items() if few}
        names, made = self.names.to_json(), sorted(self.made)
        return {"names": names, "made": made, "seen": seen, "kept": kept, "at": self._looked}

    def _keep(self, path: str, found: Signature, *, copy: bool) -> Json:
        before, kept = self._kept.get(path, (None, {}))
        if before != found:
            kept = {"path": path, "length": found[0], "sig": found}
            if copy and found[0] <= _LIMIT:
                kept["copy"] = self._copies.keep(Path(path), found[0])
            elif found[0] <= COPY_LIMIT:
                kept["digest"] = whole_digest(Path(path))
            self._kept[path] = found, kept
        return kept

    def adopt(self, record: Json) -> None:
        """Take over what an earlier attempt knew."""
        self.made |= set(record["made"])
        self.names.folders |= set(record["names"]["folders"])

    def compare(self, record: Json) -> tuple[dict[str, Signature], list[str], list[str]]:
        """Compare with what was seen at a snapshot.

        Returns
        -------
        changed : dict of str to Signature
            Files that look otherwise, and how they looked.
        gone, new : list of str
            Others.
        """
        self.adopt(record)
        names, self.names = self.names, Names.from_json(record["names"])
        self._verdicts.clear()
        now = self._list()
        self.names = names
        self._verdicts.clear()
        seen: dict[str, Signature] = record["seen"]
        changed = {path: seen[path] for path in now.keys() & seen.keys() if now[path] != seen[path]}
        new = [path for path in now.keys() - seen.keys() if _touched_after(path, record["at"] - SETTLED)]
        return changed, sorted(seen.keys() - now.keys()), sorted(new)

    def _list(self) -> dict[str, Signature]:
        found: dict[str, Signature] = {}
        self.doubtful = {}
        for folder in self.names.folders | self.made:
            for name, sure in self._names_in(folder):
                path = self._path_of(os.path.join(folder, name))  # noqa: PTH118
                seen = signature(Path(path)) if path is not None else None
                if path is not None and seen is not None:
                    (found if sure else self.doubtful)[path] = seen
        return found

    def _names_in(self, folder: str) -> Iterator[tuple[str, bool]]:
        try:
            names = os.listdir(folder)  # noqa: PTH208  # names alone, of what may be a large folder
        except OSError:
            return
        own = folder in self.made
        for name in names:
            verdict = _SURE if own else self._verdicts.get(name) or self._judge(name)
            if verdict != _NOT and not name.startswith(".") and not name.endswith(_NEVER):
                yield name, verdict == _SURE

    def _judge(self, name: str) -> int:
        """Tell whether a file's name is the cell's; a folder may hold many, and is looked at often."""
        verdict = _SURE if self.names.has(name) else _DOUBTFUL if self.names.may_have(name) else _NOT
        self._verdicts[name] = verdict
        return verdict


def _differing(before: dict[str, Signature], now: dict[str, Signature], since: int) -> set[str]:
    changed = {path for path, found in now.items() if before.get(path, found) != found}
    return changed | {path for path in now.keys() - before.keys() if _touched_after(path, since)}


def _touched_after(path: str, since: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return max(found.st_mtime_ns, found.st_ctime_ns) > since
