"""What can be known and said of runs, and when a click has come too late for it."""

from __future__ import annotations

from typing import Literal, Protocol

from .._card import View

Look = Literal["verify", "log", "plan"]

ALLOWED: dict[str, tuple[str, ...]] = {
    "continue": ("interrupted",),
    "supersede": ("interrupted", "completed"),
    "snapshot": ("running",),
    "stop": ("running",),
}
_DONE = {"continue": "continued", "supersede": "superseded", "snapshot": "asked for a snapshot", "stop": "stopped"}


class Acts(Protocol):
    """What can be known and said of the runs of a store; an ``NbresumeError`` is shown as its sentence."""

    def runs(self) -> list[View]:
        """Return the runs as a list tells them, in the order to show; the last one is selected at first."""

    def look(self, run: str) -> View | None:
        """Return all that is to be seen of a run; None when it is gone."""

    def decide(self, run: str, word: str) -> str:
        """Record ``continue`` or ``supersede``; returns what to tell the person."""

    def ask(self, run: str, word: str, attempt: int) -> str:
        """Ask the process that runs an attempt for a ``snapshot`` or to ``stop``; returns what to tell the person."""

    def read(self, run: str, what: Look) -> str:
        """Return a text about a run; may take long."""

    def way(self) -> str:
        """Tell which way works for a running cell where clicks are not heard; empty where there is no need."""


def refusal(shown: View, now: View | None, word: str) -> str:
    """Tell why a word can't be said of the run that was shown; empty when it can."""
    who = f"{shown.name} ({shown.id})"
    if now is None:
        return f"{who} is not here any more. Nothing was changed."
    if facts(now) != facts(shown):
        return f"{who} was {facts(shown)} when this was clicked and is {facts(now)} now. Nothing was changed."
    allowed = ALLOWED[word]
    if now.state not in allowed:
        only = f"only a run that is {' or '.join(allowed)} can be {_DONE[word]}"
        return f"{who} is {now.state}: {only}. Nothing was changed."
    return ""


def facts(view: View) -> str:
    return f"{view.state} in attempt {attempt(view)}"


def attempt(view: View) -> int:
    return view.lineage.attempts[-1].number if view.lineage.attempts else 1
