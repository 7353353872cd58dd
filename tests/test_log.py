"""The log of a run: everything that the cell printed, from where, and how its attempts began and ended."""

from __future__ import annotations

import json
import re
import time

import pytest
from _support import Kernel, meanwhile, shell, until

from nbresume._outputs import read_mark
from nbresume._session import Since, Transcript
from nbresume._store import Store
from nbresume.errors import OptionError

CELL = (
    "%%resumable train --every 1\nfor epoch in range(3):\n    for batch in range(2):\n"
    "        print('loss', epoch * 10 + batch)\n        if epoch == 1 and fail: 1 / 0\nprint('end')"
)


def lines(store, *words: str) -> list[dict]:
    status, text = shell("log", "train", "--json", *words, store=store.root)
    assert status == 0
    return [json.loads(line) for line in text.splitlines()]


def run_twice(notebook) -> None:
    body = CELL.replace("and fail", "and os.path.exists('fail')")
    notebook.run("import os")
    (notebook.folder / "fail").touch()
    notebook.fails(body)
    (notebook.folder / "fail").unlink()
    notebook.restart()
    notebook.run("import os")
    notebook.run(body)


def test_each_line_tells_its_attempt_and_iteration_and_attempts_stand_between(notebook):
    run_twice(notebook)
    found = lines(notebook.store)
    printed = [one for one in found if one["kind"] == "printed" and one["text"][:4] in ("loss", "end")]  # no traceback
    assert [(one["kind"], one["attempt"], one["where"], one["text"]) for one in printed] == [
        ("printed", 1, "epoch 1/3, batch 1/2", "loss 0"),
        ("printed", 1, "epoch 1/3, batch 2/2", "loss 1"),
        ("printed", 2, "epoch 2/3, batch 1/2", "loss 10"),
        ("printed", 2, "epoch 2/3, batch 2/2", "loss 11"),
        ("printed", 2, "epoch 3/3, batch 1/2", "loss 20"),
        ("printed", 2, "epoch 3/3, batch 2/2", "loss 21"),
        ("printed", 2, "", "end"),
    ]
    kinds = [(one["kind"], one["attempt"]) for one in found if one["kind"] != "printed"]
    assert kinds == [("begins", 1), ("ends", 1), ("begins", 2), ("ends", 2)]
    told = {(one["kind"], one["attempt"]): one["text"] for one in found}
    assert told["ends", 1].startswith("exception (ZeroDivisionError")
    assert told["begins", 2].startswith("resumed from epoch 2 of 3")
    assert found[2]["at"] <= found[-1]["at"]
    (run,) = notebook.runs
    assert (run.path / "aside" / "0002-log.txt").read_text().startswith("loss 0\nloss 1\nloss 10\n")


def test_plain_is_what_was_printed_and_the_rest_is_in_columns(notebook):
    run_twice(notebook)
    (run,) = notebook.runs
    assert shell("log", "train", "--plain", store=notebook.store.root)[1] == (run.path / "log.txt").read_text()
    text = shell("log", "train", store=notebook.store.root)[1].splitlines()
    assert re.fullmatch(r"-- attempt 1: launched, \d{4}-\d\d-\d\d \d\d:\d\d UTC", text[0])
    assert re.fullmatch(r"\d\d:\d\d:\d\d  epoch 1/3, batch 1/2 \| loss 0", text[1])
    assert {line.index("|") for line in text if "|" in line} == {text[1].index("|")}


def test_since_takes_an_attempt_and_a_time(notebook):
    run_twice(notebook)
    second = lines(notebook.store, "--since", "attempt:2")
    assert second[0]["kind"] == "begins"
    assert {one["attempt"] for one in second} == {2}
    middle = second[1]["at"]
    later = lines(notebook.store, "--since", middle)
    assert all(one["at"] >= middle for one in later)
    assert later[-1]["kind"] == "ends"
    assert lines(notebook.store, "--since", "1h") == lines(notebook.store)
    assert lines(notebook.store, "--since", "2100-01-01") == []


@pytest.mark.parametrize("text", ["yesterday", "10", "attempt:x", "10d", "-5m"])
def test_since_that_is_no_time_is_named(text):
    with pytest.raises(OptionError, match=re.escape(repr(text))):
        Since.parse(text)


def test_a_torn_mark_is_passed_over():
    assert read_mark(b'[12, 1, 17.5, [["i", 3, nu') is None
    assert read_mark(b'[12, 1, 17.5, [["i", 3, null]]]').position == (("i", 3, None),)


def test_a_log_without_marks_is_read_as_well(notebook):
    """Runs of earlier versions have none."""
    run_twice(notebook)
    (run,) = notebook.runs
    (run.path / "log.jsonl").unlink()
    found = [one["text"] for one in lines(notebook.store) if one["kind"] == "printed"]
    assert found == ["loss 0", "loss 1", "loss 10", "loss 11", "loss 20", "loss 21", "end"]


def test_a_log_is_followed_while_it_grows_and_half_a_line_waits_for_its_end(notebook):
    notebook.run("import time\ndef halt(): time.sleep(0.3)")
    cell = "%%resumable train\nfor i in range(4):\n    print('half', end='')\n    halt()\n    print(' and whole', i)"

    def work():
        until(lambda: notebook.runs and notebook.runs[0].lineage().state == "running")
        return shell("log", "train", "--follow", "--plain", store=notebook.store.root)

    with meanwhile(work) as told:
        notebook.run(cell)
    assert told[0] == (0, "".join(f"half and whole {i}\n" for i in range(4)))


def test_what_has_been_read_is_not_read_again_when_a_resume_cuts_the_log_back(notebook):
    body = CELL.replace("and fail", "and os.path.exists('fail')")
    notebook.run("import os")
    (notebook.folder / "fail").touch()
    notebook.fails(body)
    (run,) = notebook.runs
    transcript = Transcript(run)
    first = [line.text for line in transcript.read()]
    assert first[1:4] == ["loss 0", "loss 1", "loss 10"]
    (notebook.folder / "fail").unlink()
    notebook.restart()
    notebook.run("import os")
    notebook.run(body)
    second = [line.text for line in transcript.read()]
    assert second[1:-1] == ["loss 10", "loss 11", "loss 20", "loss 21", "end"]
    assert list(transcript.read()) == []


@pytest.mark.kernel
def test_the_log_is_complete_although_nobody_listened_and_the_kernel_was_killed(tmp_path):
    cell = (
        "%%resumable train --every 50\nfor i in range(4000):\n    print('row', i)\n"
        "    if i == 2500: open('there', 'w').close()\n    if i == 2500 and not attempt: time.sleep(60)"
    )
    with Kernel(tmp_path) as kernel:
        kernel.run("%load_ext nbresume\nimport time, nbresume\nattempt = ''")
        kernel.client.iopub_channel.stop()  # the tab is closed
        kernel.client.execute(cell)
        until((tmp_path / "there").exists)
        time.sleep(0.2)
        kernel.kill()
    with Kernel(tmp_path) as kernel:
        kernel.run("%load_ext nbresume\nimport time, nbresume\nattempt = ''")
        kernel.run("time.sleep = lambda seconds: None")
        text, error = kernel.run(cell)
        assert not error, text
    (run,) = Store(tmp_path / ".nbresume")
    assert (run.path / "log.txt").read_text() == "".join(f"row {i}\n" for i in range(4000))
    found = lines(Store(tmp_path / ".nbresume"))
    assert [one["where"] for one in found if one["kind"] == "printed"] == [f"i {i + 1}/4000" for i in range(4000)]
    assert [one["text"] for one in found if one["kind"] == "ends"] == [
        "vanished (without a last word)",
        "completed",
    ]


ERRORS = """\
%%resumable train --every 1
import sys
from tqdm import tqdm
for epoch in tqdm(range(3), mininterval=0):
    print("epoch", epoch)
    print("warning", epoch, file=sys.stderr)
    sys.stderr.write("half ")
    if epoch == 1 and fail: 1 / 0
    sys.stderr.write("a line\\n")
"""


def test_standard_error_is_in_the_log_too_and_a_bar_leaves_one_line(notebook):
    notebook.run("fail = True")
    notebook.fails(ERRORS.replace("and fail", "and not __import__('os').path.exists('mended')"))
    (notebook.folder / "mended").touch()
    notebook.restart()
    notebook.run("fail = True")
    notebook.run(ERRORS.replace("and fail", "and not __import__('os').path.exists('mended')"))
    (run,) = notebook.runs
    logged = (run.path / "log.txt").read_text().splitlines()
    for epoch in range(3):
        assert logged.count(f"epoch {epoch}") == 1
        assert sum(line.endswith(f"warning {epoch}") for line in logged) == 1
    assert sum(line.endswith("half a line") for line in logged) == 3
    assert len(logged) < 20
    assert not [line for line in logged if "\r" in line]


def test_a_kernels_loggers_are_in_the_log_for_as_long_as_the_cell_runs(tmp_path):
    cell = "%%resumable train --every 1\nfor i in range(3):\n    logging.warning('at %d', i)\n    print('out', i)\n"
    with Kernel(tmp_path) as kernel:
        kernel.run("%load_ext nbresume\nimport logging, sys\nlogging.basicConfig(format='%(message)s')")
        kernel.run(cell)
        kernel.run("logging.warning('not of that cell')")
    (run,) = Store(tmp_path / ".nbresume")
    assert (run.path / "log.txt").read_text() == "at 0\nout 0\nat 1\nout 1\nat 2\nout 2\n"
