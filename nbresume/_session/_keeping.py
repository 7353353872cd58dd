"""What a person asks about disk space, in a shell and in the notebook: the same words, the same answers."""

from __future__ import annotations

from .._card import size, verdict
from .._store import RunFolder, Store, pin, prune, repair, unpin, verified
from .._types import Json

KEEP = 3
"""How many snapshots stay where nobody says, as in a cell."""


def prune_run(
    run: RunFolder, keep: int = KEEP, keep_every: int | None = None, *, dry_run: bool = False
) -> tuple[str, Json]:
    """Remove old snapshots of a run.

    Returns
    -------
    text : str
        What to tell the person.
    facts : dict
        ``name``, ``id``, ``removed`` (each with ``snapshot`` and ``bytes``), ``bytes`` (of all of them), ``kept``,
        ``pinned`` and ``dry_run``.
    """
    found = prune(run, keep, keep_every, dry_run=dry_run)
    freed = sum(count for _, count in found.removed)
    facts: Json = {
        "name": run.name,
        "id": run.id,
        "removed": [{"snapshot": ident, "bytes": count} for ident, count in found.removed],
        "bytes": freed,
        "kept": list(found.kept),
        "pinned": list(found.pinned),
        "dry_run": dry_run,
    }
    verb = "would go" if dry_run else "removed"
    lines = [f"{ident}  {size(count)}  {verb}" for ident, count in found.removed]
    pins = f" ({len(found.pinned)} pinned)" if found.pinned else ""
    lines.append(f"{run.id}: {len(found.removed)} snapshots {verb}, {size(freed)}; {len(found.kept)} stay{pins}")
    return "\n".join(lines), facts


def pin_snapshot(run: RunFolder, ident: str = "") -> str:
    """Keep a snapshot for good; returns what to tell the person."""
    found = pin(run, ident)
    return f"{run.id}: {found} is pinned and never pruned; to let it go again: nbresume unpin {run.id} {found}"


def unpin_snapshot(run: RunFolder, ident: str = "") -> str:
    """Let a snapshot, or all of a run, be pruned again; returns what to tell the person."""
    found = unpin(run, ident)
    return f"{run.id}: {', '.join(found) or 'nothing'} is pinned no more"


def verify_run(run: RunFolder, *, repairs: bool = False) -> tuple[str, Json]:
    """Read every snapshot of a run, and remove what dead writers left where that is asked.

    Returns
    -------
    text : str
        What to tell the person.
    facts : dict
        As ``verified`` tells it, and ``dropped``: what was removed, by its place in the store.
    """
    dropped = repair(Store(run.path.parent), run) if repairs else []
    found = {**verified(run), "dropped": dropped}
    lines = [f"{path}  dropped, left by a writer that died" for path in dropped]
    lines += ["nothing was left by a writer that died"] if repairs and not dropped else []
    return "\n".join([*lines, verdict(found)]), found
