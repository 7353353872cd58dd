"""The bytes of a file as they lie in memory, and how only what changed of them is written.

The body of a file is cut into slices of 1 MB. A slice whose digest is that of the file underneath is not written. One
of which only a little changed is compared page by page: eight of its pages are looked at, and when most of them are
the same, the digests of all its pages are taken, kept, and compared the next time. Nothing of the old bytes has to be
kept in memory or read back for that, only their digests: 16 bytes for 1 MB, and 8 for a page where they help.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter, ne

import numpy as np
import xxhash
from numpy.typing import NDArray

from .. import _fs
from ._seal import PAGE

SLICE = 1 << 20
_ZEROS = memoryview(bytes(SLICE))
_PROBES = 8
_MANY = 6
"""So many probes that differ mean that comparing page by page is not worth its time."""
_SEEK = 8 * PAGE
"""Bytes that could be written in the time that beginning at another place takes."""
_LEAST = 16 * PAGE
"""Slices below are written whole."""
_PAGES = [slice(at, at + PAGE) for at in range(0, SLICE, PAGE)]

Parts = list[memoryview]
Extent = tuple[int, memoryview]
"""Offset in a file, and bytes."""
Runs = list[tuple[int, int]]
"""Where in a slice bytes begin that have to be written, and where they end."""


@dataclass(slots=True, eq=False)
class Slice:
    """What is known of one slice of a file.

    Attributes
    ----------
    size : int
        Bytes; all but the last slice of a file have 1 MB.
    digest : bytes
        XXH3, 128 bits.
    probes : tuple of int
        Digests of some of its pages, evenly spread.
    pages : ndarray of uint64, optional
        Digests of all its pages, where they were taken.
    """

    size: int
    digest: bytes
    probes: tuple[int, ...] = ()
    pages: NDArray[np.uint64] | None = None

    def holds_the_same(self, other: Slice) -> bool:
        """Whether another has the same bytes."""
        return self.size == other.size and self.digest == other.digest


@dataclass(frozen=True, slots=True)
class Known:
    """What a file is known to hold: its slices, from an offset on."""

    body: int = 0
    slices: tuple[Slice, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.body + sum(one.size for one in self.slices)

    def get(self, body: int, index: int) -> Slice | None:
        """Return a slice; None where nothing is known."""
        return self.slices[index] if body == self.body and index < len(self.slices) else None


def cut(extents: Iterable[Extent], body: int, size: int) -> Iterator[Parts]:
    """Cut bytes into slices; what lies between them is zeros.

    Parameters
    ----------
    extents : iterable of (int, memoryview)
        Offsets in the file and bytes that do not overlap.
    body, size : int
        Where the slices begin and end.

    Yields
    ------
    list of memoryview
        The bytes of one slice, in parts.
    """
    parts: Parts = []
    room = SLICE
    for data in without_gaps(sorted(extents, key=itemgetter(0)), body, size):
        at = 0
        while at < len(data):
            piece = data[at : at + room]
            parts.append(piece)
            at += len(piece)
            room -= len(piece)
            if not room:
                yield parts
                parts, room = [], SLICE
    if parts:
        yield parts


def without_gaps(extents: Iterable[Extent], at: int, end: int) -> Iterator[memoryview]:
    """Yield bytes in a row; what lies between them is zeros.

    Parameters
    ----------
    extents : iterable of (int, memoryview)
        Offsets and bytes, in their order.
    at, end : int
        Where the row begins and ends.
    """
    for offset, data in itertools.chain(extents, [(end, memoryview(b""))]):
        if offset < at:
            raise ValueError(f"what lies at {offset} overlaps what lies before it")
        while at < offset:
            yield _ZEROS[: min(offset - at, SLICE)]
            at += min(offset - at, SLICE)
        yield data
        at += len(data)


class Image:
    """What a file is to hold from some offset on; each slice is looked at once, and no earlier than asked for.

    Parameters
    ----------
    slices : sequence of list of memoryview
        The slices.
    body : int
        Where they begin.
    newest : Known
        What the newest snapshot holds: what is known of its pages need not be found out again.
    digests : iterator of bytes
        The digests of the slices, in their order.
    """

    def __init__(self, slices: Sequence[Parts], body: int, newest: Known, digests: Iterator[bytes]) -> None:
        self.slices, self.body, self.newest = slices, body, newest
        self._digests = digests
        self._looked: list[Slice] = []

    def look(self, index: int) -> Slice:
        """Return what there is to know of a slice."""
        while index >= len(self._looked):
            number = len(self._looked)
            now = Slice(sum(map(len, self.slices[number])), next(self._digests))
            last = self.newest.get(self.body, number)
            self._looked.append(last if last is not None and last.holds_the_same(now) else now)
        return self._looked[index]

    def known(self) -> Known:
        """Return what a file holds that has all slices."""
        return Known(self.body, tuple(self.look(index) for index in range(len(self.slices))))

    def write(self, draft: _fs.Draft, under: Known) -> Known:
        """Write what is not there yet.

        Parameters
        ----------
        draft : Draft
            The file; it has its final length.
        under : Known
            What the file holds; of a new file that is zeros.

        Returns
        -------
        Known
            What the file holds now.
        """
        for index, parts in enumerate(self.slices):
            now, at = self.look(index), self.body + index * SLICE
            for low, high in _changed(parts, now, under.get(self.body, index), seek=_SEEK, new=not under.slices):
                draft.put(at + low, part_of(parts, low, high))
        return self.known()

    def changes(self, room: int) -> dict[int, Runs] | None:
        """Find what differs from the newest snapshot.

        Parameters
        ----------
        room : int
            Bytes that may differ.

        Returns
        -------
        dict of int to list of (int, int), or None
            Numbers of slices, and where in them bytes differ; None where more than ``room`` does.
        """
        runs: dict[int, Runs] = {}
        untold = 0
        for index, parts in enumerate(self.slices):
            old = self.newest.get(self.body, index)
            now = self.look(index)
            changed = _changed(parts, now, old)
            if changed:
                runs[index] = changed
            if now.pages is not None and old is not None and old.pages is None:
                untold += now.size  # not all of it has changed, but which pages shows the next time: look at all slices
            else:
                room -= sum(high - low for low, high in changed)
            if room < 0:
                return None
        return runs if untold <= room else None


def digest(parts: Parts) -> bytes:
    """Digest bytes that are given in parts."""
    if _is_zeros(parts):
        return _digest_of_zeros(sum(map(len, parts)))
    if len(parts) == 1:
        return xxhash.xxh3_128_digest(parts[0])
    hasher = xxhash.xxh3_128()
    for part in parts:
        hasher.update(part)
    return hasher.digest()


def _is_zeros(parts: Parts) -> bool:
    return all(part.obj is _ZEROS.obj for part in parts)


@functools.lru_cache(SLICE // PAGE)
def _digest_of_zeros(size: int) -> bytes:
    return xxhash.xxh3_128_digest(_ZEROS[:size])


def _changed(parts: Parts, now: Slice, old: Slice | None, *, seek: int = 0, new: bool = False) -> Runs:
    """Tell which bytes of a slice have to be written, as runs from low to high."""
    if new and _is_zeros(parts):
        return []
    if old is not None and old.holds_the_same(now):
        # What either of them knows of its pages is true of both.
        now.probes, now.pages = now.probes or old.probes, old.pages if now.pages is None else now.pages
        return []
    whole = [(0, now.size)]
    if now.size < _LEAST:
        return whole
    if not now.probes:
        now.probes = tuple(_page(parts, place, now.size) for place in _places(now.size))
    if old is None or old.size != now.size or not old.probes or sum(map(ne, old.probes, now.probes)) >= _MANY:
        return whole
    if now.pages is None:
        data = parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
        digests = map(xxhash.xxh3_64_intdigest, map(data.__getitem__, _PAGES))
        now.pages = np.fromiter(digests, "u8", -(-now.size // PAGE))
    runs = _runs(old.pages != now.pages, now.size) if old.pages is not None else whole
    return runs if sum(high - low + seek for low, high in runs) < now.size else whole


def _places(size: int) -> range:
    """Choose pages to look at: spread over the slice, and not all a power of two apart."""
    step = size // _PROBES // PAGE * PAGE + (PAGE if size // _PROBES // PAGE % 2 == 0 else 0)
    return range(0, min(size, step * _PROBES), step)


def _page(parts: Parts, at: int, size: int) -> int:
    pieces = part_of(parts, at, min(at + PAGE, size))
    return xxhash.xxh3_64_intdigest(pieces[0] if len(pieces) == 1 else b"".join(pieces))


def part_of(parts: Parts, low: int, high: int) -> Parts:
    """Return the bytes of a slice from ``low`` to ``high``, in parts."""
    if len(parts) == 1:
        return [parts[0][low:high]]
    found, at = [], 0
    for part in parts:
        if at < high and low < at + len(part):
            found.append(part[max(low - at, 0) : high - at])
        at += len(part)
    return found


def _runs(differs: NDArray[np.bool_], size: int) -> Runs:
    """Join pages that differ and lie side by side."""
    runs: Runs = []
    for page in np.flatnonzero(differs).tolist():
        low, high = page * PAGE, min(page * PAGE + PAGE, size)
        if runs and runs[-1][1] == low:
            runs[-1] = (runs[-1][0], high)
        else:
            runs.append((low, high))
    return runs
