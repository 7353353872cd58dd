"""Looking at a run again and again until its attempt has ended, without being in its way."""

from __future__ import annotations

import time
from collections.abc import Callable

from .._store import RunFolder

_PERIOD = 1.0
_SHARE = 0.05
"""Part of the time that may go into looking; a long journal takes a while to read."""


def each_second(run: RunFolder, look: Callable[[], None]) -> int:
    """Look each second until the run does not run any more, and once after that.

    Returns
    -------
    int
        Exit status: 0 when the run completed or a person leaves, 1 when it ended otherwise.
    """
    while True:
        began = time.monotonic()
        state = run.lineage().state
        try:
            look()
            if state != "running":
                return 0 if state == "completed" else 1
            time.sleep(max(_PERIOD, (time.monotonic() - began) / _SHARE))
        except KeyboardInterrupt:
            return 0
