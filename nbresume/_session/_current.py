"""``nbresume.current()``: what a cell can ask about its own run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import NotFoundError
from ._once import once

if TYPE_CHECKING:
    from ._attempt import Attempt
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


class Current:
    """The run of the cell that is executing, asked anew each time.

    It holds nothing: kept in a variable of the cell and restored with it, it tells of the attempt that asks. Where no
    resumable cell is executing it has neutral values, so that a function that asks also works in a plain cell.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """Name on the magic line; empty in a plain cell."""
        attempt = _attempt()
        return attempt.run.name if attempt is not None else ""

    @property
    def run(self) -> str:
        """Id of the run; empty in a plain cell."""
        attempt = _attempt()
        return attempt.run.id if attempt is not None else ""

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1; 1 in a plain cell."""
        attempt = _attempt()
        return attempt.number if attempt is not None else 1

    @property
    def resumed(self) -> bool:
        """Whether saved state is laid over in this execution: from a snapshot, or of a complete run."""
        attempt = _attempt()
        return attempt is not None and attempt.is_resumed

    @property
    def cursor(self) -> tuple[tuple[str, int], ...]:
        """Label and finished iterations of each loop that is open, outermost first; empty in a plain cell."""
        host = active_host()
        stack = host.runtime.stack if host is not None and host.runtime is not None else []
        return tuple((frame.label, frame.count) for frame in stack if frame.kind in ("for", "while", "point"))

    @property
    def step_key(self) -> str:
        """A key that is the same whenever this step of this run is done, for services that take an idempotency key.

        Raises
        ------
        NotFoundError
            In a plain cell: two runs of it would have one key.
        """
        if not self.run:
            raise NotFoundError(
                "no resumable cell is running here, and a plain one has no key of its own. Put "
                "%%resumable NAME on top of the cell that asks"
            )
        host = active_host()
        stack = host.runtime.stack if host is not None and host.runtime is not None else []
        steps = [f"{frame.unit}{frame.id}:{frame.label}={frame.count}" for frame in stack if frame.kind in _STEPS]
        return "/".join([self.run, *steps])

    def once(self, key: str, function: Callable[[], _T], *, again: bool = False) -> _T:
        """Do something once over all attempts of this run, such as sending a message or reserving a name.

        Its result is kept, and where the random streams stood before and after it. What else the function changes in
        the notebook is not. In a plain cell, which has one attempt, the function is called.

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
            return function()
        found: _T = once(host.attempt.run, host.attempt.definitions, key, function, again=again)
        return found

    def __repr__(self) -> str:
        if not self.run:
            return "<nbresume.current(): a plain cell>"
        where = ", ".join(f"{label} {count}" for label, count in self.cursor)
        return f"<nbresume.current(): {self.name}, attempt {self.attempt}{', resumed' * self.resumed}; {where}>"


def current() -> Current:
    """Return the run of the executing cell; in a plain cell one with neutral values."""
    return Current()


def _attempt() -> Attempt | None:
    host = active_host()
    return host.attempt if host is not None else None


def resumable(function: _F) -> _F:
    """Say that a notebook function holds a loop to be followed when a resumable cell calls it.

    A function that holds a loop is followed without it; the word is for the reader, and for a function whose other
    decorators would hide the loop.
    """
    return function
