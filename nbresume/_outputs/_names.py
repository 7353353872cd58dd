"""The names of files that stand in code and in values."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .._types import Json

_LONGEST = 400
_FORMAT = re.compile(r"\{[^{}]*\}|%[-#0-9.]*[a-z]")
_WORD = re.compile(r"[^\s'\"<>|;&()=,]+")
_BESIDE = ("-wal", "-shm", "-journal")
_NUMBER = re.compile(r"[-_.0-9]+")


@dataclass(slots=True)
class Names:
    """Names of files.

    Attributes
    ----------
    whole : set of str
        Names without their folders.
    parts : set of (str, str)
        How a name that is put together begins and ends.
    endings : set of str
        How a name ends that begins with a value.
    stems : set of str
        Such values.
    folders : set of str
        Folders they speak of.
    """

    whole: set[str] = field(default_factory=set)
    parts: set[tuple[str, str]] = field(default_factory=set)
    endings: set[str] = field(default_factory=set)
    stems: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    _awaited: set[str] = field(default_factory=set)
    """Folders that are not there yet."""

    def add_value(self, text: str) -> None:
        """Take a value for a path, or for what a name may begin with."""
        if 1 < len(text) < _LONGEST and _WORD.fullmatch(text) and "/" not in text:
            self.stems.add(text)
        self.add(text)

    def add(self, text: str) -> None:
        """Take a text for a path, or for words with paths among them, if it looks like that."""
        if not text or len(text) > _LONGEST or ("." not in text and "/" not in text):
            return
        for word in {text, *_WORD.findall(text)}:
            self._add(word)

    def _add(self, text: str) -> None:
        if "\n" in text or ("." not in text and "/" not in text):
            return
        text = os.path.expanduser(text)  # noqa: PTH111
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
        tail = tail.rpartition("/")[2]
        if head and ("." in head + tail or folder):
            self.parts.add((head, tail))
        elif "." in tail:
            self.endings.add(tail)

    def add_source(self, source: str) -> None:
        """Take every text of a piece of code, also one that it puts together."""
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return
        inner: set[int] = set()
        for node in ast.walk(tree):
            if id(node) in inner or not isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Constant)):
                continue
            parts = list(_parts(node))
            inner.update(id(one) for one in ast.walk(node) if isinstance(node, ast.JoinedStr) or len(parts) > 1)
            self.add("".join(parts))

    def has(self, name: str) -> bool:
        """Whether a file's name is among them; a database's journal belongs to it."""
        if name in self.whole or any(name.startswith(head) and name.endswith(tail) for head, tail in self.parts):
            return True
        for ending in self.endings:
            stem = name.removesuffix(ending)
            if stem != name and (_NUMBER.fullmatch(stem) or stem.startswith(tuple(self.stems))):
                return True
        return any(name.endswith(one) and name.removesuffix(one) in self.whole for one in _BESIDE)

    def may_have(self, name: str) -> bool:
        """Whether a file's name ends as one does that the cell puts together."""
        return name.endswith(tuple(self.endings))

    def size(self) -> int:
        """Return how many there are: they only become more."""
        return len(self.whole) + len(self.parts) + len(self.endings) + len(self.stems)

    def to_json(self) -> Json:
        """Return them as JSON values."""
        kinds = ("whole", "parts", "endings", "stems", "folders")
        told = {kind: sorted(getattr(self, kind)) for kind in kinds}
        return told if self.endings else {**told, "stems": []}

    @classmethod
    def from_json(cls, told: Json) -> Names:
        """Return them from JSON values."""
        told = {kind: set(found) for kind, found in told.items() if kind != "parts"} | {
            "parts": {(head, tail) for head, tail in told["parts"]}
        }
        return cls(**told)


def _parts(node: ast.expr) -> Iterator[str]:
    """Yield the pieces of a text that code puts together, with a hole for each value."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            for value in values:
                yield str(value.value) if isinstance(value, ast.Constant) else "{}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _parts(left)
            yield from _parts(right)
        case _:
            yield "{}"
