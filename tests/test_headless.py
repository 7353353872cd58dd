"""Without a front end: papermill, nbclient and nbconvert, killed and run again; stores in other folders."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import pytest
from _support import LIMIT, Kernel

from nbresume._store import Store, enter
from nbresume._store import elsewhere as index

pytestmark = pytest.mark.kernel

FIRST = """%load_ext nbresume
import os, random, signal, time
random.seed(1)
first, log = [], []
"""
PARAMETERS = "lr = 0.1\ndie = False\n"
WARM = "%%resumable warm --vars first --every 1 --sync\nfor k in range(3):\n    first.append(random.random())\nprint('warm', len(first))\nlen(first)\n"
TRAIN = (
    "%%resumable train --vars log --every 1 --sync OPTIONS\n"
    "for i in range(8):\n    log.append((i, lr * random.random() + first[-1]))\n"
    "    if i == 4 and os.environ.get('DIE'): os.kill(os.getpid(), signal.SIGKILL)\n"
    "print('trained', len(log))\n"
)
LAST = "print('RESULT', log)\n"


def write(path: Path, options: str = "", *, metadata: dict | None = None) -> None:
    cells = [
        nbformat.v4.new_code_cell(text) for text in (FIRST, PARAMETERS, WARM, TRAIN.replace("OPTIONS", options), LAST)
    ]
    cells[1].metadata["tags"] = ["parameters"]
    for cell in cells:
        cell.metadata.update(metadata or {})
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec}), path)


CLIENT = """
import nbformat
from nbclient import NotebookClient
nb = nbformat.read("n.ipynb", 4)
try:
    NotebookClient(nb, timeout=120).execute()
finally:
    nbformat.write(nb, "out.ipynb")
"""
RUNNERS = {
    "papermill": ["-m", "papermill", "--no-progress-bar", "n.ipynb", "out.ipynb"],
    "papermill on its own output": ["-m", "papermill", "--no-progress-bar", "out.ipynb", "out.ipynb"],
    "nbconvert": ["-m", "nbconvert", "--to", "notebook", "--execute", "--output", "out.ipynb", "n.ipynb"],
    "nbclient": ["-c", CLIENT],
}


def execute(runner: str, folder: Path, *more: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a notebook as a scheduler would: no terminal, no standard input."""
    return subprocess.run(
        [sys.executable, *RUNNERS[runner], *more],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT * 2,
        check=False,
    )


def outputs(folder: Path) -> str:
    """Return what a person reads in the output notebook."""
    notebook = nbformat.read(folder / "out.ipynb", 4)
    found: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            lines = [*output.get("traceback", []), str(output.get("data", {}).get("text/plain", ""))]
            found.append(output.get("text", "") or "\n".join(["", *lines, ""]))  # one print may be several outputs
    return "".join(found)


def result(folder: Path) -> str:
    return next(line for line in outputs(folder).splitlines() if line.startswith("RESULT"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> str:
    """What the notebook comes to when nobody disturbs it."""
    folder = tmp_path_factory.mktemp("plain")
    write(folder / "n.ipynb")
    done = execute("papermill", folder)
    assert done.returncode == 0, done.stderr
    return result(folder)


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_killed_notebook_run_again_restores_continues_and_comes_out_the_same(tmp_path, plain, runner):
    """The kernel is killed in the second cell: the first is restored, the second goes on, and nobody was asked."""
    write(tmp_path / "n.ipynb")
    died = execute("papermill" if "papermill" in runner else runner, tmp_path, DIE="1")
    assert died.returncode != 0
    done = execute(runner, tmp_path)
    assert done.returncode == 0, done.stderr
    told = outputs(tmp_path)
    assert result(tmp_path) == plain
    assert "warm: already complete" in told
    assert "continued train, attempt 2, from i 4 of 8 done" in told
    assert [len(run.lineage().attempts) for run in Store(tmp_path / ".nbresume")] == [1, 2]


def test_a_finished_notebook_run_again_on_its_own_output_computes_nothing(tmp_path, plain):
    write(tmp_path / "n.ipynb")
    for runner in ("papermill", "papermill on its own output"):
        assert execute(runner, tmp_path).returncode == 0
        assert result(tmp_path) == plain
    assert outputs(tmp_path).count("already complete") == 2


def test_a_changed_parameter_is_a_visible_stop_and_an_exit_status(tmp_path):
    """The difference stands in the output notebook as text; the old run is as it was; no status 0."""
    write(tmp_path / "n.ipynb")
    execute("papermill", tmp_path, DIE="1")
    before = {path: path.read_bytes() for path in (tmp_path / ".nbresume").rglob("*.h5")}
    done = execute("papermill", tmp_path, "-p", "lr", "0.01")
    assert done.returncode != 0
    told = outputs(tmp_path)
    assert "ChangedError" in told
    assert "lr: 0.1 -> 0.01" in told
    assert "supersede" in told
    assert {path: path.read_bytes() for path in (tmp_path / ".nbresume").rglob("*.h5")} == before


def test_supersede_in_an_unattended_notebook_is_refused(tmp_path):
    """A scheduler starts the same notebook again and again: each time would throw away the last."""
    write(tmp_path / "n.ipynb", "--on-restart supersede")
    execute("papermill", tmp_path, DIE="1")
    done = execute("papermill", tmp_path)
    assert done.returncode != 0
    assert "OptionError" in outputs(tmp_path)
    assert [run.name for run in Store(tmp_path / ".nbresume")] == ["warm", "train"]


def test_what_the_notebooks_metadata_says_is_never_believed(tmp_path, plain):
    """A runner notes in its output that a cell has completed; only the store knows whether it has."""
    write(tmp_path / "n.ipynb", metadata={"papermill": {"status": "completed", "exception": False}})
    assert execute("nbclient", tmp_path).returncode == 0
    assert result(tmp_path) == plain


# ------------------------------------------------------------------ stores in other folders


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Two folders that are not among temporary files, and an index of their own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    for name in ("tmp", "one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path


LONE = "%load_ext nbresume\nimport os, signal\nlr, log = {}, []\n"
CELL = "%%resumable lone --vars log --every 1 --sync {}\nfor i in range(6):\n    log.append(i * lr)\n    if i == 3 and os.environ.get('DIE'): os.kill(os.getpid(), signal.SIGKILL)\n"


def interrupted(folder: Path) -> None:
    with Kernel(folder) as kernel:
        kernel.run(LONE.format(0.1) + "os.environ['DIE'] = '1'")
        kernel.send(CELL.format(""))
        end = time.monotonic() + LIMIT
        while kernel.manager.is_alive():
            assert time.monotonic() < end


def test_a_run_that_is_interrupted_in_another_folder_is_not_started_afresh_in_silence(elsewhere):
    """papermill from elsewhere, or a notebook that was moved: the cell stops, and both ways that it names work."""
    interrupted(elsewhere / "one")
    with Kernel(elsewhere / "two") as kernel:
        kernel.run(LONE.format(0.1))
        told, error = kernel.run(CELL.format(""))
        assert error.startswith("StoppedError"), told + error
        assert str(elsewhere / "one" / ".nbresume") in error
        assert "i 3 of 6 done" in error or "i 4 of 6 done" in error
        told, error = kernel.run(CELL.format(f"--store {elsewhere / 'one' / '.nbresume'}"))
        assert not error, told + error
        assert ", attempt 2, from" in told
    assert not list(Store(elsewhere / "two" / ".nbresume"))
    with Kernel(elsewhere / "two") as kernel:  # complete there: no run is lost by a start here
        kernel.run(LONE.format(0.1))
        assert kernel.run(CELL.format(""))[1] == ""
    assert len(list(Store(elsewhere / "two" / ".nbresume"))) == 1


def test_a_sweep_over_folders_is_told_of_the_others_and_goes_on(elsewhere):
    """The same cell with another input is another run; it starts, and says what it saw."""
    interrupted(elsewhere / "one")
    with Kernel(elsewhere / "two") as kernel:
        kernel.run(LONE.format(0.2))
        told, error = kernel.run(CELL.format(""))
        assert not error, error
        assert "another run of this cell" in told
        assert "lr: 0.1 -> 0.2" in told


@pytest.mark.parametrize("broken", ["a file in its place", "a store that is gone"])
def test_an_index_that_cannot_be_read_never_stands_in_the_way(elsewhere, broken):
    stores = elsewhere / "data" / "nbresume" / "stores"
    stores.parent.mkdir(parents=True)
    if broken == "a file in its place":
        stores.write_bytes(b"")
    else:
        stores.mkdir()
        (stores / "0").write_bytes(os.fsencode(elsewhere / "gone"))
    with Kernel(elsewhere / "two") as kernel:
        kernel.run(LONE.format(0.1))
        told, error = kernel.run(CELL.format(""))
        assert not error, error
        assert ("index of stores" in told) == (broken == "a file in its place")
        assert kernel.run("log == [i * lr for i in range(6)]")[0].strip() == "True"


def test_what_the_index_holds(elsewhere, monkeypatch):
    """One entry a store, whatever lies in it; none of a store among temporary files; nothing where it is switched off."""
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere / "tmp"))

    def seen() -> list[str]:
        return [run.id for run in index("t", elsewhere / "two", lambda run: True).runs]

    here, temporary = Store(elsewhere / "one"), Store(elsewhere / "tmp" / "x")
    for store in (here, here, temporary):
        store.create("t", {"identity": {}}).note("launched", 1)
        assert enter(store.root) == ""
    assert seen() == [here.find("t").id]
    (elsewhere / "data" / "nbresume" / "stores" / "odd").write_bytes(b"\xff\x00")
    assert seen() == [here.find("t").id]
    here.find("t").note("completed", 1)
    assert seen() == []
    here.create("t", {"identity": {}}).note("launched", 1)
    assert seen() == [here.find("t").id]
    monkeypatch.setenv("NBRESUME_INDEX", "0")
    assert seen() == []
    assert enter(here.root) == ""


def test_a_relative_store_on_the_line_is_not_moved_by_chdir(tmp_path):
    with Kernel(tmp_path) as kernel:
        kernel.run(LONE.format(0.1) + "os.makedirs('sub'); os.chdir('sub')")
        assert kernel.run(CELL.format("--store runs"))[1] == ""
    assert [run.name for run in Store(tmp_path / "runs")] == ["lone"]
