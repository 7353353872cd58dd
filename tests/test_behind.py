"""Commits behind the loop: it goes on meanwhile, changes what is being saved, forks, starts threads."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from _support import load

from nbresume import _fs
from nbresume._store import _arena
from nbresume.errors import StoreError


@pytest.fixture
def slow_disk(monkeypatch):
    """A disk that takes its time: whatever the loop does in between, it does while a commit is in flight."""
    real = _fs.sync_data

    def sync_data(fd):
        time.sleep(0.15)
        real(fd)

    monkeypatch.setattr(_fs, "sync_data", sync_data)


def facts(notebook):
    (run,) = notebook.runs
    return [event.facts for event in run.events() if event.kind == "snapshot"]


def test_what_is_saved_is_the_state_at_the_boundary_whatever_the_loop_does_to_it_meanwhile(notebook, slow_disk):
    notebook.run("import numpy as np\na, log = np.zeros(300_000), []")
    notebook.run(
        "%%resumable train --vars a,log --every 1 --keep 9\n"
        "for i in range(5):\n    a += 1\n    log.append(i)\n    view = a[::2]; view *= -1; view *= -1"
    )
    (run,) = notebook.runs
    for snapshot in run.snapshots():
        snapshot.verify()
        names = load_of(snapshot)
        done = names.get("i", -1) + 1 if names["log"] else 0
        assert names["log"] == list(range(done))
        assert set(np.unique(names["a"])) == {float(done)}
    assert len(run.snapshots()) == 7
    assert sum("stalled" in one for one in facts(notebook)) == 5  # all but the first and the last are behind


def load_of(snapshot):
    from nbresume._capture import Definitions, restore

    stream, tables = snapshot.stream_and_tables()
    import __main__

    inputs = {place: vars(__main__).get(place) for place in snapshot.meta["inputs"]}
    return restore(stream, tables, definitions=Definitions(vars(__main__)), inputs=inputs, read=snapshot.read)["names"]


POOLS = {
    "fork, with h5py in the workers": (
        (
            "import multiprocessing as mp, h5py, io\n"
            "def work(x):\n"
            "    with h5py.File(io.BytesIO(), 'w') as f:\n"
            "        f['x'] = np.full(1000, x)\n"
            "        return float(f['x'][()].sum())\n"
        ),
        "    with mp.get_context('fork').Pool(2) as pool:\n        log.append(pool.map(work, range(4)))\n",
    ),
    "threads, with h5py in them": (
        (
            "import h5py, io\nfrom concurrent.futures import ThreadPoolExecutor\n"
            "def work(x):\n"
            "    with h5py.File(io.BytesIO(), 'w') as f:\n"
            "        f['x'] = np.full(1000, x)\n"
            "        return float(f['x'][()].sum())\n"
        ),
        "    with ThreadPoolExecutor(3) as pool:\n        log.append(list(pool.map(work, range(4))))\n",
    ),
    "os.fork": (
        "import os\n",
        "    pid = os.fork()\n    if not pid: os._exit(i)\n    log.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n",
    ),
    "a subprocess, and matrices": (
        "import subprocess, sys\n",
        (
            "    log.append(subprocess.run([sys.executable, '-c', 'print(7)'], capture_output=True, text=True).stdout)\n"
            "    log.append(float((np.ones((200, 200)) @ np.ones((200, 200))).sum()))\n"
        ),
    ),
    "torch, with its threads and a fork": (
        "import torch, os\n",
        (
            "    t = torch.ones(300, 300) @ torch.ones(300, 300)\n    log.append(float(t.sum()))\n"
            "    pid = os.fork()\n    if not pid: os._exit(0)\n    os.waitpid(pid, 0)\n"
        ),
    ),
}


@pytest.mark.parametrize("kind", POOLS)
def test_forks_and_threads_of_the_body_work_while_a_commit_is_in_flight(notebook, slow_disk, kind):
    setup, body = POOLS[kind]
    loop = f"for i in range(4):\n    a += 1\n{body}"
    notebook.run(f"import numpy as np\na, log = np.zeros(300_000), []\n{setup}")
    notebook.run(loop)
    want = list(notebook["log"])
    notebook.run("log.clear()")
    notebook.run(f"%%resumable train --vars a,log --every 1\n{loop}")
    assert notebook["log"] == want
    assert len(facts(notebook)) == 6
    assert notebook.runs[0].lineage().state == "completed"
    assert not [thread.name for thread in threading.enumerate() if thread.name == "nbresume-commit"]


def test_where_memory_is_short_the_loop_waits_for_the_disk(notebook, monkeypatch):
    """A copy that gets the process killed would protect nothing."""
    monkeypatch.setattr(_arena, "memory_left", lambda: 1 << 20)
    notebook.run("import numpy as np\na = np.zeros(1_000_000)")
    notebook.run("%%resumable train --vars a --every 1\nfor i in range(3):\n    a += 1")
    assert not any("stalled" in one for one in facts(notebook))
    assert set(load(notebook.runs[0].snapshots()[-1])["a"]) == {3.0}


def test_where_no_thread_can_start_the_loop_waits_for_the_disk(notebook, monkeypatch):
    real = threading.Thread.start

    def start(thread):
        if thread.name == "nbresume-commit":
            raise RuntimeError("can't start new thread")
        real(thread)

    notebook.run("import numpy as np\na = np.zeros(1000)")
    monkeypatch.setattr(threading.Thread, "start", start)
    notebook.run("%%resumable train --vars a --every 1\nfor i in range(4):\n    a += 1")
    assert len(facts(notebook)) == 6
    assert set(load(notebook.runs[0].snapshots()[-1])["a"]) == {4.0}


def test_auto_goes_on_while_a_commit_is_in_flight_and_counts_wait(notebook, slow_disk):
    notebook.run("import numpy as np\na = np.zeros(200_000)")
    notebook.run(
        "%%resumable auto --vars a --budget 90%\nfor i in range(400):\n    a += 1\n    __import__('time').sleep(0.002)"
    )
    auto = facts(notebook)
    assert 3 < len(auto) < 40  # at most one in flight, each of at least 0.15 s, in about a second of loop
    assert all(one["stalled"] < one["seconds"] for one in auto if "stalled" in one)


def test_the_interpreter_ends_only_after_the_commit_in_flight(tmp_path):
    """Also where nobody waits for it: an exit in mid-loop leaves a whole snapshot, and no temporary file."""
    from nbresume._store import Store
    from nbresume.testing import attempt

    code = "%%resumable t --vars a --every 1\nfor i in range(5):\n    a += 1\n    if i == 3: raise SystemExit"
    attempt("import numpy as np\na = np.zeros(500_000)", code, tmp_path)
    (run,) = Store(tmp_path / ".nbresume")
    assert not [path for path in os.listdir(run.path / "snapshots") if path.endswith(".tmp")]
    assert run.latest()[0] is not None


@pytest.mark.parametrize("options", ["", "--sync"])
@pytest.mark.parametrize(("fails", "ends"), [({3}, False), ({3, 4}, True), ({3, 5}, False)])
def test_a_second_failure_in_a_row_ends_the_cell_where_that_was_asked_for(notebook, monkeypatch, options, fails, ends):
    """Once may be chance. The run goes on from its last snapshot when it is run again."""
    count, real = [0], _fs.sync_data

    def sync_data(fd):
        count[0] += 1
        if count[0] in fails:
            raise OSError(28, "No space left on device")
        real(fd)

    cell = f"%%resumable train --vars a,log --every 1 --unprotected stop {options}\nfor i in range(8):\n    a += 1\n    log.append(i)"
    notebook.run("import numpy as np\na, log = np.zeros(1000), []")
    monkeypatch.setattr(_fs, "sync_data", sync_data)
    if ends:
        error = notebook.fails(cell)
        assert isinstance(error, StoreError)
        assert "bytes free" in str(error)
        assert notebook["log"] != list(range(8))
        (run,) = notebook.runs
        assert run.lineage().state == "interrupted"
        assert run.latest()[0].seq == 1  # the second one
    notebook.run(cell)
    assert notebook["log"] == list(range(8))
    assert set(notebook["a"]) == {8.0}
    assert notebook.runs[0].lineage().state == "completed"


def test_a_commit_in_flight_that_fails_as_the_cell_ends_with_an_error_is_said(notebook, monkeypatch):
    count, real = [0], _fs.sync_data

    def sync_data(fd):
        count[0] += 1
        if count[0] == 3:
            raise OSError(28, "No space left on device")
        real(fd)

    notebook.run("import numpy as np\na = np.zeros(1000)")
    monkeypatch.setattr(_fs, "sync_data", sync_data)
    cell = (
        "%%resumable train --vars a --every 1\nfor i in range(4):\n    a += 1\n    if i == 2: raise ValueError('mine')"
    )
    assert isinstance(notebook.fails(cell), ValueError)
    (run,) = notebook.runs
    assert [event.facts["protected"] for event in run.events() if event.kind == "warned"] == [False]
    assert run.events()[-1].kind == "interrupted"


def test_memory_left_is_a_number_that_makes_sense():
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(file.readline().split()[1]) * 1024
    assert 0 < _arena.memory_left() <= total
