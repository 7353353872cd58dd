"""Where a cell stands: what its loops say, and whether that tells how much is left."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from .._transform import UnitPlan
from .._types import Json
from ._frames import Frame, describe

_LOOPS = ("for", "while", "point")
_HOLDERS = (*_LOOPS, "call")
Place = tuple[int | str, ...]


def facts_of(stack: Iterable[Frame], unit: UnitPlan, units: Mapping[str, UnitPlan]) -> Json:
    """Tell where a cell stands, as the journal and the status file have it.

    Returns
    -------
    dict
        ``where`` in words, ``loops``, ``even`` as in ``Sample``, and ``more``: whether other loops come after these.
    """
    way, plans = list(stack), {**units, unit.name: unit}
    at = [depth for depth, frame in enumerate(way) if frame.kind in _LOOPS]
    frames = [way[depth] for depth in at]
    told = [{"kind": f.kind, "label": f.label, "count": f.count, "total": f.total} for f in frames]
    return {
        "where": describe(told),
        "loops": [[f.label, f.count, f.total] for f in frames],
        "even": _even(way, at, plans),
        "more": _is_followed(way[: at[0] + 1] if at else [], plans),
    }


def _even(way: list[Frame], at: list[int], plans: Mapping[str, UnitPlan]) -> int:
    for count, (outer, inner) in enumerate(itertools.pairwise(at), 1):
        for frame in way[outer + 1 : inner + 1]:
            within = way[outer].place if frame.unit == way[outer].unit else ()
            if any(not _is_on(frame.place, one) for one in _holders(plans[frame.unit], within)):
                return count
    return len(at)


def _is_followed(way: list[Frame], plans: Mapping[str, UnitPlan]) -> bool:
    return any(
        one > frame.place and not _is_on(frame.place, one) for frame in way for one in _holders(plans[frame.unit], ())
    )


def _holders(plan: UnitPlan, within: Place) -> list[Place]:
    """Return the places of a unit's loops, and of what holds some, below a place."""
    places = [step.place for step in plan.steps.values() if step.kind in _HOLDERS]
    return [place for place in places if place[: len(within)] == within and place != within]


def _is_on(path: Place, place: Place) -> bool:
    """Whether one of two places lies in the other."""
    short = min(len(path), len(place))
    return path[:short] == place[:short]
