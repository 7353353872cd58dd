"""The panel: a click is a word about the run that was shown, or it is refused by name."""

import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

ipywidgets = pytest.importorskip("ipywidgets")

from nbresume._card import View  # noqa: E402
from nbresume._events import Event  # noqa: E402
from nbresume._lineage import fold  # noqa: E402
from nbresume._widget import Panel, answer_while_busy  # noqa: E402
from nbresume.errors import BusyError, NotFoundError  # noqa: E402


def view(run, state="interrupted", attempts=1):
    kinds = ["launched", *["resumed"] * (attempts - 1)]
    events = [Event(kind, n, "2025-11-29T08:00:00.000+00:00", {"where": "x"}) for n, kind in enumerate(kinds, 1)]
    return View("train", run, fold(events, alive=state == "running"), state)


class Shelf:
    """Runs that a test changes, and the words that were said of them."""

    def __init__(self, *views):
        self.views, self.said, self.asked, self.trouble, self.drawn = list(views), [], [], None, 0

    def runs(self):
        self.drawn += 1
        if self.trouble:
            raise self.trouble
        return list(self.views)

    def look(self, run):
        if self.trouble:
            raise self.trouble
        return next((view for view in self.views if view.id == run), None)

    def decide(self, run, word):
        self.said.append((run, word))
        return f"Recorded <{word}>."

    def ask(self, run, word, attempt):
        self.asked.append((run, word, attempt))
        return "asked; the next boundary will act"

    def read(self, run, what):
        return f"<{what}> of {run}"

    def way(self):
        return "interrupt the kernel once"


@pytest.fixture
def shelf():
    return Shelf(view("train-1"), view("train-2"))


@pytest.fixture
def panel(shelf):
    return Panel(shelf, period=0)


def inside(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from inside(child)


def parts(panel, kind):
    return [part for part in inside(panel.widget) if type(part) is kind]


def click(panel, description):
    button(panel, description).click()


def button(panel, description):
    (found,) = [part for part in parts(panel, ipywidgets.Button) if part.description == description]
    return found


def is_seen(panel, description):
    (box,) = [box for box in parts(panel, ipywidgets.HBox) if button(panel, description) in box.children]
    return box.layout.display != "none"


def texts(panel):
    return dict(zip(("message", "way", "below", "card"), parts(panel, ipywidgets.HTML), strict=True))


def message(panel):
    return texts(panel)["message"].value


def card(panel):
    return texts(panel)["card"].value


def select(panel, run):
    parts(panel, ipywidgets.Dropdown)[0].value = run


def test_the_panel_shows_the_newest_run_first(panel):
    assert "train-2" in card(panel)
    select(panel, "train-1")
    assert "train-1" in card(panel)
    assert "train-2" not in card(panel)


def test_continue_is_recorded_for_the_run_that_is_shown(panel, shelf):
    click(panel, "Continue")
    assert shelf.said == [("train-2", "continue")]
    assert "Recorded &lt;continue&gt;." in message(panel)


def test_supersede_asks_once_more_and_says_what_is_kept(panel, shelf):
    click(panel, "Supersede")
    assert shelf.said == []
    assert "It is kept with its snapshots" in message(panel)
    assert is_seen(panel, "Yes, supersede")
    assert not is_seen(panel, "Continue")
    click(panel, "Yes, supersede")
    assert shelf.said == [("train-2", "supersede")]
    assert not is_seen(panel, "Yes, supersede")
    assert is_seen(panel, "Continue")


def test_keep_it_changes_nothing(panel, shelf):
    click(panel, "Supersede")
    click(panel, "Keep it")
    assert shelf.said == []
    assert not is_seen(panel, "Yes, supersede")
    assert "Nothing was changed" in message(panel)


def test_a_question_is_dropped_when_another_run_is_selected(panel, shelf):
    click(panel, "Supersede")
    select(panel, "train-1")
    assert not is_seen(panel, "Yes, supersede")
    assert message(panel) == ""


@pytest.mark.parametrize("word", ["Continue", "Supersede"])
@pytest.mark.parametrize(
    ("now", "told"),
    [
        (view("train-2", "interrupted", 2), "interrupted in attempt 2 now"),
        (view("train-2", "running", 2), "running in attempt 2 now"),
        (view("train-2", "running", 1), "running in attempt 1 now"),
        (view("train-2", "completed", 1), "completed in attempt 1 now"),
    ],
)
def test_a_stale_click_is_refused_by_name_and_changes_nothing(panel, shelf, word, now, told):
    shelf.views[1] = now
    click(panel, word)
    assert shelf.said == []
    assert "train (train-2) was interrupted in attempt 1" in message(panel)
    assert told in message(panel)
    assert not is_seen(panel, "Yes, supersede")


def test_a_confirmation_that_came_too_late_is_refused(panel, shelf):
    click(panel, "Supersede")
    shelf.views[1] = view("train-2", "running", 2)
    click(panel, "Yes, supersede")
    assert shelf.said == []
    assert "Nothing was changed" in message(panel)


def test_after_a_refusal_the_panel_shows_what_is_and_can_be_clicked_again(panel, shelf):
    shelf.views[1] = view("train-2", "interrupted", 2)
    click(panel, "Continue")
    click(panel, "Continue")
    assert shelf.said == [("train-2", "continue")]


def test_a_run_that_is_gone_is_named(panel, shelf):
    del shelf.views[1]
    click(panel, "Continue")
    assert shelf.said == []
    assert "train (train-2) is not here any more" in message(panel)
    assert "train-1" in card(panel)


@pytest.mark.parametrize("word", ["Snapshot now", "Stop at the next boundary"])
def test_what_is_asked_of_a_running_cell_names_its_attempt(word):
    shelf = Shelf(view("train-1", "running", 3))
    panel = Panel(shelf, period=0)
    click(panel, word)
    assert shelf.asked == [("train-1", word.split()[0].lower(), 3)]
    assert "the next boundary will act" in message(panel)


@pytest.mark.parametrize("word", ["Snapshot now", "Stop at the next boundary"])
def test_a_stop_that_came_too_late_stops_no_other_attempt(word):
    shelf = Shelf(view("train-1", "running", 1))
    panel = Panel(shelf, period=0)
    for now in (view("train-1", "interrupted", 1), view("train-1", "running", 2), view("train-1", "completed", 1)):
        shelf.views[0] = view("train-1", "running", 1)
        panel.refresh()
        shelf.views[0] = now
        click(panel, word)
        assert "train (train-1) was running in attempt 1 when this was clicked" in message(panel)
    assert shelf.asked == []


WORDS = ("Continue", "Supersede", "Snapshot now", "Stop at the next boundary")


@pytest.mark.parametrize(
    ("state", "can"),
    [
        ("running", (False, False, True, True)),
        ("interrupted", (True, True, False, False)),
        ("completed", (False, True, False, False)),
        ("superseded", (False, False, False, False)),
        ("abandoned", (False, False, False, False)),
    ],
)
def test_only_what_can_be_said_of_a_run_can_be_clicked(state, can):
    shelf = Shelf(view("train-1", state))
    panel = Panel(shelf, period=0)
    assert tuple(not button(panel, word).disabled for word in WORDS) == can
    for word, allowed in zip(WORDS, can, strict=True):
        if not allowed:
            click(panel, word)  # a front end that was behind may still send it
            assert f"train (train-1) is {state}: only a run that is" in message(panel)
            assert not is_seen(panel, "Yes, supersede")
    assert shelf.said == shelf.asked == []


def test_where_clicks_may_not_be_heard_the_panel_says_which_way_works(panel, shelf):
    assert texts(panel)["way"].value == ""
    shelf.views[1] = view("train-2", "running", 2)
    panel.refresh()
    assert "interrupt the kernel once" in texts(panel)["way"].value


def test_a_click_that_was_heard_in_the_middle_of_a_cell_needs_no_other_way(shelf):
    shelf.views = [view("train-1", "running")]
    panel = Panel(shelf, period=0)
    thread = threading.Thread(target=lambda: click(panel, "Snapshot now"))
    thread.start()
    thread.join()
    assert shelf.asked == [("train-1", "snapshot", 1)]
    assert texts(panel)["way"].value == ""


@pytest.mark.parametrize("what", ["Verify", "Log", "Plan"])
def test_texts_are_shown_below_and_hidden_by_the_same_button(panel, what):
    below = texts(panel)["below"]
    assert below.layout.display == "none"
    click(panel, what)
    end = time.monotonic() + 30
    while f"&lt;{what.lower()}&gt; of train-2" not in below.value:
        assert time.monotonic() < end, below.value
        time.sleep(0.01)
    assert f'aria-label="{what} of train"' in below.value
    click(panel, f"Hide {what.lower()}")
    assert below.layout.display == "none"


def test_after_a_word_the_cell_can_be_run_by_the_next_click(panel):
    click(panel, "Continue")
    assert "Run it now" in message(panel)
    assert "%%resumable" in message(panel)
    panel.refresh()
    assert "Run it now" not in message(panel)


def test_a_panel_that_follows_keeps_what_was_told_and_asked(panel, shelf):
    click(panel, "Supersede")
    panel.follow()
    assert is_seen(panel, "Yes, supersede")
    assert "It is kept" in message(panel)
    shelf.views[1] = view("train-2", "running", 2)
    panel.follow()
    assert not is_seen(panel, "Yes, supersede")


def test_clicks_in_a_burst_are_drawn_a_few_times_and_the_last_one_is_shown(shelf):
    panel = Panel(shelf, period=0.2)
    began = time.monotonic()
    for n in range(500):
        panel.refresh(f"click {n}.")
    took = time.monotonic() - began
    end = time.monotonic() + 30
    while "click 499." not in message(panel):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert shelf.drawn <= 2 + (took + 0.5) / 0.2


def test_an_error_is_shown_as_its_sentence_and_escaped(panel, shelf):
    shelf.trouble = BusyError("<train> is alive in another process")
    for word in ("Continue", "Supersede", "Refresh", "Snapshot now", "Log"):
        click(panel, word)
        assert "&lt;train&gt; is alive in another process" in message(panel)
    select(panel, "train-1")
    assert "alive in another process" in message(panel)


def test_what_is_refused_is_shown_and_the_runs_stay(panel, shelf, monkeypatch):
    def refuse(run, word):
        raise NotFoundError(f"no run named {run}")

    monkeypatch.setattr(shelf, "decide", refuse)
    click(panel, "Continue")
    assert "no run named train-2" in message(panel)
    assert "train-2" in card(panel)


def test_a_panel_without_runs_says_how_to_get_one():
    shelf = Shelf()
    panel = Panel(shelf, period=0)
    assert "%%resumable NAME" in card(panel)
    click(panel, "Continue")
    click(panel, "Supersede")
    assert shelf.said == []
    shelf.views.append(view("train-1"))
    click(panel, "Refresh")
    assert "train-1" in card(panel)
    assert not button(panel, "Continue").disabled


def test_a_selection_survives_a_refresh_with_new_runs(panel, shelf):
    select(panel, "train-1")
    shelf.views.append(view("train-3"))
    panel.refresh()
    assert "train-1" in card(panel)
    assert parts(panel, ipywidgets.Dropdown)[0].value == "train-1"


def test_the_panel_turns_to_a_run_that_starts_and_goes_back_when_it_is_told(panel, shelf):
    select(panel, "train-1")
    shelf.views.append(view("train-3", "running"))
    panel.follow()
    assert "train-3" in card(panel)
    select(panel, "train-1")
    panel.follow()
    assert "train-1" in card(panel)
    shelf.views[0] = view("train-1", "superseded")
    shelf.views.append(view("train-4", "running"))
    panel.follow()
    assert "train-4" in card(panel)


def test_only_core_widgets_are_used_and_none_that_captures_output(panel):
    """Other classes need a manager of their own in each front end, and text of threads gets lost in an Output."""
    modules = {part._model_module for part in inside(panel.widget)}
    assert modules == {"@jupyter-widgets/controls"}
    assert not parts(panel, ipywidgets.Output)


def test_the_number_of_models_never_grows(panel, shelf):
    before = set(ipywidgets.widgets.widget._instances)
    for n in range(50):
        shelf.views.append(view(f"train-{n + 3}", attempts=n % 3 + 1))
        click(panel, "Supersede")
        click(panel, "Keep it")
        panel.refresh(str(n))
        select(panel, f"train-{n + 3}")
    assert set(ipywidgets.widgets.widget._instances) == before


def test_the_card_in_the_panel_has_no_script_and_no_offer_of_its_own(shelf):
    shelf.views = [replace(view("train-1"), offer=True)]
    panel = Panel(shelf, period=0)
    assert "onclick" not in card(panel)
    assert "<button" not in card(panel)


def test_every_control_has_a_name_and_every_button_says_what_it_does(panel):
    controls = [*parts(panel, ipywidgets.Button), *parts(panel, ipywidgets.Dropdown)]
    assert len(controls) == 11
    assert not any(getattr(control, "icon", "") for control in controls)  # an icon is a letter to a screen reader
    assert all(control.description and control.tooltip for control in controls)
    assert 'role="status"' in (click(panel, "Continue"), message(panel))[1]


def test_clicks_are_sent_where_the_front_end_chose():
    """The comm of ipykernel 7.4, by its real class: left alone it answers with the subshell that wrote last."""
    comm_module = pytest.importorskip("ipykernel.comm.comm")
    if not hasattr(comm_module.BaseComm, "_reply_subshell_for"):
        pytest.skip("this ipykernel chooses no subshell by itself")
    control = ipywidgets.Button()
    control.comm = comm_module.BaseComm(target_name="jupyter.widget")
    control.comm._reply_subshell_id = "the-one-that-wrote-last"
    answer_while_busy(control, ipywidgets.HTML())
    assert control.comm._reply_subshell_for({}, "the-one-chosen") == "the-one-chosen"


def test_importing_nbresume_does_not_import_ipywidgets():
    code = "import sys, nbresume, nbresume._card; sys.exit('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def seen(panel, description):
    return button(panel, description).layout.display != "none" and is_seen(panel, description)


def test_below_an_offer_there_is_only_what_its_card_cannot_do():
    """Two cards of one run, and two buttons that say Continue and do different things, would be a riddle."""
    shelf = Shelf(view("train-1"))
    panel = Panel(shelf, is_brief=True, period=0)
    assert card(panel) == ""
    assert seen(panel, "Supersede")
    assert not seen(panel, "Continue after all")
    shelf.views = [replace(view("train-1"), said="supersede")]
    panel.refresh()
    assert seen(panel, "Continue after all")
    assert not seen(panel, "Supersede")
    shelf.views = []
    panel.refresh()
    assert panel.widget.layout.display == "none"
