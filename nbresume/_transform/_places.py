"""Where a statement stands in the syntax tree of its unit, and which statements a boundary has behind it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Sequence
from typing import Any

Place = tuple[int | str, ...]
"""Index in the unit's body, then a block's name and an index in it for each level: ``(3, "body", 0)``."""

_BLOCKS = ("body", "orelse", "finalbody")
_LOOPS = (ast.For, ast.While)


def places(body: Sequence[ast.stmt], above: Place = ()) -> Iterator[tuple[ast.stmt, Place]]:
    """Yield each statement of a unit with its place."""
    for index, statement in enumerate(body):
        place = (*above, index)
        yield statement, place
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for block in _BLOCKS:
                yield from places(getattr(statement, block, []), (*place, block))


def reached(body: Sequence[ast.stmt], place: Sequence[int | str], ran: Collection[Place]) -> list[ast.stmt] | None:
    """Return the statements that have run, or lie on the way, at a boundary; what comes later is cut off.

    A loop counts whole once an iteration of it is finished. ``else``, ``except`` and ``finally`` always count: whether
    they have run is not known.

    Parameters
    ----------
    body : sequence of ast.stmt
        The unit.
    place : sequence
        Of the innermost statement that the boundary lies in.
    ran : collection of Place
        The loops on the way that have finished an iteration.

    Returns
    -------
    list of ast.stmt or None
        None where there is no such place.
    """
    return _cut(body, tuple(place), (), ran)


def statement_at(body: Sequence[ast.stmt], place: Sequence[int | str]) -> Any:
    """Return the statement at a place of a unit."""
    node: Any = body[int(place[0])]
    for block, index in zip(place[1::2], place[2::2], strict=True):
        node = getattr(node, str(block))[int(index)]
    return node


def _cut(body: Sequence[ast.stmt], rest: Place, above: Place, ran: Collection[Place]) -> list[ast.stmt] | None:
    index, *deeper = rest
    if not isinstance(index, int) or index >= len(body):
        return None
    here = (*above, index)
    statement: Any = body[index]
    before = list(body[:index])
    if here in ran or not (deeper or isinstance(statement, _LOOPS)):
        return [*before, statement]
    last = copy.copy(statement)
    if not deeper:
        last.body = []  # before its first item
        return [*before, last]
    block = str(deeper[0])
    inner = _cut(getattr(statement, block, []), tuple(deeper[1:]), (*here, block), ran)
    setattr(last, block, inner)
    return None if inner is None else [*before, last]
