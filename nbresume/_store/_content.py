"""The bytes of a snapshot, wherever they lie: in one whole file, or in one and in the deltas that are built on it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from ._image import SLICE, Parts
from ._seal import PAGE, SEAL, Seal, SnapshotError, page_digest

_MOST_PARTS = 512
"""Parts of one ``preadv``; the system allows 1024."""


@dataclass(slots=True)
class Content:
    """An open snapshot.

    Attributes
    ----------
    seal : Seal
        Of the snapshot.
    file : int
        Its own file.
    whole : int
        The whole file at the bottom: the same, where it is one.
    deltas : list of _Delta
        What lies over it, the oldest first.
    """

    seal: Seal
    file: int
    whole: int
    deltas: list[_Delta] = field(default_factory=list)

    @property
    def image(self) -> tuple[int, int]:
        """Where the slices begin and end."""
        facts = self.seal.facts
        body, size = facts.get("image", (facts["body"], facts["size"]))
        return body, size

    def read(self, offset: int, parts: Parts) -> None:
        """Fill writable memory with the bytes from an offset on."""
        if len(parts) > (1 if self.deltas else _MOST_PARTS):
            whole = bytearray(sum(map(len, parts)))
            self.read(offset, [memoryview(whole)])
            _spread(whole, parts)
            return
        pread(self.whole, offset, parts)
        for delta in self.deltas:
            delta.lay_over(offset, parts[0])

    def take(self, offset: int, size: int) -> bytes:
        """Return bytes."""
        found = bytearray(size)
        self.read(offset, [memoryview(found)])
        return bytes(found)

    def head(self) -> bytes:
        """Return what lies between the seal and the body of its own file, checked."""
        head = bytearray(self.seal.facts["body"] - SEAL)
        pread(self.file, SEAL, [memoryview(head)])
        if xxhash.xxh3_128_hexdigest(head) != self.seal.facts["head"]:
            raise SnapshotError("its head has changed since it was written")
        return bytes(head)

    def check_delta(self) -> None:
        """Check the bytes of its own file behind the head, where it is a delta; those of a whole one are its slices."""
        facts = self.seal.facts
        if "delta" in facts:
            hasher = xxhash.xxh3_128()
            scratch = memoryview(bytearray(SLICE))
            for at in range(facts["body"], facts["size"], SLICE):
                part = scratch[: min(SLICE, facts["size"] - at)]
                pread(self.file, at, [part])
                hasher.update(part)
            if hasher.hexdigest() != facts["delta"]:
                raise SnapshotError("what it adds has changed since it was written")


@dataclass(slots=True)
class _Delta:
    file: int
    pieces: int
    """Where in the file the bytes of all runs begin, one behind the other."""
    starts: NDArray[Any]
    ends: NDArray[Any]
    at: NDArray[Any]
    """Where in the file the bytes of each run begin, and where those of the last one end."""
    pages: NDArray[Any] | None
    """Numbers of the whole pages that it has, where its runs are made of pages: a file may end within one."""

    @classmethod
    def read(cls, file: int, seal: Seal) -> _Delta:
        offset, count = seal.facts["runs"]
        runs = np.empty((count, 2), "<u8")
        pread(file, offset, [runs.reshape(-1).view("u1").data] if count else [])
        starts, sizes = runs[:, 0].astype("i8"), runs[:, 1].astype("i8")
        at = seal.facts["pieces"] + np.concatenate([[0], np.cumsum(sizes)])
        if np.any(starts[1:] < (starts + sizes)[:-1]) or (count and at[-1] > seal.facts["size"]):
            raise SnapshotError("what it adds has changed since it was written")
        pages = None
        if not np.any(starts % PAGE) and not np.any(sizes[:-1] % PAGE):
            each = sizes // PAGE
            pages = np.repeat(starts // PAGE - (np.cumsum(each) - each), each) + np.arange(each.sum())
        return cls(file, seal.facts["pieces"], starts, starts + sizes, at, pages)

    def lay_over(self, offset: int, target: memoryview) -> None:
        """Put its bytes over what was read from an offset on."""
        if self.pages is not None and not offset % PAGE:
            whole = len(target) // PAGE * PAGE
            self._lay_pages(self.pages, offset // PAGE, target[:whole])
            offset, target = offset + whole, target[whole:]
            if not target:
                return
        end = offset + len(target)
        first, behind = np.searchsorted(self.ends, offset, "right"), np.searchsorted(self.starts, end, "left")
        rows = zip(self.starts[first:behind], self.ends[first:behind], self.at[first:behind], strict=True)
        for start, stop, at in ((int(a), int(b), int(c)) for a, b, c in rows):
            low, high = max(start, offset), min(stop, end)
            pread(self.file, at + low - start, [target[low - offset : high - offset]])

    def _lay_pages(self, pages: NDArray[Any], low: int, target: memoryview) -> None:
        """Copy whole pages at once."""
        first, behind = map(int, np.searchsorted(pages, (low, low + len(target) // PAGE)))
        if first < behind:
            data = np.empty((behind - first, PAGE), "u1")
            pread(self.file, self.pieces + first * PAGE, [data.reshape(-1).data])
            np.frombuffer(target, "u1").reshape(-1, PAGE)[pages[first:behind] - low] = data


def _spread(data: bytearray | memoryview, parts: Parts) -> None:
    view, at = memoryview(data), 0
    for part in parts:
        part[:] = view[at : at + len(part)]
        at += len(part)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Content]:
    """Open a snapshot and what it is built on.

    Raises
    ------
    SnapshotError
        When one of the files can't be read, or is not the one that it was.
    """
    with contextlib.ExitStack() as files:
        try:
            file, seal, _ = _open(path, files)
            content = Content(seal, file, file)
            while "base" in seal.facts:
                content.deltas.insert(0, _Delta.read(content.whole, seal))
                ident, bound = seal.facts["base"]
                try:
                    content.whole, seal, page = _open(path.with_name(f"{ident}.h5"), files)
                except SnapshotError as error:
                    raise SnapshotError(f"it is built on {ident}: {error}") from error
                if page_digest(page) != bound:
                    raise SnapshotError(f"it is built on {ident}, which is another file now")
            yield content
        except OSError as error:
            raise SnapshotError(f"it can't be read: {error.strerror}") from error


def read_seal(path: Path) -> Seal:
    """Read the first page of a snapshot, and check that the file is as long as it says.

    Raises
    ------
    SnapshotError
        When it is not a snapshot, or not that one.
    """
    with contextlib.ExitStack() as files:
        return _open(path, files)[1]


def _open(path: Path, files: contextlib.ExitStack) -> tuple[int, Seal, bytes]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        files.callback(os.close, file)
        page = os.pread(file, SEAL, 0)
        size = os.fstat(file).st_size
    except OSError as error:
        raise SnapshotError(f"it can't be read: {error.strerror}") from error
    seal = Seal.read(page)
    if seal.facts["size"] != size:
        raise SnapshotError(f"it has {size:,} bytes instead of {seal.facts['size']:,}")
    if seal.facts["snapshot"] != path.stem:
        raise SnapshotError(f"it holds {seal.facts['snapshot']}, under another name")
    return file, seal, page


def pread(file: int, offset: int, parts: Parts) -> None:
    """Fill writable memory from a file.

    Raises
    ------
    SnapshotError
        When it ends too early.
    """
    left = [part for part in parts if len(part)]
    while left:
        done = os.preadv(file, left, offset)
        if not done:
            raise SnapshotError("it ends too early")
        offset += done
        while left and done >= len(left[0]):
            done -= len(left.pop(0))
        if done:
            left[0] = left[0][done:]
