"""Whether an iterable that has to be made again can be: what its expression reads must be as it was at its entry."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._capture import Definitions, content_digest
from ..errors import RefusedError
from ._reach import IMMUTABLE

_Streams = list[tuple[Any, Any]]


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
    """

    def __init__(self, values: Mapping[str, Any], definitions: Definitions) -> None:
        self._definitions = definitions
        self._digests: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        found: dict[int, Any] = {}
        for name, value in values.items():
            if isinstance(value, IMMUTABLE):
                self.names[name] = value
                continue
            with contextlib.suppress(Exception):  # what can't be digested is made again, and can't be compared
                self._digests[name], met = content_digest(value, definitions=definitions)
                self._values[name] = self.names[name] = value
                found |= {key: one for key, one in met.items() if _get_state(one) is not None}
        self._entry: _Streams = [(one, _get_state(one)) for one in found.values()]

    def check(self, label: str) -> None:
        """Check that nothing the expression read has changed.

        Raises
        ------
        RefusedError
            Naming what has.
        """
        if not self._digests:
            return
        with self._at_entry():
            for name, digest in self._digests.items():
                if content_digest(self._values[name], definitions=self._definitions)[0] != digest:
                    raise RefusedError(
                        f"the items of 'for {label}' come from {name!r}, which changes while the loop runs: "
                        f"they can't be "
                        "made again as they were",
                        f"Loop over a copy (for {label} in list(…)), or use a while loop that takes from {name!r}",
                    )

    @contextlib.contextmanager
    def _at_entry(self) -> Iterator[None]:
        now = [(one, _get_state(one)) for one, _ in self._entry]
        put_streams(self._entry)
        try:
            yield
        finally:
            put_streams(now)

    def part(self) -> dict[str, Any]:
        """Return what belongs to the graph."""
        return {"names": self.names, "entry": self._entry, "now": [(one, _get_state(one)) for one, _ in self._entry]}


def put_streams(streams: _Streams) -> None:
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
