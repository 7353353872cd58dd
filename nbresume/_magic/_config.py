"""Options that hold for every cell: cell line > environment > configuration."""

from __future__ import annotations

import os
from typing import Any

from traitlets import Bool, Float, Int, Unicode, Union
from traitlets.config import Configurable

ENVIRONMENT = {
    "every": "NBRESUME_EVERY",
    "budget": "NBRESUME_BUDGET",
    "max_wait": "NBRESUME_MAX_WAIT",
    "sync": "NBRESUME_SYNC",
    "keep": "NBRESUME_KEEP",
    "keep_every": "NBRESUME_KEEP_EVERY",
    "keep_free": "NBRESUME_KEEP_FREE",
    "unprotected": "NBRESUME_UNPROTECTED",
    "on_restart": "NBRESUME_ON_RESTART",
    "strict": "NBRESUME_STRICT",
    "store": "NBRESUME_STORE",
    "rebuild": "NBRESUME_REBUILD",
    "plan": "NBRESUME_PLAN",
}
"""Environment variable of each option.

Supersede and a declaration are a person's words: the first is refused where nobody is there, the second is no option.
"""
_SWITCHES = ("sync", "strict", "plan")


class NBResume(Configurable):
    """Defaults of ``%%resumable``; set them with ``%config NBResume.every = "60s"`` or in ``ipython_config.py``."""

    every = Unicode("auto", help="When a boundary becomes a snapshot: auto, N, 30s, '10 & 30s', '100 | 60s'.").tag(
        config=True
    )
    budget = Union(
        [Float(), Unicode()], default_value="5%", help="Share of the loop's time that snapshots may cost: 5%, or 0.05."
    ).tag(config=True)
    max_wait = Unicode("10m", help="With auto, the longest time between two snapshots: 90s, 10m, 2h.").tag(config=True)
    sync = Bool(False, help="Commit each snapshot before the loop goes on, and not behind it.").tag(config=True)
    keep = Int(3, help="How many snapshots stay.").tag(config=True)
    keep_every = Int(None, allow_none=True, help="Keep each N-th snapshot for good.").tag(config=True)
    keep_free = Unicode("0", help="What snapshots leave free on the disk: 500MB, 2GB.").tag(config=True)
    unprotected = Unicode("go-on", help="What a disk that takes no snapshot does to the cell: go-on or stop.").tag(
        config=True
    )
    on_restart = Unicode("ask", help="ask, continue, supersede or fail.").tag(config=True)
    strict = Bool(False, help="Refuse instead of adding names to what is saved.").tag(config=True)
    store = Unicode("", help="Where runs live; empty for .nbresume where the kernel started.").tag(config=True)
    plan = Bool(False, help="Print what each statement will do, and run nothing.").tag(config=True)
    rebuild = Unicode("", help="Names that are never saved, separated by commas.").tag(config=True)

    def defaults(self) -> dict[str, Any]:
        """Return the default of each option, the environment before the configuration."""
        found: dict[str, Any] = {name: getattr(self, name) for name in ENVIRONMENT}
        for name, variable in ENVIRONMENT.items():
            value = os.environ.get(variable)
            if value is not None and name != "store":
                found[name] = value.lower() in ("1", "true", "yes") if name in _SWITCHES else value
        return found
