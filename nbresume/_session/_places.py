"""Where a saved value lives: a name of the notebook, or ``module:name`` of a local module."""

from __future__ import annotations

import sys
from typing import Any

Namespace = dict[str, Any]


class Places:
    """Reads and binds places.

    Parameters
    ----------
    namespace : dict
        The notebook's globals.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace

    def home(self, place: str) -> tuple[Namespace, str]:
        """Return the dict that holds a place, and its key there."""
        module, _, name = place.rpartition(":")
        if not module:
            return self.namespace, place
        return (vars(sys.modules[module]) if module in sys.modules else {}), name

    def __contains__(self, place: str) -> bool:
        home, name = self.home(place)
        return name in home

    def __getitem__(self, place: str) -> Any:
        home, name = self.home(place)
        return home[name]

    def bind(self, place: str, value: Any) -> None:
        """Bind a place."""
        home, name = self.home(place)
        home[name] = value

    def unbind(self, place: str) -> None:
        """Make sure that a place is not bound."""
        home, name = self.home(place)
        home.pop(name, None)
