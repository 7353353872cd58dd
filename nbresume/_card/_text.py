"""The card and the list of runs for a terminal: aligned, plain, without escape codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .._events import now as time_now
from .._lineage import CHANGED
from ._view import View
from ._words import (
    age,
    beginning,
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
    weight_of,
)

_BAR = 24


def text(view: View, now: str | None = None) -> str:
    """Return the card of a run as plain text.

    Parameters
    ----------
    view : View
        The run.
    now : str, optional
        The time that ages are told from, as the journal writes it.
    """
    blocks = [
        [public(f"{view.name}  {standing(view.state, view.lineage)}  [{view.id}]")],
        _offer(view),
        table(_facts(view, now or time_now())),
        _titled("differences", view.differences),
        _titled("notes", view.notes),
        _titled("attempts", table(_attempts(view))),
        *_changes(view),
        _titled("what is saved", table(((name, size(count)) for name, count in view.saved), right=1)),
        _titled("what is identity", table(view.identity)),
        _titled("last lines", view.log_tail),
    ]
    return "\n".join(line.rstrip() for block in blocks for line in block)


def runs_table(views: Iterable[View], now: str | None = None) -> str:
    """Return a list of runs in aligned columns.

    Parameters
    ----------
    views : iterable of View
        The runs, in the order to show.
    now : str, optional
        The time that ages are told from, as the journal writes it.
    """
    when = now or time_now()
    rows = [_row(view, when) for view in views]
    if not rows:
        return "no runs here"
    heads = ("NAME", "STATE", "WHERE IT STANDS", "LAST SNAPSHOT", "ATTEMPTS", "SIZE", "ON DISK")
    return "\n".join(line.rstrip() for line in table([heads, *rows], right=4, indent=""))


def _row(view: View, today: str) -> tuple[str, ...]:
    weight = weight_of(view) or "-"
    cause = view.lineage.cause
    state = f"{view.state} ({cause})" if view.state == "interrupted" and cause else view.state
    when, whole = age(view.snapshot_at, today) or "-", size(view.disk) if view.disk else "-"
    return (view.name, state, view.where or "-", when, str(_count(view)), weight, whole)


def _count(view: View) -> int:
    return len(view.lineage.attempts)


def _offer(view: View) -> list[str]:
    if not view.offer:
        return []
    supersede = f"  To start a new run and keep this one: %nbresume supersede {view.name}"
    if view.said == "supersede":
        return [
            f"  Run %%resumable {view.name} again: it starts a new run, and this one is kept as superseded.",
            f"  To continue this one after all: %nbresume continue {view.name}",
        ]
    if view.differences:
        return [
            "  What identifies this run has changed, so it can't be continued as it is.",
            "  To continue it, put back what differs and run its cell again.",
            supersede,
        ]
    return [
        f"  Run %%resumable {view.name} again to continue it, after the cells above it.",
        supersede,
    ]


def _facts(view: View, now: str) -> Iterator[tuple[str, str]]:
    if view.where and view.state != "completed":
        yield "stands at", view.where
    done = fraction(view.loops)
    if done is not None and view.state in ("running", "interrupted"):
        full = int(done * _BAR)
        yield "progress", f"[{'#' * full}{'-' * (_BAR - full)}] {percent(view)}"
    if told := pace(view):
        yield pace_label(view), ", ".join(told)
    if view.snapshot_at:
        when = f"{age(view.snapshot_at, now)} ({stamp(view.snapshot_at)})"
        yield "last snapshot", ", ".join([when, *snapshot_facts(view)])
        where = str(view.snapshot.get("where", ""))
        if where not in ("", view.where) and view.state != "completed":
            yield "saved up to", where
    elif view.state in ("running", "interrupted"):
        yield "last snapshot", "none yet"
    if told_of := exposure(view):
        yield "NOT PROTECTED", told_of
    if view.disk:
        yield "on disk", size(view.disk)
    yield from closeout(view.lineage)
    for run, lineage in view.family:
        yield "earlier run", f"{run}: {standing(lineage.state, lineage)}, {plural(len(lineage.attempts), 'attempt')}"


def _attempts(view: View) -> Iterator[tuple[str, ...]]:
    for attempt in view.lineage.attempts:
        end = stamp(attempt.ended)
        how = ending(attempt)
        yield (str(attempt.number), stamp(attempt.started), beginning(attempt), f"{how} {end}" if end else how)


def _changes(view: View) -> Iterator[list[str]]:
    for number, change in changes(view.lineage):
        yield _titled(f"attempt {number}: {CHANGED[change.how]}", [*change.differences, *change.diff.splitlines()])


def _titled(title: str, lines: Iterable[str]) -> list[str]:
    shown = [f"  {line}" if not line.startswith("  ") else line for line in map(public, lines)]
    return [title, *shown] if shown else []


def table(rows: Iterable[Sequence[str]], *, right: int | None = None, indent: str = "  ") -> list[str]:
    """Align columns; those from ``right`` on stand to the right."""
    cells = [[public(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [(indent + "  ".join(_pad(row, widths, right))).rstrip() for row in cells]


def _pad(row: list[str], widths: list[int], right: int | None) -> Iterator[str]:
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.rjust(width) if right is not None and index >= right else cell.ljust(width)
