"""Files that libraries write below, beside or through Python's ``open``, each killed at every boundary."""

from __future__ import annotations

import h5py  # noqa: F401  # once, rather than in each attempt
import pytest
import torch  # noqa: F401

from nbresume.testing import rehearse

IMPORTS = """
import os, io, json, random, pickle, shutil, sqlite3, zipfile, gzip, bz2, lzma, shelve, logging, csv, tempfile
from pathlib import Path
import numpy as np, h5py, torch
"""

# name -> (statements of the body that write in iteration i, files they write)
IN_PLACE = {
    "h5py, resized": (
        (
            "with h5py.File('grow.h5', 'a') as h:\n"
            "    if 'x' not in h: h.create_dataset('x', (0,), maxshape=(None,), dtype='f8')\n"
            "    h['x'].resize((h['x'].shape[0] + 1,))\n"
            "    h['x'][-1] = random.random()\n"
        ),
        "grow.h5",
    ),
    "sqlite, a commit an iteration": (
        (
            "db = sqlite3.connect('results.db')\n"
            "db.execute('create table if not exists t (i, x)')\n"
            "db.execute('insert into t values (?, ?)', (i, random.random()))\n"
            "db.commit()\n"
            "db.close()\n"
        ),
        "results.db",
    ),
    "memmap": (
        (
            "m = np.memmap('map.dat', 'f8', 'r+' if os.path.exists('map.dat') else 'w+', shape=9)\n"
            "m[i] = random.random()\n"
            "m.flush()\n"
            "del m\n"
        ),
        "map.dat",
    ),
    "os.open": (
        "fd = os.open('low.bin', os.O_RDWR | os.O_CREAT)\nos.pwrite(fd, bytes([i + 1]), i)\nos.close(fd)\n",
        "low.bin",
    ),
    "zip, appended": (
        (
            "with zipfile.ZipFile('all.zip', 'a') as z:\n"
            "    z.writestr(zipfile.ZipInfo(f'{len(z.namelist())}'), str(random.random()))\n"
        ),
        "all.zip",
    ),
    "shelve": ("with shelve.open('shelf') as s:\n    s[str(len(s))] = random.random()\n", "shelf.dat,shelf.dir"),
    "os.truncate": (
        "with open('cut.txt', 'a') as f: f.write('y' * 5)\nos.truncate('cut.txt', os.path.getsize('cut.txt') - 2)\n",
        "cut.txt",
    ),
}
WHOLE = {
    "torch.save": ("torch.save(torch.full((3,), random.random()), 'last.pt')\n", "last.pt"),
    "torch.save, if better": ("if random.random() < 0.6: torch.save(torch.tensor([i]), 'best.pt')\n", "best.pt"),
    "torch.save, a file each": ("torch.save(torch.tensor([random.random()]), f'step_{i}.pt')\n", "step_0.pt,step_2.pt"),
    "numpy": (
        "np.save('a.npy', np.full(i + 1, i))\nnp.savetxt('a.txt', np.full(i + 1, i))\nnp.full(9, i).tofile('a.bin')\n",
        "a.npy,a.txt,a.bin",
    ),
    "pickle": ("with open('state.pkl', 'wb') as f: pickle.dump([i] * (5 - i), f)\n", "state.pkl"),
    "pathlib": ("Path('p.txt').write_text('y' * (5 - i))\n", "p.txt"),
    "gzip": ("with gzip.GzipFile('rows.gz', 'ab', mtime=0) as f: f.write(bytes([i] * 9))\n", "rows.gz"),
    "bz2 and lzma": (
        "with bz2.open('rows.bz2', 'at') as f: f.write(str(i))\nwith lzma.open('rows.xz', 'at') as f: f.write(str(i))\n",
        "rows.bz2,rows.xz",
    ),
    "larger than a record": ("np.save('large.npy', np.full(30_000, i))\n", "large.npy"),
    "larger, one file each": ("np.save(f'part-{i}.npy', np.full(30_000, i))\n", "part-0.npy,part-2.npy"),
}
NAMES = {
    "status, written beside and renamed": (
        "with open('status.tmp', 'w') as f: json.dump({'i': i, 'pad': 'x' * (9 - i)}, f)\nos.replace('status.tmp', 'status.json')\n",
        "status.json,status.tmp",
    ),
    "large, written beside and renamed": (
        "np.save('m.tmp.npy', np.full(30_000, random.random()))\nos.replace('m.tmp.npy', 'm.npy')\n",
        "m.npy,m.tmp.npy",
    ),
    "torch, written beside and renamed": (
        "torch.save(torch.tensor([i]), 't.tmp')\nos.replace('t.tmp', 't.pt')\n",
        "t.pt,t.tmp",
    ),
    "the last three": (
        "np.save(f'keep-{i}.npy', np.full(9_000 * (i + 1), i))\nif i >= 2: os.remove(f'keep-{i - 2}.npy')\n",
        "keep-0.npy,keep-1.npy,keep-2.npy,keep-3.npy",
    ),
    "a backup of the one before": (
        "if os.path.exists('cur.txt'): shutil.move('cur.txt', 'old.txt')\nPath('cur.txt').write_text(f'{i}' * 9)\n",
        "cur.txt,old.txt",
    ),
    "copied": (
        "Path('src.txt').write_text(str(i))\nshutil.copy('src.txt', f'copy{i}.txt')\n",
        "copy0.txt,copy2.txt,src.txt",
    ),
    "a link to the latest": (
        "Path(f'run{i}.txt').write_text(str(i))\nif os.path.islink('latest'): os.remove('latest')\nos.symlink(f'run{i}.txt', 'latest')\n",
        "latest,run0.txt",
    ),
    "a folder each": (
        "os.mkdir(f'dir{i}')\nPath(f'dir{i}/x.txt').write_text(str(random.random()))\n",
        "dir0/x.txt,dir2/x.txt",
    ),
    "a folder made and removed": (
        "os.mkdir('scratch')\nPath('scratch/x').write_text('x')\nshutil.rmtree('scratch')\n",
        "scratch/x",
    ),
    "a temporary file": (
        "with tempfile.NamedTemporaryFile('w', dir='.', delete=False) as f: f.write(str(i))\nos.rename(f.name, 'named.txt')\n",
        "named.txt",
    ),
    "csv with its header": (
        (
            "new = not os.path.exists('t.csv')\n"
            "with open('t.csv', 'a', newline='') as f:\n"
            "    w = csv.DictWriter(f, ['i', 'x'])\n"
            "    if new: w.writeheader()\n"
            "    w.writerow({'i': i, 'x': random.random()})\n"
        ),
        "t.csv",
    ),
}


def cell(writers, first=""):
    body = "".join(statements for statements, _ in writers.values())
    return first + "for i in range(4):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def files(writers):
    return [name for _, names in writers.values() for name in names.split(",")]


def before(writers):
    """An earlier cell that has written the same files, once: it does not do so again in a new kernel."""
    body = "".join(statements for statements, _ in writers.values()) + "open('once', 'w').close()\n"
    head = (
        "for one in os.listdir('.'):\n    if one.startswith('dir') and os.path.isdir(one): shutil.rmtree(one)\n"
        if "dir{i}" in body
        else ""
    )
    return "if not os.path.exists('once'):\n    i = 0\n    random.seed(5)\n" + "".join(
        f"    {line}\n" for line in (body + head).splitlines()
    )


@pytest.mark.parametrize("writers", [IN_PLACE, WHOLE, NAMES], ids=["in place", "whole", "names"])
@pytest.mark.parametrize("there", ["fresh", "existing"])
def test_files_of_libraries_come_out_the_same_killed_at_any_boundary(writers, there):
    """No row stands twice, none is lost, whatever library wrote it and whether the file was there before the cell."""
    setup = IMPORTS + (before(writers) if there == "existing" else "")
    found = rehearse(cell(writers), setup, names=["i"], files=files(writers))
    assert found.ok, str(found)
    assert found.kills >= 10


@pytest.mark.parametrize("writers", [IN_PLACE, WHOLE, NAMES], ids=["in place", "whole", "names"])
def test_files_of_libraries_come_out_the_same_when_iterations_run_again(writers):
    """Between two snapshots files were written, renamed and removed that the resume finds as the snapshot knew them."""
    found = rehearse(cell(writers), IMPORTS, names=["i"], files=files(writers), options="--every 3")
    assert found.ok, str(found)
