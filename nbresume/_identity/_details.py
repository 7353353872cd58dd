"""What a fingerprint can say about a difference later: digests of the parts of a value, and marks of its elements.

Kept with the launch record, so it stays small: a few hundred parts, some kilobytes of marks.
"""

from __future__ import annotations

import base64
import dataclasses
import marshal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import xxhash

PARTS = 200
"""More parts than these are told as one."""
ELEMENTS = 10_000
"""Up to so many elements each has a mark of its own; of more, a block has one."""
_BLOCKS = 1000
_DEPTH = 6
_WHOLE = 64 << 20
"""A larger array has no marks: they would cost another walk over it."""
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})

OTHER_ORDER = "the same in another order; sorted(...) gives what is made from a set one order in every process"
Details = dict[str, list[str]]
"""Digest, text and marks of each part, by its path: ``['optim']['lr']``; the whole value under an empty one."""


def details(value: Any, digest: Callable[[Any], str], text: Callable[[Any], str], *, marked: bool = True) -> Details:
    """Take a value apart.

    Parameters
    ----------
    value : object
        Any value.
    digest, text : callable
        Of a part.
    marked : bool
        Whether elements get marks.
    """
    found: Details = {}
    for path, part in _parts(value, "", 0, set()):
        if len(found) >= PARTS:
            return {}
        found[path] = [digest(part), text(part), marks(part) if marked else ""]
    return found


def _parts(value: Any, path: str, depth: int, above: set[int]) -> Iterator[tuple[str, Any]]:
    inner = None if depth == _DEPTH or id(value) in above else _inside(value)
    if inner is None or len(inner) >= PARTS:
        yield path, value
        return
    for step, part in inner:
        yield from _parts(part, path + step, depth + 1, above | {id(value)})


def _inside(value: Any) -> list[tuple[str, Any]] | None:
    """Return the parts of a value with what leads to each; None for one that is told whole."""
    pandas = sys.modules.get("pandas")
    kind = type(value)
    if isinstance(value, dict):
        items = dict(dict.items(value))  # asks nothing of a class of the user's
        plain = all(type(key) in _PLAIN for key in items)
        return [(f"[{key!r}]", items[key]) for key in sorted(items, key=repr)] if plain else None
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return [(f".{name}", part) for name, part in zip(kind._fields, value, strict=True)]
    if kind in (list, tuple):
        return [(f"[{place}]", part) for place, part in enumerate(value)] if not _is_flat(value) else None
    if pandas is not None and isinstance(value, pandas.DataFrame):
        whole = [(" shape", value.shape), (".index", value.index)]
        return whole + [(f"[{name!r}]", value.iloc[:, place]) for place, name in enumerate(value.columns)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return [(f".{name}", getattr(value, name)) for name in names if hasattr(value, name)]
    if kind.__module__ == "__main__" and not isinstance(value, type) and vars_of(value):
        return [(f".{name}", part) for name, part in sorted(vars_of(value).items())]
    return None


def vars_of(value: Any) -> dict[str, Any]:
    """Return the plain attributes of an instance."""
    return dict(getattr(value, "__dict__", {}))


def _is_flat(value: Sequence[Any]) -> bool:
    return len(value) > 1 and set(map(type, value)) <= _PLAIN


def marks(value: Any) -> str:
    """Return two bytes for each element, or block of elements, of an array or flat list; empty for anything else."""
    if isinstance(value, np.ndarray) and value.ndim and not value.dtype.hasobject and value.nbytes <= _WHOLE:
        flat = np.ascontiguousarray(value).reshape(-1)
        return _marks(len(flat), lambda start, stop: flat[start:stop].view("u1").data)
    if type(value) in (list, tuple) and _is_flat(value):
        return _marks(len(value), lambda start, stop: exactly(value[start:stop]))
    if type(value) is dict and value and {*map(type, value), *map(type, value.values())} <= _PLAIN:
        return marks([value[key] for key in sorted(value, key=repr)])
    return ""


def exactly(value: Any) -> bytes:
    """Return the bytes of a plain value, or of a flat list of them: its types and bits, and no history.

    This version of the format knows neither shared objects nor interned texts. Floats stand in it by their bits.
    """
    return marshal.dumps(value, 2)


def _marks(count: int, block: Callable[[int, int], Any]) -> str:
    size = block_size(count)
    found = b"".join(xxhash.xxh32_digest(block(start, min(start + size, count)))[:2] for start in range(0, count, size))
    return f"{count}:{base64.b64encode(found).decode()}"


def block_size(count: int) -> int:
    """Tell how many elements share a mark."""
    return 1 if count <= ELEMENTS else -(-count // _BLOCKS)


def marks_differ(old: str, new: str) -> str:
    """Tell how many elements differ, and where the first one stands; empty where marks can't tell."""
    if not old or not new or old.partition(":")[0] != new.partition(":")[0]:
        return ""
    count = int(old.partition(":")[0])
    one, other = (np.frombuffer(base64.b64decode(marks.partition(":")[2]), "u2") for marks in (old, new))
    places = np.flatnonzero(one != other)
    if not len(places):
        return ""
    if np.array_equal(np.sort(one), np.sort(other)):
        return OTHER_ORDER
    size, first = block_size(count), int(places[0])
    if size == 1:
        return f"{len(places):,} of {count:,} elements differ, first at [{first}]"
    return f"content differs, first in [{first * size}:{min((first + 1) * size, count)}]"
