"""The command line: the same words as in the notebook, for a shell.

One sentence on standard error and exit status 2 when a command can't do what it was asked, 3 when there is no such run;
1 when it could be asked and the answer is no: ``verify`` found a snapshot that can't be believed, ``demo`` a bit that
differs, ``stop --wait`` that it was not done in time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from . import __version__
from ._card import View, runs_table, text
from ._store import RunFolder, Store
from ._types import Json
from .errors import NbresumeError, NotFoundError, OptionError, StoreError

Command = Callable[[argparse.Namespace, TextIO], int]


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
    out = out or sys.stdout
    asked = _parser().parse_args(argv)
    try:
        command: Command = asked.command
        return command(asked, out)
    except NbresumeError as error:
        sys.stderr.write(f"nbresume: {error}\n")
        return 3 if isinstance(error, NotFoundError) else 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nbresume",
        description="Look at the runs of %%resumable cells and decide what becomes of them.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"nbresume {__version__}")
    words = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for word, command, sentence, options in _COMMANDS:
        one = words.add_parser(word, help=sentence, description=f"{sentence[0].upper()}{sentence[1:]}.")
        for option in options:
            _OPTIONS[option](one)
        one.set_defaults(command=command)
    return parser


def _store(asked: argparse.Namespace) -> Store:
    return Store(Path(asked.store or os.environ.get("NBRESUME_STORE") or ".nbresume"))


def _find(asked: argparse.Namespace) -> RunFolder:
    store = _store(asked)
    try:
        return store.find(asked.name)
    except NotFoundError:
        # Unreadable is never "no such run".
        trouble = store.unreadable(asked.name)
        if trouble:
            raise StoreError(trouble, str(store.root)) from None
        raise


# ------------------------------------------------------------------ the commands


def _runs(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import glances, views

    store = _store(asked)
    if asked.json:
        return _answer(out, [described(view) for view in views(store)])
    found = glances(store)
    out.write((runs_table(found) if found else f"no runs in {store.root}") + "\n")
    return 0


def _show(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import view

    found = view(_find(asked))
    if asked.json:
        return _answer(out, described(found))
    out.write(text(found) + "\n")
    return 0


def _continue(asked: argparse.Namespace, out: TextIO) -> int:
    if asked.declare_compatible and not sys.stdin.isatty():
        raise OptionError("--declare-compatible is a person's word, and no script can say it: use a terminal")
    return _say(asked, out, "declare" if asked.declare_compatible else "continue")


def _supersede(asked: argparse.Namespace, out: TextIO) -> int:
    return _say(asked, out, "supersede")


def _say(asked: argparse.Namespace, out: TextIO, word: str) -> int:
    from ._session import say

    out.write(say(_store(asked), asked.name, word) + "\n")
    return 0


def _stop(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import stop_run

    return _requested(asked, out, *stop_run(_find(asked), wait=asked.wait))


def _snapshot(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import snapshot_run

    return _requested(asked, out, *snapshot_run(_find(asked), wait=asked.wait))


def _requested(asked: argparse.Namespace, out: TextIO, told: str, found: Json) -> int:
    _either(asked, out, told, found)
    return 0 if found["outcome"] in ("asked", "done") or found.get("how") == "completed" else 1


def _abandon(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import abandon

    out.write(abandon(_store(asked), asked.name) + "\n")
    return 0


def _verify(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import verify_run

    told, found = verify_run(_find(asked), repairs=asked.repair)
    _either(asked, out, told, found)
    return 0 if found["complete"] and found["trusted"] else 1


def _prune(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import prune_run

    told, found = prune_run(_find(asked), asked.keep, asked.keep_every, dry_run=asked.dry_run)
    return _either(asked, out, told, found)


def _pin(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import pin_snapshot

    out.write(pin_snapshot(_find(asked), asked.snapshot) + "\n")
    return 0


def _unpin(asked: argparse.Namespace, out: TextIO) -> int:
    from ._session import unpin_snapshot

    out.write(unpin_snapshot(_find(asked), asked.snapshot) + "\n")
    return 0


def _demo(asked: argparse.Namespace, out: TextIO) -> int:
    from ._demo import run_demo

    return run_demo(out, asked.folder)


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], object]] = {
    "name": lambda parser: parser.add_argument(
        "name", metavar="NAME", help="name of the run on the magic line, or the id of one run"
    ),
    "store": lambda parser: parser.add_argument(
        "--store", metavar="PATH", default="", help="where runs live (default: $NBRESUME_STORE, else .nbresume here)"
    ),
    "json": lambda parser: parser.add_argument("--json", action="store_true", help="answer with JSON, for programs"),
    "declare": lambda parser: parser.add_argument(
        "--declare-compatible",
        action="store_true",
        help="declare that its changed code, or a longer range, is the same run; its lineage keeps the difference",
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
    "wait": lambda parser: parser.add_argument(
        "--wait",
        metavar="SECONDS",
        nargs="?",
        type=float,
        const=math.inf,
        help="wait until it is done, for so long at most, and tell what came of it",
    ),
    "folder": lambda parser: parser.add_argument(
        "--folder", metavar="PATH", type=Path, help="where the demo's runs live (default: a new temporary folder)"
    ),
}

_COMMANDS: tuple[tuple[str, Command, str, tuple[str, ...]], ...] = (
    ("runs", _runs, "list the runs of the store", ("store", "json")),
    ("show", _show, "tell the lineage of a run", ("name", "store", "json")),
    (
        "continue",
        _continue,
        "record that the next execution of the cell continues the run",
        ("name", "declare", "store"),
    ),
    (
        "supersede",
        _supersede,
        "record that the next execution of the cell starts a new run; the old one is kept",
        ("name", "store"),
    ),
    (
        "stop",
        _stop,
        "ask a running run to stop at its next boundary, with a snapshot",
        ("name", "wait", "store", "json"),
    ),
    (
        "snapshot",
        _snapshot,
        "ask a running run for a snapshot at its next boundary",
        ("name", "wait", "store", "json"),
    ),
    (
        "verify",
        _verify,
        "read every snapshot of a run, and tell which can be believed and who signed them",
        ("name", "repair", "store", "json"),
    ),
    (
        "prune",
        _prune,
        "remove old snapshots of a run that nobody is writing",
        ("name", "keep", "keep_every", "dry", "store", "json"),
    ),
    ("pin", _pin, "keep a snapshot for good; the newest good one where none is named", ("name", "snapshot", "store")),
    ("unpin", _unpin, "let a pinned snapshot go, or all of a run", ("name", "snapshot", "store")),
    ("abandon", _abandon, "close an interrupted run; its files are kept", ("name", "store")),
    ("demo", _demo, "kill a real kernel in a real cell, go on in another, compare bit by bit", ("folder",)),
)


# ------------------------------------------------------------------ what --json answers


def described(view: View) -> Json:
    """Describe a run in JSON values, as ``runs --json`` and ``show --json`` do.

    Parameters
    ----------
    view : View
        The run.

    Returns
    -------
    dict
        ``name``, ``id``, ``state``, ``where`` (in words), ``loops`` (each with ``label``, ``done``, ``total``),
        ``attempts`` (with ``number``, ``started``, ``resumed_from``, ``snapshot``, ``ended``, ``how``, ``why``,
        ``where``, ``snapshots``, ``changes``),
        ``snapshot`` (facts of the latest one, with ``at``; null when there is none), ``saved`` (bytes by name),
        ``disk`` (bytes of the whole run), ``identity`` (a short text by part), ``differences``, ``notes``,
        ``superseded_by``, ``superseded_because`` and ``made_by`` (the attempts that a completed run's result is made
        of).
    """
    return {
        "name": view.name,
        "id": view.id,
        "state": view.state,
        "where": view.where,
        "loops": [{"label": label, "done": done, "total": total} for label, done, total in view.loops],
        "attempts": [asdict(attempt) for attempt in view.lineage.attempts],
        "snapshot": {"at": view.snapshot_at, **view.snapshot} if view.snapshot_at else None,
        "saved": dict(view.saved),
        "disk": view.disk,
        "identity": dict(view.identity),
        "differences": list(view.differences),
        "notes": list(view.notes),
        "superseded_by": view.lineage.superseded_by,
        "superseded_because": list(view.lineage.superseded_because),
        "made_by": list(view.lineage.made_by),
    }


def _either(asked: argparse.Namespace, out: TextIO, told: str, found: Json) -> int:
    if asked.json:
        return _answer(out, found)
    out.write(told + "\n")
    return 0


def _answer(out: TextIO, value: object) -> int:
    out.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
    return 0
