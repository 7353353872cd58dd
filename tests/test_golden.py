"""Files of every format so far, as they were written then, are read for good."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from _support import load
from independent_reader import read

from nbresume._store import Snapshot
from nbresume._types import FORMAT

GOLDEN = Path(__file__).with_name("golden")
sys.path.insert(0, str(GOLDEN))
from make import GRIDS, KEY, STATES  # noqa: E402

FILES = sorted(GOLDEN.glob("format-*/*.h5"))


def same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def test_there_are_deltas_among_them():
    assert [bool(Snapshot(path).base) for path in FILES if path.stem in GRIDS] == [
        False,
        False,
        True,
    ]  # what has changed in a page shows from the third on


def test_there_are_files_of_every_format():
    assert {path.parent.name for path in FILES} == {f"format-{number}" for number in range(1, FORMAT + 1)}
    assert {path.stem for path in FILES if path.parent.name == f"format-{FORMAT}"} == set(STATES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_of_an_earlier_version_gives_what_it_was_made_of(path, monkeypatch):
    monkeypatch.delenv("NBRESUME_KEY_FILE", raising=False)
    monkeypatch.setenv("NBRESUME_KEY", KEY)
    snapshot = Snapshot(path)
    snapshot.verify()
    assert snapshot.meta["where"] == f"epoch {snapshot.seq}"
    found = load(snapshot)
    assert same(STATES[path.stem], found)
    if "shared" in found:
        assert found["shared"][0] is found["shared"][1]
    arrays = read(path)[1]
    assert all(same(STATES[path.stem][name], array) for name, array in arrays.items())
    assert set(arrays) == {name for name, value in STATES[path.stem].items() if isinstance(value, np.ndarray)}
