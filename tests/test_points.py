"""Loops inside a library: a cell whose only boundaries are calls from a callback, killed at each of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy  # noqa: F401  # loaded before the processes are forked
import pytest
import sklearn.linear_model  # noqa: F401

import nbresume
from nbresume._magic._scratch import scratch_shell
from nbresume.testing import attempt, rehearse

pytestmark = pytest.mark.usefixtures("quick_disk")

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "library-loops.md"
LIBRARY = """
import random, types, numpy as np, nbresume
def minimise(x, steps, callback):  # a library's loop: nothing in it is followed
    return [x := one(x, i, callback) for i in range(*steps)][-1] if len(range(*steps)) else x
def one(x, i, callback):
    x = x - 0.2 * (x - 1) + 0.01 * np.random.normal(size=2)
    callback(i + 1, x)
    return x
"""
CELL = """x = np.array([3.0, -2.0])
log = []
step = nbresume.resume_point()
def each(done, x):
    log.append((done, x.tolist(), random.random()))
    nbresume.boundary(done, x=x)
x = minimise(x, (step, 4), each)
"""
SHAPES = {
    "a call in the cell": ("x,log", CELL, ""),
    "a call in each turn of a loop": (
        "x,log",
        "log = []\nfor fold in range(2):\n    x = np.zeros(2)\n    step = nbresume.resume_point()\n    x = minimise(x, (step, 2), lambda n, v: (log.append((fold, n, v.tolist())), nbresume.boundary(n, x=v)))\n    log.append(x.tolist())\n",
        "",
    ),
    "a call in a function of an earlier cell": (
        "log,out",
        "log = []\nout = train(3)\n",
        "def train(n):\n    x = np.zeros(2)\n    step = nbresume.resume_point()\n    x = minimise(x, (step, n), lambda k, v: (log.append(v.tolist()), nbresume.boundary(k, x=v)))\n    return x.tolist()\n",
    ),
    "two calls, one after the other": (
        "x,log",
        "x, log = np.zeros(2), []\nstep = nbresume.resume_point()\nx = minimise(x, (step, 2), lambda n, v: nbresume.boundary(n, x=v))\nlog.append(x.tolist())\nstep = nbresume.resume_point()\nx = minimise(x, (step, 2), lambda n, v: (log.append(n), nbresume.boundary(n, x=v)))\n",
        "",
    ),
    "an estimator that is fitted in part": (
        "clf,log",
        "clf = SGDClassifier(random_state=np.random.RandomState(0))\nlog = []\nstep = nbresume.resume_point()\nfit(clf, step, lambda n: (log.append(clf.coef_.tolist()), nbresume.boundary(n)))\n",
        "from sklearn.linear_model import SGDClassifier\nX, y = np.arange(12.0).reshape(6, 2), np.array([0, 1] * 3)\ndef fit(clf, start, callback):\n    [(clf.partial_fit(X, y, classes=[0, 1]), callback(i + 1)) for i in range(start, 3)]\n",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_library_s_loop_killed_at_any_boundary_comes_out_the_same(shape):
    names, cell, before = SHAPES[shape]
    found = rehearse(cell, LIBRARY + before, names=names.split(","))
    assert found.ok, str(found)
    assert found.kills == 2 * found.boundaries > 6


def test_between_two_snapshots_the_library_does_the_steps_again():
    found = rehearse(CELL, LIBRARY, names=["x", "log"], options="--every 3")
    assert found.ok, str(found)


REFUSED = {
    "no resume_point at all": (
        "for i in range(3):\n    log.append(i)\n    nbresume.boundary(i)\n",
        "without resume_point",
    ),
    "a loop between": (
        "step = nbresume.resume_point()\nfor i in range(step, 3):\n    nbresume.boundary(i + 1)\n",
        "without resume_point",
    ),
    "a record that a resume would make anew": (
        "step = nbresume.resume_point()\nhistory = []\nminimise(np.zeros(2), (step, 3), lambda n, v: (history.append(n), nbresume.boundary(n)))\n",
        "'history' is made behind resume_point() and changed",
    ),
    "a state that nobody could read": (
        "step = nbresume.resume_point()\nminimise(np.zeros(2), (step, 3), lambda n, v: nbresume.boundary(n, weights=v))\n",
        "no variable of that name",
    ),
    "a state that can't be saved": (
        "import threading\nlock = None\nstep = nbresume.resume_point()\nminimise(np.zeros(2), (step, 3), lambda n, v: nbresume.boundary(n, lock=threading.Lock()))\n",
        "cannot save 'lock' (_thread.lock)",
    ),
    "inside an expression": ("for i in range(nbresume.resume_point(), 3): log.append(i)\n", "inside an expression"),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_would_not_be_gone_on_with_is_refused_at_the_first_run(shape, tmp_path):
    cell, why = REFUSED[shape]
    found = attempt(LIBRARY, "%%resumable t --every 1\nlog = []\n" + cell, tmp_path)
    assert found.status == "error"
    assert why in found.error


def test_a_cell_without_a_boundary_is_refused_with_every_way_to_have_one(tmp_path):
    found = attempt(LIBRARY, "%%resumable t\nx = minimise(np.zeros(2), (0, 3), print)\n", tmp_path)
    for way in ("loop into the cell", "as a whole statement", "nbresume.resume_point()", "nbresume.boundary("):
        assert way in found.error


def test_a_stop_ends_the_library_s_loop_with_a_snapshot_and_running_again_goes_on(tmp_path, monkeypatch):
    """Also where the library swallows what ends it: the cell goes no further behind the call."""
    monkeypatch.chdir(tmp_path)
    shell = scratch_shell()
    shell.run_cell(LIBRARY).raise_error()
    shell.run_cell(
        "def swallow(n, x):\n    try: each(n, x)\n    except BaseException: seen.append(n)\nseen, ask = [], True"
    )
    cell = (
        "%%resumable t --vars x --every 1\nx = np.zeros(2)\ndone = 0\nstep = nbresume.resume_point()\n"
        "def each(n, v):\n    if ask and n == 2: nbresume._session.active_host().stop()\n    nbresume.boundary(n, x=v)\n"
        "x = minimise(x, (step, 4), swallow)\ndone = step\n"
    )
    result = shell.run_cell(cell)
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert (shell.user_ns["seen"], shell.user_ns["done"]) == ([2, 3, 4], 0)
    shell.user_ns["ask"] = False
    shell.run_cell(cell)
    assert nbresume.open_run("t").state in ("completed", "interrupted")


def test_outside_of_a_resumable_cell_the_calls_do_nothing():
    """So that a notebook runs the same with the magic line taken off."""
    assert nbresume.resume_point() == 0
    assert nbresume.boundary(3, x=1) is None


def test_the_example_of_the_guide_resumes_killed_at_each_boundary():
    before, cell = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[:2]
    body = cell.partition("\n")[2]
    found = rehearse(body, before, names=["x", "path"])
    assert found.ok, str(found)
    assert found.boundaries > 4
