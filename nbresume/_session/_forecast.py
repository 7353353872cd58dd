"""What becomes of each name that a cell touches, as far as it can be told before the cell runs."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .._capture import culprit, size_of, unsaveable
from .._identity import Identity, short_text
from ..errors import RefusedError
from ._reach import is_clock
from ._scope import Scope

Fate = Literal["saved", "input", "made again", "refused", "missing"]

_CODE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What becomes of one name.

    Attributes
    ----------
    name : str
    fate : Fate
        Saved in each snapshot; an input, known by its fingerprint; made again by its own statement; refused; missing.
    size : int or None
        Bytes it takes in a snapshot; None while it is not bound.
    why : str
        What it is, and what it is that for.
    """

    name: str
    fate: Fate
    size: int | None
    why: str


def forecast(scope: Scope, identity: Identity) -> list[Forecast]:
    """Look at every name that the cell saves, reads or makes.

    Parameters
    ----------
    scope : Scope
        Whose preflight has been done, as far as it went.
    identity : Identity
        Of the cell now.
    """
    return [*_declared(scope), *_bound(scope), *_joined(scope), *_inputs(scope, identity), *_opaque(scope)]


def _declared(scope: Scope) -> Iterator[Forecast]:
    for name in scope.plan.options.declared:
        if name not in scope.places and name not in scope.bindable:
            yield Forecast(name, "missing", None, "neither there nor bound by the cell: run the cell that makes it")
        else:
            yield _saved(scope, name, "declared")


def _bound(scope: Scope) -> Iterator[Forecast]:
    rebuild = scope.plan.options.rebuild
    yield from (Forecast(name, "made again", None, "--rebuild") for name in rebuild)
    for name in sorted(scope.bindable - {*rebuild, *scope.plan.options.declared}):
        if name not in scope.places or not isinstance(scope.places[name], _CODE):
            yield _saved(scope, name, "bound by the cell")


def _joined(scope: Scope) -> Iterator[Forecast]:
    yield from (_saved(scope, name, why or "a container from outside") for name, why in sorted(scope.joined.items()))


def _saved(scope: Scope, name: str, why: str) -> Forecast:
    if name not in scope.places:
        return Forecast(name, "saved", None, why)
    value = scope.places[name]
    error = unsaveable(value, definitions=scope.definitions)
    if error is None:
        return Forecast(name, "saved", size_of(value, definitions=scope.definitions), f"{why}; {short_text(value)}")
    if name in scope.plan.options.declared:
        return Forecast(name, "refused", None, str(culprit(name, value, error, definitions=scope.definitions)))
    return Forecast(name, "made again", None, f"{why}; {short_text(value)} can't be saved")


def _inputs(scope: Scope, identity: Identity) -> Iterator[Forecast]:
    for name in scope.inputs:
        part, value = identity.config.get(name), scope.places[name]
        if is_clock(value):
            yield Forecast(name, "input", None, "a time: not compared")
        elif part is not None:
            yield Forecast(name, "input", None, f"{part.digest[:8]}  {part.text}")


def _opaque(scope: Scope) -> Iterator[Forecast]:
    for name in sorted(scope.opaque):
        why = f"{short_text(scope.places[name])} can't be saved; compared by its structure"
        yield Forecast(name, "made again", None, why)


def trouble(scope: Scope) -> str:
    """Return why the cell would be refused before anything runs; empty when it would not."""
    try:
        scope.preflight()
    except RefusedError as error:
        return str(error)
    return ""
