"""The story of a run as a row of marks, before anyone decides how they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from .._lineage import Attempt, Lineage
from ._view import View
from ._words import beginning, plural, public, stamp

Kind = Literal[
    "launched",
    "resumed",
    "snapshots",
    "interrupted",
    "running",
    "completed",
    "superseded",
    "failed",
    "abandoned",
    "more",
]


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that happened to a run.

    Attributes
    ----------
    kind : Kind
        Its shape and colour; ``more`` stands for attempts that are not drawn.
    label : str
        A word or number beside it.
    detail : str
        The whole of it, for whoever can't see the drawing.
    """

    kind: Kind
    label: str
    detail: str


def marks(lineage: Lineage, most: int, kept: Mapping[int, int] | None = None) -> tuple[Mark, ...]:
    """Tell a lineage in marks, in order.

    Parameters
    ----------
    lineage : Lineage
        Of one run.
    most : int
        Of more attempts than these the first and the newest are told.
    kept : mapping of int to int, optional
        How many snapshots of each attempt are on the disk, where that is known.
    """
    attempts = lineage.attempts
    hidden = max(len(attempts) - most, 0)
    told: list[Mark] = []
    for index, attempt in enumerate(attempts):
        if hidden and index == 1:
            told.append(Mark("more", f"{hidden} more", f"{plural(hidden, 'attempt')} not drawn"))
        if not 1 <= index <= hidden:
            told.extend(_of_attempt(attempt, None if kept is None else kept.get(attempt.number, 0)))
    return (*told, *_closeout(lineage))


def sentence(view: View) -> str:
    """Tell the lineage of a run in one paragraph, as the alt text of its drawing."""
    runs = [*view.family, (view.id, view.lineage)]
    most = 6
    kept = {view.id: view.kept}
    told = (
        f"{run}: " + ", ".join(mark.detail for mark in marks(lineage, most, kept.get(run) or None))
        for run, lineage in runs[-most:]
    )
    return f"Lineage of {view.name}. " + ". ".join(told) + "."


def _of_attempt(attempt: Attempt, kept: int | None) -> Iterator[Mark]:
    at = stamp(attempt.started)
    kind: Kind = "resumed" if attempt.resumed_from else "launched"
    detail = f"attempt {attempt.number} {beginning(attempt)}"
    yield Mark(kind, f"{attempt.number} {kind}", f"{detail} ({at})" if at else detail)
    if attempt.snapshots:
        last = f", the last at {public(attempt.where)}" if attempt.where else ""
        taken = plural(attempt.snapshots, "snapshot")
        stay = f"{taken}, {kept:,} kept" if kept and kept < attempt.snapshots else taken
        yield Mark("snapshots", stay, f"{stay}{last}")
    match attempt.how:
        case "":
            yield Mark("running", "running", "running")
        case "completed":
            yield Mark("completed", "completed", "completed")
        case "failed":
            yield Mark("failed", "failed", "refused at its first boundary")
        case "abandoned":
            yield Mark("abandoned", "abandoned", "abandoned")
        case cause:
            yield Mark("interrupted", cause, f"interrupted ({cause})")


def _closeout(lineage: Lineage) -> Iterator[Mark]:
    """Tell what was decided after the last attempt had ended."""
    if lineage.state in ("completed", "abandoned") and lineage.cause != lineage.state:
        kind: Kind = "completed" if lineage.state == "completed" else "abandoned"
        yield Mark(kind, kind, kind)
    if lineage.state == "superseded" or lineage.superseded_by:
        by = f" by {lineage.superseded_by}" if lineage.superseded_by else ""
        yield Mark("superseded", "superseded", f"superseded{by}")
