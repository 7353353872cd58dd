"""Files that are written by something that tells nobody: HDF5, torch's archive writer, Arrow, a program that is called.

They open files below Python, so no hook hears of it. What was tried and left: wrapping their entry points covers the
names on a list and no other; inotify tells of everybody's writing, the editor's and the other notebook's too, and its
queue dies with the process, when it is needed most; replacing libc's ``open`` in the loaded libraries calls Python from
code that holds foreign locks. What remains is to look: folders are compared with how they looked at the snapshot, and
that works after a death as well.

Not every file that changes in a folder is the cell's, and to put another notebook's file back would be a disaster. So a
file counts only if the cell *names* it: its name, or the beginning and end of a name that it puts together, stands in
the code that the cell reaches or in a variable that it reads; or it lies in a folder that the cell has made.
"""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .._types import Json
from ._known import SETTLED, Signature, signature

_NEVER = (".ipynb", ".py", ".pyc")
_LONGEST = 400
_FORMAT = re.compile(r"\{[^{}]*\}|%[-#0-9.]*[a-z]")


@dataclass(slots=True)
class Names:
    """Names of files that stand in code and in values.

    Attributes
    ----------
    whole : set of str
        Names without their folders.
    parts : set of (str, str)
        How a name that is put together begins and ends.
    folders : set of str
        Folders they speak of.
    """

    whole: set[str] = field(default_factory=set)
    parts: set[tuple[str, str]] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    _awaited: set[str] = field(default_factory=set)
    """Folders that are not there yet."""

    def add(self, text: str) -> None:
        """Take a text for a path, if it looks like one."""
        if not text or len(text) > _LONGEST or "\n" in text or ("." not in text and "/" not in text):
            return
        found = list(_FORMAT.finditer(text))
        if found:
            self._add_parts(text[: found[0].start()], text[found[-1].end() :])
            return
        folder, name = os.path.split(text)
        if os.path.isdir(text):  # noqa: PTH112
            self.folders.add(os.path.realpath(text))
            return
        self._add_folder(folder)
        if folder and name.endswith(("_", "-", ".")):
            self.parts.add((name, ""))
        elif "." in name.strip(".") or (folder and name):
            self.whole.add(name)

    def _add_folder(self, folder: str) -> None:
        if folder and os.path.isdir(folder):  # noqa: PTH112
            self.folders.add(os.path.realpath(folder))
        elif folder:
            self._awaited.add(folder)

    def look_again(self) -> None:
        """Find folders that have been made since."""
        awaited, self._awaited = self._awaited, set()
        for folder in awaited:
            self._add_folder(folder)

    def _add_parts(self, head: str, tail: str) -> None:
        folder, head = os.path.split(head)
        self._add_folder(folder)
        if head and ("." in head + tail or folder):
            self.parts.add((head, tail.rpartition("/")[2]))

    def add_source(self, source: str) -> None:
        """Take every text of a piece of code."""
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
                self.add("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                self.add(node.value)

    def name(self, name: str) -> bool:
        """Whether a file's name is among them; a database's journal belongs to it."""
        if name in self.whole or any(name.startswith(head) and name.endswith(tail) for head, tail in self.parts):
            return True
        return any(name.startswith(one) and name[len(one)] == "-" for one in self.whole)

    def to_json(self) -> Json:
        """Return them as JSON values."""
        return {"whole": sorted(self.whole), "parts": sorted(self.parts), "folders": sorted(self.folders)}

    @classmethod
    def from_json(cls, told: Json) -> Names:
        """Return them from JSON values."""
        return cls(set(told["whole"]), {(head, tail) for head, tail in told["parts"]}, set(told["folders"]))


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
    """

    def __init__(
        self,
        path_of: Callable[[str], str | None],
        sources: Iterable[str],
        values: Callable[[], Iterable[str]],
    ) -> None:
        self._path_of, self._values = path_of, values
        self.names = Names(folders={os.path.realpath(".")})
        for source in sources:
            self.names.add_source(source)
        self.made: set[str] = set()
        """Folders that the cell has made: all in them is its own."""
        self.seen: dict[str, Signature] = {}
        self._looked = 0

    def start(self) -> None:
        """Look for the first time."""
        self._looked = time.time_ns()
        self._learn()
        self.seen = self._list()

    def changed(self) -> set[str]:
        """Look again; returns the files that something has written since."""
        since, self._looked = self._looked - SETTLED, time.time_ns()
        self._learn()
        now = self._list()
        changed = {path for path, found in now.items() if self.seen.get(path, found) != found}
        changed |= {path for path in now.keys() - self.seen.keys() if _touched_after(path, since)}
        self.seen = now
        return changed

    def _learn(self) -> None:
        """Learn names from what has been bound since, and folders that are there now."""
        for text in self._values():
            self.names.add(text)
        self.names.look_again()

    def record(self) -> Json:
        """Describe what was seen, for a later process to compare."""
        return {"names": self.names.to_json(), "made": sorted(self.made), "seen": self.seen, "at": self._looked}

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
        now = self._list()
        self.names = names
        seen: dict[str, Signature] = record["seen"]
        changed = {path: seen[path] for path in now.keys() & seen.keys() if now[path] != seen[path]}
        new = [path for path in now.keys() - seen.keys() if _touched_after(path, record["at"] - SETTLED)]
        return changed, sorted(seen.keys() - now.keys()), sorted(new)

    def _list(self) -> dict[str, Signature]:
        found = {}
        for folder in self.names.folders | self.made:
            for name in self._names_in(folder):
                path = self._path_of(os.path.join(folder, name))  # noqa: PTH118
                look = signature(Path(path)) if path is not None else None
                if path is not None and look is not None:
                    found[path] = look
        return found

    def _names_in(self, folder: str) -> Iterator[str]:
        try:
            names = os.listdir(folder)  # noqa: PTH208  # names alone, of what may be a large folder
        except OSError:
            return
        own = folder in self.made
        for name in names:
            if not name.startswith(".") and not name.endswith(_NEVER) and (own or self.names.name(name)):
                yield name


def _touched_after(path: str, since: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return max(found.st_mtime_ns, found.st_ctime_ns) > since
