"""Real processes that commit snapshots, and are killed at random instants of it.

``bash tests/run kills [--kills 1000] [--seed 0]``. After each kill the newest snapshot has to load, to hold what a
function of its number says, and to be no older than the last one that the process has told of; what the process left
is gone once the run is taken over.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from _support import load

from nbresume._capture import Definitions, capture
from nbresume._policy import Keep
from nbresume._session._commits import Commits
from nbresume._store import RunFolder, Store

SPARSE = 3 << 20
FORMS = tuple(
    (size, copy, keep) for size in (1 << 8, 1 << 17, 1 << 20, SPARSE) for copy in (True, False) for keep in (1, 3)
)
"""Numbers in the state, behind the loop or before it, snapshots that stay: small ones are written anew each time, large
ones over an older one where more than one stays; of the largest, a fortieth changes, and is added as a delta."""


@dataclass
class Report:
    """What was found.

    Attributes
    ----------
    kills : int
        Processes that died by the signal.
    faults : list of str
        What came out otherwise than promised.
    left : Counter
        How often a temporary file was left behind, and how often a snapshot newer than the last one told of.
    """

    kills: int = 0
    faults: list[str] = field(default_factory=list)
    left: Counter = field(default_factory=Counter)


def commit_for_ever(run: RunFolder, attempt: int, size: int, copy: bool, keep: int, told: int) -> None:
    """Commit as a cell does it, a number a step, from where the newest snapshot stands; tell of each that is done."""
    claim = run.take(attempt)
    commits = Commits(run, attempt, claim, Keep(keep), hold=lambda: None, let_go=lambda: None)
    newest, _ = run.latest()
    step = newest.meta["step"] if newest else -1
    names = {"state": np.zeros(size), "step": 0}
    while True:
        step += 1
        fill(names["state"], step)
        names["step"] = step
        found = capture({"names": names}, definitions=Definitions({}), inputs={}, places=names)
        path = run.snapshot_path(attempt, step)
        staged = commits.writer.stage(path, {"step": step}, found.stream, found.tables, found.blocks, copy=copy)
        if copy:
            commits.behind(staged, {"where": str(step)}, time.perf_counter())
            names["state"] += 0.5  # the loop goes on: what was copied is what counts
            commits.wait()
            names["state"] -= 0.5
        else:
            commits.now(staged, {"where": str(step)}, time.perf_counter())
        commits.settle()
        os.write(told, b"%d\n" % step)


def expected(size: int, step: int) -> np.ndarray:
    """Return the state of a step."""
    state = np.zeros(size)
    fill(state, step)
    return state


def fill(state: np.ndarray, step: int) -> None:
    """Make a state that of a step."""
    if len(state) == SPARSE:
        state.reshape(-1, 512)[::40] = step
    else:
        state[: len(state) // 2], state[len(state) // 2 :: 1024] = step, step


def acknowledged(pipe: int, delay: float) -> bytes:
    """Read what a process tells until its first snapshot is done, and then for a moment more."""
    text, end = b"", time.monotonic() + 60
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            break
        data = os.read(pipe, 1 << 16)
        if not data:
            break
        if not text:
            end = time.monotonic() + delay
        text += data
    return text


def one_kill(run: RunFolder, attempt: int, form: tuple[int, bool, int], delay: float, report: Report) -> None:
    """Start a process, kill it after a moment, and look at what it left."""
    size, copy, keep = form
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(readable)
            commit_for_ever(run, attempt, size, copy, keep, writable)
        finally:
            os._exit(1)
    os.close(writable)
    text = acknowledged(readable, delay)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        while data := os.read(readable, 1 << 16):
            text += data
    os.close(readable)
    label = f"{run.id}, attempt {attempt}, {form}, {delay * 1000:.1f} ms"
    if not os.WIFSIGNALED(status):
        report.faults.append(f"{label}: the process ended by itself")
        return
    report.kills += 1
    told = int(text.split()[-1]) if text.endswith(b"\n") else -1
    report.faults += [f"{label}: {fault}" for fault in judge(run, told, form, report)]


def judge(run: RunFolder, told: int, form: tuple[int, bool, int], report: Report) -> list[str]:
    """Tell what is wrong with a run after a death."""
    size, _, keep = form
    folder, faults = run.path / "snapshots", []
    snapshot, rejected = run.latest()
    faults += [f"{one.path.name} stands under its name and is not whole: {why}" for one, why in rejected]
    if snapshot is None or snapshot.seq < told:
        return [*faults, f"{told} was told of, and the latest is {snapshot.ident if snapshot else 'none'}"]
    report.left["newer than told"] += snapshot.seq > told
    found = load(snapshot)
    if found["step"] != snapshot.seq or not np.array_equal(found["state"], expected(size, snapshot.seq)):
        faults.append(f"{snapshot.ident} does not hold its step")
    report.left["temporary files"] += len(list(folder.glob(".*")))
    run.take().leave()
    if left := [path.name for path in folder.glob(".*")]:
        faults.append(f"left behind: {left}")
    report.left["deltas"] += snapshot.base != ""
    if len(run.snapshots()) > keep + (16 if size == SPARSE else 3):
        faults.append(f"{len(run.snapshots())} snapshots, and {keep} are to stay")
    return faults


def kill(kills: int, seed: int, root: Path, *, says: bool = False) -> Report:
    """Kill so many processes; each run is gone on with a few times."""
    chance, report, store = random.Random(seed), Report(), Store(root)
    number = 0
    while report.kills < kills and len(report.faults) < 10:
        form = FORMS[number % len(FORMS)]
        number += 1
        run = store.create(f"run{number}", {})
        for attempt in range(1, 5):
            if attempt > 1:
                run.note("resumed", attempt, snapshot=run.latest()[0].ident, where="")
            one_kill(
                run,
                attempt,
                form,
                chance.uniform(0.0, 0.03 if form[0] < 1 << 18 else 0.12 if form[0] < SPARSE else 0.6),
                report,
            )
        shutil.rmtree(run.path)
        if says and number % 10 == 0:
            print(f"{report.kills} kills, {len(report.faults)} faults", flush=True)
    return report


def main() -> int:
    """Kill, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default=None, help="where the store lies; default: the folder of temporary files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nbresume-", dir=options.folder) as folder:
        report = kill(options.kills, options.seed, Path(folder), says=True)
    print(f"{report.kills} kills: " + ", ".join(f"{count} x {what}" for what, count in sorted(report.left.items())))
    print("\n".join(report.faults) or "the latest snapshot loaded each time, and none that was told of was lost")
    return bool(report.faults)


if __name__ == "__main__":
    sys.exit(main())
