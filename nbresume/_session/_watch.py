"""Names that change without a word in the code.

``globals()["n"] = 1``, ``exec``, ``%run``, ``setattr``, an attribute that a function, a class or a module gets while
the loop runs: no syntax tree shows which name they touch. So what they could touch is looked at itself: the notebook,
the classes and local modules that the cell reaches. A look compares which object each name refers to, which is quick;
what an object holds is compared only for inputs.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator
from typing import Any

from .._capture import carries_state
from ._places import Places
from ._reach import Reached
from ._sharing import is_hidden

_ABSENT = object()


class Watch:
    """Looks for names that were bound, rebound or deleted since it was made.

    Parameters
    ----------
    found : Reached
        What the cell reaches.
    places : Places
        The notebook's names.
    skip : frozenset of str
        Names that the code shows it binds.
    """

    def __init__(self, found: Reached, places: Places, skip: frozenset[str]) -> None:
        self._found, self._places, self._skip = found, places, skip
        self._before = self._look()
        self._plain = {name for name in found.functions if not carries_state(self._before.get(name))}
        self._known = set(self._before)

    def _look(self) -> dict[str, Any]:
        homes = ("", *self._found.homes)
        seen = {home + name: value for home in homes for name, value in list(self._places.names_in(home).items())}
        seen |= {place: self._places[place] for place in self._found.attributes if place in self._places}
        return {place: value for place, value in seen.items() if self._counts(place)}

    def _counts(self, place: str) -> bool:
        name = place if place.isidentifier() else re.split(r"[:.]", place)[-1]
        return place not in self._skip and not is_hidden(name)

    def changed(self) -> Iterator[str]:
        """Yield the places that hold another object than they did, and functions that have got a state."""
        for place, value in self._look().items():
            if self._before.get(place, _ABSENT) is not value or (place in self._plain and carries_state(value)):
                yield place

    def data(self) -> set[str]:
        """Return the names of the notebook that hold neither code nor modules."""
        return {
            name
            for name, value in self._before.items()
            if name.isidentifier() and not isinstance(value, (types.ModuleType, types.FunctionType, type))
        }

    @property
    def gone(self) -> tuple[str, ...]:
        """Places that are not bound any more."""
        return tuple(sorted(place for place in self._known if place not in self._places))

    def adopt(self, gone: Iterable[str]) -> None:
        """Take over what an earlier attempt had found gone."""
        self._known |= set(gone)
