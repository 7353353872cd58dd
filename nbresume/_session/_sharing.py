"""Whether values have a mutable object in common, memory included."""

from __future__ import annotations

import enum
import functools
import gc
import re
import types
import weakref
from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from .._capture import belongs_to_process, share_memory_at

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis)})
_STATELESS = (np.dtype, np.generic, enum.Enum, type, types.FunctionType, types.ModuleType)
_NEVER = (np.dtype, np.generic, enum.Enum, type, types.ModuleType, types.CodeType)
_PLAIN = (list, dict, set, bytearray)

Held = dict[int, Any]
"""The mutable objects that a value holds, by ``id``."""


def changeable(objects: Iterable[Any]) -> list[Any]:
    """Return those objects that code can change."""
    return [one for one in objects if not isinstance(one, _STATELESS) and not _is_dtype(one)]


class Beside:
    """Names of a notebook that a cell does not know, and that hold an object which one of its names holds.

    Saved without them, the cell's own would come back as other objects. They join what is saved when that joins.

    Parameters
    ----------
    namespace, cell : mapping of str to dict
        As for ``beside``.
    skip : set of str
        Names that the cell binds by itself.
    """

    def __init__(self, namespace: Mapping[str, Held], cell: Mapping[str, Held], skip: Container[str]) -> None:
        self._waiting = {name: places for name, places in beside(namespace, cell).items() if name not in skip}

    def joining(self, saved: Mapping[str, Any]) -> list[str]:
        """Return, once each, the names that hold an object of what is saved now."""
        found = [name for name, places in self._waiting.items() if not places.isdisjoint(saved)]
        for name in found:
            del self._waiting[name]
        return found


def beside(namespace: Mapping[str, Held], cell: Mapping[str, Held]) -> dict[str, set[str]]:
    """Find the names of a notebook that a cell does not know, and that hold an object which one of its names holds.

    Parameters
    ----------
    namespace : mapping of str to dict
        What names of the notebook hold.
    cell : mapping of str to dict
        What the places hold that the cell can read.

    Returns
    -------
    dict of str to set of str
        Such a name, and the places it shares something with.
    """
    owners: dict[int, set[str]] = {}
    waiting = {name: objects for name, objects in namespace.items() if name not in cell and not is_hidden(name)}
    found: dict[str, set[str]] = {}
    arriving = dict(cell)
    while arriving:
        for place, objects in arriving.items():
            for key in objects:
                owners.setdefault(key, set()).add(place)
        # What joins may bring others along, which share nothing with the cell itself.
        arriving = {name: objects for name, objects in waiting.items() if not owners.keys().isdisjoint(objects)}
        for name, objects in arriving.items():
            del waiting[name]
            found[name] = set().union(*(owners[key] for key in objects if key in owners))
    return found


def held(value: Any) -> Held:
    """Return the mutable objects that a value holds at any depth, by ``id``, and arrays by where their memory lies."""
    found: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if type(one) in _ATOMS or id(one) in found or isinstance(one, _NEVER) or belongs_to_process(one):
            continue
        found[id(one)] = one
        memory = share_memory_at(one)
        if memory:
            found[memory] = one
        waiting += inside(one)
    # Constants are shared by whoever writes them: what a tuple holds counts, and not the tuple.
    return {key: one for key, one in found.items() if not isinstance(one, (tuple, frozenset, *_STATELESS))}


def inside(one: Any) -> Iterable[Any]:
    """Return what an object holds, a step deep; the globals of a function are nobody's own."""
    if type(one) in (list, tuple, set, frozenset) and set(map(type, one)) <= _ATOMS:
        return ()
    if isinstance(one, weakref.ref):  # nor does this: what it refers to is not its own
        return [one()]
    if isinstance(one, types.FunctionType):
        return [*(one.__closure__ or ()), *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values(), vars(one)]
    if isinstance(one, np.ndarray) and one.dtype.hasobject:  # it doesn't tell Python's collector
        return [*one.ravel().tolist()]
    return gc.get_referents(one)


def holds_containers(value: Any) -> bool:
    """Whether a value holds a plain container that code could get at, put elsewhere and change there."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if type(one) in _PLAIN:
            return True
        if id(one) in seen:
            continue
        seen.add(id(one))
        if type(one) is tuple or isinstance(one, (types.FunctionType, types.CellType, types.MethodType)):
            waiting += inside(one)
        elif type(one).__module__ == "__main__" and hasattr(one, "__dict__"):
            waiting += vars(one).values()
    return False


@functools.cache
def is_hidden(name: str) -> bool:
    """Whether a name of the notebook is the shell's own."""
    return _OF_SHELL.fullmatch(name) is not None


_OF_SHELL = re.compile(r"_+|_i+|_i?\d+|_[iod]h|In|Out|exit|quit|open|get_ipython|__\w+__|__nbresume\w*")


def _is_dtype(value: Any) -> bool:
    return type(value).__name__.endswith(("Dtype", "DType", "dtype", "device"))
