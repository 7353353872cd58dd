"""Effects on the outside world that are done once over all attempts of a run.

A claim is on the disk before the effect, the result after it. A death between the two leaves a claim without a result:
then nobody can know whether the effect happened, and the run stops rather than guess.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .. import _fs
from .._capture import Definitions, capture, culprit, put_rng, restore, rng_state
from .._store import RunFolder, Snapshot, SnapshotError
from .._types import Json
from ..errors import StoppedError, StoreError


def once(run: RunFolder, definitions: Definitions, key: str, function: Callable[[], Any], *, again: bool) -> Any:
    """Do something once in a run; a later call with the key returns the kept result.

    The random streams go on from where the effect left them if this is the same moment of the run, done again; at
    another moment they are left alone, as nothing is drawn then.

    Raises
    ------
    StoppedError
        When an attempt died in the middle of it.
    UnsaveableError
        When the result can't be kept; the effect has happened.
    """
    kept, claim = run.kept(key), run.kept_path(key).with_suffix(".claim")
    if kept is not None:
        return _result(kept, key, definitions)
    if claim.exists() and not again:
        raise StoppedError(
            f"once({key!r}): an earlier attempt began it and died before it was done, so whether it happened is "
            f"unknown. Look; to do it again remove {claim}, or say once({key!r}, ..., again=True) from the first run on"
        )
    before = rng_state()
    _fs.make_folder(claim.parent)
    _fs.write(claim, json.dumps({"key": key}).encode())
    try:
        result = function()
    except Exception:
        _fs.remove(claim)  # it failed, and says so: the user's code may try again
        raise
    _keep(run, definitions, key, result, before)
    _fs.remove(claim)
    return result


def _keep(run: RunFolder, definitions: Definitions, key: str, result: Any, before: Json) -> None:
    meta = {"key": key, "before": before, "after": rng_state()}
    try:
        found = capture({"result": result}, definitions=definitions, inputs={}, places={})
    except Exception as error:
        raise culprit(f"once({key!r})", result, error, definitions=definitions) from error
    run.keep(key, meta, found.stream, found.tables, found.blocks)


def _result(kept: Snapshot, key: str, definitions: Definitions) -> Any:
    try:
        stream, tables = kept.stream_and_tables()
        result = restore(stream, tables, definitions=definitions, inputs={}, read=kept.read)["result"]
    except SnapshotError as error:
        raise StoreError(
            f"once({key!r}): its result can't be read any more: {error}. Put back a copy of {kept.path}",
            str(kept.path),
        ) from error
    if json.loads(json.dumps(rng_state())) == kept.meta["before"]:
        put_rng(kept.meta["after"])
    return result
