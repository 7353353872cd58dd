"""What a boundary refuses although each part of it can be saved: apart, or again, it would be something else."""

from __future__ import annotations

import random
import types
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._capture import Captured, Definitions, culprit, keeps_order, put_rng, reachable, restore, rng_state, unsaveable
from .._identity import fingerprint
from .._transform import UnitPlan
from ..errors import RefusedError, UnsaveableError
from ._places import Places
from ._skip import is_bar

TRIALS = 4
"""Snapshots that are loaded once from memory: the first ones, in which the loop has bound all its names."""

_SMALL = 1 << 20
_STREAMS = (random.Random, np.random.Generator, np.random.BitGenerator, np.random.RandomState)
_SHAREABLE = (list, dict, set, bytearray, array, deque, np.ndarray, *_STREAMS)
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


class Refusals:
    """Looks at what a boundary is about to save, for one run of a cell.

    Parameters
    ----------
    unit : UnitPlan
        The cell.
    places : Places
        The notebook's names.
    definitions : Definitions
        Its functions and classes.
    """

    def __init__(self, unit: UnitPlan, places: Places, definitions: Definitions) -> None:
        self.unit, self.places, self.definitions = unit, places, definitions
        self._trials = self._torn_checks = TRIALS
        self._remade: dict[str, tuple[str, type]] = {}

    def changed_opaque(self, opaque: Mapping[str, str]) -> None:
        """Refuse when an input that can't be saved is no longer what the launch found."""
        for place, digest in opaque.items():
            if digest and place in self.places and fingerprint(self.places[place]).digest != digest:
                raise self._changed(place, f"and the loop changes {place!r}")

    def _changed(self, place: str, why: str) -> UnsaveableError:
        value = self.places[place]
        error = unsaveable(value, definitions=self.definitions) or TypeError("it can't be saved")
        found = culprit(place, value, error, definitions=self.definitions)
        way = "Keep what changes in a variable of its own, without the part that can't be saved"
        return UnsaveableError(found.path, found.type_name, why, way)

    def torn(self, values: Mapping[str, Any], made_again: Iterable[str], changing: Iterable[str]) -> None:
        """Refuse what is made again instead of saved and holds a saved object that the loop changes.

        Made again, it would hold the set-up's object, and the names the restored one.
        """
        if self._torn_checks <= 0:
            return
        self._torn_checks -= 1
        owners = {id(one): name for name in changing for one in reachable(values[name]).values()}
        for name in sorted(made_again):
            value = self.places[name]
            if isinstance(value, _CODE):
                continue
            for key, shared in reachable(value).items():
                if key in owners and (isinstance(shared, _SHAREABLE) or type(shared).__module__ == "__main__"):
                    raise RefusedError(
                        f"{name!r} can't be saved and holds an object of {owners[key]!r}, which the loop changes: made "
                        "again, it would hold another",
                        f"Keep what {name!r} changes in a variable of its own, or make {name!r} inside the loop",
                    )

    def changed_remade(self, names: Iterable[str]) -> None:
        """Refuse what is made again by its statement and has changed since, if anybody reads what it holds."""
        for name in sorted(names):
            if name not in self.places or is_bar(self.places[name]):
                continue
            value = self.places[name]
            found = fingerprint(value)
            digest, kind = self._remade.setdefault(name, (found.digest, type(value)))
            if "sqlite3.Connection" in found.holes and _in_memory(value):
                raise UnsaveableError(name, "sqlite3.Connection", "its database is in memory", "Give it a file")
            if kind is type(value) and digest != found.digest:
                raise self._changed(name, f"{name!r} is made again by its statement, and the loop has changed it")

    def unloadable(self, captured: Captured, inputs: Mapping[str, Any]) -> None:
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

    def drawn_sets(self, values: Mapping[str, Any]) -> None:
        """Refuse to save a set whose hidden order the cell draws from, where that order can't be had again."""
        for name in self.unit.order_drawn & values.keys():
            value = values[name]
            if type(value) in (set, frozenset) and not keeps_order(value):
                raise RefusedError(
                    f"the cell draws from the order of the set {name!r}, which is another in each kernel",
                    f"Use sorted({name}) there, or a list or dict in its place",
                )

    def popped_sets(self, values: Mapping[str, Any]) -> None:
        """Refuse ``a_set.pop()`` where it takes from an order that can't be had again."""
        for name in self.unit.popped & values.keys():
            if type(values[name]) is set and not keeps_order(values[name]):
                raise RefusedError(
                    f"{name}.pop() takes from the hidden order of a set, which can't be saved",
                    f"Use a list or a deque, or take the smallest: x = min({name}); {name}.remove(x)",
                )


def _in_memory(value: Any) -> bool:
    if not hasattr(value, "execute") or type(value).__module__ != "sqlite3":
        return False
    return any(not row[2] for row in value.execute("PRAGMA database_list"))


def _trial(captured: Captured) -> Callable[[Mapping[int, NDArray[Any]]], None]:
    def read(targets: Mapping[int, NDArray[Any]]) -> None:
        for index, target in targets.items():
            block = captured.blocks[index]
            # What a foreign object finds in a buffer it may believe: it gets the bytes themselves.
            if target.nbytes <= _SMALL or block.layout.maker in ("frozen", "filled"):
                block.fill(target)

    return read
