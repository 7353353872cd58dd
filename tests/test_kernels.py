"""Real kernels, spoken to as a front end does, and killed with SIGKILL at instants that nobody chose."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import nbformat
import pytest
from _support import LIMIT, Kernel

import nbresume

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext nbresume
import random, time, numpy as np
random.seed(1); np.random.seed(1)
rng = np.random.default_rng(1)
w, history, order = np.zeros(500), [], list(range(6))
def epoch(w, n):
    total = 0.0
    for i in range(n):
        w += rng.normal(size=500)
        total += float(w[0]) * random.random()
        time.sleep(0.01)
    return total
"""
CELLS = {
    "nest": """
for e in range(6):
    random.shuffle(order)
    total = 0.0
    for b in order:
        w += np.random.normal(size=500)
        total += float(w.sum()) + rng.random()
        time.sleep(0.01)
    history.append((e, total))
""",
    "while and files": """
n = 0
with open("log.csv", "a") as log:
    while n < 40:
        n += 1
        w[n] += random.random()
        log.write(f"{n},{w[n]}\\n")
        history.append(n)
        time.sleep(0.01)
""",
    "function": """
for e in range(6):
    loss = epoch(w, 6)
    history.append(loss)
print("done", len(history))
""",
}
NAMES = ("w", "history", "order", "rng", "e", "n", "total", "loss")


def magic(options: str = "--every 1") -> str:
    return f"%%resumable t --vars w,history {options}\n"


def reference(folder: Path, cell: str) -> tuple[dict[str, str], str]:
    """Run a cell plainly in a kernel of its own."""
    folder.mkdir()
    with Kernel(folder) as kernel:
        kernel.run(SETUP)
        _, error = kernel.run(cell)
        assert not error
        log = folder / "log.csv"
        return kernel.values(*NAMES), log.read_text() if log.exists() else ""


@pytest.mark.parametrize("shape", CELLS)
def test_a_kernel_killed_at_random_instants_comes_out_the_same(tmp_path, shape):
    """Three kernels die, each at another instant; the fourth ends, and every value and stream is that of a plain run."""
    cell = CELLS[shape]
    want, rows = reference(tmp_path / "plain", cell)
    folder = tmp_path / "killed"
    folder.mkdir()
    chance = random.Random(shape)
    kills = 0
    for _ in range(3):
        with Kernel(folder) as kernel:
            kernel.run(SETUP)
            kernel.send(magic("--every 2") + cell)
            time.sleep(chance.uniform(0.05, 0.6))
            os.kill(kernel.pid, signal.SIGKILL)
            kills += 1
    with Kernel(folder) as kernel:
        kernel.run(SETUP)
        told, error = kernel.run(magic("--every 2") + cell)
        assert not error, told + error
        assert kernel.values(*NAMES) == want
    if rows:
        assert (folder / "log.csv").read_text() == rows
    assert kills == 3


SLOW = """
for i in range(400):
    history.append(i)
    time.sleep(0.02)
    if i == 2: print("three", flush=True)
"""


def test_the_first_interrupt_stops_at_the_boundary_and_running_again_goes_on(tmp_path):
    """No iteration is cut in two, Run All goes no further, and the same kernel needs no restart."""
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP)
        cell = kernel.send(magic() + SLOW.replace("400", "60"))
        kernel.finish(cell, until="three")
        os.kill(kernel.pid, signal.SIGINT)
        told, error = kernel.finish(cell)
        assert "t: stopping at the next boundary" in told
        assert error.startswith("KeyboardInterrupt: t stopped at a boundary, i ")
        told, error = kernel.run("import nbresume; print(nbresume.open_run('t').lineage.cause, len(history), i)")
        cause, length, last = told.split()
        assert (cause, int(length)) == ("stop", int(last) + 1)
        told, error = kernel.run(magic() + SLOW.replace("400", "60"))
        assert not error, told
        assert ", attempt 2, from" in told
        assert kernel.run("history == list(range(60))")[0].strip() == "True"


def test_a_second_interrupt_does_not_wait_for_the_boundary(tmp_path):
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP)
        cell = kernel.send(magic() + "for i in range(3):\n    print('asleep', flush=True)\n    time.sleep(600)\n")
        kernel.finish(cell, until="asleep")
        os.kill(kernel.pid, signal.SIGINT)
        # Said at that moment, in the middle of the iteration.
        kernel.finish(
            cell, until="t: stopping at the next boundary, with a snapshot. Interrupt once more to stop at once"
        )
        os.kill(kernel.pid, signal.SIGINT)
        _, error = kernel.finish(cell)
        assert error.startswith("KeyboardInterrupt")
        assert "boundary" not in error


def test_a_second_kernel_is_refused_while_the_first_lives_and_takes_over_when_it_is_dead(tmp_path):
    with Kernel(tmp_path) as first, Kernel(tmp_path) as second:
        first.run(SETUP)
        second.run(SETUP)
        slow = SLOW.replace("400", "150")
        cell = first.send(magic() + slow)
        first.finish(cell, until="three")
        told, error = second.run(magic() + slow)
        assert error.startswith("BusyError"), told + error
        assert second.run("len(history)")[0].strip() == "0"
        os.kill(first.pid, signal.SIGKILL)
        time.sleep(0.5)
        told, error = second.run(magic() + slow.replace("time.sleep(0.02)", "time.sleep(0.02 * 1)"))
        assert error.startswith("ChangedError"), told + error
        cell = second.send(magic() + slow)
        told, error = second.finish(cell)
        assert not error, told + error
        assert ", attempt 2, from" in told
        assert second.run("history == list(range(150))")[0].strip() == "True"


def test_an_unattended_notebook_is_killed_run_again_and_finishes(tmp_path):
    """nbclient, as papermill and nbconvert use it: no front end, no question, and the second run goes on."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell(SETUP.strip()),
        nbformat.v4.new_code_cell((magic() + SLOW.replace("400", "60")).strip() + "\nopen('done', 'w').close()"),
        nbformat.v4.new_code_cell("print(history == list(range(60)))"),
    ]
    nbformat.write(notebook, tmp_path / "n.ipynb")
    code = """
        import sys, nbformat
        from nbclient import NotebookClient
        nb = nbformat.read("n.ipynb", 4)
        NotebookClient(nb, kernel_name="python3", timeout=120).execute()
        nbformat.write(nb, "out.ipynb")
        """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True) as client:
        began = time.monotonic()
        while len(list(tmp_path.glob(".nbresume/t-*/snapshots/*.h5"))) < 3:
            assert time.monotonic() - began < LIMIT
            time.sleep(0.05)
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
    owner = next(tmp_path.glob(".nbresume/t-*/owner"), None)
    if owner is not None:  # the kernel has a session of its own
        import json

        pid = json.loads(owner.read_text())["pid"]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        time.sleep(0.5)
    assert not (tmp_path / "done").exists()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    out = nbformat.read(tmp_path / "out.ipynb", 4)
    assert "True" in str(out.cells[2].outputs)
    assert ", attempt 2, from" in str(out.cells[1].outputs)


def test_a_new_kernel_shows_the_offer_with_the_way_to_continue(tmp_path):
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP)
        kernel.finish(kernel.send(magic() + SLOW), until="three")
        os.kill(kernel.pid, signal.SIGKILL)
    with Kernel(tmp_path) as kernel:
        told, error = kernel.run(SETUP)
        assert not error
        assert "interrupted" in told
        assert "supersede" in told


SILENT = """
for i in range(2):
    while i and not os.path.exists("go"):
        time.sleep(0.02)
    history.append(i)
"""


@pytest.mark.parametrize("looking", ["is cheap", "costs too much", "is not possible"])
def test_a_long_silent_iteration_gives_signs_of_life(tmp_path, looking):
    """Whoever ends idle kernels judges by messages: they come in the middle of an iteration that says nothing."""
    rare = "_cards.SHARE = 1e-12" if looking == "costs too much" else "_cards.PERIOD = 0.1"
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP)
        kernel.run("import os, nbresume._magic._cards as _cards; _cards.BEAT = 0.1; " + rare)
        cell = kernel.send(magic() + SILENT)
        beats = 0
        while beats < 5:
            told = kernel.client.get_iopub_msg(timeout=LIMIT)
            if told["msg_type"] != "update_display_data" or told["parent_header"].get("msg_id") != cell:
                continue
            beats += 1
            if looking == "is not possible" and beats == 1:
                (log,) = (tmp_path / ".nbresume").glob("t-*/log.txt")
                log.rename(log.with_name("kept"))
                log.mkdir()
                with pytest.raises(OSError):
                    nbresume.open_run("t", tmp_path / ".nbresume")
        if looking == "is not possible":
            log.rmdir()
            log.with_name("kept").rename(log)
        (tmp_path / "go").touch()
        _, error = kernel.finish(cell)
        assert not error


FLOOD = """
for i in range(200):
    [print("line", 100 * i + line) for line in range(100)]
    history.append(i)
"""


def test_a_flood_of_output_is_whole_in_the_log_and_the_end_is_told_without_unpickling(tmp_path):
    """A server drops what comes too fast. The card adds little to it, and nothing of the run hangs on it."""
    with Kernel(tmp_path) as kernel:
        kernel.run(SETUP)
        cell = kernel.send("%%resumable t --vars history\n" + FLOOD)
        while kernel.client.get_shell_msg(timeout=LIMIT)["parent_header"].get("msg_id") != cell:
            pass
        times = []
        with contextlib.suppress(queue.Empty):  # the kernel drops what is not fetched in time, its last word too
            while True:
                told = kernel.client.get_iopub_msg(timeout=1)
                if told["msg_type"] in ("display_data", "update_display_data"):
                    times.append(told["header"]["date"])
    # At the beginning, at the end, and at most four in a second between.
    assert len(times) <= 2 + 4 * (1 + (times[-1] - times[0]).total_seconds())
    (run,) = (tmp_path / ".nbresume").glob("t-*")
    assert (run / "log.txt").read_text() == "".join(f"line {n}\n" for n in range(20_000))
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    assert events[-1]["event"] == "completed"
    page = max((run / "snapshots").glob("*.h5")).read_bytes()[:4096].split(b"\n")
    assert page[0] == b"nbresume snapshot, format 1"
    assert json.loads(page[2])["digests"]
