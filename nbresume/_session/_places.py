"""Where a saved value lives: a name, ``module:name`` of a local module, or ``Class.name`` of a notebook class."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from .._identity import class_data

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

    def _home(self, place: str) -> tuple[Mapping[str, Any], str, Any]:
        """Return the names that hold a place, its key there, and the owner to set it on."""
        if place.isidentifier():  # nearly all are, and each boundary asks for each
            return self.namespace, place, None
        module, _, name = place.rpartition(":")
        if module:
            owner: Any = sys.modules.get(module)
            return (vars(owner) if owner is not None else {}), name, owner
        outer, _, name = place.rpartition(".")
        if not outer:
            return self.namespace, place, None
        owner = self.namespace.get(outer.partition(".")[0])
        for part in outer.split(".")[1:]:
            owner = getattr(owner, part, None)
        return (vars(owner) if isinstance(owner, type) else {}), name, owner

    def names_in(self, home: str) -> Mapping[str, Any]:
        """Return the names that a home holds: the notebook (an empty text), ``module:`` or ``Class.``."""
        return self._home(home)[0]

    def of_classes(self, values: Iterable[Any]) -> dict[str, Any]:
        """Return what classes of the notebook among some values hold as data, by place."""
        kinds = [one for one in values if isinstance(one, type) and one.__module__ == "__main__"]
        places = [f"{kind.__qualname__}.{name}" for kind in kinds for name in class_data(kind)]
        return {place: self[place] for place in places if place in self}

    def __contains__(self, place: str) -> bool:
        names, name, _ = self._home(place)
        return name in names

    def __getitem__(self, place: str) -> Any:
        names, name, _ = self._home(place)
        return names[name]

    def bind(self, place: str, value: Any) -> None:
        """Bind a place."""
        _, name, owner = self._home(place)
        if owner is None:
            self.namespace[name] = value
        else:
            setattr(owner, name, value)

    def unbind(self, place: str) -> None:
        """Make sure that a place is not bound."""
        names, name, owner = self._home(place)
        if owner is None:
            self.namespace.pop(name, None)
        elif name in names:
            delattr(owner, name)
