"""SIGKILL at random instants of commits; ``bash tests/run kills`` does it a thousand times."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from pathlib import Path

import pytest
from kill_commits import kill

from nbresume._store import Store
from nbresume._store._owner import owner
from nbresume.testing import attempt

KILLS, KILLED = 100, 8


def test_a_hundred_kills_lose_no_snapshot_that_was_told_of(quick_disk):
    """Small and large, behind the loop and before it, written anew and over an older one."""
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        report = kill(KILLS, seed=1, root=Path(folder))
    assert report.faults == []
    assert report.kills >= KILLS
    assert report.left["deltas"] > 0
    assert report.left["temporary files"] > KILLS // 20, "the kills come too late: none hit a commit"


SETUP = "import numpy as np, time\nstate = np.zeros(1 << 17)\nlog = []"
CELL = """%%resumable cell --vars state,log --every 1 --keep 2 --on-restart continue {options}
for i in range(150):
    state += i
    state[i::100] *= 0.5
    log.append(float(state.sum()))
"""


def snapshots_told(folder: Path) -> int:
    """Count the snapshots that the journals of a store tell of."""
    journals = folder.glob(".nbresume/*/journal.jsonl")
    return sum(path.read_text(encoding="utf-8").count('"event": "snapshot"') for path in journals)


def wait_for_snapshots(folder: Path, count: int) -> None:
    """Wait until a process has committed so many."""
    end = time.monotonic() + 60
    while snapshots_told(folder) < count:
        assert time.monotonic() < end, "nothing is committed"
        time.sleep(0.002)


@pytest.mark.parametrize("options", ["", "--sync"])
def test_a_cell_killed_at_random_instants_comes_out_the_same(quick_disk, options):
    """The real cell, again and again, until it comes to its end."""
    names = ("state", "log", "i")
    chance = random.Random(3)
    with tempfile.TemporaryDirectory(prefix="nbresume-") as plain, tempfile.TemporaryDirectory() as folder:
        want = attempt(SETUP, CELL.partition("\n")[2], Path(plain), names=names)
        for _ in range(KILLED):
            pid = os.fork()
            if pid == 0:
                try:
                    attempt(SETUP, CELL.format(options=options), Path(folder), names=names)
                finally:
                    os._exit(0)
            wait_for_snapshots(Path(folder), snapshots_told(Path(folder)) + chance.randrange(1, 6))
            time.sleep(chance.uniform(0.0, 0.02))
            (folder_of_run,) = Path(folder).glob(".nbresume/cell-*")
            os.kill(owner(folder_of_run)["pid"], signal.SIGKILL)
            os.waitpid(pid, 0)
            for run in Store(Path(folder) / ".nbresume"):
                run.latest()
        got = attempt(SETUP, CELL.format(options=options), Path(folder), names=names)
        (run,) = Store(Path(folder) / ".nbresume")
        assert got.values == want.values
        assert run.lineage().state == "completed"
        assert not [path for path in run.path.rglob(".*.tmp")]
        assert len(run.lineage().attempts) == KILLED + 1
