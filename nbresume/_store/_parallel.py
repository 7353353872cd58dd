"""Work on slices in several threads: what reads and digests leaves Python to others, and one core is not all memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_MOST = 4
"""Threads; more of them only wait for the memory."""
_LARGE = 1 << 24
"""Bytes for which starting threads is worth its time."""
_TOGETHER = 8
"""Items that a thread takes at once."""


def threads_for(size: int) -> int:
    """Return how many threads are worth having for so many bytes."""
    if size < _LARGE:
        return 1
    known = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return min(_MOST, len(known))


def for_each(act: Callable[[T], None], items: Sequence[T], threads: int) -> None:
    """Do something with each of many items, and wait until all is done; see ``in_order``."""
    with in_order(act, items, threads) as done:
        for _ in done:
            pass


@contextlib.contextmanager
def in_order(act: Callable[[T], R], items: Sequence[T], threads: int) -> Iterator[Iterator[R]]:
    """Do something with each of many items.

    Parameters
    ----------
    act : callable
        What is done.
    items : sequence
        With what.
    threads : int
        In how many threads. With one, nothing is done before its result is asked for.

    Yields
    ------
    iterator
        The results in the order of the items; an error is raised in its place.
    """
    if threads < 2 or len(items) <= _TOGETHER:  # noqa: PLR2004  # one is this thread
        yield map(act, items)
        return
    from concurrent.futures import ThreadPoolExecutor  # not for those who only look at runs

    pool = ThreadPoolExecutor(threads, "nbresume-slices")
    try:
        groups = [items[at : at + _TOGETHER] for at in range(0, len(items), _TOGETHER)]
        try:
            found = pool.map(lambda group: [act(item) for item in group], groups)
        except RuntimeError:  # no thread can start
            yield map(act, items)
        else:
            yield (result for group in found for result in group)
    finally:
        pool.shutdown(cancel_futures=True)
