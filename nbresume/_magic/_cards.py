"""The card of a running cell, and the sign of life that goes out with it."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.display import display, update_display

from .._card import View, mimebundle
from .._session import view
from .._store import RunFolder

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

PERIOD = 1.0
"""Seconds between two looks at a running run: enough for a person, and few enough for the server's rate limit."""
BEAT = 30.0
"""Longest time between two messages: whoever ends idle kernels takes one for idle that has said nothing for minutes."""
SHARE = 0.02
"""Part of the time that may go into looking; a long journal takes a while to read."""


class Cards:
    """Shows the card of a run while its cell executes, and keeps it up to date.

    A thread does the updating: a step of the user's loop may take an hour, and a kernel that says nothing for so long
    is taken for an idle one. So something is sent even while looking is not worth its cost, or not possible. Where no
    thread can run, in a C call that holds the interpreter's lock, nothing can be sent either.

    Parameters
    ----------
    shell : InteractiveShell
        Of a kernel; in a terminal nothing is shown.
    on_change : callable
        Called when a cell starts or ends.
    on_look : callable
        Called at each look in between, by the thread.

    Attributes
    ----------
    series : callable
        Returns the numbers that the cell of a run has collected.
    """

    def __init__(self, shell: InteractiveShell, on_change: Callable[[], None], on_look: Callable[[], None]) -> None:
        self._shell, self._on_change, self._on_look = shell, on_change, on_look
        self.series: Callable[[RunFolder], Mapping[str, Sequence[float]]] = lambda _run: {}
        self._live = getattr(shell, "kernel", None) is not None
        self._shown = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def changed(self, run: RunFolder) -> None:
        """Show a run anew; a card must never end the user's cell."""
        if not self._live:
            return
        self._stop()
        with contextlib.suppress(OSError):
            now = self._view(run)
            bundle = mimebundle(now)
            # The same cell may run often, and each execution starts with an empty output.
            ident = f"nbresume-{run.id}-{_execution(self._shell)}"
            if self._shown == ident:
                _update(bundle, ident)
            else:
                self._shown = ident
                display(bundle, raw=True, display_id=ident)
            if now.state == "running":
                self._follow(run, ident, bundle)
        self._on_change()

    def _view(self, run: RunFolder) -> View:
        return replace(view(run), metrics=self.series(run))

    def _follow(self, run: RunFolder, ident: str, bundle: dict[str, str]) -> None:
        self._ended = ended = threading.Event()

        def follow() -> None:
            shown, left = bundle, PERIOD
            while not ended.wait(wait := min(left, BEAT)):
                left -= wait
                if left <= 0:
                    began = time.thread_time()
                    with contextlib.suppress(OSError):  # the next look may succeed; until then, what was seen last
                        shown = mimebundle(self._view(run))
                        self._on_look()
                    left = max(PERIOD, (time.thread_time() - began) / SHARE)
                _update(shown, ident)

        in_cell = contextvars.copy_context().run  # a click that the kernel serves meanwhile is no one's cell
        self._thread = threading.Thread(target=in_cell, args=(follow,), name="nbresume-card", daemon=True)
        self._thread.start()

    def _stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _update(bundle: dict[str, str], ident: str) -> None:
    update_display(bundle, raw=True, display_id=ident)


def _execution(shell: InteractiveShell) -> str:
    """Tell one execution of a cell from another."""
    kernel: Any = getattr(shell, "kernel", None)
    with contextlib.suppress(Exception):  # kernels differ in what they know of their parent
        return str(kernel.get_parent("shell")["header"]["msg_id"])
    return ""
