"""The magic line, parsed once; inside there are no strings to check again."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from .._policy import BUDGET, MAX_WAIT, Every, Keep, read_seconds, read_share
from .._types import Word
from ..errors import OptionError

_UNITS = ("", "K", "M", "G", "T")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)B?")
WORDS = ("ask", "continue", "supersede", "fail")
UNPROTECTED = ("go-on", "stop")


@dataclass(frozen=True, slots=True)
class CellOptions:
    """What the magic line says.

    Attributes
    ----------
    name : str
        Name of the run.
    declared : tuple of str
        ``--vars``: names that must be saveable.
    every : Every
        When a boundary becomes a snapshot.
    budget : float
        Share of the loop's time that snapshots may cost under ``--every auto``.
    max_wait : float
        Seconds after which ``--every auto`` takes a snapshot whatever it costs.
    sync : bool
        Whether a snapshot is committed before the loop goes on, and not behind it.
    keep : Keep
        Which snapshots stay.
    keep_free : int
        Bytes that snapshots leave free on the disk.
    unprotected : str
        What a second failure in a row to take a snapshot does: ``go-on`` or ``stop``.
    on_restart : Word
        What running the cell does with an interrupted run of this name.
    rebuild : tuple of str
        Names that are never saved.
    strict, plan, trust, timed : bool
        Say no instead of adding names; print and run nothing; load what is signed with another key, or not at all; a
        ``%%time`` line stood below.
    store : str
        Where runs live; empty for the store of the extension.
    """

    name: str
    declared: tuple[str, ...] = ()
    every: Every = Every(auto=True)
    budget: float = BUDGET
    max_wait: float = MAX_WAIT
    sync: bool = False
    keep: Keep = Keep()
    keep_free: int = 0
    unprotected: str = "go-on"
    on_restart: Word = "ask"
    rebuild: tuple[str, ...] = ()
    strict: bool = False
    plan: bool = False
    trust: bool = False
    store: str = ""
    timed: bool = False

    @classmethod
    def from_line(cls, line: str, defaults: Mapping[str, Any] | None = None, *, timed: bool = False) -> CellOptions:
        """Parse a magic line.

        Parameters
        ----------
        line : str
            What follows ``%%resumable``.
        defaults : mapping, optional
            Values of the configuration and the environment, by option name with underscores.
        timed : bool
            Whether a ``%%time`` line was peeled off.

        Raises
        ------
        OptionError
            With the offending word and the way out.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise OptionError(f"%%resumable {line}: {error}") from error
        parser = _parser()
        parser.set_defaults(**(defaults or {}))
        found = parser.parse_args(words)
        if not found.name:
            raise OptionError("%%resumable needs a name for the run, such as: %%resumable train --vars model,history")
        if not found.name[0].isalnum() or not all(c.isalnum() or c in "._-" for c in found.name):
            raise OptionError(f"{found.name!r} can't name a run: use letters, digits, '.', '_' and '-'")
        if found.on_restart not in WORDS:
            raise OptionError(f"--on-restart {found.on_restart!r} is none of {', '.join(WORDS)}")
        if found.unprotected not in UNPROTECTED:
            raise OptionError(f"--unprotected {found.unprotected!r} is none of {', '.join(UNPROTECTED)}")
        declared, rebuild = _names("--vars", found.vars), _names("--rebuild", found.rebuild)
        both = sorted(set(declared) & set(rebuild))
        if both:
            raise OptionError(f"{', '.join(both)}: in --vars and in --rebuild. A name is saved or made again, not both")
        return cls(
            name=found.name,
            declared=declared,
            every=Every.parse(str(found.every)),
            budget=read_share(str(found.budget)),
            max_wait=read_seconds(str(found.max_wait)),
            sync=bool(found.sync),
            keep=Keep(_number("--keep", found.keep), _number("--keep-every", found.keep_every)),
            keep_free=_size("--keep-free", str(found.keep_free)),
            unprotected=found.unprotected,
            on_restart=found.on_restart,
            rebuild=rebuild,
            strict=bool(found.strict),
            plan=bool(found.plan),
            trust=bool(found.trust),
            store=str(found.store or ""),
            timed=timed,
        )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(f"%%resumable: {message}. See %%resumable? for all options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%resumable", add_help=False, allow_abbrev=False)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--vars", default="")
    parser.add_argument("--every", default="auto")
    parser.add_argument("--budget", default="5%")
    parser.add_argument("--max-wait", default="10m")
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--keep", default=3)
    parser.add_argument("--keep-every", default=None)
    parser.add_argument("--keep-free", default="0")
    parser.add_argument("--unprotected", default="go-on")
    parser.add_argument("--on-restart", default="ask")
    parser.add_argument("--rebuild", default="")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--trust", action="store_true")
    parser.add_argument("--store", default="")
    return parser


def _names(option: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if not name.isidentifier():
            raise OptionError(f"{option} {text!r}: {name!r} is not a variable's name")
    return names


def _size(option: str, text: str) -> int:
    """Read bytes: 0, 500MB, 2GB, 1.5 TB; of a thousand each, as disks are sold."""
    found = _SIZE.fullmatch(text.strip().upper())
    if found is None:
        raise OptionError(f"{option} {text!r} is not a size, such as 500MB or 2GB")
    return int(float(found[1]) * 1000 ** _UNITS.index(found[2]))


def _number(option: str, value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    if not str(value).isdigit():
        raise OptionError(f"{option} {value!r} is not a number of snapshots")
    return int(value)
