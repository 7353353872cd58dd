"""Power cuts: what was not fsynced may be missing or torn; what was told of is there all the same."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from _power import Machine, Recorder
from _support import commit_again, load

from nbresume import _fs
from nbresume._store import RunFolder, SnapshotError, Store
from nbresume.errors import NbresumeError

STATES = 20
"""Crash states that are looked at after each call."""


SECOND = 6
"""First snapshot of the second attempt."""


def record(root: Path, size: int) -> list:
    """Record the calls of a launch, of a few commits, and of a second attempt that goes on."""
    recorder = Recorder(root)
    with recorder.in_place():
        run = Store(root).create("train", {})
        commit_again(run, range(SECOND), size=size, told=lambda step: recorder.say("told", step))
        run.note("resumed", 2, snapshot="0001-00000005", where="")
        commit_again(run, range(SECOND, SECOND + 3), attempt=2, size=size, told=lambda step: recorder.say("told", step))
    return recorder.steps


def cuts(root: Path, steps: list, seed: int, states: int) -> tuple[int, list[str]]:
    """Look at crash states after each step; returns how many there were, and what was wrong."""
    machine, chance, told, faults, count = Machine(), random.Random(seed), -1, [], 0
    (name,) = {Path(step.what[0]).parts[0] for step in steps if step.kind == "mkdir" and step.what[0] != "."}
    for number, step in enumerate(steps):
        if step.kind == "told":
            told = step.what
            continue
        machine.do(step)
        for _ in range(states):
            count += 1
            if fault := judge(root / name, machine.crash(chance), told):
                faults.append(f"after {number}, {step.kind}: {fault}")
    return count, faults


def judge(folder: Path, files: dict[str, bytes], told: int) -> str:
    """Tell what is wrong with what a power cut has left; empty when nothing is."""
    shutil.rmtree(folder.parent, ignore_errors=True)
    (folder / "snapshots").mkdir(parents=True)
    for path, data in files.items():
        (folder.parent / path).write_bytes(data)
    if told < 0 and not (folder / "run.json").exists():
        return ""
    try:
        run = RunFolder.open(folder)
        snapshot, rejected = run.latest()
    except NbresumeError as error:
        return "" if told < 0 and "the record of" in str(error) else str(error)
    for one in run.snapshots():
        try:
            one.verify()
        except SnapshotError as error:
            return f"{one.ident} stands under its name and is not whole: {error}"
    assert not rejected
    if snapshot is None and told < 0:
        return ""
    if snapshot is None or snapshot.seq < told:
        return f"{told} was told of, and the latest is {snapshot and snapshot.ident}"
    found = load(snapshot)
    if not (found["state"] == snapshot.seq).all() or found["step"] != snapshot.seq:
        return f"{snapshot.ident} does not hold its step"
    # The line of a snapshot may be missing, its file is what counts; what has no file of its own may not.
    needed = {"launched"} if told < SECOND else {"launched", "resumed"}
    is_missing = told >= 0 and not needed <= {event.kind for event in run.events()}
    return "the journal has lost a line" if is_missing else ""


@pytest.fixture
def quick_folder(quick_disk):
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("size", [1 << 8, 1 << 17], ids=["written anew", "written over an older one"])
def test_no_power_cut_loses_what_was_told_of_or_leaves_half_a_snapshot_under_its_name(quick_folder, size):
    steps = record(quick_folder / "real", size)
    count, faults = cuts(quick_folder / "after", steps, seed=size, states=STATES)
    assert faults == []
    assert count > 2000


@pytest.mark.parametrize(
    ("left_out", "word"),
    [
        ("sync_data", "is not whole"),
        ("sync_folder", "was told of"),
        ("un-publishing", "is not whole"),
        ("journal", "journal has lost"),
        ("journal's name", "journal has lost"),
    ],
)
def test_the_model_finds_each_fsync_that_is_left_out(quick_folder, monkeypatch, left_out, word):
    """A proof that could not fail would be none."""
    real = _fs.sync_folder
    if left_out == "un-publishing":
        # The second folder fsync of a commit that writes over an older file is the one that gives the name.
        def sync_folder(path):
            if path.name != "snapshots" or not list(path.glob(".*.tmp")):
                real(path)

        monkeypatch.setattr(_fs, "sync_folder", sync_folder)
    elif left_out == "journal's name":

        def sync_folder(path):
            if not (path / "journal.jsonl").exists() or (path / "journal.jsonl").stat().st_size:
                real(path)

        monkeypatch.setattr(_fs, "sync_folder", sync_folder)
    elif left_out != "journal":
        monkeypatch.setattr(_fs, left_out, lambda _: None)
    steps = record(quick_folder / "real", 1 << 17)
    monkeypatch.undo()
    journals = {step.what[1] for step in steps if step.kind == "name" and step.what[0].endswith("journal.jsonl")}
    if left_out == "journal":
        steps = [step for step in steps if step.kind != "sync" or step.what not in journals]
    _, faults = cuts(quick_folder / "after", steps, seed=0, states=4)
    assert any(word in fault for fault in faults)
