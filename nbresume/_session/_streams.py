"""Random streams that an iterable can draw from: the process's own, and generators that its objects keep."""

from __future__ import annotations

import functools
import pickle
import random
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._capture import draws_differ, put_rng, rng_encoded, rng_look
from .._identity import is_filled
from .._types import Json
from ._reach import IMMUTABLE

_LOOKS = 400
_STEPS = 5
_WIDE = 200
Streams = list[tuple[Any, Any]]
"""Random generators and a state of each."""

_Look = tuple[Json, list[bytes]]


class StreamWatch:
    """Tells whether anything was drawn, and puts all streams where they were.

    Parameters
    ----------
    own : sequence of object
        Random generators, beside those of the process.
    """

    __slots__ = ("own",)

    def __init__(self, own: Sequence[Any] = ()) -> None:
        self.own = list(own)

    def look(self) -> _Look:
        """Look at all streams, to compare."""
        return rng_look(), [pickle.dumps(state_of(one)) for one in self.own]

    @staticmethod
    def differ(before: _Look, after: _Look) -> bool:
        """Whether anything was drawn between two looks."""
        return draws_differ(before[0], after[0]) or before[1] != after[1]

    @staticmethod
    def kept(look: _Look) -> tuple[Json, list[bytes]]:
        """Make a look something to be saved."""
        return rng_encoded(look[0]), look[1]

    def put(self, kept: tuple[Json, list[bytes]]) -> None:
        """Put all streams where a kept look saw them."""
        put_streams([(one, pickle.loads(state)) for one, state in zip(self.own, kept[1], strict=False)])
        put_rng(kept[0])


def streams_in(values: Iterable[Any]) -> Streams:
    """Find the random generators that objects hold, a few steps deep, with their states."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [(value, 0) for value in values]
    while waiting and len(seen) < _LOOKS:
        one, depth = waiting.pop(0)
        if id(one) in seen or isinstance(one, (*IMMUTABLE, type, types.ModuleType, np.ndarray)):
            continue
        seen.add(id(one))
        if state_of(one) is not None:
            found[id(one)] = one
        elif isinstance(one, np.random.Generator):
            found[id(one.bit_generator)] = one.bit_generator
        elif depth < _STEPS:
            waiting += [(part, depth + 1) for part in _parts(one)]
    return [(one, state_of(one)) for one in found.values()]


def _parts(one: Any) -> list[Any]:
    """Return what an object holds, as far as it may keep a generator there."""
    if isinstance(one, dict):
        return list(one.values()) if len(one) < _WIDE else []
    if isinstance(one, (list, tuple, set, frozenset)):
        return list(one) if len(one) < _WIDE else []
    if isinstance(one, types.GeneratorType):
        return list(one.gi_frame.f_locals.values()) if one.gi_frame is not None else []
    if isinstance(one, types.FunctionType):
        return [cell.cell_contents for cell in one.__closure__ or () if is_filled(cell)]
    if isinstance(one, types.MethodType):
        return [one.__self__, one.__func__]
    if isinstance(one, functools.partial):
        return [one.func, *one.args, *one.keywords.values()]
    return list(vars(one).values()) if hasattr(one, "__dict__") else []


def put_streams(streams: Streams) -> None:
    """Put random generators into a state."""
    for one, state in streams:
        if isinstance(one, np.random.BitGenerator):
            one.state = state
        elif isinstance(one, np.random.RandomState):
            one.set_state(state)
        elif isinstance(one, random.Random):
            one.setstate(state)
        else:
            one.set_state(state)


def state_of(one: Any) -> Any:
    """Return the state of a random generator; None for anything else, and for one that has none."""
    if isinstance(one, np.random.BitGenerator):
        return one.state
    if isinstance(one, np.random.RandomState):
        return one.get_state(legacy=False)
    if isinstance(one, random.Random):
        return None if isinstance(one, random.SystemRandom) else one.getstate()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(one, torch.Generator):
        return one.get_state()
    return None
