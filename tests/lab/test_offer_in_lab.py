"""What a person meets in a front end after a kernel has died: the offer, and both answers to it."""

from __future__ import annotations

import re

import pytest
from labdrive import until
from playwright.sync_api import expect
from story import LOAD, SETUP, TRAIN, WORD, contents, go, journal, plain_digest, results, runs

CONTINUED = re.compile("continued.*attempt 2")


def saved_epoch(found):
    """Return the epoch that the newest snapshot stands in; a busy machine takes few."""
    told = [event["where"] for run in found for event in journal(run) if event["event"] == "snapshot"]
    return int(told[-1].split()[1]) if told and told[-1].startswith("epoch") else 0


@pytest.fixture
def died(lab):
    """The notebook whose kernel was killed in the middle of its training, in the new kernel, with nothing run yet."""
    lab.run(LOAD, SETUP)
    expect(lab.output(LOAD)).to_be_empty()
    lab.start(TRAIN)
    lab.printed(TRAIN, "epoch 2: loss").wait_for()
    until(lambda: saved_epoch(runs(lab)) > 1, "a snapshot beyond the first epoch")
    lab.kill_kernel()
    go(lab)
    return lab


def test_running_the_notebook_again_goes_on_where_it_stood(died):
    """Loading the extension shows the offer; running the cell again is Continue; the results are those of no death."""
    died.run(LOAD)
    expect(died.card(LOAD)).to_contain_text("interrupted (vanished)")
    expect(died.card(LOAD)).to_contain_text("of 30, batch")
    expect(died.button(LOAD, "Continue")).to_have_count(1)
    expect(died.button(LOAD, "Supersede")).to_have_count(1)
    died.run(SETUP, TRAIN)
    died.printed(TRAIN, CONTINUED).wait_for()
    expect(died.printed(TRAIN, "epoch 30: loss")).not_to_contain_text("epoch 1: loss")
    expect(died.card(TRAIN)).to_contain_text("completed in 2 attempts")
    assert results(died) == plain_digest()
    assert len(runs(died)) == 1


def test_the_button_of_the_card_continues_and_the_offer_is_answered(died):
    """A click runs the cell as a person would, and no button is left that asks what has been answered."""
    died.run(LOAD, SETUP)
    died.button(LOAD, "Continue").click()
    died.printed(TRAIN, CONTINUED).wait_for()
    died.wait_for_end(TRAIN)
    expect(died.button(LOAD, "Continue")).to_have_count(0)
    expect(died.button(LOAD, "Supersede")).to_have_count(0)
    expect(died.card(LOAD)).to_contain_text("completed in 2 attempts")
    expect(died.card(TRAIN)).to_contain_text("completed in 2 attempts")
    assert results(died) == plain_digest()


def test_continue_with_the_cells_above_not_run_names_what_is_missing(died):
    """One click in a kernel that knows nothing yet: it stops before anything ran, and the run is as it was."""
    (run,) = runs(died)
    before = contents(run)
    died.run(LOAD)
    died.button(LOAD, "Continue").click()
    expect(died.output(TRAIN)).to_contain_text("Run the cells above first")
    for name in ("inputs", "target", "think"):
        expect(died.output(TRAIN)).to_contain_text(name)
    assert contents(run) == before
    died.run(SETUP)
    died.button(LOAD, "Continue").click()
    died.printed(TRAIN, CONTINUED).wait_for()
    died.wait_for_end(TRAIN)
    assert results(died) == plain_digest()


def test_supersede_starts_anew_and_keeps_the_old_run_as_it_was(died):
    """The word is recorded by two clicks, followed by the next execution, and nothing of the old run is touched."""
    (old,) = runs(died)
    before = contents(old)
    died.run(LOAD)
    died.button(LOAD, "Supersede").click()
    died.button(LOAD, "Yes, supersede").click()
    expect(died.card(LOAD)).to_contain_text("it starts a new run, and this one is kept as superseded")
    expect(died.card(LOAD).locator("button")).to_have_count(0)
    died.run(SETUP, TRAIN)
    died.printed(TRAIN, f"a new run; {old.name} is kept and marked superseded").wait_for()
    died.printed(TRAIN, "epoch 1: loss").wait_for()
    expect(died.card(LOAD)).to_contain_text("superseded")
    assert results(died) == plain_digest()
    assert len(runs(died)) == 2
    assert runs(died)[0] == old
    assert contents(old) == before
    assert journal(old)[-1]["event"] == "superseded"


def test_supersede_can_be_taken_back_before_the_cell_runs(died):
    """A word that no execution has followed yet is only a word."""
    died.run(LOAD)
    died.button(LOAD, "Supersede").click()
    died.button(LOAD, "Yes, supersede").click()
    died.button(LOAD, "Continue after all").click()
    expect(died.card(LOAD).locator("button")).to_have_text("Continue")
    died.run(SETUP, TRAIN)
    assert results(died) == plain_digest()
    assert len(runs(died)) == 1


def test_a_word_said_by_the_magic_reaches_the_offer(died):
    """A button that says Continue must not supersede."""
    died.run(LOAD, WORD)
    expect(died.card(LOAD)).to_contain_text("it starts a new run, and this one is kept as superseded")
    expect(died.card(LOAD).locator("button")).to_have_count(0)
    expect(died.button(LOAD, "Continue after all")).to_have_count(1)


def test_the_card_of_a_running_cell_follows_it(lab):
    """The card is not what was true when the cell began."""
    lab.run(LOAD, SETUP)
    lab.start(TRAIN)
    bar = lab.card(TRAIN).locator("progress")
    bar.wait_for()
    first = bar.get_attribute("value")
    expect(bar).not_to_have_attribute("value", first)
    expect(lab.card(TRAIN)).to_contain_text("running")
    go(lab)
    lab.wait_for_end(TRAIN)
    expect(lab.card(TRAIN)).to_contain_text("completed")
