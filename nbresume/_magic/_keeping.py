"""The words of ``%nbresume`` about what lies on the disk; they take options as in a shell."""

from __future__ import annotations

import argparse
from typing import NoReturn

from .._session import pin_snapshot, prune_run, unpin_snapshot, verify_run
from .._store import Store
from ..errors import OptionError

KEEPING = ("verify", "prune", "pin", "unpin")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(f"%{self.prog}: {message}")


def keep(store: Store, word: str, rest: list[str]) -> str:
    """Do one of them; returns what to tell the person.

    Raises
    ------
    NbresumeError
        When it can't be done.
    """
    asked = _parser(word).parse_args(rest)
    run = store.find(asked.name)
    match word:
        case "verify":
            return verify_run(run, repairs=asked.repair)[0]
        case "prune":
            return prune_run(run, asked.keep, asked.keep_every, dry_run=asked.dry_run)[0]
        case "pin":
            return pin_snapshot(run, asked.snapshot)
        case _:
            return unpin_snapshot(run, asked.snapshot)


def _parser(word: str) -> _Parser:
    parser = _Parser(prog=f"nbresume {word}", add_help=False, allow_abbrev=False)
    parser.add_argument("name")
    if word == "verify":
        parser.add_argument("--repair", action="store_true")
    elif word == "prune":
        parser.add_argument("--keep", type=int, default=3)
        parser.add_argument("--keep-every", type=int)
        parser.add_argument("--dry-run", action="store_true")
    else:
        parser.add_argument("snapshot", nargs="?", default="")
    return parser
