"""Words about this installation: the demo, what loads nbresume by itself, completion."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._store import Store
from ..errors import OptionError
from ._seat import Seat


def store_root(asked: argparse.Namespace) -> Path:
    """Return where runs live, as the shell says."""
    return Path(getattr(asked, "store", "") or os.environ.get("NBRESUME_STORE") or ".nbresume")


def demo(asked: argparse.Namespace, seat: Seat) -> int:
    """Kill a real kernel in a real cell, and go on in another."""
    from .._demo import run_demo

    return run_demo(seat.out, asked.folder)


def install(asked: argparse.Namespace, seat: Seat) -> int:
    """Write the startup file."""
    from .._startup import write_startup

    seat.say(write_startup(user=asked.user))
    return 0


def uninstall(asked: argparse.Namespace, seat: Seat) -> int:
    """Take the startup file away."""
    from .._startup import remove_startup

    seat.say(remove_startup(user=asked.user))
    return 0


def completion(asked: argparse.Namespace, seat: Seat) -> int:
    """Print what makes a shell complete."""
    if find_spec("argcomplete") is None:
        raise OptionError("completion needs argcomplete. Install it with: pip install 'nbresume[completion]'")
    import argcomplete

    seat.say(argcomplete.shellcode(["nbresume", "jupyter-nbresume"], shell=asked.shell))
    return 0


def names(parsed_args: argparse.Namespace, **_more: Any) -> Sequence[str]:
    """Return the names of the runs that a word on a command line could mean."""
    return sorted({run.name for run in Store(store_root(parsed_args))})
