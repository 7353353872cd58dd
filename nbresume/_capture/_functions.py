"""Functions and classes of the notebook.

One that its own name finds is saved by that name: restored objects get the notebook's own class, so that ``isinstance``
holds at any depth. A copy made by dill travels with it, for the kernel in which its cell has not been run yet. A lambda
or a closure has no such name: it is saved by its code, and its cells belong to the graph, so that a recorder over a
list
keeps recording into that list.
"""

from __future__ import annotations

import contextlib
import dis
import marshal
import pickle
import sys
import types
import warnings
from dataclasses import dataclass
from typing import Any

from .._identity import fingerprint
from ..errors import ReplayError

_FIXED = (
    type(None), bool, int, float, complex, str, bytes, tuple, frozenset, type, types.FunctionType, types.ModuleType,
    types.BuiltinFunctionType,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class of the notebook, as a snapshot names it."""

    qualname: str
    digest: str
    copy: bytes


class Definitions:
    """Knows the functions and classes of one notebook.

    Parameters
    ----------
    namespace : dict
        The notebook's globals.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self.bindable: frozenset[str] = frozenset()
        """Names that the running cell can bind by itself: what it defines anew in a loop is restored as it was."""
        self.trusts = False
        """Whether a person has declared that definitions of another source are the same run's."""
        self._known: dict[int, tuple[Any, Definition]] = {}
        self._remade: dict[Definition, Any] = {}

    def is_own(self, obj: Any) -> bool:
        """Whether a function can be saved by its code: defined here, or without a name that finds it."""
        return isinstance(obj, types.FunctionType) and (obj.__module__ == "__main__" or "<" in obj.__qualname__)

    def of(self, obj: Any) -> Definition | None:
        """Describe a function or class that its own name finds; None for any other."""
        known = self._known.get(id(obj))
        found = self._lookup(obj.__qualname__) is obj or (known is not None and known[1] in self._remade)
        if obj.__module__ != "__main__" or not found or carries_state(obj):
            return None
        if known is None or known[0] is not obj:
            known = obj, Definition(obj.__qualname__, fingerprint(obj, code_only=True).digest, _copy(obj))
            self._known[id(obj)] = known
        return known[1]

    def find(self, definition: Definition) -> Any:
        """Find the notebook's own, or make the copy.

        Raises
        ------
        ReplayError
            When the notebook's own is another than the one that was saved.
        """
        own = self._lookup(definition.qualname)
        if own is not None and not (
            definition.copy and definition.qualname in self.bindable and self._differs(definition, own)
        ):
            if not self.trusts and self._differs(definition, own):
                name = definition.qualname
                raise ReplayError(f"{name} differs from the one that was saved. Put it back, or supersede the run")
            return own
        if definition not in self._remade:
            if not definition.copy:
                name = definition.qualname
                raise ReplayError(f"{name} is not defined. Run the cell that defines it, then this one again")
            import dill

            made = self._remade[definition] = dill.loads(definition.copy)
            self._known[id(made)] = made, definition
        return self._remade[definition]

    @staticmethod
    def _differs(definition: Definition, own: Any) -> bool:
        return fingerprint(own, code_only=True).digest != definition.digest

    def _lookup(self, qualname: str) -> Any:
        found: Any = None
        for place, part in enumerate(qualname.split(".")):
            found = self._namespace.get(part) if place == 0 else getattr(found, part, None)
        return found

    def make_function(self, code: bytes, name: str, module: str, closure: tuple[types.CellType, ...] | None) -> Any:
        """Make a function of its code; its globals are the notebook's, or those of the module it came from."""
        home = self._namespace if module == "__main__" else vars(sys.modules[module])
        return types.FunctionType(marshal.loads(code), home, name, None, closure)  # noqa: S302  # verified bytes


def carries_state(obj: Any) -> bool:
    """Whether a function carries what may change from call to call: attributes, mutable defaults, closure cells."""
    if not isinstance(obj, types.FunctionType):
        return False
    defaults = [*(obj.__defaults__ or ()), *(obj.__kwdefaults__ or {}).values()]
    held = [*(name for name in vars(obj) if name != "__wrapped__")]
    return bool(held) or any(not isinstance(value, _FIXED) for value in [*defaults, *_contents(obj)])


def _contents(function: types.FunctionType) -> list[Any]:
    """Return what the closure of a function holds; a variable that it rebinds counts as changing."""
    found: list[Any] = []
    if not function.__closure__:
        return found
    rebinds = {i.argval for i in dis.get_instructions(function.__code__) if i.opname == "STORE_DEREF"}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        with contextlib.suppress(ValueError):
            found.append([] if name in rebinds else cell.cell_contents)
    return found


def _copy(obj: Any) -> bytes:
    """Copy a definition by value; empty when even dill can't, and then its cell has to be run first."""
    import dill

    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        copied: bytes = dill.dumps(obj, byref=False, recurse=False)
        return copied
    return b""


def reduce_function(function: types.FunctionType) -> Any:
    """Reduce a lambda or closure; its state is filled in after it has been made, so that it may refer to itself."""
    state = {
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "qualname": function.__qualname__,
        "module": function.__module__,
        "dict": dict(function.__dict__),
    }
    args = (marshal.dumps(function.__code__), function.__name__, function.__module__, function.__closure__)
    return make_function, args, state, None, None, fill_function


def reduce_cell(cell: types.CellType) -> Any:
    """Reduce a closure's cell, which two closures may share."""
    try:
        content: tuple[Any, ...] = (cell.cell_contents,)
    except ValueError:
        content = ()
    return make_cell, (), {"content": content}, None, None, fill_cell


def make_function(*args: Any) -> Any:
    """Stand in the stream for ``Definitions.make_function``."""
    raise pickle.UnpicklingError(f"a function outside its graph: {args[1]}")


def make_cell() -> types.CellType:
    """Make an empty cell."""
    return types.CellType()


def fill_function(function: types.FunctionType, state: dict[str, Any]) -> None:
    """Give a function what may refer to it."""
    function.__defaults__ = state["defaults"]
    function.__kwdefaults__ = state["kwdefaults"]
    function.__qualname__ = state["qualname"]
    function.__module__ = state["module"]
    function.__dict__.update(state["dict"])


def fill_cell(cell: types.CellType, state: dict[str, Any]) -> None:
    """Give a cell its content."""
    if state["content"]:
        cell.cell_contents = state["content"][0]
