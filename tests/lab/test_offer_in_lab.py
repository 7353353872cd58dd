"""What a person meets in JupyterLab after a kernel has died: the offer, and both answers to it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from labdrive import Lab, LabServer, write_notebook
from playwright.sync_api import expect

LOAD, SETUP, TRAIN, DIGEST, WORD = range(5)
CELLS = [
    "%load_ext nbresume",
    """\
import hashlib
from time import sleep

import numpy as np

rng = np.random.default_rng(7)
inputs = rng.normal(size=(640, 8))
target = inputs @ rng.normal(size=8)""",
    """\
%%resumable train --vars weights,losses
weights, losses = np.zeros(8), []
for epoch in range(30):
    for batch in rng.permutation(640).reshape(10, 64):
        error = inputs[batch] @ weights - target[batch]
        weights -= 0.02 * error @ inputs[batch] / len(batch)
        sleep(0.02)
    losses.append(float(np.mean(error**2)))
    print(f"epoch {epoch + 1}: loss {losses[-1]:.6f}")""",
    "hashlib.sha256(weights.tobytes() + repr(losses).encode()).hexdigest()",
    "%nbresume supersede train",
]


@pytest.fixture(scope="module")
def digest():
    """What the cells come to when nobody interrupts them, without nbresume and without the waiting."""
    names = {}
    exec(CELLS[SETUP], names)
    names["sleep"] = lambda _seconds: None
    names["print"] = lambda *_words: None
    exec(CELLS[TRAIN].partition("\n")[2], names)
    return eval(CELLS[DIGEST], names)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    write_notebook(tmp_path / "work" / "train.ipynb", CELLS)
    return tmp_path / "work"


@pytest.fixture
def lab(folder, tmp_path):
    """A notebook whose kernel was killed in the middle of its training, in the new kernel, with nothing run yet."""
    home = tmp_path / "home"
    home.mkdir()
    with LabServer(folder, home) as server, Lab(server, "train.ipynb") as lab:
        lab.run(LOAD, SETUP)
        expect(lab.output(LOAD)).to_be_empty()
        lab.start(TRAIN)
        lab.printed(TRAIN, "epoch 12: loss").wait_for()
        lab.kill_kernel()
        yield lab


def runs(folder: Path) -> list[Path]:
    return sorted(
        (folder / ".nbresume").glob("train-*"), key=lambda run: json.loads((run / "run.json").read_text())["number"]
    )


def contents(run: Path) -> dict[str, str]:
    """Digest of every file of a run that holds results: the journal is told what happens to it."""
    told = {"journal.jsonl", "word", "owner", "lock"}
    files = [path for path in run.rglob("*") if path.is_file() and path.name not in told]
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def results(lab: Lab) -> str:
    lab.run(DIGEST)
    return lab.output(DIGEST).locator(".jp-OutputArea-output").inner_text().strip().strip("'")


def test_running_the_notebook_again_goes_on_where_it_stood(lab, folder, digest):
    """Loading the extension shows the offer; running the cell again is Continue; the results are those of no death."""
    lab.run(LOAD)
    expect(lab.card(LOAD)).to_contain_text("interrupted (vanished)")
    expect(lab.card(LOAD)).to_contain_text("of 30, batch")
    expect(lab.button(LOAD, "Continue")).to_have_count(1)
    expect(lab.button(LOAD, "Supersede")).to_have_count(1)
    lab.run(SETUP, TRAIN)
    lab.printed(TRAIN, "continued train, attempt 2").wait_for()
    expect(lab.printed(TRAIN, "epoch 30: loss")).not_to_contain_text("epoch 1: loss")
    expect(lab.card(TRAIN)).to_contain_text("completed in 2 attempts")
    assert results(lab) == digest
    assert len(runs(folder)) == 1


def test_the_button_of_the_card_continues_and_the_offer_is_answered(lab, digest):
    """A click runs the cell as a person would, and no button is left that asks what has been answered."""
    lab.run(LOAD, SETUP)
    lab.button(LOAD, "Continue").click()
    lab.printed(TRAIN, "continued train, attempt 2").wait_for()
    expect(lab.card(LOAD)).to_contain_text("running (attempt 2)")
    expect(lab.button(LOAD, "Continue")).to_have_count(0)
    expect(lab.button(LOAD, "Supersede")).to_have_count(0)
    lab.wait_for_end(TRAIN)
    expect(lab.card(LOAD)).to_contain_text("completed in 2 attempts")
    expect(lab.card(TRAIN)).to_contain_text("completed in 2 attempts")
    assert results(lab) == digest


def test_the_card_of_a_running_cell_follows_it(lab):
    """The card is not what was true when the cell began."""
    lab.run(LOAD, SETUP)
    lab.start(TRAIN)
    expect(lab.card(TRAIN)).to_contain_text("epoch 2")
    percent = lab.card(TRAIN).locator("progress").get_attribute("value")
    expect(lab.card(TRAIN).locator("progress")).not_to_have_attribute("value", percent)
    expect(lab.card(TRAIN)).to_contain_text("running (attempt 2)")


def test_supersede_starts_anew_and_keeps_the_old_run_as_it_was(lab, folder, digest):
    """The word is recorded by two clicks, followed by the next execution, and nothing of the old run is touched."""
    (old,) = runs(folder)
    before = contents(old)
    lab.run(LOAD)
    lab.button(LOAD, "Supersede").click()
    lab.button(LOAD, "Yes, supersede").click()
    expect(lab.card(LOAD)).to_contain_text("it starts a new run, and this one is kept as superseded")
    expect(lab.card(LOAD).locator("button")).to_have_count(0)
    lab.run(SETUP, TRAIN)
    lab.printed(TRAIN, f"train: a new run; {old.name} is kept and marked superseded").wait_for()
    lab.printed(TRAIN, "epoch 1: loss").wait_for()
    expect(lab.card(LOAD)).to_contain_text("superseded")
    assert results(lab) == digest
    assert len(runs(folder)) == 2
    assert runs(folder)[0] == old
    assert contents(old) == before
    assert '"superseded"' in (old / "journal.jsonl").read_text().splitlines()[-1]


def test_supersede_can_be_taken_back_before_the_cell_runs(lab, folder, digest):
    """A word that no execution has followed yet is only a word."""
    lab.run(LOAD)
    lab.button(LOAD, "Supersede").click()
    lab.button(LOAD, "Yes, supersede").click()
    lab.button(LOAD, "Continue after all").click()
    expect(lab.card(LOAD).locator("button")).to_have_text("Continue")
    lab.run(SETUP, TRAIN)
    assert results(lab) == digest
    assert len(runs(folder)) == 1


def test_a_word_said_by_the_magic_reaches_the_offer(lab):
    """A button that says Continue must not supersede."""
    lab.run(LOAD, WORD)
    expect(lab.card(LOAD)).to_contain_text("it starts a new run, and this one is kept as superseded")
    expect(lab.card(LOAD).locator("button")).to_have_count(0)
    expect(lab.button(LOAD, "Continue after all")).to_have_count(1)
