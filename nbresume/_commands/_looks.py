"""Words that look at runs, and change nothing."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from .._card import runs_table, text
from .._store import RunFolder
from ..errors import NotFoundError, OptionError
from ._described import answer, described
from ._seat import Seat
from ._status import LogText, follow, status_text
from ._watching import each_second


def runs(asked: argparse.Namespace, seat: Seat) -> int:
    """List the runs of the store."""
    from .._session import glances, views

    if asked.json:
        answer(seat, [described(view) for view in views(seat.store)])
        return 0
    found = glances(seat.store)
    seat.say(runs_table(found) if found else f"no runs in {seat.root}")
    return 0


def show(asked: argparse.Namespace, seat: Seat) -> int:
    """Tell the lineage of a run."""
    from .._session import view

    found = view(seat.find(asked.name))
    if asked.json:
        answer(seat, described(found))
    else:
        seat.say(text(found))
    return 0


def panel(_asked: argparse.Namespace, _seat: Seat) -> int:
    """Show the panel, which the notebook does itself."""
    raise OptionError("the panel is made of widgets: it needs a notebook")


def status(asked: argparse.Namespace, seat: Seat) -> int:
    """Tell where a run stands; without a name, each that runs, or the newest."""
    from .._session import glance

    found = [seat.find(asked.name)] if asked.name else _running(seat)
    if asked.watch:
        return follow(found[-1], seat, as_json=asked.json)
    shown = [glance(run) for run in found]
    if asked.json:
        answer(seat, described(shown[0]) if asked.name else [described(view) for view in shown])
    else:
        seat.say("\n\n".join(map(status_text, shown)))
    return 0


def _running(seat: Seat) -> list[RunFolder]:
    there = list(seat.store)
    if not there:
        raise NotFoundError(f"no runs in {seat.root}")
    return [run for run in there if run.is_alive()] or there[-1:]


def log(asked: argparse.Namespace, seat: Seat) -> int:
    """Tell what the cell has printed, and how its attempts began and ended."""
    from .._session import Since, Transcript

    run = seat.find(asked.name)
    transcript = Transcript(run, Since.parse(asked.since) if asked.since else None)
    lines = LogText()

    def show_new() -> None:
        for line in transcript.read():
            if asked.json:
                seat.say(json.dumps(asdict(line), ensure_ascii=False))
            elif not asked.plain:
                seat.say(lines.text(line))
            elif line.kind == "printed":
                seat.say(line.text)

    if not asked.follow:
        show_new()
        return 0
    return each_second(run, show_new)


def plan(asked: argparse.Namespace, seat: Seat) -> int:
    """Tell what each statement of a run's cell does at a launch and on a resume, what is saved, what is identity."""
    from .._session import recorded_plan

    told, found = recorded_plan(seat.find(asked.name))
    if asked.json:
        answer(seat, found)
    else:
        seat.say(told)
    return 0


def export(asked: argparse.Namespace, seat: Seat) -> int:
    """Tell all that is known of a run in one JSON object."""
    from .._session import export_run, redacted, view, write_export

    run = seat.find(asked.name)
    found = {**described(view(run)), **export_run(run)}
    data = json.dumps(redacted(found) if asked.redact else found, ensure_ascii=False, indent=1)
    if asked.output:
        seat.say(write_export(asked.output, data))
    else:
        seat.say(data)
    return 0
