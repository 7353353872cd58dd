"""Not too often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Seldom:
    """Does something at most once a period; what comes too soon is done together, when the period is over."""

    def __init__(self, act: Callable[[], None], period: float) -> None:
        self._act, self._period = act, period
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._last = -period

    def __call__(self) -> None:
        with self._lock:
            if self._timer is not None:
                return
            wait = self._last + self._period - time.monotonic()
            if wait > 0:
                self._timer = threading.Timer(wait, self._late)
                self._timer.daemon = True
                self._timer.start()
                return
            self._last = time.monotonic()
        self._act()

    def _late(self) -> None:
        with self._lock:
            self._timer, self._last = None, time.monotonic()
        self._act()
