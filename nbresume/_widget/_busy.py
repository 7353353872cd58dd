"""Being heard while a cell runs."""

from __future__ import annotations

from typing import Any

import ipywidgets


def answer_while_busy(*widgets: ipywidgets.Widget) -> None:
    """Let widgets be heard while a cell runs, where the front end and the kernel can.

    ipykernel 7.4 sends a comm's messages to the subshell that last wrote to it, so a button made by a cell waits for
    that cell. The front end's own choice is honoured instead, as 7.0 to 7.3 did; elsewhere this does nothing.

    Parameters
    ----------
    *widgets : ipywidgets.Widget
        Those that a person clicks.
    """
    for widget in widgets:
        comm: Any = getattr(widget, "comm", None)
        if hasattr(comm, "_reply_subshell_for"):
            comm._reply_subshell_for = _front_end_choice  # noqa: SLF001  # no public way, ipython/ipykernel#1565


def _front_end_choice(_: object, default: object) -> object:
    return default
