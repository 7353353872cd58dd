"""How far a run has come and how fast it goes: from its loops, over the time that it worked."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import datetime

import pytest
from _support import Kernel, meanwhile, shell, until

from nbresume._card import View
from nbresume._commands._status import rate_text, status_text
from nbresume._lineage import fold
from nbresume._session import open_run
from nbresume._session._pace import Sample, rate_of
from nbresume._store import Store


def samples(*rows, even=2):
    return [Sample(active, tuple(loops), even) for active, *loops in rows]


def test_the_rate_counts_inner_iterations_and_tells_what_is_left():
    rate = rate_of(samples((0, ("epoch", 0, 10), ("batch", 0, 20)), (10, ("epoch", 2, 10), ("batch", 10, 20))))
    assert (rate.label, rate.per_second, rate.left) == ("batch", 5.0, 30.0)


def test_a_boundary_of_the_outer_loop_counts_as_much():
    rate = rate_of(samples((0, ("epoch", 1, 10)), (10, ("epoch", 2, 10), ("batch", 10, 20))))
    assert (rate.label, rate.per_second) == ("batch", 3.0)


def test_a_slow_start_is_forgotten():
    slow, quick = (0, ("i", 0, 100)), (100, ("i", 1, 100))
    rate = rate_of(samples(slow, quick, (200, ("i", 51, 100)), even=1))
    assert (rate.per_second, rate.left) == (0.5, 98.0)


@pytest.mark.parametrize(
    ("loops", "even", "left"),
    [
        ([("n < 5", 4, None)], 1, None),  # nobody knows how often a condition holds
        ([("epoch", 4, 10), ("row", 7, None)], 2, 15.0),  # of an inner loop of unknown length only the outer counts
        ([("row", 4, None), ("i", 0, 5)], 2, None),
    ],
)
def test_what_is_left_is_none_where_a_length_is_unknown(loops, even, left):
    first = [(label, 0, total) for label, _, total in loops[:1]]
    rate = rate_of([Sample(0.0, tuple(first), 1), Sample(10.0, tuple(loops), even)])
    assert rate.left == left


def test_no_rate_is_made_up():
    assert rate_of([]) is None
    assert rate_of(samples((5, ("i", 3, 9)), even=1)) is None
    assert rate_of(samples((5, ("i", 3, 9)), (9, ("i", 3, 9)), even=1)) is None
    assert rate_of(samples((5, ("i", 3, 9)), (9, ("j", 4, 9)), even=1)) is None
    assert rate_text(View("t", "t-1", fold([]), "running")) == ""


def told(notebook, cell: str) -> list[dict]:
    notebook.run(f"%%resumable t --every 1\n{cell}")
    return [event.facts for event in notebook.runs[-1].events() if event.kind == "snapshot"]


def test_two_loops_in_one_iteration_leave_the_outer_one_to_tell_the_progress(notebook):
    both = told(notebook, "for e in range(2):\n    for b in range(2): pass\n    for v in range(3): pass")
    assert {one["even"] for one in both if len(one["loops"]) == 2} == {1}
    one = told(notebook, "for e in range(2):\n    if e < 5:\n        for b in range(2): pass\n    x = e")
    assert {found["even"] for found in one if len(found["loops"]) == 2} == {2}


def test_a_loop_in_a_function_counts_as_one_in_its_place(notebook):
    notebook.run("def inner(e):\n    for b in range(3): pass")
    found = told(notebook, "for e in range(2):\n    inner(e)")
    assert {one["even"] for one in found if len(one["loops"]) == 2} == {2}


def test_other_loops_to_come_are_known(notebook):
    found = told(notebook, "for a in range(2): pass\nfor b in range(2): pass")
    assert {(one["loops"][0][0], one["more"]) for one in found if one["loops"]} == {("a", True), ("b", False)}


def test_active_time_grows_over_attempts_and_not_between_them(notebook):
    notebook.run("import time, os")
    cell = "%%resumable t --every 1\nfor i in range(6):\n    time.sleep(0.05)\n    if i == 3 and not os.path.exists('again'): raise OSError"
    notebook.fails(cell)
    (run,) = notebook.runs
    before = open_run("t", notebook.store.root)
    assert before.rate is not None and before.rate[0] == "i"
    assert before.seconds_left is not None and before.active is not None
    time.sleep(1)
    (notebook.folder / "again").touch()
    notebook.restart()
    notebook.run("import time, os")
    notebook.run(cell)
    active = [event.facts["active"] for event in run.events() if event.kind == "snapshot"]
    assert active == sorted(active)
    began = run.lineage().attempts
    at = {event.kind: datetime.fromisoformat(event.at) for event in run.events() if event.kind != "snapshot"}
    assert len(began) == 2
    working = (at["interrupted"] - at["launched"]) + (at["completed"] - at["resumed"])
    # Not the second between them. What an attempt does before it says that it goes on takes less than that.
    assert 6 * 0.05 < active[-1] < working.total_seconds() + 0.9
    assert open_run("t", notebook.store.root).seconds_left is None  # it is done


@pytest.mark.kernel
def test_the_status_of_a_running_cell_is_read_from_elsewhere_between_its_snapshots(tmp_path):
    store = tmp_path / ".nbresume"
    with Kernel(tmp_path) as kernel:
        kernel.run("%load_ext nbresume\nimport time")
        cell = kernel.send(
            "%%resumable train --every 1h\nfor epoch in range(1000):\n    for batch in range(50): time.sleep(0.01)"
        )
        run = until(lambda: next(iter(Store(store)), None))
        until(lambda: open_run("train", store).stands_at)

        def status() -> dict:
            return json.loads(shell("status", "train", "--json", store=store)[1])

        first = until(lambda: (now := status())["rate"] and now["loops"][0]["done"] >= 1 and now)
        assert first["snapshot"]["where"] != first["where"]  # further than the last snapshot
        assert first["rate"]["label"] == "batch"
        assert first["seconds_left"] > 0
        text = status_text(open_run("train", store))
        assert "epoch" in text and " left" in text and "batch: " in text
        assert shell("status", store=store)[1].startswith("train  running")

        os.kill(kernel.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        before = status()
        time.sleep(6)
        os.kill(kernel.pid, signal.SIGCONT)
        after = until(
            lambda: (now := status())["stands_at"] > before["stands_at"] and now["active"] > before["active"] and now
        )
        time.sleep(1.5)  # the thread that notices may come second
        after = until(lambda: (now := status())["stands_at"] > after["stands_at"] and now)
        assert after["active"] - before["active"] < time.monotonic() - stopped - 4

        with meanwhile(lambda: shell("status", "train", "--watch", store=store)) as watched:
            shell("stop", "train", "--wait", store=store)
            kernel.finish(cell)
        assert watched[0][0] == 1
        lines = watched[0][1].splitlines()
        assert "train  running" in lines[0]
        assert "interrupted (stop)" in lines[-1]
        assert not (run.path / "status.json").exists()
        view = open_run("train", store)
        assert view.stands_at == "" and view.where == view.snapshot["where"]
        assert shell("status", "train", "--watch", store=store)[0] == 1


def test_watching_a_completed_run_ends_at_once_with_0(notebook):
    notebook.run("%%resumable train\nfor i in range(3): pass")
    status, text = shell("status", "train", "--watch", store=notebook.store.root)
    assert status == 0
    assert "completed" in text
    assert "\x1b" not in text
