"""What an attempt in this very process left behind, to be told apart from what became of it since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._identity import Identity, fingerprint
from ._places import Places


@dataclass(slots=True)
class Left:
    """How an attempt in this process left things.

    Attributes
    ----------
    identity : Identity
        Of the cell, as its inputs were then.
    was_live : bool
        Whether the cell had turned live: then what its set-up makes is there.
    state : dict of str to (int, str)
        Object and fingerprint of each name that the run saves.
    """

    identity: Identity
    was_live: bool
    state: dict[str, tuple[int, str]] = field(default_factory=dict)

    def changed(self, places: Places, declared: tuple[str, ...]) -> tuple[str, ...]:
        """Name what was worked on since, and would be lost when the run's own values are laid over it.

        An object that was made anew is no loss: the cells above make theirs again, others use ``i`` too. It is one
        where the user insists on a name that this cell makes.
        """
        found = []
        for name, (ident, digest) in self.state.items():
            if name not in places:
                continue
            value = places[name]
            is_made_here = name in declared and name not in self.identity.config
            is_worked_on = id(value) == ident or is_made_here
            if is_worked_on and fingerprint(value).digest != digest:
                found.append(name)
        return tuple(found)


def state_of(values: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """Tell objects and what is in them."""
    return {name: (id(value), fingerprint(value).digest) for name, value in values.items()}
