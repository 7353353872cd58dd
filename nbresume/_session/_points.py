"""Boundaries inside a library's call: ``nbresume.resume_point()`` before it, ``nbresume.boundary()`` in its callback.

There is no way to end a library's loop but an exception: a stop raises KeyboardInterrupt from ``boundary()``. Should
the library swallow it, the next call raises again, and the cell goes no further behind it.
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._capture import content_digest
from ..errors import RefusedError
from ._boundaries import Boundaries
from ._current import active_host
from ._frames import Frame, locals_of
from ._reach import IMMUTABLE

_DATA = (*IMMUTABLE, list, tuple, dict, set, frozenset, bytearray, collections.deque, np.ndarray)


def resume_point() -> int:
    """Say where a cell goes on whose loop is inside a library, and from which step.

    It stands as a statement of its own before the library's call (``step = nbresume.resume_point()``), in the cell or
    in a function of the notebook that the cell calls. In a new run it returns 0. On a resume it lays the saved state
    over the variables, puts the random streams back, and returns the step that was given to the last ``boundary()``
    that became a snapshot. What stands before it is set-up; what stands behind it runs again.

    Returns
    -------
    int
        The step to go on from; 0 in a new run, and in a cell that is not resumable.

    Raises
    ------
    RefusedError
        When it is called from anywhere else in a resumable cell.
    """
    host = active_host()
    if host is None or host.runtime is None:
        return 0
    raise RefusedError(
        "resume_point() was called inside an expression, or in a function that is not followed",
        "Write it as a statement of its own, before the library's call: step = nbresume.resume_point()",
    )


def boundary(step: int, **state: Any) -> None:
    """Be a boundary inside a library's call: to be called from its callback after each of its steps.

    Parameters
    ----------
    step : int
        How many steps are done: what ``resume_point()`` returns when the run goes on from here.
    **state
        Values by the names of variables of the cell (or of the function that ``resume_point()`` stands in): they are
        saved under these names, in one graph with all that the cell saves anyway, and are bound on a resume.

    Raises
    ------
    RefusedError
        When no ``resume_point()`` stands before the call, or the state can't be gone on from.
    KeyboardInterrupt
        When the run has been asked to stop at the next boundary.
    """
    host = active_host()
    if host is not None and host.runtime is not None:
        host.runtime.boundary(step, state)


class Points(Boundaries):
    """Knows the place that a library's call goes on from."""

    def point(self, number: int, function: Callable[[], Any]) -> Any:
        """Stand at a ``resume_point()``."""
        if function is not resume_point:
            return function()
        step = None if self.live else self._step()
        frame = self._push(number, "point", label="step", count=0 if step is None else int(step["count"]))
        if self.live:
            if self.pace.asks():
                self._boundary(frame)
        else:
            self._hand_over()
            self._arrive()
        return frame.count

    def made(self, names: tuple[str, ...]) -> None:
        """Stand behind a statement that a resume repeats: remember what it has bound."""
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.kind == "point":
            frame.made |= self._digests(frame, names)

    def boundary(self, step: int, state: Mapping[str, Any]) -> None:
        """Stand at a boundary inside a library's call."""
        if not self.is_mine:
            self._say_once("boundary() was called from another thread or process: no snapshot is taken there")
            return
        if self.pending is not None:
            raise self.pending
        frame = self.stack[-1] if self.stack else None
        if not self.live or frame is None or frame.kind != "point":
            self._fail(
                "boundary() was called without resume_point() before it",
                "Put step = nbresume.resume_point() before the library's call, with no tracked loop between them. A "
                "loop of the cell itself has its boundaries without a call",
            )
            return
        frame.count = operator.index(step)
        if not self.pace.asks():
            return
        frame.state = dict(state)
        self._refuse_lost(frame)
        self._refuse_made_again(frame)
        if not self._boundary(frame) and self.pending is not None:
            raise self.pending

    def _fail(self, reason: str, way_out: str) -> None:
        error = RefusedError(reason, way_out)
        self._halt(error)
        raise error

    def _refuse_lost(self, frame: Frame) -> None:
        """Refuse a state that nobody could read after a resume."""
        outside = frozenset() if frame.unit else self.unit.reads | self.attempt.places.namespace.keys()
        known = self.unit.bound | outside
        for name in frame.state:
            if name not in known:
                self._fail(
                    f"boundary() is given {name!r}, and there is no variable of that name to bind it to on a resume",
                    f"Bind {name} before resume_point(), and start the library's call from it",
                )

    def _refuse_made_again(self, frame: Frame) -> None:
        """Refuse where what is made behind the point has been changed by the callbacks: a resume starts it anew."""
        for name, digest in self._digests(frame, tuple(frame.made)).items():
            if digest != frame.made[name] and name not in frame.state:
                self._fail(
                    f"{name!r} is made behind resume_point() and changed while the library runs: a resume would make "
                    "it anew",
                    f"Put the statement that makes {name} before resume_point()",
                )

    def _digests(self, frame: Frame, names: tuple[str, ...]) -> dict[str, str]:
        call = self._innermost_call() if frame.unit else None
        scope = locals_of(call.pyframe) if call is not None and call.pyframe is not None else None
        values = self.attempt.places.namespace if scope is None else scope
        found = {}
        for name in names:
            if isinstance(values.get(name, self), _DATA):
                try:
                    found[name] = content_digest(values[name], definitions=self.attempt.definitions)[0]
                except Exception:  # noqa: BLE001  # what can't be digested can't be compared
                    found[name] = ""
        return found
