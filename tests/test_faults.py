"""Every call to the disk of one commit made to fail in turn, in every way in which a disk fails.

The table of outcomes is docs/explanation/faults.md; NBRESUME_WRITE_FAULTS=1 writes it anew.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from _faulty import ERRORS, Disk, Fault
from _support import load

from nbresume._store import RunFolder

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "faults.md"
FOREVER = "EROFS from then on"
WAYS = (*ERRORS, "short write", "empty write", FOREVER)
SMALL, LARGE = 1 << 10, 1 << 17
"""Numbers in the state: its file is written anew each time, or over an older one."""
FIRST = 6
"""The first commit that is disturbed: by then files are written over."""

CELL = """
for i in range({count}):
    state[:] = i
    log.append(i)
"""


@pytest.fixture
def disk_notebook(tmp_path, quick_disk, notebook, monkeypatch):
    """A notebook on a quick disk; what it says is kept in ``said``."""
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("NBRESUME_INDEX", "0")
        notebook.folder = Path(folder).resolve()
        notebook.restart()
        notebook.said = []
        notebook.shell._nbresume_extension.host.tell = notebook.said.append
        yield notebook


def launch(notebook, count, size, options="", name="run", cell=CELL):
    notebook.run(f"import numpy as np; state = np.zeros({size}); log = []")
    return f"%%resumable {name} --vars state,log --every 1 --keep 2 --on-restart continue {options}\n" + cell.format(
        count=count
    )


def check_result(notebook, count):
    assert notebook["log"] == list(range(count))
    assert (notebook["state"] == count - 1).all()
    assert notebook["i"] == count - 1


def latest(folder: Path) -> int:
    """Load the newest snapshot of a run, whole; its content is what a function of its number says."""
    snapshot, rejected = RunFolder.open(folder.parent).latest()
    assert not rejected
    if snapshot is None:
        return -1
    found = load(snapshot)
    last = len(found["log"]) - 1
    assert found["log"] == list(range(last + 1))
    assert (found["state"] == max(last, 0)).all()
    if not snapshot.meta.get("end"):
        assert last == snapshot.seq - 1  # each boundary had one, and boundary 0 comes before the first iteration
    return snapshot.seq


def fault(at: int, way: str) -> Fault:
    how = {"short write": "short", "empty write": "nothing", FOREVER: "EROFS"}.get(way, way)
    return Fault(at, how, lasting=way == FOREVER)


def disturb(notebook, size: int, options: str) -> dict[tuple[str, str], str]:
    """Let each call of a commit fail in each way, all in one run; returns what became of it."""
    calm = Disk()
    with calm.in_place():
        notebook.run(launch(notebook, FIRST + 2, size, options, name="calm"))
    calls = calm.seen[FIRST]
    plan = [(at, way) for at in range(len(calls)) for way in WAYS if "write" not in way or "write" in calls[at]]
    disk = Disk({FIRST + 2 * n: fault(*one) for n, one in enumerate(plan)})
    after: dict[int, tuple[int, list[str], int]] = {}

    def ended(seq: int, folder: Path) -> None:
        after[seq] = (latest(folder), [path.name for path in folder.glob(".*")], len(notebook.said))

    disk.ended = ended
    count = FIRST + 2 * len(plan) + 1
    del notebook.said[:]
    with disk.in_place():
        notebook.run(launch(notebook, count, size, options))
    check_result(notebook, count)
    outcomes = {}
    for n, (at, way) in enumerate(plan):
        seq = FIRST + 2 * n
        assert disk.seen[seq][at] == calls[at], "the commit went another way than the one before"
        found, left, heard = after[seq]
        said = " ".join(notebook.said[heard : after[seq + 2][2]])
        outcomes[at, way] = outcome(seq, found, said, name=f"{seq:08d}.h5")
        if way in ("ENOSPC", "EDQUOT") and "not protected" in outcomes[at, way]:
            assert "bytes needed, " in said
            assert " bytes free)" in said
        assert not left or way == FOREVER, (calls[at], way, left)
        assert after[seq + 1][:2] == (seq + 1, []), (calls[at], way)
    return {(f"{at + 1}. {calls[at]}", way): text for (at, way), text in outcomes.items()}


def outcome(seq: int, found: int, said: str, name: str) -> str:
    """Put into words what a failure led to."""
    assert found >= seq - 1, "an acknowledged snapshot is lost"
    if "not protected" in said:
        assert "protected again" in said
        assert name in said or "journal.jsonl" in said, "the message names the path"
        return "not protected until the next" if found < seq else "stands, taken for lost"
    assert found == seq
    return "an old one stays until the next" if "can't be removed" in said else "no harm"


@pytest.mark.parametrize("options", ["", "--sync"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_each_call_to_the_disk_fails_in_each_way_and_the_loop_goes_on(disk_notebook, size, options):
    """The last good snapshot stays, nothing half is left, the next boundary protects again, the result is the same."""
    outcomes = disturb(disk_notebook, size, options)
    title = "written anew" if size == SMALL else "written over an older one"
    lines = table(title, outcomes)
    if os.environ.get("NBRESUME_WRITE_FAULTS"):
        write(title, lines)
    assert lines in PAGE.read_text(encoding="utf-8")


def table(title: str, outcomes: dict[tuple[str, str], str]) -> str:
    """Draw a table: a row a call, and for each outcome the ways to fail that led to it."""
    lines = [f"## A snapshot that is {title}", "", "| call | fails with | and then |", "| --- | --- | --- |"]
    rows = dict.fromkeys(call for call, _ in outcomes)
    for call in rows:
        by: dict[str, list[str]] = {}
        for (one, way), text in outcomes.items():
            if one == call:
                by.setdefault(text, []).append(way)
        lines += [f"| {call} | {', '.join(ways)} | {text} |" for text, ways in by.items()]
    return "\n".join(lines) + "\n"


def write(title: str, lines: str) -> None:
    head, *parts = PAGE.read_text(encoding="utf-8").split("\n## ")
    kept = ["## " + part.strip() + "\n" for part in parts if title not in part.partition("\n")[0]]
    PAGE.write_text(head.rstrip() + "\n\n" + "\n".join(sorted([*kept, lines])), encoding="utf-8")
