"""What running a cell would do, told before it is run: its recorded code beside what the kernel holds now.

Nothing runs and nothing is written. In a kernel in which the cells above have not run yet, only what does not hang on
their names can be compared: the Python and the versions of the packages that the run had reached.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass

from .._identity import Identity
from .._resume import Continue, Found, Restore, Start, Supersede, decide
from .._store import RunFolder
from .._transform import CellOptions, rewrite_cell
from ._counting import root_name
from ._functions import finder
from ._left import Left
from ._places import Places
from ._reach import CELL, identify, reach
from ._stops import missing_names
from ._surroundings import version_of


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is known before a cell is run again.

    Attributes
    ----------
    missing : tuple of str
        Names that the run needs and the kernel does not hold yet.
    differences : tuple of str
        What differs from its identity, as far as it can be compared.
    is_whole : bool
        Whether nothing else can differ: all that identifies the run has been compared.
    """

    missing: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    is_whole: bool = False


def prospect(run: RunFolder, places: Places, left: Left | None = None) -> Prospect:
    """Compare what identifies a run with what the kernel holds now.

    Parameters
    ----------
    run : RunFolder
        The run.
    places : Places
        The notebook's names.
    left : Left, optional
        What an attempt in this process left behind.
    """
    recorded = Identity.from_json(run.identity())
    missing = _seen_missing(recorded, places)
    if missing:
        return Prospect(missing, _other_versions(recorded))
    try:
        now = _identity_now(run, recorded, places)
    except Exception:  # noqa: BLE001  # a function that is not there, an object that can't be looked at: the cell says it
        return Prospect(_functions_missing(recorded, places), _other_versions(recorded))
    missing = missing_names(recorded, now, places)
    if missing:
        return Prospect(missing, _other_versions(recorded))
    return Prospect((), recorded.differences(now, left=left.identity if left is not None else None), is_whole=True)


def _seen_missing(recorded: Identity, places: Places) -> tuple[str, ...]:
    """Name what is plainly not there: where a cell has not run yet, no large input of another has to be looked at."""
    found = [name for name in recorded.config if name not in places]
    if found and not any(key.startswith("module ") for key in recorded.code):
        found += _functions_missing(recorded, places)
    return tuple(dict.fromkeys(sorted(found)))


def _functions_missing(recorded: Identity, places: Places) -> tuple[str, ...]:
    """Name the functions and classes that a run has reached and that are not there."""
    keys = [key for key in recorded.code if key.endswith("()") or key.startswith("class ")]
    return tuple(dict.fromkeys(sorted(root_name(key) for key in keys if root_name(key) not in places)))


def _identity_now(run: RunFolder, recorded: Identity, places: Places) -> Identity:
    """Return what the run's own cell would be identified by, if it were run now."""
    declared = run.record.get("declared", ())
    options = CellOptions.from_line(f"{run.name} --vars {','.join(declared)}" if declared else run.name)
    tree = ast.parse(recorded.code[CELL].text)
    _, plan = rewrite_cell(tree, options, finder(tree, places.namespace))
    return identify(plan, reach(plan, places), places)


def _other_versions(recorded: Identity) -> tuple[str, ...]:
    """Tell which versions differ of those that can be known without a name of the notebook."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    now = {name: python if name == "python" else version_of(name) for name in recorded.environment}
    return tuple(
        f"{name}: {part.text} -> {now[name] or 'not installed'}"
        for name, part in recorded.environment.items()
        if part.text != now[name]
    )


def prospect_text(run: RunFolder, places: Places, left: Left | None = None) -> str:
    """Tell what running the cell of a run would do now."""
    lineage, said = run.lineage(), run.said()
    if lineage.state == "running":
        return f"{run.name} is running: there is nothing to decide before it has stopped."
    found = prospect(run, places, left)
    told = [f"  {line}" for line in found.differences]
    if found.missing:
        are = "is" if len(found.missing) == 1 else "are"
        head = f"Running its cell now would stop before anything runs: {', '.join(found.missing)} {are} not there."
        known = ["What differs already:", *told] if told else ["No other version of Python or of a package so far."]
        return "\n".join([head, "Run the cells above first.", *known])
    if not found.is_whole:
        head = "What its cell reads can't all be looked at now. Running it compares, before anything runs."
        return "\n".join([head, *(["What differs already:", *told] if told else [])])
    decision = decide(Found(run.id, lineage.state, found.differences), "supersede" if said == "supersede" else "ask")
    match decision:
        case Supersede():
            head = f"Running its cell now starts a new run, as you said. {run.id} is kept and marked superseded."
        case Continue():
            where = dict(lineage.last_snapshot).get("where") or "the start"
            head = f"Running its cell now continues it, attempt {len(lineage.attempts) + 1}, from {where}."
        case Restore():
            head = "Running its cell now lays its results over what is there; no iteration runs."
        case Start():
            head = f"Running its cell now starts a new run; {run.id} is {lineage.state}, and kept."
        case _:
            head = (
                "Running its cell now stops before anything runs, with the choices, if what differs has been reached."
            )
    return "\n".join([head, *(["What differs:", *told] if told else ["Nothing that identifies it differs."])])
