"""The lineage of a run: a fold over its events, without a look at the disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from ._events import Event

State = Literal["running", "interrupted", "completed", "superseded", "abandoned"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one process did of a run."""

    number: int
    started: str
    resumed_from: str = ""
    """Where it went on, in words (``epoch 7 of 30``); empty for a launch."""
    ended: str = ""
    how: str = ""
    """``completed``, or the cause of the interruption; empty while it runs, ``vanished`` when nothing was said."""
    where: str = ""
    """Where the last snapshot of the attempt stands, in words."""
    snapshots: int = 0


@dataclass(frozen=True, slots=True)
class Lineage:
    """A run as its events tell it.

    Attributes
    ----------
    attempts : tuple of Attempt
        In order.
    state : State
        ``interrupted`` covers every end that is not a closeout.
    last_snapshot : dict
        Facts of the newest snapshot event, empty when there was none.
    notes : tuple of Event
        Rejected snapshots, files cut back, warnings: what a reader should see.
    superseded_by : str
        Id of the run that took the name, or empty.
    """

    attempts: tuple[Attempt, ...] = ()
    state: State = "interrupted"
    last_snapshot: tuple[tuple[str, object], ...] = ()
    last_snapshot_at: str = ""
    notes: tuple[Event, ...] = ()
    superseded_by: str = ""

    @property
    def resumed(self) -> bool:
        """Whether any attempt went on from a snapshot of an earlier one."""
        return any(attempt.resumed_from for attempt in self.attempts)

    @property
    def cause(self) -> str:
        """How the last attempt ended, as far as known."""
        return self.attempts[-1].how if self.attempts else ""


def fold(events: Iterable[Event], *, alive: bool = False) -> Lineage:
    """Tell the lineage from the events.

    Parameters
    ----------
    events : iterable of Event
        The journal, in order.
    alive : bool
        Whether the process of the last attempt still holds the run.
    """
    lineage = Lineage()
    for event in events:
        lineage = _after(lineage, event)
    if lineage.state not in ("running", "interrupted") or not lineage.attempts:
        return lineage
    last = lineage.attempts[-1]
    if alive and not last.how:
        return replace(lineage, state="running")
    if not last.how:
        lineage = _with_last(lineage, replace(last, how="vanished"))
    return replace(lineage, state="interrupted")


def _after(lineage: Lineage, event: Event) -> Lineage:
    facts = event.facts
    if not lineage.attempts and event.kind not in ("launched", "resumed"):
        # The beginning of the journal is lost: what is left of it still tells of an attempt.
        lineage = replace(lineage, attempts=(Attempt(event.attempt, event.at),))
    match event.kind:
        case "launched" | "resumed":
            # An attempt that never told its end vanished; the next one is the proof.
            if lineage.attempts and not lineage.attempts[-1].how:
                lineage = _with_last(lineage, replace(lineage.attempts[-1], how="vanished"))
            attempt = Attempt(event.attempt, event.at, str(facts.get("where", "")) if event.kind == "resumed" else "")
            return replace(lineage, attempts=(*lineage.attempts, attempt), state="running")
        case "snapshot":
            last = lineage.attempts[-1]
            last = replace(last, snapshots=last.snapshots + 1, where=str(facts.get("where", "")))
            lineage = replace(lineage, last_snapshot=tuple(facts.items()), last_snapshot_at=event.at)
            return _with_last(lineage, last)
        case "interrupted":
            lineage = _with_last(lineage, replace(lineage.attempts[-1], ended=event.at, how=str(facts.get("cause"))))
            return replace(lineage, state="interrupted")
        case "closed":
            how: State = "abandoned" if facts.get("how") == "abandoned" else "completed"
            if lineage.attempts and not lineage.attempts[-1].how:
                lineage = _with_last(lineage, replace(lineage.attempts[-1], ended=event.at, how=how))
            return replace(lineage, state=how)
        case "superseded":
            if lineage.attempts and not lineage.attempts[-1].how:
                lineage = _with_last(lineage, replace(lineage.attempts[-1], how="vanished"))
            state: State = lineage.state if lineage.state == "completed" else "superseded"
            return replace(lineage, state=state, superseded_by=str(facts.get("by", "")))
        case "rejected" | "cut" | "warned":
            return replace(lineage, notes=(*lineage.notes, event))


def _with_last(lineage: Lineage, attempt: Attempt) -> Lineage:
    return replace(lineage, attempts=(*lineage.attempts[:-1], attempt))
