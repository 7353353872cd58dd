"""``%nbresume``: the words of the shell command, in the notebook."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

from .._card import mimebundle
from .._commands import Seat, make_parser
from .._session import Host, view
from .._store import Store
from ..errors import NbresumeError, OptionError
from ._panel import panel_of


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{self.prog}: {message}. %nbresume --help tells all words")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002  # what argparse passes
        raise _Told(message or "")


class _Told(Exception):  # noqa: N818  # no error: help has been printed
    pass


@magics_class
class NbresumeMagics(Magics):  # IPython's class has no types
    """The line magic."""

    def __init__(self, shell: Any, host: Host) -> None:
        super().__init__(shell)
        self._host, self._shell = host, shell
        self._parser = make_parser(_Parser, "%nbresume", "notebook")

    @no_var_expand
    @line_magic
    def nbresume(self, line: str) -> None:
        """Look at runs and decide; the words of the shell command: %nbresume runs|show|status|log|panel|continue|..."""
        try:
            self._do(shlex.split(line) or ["runs"])
        except NbresumeError as error:
            raise UsageError(str(error)) from None
        except _Told:
            return

    def _do(self, words: list[str]) -> None:
        asked = self._parser.parse_args(words)
        if asked.word == "panel":
            display(panel_of(self._shell, self._host).widget)
            return
        store = Store(Path(asked.store)) if asked.store else self._host.store
        if asked.word == "show" and not asked.json:
            display(mimebundle(view(store.find(asked.name))), raw=True)
            return
        asked.command(asked, Seat(store.root, sys.stdout, self._host.attended))


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
