"""What stays on the disk: pins, pruning by hand, leftovers of dead writers, and who can read any of it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _support import commit, load

from nbresume._cli import main
from nbresume._store import RunFolder, Store, disk_use, pinned
from nbresume.errors import NotFoundError

OURS, THEIRS = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"


@pytest.fixture
def run(tmp_path, monkeypatch) -> RunFolder:
    """An interrupted run with eight snapshots, and another one of the same name beside it."""
    monkeypatch.delenv("NBRESUME_KEY_FILE", raising=False)
    monkeypatch.setenv("NBRESUME_KEY", OURS)
    store = Store(tmp_path / "store")
    other = store.create("train", {"identity": {}})
    other.note("launched", 1)
    commit(other, {"x": 0})
    run = store.create("train", {"identity": {}, "supersedes": other.id})
    run.note("launched", 1)
    for seq in range(8):
        commit(run, {"x": np.arange(1000) + seq}, seq=seq)
    return run


def ask(*words: str, run: RunFolder) -> tuple[int, str]:
    out = io.StringIO()
    status = main([*words, "--store", str(run.path.parent)], out)
    return status, out.getvalue()


def sequence(run: RunFolder) -> list[int]:
    return [snapshot.seq for snapshot in run.snapshots()]


def spoil(run: RunFolder, seq: int) -> None:
    path = run.snapshots()[seq].path
    path.write_bytes(path.read_bytes()[:-100])


def others(run: RunFolder) -> dict[Path, bytes]:
    """All files but those of the run."""
    return {
        path: path.read_bytes()
        for path in run.path.parent.rglob("*")
        if path.is_file() and not path.is_relative_to(run.path)
    }


# ------------------------------------------------------------------ prune


def test_prune_keeps_the_newest_and_touches_nothing_else(run):
    before = others(run)
    journal = (run.path / "journal.jsonl").read_bytes()
    status, text = ask("prune", "train", "--keep", "2", run=run)
    assert status == 0
    assert sequence(run) == [6, 7]
    assert "6 snapshots removed" in text
    assert "2 stay" in text
    assert np.array_equal(load(run.snapshots()[0])["x"], np.arange(1000) + 6)
    assert {path: data for path, data in others(run).items() if not path.name.endswith(".lock")} == before
    assert (run.path / "journal.jsonl").read_bytes() == journal
    assert not (run.path / "owner").exists()


@pytest.mark.parametrize("how", ["completed", "abandoned"])
def test_a_closed_run_and_a_superseded_one_are_pruned_as_well(run, how):
    run.note(how, 1)
    assert ask("prune", run.id, "--keep", "1", run=run)[0] == 0
    assert sequence(run) == [7]
    old = Store(run.path.parent).named("train")[0]
    commit(old, {"x": 1}, seq=1)
    assert old.lineage().state == "superseded"
    assert ask("prune", old.id, "--keep", "1", run=run)[0] == 0
    assert sequence(old) == [1]


def test_a_dry_run_tells_the_same_and_removes_nothing(run):
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    status, text = ask("prune", "train", "--keep", "3", "--dry-run", "--json", run=run)
    told = json.loads(text)
    assert status == 0
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before
    really = json.loads(ask("prune", "train", "--keep", "3", "--json", run=run)[1])
    assert told.pop("dry_run") is True
    assert really.pop("dry_run") is False
    assert told == really
    assert [one["snapshot"] for one in told["removed"]] == [f"0001-{seq:08d}" for seq in range(5)]
    assert told["bytes"] == sum(one["bytes"] for one in told["removed"]) > 0
    assert told["kept"] == [snapshot.ident for snapshot in run.snapshots()]


def test_each_nth_stays_as_the_launch_said_or_as_is_said_now(run):
    record = {"identity": {}, "keep_every": 4}
    launched = run.path.parent
    own = Store(launched).create("own", record)
    own.note("launched", 1)
    for seq in range(8):
        commit(own, {"x": seq}, seq=seq)
    ask("prune", "own", "--keep", "1", run=run)
    assert sequence(own) == [0, 4, 7]
    ask("prune", "train", "--keep", "1", "--keep-every", "3", run=run)
    assert sequence(run) == [0, 3, 6, 7]


def test_what_a_cell_says_of_each_nth_is_what_prune_goes_by(notebook):
    notebook.run("%%resumable t --vars i --every 1 --keep 9 --keep-every 2\nfor i in range(4):\n    pass")
    assert notebook.runs[0].record["keep_every"] == 2
    last = notebook.runs[0].snapshots()[-1].seq
    notebook.run("%nbresume prune t --keep 1")
    assert [snapshot.seq for snapshot in notebook.runs[0].snapshots()] == [*range(0, last, 2), last]


def test_the_newest_that_holds_is_never_removed_whatever_lies_above_it(run):
    spoil(run, 7)
    spoil(run, 6)
    ask("prune", "train", "--keep", "1", run=run)
    assert sequence(run) == [5, 6, 7]  # bad ones are kept, and count for nothing
    assert run.latest()[0].seq == 5


def test_a_snapshot_that_a_resume_would_refuse_does_not_push_ours_out(run, monkeypatch):
    monkeypatch.setenv("NBRESUME_KEY", THEIRS)
    commit(run, {"x": 8}, seq=8)
    monkeypatch.setenv("NBRESUME_KEY", OURS)
    ask("prune", "train", "--keep", "1", run=run)
    assert sequence(run) == [7, 8]


def test_while_none_holds_nothing_is_removed(run, capsys):
    for seq in range(8):
        spoil(run, seq)
    status, _ = ask("prune", "train", "--keep", "1", run=run)
    assert status == 2
    assert "can be believed, so none is removed" in capsys.readouterr().err
    assert len(sequence(run)) == 8


def test_keep_zero_is_refused(run, capsys):
    assert ask("prune", "train", "--keep", "0", run=run)[0] == 2
    assert "keeps nothing to resume from" in capsys.readouterr().err
    assert len(sequence(run)) == 8


HOLDER = """
import sys, time
from pathlib import Path
from nbresume._store import RunFolder
claim = RunFolder.open(Path(sys.argv[1])).take(2)
print("taken", flush=True)
time.sleep(60)
"""


@pytest.fixture
def held(run):
    """The run, while another process writes it."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(run.path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"taken\n"
        yield run
        holder.kill()


def test_prune_and_repair_are_refused_while_another_process_writes(held, capsys):
    (held.path / "snapshots" / ".0002-00000009.h5.0a1b2c3d.tmp").write_bytes(b"half")
    for words in (["prune", "train", "--keep", "1"], ["verify", "train", "--repair"]):
        status, _ = ask(*words, run=held)
        assert status == 2
        assert "is running in another kernel" in capsys.readouterr().err
    assert len(sequence(held)) == 8
    assert (held.path / "snapshots" / ".0002-00000009.h5.0a1b2c3d.tmp").exists()


# ------------------------------------------------------------------ pins


def test_a_pinned_snapshot_is_never_pruned_by_hand_until_it_is_let_go(run):
    assert ask("pin", "train", "0001-00000002", run=run)[0] == 0
    assert pinned(run) == {"0001-00000002"}
    told = json.loads(ask("prune", "train", "--keep", "1", "--json", run=run)[1])
    assert sequence(run) == [2, 7]
    assert told["pinned"] == ["0001-00000002"]
    assert ask("unpin", "train", "0001-00000002.h5", run=run)[0] == 0
    ask("prune", "train", "--keep", "1", run=run)
    assert sequence(run) == [7]


def test_without_a_snapshot_the_newest_good_one_is_pinned_and_all_are_let_go(run):
    spoil(run, 7)
    assert "0001-00000006 is pinned" in ask("pin", "train", run=run)[1]
    ask("pin", "train", "0001-00000001", run=run)
    assert pinned(run) == {"0001-00000001", "0001-00000006"}
    assert "0001-00000001, 0001-00000006 is pinned no more" in ask("unpin", "train", run=run)[1]
    assert pinned(run) == set()


@pytest.mark.parametrize("word", ["pin", "unpin"])
@pytest.mark.parametrize("name", ["0001-00000099", "../../x", ".."])
def test_what_is_not_there_can_be_neither_pinned_nor_let_go(run, capsys, word, name):
    before = sorted(run.path.parent.rglob("*"))
    assert ask(word, "train", name, run=run)[0] == 3
    assert repr(name) in capsys.readouterr().err
    assert sorted(run.path.parent.rglob("*")) == before


def test_the_running_writer_keeps_what_is_pinned_and_it_can_be_restored_with_its_files(notebook):
    """Pinned in mid-run, from outside; the copies of files that it needs stay, too."""
    notebook.run("import subprocess, sys, os")
    notebook.run(
        "%%resumable t --vars seen --every 1 --keep 2\nseen = []\nfor i in range(8):\n    seen.append(i)\n"
        "    if i == 2:\n        subprocess.run([sys.executable, '-c', 'import sys; from nbresume._cli import main; "
        "sys.exit(main(sys.argv[1:]))', 'pin', 't', '--store', '.nbresume'], check=True)"
    )
    found = notebook.runs[0].snapshots()
    assert pinned(notebook.runs[0]) == {"0001-00000002"}
    assert [snapshot.seq for snapshot in found][0] == 2
    assert len(found) == 3
    assert found[0].meta["cursor"][0]["count"] == 2


def test_a_pin_that_comes_too_late_says_so(run, monkeypatch):
    """The writer removes the snapshot between our look and our pin."""
    from nbresume._store import _retention

    target = run.snapshots()[0].path
    real = _retention._fs.make_folder

    def meanwhile(path):
        target.unlink(missing_ok=True)
        real(path)

    monkeypatch.setattr(_retention._fs, "make_folder", meanwhile)
    with pytest.raises(NotFoundError, match="0001-00000000"):
        _retention.pin(run, "0001-00000000")
    assert pinned(run) == set()


# ------------------------------------------------------------------ repair


def test_repair_drops_what_dead_writers_left_and_never_data(run):
    store = run.path.parent
    commit_of_once = run.path / "once"
    commit_of_once.mkdir()
    run.keep("key", {"key": "key"}, b"objects", b"tables", [])
    left = [
        run.path / "snapshots" / ".0001-00000008.h5.0a1b2c3d.tmp",
        run.path / ".word.0a1b2c3d.tmp",
        commit_of_once / ".0000-1.h5.0a1b2c3d.tmp",
        run.path / "files" / ".0a1b2c3d0a1b2c3d.tmp",
    ]
    mine = [
        run.path / "aside" / ".draft.0a1b2c3d.tmp",  # a file of the user's
        run.path / "files" / "0a1b2c3d",
        run.path / "snapshots" / "notes.tmp",
        store / "train-0a1b2c" / "notes.txt",  # somebody's folder
        store / "train-abcdef.bak" / "snapshots",
    ]
    half = [store / "train-00000a" / "snapshots", store / "train-00000b"]
    for path in (*left, *mine[:-1]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    for path in (mine[-1], *half):
        path.mkdir(parents=True)
    (half[1] / ".run.json.0a1b2c3d.tmp").write_bytes(b"{")
    data = {path: path.read_bytes() for path in store.rglob("*") if path.is_file() and path not in left}
    del data[half[1] / ".run.json.0a1b2c3d.tmp"]
    status, text = ask("verify", "train", "--repair", "--json", run=run)
    dropped = json.loads(text)["dropped"]
    assert status == 0
    assert sorted(dropped) == sorted([*(str(path.relative_to(store)) for path in left), "train-00000a", "train-00000b"])
    assert not [path for path in (*left, store / "train-00000a", store / "train-00000b") if path.exists()]
    assert {path: path.read_bytes() for path in data} == data
    assert mine[-1].is_dir()
    assert "nothing was left" in ask("verify", "train", "--repair", run=run)[1]


def test_verify_without_repair_changes_nothing(run):
    (run.path / "snapshots" / ".0001-00000008.h5.0a1b2c3d.tmp").write_bytes(b"x")
    before = {path: path.stat().st_mtime_ns for path in run.path.parent.rglob("*")}
    assert ask("verify", "train", run=run)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in run.path.parent.rglob("*")} == before


def test_the_same_words_in_the_notebook(notebook, capsys):
    notebook.run("%%resumable t --vars i --every 1 --keep 9\nfor i in range(4):\n    pass")
    run = notebook.runs[0]
    first, last = run.snapshots()[0].ident, run.snapshots()[-1].ident
    notebook.run(f"%nbresume pin t {first}")
    assert pinned(run) == {first}
    notebook.run("%nbresume prune t --keep 1 --dry-run")
    assert len(run.snapshots()) > 2
    notebook.run("%nbresume prune t --keep 1")
    assert [snapshot.ident for snapshot in run.snapshots()] == [first, last]
    notebook.run("%nbresume unpin t")
    (run.path / "snapshots" / ".x.h5.0a1b2c3d.tmp").touch()
    capsys.readouterr()
    notebook.run("%nbresume verify t --repair")
    assert ".x.h5.0a1b2c3d.tmp  dropped" in capsys.readouterr().out
    assert not (run.path / "snapshots" / ".x.h5.0a1b2c3d.tmp").exists()
    assert pinned(run) == set()


# ------------------------------------------------------------------ disk use, and who can read it


def test_runs_and_show_tell_what_a_run_takes_on_the_disk(run):
    (run.path / "files").mkdir()
    (run.path / "files" / "copy").write_bytes(os.urandom(1 << 20))
    os.sync()
    whole = sum(path.lstat().st_blocks * 512 for path in run.path.rglob("*") if path.is_file())
    assert whole > 1 << 20
    assert disk_use(run.path) == whole
    told = {one["id"]: one["disk"] for one in json.loads(ask("runs", "--json", run=run)[1])}
    assert told[run.id] == whole
    assert "ON DISK" in ask("runs", run=run)[1]
    assert f"{whole / 1e6:.1f} MB" in ask("runs", run=run)[1]
    assert f"{whole / 1e6:.1f} MB" in ask("show", run.id, run=run)[1]


def test_only_the_owner_can_enter_or_read_what_we_make_whatever_the_umask(notebook):
    """Snapshots, results of once, copies and records of files, pins, records, locks, logs, trust: all of them."""
    old = os.umask(0)
    try:
        notebook.run("import os, nbresume")
        cell = (
            "%%resumable t --vars got --every 1 --on-restart continue{more}\ngot = [nbresume.current().once('a', lambda: 1)]\n"
            "open('big.bin', 'wb').write(bytes(100_000))\nfor i in range(4):\n"
            "    with open('big.bin', 'r+b') as file:\n        file.write(b'%d' % i)\n"
            "    with open('rows.txt', 'a') as file:\n        file.write('row')\n"
            "    print(i)\n    if i == 2 and not os.path.exists('go'):\n        raise RuntimeError('stop here')\n"
        )
        assert isinstance(notebook.fails(cell.format(more="")), RuntimeError)
        notebook.run("%nbresume pin t")
        notebook.run("%nbresume continue t")
        (notebook.folder / "go").touch()
        os.environ["NBRESUME_KEY"] = THEIRS
        try:
            notebook.restart()
            notebook.run("import os, nbresume")
            notebook.run(cell.format(more=" --trust"))
        finally:
            del os.environ["NBRESUME_KEY"]
    finally:
        os.umask(old)
    found = sorted(notebook.store.root.rglob("*"))
    names = {path.name for path in found}
    assert {"run.json", "journal.jsonl", "trusted", "files.jsonl", "log.txt", "pins", "once", "lock"} <= names
    assert (notebook.runs[0].path / "files").is_dir()
    assert notebook.store.root.stat().st_mode & 0o777 == 0o700
    wrong = {
        str(path.relative_to(notebook.folder)): oct(path.lstat().st_mode & 0o777)
        for path in found
        if "aside" not in path.parts and path.lstat().st_mode & 0o777 != (0o700 if path.is_dir() else 0o600)
    }
    assert wrong == {}
