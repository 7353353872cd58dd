"""Someone wants the cell to stop: the first interrupt waits for the next boundary, the second does not.

A handler only sets a flag; it runs between any two instructions of the user's code, and of ours. Durability comes from
the snapshots at the boundaries, never from a last word.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupts:
    """Holds the interrupt key while a cell runs.

    Parameters
    ----------
    on_first : callable
        Told of the first interrupt: it asks for a stop at the next boundary.
    plainly : bool
        The cell catches KeyboardInterrupt itself: deliver every interrupt as Python does.
    """

    def __init__(self, on_first: Callable[[], None], *, plainly: bool) -> None:
        self._on_first = on_first
        self._plainly = plainly
        self._pid = os.getpid()
        self._previous: Any = None
        self._held = False
        self._waiting = False
        self.asked = False

    def start(self) -> None:
        """Take the signal; off the main thread nobody can."""
        if not self._plainly and threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)

    def stop(self) -> None:
        """Give the signal back to whoever had it."""
        if self._previous is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def hold(self) -> None:
        """Begin what must not be torn: a second interrupt waits for ``let_go``."""
        self._held = True

    def let_go(self) -> None:
        """End it; a second interrupt that came meanwhile is delivered now."""
        self._held = False
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    def _handle(self, _signum: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._pid:  # a forked worker inherits the handler: behave as if we were never here
            raise KeyboardInterrupt
        if not self.asked:
            self.asked = True
            self._on_first()
        elif self._held:
            self._waiting = True
        else:
            raise KeyboardInterrupt
