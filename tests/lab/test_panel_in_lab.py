"""The panel while a cell is busy, across reloads and restarts, and what is left to see without a kernel."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import nbformat
import pytest
from labdrive import Lab, until
from playwright.sync_api import expect
from story import DIGEST, LOAD, PANEL, SETUP, SHOW, TRAIN, contents, go, journal, plain_digest, results, runs

CONTINUED = re.compile("continued.*attempt 2")
SNAPSHOT, STOP = "Snapshot now", "Stop at the next boundary"


@pytest.fixture
def busy(lab):
    """The notebook in the middle of its training, with the panel open."""
    lab.run(LOAD, SETUP, PANEL)
    lab.start(TRAIN)
    lab.printed(TRAIN, "epoch 2: loss").wait_for()
    return lab


def shell(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    """Say words of nbresume in a shell, from the environment of the kernel."""
    start = [lab.server.front_end.interpreter(), "-P", "-c", "from nbresume._cli import main; raise SystemExit(main())"]
    command = [*start, *words, "--store", lab.folder / ".nbresume"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_stop_ends_a_busy_cell_at_its_next_boundary_and_running_it_again_goes_on(busy):
    if busy.server.front_end.hears_while_busy:
        busy.button(PANEL, STOP).click()
        busy.printed(TRAIN, "asked to stop").wait_for()
    else:
        expect(busy.output(PANEL)).to_contain_text("interrupt the kernel once")
        busy.interrupt()
        busy.printed(TRAIN, "stopping at the next boundary").wait_for()
    busy.wait_for_end(TRAIN)
    (run,) = runs(busy)
    ended = [event for event in journal(run) if event["event"] == "interrupted"]
    assert len(ended) == 1
    expect(busy.card(TRAIN)).to_contain_text("interrupted")
    go(busy)
    busy.run(TRAIN)
    busy.printed(TRAIN, CONTINUED).wait_for()
    assert results(busy) == plain_digest()
    assert runs(busy) == [run]


def test_the_panel_follows_a_busy_cell_and_takes_a_snapshot_when_it_is_asked(busy):
    expect(busy.output(PANEL)).to_contain_text("▶ running")
    (run,) = runs(busy)
    busy.button(PANEL, SNAPSHOT).click()
    if not busy.server.front_end.hears_while_busy:  # the click waits behind the cell: the shell's word does not
        assert shell(busy, "snapshot", "train").returncode == 0
    until(lambda: [event for event in journal(run) if event.get("asked")], "the snapshot that was asked for")
    go(busy)
    busy.wait_for_end(TRAIN)
    expect(busy.output(PANEL)).to_contain_text("completed")
    expect(busy.button(PANEL, STOP)).to_be_disabled()
    assert results(busy) == plain_digest()


def test_five_hundred_clicks_in_two_seconds_leave_results_equal(busy):
    button = busy.button(PANEL, SNAPSHOT)
    clicked = button.evaluate(
        """button => new Promise(done => {
            let count = 0
            const timer = setInterval(() => {
                button.click()
                if (++count == 500) { clearInterval(timer); done(count) }
            }, 4)
        })"""
    )
    assert clicked == 500
    go(busy)
    busy.wait_for_end(TRAIN)
    expect(busy.card(TRAIN)).to_contain_text("completed")
    assert results(busy) == plain_digest()
    assert len(runs(busy)) == 1


def test_all_buttons_are_reached_and_pressed_by_keys(lab):
    """The keys of the front end itself are no obstacle: Enter edits a cell there, and the space bar scrolls."""
    go(lab)
    lab.run(LOAD, SETUP, TRAIN, PANEL)
    text = lab.output(PANEL).get_by_role("region", name="Plan of train")
    lab.button(PANEL, "Log").focus()
    lab.page.keyboard.press("Tab")
    expect(lab.button(PANEL, "Plan")).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(text).to_contain_text("lays its results over what is there")
    lab.page.keyboard.press("Space")
    expect(text).to_have_count(0)
    lab.button(PANEL, "Supersede").focus()
    lab.page.keyboard.press("Enter")
    expect(lab.output(PANEL).get_by_role("status")).to_contain_text("It is kept with its snapshots")
    lab.page.keyboard.press("Tab")
    expect(lab.button(PANEL, "Yes, supersede")).to_be_focused()
    lab.page.keyboard.press("Tab")
    lab.page.keyboard.press("Space")
    expect(lab.output(PANEL).get_by_role("status")).to_contain_text("Nothing was changed")


def test_after_a_reload_in_mid_run_the_status_is_within_reach(busy):
    busy.reload()
    told = shell(busy, "status", "train", "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["state"] == "running"
    assert found["loops"][0]["total"] == 30
    go(busy)
    (run,) = runs(busy)
    until(lambda: journal(run)[-1]["event"] == "completed", "the run to complete")
    busy.wait_for_kernel()
    busy.run(SHOW)
    expect(busy.card(SHOW)).to_contain_text("completed")
    assert results(busy) == plain_digest()


def test_after_a_restart_without_a_reload_the_old_buttons_change_nothing(busy):
    busy.interrupt()
    busy.wait_for_end(TRAIN)
    (run,) = runs(busy)
    expect(busy.output(PANEL)).to_contain_text("interrupted")
    busy.restart_kernel()
    before, said = contents(run), journal(run)
    # Marked as dead by the front end, with a sign that is part of the name; or as if nothing had happened.
    busy.output(PANEL).locator("button:visible", has_text="Supersede").first.click()
    busy.run(LOAD)
    assert (contents(run), journal(run)) == (before, said)
    assert not (run / "word").exists()
    expect(busy.card(LOAD).locator("button")).to_have_text("Continue")
    go(busy)
    busy.run(SETUP)
    busy.button(LOAD, "Continue").click()
    busy.printed(TRAIN, CONTINUED).wait_for()
    busy.wait_for_end(TRAIN)
    assert results(busy) == plain_digest()
    assert runs(busy) == [run]


def test_an_untrusted_copy_shows_a_legible_card_and_runs_nothing(lab, browser):
    go(lab)
    lab.run(LOAD, SETUP, TRAIN, DIGEST)
    lab.save()
    (run,) = runs(lab)
    before = contents(run)
    name = lab.folder.name + "-copy"
    (lab.server.folder / name).mkdir()
    copy = lab.server.folder / name / "train.ipynb"
    shutil.copy(lab.folder / "train.ipynb", copy)
    book = nbformat.read(copy, 4)
    book.cells[DIGEST].source += "  # whoever changed this has not run it"  # another notebook than the one trusted here
    for cell in book.cells:
        cell.metadata.pop("trusted", None)
    nbformat.write(book, copy)
    with Lab(lab.server, f"{name}/train.ipynb", browser=browser) as other:
        card = other.card(TRAIN)
        expect(card).to_contain_text("completed")
        expect(card).to_contain_text("last snapshot")
        drawing = card.locator("img").first
        expect(drawing).to_be_visible()
        assert drawing.evaluate("image => image.naturalWidth") > 100
        assert "completed" in drawing.get_attribute("alt")
        assert card.locator("[onclick], script").count() == 0
    assert contents(run) == before
