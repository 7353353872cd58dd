"""Continue or supersede: one pure function of the identity, what was found, and the user's word."""

from __future__ import annotations

from dataclasses import dataclass

from ._lineage import State
from ._types import Word


@dataclass(frozen=True, slots=True)
class Found:
    """The newest run of this name, as the decision needs it."""

    run: str
    state: State
    differences: tuple[str, ...]
    """Readable differences of the identity; empty when it is equal."""
    trouble: str = ""
    """Why nothing may be done with it: alive elsewhere, unreadable, of a newer format."""
    obstacle: str = ""
    """Why not even a person can declare a changed run to be the same; empty when one can."""


@dataclass(frozen=True, slots=True)
class Start:
    """A new run; ``after`` is the closed run it follows, if any."""

    after: str = ""


@dataclass(frozen=True, slots=True)
class Continue:
    """The same run goes on; ``declared`` when a person has said that it is the same in spite of its differences."""

    run: str
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """The run is complete: lay its results over and run nothing."""

    run: str


@dataclass(frozen=True, slots=True)
class Supersede:
    """A new run takes the name; the old one is kept and marked."""

    old: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing runs; a person has to choose."""

    why: str
    differences: tuple[str, ...] = ()
    obstacle: str = ""


Decision = Start | Continue | Restore | Supersede | Stop


def decide(found: Found | None, word: Word, *, declares: bool = False) -> Decision:
    """Decide what running the cell does.

    Parameters
    ----------
    found : Found or None
        The newest run of this name that nobody superseded.
    word : Word
        ``ask`` and ``continue`` never choose a changed run by themselves; ``supersede`` is explicit.
    declares : bool
        Whether a person has declared the changed run to be the same one. No option, variable or policy can.
    """
    if found is None:
        return Start()
    if found.trouble:
        return Stop(found.trouble)
    if found.state == "running":
        return Stop("it is alive")
    if word == "supersede":
        return Supersede(found.run)
    match found.state:
        case "superseded" | "failed" | "abandoned":
            return Start(after=found.run)
        case "completed":
            return Start(after=found.run) if found.differences else Restore(found.run)
        case "interrupted":
            if word == "fail":
                return Stop("it was interrupted, and --on-restart fail allows no interrupted run", found.differences)
            if found.differences and found.obstacle and declares:
                return Stop("it can't be declared the same run", found.differences, found.obstacle)
            if found.differences and not declares:
                return Stop("what identifies it has changed", found.differences, found.obstacle)
            return Continue(found.run, declared=declares)
