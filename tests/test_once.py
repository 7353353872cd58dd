"""What is done once over all attempts of a run, and the key of a step."""

from __future__ import annotations

import pytest

from nbresume.testing import attempt

MAGIC = "%%resumable t --vars got --every 1 --on-restart continue\n"
# What was sent is out in the world, where no resume takes it back: in these tests, in a file that nobody follows.
SENT = """
import nbresume, os, random, signal
os.makedirs('.nbresume', exist_ok=True)
open('.nbresume/sent.txt', 'a').close()
def send(text):
    with open('.nbresume/sent.txt', 'a') as f: f.write(text)
    if os.path.exists('die'):
        os.kill(os.getpid(), signal.SIGKILL)
    return random.random()
"""
CELL = "got = [nbresume.current().once('start', lambda: send('start '))]\nfor i in range(3):\n    got.append(nbresume.current().once(f'step {i}', lambda: send(f'{i} ')))\n    got.append(random.random())\n"


def sent(folder):
    return (folder / ".nbresume" / "sent.txt").read_text()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kill_at", [1, 2, 4])
def test_an_effect_happens_once_over_all_attempts_and_its_draws_count(tmp_path, kill_at, when):
    """The result and the random streams after it are those of the first time, killed where it may be."""
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    folder.mkdir()
    plain = attempt(SENT, MAGIC + CELL, whole, names=["got"])
    assert attempt(SENT, MAGIC + CELL, folder, kill_at=kill_at, when=when).status == "killed"
    second = attempt(SENT, MAGIC + CELL, folder, names=["got"], seed=1)
    assert (second.status, second.error) == ("ended", "")
    assert second.values == plain.values
    assert sent(folder) == "start 0 1 2 "


def test_a_death_in_the_middle_is_unknown_and_stops_by_name_until_somebody_looks(tmp_path):
    assert attempt(SENT, MAGIC + CELL, tmp_path, kill_at=2).status == "killed"
    (tmp_path / "die").touch()
    assert attempt(SENT, MAGIC + CELL, tmp_path).status == "killed"
    (tmp_path / "die").unlink()
    assert sent(tmp_path) == "start 0 1 "
    found = attempt(SENT, MAGIC + CELL, tmp_path)
    assert found.error.startswith(
        "StoppedError: once('step 1'): an earlier attempt began it and died before it was done"
    )
    assert sent(tmp_path) == "start 0 1 "
    (claim,) = (tmp_path / ".nbresume").glob("t-*/once/*.claim")
    assert str(claim) in found.error
    claim.unlink()
    assert attempt(SENT, MAGIC + CELL, tmp_path).status == "ended"
    assert sent(tmp_path) == "start 0 1 1 2 "


def test_a_waiver_in_the_call_does_it_again(tmp_path):
    cell = MAGIC + CELL.replace("(f'{i} '))", "(f'{i} '), again=True)")
    assert attempt(SENT, cell, tmp_path, kill_at=2).status == "killed"
    (tmp_path / "die").touch()
    assert attempt(SENT, cell, tmp_path).status == "killed"
    (tmp_path / "die").unlink()
    assert attempt(SENT, cell, tmp_path).status == "ended"
    assert sent(tmp_path) == "start 0 1 1 2 "


def test_what_failed_with_an_error_may_be_tried_again(notebook):
    notebook.run(
        "import nbresume\ncalls = []\ndef fail():\n    calls.append(1)\n    if len(calls) < 3: raise OSError('down')\n    return 'up'\n"
    )
    cell = "%%resumable t --vars got\ngot = ''\nfor i in range(3):\n    try: got += nbresume.current().once('up', fail)\n    except OSError: got += '.'\n"
    notebook.run(cell)
    assert notebook["got"] == "..up"


def test_a_result_is_kept_with_all_that_a_variable_may_hold(notebook):
    notebook.run(
        "import nbresume, numpy as np\ncalls = []\ndef make():\n    calls.append(1)\n    return {'a': np.arange(10**6), 'b': [1]}\n"
    )
    notebook.run(
        "%%resumable t --vars x,y\nx = nbresume.current().once('k', make)\nfor i in range(2):\n    y = nbresume.current().once('k', make)\n"
    )
    assert notebook["calls"] == [1]
    assert notebook["y"]["b"] == notebook["x"]["b"]
    assert (notebook["y"]["a"] == notebook["x"]["a"]).all()


def test_a_result_that_cannot_be_kept_is_an_error_the_first_time(notebook):
    notebook.run("import nbresume, threading")
    found = notebook.fails(
        "%%resumable t --vars i\nfor i in range(2):\n    nbresume.current().once('k', threading.Lock)\n"
    )
    assert type(found).__name__ == "UnsaveableError"
    assert "once('k')" in str(found)


def test_a_new_run_does_it_anew(notebook):
    notebook.run("import nbresume\ncalls = []")
    cell = "%%resumable t --vars i\nfor i in range({n}):\n    nbresume.current().once('k', lambda: calls.append(1))\n"
    notebook.run(cell.format(n=2))
    notebook.run(cell.format(n=3))
    assert notebook["calls"] == [1, 1]


def test_the_key_of_a_step_is_the_same_in_every_attempt_and_for_no_other_step(tmp_path):
    """Two loops of one label, and one function called twice, are different steps."""
    setup = "import nbresume\ndef key():\n    return nbresume.current().step_key.partition('/')[2]\ndef walk():\n    for k in range(2):\n        got.append(key())\n"
    cell = (
        MAGIC
        + "got = []\nfor i in range(2):\n    got.append(key())\nfor i in range(2):\n    got.append(key())\nwalk()\nwalk()\nassert len(set(got)) == 8, got\n"
    )
    (tmp_path / "plain").mkdir()
    plain = attempt(setup, cell, tmp_path / "plain", names=["got"])
    assert (plain.status, plain.error) == ("ended", "")
    for kill_at in (2, 5, 8):
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        assert attempt(setup, cell, folder, kill_at=kill_at, when="before").status == "killed"
        assert attempt(setup, cell, folder, names=["got"]).values == plain.values
