"""Boundaries: where a snapshot may be taken, a stop takes effect, and a refusal is said."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from .._capture import rng_unsaved
from .._policy import Pace
from .._types import Json
from ..errors import BusyError, NbresumeError, RefusedError, StoreError
from ._attempt import Attempt
from ._frames import Frame, Way, describe
from ._functions import Functions
from ._guard import Guard
from ._iterables import Iteration
from ._path import Path
from ._progress import facts_of
from ._telling import stopped_at

_COUNTED = ("for", "while", "point")
_TRIES = 1
"""Snapshots in a row that may fail before ``--unprotected stop`` ends the cell: room may be short for a moment."""


class Boundaries(Path):
    """Takes snapshots while the code is live.

    Attributes
    ----------
    stopping : bool
        Whether the next boundary ends the cell.
    """

    def __init__(self, attempt: Attempt, pace: Pace, functions: Functions, *, way: Way | None, setup: bool) -> None:
        super().__init__(attempt, pace, functions, way=way, setup=setup)
        self.stopping = False
        self.stop_asked: list[str] = []
        """Requests for that stop, by id; none where it was the interrupt key."""
        self._asked: list[str] = []
        """Requests that no snapshot has answered yet."""
        self._carried: list[str] = []
        """Those that the latest snapshot answers, if its commit does not fail."""
        self.settled: Callable[[], None] = lambda: None
        """Called before the cell ends for a stop."""
        self._finished = 0
        self._guards: dict[int, Guard] = {}
        self._advanced: dict[int, Iteration] = {}
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        attempt.commits.begun, attempt.commits.done = pace.committing, pace.committed
        attempt.log.position = self.position
        self._failed = 0
        """Snapshots in a row that could not be taken; a person has been told of the first."""
        self._said: set[str] = set()
        self._atomic: set[str] = set()
        """Followed functions whose variables can't be saved, and that a loop outside of them calls."""

    def _boundary(self, frame: Frame) -> bool:
        """Stand at a boundary that is due; False when the loop has to end."""
        if not self.live:
            return False
        del self.stack[frame.depth + 1 :]
        if self._is_in_an_atomic_call:
            return True
        self._finished += frame.count > 0
        if not self.is_mine:
            return True  # a forked worker or a thread of the user's: the snapshot is not theirs to take
        if self.stopping:
            self.pace.force()
        if not self.pace.wants() or (self._doubt is None and self._is_in_an_atomic_loop()):
            return True
        for stream in rng_unsaved():
            self._say_once(f"a random stream that can't be saved is in use, a resume may differ: {stream}")
        if (error := self._snapshot(frame)) is not None:
            return self._halt(error)
        if not self.stopping or self._is_in_an_atomic_call:
            return True
        # Who has asked while that one was taken gets one that answers: no other boundary comes.
        if self._asked and (error := self._snapshot(frame)) is not None:
            return self._halt(error)
        self.settled()
        if (error := self.learn()) is not None:  # whether it can be believed is known when it has been read back
            return self._halt(error)
        where = describe([frame.cursor() for frame in self.stack])
        return self._halt(stopped_at(self.attempt.run.name, where, is_saved=not self._failed))

    def _snapshot(self, frame: Frame) -> NbresumeError | None:
        """Take a snapshot; returns what has to end the cell, if anything has."""
        began = time.perf_counter()
        try:
            if (error := self.learn()) is not None:
                return error
            if self._doubt is not None:
                raise self._doubt
            # Nothing has been saved yet at boundary 0, and nothing comes after a stop: those are waited for.
            behind = self._finished > 0 and not self.stopping and not self.attempt.plan.options.sync
            asked, self._carried = list(self._asked), []
            told = {**self.progress(), "asked": asked} if asked else self.progress()
            in_flight = self.attempt.snapshot(
                self.stack, self.units, self._guards, self._advanced, behind=behind, told=told
            )
            self._carried, self._asked[: len(asked)] = asked, []
            self.pace.taken(time.perf_counter() - began)
            if not in_flight:
                self.protected()
            if not self._finished:
                self.pace.force()  # what the body makes unsaveable shows after one iteration, and not hours later
        except RefusedError as error:
            self.pace.taken(time.perf_counter() - began)
            return self._refused(frame, error)
        except (OSError, MemoryError) as error:
            self.pace.taken(time.perf_counter() - began)
            return self.unprotected(error)
        except BusyError as error:
            return error
        return None

    def learn(self) -> NbresumeError | None:
        """Learn how the commit behind the loop ended; returns what has to end the cell, if anything has."""
        try:
            if self.attempt.settle():
                self.protected()
        except (OSError, MemoryError) as error:  # a StoreError, or what a file of the user's has met
            return self.unprotected(error)
        return None

    def _refused(self, frame: Frame, error: RefusedError) -> NbresumeError | None:
        """Choose what a refusal does: end the cell as long as little is lost, else say that it is not protected."""
        if self._is_inside_a_loop(frame):
            label = self._innermost_call_label()
            self._atomic.add(label)
            self.pace.force()
            self._say_once(f"no snapshots inside {label}(), only at the loop around it: {error}")
            return None
        if self._finished <= 1 and self.attempt.number == 1:
            return error
        # Hours in, the cell is not ended for it: it goes on, said aloud, and the last good snapshot stays.
        return self.unprotected(error)

    @property
    def is_mine(self) -> bool:
        """Whether this is the process and the thread that the cell runs in."""
        return os.getpid() == self._pid and threading.get_ident() == self._thread

    @property
    def _is_in_an_atomic_call(self) -> bool:
        return bool(self._atomic) and any(f.kind == "call" and f.label in self._atomic for f in self.stack)

    def _is_in_an_atomic_loop(self) -> bool:
        """Whether a loop whose items can't be made again lies inside another loop: that one has boundaries, then."""
        loops = [frame for frame in self.stack if frame.kind in ("for", "while") and not frame.done]
        for frame in loops[1:]:
            replay = frame.iteration.replay if frame.iteration is not None else None
            if replay is not None and replay.refusal is not None:
                self.pace.force()
                self._say_once(
                    f"no snapshots inside 'for {frame.label}', only at the loop around it: {replay.refusal.reason}"
                )
                return True
        return False

    def unprotected(self, error: Exception) -> NbresumeError | None:
        """Say that the last snapshot could not be taken, and why; returns what has to end the cell, if it shall."""
        self._asked[:0], self._carried = self._carried, []
        text = f"not protected since the last snapshot: {str(error) or type(error).__name__}"
        if isinstance(error, RefusedError):
            self._say_once(text, protected=False)
        elif not self._failed:
            self.attempt.warn(text, protected=False)
            self.pace.force()  # the next boundary tries again; from then on, as often as the rule allows
        self._failed += 1
        if self._failed <= _TRIES or self.attempt.plan.options.unprotected != "stop":
            return None
        return error if isinstance(error, NbresumeError) else StoreError(text)

    def protected(self) -> None:
        """Say that snapshots can be taken again, if it was said that they could not."""
        if self._failed:
            self._failed = 0
            self.attempt.warn("protected again: a snapshot has been committed", protected=True)

    def _say_once(self, text: str, **facts: bool) -> None:
        if text not in self._said:
            self._said.add(text)
            self.attempt.warn(text, **facts)

    def _is_inside_a_loop(self, frame: Frame) -> bool:
        """Whether a boundary lies in a followed function that a loop calls: then that loop has boundaries too."""
        calls = [f.depth for f in self.stack[: frame.depth] if f.kind == "call"]
        return bool(calls) and any(f.kind in ("for", "while") for f in self.stack[: calls[-1]])

    def _innermost_call_label(self) -> str:
        return next(f.label for f in reversed(self.stack) if f.kind == "call")

    def progress(self) -> Json:
        """Tell where the cell stands; from any thread."""
        return facts_of(self.stack, self.attempt.plan.unit, self.units)

    def position(self) -> list[list[Any]]:
        """Tell which iteration of each loop is in progress, outermost first; from any thread, and quickly."""
        stack = list(self.stack) if self.live else []
        return [[f.label, f.count + (not f.done), f.total] for f in stack if f.kind in _COUNTED]

    def stop(self, request: str = "") -> None:
        """Ask for a stop at the next boundary; from any thread, or a signal's handler."""
        if request:
            self.stop_asked.append(request)
            self._asked.append(request)
        self.stopping = True
        self.pace.force()

    def ask(self, request: str) -> None:
        """Ask for a snapshot at the next boundary; from any thread."""
        self._asked.append(request)
        self.pace.force()
