"""Runs on disk: folders, journals and snapshots; h5py is known here alone."""

from __future__ import annotations

from ._index import Elsewhere, elsewhere, enter
from ._owner import Claim
from ._place import fleeting
from ._run import RunFolder, Store
from ._seal import SnapshotError
from ._snapshot import Snapshot
from ._writer import Staged, Writer

__all__ = [
    "Claim",
    "Elsewhere",
    "RunFolder",
    "Snapshot",
    "SnapshotError",
    "Staged",
    "Store",
    "Writer",
    "elsewhere",
    "enter",
    "fleeting",
]
