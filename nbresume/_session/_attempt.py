"""One attempt of a run: what one process does of it, from the launch or resume to its end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from .._capture import (
    content_digest,
    load,
    put_ambient,
    put_rng,
    rebuild,
)
from .._lineage import CHANGED
from .._outputs import Excess, excess
from .._store import Claim, RunFolder, Snapshot, SnapshotError
from .._types import Json
from ..errors import NbresumeError, ReplayError
from ._data import DataGate
from ._frames import Way
from ._reach import IMMUTABLE
from ._returning import Held, changed_name, check_inputs, put_bars
from ._saving import Saving
from ._telling import shown


class Attempt(Saving):
    """One attempt of a run, see ``Saving``, and its way back to a snapshot.

    Attributes
    ----------
    changes : list of dict
        What the journal has to say of this attempt once it goes on.
    disturbed : bool
        Whether code of the user's ran on the way back that could have touched what was restored.
    """

    def __init__(self, run: RunFolder, number: int, claim: Claim, **parts: Any) -> None:
        super().__init__(run, number, claim, **parts)
        self.changes: list[Json] = []
        self.disturbed = False
        self._snapshot: Snapshot | None = None
        self._held = Held()
        self._fresh = True
        self._graph: Any = None
        self._digest = ""
        self._saved: frozenset[str] = frozenset()
        self._here = self.scope.launch

    def note_changes(self) -> None:
        """Note, and say, that this attempt is not plainly the same run."""
        for change in self.changes:
            self.run.note("changed", self.number, **change)
            self.tell(f"    {CHANGED[change['how']]}:{shown(change['differences'])}")

    def back_to(self, snapshot: Snapshot, held: Held, *, fresh: bool, declared: bool = False) -> Way:
        """Choose the snapshot to go back to; what belongs to the graph is loaded at ``hand_over``.

        Parameters
        ----------
        snapshot : Snapshot
            Verified.
        held : Held
            Its bytes.
        fresh : bool
            Whether this process has not run the cell before; else inputs may have been changed by the attempt before.
        declared : bool
            Whether a person has declared that changed code is the same run: then its definitions are the right ones.
        """
        known = [event.facts["data"] for event in self.run.events() if "data" in event.facts]
        self.data = DataGate(known[-1] if known else snapshot.meta.get("data"), is_declared=declared)
        self.definitions.trusts = declared
        self._snapshot, self._held = snapshot, held
        self.files.back_to(snapshot.meta["files"], snapshot.seq)
        self._fresh = fresh
        self.log.muted = True  # what the set-up prints again stands there already
        self._active = float(snapshot.meta.get("active", 0.0))
        return Way(tuple(snapshot.meta["cursor"]))

    @property
    def is_resumed(self) -> bool:
        """Whether it goes on from a snapshot."""
        return self._snapshot is not None

    @property
    def unsaved(self) -> tuple[str, ...]:
        """Names of the cell that the snapshot could not save."""
        return tuple(self._snapshot.meta["unsaved"]) if self._snapshot is not None else ()

    def restores(self, name: str) -> bool:
        """Whether a name comes back from the snapshot with an object that can change."""
        saved = self._snapshot is not None and name in self._snapshot.meta["saved"]
        return saved and name in self.places and not isinstance(self.places[name], (*IMMUTABLE, type))

    def hand_over(self) -> Way:
        """Load the saved state and bind it, over what the set-up has made.

        Raises
        ------
        ReplayError
            When an input is no longer what it was, or a definition is missing.
        """
        assert self._snapshot is not None  # noqa: S101  # back_to comes first
        meta = self._snapshot.meta
        missing = [place for place in meta["inputs"] if place not in self.places]
        if missing:
            raise ReplayError(f"{missing[0]!r} is not there. Run the cells that make it, then this one again")
        inputs = {place: self.places[place] for place in meta["inputs"]}
        if not self._fresh:
            check_inputs(meta["inputs"], self.places, self.definitions, is_declared=self.data.is_declared)
        try:
            loaded = self._held.loaded or load(*self._snapshot.stream_and_tables(), self._snapshot.read)
            self._held.loaded = None
            self._graph = rebuild(loaded, definitions=self.definitions, inputs=inputs)
        except SnapshotError as error:
            raise ReplayError(
                f"{self._snapshot.path.name} can't be read any more: {error}. Run the cell again"
            ) from error
        except NbresumeError:
            raise
        except Exception as error:
            raise ReplayError(
                f"the saved state can't be loaded ({type(error).__name__}: {error}). Its snapshots are untouched. "
                "Report this as a bug; to start anew, supersede the run"
            ) from error
        self._graph["names"].update({k: v for k, v in self.data.renewed.items() if k in self._graph["names"]})
        self._digest = self._state_digest()
        self._saved = frozenset(meta["saved"])
        self.scope.adopt(self._saved, meta["gone"])
        self._told |= {*self._saved, *self.scope.bindable, ""}
        self._bind()
        return Way(tuple(meta["cursor"]), tuple(self._graph["frames"]))

    def _state_digest(self) -> str:
        return content_digest(self._graph["names"], definitions=self.definitions)[0] if self._graph else ""

    def _bind(self) -> None:
        for place, value in self._graph["names"].items():
            self.places.bind(place, value)
        known = frozenset(self._snapshot.meta.get("bindable", self.scope.bindable)) if self._snapshot else frozenset()
        for name in (self.scope.bindable & known) - self._saved - set(self.unsaved) - set(self.plan.options.rebuild):
            self.places.unbind(name)
        for place in self._snapshot.meta["gone"] if self._snapshot is not None else ():
            self.places.unbind(place)

    def lend(self, names: Mapping[str, Any]) -> None:
        """Bind names for the time of one expression; with none, bind again what was saved."""
        if not names:
            self._bind()
        for name, value in names.items():
            self.places.bind(name, value)

    def arrive(self, *, bars: Sequence[Any] = (), whole: bool = False) -> None:
        """Turn live: check that nothing on the way touched the state, bind it, put files and random streams back.

        Parameters
        ----------
        bars : sequence of object
            Progress bars that the loops on the way drive.
        whole : bool
            The run is complete: its files are put back uncut.

        Raises
        ------
        ReplayError
            When what was restored has been changed on the way.
        """
        assert self._snapshot is not None  # noqa: S101  # back_to comes first
        if self.disturbed and self._state_digest() != self._digest:
            name = changed_name(self._graph["names"], self.places)
            raise ReplayError(
                f"on the way back a statement changed what had been restored ({name}): going on would be another run. "
                "Move that statement out of the way to the loop, or supersede the run"
            )
        meta = self._snapshot.meta
        self.log.muted = False
        self.files.put_back(whole=whole)
        self.files.put_readers(meta["readers"])
        self._bind()
        put_bars(meta["bars"], self.places, bars)
        put_ambient(self._graph["ambient"], self._graph["launch"], self._here)
        self.scope.launch = self._graph["launch"]
        self._graph = None
        self._since, self._slept = time.monotonic(), 0.0
        self.note_changes()
        put_rng(meta["rng"])

    def cut_back(self, printed: int) -> list[Excess]:
        """Undo what was done to files since the snapshot, and cut the log to what was printed by then.

        Returns
        -------
        list of Excess
            What was cut, and what will be when files are put back.
        """
        log = list(excess(self.log.path, printed, "log"))
        self.log.cut_back(printed, self.run.path / "aside" / f"{self.number:04d}-log.txt")
        self.files.undo()
        return [*log, *self.cut, *self.files.excess()]

    def put_world(self, rng: Json, ambient: dict[str, Any]) -> None:
        """Put random streams and ambient state where they were at an earlier place of the run."""
        put_ambient(ambient, self._graph["launch"], self._here)
        put_rng(rng)

    @property
    def display(self) -> Json:
        """What the cell had displayed when it completed."""
        return dict(self._snapshot.meta.get("display") or {}) if self._snapshot is not None else {}
