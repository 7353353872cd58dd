"""What is known of one file: how it is written, and how it looks."""

from __future__ import annotations

import io
import os
import stat
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import xxhash

from .._types import Json

How = Literal["append", "whole", "place", "hidden"]
"""Row by row; rewritten as a whole; in the middle; by something that tells nobody."""

Signature = list[int]
"""Size, time of change in nanoseconds, and number in the file system: equal as long as nobody writes."""

TAIL = 1 << 16
SETTLED = 50_000_000
"""Nanoseconds after which a file that looks the same is the same: a kernel's clock ticks in milliseconds."""


@dataclass(slots=True)
class Known:
    """A file that the cell has to do with."""

    how: How = "append"
    handles: list[weakref.ref[IO[Any]]] = field(default_factory=list)
    keeper: str = ""
    """The module that opened a handle and holds it, where its bytes go through a state of its own."""
    lasting: bool = False
    """Whether it has to be told of when it is gone: it was there at the launch, or the set-up makes it."""
    first: Signature | None = None
    """How it looked when it was first touched."""
    entry: Json = field(default_factory=dict)
    settled: bool = False

    def open_handles(self) -> list[IO[Any]]:
        """Return the handles that are still open."""
        found = [handle for ref in self.handles if (handle := ref()) is not None and not handle.closed]
        self.handles = [weakref.ref(handle) for handle in found]
        return found


def signature(path: Path) -> Signature | None:
    """Tell how a file looks from outside; None where there is no plain file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino] if stat.S_ISREG(found.st_mode) else None


def positions(handles: list[IO[Any]]) -> list[int | None]:
    """Tell where handles stand; None where one can't tell."""
    found: list[int | None] = []
    for handle in handles:
        try:
            found.append(handle.tell())
        except OSError:
            found.append(None)
    return found


def descriptors(handles: list[IO[Any]]) -> set[int]:
    """Return the descriptors of handles."""
    found = set()
    for handle in handles:
        try:
            found.add(handle.fileno())
        except (OSError, ValueError):
            continue
    return found


def tail_digest(path: Path, length: int) -> str:
    """Digest the end of a file's first ``length`` bytes: it costs the same however long the file grows."""
    try:
        with io.FileIO(path) as file:
            file.seek(max(0, length - TAIL))
            return xxhash.xxh3_128_hexdigest(file.read(min(TAIL, length))) if path.stat().st_size >= length else ""
    except FileNotFoundError:
        return ""


def whole_digest(path: Path) -> str:
    """Digest all of a file."""
    digest = xxhash.xxh3_128()
    with io.FileIO(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def look(path: Path) -> Json:
    """Describe a name as it is, without its content."""
    if path.is_symlink():
        return {"path": str(path), "length": None, "link": os.readlink(path)}  # noqa: PTH115
    found = signature(path)
    if found is None:
        return {"path": str(path), "length": None}
    return {"path": str(path), "length": found[0], "tail": tail_digest(path, found[0]), "sig": found}
