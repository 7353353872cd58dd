"""What a person reads when the cell stops since something differs."""

from __future__ import annotations

from collections.abc import Sequence

from .._outputs import Excess, told
from ..errors import ChangedError

SHOWN = 12
"""Differences that a message shows; the error has them all."""


def shown(differences: Sequence[str]) -> str:
    """Indent differences, and cut a long list with its count."""
    more = len(differences) - SHOWN
    lines = [*differences[:SHOWN], *([f"… and {more} more"] if more > 0 else [])]
    return "".join(f"\n    {line}" for line in lines)


def continued(name: str, attempt: int, where: str, rng: str, cut: Sequence[Excess]) -> str:
    """Tell of a resume in one line.

    Parameters
    ----------
    name : str
        Of the run.
    attempt : int
        Which goes on.
    where : str
        From where.
    rng : str
        Random streams that are put back.
    cut : sequence of Excess
        What is cut from the log and from files.
    """
    parts = (f"continued {name}, attempt {attempt}, from {where}", f"rng: {rng}", told(cut))
    return "; ".join([*filter(None, parts), f"to start anew instead: %nbresume supersede {name}"])


class StopAtBoundary(KeyboardInterrupt):
    """The end of a cell that was asked to stop: an interrupt to whoever asks, and one line to a person.

    The traceback would show the cell's last statement, where nothing happened.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


StopAtBoundary.__name__ = KeyboardInterrupt.__name__  # what a front end and papermill show


def stopped_at(name: str, where: str, *, is_saved: bool) -> StopAtBoundary:
    """Make the end of a cell that stops at a boundary.

    Parameters
    ----------
    name : str
        Of the run.
    where : str
        Where it stands.
    is_saved : bool
        Whether a snapshot could be taken there.
    """
    saved = "with a snapshot" if is_saved else "but no snapshot could be taken there: the one before counts"
    return StopAtBoundary(f"{name} stopped at a boundary, {where}, {saved}. Run the cell again to continue it")


def changed_error(name: str, differences: Sequence[str], *, why: str, obstacle: str, when: str) -> ChangedError:
    """Make the error of a changed run: what differs, and the choices.

    Parameters
    ----------
    name : str
        Of the run.
    differences : sequence of str
        In readable lines.
    why : str
        What stands in the way.
    obstacle : str
        Why it can't be declared the same run; empty when it can.
    when : str
        What had happened in the cell by then.
    """
    same = (
        f"It can't be declared the same run: {obstacle}"
        if obstacle
        else f"If it is the same run all the same (a repaired bug), only you can say so: "
        f"%nbresume continue {name} --declare-compatible, then run the cell again"
    )
    return ChangedError(
        f"{name} stopped {when}: {why}.{shown(differences)}\n"
        f"To go on with the same run, put these back and run the cell again. {same}. To start a new run and keep this "
        f"one: %nbresume supersede {name}, then run the cell again (or --on-restart supersede)",
        tuple(differences),
    )
