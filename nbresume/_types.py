"""Words shared by all layers: small protocols and aliases, no behaviour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol, runtime_checkable

Json = dict[str, Any]

Word = Literal["ask", "continue", "supersede", "fail"]
"""What ``--on-restart`` or a person's click says."""

FORMAT = 1
"""Version of the store's file format; a newer one is refused with both versions named."""


@runtime_checkable
class Stateful(Protocol):
    """An object that can tell where it stands and be put there again.

    An iterable with these two methods is continued by its state instead of by replay, as ``torchdata``'s
    ``StatefulDataLoader`` is.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to stand here again."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Go on from where it stands."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Stand where ``state_dict`` says."""
        ...
