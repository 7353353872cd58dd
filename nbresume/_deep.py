"""Work that recurses once for each level of a nest: a linked list of thousands of nodes is one.

Python ends it at ``sys.getrecursionlimit()``, a thousand levels by default, so that the C stack never overflows. A
thread may have a larger stack, and then the limit can be as much higher. Most values are flat: the thread is only
started where the limit was met.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LEVELS = 100_000
_STACK = 512 << 20
"""Bytes: address space, of which only what is used becomes memory."""


def deeply(work: Callable[[], T]) -> T:
    """Do work; once more, with room for ``LEVELS`` levels, where it recurses too deep.

    Parameters
    ----------
    work : callable
        May be called twice.

    Raises
    ------
    RecursionError
        When that is not enough, or the system has no room for the stack.
    """
    try:
        return work()
    except RecursionError as error:
        short = error
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001  # raised again, in the thread that asked
            raised.append(error)

    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(max(limit, LEVELS))
        _start(run, short).join()
    finally:
        sys.setrecursionlimit(limit)
    if raised:
        raise raised[0]
    return found[0]


def _start(run: Callable[[], None], short: RecursionError) -> threading.Thread:
    """Start a thread with a large stack, or raise what the first try met where the system has no room for one."""
    size = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=run, name="nbresume-deep")
        thread.start()
    except RuntimeError:
        raise short from None
    finally:
        threading.stack_size(size)
    return thread
