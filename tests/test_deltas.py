"""Snapshots that hold only what has changed: whatever is pruned or damaged, what is read is what was saved."""

from __future__ import annotations

import os
import random

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbresume._policy import Keep
from nbresume._session._commits import Commits
from nbresume._store import Snapshot, SnapshotError, Store, Writer, with_bases
from nbresume._store._heap import Heap
from nbresume._store._image import SLICE, cut, digest

ROWS, WIDTH = 6000, 512  # 4 kB a row, 24 MB


class Block:
    """A run of memory, as the capture hands it over."""

    def __init__(self, data, place=""):
        self.data, self.place = data, place


class Free:
    """The right to write, which nobody contests."""

    def check(self):
        """Nobody has taken over."""


@pytest.fixture
def run(tmp_path):
    run = Store(tmp_path / "store").create("train", {"identity": {}})
    run.note("launched", 1)
    return run


class Run:
    """Commits one array as a run does, and checks what is there."""

    def __init__(self, run, *, keep=3, seed=0):
        self.run, self.chance = run, np.random.default_rng(seed)
        self.array = self.chance.normal(size=(ROWS, WIDTH))
        self.commits = Commits(run, 1, Free(), Keep(keep), hold=lambda: None, let_go=lambda: None)
        self.saved = {}

    def save(self, changed, *, behind=False, is_last=False):
        """Change rows and save; returns the snapshot."""
        self.array[changed] = self.chance.normal(size=(len(changed), WIDTH))
        seq = len(self.saved)
        path = self.run.snapshot_path(1, seq)
        blocks = [Block(self.array, "array"), Block(np.full(5000, seq), "")]
        staged = self.commits.writer.stage(path, {"seq": seq}, b"x" * 100, b"tables", blocks, copy=behind)
        if behind:
            self.commits.behind(staged, {}, 0.0)
        else:
            self.commits.now(staged, {}, 0.0, is_last=is_last)
        self.commits.wait()
        self.commits.settle()
        self.saved[seq] = self.array.copy()
        return Snapshot(path)

    def some(self, share):
        """Choose rows."""
        return np.flatnonzero(self.chance.random(ROWS) < share)


def check(snapshot, array):
    snapshot.verify()
    found, small = np.empty_like(array), np.empty(5000, "i8")
    snapshot.read({0: found, 1: small})
    assert found.tobytes() == array.tobytes()
    assert set(small) == {snapshot.seq}


def test_a_few_rows_cost_a_few_rows(run):
    """A tenth of the rows, far from each other, is a tenth of the bytes; and what lies beside them is read right."""
    one = Run(run)
    sizes = []
    for _ in range(8):
        snapshot = one.save(one.some(0.1))
        sizes.append((snapshot.base != "", run.events()[-1].facts["written"]))
        check(snapshot, one.array)
    deltas = [written for is_delta, written in sizes if is_delta]
    assert len(deltas) >= 4
    assert all(0.09 < written / one.array.nbytes < 0.13 for written in deltas)


def test_what_has_not_changed_is_not_written(run):
    one = Run(run)
    for _ in range(4):
        check(one.save([]), one.array)
    assert run.events()[-1].facts["written"] < 200_000


def test_all_that_stays_can_be_read_after_each_prune_and_disk_use_is_bounded(run):
    one = Run(run, keep=2)
    for count in range(40):
        one.save(one.some(0.08), behind=count % 2 == 0)
        there = run.snapshots()
        assert {snapshot.seq for snapshot in there} >= {count, max(0, count - 1)}
        for snapshot in (there[0], there[-1]):
            check(snapshot, one.saved[snapshot.seq])
        assert sum(os.stat(one.path).st_blocks * 512 for one in there) < 4 * one.array.nbytes
    assert any(snapshot.base for snapshot in there)


def test_a_dense_change_after_deltas_is_a_whole_file_over_an_older_one(run):
    one = Run(run)
    for _ in range(5):
        one.save(one.some(0.05))
    for _ in range(6):
        check(one.save(np.arange(ROWS)), one.array)
    assert not any(snapshot.base for snapshot in run.snapshots())
    assert len(run.snapshots()) == 3


def test_the_last_snapshot_of_a_run_stands_by_itself(run):
    one = Run(run)
    for _ in range(5):
        assert one.save(one.some(0.05), is_last=True).base == ""
    with h5py.File(run.snapshots()[-1].path) as file:
        assert file["vars/array"][()].tobytes() == one.array.tobytes()


def test_a_whole_file_before_the_chain_stays_for_the_day_when_its_first_is_damaged(run):
    one = Run(run)
    while sum(not snapshot.base for snapshot in run.snapshots()) < 2 or not run.snapshots()[-1].base:
        one.save(one.some(0.05))
    for _ in range(4):
        one.save(one.some(0.05))
    there = run.snapshots()
    bottom = next(snapshot for snapshot in reversed(there) if not snapshot.base)
    assert {snapshot.seq for snapshot in there[-3:] if not snapshot.base} == set()
    with bottom.path.open("r+b") as file:
        file.seek(bottom.path.stat().st_size // 2)
        file.write(b"damage" * 50_000)  # more rows than deltas have replaced
    found, rejected = run.latest()
    assert found is not None
    assert len(rejected) >= 3
    check(found, one.saved[found.seq])


@pytest.mark.parametrize("what", ["gone", "another", "damaged"])
def test_a_delta_whose_base_is_not_what_it_was_is_not_believed(run, what):
    one = Run(run)
    while not (snapshot := one.save(one.some(0.05))).base:
        pass
    base = snapshot.path.with_name(f"{snapshot.base}.h5")
    if what == "gone":
        base.unlink()
    elif what == "another":
        base.unlink()
        writer = Writer()
        writer.commit(writer.stage(base, {}, b"", b"", [Block(one.array, "array")]))
    else:
        with base.open("r+b") as file:
            file.seek(base.stat().st_size - 100_000)
            file.write(b"damage")
    with pytest.raises(SnapshotError):
        Snapshot(snapshot.path).verify()


def test_a_flipped_byte_anywhere_in_a_delta_is_noticed(run):
    one = Run(run)
    while not (snapshot := one.save(one.some(0.02))).base:
        pass
    data = bytearray(snapshot.path.read_bytes())
    chance = random.Random(3)
    for place in [*range(4096, 4200, 7), *chance.sample(range(len(data)), 60)]:
        with snapshot.path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([data[place] ^ (1 << chance.randrange(8))]))
        with pytest.raises(SnapshotError):
            Snapshot(snapshot.path).verify()
        with snapshot.path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([data[place]]))
    Snapshot(snapshot.path).verify()


def test_a_file_that_has_a_second_name_is_never_written_over(run, tmp_path):
    """A hard link is somebody's backup."""
    one = Run(run, keep=2)
    first = one.save(np.arange(ROWS))
    os.link(first.path, tmp_path / "backup.h5")
    want = first.path.read_bytes()
    for _ in range(5):
        one.save(np.arange(ROWS))
    assert (tmp_path / "backup.h5").read_bytes() == want


@pytest.mark.parametrize("share", [0.02, 1.0])
@pytest.mark.parametrize("what", ["removed", "changed"])
def test_nothing_is_built_on_a_file_that_somebody_has_removed_or_changed(run, share, what):
    """While the run goes on: what comes after it stands by itself, and is whole."""
    one = Run(run)
    for _ in range(5):
        one.save(one.some(share))
    for snapshot in run.snapshots():
        if what == "removed":
            snapshot.path.unlink()
        else:
            with snapshot.path.open("r+b") as file:
                file.seek(snapshot.path.stat().st_size // 2)
                file.write(b"damage" * 50_000)
    snapshot = one.save(one.some(0.02))
    assert snapshot.base == ""
    for _ in range(4):
        check(one.save(one.some(share)), one.array)
    check(run.latest()[0], one.array)


def test_a_damaged_snapshot_of_an_earlier_attempt_does_not_disturb_deltas(run):
    """It is kept for a look at it, and can't say what it is built on."""
    (run.path / "snapshots" / "0000-00000000.h5").write_bytes(b"damage")
    one = Run(run, keep=30)
    for _ in range(6):
        check(one.save(one.some(0.02)), one.array)
    assert run.snapshots()[-1].base
    assert run.snapshots()[0].path.read_bytes() == b"damage"


def test_what_grows_in_place_is_told_and_read(run):
    """Arrays of another shape in each iteration, and others beside them that stay."""
    commits = Commits(run, 1, Free(), Keep(3), hold=lambda: None, let_go=lambda: None)
    chance = np.random.default_rng(1)
    still, parts = chance.normal(size=(5000, 512)), []
    for seq in range(12):
        parts.append(chance.normal(size=seq * 3000))
        grown = np.concatenate(parts)
        path = run.snapshot_path(1, seq)
        blocks = [Block(still, "still"), Block(grown, "grown"), *(Block(part) for part in parts if part.size)]
        commits.now(commits.writer.stage(path, {}, b"x" * seq * 10_000, b"", blocks), {}, 0.0)
        commits.wait()
        snapshot = Snapshot(path)
        snapshot.verify()
        found = [np.empty_like(block.data) for block in blocks]
        snapshot.read(dict(enumerate(found)))
        for block, array in zip(blocks, found, strict=True):
            assert array.tobytes() == block.data.tobytes()
    written = [event.facts["written"] for event in run.events() if event.kind == "snapshot"]
    assert min(written[6:]) < still.nbytes / 4  # not all of it each time


def test_a_file_that_ends_within_a_page_is_laid_over_to_its_last_byte(run):
    """The last run of a delta is no whole number of pages then, and those before it are."""
    commits = Commits(run, 1, Free(), Keep(9), hold=lambda: None, let_go=lambda: None)
    chance = np.random.default_rng(2)
    large, tail = chance.normal(size=(ROWS, WIDTH)), chance.normal(size=1001)
    for seq in range(6):
        large[chance.choice(ROWS, 300, replace=False)] += 1
        tail += 1
        path = run.snapshot_path(1, seq)
        blocks = [Block(large, "large"), Block(tail, "tail")]
        commits.now(commits.writer.stage(path, {}, b"x", b"", blocks), {}, 0.0)
        commits.wait()
    snapshot = Snapshot(path)
    assert snapshot.base
    assert snapshot.seal.facts["image"][1] % 4096
    snapshot.verify()
    found = np.empty_like(large), np.empty_like(tail)
    snapshot.read(dict(enumerate(found)))
    assert [one.tobytes() for one in found] == [large.tobytes(), tail.tobytes()]


def test_bases_are_followed_to_the_bottom(run):
    one = Run(run)
    for _ in range(6):
        one.save(one.some(0.02))
    there = run.snapshots()
    newest = there[-1]
    needed = with_bases([newest], there)
    chain = [newest]
    while chain[-1].base:
        chain.append(next(snapshot for snapshot in there if snapshot.ident == chain[-1].base))
    assert needed == {snapshot.ident for snapshot in chain}
    assert len(needed) > 1


# ------------------------------------------------------------------ the pieces


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 3 * SLICE), st.integers(1, SLICE)), max_size=8), st.integers(0, 5000))
def test_cut_covers_every_byte_once(spans, body):
    """Whatever lies where: the slices, put together, are the file."""
    size, at, extents = body + 4 * SLICE + 17, body, []
    image = bytearray(size - body)
    for gap, length in spans:
        start = at + gap % (SLICE // 4)
        if start + length > size:
            break
        data = bytes([len(extents) + 1]) * length
        extents.append((start, memoryview(data)))
        image[start - body : start - body + length] = data
        at = start + length
    slices = list(cut(extents, body, size))
    assert all(sum(map(len, parts)) == SLICE for parts in slices[:-1])
    assert b"".join(bytes(part) for parts in slices for part in parts) == image
    assert all(digest(parts) == digest([memoryview(b"".join(parts))]) for parts in slices)


def test_cut_refuses_what_overlaps():
    with pytest.raises(ValueError, match="overlaps"):
        list(cut([(0, memoryview(b"ab")), (1, memoryview(b"c"))], 0, 10))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 9), st.integers(0, 60_000), max_size=8), max_size=12))
def test_the_heap_never_gives_one_place_twice_and_keeps_what_stays(steps):
    heap, before, last = Heap(), {}, {}
    for sizes in steps:
        places = heap.place(sizes, frozenset({0, 1}))
        spans = sorted((places[key], places[key] + size) for key, size in sizes.items() if size)
        assert all(start >= end for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
        assert all(end <= heap.capacity for _, end in spans)
        assert all(offset % 4096 == 0 for offset in places.values())
        before, last = last, places
    assert before is not None
