"""A run from its launch to its end, killed at every step that the disk sees: the story told afterwards is whole."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from _support import LIMIT, Kernel

from nbresume import _fs
from nbresume._card import text
from nbresume._lineage import CLOSED
from nbresume._session import say, view
from nbresume._store import Store
from nbresume.errors import ChangedError, RefusedError, StoppedError, StoreError
from nbresume.testing import Outcome, attempt

OPERATIONS = (
    "append",
    "copy_prefix",
    "make_folder",
    "move",
    "remove",
    "replace_bytes",
    "sync_data",
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


# ------------------------------------------------------------------ completed, and run again


def ends(code: str, notebook, error: type[BaseException] | None = None) -> None:
    if error is None:
        notebook.run(code)
    else:
        assert isinstance(notebook.fails(code), error)


MODEL = (
    "%%resumable t --vars model --every 1 {}\nmodel = {{'w': 0}}\nfor i in range(3):\n    model['w'] += 1\nmodel['w']\n"
)


def test_a_result_worked_on_since_is_not_overwritten_without_a_word(notebook, capsys):
    """Fine-tuned in a later cell of the same kernel: running the first one again stops, and says how to go on."""
    notebook.run(MODEL.format(""))
    notebook.run("model['w'] = 100")
    before = notebook.files()
    error = notebook.fails(MODEL.format(""))
    assert isinstance(error, ChangedError)
    assert error.differences == ("model",)
    assert notebook["model"] == {"w": 100}
    assert notebook.files() == before
    notebook.run("%nbresume continue t")
    capsys.readouterr()
    notebook.run(MODEL.format(""))
    assert "model" in capsys.readouterr().out
    assert notebook["model"] == {"w": 3}
    notebook.run(MODEL.format(""))  # untouched since: no question


def test_a_policy_overwrites_what_was_worked_on_and_says_so(notebook, capsys):
    notebook.run(MODEL.format(""))
    notebook.run("model['w'] = 100")
    capsys.readouterr()
    notebook.run(MODEL.format("--on-restart continue"))
    assert "changed since the cell ended" in capsys.readouterr().out
    assert notebook["model"] == {"w": 3}


def test_an_interrupted_run_asks_too_before_it_rolls_back_over_work_by_hand(notebook):
    code = MODEL.format("").replace("    model", "    if i == 2 and model['w'] == 2: raise ValueError\n    model")
    notebook.fails(code)
    notebook.run("model['w'] = -5")
    assert isinstance(notebook.fails(code), ChangedError)
    assert notebook["model"] == {"w": -5}


def test_run_all_in_the_same_kernel_asks_nothing(notebook):
    """The cells above make their names anew, other cells use the same loop variable: that is no work to be lost."""
    cells = [
        "log, rows = [], []",
        "%%resumable a --vars log --every 1\nfor i in range(3): log.append(i)",
        "for i in 'xyz': rows.append(i)",
    ]
    for _ in range(3):
        for code in cells:
            notebook.run(code)
        assert (notebook["log"], notebook["rows"]) == ([0, 1, 2], ["x", "y", "z"])
    (run,) = notebook.runs
    assert len(run.lineage().attempts) == 1


# ------------------------------------------------------------------ behind the last iteration

TAIL = (
    "%%resumable t --vars log --every 1 --sync\n"
    "for i in range(3):\n    log.append(i)\n    done.append(i)\n"
    "total = sum(log)\n"
    "tick()\n"
    "if not ready(): {}\n"
    "print('total', total)\n"
    "total\n"
)
TAIL_SETUP = (
    "import os, signal\nlog, done = [], []\n"
    "def ready(): return os.path.exists('ready')\n"
    "def tick(): open('ticks', 'a').write('tail ')\n"
)


@pytest.mark.parametrize("end", ["raise ValueError('tail broke')", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_death_behind_the_last_iteration_leaves_only_what_follows_to_be_done(tmp_path, end):
    """An error or a kill in the tail: the run is interrupted, and running it again runs the tail alone."""
    code = TAIL.format(end)
    first = attempt(TAIL_SETUP, code, tmp_path)
    assert first.status == ("error" if "raise" in end else "killed")
    (run,) = Store(tmp_path / ".nbresume")
    lineage = run.lineage()
    assert lineage.state == "interrupted"
    told = ("exception", "ValueError: tail broke") if "raise" in end else ("vanished", "")
    assert (lineage.cause, lineage.attempts[0].why) == told
    (tmp_path / "ready").touch()
    last = attempt(TAIL_SETUP, code.replace("\n", "\nx = 1\n", 1), tmp_path)
    assert last.status == "error"  # another cell: what has run is not what it was
    last = attempt(TAIL_SETUP, code, tmp_path, names=["log", "total"])
    assert last.status == "ended", last.error
    assert "total 3" in last.printed
    assert run.lineage().attempts[1].snapshots == 1  # the end: no iteration ran
    assert run.lineage().made_by == (1, 2)
    assert "made by        attempts 1, 2" in text(view(run))


NOTEBOOK = ["log = []"] + [
    f"%%resumable {name} --vars log --every 1 --sync\nfor i in range(4):\n    log.append(({name!r}, i))\n    if os.environ.get('DIE') == f'{name}{{i}}': os.kill(os.getpid(), 9)\nlen(log)\n"
    for name in ("a", "b", "c")
]


def test_run_all_restores_the_first_cell_continues_the_second_and_starts_the_third(tmp_path, monkeypatch):
    """A notebook of several resumable cells, killed in the second; each shows its own display again."""
    monkeypatch.setenv("DIE", "b2")
    code = "import os\nfor cell in CELLS:\n    get_ipython().run_cell(cell).raise_error()\n"
    setup = f"CELLS = {NOTEBOOK!r}"
    assert attempt(setup, code, tmp_path).status == "killed"
    monkeypatch.delenv("DIE")
    found = attempt(setup, code, tmp_path, names=["log"])
    assert found.status == "ended", found.error
    told = found.printed
    places = [
        told.index(words) for words in ("a: already complete", "\n4\n", "continued b, attempt 2, from i 2 of 4 done")
    ]
    assert places == sorted(places)
    assert told.count("\n4\n") == 1  # the stored display of the first
    assert [(run.name, len(run.lineage().attempts)) for run in Store(tmp_path / ".nbresume")] == [
        ("a", 1),
        ("b", 2),
        ("c", 1),
    ]
    again = attempt(setup, code, tmp_path, names=["log"])
    assert again.values["log"] == found.values["log"]
    assert again.printed.count("already complete") == 3


# ------------------------------------------------------------------ how it ended, in words


ENDS = {
    "raise ValueError('bad')": ("exception", "ValueError: bad"),
    "raise KeyboardInterrupt": ("stop", ""),
    "os.kill(os.getpid(), signal.SIGINT)": ("stop", "SIGINT"),
    "os.kill(os.getpid(), signal.SIGSEGV)": ("vanished", ""),
    "os.kill(os.getpid(), signal.SIGKILL)": ("vanished", ""),
    "os.kill(os.getpid(), signal.SIGTERM)": ("vanished", ""),
    "os.kill(os.getpid(), signal.SIGHUP)": ("vanished", ""),
    "os._exit(0)": ("vanished", ""),
}


@pytest.mark.parametrize("end", ENDS)
def test_how_an_attempt_ended_is_told_as_far_as_it_is_known(tmp_path, end):
    """No cause is ever invented: out of memory, a crash and a kill all leave no last word."""
    code = f"%%resumable t --vars log --every 1\nfor i in range(3):\n    log.append(i)\n    if i == 1 and not os.path.exists('go'): {end}\n"
    setup = "import faulthandler, os, signal\nfaulthandler.disable()\nlog = []"  # pytest's own, in the forked process
    attempt(setup, code, tmp_path)
    (run,) = Store(tmp_path / ".nbresume")
    lineage = run.lineage()
    assert (lineage.state, lineage.cause, lineage.attempts[0].why) == ("interrupted", *ENDS[end])
    shown = text(view(run))
    assert (ENDS[end][1] or "without a last word") in shown or end == "raise KeyboardInterrupt"
    (tmp_path / "go").touch()
    assert attempt(setup, code, tmp_path, names=["log"]).values["log"][1] == "[0, 1, 2]"


def test_a_cell_refused_at_its_first_boundary_is_closed_as_failed_and_its_repaired_form_starts(notebook, capsys):
    """Nothing of it can be continued: it must not stand in the way of the cell that was put right."""
    notebook.run("log = []")
    code = "%%resumable t --vars log --every 1\nfor i in range(3):\n    log.append(i)\n    g = (x for x in [1, 2])\n    for y in range(2): log.append(next(g))\n"
    assert isinstance(notebook.fails(code), RefusedError)
    (run,) = notebook.runs
    assert run.lineage().state == "failed"
    assert "UnsaveableError: cannot save 'g'" in text(view(run))
    notebook.run("log = []\ndel g")
    capsys.readouterr()
    notebook.run(code.replace("g = (x for x in [1, 2])", "g = [1, 2]").replace("next(g)", "g[y]"))
    assert run.id in capsys.readouterr().out
    assert notebook.runs[1].lineage().state == "completed"
    assert notebook.runs[1].record["after"] == run.id


def test_a_store_that_cannot_be_made_is_one_sentence_and_nothing_runs(notebook, capsys):
    (notebook.folder / "taken").write_text("a file")
    notebook.run("log = []")
    error = notebook.fails("%%resumable t --vars log --store taken/runs\nfor i in range(3): log.append(i)")
    assert isinstance(error, StoreError)
    assert notebook["log"] == []
    told = capsys.readouterr().out
    assert "Traceback" not in told
    assert "no runs can be kept in" in told
    assert "--store" in told


# ------------------------------------------------------------------ real kernels

SLOW = "%%resumable t --vars log --every 1\nfor i in range({}):\n    log.append(i)\n    print(i, flush=True)\n    time.sleep(0.1)\n"
KERNEL = "%load_ext nbresume\nimport time\nlog = []\n"


@pytest.mark.kernel
def test_a_shutdown_of_a_busy_kernel_is_a_stop_with_a_last_snapshot(tmp_path):
    """Jupyter asks with an interrupt before it kills: the loop ends at its boundary, and the journal tells of it."""
    with Kernel(tmp_path) as kernel:
        kernel.run(KERNEL)
        kernel.finish(kernel.send(SLOW.format(400)), until="3\n")
        kernel.manager.shutdown_kernel(now=False)
    (run,) = Store(tmp_path / ".nbresume")
    lineage = run.lineage()
    assert (lineage.cause, lineage.attempts[0].why) == ("stop", "SIGINT")


@pytest.mark.kernel
def test_a_kernel_restarted_under_the_same_id_is_another_process(tmp_path):
    """The server's restarter keeps id and connection file; nothing but the process says that all is gone."""
    with Kernel(tmp_path) as kernel:
        kernel.run(KERNEL)
        kernel.finish(kernel.send(SLOW.format(30)), until="3\n")
        kernel.manager.restart_kernel(now=True)
        kernel.client.stop_channels()
        kernel.client = kernel.manager.client()
        kernel.client.start_channels()
        kernel.client.wait_for_ready(timeout=LIMIT)
        told, error = kernel.run(KERNEL)
        assert "interrupted (vanished)" in told, error
        told, error = kernel.run(SLOW.format(30))
        assert not error, error
        assert ", attempt 2, from" in told
        assert kernel.run("log == list(range(30))")[0].strip() == "True"


# ------------------------------------------------------------------ interrupts, and what a resume says


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("options", ["--sync", ""], ids=["before the loop goes on", "behind it"])
def test_an_interrupt_in_the_middle_of_a_commit_waits_for_it(tmp_path, monkeypatch, times, options):
    """The snapshot is whole, the cell ends with KeyboardInterrupt, and running it again comes out the same."""
    want = whole(tmp_path / "plain")
    folder = tmp_path / "interrupted"
    folder.mkdir()
    calls = [0]
    real = _fs.sync_data

    def unlucky(fd):
        calls[0] += 1
        if calls[0] == 2:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        real(fd)

    monkeypatch.setattr(_fs, "sync_data", unlucky)
    assert attempt(SETUP, cell(options), folder).error.startswith("KeyboardInterrupt")
    monkeypatch.setattr(_fs, "sync_data", real)
    (run,) = Store(folder / ".nbresume")
    assert run.lineage().cause == "stop"
    assert not list((run.path / "snapshots").glob(".*"))
    assert all(snapshot.verify() is None for snapshot in run.snapshots())
    assert whole(folder, cell(), seed=9).values == want.values


def test_the_resume_says_from_where_and_the_journal_says_all(tmp_path):
    """Run, place and random streams for the person; snapshot, attempt, cursor and streams in the journal."""
    code = "%%resumable t --vars log --every 1\nlog = []\nfor e in range(3):\n    for b in 'xyz':\n        log.append((e, b))\n"
    assert attempt("", code, tmp_path, kill_at=8).status == "killed"
    told = attempt("", code, tmp_path).printed
    rng = "random, numpy, torch" if "torch" in sys.modules else "random, numpy"
    line = f"continued t, attempt 2, from e 2 of 3, b 1 of 3 done; rng: {rng}; to start anew instead: %nbresume supersede t"
    assert [one for one in told.splitlines() if "attempt 2" in one] == [line]
    assert told.endswith(f"{line}\n")
    (run,) = Store(tmp_path / ".nbresume")
    (resumed,) = [event for event in run.events() if event.kind == "resumed"]
    assert resumed.attempt == 2
    assert set(resumed.facts) == {"snapshot", "where", "cursor", "rng", "log"}
    assert resumed.facts["cursor"] == [["e", 1, 3], ["b", 1, 3]]
    assert resumed.facts["snapshot"] == "0001-00000007"
    assert [event.kind for event in run.events()][-2:] == ["reconciled", "completed"]
