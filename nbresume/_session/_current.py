"""``nbresume.current()``: what a cell can ask about its own run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import NotFoundError
from ._once import once

if TYPE_CHECKING:
    from ._host import Host

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
_STEPS = ("for", "while", "call")
_active: list[Host] = []


def activate(host: Host) -> None:
    """Make a host the one of this process."""
    deactivate()
    _active.append(host)


def deactivate() -> None:
    """Forget the host."""
    _active.clear()


def active_host() -> Host | None:
    """Return the host of the loaded extension, if it is loaded."""
    return _active[-1] if _active else None


@dataclass(frozen=True, slots=True)
class Current:
    """The run of the cell that is executing.

    Attributes
    ----------
    name, run : str
        Its name, and its id.
    attempt : int
        Counted from 1.
    resumed : bool
        Whether this attempt went on from an earlier one.
    """

    name: str
    run: str
    attempt: int
    resumed: bool

    @property
    def cursor(self) -> tuple[tuple[str, int], ...]:
        """Label and finished iterations of each loop that is open, outermost first."""
        host = active_host()
        stack = host.runtime.stack if host is not None and host.runtime is not None else []
        return tuple((frame.label, frame.count) for frame in stack if frame.kind in ("for", "while", "point"))

    @property
    def step_key(self) -> str:
        """A key that is the same whenever this step of this run is done, for services that take an idempotency key."""
        host = active_host()
        stack = host.runtime.stack if host is not None and host.runtime is not None else []
        steps = [f"{frame.unit}{frame.id}:{frame.label}={frame.count}" for frame in stack if frame.kind in _STEPS]
        return "/".join([self.run, *steps])

    def once(self, key: str, function: Callable[[], _T], *, again: bool = False) -> _T:
        """Do something once over all attempts of this run, such as sending a message or reserving a name.

        Its result is kept, and where the random streams stood before and after it. What else the function changes in
        the notebook is not.

        Parameters
        ----------
        key : str
            What tells it from everything else that this run does once.
        function : callable
            Takes no arguments; what it returns has to be saveable.
        again : bool
            Do it also where an earlier attempt died in the middle of it, so that nobody knows whether it happened.

        Raises
        ------
        StoppedError
            When an earlier attempt died in the middle of it, and ``again`` is not said.
        """
        host = active_host()
        if host is None or host.attempt is None:
            raise NotFoundError("no resumable cell is running here. Call once() inside of the cell")
        found: _T = once(host.attempt.run, host.attempt.definitions, key, function, again=again)
        return found


def current() -> Current:
    """Return the run of the executing cell.

    Raises
    ------
    NotFoundError
        When no resumable cell is executing.
    """
    host = active_host()
    if host is None or host.attempt is None:
        raise NotFoundError("no resumable cell is running here. Put %%resumable NAME on top of the cell that asks")
    attempt = host.attempt
    return Current(attempt.run.name, attempt.run.id, attempt.number, attempt.number > 1)


def resumable(function: _F) -> _F:
    """Say that a notebook function holds a loop to be followed when a resumable cell calls it.

    A function that holds a loop is followed without it; the word is for the reader, and for a function whose other
    decorators would hide the loop.
    """
    return function
