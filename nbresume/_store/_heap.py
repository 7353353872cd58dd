"""Where things lie in the heap of a snapshot, such that what stays in memory stays in its place in the file.

What has not changed is only recognised where it lies: an array that wandered about in the file would be written anew
each time. The heap is therefore laid out once and keeps its places, from one snapshot of a process to the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ._seal import PAGE

_SPARE = 4
"""What may grow gets a quarter more room than it needs."""
_DOUBLED = 1 << 26
"""Bytes up to which a heap that has grown is made twice as large. What is not used takes no room on the disk."""


class Heap:
    """Gives out places in a run of bytes that grows when it has to.

    Attributes
    ----------
    capacity : int
        Bytes of the heap, a multiple of a page.
    """

    def __init__(self) -> None:
        self.capacity = 0
        self._places: dict[Hashable, tuple[int, int]] = {}

    def place(self, sizes: Mapping[Hashable, int], growing: frozenset[Hashable] = frozenset()) -> dict[Hashable, int]:
        """Find a place for each thing; one that was there before and still fits keeps its own.

        Parameters
        ----------
        sizes : mapping of hashable to int
            What is to be stored, and its bytes. What is not among them loses its place.
        growing : frozenset
            What will have another size next time.

        Returns
        -------
        dict of hashable to int
            Offsets, each at the start of a page.
        """
        kept = {key: self._places[key] for key, size in sizes.items() if self._fits(key, size)}
        holes = _holes(sorted(kept.values()), self.capacity)
        for key, size in sizes.items():
            if key not in kept:
                kept[key] = _take(holes, _room(size, spare=key in growing))
        self._places = kept
        end = max((offset + room for offset, room in kept.values()), default=0)
        if end > self.capacity or end < self.capacity // 2:
            # Some more than is needed: each other capacity is another schema, and all that lies behind moves.
            more = max(end // _SPARE, min(end, _DOUBLED)) if self.capacity else end // _SPARE**2
            self.capacity = _pages(end + more)
        self.capacity = max(self.capacity, PAGE)
        used = sum(room for _, room in kept.values())
        if used < end // 2:
            self._places, self.capacity = {}, 0
            return self.place(sizes, growing)
        return {key: kept[key][0] for key in sizes}

    def _fits(self, key: Hashable, size: int) -> bool:
        room = self._places[key][1] if key in self._places else -1
        return size <= room <= _SPARE * _room(size, spare=True)


def _room(size: int, *, spare: bool) -> int:
    return _pages(size + (size // _SPARE if spare else 0))


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _holes(places: list[tuple[int, int]], capacity: int) -> list[list[int]]:
    """List free runs as [start, end]; the last one has no end that matters."""
    holes, at = [], 0
    for offset, room in places:
        if offset > at:
            holes.append([at, offset])
        at = offset + room
    holes.append([at, max(at, capacity) + (1 << 62)])
    return holes


def _take(holes: list[list[int]], room: int) -> tuple[int, int]:
    """Take room from the first hole that has it."""
    for hole in holes:
        start, end = hole
        if end - start >= room:
            hole[0] += room
            return start, room
    raise AssertionError("the last hole has no end")
