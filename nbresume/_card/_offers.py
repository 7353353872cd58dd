"""The offer of several interrupted runs: one list, a line and a button for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._events import now as time_now
from ._rerun import rerun
from ._styles import BUTTON, CARD, CELL, INLINE, QUIET, UNBROKEN
from ._svg import COLOURS
from ._tags import Markup, join, tag
from ._text import table
from ._view import View
from ._words import age, plural, public, stamp, standing


def offers_html(views: Sequence[View], *, now: str | None = None) -> str:
    """Return the offer of several runs as HTML.

    Parameters
    ----------
    views : sequence of View
        The runs that were found interrupted, as they are now.
    now : str, optional
        The time that ages are told from, as the journal writes it.
    """
    when = now or time_now()
    rows = [tag("tr", *_cells(view, when), style="background: transparent") for view in views]
    style = "border-collapse: collapse; margin: 4px 0; font-size: 13px; border: none"
    return tag(
        "div",
        tag("div", _title(views), style="font-weight: 600; font-size: 16px"),
        tag("table", tag("tbody", *rows), style=style),
        tag("div", "Run the cells above a run's cell first: this kernel is new.", style=QUIET),
        style=CARD,
    )


def offers_text(views: Sequence[View], *, now: str | None = None) -> str:
    """Return the offer of several runs as plain text."""
    when = now or time_now()
    heads = ("NAME", "STATE", "WHERE IT STANDS", "LAST SNAPSHOT", "WHAT NOW")
    rows = [
        (
            view.name,
            standing(view.state, view.lineage),
            view.where or "before its first snapshot",
            age(view.snapshot_at, when) or "-",
            _words(view),
        )
        for view in views
    ]
    return "\n".join(line.rstrip() for line in [_title(views), *table([heads, *rows])])


def _title(views: Sequence[View]) -> str:
    waiting = sum(view.state == "interrupted" for view in views)
    return f"{plural(waiting, 'interrupted run')}" if waiting else "no run waits for an answer"


def _words(view: View) -> str:
    if view.state != "interrupted":
        return ""
    if view.said == "supersede":
        return f"run %%resumable {view.name}: starts a new run; to continue after all: %nbresume continue {view.name}"
    if view.differences:
        return f"can't be continued as it is: {'; '.join(view.differences)}"
    return f"run %%resumable {view.name} to continue; anew: %nbresume supersede {view.name}"


def _cells(view: View, now: str) -> Iterator[Markup]:
    last = tag("span", age(view.snapshot_at, now) or "no snapshot", title=stamp(view.snapshot_at))
    state = tag("span", standing(view.state, view.lineage), style=f"color: {COLOURS[view.state]}; font-weight: 600")
    where = public(view.where or "before its first snapshot")
    for content in (tag("b", view.name), state, tag("span", where), last, _choice(view)):
        yield tag("td", content, style=CELL)


def _choice(view: View) -> Markup:
    if view.state != "interrupted":
        return tag("span", "")
    cell = tag("code", f"%%resumable {view.name}", style=INLINE)
    if view.said == "supersede":
        return tag("span", "Run ", cell, " again: it starts a new run.")
    if view.differences:
        return tag("span", public("; ".join(view.differences)), style=f"color: {COLOURS['interrupted']}")
    button = tag("button", "Continue", type="button", style=BUTTON, onclick=rerun(view.name), title=view.id)
    return join(button, tag("span", " or run ", cell, style=UNBROKEN))
