"""Where this user's things live that belong to no store: beside Jupyter's own data."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path | None:
    """Return nbresume's folder in Jupyter's data; None where this user has no home."""
    data = os.environ.get("JUPYTER_DATA_DIR")
    if data:
        return Path(data) / "nbresume"
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    try:
        return Path(home).expanduser() / "jupyter" / "nbresume"
    except RuntimeError:  # a container that runs under a number nobody has an account for
        return None
