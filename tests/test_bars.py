"""Progress bars: after a resume they stand at k of N, and their pace is that of the iterations that follow."""

from __future__ import annotations

import pytest

from nbresume.testing import attempt

pytestmark = pytest.mark.usefixtures("quick_disk")

BAR = """
import random, tqdm.std as bars
from tqdm import tqdm as Bar
bars.now = 0
bars.time = lambda: bars.now
def display(bar, *_, **__):
    print("bar", bar.n, "of", bar.total, "from", bar.initial, "in", bar.format_dict["elapsed"])
Bar.display = display
def items():
    for i in range(7):
        bars.now += 100
        yield random.random()
"""


@pytest.mark.parametrize(
    "wrapped",
    [
        "Bar(range(7))",
        "Bar(items(), total=7)",
        "enumerate(Bar(items(), total=7))",
        "zip(Bar(items(), total=7), 'abcdefg')",
        "Bar(enumerate(items()), total=7)",
    ],
)
def test_a_bar_counts_neither_items_nor_time_of_the_way_back(tmp_path, wrapped):
    """Killed at 5 of 7: its resume shows 5 of 7 at once, and its pace is that of the iterations that follow."""
    cell = f"%%resumable t --vars log --every 1\nlog = []\nfor x in {wrapped}:\n    log.append(x)\n"
    (tmp_path / "whole").mkdir()
    want = attempt(BAR, cell, tmp_path / "whole", names=["log"]).values["log"]
    assert attempt(BAR, cell, tmp_path, kill_at=6).status == "killed"
    found = attempt(BAR, cell, tmp_path, names=["log"], seed=9)
    assert found.values["log"] == want
    bars = [line for line in found.printed.splitlines() if line.startswith("bar")]
    assert bars[1] == "bar 5 of 7 from 5 in 0"
    assert bars[-1].startswith("bar 7 of 7 from 5 in")


def test_the_bar_of_an_outer_loop_comes_out_full(tmp_path):
    """The iteration in progress is done with an item that did not come through the new bar."""
    cell = (
        "%%resumable t --vars log --every 1\nlog = []\nfor e in Bar(range(3)):\n    for b in Bar(range(4)):\n"
        "        log.append((e, b))\n"
    )
    assert attempt(BAR, cell, tmp_path, kill_at=10).status == "killed"
    bars = [line[:12] for line in attempt(BAR, cell, tmp_path).printed.splitlines() if line.startswith("bar")]
    assert bars[:2] == ["bar 0 of 3 f", "bar 0 of 4 f"]
    assert {*bars[2:4]} == {"bar 1 of 3 f", "bar 2 of 4 f"}
    assert bars[-1] == "bar 3 of 3 f"


def test_a_bar_that_the_body_moves_counts_on_from_where_it_stood(tmp_path):
    cell = (
        "%%resumable t --vars log --every 1\nlog = []\nbar = Bar(total=7)\nfor x in items():\n    log.append(x)\n"
        "    bar.update()\nbar.refresh()\n"
    )
    assert attempt(BAR, cell, tmp_path, kill_at=6).status == "killed"
    bars = [line for line in attempt(BAR, cell, tmp_path).printed.splitlines() if line.startswith("bar")]
    assert bars[1] == "bar 5 of 7 from 5 in 0"
    assert bars[-1].startswith("bar 7 of 7 from 5 in")
