"""Files that a cell writes by itself: no row twice, no row lost, and nobody else's work overwritten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nbresume.testing import attempt, rehearse

# name -> (cell, files, cells before it)
SHAPES = {
    "append in the body": (
        "for i in range(4):\n    with open('log.csv', 'a') as f:\n        f.write(f'{i},{random.random()}\\n')\n",
        "log.csv",
        "",
    ),
    "append with a header": (
        "open('log.csv', 'w').write('i,x\\n')\nfor i in range(4):\n    with open('log.csv', 'a') as f:\n        print(i, file=f)\n",
        "log.csv",
        "",
    ),
    "header only when new": (
        "import os\nfor i in range(4):\n    new = not os.path.exists('log.csv')\n    with open('log.csv', 'a') as f:\n        if new: f.write('i\\n')\n        f.write(f'{i}\\n')\n",
        "log.csv",
        "",
    ),
    "append to a file that was there": (
        "for i in range(3):\n    open('log.csv', 'a').write(f'{i}\\n')\n",
        "log.csv",
        "import os\nif not os.path.exists('log.csv'): open('log.csv', 'w').write('old\\n')\n",
    ),
    "rewritten each iteration": (
        "import json\nfor i in range(4):\n    with open('status.json', 'w') as f:\n        json.dump({'i': i, 'pad': 'x' * (9 - i)}, f)\n",
        "status.json",
        "",
    ),
    "open around the loop": (
        "with open('log.txt', 'w') as f:\n    for i in range(4):\n        f.write(f'{i} {random.random()}\\n')\n    f.write('end\\n')\n",
        "log.txt",
        "",
    ),
    "open around, flushed and not": (
        "with open('log.txt', 'w') as f:\n    for i in range(4):\n        f.write('x' * 3000)\n        if i % 2: f.flush()\n",
        "log.txt",
        "",
    ),
    "opened in the set-up": (
        "f = open('log.txt', 'w')\nf.write('head\\n')\nfor i in range(3):\n    f.write(f'{i}\\n')\nf.close()\n",
        "log.txt",
        "",
    ),
    "two files": (
        "with open('a.txt', 'w') as a, open('b.bin', 'wb') as b:\n    for i in range(3):\n        a.write(str(i))\n        b.write(bytes([i]))\n",
        "a.txt,b.bin",
        "",
    ),
    "csv writer": (
        "import csv\nwith open('t.csv', 'w', newline='') as f:\n    w = csv.writer(f)\n    w.writerow(['i', 'x'])\n    for i in range(3):\n        w.writerow([i, random.random()])\n",
        "t.csv",
        "",
    ),
    "read by lines": (
        "got = []\nwith open('in.txt') as f:\n    for line in f:\n        got.append(line.strip() + str(random.random()))\nopen('out.txt', 'w').write('\\n'.join(got))\n",
        "out.txt",
        "open('in.txt', 'w').write('a\\nb\\nc\\nd\\n')",
    ),
    "read by hand": (
        "f = open('in.txt')\ngot = []\nwhile line := f.readline():\n    got.append(line)\nf.close()\nopen('out.txt', 'w').write(''.join(got))\n",
        "out.txt",
        "open('in.txt', 'w').write('a\\nb\\nc\\n')",
    ),
    "pathlib": (
        "from pathlib import Path\nfor i in range(3):\n    Path('p.txt').write_text('y' * i)\n    with Path('q.txt').open('a') as f: f.write(str(i))\n",
        "p.txt,q.txt",
        "",
    ),
    "one file an iteration": (
        "for i in range(3):\n    with open(f'part-{i}.txt', 'w') as f: f.write(str(random.random()))\n",
        "part-0.txt,part-1.txt,part-2.txt",
        "",
    ),
    "written in a function": (
        "for i in range(3):\n    save(i)\n",
        "log.txt",
        "def save(i):\n    with open('log.txt', 'a') as f: f.write(f'{i}\\n')\n",
    ),
    "json lines and a summary": (
        "import json\nfor i in range(3):\n    with open('m.jsonl', 'a') as f: f.write(json.dumps({'i': i}) + '\\n')\nwith open('sum.txt', 'w') as f: f.write(open('m.jsonl').read())\n",
        "m.jsonl,sum.txt",
        "",
    ),
    "in another folder": (
        "import os\nos.makedirs('out', exist_ok=True)\nos.chdir('out')\nfor i in range(3):\n    open('log.txt', 'a').write(f'{i}\\n')\nos.chdir('..')\n",
        "out/log.txt",
        "",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_files_come_out_the_same_killed_at_any_boundary(shape):
    cell, files, before = SHAPES[shape]
    found = rehearse(
        cell, "import random\n" + before, names=["i"] if "range" in cell else ["got"], files=files.split(",")
    )
    assert found.ok, str(found)
    assert found.kills >= 4


@pytest.mark.parametrize("shape", ["append in the body", "rewritten each iteration", "open around the loop"])
def test_files_come_out_the_same_when_iterations_run_again(shape):
    """Between two snapshots rows were written that the resume writes again."""
    cell, files, before = SHAPES[shape]
    found = rehearse(cell, "import random\n" + before, names=["i"], files=files.split(","), options="--every 3")
    assert found.ok, str(found)


APPEND = "for i in range(6):\n    with open('log.csv', 'a') as f:\n        f.write(f'{i}\\n')\n"
MAGIC = "%%resumable t --vars i --every 3 --sync --on-restart continue\n"


def test_rows_beyond_the_snapshot_are_cut_kept_aside_and_journalled(tmp_path):
    cell = (
        MAGIC
        + "import os\n"
        + APPEND
        + "    print(i)\n    if i == 5 and not os.path.exists('go'): os.kill(os.getpid(), 9)\n"
    )
    assert attempt("", cell, tmp_path, names=["i"]).status == "killed"
    assert (tmp_path / "log.csv").read_text() == "0\n1\n2\n3\n4\n5\n"
    (tmp_path / "go").touch()
    second = attempt("", cell, tmp_path, names=["i"])
    assert second.status == "ended", second.error
    assert (tmp_path / "log.csv").read_text() == "0\n1\n2\n3\n4\n5\n"
    (run,) = (tmp_path / ".nbresume").glob("t-*")
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    cut = [event for event in events if event["event"] == "cut"]
    assert [(event["file"], event["bytes"]) for event in cut] == [("log.csv", 4)]
    assert any(path.read_text() == "0\n1\n2\n3\n4\n5\n" for path in (run / "aside").rglob("*log.csv*"))
    (told,) = [line for line in second.printed.splitlines() if "continued" in line]
    assert "; log and log.csv cut back by 2 rows; " in told


def killed(folder: Path) -> str:
    """Leave a run behind whose process died after its second snapshot; returns its cell."""
    cell = MAGIC + APPEND
    assert attempt("", cell, folder, kill_at=2).status == "killed"
    return cell


def test_a_file_that_someone_else_changed_stops_the_resume_and_stays(tmp_path):
    cell = killed(tmp_path)
    (tmp_path / "log.csv").write_text("mine!\n\n\n")
    found = attempt("", cell, tmp_path)
    assert found.status == "error"
    assert "log.csv was changed by someone else" in found.error
    assert (tmp_path / "log.csv").read_text() == "mine!\n\n\n"


def test_a_small_file_that_an_earlier_cell_removed_is_put_back(tmp_path):
    cell = killed(tmp_path)
    (tmp_path / "log.csv").unlink()
    assert attempt("", cell, tmp_path).status == "ended"
    assert (tmp_path / "log.csv").read_text() == "0\n1\n2\n3\n4\n5\n"


def test_a_large_file_that_is_gone_stops_the_resume(tmp_path):
    """What is not kept in the snapshot can't be put back, and going on would write half a file."""
    cell = MAGIC + APPEND.replace("f'{i}\\n'", "f'{i}\\n' * 1_000_000")
    assert attempt("", cell, tmp_path, kill_at=3).status == "killed"
    assert (tmp_path / "log.csv").stat().st_size == 8_000_000
    (tmp_path / "log.csv").unlink()
    found = attempt("", cell, tmp_path)
    assert found.status == "error"
    assert "log.csv" in found.error
    assert "gone" in found.error


def test_a_notebook_that_was_moved_with_its_files_and_its_runs_goes_on_there(tmp_path):
    """The file beside the notebook is cut back, and the one at the old place is nobody's any more."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    cell = MAGIC + "import os\n" + APPEND + "    if i == 5 and not os.path.exists('go'): os.kill(os.getpid(), 9)\n"
    assert attempt("", cell, old).status == "killed"
    shutil.copytree(old, new)
    (new / "go").touch()
    found = attempt("", cell, new)

    assert found.status == "ended", found.error
    assert (new / "log.csv").read_text() == (old / "log.csv").read_text() == "0\n1\n2\n3\n4\n5\n"


def test_a_stop_for_a_changed_cell_touches_no_file(tmp_path):
    killed(tmp_path)
    with (tmp_path / "log.csv").open("a") as file:
        file.write("more\n")
    before = (tmp_path / "log.csv").read_text()
    assert attempt("", MAGIC + "x = 1\n" + APPEND, tmp_path).status == "error"
    assert (tmp_path / "log.csv").read_text() == before


def test_a_file_written_before_the_first_snapshot_is_as_it_was_at_the_launch(tmp_path):
    (tmp_path / "log.csv").write_text("old\n")
    cell = MAGIC + "open('log.csv', 'a').write('head\\n')\nopen('new.txt', 'w').write('x')\n" + APPEND
    assert attempt("", cell, tmp_path, kill_at=1, when="before").status == "killed"
    assert attempt("", cell, tmp_path).status == "ended"
    assert (tmp_path / "log.csv").read_text() == "old\nhead\n0\n1\n2\n3\n4\n5\n"


def test_a_completed_run_restores_without_touching_its_files(tmp_path):
    assert attempt("", MAGIC + APPEND, tmp_path).status == "ended"
    with (tmp_path / "log.csv").open("a") as file:
        file.write("added later\n")
    assert attempt("", MAGIC + APPEND, tmp_path).status == "ended"
    assert (tmp_path / "log.csv").read_text() == "0\n1\n2\n3\n4\n5\nadded later\n"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        ("import h5py\nf = h5py.File('d.h5', 'w')", "d.h5"),
        ("import sqlite3\nf = sqlite3.connect('d.db')\nf.execute('create table t (a)')\nf.commit()", "d.db"),
        ("import numpy as np\nf = np.memmap('d.dat', 'f8', 'w+', shape=9)", "d.dat"),
    ],
)
def test_a_file_written_in_place_across_the_loop_is_refused_by_name(tmp_path, make, name):
    found = attempt("", f"{MAGIC}{make}\nfor i in range(3):\n    pass\n", tmp_path)
    assert found.status == "error"
    assert name in found.error or "f" in found.error.split("'")[1:2]
    assert "Refused" in found.error or "Unsaveable" in found.error


def test_open_is_given_back_and_files_of_others_do_not_count(notebook):
    import builtins
    import io

    before = builtins.open, io.open
    notebook.run("%%resumable t --vars i\nfor i in range(3):\n    open('x', 'a').write('1')\n")
    assert (builtins.open, io.open) == before
    notebook.fails("%%resumable u --vars i\nfor i in range(3):\n    1 / 0\n")
    assert (builtins.open, io.open) == before


def test_what_is_printed_is_in_the_log_once(tmp_path):
    cell = "%%resumable t --vars i --every 2 --on-restart continue\nprint('start')\nfor i in range(5):\n    print('step', i)\nprint('ende µ')\n"
    assert attempt("", cell, tmp_path, kill_at=3, when="before").status == "killed"
    assert attempt("", cell, tmp_path).status == "ended"
    (run,) = (tmp_path / ".nbresume").glob("t-*")
    lines = (run / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("step")] == [f"step {i}" for i in range(5)]
    assert lines[-1] == "ende µ"
    assert not [line for line in lines if "t: " in line]


def test_a_death_on_the_way_back_leaves_no_file_aside(tmp_path):
    """The set-up runs again while the files stand aside; killed just there, the next attempt finds them."""
    cell = "%%resumable t --vars i --every 1 --on-restart continue\n" + (
        "import os, signal\nif os.path.exists('die'):\n    os.kill(os.getpid(), signal.SIGKILL)\n" + APPEND
    )
    assert attempt("", cell, tmp_path, kill_at=4).status == "killed"
    (tmp_path / "die").touch()
    assert attempt("", cell, tmp_path).status == "killed"
    assert not (tmp_path / "log.csv").exists()
    (tmp_path / "die").unlink()
    assert attempt("", cell, tmp_path).status == "ended"
    assert (tmp_path / "log.csv").read_text() == "".join(f"{i}\n" for i in range(6))


def test_a_resume_that_stops_on_the_way_puts_the_files_back(tmp_path):
    setup = (
        "import os\nfrom contextlib import contextmanager\n@contextmanager\ndef note():\n"
        "    if os.path.exists('again'): seen.append(1)\n    yield\n"
    )
    body = "seen = []\nfor i in range(3):\n    with note():\n        for k in range(2):\n            open('log.csv', 'a').write(f'{i}{k} ')\n"
    cell = "%%resumable t --vars seen --every 1 --on-restart continue\n" + body
    assert attempt(setup, cell, tmp_path, kill_at=6).status == "killed"
    before = (tmp_path / "log.csv").read_text()
    (tmp_path / "again").touch()
    found = attempt(setup, cell, tmp_path)
    assert found.error.startswith("ReplayError")
    assert (tmp_path / "log.csv").read_text() == before


def test_a_rewritten_file_that_a_resume_put_back_is_still_known_as_one(tmp_path):
    """Killed twice: the second attempt has not written it again, and the third changes nothing it should not."""
    body = "for i in range(8):\n    open(f'w{i % 4}.txt', 'w').write(str(i) * 3)\n"
    cell = "%%resumable t --vars i --every 1 --on-restart continue\n" + body
    assert attempt("", cell, tmp_path, kill_at=6, when="before").status == "killed"
    assert attempt("", cell, tmp_path, kill_at=3, when="before").status == "killed"
    assert attempt("", cell, tmp_path).status == "ended"
    assert [(tmp_path / f"w{i}.txt").read_text() for i in range(4)] == ["444", "555", "666", "777"]
