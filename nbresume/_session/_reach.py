"""What a cell reaches from its own names: code that is part of its identity, and inputs."""

from __future__ import annotations

import ast
import builtins
import datetime as dt
import functools
import sys
import time
import types
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from .._capture import carries_state
from .._identity import Identity, Part, class_data, fingerprint, is_local_module
from .._identity._code import local_module_of, mentioned, module_parts, reaches_any_name, reads_and_writes
from .._transform import CellPlan, attributes_set
from ._places import Places
from ._sources import class_source, source_of
from ._surroundings import version_of

CELL, DECLARED_NAMES = "the cell", "--vars"
"""Parts of the code that every identity has."""
IMMUTABLE = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis))


@dataclass(slots=True)
class Reached:
    """What a cell reaches.

    Attributes
    ----------
    code : dict of str to Part
        Functions and classes of the notebook, local modules.
    inputs : set of str
        Places whose values the cell, or what it calls, reads.
    rebound : set of str
        Global names that called functions rebind.
    versions : dict of str to Part
        Packages reached.
    homes : set of str
        Classes of the notebook (``K.``) and local modules (``module:``) that it reaches.
    functions : set of str
        Functions of the notebook that it reaches by name.
    attributes : set of str
        Places in modules that it sets.
    any_name : bool
        Whether it can touch globals that no code names.
    wanted : set of str
        Names that were looked for and are not there.
    mentioned : set of str
        Names of any kind that the code of functions mentions.
    opaque : set of str
        Inputs with something in them that can't be looked into.
    """

    code: dict[str, Part] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    rebound: set[str] = field(default_factory=set)
    versions: dict[str, Part] = field(default_factory=dict)
    homes: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    any_name: bool = False
    wanted: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)


def module_part(module: types.ModuleType) -> Part:
    """Fingerprint the source of a local module."""
    digest, parts = module_parts(module)
    return Part(digest, details={name: [inner] for name, inner in parts.items()})


class _Walk:
    def __init__(self, places: Places, skip: Collection[str], heads: Mapping[str, Collection[str]]) -> None:
        self.places, self.skip, self.heads = places, skip, heads
        self.found = Reached()
        self._seen: set[int] = set()
        self._names: set[str] = set()

    def names(self, names: Iterable[str]) -> None:
        namespace = self.places.namespace
        for name in names:
            if name in _SHELL or name in self._names or name in self.skip or name.startswith("__nbresume"):
                continue
            self._names.add(name)
            if name not in namespace:
                self.found.wanted |= set() if hasattr(builtins, name) else {name}
                continue
            if not (hasattr(builtins, name) and namespace[name] is getattr(builtins, name)):
                self.value(name, namespace[name])

    def value(self, name: str, value: Any) -> None:
        if foreign_name := self._foreign_name(value):
            self.found.code[name] = Part(foreign_name, foreign_name)
        if isinstance(value, types.ModuleType):
            self.module(value)
        elif isinstance(value, types.FunctionType):
            self.function(name, value)
            self.found.functions.add(name)
            if value.__globals__ is self.places.namespace and carries_state(value):
                self.found.inputs.add(name)
        elif isinstance(value, type):
            self.kind(value)
        elif isinstance(value, types.BuiltinFunctionType) and isinstance(
            value.__self__, (types.ModuleType, type(None))
        ):
            self.version(value.__module__ or "")
        else:
            self.found.inputs.add(name)
            wrapped = getattr(value, "__wrapped__", None)  # such as functools.lru_cache leaves
            if isinstance(wrapped, types.FunctionType):
                self.function(wrapped.__name__, wrapped)
            self.parts(name, value)

    def _foreign_name(self, value: Any) -> str:
        """Name what a name of the notebook stands for, where that is defined elsewhere: ``numpy.mean``."""
        if isinstance(value, types.ModuleType):
            return value.__name__
        if not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
            return ""
        home = getattr(value, "__module__", None) or ""
        return "" if home == "__main__" else f"{home}.{value.__qualname__}".removeprefix("builtins.")

    def parts(self, name: str, value: Any, depth: int = 4) -> None:
        """Look at code that a value brings along: functions in containers, attributes, partials and methods."""
        if id(value) in self._seen or not depth or isinstance(value, IMMUTABLE):
            return
        self._seen.add(id(value))
        self.kind(type(value))
        for part in _inner(value):
            if isinstance(part, types.FunctionType):
                self.function(part.__name__, part)
            elif isinstance(part, type):
                self.kind(part)
            elif not isinstance(part, types.ModuleType):
                self.parts(name, part, depth - 1)

    def function(self, name: str, function: types.FunctionType) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        wrapped = getattr(function, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType):
            self.function(name, wrapped)
        if function.__globals__ is not self.places.namespace:
            self.foreign(function)
            return
        digest, source = fingerprint(function, code_only=True).digest, source_of(function)
        self.found.code[f"{function.__qualname__}()"] = Part(digest, source)
        self.text(source)
        self.body(function)

    def text(self, source: str) -> None:
        """Look at what a text sets in modules."""
        for path in attributes_set(ast.parse(source).body):
            owner: Any = self.places.namespace.get(path[0])
            for name in path[1:-1]:
                owner = getattr(owner, name, None)
            if isinstance(owner, types.ModuleType) and owner.__name__ not in ("os", "sys"):
                self.found.attributes.add(f"{owner.__name__}:{path[-1]}")

    def body(self, function: types.FunctionType) -> None:
        reads, writes = reads_and_writes(function.__code__)
        self.found.rebound |= writes
        self.found.any_name |= reaches_any_name(function.__code__)
        self.found.mentioned |= mentioned(function.__code__)
        self.names(sorted(reads.intersection(self.heads.get(function.__qualname__, reads))))
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            if isinstance(content, (types.FunctionType, type)):
                self.value(getattr(content, "__name__", ""), content)

    def kind(self, kind: type) -> None:
        if id(kind) in self._seen:
            return
        self._seen.add(id(kind))
        if kind.__module__ != "__main__":
            self.foreign(kind)
            return
        self.found.code[f"class {kind.__qualname__}"] = Part(
            fingerprint(kind, code_only=True).digest, class_source(kind)
        )
        if "<" not in kind.__qualname__:
            self.found.homes.add(f"{kind.__qualname__}.")
        self.found.inputs |= {
            f"{kind.__qualname__}.{name}" for name in class_data(kind) if "<" not in kind.__qualname__
        }
        for base in kind.__bases__:
            self.kind(base)
        for member in vars(kind).values():
            inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if isinstance(inner, types.FunctionType):
                self.body(inner)

    def foreign(self, thing: Any) -> None:
        module = local_module_of(thing)
        if module is not None:
            self.module(module)
        else:
            self.version(getattr(thing, "__module__", "") or "")

    def module(self, module: types.ModuleType) -> None:
        if id(module) in self._seen:
            return
        self._seen.add(id(module))
        if not is_local_module(module):
            self.version(module.__name__)
            return
        self.found.code[f"module {module.__name__}"] = module_part(module)
        self.found.homes.add(f"{module.__name__}:")
        for name, value in list(vars(module).items()):
            if isinstance(value, types.ModuleType):
                self.module(value)
            elif isinstance(value, (types.FunctionType, type)):
                self.foreign(value)
            elif not name.startswith("__") and not isinstance(value, types.BuiltinFunctionType):
                self.found.inputs.add(f"{module.__name__}:{name}")

    def version(self, module: str) -> None:
        top = module.partition(".")[0]
        if not top or top in sys.stdlib_module_names or top in ("nbresume", "__main__"):
            return
        if version := version_of(top):
            self.found.versions[top] = Part(version, version)


_WIDE = 1000
_LONG = 400 * 86_400.0
_SESSION = 600.0
_SHELL = frozenset({"open", "get_ipython"})
"""Names that the shell itself keeps in the notebook."""


def _inner(value: Any) -> list[Any]:
    """Return the parts of a value that may hold functions; a long container is data."""
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, dict):
        return list(value.values()) if len(value) < _WIDE else []
    if isinstance(value, (list, tuple)):
        return list(value) if len(value) < _WIDE else []
    return list(vars(value).values()) if type(value).__module__ == "__main__" and hasattr(value, "__dict__") else []


def reach(plan: CellPlan, places: Places) -> Reached:
    """Find what a cell reaches."""
    unit = plan.unit
    names = {name: getattr(unit, name) for name in ("bound", "entry", "read_inside", "reads")}
    return reach_from(names, places, source=plan.source)


def reach_from(
    unit: Mapping[str, AbstractSet[str]],
    places: Places,
    heads: Mapping[str, Collection[str]] = MappingProxyType({}),
    *,
    source: str = "",
) -> Reached:
    """Find what code reaches from its names.

    Parameters
    ----------
    unit : mapping
        What the code does with names: ``bound``, ``entry``, ``read_inside``, ``reads``.
    places : Places
        The notebook's names.
    heads : mapping
        Functions of which only a part counts, and the names that this part reads.
    source : str
        The code itself, for what it does beside naming names.
    """
    walk = _Walk(places, unit["bound"] - unit["entry"], heads)
    walk.names(sorted(unit["entry"] | unit["read_inside"] | unit["reads"]))
    walk.text(source)
    walk.found.any_name |= any(reaches_any_name(_compiled(node)) for node in ast.parse(source).body)
    return walk.found


def _compiled(statement: ast.stmt) -> types.CodeType:
    """Compile one statement of a cell by itself, as IPython does: ``global x`` may follow a use of x."""
    module = ast.Module([statement], [])
    code: types.CodeType = compile(module, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


def identify(plan: CellPlan, found: Reached, places: Places) -> Identity:
    """Fingerprint what must stay equal.

    Declared names, and others that the cell carries on from outside, count by their schema; all other inputs count by
    their content.
    """
    options, unit = plan.options, plan.unit
    carried = set(options.declared) | (unit.entry & unit.bound)
    config: dict[str, Part] = {}
    entry: dict[str, Part] = {}
    for place in sorted(found.inputs | {name for name in options.declared if name not in unit.bound}):
        if place in places and is_clock(places[place]):
            # When an earlier cell looked at a clock is no part of the experiment; the run keeps its own time.
            config[place] = Part("a time", "a time")
        elif place in places:
            print_ = fingerprint(places[place], schema_only=place in carried, in_detail=True)
            config[place] = Part(print_.digest, print_.text, print_.details)
            found.opaque |= {place} if print_.holes else set()
            if place in carried:
                entry[place] = Part(fingerprint(places[place]).digest)
    code = {CELL: Part(fingerprint(plan.source).digest, plan.source)}
    declared = ", ".join(sorted(options.declared))
    code[DECLARED_NAMES] = Part(declared, declared)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    environment = {"python": Part(python, python), **found.versions}
    return Identity({**code, **found.code}, config, environment, entry=entry)


def is_clock(value: Any) -> bool:
    """Whether a value is a time that this process, or one not long ago, read from a clock."""
    if isinstance(value, dt.datetime):
        value = value.timestamp()
    if type(value) is not float or round(value, 2) == value:
        return False
    return abs(time.time() - value) < _LONG or 0 <= time.perf_counter() - value < time.process_time() + _SESSION
