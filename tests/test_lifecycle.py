"""A run from its launch to its end, killed at every step that the disk sees: the story told afterwards is whole."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from nbresume import _fs
from nbresume._lineage import CLOSED
from nbresume._session import say, view
from nbresume._store import Store
from nbresume.errors import StoppedError
from nbresume.testing import Outcome, attempt

OPERATIONS = (
    "append",
    "copy_prefix",
    "make_folder",
    "move",
    "remove",
    "replace_bytes",
    "sync_file",
    "sync_folder",
    "truncate",
    "write",
)
SETUP = "import random, numpy as np\nrng = np.random.default_rng(3)\nw = np.zeros(50)\n"
BODY = (
    "log = []\n"
    "out = open('rows.csv', 'a')\n"
    "for i in range(2):\n"
    "    w += rng.normal(size=50) + random.random()\n"
    "    log.append((i, float(w[0])))\n"
    "    out.write(f'{i},{w[0]}\\n')\n"
    "out.close()\n"
    "best = max(log)\n"
    "print('best', best)\n"
    "best\n"
)
NAMES = ["log", "w", "rng", "i", "best"]
FILES = ["rows.csv"]


def cell(options: str = "") -> str:
    return f"%%resumable t --vars log,w --every 1 {options}\n{BODY}"


def whole(folder: Path, code: str = BODY, seed: int = 0) -> Outcome:
    """Run both cells to their end."""
    folder.mkdir(exist_ok=True)
    found = attempt(SETUP, code, folder, names=NAMES, files=FILES, seed=seed)
    assert found.status == "ended", found.error + found.printed
    return found


class Killer:
    """Kills the process just before one of its disk operations, counted from its start."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.at = self.count = 0
        for name in OPERATIONS:
            patch.setattr(_fs, name, self._counted(getattr(_fs, name)))

    def _counted(self, real):
        def counted(*args, **kwargs):
            self.count += 1
            if self.at == self.count:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return counted

    def kill(self, folder: Path, at: int, code: str) -> bool:
        """Run both cells and die at an operation; False when the run has fewer of them."""
        self.at = at
        status = attempt(SETUP, code, folder).status
        self.at = 0
        assert status in ("killed", "ended")
        return status == "killed"


@pytest.fixture
def killer(monkeypatch):
    return Killer(monkeypatch)


def consistent(folder: Path) -> None:
    """Check what can be read after a death: it is told as interrupted or closed, never as running."""
    for run in Store(folder / ".nbresume"):
        lineage = run.lineage()
        assert lineage.state in (CLOSED | {"interrupted"})
        numbers = [one.number for one in lineage.attempts]
        assert numbers == list(range(1, len(numbers) + 1))
        assert all(one.how for one in lineage.attempts)


def test_a_launch_killed_at_any_disk_operation_is_the_same_run_afterwards(tmp_path, killer):
    """From the first folder to the last event: every instant at which a file, a name or a line has just come to be."""
    want = whole(tmp_path / "plain")
    for at in range(1, 400):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        killed = killer.kill(folder, at, cell())
        consistent(folder)
        # Before its record is written there is no run: the next one is the first, under the streams it finds.
        seed = 99 if list(Store(folder / ".nbresume")) else 0
        assert whole(folder, cell(), seed=seed).values == want.values, at
        (run,) = Store(folder / ".nbresume")
        lineage = run.lineage()
        assert (lineage.state, lineage.made_by[-1]) == ("completed", lineage.attempts[-1].number)
        if not killed:
            break
    assert at > 25


def test_a_resume_killed_at_any_disk_operation_is_the_same_run_afterwards(tmp_path, killer):
    """Taking the run over, the event, files moved aside and put back, the log cut, up to the first snapshot of its own."""
    want = whole(tmp_path / "plain")
    begun = tmp_path / "begun"
    begun.mkdir()
    assert attempt(SETUP, cell("--every 2"), begun, kill_at=2, when="before").status == "killed"
    for at in range(1, 400):
        folder = tmp_path / f"{at}"
        shutil.copytree(begun, folder)
        assert killer.kill(folder, at, cell("--every 2"))
        consistent(folder)
        (run,) = Store(folder / ".nbresume")
        arrived = run.lineage().attempts[-1].snapshots and len(run.lineage().attempts) > 1
        assert whole(folder, cell("--every 2"), seed=99).values == want.values, at
        consistent(folder)
        if arrived:
            break
    assert at > 8


def test_a_supersede_killed_at_any_disk_operation_leaves_one_run_that_goes_on(tmp_path, killer):
    """Between the new record and the old run's line the record decides: never two that both wait to be continued."""
    begun = tmp_path / "begun"
    begun.mkdir()
    assert attempt(SETUP, cell(), begun, kill_at=2).status == "killed"
    word = cell("--on-restart supersede")
    outcomes = set()
    for at in range(1, 400):
        folder = tmp_path / f"{at}"
        shutil.copytree(begun, folder)
        killer.kill(folder, at, word)
        consistent(folder)
        runs = list(Store(folder / ".nbresume"))
        states = tuple(run.lineage().state for run in runs)
        outcomes.add(states)
        if len(runs) == 2:
            old, new = runs
            assert old.lineage().superseded_by == new.id
            assert old.lineage().superseded_because == ("--on-restart supersede",)
            assert view(new).family == ((old.id, old.lineage()),)
            with pytest.raises(StoppedError):
                say(Store(folder / ".nbresume"), old.id, "continue")
        if len(runs) == 2 and runs[1].lineage().last_snapshot:
            break
        whole(folder, cell())
        assert [run.id for run in Store(folder / ".nbresume")][: len(runs)] == [run.id for run in runs]
        assert Store(folder / ".nbresume").find("t").lineage().state == "completed"
    assert outcomes == {("interrupted",), ("superseded", "interrupted")}


def test_a_completed_run_whose_last_snapshot_is_damaged_goes_on_from_the_one_before(tmp_path):
    """Never restored from the middle as if that were the result: what is missing is computed again."""
    want = whole(tmp_path, cell())
    (run,) = Store(tmp_path / ".nbresume")
    last = run.snapshots()[-1].path
    last.write_bytes(last.read_bytes()[:-200])
    again = whole(tmp_path, cell(), seed=99)
    assert again.values == want.values
    assert "can't be believed" in again.printed
    lineage = run.lineage()
    assert (lineage.state, lineage.made_by) == ("completed", (1, 2))
