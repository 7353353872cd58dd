"""The panel: buttons for what a person may decide, from core ipywidgets and without a script of ours.

A click is a word, never an act: it is recorded, and the next execution of the cell follows it. A click may reach the
kernel long after it was made, behind a cell that ran for an hour. So each button says of which run, state and attempt
it speaks, and is refused by name when that has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape
from threading import RLock
from typing import Any

import ipywidgets

from ._card import View, html
from .errors import NbresumeError

_EMPTY = "No runs here yet. Put <code>%%resumable NAME --vars a,b</code> on top of a long cell and run it."
_CONTINUABLE = ("interrupted",)
_SUPERSEDABLE = ("interrupted", "completed")


class Panel:
    """The runs of a store, the card of one of them, and the words that can be said of it.

    Clicks call ``say`` and show what it answers; nothing else is done to a run. The number of widget models never
    changes. Callbacks may come from any thread.

    Parameters
    ----------
    list_views : callable
        Returns the runs as they are now, in the order to show; the last one is selected at first.
    say : callable
        Takes a run's id and ``continue`` or ``supersede``, records that word and returns what to tell the person.
        An ``NbresumeError`` is shown as its sentence.
    is_brief : bool
        Below the cards of an offer: without a card of its own, and without what those cards do already.

    Attributes
    ----------
    widget : ipywidgets.VBox
        What is displayed.
    """

    def __init__(
        self, list_views: Callable[[], list[View]], say: Callable[[str, str], str], *, is_brief: bool = False
    ) -> None:
        self._list_views, self._say, self._is_brief = list_views, say, is_brief
        self._lock = RLock()
        self._shown: View | None = None
        self._drawing = False
        self._make()
        self.refresh()

    def refresh(self, message: str = "") -> None:
        """Show the runs as they are now.

        Parameters
        ----------
        message : str
            What to tell the person, in plain text.
        """
        with self._lock:
            try:
                views = self._list_views()
            except NbresumeError as error:
                self._tell(str(error))
                return
            self._draw(views)
            self._tell(message)

    def _make(self) -> None:
        self._runs = ipywidgets.Dropdown(description="Run", tooltip="The run that is shown below")
        self._runs.style.description_width = "initial"
        self._runs.layout.width = "460px"
        self._card = ipywidgets.HTML()
        self._message = ipywidgets.HTML()
        self._continue = _button("Continue", "play", "The next execution of the cell continues this run")
        self._supersede = _button("Supersede", "code-fork", "Start a new run; this one is kept. Asks once more")
        self._refresh = _button("Refresh", "refresh", "Look at the runs again")
        self._yes = _button("Yes, supersede", "check", "The next execution of the cell starts a new run")
        self._keep = _button("Keep it", "undo", "Change nothing")
        self._continue.button_style = "primary"
        self._yes.button_style = "warning"
        self._choices = ipywidgets.HBox([self._continue, self._supersede, self._refresh])
        self._question = ipywidgets.HBox([self._yes, self._keep])
        self.widget = ipywidgets.VBox([self._runs, self._message, self._choices, self._question, self._card])
        self._runs.observe(self._on_selected, "value")
        self._continue.on_click(lambda _: self._decide("continue"))
        self._supersede.on_click(lambda _: self._ask())
        self._refresh.on_click(lambda _: self.refresh())
        self._yes.on_click(lambda _: self._decide("supersede"))
        self._keep.on_click(lambda _: self.refresh("Kept. Nothing was changed."))
        answer_while_busy(self._runs, self._continue, self._supersede, self._refresh, self._yes, self._keep)

    def _draw(self, views: list[View]) -> None:
        """Show the selected run, or the newest when it is gone; asks no question."""
        wanted = self._shown.id if self._shown else ""
        shown = next((view for view in views if view.id == wanted), views[-1] if views else None)
        options = [(f"{view.name} ({view.id}), {view.state}", view.id) for view in views]
        self._drawing = True
        try:
            if tuple(options) != tuple(self._runs.options):
                self._runs.options = options
            self._runs.value = shown.id if shown else None
        finally:
            self._drawing = False
        self._show(shown)

    def _show(self, view: View | None) -> None:
        self._shown = view
        # The panel's own buttons stand in for the card's offer.
        self._card.value = "" if self._is_brief else html(replace(view, offer=False)) if view else _EMPTY
        superseding = view is not None and view.said == "supersede"
        self._continue.disabled = view is None or view.state not in _CONTINUABLE
        self._supersede.disabled = view is None or view.state not in _SUPERSEDABLE or superseding
        if self._is_brief:
            _set_visible(self._runs, visible=len(self._runs.options) > 1)
            self._continue.description = "Continue after all"
            _set_visible(self._continue, visible=superseding)
            _set_visible(self._supersede, visible=not superseding)
            _set_visible(self._refresh, visible=False)
            _set_visible(self.widget, visible=view is not None)
        self._put(is_question=False)

    def _put(self, *, is_question: bool) -> None:
        _set_visible(self._choices, visible=not is_question)
        _set_visible(self._question, visible=is_question)

    def _on_selected(self, change: dict[str, object]) -> None:
        with self._lock:
            if self._drawing:
                return
            try:
                views = self._list_views()
            except NbresumeError as error:
                self._tell(str(error))
                return
            self._shown = next((view for view in views if view.id == change["new"]), None)
            self._draw(views)
            self._tell("")

    def _ask(self) -> None:
        with self._lock:
            shown = self._standing("supersede")
            if shown is None:
                return
            self._put(is_question=True)
            self._tell(
                f"Supersede {shown.name} ({shown.id})? It is kept with its snapshots, log and outputs, and marked "
                "superseded. The next execution of the cell starts a new run from the beginning."
            )

    def _decide(self, word: str) -> None:
        with self._lock:
            shown = self._standing(word)
            if shown is None:
                return
            try:
                message = self._say(shown.id, word)
            except NbresumeError as error:
                message = str(error)
            else:
                message = "" if self._is_brief else message  # the card above tells it
            self.refresh(message)

    def _standing(self, word: str) -> View | None:
        """Return the run that is shown, if it still is as shown and the word can be said of it; else say why not."""
        shown = self._shown
        if shown is None:
            self.refresh("There is no run here. Nothing was changed.")
            return None
        try:
            now = next((view for view in self._list_views() if view.id == shown.id), None)
        except NbresumeError as error:
            self._tell(str(error))
            return None
        refusal = _refusal(shown, now, word)
        if refusal:
            self.refresh(refusal)
            return None
        return shown

    def _tell(self, message: str) -> None:
        self._message.value = f'<div role="status" style="line-height: 1.4">{escape(message)}</div>' if message else ""


def answer_while_busy(*widgets: ipywidgets.Widget) -> None:
    """Let widgets be heard while a cell runs, where the front end and the kernel can.

    ipykernel 7.4 sends a comm's messages to the subshell that last wrote to it, so a button made by a cell waits for
    that cell. The front end's own choice is honoured instead, as 7.0 to 7.3 did; elsewhere this does nothing.

    Parameters
    ----------
    *widgets : ipywidgets.Widget
        Those that a person clicks.
    """
    for widget in widgets:
        comm: Any = getattr(widget, "comm", None)
        if hasattr(comm, "_reply_subshell_for"):
            comm._reply_subshell_for = _front_end_choice  # noqa: SLF001  # no public way, ipython/ipykernel#1565


def _front_end_choice(_: object, default: object) -> object:
    return default


def _refusal(shown: View, now: View | None, word: str) -> str:
    """Tell why a word can't be said of the run that was shown; empty when it can."""
    who = f"{shown.name} ({shown.id})"
    if now is None:
        return f"{who} is not here any more. Nothing was changed."
    if _facts(now) != _facts(shown):
        return f"{who} was {_facts(shown)} when this was clicked and is {_facts(now)} now. Nothing was changed."
    allowed = _CONTINUABLE if word == "continue" else _SUPERSEDABLE
    if now.state not in allowed:
        return f"{who} is {now.state}: only a run that is {' or '.join(allowed)} can be {word}d. Nothing was changed."
    return ""


def _facts(view: View) -> str:
    return f"{view.state} in attempt {len(view.lineage.attempts)}"


def _set_visible(widget: ipywidgets.DOMWidget, *, visible: bool) -> None:
    widget.layout.display = "" if visible else "none"


def _button(description: str, icon: str, tooltip: str) -> ipywidgets.Button:
    return ipywidgets.Button(description=description, icon=icon, tooltip=tooltip)
