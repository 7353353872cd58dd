"""One notebook's side of nbresume: it opens runs when a cell starts and closes them when it ends."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._capture import Definitions, put_rng, rng_names, rng_state
from .._identity import Identity
from .._outputs import Files
from .._policy import Pace
from .._preemption import Interrupts
from .._resume import Continue, Decision, Restore, Start, Supersede
from .._store import Keys, RunFolder, Store, enter, fleeting
from .._transform import ITEM, RUNTIME, CellOptions, CellPlan, may_hold_boundary, peel_time, rewrite_cell
from .._types import Json
from ..errors import NbresumeError, RefusedError, StoreError
from ._attempt import Attempt
from ._deciding import Chooser, Chosen
from ._ending import end, give_up, tell_completed
from ._frames import Way, describe, loops_of
from ._functions import Functions, finder
from ._left import Left, state_of
from ._makers import makers
from ._nothing import Nothing
from ._places import Places
from ._plan_text import plan_text
from ._post import Post
from ._reach import Reached, identify, reach
from ._returning import Held
from ._runtime import Runtime
from ._scope import Scope
from ._series import series
from ._surroundings import surroundings
from ._telling import continued, shown


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
        self.is_store_given = False
        self._start = Path.cwd()
        self.places = Places(namespace)
        self.definitions = Definitions(namespace)
        self.attended: Callable[[], bool] = lambda: True
        self.history: Callable[[], Sequence[str]] = lambda: ()
        self.runtime: Runtime | None = None
        self.attempt: Attempt | None = None
        self._plans: list[CellPlan] = []
        self._named: dict[str, str] = {}
        self._left: dict[str, Left] = {}
        self._fleeting: set[Path] = set()
        self._interrupts: Interrupts | None = None
        self._post: Post | None = None
        self._files: Files | None = None
        self._plotted: tuple[str, tuple[str, ...]] = ("", ())
        self._chosen = Chosen(Start())
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
        identity = self._identify(plan, found)
        if plan.options.plan:
            self.tell(plan_text(plan, identity, scope))
            self.namespace[RUNTIME] = Nothing()
            return
        self._refuse_second_cell(plan.options.name, cell_id)
        scope.preflight()
        self._identity = identity
        try:
            with store.opening(plan.options.name):
                self._choose(plan, identity, scope, store)
        except OSError as error:
            if isinstance(error, NbresumeError):
                raise
            raise StoreError(f"no run can be opened in {store.root}: {error}", str(store.root)) from error
        self._tell_where(store)

    def _choose(self, plan: CellPlan, identity: Identity, scope: Scope, store: Store) -> None:
        chooser = Chooser(self.places, self.attended, self.tell, is_store_given=self.is_store_given)
        self._chosen = chooser.choose(plan, identity, store, self._left)
        run = self._chosen.run
        self._open(self._chosen.decision, run, plan, scope, store)
        if run is not None:
            run.unsay()  # followed once, and not before what it asked for is on the disk

    def _tell_where(self, store: Store) -> None:
        """Say once if a store is lost with its machine."""
        how = fleeting(store.root)
        if how and store.root not in self._fleeting:
            self._fleeting.add(store.root)
            self.tell(f"{store.root} lies {how}. To outlive that, runs need another place: --store PATH")

    def _identify(self, plan: CellPlan, found: Reached) -> Identity:
        identity = identify(plan, found, self.places)
        made = makers(sorted(found.opaque), self.history(), self.places)
        return replace(identity, surroundings=surroundings(self._start), makers=made)

    def _refuse_second_cell(self, name: str, cell_id: str) -> None:
        if cell_id and self._named.setdefault(name, cell_id) != cell_id:
            raise RefusedError(
                f"{name!r} names another cell of this notebook already",
                "Give this one another name; or restart the kernel",
                1,
            )

    def _root(self, options: CellOptions) -> Path:
        return self._start / Path(options.store).expanduser() if options.store else self.store.root

    # ------------------------------------------------------------------ opening

    def _open(self, decision: Decision, run: RunFolder | None, plan: CellPlan, scope: Scope, store: Store) -> None:
        match decision:
            case Continue() | Restore() if run is not None:
                self._go_on(run, plan, scope)
            case Supersede() if run is not None:
                self.tell(f"{run.name}: a new run; {run.id} is kept and marked superseded")
                because = [self._chosen.word, *self._chosen.differences]
                new = self._launch(plan, scope, store, supersedes=run.id, because=because)
                last = max((one.number for one in run.lineage().attempts), default=1)
                run.note("superseded", last, by=new.id, because=because)
            case Start(after=after):
                if after:
                    self._tell_new(plan.options.name, after)
                self._launch(plan, scope, store, after=after)
            case _:
                raise AssertionError(decision)

    def _tell_new(self, name: str, after: str) -> None:
        lines = shown(self._chosen.differences)
        self.tell(
            f"{name}: a new run, beside {after}, which is closed and kept"
            + (f"; what differs:{lines}" if lines else "")
        )

    def _launch(self, plan: CellPlan, scope: Scope, store: Store, **kinship: Any) -> RunFolder:
        assert self._identity is not None  # noqa: S101  # begin() made it
        record: Json = {
            "identity": self._identity.to_json(),
            "declared": list(plan.options.declared),
            "rng": rng_state(),
            "keep_every": plan.options.keep.every,
            "plan": plan.unit.statements,
            **kinship,
        }
        run = store.create(plan.options.name, record)
        trouble = enter(store.root)
        if trouble:
            self.tell(f"{run.name}: this store could not be entered in the index of stores: {trouble}")
        attempt = self._attempt(run, 1, plan, scope)
        try:
            run.note("launched", 1)
            self._run(attempt, None, setup=True)
        except BaseException as error:
            self._give_up(attempt, error)
            raise
        return run

    def _go_on(self, run: RunFolder, plan: CellPlan, scope: Scope) -> None:
        left = self._left.get(run.id)
        fresh = left is None or not left.was_live
        held = Held()
        snapshot, rejected = run.latest(held.take)
        # The snapshot decides, not the journal: a death may have come before the line that says so, and a completed
        # run whose last snapshot is damaged goes on from the one before.
        complete = snapshot is not None and bool(snapshot.meta.get("end"))
        lineage = run.lineage()
        number = max((a.number for a in lineage.attempts), default=0) + (not complete)
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
            attempt.changes += self._chosen.changes
            if fresh and self._chosen.other_entry:
                names = ", ".join(self._chosen.other_entry)
                self.tell(f"{run.name}: {names}: other content than at the launch; the run goes on with its own")
            way = attempt.back_to(snapshot, held, fresh=fresh, declared=self._declared())
            attempt.files.check()
            if complete:
                if lineage.state != "completed":
                    tell_completed(run, snapshot.attempt, snapshot.meta)
                self.tell(f"{run.name}: already complete; its results are restored, no iteration runs")
            else:
                where = describe(snapshot.meta["cursor"])
                cursor, rng = loops_of(snapshot.meta["cursor"]), rng_names(snapshot.meta["rng"])
                log = int(snapshot.meta["log"])
                run.note("resumed", number, snapshot=snapshot.ident, where=where, cursor=cursor, rng=rng, log=log)
                cut = attempt.cut_back(log)
                self.tell(continued(run.name, number, where, rng, cut))
            if fresh:
                attempt.files.set_aside(number)
                put_rng(run.record["rng"])
            self._run(attempt, way, setup=fresh, complete=complete)
        except BaseException as error:
            self._give_up(attempt, error)
            raise

    def _declared(self) -> bool:
        return isinstance(self._chosen.decision, Continue) and self._chosen.decision.declared

    def _give_up(self, attempt: Attempt, error: BaseException) -> None:
        self.runtime = self.attempt = None
        self.namespace.pop(RUNTIME, None)
        if self._interrupts is not None:
            self._interrupts.stop()
        self._serve_no_more()
        give_up(attempt, error)

    def _again(self, run: RunFolder, attempt: Attempt, number: int) -> None:
        """Repeat a launch that died before its first snapshot, under its recorded random streams and files."""
        run.note("resumed", number, where="the start", log=0)
        attempt.files.check()
        cut = attempt.cut_back(0)
        self.tell(continued(run.name, number, "the start: it had no snapshot yet", rng_names(run.record["rng"]), cut))
        put_rng(run.record["rng"])
        self._run(attempt, None, setup=True)

    def _attempt(self, run: RunFolder, number: int, plan: CellPlan, scope: Scope) -> Attempt:
        interrupts = Interrupts(self.stop, plainly=plan.unit.catches_interrupt)
        attempt = Attempt(
            run,
            number,
            run.take(number),
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
        self._plotted = run.id, (*plan.options.declared, *sorted(scope.bindable - set(plan.options.declared)))
        return attempt

    def _run(self, attempt: Attempt, way: Way | None, *, setup: bool, complete: bool = False) -> None:
        options = attempt.plan.options
        pace = Pace(options.every, budget=options.budget, max_wait=options.max_wait)
        runtime = Runtime(attempt, pace, Functions(self.namespace), way=Way(()) if complete else way, setup=setup)
        runtime.restoring = complete
        self.runtime = runtime
        self.namespace[RUNTIME] = runtime
        if not complete and (warning := Keys.find().warning):
            attempt.warn(warning)
        attempt.start()
        assert self._interrupts is not None  # noqa: S101  # _attempt() made them
        self._interrupts.start()
        self._post = post = Post(runtime)
        post.start()
        runtime.settled = post.settle
        self.on_change(attempt.run)

    # ------------------------------------------------------------------ while it runs, and after

    def series(self, run: RunFolder) -> dict[str, list[float]]:
        """Return the numbers that the cell of a run has collected, where it was the last one here; from any thread."""
        ident, names = self._plotted
        return series(names, self.namespace) if run.id == ident else {}

    def left_by(self, run: str) -> Left | None:
        """Return what an attempt of a run in this process left behind."""
        return self._left.get(run)

    def stop(self) -> None:
        """Ask the running cell to stop at its next boundary."""
        if self._post is not None:
            self._post.interrupted()

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
            self._serve_no_more()
            runtime.pace.stop()
            end(runtime, attempt, error, display, "SIGINT" if interrupts is not None and interrupts.asked else "")
        finally:
            attempt.end()
            self._remember(attempt, runtime)
            self.on_change(attempt.run)
        return attempt.display if runtime.restoring and error is None else {}

    def _serve_no_more(self) -> None:
        post, self._post = self._post, None
        if post is not None:
            post.stop()

    def _remember(self, attempt: Attempt, runtime: Runtime) -> None:
        """Remember what an attempt leaves in this process; one that stopped on the way back has changed nothing."""
        if runtime.was_live or (runtime.restoring and runtime.pending is None):
            now = identify(attempt.plan, reach(attempt.plan, self.places), self.places)
            self._left[attempt.run.id] = Left(now, was_live=True, state=state_of(attempt.scope.values()))


def default_root() -> Path:
    """Return where runs live when nobody says otherwise."""
    return Path(os.environ.get("NBRESUME_STORE") or ".nbresume").absolute()
