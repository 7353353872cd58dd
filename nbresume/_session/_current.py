"""``nbresume.current()``: what a cell can ask about its own run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import NotFoundError

if TYPE_CHECKING:
    from ._host import Host

_F = TypeVar("_F", bound=Callable[..., Any])
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
        return "/".join([self.run, *(f"{label}={count}" for label, count in self.cursor)])


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
