"""Numbers that a cell collects, to be plotted small on its card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

_FEWEST, _MOST, _PLOTS = 2, 1 << 17, 6
_FLOATS = (float, np.floating)


def series(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the lists of floats among some variables: losses, scores, whatever a loop appends to.

    From any thread: a list is copied in one step, whoever appends to it.

    Parameters
    ----------
    names : iterable of str
        Variables of the cell, in the order to show; also dictionaries of such lists.
    namespace : mapping
        The notebook's globals.
    """
    found: dict[str, list[float]] = {}
    for name in names:
        for label, value in _lists(name, namespace.get(name)):
            numbers = _numbers(value)
            if numbers and len(found) < _PLOTS:
                found[label] = numbers
    return found


def _lists(name: str, value: Any) -> Iterator[tuple[str, list[Any]]]:
    if type(value) is list:
        yield name, value
    elif type(value) is dict:
        yield from ((f"{name}.{key}", one) for key, one in value.copy().items() if type(one) is list)


def _numbers(value: list[Any]) -> list[float]:
    """Return the numbers of a list, if it holds nothing else and not whole ones alone: those count, or are indices."""
    copied = value[-_MOST:]
    if len(copied) < _FEWEST or not isinstance(copied[-1], (int, float, np.number)):
        return []
    if not all(isinstance(one, (*_FLOATS, int, np.integer)) and not isinstance(one, bool) for one in copied):
        return []
    return [float(one) for one in copied] if any(isinstance(one, _FLOATS) for one in copied) else []
