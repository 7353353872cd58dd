"""``%nbresume``: the words of the shell command, in the notebook."""

from __future__ import annotations

import shlex
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

from .._card import mimebundle, runs_table
from .._session import Host, abandon, glances, say, snapshot_run, stop_run, view
from ..errors import NbresumeError
from ._keeping import KEEPING, keep
from ._show import make_panel

_DECLARE = "--declare-compatible"
_WORDS = (
    "runs, show NAME, panel, continue NAME, supersede NAME, stop NAME, snapshot NAME, verify NAME, prune NAME, "
    "pin NAME, unpin NAME, log NAME, abandon NAME"
)


@magics_class
class NbresumeMagics(Magics):  # IPython's class has no types
    """The line magic."""

    def __init__(self, shell: Any, host: Host) -> None:
        super().__init__(shell)
        self._host = host

    @no_var_expand
    @line_magic
    def nbresume(self, line: str) -> None:
        """Look at runs and decide: %nbresume runs|show|panel|continue|supersede|verify|prune|pin|unpin|log|abandon."""
        word, *rest = shlex.split(line) or ["runs"]
        try:
            self._do(word, rest)
        except NbresumeError as error:
            raise UsageError(str(error)) from None

    def _do(self, word: str, rest: list[str]) -> None:
        host = self._host
        store = host.store
        if word == "runs" and not rest:
            host.tell(runs_table(glances(store)))
            return
        if word == "panel" and not rest:
            display(make_panel(host).widget)
            return
        if word == "continue" and _DECLARE in rest:
            rest.remove(_DECLARE)
            word = "declare"
        if word in KEEPING and rest:
            host.tell(keep(store, word, rest))
            return
        if len(rest) != 1:
            raise UsageError(f"%nbresume {word}: use one of {_WORDS}")
        match word:
            case "show":
                display(mimebundle(view(store.find(rest[0]))), raw=True)
            case "declare" if not host.attended():
                raise UsageError(f"{_DECLARE} is a person's word, and nobody is here: no script can say it")
            case "continue" | "supersede" | "declare":
                host.tell(say(store, rest[0], word))
            case "stop":
                host.tell(stop_run(store.find(rest[0]))[0])
            case "snapshot":
                host.tell(snapshot_run(store.find(rest[0]))[0])
            case "abandon":
                host.tell(abandon(store, rest[0]))
            case "log":
                path = store.find(rest[0]).path / "log.txt"
                host.tell(path.read_text(encoding="utf-8", errors="replace").rstrip("\n") if path.exists() else "")
            case _:
                raise UsageError(f"%nbresume {word}: use one of {_WORDS}")


@magic_arguments()
@argument("name", help="name of the run")
@argument("--vars", help="names that must be saved, separated by commas")
@argument("--every", help="when a boundary becomes a snapshot: auto, N, 30s, '10 & 30s', '100 | 60s'")
@argument("--budget", help="with auto, the share of the loop's time that snapshots may cost (5%%)")
@argument("--max-wait", help="with auto, the longest time between two snapshots (10m)")
@argument("--sync", action="store_true", help="commit each snapshot before the loop goes on, and not behind it")
@argument("--keep", help="how many snapshots stay (3)")
@argument("--keep-every", help="keep each N-th snapshot for good")
@argument("--keep-free", help="what snapshots leave free on the disk: 500MB, 2GB (0)")
@argument("--unprotected", help="what a second failure in a row to take a snapshot does: go-on or stop (go-on)")
@argument("--on-restart", help="ask, continue, supersede or fail")
@argument("--rebuild", help="names that are never saved: their statement runs again")
@argument("--strict", action="store_true", help="refuse instead of adding names to what is saved")
@argument("--plan", action="store_true", help="print what each statement will do, and run nothing")
@argument("--trust", action="store_true", help="continue from what is signed with another key, or not at all")
@argument("--store", help="where runs live")
def resumable_stub(line: str, cell: str | None = None) -> None:  # noqa: ARG001  # what IPython passes
    """Make this cell resumable: it survives the death of its kernel, to the bit."""
    # The input transformer has taken the line away before a magic could be called; only a program comes here.
    raise UsageError("%%resumable works as the first line of a cell (below %%time at most), not through run_cell_magic")
