"""Cards and the panel in front of a person."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from IPython.display import display, update_display

from .._card import View, mimebundle
from .._session import Host, active_host, say, view, views
from .._store import RunFolder
from ..errors import NotFoundError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .._widget import Panel

_PERIOD = 1.0
"""Seconds between two updates of a card: enough for a person, and few enough for the server's rate limit."""


class Cards:
    """Shows the card of a run while its cell executes, and keeps it up to date."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._live = getattr(shell, "kernel", None) is not None
        self._shown = ""
        self._last = 0.0

    def changed(self, run: RunFolder, *, final: bool = True) -> None:
        """Show a run anew; a card must never end the user's cell."""
        if not self._live:
            return
        now = time.monotonic()
        if not final and now - self._last < _PERIOD:
            return
        self._last = now
        with contextlib.suppress(OSError):
            bundle = mimebundle(view(run))
            ident = f"nbresume-{run.id}"
            attempts = f"{ident}-{len(run.lineage().attempts)}"
            if self._shown == attempts:
                update_display(bundle, raw=True, display_id=attempts)
            else:
                self._shown = attempts
                display(bundle, raw=True, display_id=attempts)


def offer_when_seen(shell: InteractiveShell, host: Host) -> None:
    """Show the offer of interrupted runs: now when in a cell, else with the first cell that runs.

    What a startup file displays is lost.
    """
    if not _in_cell(shell):

        def once(_info: Any) -> None:
            shell.events.unregister("pre_run_cell", once)
            show_offer(host)

        shell.events.register("pre_run_cell", once)
    else:
        show_offer(host)


def _in_cell(shell: InteractiveShell) -> bool:
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return True
    with contextlib.suppress(Exception):  # kernels differ in what they know of their parent
        return bool(kernel.get_parent("shell"))
    return True


def show_offer(host: Host) -> None:
    """Show the card of every interrupted run, and the panel where someone is there to click."""
    waiting = [view(run, offer=True) for run in host.store if run.lineage().state == "interrupted"]
    for one in waiting:
        display(mimebundle(one), raw=True)
    if waiting and host.attended() and _has_front_end():
        display(make_panel(host).widget)


def _has_front_end() -> bool:
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def make_panel(host: Host) -> Panel:
    """Make a panel over a host's store."""
    from .._widget import Panel

    def list_views() -> list[View]:
        return views(host.store)

    return Panel(list_views, lambda run, word: say(host.store, run, word))


def panel() -> Any:
    """Return the panel: the runs of the store, their lineage, Continue and Supersede.

    Returns
    -------
    ipywidgets.Widget

    Raises
    ------
    NotFoundError
        When the extension is not loaded.
    """
    host = active_host()
    if host is None:
        raise NotFoundError("the extension is not loaded. Run %load_ext nbresume first")
    return make_panel(host).widget
