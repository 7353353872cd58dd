"""Which objects a C pickler has met.

Its memo knows, and gives itself away only as a dict of tuples: for a graph of many small objects that takes longer than
pickling them did. So the table is read where it lies. Its layout is no promise of Python's: it is checked before it is
believed, and where it does not hold the memo is asked the slow way.
"""

from __future__ import annotations

import ctypes
import io
import operator
import pickle
from collections.abc import Iterable
from functools import cache
from itertools import compress, repeat
from typing import Any

import numpy as np

_HEADER = object.__basicsize__


class _Table(ctypes.Structure):
    _fields_ = (
        ("mask", ctypes.c_size_t),
        ("used", ctypes.c_size_t),
        ("allocated", ctypes.c_size_t),
        ("entries", ctypes.c_void_p),
    )


def memoized(pickler: pickle.Pickler) -> list[Any]:
    """Return the objects that a pickler has pickled and may meet again, in no order."""
    return _read(pickler) if _layout_holds() else [obj for _, obj in pickler.memo.copy().values()]


def has_any(pickler: pickle.Pickler, objects: Iterable[Any]) -> bool:
    """Whether a pickler has pickled one of some objects, all of which live, and may meet it again."""
    wanted = set(map(id, objects))
    if not _layout_holds():
        return not wanted.isdisjoint(pickler.memo.copy())
    return bool(wanted) and bool(np.isin(np.fromiter(wanted, np.uintp), _keys(pickler)).any())


def of_kind(objects: list[Any], kind: type) -> list[Any]:
    """Return the objects that are of exactly one type."""
    return list(compress(objects, map(operator.is_, map(type, objects), repeat(kind))))


def _table(pickler: pickle.Pickler) -> _Table:
    return _Table.from_address(ctypes.c_void_p.from_address(id(pickler) + _HEADER).value or 0)


def _read(pickler: pickle.Pickler) -> list[Any]:
    keys = _keys(pickler)
    return list((ctypes.py_object * len(keys)).from_buffer(keys)) if len(keys) else []


def _keys(pickler: pickle.Pickler) -> Any:
    table = _table(pickler)
    if not table.used:
        return np.empty(0, np.uintp)
    words = (ctypes.c_size_t * (2 * table.allocated)).from_address(table.entries)
    keys = np.ctypeslib.as_array(words)[::2]
    return keys[keys != 0]  # a copy


@cache
def _layout_holds() -> bool:
    """Whether a pickler's memo lies in memory as ``_Table`` says: looked at on one whose content is known."""
    one, two = [1], [2]
    pickler = pickle.Pickler(io.BytesIO(), 5)
    pickler.dump((one, two, one))
    known = {id(obj) for _, obj in pickler.memo.copy().values()}
    table = _table(pickler)
    if (table.used, table.allocated) != (len(known), table.mask + 1) or table.mask > _SANE or not table.entries:
        return False
    words = (ctypes.c_size_t * (2 * table.allocated)).from_address(table.entries)
    return {word for word in words[::2] if word} == known


_SANE = 1 << 10
