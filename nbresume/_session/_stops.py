"""Stops before anything ran: nothing was touched, and a person has to choose; what they say."""

from __future__ import annotations

from .._identity import Identity
from .._resume import Stop
from .._store import RunFolder
from ..errors import ChangedError, StoppedError
from ._counting import root_name
from ._places import Places
from ._reach import CELL, DECLARED_NAMES
from ._telling import changed_error


def stopped(run: RunFolder, decision: Stop) -> StoppedError:
    """Say what was decided, and the choices."""
    if not decision.differences:
        return StoppedError(
            f"{run.name} stopped before anything ran: {decision.why}. Choose --on-restart continue or supersede"
        )
    when = "before anything ran"
    return changed_error(run.name, decision.differences, why=decision.why, obstacle=decision.obstacle, when=when)


def would_overwrite(run: RunFolder, names: tuple[str, ...]) -> ChangedError:
    """Say what was worked on in this kernel since the cell ended, and would be lost."""
    return ChangedError(
        f"{run.name} stopped before anything ran: {', '.join(names)} changed since the cell ended, and would be "
        "overwritten with what the run holds. Keep what you need under another name; then, to lay the run's values "
        f"over it: %nbresume continue {run.name}, and run the cell again (or --on-restart continue)",
        names,
    )


def lies_elsewhere(run: RunFolder, now: Identity) -> str:
    """Tell of an interrupted run of the same cell in another store that is another run, with other inputs.

    Raises
    ------
    StoppedError
        When it is the same run: starting afresh here would lose it in silence.
    """
    store = run.path.parent
    differences = Identity.from_json(run.identity()).differences(now)
    if differences:
        return f"{run.name}: another run of this cell, {run.id}, is interrupted in {store} ({differences[0]})"
    where = dict(run.lineage().last_snapshot).get("where") or "before its first snapshot"
    raise StoppedError(
        f"{run.name} stopped before anything ran: this very run is interrupted in another store, {store} ({where}).\n"
        f"To continue it: NBRESUME_STORE={store} (or --store {store}). To start anew here: nbresume abandon {run.id} "
        f"--store {store}, or NBRESUME_INDEX=0"
    )


def stop_when_missing(run: RunFolder, recorded: Identity, now: Identity, places: Places) -> None:
    """Stop where the same cell runs in a kernel in which the cells above it have not run yet.

    Raises
    ------
    StoppedError
        Naming what is missing.
    """
    if recorded.code.get(CELL) != now.code.get(CELL):
        return
    missing = missing_names(recorded, now, places)
    if missing:
        raise StoppedError(
            f"{run.name} stopped before anything ran: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there. Run the cells above first, then this one again"
        )


def missing_names(recorded: Identity, now: Identity, places: Places) -> tuple[str, ...]:
    """Name what a run's cell reads that is not there, because the cells that make it have not run."""
    gone = recorded.code.keys() - now.code.keys() - {DECLARED_NAMES}
    inputs = sorted(name for name in recorded.config if name not in places)
    return (*inputs, *sorted(name for name in gone if root_name(name) not in places))
