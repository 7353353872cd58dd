"""Snapshots and run folders on a real disk: readable by anyone, believed only when they are whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pytest
from _support import commit, h5_names, load

from nbresume import _fs, _process
from nbresume._capture import Definitions, capture
from nbresume._store import Snapshot, SnapshotError, Store
from nbresume._store._snapshot import SMALL
from nbresume._types import FORMAT
from nbresume.errors import BusyError, CorruptError, NotFoundError, StoreError

VALUES = {
    "weights": np.arange(6.0).reshape(2, 3),
    "counts": np.arange(4, dtype="i2"),
    "flag": np.array(True),
    "signal": np.exp(1j * np.arange(3)),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "empty": np.zeros((0, 3)),
    "history": [1.5, None, "größer"],
    "nested": {"a/b": np.arange(SMALL, dtype="u1"), "..": np.arange(3)},
}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def run(store):
    run = store.create("train", {"identity": {}})
    run.note("launched", 1)
    return run


@pytest.fixture
def path(run):
    return commit(run, VALUES, where="epoch 3 of 30")


# ------------------------------------------------------------------ one file


def test_a_top_level_array_is_a_dataset_under_its_own_name_for_plain_h5py(path):
    with h5py.File(path, "r") as file:
        for name in ("weights", "counts", "flag", "signal", "columns"):
            array = file["vars"][name][()]
            assert array.dtype == VALUES[name].dtype
            assert array.shape == VALUES[name].shape
            assert np.array_equal(array, VALUES[name])


@pytest.mark.skipif(shutil.which("h5ls") is None, reason="h5ls comes with hdf5-tools, which tests/run installs")
def test_h5ls_lists_the_variables(path):
    told = subprocess.run(["h5ls", "-r", path], capture_output=True, text=True, check=True).stdout
    lines = {line.split()[0]: line for line in told.splitlines()}
    assert "{2, 3}" in lines["/vars/weights"]
    assert "{4}" in lines["/vars/counts"]


def test_where_a_run_stands_can_be_read_without_unpickling(path):
    with h5py.File(path, "r") as file:
        meta = json.loads(file["nbresume/meta"][()].tobytes())
    assert (meta["where"], meta["format"]) == ("epoch 3 of 30", FORMAT)
    assert Snapshot(path).meta["where"] == "epoch 3 of 30"


def test_keys_of_the_user_are_never_names_in_the_file(path):
    parts = {part for name in h5_names(path) for part in name.split("/")}
    assert not {"a", "b", ".."} & parts


def test_what_was_saved_comes_back(path):
    Snapshot(path).verify()
    found = load(Snapshot(path))
    for name, value in VALUES.items():
        if isinstance(value, np.ndarray):
            assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
            assert found[name].tobytes() == value.tobytes()
            assert found[name].flags.c_contiguous == value.flags.c_contiguous
    assert found["history"] == VALUES["history"]
    assert np.array_equal(found["nested"]["a/b"], VALUES["nested"]["a/b"])


def test_a_snapshot_of_nothing_is_a_snapshot(run):
    path = commit(run, {})
    Snapshot(path).verify()
    assert load(Snapshot(path)) == {}


def test_the_parts_add_up_to_what_was_saved(path):
    sizes = dict(Snapshot(path).sizes())
    assert sizes["vars/weights"] == 48
    assert sum(sizes.values()) < path.stat().st_size


# ------------------------------------------------------------------ what is not believed


def rejected(path: Path) -> str:
    """Return why a snapshot is not believed."""
    with pytest.raises(SnapshotError) as error:
        Snapshot(path).verify()
    return str(error.value)


def test_a_file_cut_anywhere_is_not_believed(path):
    data = path.read_bytes()
    for length in sorted({0, 1, 8, len(data) - 1, *random.Random(0).sample(range(len(data)), 60)}):
        path.write_bytes(data[:length])
        assert rejected(path)


def test_a_flipped_bit_anywhere_is_rejected_or_harmless(path):
    """No reader ever gets other values: a file either is not believed, or all that it holds is what was saved."""
    data = bytearray(path.read_bytes())
    chance = random.Random(1)
    held = 0
    for place in sorted(chance.sample(range(len(data)), 200)):
        bit = 1 << chance.randrange(8)
        data[place] ^= bit
        path.write_bytes(data)
        snapshot = Snapshot(path)
        try:
            snapshot.verify()
            found = load(snapshot)
        except SnapshotError:
            held += 1
        else:  # unused bytes between the parts
            for name, value in VALUES.items():
                if isinstance(value, np.ndarray):
                    assert found[name].tobytes() == value.tobytes()
                    assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
            assert found["history"] == VALUES["history"]
        data[place] ^= bit
    assert held > 100


@pytest.mark.parametrize("part", ["vars/weights", "nbresume/objects", "nbresume/tables", "nbresume/meta", "buffers"])
def test_other_bytes_in_a_valid_file_are_noticed_by_name(path, part):
    """HDF5 itself notices nothing of this."""
    with h5py.File(path, "r+") as file:
        node = file[part]
        dataset = next(iter(node.values())) if isinstance(node, h5py.Group) else node
        data = dataset[()]
        data.reshape(-1).view("u1")[0] ^= 1
        dataset[...] = data
        name = dataset.name.lstrip("/")
    assert name in rejected(path)


def test_a_missing_part_is_noticed(path):
    with h5py.File(path, "r+") as file:
        del file["vars/weights"]
    assert "vars/weights" in rejected(path)


def test_a_foreign_hdf5_file_has_no_completion_marker(path):
    with h5py.File(path, "w") as file:
        file["weights"] = np.arange(3)
    assert "marker" in rejected(path)


@pytest.mark.parametrize("content", [b"", b"not HDF5 at all", bytes(5000), b"\x89HDF\r\n\x1a\n" + bytes(2000)])
def test_a_file_that_is_no_hdf5_is_not_believed(path, content):
    path.write_bytes(content)
    assert rejected(path)


def test_a_folder_under_a_snapshots_name_is_not_believed(path):
    path.unlink()
    path.mkdir()
    assert rejected(path)


@pytest.mark.parametrize(
    "seal", [b"", b"null", b"[]", b'{"format": 1}', b'{"format": "x", "digests": {}, "root": ""}', b"\xff"]
)
def test_a_damaged_completion_marker_is_not_believed(path, seal):
    with h5py.File(path, "r+") as file:
        del file["nbresume/seal"]
        file["nbresume/seal"] = np.frombuffer(seal, "u1") if seal else np.zeros(0, "u1")
    assert rejected(path)


def test_a_newer_format_is_named(path):
    with h5py.File(path, "r+") as file:
        seal = json.loads(file["nbresume/seal"][()].tobytes())
        del file["nbresume/seal"]
        file["nbresume/seal"] = np.frombuffer(json.dumps({**seal, "format": FORMAT + 1}).encode(), "u1")
    assert f"format {FORMAT + 1} is newer" in rejected(path)


def test_damage_between_verify_and_load_is_noticed_while_loading(path):
    snapshot = Snapshot(path)
    snapshot.verify()
    with h5py.File(path, "r+") as file:
        file["vars/weights"][0, 0] = 99.0
    with pytest.raises(SnapshotError, match="vars/weights"):
        load(snapshot)


def test_a_kill_while_a_snapshot_is_written_leaves_no_file_under_its_name(run):
    """SIGKILL at seeded instants: what is under a final name is always whole."""
    code = """
        import sys
        from pathlib import Path
        import numpy as np
        from nbresume._capture import Definitions, capture
        from nbresume._store import RunFolder
        run = RunFolder.open(Path(sys.argv[1]))
        names = {"big": np.arange(1 << 18, dtype="f8")}
        found = capture(names, definitions=Definitions({}), inputs={}, places=names)
        print("ready", flush=True)
        for seq in range(10_000):
            run.commit(1, seq, {}, found.stream, found.tables, found.blocks)
        """
    chance = random.Random(2)
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), run.path], stdout=subprocess.PIPE, text=True
        ) as child:
            child.stdout.readline()
            try:
                child.wait(timeout=chance.uniform(0.0, 0.15))
            except subprocess.TimeoutExpired:
                os.kill(child.pid, signal.SIGKILL)
        for snapshot in run.snapshots():
            snapshot.verify()
        _fs.remove_leftovers(run.path / "snapshots")
    assert {path.suffix for path in (run.path / "snapshots").iterdir()} <= {".h5"}


# ------------------------------------------------------------------ the newest that can be believed


def test_the_newest_good_one_is_used_and_the_bad_ones_are_named_and_kept(run):
    paths = [commit(run, {"n": n}, seq=n) for n in range(4)]
    paths[3].write_bytes(b"")
    paths[2].write_bytes(paths[2].read_bytes()[:-50])
    snapshot, bad = run.latest()
    assert snapshot.seq == 1
    assert [(one.seq, bool(why)) for one, why in bad] == [(3, True), (2, True)]
    assert all(path.exists() for path in paths)


def test_when_none_can_be_believed_it_is_an_error_and_never_a_first_run(run):
    for n in range(3):
        commit(run, {"n": n}, seq=n).write_bytes(b"broken")
    with pytest.raises(CorruptError) as error:
        run.latest()
    assert all(Snapshot.name(1, n) in str(error.value) for n in range(3))
    assert "supersede" in str(error.value)
    assert len(list((run.path / "snapshots").iterdir())) == 3


def test_no_snapshot_at_all_is_none(run):
    assert run.latest() == (None, [])


def test_age_is_told_by_number_and_never_by_the_clock(run):
    paths = [commit(run, {"n": n}, seq=n) for n in range(3)]
    for age, path in enumerate(paths):
        os.utime(path, (2_000_000_000 - age, 2_000_000_000 - age))
    (run.path / "latest").write_text("0001-00000000.h5")
    assert run.latest()[0].seq == 2


@pytest.mark.parametrize("seq", [9, 99, 9999, 99_999_999])
def test_the_newest_is_the_newest_across_every_change_of_digits(run, seq):
    for number in (seq + 1, seq):
        commit(run, {}, seq=number)
    assert [snapshot.seq for snapshot in run.snapshots()] == [seq, seq + 1]


def test_an_attempt_above_9999_is_newer_than_one_below(run):
    for attempt in (10_000, 9999):
        commit(run, {}, attempt=attempt, seq=5)
    assert run.latest()[0].attempt == 10_000


def test_foreign_files_among_the_snapshots_do_not_count(run):
    commit(run, {}, seq=1)
    for name in ("notes.txt", "copy of 0001-00000002.h5", "0001-00000003.h5.bak", ".0001-00000004.h5.00.tmp", "a-b.h5"):
        (run.path / "snapshots" / name).write_bytes(b"x")
    (run.path / "snapshots" / "0001-00000002 (conflicted copy).h5").write_bytes(b"x")
    assert run.latest()[0].seq == 1


def test_snapshots_of_an_attempt_that_woke_up_late_are_ignored(run):
    """A stalled kernel that goes on after it was replaced can do no harm."""
    for seq in range(3):
        commit(run, {"n": seq}, seq=seq)
    run.note("resumed", 2, snapshot="0001-00000001", where="")
    commit(run, {"n": 100}, attempt=2, seq=3)
    commit(run, {"n": 7}, attempt=1, seq=50)
    assert [snapshot.ident for snapshot in run.snapshots()] == ["0001-00000000", "0001-00000001", "0002-00000003"]
    assert run.latest()[0].ident == "0002-00000003"


def test_a_late_attempt_is_ignored_also_before_the_new_one_has_saved(run):
    commit(run, {}, seq=0)
    run.note("resumed", 2, snapshot="0001-00000000", where="")
    commit(run, {}, attempt=1, seq=1)
    assert run.latest()[0].ident == "0001-00000000"


def test_a_late_attempt_is_ignored_when_the_new_one_started_from_nothing(run):
    """The first attempt stalled before its first snapshot; the second began again from the launch."""
    run.note("resumed", 2, where="the start")
    commit(run, {}, attempt=1, seq=0)
    assert run.latest()[0] is None
    commit(run, {}, attempt=2, seq=0)
    assert run.latest()[0].attempt == 2


def test_pruning_removes_what_it_is_told_and_never_what_a_later_attempt_wrote(run):
    for seq in range(4):
        commit(run, {}, seq=seq)
    run.note("resumed", 2, snapshot="0001-00000003", where="")
    commit(run, {}, attempt=2, seq=4)
    run.prune({0, 1, 4}, attempt=1)
    assert [(s.attempt, s.seq) for s in run.snapshots()] == [(1, 2), (1, 3), (2, 4)]


# ------------------------------------------------------------------ runs


def test_a_launch_record_is_written_once_and_read_back(store):
    run = store.create("train", {"identity": {"code": {}}, "declared": ["a"]})
    found = store.find("train")
    assert found.record == run.record
    assert (found.name, found.record["number"], found.record["format"]) == ("train", 1, FORMAT)
    assert found.record["declared"] == ["a"]


def test_a_store_is_its_owners_alone_and_stays_out_of_git(store):
    run = store.create("train", {})
    assert all((folder.stat().st_mode & 0o777) == 0o700 for folder in (store.root, run.path, run.path / "snapshots"))
    assert (store.root / ".gitignore").read_text() == "*\n"


def test_runs_of_one_name_are_numbered_and_the_newest_is_found(store):
    runs = [store.create("train", {}) for _ in range(11)]
    assert [run.record["number"] for run in store.named("train")] == list(range(1, 12))
    assert store.find("train").id == runs[-1].id
    assert store.find(runs[3].id).id == runs[3].id


def test_a_name_that_begins_like_another_is_another(store):
    store.create("train", {})
    store.create("train-2", {})
    store.create("train-00ff00", {})
    assert [run.name for run in store.named("train")] == ["train"]
    assert store.unreadable("train") == ""


def test_a_name_that_is_not_there_names_those_that_are(store):
    store.create("train", {})
    with pytest.raises(NotFoundError, match=r"no run named 'trian'.*train"):
        store.find("trian")


def test_looking_at_a_store_that_is_not_there_makes_none(store):
    assert list(store) == []
    assert store.unreadable("train") == ""
    assert not store.root.exists()


@pytest.mark.parametrize(
    "record",
    [b"", b"{", b"null", b"[]", b'"x"', b"{}", b"\xff\xfe", b'{"format": "x", "id": "", "name": "", "number": 1}'],
)
def test_an_unreadable_record_is_told_and_never_a_first_run(store, record):
    run = store.create("train", {})
    (run.path / "run.json").write_bytes(record)
    assert run.path.name in store.unreadable("train")
    assert store.named("train") == []


def test_a_newer_record_is_told_by_its_format(store):
    run = store.create("train", {})
    (run.path / "run.json").write_text(json.dumps({**run.record, "format": FORMAT + 1}))
    assert f"format {FORMAT + 1}" in store.unreadable("train")


def test_a_lost_record_with_snapshots_is_told(store):
    run = store.create("train", {})
    commit(run, {})
    (run.path / "run.json").unlink()
    assert store.unreadable("train")


def test_a_folder_whose_launch_died_before_its_record_is_no_run(store):
    run = store.create("train", {})
    (run.path / "run.json").unlink()
    assert store.unreadable("train") == ""


def test_an_unreadable_run_beside_a_good_one_is_told(store):
    """The good one may be the older of two: taking it for the newest would be another run in silence."""
    store.create("train", {})
    bad = store.create("train", {})
    (bad.path / "run.json").write_bytes(b"{")
    assert store.unreadable("train")


# ------------------------------------------------------------------ who writes


def test_a_run_is_held_by_one_process_and_taken_over_when_it_is_dead(run):
    code = """
        import sys
        from pathlib import Path
        from nbresume._store import RunFolder
        lock = RunFolder.open(Path(sys.argv[1])).take()
        print("held", flush=True)
        sys.stdin.read()
        """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), run.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        other.stdout.readline()
        assert run.is_alive()
        with pytest.raises(BusyError, match=rf"train is running in another kernel \(process {other.pid}\)"):
            run.take()
        (run.path / "snapshots" / ".0001-00000009.h5.00ff.tmp").write_bytes(b"half")
        other.kill()
        other.wait()
    assert not run.is_alive()
    lock = run.take()
    assert run.is_alive()
    assert not list((run.path / "snapshots").glob(".*"))
    lock.leave()
    assert not run.is_alive()


@pytest.mark.parametrize("owner", [b"", b"{", b"[]", b"null", b"3", b'{"pid": 1}', b'{"pid": "x"}'])
def test_an_owner_record_of_anything_never_blocks_a_resume(run, owner):
    (run.path / "owner").write_bytes(owner)
    run.take().leave()


def test_an_owner_of_another_machine_never_blocks_a_resume(run):
    (run.path / "owner").write_text(json.dumps({**_process.process_identity(), "node": 1, "boot": "another"}))
    assert not run.is_alive()
    run.take().leave()


def test_a_recycled_process_number_never_blocks_a_resume(run):
    (run.path / "owner").write_text(json.dumps({**_process.process_identity(), "start": "1"}))
    assert not run.is_alive()


def test_a_word_is_kept_until_it_is_followed(run):
    assert run.said() == ""
    run.say("supersede")
    run.say("continue")
    assert run.said() == "continue"
    run.unsay()
    run.unsay()
    assert run.said() == ""


def test_a_disk_that_refuses_leaves_the_last_good_snapshot(run, monkeypatch):
    commit(run, {"n": 0})
    found = capture({"n": 1}, definitions=Definitions({}), inputs={}, places={})

    def fail(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="bytes free"):
        run.commit(1, 1, {}, found.stream, found.tables, found.blocks)
    assert [path.name for path in (run.path / "snapshots").iterdir()] == [Snapshot.name(1, 0)]
    assert load(run.latest()[0]) == {"n": 0}
