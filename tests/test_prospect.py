"""What running a cell would do, told before it is run: nothing runs, nothing is written."""

from __future__ import annotations

import numpy as np
import pytest

from nbresume._session import active_host, prospect, prospect_text
from nbresume._session._places import Places

SETUP = "from pathlib import Path\nimport numpy as np\nlr, data = 0.1, np.arange(5.0)\ndef step(x): return x * lr"
CELL = """\
%%resumable {name} --vars total --every 1
total = 0.0
for i in range(5):
    total += step(data[i])
    if i == 2 and Path('{name}').exists():
        raise ValueError('a bad day')
"""


def die(notebook, name):
    (notebook.folder / name).touch()
    notebook.fails(CELL.format(name=name))
    (notebook.folder / name).unlink()


@pytest.fixture
def died(notebook):
    notebook.run(SETUP)
    die(notebook, "train")
    return notebook


def told(name="train"):
    host = active_host()
    run = host.store.find(name)
    return prospect_text(run, host.places, host.left_by(run.id))


def test_names_that_are_not_there_yet_are_named(died):
    died.restart()
    before = died.files()
    text = told()
    assert "would stop before anything runs: data, lr, step are not there." in text
    assert "Run the cells above first." in text
    assert died.files() == before


def test_an_equal_cell_is_told_to_be_continued_and_from_where(died):
    died.restart()
    died.run(SETUP)
    before = died.files()
    text = told()
    assert "continues it, attempt 2, from i 2 of 5 done." in text
    assert "Nothing that identifies it differs." in text
    assert died.files() == before
    died.run(CELL.format(name="train"))
    assert died["total"] == pytest.approx(1.0)


def test_a_changed_input_is_told_before_anything_is_touched(died):
    died.restart()
    died.run(SETUP)
    died.run("lr = 0.01")
    before = died.files()
    assert "lr: 0.1 -> 0.01" in told()
    assert died.files() == before


def test_what_is_said_already_and_what_is_done_are_told(died):
    died.run("%nbresume supersede train")
    assert "starts a new run, as you said" in told()
    died.run("%nbresume continue train")
    died.run(CELL.format(name="train"))
    assert "lays its results over what is there" in told()
    died.run("lr = 0.01")
    assert "starts a new run" in told()


def test_another_version_is_seen_in_a_kernel_where_nothing_has_run(died, monkeypatch):
    died.restart()
    host = active_host()
    run = host.store.find("train")
    assert prospect(run, host.places).differences == ()
    monkeypatch.setattr(np, "__version__", "0.1")
    (line,) = prospect(run, host.places).differences
    assert line.startswith("numpy: ")
    assert line.endswith(" -> 0.1")


def test_the_offer_tells_another_version_and_no_button_promises_what_would_be_refused(died, monkeypatch, capsys):
    monkeypatch.setattr(np, "__version__", "0.1")
    capsys.readouterr()
    died.restart()
    shown = capsys.readouterr().out
    assert "numpy: " in shown
    assert "can't be continued as it is" in shown


def test_several_runs_are_offered_in_one_list(died, capsys):
    die(died, "second")
    capsys.readouterr()
    died.restart()
    shown = capsys.readouterr().out
    assert shown.count("2 interrupted runs") == 1
    (train,) = [line for line in shown.splitlines() if line.split()[:1] == ["train"]]
    (second,) = [line for line in shown.splitlines() if line.split()[:1] == ["second"]]
    for line in (train, second):
        assert "interrupted (exception)" in line
        assert "of 5" in line
    assert "to continue" in train
    assert str(died.folder) not in shown


IN_A_FUNCTION = "%%resumable t --vars out --every 1\nout = train(3)\n"
TRAIN = "def train(n):\n    log = []\n    for i in range(n):\n        if i == 1 and not go: 1 / 0\n        log.append(i)\n    return log\n"


def died_in_a_function(notebook):
    """Leave an interrupted run whose loop stands in a function of another cell."""
    notebook.run("go = False")
    notebook.run(TRAIN)
    notebook.fails(IN_A_FUNCTION)
    (run,) = notebook.runs
    return run


def test_a_kernel_without_the_function_that_holds_the_loop_is_offered_the_run_and_told_what_is_missing(notebook):
    run = died_in_a_function(notebook)
    notebook.restart()  # loading the extension shows the offer
    assert prospect(run, Places(notebook.shell.user_ns)).missing
    assert "train" in prospect_text(run, Places(notebook.shell.user_ns))
    notebook.run("go = False")
    found = prospect(run, Places(notebook.shell.user_ns))
    assert "train" in found.missing
    notebook.run(TRAIN)
    assert prospect(run, Places(notebook.shell.user_ns)) == type(found)(is_whole=True)


def test_a_function_that_has_changed_is_told_before_anything_runs(notebook):
    run = died_in_a_function(notebook)
    notebook.restart()
    notebook.run("go = False")
    notebook.run(TRAIN.replace("log.append(i)", "log.append(-i)"))
    found = prospect(run, Places(notebook.shell.user_ns))
    assert not found.missing
    assert any("train()" in line for line in found.differences)


def test_an_object_that_can_not_be_looked_at_does_not_hinder_the_offer(notebook):
    run = died_in_a_function(notebook)
    notebook.restart()
    notebook.run(
        "class Odd:\n    @property\n    def __dict__(self): raise RuntimeError('no')\n    def __reduce__(self): raise RuntimeError('no')"
    )
    notebook.run("go = Odd()")
    notebook.run(TRAIN)
    prospect(run, Places(notebook.shell.user_ns))


def test_where_not_all_can_be_compared_no_equality_is_claimed(notebook):
    """The cell's own function is another kind of thing now, so that its loop can't be found."""
    run = died_in_a_function(notebook)
    notebook.restart()
    notebook.run("go = False\ntrain = print")
    found = prospect(run, Places(notebook.shell.user_ns))
    assert (found.missing, found.is_whole) == ((), False)
    told = prospect_text(run, Places(notebook.shell.user_ns))
    assert "can't all be looked at" in told
    assert "continues it" not in told
    assert "Nothing that identifies it differs" not in told
