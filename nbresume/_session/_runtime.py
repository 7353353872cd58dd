"""What the rewritten cell talks to: the cursor while the code is live, and the way back while it is not.

The hot path is ``_items``: one yield, one count, one look at ``pace.due``. All else happens at boundaries.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from .._capture import put_rng, rng_state
from .._policy import Pace
from .._types import Json
from ..errors import BusyError, NbresumeError, RefusedError, StoreError
from ._attempt import Attempt
from ._frames import Frame, Way, locals_of, write_locals
from ._functions import Functions
from ._guard import Guard, Streams, put_streams, streams_in
from ._iterables import Iteration, is_quiet, length_of
from ._path import Path


class Runtime(Path):
    """The runtime of one attempt, ``__nbresume__`` in the rewritten cell: its loops and boundaries.

    Attributes
    ----------
    stopping : bool
        Whether the next boundary ends the cell.
    reached_end : bool
        Whether the last statement has been reached.
    """

    def __init__(self, attempt: Attempt, pace: Pace, functions: Functions, *, way: Way | None, setup: bool) -> None:
        super().__init__(attempt, pace, functions, way=way, setup=setup)
        self.stopping = False
        self.reached_end = False
        self._finished = 0
        self._entry: Json | None = None
        self._streams: Streams = []
        self._guards: dict[int, Guard] = {}
        self._advanced: dict[int, Iteration] = {}
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._said: set[str] = set()
        self._atomic: set[str] = set()
        """Followed functions whose variables can't be saved, and that a loop outside of them calls."""
        self._clock = time.perf_counter()

    # ------------------------------------------------------------------ for

    def keeps(self, number: int) -> bool:
        """Come before an iterable's expression: whether its content was saved, so that it is not evaluated again."""
        plan = self.unit.loops[number]
        if self.live:
            self._entry = rng_state() if plan.draws else None
            # What a loader draws from by itself moves when its expression is evaluated, or its iterator made.
            self._streams = streams_in(value for value in self._readable(plan.reads).values() if not is_quiet(value))
            return False
        self._hand_over()
        cursor = self._cursor()
        if cursor["mode"] == "graph":
            return True
        self.attempt.disturbed |= cursor["mode"] != "bar"
        part = self._part().get("guard")
        if part:
            self._bind_names(part["names"])
            put_streams(part["entry"])
        if "entry" in cursor:
            put_rng(cursor["entry"])
        return False

    def loop(self, number: int, iterable: Any) -> Iterator[Any]:
        """Return the items of a loop."""
        plan = self.unit.loops[number]
        if self.live:
            total = length_of(iterable)
            known = self._advanced.get(id(iterable))
            iteration = known or Iteration.enter(iterable, self._entry, self.attempt.is_saveable)
            if iteration.mode == "replay" and iteration.replay is not None and iter_is(iterable, iteration):
                self._advanced[id(iterable)] = iteration
            frame = self._push(number, "for", label=plan.label, total=total, iteration=iteration)
            if iteration.mode == "replay" and known is None:
                names = self._readable(plan.reads)
                self._guards[id(iteration)] = Guard(names, self.attempt.definitions, self._streams)
            return self._items(frame, [], first=True)
        cursor, part, step = self._cursor(), self._part(), self._step()
        assert step is not None and self._way is not None  # noqa: S101, PT018  # enters() has seen it
        in_progress = len(self.stack) + 1 < len(self._way.frames)
        iteration, head = Iteration.go_on(cursor, part.get("items"), iterable, step["count"], in_progress=in_progress)
        if part.get("guard"):
            put_streams(part["guard"]["now"])
            self._guards[id(iteration)] = Guard(
                part["guard"]["names"], self.attempt.definitions, part["guard"]["entry"]
            )
            self._bind_names({})
        if iteration.replay is not None and iter_is(iterable, iteration):
            self._advanced[id(iterable)] = iteration
        frame = self._push(
            number, "for", label=plan.label, count=step["count"], total=step["total"], iteration=iteration
        )
        if not in_progress:
            self._arrive()
        return self._items(frame, head, first=False)

    def _items(self, frame: Frame, head: list[Any], *, first: bool) -> Iterator[Any]:
        __tracebackhide__ = True
        assert frame.iteration is not None  # noqa: S101  # by loop()
        source, pace = frame.iteration.source, self.pace
        if not self.live and not head:
            return  # it could not turn live
        for item in head:
            yield item
            frame.count += 1
            if not self.live or (pace.due and not self._boundary(frame)):
                return
        if first and pace.due and not self._boundary(frame):
            return
        for item in source:
            yield item
            frame.count += 1
            if pace.due and not self._boundary(frame):
                return
        frame.exhausted = True

    def _cursor(self) -> Json:
        step = self._step()
        assert step is not None  # noqa: S101  # enters() has seen it
        cursor: Json = step["iteration"]
        return cursor

    def _readable(self, names: frozenset[str]) -> dict[str, Any]:
        """Return the saved variables that an iterable's expression reads, itself or through a function it calls."""
        names = names.union(*(self._functions.reads(name) for name in names))
        call = self._innermost_call()
        scope = locals_of(call.pyframe) if call is not None and call.pyframe is not None else {}
        found = {name: scope[name] if name in scope else self.attempt.readable(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def _bind_names(self, names: dict[str, Any]) -> None:
        """Let an expression on the way read what it read at its entry; with nothing, what was saved."""
        call = self._innermost_call()
        if call is not None and call.pyframe is not None:
            saved = self._way.parts[call.depth].get("locals", {}) if self._way is not None else {}
            write_locals(call.pyframe, names or saved, set())
        else:
            self.attempt.lend(names)

    # ------------------------------------------------------------------ while

    def begin(self, number: int) -> None:
        """Enter a ``while``."""
        plan = self.unit.loops[number]
        if not self.live:
            self._hand_over()
        step = None if self.live else self._step()
        frame = self._push(number, "while", label=plan.label)
        frame.count = -1 if step is None else int(step["count"]) - 1

    def turn(self, number: int) -> bool:
        """Stand before a ``while`` tests its condition; True when it is not to be tested: the body is in progress."""
        frame = self.stack[-1]
        if frame.id != number or frame.kind != "while":  # an inner statement left by an exception
            frame = self._frame(number)
        frame.count += 1
        if self.live:
            if self.pace.due:
                self._boundary(frame)
            return False
        if self._way is None:  # stopping
            return False
        if frame.depth + 1 < len(self._way.frames):
            return True
        self._arrive()
        return False

    def _frame(self, number: int) -> Frame:
        for frame in reversed(self.stack):
            if frame.id == number and frame.unit == self.unit.name:
                return frame
        raise AssertionError(number)

    def leave(self, number: int) -> None:
        """Stand behind a loop, by exhaustion or ``break``: a boundary too."""
        if not self.live:
            return
        frame = self._frame(number)
        frame.done = True
        # Exhausted without an 'else', nothing has run since the boundary before.
        if self.pace.due and not (frame.exhausted and not self.unit.loops[number].has_else):
            self._boundary(frame)
        self._guards.pop(id(frame.iteration), None)
        del self.stack[frame.depth :]

    # ------------------------------------------------------------------ boundaries

    def _boundary(self, frame: Frame) -> bool:
        """Stand at a boundary that is due; False when the loop has to end."""
        if not self.live:
            return False
        del self.stack[frame.depth + 1 :]
        if self._atomic and any(f.kind == "call" and f.label in self._atomic for f in self.stack):
            return True
        self._finished += frame.count > 0
        if os.getpid() != self._pid or threading.get_ident() != self._thread:
            return True  # a forked worker or a thread of the user's: the snapshot is not theirs to take
        if self.stopping:
            self.pace.force()
        if not self.pace.wants():
            return True
        try:
            if self._doubt is not None:
                raise self._doubt
            self.pace.taken(self.attempt.snapshot(self.stack, self.units, self._guards, self._advanced))
        except RefusedError as error:
            if self._is_inside_a_loop(frame):
                self._atomic.add(self._innermost_call_label())
                self.pace.force()
                self._say_once(
                    f"no snapshots inside {self._innermost_call_label()}(), only at the loop around it: {error}"
                )
                return True
            if self._finished <= 1 and self.attempt.number == 1:
                return self._halt(error)
            # Hours in, the cell is not ended for it: it goes on, said aloud, and the last good snapshot stays.
            self._unprotected(error)
        except StoreError as error:
            self._unprotected(error)
        except BusyError as error:
            return self._halt(error)
        if self.stopping:
            return self._halt(KeyboardInterrupt())
        return True

    def _unprotected(self, error: NbresumeError) -> None:
        self.pace.taken(0.1)
        self._say_once(f"not protected since the last snapshot: {error}")

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.attempt.warn(text)

    def _is_inside_a_loop(self, frame: Frame) -> bool:
        """Whether a boundary lies in a followed function that a loop calls: then that loop has boundaries too."""
        calls = [f.depth for f in self.stack[: frame.depth] if f.kind == "call"]
        return bool(calls) and any(f.kind in ("for", "while") for f in self.stack[: calls[-1]])

    def _innermost_call_label(self) -> str:
        return next(f.label for f in reversed(self.stack) if f.kind == "call")

    def stop(self) -> None:
        """Ask for a stop at the next boundary; from any thread, or a signal's handler."""
        self.stopping = True
        self.pace.due = True

    def clock(self) -> None:
        """Start the clock of a ``%time`` line."""
        self._clock = time.perf_counter()

    def clocked(self) -> None:
        """Tell what the clock says."""
        self.attempt.tell(f"Wall time: {time.perf_counter() - self._clock:.3g} s")

    def last(self, value: Any) -> Any:
        """Stand behind the cell's last statement; gives its value back to be displayed."""
        __tracebackhide__ = True
        if self.pending is not None:
            raise self.pending
        self.reached_end = True
        if self.restoring:
            self._hand_over()
            self._way = None
            self.attempt.arrive(whole=True)
            return None
        if not self.live and self._way is not None:
            self._hand_over()
            raise RefusedError(
                "the way back was not found: a statement before the resume point ended the cell's block early",
                "Supersede the run with --on-restart supersede, and report this as a bug",
            )
        return value


def iter_is(iterable: Any, iteration: Iteration) -> bool:
    """Whether what the loop walks is itself an iterator, which another loop may go on with."""
    return iteration.replay is not None and hasattr(iterable, "__next__")
