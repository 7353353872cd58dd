"""The panel of a kernel: what its buttons do, in this process and to others."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._session import (
    Host,
    active_host,
    glance,
    log_tail,
    prospect_text,
    recorded_plan,
    say,
    snapshot_run,
    stop_run,
    view,
)
from .._store import RunFolder
from ..errors import NotFoundError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .._card import View
    from .._widget import Look, Panel

_PANEL = "_nbresume_panel"
_LINES = 200
_ELSEWHERE = "interrupt the kernel once (■), or run nbresume stop NAME, or nbresume snapshot NAME, in a shell"


class RunActs:
    """What can be known and said of the runs of a host's store, for the panel.

    Parameters
    ----------
    host : Host
        The notebook's side.
    shell : InteractiveShell
        For what the kernel can do.
    """

    def __init__(self, host: Host, shell: InteractiveShell) -> None:
        self._host, self._shell = host, shell
        self._folders: dict[str, RunFolder] = {}

    def runs(self) -> list[View]:
        """Return the runs as a list tells them."""
        found = list(self._host.store)
        self._folders = {run.id: run for run in found}
        return [glance(run) for run in found]

    def look(self, run: str) -> View | None:
        """Return all that is to be seen of a run; None when it is gone."""
        found = self._folder(run)
        return None if found is None else replace(view(found), said=found.said())

    def decide(self, run: str, word: str) -> str:
        """Record ``continue`` or ``supersede``."""
        return say(self._host.store, run, word)

    def ask(self, run: str, word: str, attempt: int) -> str:
        """Ask the process that runs an attempt for a ``snapshot`` or to ``stop``."""
        found = self._folders.get(run) or self._host.store.find(run)
        told, _ = (stop_run if word == "stop" else snapshot_run)(found, attempt=attempt)
        return told

    def read(self, run: str, what: Look) -> str:
        """Return a text about a run."""
        found = self._host.store.find(run)
        match what:
            case "log":
                return "\n".join(log_tail(found, _LINES)) or "The cell has printed nothing."
            case "verify":
                return _verified(found)
            case "plan":
                return f"{self._prospect(found)}\n\n{recorded_plan(found)[0]}"

    def way(self) -> str:
        """Tell which way works for a running cell where clicks are not heard."""
        kernel: Any = getattr(self._shell, "kernel", None)
        features = getattr(kernel, "kernel_info", {}).get("supported_features", ())
        if "kernel subshells" in features:
            return (
                "Clicks are heard while the cell runs in JupyterLab 4.4, Notebook 7.4, and newer. If nothing is "
                f"answered: {_ELSEWHERE}."
            )
        return f"This kernel hears clicks only between cells. While a cell runs: {_ELSEWHERE}."

    def _prospect(self, run: RunFolder) -> str:
        """Tell what running the cell would do; names that a cell is working on are not looked at."""
        if self._host.runtime is not None:
            return "A resumable cell is running: what its names hold is compared when it has ended."
        return prospect_text(run, self._host.places, self._host.left_by(run.id))

    def _folder(self, run: str) -> RunFolder | None:
        """Return a run as it was found with the others, if it is there; to look through all of them takes long."""
        found = self._folders.get(run)
        try:
            return found if found is not None and found.path.is_dir() else self._host.store.find(run)
        except NotFoundError:
            return None


def _verified(run: RunFolder) -> str:
    """Read every snapshot in a process of its own: the kernel's cell may fork, and must not find HDF5 at work."""
    start = (sys.executable, "-P", "-c", "from nbresume._cli import main; raise SystemExit(main())")
    done = subprocess.run(  # noqa: S603  # this Python, and the id of a run that was found
        [*start, "verify", run.id, "--store", str(run.path.parent)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "NBRESUME_STORE"},
    )
    return (done.stdout or done.stderr).strip()


def panel_of(shell: InteractiveShell, host: Host) -> Panel:
    """Return the panel of a kernel: one, however often it is shown, so that models never grow in number."""
    from .._widget import Panel

    panel: Panel | None = getattr(shell, _PANEL, None)
    if panel is None or not panel.is_open:
        panel = Panel(RunActs(host, shell))
        setattr(shell, _PANEL, panel)
    else:
        panel.refresh()
    return panel


def follow_panel(shell: InteractiveShell) -> None:
    """Show what has become of the runs, where the panel is displayed."""
    panel: Panel | None = getattr(shell, _PANEL, None)
    if panel is not None and panel.is_open:
        panel.follow()


def close_panel(shell: InteractiveShell) -> None:
    """Take the panel away."""
    panel: Panel | None = getattr(shell, _PANEL, None)
    if panel is not None:
        panel.close()
        delattr(shell, _PANEL)


def panel() -> Any:
    """Return the panel: the runs of the store, the lineage of one, and the buttons for what can be said of it.

    Returns
    -------
    ipywidgets.Widget

    Raises
    ------
    NotFoundError
        When the extension is not loaded.
    """
    from IPython.core.getipython import get_ipython

    host, shell = active_host(), get_ipython()
    if host is None or shell is None:
        raise NotFoundError("the extension is not loaded. Run %load_ext nbresume first")
    return panel_of(shell, host).widget
