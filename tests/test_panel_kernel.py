"""The panel in a real kernel: how many models it has, how often they change, and what clicks in mid-cell do."""

from __future__ import annotations

import json

import pytest
from _support import Kernel

pytestmark = pytest.mark.kernel

RUNS, ITERATIONS = 50, 20
COUNT = """
from ipywidgets.widgets.widget import _instances
print(len(_instances), len(get_ipython().kernel.comm_manager.comms))
"""
TRAIN = f"""\
%%resumable train --vars total --on-restart supersede
total = 0.0
for step in range({ITERATIONS}):
    total += step
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("panel")


@pytest.fixture(scope="module")
def kernel(folder):
    with Kernel(folder) as kernel:
        assert kernel.run("%load_ext nbresume") == ("", "")
        yield kernel


def run(kernel, cell):
    text, error = kernel.run(cell)
    assert not error, error
    return text


def test_the_number_of_models_is_constant_over_runs_and_iterations(kernel):
    """Widgets are never collected while they are displayed: a panel that made some at each run would fill the notebook."""
    run(kernel, "%nbresume panel")
    run(kernel, TRAIN)
    before = run(kernel, COUNT)
    for _ in range(RUNS):
        run(kernel, "%nbresume panel")
        run(kernel, TRAIN)
    run(kernel, "import nbresume; nbresume.panel()")
    run(kernel, TRAIN.replace(str(ITERATIONS), "1000"))
    assert run(kernel, COUNT) == before


def test_state_that_a_notebook_saves_is_small(kernel):
    run(kernel, "%nbresume panel")
    told = run(
        kernel,
        "import json; from ipywidgets import Widget\n"
        "print(len(json.dumps(Widget.get_manager_state(drop_defaults=True), default=str)))",
    )
    assert int(told.splitlines()[-1]) < 100_000


def test_a_burst_of_clicks_in_mid_cell_changes_the_widgets_at_most_four_times_a_second(kernel, folder):
    """Clicks come from another thread, as a subshell sends them; each asks for a snapshot, and none changes a result."""
    run(
        kernel,
        """
        import pathlib, threading, time
        import ipywidgets
        panel = nbresume.panel()
        card = [one for one in panel.children if isinstance(one, ipywidgets.HTML)][-1]
        drawn = []
        card.observe(lambda _change: drawn.append(time.monotonic()), "value")

        def clicking():
            row = next(one for one in panel.children if isinstance(one, ipywidgets.HBox))
            button = next(one for one in row.children if one.description == "Snapshot now")
            while button.disabled:
                time.sleep(0.01)
            for _ in range(500):
                button.click()
                time.sleep(0.004)
            pathlib.Path("clicked").touch()

        threading.Thread(target=clicking).start()
        """,
    )
    run(
        kernel,
        """
        %%resumable busy --vars steps
        steps = []
        while not pathlib.Path("clicked").exists():
            steps.append(len(steps))
            time.sleep(0.01)
        """,
    )
    drawn, is_right = json.loads(run(kernel, "print(json.dumps([drawn, steps == list(range(len(steps)))]))"))
    assert is_right
    assert len(drawn) > 2
    assert all(later - sooner >= 1 for sooner, later in zip(drawn, drawn[4:], strict=False))
    (journal,) = folder.glob(".nbresume/busy-*/journal.jsonl")
    assert '"asked"' in journal.read_text()
