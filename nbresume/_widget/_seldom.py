"""Not too often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Seldom:
    """Does something, and rests for a period after it; what is asked meanwhile is done together, when that is over.

    Whoever asks does it himself where nothing hinders; else a thread does.

    Parameters
    ----------
    act : callable
        What is done.
    period : float
        Seconds from the end of one to the beginning of the next.
    """

    def __init__(self, act: Callable[[], None], period: float) -> None:
        self._act, self._period = act, period
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_busy = self._is_asked = False
        self._ended = time.monotonic() - period

    def __call__(self) -> None:
        """Ask for it."""
        with self._lock:
            if self._is_busy:
                self._is_asked = True
                return
            if self._timer is not None:
                return
            wait = self._ended + self._period - time.monotonic()
            if wait > 0:
                self._timer = threading.Timer(wait, self._late)
                self._timer.daemon = True
                self._timer.start()
                return
            self._is_busy = True
        self._do()

    def _late(self) -> None:
        with self._lock:
            self._timer, self._is_busy = None, True
        self._do()

    def _do(self) -> None:
        try:
            self._act()
        finally:
            with self._lock:
                self._is_busy, self._ended = False, time.monotonic()
                is_asked, self._is_asked = self._is_asked, False
        if is_asked:
            self()
