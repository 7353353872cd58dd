"""The benchmark takes every figure that it promises; how large they are is no matter of a test."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import nbresume

ROOT = Path(nbresume.__file__).resolve().parents[1]
BENCHMARKS = ROOT / "tests" / "benchmarks"
ROWS = "changed background scattered twentieth unchanged small objects training frame restore memory snapshots runs whole".split()


def run(script: str, *words: str, cwd: Path, path: str = str(ROOT)) -> subprocess.CompletedProcess[str]:
    """Run a benchmark on a quick disk, where there is one."""
    quick = {"TMPDIR": "/dev/shm"} if Path("/dev/shm").is_dir() else {}
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *words],
        cwd=cwd,
        env={**os.environ, **quick, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """The whole table in a thousandth of its size."""
    folder = tmp_path_factory.mktemp("docs")
    done = run("snapshots.py", "--scale", "0.001", "--rounds", "2", "--docs", str(folder), cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def figures(folder: Path) -> list[dict]:
    return json.loads((folder / "benchmarks" / "snapshots.json").read_text())["figures"]


def test_every_workload_has_its_figures_with_quartiles_around_them(taken):
    found = figures(taken[0])

    assert list(dict.fromkeys(one["row"] for one in found)) == ROWS
    for one in found:
        assert one["low"] <= one["result"] <= one["high"], one
        assert one["pairs"] >= 1
        # The whole cost is a difference of two times: among tiny ones it may be anything.
        assert "whole cost" in one["what"] or min(one["plain"], one["ours"], one["low"]) > 0, one
        assert one["met"] is (None if one["goal"] is None else one["result"] <= one["goal"])


def test_each_goal_is_judged_in_what_is_printed_and_in_the_page(taken):
    folder, printed = taken
    page = (folder / "benchmarks" / "snapshots.txt").read_text()

    for one in figures(folder):
        assert one["what"] in printed
        assert one["what"] in page
    assert len(re.findall(r"\bmet\b|\bNOT MET\b", printed)) == sum(one["goal"] is not None for one in figures(folder))


def test_the_plot_names_every_row_with_a_goal_for_light_and_dark_pages(taken):
    for name in ("light", "dark"):
        drawn = "".join(ElementTree.parse(taken[0] / "_static" / f"snapshots-{name}.svg").getroot().itertext())
        for one in figures(taken[0]):
            assert one["goal"] is None or f"{one['what']} / {one['against']}" in drawn


def test_rows_taken_again_leave_the_others_and_one_that_fails_is_told(taken, tmp_path):
    """A figure that could not be taken is never left out in silence, and an old one never stands in for it."""
    shutil.copytree(taken[0], tmp_path / "docs")
    before = figures(tmp_path / "docs")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "torch.py").write_text("raise ImportError('no torch here')")

    words = ["--only", "training,small", "--scale", "0.001", "--rounds", "3", "--docs", "docs"]
    done = run("snapshots.py", *words, cwd=tmp_path, path=f"{broken}:{ROOT}")

    after = figures(tmp_path / "docs")
    failed = json.loads((tmp_path / "docs" / "benchmarks" / "snapshots.json").read_text())["failed"]
    assert done.returncode == 1
    assert "no torch here" in failed["training"]
    assert "no torch here" in done.stdout
    assert [one["row"] for one in after if one["row"] == "training"] == []
    assert [one["pairs"] for one in after if one["row"] == "small"] != [
        one["pairs"] for one in before if one["row"] == "small"
    ]
    others = [one for one in before if one["row"] not in ("training", "small")]
    assert [one for one in after if one["row"] != "small"] == others


@pytest.mark.parametrize("work", ["tensors", "objects"])
def test_another_tool_and_nbresume_are_taken_at_the_same_work(work, tmp_path):
    ours = run("_peers.py", work, "sync", "--rounds", "2", "--scale", "0.001", cwd=tmp_path)
    theirs = run("_peer_tools.py", "pickle 5", work, "--rounds", "2", "--scale", "0.001", cwd=tmp_path)

    for done, tool in ((ours, "nbresume, sync"), (theirs, "pickle 5")):
        assert done.returncode == 0, done.stderr
        figure = json.loads(done.stdout.splitlines()[-1])
        assert (figure["tool"], figure["work"]) == (tool, work)
        assert 0 < figure["low"] <= figure["result"] <= figure["high"]
