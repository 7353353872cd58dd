"""What the frames of a cursor add to the graph: positions of iterators, and variables of followed functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from .._capture import Definitions, culprit, unsaveable
from .._transform import UnitPlan
from ..errors import RefusedError
from ._frames import Frame, locals_of
from ._guard import Guard
from ._outlook import outlook
from ._reach import IMMUTABLE


def frame_parts(
    stack: list[Frame], units: Mapping[str, UnitPlan], guards: Mapping[int, Guard], definitions: Definitions
) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    """Return for each frame what it adds to the graph, and the names of its function that can't be saved.

    Raises
    ------
    UnsaveableError
        When a variable of a followed function is needed and can neither be saved nor made again.
    """
    parts: list[dict[str, Any]] = []
    unsaved: list[tuple[str, ...]] = []
    for place, frame in enumerate(stack):
        part: dict[str, Any] = {}
        names: tuple[str, ...] = ()
        if frame.iteration is not None and not frame.done:
            part["items"] = frame.iteration.in_graph()
            if (guard := guards.get(id(frame.iteration))) is not None:
                part["guard"] = guard.part()
        if frame.ambient:
            part["ambient"] = frame.ambient
        if frame.kind == "call" and frame.pyframe is not None:
            part["locals"], names = _locals(frame, stack[place + 1 :], units, definitions)
        parts.append(part)
        unsaved.append(names)
    return parts, unsaved


def _locals(
    frame: Frame, inner: list[Frame], units: Mapping[str, UnitPlan], definitions: Definitions
) -> tuple[dict[str, Any], tuple[str, ...]]:
    assert frame.pyframe is not None  # noqa: S101  # by the caller
    function = frame.label
    needed, remade = outlook(inner, units[function], units, function)
    given = {key: value for one in inner if one.unit == function for key, value in one.state.items()}
    values, unsaved = {**locals_of(frame.pyframe), **given}, []
    for name, value in list(values.items()):
        if isinstance(value, IMMUTABLE):
            continue
        error = unsaveable(value, definitions=definitions)
        if error is None:
            continue
        unit = units[function]
        moves = hasattr(value, "__next__") and not hasattr(value, "seek")
        moved = moves and name in unit.read_elsewhere | unit.read_inside
        if name in given or (name in needed and name not in remade) or moved:
            raise culprit(f"{function}().{name}", value, error, definitions=definitions)
        del values[name]
        unsaved.append(name)
    return values, tuple(unsaved)


def blame_frames(
    parts: list[dict[str, Any]], stack: list[Frame], error: Exception, definitions: Definitions
) -> NoReturn:
    """Say which frame holds what can't be saved; there is one, since no variable of the cell does."""
    for part, frame in zip(parts, stack, strict=True):
        for what, value in part.items():
            inner = unsaveable(value, definitions=definitions)
            if inner is not None:
                name = f"the items of 'for {frame.label}'" if what == "items" else f"{frame.label}()"
                raise culprit(name, value, inner, definitions=definitions)
    if isinstance(error, RefusedError):
        raise error
    raise RefusedError(f"the state can't be saved: {error}", "Declare less, or report this as a bug", 1) from error
