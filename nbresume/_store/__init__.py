"""Runs on disk: folders, journals and snapshots; h5py is known here alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ._index import Elsewhere, elsewhere, enter
    from ._keys import Keys
    from ._owner import Claim
    from ._place import fleeting
    from ._requests import Request, RequestWord, ask, drop_old_requests, drop_request, requests_to
    from ._retention import Pruned, disk_use, pin, pinned, prune, repair, unpin
    from ._run import RunFolder, Store
    from ._seal import SnapshotError
    from ._signatures import check_signatures, trust_run, verified
    from ._snapshot import Snapshot, base_of, with_bases
    from ._staging import Staged
    from ._status import drop_status, publish_status, read_status
    from ._trust import signer
    from ._writer import Writer

__all__ = [
    "Claim",
    "Elsewhere",
    "Keys",
    "Pruned",
    "Request",
    "RequestWord",
    "RunFolder",
    "Snapshot",
    "SnapshotError",
    "Staged",
    "Store",
    "Writer",
    "ask",
    "base_of",
    "check_signatures",
    "disk_use",
    "drop_old_requests",
    "drop_request",
    "drop_status",
    "elsewhere",
    "enter",
    "fleeting",
    "pin",
    "pinned",
    "prune",
    "publish_status",
    "read_status",
    "repair",
    "requests_to",
    "signer",
    "trust_run",
    "unpin",
    "verified",
    "with_bases",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "_index": "Elsewhere elsewhere enter",
        "_keys": "Keys",
        "_owner": "Claim",
        "_place": "fleeting",
        "_requests": "Request RequestWord ask drop_old_requests drop_request requests_to",
        "_retention": "Pruned disk_use pin pinned prune repair unpin",
        "_run": "RunFolder Store",
        "_seal": "SnapshotError",
        "_signatures": "check_signatures trust_run verified",
        "_snapshot": "Snapshot base_of with_bases",
        "_staging": "Staged",
        "_status": "drop_status publish_status read_status",
        "_trust": "signer",
        "_writer": "Writer",
    },
)
