"""Where a running attempt stands between its snapshots: a small file, written anew every second or so.

It is there for whoever looks from elsewhere, and nothing is decided by it: what a resume goes on from is a snapshot.
"""

from __future__ import annotations

import json
from pathlib import Path

from .. import _fs
from .._types import Json
from ._owner import owner

_NAME = "status.json"


def publish_status(folder: Path, status: Json) -> None:
    """Say where an attempt stands; ``status`` has the ``key`` of its claim."""
    _fs.write(folder / _NAME, json.dumps(status, ensure_ascii=False).encode(), durable=False)


def read_status(folder: Path) -> Json:
    """Read where the attempt stands that writes the run; empty when it has not said so yet."""
    try:
        status: Json = json.loads((folder / _NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) and status.get("key") == owner(folder).get("key") else {}


def drop_status(folder: Path) -> None:
    """Say nothing any more."""
    _fs.remove(folder / _NAME)
