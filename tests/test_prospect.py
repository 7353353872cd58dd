"""What is told of a run before its cell is run again, in a kernel that may know nothing yet."""

from __future__ import annotations

from nbresume._session import prospect, prospect_text
from nbresume._session._places import Places

CELL = "%%resumable t --vars out --every 1\nout = train(3)\n"
TRAIN = "def train(n):\n    log = []\n    for i in range(n):\n        if i == 1 and not go: 1 / 0\n        log.append(i)\n    return log\n"


def died(notebook):
    """Leave an interrupted run whose loop stands in a function of another cell."""
    notebook.run("go = False")
    notebook.run(TRAIN)
    notebook.fails(CELL)
    (run,) = notebook.runs
    return run


def test_a_kernel_without_the_function_that_holds_the_loop_is_offered_the_run_and_told_what_is_missing(notebook):
    run = died(notebook)
    notebook.restart()  # loading the extension shows the offer
    assert prospect(run, Places(notebook.shell.user_ns)).missing
    assert "train" in prospect_text(run, Places(notebook.shell.user_ns))
    notebook.run("go = False")
    found = prospect(run, Places(notebook.shell.user_ns))
    assert "train" in found.missing
    notebook.run(TRAIN)
    assert prospect(run, Places(notebook.shell.user_ns)) == type(found)()


def test_a_function_that_has_changed_is_told_before_anything_runs(notebook):
    run = died(notebook)
    notebook.restart()
    notebook.run("go = False")
    notebook.run(TRAIN.replace("log.append(i)", "log.append(-i)"))
    found = prospect(run, Places(notebook.shell.user_ns))
    assert not found.missing
    assert any("train()" in line for line in found.differences)


def test_an_object_that_can_not_be_looked_at_does_not_hinder_the_offer(notebook):
    run = died(notebook)
    notebook.restart()
    notebook.run(
        "class Odd:\n    @property\n    def __dict__(self): raise RuntimeError('no')\n    def __reduce__(self): raise RuntimeError('no')"
    )
    notebook.run("go = Odd()")
    notebook.run(TRAIN)
    prospect(run, Places(notebook.shell.user_ns))
