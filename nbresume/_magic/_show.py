"""Cards and the panel in front of a person."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.display import display, update_display

from .._card import View, mimebundle
from .._session import Host, active_host, say, view
from .._store import RunFolder
from ..errors import NotFoundError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .._widget import Panel

_OFFER = "_nbresume_offer"


def answered(shell: InteractiveShell, now: View) -> None:
    """Tell the offer, if one is shown, of a run whose cell starts or ends."""
    offer: Offer | None = getattr(shell, _OFFER, None)
    if offer is not None:
        offer.answered(now)


def offer_when_seen(shell: InteractiveShell, host: Host) -> None:
    """Show the offer of interrupted runs: now when in a cell, else with the first cell that runs.

    What a startup file displays is lost.
    """
    if not _in_cell(shell):

        def once(_info: Any) -> None:
            shell.events.unregister("pre_run_cell", once)
            show_offer(shell, host)

        shell.events.register("pre_run_cell", once)
    else:
        show_offer(shell, host)


def _in_cell(shell: InteractiveShell) -> bool:
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return True
    with contextlib.suppress(Exception):  # kernels differ in what they know of their parent
        return bool(kernel.get_parent("shell"))
    return True


def show_offer(shell: InteractiveShell, host: Host) -> None:
    """Show the card of every interrupted run, and what to click where someone is there to click."""
    offer = Offer(host)
    if offer.waiting:
        setattr(shell, _OFFER, offer)
        live = getattr(shell, "kernel", None) is not None
        offer.show(clickable=live and host.attended())
        if live:
            shell.events.register("post_run_cell", lambda _result: offer.follow())


class Offer:
    """The interrupted runs that a new kernel found, until each is answered.

    A button that stays after its question is answered would one day be clicked: the cards follow what is decided.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.waiting = {run.id: run for run in host.store if run.lineage().state == "interrupted"}
        self._panel: Panel | None = None
        self._drawn = {ident: run.said() for ident, run in self.waiting.items()}

    def show(self, *, clickable: bool) -> None:
        """Display the cards and the buttons."""
        for one in self._views():
            display(mimebundle(one), raw=True, display_id=_offered(one))
        if clickable:
            from .._widget import Panel

            self._panel = Panel(self._views, self._say, is_brief=True)
            display(self._panel.widget)

    def answered(self, now: View) -> None:
        """Put a line in the place of an offer whose cell runs; its card stands below that cell."""
        # A run that supersedes one of them answers for it.
        for one in [view(run) for run in self.waiting.values() if run.name == now.name]:
            self._drawn[one.id] = ""
            update_display(mimebundle(one, is_brief=True), raw=True, display_id=_offered(one))
        if self._panel is not None:
            self._panel.refresh()

    def follow(self) -> None:
        """Draw anew what was decided by a line magic or in a shell."""
        with contextlib.suppress(OSError):
            for ident, run in self.waiting.items():
                if run.said() != self._drawn[ident]:
                    self._draw(run)

    def _draw(self, run: RunFolder) -> None:
        one = _view(run, offer=True)
        self._drawn[run.id] = one.said
        if one.state == "interrupted":
            update_display(mimebundle(one), raw=True, display_id=_offered(one))
        if self._panel is not None:
            self._panel.refresh()

    def _views(self) -> list[View]:
        found = [_view(run, offer=True) for run in self.waiting.values()]
        return [one for one in found if one.state == "interrupted"]

    def _say(self, run: str, word: str) -> str:
        told = say(self._host.store, run, word)
        self._draw(self.waiting[run])
        return told


def _offered(one: View) -> str:
    return f"nbresume-offer-{one.id}"


def _view(run: RunFolder, *, offer: bool = False) -> View:
    return replace(view(run, offer=offer), said=run.said())


def make_panel(host: Host) -> Panel:
    """Make a panel over a host's store."""
    from .._widget import Panel

    return Panel(lambda: [_view(run) for run in host.store], lambda run, word: say(host.store, run, word))


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
