"""What ``--json`` answers."""

from __future__ import annotations

import json
from dataclasses import asdict

from .._card import View
from .._types import Json
from ._seat import Seat


def answer(seat: Seat, value: object) -> None:
    """Show a value as JSON."""
    seat.say(json.dumps(value, ensure_ascii=False, indent=1))


def described(view: View) -> Json:
    """Describe a run in JSON values, as ``runs --json``, ``show --json`` and ``status --json`` do.

    Parameters
    ----------
    view : View
        The run.

    Returns
    -------
    dict
        ``name``, ``id``, ``state``, ``where`` (in words), ``loops`` (each with ``label``, ``done``, ``total``),
        ``stands_at`` (when a running attempt said so; empty: as of the last snapshot), ``active``, ``rate`` (with
        ``label`` and ``per_second``; null where unknown), ``seconds_left``,
        ``attempts`` (with ``number``, ``started``, ``resumed_from``, ``snapshot``, ``ended``, ``how``, ``why``,
        ``where``, ``snapshots``, ``changes``),
        ``snapshot`` (facts of the latest one, with ``at``; null when there is none), ``saved`` (bytes by name),
        ``disk`` (bytes of the whole run), ``identity`` (a short text by part), ``differences``, ``notes``,
        ``superseded_by``, ``superseded_because`` and ``made_by`` (the attempts that a completed run's result is made
        of).
    """
    return {
        "name": view.name,
        "id": view.id,
        "state": view.state,
        "where": view.where,
        "loops": [{"label": label, "done": done, "total": total} for label, done, total in view.loops],
        "stands_at": view.stands_at,
        "active": view.active,
        "rate": {"label": view.rate[0], "per_second": view.rate[1]} if view.rate else None,
        "seconds_left": view.seconds_left,
        "attempts": [asdict(attempt) for attempt in view.lineage.attempts],
        "snapshot": {"at": view.snapshot_at, **view.snapshot} if view.snapshot_at else None,
        "saved": dict(view.saved),
        "disk": view.disk,
        "identity": dict(view.identity),
        "differences": list(view.differences),
        "notes": list(view.notes),
        "superseded_by": view.lineage.superseded_by,
        "superseded_because": list(view.lineage.superseded_because),
        "made_by": list(view.lineage.made_by),
    }
