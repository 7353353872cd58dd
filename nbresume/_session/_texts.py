"""The code that a cell reaches and the texts that it reads: where the names of its files stand."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .._transform import CellPlan
from ._places import Places
from ._reach import Reached
from ._scope import Scope
from ._sources import source_of

_WIDE = 100
_DEEP = 3
"""Levels of containers that are looked into: a value, what it holds, and what that holds."""
_PLAIN = frozenset({int, float, bool, complex, bytes, type(None)})


def sources_of(plan: CellPlan, found: Reached, places: Places) -> Iterator[str]:
    """Yield the source of a cell, and of the functions, classes and local modules that it reaches."""
    yield plan.source
    for name, part in found.code.items():
        kind, _, rest = name.partition(" ")
        if kind == "module":
            yield _module_source(rest)
        elif kind == "class":
            value = places.namespace.get(rest)
            yield _class_source(value) if isinstance(value, type) else ""
        elif name.endswith("()"):
            yield part.text


def _module_source(name: str) -> str:
    try:
        return Path(sys.modules[name].__file__ or "").read_text(encoding="utf-8")
    except (KeyError, OSError, ValueError, AttributeError):
        return ""


def _class_source(value: Any) -> str:
    """Return the methods of a class: of a class of the notebook itself, Python finds no source."""
    members = [getattr(member, "__func__", getattr(member, "fget", member)) for member in vars(value).values()]
    return "\n".join(source_of(member) for member in members if isinstance(member, types.FunctionType))


def texts_read(scope: Scope) -> Iterator[str]:
    """Yield the texts and paths among the values that a cell reads or has bound."""
    places = scope.places
    level = [
        places[name]
        for name in (*scope.reached.inputs, *scope.bindable, *scope.plan.options.declared)
        if name in places
    ]
    for _ in range(_DEEP):
        inner: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str:
                yield value
            elif kind in _PLAIN:
                continue
            elif isinstance(value, str) or hasattr(kind, "__fspath__"):
                text = os.fspath(value)
                if isinstance(text, str):
                    yield text
            else:
                inner += _inner(value)
        level = inner


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values() if len(value) < _WIDE else ()
    if isinstance(value, (list, tuple, set, frozenset)):
        return value if len(value) < _WIDE else ()
    found = getattr(value, "__dict__", None) if type(value).__module__ == "__main__" else None
    return list(found.values()) if isinstance(found, dict) else ()
