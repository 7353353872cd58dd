"""The panel: buttons for what a person may decide, from core ipywidgets and without a script of its own.

A click is a word, never an act: it is recorded, and the next execution of the cell follows it, or it is asked of the
process that runs the cell, and its next boundary acts on it. A click may reach the kernel long after it was made,
behind a cell that ran for an hour. So each button says of which run, state and attempt it speaks, and is refused by
name when that has passed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import Any, Literal

import ipywidgets

from .._card import View, html, rerun
from ..errors import NbresumeError
from ._acts import ALLOWED, Acts, Look, attempt, facts, refusal
from ._busy import answer_while_busy
from ._seldom import Seldom

PERIOD = 0.25
"""Seconds between two drawings: more often nobody can read, and servers drop what comes faster."""
_EMPTY = "No runs here yet. Put <code>%%resumable NAME --vars a,b</code> on top of a long cell and run it."
_LOOKS: dict[Look, str] = {"verify": "Verify", "log": "Log", "plan": "Plan"}
_QUIET = "opacity: 0.72; font-size: 12px; line-height: 1.4"
_TEXT = (
    "max-height: 22em; overflow: auto; margin: 4px 0; padding: 8px 12px; line-height: 1.4; font-size: 12px; "
    "white-space: pre; border: 1px solid rgba(127, 127, 127, 0.35); border-radius: 6px"
)


class Panel:
    """The runs of a store, the card of one of them, and what can be said of it.

    Clicks call ``acts`` and show what it answers; nothing else is done to a run. The number of widget models never
    changes, and they change at most four times a second. Callbacks may come from any thread.

    Parameters
    ----------
    acts : Acts
        What the buttons do.
    is_brief : bool
        Below the cards of an offer: without a card of its own, and without what those cards do already.
    period : float
        Seconds between two drawings.

    Attributes
    ----------
    widget : ipywidgets.VBox
        What is displayed.
    """

    def __init__(self, acts: Acts, *, is_brief: bool = False, period: float = PERIOD) -> None:
        self._acts, self._is_brief = acts, is_brief
        self._lock = threading.RLock()
        self._wanted = ""
        self._running: set[str] = set()
        self._shown: View | None = None
        self._told = ""
        self._runs_it = ""
        """Name of the run whose cell the person is asked to run again."""
        self._asks = self._drawing = self._is_heard = False
        self._open: Look | Literal[""] = ""
        self._text = ""
        self._make()
        self._soon = Seldom(self._draw, period)
        self.refresh()

    @property
    def is_open(self) -> bool:
        """Whether its widgets can still be displayed; closed ones never can."""
        return self.widget.comm is not None

    def refresh(self, message: str = "") -> None:
        """Show the runs as they are now.

        Parameters
        ----------
        message : str
            What to tell the person, in plain text.
        """
        self._tell(message)
        self._soon()

    def follow(self) -> None:
        """Show the runs as they are now, and leave what was told and asked."""
        self._soon()

    def close(self) -> None:
        """Take the panel away, wherever it is displayed."""
        for widget in self._widgets():
            widget.close()

    # ------------------------------------------------------------------ what it is made of

    def _make(self) -> None:
        self._runs = ipywidgets.Dropdown(description="Run", tooltip="The run that is shown below")
        self._runs.style.description_width = "initial"
        self._runs.layout.width = "min(100%, 520px)"
        self._card, self._message, self._way, self._below = (ipywidgets.HTML() for _ in range(4))
        self._continue = _button("Continue", "The next execution of the cell continues this run", self._on_continue)
        self._supersede = _button("Supersede", "Start a new run; this one is kept. Asks once more", self._on_supersede)
        self._snapshot = _button("Snapshot now", "Take a snapshot at the next boundary", lambda: self._ask("snapshot"))
        self._stop = _button(
            "Stop at the next boundary", "End the cell there, with a snapshot to go on from", lambda: self._ask("stop")
        )
        tips: dict[Look, str] = {
            "verify": "Read every snapshot of this run, and change nothing",
            "log": "The last lines that the cell has printed",
            "plan": "What running the cell would do now; runs nothing",
        }
        self._looks = {what: _button(_LOOKS[what], tip, self._reader(what)) for what, tip in tips.items()}
        self._refresh = _button("Refresh", "Look at the runs again", self.refresh)
        self._yes = _button("Yes, supersede", "The next execution of the cell starts a new run", self._on_yes)
        self._keep = _button("Keep it", "Change nothing", lambda: self._drop_question("Kept. Nothing was changed."))
        self._yes.button_style = "warning"
        words = [self._continue, self._supersede, self._snapshot, self._stop]
        self._choices = _row([*words, *self._looks.values(), self._refresh])
        self._question = _row([self._yes, self._keep])
        self._looks["verify"].layout.margin = "2px 2px 2px 18px"
        parts = [self._runs, self._choices, self._message, self._question, self._way, self._below, self._card]
        self.widget = ipywidgets.VBox(parts)
        self._runs.observe(self._on_selected, "value")
        answer_while_busy(self._runs, *self._choices.children, *self._question.children)

    def _widgets(self) -> list[ipywidgets.Widget]:
        inside = [*self._choices.children, *self._question.children, *self.widget.children]
        styled = [widget for one in (*inside, self.widget) for widget in (one, one.layout, getattr(one, "style", None))]
        return [widget for widget in styled if widget is not None]

    def _reader(self, what: Look) -> Callable[[], None]:
        return lambda: self._read(what)

    # ------------------------------------------------------------------ drawing

    def _draw(self) -> None:
        """Show the run that has just started, else the selected one, else the newest."""
        with self._lock:
            try:
                views = self._acts.runs()
                chosen = self._choose(views)
                shown = self._acts.look(chosen) if chosen else None
                if shown is not None and self._open == "log":
                    self._text = self._acts.read(shown.id, "log")
            except (NbresumeError, OSError) as error:
                self._told = str(error)
                self._draw_message()
                return
            if shown is None or self._shown is None or facts(shown) != facts(self._shown):
                self._asks = False
            self._list(views, shown)
            self._shown = shown
            self._draw_card()
            self._draw_buttons()
            self._draw_message()

    def _choose(self, views: list[View]) -> str:
        running = {view.id for view in views if view.state == "running"}
        started, self._running = running - self._running, running
        here = [view.id for view in views]
        found = [*started, self._wanted, *here[-1:]]
        self._wanted = next((one for one in found if one in here), "")
        return self._wanted

    def _list(self, views: list[View], shown: View | None) -> None:
        options = [(f"{view.name} ({view.id}), {view.state}", view.id) for view in views]
        self._drawing = True
        try:
            if tuple(options) != tuple(self._runs.options):
                self._runs.options = options
            self._runs.value = shown.id if shown else None
        finally:
            self._drawing = False

    def _draw_card(self) -> None:
        view = self._shown
        # The panel's own buttons stand in for the card's offer.
        self._card.value = "" if self._is_brief else html(replace(view, offer=False)) if view else _EMPTY
        title = f"{_LOOKS[self._open]} of {view.name}" if self._open and view else ""
        # Reachable by the keys, so that it can be scrolled by them.
        text = (
            f'<pre tabindex="0" role="region" aria-label="{escape(title)}" style="{_TEXT}">{escape(self._text)}</pre>'
        )
        self._below.value = text if title else ""
        _set_visible(self._below, visible=bool(title))

    def _draw_buttons(self) -> None:
        view = self._shown
        superseding = view is not None and view.said == "supersede"
        words = {
            "continue": self._continue,
            "supersede": self._supersede,
            "snapshot": self._snapshot,
            "stop": self._stop,
        }
        for word, button in words.items():
            button.disabled = view is None or view.state not in ALLOWED[word]
        self._supersede.disabled |= superseding
        self._continue.button_style = "" if self._continue.disabled else "primary"
        for what, button in self._looks.items():
            button.disabled = view is None
            button.description = f"Hide {_LOOKS[what].lower()}" if self._open == what else _LOOKS[what]
        if self._is_brief:
            self._continue.description = "Continue after all"
            _set_visible(self._runs, visible=len(self._runs.options) > 1)
            _set_visible(self._continue, visible=superseding)
            _set_visible(self._supersede, visible=not superseding)
            for button in (self._snapshot, self._stop, *self._looks.values(), self._refresh):
                _set_visible(button, visible=False)
            _set_visible(self.widget, visible=view is not None)
        _set_visible(self._question, visible=self._asks)
        _set_visible(self._choices, visible=not self._asks)

    def _draw_message(self) -> None:
        view, parts = self._shown, [escape(self._told).replace("\n", "<br>")]
        if self._runs_it and view is not None and view.state != "running":
            script = escape(rerun(self._runs_it), quote=True)
            classes = "lm-Widget jupyter-widgets jupyter-button widget-button mod-primary"
            style = "margin: 0 0 0 10px; width: auto"
            parts.append(
                f'<button type="button" class="{classes}" style="{style}" onclick="{script}">Run it now</button>'
            )
        told = "".join(parts)
        self._message.value = f'<div role="status" style="line-height: 1.6">{told}</div>' if self._told else ""
        way = self._acts.way() if view is not None and view.state == "running" and not self._is_heard else ""
        self._way.value = f'<div style="{_QUIET}">{escape(way)}</div>' if way and not self._is_brief else ""
        _set_visible(self._message, visible=bool(self._message.value))
        _set_visible(self._way, visible=bool(self._way.value))

    def _tell(self, message: str, *, runs_it: str = "") -> None:
        with self._lock:
            self._told, self._runs_it = message, runs_it

    # ------------------------------------------------------------------ clicks

    def _on_selected(self, change: dict[str, Any]) -> None:
        with self._lock:
            if self._drawing:
                return
            self._wanted, self._asks, self._open = str(change["new"]), False, ""
            self.refresh()

    def _on_continue(self) -> None:
        self._decide("continue")

    def _on_yes(self) -> None:
        self._decide("supersede")

    def _on_supersede(self) -> None:
        with self._lock:
            shown = self._standing("supersede")
            if shown is None:
                return
            self._asks = True
            self.refresh(
                f"Supersede {shown.name} ({shown.id})? It is kept with its snapshots, log and outputs, and marked "
                "superseded. The next execution of the cell starts a new run from the beginning."
            )

    def _drop_question(self, message: str) -> None:
        with self._lock:
            self._asks = False
            self.refresh(message)

    def _decide(self, word: str) -> None:
        with self._lock:
            self._asks = False
            shown = self._standing(word)
            if shown is None:
                return
            try:
                message, runs_it = self._acts.decide(shown.id, word), shown.name
            except NbresumeError as error:
                message, runs_it = str(error), ""
            if self._is_brief and runs_it:
                message = runs_it = ""  # the card above tells it
            self._tell(message, runs_it=runs_it)
            self._soon()

    def _ask(self, word: str) -> None:
        with self._lock:
            shown = self._standing(word)
            if shown is None:
                return
            # Off the main thread a cell may be running: then clicks need no other way.
            self._is_heard |= threading.current_thread() is not threading.main_thread()
            try:
                self.refresh(self._acts.ask(shown.id, word, attempt(shown)))
            except NbresumeError as error:
                self.refresh(str(error))

    def _read(self, what: Look) -> None:
        """Show a text, or hide it; what takes long is read by a thread, so that no click waits for it."""
        with self._lock:
            view, is_open = self._shown, self._open == what
            self._open = "" if is_open or view is None else what
            self._text = "" if what != "verify" else "Reading every snapshot ..."
            if view is None or is_open or what != "verify":
                text = "" if view is None or is_open else self._answer(view.id, what)
                self._text = text
                self.refresh("There is no run here." if view is None else "")
                return
            threading.Thread(target=self._verify, args=(view,), name="nbresume-verify", daemon=True).start()
            self.refresh()

    def _verify(self, view: View) -> None:
        text = self._answer(view.id, "verify")
        with self._lock:
            if self._open == "verify" and self._shown is not None and self._shown.id == view.id:
                self._text = text
                self._soon()

    def _answer(self, run: str, what: Look) -> str:
        try:
            return self._acts.read(run, what)
        except (NbresumeError, OSError) as error:
            return str(error)

    def _standing(self, word: str) -> View | None:
        """Return the run that is shown, if it still is as shown and the word can be said of it; else say why not."""
        shown = self._shown
        if shown is None:
            self.refresh("There is no run here. Nothing was changed.")
            return None
        try:
            now = self._acts.look(shown.id)
        except (NbresumeError, OSError) as error:
            self.refresh(str(error))
            return None
        why = refusal(shown, now, word)
        if why:
            self.refresh(why)
            return None
        return shown


def _set_visible(widget: ipywidgets.DOMWidget, *, visible: bool) -> None:
    widget.layout.display = "" if visible else "none"


def _row(widgets: list[ipywidgets.Widget]) -> ipywidgets.HBox:
    return ipywidgets.HBox(widgets, layout=ipywidgets.Layout(flex_flow="row wrap"))


def _button(description: str, tooltip: str, act: Callable[[], None]) -> ipywidgets.Button:
    """Make a button; without an icon, which is a letter to a screen reader."""
    made = ipywidgets.Button(description=description, tooltip=tooltip, layout=ipywidgets.Layout(width="auto"))
    made.on_click(lambda _: act())
    return made
