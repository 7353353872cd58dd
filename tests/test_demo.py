"""``nbresume demo``: what it shows is real, and it can fail."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from nbresume import _demo
from nbresume.errors import NbresumeError

NOTEBOOK = Path(_demo.__file__).parents[1] / "notebooks" / "quickstart.ipynb"


@pytest.mark.kernel
def test_demo_kills_a_kernel_continues_and_finds_every_bit_equal(tmp_path):
    """The command of the README, run as a person runs it."""
    begun = time.monotonic()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from nbresume._cli import main; sys.exit(main())",
            "demo",
            "--folder",
            tmp_path / "demo",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - begun < 60
    for name in ("w", "velocity", "history", "np.random", "random"):
        assert any(line.split()[:1] == [name] and line.endswith("equal") for line in done.stdout.splitlines())
    assert "DIFFERENT" not in done.stdout
    assert done.stderr == ""

    (journal,) = (tmp_path / "demo" / "killed" / ".nbresume").glob("train-*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    kinds = [event["event"] for event in events if event["event"] != "snapshot"]
    assert kinds[0] == "launched"
    assert "resumed" in kinds
    assert kinds[-1] == "completed"
    resumed = next(event for event in events if event["event"] == "resumed")
    assert resumed["attempt"] == 2
    assert resumed["snapshot"].startswith("0001-")
    for snapshot in (journal.parent / "snapshots").glob("*.h5"):
        assert snapshot.name in done.stdout


def test_demo_says_what_differs_and_ends_with_1(tmp_path, monkeypatch):
    """A comparison that can't fail would show nothing."""
    out = io.StringIO()
    faults = _demo._compare(out, {"w": "a" * 64, "random": "b" * 64}, {"w": "a" * 64, "random": "c" * 64})
    assert faults == [f"random is {'c' * 16}, the reference has {'b' * 16}"]
    assert "random     bbbbbbbbbbbbbbbb  DIFFERENT" in out.getvalue()
    assert _demo._compare(out, {"w": "a" * 64}, {}) == [f"w is missing, the reference has {'a' * 16}"]


def journal(place: _demo.Place, *lines: dict) -> None:
    folder = place.store / f"train-{len(place.journals()):06x}"
    folder.mkdir(parents=True)
    text = "".join(json.dumps({"attempt": 1, "at": "2026-01-01T00:00:00+00:00", **line}) + "\n" for line in lines)
    (folder / "journal.jsonl").write_text(text)


def test_demo_is_not_satisfied_by_equal_bits_of_a_run_that_started_anew(tmp_path):
    """The notebook seeds its streams, so a silent fresh start gives equal bits."""
    place = _demo.Place(tmp_path)
    journal(place, {"event": "launched"}, {"event": "completed"})
    assert _demo._not_continued(place) == ["the second kernel did not go on from a snapshot"]
    journal(place, {"event": "launched"})
    assert _demo._not_continued(place) == ["2 runs were recorded where one was continued"]


def test_demo_is_satisfied_by_one_run_that_went_on_from_a_snapshot(tmp_path):
    place = _demo.Place(tmp_path)
    journal(
        place,
        {"event": "launched"},
        {"event": "resumed", "attempt": 2, "snapshot": "0001-00000004"},
        {"event": "completed", "attempt": 2},
    )
    assert _demo._not_continued(place) == []


def test_demo_names_the_missing_package_and_the_way_out(monkeypatch):
    monkeypatch.setattr(_demo, "find_spec", lambda name: None if name == "ipykernel" else object())
    with pytest.raises(NbresumeError, match=r"needs ipykernel.*pip install 'nbresume\[demo\]'"):
        _demo.run_demo(io.StringIO(), None)


def test_demo_does_not_run_on_top_of_an_earlier_one(tmp_path):
    """The second would find a completed run and show nothing."""
    journal(_demo.Place(tmp_path / "killed"), {"event": "launched"})
    with pytest.raises(NbresumeError, match="holds runs already"):
        _demo.run_demo(io.StringIO(), tmp_path)


def test_the_shipped_notebook_is_clean_and_has_the_cells_that_the_demo_needs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert sum(_demo._is_training(cell.source) for cell in code) == 1
    assert code[0].source == "%load_ext nbresume"


def test_the_demo_finds_the_notebook_of_a_checkout():
    assert _demo._notebook() == NOTEBOOK
