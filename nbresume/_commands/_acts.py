"""Words that decide something about a run, or do something to it."""

from __future__ import annotations

import argparse

from .._types import Json
from ..errors import OptionError
from ._described import answer
from ._seat import Seat


def continue_(asked: argparse.Namespace, seat: Seat) -> int:
    """Record that the next execution of the cell continues the run."""
    if asked.declare_compatible and not seat.attended():
        raise OptionError("--declare-compatible is a person's word, and no script can say it: use a terminal")
    return _say(asked, seat, "declare" if asked.declare_compatible else "continue")


def supersede(asked: argparse.Namespace, seat: Seat) -> int:
    """Record that the next execution of the cell starts a new run."""
    return _say(asked, seat, "supersede")


def _say(asked: argparse.Namespace, seat: Seat, word: str) -> int:
    from .._session import say

    seat.say(say(seat.store, asked.name, word))
    return 0


def abandon(asked: argparse.Namespace, seat: Seat) -> int:
    """Close an interrupted run."""
    from .._session import abandon

    seat.say(abandon(seat.store, asked.name))
    return 0


def stop(asked: argparse.Namespace, seat: Seat) -> int:
    """Ask a running run to stop at its next boundary."""
    from .._session import stop_run

    return _requested(asked, seat, *stop_run(seat.find(asked.name), wait=asked.wait))


def snapshot(asked: argparse.Namespace, seat: Seat) -> int:
    """Ask a running run for a snapshot at its next boundary."""
    from .._session import snapshot_run

    return _requested(asked, seat, *snapshot_run(seat.find(asked.name), wait=asked.wait))


def _requested(asked: argparse.Namespace, seat: Seat, told: str, found: Json) -> int:
    _either(asked, seat, told, found)
    return 0 if found["outcome"] in ("asked", "done") or found.get("how") == "completed" else 1


def verify(asked: argparse.Namespace, seat: Seat) -> int:
    """Read every snapshot of a run."""
    from .._session import verify_run

    told, found = verify_run(seat.find(asked.name), repairs=asked.repair)
    _either(asked, seat, told, found)
    return 0 if found["complete"] and found["trusted"] else 1


def prune(asked: argparse.Namespace, seat: Seat) -> int:
    """Remove old snapshots of a run that nobody is writing."""
    from .._session import prune_run

    told, found = prune_run(seat.find(asked.name), asked.keep, asked.keep_every, dry_run=asked.dry_run)
    return _either(asked, seat, told, found)


def pin(asked: argparse.Namespace, seat: Seat) -> int:
    """Keep a snapshot for good."""
    from .._session import pin_snapshot

    seat.say(pin_snapshot(seat.find(asked.name), asked.snapshot))
    return 0


def unpin(asked: argparse.Namespace, seat: Seat) -> int:
    """Let a pinned snapshot go."""
    from .._session import unpin_snapshot

    seat.say(unpin_snapshot(seat.find(asked.name), asked.snapshot))
    return 0


def _either(asked: argparse.Namespace, seat: Seat, told: str, found: Json) -> int:
    if asked.json:
        answer(seat, found)
    else:
        seat.say(told)
    return 0
