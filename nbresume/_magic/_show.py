"""Cards and the panel in front of a person."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from IPython.display import display, update_display

from .._card import View, offer_bundle
from .._session import Host, glance, prospect, view
from .._store import RunFolder
from ._panel import RunActs, close_panel, follow_panel

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .._widget import Panel

_OFFER = "_nbresume_offer"


def answered(shell: InteractiveShell) -> None:
    """Let panel and offer follow a run whose cell starts or ends."""
    follow_panel(shell)
    offer: Offer | None = getattr(shell, _OFFER, None)
    if offer is not None:
        offer.follow()


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


def close_all(shell: InteractiveShell) -> None:
    """Take the panel and the offer's buttons away; the cards stay."""
    close_panel(shell)
    offer: Offer | None = getattr(shell, _OFFER, None)
    if offer is not None:
        offer.close()
        delattr(shell, _OFFER)


def show_offer(shell: InteractiveShell, host: Host) -> None:
    """Show the interrupted runs, and what to click where someone is there to click."""
    offer = Offer(host, shell)
    if offer.waiting:
        setattr(shell, _OFFER, offer)
        live = getattr(shell, "kernel", None) is not None
        offer.show(clickable=live and host.attended())
        if live:
            shell.events.register("post_run_cell", offer.after_a_cell)


class _Facts(NamedTuple):
    run: str
    state: str
    said: str
    differences: tuple[str, ...]
    attempts: int


class Offer:
    """The interrupted runs that a new kernel found, until each is answered: one card, or one list of them.

    A button that stays after its question is answered would one day be clicked: what is shown follows what is decided.
    """

    def __init__(self, host: Host, shell: InteractiveShell) -> None:
        self._host, self._shell = host, shell
        self.waiting = {run.id: run for run in host.store if run.lineage().state == "interrupted"}
        self._panel: Panel | None = None
        self._drawn: list[_Facts] = []

    def show(self, *, clickable: bool) -> None:
        """Display the offer and the buttons."""
        self._drawn = self._facts()
        display(offer_bundle(self._views()), raw=True, display_id=self._ident)
        if clickable:
            from .._widget import Panel

            self._panel = Panel(_WaitingActs(self, self._host, self._shell), is_brief=True)
            display(self._panel.widget)

    def follow(self) -> None:
        """Draw anew what was decided by a click, by a line magic, in a shell, or by running a cell."""
        with contextlib.suppress(OSError):
            if (facts := self._facts()) != self._drawn:
                self._drawn = facts
                update_display(offer_bundle(self._views()), raw=True, display_id=self._ident)
                if self._panel is not None:
                    self._panel.follow()

    def after_a_cell(self, _result: object) -> None:
        """Follow, after any cell."""
        self.follow()

    def close(self) -> None:
        """Take the buttons away, and follow no more."""
        with contextlib.suppress(ValueError):
            self._shell.events.unregister("post_run_cell", self.after_a_cell)
        if self._panel is not None:
            self._panel.close()

    @property
    def _ident(self) -> str:
        return f"nbresume-offer-{next(iter(self.waiting))}"

    def _facts(self) -> list[_Facts]:
        """Tell what the offer is drawn from, but for the time; asked after each cell, it reads no snapshot."""
        return [self._facts_of(run) for run in self.waiting.values()]

    def _facts_of(self, run: RunFolder) -> _Facts:
        lineage = run.lineage()
        is_open = lineage.state == "interrupted" and self._host.runtime is None
        differences = prospect(run, self._host.places).differences if is_open else ()
        return _Facts(run.id, lineage.state, run.said(), differences, len(lineage.attempts))

    def _views(self) -> list[View]:
        """Look at the runs as the facts that are drawn tell them."""
        return [
            replace(view(self.waiting[one.run], offer=True, differences=one.differences), said=one.said)
            for one in self._drawn
        ]


class _WaitingActs(RunActs):
    """Of the runs that are offered, those that still wait."""

    def __init__(self, offer: Offer, host: Host, shell: InteractiveShell) -> None:
        super().__init__(host, shell)
        self._offer = offer

    def runs(self) -> list[View]:
        return [one for one in map(glance, self._offer.waiting.values()) if one.state == "interrupted"]

    def decide(self, run: str, word: str) -> str:
        told = super().decide(run, word)
        self._offer.follow()
        return told
