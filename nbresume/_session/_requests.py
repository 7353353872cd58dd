"""What a person asks of a running run from elsewhere: another shell, another notebook, a button.

The same words, the same answers, whoever asks. A request speaks to the attempt that runs now; one for an attempt that
is over is refused by name. Only what is known is answered.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from .._events import Event
from .._lineage import Attempt
from .._store import Request, RequestWord, RunFolder, ask, drop_request, requests_to
from .._types import Json
from ..errors import StoppedError, StoreError

_STEP = 0.2
_SHARE = 0.05
"""Part of the time that may go into reading the journal while waiting."""
_WANTS = {"stop": "asked to stop", "snapshot": "asked for a snapshot"}


def stop_run(run: RunFolder, *, attempt: int | None = None, wait: float | None = None) -> tuple[str, Json]:
    """Ask a running run to stop at its next boundary, with a snapshot; its cell ends as after an interrupt.

    Parameters
    ----------
    run : RunFolder
        The run.
    attempt : int, optional
        The attempt that is meant; refused when another runs now. Default: whichever runs.
    wait : float, optional
        Seconds to wait until it is done; may be infinite. Default: not at all.

    Returns
    -------
    text : str
        What to tell the person.
    facts : dict
        ``name``, ``id``, ``attempt``, ``request``, and ``outcome``: ``asked``; with ``wait`` also ``done`` (with
        ``where`` and ``snapshot``), ``over`` (the attempt ended otherwise, ``how``) or ``waiting`` (not done by then).

    Raises
    ------
    StoppedError
        When the run is not running, or the attempt that was meant is over.
    StoreError
        When its folder takes no request.
    """
    return _ask(run, "stop", attempt, wait)


def snapshot_run(run: RunFolder, *, attempt: int | None = None, wait: float | None = None) -> tuple[str, Json]:
    """Ask a running run for a snapshot at its next boundary, whatever its rule says; see ``stop_run``."""
    return _ask(run, "snapshot", attempt, wait)


def _ask(run: RunFolder, word: RequestWord, attempt: int | None, wait: float | None) -> tuple[str, Json]:
    lineage = run.lineage()
    if lineage.state != "running":
        raise StoppedError(f"{run.id} is {lineage.state}: only a run that is running can be {_WANTS[word]}")
    number = lineage.attempts[-1].number
    if attempt not in (None, number):
        raise StoppedError(
            f"{run.id} is in attempt {number} by now, and attempt {attempt} is over. Nothing was changed"
        )
    try:
        request = ask(run.path, word, number)
    except OSError as error:
        why = str(error) if isinstance(error, StoreError) else f"nothing can be written there: {error.strerror}"
        raise StoreError(f"{run.id} can't be {_WANTS[word]}: {why}", str(run.path)) from error
    if request is None:
        raise StoppedError(f"attempt {number} of {run.id} has just ended, or another is about to begin: look again")
    facts: Json = {"name": run.name, "id": run.id, "attempt": request.attempt, "request": request.ident}
    if wait is None:
        return f"{run.name}: asked; the next boundary will act", {**facts, "outcome": "asked"}
    text, more = _wait(run, word, request, wait)
    return f"{run.name}: {text}", {**facts, **more}


def _wait(run: RunFolder, word: RequestWord, request: Request, seconds: float) -> tuple[str, Json]:
    began, cost = time.monotonic(), 0.0
    while True:
        looked = time.monotonic()
        if (found := _outcome(run, word, request)) is not None:
            return found
        cost = time.monotonic() - looked
        left = began + seconds - time.monotonic()
        if left <= 0:
            heard = request not in requests_to(run.path, request.key)
            state = "its next boundary has not come yet" if heard else "its process has not heard it yet"
            return f"{_WANTS[word]}, and not done after {seconds:g} s: {state}", {"outcome": "waiting"}
        time.sleep(min(max(_STEP, cost / _SHARE), left))


def _outcome(run: RunFolder, word: RequestWord, request: Request) -> tuple[str, Json] | None:
    """Tell what has become of a request; None as long as nothing has."""
    lineage = run.lineage()
    found = next((one for one in reversed(lineage.attempts) if one.number == request.attempt), None)
    done = next(_answers(run, request), None)
    known: Json = {"where": done.facts.get("where", ""), "snapshot": done.facts.get("snapshot", "")} if done else {}
    if word == "snapshot" and done is not None:
        return f"snapshot {known['snapshot']} at {known['where']}", {"outcome": "done", **known}
    if found is None or not found.how:
        return None
    with contextlib.suppress(OSError):  # nobody is left who could hear it
        drop_request(run.path, request)
    if found.how == "stop" and done is not None:
        return f"stopped at {known['where']}, snapshot {known['snapshot']}", {"outcome": "done", **known}
    if found.how == "stop" and word == "stop":
        where = found.where or "the start"
        return f"stopped, and no snapshot was taken there: it goes on from {where}", {"outcome": "over", "how": "stop"}
    return f"{_ended(found)} before that", {"outcome": "over", "how": found.how, "where": found.where}


def _answers(run: RunFolder, request: Request) -> Iterator[Event]:
    return (
        event for event in run.events() if request.ident in event.facts.get("asked", ()) and event.kind == "snapshot"
    )


def _ended(attempt: Attempt) -> str:
    how = {"completed": "completed", "vanished": "its process ended without a word"}.get(attempt.how)
    return how or f"interrupted ({attempt.how})"
