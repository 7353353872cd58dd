"""Structural fingerprints of values.

A fingerprint does not depend on the hash seed, on string interning, on the history of a dict or on object identity,
and nothing is compared by the ``repr`` of an address. What can't be looked into counts by its type and is named as a
*hole*, so that a reader knows what was not compared.

The order of a dict does not count: a plain container that a cell reads is saved with the run, so a resume iterates it
in the order of the launch whatever the notebook built this time.
"""

from __future__ import annotations

import copyreg
import dataclasses
import random
import sys
import types
from typing import Any

import numpy as np
import xxhash

from .._deep import deeply
from ._asked import shown
from ._code import function_digest, nested_codes, rebound_cells
from ._details import Details, details, exactly

_SCALARS: tuple[type, ...] = (type(None), bool, int, float, complex, str, bytes)
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})
_TEXT = 60
_PLAIN_DEPTH = 3
_ENDLESS = 10**1000
_OPAQUE = (types.GeneratorType, types.CoroutineType, types.FrameType, types.TracebackType)
_PROCESS = frozenset({"nbresume", "IPython", "ipykernel", "concurrent", "multiprocessing", "threading", "matplotlib"})
"""Packages whose objects belong to the process: they are made again, and their insides are nobody's experiment."""
_OBJECT_METHODS = (object.__reduce__, object.__reduce_ex__, getattr(object, "__getstate__", None))


@dataclasses.dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of one value.

    Attributes
    ----------
    digest : str
        Equal for equal values.
    text : str
        A short rendering for a person; never an address.
    holes : tuple of str
        Types inside the value that could only be compared by their name.
    details : dict
        Its parts, where asked for.
    """

    digest: str
    text: str
    holes: tuple[str, ...] = ()
    details: Details = dataclasses.field(default_factory=dict)


def fingerprint(
    value: Any, *, schema_only: bool = False, code_only: bool = False, in_detail: bool = False
) -> Fingerprint:
    """Fingerprint a value by its structure and content.

    Parameters
    ----------
    value : object
        Any value.
    schema_only : bool
        Take numeric arrays and random generators by type and shape, as for a declared variable, whose content is the
        run's own.
    code_only : bool
        Take classes and functions without the data they carry (class attributes, defaults, closures): that is state.
    in_detail : bool
        Whether to keep what lets a difference be told by its parts.
    """
    try:
        digest, holes, parts = deeply(
            lambda: _walk(value, schema_only=schema_only, code_only=code_only, in_detail=in_detail)
        )
    except RecursionError:  # it goes on for ever, or for more than any stack holds
        digest, holes, parts = _hash("hole", _name(value).encode()), {_name(value)}, {}
    return Fingerprint(digest.hex(), short_text(value), tuple(sorted(holes)), parts)


def _walk(value: Any, *, schema_only: bool, code_only: bool, in_detail: bool) -> tuple[bytes, set[str], Details]:
    walker = _Walker(schema_only=schema_only, code_only=code_only)
    digest = walker.digest(value)
    parts: Details = {}
    if in_detail and type(value) not in _SCALARS:
        parts = details(value, lambda part: walker.digest(part).hex()[:16], short_text, marked=not schema_only)
    return digest, walker.holes, parts


def short_text(value: Any) -> str:
    """Render a value in a few words, without an address."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array {value.shape}" if value.size > 1 or value.ndim else repr(value.item())
    if isinstance(value, (*_SCALARS, np.generic)) or _plain(value):
        text = f"int of {value.bit_length():,} bits" if _is_endless(value) else repr(value)
        return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__} {tuple(shape)}"
    size = f" of {len(value)}" if isinstance(value, (list, tuple, dict, set, frozenset)) else ""
    return f"{type(value).__name__}{size}"


def _is_endless(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= _ENDLESS


def _plain(value: Any, depth: int = _PLAIN_DEPTH) -> bool:
    if type(value) in _PLAIN:
        return depth == _PLAIN_DEPTH or not _is_endless(value)
    if depth and type(value) in (list, tuple):
        return len(value) < _TEXT and all(_plain(item, depth - 1) for item in value)
    if depth and type(value) is dict:
        return len(value) < _TEXT and all(_plain(k, 0) and _plain(v, depth - 1) for k, v in value.items())
    return False


class _Walker:
    """Digests a graph bottom up; an object met again counts by its digest, a cycle by its depth."""

    def __init__(self, *, schema_only: bool, code_only: bool) -> None:
        self.schema_only, self.code_only = schema_only, code_only
        self.holes: set[str] = set()
        self._done: dict[int, tuple[bytes, Any]] = {}
        self._path: dict[int, int] = {}

    def digest(self, value: Any) -> bytes:
        kind = type(value)
        if kind in _PLAIN:
            return _hash(kind.__name__, exactly(value))
        if kind is bytearray:
            return _hash("bytearray", bytes(value))
        key = id(value)
        if key in self._done:
            return self._done[key][0]
        if key in self._path:
            return _hash("cycle", str(len(self._path) - self._path[key]).encode())
        self._path[key] = len(self._path)
        try:
            result = self._compound(value)
        finally:
            del self._path[key]
        self._done[key] = (result, value)
        return result

    def _compound(self, value: Any) -> bytes:  # noqa: PLR0911  # one line a kind
        kind = type(value)
        if kind in (list, tuple):
            if set(map(type, value)) <= _PLAIN:
                return _hash(kind.__name__, exactly(value))
            return self._node(kind.__name__, *value)
        if kind is dict:
            return _hash("dict", *sorted(self.digest(k) + self.digest(v) for k, v in value.items()))
        if kind in (set, frozenset):
            return _hash(kind.__name__, *sorted(self.digest(item) for item in value))
        if type(value) is np.ndarray or isinstance(value, np.generic):
            return self._array(value)
        if isinstance(value, np.ma.MaskedArray):
            return self._node(_name(value), np.ma.getdata(value), np.ma.getmaskarray(value), value.fill_value)
        if isinstance(value, np.ndarray):
            return self._node(_name(value), np.asarray(value))
        if isinstance(value, types.MappingProxyType):
            return self._node("mappingproxy", dict(value))
        if isinstance(value, types.ModuleType):
            return _hash("module", value.__name__.encode(), str(getattr(value, "__version__", "")).encode())
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, (types.BuiltinFunctionType, types.MethodType)):
            owner = getattr(value, "__self__", None)
            return self._node("method", value.__name__, None if isinstance(owner, types.ModuleType) else owner)
        if isinstance(value, _OPAQUE) or type(value).__module__.partition(".")[0] in _PROCESS:
            return self._hole(value)
        return self._foreign(value)

    def _foreign(self, value: Any) -> bytes:
        torch, pandas = sys.modules.get("torch"), sys.modules.get("pandas")
        if torch is not None and isinstance(value, torch.Tensor):
            try:
                return self._node(_name(value), str(value.dtype), value.requires_grad, value.detach().cpu().numpy())
            except (RuntimeError, TypeError):
                return self._node(_name(value), str(value.dtype), tuple(value.shape), value.detach().cpu().tolist())
        if pandas is not None and isinstance(value, pandas.DataFrame):
            columns = [value.iloc[:, place].array for place in range(value.shape[1])]
            return self._node("DataFrame", list(value.columns), value.index, *columns)
        if pandas is not None and isinstance(value, (pandas.Series, pandas.Index)):
            index = value.index if isinstance(value, pandas.Series) else None
            parts = value.array if value.dtype.name == "category" else np.asarray(value)
            return self._node(
                _name(value), str(value.dtype), list(value.names if index is None else [value.name]), index, parts
            )
        if self.schema_only and isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)):
            return _hash("rng", _name(value).encode())
        return self._object(value)

    def _object(self, value: Any) -> bytes:
        kind = type(value)
        methods = kind.__reduce_ex__, kind.__reduce__, getattr(kind, "__getstate__", None)
        registered = copyreg.dispatch_table.get(kind)
        custom = registered is not None or any(method not in _OBJECT_METHODS for method in methods)
        attributes = _attributes(value)
        if custom or attributes is None:
            try:
                reduced = registered(value) if registered is not None else value.__reduce_ex__(4)
            except Exception:  # noqa: BLE001  # whatever a foreign reduce raises: it can't be looked into this way
                if not attributes:
                    return self._hole(value)
            else:
                if isinstance(reduced, str):
                    return self._node(_name(value), reduced)
                return self._node(_name(value), *reduced[:3], *(list(part or ()) for part in reduced[3:5]))
        content: list[Any] = []
        if isinstance(value, dict):
            content = [dict(value)]
        elif isinstance(value, (list, tuple, set)):
            content = [list(value)]
        elif (base := next((base for base in _SCALARS if isinstance(value, base)), None)) is not None:
            content = list(base.__getnewargs__(value))  # type: ignore[attr-defined]  # asks nothing of the user's class
        return self._node(_name(value), self._type_of(kind), attributes, *content)

    def _type_of(self, kind: type) -> Any:
        return kind if kind.__module__ == "__main__" else _qualname(kind)

    def _array(self, value: Any) -> bytes:
        head = f"{value.dtype.str}{value.dtype.descr if value.dtype.names else ''}{value.shape}".encode()
        if value.dtype.hasobject:
            return self._node("array", head.decode(), value.tolist())
        if self.schema_only and value.ndim:
            return _hash("array", head)
        return _hash("array", head, np.ascontiguousarray(value).reshape(-1).view("u1").data)

    def _function(self, value: types.FunctionType) -> bytes:
        if value.__module__ != "__main__":
            return _hash("function", f"{value.__module__}.{value.__qualname__}".encode())
        if self.code_only:
            return self._node("function", function_digest(value.__code__), *_fixed_parts(value))
        cells = [cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)]
        return self._node("function", function_digest(value.__code__), value.__defaults__, value.__kwdefaults__, *cells)

    def _class(self, value: type) -> bytes:
        if value.__module__ != "__main__":
            return _hash("class", _qualname(value).encode())
        skip = _NOT_CODE | {name for name, member in vars(value).items() if isinstance(member, _DESCRIPTORS)}
        if self.code_only:
            skip = skip | set(class_data(value))
        members = {name: _unwrap(member) for name, member in vars(value).items() if name not in skip}
        # A class reached from its own methods is a cycle, which the walk knows how to end.
        return self._node("class", value.__qualname__, members, *value.__bases__)

    def _hole(self, value: Any) -> bytes:
        self.holes.add(_name(value))
        return _hash("hole", _name(value).encode(), *(self.digest(part) for part in shown(value)))

    def _node(self, tag: str, *children: Any) -> bytes:
        return _hash(tag, *(self.digest(child) for child in children))


# What Python and pickle themselves put into a class; some of it only when an instance is first pickled.
_NOT_CODE = frozenset(
    "__dict__ __weakref__ __module__ __firstlineno__ __static_attributes__ __annotate__ __slotnames__ "
    "__abstractmethods__ __annotations__ __annotations_cache__ _abc_impl".split()
)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def class_data(kind: type) -> dict[str, Any]:
    """Return the class attributes that are data: anything but code, descriptors and Python's own."""
    return {
        name: member
        for name, member in vars(kind).items()
        if not (name.startswith("__") and name.endswith("__"))
        and name not in _NOT_CODE
        and not hasattr(member, "__get__")
        and not isinstance(member, type)
    }


def _unwrap(member: Any) -> Any:
    if isinstance(member, (staticmethod, classmethod)):
        return member.__func__
    if isinstance(member, property):
        return (member.fget, member.fset, member.fdel)
    return member


def _fixed_parts(function: types.FunctionType) -> list[Any]:
    """Return what a function carries and no call can change: it belongs to its code."""
    rebound = {name for code in nested_codes(function.__code__) for name in rebound_cells(code)}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    held = {name: cell.cell_contents for name, cell in cells if name not in rebound and is_filled(cell)}
    defaults = [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
    return [part if _is_fixed(part) else None for part in (*defaults, *sorted(held.items()))]


def _is_fixed(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_fixed, value))
    return type(value) in _SCALARS or isinstance(value, range)


def is_filled(cell: types.CellType) -> bool:
    """Whether a closure's cell holds anything yet."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes that make up an instance, or None when it keeps its content elsewhere."""
    found: dict[str, Any] = {}
    slots = [slot for kind in type(value).__mro__ for slot in slots_of(kind)]
    if not hasattr(value, "__dict__") and not slots:
        return None
    found.update(getattr(value, "__dict__", {}))
    found.update({slot: getattr(value, slot) for slot in slots if hasattr(value, slot)})
    return found


def slots_of(kind: type) -> tuple[str, ...]:
    """Return the slots that a class itself declares for attributes."""
    slots = kind.__dict__.get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(slot for slot in slots if slot not in ("__dict__", "__weakref__"))


def _name(value: Any) -> str:
    return _qualname(type(value))


def _qualname(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _hash(tag: str, *parts: Any) -> bytes:
    hasher = xxhash.xxh3_128(tag.encode() + b"\0")
    for part in parts:
        hasher.update(part)
        hasher.update(b"\1")
    return hasher.digest()
