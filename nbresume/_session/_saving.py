"""What one process does of a run, as far as it saves: its files and output, its snapshots, what it tells."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from .._capture import (
    Definitions,
    content_digest,
    rng_state,
    unsaveable,
)
from .._outputs import Excess, Files, OutputLog
from .._store import Claim, RunFolder, signer
from .._transform import CellPlan, UnitPlan
from .._types import Json
from ..errors import RefusedError, StoreError
from ._commits import Commits
from ._data import DataGate
from ._frames import Frame, describe, loops_of
from ._guard import Guard
from ._iterables import Iteration
from ._places import Places
from ._scope import Scope
from ._selection import Selection
from ._texts import sources_of, texts_read


class Saving:
    """One attempt of a run, as far as it saves: its files, its output, its snapshots.

    Parameters
    ----------
    run : RunFolder
        The run on disk.
    number : int
        Counted from 1.
    claim : Claim
        The right to write it, held until ``end``.
    plan, scope, places, definitions
        The cell and its notebook.
    tell : callable
        Shows a line to the person.

    Attributes
    ----------
    cut : list of Excess
        What was cut from files, or put away, when the run went on.
    """

    def __init__(  # noqa: PLR0913  # the one place where all come together
        self,
        run: RunFolder,
        number: int,
        claim: Claim,
        *,
        plan: CellPlan,
        scope: Scope,
        places: Places,
        definitions: Definitions,
        tell: Callable[[str], None],
        hold: Callable[[], None] = lambda: None,
        let_go: Callable[[], None] = lambda: None,
    ) -> None:
        self.run, self.number, self.plan = run, number, plan
        self.scope, self.places, self.definitions = scope, places, definitions
        self.files = Files(
            run.path,
            run.path.parent,
            places.namespace,
            sources=sources_of(plan, scope.reached, places),
            values=lambda: texts_read(scope),
            warn=self.warn,
            told=self._tell_cut,
            sign=signer(run.id),
        )
        self.log = OutputLog(run.path / "log.txt", number)
        self.cut: list[Excess] = []
        self.data = DataGate()
        self.claim, self._tell = claim, tell
        self.commits = Commits(run, number, claim, plan.options.keep, hold=hold, let_go=let_go)
        self.commits.writer.keep_free = plan.options.keep_free
        self._seq = self.commits.next_seq
        self._told: set[str] = set()
        self._unnoted: list[Json] = []
        self._active = self._slept = 0.0
        self._since = time.monotonic()

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to follow files and output."""
        self.files.start(self._seq)
        self.log.start()

    def end(self) -> None:
        """Follow nothing any more and let go of the run."""
        try:
            self.commits.wait()
            self.files.stop()
            self.log.stop()
            if not self.claim.lost:
                self.files.recover()
        finally:
            self.claim.leave()

    def warn(self, text: str, **facts: bool) -> None:
        """Say a warning, and note it while the run is ours; with the next one, where the disk takes nothing now."""
        self.tell(f"{self.run.name}: {text}")
        self._unnoted.append({"text": text, **facts})
        with contextlib.suppress(StoreError):
            while self._unnoted and self.claim.holds():
                self.run.note("warned", self.number, **self._unnoted[0])
                del self._unnoted[0]

    def tell(self, text: str) -> None:
        """Show a line that does not belong to the cell's own output."""
        with self.log.quiet():
            self._tell(text)

    # ------------------------------------------------------------------ how long it has worked

    def active(self) -> float:
        """Return the seconds that the run has worked, in all attempts that led here."""
        return self._active + time.monotonic() - self._since - self._slept

    def slept(self, seconds: float) -> None:
        """Learn that this process stood still for so long, as a stopped one does."""
        self._slept += seconds

    # ------------------------------------------------------------------ snapshots

    def snapshot(
        self,
        stack: list[Frame],
        units: Mapping[str, UnitPlan],
        guards: Mapping[int, Guard],
        advanced: Mapping[int, Iteration],
        *,
        behind: bool,
        told: Json,
    ) -> bool:
        """Save the state at a boundary.

        Parameters
        ----------
        stack, units, guards, advanced
            Where the run stands.
        behind : bool
            Whether the loop may go on before the snapshot is committed.
        told : dict
            What else the journal says of it.

        Returns
        -------
        bool
            Whether a commit is in flight.

        Raises
        ------
        RefusedError
            When what the loop carries can't be saved.
        StoreError
            When the disk refuses, or has refused the commit before this one.
        """
        began = time.perf_counter()
        rng = rng_state()
        self.settle()
        self.claim.check()
        self._check_replays(stack, guards, advanced)
        selection = self.scope.select(stack, units, guards)
        _, in_flight = self.commit(stack, selection, rng, began, behind=behind, told=told)
        self._announce(selection)
        return in_flight

    def settle(self) -> bool:
        """Wait for the commit in flight, and draw the consequences; returns whether one has been done.

        Raises
        ------
        StoreError, BusyError
            What it ended with.
        """
        self.commits.wait()
        trouble, self.commits.trouble = self.commits.trouble, ""
        if trouble:
            self.warn(trouble)
        if kept := self.commits.settle():
            self.files.committed(kept)
        return bool(kept)

    def live_digest(self) -> str:
        """Digest what the run saves as it is now; empty where it can't be."""
        found = []
        for name, value in self.scope.values().items():
            if name not in self.plan.unit.with_targets:
                try:
                    found.append(content_digest(value, definitions=self.definitions)[0])
                except Exception:  # noqa: BLE001  # what can't be saved is not restored over
                    found.append("")
        return " ".join(found)

    def _check_replays(
        self, stack: list[Frame], guards: Mapping[int, Guard], advanced: Mapping[int, Iteration]
    ) -> None:
        active = {id(frame.iteration): frame for frame in stack if frame.iteration is not None and not frame.done}
        for key, frame in active.items():
            if key in guards:
                guards[key].check(frame.label)
        for iteration in advanced.values():
            moved = iteration.replay is not None and iteration.replay.delivered > 0
            if moved and id(iteration) not in active and self.scope.needs_iterator(iteration, stack):
                raise RefusedError(
                    "an iterator that can't be saved is needed again after a loop has taken items from it",
                    "Make a list of it first, or make it anew before each loop",
                )

    def commit(
        self,
        stack: list[Frame],
        selection: Selection,
        rng: Json,
        began: float,
        *,
        behind: bool = False,
        told: Json | None = None,
        **more: Any,
    ) -> tuple[Json, bool]:
        """Stage a snapshot and commit it, or leave that to go on; returns what it tells of itself, and which it was."""
        cursor, files = [frame.cursor() for frame in stack], self.files.state()
        meta: Json = {
            "run": self.run.id,
            "attempt": self.number,
            "seq": self._seq,
            "cursor": cursor,
            "saved": list(selection.saved),
            "bindable": sorted(self.scope.bindable),
            "data": self.data.known,
            "sizes": {name: self._size(name) for name in selection.saved},
            "unsaved": list(selection.unsaved),
            "inputs": selection.inputs,
            "gone": list(selection.gone),
            "rng": rng,
            "files": self.files.portable(files),
            "readers": self.files.reader_positions(),
            "log": self.log.length(),
            "bars": self.scope.bars(),
            "active": self.active(),
            **more,
        }
        found, writer = selection.captured, self.commits.writer
        path = self.run.snapshot_path(self.number, self._seq)
        staged = writer.stage(path, meta, found.stream, found.tables, found.blocks, copy=behind)
        self.files.staged(files, self._seq)
        self._seq += 1
        where = "the end" if meta.get("end") else describe(cursor)
        facts: Json = {"where": where, "loops": loops_of(cursor), "sizes": meta["sizes"]}
        facts |= {"active": round(meta["active"], 3), **(told or {})}
        if staged.is_copied:
            self.commits.behind(staged, facts, began)
        else:
            self.commits.now(staged, facts, began, is_last="end" in meta)
            if "end" in meta:
                self.settle()
        return meta, "end" not in meta

    def _size(self, name: str) -> int:
        """Tell about how large a variable is: exact for arrays, and without what it refers to for others."""
        if name not in self.places:
            return 0
        value, pandas = self.places[name], sys.modules.get("pandas")
        if pandas is not None and isinstance(value, pandas.DataFrame):
            return int(value.memory_usage().sum())  # its own __sizeof__ looks at every text
        size = getattr(value, "nbytes", None)
        return size if isinstance(size, int) else sys.getsizeof(value, 0)

    def _announce(self, selection: Selection) -> None:
        """Say which names are saved beside the declared ones: what the cell can bind at once, others as they join."""
        declared = self.plan.options.declared
        names = {*selection.saved, *(self.scope.bindable if not self._told else ())} - set(declared) - self._told
        self._told |= names | {""}
        why = {name: self.scope.joined.get(name, "") for name in sorted(names - set(selection.unsaved))}
        if why:
            self.tell(f"{self.run.name}: also saving " + ", ".join(f"{n} ({w})" if w else n for n, w in why.items()))

    def readable(self, name: str) -> Any:
        """Return the value of a name that the run saves or checks, else None."""
        return self.places[name] if self.scope.follows(name) and name in self.places else None

    def is_saveable(self, value: Any) -> bool:
        """Whether a value can be saved."""
        return unsaveable(value, definitions=self.definitions) is None

    def _tell_cut(self, name: str, length: int) -> None:
        self.run.note("cut", self.number, file=name, bytes=length)
        self.cut.append(Excess(name, length))
