"""Files that are renamed, removed, too large, held, or somebody else's; and deaths between a write and its boundary."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from nbresume.testing import attempt, rehearse

MAGIC = "%%resumable t --vars i --every 1 --on-restart continue\n"
IMPORTS = "import os, json, random, shutil, subprocess\nfrom pathlib import Path\nimport h5py, numpy as np\n"
DIE = "    if i == 2 and os.path.exists('die'): os.kill(os.getpid(), 9)\n"
JOBS = "if not os.path.exists('jobs'):\n    os.mkdir('jobs')\n    for n in range(4): Path(f'jobs/j{n}').write_text(str(n))\n"

# name -> (cell, cells before it, declared name, files)
IDIOMS = {
    "a queue of jobs, moved when done": (
        "jobs = sorted(os.listdir('jobs'))\nos.makedirs('done', exist_ok=True)\ngot = []\nfor j in jobs:\n    got.append(Path('jobs', j).read_text() + str(random.random()))\n    os.rename(f'jobs/{j}', f'done/{j}')\n",
        JOBS,
        "got",
        "jobs/j0 jobs/j2 done/j0 done/j2 done/j3",
    ),
    "a folder made in the set-up, without a look": (
        "os.mkdir('out')\nout = Path('out')\nfor i in range(3):\n    with h5py.File(out / 'r.h5', 'a') as f: f[f'e{i}'] = np.random.rand(3)\n    (out / 's.json').write_text(str(i))\n",
        "",
        "i",
        "out/r.h5 out/s.json",
    ),
    "set-up that removes and renames": (
        "os.remove('old.csv')\nos.rename('in.txt', 'in.bak')\nfor i in range(3):\n    with open('old.csv', 'a') as f: f.write(str(i))\n",
        "if not os.path.exists('one'):\n    for one in ('one', 'old.csv', 'in.txt'): Path(one).write_text(one)\n",
        "i",
        "old.csv in.txt in.bak",
    ),
    "set-up that reads what the loop appends to": (
        "had = Path('log.csv').read_text()\nfor i in range(3):\n    with open('log.csv', 'a') as f: f.write(had + str(i))\n",
        "if not os.path.exists('log.csv'): Path('log.csv').write_text('old ')\n",
        "i",
        "log.csv",
    ),
    "a folder that gets its name when complete": (
        "for i in range(3):\n    os.makedirs('part')\n    Path('part/a.txt').write_text(str(i))\n    with h5py.File('part/b.h5', 'w') as f: f['x'] = i\n    os.rename('part', f'whole{i}')\n",
        "",
        "i",
        "whole0/a.txt whole2/b.h5 part/a.txt",
    ),
    "a name that an object keeps": (
        "for i in range(4):\n    keeper.save(i)\n",
        "class Keeper:\n    def __init__(self):\n        self.folder = 'deep/er'\n        os.makedirs(self.folder, exist_ok=True)\n    def save(self, i):\n        with h5py.File(os.path.join(self.folder, 'w_' + str(i % 2) + '.h5'), 'a') as f: f[f'e{i}'] = i\nkeeper = Keeper()\n",
        "i",
        "deep/er/w_0.h5 deep/er/w_1.h5",
    ),
    "a program that is called": (
        "for i in range(3):\n    subprocess.run(f'echo {i} >> sub.txt', shell=True)\n",
        "",
        "i",
        "sub.txt",
    ),
    "held open and written over": (
        "with open('st.txt', 'w') as f:\n    for i in range(3):\n        f.seek(0)\n        f.truncate()\n        f.write(f'epoch {i}')\n        f.flush()\n",
        "",
        "i",
        "st.txt",
    ),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_what_is_renamed_made_or_named_in_roundabout_ways_comes_out_the_same(idiom):
    cell, before, name, files = IDIOMS[idiom]
    found = rehearse(cell, IMPORTS + before, names=[name], files=files.split(), kill_at=[1, 2, 4])
    assert found.ok, str(found)


@pytest.mark.parametrize(
    "write",
    [
        "with h5py.File('f.h5', 'a') as f: f[f'e{i}'] = i",
        "with open('f.h5', 'ab') as f: f.write(bytes([i]))",
        "with open('f.h5.tmp', 'wb') as f: f.write(bytes(9) + bytes([i]))\n    os.replace('f.h5.tmp', 'f.h5')",
    ],
    ids=["below Python", "append", "replace"],
)
def test_killed_between_a_write_and_its_boundary_twice_and_on_the_way_back(tmp_path, write):
    """Three deaths in one interval; what was undone is not undone again, and nothing stands twice."""
    cell = (
        MAGIC + "if os.path.exists('die early'): os.kill(os.getpid(), 9)\nfor i in range(4):\n    " + write + "\n" + DIE
    )
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    folder.mkdir()
    assert attempt(IMPORTS, cell, whole).status == "ended"
    for flag in ("die", "die early", "die"):
        (folder / flag).touch()
        assert attempt(IMPORTS, cell, folder).status == "killed"
        (folder / flag).unlink()
    assert attempt(IMPORTS, cell, folder).status == "ended"
    assert (folder / "f.h5").read_bytes() == (whole / "f.h5").read_bytes()
    assert not (folder / "f.h5.tmp").exists()


def test_in_the_same_kernel_files_go_back_as_well(notebook):
    """An error in the body is no death; running the cell again goes on from the snapshot, with its files."""
    notebook.run(IMPORTS)
    cell = (
        MAGIC
        + "log = open('log.txt', 'w')\nfor i in range(3):\n    with h5py.File('f.h5', 'a') as f: f[f'e{i}'] = i\n    log.write(f'{i} ')\n    if i == 1 and os.path.exists('fail'): 1 / 0\nlog.close()\n"
    )
    Path("fail").touch()
    notebook.fails(cell)
    Path("fail").unlink()
    notebook.run(cell)
    with h5py.File("f.h5") as file:
        assert sorted(file) == ["e0", "e1", "e2"]
    assert Path("log.txt").read_text() == "0 1 2 "


@pytest.mark.parametrize(
    ("held", "name"),
    [
        ("with gzip.open('x.gz', 'at') as f:", "x.gz"),
        ("with bz2.open('x.bz2', 'wt') as f:", "x.bz2"),
        ("with lzma.open('x.xz', 'wt') as f:", "x.xz"),
        ("with zipfile.ZipFile('x.zip', 'w') as f:", "x.zip"),
        ("with tarfile.open('x.tar', 'w') as f:", "x.tar"),
    ],
)
def test_a_stream_with_a_state_of_its_own_held_across_a_boundary_is_refused_by_name(tmp_path, held, name):
    """In the middle of a compressed stream there is no length to cut to."""
    found = attempt(
        "import gzip, bz2, lzma, zipfile, tarfile", f"{MAGIC}{held}\n    for i in range(3): pass\n", tmp_path
    )
    assert found.error.startswith(("RefusedError", "UnsaveableError"))
    assert name in found.error


def test_what_is_too_large_to_be_copied_is_refused_with_its_size_and_a_way_out(tmp_path):
    write = "    with open('big.bin', 'r+b' if os.path.exists('big.bin') else 'w+b') as f:\n        f.truncate(300 << 20)\n        f.write(bytes([i + 1]))\n"
    found = attempt(IMPORTS, MAGIC + "open('big.bin', 'w').close()\nfor i in range(3):\n" + write, tmp_path)
    assert found.error.startswith("RefusedError: big.bin is written in place, and with 314,572,800 bytes")
    assert "os.replace()" in found.error


def test_a_large_file_that_is_removed_or_replaced_after_the_snapshot_comes_back_without_a_copy(tmp_path):
    """What loses its name keeps its bytes in the run's folder, whatever its size."""
    before = "if not os.path.exists('one'):\n    Path('one').touch()\n    for name in ('gone.bin', 'old.bin'):\n        with open(name, 'wb') as f: f.truncate(300 << 20)\n"
    cell = (
        MAGIC
        + "for i in range(3):\n    if os.path.exists('look'): os.kill(os.getpid(), 9)\n    if i == 1:\n        os.remove('gone.bin')\n        Path('new.tmp').write_text('new')\n        os.replace('new.tmp', 'old.bin')\n        if os.path.exists('die'): os.kill(os.getpid(), 9)\n"
    )
    (tmp_path / "die").touch()
    assert attempt(IMPORTS + before, cell, tmp_path).status == "killed"
    (tmp_path / "die").unlink()
    assert not (tmp_path / "gone.bin").exists()
    (tmp_path / "look").touch()
    assert attempt(IMPORTS, cell, tmp_path).status == "killed"
    (tmp_path / "look").unlink()
    assert os.path.getsize(tmp_path / "gone.bin") == os.path.getsize(tmp_path / "old.bin") == 300 << 20
    assert attempt(IMPORTS, cell, tmp_path).status == "ended"
    assert (tmp_path / "old.bin").read_text() == "new"
    assert not (tmp_path / "gone.bin").exists()


def test_files_of_others_beside_the_cells_are_left_alone(tmp_path):
    """The editor, another notebook, a download: what the cell does not name is not its own, before or after a death."""
    cell = (
        MAGIC.replace("--every 1", "--every 1 --sync")  # so that what is done again is known
        + "for i in range(4):\n    with h5py.File('mine.h5', 'a') as f: f[f'e{i}'] = i\n    subprocess.run('date +%N | tee theirs.h5 notes.txt work.ipynb', shell=True)\n"
        + DIE
    )
    cell = cell.replace("'date +%N | tee theirs.h5 notes.txt work.ipynb'", "os.environ['OTHERS']")
    others = "os.environ['OTHERS'] = 'echo 1 | tee -a theirs.h5 notes.txt work.ipynb'\n"
    (tmp_path / "die").touch()
    assert attempt(IMPORTS + others, cell, tmp_path).status == "killed"
    (tmp_path / "die").unlink()
    for name in ("theirs.h5", "notes.txt", "work.ipynb"):
        (tmp_path / name).write_text("changed after the death")
    assert attempt(IMPORTS + others, cell, tmp_path).status == "ended"
    for name in ("theirs.h5", "notes.txt", "work.ipynb"):
        assert (tmp_path / name).read_text() == "changed after the death" + "1\n" * 2
    with h5py.File(tmp_path / "mine.h5") as file:
        assert sorted(file) == ["e0", "e1", "e2", "e3"]


def test_a_file_of_which_only_the_end_is_named_is_spoken_of(tmp_path):
    """It may be another notebook's: it is not put back, and that is said where it is first seen."""
    setup = IMPORTS + "def save(name, i):\n    with h5py.File(f'{name}.h5', 'a') as f: f[f'e{i}'] = i\n"
    found = attempt(setup, MAGIC + "for i in range(3):\n    save('xy'[i % 2] + 'z', i)\n", tmp_path)
    assert found.status == "ended"
    assert found.printed.count("xz.h5 was written while the cell ran") == 1
    assert found.printed.count("yz.h5 was written while the cell ran") == 1


def test_a_large_file_below_python_that_cannot_be_put_back_stops_the_resume(tmp_path):
    """It was there, the cell names it, and it was first written by the iteration that died: no copy tells what it was."""
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["x"] = np.arange(300_000)
    cell = MAGIC + "for i in range(4):\n    if i == 2:\n        with h5py.File('data.h5', 'a') as f: f['y'] = i\n" + DIE
    (tmp_path / "die").touch()
    assert attempt(IMPORTS, cell, tmp_path).status == "killed"
    (tmp_path / "die").unlink()
    found = attempt(IMPORTS, cell, tmp_path)
    assert found.error.startswith("ReplayError")
    assert "data.h5" in found.error


def test_nothing_is_followed_when_no_cell_runs(notebook):
    """The hook stays in the process; after the cell it tells nobody."""
    notebook.run("%%resumable t --vars i\nfor i in range(2): pass")
    before = notebook.files()
    Path("x.txt").write_text("x")
    os.rename("x.txt", "y.txt")
    os.remove("y.txt")
    assert notebook.files() == before


def test_workers_and_threads_of_the_cell_write_as_ever(tmp_path):
    """A forked worker's files are its own business; a thread's are the cell's."""
    cell = MAGIC + (
        "import threading, multiprocessing\n"
        "def note(n): Path(f'w{n}.txt').write_text('w')\n"
        "for i in range(3):\n"
        "    t = threading.Thread(target=lambda: open('t.txt', 'a').write(f'{i} '))\n    t.start(); t.join()\n    del t\n"
        "    p = multiprocessing.get_context('fork').Process(target=note, args=(i,))\n    p.start(); p.join()\n    code = p.exitcode\n    del p\n    assert not code\n"
    )
    for kill_at in (3, None):
        found = attempt(IMPORTS, cell, tmp_path, kill_at=kill_at, when="before")
        assert found.status == ("killed" if kill_at else "ended"), found.error
    assert (tmp_path / "t.txt").read_text() == "0 1 2 "
    assert (tmp_path / "w2.txt").read_text() == "w"


def test_a_collection_that_the_cell_names_is_not_copied_and_a_change_is_said(tmp_path):
    """Hundreds of pictures whose names the cell puts together are its data: what they cost is a look at each."""
    before = "for n in range(300): Path(f'img_{n}.txt').write_text('x' * 99)\n"
    cell = MAGIC + "for i in range(4):\n    text = Path(f'img_{i}.txt').read_text()\n"
    assert attempt(IMPORTS + before, cell, tmp_path, kill_at=2).status == "killed"
    (run,) = (tmp_path / ".nbresume").glob("t-*")
    assert not (run / "files").exists()
    (tmp_path / "img_7.txt").write_text("changed")
    found = attempt(IMPORTS, cell, tmp_path)
    assert found.status == "ended"
    assert "img_7.txt and 0 other files that the cell names are not what they were" in found.printed
    assert (tmp_path / "img_7.txt").read_text() == "changed"


def test_a_complete_runs_file_that_was_rewritten_since_is_left_and_spoken_of(tmp_path):
    """Somebody may have gone on with it: it is not put back, and that is said."""
    cell = MAGIC + "for i in range(2):\n    with h5py.File('f.h5', 'a') as f: f[f'e{i}'] = i\n"
    assert attempt(IMPORTS, cell, tmp_path).status == "ended"
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["mine"] = 1
    found = attempt(IMPORTS, cell, tmp_path)
    assert found.status == "ended"
    assert "f.h5 is not what it was when the run was complete; it is left as it is" in found.printed
    with h5py.File(tmp_path / "f.h5") as file:
        assert list(file) == ["mine"]


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm")
def test_a_store_in_memory_is_no_file_of_the_cell_and_files_beside_it_are():
    """People keep what has to be fast in a folder of /dev/shm; what lies there directly is memory that processes share."""
    cell = "for i in range(3):\n    with h5py.File('f.h5', 'a') as f: f[f'e{i}'] = i\n"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        assert attempt(IMPORTS, MAGIC + cell, Path(folder), kill_at=3, when="before").status == "killed"
        assert attempt(IMPORTS, MAGIC + cell, Path(folder)).status == "ended"
        with h5py.File(Path(folder, "f.h5")) as file:
            assert sorted(file) == ["e0", "e1", "e2"]
        held = "h = h5py.File('held.h5', 'w')\nfor i in range(3): pass\n"
        assert "held.h5" in attempt(IMPORTS, MAGIC.replace(" t ", " u ") + held, Path(folder)).error
