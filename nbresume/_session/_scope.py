"""Which values a boundary saves, and how they come back.

Saved are the declared names, every name that the cell itself has bound, global names that called functions rebind, and
those *inputs* that can't stand by themselves: plain containers, what the loop changes, and what shares objects with the
rest. Any other input is saved by its name and checked by its digest.

What can't be saved is made again by its own statement, or it is dead: bound again before it is read. Where it is
neither, the cell is refused with the path and the type.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._capture import (
    Captured,
    Definitions,
    ambient_state,
    capture,
    content_digest,
    culprit,
    unsaveable,
)
from .._identity import fingerprint
from .._transform import ITEM, RUNTIME, CellPlan, UnitPlan
from ..errors import RefusedError, UnsaveableError
from ._frames import Frame
from ._guard import Guard
from ._iterables import Iteration
from ._memories import Memories
from ._outlook import outlook
from ._parts import blame_frames, frame_parts
from ._places import Places
from ._reach import Reached, is_clock
from ._refusals import Refusals
from ._selection import Selection
from ._sharing import Beside, Held, beside, changeable, held, holds_containers, is_hidden
from ._skip import is_bar
from ._watch import Watch

_NOT_INPUTS = (types.ModuleType, type)
_CODE = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper)  # noqa: SLF001
_MOVING = frozenset(
    {"builtins.generator", "_csv.writer", "_io.TextIOWrapper", "_io.BufferedWriter", "_io.BufferedRandom"}
)


@dataclass(slots=True)
class _Input:
    """An input as the launch found it."""

    digest: str = ""
    met: list[Any] = field(default_factory=list)
    """Objects inside that code can change."""


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
        self.reached = found
        self.bindable = frozenset(plan.unit.bound) | frozenset(found.rebound)
        self.launch = ambient_state()
        """Of the run's launch: what has changed since belongs to the run."""
        definitions.bindable = self.bindable
        self.joined: dict[str, str] = {}
        self.opaque: dict[str, str] = {}
        self._refusals = Refusals(plan.unit, places, definitions)
        self._closing = False
        self._given: dict[str, Any] = {}
        self._kinds_unsaveable: dict[str, type] = {}
        self._inputs: dict[str, _Input] = {}
        self._beside = Beside({}, {}, ())
        self._watch = Watch(found, places, self.bindable)
        self._memories = Memories(places, asked="cache_info" in plan.source)
        inputs = found.inputs | (self._watch.data() if found.any_name else set())
        for place in sorted(inputs - self.bindable - {*plan.options.rebuild, *plan.options.declared}):
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
        for place in list(self._inputs):
            self._look_at_input(place)
        self._look_at_sharing()
        for name in self.plan.options.declared:
            if name not in self.places and name not in self.bindable:
                raise RefusedError(
                    f"--vars names {name!r}, which is neither there nor bound by this cell",
                    "Run the cell that makes it, or correct the name",
                    1,
                )
            if name in self.places and name not in self.plan.unit.bound - self.plan.unit.entry:
                self._must_save(name, self.places[name])

    def _look_at_sharing(self) -> None:
        """Join inputs that hold an object of what is saved: made again, they would hold another."""
        carried = {*self.joined, *self.plan.options.declared, *(self.bindable & self.plan.unit.entry)}
        inputs = set(self._inputs)
        own = {*inputs, *carried, *self.opaque, *(self.bindable - (self.plan.unit.bound - self.plan.unit.entry))}
        names = {name for name in self.places.namespace if not is_hidden(name)}
        objects = {place: held(self.places[place]) for place in names | own if place in self.places}

        def of(places: set[str]) -> dict[str, Held]:
            return {place: objects[place] for place in places if place in objects}

        for place in beside(of(inputs), of(carried)):
            self._join(place, "it shares objects with what is saved")
        self._beside = Beside(of(names), of(own), self.bindable)

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
                raise self._moves_on(place, value, error) from error
            self._look_into(place, value)
            return
        self._inputs[place] = _Input(digest, changeable(met.values()))
        if is_clock(value):
            self._join(place, "a time")
        if holds_containers(value) or (place in self.plan.unit.mutated and place.isidentifier()):
            self._join(place, "the cell changes it" if place in self.plan.unit.mutated else "")

    def _moves_on(self, place: str, value: Any, error: Exception) -> UnsaveableError:
        found = culprit(place, value, error, definitions=self.definitions)
        way = (
            f"Make it with {place} = nbresume.stream(...), which keeps its position; or loop over it directly "
            "(for item in it), or make a list of it first"
        )
        return UnsaveableError(found.path, found.type_name, "it moves on as the cell reads it", way)

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
            self._refusals.changed_opaque(self.opaque)
        needed, remade = outlook(stack, self.plan.unit, units, "") if not closing else (frozenset(), frozenset())
        self._take_given(stack)
        values = {**self.values(), **self._given}
        if not closing:
            self._memories.check(self._changing(values))
            self._refusals.popped_sets(values)
            self._refusals.drawn_sets(values)
        self._refuse_kinds(values, needed, remade)
        parts, locals_unsaved = frame_parts(stack, units, guards, self.definitions)
        while True:
            graph = {"names": values, "frames": parts, "ambient": ambient_state(), "launch": self.launch}
            inputs = {place: self.places[place] for place in self._inputs if place in self.places}
            inputs |= {place: self.places[place] for place in self.opaque if place in self.places}
            try:
                captured = capture(graph, definitions=self.definitions, inputs=inputs, places=values)
            except Exception as error:  # noqa: BLE001  # whatever a foreign reduce raises
                if not self._drop_unsaveable(values, needed, remade):
                    blame_frames(parts, stack, error, self.definitions)
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
        self._refuse_what_comes_apart(values, needed)
        self._refusals.unloadable(captured, inputs)
        digests = {place: known.digest for place, known in self._inputs.items()} | dict.fromkeys(self.opaque, "")
        return Selection(tuple(sorted(values)), unsaved, digests, self._watch.gone, captured)

    def _take_given(self, stack: list[Frame]) -> None:
        """Take what ``nbresume.boundary()`` was given: those names are saved with these values."""
        self._given = {name: value for frame in stack if not frame.unit for name, value in frame.state.items()}
        if self._given:
            self.adopt(self._given, ())

    def _refuse_what_comes_apart(self, values: Mapping[str, Any], needed: frozenset[str]) -> None:
        made_again = {*self.opaque, *(needed - values.keys() - self._inputs.keys())}
        made_again = {name for name in made_again if name in self.places}
        carried = {*self.plan.unit.mutated, *self.plan.options.declared}
        changing = [name for name in values if name in carried or self.joined.get(name)]
        if made_again and changing:
            self._refusals.torn(values, made_again, changing)
        self._refusals.changed_remade((needed & self.bindable & self.plan.unit.read_for_value) - values.keys())

    def _changing(self, values: Mapping[str, Any]) -> set[str]:
        """Return the names whose value may be another in the next iteration."""
        bound = {name for name in values if name in self.bindable and not isinstance(values[name], _CODE)}
        return (
            bound | set(self.plan.unit.mutated) | set(self.plan.options.declared) | set(filter(self.joined.get, values))
        )

    def _sharing(self, captured: Captured, values: Mapping[str, Any]) -> set[str]:
        """Find inputs, and other names of the notebook, that have an object in common with what is saved."""
        found = {place for place, known in self._inputs.items() if captured.has_met(known.met)}
        for name in [name for name in self._beside.joining(values) if name in self.places and name not in values]:
            if unsaveable(self.places[name], definitions=self.definitions) is None:
                found.add(name)
            else:
                self.opaque[name] = ""
        return found

    def bars(self) -> dict[str, int]:
        """Tell where progress bars of the cell stand that no loop drives."""
        found = {name: self.places[name] for name in self.bindable if name in self.places}
        return {name: bar.n for name, bar in found.items() if is_bar(bar) and isinstance(bar.n, int)}

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
            except Exception as error:  # it could be saved at the launch: the loop has changed it
                raise culprit(place, self.places[place], error, definitions=self.definitions) from error
            known.met = changeable(met.values())
            if digest != known.digest:
                self._join(place, "the loop changes it")
        for place in self._watch.changed():
            if not self.follows(place) and place not in self.opaque:
                self._join(place, "it changes without a word in the cell")

    @property
    def inputs(self) -> list[str]:
        """Names that are saved by name only, as long as nobody changes them."""
        return sorted(place for place in self._inputs if place in self.places)

    def values(self) -> dict[str, Any]:
        """Return what is to be saved now, as far as it can be, by place."""
        rebuild = set(self.plan.options.rebuild)
        names = {name for name in self.bindable if name in self.places and name not in rebuild}
        names |= {name for name in self.plan.options.declared if name in self.places}
        names |= {place for place in self.joined if place in self.places}
        names -= {RUNTIME, ITEM}
        values = {name: self.places[name] for name in names}
        # Of a class that the cell defines, the launch could not know what it counts in its attributes.
        return dict(sorted((values | self.places.of_classes(values.values())).items()))

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
        was_saveable = name in self.joined and not self._closing  # so the loop has changed it
        insisted = name in self.plan.options.declared or name in self._given
        if insisted or (name in needed and name not in remade) or moves or was_saveable:
            error = error or unsaveable(value, definitions=self.definitions) or TypeError("it can't be saved")
            if moves:
                raise self._moves_on(name, value, error)
            raise culprit(name, value, error, definitions=self.definitions)
        if name in self.joined:
            del self.joined[name]
            self.opaque[name] = ""

    def _moves(self, name: str, value: Any) -> bool:
        """Whether a value is an iterator that the cell moves by itself: made again, it would stand at its start."""
        read = self.plan.unit.read_elsewhere | self.plan.unit.read_inside
        return hasattr(value, "__next__") and not hasattr(value, "seek") and name in read

    def follows(self, name: str) -> bool:
        """Whether a name is saved, or checked at each boundary."""
        return (
            name in self.bindable or name in self.plan.options.declared or name in self.joined or name in self._inputs
        )

    def adopt(self, saved: Iterable[str], gone: Iterable[str]) -> None:
        """Take over what an earlier attempt saved: what it had joined stays joined, what was gone stays gone."""
        for place in saved:
            self._inputs.pop(place, None)
            if place not in self.bindable and place not in self.plan.options.declared:
                self.joined.setdefault(place, "")
            self.opaque.pop(place, None)
        self._watch.adopt(gone)

    def needs_iterator(self, iteration: Iteration, stack: list[Frame]) -> bool:
        """Whether an iterator that a loop has advanced may be read again after this boundary."""
        needed, _ = outlook(stack, self.plan.unit, {}, "")
        return any(
            iteration.replay is not None and iteration.replay.walks(self.places[name])
            for name in needed
            if name in self.places
        )
