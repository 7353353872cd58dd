"""The events of a run, one JSON line each, and nothing about files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

Kind = Literal[
    "launched",
    "resumed",
    "changed",
    "snapshot",
    "interrupted",
    "rejected",
    "cut",
    "warned",
    "superseded",
    "reconciled",
    "completed",
    "failed",
    "abandoned",
]
"""What can happen to a run.

``changed``: an attempt is not plainly the same run; ``how`` tells why. ``failed``: refused at its first boundary, so
that nothing of it can be continued.
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a journal.

    Attributes
    ----------
    kind : Kind
        What happened.
    attempt : int
        The attempt it happened to, counted from 1.
    at : str
        UTC time in ISO 8601.
    facts : dict
        What else is known; JSON values.
    """

    kind: Kind
    attempt: int
    at: str
    facts: dict[str, Any] = field(default_factory=dict)


def now() -> str:
    """Tell the time as the journal writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


_KINDS = frozenset(get_args(Kind))


def encode(event: Event) -> bytes:
    """Make one line of an event."""
    line = {"event": event.kind, "attempt": event.attempt, "at": event.at, **event.facts}
    return json.dumps(line, ensure_ascii=False, sort_keys=False).encode() + b"\n"


def decode(lines: Iterable[bytes]) -> list[Event]:
    """Read a journal; a line that a dying process tore is dropped, as is one of a kind we don't know."""
    events = []
    for line in lines:
        try:
            facts = json.loads(line)
            kind, attempt, at = facts.pop("event"), facts.pop("attempt"), facts.pop("at")
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
        if kind == "closed":  # the word of the first journals for both ends
            kind = facts.pop("how", "completed")
        if kind in _KINDS and isinstance(attempt, int):
            events.append(Event(kind, attempt, at, facts))
    return events
