"""Which stores this user has: an interrupted run is found from another folder, too.

One small file a store, in Jupyter's data folder. Nothing is decided by it but whether a start would be a silent one: a
store that is gone, an index that can't be read or takes too long, and a folder for temporary files never stand in the
way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

from .. import _fs
from ._home import data_folder
from ._place import is_temporary
from ._run import RunFolder, Store

SWITCH = "NBRESUME_INDEX"
_MOST = 200
"""Stores that are looked at, the newest first."""
_PATIENCE = 1.0
"""Seconds: a store may lie on a disk that does not answer."""


def enter(root: Path) -> str:
    """Note a store in the index; returns what went wrong, or an empty text."""
    folder = _folder()
    if folder is None or is_temporary(root):
        return ""
    entry = folder / xxhash.xxh3_64_hexdigest(os.fsencode(root))
    try:
        if entry.exists():
            _fs.freshen(entry)
        else:
            _fs.make_folder(folder)
            _fs.write(entry, os.fsencode(root))
    except OSError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What other stores hold.

    Attributes
    ----------
    runs : tuple of RunFolder
        Runs of the name that are interrupted.
    trouble : str
        Why not all stores could be looked at; empty when they could.
    """

    runs: tuple[RunFolder, ...] = ()
    trouble: str = ""


def elsewhere(name: str, here: Path, wanted: Callable[[RunFolder], bool]) -> Elsewhere:
    """Look for interrupted runs of a name in the user's other stores.

    Parameters
    ----------
    name : str
        On the magic line.
    here : Path
        The store that was looked at already.
    wanted : callable
        Whether a run counts.
    """
    found: list[RunFolder] = []
    trouble: list[str] = []

    def look() -> None:
        try:
            for root in _stores():
                if root != here:
                    found.extend(run for run in _interrupted(root, name) if wanted(run))
        except Exception as error:  # noqa: BLE001  # what lies in another store must not stand in the way
            trouble.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=look, name="nbresume-index", daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if thread.is_alive():
        trouble.append(f"a store did not answer within {_PATIENCE:.0f} s")
    return Elsewhere(tuple(found), "; ".join(trouble))


def _stores() -> Iterator[Path]:
    folder = _folder()
    if folder is None or not folder.is_dir():
        return
    entries = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in entries[:_MOST]:
        root = Path(os.fsdecode(entry.read_bytes()))
        if root.is_dir():
            yield root


def _interrupted(root: Path, name: str) -> Iterator[RunFolder]:
    if any(root.glob(f"{name}-*")):
        newest = next((run for run in reversed(Store(root).named(name)) if run.lineage().state != "superseded"), None)
        if newest is not None and newest.lineage().state == "interrupted":
            yield newest


def _folder() -> Path | None:
    """Return the folder of the index, beside Jupyter's own data; None when it is switched off."""
    if os.environ.get(SWITCH, "").lower() in ("0", "false", "no", "off"):
        return None
    data = data_folder()
    return data / "stores" if data is not None else None
