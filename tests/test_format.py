"""The format, from outside: read by a program that knows nothing of nbresume, and every byte of a file counts."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from _support import commit, commit_again
from independent_reader import read

from nbresume._capture import Definitions, capture
from nbresume._store import Snapshot, SnapshotError, Store
from nbresume._store._seal import Seal
from nbresume._store._staging import SMALL

READER = Path(__file__).with_name("independent_reader.py")
FORMAT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "file-format.md"

VALUES = {
    "weights": np.arange(60_000.0).reshape(200, 300),
    "counts": np.arange(4, dtype="i2"),
    "flag": np.array(True),
    "signal": np.exp(1j * np.arange(3)),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "history": [1.5, None, "größer"],
    "nested": {"a/b": np.arange(SMALL * 2, dtype="u1"), "..": np.arange(3)},
}


@pytest.fixture
def run(tmp_path):
    return Store(tmp_path / "store").create("train", {})


@pytest.fixture
def path(run):
    return commit(run, VALUES, where="epoch 3 of 30")


def test_the_independent_reader_is_short_and_knows_nothing_of_nbresume():
    text = READER.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    tree = ast.parse(text)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} | {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported <= {"h5py", "numpy", "xxhash", "json", "hashlib", "io", "pathlib", "sys"}


def test_an_independent_reader_gets_the_arrays_and_where_the_run_stands(path):
    meta, arrays = read(path)
    assert meta["where"] == "epoch 3 of 30"
    assert meta["snapshot"] == path.stem
    assert set(arrays) == {name for name, value in VALUES.items() if isinstance(value, np.ndarray)}
    for name, array in arrays.items():
        assert (array.dtype, array.shape) == (VALUES[name].dtype, VALUES[name].shape)
        assert np.array_equal(array, VALUES[name])


def test_it_reads_a_file_that_was_written_over_an_older_one(run):
    commit_again(run, range(8))
    for snapshot in run.snapshots():
        meta, arrays = read(snapshot.path)
        assert meta["step"] == snapshot.seq
        assert (arrays["state"] == snapshot.seq).all()


def test_it_reads_a_delta_and_notices_what_has_changed_in_it_and_below(run):
    writer, state = run.writer(), np.zeros((6000, 512))
    for step in range(6):
        state[step::50] = step
        found = capture({"state": state}, definitions=Definitions({}), inputs={}, places={"state": state})
        path = run.snapshot_path(1, step)
        writer.commit(writer.stage(path, {"step": step}, found.stream, found.tables, found.blocks))
    assert Snapshot(path).base
    meta, arrays = read(path)
    assert meta["step"] == step
    assert np.array_equal(arrays["state"], state)
    base = path.with_name(f"{Snapshot(path).base}.h5")
    for one in (path, base):
        data = one.read_bytes()
        one.write_bytes(data[: len(data) // 2] + b"damage" * 2000 + data[len(data) // 2 + 12000 :])
        with pytest.raises(ValueError, match="has changed"):
            read(path)
        one.write_bytes(data)
    read(path)


def test_it_reads_what_a_cell_has_saved(notebook):
    notebook.run("import numpy as np; state = np.zeros(1000); log = []")
    notebook.run("%%resumable train --vars state,log --every 1\nfor i in range(5):\n    state += i\n    log.append(i)")
    (run,) = notebook.runs
    snapshot, _ = run.latest()
    meta, arrays = read(snapshot.path)
    assert np.array_equal(arrays["state"], notebook["state"])
    assert (meta["run"], meta["attempt"], meta["seq"]) == (run.id, 1, snapshot.seq)
    inside = read(run.snapshots()[-2].path)[0]
    assert inside["cursor"][0]["kind"] == "for"
    told = subprocess.run([sys.executable, READER, snapshot.path], capture_output=True, text=True, check=True).stdout
    assert "state: float64 (1000,)" in told


def test_it_notices_what_nbresume_notices(path):
    data = bytearray(path.read_bytes())
    for place in random.Random(5).sample(range(len(data)), 60):
        data[place] ^= 64
        path.write_bytes(data)
        with pytest.raises(ValueError, match="changed|no snapshot|Invalid|Expecting|unpack|enough|codec"):
            read(path)
        data[place] ^= 64


def parts_of(path: Path) -> dict[str, tuple[int, int]]:
    """Return where each part of a file lies, gaps and HDF5's own bytes among them."""
    facts = Seal.read(path.read_bytes()[:4096]).facts
    found = {"first page, its text": (0, 600), "first page, its padding": (600, 4096), "head": (4096, facts["body"])}
    with h5py.File(path, "r") as file:

        def visit(name, node):
            if isinstance(node, h5py.Dataset) and node.size:
                start = node.id.get_offset()
                found[name] = (start, start + node.nbytes)

        file.visititems(visit)
    for part in ("meta", "objects", "tables"):
        found[part] = (facts[part][0], facts[part][0] + facts[part][1])
    taken = sorted(found.values())
    gaps = [(a[1], b[0]) for a, b in zip(taken, taken[1:], strict=False) if b[0] > a[1]]
    found |= {f"gap {n}": gap for n, gap in enumerate(gaps[:6])}
    return {**found, "the last bytes": (facts["size"] - 8, facts["size"])}


def test_a_thousand_single_bytes_changed_over_all_parts_are_all_noticed(path):
    chance, data, tried = random.Random(4), bytearray(path.read_bytes()), set()
    parts = parts_of(path)
    assert {"first page, its text", "head", "nbresume/meta", "nbresume/digests", "nbresume/heap", "vars/weights", "objects",
            "tables", "gap 0", "the last bytes"} <= set(parts)  # fmt: skip
    places = [chance.randrange(*parts[name]) for name in parts for _ in range(1000 // len(parts) + 1)]
    for place in places:
        other = chance.choice([one for one in range(256) if one != data[place]])
        before, data[place] = data[place], other
        path.write_bytes(data)
        with pytest.raises(SnapshotError):
            Snapshot(path).verify()
        data[place] = before
        tried.add(place)
    assert len(places) >= 1000
    assert len(tried) > 600  # some parts have few bytes
    path.write_bytes(data)
    Snapshot(path).verify()


def test_the_recipe_is_in_the_reference():
    text = FORMAT.read_text(encoding="utf-8")
    assert READER.name in text
    for key in ("size", "body", "digests", "head", "meta", "objects", "tables", "snapshot"):
        assert f"`{key}`" in text, key
