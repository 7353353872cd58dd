"""All that is known of a run, for another program or for publication."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .._card import size, table
from .._card._words import public
from .._identity import Identity
from .._store import RunFolder
from .._types import Json
from ..errors import StoppedError, StoreError
from ._transcript import Transcript

_PRIVATE = re.compile(r"log|signature|key|host|node|user|pid|commit|message|diff|text|code|plan|display")
"""Keys whose values are code, or what was printed, or tell of a machine."""
_HEADS = ("line", "statement", "at launch", "on resume")


def recorded_plan(run: RunFolder) -> tuple[str, Json]:
    """Tell what the launch recorded of the cell's statements, and what snapshots hold.

    Returns
    -------
    text : str
        What to tell the person.
    facts : dict
        ``name``, ``id``, ``statements`` (each with ``line``, ``text``, ``launch``, ``resume``), ``declared``, ``saved``
        (bytes by name) and ``identity`` (a short text by name).
    """
    identity = Identity.from_json(run.identity())
    rows = [(str(line), text, launch, resume) for line, text, launch, resume in run.record.get("plan", ())]
    facts: dict[str, Any] = dict(run.lineage().last_snapshot)
    saved = {str(name): int(count) for name, count in facts.get("sizes", {}).items()}
    inputs = {name: part.text for name, part in identity.config.items()}
    declared = list(run.record.get("declared", ()))
    lines = [f"plan of {run.name} ({run.id})", ""]
    lines += table([_HEADS, *rows]) if rows else ["  what its statements do was not recorded at its launch"]
    lines += [
        "",
        *table([("name", "becomes", "size"), *((one, "saved", size(n)) for one, n in saved.items())], right=2),
    ]
    lines += table((name, "input", text) for name, text in inputs.items()) if inputs else []
    lines += ["", f"Declared: {', '.join(declared) or 'nothing'}."]
    found: Json = {
        "name": run.name,
        "id": run.id,
        "statements": [dict(zip(("line", "text", "launch", "resume"), row, strict=True)) for row in rows],
        "declared": declared,
        "saved": saved,
        "identity": inputs,
    }
    return "\n".join(lines), found


def export_run(run: RunFolder) -> Json:
    """Return what ``show --json`` does not: the launch record, the journal, the log.

    Returns
    -------
    dict
        ``record``, ``events`` (each with ``event``, ``attempt``, ``at`` and its facts), and ``log``: its lines.
    """
    events = [{"event": one.kind, "attempt": one.attempt, "at": one.at, **one.facts} for one in run.events()]
    log = [
        {"kind": line.kind, "attempt": line.attempt, "at": line.at, "where": line.where, "text": line.text}
        for line in Transcript(run).read()
    ]
    return {"record": run.record, "events": events, "log": log}


def redacted(found: Json) -> Json:
    """Return the same without what should not be published: hosts, users, paths, job ids, what was printed, code."""
    cleaned: Json = _cleaned(found)
    return cleaned


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items() if not _PRIVATE.fullmatch(str(key))}
    if isinstance(value, (list, tuple)):
        return [_cleaned(one) for one in value]
    return public(value) if isinstance(value, str) else value


def write_export(path: Path, text: str) -> str:
    """Write an export where no file is yet; returns what to tell the person.

    Raises
    ------
    StoppedError
        When a file is there.
    StoreError
        When it can't be written.
    """
    from .. import _fs

    if path.exists():
        raise StoppedError(f"{path} is there already. Choose another name, or move it away")
    try:
        _fs.write(path, f"{text}\n".encode(), mode=_fs.ALL_READ)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.__cause__ or error}", str(path)) from error
    return f"{path} is written"
