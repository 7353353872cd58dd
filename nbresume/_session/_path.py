"""The way to a boundary and back: a stack of frames while the code is live, and steps to follow while it is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .._capture import ambient_state, rng_state
from .._lineage import DECLARED
from .._policy import Pace
from .._transform import UnitPlan
from .._types import Json
from ..errors import NbresumeError, RefusedError
from ._attempt import Attempt
from ._data import ONLY_RANGES
from ._frames import Frame, Way, locals_of, write_locals
from ._functions import Functions, Rewritten
from ._telling import changed_error


class Path:
    """Finds the way through the rewritten cell and the functions it calls.

    Attributes
    ----------
    live : bool
        The code runs as the user wrote it.
    was_live : bool
        It did so at some time.
    setup : bool
        What stands before the first loop runs.
    stack : list of Frame
        The cursor.
    pending : BaseException or None
        What is raised behind the cell's last statement.
    """

    def __init__(self, attempt: Attempt, pace: Pace, functions: Functions, *, way: Way | None, setup: bool) -> None:
        self.attempt, self.pace = attempt, pace
        self.live = self.was_live = way is None
        self.setup = setup
        self.stack: list[Frame] = []
        self.unit: UnitPlan = attempt.plan.unit
        self.units: dict[str, UnitPlan] = {}
        self.pending: BaseException | None = None
        self.restoring = False
        self._base = 0
        self._way = way
        self._functions = functions
        self._handed_over = False
        self._entering: dict[tuple[str, int], str] = {}
        self._world: tuple[Json, dict[str, Any]] = ({}, {})
        self._doubt: RefusedError | None = None

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

    def gates(self, is_firm: bool) -> bool:  # noqa: FBT001  # a constant of the rewritten cell
        """Whether to look at what the run goes over: where the set-up has just run, or what it hangs on is firm."""
        return self.setup or (is_firm and self._way is not None)

    def gate(self, number: int, values: dict[str, Any]) -> None:
        """Stand where the set-up ends: note what the run goes over, or compare it with what the launch had."""
        data = self.attempt.data
        if self.live:
            data.note(values)
        differences = data.differences(values) if self._way is not None else {}
        if self._way is None or not differences:
            return
        goes_on = any(step["id"] == number and not step["unit"] and not step.get("done") for step in self._way.frames)
        obstacle = data.obstacle(differences, values, goes_on=goes_on)
        lines = tuple(differences.values())
        if data.is_declared and not obstacle:
            data.extend(differences, values)
            self.attempt.changes.append({"how": DECLARED, "differences": list(lines), "data": data.known})
            return
        self._halt_changed(*lines, obstacle=obstacle)

    def _halt_changed(self, *lines: str, obstacle: str = ONLY_RANGES) -> None:
        why, when = "what it goes over has changed", "on the way back to its loop"
        self._halt(changed_error(self.attempt.run.name, lines, why=why, obstacle=obstacle, when=when))

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

    def _part(self) -> dict[str, Any]:
        assert self._way is not None  # noqa: S101  # enters() has seen it
        return self._way.parts[len(self.stack)] if self._way.parts else {}

    def _push(self, number: int, kind: Any, **facts: Any) -> Frame:
        place = self.unit.steps[number].place
        frame = Frame(number, self.unit.name, kind, len(self.stack), place=place, **facts)
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
        try:
            self.attempt.arrive(bars=[bar for f in self.stack if f.iteration is not None for bar in f.iteration.bars])
        except NbresumeError as error:
            self._halt(error)
            return
        self.live = self.setup = self.was_live = True
        self.pace.force()

    def _halt(self, error: BaseException) -> bool:
        """End the cell without an exception through the user's code: its loops end, the rest is passed over."""
        self.live = self.setup = False
        self._way = None
        self.pending = error
        return False

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
                f"line {self.unit.withs[number]}: entering this 'with' changes what the run saves; on a resume it is "
                "entered again, and would change it twice",
                "Put what it changes into the body, or the 'with' inside the innermost loop",
            )
        if before:
            self._entering[self.unit.name, number] = ""
        frame = self._push(number, "inside")
        if number in self.unit.withs:
            frame.entry, frame.ambient = self._world

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
