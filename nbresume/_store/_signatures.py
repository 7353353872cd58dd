"""The signatures of a whole run: checked before a resume, told to a person, trusted on a person's word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from .._types import Json
from ._keys import Keys
from ._run import RunFolder
from ._seal import SnapshotError
from ._snapshot import Snapshot
from ._trust import Seen, check, doubtful, look, of_change, of_files, of_record, trust


def check_signatures(run: RunFolder) -> None:
    """Check the launch record, the journal and the newest snapshot, before any of them is followed.

    Raises
    ------
    UntrustedError
        When one is not signed with a key of ours, and nobody has said that it is trusted.
    """
    for name, seen in _records(run):
        check(run.path, name, seen)
    for snapshot in reversed(run.snapshots()):
        try:
            snapshot.check_signature()
        except SnapshotError:
            continue  # the next older one counts; the way back tells of this one
        return


def trust_run(run: RunFolder) -> list[str]:
    """Trust all that lies in the folder now, on a person's word; returns what was in doubt, in words."""
    things = list(_records(run))
    for snapshot in _files(run):
        try:
            things.append((_name(snapshot), snapshot.signature))
        except SnapshotError:
            continue  # what is damaged stays so
    found = {name: seen for name, seen in doubtful(run.path, things).items() if seen.state != "changed"}
    if found:
        trust(run.path, found)
    return [f"{name} {seen.words}" for name, seen in found.items()]


def verified(run: RunFolder) -> Json:
    """Read every snapshot of a run, and change and unpickle nothing.

    Parameters
    ----------
    run : RunFolder
        The run.

    Returns
    -------
    dict
        ``name``, ``id``, ``complete`` (whether every file can be believed), ``trusted`` (whether a resume would load
        them, as far as signatures go), ``snapshots``, oldest first, and ``once``: results of what is done once. Each
        has ``file``, ``bytes``, ``complete``, ``why`` (empty when complete), ``signature`` (``signed``, ``foreign``,
        ``unsigned`` or ``changed``; empty when it can't be read), ``key`` (which one) and ``trusted``. ``records``:
        what else is signed, each with ``what``, ``signature``, ``key`` and ``trusted``.
    """
    rows = [(snapshot.path.parent.name, _row(run, snapshot)) for snapshot in _files(run)]
    records = [{"what": name, **_told(run, name, seen)} for name, seen in _records(run)]
    return {
        "name": run.name,
        "id": run.id,
        "complete": all(row["complete"] for _, row in rows),
        "trusted": all(row["trusted"] for row in (*records, *(row for _, row in rows if row["complete"]))),
        "snapshots": [row for folder, row in rows if folder == "snapshots"],
        "once": [row for folder, row in rows if folder == "once"],
        "records": records,
    }


def _row(run: RunFolder, snapshot: Snapshot) -> Json:
    why, told = "", {"signature": "", "key": "", "trusted": False}
    try:
        told = _told(run, _name(snapshot), snapshot.signature)
        snapshot.verify()
    except SnapshotError as error:
        why = str(error)
    size = snapshot.path.stat().st_size
    return {"file": snapshot.path.name, "bytes": size, "complete": not why, "why": why, **told}


def _told(run: RunFolder, name: str, seen: Seen) -> Json:
    return {"signature": seen.state, "key": seen.key, "trusted": not doubtful(run.path, [(name, seen)])}


def _files(run: RunFolder) -> list[Snapshot]:
    return [*run.snapshots(), *map(Snapshot, sorted((run.path / "once").glob("*.h5")))]


def _name(snapshot: Snapshot) -> str:
    return f"{snapshot.path.parent.name}/{snapshot.path.name}"


def _records(run: RunFolder) -> Iterator[tuple[str, Seen]]:
    """Yield what a resume believes beside the snapshots, with its signature."""
    yield "run.json", look(run.record.get("signature"), *of_record(run.record))
    for event in run.events():
        if event.kind == "changed":
            signed = of_change(run.id, event.attempt, event.facts)
            yield f"journal.jsonl, changed at {event.at}", look(event.facts.get("signature"), *signed)
    for kind, name in (("done", "files.jsonl"), ("moved", "aside/moved.json")):
        seen = _of_files(run, kind, name)
        if seen is not None:
            yield name, seen


def _of_files(run: RunFolder, kind: str, name: str) -> Seen | None:
    """Look at records of what was done to files: as one thing, of which nothing may be added that is not ours."""
    try:
        lines = (run.path / name).read_bytes().splitlines()
    except FileNotFoundError:
        return None
    keys = Keys.find()
    seen, odd = Seen("signed", keys.own.ident, ""), []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # torn by a death: nobody follows it
        found = Seen("unsigned", "", "")
        if isinstance(record, dict):
            found = look(record.get("signature"), *of_files(run.id, kind, record), keys=keys)
        if found.state != "signed":
            odd.append(line)
            seen = found if seen.state != "changed" else seen
    return Seen(seen.state, seen.key, hashlib.sha256(b"\n".join(odd)).hexdigest())
