"""Where in a variable the thing sits that can't be saved."""

from __future__ import annotations

import inspect
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from .._identity import is_filled, slots_of
from ..errors import UnsaveableError
from ._functions import Definitions
from ._graph import capture
from ._torch import GRAPH

_DEPTH = 12


def culprit(path: str, value: Any, error: BaseException, *, definitions: Definitions) -> UnsaveableError:
    """Find the innermost part of a value that can't be saved.

    Parameters
    ----------
    path : str
        Name of the variable.
    value : object
        Its value.
    error : BaseException
        What the pickler said of the whole.
    """
    seen: set[int] = set()
    for _ in range(_DEPTH):
        seen.add(id(value))
        for step, part in parts_of(value):
            found = None if id(part) in seen else unsaveable(part, definitions=definitions)
            if found is not None:
                path, value, error = path + step, part, found
                break
        else:
            break
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    why = str(error) or type(error).__name__
    if why == GRAPH:
        way = f"Carry its value instead: {path}.item(), or {path}.detach()"
    else:
        way = (
            "Make it in the cell, before its loops, and leave it out of --vars; or keep it out of what the loop carries"
        )
    return UnsaveableError(path, name, why, way)


def reachable(value: Any, limit: int = 10_000) -> dict[int, Any]:
    """Return the mutable objects that a value holds, by ``id``; what belongs to the process is no part of it."""
    found: dict[int, Any] = {}
    waiting = [(value, 0)]
    while waiting and len(found) < limit:
        one, depth = waiting.pop()
        if id(one) in found or isinstance(one, _IMMUTABLE) or belongs_to_process(one):
            continue
        found[id(one)] = one
        if depth < _DEEP:
            waiting += [(part, depth + 1) for _, part in parts_of(one, named=False)]
    return found


_DEEP = 5
_PROCESS = frozenset({"nbresume", "IPython", "ipykernel", "threading", "_thread", "logging", "_io", "io"})


def belongs_to_process(one: Any) -> bool:
    """Whether an object is part of the kernel rather than of what the user computes."""
    if isinstance(one, dict) and "__builtins__" in one:
        return True
    owner = getattr(one, "__self__", one)
    return type(owner).__module__.partition(".")[0] in _PROCESS


_IMMUTABLE = (type(None), bool, int, float, complex, str, bytes, type, types.ModuleType, types.BuiltinFunctionType)


def unsaveable(value: Any, *, definitions: Definitions) -> Exception | None:
    """Return why a value can't be saved, or None."""
    try:
        capture(value, definitions=definitions, inputs={}, places={})
    except Exception as error:  # noqa: BLE001  # whatever a foreign reduce raises is the reason
        return error
    return None


def parts_of(value: Any, *, named: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value with how they are reached; unnamed, no key is asked for its text."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]" if named else "", part) for key, part in list(value.items()))
    elif isinstance(value, (list, tuple, deque)):
        yield from ((f"[{place}]", part) for place, part in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from (("{…}", part) for part in value)
    elif isinstance(value, types.FunctionType):
        names = value.__code__.co_freevars
        cells = zip(names, value.__closure__ or (), strict=True)
        yield from ((f".<{name}>", cell.cell_contents) for name, cell in cells if is_filled(cell))
    elif isinstance(value, memoryview):
        yield ".obj", value.obj
    elif isinstance(value, types.GeneratorType):
        yield from ((f".<{name}>", part) for name, part in inspect.getgeneratorlocals(value).items())
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    if hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType, types.FunctionType)):
        yield from ((f".{name}", part) for name, part in list(vars(value).items()))
    slots = [slot for kind in type(value).__mro__ for slot in slots_of(kind)]
    yield from ((f".{slot}", getattr(value, slot)) for slot in slots if hasattr(value, slot))
