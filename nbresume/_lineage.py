"""The lineage of a run: a fold over its events, without a look at the disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal

from ._events import Event

State = Literal["running", "interrupted", "completed", "superseded", "failed", "abandoned"]
CLOSED: frozenset[State] = frozenset({"completed", "superseded", "failed", "abandoned"})
"""Where nothing is left to continue."""


OTHER_HARDWARE = "other hardware"
NOT_REACHED = "not yet reached"
DECLARED = "declared"
CHANGED = {
    NOT_REACHED: "only what had not run yet has changed",
    DECLARED: "declared the same run by a person",
    OTHER_HARDWARE: "bits not guaranteed: other hardware",
}
"""How an attempt that is not plainly the same run is spoken of."""


@dataclass(frozen=True, slots=True)
class Change:
    """Why an attempt is not plainly the same run.

    Attributes
    ----------
    how : str
        ``not yet reached``: only what had not run yet has changed. ``declared``: a person has said that it is the same
        run. ``other hardware``: bits are not guaranteed.
    differences : tuple of str
        In readable lines.
    diff : str
        Of the code, as ``diff -u`` shows it.
    """

    how: str
    differences: tuple[str, ...] = ()
    diff: str = ""


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
    why: str = ""
    """What is known beyond the cause: the signal's name, or the exception's type and text."""
    changes: tuple[Change, ...] = ()
    snapshot: str = ""
    """Id of the snapshot that a resume went on from."""


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
    superseded_because : tuple of str
        Whose word it was, and what differed then.
    made_by : tuple of int
        Attempts that the result of a completed run is made of: each went on from the one before.
    """

    attempts: tuple[Attempt, ...] = ()
    state: State = "interrupted"
    last_snapshot: tuple[tuple[str, object], ...] = ()
    last_snapshot_at: str = ""
    notes: tuple[Event, ...] = ()
    superseded_by: str = ""
    superseded_because: tuple[str, ...] = ()
    made_by: tuple[int, ...] = ()
    is_exposed: bool = False
    """Whether what was done since the last snapshot is lost with the process: the disk, or the state, refuses more."""

    @property
    def resumed(self) -> bool:
        """Whether any attempt went on from a snapshot of an earlier one."""
        return any(attempt.resumed_from for attempt in self.attempts)

    @property
    def is_exact(self) -> bool:
        """Whether its bits are those of one machine, as far as is known."""
        return not any(change.how == OTHER_HARDWARE for attempt in self.attempts for change in attempt.changes)

    @property
    def cause(self) -> str:
        """How the last attempt ended, as far as known."""
        return self.attempts[-1].how if self.attempts else ""


def fold(events: Iterable[Event], *, alive: bool = False, successor: Mapping[str, Any] | None = None) -> Lineage:
    """Tell the lineage from the events.

    Parameters
    ----------
    events : iterable of Event
        The journal, in order.
    alive : bool
        Whether the process of the last attempt still holds the run.
    successor : mapping, optional
        Launch record of the run that took the name. It is written before this journal is told of it: a process that
        dies between the two leaves the record alone.
    """
    lineage, passed = Lineage(), 0
    told = list(events)
    for event, following in zip_longest(told, told[1:]):
        # Of snapshots in a row, of which there may be many thousands, the last one tells where the run stands.
        if following is not None and event.kind == following.kind == "snapshot" and event.attempt == following.attempt:
            passed += 1
            continue
        lineage = _after(lineage, event, passed)
        passed = 0
    if successor is not None and not lineage.superseded_by:
        lineage = _superseded(lineage, str(successor["id"]), tuple(successor.get("because", ())))
    if lineage.state in CLOSED or not lineage.attempts:
        return lineage
    last = lineage.attempts[-1]
    if alive and not last.how:
        return replace(lineage, state="running")
    return replace(_silent_vanished(lineage), state="interrupted")


def _after(lineage: Lineage, event: Event, passed: int = 0) -> Lineage:
    facts = event.facts
    if event.kind in ("launched", "resumed"):
        # An attempt that never told its end vanished; the next one is the proof.
        lineage = _silent_vanished(lineage)
        where = str(facts.get("where", "")) if event.kind == "resumed" else ""
        attempt = Attempt(event.attempt, event.at, where, snapshot=str(facts.get("snapshot") or ""))
        return replace(lineage, attempts=(*lineage.attempts, attempt), state="running")
    if not lineage.attempts:
        # The beginning of the journal is lost: what is left of it still tells of an attempt.
        lineage = replace(lineage, attempts=(Attempt(event.attempt, event.at),))
    # An attempt that stood still while another took the run over may tell of itself later; it moves the run no more.
    current = event.attempt >= lineage.attempts[-1].number
    match event.kind:
        case "snapshot":
            attempt = _attempt(lineage, event.attempt)
            where = str(facts.get("where", ""))
            lineage = _with(lineage, replace(attempt, snapshots=attempt.snapshots + 1 + passed, where=where))
            if current:
                last = tuple(facts.items())
                lineage = replace(lineage, last_snapshot=last, last_snapshot_at=event.at, is_exposed=False)
        case "interrupted":
            attempt = _attempt(lineage, event.attempt)
            how = str(facts.get("cause") or "unknown")
            lineage = _with(lineage, replace(attempt, ended=event.at, how=how, why=_why(facts)))
            if current and lineage.state not in CLOSED:
                lineage = replace(lineage, state="interrupted")
        case "reconciled":
            lineage = replace(lineage, made_by=tuple(facts.get("attempts", ())))
        case "completed" | "failed" | "abandoned":
            attempt = _attempt(lineage, event.attempt)
            if current and not attempt.how:
                lineage = _with(lineage, replace(attempt, ended=event.at, how=event.kind, why=_why(facts)))
            if current:
                lineage = replace(lineage, state=event.kind)
        case "superseded":
            lineage = _superseded(lineage, str(facts.get("by", "")), tuple(facts.get("because", ())))
        case "changed":
            attempt = _attempt(lineage, event.attempt)
            lineage = _with(lineage, replace(attempt, changes=(*attempt.changes, _change(facts))))
        case "rejected" | "cut" | "warned":
            is_exposed = not facts["protected"] if "protected" in facts else lineage.is_exposed
            lineage = replace(lineage, notes=(*lineage.notes, event), is_exposed=is_exposed)
    return lineage


def _change(facts: Mapping[str, Any]) -> Change:
    return Change(str(facts.get("how", "")), tuple(map(str, facts.get("differences", ()))), str(facts.get("diff", "")))


def _why(facts: Mapping[str, Any]) -> str:
    """Tell in words what is known of an end; nothing is invented."""
    error, message = str(facts.get("error", "")), str(facts.get("message", ""))
    asked = str(facts.get("signal", "")) or ("on request" if facts.get("asked") else "")
    return asked or (f"{error}: {message}" if error and message else error)


def _superseded(lineage: Lineage, by: str, because: tuple[str, ...]) -> Lineage:
    state: State = "completed" if lineage.state == "completed" else "superseded"
    return replace(_silent_vanished(lineage), state=state, superseded_by=by, superseded_because=because)


def _silent_vanished(lineage: Lineage) -> Lineage:
    if not lineage.attempts or lineage.attempts[-1].how:
        return lineage
    return _with(lineage, replace(lineage.attempts[-1], how="vanished"))


def _attempt(lineage: Lineage, number: int) -> Attempt:
    """Return the attempt that an event speaks of; the last one where its beginning is lost."""
    return next((one for one in reversed(lineage.attempts) if one.number == number), lineage.attempts[-1])


def _with(lineage: Lineage, attempt: Attempt) -> Lineage:
    """Put an attempt in the place of what was known of it."""
    place = max(at for at, one in enumerate(lineage.attempts) if one.number == attempt.number)
    return replace(lineage, attempts=(*lineage.attempts[:place], attempt, *lineage.attempts[place + 1 :]))
