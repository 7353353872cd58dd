"""Runs in progress: the runtime of a rewritten cell and all that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ._current import activate, active_host, current, deactivate, resumable
    from ._host import Host, default_root
    from ._keeping import pin_snapshot, prune_run, unpin_snapshot, verify_run
    from ._points import boundary, resume_point
    from ._requests import snapshot_run, stop_run
    from ._stream import stream
    from ._views import abandon, glances, open_run, runs, say, view, views

__all__ = [
    "Host",
    "abandon",
    "activate",
    "active_host",
    "boundary",
    "current",
    "deactivate",
    "default_root",
    "glances",
    "open_run",
    "pin_snapshot",
    "prune_run",
    "resumable",
    "resume_point",
    "runs",
    "say",
    "snapshot_run",
    "stop_run",
    "stream",
    "unpin_snapshot",
    "verify_run",
    "view",
    "views",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "_current": "activate active_host current deactivate resumable",
        "_host": "Host default_root",
        "_keeping": "pin_snapshot prune_run unpin_snapshot verify_run",
        "_points": "boundary resume_point",
        "_requests": "snapshot_run stop_run",
        "_stream": "stream",
        "_views": "abandon glances open_run runs say view views",
    },
)
