"""Runs on disk: folders, journals and snapshots; h5py is known here alone."""

from __future__ import annotations

from ._index import Elsewhere, elsewhere, enter
from ._keys import Keys
from ._owner import Claim
from ._run import RunFolder, Store
from ._signatures import check_signatures, trust_run, verified
from ._snapshot import Snapshot, SnapshotError

__all__ = [
    "Claim",
    "Elsewhere",
    "Keys",
    "RunFolder",
    "Snapshot",
    "SnapshotError",
    "Store",
    "check_signatures",
    "elsewhere",
    "enter",
    "trust_run",
    "verified",
]
