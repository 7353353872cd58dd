"""What is not signed with a key of ours is refused before it is loaded; a person can say otherwise."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pickle

import pytest
import xxhash

from nbresume._cli import main
from nbresume._store import Snapshot, Store
from nbresume._store._keys import Key
from nbresume._store._seal import Seal
from nbresume._store._trust import of_change, of_record, signer
from nbresume.errors import CorruptError, UntrustedError

OURS, THEIRS = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
CELL = """\
%%resumable train --vars seen --every 1 --keep 9 --on-restart continue{more}
seen = []
for i in range(5):
    if i == 3 and not os.path.exists('go'):
        raise RuntimeError('stop here')
    seen.append(i * random.random())
"""


@pytest.fixture
def interrupted(notebook, monkeypatch):
    """A notebook whose run was signed with our key, and stopped in the fourth iteration."""
    monkeypatch.delenv("NBRESUME_KEY_FILE", raising=False)
    monkeypatch.setenv("NBRESUME_KEY", OURS)
    start(notebook)
    assert isinstance(notebook.fails(CELL.format(more="")), RuntimeError)
    (notebook.folder / "go").touch()
    restart(notebook)
    return notebook


def start(notebook):
    notebook.run("import os, random\nrandom.seed(1)")


def restart(notebook):
    notebook.restart()
    start(notebook)


def go_on(notebook, more=""):
    notebook.run(CELL.format(more=more))
    return notebook["seen"]


def expected():
    import random

    draws = random.Random(1)
    return [i * draws.random() for i in range(5)]


class Evil:
    """Somebody's code: it runs when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def forge(path, evil, key=None, *, keep=False):
    """Put a pickle stream of an attacker into a snapshot, with every digest right, and sign it with a key or none."""
    data = bytearray(path.read_bytes())
    seal = Seal.read(bytes(data[:4096]))
    facts = seal.facts
    offset, size, _ = facts["objects"]
    stream = pickle.dumps(Evil(evil), protocol=5)
    data[offset : offset + max(size, len(stream))] = stream.ljust(size, b"\0")
    facts["objects"] = [offset, len(stream), hashlib.sha256(stream).hexdigest()]
    at, count = facts["digests"]
    for number in range(count):
        begin = facts["body"] + (number << 20)
        data[at + 16 * number : at + 16 * number + 16] = xxhash.xxh3_128_digest(data[begin : begin + (1 << 20)])
    facts["head"] = xxhash.xxh3_128_hexdigest(data[4096 : facts["body"]])
    signature = seal.signature if keep else {}
    if key is not None:
        own = Key(key.encode())
        signature = {"key": own.ident, "hmac": own.sign(*Seal(facts, {}).signed())}
    data[:4096] = Seal(facts, signature).page()
    path.write_bytes(data)


def newest(notebook):
    return notebook.runs[-1].snapshots()[-1]


def verify(notebook):
    out = io.StringIO()
    status = main(["verify", "train", "--json", "--store", str(notebook.store.root)], out)
    return status, json.loads(out.getvalue())


# ------------------------------------------------------------------ refused before anything is loaded


def test_what_the_forger_writes_would_run_if_it_were_signed_with_our_key(interrupted, tmp_path):
    """Else the tests below would show nothing."""
    forge(newest(interrupted).path, tmp_path / "evil", OURS)
    interrupted.fails(CELL.format(more=""))
    assert (tmp_path / "evil").is_dir()


@pytest.mark.parametrize(("key", "says"), [(None, "is not signed"), (THEIRS, "is signed with another key")])
def test_an_unsigned_or_foreign_snapshot_is_refused_before_anything_of_it_is_loaded(interrupted, tmp_path, key, says):
    forge(newest(interrupted).path, tmp_path / "evil", key)
    before = interrupted.files()
    error = interrupted.fails(CELL.format(more=""))
    assert isinstance(error, UntrustedError)
    assert f"snapshots/{newest(interrupted).path.name} of {interrupted.runs[0].id} {says}" in str(error)
    assert "NBRESUME_KEY_FILE" in str(error)
    assert "--trust" in str(error)
    assert error.path == str(newest(interrupted).path)
    assert not (tmp_path / "evil").exists()
    assert interrupted.files() == before
    assert "seen" not in interrupted


def test_a_snapshot_changed_behind_our_key_is_a_damaged_one_and_the_next_older_is_taken_aloud(
    interrupted, tmp_path, capsys
):
    bad = newest(interrupted)
    forge(bad.path, tmp_path / "evil", keep=True)
    assert go_on(interrupted) == expected()
    assert not (tmp_path / "evil").exists()
    assert f"snapshot {bad.ident} can't be believed (it has been changed by somebody who does not have the key" in (
        capsys.readouterr().out
    )
    assert [event.facts["snapshot"] for event in interrupted.runs[0].events() if event.kind == "rejected"] == [
        bad.ident
    ]


def test_a_snapshot_changed_behind_our_key_is_not_trusted_by_a_word(interrupted, tmp_path):
    for snapshot in interrupted.runs[0].snapshots():
        forge(snapshot.path, tmp_path / "evil", keep=True)
    error = interrupted.fails(CELL.format(more=" --trust"))
    assert "no snapshot of train can be believed" in str(error)
    assert not (tmp_path / "evil").exists()


def test_a_signed_snapshot_put_in_anothers_place_is_not_believed(interrupted, capsys):
    """A signature says who wrote a file, and also where it belongs."""
    first, last = interrupted.runs[0].snapshots()[0], newest(interrupted)
    later = last.path.with_name(Snapshot.name(1, last.seq + 1))
    later.write_bytes(first.path.read_bytes())
    assert go_on(interrupted) == expected()
    assert (
        f"snapshot {later.stem} can't be believed (it holds {first.ident}, under another name"
        in capsys.readouterr().out
    )


def test_a_signed_snapshot_of_another_run_is_not_believed(interrupted):
    run = interrupted.runs[0]
    last = run.snapshots()[-1]
    twin = interrupted.store.create("train", {"identity": run.record["identity"]})
    (twin.path / "snapshots" / last.path.name).write_bytes(last.path.read_bytes())
    with pytest.raises(CorruptError, match=f"it is of another run, {run.id}"):
        twin.latest()


@pytest.mark.parametrize("what", ["record", "unsigned", "line"])
def test_a_record_that_was_changed_is_not_followed(interrupted, what):
    """A changed record could pass another computation off as this one, though it runs no code."""
    run = interrupted.runs[0]
    path = run.path / "run.json"
    record = json.loads(path.read_bytes())
    if what == "record":
        record["rng"] = {**record["rng"]}
        record["declared"] = ["other"]
    elif what == "unsigned":
        del record["signature"]
    else:
        line = {"event": "changed", "attempt": 1, "at": "2026-01-01", "how": "declared", "identity": record["identity"]}
        with (run.path / "journal.jsonl").open("a") as journal:
            journal.write(json.dumps(line) + "\n")
    path.write_text(json.dumps(record))
    error = interrupted.fails(CELL.format(more=""))
    assert isinstance(error, UntrustedError)
    assert ("journal.jsonl" if what == "line" else "run.json") in str(error)
    assert ("Put back a copy" if what == "record" else "--trust") in str(error)


@pytest.mark.parametrize("where", ["files.jsonl", "aside/moved.json"])
@pytest.mark.parametrize("signed", [True, False])
def test_a_record_that_would_replace_any_file_is_not_followed(interrupted, tmp_path, where, signed):
    """Of what was done to files since the snapshot, and of files moved aside: a resume puts such files back."""
    victim, loot = tmp_path / "startup.py", tmp_path / "loot.py"
    victim.write_text("mine")
    loot.write_text("theirs")
    run = interrupted.runs[0]
    content = base64.b64encode(b"theirs").decode()
    record = (
        {"op": "was", "seq": 99, "path": str(victim), "length": 6, "sig": None, "copy": {"inline": content}}
        if where == "files.jsonl"
        else {"moves": {str(victim): str(loot)}}
    )
    if signed:  # else the refusal would show nothing
        record["signature"] = signer(run.id)("done" if where == "files.jsonl" else "moved", record)
    path = run.path / where
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
    if signed:
        assert go_on(interrupted) == expected()
        assert victim.read_text() == "theirs"
    else:
        error = interrupted.fails(CELL.format(more=""))
        assert isinstance(error, UntrustedError)
        assert where in str(error)
        assert victim.read_text() == "mine"


def test_a_record_about_files_of_another_run_is_not_followed(interrupted):
    run = interrupted.runs[0]
    record = {"op": "made", "seq": 99, "path": "/nowhere"}
    record["signature"] = signer("train-000000")("done", record)
    with (run.path / "files.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    assert "files.jsonl" in str(interrupted.fails(CELL.format(more=" --trust")))


def test_a_torn_record_about_files_is_nobodys_doing(interrupted):
    with (interrupted.runs[0].path / "files.jsonl").open("a") as file:
        file.write('{"op": "was", "seq"')
    assert go_on(interrupted) == expected()


def test_a_run_that_is_superseded_needs_no_trust(interrupted, monkeypatch):
    monkeypatch.setenv("NBRESUME_KEY", THEIRS)
    assert interrupted.runs[0].said() == ""
    interrupted.run("%nbresume supersede train")
    assert go_on(interrupted) == expected()
    assert len(interrupted.runs) == 2


def test_a_completed_run_of_another_key_is_not_restored_and_a_changed_cell_starts_beside_it(interrupted, monkeypatch):
    go_on(interrupted)
    monkeypatch.setenv("NBRESUME_KEY", THEIRS)
    restart(interrupted)
    assert isinstance(interrupted.fails(CELL.format(more="")), UntrustedError)
    interrupted.run(CELL.format(more="") + "# \nlater = 1")
    assert interrupted["seen"] == expected()
    assert len(interrupted.runs) == 2


def test_the_result_of_what_is_done_once_is_refused_when_it_is_not_ours(notebook, monkeypatch, tmp_path):
    monkeypatch.setenv("NBRESUME_KEY", OURS)
    cell = (
        "%%resumable train --vars got --every 1 --on-restart continue\ngot = [nbresume.current().once('a', lambda: 1)]\n"
        "for i in range(3):\n    if i == 1 and not os.path.exists('go'):\n        raise RuntimeError('stop here')\n"
        "    got.append(nbresume.current().once('a', lambda: 2))"
    )
    notebook.run("import os, nbresume")
    notebook.fails(cell)
    (kept,) = (notebook.runs[0].path / "once").glob("*.h5")
    forge(kept, tmp_path / "evil", THEIRS)
    (notebook.folder / "go").touch()
    notebook.restart()
    notebook.run("import os, nbresume")
    error = notebook.fails(cell)
    assert isinstance(error, UntrustedError)
    assert f"once/{kept.name}" in str(error)
    assert not (tmp_path / "evil").exists()


# ------------------------------------------------------------------ a person's word


def test_a_run_of_another_key_goes_on_with_trust_and_is_ours_from_then_on(interrupted, monkeypatch, capsys):
    monkeypatch.setenv("NBRESUME_KEY", THEIRS)
    assert isinstance(interrupted.fails(CELL.format(more="")), UntrustedError)
    status, found = verify(interrupted)
    assert (status, found["complete"], found["trusted"]) == (1, True, False)
    assert {row["signature"] for row in (*found["snapshots"], *found["records"])} == {"foreign"}
    assert {row["key"] for row in found["snapshots"]} == {Key(OURS.encode()).ident}
    old = [row["file"] for row in found["snapshots"]]
    assert go_on(interrupted, " --trust") == expected()
    assert "trusted by --trust, and loaded: run.json is signed with another key" in capsys.readouterr().out
    notes = [event.facts["text"] for event in interrupted.runs[0].events() if event.kind == "warned"]
    assert len(notes) == len(old) + len(found["records"])
    status, found = verify(interrupted)
    assert (status, found["trusted"]) == (0, True)
    new = [row for row in found["snapshots"] if row["file"] not in old]
    assert new
    assert {(row["signature"], row["key"]) for row in new} == {("signed", Key(THEIRS.encode()).ident)}
    restart(interrupted)
    assert go_on(interrupted) == expected()  # of the completed run, without the word


def test_trust_is_of_what_lay_there_when_it_was_said(interrupted, monkeypatch, tmp_path):
    monkeypatch.setenv("NBRESUME_KEY", THEIRS)
    (interrupted.folder / "go").unlink()
    assert isinstance(interrupted.fails(CELL.format(more=" --trust")), RuntimeError)
    (interrupted.folder / "go").touch()
    restart(interrupted)
    forge(newest(interrupted).path, tmp_path / "evil", OURS)
    assert isinstance(interrupted.fails(CELL.format(more="")), UntrustedError)
    assert not (tmp_path / "evil").exists()


def test_trust_that_was_said_with_another_key_is_not_ours(interrupted, monkeypatch):
    monkeypatch.setenv("NBRESUME_KEY", THEIRS)
    (interrupted.folder / "go").unlink()
    interrupted.fails(CELL.format(more=" --trust"))
    monkeypatch.setenv("NBRESUME_KEY", "a third key of somebody else")
    restart(interrupted)
    assert isinstance(interrupted.fails(CELL.format(more="")), UntrustedError)


def test_trust_is_no_setting(interrupted, monkeypatch):
    monkeypatch.setenv("NBRESUME_KEY", THEIRS)
    monkeypatch.setenv("NBRESUME_TRUST", "1")
    assert isinstance(interrupted.fails(CELL.format(more="")), UntrustedError)


def test_after_a_rotation_old_runs_go_on_and_are_signed_with_the_new_key(interrupted, monkeypatch, tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"{THEIRS}\n{OURS}\n")
    path.chmod(0o600)
    monkeypatch.setenv("NBRESUME_KEY_FILE", str(path))
    assert go_on(interrupted) == expected()
    status, found = verify(interrupted)
    assert status == 0
    assert [row["key"] for row in found["snapshots"]][-1] == Key(THEIRS.encode()).ident
    assert {row["signature"] for row in found["snapshots"]} == {"signed"}


def test_a_change_that_a_person_declared_is_signed_with_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("NBRESUME_KEY", OURS)
    run = Store(tmp_path / "store").create("train", {"identity": {}})
    run.note("launched", 1)
    event = run.note("changed", 2, how="declared", identity={"é": 0.1})
    read = run.events()[-1]
    assert read.facts["signature"] == event.facts["signature"]
    key = Key(OURS.encode())
    assert key.holds(read.facts["signature"]["hmac"], *of_change(run.id, 2, read.facts))
    again = Store(tmp_path / "store").find("train").record
    assert key.holds(again["signature"]["hmac"], *of_record(again))


def test_where_no_key_can_be_kept_the_run_says_so_and_notes_it(notebook, monkeypatch, capsys):
    monkeypatch.delenv("NBRESUME_KEY", raising=False)
    (notebook.folder / "file").touch()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(notebook.folder / "file" / "jupyter"))
    start(notebook)
    (notebook.folder / "go").touch()
    assert go_on(notebook) == expected()
    assert "Snapshots are signed with a key that ends with this kernel" in capsys.readouterr().out
    assert any("NBRESUME_KEY_FILE" in event.facts.get("text", "") for event in notebook.runs[0].events())


def test_verify_unpickles_nothing(interrupted, tmp_path):
    forge(newest(interrupted).path, tmp_path / "evil", OURS)
    status, found = verify(interrupted)
    assert (status, found["trusted"]) == (0, True)
    interrupted.run("%nbresume verify train")
    assert not (tmp_path / "evil").exists()
