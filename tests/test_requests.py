"""What another process asks of a running cell: stop at the next boundary, take a snapshot there; and nobody else."""

from __future__ import annotations

import os
import signal

import pytest
from _support import LIMIT, Kernel, load, meanwhile, shell, until

from nbresume._session import snapshot_run, stop_run
from nbresume._session._saving import Saving
from nbresume._store import Store, ask
from nbresume.errors import StoppedError

SETUP = "import time, random; random.seed(5); log = []"
CELL = (
    "%%resumable train --vars log --every 1h\n"
    "for i in range({n}):\n    log.append((i, random.random()))\n    time.sleep({sleep})\n    if i == 3: print('four', 'done')\n"
)


def running(notebook, attempt: int = 1):
    """Wait until an attempt of the notebook's run has done something."""

    def look():
        found = [run for run in notebook.runs if run.lineage().state == "running"]
        return found[0] if found and found[0].lineage().attempts[-1].number == attempt else None

    return until(look, "a running attempt")


def test_stop_ends_the_cell_at_a_boundary_with_a_snapshot_and_it_goes_on_from_there(notebook):
    notebook.run(SETUP)
    with meanwhile(lambda: shell("stop", running(notebook).name, "--wait", store=notebook.store.root)) as told:
        error = notebook.fails(CELL.format(n=100_000, sleep=0.002))
    assert isinstance(error, KeyboardInterrupt)
    ((status, text),) = told
    (run,) = notebook.runs
    assert status == 0
    assert "train: stopped at i " in text
    (attempt,) = run.lineage().attempts
    assert (attempt.how, attempt.why) == ("stop", "on request")
    latest, _ = run.latest()
    assert latest is not None and latest.ident in text
    done = [event for event in run.events() if event.facts.get("asked")]
    assert [event.kind for event in done] == ["snapshot", "interrupted"]
    saved = load(latest)["log"]
    assert saved == notebook["log"]  # nothing was done after it
    assert not list((run.path / "requests").iterdir())


def test_snapshot_is_taken_at_the_next_boundary_whatever_the_rule_says_and_the_loop_goes_on(notebook):
    notebook.run(SETUP)

    def work():
        run = running(notebook)
        return [
            shell("snapshot", "train", "--wait", store=notebook.store.root),
            shell("snapshot", run.id, "--wait", "--json", store=notebook.store.root),
            shell("stop", "train", store=notebook.store.root),
        ]

    with meanwhile(work) as told:
        notebook.fails(CELL.format(n=100_000, sleep=0.002))
    (first, second, stop) = told[0]
    (run,) = notebook.runs
    asked = [event.facts["snapshot"] for event in run.events() if event.kind == "snapshot" and event.facts.get("asked")]
    assert len(asked) == 3  # the stop's is one
    assert first[0] == second[0] == stop[0] == 0
    assert f"train: snapshot {asked[0]} at i " in first[1]
    assert f'"snapshot": "{asked[1]}"' in second[1]
    assert stop[1] == "train: asked; the next boundary will act\n"


def test_a_request_of_an_attempt_that_is_over_is_refused_by_name_and_changes_nothing(notebook, capsys):
    notebook.run(SETUP)
    with meanwhile(lambda: stop_run(running(notebook), wait=LIMIT)):
        notebook.fails(CELL.format(n=100_000, sleep=0.002))
    (run,) = notebook.runs
    before = notebook.files()
    for word in ("stop", "snapshot"):
        assert shell(word, "train", store=notebook.store.root)[0] == 2
        assert f"{run.id} is interrupted" in capsys.readouterr().err
        assert shell(word, "trian", store=notebook.store.root)[0] == 3
        assert ask(run.path, word, 1) is None
    assert notebook.files() == before

    def stale():
        run = running(notebook, attempt=2)
        before = {name for name in notebook.files() if "/requests/" in name}
        for function in (stop_run, snapshot_run):
            with pytest.raises(StoppedError, match="attempt 1 is over"):
                function(run, attempt=1)
        assert {name for name in notebook.files() if "/requests/" in name} == before
        return stop_run(run, attempt=2, wait=LIMIT)[1]

    with meanwhile(stale) as told:
        notebook.fails(CELL.format(n=100_000, sleep=0.002))
    assert told[0]["outcome"] == "done"


def test_who_asks_for_a_stop_while_a_snapshot_is_taken_gets_one_that_answers(notebook, monkeypatch):
    """That one was begun before anybody had asked; the cell ends there all the same, and no other boundary comes."""
    notebook.run(SETUP)
    commit, begun, requests = Saving.commit, [], []

    def commit_slowly(saving, *args, **kwargs):
        begun.append(saving)
        found = commit(saving, *args, **kwargs)
        if len(begun) == 2:
            requests.append(ask(saving.run.path, "stop", saving.number))
            until(lambda: not list((saving.run.path / "requests").iterdir()), "a hearing")
        return found

    monkeypatch.setattr(Saving, "commit", commit_slowly)
    assert isinstance(notebook.fails(CELL.format(n=100_000, sleep=0.002)), KeyboardInterrupt)
    (run,) = notebook.runs
    answers = [event for event in run.events() if event.facts.get("asked") == [requests[0].ident]]
    assert [event.kind for event in answers] == ["snapshot", "interrupted"]
    assert load(run.latest()[0])["log"] == notebook["log"]


def test_many_who_ask_at_once_get_one_answer(notebook):
    notebook.run(SETUP)

    def work():
        run = running(notebook)
        found = [snapshot_run(run)[1]["request"] for _ in range(200)]
        until(lambda: any(event.facts.get("asked") for event in run.events()))
        stop_run(run, wait=LIMIT)
        return len(set(found))

    with meanwhile(work) as told:
        notebook.fails(CELL.format(n=100_000, sleep=0.002))
    snapshots = [event for event in notebook.runs[0].events() if event.facts.get("asked") and event.kind == "snapshot"]
    assert len(snapshots) <= told[0] + 1  # those that came while one waited to be heard are one


def test_the_cell_that_completes_first_is_told_so(notebook):
    notebook.run(f"{SETUP}\ntail = True")
    with meanwhile(lambda: shell("stop", running(notebook).name, "--wait", store=notebook.store.root)) as told:
        notebook.run("%%resumable train --vars log\nfor i in range(3): log.append(i)\ntime.sleep(1.5)")
    assert told[0] == (0, "train: completed before that\n")


@pytest.mark.kernel
def test_requests_reach_a_kernel_from_elsewhere_and_a_leftover_never_hits_a_later_attempt(tmp_path):
    store = tmp_path / ".nbresume"
    cell = CELL.format(n=400, sleep=0.01)
    with Kernel(tmp_path) as kernel:
        kernel.run("%load_ext nbresume\n" + SETUP)
        cell_id = kernel.send(cell)
        kernel.finish(cell_id, until="four done")
        assert "asked; the next boundary will act" in shell("snapshot", "train", store=store)[1]
        (run,) = Store(store)
        until(lambda: any(event.facts.get("asked") for event in run.events()))
        os.kill(kernel.pid, signal.SIGSTOP)
        status, text = shell("stop", "train", "--wait", "0", store=store)
        assert (status, text) == (1, "train: asked to stop, and not done after 0 s: its process has not heard it yet\n")
        assert len(list((run.path / "requests").iterdir())) == 1
        kernel.kill()
    assert shell("stop", "train", store=store)[0] == 2  # it vanished

    with Kernel(tmp_path) as kernel:
        kernel.run("%load_ext nbresume\n" + SETUP)
        first = kernel.send(cell)
        text, _ = kernel.finish(first, until="four done" if "four" not in run.lineage().attempts[-1].where else None)
        until(lambda: run.lineage().attempts[-1].number == 2 and run.lineage().state == "running")
        assert not list((run.path / "requests").iterdir())
        kernel.manager.interrupt_kernel()
        more, error = kernel.finish(first)
        assert error.startswith("KeyboardInterrupt")
        assert "train: stopping at the next boundary, with a snapshot" in text + more
        assert run.lineage().attempts[-1].why == "SIGINT"
        text, error = kernel.run(cell)
        assert not error, text
        assert kernel.run("random.seed(5); print(log == [(i, random.random()) for i in range(400)])")[0] == "True\n"
    assert run.lineage().state == "completed"
    assert (run.path / "log.txt").read_text() == "four done\n"  # what we say is not the cell's
