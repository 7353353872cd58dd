"""Where a run stands, in one small block or in one line; and the lines of its log."""

from __future__ import annotations

import json
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from .._card import View, table
from .._card._words import age, duration, exposure, fraction, percent, plain, public, snapshot_facts, stamp, standing
from .._events import now
from .._store import RunFolder
from ._described import described
from ._seat import Seat
from ._watching import each_second

if TYPE_CHECKING:
    from .._session import Line

_BAR = 24
_SLOW = 0.1
"""Iterations in a second below which their length is told instead."""


def status_text(view: View) -> str:
    """Return a small block: state, where it stands, progress, rate, last snapshot."""
    rows = [("stands at", _where(view)), ("progress", _progress(view)), ("rate", rate_text(view))]
    rows += [("worked", duration(view.active) if view.active else ""), ("last snapshot", _snapshot(view))]
    rows += [("NOT PROTECTED", exposure(view))]
    head = public(f"{view.name}  {standing(view.state, view.lineage)}  [{view.id}]")
    return "\n".join([head, *table(row for row in rows if row[1])])


def status_line(view: View) -> str:
    """Return the same in one line."""
    left = f"about {duration(view.seconds_left)} left" if view.seconds_left is not None else ""
    told = [percent(view) if view.state == "running" else "", view.where, rate_text(view), left]
    exposed = "NOT PROTECTED" if exposure(view) else ""
    parts = [standing(view.state, view.lineage), *told, f"snapshot {_snapshot(view)}", exposed]
    return public(f"{stamp(now())}  {view.name}  " + ", ".join(part for part in parts if part))


def rate_text(view: View) -> str:
    """Tell how fast a run goes: ``batch: 12.3 per s``, or ``epoch: 4 min each``; empty where nobody knows."""
    if view.rate is None:
        return ""
    label, per_second = view.rate
    if per_second < _SLOW:
        return f"{label}: {duration(1 / per_second)} each"
    return f"{label}: {per_second:.3g} per s"


def _where(view: View) -> str:
    return view.where if view.state != "completed" else ""


def _progress(view: View) -> str:
    done = fraction(view.loops)
    if done is None or view.state not in ("running", "interrupted"):
        return ""
    full = int(done * _BAR)
    left = f", about {duration(view.seconds_left)} left" if view.seconds_left is not None else ""
    return f"[{'#' * full}{'-' * (_BAR - full)}] {percent(view)}{left}"


def _snapshot(view: View) -> str:
    if not view.snapshot_at:
        return "none yet"
    return ", ".join([age(view.snapshot_at, now()), *snapshot_facts(view)])


def follow(run: RunFolder, seat: Seat, *, as_json: bool) -> int:
    """Show where a run stands until it ends: drawn over in a terminal, else a line for each change."""
    shown: list[object] = []
    height = 0

    def look() -> None:
        nonlocal height
        from .._session import glance

        view = glance(run)
        if seat.is_terminal and not as_json:
            width = get_terminal_size().columns
            block = "\n".join(line[:width] for line in status_text(view).splitlines())
            # Up to where the last block began, and everything below that away.
            seat.write((f"\x1b[{height}A" if height else "") + f"\r\x1b[J{block}\n")
            height = block.count("\n") + 1
            return
        change = (view.state, len(view.lineage.attempts), view.snapshot_at, percent(view), bool(exposure(view)))
        if change not in shown[-1:]:
            shown[:] = [change]
            seat.say(json.dumps(described(view), ensure_ascii=False) if as_json else status_line(view))

    return each_second(run, look)


class LogText:
    """Puts lines of a log into columns: when, where, and what was printed."""

    def __init__(self) -> None:
        self._width = 0

    def text(self, line: Line) -> str:
        """Return one line."""
        if line.kind != "printed":
            when = f", {stamp(line.at)}" if line.at else ""
            return public(f"-- attempt {line.attempt}: {line.text}{when}")
        # A bar draws over itself: its last state is what was seen. Colours are for whoever saw them.
        seen = plain(line.text.rstrip("\r").rpartition("\r")[2])
        if not line.at:
            return seen
        self._width = max(self._width, len(line.where))
        return f"{line.at[11:19]}  {line.where.ljust(self._width)} | {seen}"
