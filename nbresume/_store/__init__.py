"""Runs on disk: folders, journals and snapshots; h5py is known here alone."""

from __future__ import annotations

from ._index import Elsewhere, elsewhere, enter
from ._owner import Claim
from ._run import RunFolder, Store
from ._seal import SnapshotError
from ._snapshot import Snapshot, with_bases
from ._staging import Staged
from ._writer import Writer

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
    "with_bases",
]
