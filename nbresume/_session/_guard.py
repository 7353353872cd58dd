"""Whether an iterable that has to be made again can be: what its expression reads must be as it was at its entry."""

from __future__ import annotations

import contextlib
import random
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .._capture import Definitions, content_digest
from ..errors import RefusedError
from ._reach import IMMUTABLE

_LOOKS = 200
_STEPS = 4
Streams = list[tuple[Any, Any]]
"""Random generators and a state of each."""


class Guard:
    """Remembers what an iterable's expression read when its loop was entered.

    Random generators inside (a ``DataLoader`` with a generator of its own) move as items are fetched; their states at
    the
    entry are remembered, so that the replay starts there.

    Parameters
    ----------
    values : mapping of str to object
        What the expression reads and the run saves.
    definitions : Definitions
        The notebook's functions and classes.
    entry : list of (object, state)
        Random generators that the expression can reach, as they were before it was evaluated.
    """

    def __init__(self, values: Mapping[str, Any], definitions: Definitions, entry: Streams) -> None:
        self._definitions = definitions
        self._digests: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        found = {id(one): one for one, _ in entry}
        for name, value in values.items():
            if isinstance(value, IMMUTABLE):
                self.names[name] = value
                continue
            with contextlib.suppress(Exception):  # what can't be digested is made again, and can't be compared
                self._digests[name], met = content_digest(value, definitions=definitions)
                self._values[name] = self.names[name] = value
                found |= {key: one for key, one in met.items() if _get_state(one) is not None}
        self._entry = entry
        self._made: Streams = [(one, _get_state(one)) for one in found.values()]

    def check(self, label: str) -> None:
        """Check that nothing the expression read has changed.

        Raises
        ------
        RefusedError
            Naming what has.
        """
        if not self._digests:
            return
        with self._as_made():
            for name, digest in self._digests.items():
                if content_digest(self._values[name], definitions=self._definitions)[0] != digest:
                    raise RefusedError(
                        f"the items of 'for {label}' come from {name!r}, which changes while the loop runs: "
                        f"they can't be "
                        "made again as they were",
                        f"Loop over a copy (for {label} in list(…)), or use a while loop that takes from {name!r}",
                    )

    @contextlib.contextmanager
    def _as_made(self) -> Iterator[None]:
        now = [(one, _get_state(one)) for one, _ in self._made]
        put_streams(self._made)
        try:
            yield
        finally:
            put_streams(now)

    def part(self) -> dict[str, Any]:
        """Return what belongs to the graph."""
        return {"names": self.names, "entry": self._entry, "now": [(one, _get_state(one)) for one, _ in self._entry]}


def streams_in(values: Iterable[Any]) -> Streams:
    """Find the random generators that objects keep in their attributes, a few steps deep, with their states."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [(value, 0) for value in values]
    while waiting and len(seen) < _LOOKS:
        one, depth = waiting.pop()
        if id(one) in seen or isinstance(one, (*IMMUTABLE, type, types.ModuleType, types.FunctionType, np.ndarray)):
            continue
        seen.add(id(one))
        if _get_state(one) is not None:
            found[id(one)] = one
        elif isinstance(one, np.random.Generator):
            found[id(one.bit_generator)] = one.bit_generator
        elif depth < _STEPS and hasattr(one, "__dict__"):
            waiting += [(part, depth + 1) for part in list(vars(one).values())]
    return [(one, _get_state(one)) for one in found.values()]


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


def _get_state(one: Any) -> Any:
    if isinstance(one, np.random.BitGenerator):
        return one.state
    if isinstance(one, np.random.RandomState):
        return one.get_state(legacy=False)
    if isinstance(one, random.Random):
        return one.getstate()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(one, torch.Generator):
        return one.get_state()
    return None
