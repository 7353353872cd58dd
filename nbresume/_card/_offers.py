"""The offer of several interrupted runs: one list, a line and a button for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._events import now as time_now
from ._rerun import rerun
from ._styles import BUTTON, CARD, CELL, INLINE, QUIET, UNBROKEN
from ._svg import COLOURS
from ._tags import Markup, tag
from ._text import table
from ._view import View
from ._words import age, plural, public, stamp, standing

_HEADS = ("", "", "where it stands", "last snapshot", "")
_CELL = CELL.replace("vertical-align: top", "vertical-align: middle")


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
    heads = [tag("td", tag("span", head, style=UNBROKEN), style=_CELL) for head in _HEADS]
    rows = [tag("tr", *cells, style="background: transparent") for cells in (heads, *(_cells(v, when) for v in views))]
    style = "border-collapse: collapse; margin: 4px 0; font-size: 13px; border: none"
    return tag(
        "div",
        tag("div", _title(views), style="font-weight: 600; font-size: 16px"),
        tag("table", tag("tbody", *rows), style=style),
        tag(
            "div",
            "Or run a cell again (Shift+Enter). Either way, run the cells above it first: this kernel is new.",
            style=QUIET,
        ),
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
        yield tag("td", content, style=_CELL)


def _choice(view: View) -> Markup:
    if view.state != "interrupted":
        return tag("span", "")
    if view.said == "supersede":
        return tag(
            "span", "Run ", tag("code", f"%%resumable {view.name}", style=INLINE), " again: it starts a new run."
        )
    if view.differences:
        return tag("span", public("; ".join(view.differences)), style=f"color: {COLOURS['interrupted']}")
    return tag("button", f"Continue {view.name}", type="button", style=BUTTON, onclick=rerun(view.name), title=view.id)
