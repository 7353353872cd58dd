"""The hidden order of sets of numbers.

A set iterates in the order of its hash table, and where an element lies there depends on the table's size and on what
was added and removed before: ``{3, 17}`` is 17, 3 in a new table and 3, 17 in one that was larger once. Pickle adds the
elements to a new set. For elements that hash alike in every process the old table can be had again, and with it the
order, what ``pop`` takes next, and when the table will grow.

Tried first and not enough: growing the new set with fillers that are removed again. It gave the order back for three
sets in four of a random history, since a slot depends on what stood in its way when it was taken. So the table's words
are put where they were, in memory that Python itself has allocated for a table of that size. The layout of a set in
memory is no promise of Python's: it is checked before it is believed, and where it does not hold nothing is written.
"""

from __future__ import annotations

import ctypes
import math
import sys
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ._memo import of_kind
from ._opcodes import has_set

_WORD = ctypes.sizeof(ctypes.c_ssize_t)
_SMALLEST = 8


class _Set(ctypes.Structure):
    _fields_ = (
        ("refcount", ctypes.c_ssize_t),
        ("kind", ctypes.c_void_p),
        ("fill", ctypes.c_ssize_t),
        ("used", ctypes.c_ssize_t),
        ("mask", ctypes.c_ssize_t),
        ("table", ctypes.c_void_p),
        ("hash", ctypes.c_ssize_t),
        ("finger", ctypes.c_ssize_t),
    )


@dataclass(frozen=True, slots=True)
class Table:
    """Where the elements of a set lie.

    Attributes
    ----------
    elements : tuple
        In the order of the set.
    size, finger : int
        Slots of the table, and where ``pop`` looks first.
    slots, removed : bytes
        Which slots hold the elements, and which held one that was removed; 64-bit words.
    """

    elements: tuple[Any, ...]
    size: int
    finger: int
    slots: bytes
    removed: bytes


def hash_alike(elements: Iterable[Any]) -> bool:
    """Whether elements hash alike in every process: numbers, and tuples and frozen sets of them."""
    return all(
        (isinstance(one, (bool, int, float, complex, Fraction, np.integer, np.floating)) and not _is_nan(one))
        or (type(one) in (tuple, frozenset) and hash_alike(one))
        for one in elements
    )


def _is_nan(number: Any) -> bool:
    return isinstance(number, (float, np.floating)) and math.isnan(number)


def keeps_order(one: Any) -> bool:
    """Whether a set comes back in the order that it has."""
    if len(one) < 2:  # noqa: PLR2004
        return True
    if not hash_alike(one) or not _layout_holds():
        return False
    return type(one) is set or table_of(one) == table_of(frozenset(tuple(one)))


def odd_sets(stream: bytes, memo: Callable[[], list[Any]]) -> list[tuple[set[Any], Table]]:
    """Find the sets in a pickled graph that pickle alone would give back with another table.

    Parameters
    ----------
    stream : bytes
        The pickled graph.
    memo : callable
        Returns every object that the pickler has met; only asked where there is a set.
    """
    if not has_set(stream) or not _layout_holds():
        return []
    return [(one, table_of(one)) for one in of_kind(memo(), set) if _is_odd(one)]


def _is_odd(one: set[Any]) -> bool:
    """Whether a set lies otherwise than a new one of its elements, and could be put back."""
    fresh: set[Any] = set()
    fresh.update(tuple(one))
    return _as_it_lies(one) != _as_it_lies(fresh) and hash_alike(one)


def _as_it_lies(one: set[Any]) -> tuple[bytes, bytes, bytes]:
    """Return the counts, the finger and the slots of a set; as sets hold the same objects, so do their slots."""
    body = ctypes.string_at(id(one), _BODY)
    counts, finger = body[_Set.fill.offset : _Set.table.offset], body[_Set.finger.offset : _SLOTS]
    if int.from_bytes(body[_Set.mask.offset : _Set.table.offset], sys.byteorder) == _SMALLEST - 1:
        return counts, finger, body[_SLOTS:]  # a small table lies in the set itself
    head = _Set.from_address(id(one))
    return counts, finger, ctypes.string_at(head.table, (head.mask + 1) * 2 * _WORD)


_SLOTS = ctypes.sizeof(_Set)
_BODY = _SLOTS + _SMALLEST * 2 * _WORD


def table_of(one: set[Any] | frozenset[Any]) -> Table:
    """Read where the elements of a set lie."""
    head = _Set.from_address(id(one))
    words = _words(head)
    empty, removed = 0, _removed_mark()
    keys = words[::2]
    slots = array("q", (slot for slot, key in enumerate(keys) if key not in (empty, removed)))
    gone = array("q", (slot for slot, key in enumerate(keys) if key == removed))
    return Table(tuple(one), head.mask + 1, head.finger, slots.tobytes(), gone.tobytes())


def put_tables(sets: Iterable[tuple[set[Any], Table]]) -> None:
    """Give sets the tables that they had; nothing is done where the layout of a set in memory is another."""
    if _layout_holds():
        for one, table in sets:
            _put_table(one, table)


def _put_table(one: set[Any], table: Table) -> None:
    _make_room(one, table.size)
    one.update(table.elements)
    head = _Set.from_address(id(one))
    words = _words(head)
    held = {key: (key, hashed) for key, hashed in zip(words[::2], words[1::2], strict=True) if key}
    slots, removed = array("q", table.slots), array("q", table.removed)
    placed = dict(zip(slots, (held[id(element)] for element in table.elements), strict=True))
    placed |= dict.fromkeys(removed, (_removed_mark(), -1))
    for slot in range(table.size):
        words[2 * slot], words[2 * slot + 1] = placed.get(slot, (0, 0))
    head.fill, head.finger = len(placed), table.finger


def _make_room(one: set[Any], size: int) -> None:
    """Empty a set and let Python give it a table of a size."""
    one.clear()
    if size > _SMALLEST:
        fillers = {float(number) + 0.5 for number in range(size // 2 - 1)}
        one |= fillers
        for filler in fillers:  # one by one: a difference would shrink the table again
            one.discard(filler)
        head = _Set.from_address(id(one))
        if head.mask + 1 != size or head.used:
            raise AssertionError(size, head.mask)
        ctypes.memset(head.table, 0, size * 2 * _WORD)
        head.fill = 0


def _words(head: _Set) -> Any:
    return (ctypes.c_ssize_t * (2 * (head.mask + 1))).from_address(head.table)


@cache
def _removed_mark() -> int:
    """Return the word that stands in a slot whose element was removed."""
    one = {1}
    one.discard(1)
    return int(_words(_Set.from_address(id(one)))[2])


@cache
def _layout_holds() -> bool:
    """Whether a set lies in memory as ``_Set`` says: looked at on sets whose tables are known."""
    few, more = {1, 2, 9}, set(range(40))
    more.discard(7)
    if _Set.from_address(id(few)).table != id(few) + _SLOTS:
        return False
    return all(
        (head.fill, head.used, head.mask, head.hash, head.finger) == (fill, used, mask, -1, 0) and _holds(one, head)
        for one, fill, used, mask in ((few, 3, 3, 7), (more, 40, 39, 127))
        for head in [_Set.from_address(id(one))]
    )


def _holds(one: set[Any], head: _Set) -> bool:
    words = _words(head)
    lying = {words[2 * slot]: words[2 * slot + 1] for slot in range(head.mask + 1) if words[2 * slot]}
    return all(lying.get(id(element)) == hash(element) for element in one)
