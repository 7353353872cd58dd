"""What the rewritten cell talks to: the cursor while the code is live, and the way back while it is not.

The hot path is ``_items``: one yield, one count, one look at ``pace.due``. All else happens at boundaries.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .._capture import ambient_state, put_rng, rng_state
from .._policy import Pace
from .._transform import UnitPlan
from .._types import Json
from ..errors import NbresumeError, RefusedError, StoreError
from ._attempt import Attempt
from ._frames import Frame, Way, locals_of, write_locals
from ._functions import Functions, Rewritten
from ._guard import Guard, Streams, put_streams, streams_in
from ._iterables import Iteration, is_quiet, length_of


class Runtime:
    """The runtime of one attempt, ``__nbresume__`` in the rewritten cell.

    Attributes
    ----------
    live : bool
        The code runs as the user wrote it.
    setup : bool
        What stands before the first loop runs.
    """

    def __init__(self, attempt: Attempt, pace: Pace, functions: Functions, *, way: Way | None, setup: bool) -> None:
        self.attempt, self.pace = attempt, pace
        self.live = way is None
        self.setup = setup
        self.stack: list[Frame] = []
        self.unit: UnitPlan = attempt.plan.unit
        self.units: dict[str, UnitPlan] = {}
        self.pending: BaseException | None = None
        self.stopping = False
        self.restoring = False
        self._finished = 0
        self._base = 0
        self._way = way
        self._functions = functions
        self._entry: Json | None = None
        self._streams: Streams = []
        self._handed_over = False
        self._guards: dict[int, Guard] = {}
        self._advanced: dict[int, Iteration] = {}
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._said: set[str] = set()
        self._entering: dict[tuple[str, int], str] = {}
        self._world: tuple[Json, dict[str, Any]] = ({}, {})
        self._doubt: RefusedError | None = None
        self._clock = time.perf_counter()
        self.reached_end = False

    # ------------------------------------------------------------------ finding the way

    def enters(self, number: int, depth: int) -> bool:
        """Whether the statement is entered: the code is live, or the way back leads through it."""
        del self.stack[self._base + depth :]
        if self.live:
            if number in self.unit.withs:
                self._about_to_enter(number)
            return True
        step = self._step()
        if step is None or step["id"] != number or step["unit"] != self.unit.name:
            return False
        if step.get("done"):
            self._hand_over()
            self._push(number, step["kind"], label=step["label"], count=step["count"], total=step["total"], done=True)
            self._arrive()
            self.stack.pop()
            return False
        if any(map(self.attempt.restores, self.unit.with_reads.get(number, ()))):
            # Its manager holds a saved object (redirect_stdout(buffer)): it has to be the restored one.
            self._hand_over()
            self.attempt.disturbed = True
        if "entry" in step:
            self._hand_over()
            self._world = (step["entry"], self._part()["ambient"])
            self.attempt.put_world(*self._world)
        return True

    def _about_to_enter(self, number: int) -> None:
        """Remember the world as it is before a ``with`` is entered: on a resume it is entered again in the same."""
        self._world = (rng_state(), ambient_state())
        if (self.unit.name, number) not in self._entering:
            self._entering[self.unit.name, number] = self.attempt.live_digest()

    def again(self, names: tuple[str, ...]) -> bool:
        """Whether a statement on the way runs again: it binds a name that could not be saved."""
        if self._way is None or self.restoring:
            return False
        call = self._innermost_call()
        unsaved = self.attempt.unsaved if call is None else call.unsaved
        if not set(names) & set(unsaved):
            return False
        self._hand_over()
        self.attempt.disturbed = True
        return True

    def _innermost_call(self) -> Frame | None:
        return next((frame for frame in reversed(self.stack) if frame.kind == "call" and frame.pyframe), None)

    def _step(self) -> Json | None:
        """Return the next step of the way back."""
        if self._way is None or len(self.stack) >= len(self._way.frames):
            return None
        return self._way.frames[len(self.stack)]

    def _push(self, number: int, kind: Any, **facts: Any) -> Frame:
        frame = Frame(number, self.unit.name, kind, len(self.stack), **facts)
        self.stack.append(frame)
        return frame

    def _hand_over(self) -> None:
        """Lay the saved state over what the set-up has made; once."""
        if not self._handed_over:
            self._handed_over = True
            self._way = self.attempt.hand_over()

    def _arrive(self) -> None:
        """Turn live: bind what was saved, put files back, and the random streams as the last act."""
        way, self._way = self._way, None
        assert way is not None  # noqa: S101  # only a way back arrives
        for frame, part in zip(self.stack, way.parts, strict=False):
            if frame.pyframe is not None and "locals" in part:
                self._bind_locals(frame, part)
        self.live = self.setup = True
        self.pace.force()
        self.pace.due = True
        self.attempt.arrive()

    @staticmethod
    def _bind_locals(frame: Frame, part: dict[str, Any]) -> None:
        assert frame.pyframe is not None  # noqa: S101  # by the caller
        gone = set(locals_of(frame.pyframe)) - set(part["locals"]) - set(frame.unsaved)
        write_locals(frame.pyframe, part["locals"], gone)

    # ------------------------------------------------------------------ branches, with, try

    def branch(self, number: int, value: Any) -> bool:
        """Note which way an ``if`` goes."""
        taken = bool(value)
        self._push(number, "if", branch=taken)
        return taken

    def taken(self, number: int) -> bool:
        """Tell which way an ``if`` on the way back had gone."""
        step = self._step()
        taken = step is not None and bool(step["branch"])
        self._push(number, "if", branch=taken)
        return taken

    def inside(self, number: int) -> None:
        """Note that a ``with`` or ``try`` has been entered."""
        if not self.live and self._handed_over:
            self.attempt.disturbed = True
        before = self._entering.get((self.unit.name, number)) if self.live else None
        if before and before != self.attempt.live_digest():
            self._doubt = RefusedError(
                f"line {self.unit.withs[number]}: entering this 'with' changes what the run saves; on a resume "
                f"it is entered "
                "again, and would change it twice",
                "Put what it changes into the body, or the 'with' inside the innermost loop",
            )
        if before:
            self._entering[self.unit.name, number] = ""
        frame = self._push(number, "inside")
        if number in self.unit.withs:
            frame.entry, frame.ambient = self._world

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

    def _part(self) -> dict[str, Any]:
        assert self._way is not None  # noqa: S101  # enters() has seen it
        return self._way.parts[len(self.stack)] if self._way.parts else {}

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

    # ------------------------------------------------------------------ functions

    def call(self, number: int, function: Any) -> Any:
        """Return what to call: the function that keeps a cursor, or the user's own where a call is atomic."""
        rewritten = self._functions.of(function)
        if rewritten is None or any(f.kind == "call" and f.label == rewritten.plan.name for f in self.stack):
            return function
        owner = getattr(function, "__self__", None)

        def follow(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            given = args if owner is None else (owner, *args)
            return self._follow(number, rewritten, given, kwargs)

        return follow

    def recall(self, number: int, find: Callable[[], Any]) -> Any:
        """Call a function on the way back; its variables come from the snapshot, so its arguments don't matter."""
        if self._way is None:
            return None
        own = find()
        self._functions.of(own)
        self._hand_over()
        function = find()
        self._functions.adopt(function, own)
        rewritten = self._functions.of(function)
        assert rewritten is not None  # noqa: S101  # the snapshot says that it was followed
        code = rewritten.function.__code__
        keywords = dict.fromkeys(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount])
        return self._follow(number, rewritten, (None,) * rewritten.needs, keywords)

    def _follow(self, number: int, rewritten: Rewritten, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        frame = self._push(number, "call", label=rewritten.plan.name)
        depth = len(self.stack)
        outer = self.unit, self._base
        self.unit, self._base = rewritten.plan, depth
        self.units[rewritten.plan.name] = rewritten.plan
        try:
            return rewritten.function(*args, **kwargs)
        finally:
            self.unit, self._base = outer
            frame.pyframe = None
            del self.stack[depth - 1 :]

    def entered(self) -> None:
        """Stand at the start of a followed function: learn its variables, or put them back."""
        frame = self.stack[-1]
        frame.pyframe = sys._getframe(1)  # noqa: SLF001  # the only way to a caller's variables
        if not self.live and self._way is not None:
            self._hand_over()
            part = self._way.parts[frame.depth]
            frame.unsaved = tuple(self._way.frames[frame.depth].get("unsaved", ()))
            write_locals(frame.pyframe, part["locals"], set(locals_of(frame.pyframe)) - set(part["locals"]))

    # ------------------------------------------------------------------ boundaries

    def _boundary(self, frame: Frame) -> bool:
        """Stand at a boundary that is due; False when the loop has to end."""
        if not self.live:
            return False
        del self.stack[frame.depth + 1 :]
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
            if self._finished <= 1 and self.attempt.number == 1:
                return self._halt(error)
            # Hours in, the cell is not ended for it: it goes on, said aloud, and the last good snapshot stays.
            self._unprotected(error)
        except StoreError as error:
            self._unprotected(error)
        if self.stopping:
            return self._halt(KeyboardInterrupt())
        return True

    def _unprotected(self, error: NbresumeError) -> None:
        self.pace.taken(0.1)
        if str(error) not in self._said:
            self._said.add(str(error))
            self.attempt.warn(f"not protected since the last snapshot: {error}")

    def _halt(self, error: BaseException) -> bool:
        """End the cell without an exception through the user's code: its loops end, the rest is passed over."""
        self.live = self.setup = False
        self._way = None
        self.pending = error
        return False

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
