"""Whether an iterable that has to be made again can be: what its expression reads must be as it was at its entry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from .._capture import Definitions, content_digest
from ..errors import RefusedError
from ._reach import IMMUTABLE
from ._streams import Streams, put_streams, state_of


class Guard:
    """Remembers what an iterable's expression read when its loop was entered.

    Random generators inside (a ``DataLoader`` with a generator of its own) move as items are fetched; their states at
    the entry are remembered, so that the replay starts there.

    Parameters
    ----------
    values : mapping of str to object
        What the expression reads and the run saves; none where the items themselves are saved.
    definitions : Definitions
        The notebook's functions and classes.
    entry : list of (object, state)
        Random generators that the expression can reach, as they were before it was evaluated.

    Attributes
    ----------
    names : dict of str to object
        What the expression has to read when it is evaluated again.
    sees_all : bool
        Whether each of them could be digested, so that a change would be seen.
    """

    def __init__(self, values: Mapping[str, Any], definitions: Definitions, entry: Streams) -> None:
        self._definitions = definitions
        self.iteration: Any = None
        """The one it guards: guards are found by its ``id``, which nothing else may get."""
        self._digests: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        self.sees_all = True
        found = {id(one): one for one, _ in entry}
        for name, value in values.items():
            if isinstance(value, IMMUTABLE):
                self.names[name] = value
                continue
            try:
                self._digests[name], met = content_digest(value, definitions=definitions)
            except Exception:  # noqa: BLE001  # what can't be digested is made again, and can't be compared
                self.sees_all = False
                continue
            self._values[name] = self.names[name] = value
            found |= {key: one for key, one in met.items() if state_of(one) is not None}
        self._entry = entry
        self._made: Streams = [(one, state_of(one)) for one in found.values()]

    def check(self, label: str) -> None:
        """Check that nothing the expression read has changed.

        Raises
        ------
        RefusedError
            Naming what has.
        """
        changed = self._changed(self._digests, self._made)
        if changed:
            raise RefusedError(
                f"the items of 'for {label}' come from {changed!r}, which changes while the loop runs: they can't be "
                "made again as they were",
                f"Loop over a copy (for {label} in list(…)), or use a while loop that takes from {changed!r}",
            )

    def changed_since(self, before: Mapping[str, str]) -> str:
        """Name what evaluating the expression has changed, beside random streams; empty when nothing."""
        return self._changed({name: digest for name, digest in before.items() if name in self._values}, self._entry)

    def _changed(self, digests: Mapping[str, str], streams: Streams) -> str:
        if not digests:
            return ""
        with streams_at(streams):
            for name, digest in digests.items():
                if content_digest(self._values[name], definitions=self._definitions)[0] != digest:
                    return name
        return ""

    def part(self) -> dict[str, Any]:
        """Return what belongs to the graph."""
        entry = [state for _, state in self._entry]
        return {"names": self.names, "entry": entry, "now": [state_of(one) for one, _ in self._entry]}


def digests_of(values: Mapping[str, Any], definitions: Definitions) -> dict[str, str]:
    """Digest what an expression is about to read, as far as it can be."""
    found = {}
    for name, value in values.items():
        with contextlib.suppress(Exception):  # what can't be digested can't be compared
            found[name] = content_digest(value, definitions=definitions)[0]
    return found


@contextlib.contextmanager
def streams_at(streams: Streams) -> Iterator[None]:
    """Put random generators into a state for a while."""
    now = [(one, state_of(one)) for one, _ in streams]
    put_streams(streams)
    try:
        yield
    finally:
        put_streams(now)
