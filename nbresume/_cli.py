# PYTHON_ARGCOMPLETE_OK
"""The command line: the same words as in the notebook, for a shell.

One sentence on standard error and exit status 2 when a command can't do what it was asked, 3 when there is no such run;
1 when it could be asked and the answer is no: ``verify`` found a snapshot that can't be believed, ``demo`` a bit that
differs, ``stop --wait`` that it was not done in time, ``status --watch`` that the run did not complete.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from . import __version__
from ._commands import Seat, make_parser, store_root
from .errors import NbresumeError, NotFoundError


def main(argv: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run ``nbresume`` with these words.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``nbresume``; those of the process when None.
    out : TextIO, optional
        Where answers go; standard output when None.

    Returns
    -------
    int
        Exit status.
    """
    parser = command_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could follow
        import argcomplete

        argcomplete.autocomplete(parser, always_complete_options=False)
    asked = parser.parse_args(argv)
    out = out or sys.stdout
    seat = Seat(store_root(asked), out, attended=sys.stdin.isatty, is_terminal=out.isatty())
    try:
        return int(asked.command(asked, seat))
    except NbresumeError as error:
        sys.stderr.write(f"nbresume: {error}\n")
        return 3 if isinstance(error, NotFoundError) else 2
    except KeyboardInterrupt:  # a wait that was left
        return 130
    except BrokenPipeError:  # whoever read has seen enough: head, or a pager that was left
        sys.stdout = None  # else Python tries once more at its end, and complains
        return 0


def command_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    parser = make_parser(argparse.ArgumentParser, "nbresume", "shell")
    parser.add_argument("--version", action="version", version=f"nbresume {__version__}")
    return parser
