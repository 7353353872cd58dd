"""A bare shell with the extension loaded, for rehearsals outside a notebook."""

from __future__ import annotations

from typing import Any

from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell

from ._extension import load_ipython_extension


def scratch_shell() -> Any:
    """Return a new shell of this process, without history, with nbresume loaded."""
    HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    load_ipython_extension(shell)
    return shell
