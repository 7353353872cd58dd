"""Iterators that know where they stand: Python's own over containers, and wrappers of them."""

from __future__ import annotations

import collections
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


class _Sequence:
    def __getitem__(self, place: int) -> int:
        raise IndexError(place)


LEAVES = frozenset(
    map(
        type,
        [
            iter([]),
            iter(()),
            iter(range(0)),
            iter(range(1 << 70, 1 << 71)),
            iter(""),
            iter("é"),
            iter(b""),
            iter(bytearray()),
            iter({}),
            iter({}.values()),
            iter({}.items()),
            reversed({}),
            reversed({}.values()),
            reversed({}.items()),
            iter(set()),
            iter(collections.deque()),
            reversed(collections.deque()),
            reversed([]),
            reversed(()),
            iter(_Sequence()),
            iter(np.arange(0)),
        ],
    )
)
_WRAPPERS: frozenset[type] = frozenset({enumerate, zip, map, filter})
_TEE: tuple[type, ...] = ()
if sys.version_info < (3, 14):  # later ones tell nobody where they stand
    _WRAPPERS |= {itertools.chain, itertools.islice, itertools.zip_longest, itertools.count, itertools.repeat}
    _WRAPPERS |= {itertools.product, itertools.permutations, itertools.combinations, itertools.compress}
    _WRAPPERS |= {itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.cycle}
    _TEE = (type(itertools.tee(())[0]), itertools._tee_dataobject)  # type: ignore[attr-defined]  # noqa: SLF001
    _WRAPPERS |= {*_TEE}
CONTAINERS = (list, tuple, range, str, bytes, bytearray, dict, set, frozenset, collections.deque, np.ndarray)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def is_container(value: Any) -> bool:
    """Whether making an iterator of a value draws nothing and changes nothing."""
    return isinstance(value, (*CONTAINERS, *_VIEWS))


def is_positional(iterator: Any, saveable: Callable[[Any], bool]) -> bool:
    """Whether an iterator can tell where it stands without being moved."""
    kind = type(iterator)
    if kind in LEAVES:
        return True
    if kind not in _WRAPPERS:
        return _is_own_class(iterator) and saveable(iterator)
    parts = wrapped(iterator)
    if kind is itertools.chain:
        parts += _chained(parts)
    for part in parts:
        if hasattr(part, "__next__") or isinstance(part, _TEE):
            if not is_positional(part, saveable):
                return False
        elif callable(part) and not saveable(part):
            return False
    return True


def _is_own_class(iterator: Any) -> bool:
    """Whether an iterator is an object of a Python class: its attributes are its position."""
    return (
        hasattr(type(iterator), "__dict__")
        and type(iterator).__module__ not in ("builtins", "itertools")
        and hasattr(iterator, "__dict__")
    )


def wrapped(wrapper: Any) -> list[Any]:
    """Return what a wrapping iterator was made of."""
    _, arguments, *state = wrapper.__reduce__()
    inner = state[0] if state and isinstance(state[0], tuple) else ()
    return [*arguments, *inner]


def _chained(parts: list[Any]) -> list[Any]:
    """Return the iterators that a chain has not come to; an iterable that is no container stands for its iterator."""
    source: Any = next((part for part in parts if hasattr(part, "__next__")), None)
    if type(source) not in (type(iter(())), type(iter([]))):
        return []
    sequence = source.__reduce__()[1][0]
    return [one if hasattr(one, "__next__") or isinstance(one, CONTAINERS) else _NOWHERE for one in sequence]


_NOWHERE = iter(int, 0)
"""An iterator that can't tell where it stands."""
