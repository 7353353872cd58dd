"""What the rewritten cell talks to: the cursor while the code is live, and the way back while it is not.

The hot paths are ``_items`` and ``_turns``: one yield, one count, one look at ``pace.due``, and one more count where
the rule counts boundaries. All else happens at boundaries.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

from .._capture import put_rng, rng_look
from .._policy import Pace
from .._transform import LoopPlan
from .._types import Json
from ..errors import NbresumeError, RefusedError, ReplayError
from ._attempt import Attempt
from ._data import fixed_length
from ._frames import Frame, Way, locals_of, write_locals
from ._functions import Functions
from ._guard import Guard, digests_of
from ._iterables import Entry, Iteration, length_of
from ._points import Points
from ._positions import is_container
from ._reach import IMMUTABLE
from ._streams import Streams, put_streams, streams_in


class Runtime(Points):
    """The runtime of one attempt, ``__nbresume__`` in the rewritten cell: its loops and its end.

    Attributes
    ----------
    reached_end : bool
        Whether the last statement has been reached.
    """

    def __init__(self, attempt: Attempt, pace: Pace, functions: Functions, *, way: Way | None, setup: bool) -> None:
        super().__init__(attempt, pace, functions, way=way, setup=setup)
        self.reached_end = False
        self._entry: Json | None = None
        self._streams: Streams = []
        self._before: dict[str, str] = {}
        self._evaluated: set[tuple[str, int]] = set()
        self._clock = time.perf_counter()

    # ------------------------------------------------------------------ for

    def keeps(self, number: int) -> bool:
        """Come before an iterable's expression: whether its content was saved, so that it is not evaluated again."""
        plan = self.unit.loops[number]
        if self.live:
            self._about_to_evaluate(number, plan)
            return False
        self._hand_over()
        cursor = self._cursor()
        if cursor["mode"] == "graph" and not cursor["bar"]:
            return True
        # A bar that is made again tells its file, which may be a buffer of the cell's: nothing else is changed by it.
        self.attempt.disturbed |= not cursor["bar"] or plan.changes
        part = self._part()["guard"]
        renewed = self.attempt.data.renewed
        part["names"] |= {name: renewed[name] for name in part["names"] if name in renewed}
        self._bind_names(part["names"])
        self._streams = self._streams_of(plan)
        if len(self._streams) != len(part["entry"]):
            return not self._halt(
                ReplayError(f"what the items of 'for {plan.label}' are made of is not what it was; supersede the run")
            )
        put_streams([(one, state) for (one, _), state in zip(self._streams, part["entry"], strict=False)])
        if "entry" in cursor:
            put_rng(cursor["entry"])
        return False

    def _about_to_evaluate(self, number: int, plan: LoopPlan) -> None:
        self._entry = rng_look() if plan.draws else None
        # What a loader draws from by itself moves when its expression is evaluated, or its iterator made.
        self._streams = self._streams_of(plan) if plan.draws else []
        self._before = {}
        if plan.changes and (self.unit.name, number) not in self._evaluated:
            self._evaluated.add((self.unit.name, number))
            values = {name: one for name, one in self._readable(plan.reads).items() if not isinstance(one, IMMUTABLE)}
            self._before = digests_of(values, self.attempt.definitions)

    def _streams_of(self, plan: LoopPlan) -> Streams:
        return streams_in(self._reached(plan.reads).values())

    def loop(self, number: int, iterable: Any) -> Iterator[Any]:
        """Return the items of a loop."""
        plan = self.unit.loops[number]
        if self._way is None and not self.live:
            return iter(())
        if self.live and not plan.draws and not is_container(iterable):
            self._streams = self._streams_of(plan)
        entry = Entry(
            self.attempt.is_saveable,
            self._entry,
            [one for one, _ in self._streams],
            named=not plan.draws,
            alarm=self.pace.force,
        )
        if self.live:
            return self._items(self._enter(plan, iterable, entry), [], first=True)
        try:
            return self._go_on(plan, iterable, entry)
        except NbresumeError as error:
            self._halt(error)
            return iter(())

    def _go_on(self, plan: LoopPlan, iterable: Any, entry: Entry) -> Iterator[Any]:
        cursor, part, step = self._cursor(), self._part(), self._step()
        assert step is not None and self._way is not None  # noqa: S101, PT018  # enters() has seen it
        in_progress = len(self.stack) + 1 < len(self._way.frames)
        items, total = part.get("items"), step["total"]
        longer = self.attempt.data.extended.get(f"for {plan.label}") if not self.unit.name and not self.stack else None
        if longer is not None:
            items = iter(longer[step["count"] + in_progress :]) if cursor["mode"] == "graph" else items
            total = len(longer)
        elif cursor["mode"] != "graph" and (count := fixed_length(iterable)) not in (None, total):
            self._halt_changed(f"for {plan.label}: {total} items -> {count} items")
            return iter(())
        cursor = {**cursor, "count": step["count"]}
        iteration = Iteration.go_on(cursor, items, iterable, entry, tell=self._tell_progress)
        if part.get("guard"):
            put_streams([(one, state) for (one, _), state in zip(self._streams, part["guard"]["now"], strict=False)])
            self._follow_sources(iteration, part["guard"]["names"])
            self._bind_names({})
        self._remember(iterable, iteration)
        frame = self._push(plan.id, "for", label=plan.label, count=step["count"], total=total, iteration=iteration)
        if not in_progress:
            self._arrive()
        return self._items(frame, [iteration.last] if in_progress else [], first=False)

    def _enter(self, plan: LoopPlan, iterable: Any, entry: Entry) -> Frame:
        total = length_of(iterable)
        known = self._advanced.get(id(iterable))
        iteration = known or Iteration.enter(iterable, entry)
        self._doubt = self._doubt or iteration.doubt
        self._remember(iterable, iteration)
        if iteration.again and known is None:
            guard = self._follow_sources(iteration, self._readable(plan.reads))
            changed = guard.changed_since(self._before) if self._before else ""
            if changed and iteration.replay is not None:
                iteration.replay.refuse(
                    f"making the items of 'for {plan.label}' changes {changed!r}, and on a resume they are made again",
                    "Make a list of them before the loop (items = list(...)), and loop over that",
                )
        return self._push(plan.id, "for", label=plan.label, total=total, iteration=iteration)

    def _remember(self, iterable: Any, iteration: Iteration) -> None:
        if iter_is(iterable, iteration):
            self._advanced[id(iterable)], iteration.iterable = iteration, iterable

    def _follow_sources(self, iteration: Iteration, names: dict[str, Any]) -> Guard:
        """Watch what the items are made of, as far as they have to be made again."""
        replay = iteration.replay
        guard = Guard(names if replay is not None else {}, self.attempt.definitions, self._streams)
        if replay is not None:
            replay.skips = guard.sees_all
        self._guards[id(iteration)], guard.iteration = guard, iteration
        return guard

    def _tell_progress(self, text: str) -> None:
        self.attempt.tell(f"{self.attempt.run.name}: {text}")

    def _items(self, frame: Frame, head: list[Any], *, first: bool) -> Iterator[Any]:
        __tracebackhide__ = True
        assert frame.iteration is not None  # noqa: S101  # by loop()
        source, pace = frame.iteration.source, self.pace
        if not self.live and not head:
            return  # it could not turn live
        for item in head:
            yield item
            frame.count += 1
            for bar in frame.iteration.bars:  # which this item did not come through
                bar.update(1)
            if not self.live or (pace.asks() and not self._boundary(frame)):
                return
        if first and pace.asks() and not self._boundary(frame):
            return
        if pace.counts:
            for item in source:
                yield item
                frame.count += 1
                if (left := pace.left) > 1 and not pace.due:
                    pace.left = left - 1
                elif not self._boundary(frame):
                    return
        else:
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

    def _reached(self, names: frozenset[str]) -> dict[str, Any]:
        """Return all variables that an iterable's expression reads, in an order of their own."""
        names = names.union(*(self._functions.reads(name) for name in names))
        call = self._innermost_call()
        scope = locals_of(call.pyframe) if call is not None and call.pyframe is not None else {}
        places = self.attempt.places
        found = {name: scope[name] if name in scope else places.namespace.get(name) for name in sorted(names)}
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

    def turns(self, number: int) -> Iterator[bool]:
        """Enter a ``while``: an item for each time that it tests its condition, true where that is not to be tested."""
        if not self.live:
            self._hand_over()
        step = None if self.live else self._step()
        count = 0 if step is None else int(step["count"])
        plan = self.unit.loops[number]
        frame = self._push(number, "while", label=plan.label, count=count)
        if step is None:
            turns = self._turns(frame, in_progress=False, first=True)
        elif self._way is not None and len(self.stack) < len(self._way.frames):
            turns = self._turns(frame, in_progress=True, first=False)
        else:
            self._arrive()
            turns = self._turns(frame, in_progress=False, first=False)
        if plan.has_else:
            frame.turns = turns
        return turns

    def _turns(self, frame: Frame, *, in_progress: bool, first: bool) -> Generator[bool, None, None]:
        __tracebackhide__ = True
        pace = self.pace
        if in_progress:
            yield True
            frame.count += 1
        if not self.live or ((first or in_progress) and pace.asks() and not self._boundary(frame)):
            return
        while pace.counts:
            yield False
            frame.count += 1
            if (left := pace.left) > 1 and not pace.due:
                pace.left = left - 1
            elif not self._boundary(frame):
                return
        while True:
            yield False
            frame.count += 1
            if pace.due and not self._boundary(frame):
                return

    def over(self, number: int) -> None:
        """Stand behind the test of a ``while`` that has failed: it ends as by exhaustion, so that its ``else`` runs."""
        turns = self._frame(number).turns
        assert turns is not None  # noqa: S101  # by turns()
        turns.close()

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
        frame.done, frame.turns = True, None
        # Exhausted without an 'else', nothing has run since the boundary before.
        if not (frame.exhausted and not self.unit.loops[number].has_else) and self.pace.asks():
            self._boundary(frame)
        if frame.iteration not in self._advanced.values():  # which a later loop may go on with
            self._guards.pop(id(frame.iteration), None)
        del self.stack[frame.depth :]

    # ------------------------------------------------------------------ the end

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
            self.attempt.log.muted = True  # how a terminal shows the error is not the cell's output
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
