"""One notebook's side of nbresume: it opens runs when a cell starts and closes them when it ends."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._capture import Definitions, put_rng, rng_names, rng_state
from .._identity import Identity
from .._outputs import Files
from .._policy import Pace
from .._preemption import Interrupts
from .._resume import Continue, Decision, Found, Restore, Start, Stop, Supersede, decide
from .._store import RunFolder, Store
from .._transform import ITEM, RUNTIME, CellOptions, CellPlan, may_hold_boundary, peel_time, rewrite_cell
from .._types import Json, Word
from ..errors import BusyError, ChangedError, NbresumeError, OptionError, RefusedError, StoppedError
from ._attempt import Attempt
from ._frames import Way, describe
from ._functions import Functions, finder
from ._places import Places
from ._plan_text import plan_text
from ._reach import identify, reach
from ._runtime import Runtime
from ._scope import Scope


@dataclass(slots=True)
class _Left:
    """How an attempt in this very process left things."""

    identity: Identity
    was_live: bool


class Host:
    """State of the extension in one shell.

    Parameters
    ----------
    namespace : dict
        The notebook's globals.
    root : Path
        Where runs live unless a cell says otherwise; never moved by ``chdir``.
    tell : callable
        Shows a line to the person.
    on_change : callable, optional
        Told of a run whose card has to be shown anew.
    """

    def __init__(
        self,
        namespace: dict[str, Any],
        root: Path,
        tell: Callable[[str], None],
        on_change: Callable[[RunFolder], None] = lambda _run: None,
    ) -> None:
        self.namespace, self.tell, self.on_change = namespace, tell, on_change
        self.store = Store(root)
        self.places = Places(namespace)
        self.definitions = Definitions(namespace)
        self.attended: Callable[[], bool] = lambda: True
        self.runtime: Runtime | None = None
        self.attempt: Attempt | None = None
        self._plans: list[CellPlan] = []
        self._named: dict[str, str] = {}
        self._left: dict[str, _Left] = {}
        self._interrupts: Interrupts | None = None
        self._files: Files | None = None
        self._differences: tuple[str, ...] = ()
        self._identity: Identity | None = None

    # ------------------------------------------------------------------ before the cell

    def rewrite(
        self, tree: ast.Module, line: str, defaults: Mapping[str, Any], *, timed: bool
    ) -> tuple[ast.Module, int]:
        """Rewrite a cell and remember its plan; returns the tree and the plan's number.

        Raises
        ------
        OptionError, RefusedError
            Before anything runs.
        """
        options = CellOptions.from_line(line, defaults, timed=timed)
        holds_loop = finder(tree, self.namespace)
        tree = peel_time(tree, lambda statement: may_hold_boundary(statement, holds_loop))
        tree, plan = rewrite_cell(tree, options, holds_loop)
        self._plans.append(plan)
        return tree, len(self._plans) - 1

    def begin(self, number: int, cell_id: str = "") -> None:
        """Open the run of a cell whose execution starts.

        Parameters
        ----------
        number : int
            Of its plan.
        cell_id : str
            Tells it from other cells of the notebook; empty where nobody knows.

        Raises
        ------
        NbresumeError
            When the cell is refused, or a person has to choose; nothing has run.
        """
        plan = self._plans[number]
        if self.runtime is not None:
            raise RefusedError("one resumable cell can't run inside another", "Run them one after the other", 1)
        store = Store(self._root(plan.options))
        found = reach(plan, self.places)
        scope = Scope(plan, found, self.places, self.definitions)
        identity = identify(plan, found, self.places)
        if plan.options.plan:
            self.tell(plan_text(plan, identity, scope))
            self.namespace[RUNTIME] = _Nothing()
            return
        self._refuse_second_cell(plan.options.name, cell_id)
        scope.preflight()
        decision, run = self._decide(plan.options, identity, store)
        self._identity = identity
        self._open(decision, run, plan, scope, store)

    def _refuse_second_cell(self, name: str, cell_id: str) -> None:
        if cell_id and self._named.setdefault(name, cell_id) != cell_id:
            raise RefusedError(
                f"{name!r} names another cell of this notebook already",
                "Give this one another name; or restart the kernel",
                1,
            )

    def _root(self, options: CellOptions) -> Path:
        return Path(options.store).expanduser().absolute() if options.store else self.store.root

    def _decide(self, options: CellOptions, identity: Identity, store: Store) -> tuple[Decision, RunFolder | None]:
        trouble = store.unreadable(options.name)
        run = next((run for run in reversed(store.named(options.name)) if run.lineage().state != "superseded"), None)
        if trouble and run is None:
            raise StoppedError(f"{trouble}. Nothing was touched")
        if run is None:
            return Start(), None
        if run.is_alive():
            raise BusyError(
                f"{run.name} is running in another kernel. Stop that one first, or give this cell another name"
            )
        left = self._left.get(run.id)
        recorded = Identity.from_json(run.record["identity"])
        self._stop_when_missing(run, recorded, identity)
        differences = recorded.differences(identity, left=left.identity if left else None)
        self._differences = differences
        said = run.said()
        word: Word = "supersede" if said == "supersede" else options.on_restart
        if word == "supersede" and not said and not self.attended():
            raise OptionError(
                "--on-restart supersede in an unattended run would throw a run away each time. Use continue"
            )
        decision = decide(Found(run.id, run.lineage().state, differences, trouble), word)
        if isinstance(decision, Stop):
            raise _stopped(run, decision)
        if said:
            run.unsay()
        return decision, run

    def _stop_when_missing(self, run: RunFolder, recorded: Identity, now: Identity) -> None:
        """Stop where the same cell runs in a kernel in which the cells above it have not run yet."""
        if recorded.code.get("the cell") != now.code.get("the cell"):
            return
        missing = sorted(name for name in recorded.config if name not in self.places)
        missing += sorted(name for name in recorded.code if name not in now.code and name != "--vars")
        if missing:
            raise StoppedError(
                f"{run.name} stopped before anything ran: {', '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} not there. Run the cells above first, then this one again"
            )

    # ------------------------------------------------------------------ opening

    def _open(self, decision: Decision, run: RunFolder | None, plan: CellPlan, scope: Scope, store: Store) -> None:
        match decision:
            case Continue() | Restore() if run is not None:
                self._go_on(run, plan, scope, complete=isinstance(decision, Restore))
            case Supersede() if run is not None:
                self.tell(f"{run.name}: a new run; {run.id} is kept and marked superseded")
                new = self._launch(plan, scope, store, supersedes=run.id)
                run.note("superseded", len(run.lineage().attempts), by=new.id)
            case Start(after=after):
                if after:
                    self._tell_new(plan.options.name, after)
                self._launch(plan, scope, store, after=after)
            case _:
                raise AssertionError(decision)

    def _tell_new(self, name: str, after: str) -> None:
        lines = "".join(f"\n    {difference}" for difference in self._differences)
        self.tell(
            f"{name}: a new run, beside {after}, which is closed and kept"
            + (f"; what differs:{lines}" if lines else "")
        )

    def _launch(
        self, plan: CellPlan, scope: Scope, store: Store, *, supersedes: str = "", after: str = ""
    ) -> RunFolder:
        assert self._identity is not None  # noqa: S101  # begin() made it
        record: Json = {
            "identity": self._identity.to_json(),
            "declared": list(plan.options.declared),
            "rng": rng_state(),
            "supersedes": supersedes,
            "after": after,
        }
        run = store.create(plan.options.name, record)
        attempt = self._attempt(run, 1, plan, scope)
        run.note("launched", 1)
        self._run(attempt, None, setup=True)
        return run

    def _go_on(self, run: RunFolder, plan: CellPlan, scope: Scope, *, complete: bool) -> None:
        left = self._left.get(run.id)
        fresh = left is None or not left.was_live
        number = max((a.number for a in run.lineage().attempts), default=0) + (not complete)
        snapshot, rejected = run.latest()
        attempt = self._attempt(run, number, plan, scope)
        try:
            attempt.files.recover()
            for bad, why in rejected:
                run.note("rejected", number, snapshot=bad.ident, why=why)
                attempt.tell(
                    f"{run.name}: snapshot {bad.ident} can't be believed ({why}); going back to the one before it"
                )
            if snapshot is None:
                self._again(run, attempt, number)
                return
            way = attempt.back_to(snapshot, fresh=fresh)
            attempt.files.check()
            if complete:
                self.tell(f"{run.name}: already complete; its results are restored, no iteration runs")
            else:
                where = describe(snapshot.meta["cursor"])
                run.note("resumed", number, snapshot=snapshot.ident, where=where)
                self.tell(f"{run.name}: continued, attempt {number}, from {where}")
                self.tell(
                    f"    random streams put back: {rng_names(snapshot.meta['rng'])}; "
                    f"to start anew instead: %nbresume supersede {run.name}"
                )
                attempt.log.cut_back(int(snapshot.meta["log"]), run.path / "aside" / f"{number:04d}-log.txt")
            if not complete:
                attempt.files.undo()
            if fresh:
                attempt.files.set_aside(number)
                put_rng(run.record["rng"])
            self._run(attempt, way, setup=fresh, complete=complete)
        except BaseException:
            attempt.end()
            self.attempt = None
            raise

    def _again(self, run: RunFolder, attempt: Attempt, number: int) -> None:
        """Repeat a launch that died before its first snapshot, under its recorded random streams and files."""
        run.note("resumed", number, where="the start")
        self.tell(f"{run.name}: it was interrupted before its first snapshot; it starts again as attempt {number}")
        attempt.files.check()
        attempt.files.undo()
        put_rng(run.record["rng"])
        self._run(attempt, None, setup=True)

    def _attempt(self, run: RunFolder, number: int, plan: CellPlan, scope: Scope) -> Attempt:
        interrupts = Interrupts(self.stop, plainly=plan.unit.catches_interrupt)
        attempt = Attempt(
            run,
            number,
            run.take(),
            plan=plan,
            scope=scope,
            places=self.places,
            definitions=self.definitions,
            tell=self.tell,
            hold=interrupts.hold,
            let_go=interrupts.let_go,
        )
        if self._files is not None:
            attempt.files.inherit(self._files)
        self.attempt, self._interrupts, self._files = attempt, interrupts, attempt.files
        return attempt

    def _run(self, attempt: Attempt, way: Way | None, *, setup: bool, complete: bool = False) -> None:
        pace = Pace(attempt.plan.options.every)
        runtime = Runtime(attempt, pace, Functions(self.namespace), way=Way(()) if complete else way, setup=setup)
        runtime.restoring = complete
        self.runtime = runtime
        self.namespace[RUNTIME] = runtime
        attempt.start()
        assert self._interrupts is not None  # noqa: S101  # _attempt() made them
        self._interrupts.start()
        self.on_change(attempt.run)

    # ------------------------------------------------------------------ while it runs, and after

    def stop(self) -> None:
        """Ask the running cell to stop at its next boundary."""
        if self.runtime is not None:
            self.runtime.stop()

    def finish(self, error: BaseException | None, display: Json | None) -> Json:
        """Close the run of a cell whose execution ended.

        Parameters
        ----------
        error : BaseException or None
            What ended it, if it did not end well.
        display : dict or None
            What it displayed last, by MIME type.

        Returns
        -------
        dict
            What a restored run had displayed last, by MIME type.
        """
        runtime, attempt, interrupts = self.runtime, self.attempt, self._interrupts
        self.runtime = self.attempt = self._interrupts = None
        for name in (RUNTIME, ITEM):
            self.namespace.pop(name, None)
        if runtime is None or attempt is None:
            return {}
        try:
            if interrupts is not None:
                interrupts.stop()
            runtime.pace.stop()
            self._close(runtime, attempt, error, display)
        finally:
            attempt.end()
            self._remember(attempt, runtime)
            self.on_change(attempt.run)
        return attempt.display if runtime.restoring and error is None else {}

    def _close(self, runtime: Runtime, attempt: Attempt, error: BaseException | None, display: Json | None) -> None:
        if error is not None:
            attempt.run.note("interrupted", attempt.number, **_cause(error, runtime))
            return
        if not runtime.reached_end:  # a magic above the cell swallowed what ended it
            attempt.run.note("interrupted", attempt.number, cause="exception")
            return
        if runtime.restoring:
            return
        try:
            attempt.close(display=display)
        except NbresumeError as trouble:
            attempt.run.note("interrupted", attempt.number, cause="exception", error=str(trouble))
            self.tell(f"{attempt.run.name}: its end could not be saved: {trouble}")

    def _remember(self, attempt: Attempt, runtime: Runtime) -> None:
        now = identify(attempt.plan, reach(attempt.plan, self.places), self.places)
        self._left[attempt.run.id] = _Left(now, runtime.live or runtime.pending is not None or runtime.restoring)


class _Nothing:
    """The runtime under ``--plan``: everything is passed over."""

    live = setup = False

    def enters(self, _number: int, _depth: int) -> bool:
        """Enter nothing."""
        return False

    def again(self, _names: tuple[str, ...]) -> bool:
        """Repeat nothing."""
        return False

    def last(self, _value: Any) -> None:
        """Display nothing."""


def _cause(error: BaseException, runtime: Runtime) -> Json:
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
        return {"cause": "stop", "at_boundary": runtime.pending is error}
    return {"cause": "exception", "error": type(error).__name__}


def _stopped(run: RunFolder, decision: Stop) -> StoppedError:
    if not decision.differences:
        return StoppedError(
            f"{run.name} stopped before anything ran: {decision.why}. Choose --on-restart continue or supersede"
        )
    lines = "\n".join(f"    {difference}" for difference in decision.differences)
    return ChangedError(
        f"{run.name} stopped before anything ran: {decision.why}.\n{lines}\n"
        f"To go on with the same run, put these back and run the cell again. To start a new run and keep this one: "
        f"%nbresume supersede {run.name}, then run the cell again (or --on-restart supersede)",
        decision.differences,
    )


def default_root() -> Path:
    """Return where runs live when nobody says otherwise."""
    return Path(os.environ.get("NBRESUME_STORE") or ".nbresume").absolute()
