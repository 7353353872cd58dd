"""How far a run has come and how fast it goes, as values.

A rate is one of iterations over active time: neither what lies between two attempts nor what a stopped process sleeps
through counts. It is that of the later half of what is known: a slow start is forgotten, as is any other pace since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Loop = tuple[str, int, int | None]


@dataclass(frozen=True, slots=True)
class Sample:
    """Where a run stood after so many seconds of work.

    Attributes
    ----------
    active : float
        Seconds that it has worked, in all attempts that led here.
    loops : tuple of (str, int, int or None)
        Label, finished iterations and total of each loop, outermost first.
    even : int
        How many of them tell the progress: each is the only loop in an iteration of the one around it.
    """

    active: float
    loops: tuple[Loop, ...]
    even: int


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast a run goes.

    Attributes
    ----------
    label : str
        Of the loop whose iterations are counted.
    per_second : float
        Iterations in a second of work.
    left : float or None
        Seconds until the outermost loop ends; None where its length is unknown.
    """

    label: str
    per_second: float
    left: float | None


def samples_of(facts: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """Read samples from what snapshots or a status say."""
    return [
        Sample(float(one["active"]), tuple((str(a), int(b), c) for a, b, c in one["loops"]), int(one["even"]))
        for one in facts
        if "active" in one and "even" in one
    ]


def rate_of(samples: Sequence[Sample]) -> Rate | None:
    """Tell the rate at the last of some samples; None where they don't tell.

    Parameters
    ----------
    samples : sequence of Sample
        In order.
    """
    if not samples or not samples[-1].loops[: samples[-1].even]:
        return None
    last = samples[-1]
    levels = _levels(last)
    known = [(one.active, _position(one, levels)) for one in samples if _is_alike(one, levels)]
    middle = (known[0][0] + last.active) / 2
    early = [one for one in known if one[0] <= middle]
    (before, start), (now, here) = early[-1], known[-1]
    if now <= before or here <= start:
        return None
    per_second = (here - start) / (now - before)
    outer = levels[0][2]
    left = None if outer is None else max(0.0, _product(levels) - here) / per_second
    return Rate(levels[-1][0], per_second, left)


def _levels(last: Sample) -> tuple[Loop, ...]:
    """Return the loops whose iterations can be counted through: inner ones as long as their length is known."""
    found = last.loops[: last.even]
    unknown = next((at for at, loop in enumerate(found) if at and not loop[2]), len(found))
    return found[:unknown]


def _is_alike(one: Sample, levels: tuple[Loop, ...]) -> bool:
    """Whether a sample is of the same loops, as far as it goes."""
    pairs = list(zip(one.loops, levels, strict=False))
    return bool(pairs) and all(a[0] == b[0] and a[2] == b[2] for a, b in pairs)


def _position(one: Sample, levels: tuple[Loop, ...]) -> int:
    """Count iterations of the innermost level from the start of the outermost."""
    found = 0
    for at, (_, _, total) in enumerate(levels):
        count = one.loops[at][1] if at < len(one.loops) else 0
        found = found * (total or 1) + count
    return found


def _product(levels: tuple[Loop, ...]) -> int:
    found = 1
    for _, _, total in levels:
        found *= total or 1
    return found
