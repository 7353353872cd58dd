"""The cursor: a stack of frames, one for each statement that the way to a boundary leads through."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

from .._types import Json
from ._iterables import Iteration

Kind = Literal["for", "while", "if", "inside", "call", "point"]


_COUNTED = ("for", "while", "point")


@dataclass(slots=True)
class Frame:
    """One step of the way.

    Attributes
    ----------
    id : int
        Number of the statement in its unit.
    unit : str
        Name of the function, empty for the cell.
    kind : Kind
        What it is.
    depth : int
        Its place in the stack.
    label : str
        How a person names it.
    count : int
        Finished iterations.
    branch : bool
        Which way an ``if`` went.
    done : bool
        The loop is over; a frame like this is the last of its cursor.
    exhausted : bool
        It ran out of items, rather than into a ``break``.
    iteration : Iteration or None
        Where the items of a ``for`` come from.
    turns : generator or None
        The turns of a ``while`` that has an ``else``.
    pyframe : frame or None
        The running frame of a followed function.
    """

    id: int
    unit: str
    kind: Kind
    depth: int
    label: str = ""
    count: int = 0
    branch: bool = False
    done: bool = False
    exhausted: bool = False
    total: int | None = None
    iteration: Iteration | None = None
    turns: Generator[bool, None, None] | None = None
    pyframe: FrameType | None = None
    unsaved: tuple[str, ...] = ()
    entry: Json = field(default_factory=dict)
    """Random streams before a ``with`` was entered, whose manager may put them back at its end."""
    ambient: dict[str, Any] = field(default_factory=dict)
    place: tuple[int | str, ...] = ()
    """Where the statement stands in the syntax tree of its unit."""
    state: dict[str, Any] = field(default_factory=dict)
    """What ``nbresume.boundary()`` was given, by name."""
    made: dict[str, str] = field(default_factory=dict)
    """Digests of what has been bound behind a ``resume_point()``."""

    def cursor(self) -> Json:
        """Describe the frame in JSON values."""
        found: Json = {"id": self.id, "unit": self.unit, "kind": self.kind, "at": list(self.place)}
        if self.kind in _COUNTED:
            found |= {"label": self.label, "count": self.count, "total": self.total, "done": self.done}
        if self.kind == "if":
            found["branch"] = self.branch
        if self.iteration is not None and not self.done:
            found["iteration"] = self.iteration.cursor()
        if self.entry:
            found["entry"] = self.entry
        if self.kind == "call":
            found |= {"label": self.label, "unsaved": list(self.unsaved)}
        return found


@dataclass(frozen=True, slots=True)
class Way:
    """The way back to a boundary, as a snapshot recorded it."""

    frames: tuple[Json, ...]
    parts: tuple[dict[str, Any], ...] = field(default=())
    """What belongs to each frame in the graph."""


def locals_of(pyframe: FrameType) -> dict[str, Any]:
    """Return the variables of a running function, without ours."""
    return {name: value for name, value in pyframe.f_locals.items() if not name.startswith("__nbresume")}


def write_locals(pyframe: FrameType, values: dict[str, Any], remove: set[str]) -> None:
    """Bind variables of a running function, closures' cells included.

    Before Python 3.13 ``f_locals`` is a copy that has to be written through; since then it is the frame's own, and a
    variable can't be unbound in it.
    """
    names = pyframe.f_locals
    names.update(values)
    if sys.version_info < (3, 13):
        for name in remove:
            names.pop(name, None)
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(pyframe), ctypes.c_int(1))


def describe(frames: list[Json]) -> str:
    """Tell where a cursor stands, in words: ``epoch 7 of 30, batch 310 of 500 done``."""
    loops = loops_of(frames)
    if not any(count for _, count, _ in loops):
        return "the start"
    words = []
    for place, (label, count, total) in enumerate(loops):
        of = f" of {total}" if total is not None else ""
        in_progress = place < len(loops) - 1
        words.append(f"{label} {count + 1}{of}" if in_progress else f"{label} {count}{of} done")
    return ", ".join(words)


def loops_of(frames: list[Json]) -> list[tuple[str, int, int | None]]:
    """Return label, finished iterations and total of each loop of a cursor, outermost first."""
    return [(str(f["label"]), int(f["count"]), f["total"]) for f in frames if f["kind"] in _COUNTED]
