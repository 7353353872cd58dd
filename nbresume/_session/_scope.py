"""Which values a boundary saves, and how they come back.

Saved are the declared names, every name that the cell itself has bound, global names that called functions rebind, and
those *inputs* that can't stand by themselves: plain containers, what the loop changes, and what shares objects with the
rest. Any other input is saved by its name and checked by its digest.

What can't be saved is made again by its own statement, or it is dead: bound again before it is read. Where it is
neither, the cell is refused with the path and the type.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._capture import (
    Captured,
    Definitions,
    ambient_state,
    capture,
    content_digest,
    culprit,
    put_rng,
    reachable,
    restore,
    rng_state,
    unsaveable,
)
from .._identity import fingerprint
from .._transform import ITEM, RUNTIME, CellPlan, UnitPlan
from ..errors import RefusedError, UnsaveableError
from ._frames import Frame, locals_of
from ._guard import Guard
from ._iterables import Iteration, is_bar
from ._places import Places
from ._reach import IMMUTABLE, Reached, is_clock

_NOT_INPUTS = (types.ModuleType, type)
_SMALL = 1 << 20
_WIDE = 1000
_SHAREABLE = (list, dict, set, bytearray, np.ndarray)
_CONTAINERS = (list, dict, set, bytearray)
_MOVING = frozenset(
    {"builtins.generator", "_csv.writer", "_io.TextIOWrapper", "_io.BufferedWriter", "_io.BufferedRandom"}
)
TRIALS = 4
"""Snapshots that are loaded once from memory: the first ones, in which the loop has bound all its names."""
_STATELESS = (np.dtype, np.generic, enum.Enum, type, types.FunctionType, types.ModuleType)


@dataclass(slots=True)
class Selection:
    """What one boundary saves.

    Attributes
    ----------
    saved : tuple of str
        Places in the graph.
    unsaved : tuple of str
        Names that the cell has bound and that could not be saved.
    inputs : dict of str to str
        Digest of each input that is saved by name only; empty where it can't be digested.
    captured : Captured
        The graph itself.
    """

    saved: tuple[str, ...]
    unsaved: tuple[str, ...]
    inputs: dict[str, str]
    captured: Captured


@dataclass(slots=True)
class _Input:
    """An input as the launch found it."""

    digest: str = ""
    met: dict[int, Any] = field(default_factory=dict)


class Scope:
    """Chooses what is saved in one run of a cell.

    Parameters
    ----------
    plan : CellPlan
        The cell.
    found : Reached
        What it reaches.
    places : Places
        The notebook's names.
    definitions : Definitions
        Its functions and classes.
    """

    def __init__(self, plan: CellPlan, found: Reached, places: Places, definitions: Definitions) -> None:
        self.plan, self.places, self.definitions = plan, places, definitions
        self.bindable = frozenset(plan.unit.bound) | frozenset(found.rebound)
        self.launch = ambient_state()
        """Of the run's launch: what has changed since belongs to the run."""
        definitions.bindable = self.bindable
        self.joined: dict[str, str] = {}
        self.opaque: dict[str, str] = {}
        self._trials = self._torn_checks = TRIALS
        self._closing = False
        self._remade: dict[str, tuple[str, type]] = {}
        self._kinds_unsaveable: dict[str, type] = {}
        self._inputs: dict[str, _Input] = {}
        rebuild = set(plan.options.rebuild)
        for place in sorted(found.inputs - self.bindable - rebuild - set(plan.options.declared)):
            # Numbers too: globals()['n'] = 1 rebinds a name that no code shows.
            if place in places and not isinstance(places[place], _NOT_INPUTS):
                self._inputs[place] = _Input()

    # ------------------------------------------------------------------ before anything runs

    def preflight(self) -> None:
        """Look at declared names and inputs before the cell runs.

        Raises
        ------
        RefusedError
            A declared name is neither there nor bound by the cell, or can't be saved; or an input is an iterator whose
            position nobody can save.
        """
        for name in self.plan.options.declared:
            if name not in self.places and name not in self.bindable:
                raise RefusedError(
                    f"--vars names {name!r}, which is neither there nor bound by this cell",
                    "Run the cell that makes it, or correct the name",
                    1,
                )
            if name in self.places and name not in self.plan.unit.bound - self.plan.unit.entry:
                self._must_save(name, self.places[name])
        for place in list(self._inputs):
            self._look_at_input(place)

    def _must_save(self, name: str, value: Any) -> None:
        error = unsaveable(value, definitions=self.definitions)
        if error is not None:
            raise culprit(name, value, error, definitions=self.definitions)

    def _look_at_input(self, place: str) -> None:
        value = self.places[place]
        try:
            digest, met = content_digest(value, definitions=self.definitions)
        except Exception as error:  # whatever a foreign reduce raises
            if hasattr(value, "__next__") and place in self.plan.unit.read_elsewhere | self.plan.unit.read_inside:
                found = culprit(place, value, error, definitions=self.definitions)
                way = (
                    "Loop over it directly (for item in it), make a list of it, or use an object of a class of "
                    "your own "
                    "that keeps its position in attributes"
                )
                raise UnsaveableError(found.path, found.type_name, "it moves on as the cell reads it", way) from error
            self._look_into(place, value)
            return
        self._inputs[place] = _Input(digest, met)
        if is_clock(value):
            self._join(place, "a time")
        if type(value) in _CONTAINERS or (place in self.plan.unit.mutated and place.isidentifier()):
            self._join(place, "the cell changes it" if place in self.plan.unit.mutated else "")

    def _look_into(self, place: str, value: Any) -> None:
        """Remember by its structure an input that can't be saved; refuse one that hides what moves on."""
        found = fingerprint(value)
        moving = sorted(set(found.holes) & _MOVING)
        if moving and place in self.plan.unit.read_elsewhere | self.plan.unit.read_inside:
            raise UnsaveableError(
                place, moving[0], "it moves on as the cell uses it", "Make it in this cell, before its loops"
            )
        self.opaque[place] = found.digest
        self._inputs.pop(place, None)

    def _refuse_changed_opaque(self) -> None:
        for place, digest in self.opaque.items():
            if digest and place in self.places and fingerprint(self.places[place]).digest != digest:
                value = self.places[place]
                error = unsaveable(value, definitions=self.definitions) or TypeError("it can't be saved")
                found = culprit(place, value, error, definitions=self.definitions)
                raise UnsaveableError(
                    found.path,
                    found.type_name,
                    f"and the loop changes {place!r}",
                    "Keep what changes in a variable of its own, without the part that can't be saved",
                )

    def _join(self, place: str, why: str) -> None:
        if why and self.plan.options.strict:
            raise RefusedError(
                f"--strict: {place} is not declared and has to be saved ({why})", f"Add {place} to --vars", 1
            )
        self.joined[place] = why
        self._inputs.pop(place, None)

    # ------------------------------------------------------------------ at a boundary

    def select(
        self,
        stack: list[Frame],
        units: Mapping[str, UnitPlan],
        guards: Mapping[int, Guard],
        *,
        closing: bool = False,
    ) -> Selection:
        """Serialise what this boundary saves.

        Parameters
        ----------
        stack : list of Frame
            The cursor.
        units : mapping of str to UnitPlan
            Plans of the functions on the stack.
        guards : mapping of int to Guard
            What replayed iterables need, by ``id`` of their iteration.
        closing : bool
            The cell is over: nothing is needed later.

        Raises
        ------
        RefusedError
            When something that is needed can't be saved.
        """
        self._closing = closing
        self._join_changed()
        if not closing:
            self._refuse_changed_opaque()
        needed, remade = _outlook(stack, self.plan.unit, units, "") if not closing else (frozenset(), frozenset())
        values = self._values()
        self._refuse_popped_sets(values)
        self._refuse_drawn_sets(values)
        self._refuse_kinds(values, needed, remade)
        parts, locals_unsaved = self._frame_parts(stack, units, guards)
        while True:
            graph = {"names": values, "frames": parts, "ambient": ambient_state(), "launch": self.launch}
            inputs = {place: self.places[place] for place in self._inputs if place in self.places}
            inputs |= {place: self.places[place] for place in self.opaque if place in self.places}
            try:
                captured = capture(graph, definitions=self.definitions, inputs=inputs, places=values)
            except Exception as error:  # noqa: BLE001  # whatever a foreign reduce raises
                if not self._drop_unsaveable(values, needed, remade):
                    self._blame_frames(parts, stack, error)
                continue
            joining = captured.joining | self._sharing(captured, values)
            if not joining:
                break
            for place in joining:
                self._join(place, "it shares objects with what is saved")
                values[place] = self.places[place]
        if self.plan.options.strict:
            self._refuse_added(values)
        bound = {name for name in self.bindable if name in self.places and not name.startswith("__nbresume")}
        unsaved = tuple(sorted(bound - values.keys()))
        for frame, names in zip(stack, locals_unsaved, strict=True):
            frame.unsaved = names
        self._refuse_torn(values, needed)
        self._refuse_changed_remade(values, needed)
        self._try_to_load(captured, inputs)
        digests = {place: known.digest for place, known in self._inputs.items()} | dict.fromkeys(self.opaque, "")
        return Selection(tuple(sorted(values)), unsaved, digests, captured)

    def _sharing(self, captured: Captured, values: Mapping[str, Any]) -> set[str]:
        """Find inputs, and other names of the notebook, that have an object in common with what is saved."""
        found = {place for place, known in self._inputs.items() if _share(known.met, captured.met)}
        for name, value in self.places.namespace.items():
            if name in values or name in self._inputs or name in self.opaque or _is_hidden(name):
                continue
            parts = value if type(value) in (list, tuple) and len(value) < _WIDE else ()
            if any(_shares(part, captured.met) for part in (value, *parts)):
                if unsaveable(value, definitions=self.definitions) is None:
                    found.add(name)
                else:
                    self.opaque[name] = ""
        return found

    def _refuse_torn(self, values: Mapping[str, Any], needed: frozenset[str]) -> None:
        """Refuse what is made again instead of saved and holds a saved object that the loop changes.

        Made again, it would hold the set-up's object, and the names the restored one.
        """
        made_again = [name for name in {*self.opaque, *(needed - values.keys())} if name in self.places]
        carried = {*self.plan.unit.mutated, *self.plan.options.declared}
        changing = [name for name in values if name in carried or self.joined.get(name)]
        if not made_again or not changing or self._torn_checks <= 0:
            return
        self._torn_checks -= 1
        owners = {id(one): name for name in changing for one in reachable(values[name]).values()}
        for name in sorted(made_again):
            value = self.places[name]
            if isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
                continue
            for key, shared in reachable(value).items():
                if key in owners and (isinstance(shared, _SHAREABLE) or type(shared).__module__ == "__main__"):
                    raise RefusedError(
                        f"{name!r} can't be saved and holds an object of {owners[key]!r}, which the loop changes: made "
                        "again, it would hold another",
                        f"Keep what {name!r} changes in a variable of its own, or make {name!r} inside the loop",
                    )

    def _refuse_changed_remade(self, values: Mapping[str, Any], needed: frozenset[str]) -> None:
        """Refuse what is made again by its statement and has changed since, if anybody reads what it holds."""
        for name in sorted((needed & self.bindable & self.plan.unit.read_for_value) - values.keys()):
            if name not in self.places or is_bar(self.places[name]):
                continue
            value = self.places[name]
            found = fingerprint(value)
            digest, kind = self._remade.setdefault(name, (found.digest, type(value)))
            if "sqlite3.Connection" in found.holes and _in_memory(value):
                raise UnsaveableError(name, "sqlite3.Connection", "its database is in memory", "Give it a file")
            if kind is type(value) and digest != found.digest:
                error = unsaveable(value, definitions=self.definitions) or TypeError("it can't be saved")
                blamed = culprit(name, value, error, definitions=self.definitions)
                raise UnsaveableError(
                    blamed.path,
                    blamed.type_name,
                    f"{name!r} is made again by its statement, and the loop has changed it",
                    "Keep what changes in a variable of its own, without the part that can't be saved",
                )

    def bars(self) -> dict[str, int]:
        """Tell where progress bars of the cell stand that no loop drives."""
        found = {name: self.places[name] for name in self.bindable if name in self.places}
        return {name: bar.n for name, bar in found.items() if is_bar(bar) and isinstance(bar.n, int)}

    def _try_to_load(self, captured: Captured, inputs: Mapping[str, Any]) -> None:
        """Load the graph once from memory while the run is young: what can be saved can not always be loaded.

        Large arrays are left unread; nothing of the process is touched, its random streams included.
        """
        if self._trials <= 0:
            return
        self._trials -= 1
        state = rng_state()
        try:
            restore(
                captured.stream, captured.tables, definitions=self.definitions, inputs=inputs, read=_trial(captured)
            )
        except Exception as error:
            raise RefusedError(
                f"the state can be saved but not loaded again ({type(error).__name__}: {error})",
                "Keep the object out of what the loop carries, or give its class __reduce__",
            ) from error
        finally:
            put_rng(state)

    def _refuse_added(self, values: dict[str, Any]) -> None:
        added = sorted(set(values) - set(self.plan.options.declared) - set(self.joined))
        if added:
            raise RefusedError(
                f"--strict: {', '.join(added)} would be saved and {'are' if len(added) > 1 else 'is'} not declared",
                "Add them to --vars",
                1,
            )

    def _join_changed(self) -> None:
        for place, known in list(self._inputs.items()):
            if place not in self.places or not known.digest:
                continue
            try:
                digest, met = content_digest(self.places[place], definitions=self.definitions)
            except Exception:  # noqa: BLE001  # it became unsaveable: taken as made again by its own cell
                self.opaque[place] = ""
                del self._inputs[place]
                continue
            known.met = met
            if digest != known.digest:
                self._join(place, "the loop changes it")

    def _values(self) -> dict[str, Any]:
        rebuild = set(self.plan.options.rebuild)
        names = {name for name in self.bindable if name in self.places and name not in rebuild}
        names |= {name for name in self.plan.options.declared if name in self.places}
        names |= {place for place in self.joined if place in self.places}
        names -= {RUNTIME, ITEM}
        return {name: self.places[name] for name in sorted(names)}

    def _refuse_drawn_sets(self, values: Mapping[str, Any]) -> None:
        """Refuse to save a set whose hidden order the cell draws from, where that order is another in each process."""
        for name in self.plan.unit.order_drawn & values.keys():
            value = values[name]
            if not self._closing and type(value) in (set, frozenset) and len(value) > 1 and not _hash_alike(value):
                raise RefusedError(
                    f"the cell draws from the order of the set {name!r}, which is another in each kernel",
                    f"Use sorted({name}) there, or a list or dict in its place",
                )

    def _refuse_popped_sets(self, values: Mapping[str, Any]) -> None:
        for name in self.plan.unit.popped & values.keys():
            if not self._closing and type(values[name]) is set:
                raise RefusedError(
                    f"{name}.pop() takes from the hidden order of a set, which can't be saved",
                    f"Use a list or a deque, or take the smallest: x = min({name}); {name}.remove(x)",
                )

    def _refuse_kinds(self, values: dict[str, Any], needed: frozenset[str], remade: frozenset[str]) -> None:
        """Drop what was found unsaveable before and is still of the same type, without another try."""
        for name, kind in self._kinds_unsaveable.items():
            if type(values.get(name)) is kind:
                self._drop(name, values, needed, remade, None)

    def _drop_unsaveable(self, values: dict[str, Any], needed: frozenset[str], remade: frozenset[str]) -> bool:
        dropped = False
        for name, value in list(values.items()):
            error = unsaveable(value, definitions=self.definitions)
            if error is not None:
                self._kinds_unsaveable[name] = type(value)
                self._drop(name, values, needed, remade, error)
                dropped = True
        return dropped

    def _drop(
        self,
        name: str,
        values: dict[str, Any],
        needed: frozenset[str],
        remade: frozenset[str],
        error: Exception | None,
    ) -> None:
        value = values.pop(name)
        moves = self._moves(name, value) and not self._closing
        if name in self.plan.options.declared or (name in needed and name not in remade) or moves:
            error = error or unsaveable(value, definitions=self.definitions)
            raise culprit(name, value, error or TypeError("it can't be saved"), definitions=self.definitions)
        if name in self.joined:
            del self.joined[name]
            self.opaque[name] = ""

    def _moves(self, name: str, value: Any) -> bool:
        """Whether a value is an iterator that the cell moves by itself: made again, it would stand at its start."""
        unit = self.plan.unit
        is_file = hasattr(value, "seek")
        return hasattr(value, "__next__") and not is_file and name in unit.read_elsewhere | unit.read_inside

    def follows(self, name: str) -> bool:
        """Whether a name is saved, or checked at each boundary."""
        return (
            name in self.bindable or name in self.plan.options.declared or name in self.joined or name in self._inputs
        )

    def adopt(self, saved: Iterable[str]) -> None:
        """Take over what an earlier attempt saved: an input that it had joined stays joined."""
        for place in saved:
            if self._inputs.pop(place, None) is not None:
                self.joined[place] = ""
            self.opaque.pop(place, None)

    def needs_iterator(self, iteration: Iteration, stack: list[Frame]) -> bool:
        """Whether an iterator that a loop has advanced may be read again after this boundary."""
        needed, _ = _outlook(stack, self.plan.unit, {}, "")
        return any(
            iteration.replay is not None and iteration.replay.walks(self.places[name])
            for name in needed
            if name in self.places
        )

    # ------------------------------------------------------------------ functions on the way

    def _frame_parts(
        self, stack: list[Frame], units: Mapping[str, UnitPlan], guards: Mapping[int, Guard]
    ) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
        parts: list[dict[str, Any]] = []
        unsaved: list[tuple[str, ...]] = []
        for place, frame in enumerate(stack):
            part: dict[str, Any] = {}
            names: tuple[str, ...] = ()
            if frame.iteration is not None and not frame.done:
                part["items"] = frame.iteration.in_graph()
                if (guard := guards.get(id(frame.iteration))) is not None:
                    part["guard"] = guard.part()
            if frame.ambient:
                part["ambient"] = frame.ambient
            if frame.kind == "call" and frame.pyframe is not None:
                part["locals"], names = self._locals(frame, stack[place + 1 :], units)
            parts.append(part)
            unsaved.append(names)
        return parts, unsaved

    def _locals(
        self, frame: Frame, inner: list[Frame], units: Mapping[str, UnitPlan]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        assert frame.pyframe is not None  # noqa: S101  # by the caller
        function = frame.label
        needed, remade = _outlook(inner, units[function], units, function)
        values, unsaved = locals_of(frame.pyframe), []
        for name, value in list(values.items()):
            if isinstance(value, IMMUTABLE):
                continue
            error = unsaveable(value, definitions=self.definitions)
            if error is None:
                continue
            unit = units[function]
            moves = hasattr(value, "__next__") and not hasattr(value, "seek")
            if (name in needed and name not in remade) or (moves and name in unit.read_elsewhere | unit.read_inside):
                raise culprit(f"{function}().{name}", value, error, definitions=self.definitions)
            del values[name]
            unsaved.append(name)
        return values, tuple(unsaved)

    def _blame_frames(self, parts: list[dict[str, Any]], stack: list[Frame], error: Exception) -> None:
        for part, frame in zip(parts, stack, strict=True):
            for what, value in part.items():
                inner = unsaveable(value, definitions=self.definitions)
                if inner is not None:
                    name = f"the items of 'for {frame.label}'" if what == "items" else f"{frame.label}()"
                    raise culprit(name, value, inner, definitions=self.definitions)
        if isinstance(error, RefusedError):
            raise error
        raise RefusedError(f"the state can't be saved: {error}", "Declare less, or report this as a bug", 1) from error


def _hash_alike(elements: Iterable[Any]) -> bool:
    """Whether elements hash alike in every process: numbers, and tuples of them."""
    return all(
        isinstance(one, (bool, int, float, complex)) or (type(one) is tuple and _hash_alike(one)) for one in elements
    )


def _in_memory(value: Any) -> bool:
    if not hasattr(value, "execute") or type(value).__module__ != "sqlite3":
        return False
    return any(not row[2] for row in value.execute("PRAGMA database_list"))


def _trial(captured: Captured) -> Callable[[int, NDArray[Any]], None]:
    def read(index: int, target: NDArray[Any]) -> None:
        data = captured.blocks[index].data
        if data is not None and target.nbytes <= _SMALL:
            target[...] = np.ascontiguousarray(data).reshape(-1).view("u1").view(target.dtype).reshape(target.shape)

    return read


def _outlook(
    stack: Iterable[Frame], unit: UnitPlan, units: Mapping[str, UnitPlan], name: str
) -> tuple[frozenset[str], frozenset[str]]:
    """Tell which names a unit needs after a boundary, and which the way to it can make again."""
    needed: frozenset[str] = frozenset()
    remade: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    for frame in stack:
        if frame.unit != name:
            inside |= units[frame.unit].reads if frame.unit in units else frozenset()
            continue
        if frame.kind in ("for", "while"):
            loop = unit.loops[frame.id]
            needed, remade = (loop.live_after if frame.done else loop.live), loop.remade
        elif frame.kind == "call":
            call = unit.calls[frame.id]
            needed, remade = call.live, call.remade
    return needed | unit.read_inside | inside, remade


def _share(one: dict[int, Any], other: dict[int, Any]) -> bool:
    """Whether two graphs have a mutable object in common."""
    small, large = sorted((one, other), key=len)
    return any(_shares(value, large) for value in small.values())


def _shares(value: Any, met: Mapping[int, Any]) -> bool:
    return id(value) in met and not isinstance(value, _STATELESS) and not _is_dtype(value)


def _is_hidden(name: str) -> bool:
    return name.startswith("_") or name in ("In", "Out", "exit", "quit", "open", "get_ipython")


def _is_dtype(value: Any) -> bool:
    return type(value).__name__.endswith(("Dtype", "DType", "dtype", "device"))
