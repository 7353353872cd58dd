"""Runs in progress: the runtime of a rewritten cell and all that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ._current import activate, active_host, current, deactivate, resumable
    from ._export import export_run, recorded_plan, redacted, write_export
    from ._host import Host, default_root
    from ._keeping import pin_snapshot, prune_run, unpin_snapshot, verify_run
    from ._points import boundary, resume_point
    from ._prospect import Prospect, prospect, prospect_text
    from ._requests import snapshot_run, stop_run
    from ._stream import stream
    from ._transcript import Line, Since, Transcript
    from ._views import abandon, glance, glances, log_tail, open_run, runs, say, view, views

__all__ = [
    "Host",
    "Line",
    "Prospect",
    "Since",
    "Transcript",
    "abandon",
    "activate",
    "active_host",
    "boundary",
    "current",
    "deactivate",
    "default_root",
    "export_run",
    "glance",
    "glances",
    "log_tail",
    "open_run",
    "pin_snapshot",
    "prospect",
    "prospect_text",
    "prune_run",
    "recorded_plan",
    "redacted",
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
    "write_export",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "_current": "activate active_host current deactivate resumable",
        "_export": "export_run recorded_plan redacted write_export",
        "_host": "Host default_root",
        "_keeping": "pin_snapshot prune_run unpin_snapshot verify_run",
        "_points": "boundary resume_point",
        "_prospect": "Prospect prospect prospect_text",
        "_requests": "snapshot_run stop_run",
        "_stream": "stream",
        "_transcript": "Line Since Transcript",
        "_views": "abandon glance glances log_tail open_run runs say view views",
    },
)
