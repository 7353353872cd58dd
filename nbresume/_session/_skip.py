"""Passing over items without making them: a sampler tells a ``DataLoader``'s order, and a bar's count is a number.

Understood are ``enumerate`` and ``zip`` around loaders without workers, bars, and what knows its position.
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
    if type(iterator) is enumerate:
        return [iterator.__reduce__()[1][0]]
    if type(iterator) is zip:
        return list(iterator.__reduce__()[1])
    bar = _bar_of(iterator)
    if bar is None:
        return None
    if not isinstance(bar.iterable, Given):
        Given(bar, iter(bar.iterable))
    return [bar.iterable.items]


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
    if type(iterator) is enumerate:
        made_of: Any = iterator.__reduce__()[1]
        return enumerate(skipped(made_of[0], count), made_of[1] + count)
    if type(iterator) is zip:
        return zip(*(skipped(part, count) for part in iterator.__reduce__()[1]), strict=False)
    bar = _bar_of(iterator)
    if bar is not None:
        bar.iterable.items = skipped(bar.iterable.items, count)
        start_bar_at(bar, count)
        return iterator
    next(islice(iterator, count, count), None)
    return iterator
