"""Rehearse a resume before you need one: run a cell, kill it at each of its boundaries, resume it, and compare.

Each attempt is a process of its own, forked from this one and really killed: no ``finally``, no ``atexit``, no last
word. ``rehearse`` is what nbresume's own tests use for every shape of cell.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ._capture import layout, rng_state
from ._identity import fingerprint
from ._magic._scratch import scratch_shell
from ._session._attempt import Attempt

__all__ = ["Outcome", "Rehearsal", "attempt", "rehearse"]

When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended.

    Attributes
    ----------
    status : str
        ``ended``, ``killed`` or ``error``.
    values : dict of str to (str, str)
        Fingerprint and short text of each name asked for, of how they hang together, of the random streams and files.
    error : str
        Type and text of what ended it.
    boundaries : int
        Snapshots that it took.
    printed : str
        Everything it wrote to standard output.
    """

    status: str
    values: dict[str, tuple[str, str]] = field(default_factory=dict)
    error: str = ""
    boundaries: int = 0
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a rehearsal found.

    Attributes
    ----------
    boundaries : int
        How many there were.
    kills : int
        How many attempts were killed.
    faults : tuple of str
        What came out differently; empty when every resume was the same run.
    refused : str
        Why the cell was refused at its first run, if it was.
    """

    boundaries: int = 0
    kills: int = 0
    faults: tuple[str, ...] = ()
    refused: str = ""

    @property
    def ok(self) -> bool:
        """Whether the cell resumes to the bit."""
        return not self.faults and not self.refused

    def __str__(self) -> str:
        if self.refused:
            return f"refused: {self.refused}"
        head = f"{self.kills} kills at {self.boundaries} boundaries: "
        return head + ("every resume was the same run" if self.ok else "\n".join(["different", *self.faults]))


def rehearse(  # the words of the magic line
    cell: str,
    setup: str = "",
    *,
    names: Sequence[str],
    options: str = "--every 1",
    files: Iterable[str] = (),
    kill_at: Iterable[int] | None = None,
) -> Rehearsal:
    """Run a cell plainly, under nbresume, and killed at its boundaries; compare all that is left.

    Parameters
    ----------
    cell : str
        Body of the cell, without the magic line.
    setup : str
        What the cells before it do.
    names : sequence of str
        Names to declare and to compare.
    options : str
        Further options of the magic line.
    files : iterable of str
        Files, relative to the folder the cell runs in, to compare.
    kill_at : iterable of int, optional
        Boundaries to be killed at, counted from 1; default: every one, before and after its snapshot.
    """
    files = tuple(files)
    magic = f"%%resumable rehearsal --vars {','.join(names)} --on-restart continue {options}\n"
    plain = _fresh(setup, cell, names, files)
    if plain.status != "ended":
        return Rehearsal(faults=(f"the plain cell fails: {plain.error}",))
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        whole = attempt(setup, magic + cell, Path(folder), names=names, files=files)
        if whole.status == "error" and whole.error.startswith(("RefusedError", "UnsaveableError")):
            return Rehearsal(refused=whole.error)
        faults = _compare("not interrupted", plain, whole)
        again = attempt(setup, magic + cell, Path(folder), names=names, files=files, seed=1)
        faults += _compare("completed, run again", plain, again)
    kills = 0
    points = range(1, whole.boundaries + 1) if kill_at is None else kill_at
    for point in points:
        for when in ("before", "after"):
            killed, found = _killed(setup, magic + cell, names, files, plain, point, when)
            kills += killed
            faults += found
    return Rehearsal(whole.boundaries, kills, tuple(faults))


def _fresh(setup: str, cell: str, names: Sequence[str], files: tuple[str, ...]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        return attempt(setup, cell, Path(folder), names=names, files=files)


def _killed(  # one kill, told whole
    setup: str, cell: str, names: Sequence[str], files: tuple[str, ...], plain: Outcome, point: int, when: Any
) -> tuple[int, list[str]]:
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        first = attempt(setup, cell, Path(folder), names=names, files=files, kill_at=point, when=when)
        if first.status != "killed":
            return 0, [f"killed {when} boundary {point}: it {first.status} instead ({first.error})"]
        second = attempt(setup, cell, Path(folder), names=names, files=files, seed=1)
        return 1, _compare(f"killed {when} boundary {point}", plain, second)


def _compare(label: str, want: Outcome, got: Outcome) -> list[str]:
    if got.status != "ended":
        return [f"{label}: {got.status}: {got.error}"]
    faults = []
    for name, (digest, text) in want.values.items():
        found = got.values.get(name, ("", "missing"))
        if found[0] != digest:
            faults.append(f"{label}: {name} is {found[1]}, and was {text}")
    return faults


def attempt(  # noqa: PLR0913  # what one process is told
    setup: str,
    cell: str,
    folder: Path,
    *,
    names: Sequence[str] = (),
    files: Sequence[str] = (),
    kill_at: int | None = None,
    when: When = "after",
    seed: int = 0,
) -> Outcome:
    """Run cells in a process of their own and tell what is left.

    Parameters
    ----------
    setup, cell : str
        Two cells.
    folder : Path
        Where the process stands; runs live in its ``.nbresume``.
    names, files : sequence of str
        What to fingerprint at the end.
    kill_at : int, optional
        Boundary at which the process kills itself with SIGKILL.
    when : {"before", "after"}
        Whether that is before or after the boundary's snapshot.
    seed : int
        Of the random streams that the process starts with; a resume has to come out equal from any.
    """
    with tempfile.TemporaryFile() as told_here:  # a pipe would stay open for as long as a process the cell started
        pid = os.fork()
        if pid == 0:
            _child(told_here.fileno(), setup, cell, folder, names, files, kill_at, when, seed)
        try:
            os.waitpid(pid, 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what the cell left running
        told_here.seek(0)
        told = told_here.read()
    if not told:
        return Outcome("killed")
    outcome: Outcome = pickle.loads(told)
    return outcome


def _child(*told: Any) -> None:
    """Do one attempt; never comes back."""
    writable, setup, cell, folder, names, files, kill_at, when, seed = told
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        _seed(seed)
        outcome = _attempt_here(setup, cell, names, files, kill_at, when)
        data = pickle.dumps(outcome)
        while data:
            data = data[os.write(writable, data) :]
    finally:
        os._exit(0)


def _attempt_here(  # what one process is told
    setup: str, cell: str, names: Sequence[str], files: Sequence[str], kill_at: int | None, when: str
) -> Outcome:
    os.environ.pop("NBRESUME_STORE", None)
    os.environ["NBRESUME_INDEX"] = "0"
    sys.stdout = printed = io.StringIO()
    sys.stderr = io.StringIO()
    shell = scratch_shell()
    boundaries = _count_boundaries(kill_at, when)
    for code in (setup, cell):
        result = shell.run_cell(code) if code else None
        error = None if result is None else result.error_before_exec or result.error_in_exec
        if error is not None:
            return Outcome(
                "error", error=f"{type(error).__name__}: {error}", boundaries=boundaries[0], printed=printed.getvalue()
            )
    values = {name: _told(shell.user_ns.get(name, "(not bound)")) for name in names}
    hang = layout({name: shell.user_ns[name] for name in names if name in shell.user_ns})
    values["what is shared, and in which order"] = _told(hang)[0], "; ".join(hang)
    values["random streams"] = _told(rng_state())
    values |= {name: _told(Path(name).read_bytes() if Path(name).exists() else "(no file)") for name in files}
    return Outcome("ended", values, boundaries=boundaries[0], printed=printed.getvalue())


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # the global stream is what has to be restored
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _told(value: Any) -> tuple[str, str]:
    found = fingerprint(value)
    return found.digest, found.text


def _count_boundaries(kill_at: int | None, when: str) -> list[int]:
    """Count snapshots, and die at one of them."""
    count = [0]
    real = Attempt.snapshot

    def counted(self: Attempt, *args: Any, **more: Any) -> bool:
        count[0] += 1
        if count[0] == kill_at and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        in_flight = real(self, *args, **more)
        if count[0] == kill_at:
            self.commits.wait()  # "after" is after it stands on the disk
            os.kill(os.getpid(), signal.SIGKILL)
        return in_flight

    Attempt.snapshot = counted  # type: ignore[method-assign, assignment]
    return count
