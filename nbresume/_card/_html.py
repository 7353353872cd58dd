"""The static card: legible without a kernel, untrusted, in an export, and on a light or a dark page.

JupyterLab's sanitizer keeps ``style`` but drops every declaration whose value it does not know, ``currentColor``,
``gap`` and ``justify-content`` among them. So text inherits its colour and is made quiet by ``opacity``, and the layout
is made of tables and inline blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

from .._events import now as time_now
from .._lineage import CHANGED, State
from ._marks import sentence
from ._rerun import rerun
from ._spark import spark
from ._styles import BUTTON, CARD, CELL, CODE, INLINE, NUMBER, QUIET, UNBROKEN, WRAPPED
from ._svg import COLOURS, svg
from ._tags import Markup, image, join, tag
from ._view import View
from ._words import (
    age,
    changes,
    closeout,
    ending,
    exposure,
    fraction,
    pace,
    pace_label,
    percent,
    plural,
    public,
    size,
    snapshot_facts,
    stamp,
    standing,
)

_BADGES: dict[State, str] = {
    "running": "▶",
    "interrupted": "✕",
    "completed": "✓",
    "superseded": "◆",
    "failed": "⊠",
    "abandoned": "□",
}


def html(view: View, *, now: str | None = None) -> str:
    """Return the card of a run as HTML.

    Parameters
    ----------
    view : View
        The run.
    now : str, optional
        The time that ages are told from, as the journal writes it.
    """
    when = now or time_now()
    attempts, whole = len(view.lineage.attempts), sum(count for _, count in view.saved)
    parts = [
        _head(view),
        _offer(view),
        _progress(view),
        _facts(view, when),
        _listed("what differs", view.differences, COLOURS["interrupted"]),
        _listed("notes", view.notes, COLOURS["snapshots"]),
        image(svg(view), public(sentence(view)), "display: block; max-width: 100%; height: auto; margin: 8px 0 2px 0"),
        _metrics(view.metrics),
        _folded(plural(attempts, "attempt"), _attempts(view, when), is_open=attempts > 1),
        *_changes(view),
        _folded(f"what is saved: {plural(len(view.saved), 'name')}, {size(whole)}", _saved(view, whole)),
        _folded(
            f"what is identity: {plural(len(view.identity), 'part')}",
            _rows((_quiet(name), text) for name, text in view.identity),
        ),
        _folded(
            "last lines printed", tag("pre", "\n".join(map(public, view.log_tail)), style=CODE) if view.log_tail else ""
        ),
        _foot(view, when),
    ]
    return tag("div", *parts, style=CARD)


def headline(view: View) -> str:
    """Return name and state of a run as HTML.

    Parameters
    ----------
    view : View
        The run.
    """
    return tag("div", _head(view), style=CARD)


def _head(view: View) -> Markup:
    colour = COLOURS[view.state]
    badge = f"color: {colour}; border: 1px solid {colour}; border-radius: 10px; padding: 0 9px; margin: 0 10px; "
    words = f"{_BADGES[view.state]} {standing(view.state, view.lineage)}"
    return tag(
        "div",
        tag("span", view.name, style="font-weight: 600; font-size: 16px; vertical-align: middle"),
        tag("span", words, style=f"{badge}display: inline-block; vertical-align: middle; font-weight: 600"),
        tag("span", view.id, style=f"{QUIET}; font-size: 12px; font-family: monospace; vertical-align: middle"),
        style="margin: 0 0 6px 0",
    )


def _foot(view: View, now: str) -> Markup:
    # A dead kernel leaves its card behind as it was.
    dead = " If this time stands still, the kernel is gone." if view.state == "running" else ""
    return tag("div", f"nbresume, as of {stamp(now)}.{dead}", style=f"{QUIET}; font-size: 11px; margin: 6px 0 0 0")


def _offer(view: View) -> str:
    if not view.offer:
        return ""
    cell = tag("code", f"%%resumable {view.name}", style=INLINE)
    if view.said == "supersede":
        decided = join("Run ", cell, " again: it starts a new run, and this one is kept as superseded.")
        return _boxed(
            tag("div", decided), _aside("To continue this one after all: ", f"%nbresume continue {view.name}")
        )
    supersede = _aside("To start a new run and keep this one: ", f"%nbresume supersede {view.name}")
    if view.differences:
        changed = "What identifies this run has changed, so it can't be continued as it is. To continue it, put back "
        return _boxed(tag("div", changed, "what differs and run its cell again."), supersede)
    return _boxed(
        tag("button", "Continue", type="button", style=BUTTON, onclick=rerun(view.name)),
        tag("span", "or run its cell again (Shift+Enter): ", cell, style="margin: 0 0 0 10px"),
        tag("div", "Either way, run the cells above it first: this kernel is new.", style="margin: 6px 0 0 0"),
        supersede,
    )


def _aside(words: str, command: str) -> Markup:
    return tag("div", words, tag("code", command, style=INLINE), style=f"{QUIET}; margin: 4px 0 0 0")


def _boxed(*parts: str) -> Markup:
    line = f"border-left: 3px solid {COLOURS['interrupted']}; padding: 4px 0 4px 12px; margin: 10px 0"
    return tag("div", *parts, style=line)


def _progress(view: View) -> str:
    done = fraction(view.loops)
    if done is None or view.state not in ("running", "interrupted"):
        return ""
    bar = tag(
        "progress", max="1", value=f"{done:.4f}", style="width: 220px; vertical-align: middle", title=percent(view)
    )
    share = tag("b", percent(view), style="margin: 0 10px 0 8px; vertical-align: middle")
    at = f"said {stamp(view.stands_at)}" if view.stands_at else ""
    where = tag("span", public(view.where), style="vertical-align: middle", title=at)
    told = tag("div", " · ".join(pace(view)), style=f"{QUIET}; margin: 2px 0 0 0") if pace(view) else ""
    return tag("div", bar, share, where, told, style="margin: 10px 0 6px 0")


def _facts(view: View, now: str) -> Markup:
    rows: list[tuple[str, str]] = []
    if view.where and not _progress(view) and view.state != "completed":
        rows.append((_quiet("stands at"), view.where))
    if view.snapshot_at:
        told = tag("span", age(view.snapshot_at, now), title=stamp(view.snapshot_at))
        where = view.snapshot.get("where")
        rows.append((_quiet("last snapshot"), join(told, "".join(f" · {fact}" for fact in snapshot_facts(view)))))
        if where and where != view.where and view.state != "completed":
            rows.append((_quiet("saved up to"), str(where)))
    elif view.state in ("running", "interrupted"):
        rows.append((_quiet("last snapshot"), "none yet"))
    if exposed := exposure(view):
        rows.append((tag("b", "not protected", style=f"color: {COLOURS['interrupted']}"), exposed))
    if pace(view) and not _progress(view):
        rows.append((_quiet(pace_label(view)), " · ".join(pace(view))))
    if view.disk:
        rows.append((_quiet("on disk"), size(view.disk)))
    rows += [(_quiet(what), told) for what, told in closeout(view.lineage)]
    for run, lineage in view.family:
        kept = f" {standing(lineage.state, lineage)}, {plural(len(lineage.attempts), 'attempt')}, kept"
        rows.append((_quiet("earlier run"), join(tag("code", run, style=INLINE), kept)))
    return _rows(rows)


def _attempts(view: View, now: str) -> Markup:
    heads = [_quiet(head) for head in ("", "started", "from where", "ended how", "snapshots", "kept")]
    told = (_attempt_row(view, index, now) for index in range(len(view.lineage.attempts)))
    return _rows([heads, *told], numbers=(0, 4, 5))


def _attempt_row(view: View, index: int, now: str) -> list[str]:
    attempt = view.lineage.attempts[index]
    how = tag("span", ending(attempt), title=stamp(attempt.ended))
    # Where it had come to is where the next one went on, unless that one fell back.
    following = view.lineage.attempts[index + 1 : index + 2]
    fell_back = bool(following) and attempt.where not in ("", following[0].resumed_from)
    where = f" after {public(attempt.where)}" if fell_back else ""
    started = tag("span", age(attempt.started, now), style="white-space: nowrap", title=stamp(attempt.started))
    begun = attempt.resumed_from or "launched"
    kept = f"{view.kept.get(attempt.number, 0):,}"
    return [str(attempt.number), started, begun, join(how, where), f"{attempt.snapshots:,}", kept]


def _changes(view: View) -> Iterator[str]:
    for number, change in changes(view.lineage):
        yield _listed(f"attempt {number}: {CHANGED[change.how]}", change.differences, COLOURS["snapshots"])
        yield _folded("the difference", tag("pre", public(change.diff), style=CODE) if change.diff else "")


def _saved(view: View, whole: int) -> Markup:
    rows = [(tag("code", name, style=INLINE), size(count)) for name, count in view.saved]
    return _rows([*rows, (_quiet("all"), size(whole))] if len(rows) > 1 else rows, numbers=(1,))


def _metrics(metrics: Mapping[str, Sequence[float]]) -> str:
    return tag("div", *(_metric(name, values) for name, values in metrics.items() if len(values))) if metrics else ""


def _metric(name: str, values: Sequence[float]) -> Markup:
    finite = [value for value in values if isfinite(value)]
    spread = f", between {min(finite):.4g} and {max(finite):.4g}" if finite else ""
    alt = f"{name}: {plural(len(values), 'value')} from {values[0]:.4g} to {values[-1]:.4g}{spread}"
    return tag(
        "span",
        tag("span", f"{name} ", style=QUIET),
        tag("b", f"{values[-1]:.4g}"),
        image(spark(values), alt, "display: inline-block; vertical-align: middle; margin: 0 0 0 8px"),
        style="display: inline-block; white-space: nowrap; margin: 4px 26px 4px 0",
        title=alt,
    )


def _listed(title: str, lines: Iterable[str], colour: str) -> str:
    shown = [tag("div", public(line), style=WRAPPED) for line in lines]
    if not shown:
        return ""
    line = f"border-left: 3px solid {colour}; padding: 0 0 0 12px; margin: 8px 0"
    return tag("div", tag("div", title, style=f"{QUIET}; font-weight: 600"), *shown, style=line)


def _folded(title: str, content: str, *, is_open: bool = False) -> str:
    if not content:
        return ""
    attributes = {"open": "open"} if is_open else {}
    return tag("details", tag("summary", title, style="cursor: pointer"), content, style="margin: 4px 0", **attributes)


def _quiet(words: str) -> Markup:
    return tag("span", words, style=UNBROKEN)


def _rows(rows: Iterable[Iterable[str]], numbers: tuple[int, ...] = ()) -> Markup:
    written = [tag("tr", *_cells(row, numbers), style="background: transparent") for row in rows]
    if not written:
        return Markup()
    style = "border-collapse: collapse; margin: 2px 0 2px 0; font-size: 13px; border: none"
    return tag("table", tag("tbody", *written), style=style)


def _cells(row: Iterable[str], numbers: tuple[int, ...]) -> Iterator[Markup]:
    for index, cell in enumerate(row):
        shown = cell if isinstance(cell, Markup) else public(cell)
        yield tag("td", shown, style=NUMBER if index in numbers else CELL)
