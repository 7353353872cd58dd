"""What a person reads when the cell stops since something differs."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ChangedError

SHOWN = 12
"""Differences that a message shows; the error has them all."""


def shown(differences: Sequence[str]) -> str:
    """Indent differences, and cut a long list with its count."""
    more = len(differences) - SHOWN
    lines = [*differences[:SHOWN], *([f"… and {more} more"] if more > 0 else [])]
    return "".join(f"\n    {line}" for line in lines)


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
