"""How an attempt ends: what is written last, and what the journal is told; nothing is invented."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from .._capture import rng_state
from .._lineage import CHANGED, OTHER_HARDWARE
from .._store import RunFolder
from .._types import Json
from ..errors import NbresumeError, RefusedError, StoreError
from ._attempt import Attempt
from ._runtime import Runtime

_WORDS = 200
"""Letters of an exception's message that the journal keeps."""


def end(runtime: Runtime, attempt: Attempt, error: BaseException | None, display: Json | None, signal: str) -> None:
    """Tell the journal how an attempt ended, after the end of the run has been saved where it is one.

    Parameters
    ----------
    runtime, attempt
        Of the cell whose execution ended.
    error : BaseException or None
        What ended it, if it did not end well.
    display : dict or None
        What it displayed last, by MIME type.
    signal : str
        Name of the signal that asked for the end, if one did.
    """
    run, number = attempt.run, attempt.number
    try:
        attempt.claim.check()
        if runtime.restoring:
            return  # a completed run stays completed, however its restoring ended
        runtime.learn()  # what has become of the commit in flight is said, however the cell ended
        if error is not None:
            if _is_refusal(error, runtime):
                run.note("failed", number, **_told(error))
            else:
                run.note("interrupted", number, **_cause(error, runtime, signal))
        elif not runtime.reached_end:  # a magic above the cell swallowed what ended it
            run.note("interrupted", number, cause="exception")
        else:
            _close(runtime, attempt, display)
    except (NbresumeError, OSError) as trouble:
        if attempt.claim.lost:
            if error is None:  # else the cell has ended with these words
                attempt.tell(str(trouble))
            return
        attempt.tell(f"{run.name}: its end could not be saved: {trouble}")
        if error is None:
            with contextlib.suppress(StoreError):  # the disk that refused the end may refuse this line as well
                run.note("interrupted", number, cause="exception", **_told(trouble))


def give_up(attempt: Attempt, error: BaseException) -> None:
    """End an attempt that could not be opened: what it has told the journal by then gets its end."""
    try:
        last = attempt.run.lineage().attempts[-1:]
        if last and last[0].number == attempt.number and not last[0].ended:
            cause = "stop" if isinstance(error, KeyboardInterrupt) else "exception"
            attempt.run.note("interrupted", attempt.number, cause=cause, **_told(error))
    finally:
        attempt.end()


def _close(runtime: Runtime, attempt: Attempt, display: Json | None) -> None:
    rng = rng_state()
    try:
        meta = _commit_end(attempt, rng, display)
    except (OSError, MemoryError) as error:  # no boundary comes after this one that could try again
        runtime.unprotected(error)
        meta = _commit_end(attempt, rng, display)
    runtime.protected()
    tell_completed(attempt.run, attempt.number, meta)


def _commit_end(attempt: Attempt, rng: Json, display: Json | None) -> Json:
    began = time.perf_counter()
    selection = attempt.scope.select([], {}, {}, closing=True)
    made_by = _made_by(attempt.run, attempt.number)
    return attempt.commit([], selection, rng, began, end=True, made_by=made_by, display=display)[0]


def tell_completed(run: RunFolder, number: int, meta: Json) -> None:
    """Tell the journal of a run whose last snapshot stands, and what it was made of."""
    files = {Path(entry["path"]).name: entry["length"] for entry in meta["files"]["known"]}
    run.note("reconciled", number, attempts=meta["made_by"], files=files, printed=meta["log"])
    bits = {} if run.lineage().is_exact else {"bits": CHANGED[OTHER_HARDWARE]}
    run.note("completed", number, resumed=len(meta["made_by"]) > 1, **bits)


def _made_by(run: RunFolder, number: int) -> list[int]:
    """Return the attempts that the result is made of: each went on from a snapshot of the one before."""
    from_ = {event.attempt: event.facts.get("snapshot") for event in run.events() if event.kind == "resumed"}
    chain = [number]
    while begun := from_.get(chain[0]):
        chain.insert(0, int(str(begun).partition("-")[0]))
    return chain


def _is_refusal(error: BaseException, runtime: Runtime) -> bool:
    """Whether the first attempt was refused at its first boundary: what could not be resumed is known at once."""
    return isinstance(error, RefusedError) and runtime.pending is error and runtime.attempt.number == 1


def _cause(error: BaseException, runtime: Runtime, signal: str) -> Json:
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
        known: Json = {"signal": signal} if signal else {}
        if runtime.stop_asked:
            known["asked"] = runtime.stop_asked
        return {"cause": "stop", "at_boundary": runtime.pending is error, **known}
    return {"cause": "exception", **_told(error)}


def _told(error: BaseException) -> Json:
    try:
        words = str(error)
    except Exception:  # noqa: BLE001  # the user's own class
        words = ""
    return {"error": type(error).__name__, "message": words[:_WORDS]}
