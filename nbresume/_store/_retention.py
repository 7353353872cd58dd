"""What stays on disk when a person asks: pins, pruning by hand, and what dead writers left.

A pin is an empty file of the snapshot's name in ``pins``: it can be set and taken off while the run goes on, and the
running writer looks there before it removes anything.

Whoever removes holds the run, as its writer does: a kernel that starts meanwhile waits. The newest snapshot that holds,
and that a resume would believe, is never removed, and nothing older is while there is none.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _fs
from ..errors import NotFoundError, OptionError, StoreError, UntrustedError
from ._seal import SnapshotError

if TYPE_CHECKING:
    from ._run import RunFolder, Store
    from ._snapshot import Snapshot

_LEFTOVER = re.compile(r"\..*[0-9a-f]{8}" + re.escape(_fs.TEMP_SUFFIX))
_OURS = ("", "snapshots", "once", "files", "pins")
"""Folders of a run in which a file of that form is ours; ``aside`` holds the user's own."""
_BLOCK = 512


# ------------------------------------------------------------------ pins


def pinned(run: RunFolder) -> set[str]:
    """Return the idents of the snapshots that are never pruned."""
    try:
        return set(os.listdir(run.path / "pins"))  # noqa: PTH208  # at each commit
    except FileNotFoundError:
        return set()


def pin(run: RunFolder, ident: str = "") -> str:
    """Keep a snapshot for good; returns its ident.

    Parameters
    ----------
    run : RunFolder
        Its run, which may be running.
    ident : str
        Which one; empty for the newest that can be believed.

    Raises
    ------
    NotFoundError
        When there is none.
    """
    if not ident:
        newest = run.latest()[0]
        ident = newest.ident if newest is not None else "the newest"
    snapshot = _find(run, ident)
    path = run.path / "pins" / snapshot.ident
    _fs.make_folder(path.parent)
    _fs.write(path, b"")
    if not snapshot.path.exists():  # its writer was quicker
        _fs.remove(path)
        _find(run, ident)
    return snapshot.ident


def unpin(run: RunFolder, ident: str = "") -> list[str]:
    """Let a snapshot be pruned again, or all of the run; returns which.

    Raises
    ------
    NotFoundError
        When it is not pinned.
    """
    pins, ident = pinned(run), ident.removesuffix(".h5")
    if ident and ident not in pins:
        there = ", ".join(sorted(pins)) or "none"
        raise NotFoundError(f"{ident!r} of {run.id} is not pinned. Pinned: {there}")
    found = [ident] if ident else sorted(pins)
    for one in found:
        _fs.remove(run.path / "pins" / one)
    return found


def _find(run: RunFolder, ident: str) -> Snapshot:
    snapshots = run.snapshots()
    for snapshot in snapshots:
        if snapshot.ident == ident.removesuffix(".h5"):
            return snapshot
    there = ", ".join(snapshot.ident for snapshot in snapshots) or "none"
    raise NotFoundError(f"no snapshot {ident!r} in {run.id}. Snapshots there: {there}")


# ------------------------------------------------------------------ pruning


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning removed, or would remove.

    Attributes
    ----------
    removed : tuple of (str, int)
        Idents and bytes on disk, oldest first.
    kept : tuple of str
        Idents, oldest first.
    pinned : tuple of str
        Those of them that are pinned.
    """

    removed: tuple[tuple[str, int], ...]
    kept: tuple[str, ...]
    pinned: tuple[str, ...]


def prune(run: RunFolder, keep: int, keep_every: int | None = None, *, dry_run: bool = False) -> Pruned:
    """Remove old snapshots of a run that nobody is writing.

    Parameters
    ----------
    run : RunFolder
        In any state.
    keep : int
        How many of the newest that can be believed stay.
    keep_every : int or None
        Each N-th stays, too; None for what the run was launched with.
    dry_run : bool
        Only tell.

    Raises
    ------
    OptionError
        When nothing would be kept.
    BusyError
        When a process is writing the run.
    StoreError
        When none of the snapshots can be believed.
    """
    if keep < 1:
        raise OptionError(f"--keep {keep} keeps nothing to resume from. Use 1 or more")
    every = keep_every if keep_every is not None else run.record.get("keep_every")
    if dry_run:
        return _remove(run, _choose(run, keep, every), dry_run=True)
    with _held(run):
        return _remove(run, _choose(run, keep, every), dry_run=False)


def _choose(run: RunFolder, keep: int, every: int | None) -> set[str]:
    """Return what goes: what is older than the newest few that hold."""
    from ._snapshot import with_bases

    snapshots, pins = run.snapshots(), pinned(run)
    good = 0
    goes: set[str] = set()
    for snapshot in reversed(snapshots):
        if good < keep:
            good += _is_good(snapshot)
        elif snapshot.ident not in pins and not (every and snapshot.seq % every == 0):
            goes.add(snapshot.ident)
    if snapshots and not good:
        raise StoreError(
            f"no snapshot of {run.id} can be believed, so none is removed. See nbresume verify {run.id}", str(run.path)
        )
    staying = [snapshot for snapshot in snapshots if snapshot.ident not in goes]
    return goes - with_bases(staying, snapshots)


def _is_good(snapshot: Snapshot) -> bool:
    """Whether a resume would go on from it."""
    try:
        snapshot.verify()
        snapshot.check_signature()
    except (SnapshotError, UntrustedError):
        return False
    return True


def _remove(run: RunFolder, goes: set[str], *, dry_run: bool) -> Pruned:
    removed, kept = [], []
    for snapshot in run.snapshots():
        if snapshot.ident not in goes:
            kept.append(snapshot.ident)
            continue
        removed.append((snapshot.ident, _on_disk(snapshot.path.stat())))
        if not dry_run:
            _fs.remove(snapshot.path)
    return Pruned(tuple(removed), tuple(kept), tuple(sorted(pinned(run) & set(kept))))


@contextlib.contextmanager
def _held(run: RunFolder) -> Iterator[None]:
    """Hold a run as its writer does; nothing of its journal changes."""
    claim = run.take(max((event.attempt for event in run.events()), default=1))
    try:
        yield
    finally:
        claim.leave()


# ------------------------------------------------------------------ leftovers of dead writers


def repair(store: Store, run: RunFolder) -> list[str]:
    """Remove what writers that died have left half done, and never data; returns what, by its place in the store.

    Raises
    ------
    BusyError
        When a process is writing the run, or about to start one of its name.
    """
    run.refuse_while_alive()
    with store.opening(run.name):
        found = [path for folder in _OURS for path in _leftovers(run.path / folder)]
        with _held(run):
            for path in found:
                _fs.remove(path)
        for folder in _half_made(store, run.name):
            found.append(folder)
            for path in (*_leftovers(folder), *_leftovers(folder / "snapshots")):
                _fs.remove(path)
            _fs.remove_empty(folder / "snapshots")
            _fs.remove_empty(folder)
    return [str(path.relative_to(store.root)) for path in found]


def _leftovers(folder: Path) -> list[Path]:
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in there if path.is_file() and _LEFTOVER.fullmatch(path.name)]


def _half_made(store: Store, name: str) -> list[Path]:
    """Return folders whose launch died before its record was written; nothing else may be in them."""
    found = []
    for folder in sorted(store.root.glob(f"{name}-*")):
        if folder.is_dir() and re.fullmatch(re.escape(name) + r"-[0-9a-f]{6}", folder.name):
            inner = [path for path in folder.rglob("*") if not _LEFTOVER.fullmatch(path.name)]
            if all(path == folder / "snapshots" for path in inner):
                found.append(folder)
    return found


# ------------------------------------------------------------------ disk use


def disk_use(folder: Path) -> int:
    """Bytes that a folder takes on the disk; what goes while it is looked at counts nothing."""
    total = 0
    waiting = [os.fspath(folder)]
    while waiting:  # a list of a thousand runs asks for each: no more than a call an entry
        with contextlib.suppress(FileNotFoundError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_blocks
    return total * _BLOCK


def _on_disk(found: os.stat_result) -> int:
    return found.st_blocks * _BLOCK
