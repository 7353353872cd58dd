"""Running the cell again: in the same kernel, in a new one, with something changed, and with every word that can be said."""

from __future__ import annotations

import importlib
import json
import random
import re
import sys

import numpy as np
import pytest

import nbresume
from nbresume._magic._extension import Extension
from nbresume.errors import BusyError, ChangedError, CorruptError, NotFoundError, RefusedError, StoppedError
from nbresume.testing import attempt


@pytest.fixture(autouse=True)
def streams():
    """Give the streams back to the test's process."""
    kept = random.getstate(), np.random.get_state()
    random.seed(5)
    yield
    random.setstate(kept[0])
    np.random.set_state(kept[1])


def magic(options: str = "", name: str = "t") -> str:
    return f"%%resumable {name} --vars log --every 1 {options}\n"


COUNTED = "for i in range(6):\n    log.append(i)\n    ticks.append(i)\n    if len(ticks) == 3:\n        raise {error}\n"


# ------------------------------------------------------------------ the same kernel


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "ValueError('bad')", "SystemExit", "MemoryError"])
def test_after_an_error_the_same_kernel_goes_on(notebook, capsys, error):
    """The namespace is rolled back to the newest snapshot; what it made half is not made twice."""
    notebook.run("import builtins; builtins.ticks = []\nlog = []")
    cell = magic() + COUNTED.format(error=error)
    notebook.fails(cell)
    assert notebook["log"] == [0, 1, 2]
    lineage = notebook.runs[0].lineage()
    assert lineage.state == "interrupted"
    assert lineage.cause == ("stop" if error == "KeyboardInterrupt" else "exception")
    notebook.run(cell)
    assert notebook["log"] == [0, 1, 2, 3, 4, 5]
    import builtins

    assert builtins.ticks == [0, 1, 2, 2, 3, 4, 5]
    del builtins.ticks
    assert ", attempt 2, from" in capsys.readouterr().out
    (run,) = notebook.runs
    assert [a.how for a in run.lineage().attempts][1:] == ["completed"]


def test_the_streams_go_on_where_the_snapshot_stood(notebook):
    """Whatever was drawn between the interruption and the next try."""
    notebook.run("import random\nlog = []")
    body = "import os\nfor i in range(6):\n    log.append(random.random())\n    if i == 3 and not os.path.exists('go'): raise ValueError\n"
    random.seed(5)
    expected = [random.random() for _ in range(6)]
    random.seed(5)
    notebook.fails(magic() + body)
    (notebook.folder / "go").touch()
    notebook.run("[random.random() for _ in range(17)]")
    notebook.run(magic() + body)
    assert notebook["log"] == expected


def test_a_completed_run_restores_in_the_same_kernel_and_runs_nothing(notebook, capsys):
    notebook.run("ticks = []\nlog = []\ndef tick(): open('ticks', 'a').write('x')")
    cell = (
        magic()
        + "import os\nfor i in range(4):\n    os.system('true')\n    log.append(i)\n    os.close(os.open('tick%d' % len(os.listdir('.')), os.O_CREAT))\nsum(log)"
    )
    assert notebook.run(cell) == 6
    import os

    before = len(os.listdir("."))
    capsys.readouterr()
    notebook.run(cell)
    assert len(os.listdir(".")) == before
    assert notebook["log"] == [0, 1, 2, 3]
    assert "already complete" in capsys.readouterr().out


def test_a_completed_run_shows_its_stored_display_again(notebook, capsys):
    notebook.run("log = []")
    cell = magic() + "for i in range(4):\n    log.append(i)\nsum(log)"
    notebook.run(cell)
    for _ in range(2):
        capsys.readouterr()
        notebook.run(cell)
        assert "6" in capsys.readouterr().out
        notebook.restart()
        notebook.run("log = []")


def test_results_that_were_changed_by_hand_are_not_overwritten(notebook, capsys):
    """Fine-tuned since: the cell stops, or starts another run from what is there, and says what differs."""
    notebook.run("log = []")
    cell = magic() + "for i in range(4):\n    log.append(i)\n"
    notebook.run(cell)
    notebook.run("log.append('mine')")
    before = notebook.files()
    notebook.shell.run_cell(cell)
    assert notebook["log"][:5] == [0, 1, 2, 3, "mine"]
    assert "'mine'" in "".join(capsys.readouterr())
    assert before.items() <= notebook.files().items()


# ------------------------------------------------------------------ a new kernel


def interrupted(
    notebook,
    cell: str = "for i in range(6):\n    log.append(i * lr)\n    if i == stop: raise ValueError\n",
    before: str = "",
) -> str:
    """Leave an interrupted run behind and restart; returns its cell."""
    notebook.run("log, lr, stop = [], 0.1, 3\n" + before)
    notebook.fails(magic() + cell)
    notebook.restart()
    notebook.run("log, lr, stop = [], 0.1, 3\n" + before)
    return magic() + cell


def test_an_equal_run_is_continued_and_says_so_with_the_way_out(notebook, capsys):
    cell = interrupted(notebook)
    capsys.readouterr()
    notebook.fails(cell)
    told = capsys.readouterr().out
    assert ", attempt 2, from" in told
    assert "supersede t" in told
    assert notebook["log"] == [i * 0.1 for i in range(4)]
    assert notebook.runs[0].lineage().resumed


def test_a_stop_from_the_users_own_exception_is_raised_again_and_not_swallowed(notebook):
    cell = interrupted(notebook)
    assert isinstance(notebook.fails(cell), ValueError)
    assert len(notebook.runs) == 1


CHANGES = {
    "a learning rate": ("lr = 0.01", None, "lr: 0.1 -> 0.01"),
    "a number in the body": ("", ("i * lr", "i * lr * 2"), "the cell: line 2 changed"),
    "the length of the loop": ("", ("range(6)", "range(7)"), "the cell: line 1 changed"),
    "the type of an input": ("lr = [0.1]", None, "lr: 0.1 -> [0.1]"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("word", ["ask", "continue"])
def test_a_changed_run_stops_with_the_difference_and_touches_nothing(notebook, capsys, change, word):
    now, edit, difference = CHANGES[change]
    cell = interrupted(notebook)
    notebook.run("log.append('untouched')\n" + now)
    before = notebook.files()
    capsys.readouterr()
    error = notebook.fails(
        (cell.replace(*edit) if edit else cell).replace("--every 1", f"--every 1 --on-restart {word}")
    )
    told = "".join(capsys.readouterr())
    assert isinstance(error, ChangedError)
    assert difference in told
    assert "supersede" in told
    assert "Traceback" not in told
    assert notebook.files() == before
    assert notebook["log"] == ["untouched"]


HELPERS = "def scale(x):\n    return inner(x) * 2\ndef inner(x):\n    return x\nclass Model:\n    rate = 1\n    def step(self, x): return x\nmodel = Model()\n"
USES = "for i in range(6):\n    log.append(scale(i) + model.step(i))\n    if i == stop: raise ValueError\n"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("return inner(x) * 2", "return inner(x) * 3", "scale()"),
        ("    return x\nclass", "    return x + 0\nclass", "inner()"),
        ("def step(self, x): return x", "def step(self, x): return -x", "class Model"),
        ("rate = 1", "rate = 2", "Model.rate"),
    ],
)
def test_a_changed_helper_stops_by_its_name(notebook, capsys, old, new, named):
    cell = interrupted(notebook, USES, HELPERS)
    notebook.run(HELPERS.replace(old, new))
    before = notebook.files()
    assert isinstance(notebook.fails(cell), ChangedError)
    assert f"    {named}:" in capsys.readouterr().out
    assert notebook.files() == before


def test_a_reformatted_cell_is_the_same_run(notebook):
    cell = interrupted(notebook, USES, HELPERS)
    notebook.run(HELPERS.replace("    return x\nclass", "    # unchanged\n    return (x)\n\n\nclass"))
    cell = cell.replace("    log.append(scale(i) +", "    # a comment\n\n    log.append( scale( i )  +")
    assert isinstance(notebook.fails(cell), ValueError)
    assert notebook.runs[0].lineage().resumed


def test_a_changed_local_module_stops_by_its_name(notebook, monkeypatch, capsys):
    file = notebook.folder / "helper_nb.py"
    file.write_text("def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(notebook.folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = "import helper_nb\n"
    try:
        cell = interrupted(
            notebook, "for i in range(6):\n    log.append(helper_nb.f(i))\n    if i == stop: raise ValueError\n", before
        )
        file.write_text("def f(x):\n    return x + 1\n")
        importlib.reload(sys.modules["helper_nb"])
        assert isinstance(notebook.fails(cell), ChangedError)
        assert "module helper_nb" in capsys.readouterr().out
    finally:
        sys.modules.pop("helper_nb", None)


# ------------------------------------------------------------------ supersede


def test_supersede_keeps_every_old_file_byte_for_byte_and_links_the_two(notebook):
    cell = interrupted(notebook)
    before = notebook.files()
    notebook.fails(cell.replace("--every 1", "--every 1 --on-restart supersede"))
    old, new = notebook.runs
    after = notebook.files()
    for name, data in before.items():
        if name.endswith("journal.jsonl"):
            assert after[name].startswith(data)
        else:
            assert after[name] == data
    assert new.record["supersedes"] == old.id
    assert old.lineage().superseded_by == new.id
    assert old.lineage().state == "superseded"
    assert notebook["log"] == [i * 0.1 for i in range(4)]


def test_a_recorded_word_is_followed_once(notebook):
    cell = interrupted(notebook)
    notebook.run("%nbresume supersede t")
    notebook.fails(cell)
    assert len(notebook.runs) == 2
    notebook.fails(cell)
    assert len(notebook.runs) == 2
    assert notebook.runs[1].lineage().resumed


def test_a_changed_completed_run_starts_anew_and_is_linked(notebook):
    notebook.run("log = []")
    notebook.run(magic() + "for i in range(3): log.append(i)")
    notebook.restart()
    notebook.run("log = []")
    notebook.run(magic() + "for i in range(4): log.append(i)")
    first, second = notebook.runs
    assert second.record["after"] == first.id
    assert first.lineage().state == "completed"
    assert notebook["log"] == [0, 1, 2, 3]


def test_an_abandoned_run_is_not_continued(notebook):
    cell = interrupted(notebook)
    notebook.run("%nbresume abandon t")
    notebook.fails(cell)
    assert len(notebook.runs) == 2


def test_fail_allows_no_interrupted_run(notebook):
    cell = interrupted(notebook)
    before = notebook.files()
    error = notebook.fails(cell.replace("--every 1", "--on-restart fail"))
    assert isinstance(error, StoppedError)
    assert notebook.files() == before


def test_an_unattended_supersede_is_refused(notebook):
    """papermill would throw the run away at each retry."""
    cell = interrupted(notebook)
    extension: Extension = notebook.shell._nbresume_extension
    extension.host.attended = lambda: False
    assert "supersede" in str(notebook.fails(cell.replace("--every 1", "--on-restart supersede")))
    assert len(notebook.runs) == 1


# ------------------------------------------------------------------ two of one name, nested


def test_a_missing_input_stops_by_its_name(notebook, capsys):
    cell = interrupted(notebook)
    notebook.run("del lr")
    before = notebook.files()
    assert isinstance(notebook.fails(cell), (StoppedError, RefusedError))
    assert "lr" in "".join(capsys.readouterr())
    assert notebook.files() == before


def test_two_cells_of_one_notebook_with_one_name_are_refused(notebook):
    """Without this each Run All would set the two against each other. A front end tells cells apart by an id."""
    notebook.run("log = []")
    shell = notebook.shell
    shell.run_cell(magic() + "for i in range(3): log.append(i)", cell_id="first").raise_error()
    found = shell.run_cell(magic() + "for k in range(3): log.append(-k)", cell_id="second")
    assert found.error_before_exec or found.error_in_exec
    assert notebook["log"] == [0, 1, 2]
    assert len(notebook.runs) == 1
    shell.run_cell(magic() + "for i in range(4): log.append(i)", cell_id="first").raise_error()  # edited
    assert len(notebook.runs) == 2


def test_a_resumable_cell_in_another_is_refused_and_the_outer_one_goes_on(notebook):
    notebook.run("log, errors = [], []")
    inner = magic(name="inner") + "for k in range(2): log.append(k)"
    notebook.run(
        magic() + f"for i in range(2):\n    r = get_ipython().run_cell({inner!r})\n"
        "    errors.append(type(r.error_before_exec or r.error_in_exec).__name__)\n    r = None\n"
    )
    assert notebook["errors"] == ["RefusedError"] * 2
    assert notebook["log"] == []
    assert [(run.name, run.lineage().state) for run in notebook.runs] == [("t", "completed")]


def test_a_plain_cell_run_from_the_body_does_not_end_the_run(notebook):
    """``%run``, ``run_cell`` and extensions that use it fire the events of a cell in the middle of ours."""
    notebook.run("log = []")
    notebook.run(magic() + "for i in range(3):\n    get_ipython().run_cell('x = 1')\n    log.append(i)\n")
    assert notebook["log"] == [0, 1, 2]
    (run,) = notebook.runs
    assert run.lineage().state == "completed"
    assert run.lineage().attempts[0].snapshots >= 4


def test_a_run_that_lives_in_another_process_is_refused(notebook, capsys):
    import subprocess

    cell = interrupted(notebook)
    code = "import sys\nfrom pathlib import Path\nfrom nbresume._store import RunFolder\nlock = RunFolder.open(Path(sys.argv[1])).take()\nprint(1, flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, notebook.runs[0].path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        for word in ("ask", "supersede"):
            error = notebook.fails(cell.replace("--every 1", f"--on-restart {word}"))
            assert isinstance(error, BusyError)
        assert "another kernel" in capsys.readouterr().out
        other.kill()
    assert isinstance(notebook.fails(cell), ValueError)
    assert notebook.runs[0].lineage().resumed


# ------------------------------------------------------------------ options through every door


def test_the_line_goes_before_the_environment_and_that_before_the_configuration(notebook, monkeypatch):
    def snapshots(name, options=""):
        notebook.run("log = []")
        notebook.run(f"%%resumable {name} --vars log {options}\nfor i in range(8): log.append(i)")
        return notebook.store.find(name).lineage().attempts[0].snapshots

    each = snapshots("a", "--every 1")
    notebook.run("%config NBResume.every = '4'")
    fourth = snapshots("b")
    assert fourth < each
    monkeypatch.setenv("NBRESUME_EVERY", "1")
    assert snapshots("c") == each
    assert snapshots("d", "--every 4") == fourth


@pytest.mark.parametrize("variable", ["NBRESUME_KEEP", "config"])
def test_keep_counts_what_stays_on_disk(notebook, monkeypatch, variable):
    if variable == "config":
        notebook.run("%config NBResume.keep = 2")
    else:
        monkeypatch.setenv(variable, "2")
    notebook.run("log = []")
    notebook.run(magic() + "for i in range(12): log.append(i)")
    assert len(list((notebook.runs[0].path / "snapshots").glob("*.h5"))) == 2


def test_keep_every_keeps_for_good(notebook):
    notebook.run("log = []")
    notebook.run(magic("--keep 1 --keep-every 5") + "for i in range(12): log.append(i)")
    assert [s.seq for s in notebook.runs[0].snapshots()] == [0, 5, 10, 13]


def test_a_store_of_the_cells_own(notebook):
    notebook.run("log = []")
    notebook.run(magic("--store 'else where'") + "for i in range(3): log.append(i)")
    assert list((notebook.folder / "else where").glob("t-*"))
    assert notebook.runs == []


def test_the_store_stays_where_the_extension_was_loaded(notebook):
    notebook.run("import os; os.makedirs('sub'); os.chdir('sub'); log = []")
    notebook.run(magic() + "for i in range(3): log.append(i)")
    assert len(notebook.runs) == 1


@pytest.mark.parametrize("variable", ["NBRESUME_EVERY=often", "NBRESUME_KEEP=0", "NBRESUME_ON_RESTART=maybe"])
def test_a_wrong_value_in_the_environment_is_told(notebook, monkeypatch, capsys, variable):
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name, value)
    notebook.run("log = []")
    notebook.fails("%%resumable t --vars log\nfor i in range(3): log.append(i)")
    assert value in "".join(capsys.readouterr())
    assert notebook["log"] == []


def test_plan_tells_what_each_statement_does_and_runs_nothing(notebook, capsys):
    notebook.run("log, lr = [], 0.1")
    notebook.run(
        magic("--plan") + "x = open('made', 'w')\nfor i in range(3):\n    log.append(i * lr)\nlog.append('end')\n1 / 0"
    )
    told = capsys.readouterr().out
    assert notebook["log"] == []
    assert "x" not in notebook
    assert not (notebook.folder / "made").exists()
    assert not (notebook.folder / ".nbresume").exists()
    for word in ("for i in range(3)", "log", "lr", "0.1"):
        assert word in told


def test_plan_tells_what_becomes_of_each_name_and_how_large_it_is(notebook, capsys):
    """Saved with its size, an input with its fingerprint, made again, missing: one line a name, before anything runs."""
    notebook.run("import numpy as np, threading\nw = np.zeros(1000)\nlr, lock, cfg = 0.1, threading.Lock(), {'a': 1}")
    cell = "for i in range(3):\n    with lock: w += lr * cfg['a']\n"
    notebook.run("%%resumable t --vars w,gone --plan\n" + cell)
    told = capsys.readouterr().out
    lines = {line.split()[0]: " ".join(line.split()) for line in told.splitlines() if line.strip()}

    assert lines["w"] == "w saved declared; float64 array (1000,) 8.1 kB"
    assert lines["i"] == "i saved bound by the cell"
    assert lines["cfg"].startswith("cfg saved a container from outside; {'a': 1}")
    assert re.fullmatch(r"lr input [0-9a-f]{8} 0\.1", lines["lr"])
    assert lines["lock"] == "lock made again lock can't be saved; compared by its structure"
    assert lines["gone"].startswith("gone missing neither there nor bound")
    assert lines["Missing:"] == "Missing: gone. Run the cells that make them first."


def test_plan_says_what_would_be_refused(notebook, capsys):
    """The refusal of the first run, told where nothing is lost yet."""
    notebook.run("import threading\nlock = threading.Lock()")
    notebook.run("%%resumable t --vars lock --plan\nfor i in range(3):\n    pass\n")

    assert "Would be refused: cannot save 'lock' (_thread.lock)" in capsys.readouterr().out


def test_strict_refuses_what_would_be_added(notebook, capsys):
    notebook.run("log = []")
    notebook.fails(magic("--strict") + "total = 0\nfor i in range(3):\n    total += i\n    log.append(i)")
    told = "".join(capsys.readouterr())
    assert "total" in told
    assert "--vars" in told
    notebook.restart()
    notebook.run("log = []")
    notebook.run(
        "%%resumable u --vars log,total,i --strict\ntotal = 0\nfor i in range(3):\n    total += i\n    log.append(i)"
    )


def test_what_is_added_is_said_once(notebook, capsys):
    notebook.run("log = []")
    notebook.run(magic() + "total = 0\nfor i in range(5):\n    total += i\n    log.append(i)")
    assert capsys.readouterr().out.count("also saving") == 1


def test_rebuild_names_are_never_saved(notebook):
    import threading

    notebook.run("log = []\nimport threading")
    cell = (
        magic("--rebuild lock")
        + "lock = threading.Lock()\nfor i in range(6):\n    with lock: log.append(i)\n    if i == 3 and not go: raise ValueError\n"
    )
    notebook.run("go = False")
    notebook.fails(cell.replace("not go", "True"))
    notebook.restart()
    notebook.run("log = []\nimport threading\ngo = False")
    notebook.fails(cell.replace("not go", "True"))
    assert isinstance(notebook["lock"], type(threading.Lock()))


# ------------------------------------------------------------------ pre-flight and the API


@pytest.mark.parametrize(
    ("before", "path"),
    [
        ("import threading\nlog = [threading.Lock()]", "log[0]"),
        ("import sqlite3\nclass C: pass\nlog = C()\nlog.db = sqlite3.connect(':memory:')", "log.db"),
        ("log = (x for x in [1])", "log"),
        ("log = {'f': open('x', 'w')}", "log['f']"),
    ],
)
def test_a_declared_name_that_cannot_be_saved_is_refused_before_anything_runs(notebook, capsys, before, path):
    notebook.run(before + "\nran = []")
    error = notebook.fails(magic() + "ran.append('set-up')\nfor i in range(3): ran.append(i)")
    assert path in str(error)
    assert notebook["ran"] == []
    assert notebook.runs == []
    assert "Traceback" not in capsys.readouterr().out


def test_an_undeclared_object_that_the_loop_does_not_touch_never_matters(notebook):
    notebook.run("import threading, sqlite3\nlock, db, log = threading.Lock(), sqlite3.connect(':memory:'), []")
    notebook.run(magic() + "for i in range(3): log.append(i)")


ASKS = "import nbresume\nlog = []\ndef ask():\n    c = nbresume.current()\n    return c.name, c.attempt, c.resumed, c.cursor\n"


def test_current_tells_the_cell_about_its_run(notebook):
    notebook.run(ASKS)
    notebook.run(
        magic() + "here = nbresume.current()\nfor i in range(3):\n    for j in range(2):\n"
        "        log.append((*ask(), here.step_key))\n"
    )
    name, number, resumed, cursor, key = notebook["log"][3]
    assert (name, number, resumed, cursor) == ("t", 1, False, (("i", 1), ("j", 1)))
    assert key == f"{notebook.runs[0].id}/1:i=1/2:j=1"
    assert len({row[4] for row in notebook["log"]}) == 6


def test_current_tells_a_resumed_attempt_also_where_it_was_kept_in_a_variable(notebook):
    """Restored from the snapshot, it tells of the attempt that asks, not of the one that saved it."""
    notebook.run(ASKS + "stop = True")
    cell = (
        magic()
        + "here = nbresume.current()\nlog = [here.resumed]\nfor i in range(4):\n    log.append((here.attempt, here.resumed, ask()))\n    if i == 1 and stop: raise ValueError\n"
    )
    notebook.fails(cell.replace("and stop", ""))
    notebook.restart()
    notebook.run(ASKS + "stop = True")
    notebook.fails(cell.replace("and stop", ""))
    assert notebook["log"][0] is False  # the set-up ran again, and the saved list was laid over it
    assert notebook["log"][2] == (2, True, ("t", 2, True, (("i", 1),)))


def test_a_function_that_asks_works_in_a_plain_cell_too(notebook):
    """Neutral values, so that the same function serves both; but no idempotency key that two runs would share."""
    notebook.run(ASKS)
    assert notebook.run("ask()") == ("", 1, False, ())
    assert "plain" in repr(nbresume.current())
    with pytest.raises(NotFoundError, match="%%resumable"):
        _ = nbresume.current().step_key


def test_a_repeated_launch_is_an_attempt_that_resumes_nothing(tmp_path):
    """Death before the first snapshot: ``attempt`` counts it, ``resumed`` is false, and nothing is skipped for it."""
    cell = "%%resumable t --vars log --every 1\nlog = []\nfor i in range(2):\n    log.append(ask())\nprint(log)"
    assert attempt(ASKS, cell, tmp_path, kill_at=1, when="before").status == "killed"
    told = attempt(ASKS, cell, tmp_path).printed
    assert "[('t', 2, False, (('i', 0),)), ('t', 2, False, (('i', 1),))]" in told


def test_the_api_tells_the_runs_of_the_loaded_store(notebook):
    interrupted(notebook)
    (found,) = nbresume.runs()
    assert (found.name, found.state) == ("t", "interrupted")
    assert nbresume.open_run("t").id == found.id
    with pytest.raises(NotFoundError):
        nbresume.open_run("other")


def test_the_words_of_the_line_magic(notebook, capsys):
    interrupted(notebook)
    for word in ("runs", "show t", "verify t", "log t", "continue t"):
        capsys.readouterr()
        notebook.run(f"%nbresume {word}")
        assert capsys.readouterr().out.strip() or word == "log t"
    notebook.fails("%nbresume show nobody")
    told = "".join(capsys.readouterr())
    assert "nobody" in told
    assert "Traceback" not in told


def test_a_new_kernel_shows_the_offer(notebook, capsys):
    interrupted(notebook)
    capsys.readouterr()
    notebook.restart()
    told = capsys.readouterr().out
    assert "t" in told
    assert "interrupted" in told


# ------------------------------------------------------------------ what is on disk is not to be believed


def damaged(notebook, which) -> str:
    cell = interrupted(notebook)
    for path in which(sorted((notebook.runs[0].path / "snapshots").glob("*.h5"))):
        path.write_bytes(path.read_bytes()[:-300])
    return cell


def test_a_bad_newest_snapshot_falls_back_aloud_and_comes_out_the_same(notebook, capsys):
    cell = damaged(notebook, lambda paths: paths[-1:])
    notebook.fails(cell)
    assert "can't be believed" in capsys.readouterr().out
    assert notebook["log"] == [i * 0.1 for i in range(4)]
    assert [note.kind for note in notebook.runs[0].lineage().notes] == ["rejected"]


def test_all_bad_is_an_error_and_never_a_first_run(notebook, capsys):
    cell = damaged(notebook, lambda paths: paths)
    before = notebook.files()
    assert isinstance(notebook.fails(cell), CorruptError)
    assert notebook["log"] == []
    assert {k: v for k, v in notebook.files().items() if not k.endswith(("owner", "lock"))} == {
        k: v for k, v in before.items() if not k.endswith(("owner", "lock"))
    }
    assert len(notebook.runs) == 1
    notebook.fails(cell.replace("--every 1", "--on-restart supersede"))
    assert len(notebook.runs) == 2


def test_an_unreadable_record_is_never_a_first_run(notebook):
    cell = interrupted(notebook)
    (notebook.runs[0].path / "run.json").write_text("{")
    before = notebook.files()
    assert isinstance(notebook.fails(cell), StoppedError)
    assert notebook.files() == before


def test_a_torn_journal_line_loses_nothing_but_itself(notebook):
    cell = interrupted(notebook)
    journal = notebook.runs[0].path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    notebook.fails(cell)
    assert notebook["log"] == [i * 0.1 for i in range(4)]


# ------------------------------------------------------------------ five kills, one story


def test_five_kills_tell_a_complete_lineage(tmp_path):
    cell = "%%resumable t --vars log --every 1 --on-restart continue\nlog = []\nfor i in range(9):\n    log.append((i, random.random()))\n"
    for number in range(5):
        assert attempt("import random", cell, tmp_path, kill_at=2, seed=number).status == "killed"
    last = attempt("import random", cell, tmp_path, names=["log"], seed=99)
    assert last.status == "ended", last.error
    (run,) = (tmp_path / ".nbresume").glob("t-*")
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    assert [event["attempt"] for event in events if event["event"] in ("launched", "resumed")] == [1, 2, 3, 4, 5, 6]
    assert events[-1]["event"] == "completed"
    plain = attempt("import random", cell.partition("\n")[2], tmp_path, names=["log"])
    assert plain.values == last.values


@pytest.mark.parametrize("kind", ["jobs = []", "class Jobs(list): pass\njobs = Jobs()"])
def test_an_input_that_the_loop_makes_unsaveable_is_refused_and_never_taken_for_unchanged(tmp_path, kind):
    """It could be saved at the launch: what became of it would be forgotten by a resume."""
    setup = f"{kind}\ndef work(i):\n    jobs.append(x for x in [i])\n    return len(jobs)\n"
    cell = "%%resumable t --vars log --every 1\nlog = []\nfor i in range(4):\n    log.append(work(i))\n"
    found = attempt(setup, cell, tmp_path)
    assert found.status == "error"
    assert found.error.startswith("UnsaveableError: cannot save 'jobs"), found.error


PRINTS = """\
%%resumable train --vars n --every 1 --on-restart continue
print("set-up")
n = 0
for i in range(3):
    print("step", i)
    n += i
print("end")
"""


@pytest.mark.parametrize("boundary", [1, 2, 4])
@pytest.mark.parametrize("when", ["before", "after"])
def test_no_line_stands_twice_in_the_log_when_the_set_up_prints_again(tmp_path, boundary, when):
    """What a set-up prints again on a resume, or a launch that is repeated, stands in the run's log already."""
    killed = attempt("", PRINTS, tmp_path, kill_at=boundary, when=when)
    assert killed.status == "killed"
    assert attempt("", PRINTS, tmp_path).status == "ended"
    (log,) = (tmp_path / ".nbresume").glob("*/log.txt")
    assert log.read_text().splitlines() == ["set-up", "step 0", "step 1", "step 2", "end"]


@pytest.mark.parametrize("every", ["3", "60s", "auto"])
def test_what_the_first_iteration_makes_impossible_is_refused_after_it_whatever_every_says(notebook, every):
    """A loop is not let run for hours before its first snapshot says that it could not have been saved."""
    cell = "import threading\nlog, held = [], []\nfor i in range(9):\n    log.append(i)\n    held.append(threading.Lock())\n"
    error = notebook.fails(f"%%resumable t --vars log,held --every {every}\n{cell}")
    assert isinstance(error, RefusedError)
    assert "held[0]" in str(error)
    assert notebook["log"] == [0]


def test_the_size_of_a_table_is_told_without_a_look_at_its_texts(notebook):
    """Its ``__sizeof__`` looks at each of them, which took longer than to save it."""
    notebook.run("import pandas as pd\nframe = pd.DataFrame({'text': ['word'] * 1000, 'x': range(1000)})")
    notebook.run("%%resumable t --vars frame --every 1\nfor i in range(2):\n    frame['x'] += 1")
    facts = next(event.facts for event in notebook.runs[0].events() if event.kind == "snapshot")
    assert facts["sizes"]["frame"] == int(notebook["frame"].memory_usage().sum())
