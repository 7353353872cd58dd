"""How values hang together: what a fingerprint of each leaves out, and a resume has to keep.

Which ways lead to one object, in which order dicts give their items, and which arrays look at the same bytes.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._explain import parts_of
from ._memory import bounds

_IMMUTABLE = (
    type(None), bool, int, float, complex, str, bytes, range, slice, type, np.generic, types.ModuleType,
    types.BuiltinFunctionType, types.CodeType,
)  # fmt: skip
_CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque, types.FunctionType, types.MethodType)
"""Beside these, an object that says itself how it is made again keeps what it likes: caches are no part of it."""
_STEP = 40


def layout(names: Mapping[str, Any]) -> list[str]:
    """Describe how the values of some names hang together; equal in another process where they hang together alike.

    Parameters
    ----------
    names : mapping of str to object
        Walked in its order.
    """
    lines: list[str] = []
    first: dict[int, tuple[str, Any]] = {}
    waiting = list(reversed(list(names.items())))
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _IMMUTABLE):
            continue
        if id(value) in first:
            lines.append(f"{path} is {first[id(value)][0]}")
            continue
        if not isinstance(value, (tuple, frozenset)):  # a constant of the code is another object in each process
            first[id(value)] = path, value
        lines += _order(path, value)
        kind: Any = type(value)
        if isinstance(value, _CONTAINERS) or kind.__reduce__ is object.__reduce__:
            waiting += reversed([(path + _short(step), part) for step, part in parts_of(value)])
    return lines + _memory([(path, value) for path, value in first.values() if isinstance(value, np.ndarray)])


def _short(step: str) -> str:
    return step if len(step) < _STEP else "[…]"


def _order(path: str, value: Any) -> list[str]:
    if isinstance(value, dict) and len(value) > 1:
        return [f"{path} goes {', '.join(repr(one) for one in value if isinstance(one, (int, str)))}"]
    return []


def _memory(arrays: list[tuple[str, np.ndarray[Any, Any]]]) -> list[str]:
    found = []
    for place, (path, array) in enumerate(arrays):
        for other, earlier in arrays[:place]:
            if array.size and earlier.size and np.may_share_memory(array, earlier):
                found.append(f"{path} looks at {other} from byte {bounds(array)[0] - bounds(earlier)[0]}")
                break
    return found
