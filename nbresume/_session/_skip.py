"""Passing over items without making them: a sampler tells a ``DataLoader``'s order, and a bar's count is a number.

Understood are ``enumerate`` and ``zip`` around loaders without workers, bars, and what knows its position. What has to
be made again is drawn from below the bars inside: they would count it at a pace that no iteration has.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from ._positions import LEAVES

_T = TypeVar("_T")
_MAP_STYLE = 0
"""torch's number for a dataset that is read by index."""


def is_bar(value: Any) -> bool:
    """Whether a value wraps an iterable as ``tqdm`` does."""
    return all(hasattr(value, name) for name in ("iterable", "n", "initial", "update", "total"))


class Given:
    """Stands in a bar's ``iterable`` until the bar asks for its items; then the bar has its own back."""

    def __init__(self, bar: Any, items: Iterator[Any]) -> None:
        self._bar, self._whole, self.items = bar, bar.iterable, items
        bar.iterable = self

    def __iter__(self) -> Iterator[Any]:
        self._bar.iterable = self._whole
        return self.items


def start_bar_at(bar: Any, count: int) -> None:
    """Let a bar that has not begun begin at k of N."""
    bar.n = bar.initial = bar.last_print_n = count


def start_clock(bar: Any) -> None:
    """Let a bar count the time from now on, without what the way back took, and show where it stands."""
    for act in ("unpause", "refresh"):
        if callable(found := getattr(bar, act, None)):
            found()


def bare(iterator: Any) -> Any:
    """Return an iterator over the same items that moves no bar."""
    bar = _bar_of(iterator)
    if bar is not None:
        return bare(_given(bar).items)
    kind = type(iterator)
    if kind not in (enumerate, zip):
        return iterator
    parts, more = _made_of(iterator)
    return _made_with(kind, [bare(part) for part in parts], more)


def behind_bars(iterator: Any, moved: Any, count: int) -> tuple[Any, list[Any]]:
    """Put what ``bare`` gave, and what has given ``count`` items since, behind the bars again.

    Parameters
    ----------
    iterator : iterator
        With the bars, none of which has begun.
    moved : iterator
        Without them.
    count : int
        Where they stand now.

    Returns
    -------
    iterator
        What gives the next item.
    bars : list of object
        Those inside.
    """
    bar = _bar_of(iterator)
    if bar is not None:
        given = _given(bar)
        given.items, within = behind_bars(given.items, moved, count)
        start_bar_at(bar, count)
        return iterator, [bar, *within]
    kind = type(iterator)
    if kind not in (enumerate, zip):
        return moved, []
    parts, more = _made_of(moved)
    pairs = zip(_made_of(iterator)[0], parts, strict=True)
    found = [behind_bars(part, past, count) for part, past in pairs]
    bars = [bar for _, some in found for bar in some]
    return (_made_with(kind, [part for part, _ in found], more) if bars else moved), bars


def has_bar(iterator: Any) -> bool:
    """Whether a bar that has not begun is inside."""
    if _bar_of(iterator) is not None:
        return True
    return type(iterator) in (enumerate, zip) and any(map(has_bar, _made_of(iterator)[0]))


def _made_of(iterator: Any) -> tuple[list[Any], Any]:
    """Return what an ``enumerate`` or ``zip`` walks over, and its count or its strictness."""
    _, arguments, *state = iterator.__reduce__()
    if type(iterator) is enumerate:
        return [arguments[0]], arguments[1]
    return list(arguments), bool(state and state[0])


def _made_with(kind: type, parts: list[Any], more: Any) -> Any:
    return enumerate(parts[0], more) if kind is enumerate else zip(*parts, strict=more)


def enter_samplers(iterator: Any, watch: Callable[[Any], _T]) -> list[_T]:
    """Put a watch between each loader inside and its sampler; none where anything else is inside."""
    loaders = _loaders(iterator)
    found = []
    for loader in loaders or ():
        loader._sampler_iter = watched = watch(loader._sampler_iter)  # noqa: SLF001  # the one place that tells the order
        found.append(watched)
    return found


def _loaders(iterator: Any) -> list[Any] | None:
    """Return the loaders inside; None where there is what can't be passed over."""
    if _is_loader(iterator):
        return [iterator]
    if type(iterator) in LEAVES:
        return []
    parts = _parts(iterator)
    if parts is None:
        return None
    inner = [_loaders(part) for part in parts]
    return None if None in inner else [loader for found in inner for loader in found or ()]


def _is_loader(iterator: Any) -> bool:
    return type(iterator).__name__ == "_SingleProcessDataLoaderIter" and iterator._dataset_kind == _MAP_STYLE  # noqa: SLF001


def _parts(iterator: Any) -> list[Any] | None:
    if type(iterator) in (enumerate, zip):
        return _made_of(iterator)[0]
    bar = _bar_of(iterator)
    return None if bar is None else [_given(bar).items]


def _given(bar: Any) -> Given:
    found: Any = bar.iterable
    return found if isinstance(found, Given) else Given(bar, iter(found))


def _bar_of(iterator: Any) -> Any:
    """Return the bar whose items an iterator gives, if it has not begun."""
    if not isinstance(iterator, types.GeneratorType) or inspect.getgeneratorstate(iterator) != inspect.GEN_CREATED:
        return None
    bar = inspect.getgeneratorlocals(iterator).get("self") if iterator.gi_code.co_name == "__iter__" else None
    return bar if is_bar(bar) else None


def skipped(iterator: Any, count: int) -> Any:
    """Return an iterator that stands ``count`` items further; its samplers have been advanced by themselves."""
    if _is_loader(iterator):
        return iterator
    kind = type(iterator)
    if kind in (enumerate, zip):
        parts, more = _made_of(iterator)
        more = more + count if kind is enumerate else more
        return _made_with(kind, [skipped(part, count) for part in parts], more)
    bar = _bar_of(iterator)
    if bar is not None:
        bar.iterable.items = skipped(bar.iterable.items, count)
        start_bar_at(bar, count)
        return iterator
    next(islice(iterator, count, count), None)
    return iterator
