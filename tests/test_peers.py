"""Ways in which other tools that resume loops were seen to fail under SIGKILL; each is a test here.

They crash, start again in silence, or go on as another experiment and report success.
"""

from __future__ import annotations

import os
import signal

import pytest

from nbresume import _fs
from nbresume._store import Store
from nbresume.errors import CorruptError
from nbresume.testing import attempt, rehearse

SETUP = """
import random
import numpy as np
rng = np.random.default_rng(7)
own = random.Random(3)
legacy = np.random.RandomState(5)
A = np.zeros((50, 8), dtype="f4")
log = []
"""
STEP = "    A[rng.integers(50, size=5)] += rng.random(8, dtype='f4')\n    log.append((i, own.random(), float(legacy.rand()), random.random(), float(np.random.rand())))\n"
LOOP = "for i in range(5):\n" + STEP
NAMES = ["A", "log", "rng", "own", "legacy"]


def check(cell: str, setup: str = SETUP, names: list[str] = NAMES, **more: object) -> None:
    found = rehearse(cell, setup, names=names, **{"kill_at": [2, 4], **more})
    assert found.ok, str(found)
    assert found.kills > 2


def test_a_generator_in_the_state_goes_on_and_is_not_the_seed_again():
    """Seen: warned about and left out, or saved stale; the resumed run draws the first numbers once more."""
    check(LOOP)


def test_generators_that_nobody_declared_go_on_as_well():
    """Seen: only the declared state is continued, and the random streams of the libraries are where the process found them."""
    check(LOOP, names=["log"])


def test_a_generator_shared_by_two_objects_stays_one():
    """Seen: each holder is restored with a stream of its own, and both draw the same numbers."""
    check(
        "pair = {'a': rng, 'b': [rng]}\nfor i in range(4):\n    log.append((pair['a'].random(), pair['b'][0].random()))\n",
        names=["log"],
    )


def test_a_global_stream_that_the_loop_never_names_goes_on():
    """Seen: replayed from a cache, the loop's results are right and the next draw after it is another."""
    check(
        "def noise(): return random.gauss(0, 1) + np.random.normal()\nfor i in range(4):\n    log.append(noise())\nafter = (random.random(), np.random.rand())\n",
        names=["log", "after"],
    )


def test_position_and_state_are_never_of_two_different_iterations(tmp_path, monkeypatch):
    """Seen: the position in one file and the state in another; a kill between the two applies a step twice or never."""
    plain = attempt(SETUP, LOOP, tmp_path / _made(tmp_path, "plain"), names=NAMES)
    code = "%%resumable t --vars A,log --every 1\n" + LOOP
    at = [0, 0]
    for name in ("append", "sync_data", "sync_folder", "remove"):
        monkeypatch.setattr(_fs, name, _dying(getattr(_fs, name), at))
    for place in range(12, 30, 3):
        folder = tmp_path / _made(tmp_path, str(place))
        at[:] = [0, place]
        assert attempt(SETUP, code, folder).status == "killed"
        at[:] = [0, -1]
        assert attempt(SETUP, code, folder, names=NAMES, seed=1).values == plain.values, place


def _made(folder, name: str) -> str:
    (folder / name).mkdir()
    return name


def _dying(real, at):
    def call(*args, **kwargs):
        at[0] += 1
        if at[0] == at[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    return call


def test_a_resume_of_a_resume_of_a_resume_counts_from_the_start_of_the_run(tmp_path):
    """Seen: the second resume is misaligned, because the first counted from where it had begun."""
    code = "%%resumable t --vars A,log --every 1\n" + LOOP
    plain = attempt(SETUP, LOOP, tmp_path / _made(tmp_path, "plain"), names=NAMES)
    folder = tmp_path / _made(tmp_path, "killed")
    for seed in range(3):
        assert attempt(SETUP, code, folder, kill_at=2, seed=seed).status == "killed"
    last = attempt(SETUP, code, folder, names=NAMES, seed=9)
    assert last.values == plain.values
    (run,) = Store(folder / ".nbresume")
    assert run.lineage().made_by == (1, 2, 3, 4)


def test_switched_on_and_never_killed_it_draws_nothing(tmp_path):
    """Seen: names for branches and ids drawn from the user's own ``random``: other results without any death."""
    plain = attempt(SETUP, LOOP, tmp_path / _made(tmp_path, "plain"), names=NAMES)
    code = "%%resumable t --vars A,log --every 1\n" + LOOP
    assert attempt(SETUP, code, tmp_path / _made(tmp_path, "on"), names=NAMES).values == plain.values


@pytest.mark.parametrize(
    "head",
    [
        "for n, i in enumerate(range(5)):",
        "for n, i in enumerate(range(5), 10):",
        "for n, (i, j) in enumerate(zip(range(5), 'abcde')):",
        "for n, i in reversed(list(enumerate(range(5)))):",
        "for n, i in enumerate(x for x in range(5)):",
    ],
)
def test_enumerate_goes_on_counting(head):
    """Seen: the items go on and their numbers start at 0 again."""
    check(f"{head}\n    log.append((n, i, random.random()))\n", names=["log", "n", "i"])


def test_each_row_of_metrics_stands_once_after_rows_beyond_the_snapshot():
    """Seen: rows written after the last snapshot stay, and come a second time; or the new ones are dropped."""
    cell = (
        "with open('metrics.csv', 'a') as out:\n    if out.tell() == 0: out.write('step,loss\\n')\n"
        "for i in range(6):\n    with open('metrics.csv', 'a') as out: out.write(f'{i},{random.random()}\\n')\n    log.append(i)\n"
    )
    check(cell, names=["log"], files=["metrics.csv"], options="--every 3", kill_at=[2, 3])


def test_lost_progress_is_an_error_and_no_silent_fresh_start(tmp_path):
    """Seen: an error while reading is taken for "nothing there yet", and the progress is overwritten."""
    code = "%%resumable t --vars log --every 1\n" + LOOP
    assert attempt(SETUP, code, tmp_path, kill_at=4).status == "killed"
    (run,) = Store(tmp_path / ".nbresume")
    for snapshot in run.snapshots():
        snapshot.path.write_bytes(b"")
    before = {path: path.read_bytes() for path in run.path.rglob("*.h5")}
    found = attempt(SETUP, code, tmp_path)
    assert (found.status, found.boundaries) == ("error", 0)
    assert found.error.startswith(CorruptError.__name__)
    assert {path: path.read_bytes() for path in run.path.rglob("*.h5")} == before


def test_an_unreadable_newest_file_falls_back_to_the_one_before(tmp_path):
    """Seen: a file cut short by the kill crashes the loader, and the next start does so again."""
    code = "%%resumable t --vars A,log --every 1\n" + LOOP
    plain = attempt(SETUP, LOOP, tmp_path / _made(tmp_path, "plain"), names=NAMES)
    folder = tmp_path / _made(tmp_path, "killed")
    assert attempt(SETUP, code, folder, kill_at=4).status == "killed"
    (run,) = Store(folder / ".nbresume")
    newest = run.snapshots()[-1].path
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    last = attempt(SETUP, code, folder, names=NAMES, seed=9)
    assert "can't be believed" in last.printed
    assert last.values == plain.values


def test_a_finished_run_is_not_trained_on_top_of(tmp_path):
    """Seen: running a finished script again trains its result further."""
    code = "%%resumable t --vars A,log --every 1\n" + LOOP
    first = attempt(SETUP, code, tmp_path, names=NAMES)
    again = attempt(SETUP, code, tmp_path, names=NAMES, seed=4)
    assert again.values == first.values
    assert again.boundaries == 0


def test_items_that_are_equal_are_not_taken_for_one():
    """Seen: the items done are found by comparing their pickles, and of two equal ones the second is dropped."""
    check("for i in [1, 1, 2, 1, 2]:\n    log.append((i, random.random()))\n", names=["log"])
