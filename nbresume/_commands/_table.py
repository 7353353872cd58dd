"""The words, and what may follow them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import _acts, _looks, _setting
from ._seat import Seat

Command = Callable[[argparse.Namespace, Seat], int]
Door = Literal["both", "shell", "notebook"]


@dataclass(frozen=True, slots=True)
class Word:
    """One command.

    Attributes
    ----------
    word : str
        What is said.
    command : callable
        Does it; returns the exit status.
    sentence : str
        What it does.
    options : tuple of str
        What may follow, by key of ``_OPTIONS``.
    door : str
        Whether it is a word of the shell alone, of the notebook alone, or of both.
    """

    word: str
    command: Command
    sentence: str
    options: tuple[str, ...] = ()
    door: Door = "both"


COMMANDS = (
    Word("runs", _looks.runs, "list the runs of the store", ("store", "json")),
    Word("show", _looks.show, "tell the lineage of a run", ("name", "store", "json")),
    Word(
        "status",
        _looks.status,
        "tell where a run stands, how fast it goes and when it will be done; without a name, each that runs",
        ("any", "watch", "store", "json"),
    ),
    Word(
        "log",
        _looks.log,
        "tell what the cell has printed, and how its attempts began and ended",
        ("name", "follow", "since", "plain", "store", "json"),
    ),
    Word(
        "plan",
        _looks.plan,
        "tell what each statement of the cell does at a launch and on a resume, and what is saved",
        ("name", "store", "json"),
    ),
    Word(
        "continue",
        _acts.continue_,
        "record that the next execution of the cell continues the run",
        ("name", "declare", "store"),
    ),
    Word(
        "supersede",
        _acts.supersede,
        "record that the next execution of the cell starts a new run; the old one is kept",
        ("name", "store"),
    ),
    Word(
        "stop",
        _acts.stop,
        "ask a running run to stop at its next boundary, with a snapshot",
        ("name", "wait", "store", "json"),
    ),
    Word(
        "snapshot",
        _acts.snapshot,
        "ask a running run for a snapshot at its next boundary",
        ("name", "wait", "store", "json"),
    ),
    Word(
        "verify",
        _acts.verify,
        "read every snapshot of a run, and tell which can be believed and who signed them",
        ("name", "repair", "store", "json"),
    ),
    Word(
        "prune",
        _acts.prune,
        "remove old snapshots of a run that nobody is writing",
        ("name", "keep", "keep_every", "dry", "store", "json"),
    ),
    Word(
        "pin",
        _acts.pin,
        "keep a snapshot for good; the newest good one where none is named",
        ("name", "snapshot", "store"),
    ),
    Word("unpin", _acts.unpin, "let a pinned snapshot go, or all of a run", ("name", "snapshot", "store")),
    Word(
        "export",
        _looks.export,
        "tell all that is known of a run in one JSON object",
        ("name", "redact", "output", "store"),
    ),
    Word("abandon", _acts.abandon, "close an interrupted run; its files are kept", ("name", "store")),
    Word("panel", _looks.panel, "show the panel: the runs, and what can be decided", (), "notebook"),
    Word(
        "demo",
        _setting.demo,
        "kill a real kernel in a real cell, go on in another, compare bit by bit",
        ("folder",),
        "shell",
    ),
    Word(
        "install",
        _setting.install,
        "load nbresume in every kernel and terminal of this environment, or of this user",
        ("where",),
        "shell",
    ),
    Word("uninstall", _setting.uninstall, "take away what install has written", ("where",), "shell"),
    Word(
        "completion",
        _setting.completion,
        "print what makes a shell complete these words, and names of runs",
        ("shell",),
        "shell",
    ),
)


def _name(parser: argparse.ArgumentParser, nargs: str | None = None, default: str | None = None) -> None:
    known = "name of the run on the magic line, or the id of one run"
    action = parser.add_argument("name", metavar="NAME", nargs=nargs, default=default, help=known)
    action.completer = _setting.names  # type: ignore[attr-defined]  # what argcomplete asks


def _where(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--sys-prefix", action="store_true", help="for everyone who uses this Python environment")
    group.add_argument("--user", action="store_true", help="for you alone, in your default IPython profile")


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], object]] = {
    "name": _name,
    "any": lambda parser: _name(parser, "?", ""),
    "store": lambda parser: parser.add_argument(
        "--store", metavar="PATH", default="", help="where runs live (default: $NBRESUME_STORE, else .nbresume here)"
    ),
    "json": lambda parser: parser.add_argument("--json", action="store_true", help="answer with JSON, for programs"),
    "watch": lambda parser: parser.add_argument(
        "--watch", action="store_true", help="look each second until the run has ended; the exit status tells how"
    ),
    "follow": lambda parser: parser.add_argument(
        "--follow", action="store_true", help="go on with what comes until the run has ended"
    ),
    "since": lambda parser: parser.add_argument(
        "--since", metavar="WHEN", default="", help="10m, 2h, a time such as 2026-01-31T12:00, or attempt:2"
    ),
    "plain": lambda parser: parser.add_argument(
        "--plain", action="store_true", help="only what was printed, as it was printed"
    ),
    "declare": lambda parser: parser.add_argument(
        "--declare-compatible",
        action="store_true",
        help="declare that its changed code, or a longer range, is the same run; its lineage keeps the difference",
    ),
    "wait": lambda parser: parser.add_argument(
        "--wait",
        metavar="SECONDS",
        nargs="?",
        type=float,
        const=math.inf,
        help="wait until it is done, for so long at most, and tell what came of it",
    ),
    "repair": lambda parser: parser.add_argument(
        "--repair", action="store_true", help="remove what writers that died left half done; never data"
    ),
    "snapshot": lambda parser: parser.add_argument(
        "snapshot", metavar="SNAPSHOT", nargs="?", default="", help="such as 0001-00000042, as verify shows it"
    ),
    "keep": lambda parser: parser.add_argument(
        "--keep", metavar="N", type=int, default=3, help="how many of the newest good ones stay (3)"
    ),
    "keep_every": lambda parser: parser.add_argument(
        "--keep-every", metavar="N", type=int, help="each N-th stays, too (default: as the run was launched)"
    ),
    "dry": lambda parser: parser.add_argument(
        "--dry-run", action="store_true", help="tell what would go, remove nothing"
    ),
    "redact": lambda parser: parser.add_argument(
        "--redact", action="store_true", help="for publication: without hosts, users, paths, job ids and the log"
    ),
    "output": lambda parser: parser.add_argument(
        "--output", metavar="FILE", type=Path, help="write it there, where no file may be yet"
    ),
    "folder": lambda parser: parser.add_argument(
        "--folder", metavar="PATH", type=Path, help="where the demo's runs live (default: a new temporary folder)"
    ),
    "where": _where,
    "shell": lambda parser: parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell"),
}


def make_parser(kind: type[argparse.ArgumentParser], prog: str, door: Door) -> argparse.ArgumentParser:
    """Make the parser of a door.

    Parameters
    ----------
    kind : type
        Its class.
    prog : str
        How a person calls it.
    door : str
        ``shell`` or ``notebook``.
    """
    parser = kind(
        prog=prog,
        description="Look at the runs of %%resumable cells and decide what becomes of them.",
        allow_abbrev=False,
    )
    words = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="word")
    for word in COMMANDS:
        if word.door in ("both", door):
            sentence = f"{word.sentence[0].upper()}{word.sentence[1:]}."
            one = words.add_parser(word.word, help=word.sentence, description=sentence, allow_abbrev=False)
            for option in word.options:
                _OPTIONS[option](one)
            one.set_defaults(command=word.command)
    return parser
