"""Runs as a person sees them, read from disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._card import View
from .._lineage import Lineage
from .._store import RunFolder, Store, disk_use, read_status
from ..errors import StoppedError
from ._pace import Rate, rate_of, samples_of

_TAIL, _TAIL_BYTES = 12, 1 << 16
_WHOLE = 1 << 26
"""Bytes of a snapshot that an offer reads and compares: a person waits for it."""


def view(run: RunFolder, *, offer: bool = False, differences: tuple[str, ...] = ()) -> View:
    """Look at a run."""
    from .._identity import Identity

    found = glance(run)
    identity = Identity.from_json(run.identity())
    return replace(
        found,
        saved=tuple((str(name), int(size)) for name, size in found.snapshot.get("sizes", {}).items()),
        identity=tuple(
            (name, part.text)
            for parts in (identity.config, identity.environment, identity.surroundings)
            for name, part in parts.items()
        ),
        differences=differences,
        notes=tuple(_note(event.kind, event.facts) for event in found.lineage.notes),
        family=_family(run),
        log_tail=log_tail(run),
        offer=offer,
        kept=Counter(one.attempt for one in run.snapshots()),
        belief=_belief(run, found.snapshot, is_offer=offer),
    )


def glance(run: RunFolder) -> View:
    """Look at where a run stands and what it takes, as a line of a long list tells it."""
    lineage = run.lineage()
    facts: dict[str, Any] = dict(lineage.last_snapshot)
    # A running attempt is further than its last snapshot, and says where; unless it has just taken one.
    status = read_status(run.path) if lineage.state == "running" else {}
    live = status if str(status.get("at", "")) >= lineage.last_snapshot_at else facts
    return View(
        name=run.name,
        id=run.id,
        lineage=lineage,
        state=lineage.state,
        where=str(live.get("where", "")),
        loops=tuple((str(label), int(count), total) for label, count, total in live.get("loops", ())),
        snapshot=facts,
        snapshot_at=lineage.last_snapshot_at,
        disk=disk_use(run.path),
        **_pace(run, lineage, status),
    )


def _pace(run: RunFolder, lineage: Lineage, status: dict[str, Any]) -> dict[str, Any]:
    """Tell how long a run has worked, how fast it goes and how long it will take, as far as that is known."""
    if lineage.state not in ("running", "interrupted"):
        return {}
    told = status.get("rate")
    rate = Rate(str(told["label"]), float(told["per_second"]), told["left"]) if told else None
    known = [event.facts for event in run.events() if event.kind == "snapshot"]
    rate = rate or rate_of(samples_of([*known, *([status] if status else [])]))
    last = status or (known[-1] if known else {})
    found: dict[str, Any] = {"stands_at": str(status.get("at", "")), "active": last.get("active")}
    if rate is not None:
        found["rate"] = (rate.label, rate.per_second)
        found["seconds_left"] = None if last.get("more") else rate.left
    return found


def views(store: Store) -> list[View]:
    """Look at all runs of a store, oldest first."""
    return [view(run) for run in store]


def glances(store: Store) -> list[View]:
    """Look at all runs of a store as a list tells them, oldest first."""
    return [glance(run) for run in store]


def _family(run: RunFolder) -> tuple[tuple[str, Lineage], ...]:
    """Return the runs that this one superseded, oldest first."""
    found: list[tuple[str, Lineage]] = []
    younger = run
    while ident := str(younger.record.get("supersedes", "")):
        try:
            old = RunFolder.open(run.path.parent / ident)
        except OSError:
            break
        old.successor = younger.record
        found.insert(0, (old.id, old.lineage()))
        younger = old
    return tuple(found)


def _belief(run: RunFolder, facts: Mapping[str, Any], *, is_offer: bool) -> str:
    """Look at the file of the newest snapshot; at all of it only where a person is about to go on from it."""
    from .._store import Snapshot, SnapshotError  # a list of runs needs neither

    if not facts.get("snapshot"):
        return ""
    snapshot = Snapshot(run.path / "snapshots" / f"{facts['snapshot']}.h5")
    is_whole = is_offer and int(facts.get("bytes", _WHOLE)) < _WHOLE
    try:
        signed = snapshot.signature.state
        if is_whole:
            snapshot.verify()
    except (SnapshotError, OSError) as error:
        return f"can't be believed: {error}"
    words = {"signed": "signed", "foreign": "signed with another key"}.get(signed, "not signed")
    return f"{'verified' if is_whole else 'complete'}, {words}"


def log_tail(run: RunFolder, count: int = _TAIL) -> tuple[str, ...]:
    """Return the last lines that a cell has printed, so many at most."""
    try:
        with (run.path / "log.txt").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            return tuple(file.read().decode("utf-8", "replace").splitlines()[-count:])
    except FileNotFoundError:
        return ()


def _note(kind: str, facts: dict[str, Any]) -> str:
    match kind:
        case "rejected":
            return f"snapshot {facts.get('snapshot')} was not believed: {facts.get('why')}"
        case "cut":
            return f"{facts.get('file')} was cut back by {facts.get('bytes')} bytes, kept in the run's folder"
        case _:
            return str(facts.get("text", kind))


def runs(store: str | Path | None = None) -> list[View]:
    """List the runs of a store.

    Parameters
    ----------
    store : path, optional
        Default: the store of the loaded extension, else ``NBRESUME_STORE``, else ``.nbresume`` here.
    """
    return views(Store(_root(store)))


def open_run(name: str, store: str | Path | None = None) -> View:
    """Look at the newest run of a name, or at the run of an id.

    Raises
    ------
    NotFoundError
        When there is none.
    """
    return view(Store(_root(store)).find(name))


def _root(store: str | Path | None) -> Path:
    from ._current import active_host
    from ._host import default_root

    if store is not None:
        return Path(store)
    host = active_host()
    return host.store.root if host is not None else default_root()


def say(store: Store, name: str, word: str) -> str:
    """Record the decision that the next execution of the cell follows; returns what to tell the person.

    Raises
    ------
    NotFoundError
        When there is no such run.
    StoppedError
        When the run is not waiting for a decision.
    """
    run = store.find(name)
    state = run.lineage().state
    if state == "running":
        raise StoppedError(f"{run.name} is running: there is nothing to decide before it has stopped")
    if state in ("superseded", "failed", "abandoned"):
        raise StoppedError(f"{run.id} is {state}: running its cell starts a new run anyway")
    if word == "declare" and state != "interrupted":
        raise StoppedError(f"{run.name} is {state}: only an interrupted run can be declared the same")
    run.say(word)
    if word == "declare":
        return (
            f"{run.name}: running its cell again continues it as declared by you, if its schema is compatible; the "
            "lineage keeps what differs"
        )
    if word == "continue" and state == "completed":
        return f"{run.name}: running its cell again lays its results over what is there"
    if word == "continue":
        return f"{run.name}: running its cell again continues it, if what identifies it is equal"
    return f"{run.name}: running its cell again starts a new run; {run.id} is kept and marked superseded"


def abandon(store: Store, name: str) -> str:
    """Close a run that nobody will continue; its files stay.

    Raises
    ------
    StoppedError
        When it is running or closed already.
    """
    run = store.find(name)
    lineage = run.lineage()
    if lineage.state != "interrupted":
        raise StoppedError(f"{run.id} is {lineage.state}: only an interrupted run can be abandoned")
    run.note("abandoned", max((one.number for one in lineage.attempts), default=1))
    return f"{run.id} is abandoned; its snapshots stay where they are"
