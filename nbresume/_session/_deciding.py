"""What running a cell does with the run that is there: the first gate, before anything of the cell runs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .._identity import Identity
from .._lineage import DECLARED, NOT_REACHED, OTHER_HARDWARE
from .._resume import Continue, Decision, Found, Restore, Start, Stop, decide
from .._store import RunFolder, Store, check_signatures, elsewhere, trust_run
from .._transform import CellOptions, CellPlan, UnitPlan
from .._types import Json, Word
from ..errors import OptionError, StoppedError
from ._counting import counted
from ._declaring import Standing, obstacle, other_way, out_of_reach
from ._functions import Functions
from ._left import Left
from ._places import Places
from ._reach import CELL, reach
from ._stops import lies_elsewhere, stop_when_missing, stopped, would_overwrite

_DIFF = 400
"""Lines of a difference that the journal keeps."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is done, and with which run.

    Attributes
    ----------
    decision : Decision
        Anything but a stop, which is an error.
    run : RunFolder or None
        The run found.
    differences : tuple of str
        What differs, in readable lines.
    changes : list of dict
        Facts for the journal of an attempt that is not plainly the same run.
    other_entry : tuple of str
        Declared names that the cell finds with other content of the same schema.
    word : str
        How the person said it, where they did.
    """

    decision: Decision
    run: RunFolder | None = None
    differences: tuple[str, ...] = ()
    changes: list[Json] = field(default_factory=list)
    other_entry: tuple[str, ...] = ()
    word: str = ""


class Chooser:
    """Finds the run of a cell, compares, and decides.

    Parameters
    ----------
    places : Places
        The notebook's names.
    attended : callable
        Whether somebody can answer.
    tell : callable
        Shows a line to the person.
    is_store_given : bool
        Whether somebody said where runs live; else other stores are looked into.
    """

    def __init__(
        self, places: Places, attended: Callable[[], bool], tell: Callable[[str], None], *, is_store_given: bool
    ) -> None:
        self.places, self.attended, self.tell, self.is_store_given = places, attended, tell, is_store_given

    def choose(self, plan: CellPlan, identity: Identity, store: Store, left: Mapping[str, Left]) -> Chosen:
        """Decide what running the cell does.

        Parameters
        ----------
        plan : CellPlan
            The cell.
        identity : Identity
            What it is now.
        store : Store
            Where its runs live.
        left : mapping of str to Left
            What an attempt in this process left behind, by run.

        Raises
        ------
        StoppedError
            When nobody may go on, or a person has to choose; nothing has run.
        """
        options = plan.options
        trouble = store.unreadable(options.name)
        run = next((run for run in reversed(store.named(options.name)) if run.lineage().state != "superseded"), None)
        if trouble and run is None:
            raise StoppedError(f"{trouble}. Nothing was touched")
        if run is None:
            if not self.is_store_given:
                self._look_elsewhere(options, identity, store)
            return Chosen(Start())
        run.refuse_while_alive()
        return self._of_run(run, _Asked(plan, identity, left.get(run.id), run.said(), trouble))

    def _of_run(self, run: RunFolder, asked: _Asked) -> Chosen:
        recorded = Identity.from_json(run.identity())
        stop_when_missing(run, recorded, asked.identity, self.places)
        whole = recorded.differences(asked.identity, left=asked.left)
        word, declares = self._word(asked), asked.said == "declare"
        state = run.lineage().state
        if word != "supersede" and state == "interrupted":
            self._trust(run, asked)
        differences, hindered = whole, ""
        if whole and state == "interrupted" and word in ("ask", "continue"):
            differences, hindered = self._counting(run, recorded, asked)
        found = Found(run.id, state, differences, asked.trouble, hindered)
        decision = decide(found, word, declares=declares)
        if isinstance(decision, Stop):
            raise stopped(run, decision)
        if isinstance(decision, Restore):
            self._trust(run, asked)
        if declares and not self.attended():
            raise OptionError(
                f"{run.name} was declared the same run, and nobody is here who could have said so. Run the cell in a "
                "front end"
            )
        if isinstance(decision, (Continue, Restore)):
            self._keep_what_was_worked_on(run, asked)
        changes = _changes(decision, recorded, asked, whole, differences)
        by = "%nbresume supersede, or a click" if asked.said else "--on-restart supersede"
        return Chosen(decision, run, whole, changes, recorded.other_entry(asked.identity), by)

    def _trust(self, run: RunFolder, asked: _Asked) -> None:
        """Stop before anything of a run is believed that we have not signed, unless a person trusts it."""
        doubtful = trust_run(run) if asked.plan.options.trust else []
        for what in doubtful:
            attempt = max((one.number for one in run.lineage().attempts), default=1)
            run.note("warned", attempt, text=f"trusted by --trust: {what}")
            self.tell(f"{run.name}: trusted by --trust, and loaded: {what}")
        check_signatures(run)

    def _counting(self, run: RunFolder, recorded: Identity, asked: _Asked) -> tuple[tuple[str, ...], str]:
        """Tell what differs in what has run, and why nobody can declare that to be nothing."""
        snapshot, _ = run.latest()
        if snapshot is None:
            return recorded.differences(asked.identity, left=asked.left), "it has no snapshot to go on from"
        units = self._units(snapshot.meta["cursor"])
        standing = Standing(asked.plan, units, snapshot.meta, self.places.namespace, asked.is_fresh)
        old, now = counted(recorded, asked.identity, standing.cursor, self.places, asked.plan.options.declared)
        found = old.differences(now, left=asked.left)
        lost = out_of_reach(standing)
        found += tuple(f"{name}: the changed code needs it, and the snapshot does not hold it" for name in lost)
        if not found and (other := other_way(standing)):
            found = (other,)
        if not found:
            return (), ""
        own = asked.identity.but_left(recorded, asked.left)
        return found, obstacle(standing, recorded, own, reach(asked.plan, self.places))

    def _units(self, cursor: list[Json]) -> dict[str, UnitPlan]:
        functions = Functions(self.places.namespace)
        names = {frame.get("label", "") for frame in cursor if frame["kind"] == "call"}
        found = {name: functions.of(self.places.namespace.get(name)) for name in names}
        return {name: one.plan for name, one in found.items() if one is not None}

    def _word(self, asked: _Asked) -> Word:
        options = asked.plan.options
        if options.on_restart == "supersede" and asked.said != "supersede" and not self.attended():
            raise OptionError(
                "--on-restart supersede in an unattended run would throw a run away each time. Use continue"
            )
        return "supersede" if asked.said == "supersede" else options.on_restart

    def _keep_what_was_worked_on(self, run: RunFolder, asked: _Asked) -> None:
        """Stop before a result that was worked on in this kernel since is overwritten, where somebody can answer."""
        options = asked.plan.options
        worked_on = asked.here.changed(self.places, options.declared) if asked.here is not None else ()
        if worked_on and (asked.said or options.on_restart) == "ask" and self.attended():
            raise would_overwrite(run, worked_on)
        if worked_on:
            self.tell(f"{run.name}: changed since the cell ended, now the run's again: {', '.join(worked_on)}")

    def _look_elsewhere(self, options: CellOptions, identity: Identity, store: Store) -> None:
        """Look for the run in the user's other stores, where nobody said which one is meant."""
        if options.store or options.on_restart == "supersede":
            return
        cell = identity.code[CELL]

        def is_of_this_cell(run: RunFolder) -> bool:
            return Identity.from_json(run.identity()).code.get(CELL) == cell

        found = elsewhere(options.name, store.root, is_of_this_cell)
        if found.trouble:
            self.tell(f"{options.name}: the index of stores could not be looked at: {found.trouble}")
        for run in found.runs:
            self.tell(lies_elsewhere(run, identity))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A cell that asks what to do."""

    plan: CellPlan
    identity: Identity
    here: Left | None
    said: str
    trouble: str

    @property
    def left(self) -> Identity | None:
        """What an attempt in this process left behind."""
        return self.here.identity if self.here is not None else None

    @property
    def is_fresh(self) -> bool:
        """Whether the set-up runs again on a resume: the cell's objects don't live in this process."""
        return self.here is None or not self.here.was_live


def _changes(
    decision: Decision, old: Identity, asked: _Asked, whole: tuple[str, ...], counting: tuple[str, ...]
) -> list[Json]:
    """Return what the journal has to say of an attempt that goes on with a change."""
    if not isinstance(decision, Continue):
        return []
    found: list[Json] = []
    now = asked.identity.but_left(old, asked.left)
    if whole:
        how = DECLARED if counting else NOT_REACHED
        found.append({"how": how, "differences": list(whole), "diff": code_diff(old, now), "identity": now.to_json()})
    hardware = old.other_hardware(now)
    if hardware:
        found.append({"how": OTHER_HARDWARE, "differences": list(hardware)})
    return found


def code_diff(old: Identity, now: Identity) -> str:
    """Return the difference of all code whose text is known, as ``diff -u`` shows it."""
    lines: list[str] = []
    for name in dict.fromkeys([*old.code, *now.code]):
        before, after = old.code.get(name), now.code.get(name)
        if before is None or after is None or before.digest != after.digest:
            old_lines, new_lines = (part.text.splitlines() if part is not None else [] for part in (before, after))
            lines += difflib.unified_diff(old_lines, new_lines, name, name, lineterm="", n=2)
    return "\n".join(lines[:_DIFF])
