"""The command line on real stores: what a person reads, what a program reads, and what it ends with."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import nbresume
from nbresume import _demo
from nbresume._cli import main
from nbresume._store import Store
from nbresume._store._snapshot import Snapshot

FACTS = {
    "where": "epoch 3 of 30, start 7 of 20",
    "loops": [["epoch", 3, 30], ["start", 7, 20]],
    "bytes": 4096,
    "seconds": 0.01,
}


def commit(run, attempt: int, seq: int) -> Path:
    """Publish a real snapshot that holds nothing, with its line in the journal."""
    writer, path = run.writer(), run.snapshot_path(attempt, seq)
    writer.commit(writer.stage(path, {"where": FACTS["where"]}, b"objects", b"tables", []))
    snapshot = Snapshot(path)
    run.note("snapshot", attempt, snapshot=snapshot.ident, **FACTS)
    return snapshot.path


@pytest.fixture
def store(tmp_path):
    """A store with an interrupted run and a completed one."""
    store = Store(tmp_path / "store")
    run = store.create("train", {"identity": {}})
    run.note("launched", 1)
    commit(run, 1, 0)
    commit(run, 1, 1)
    done = store.create("other", {"identity": {}})
    done.note("launched", 1)
    commit(done, 1, 0)
    done.note("completed", 1)
    return store


def ask(*words: str, store: Store | None = None) -> tuple[int, str]:
    out = io.StringIO()
    status = main([*words, *(["--store", str(store.root)] if store else [])], out)
    return status, out.getvalue()


def files(store: Store) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in store.root.rglob("*") if path.is_file()}


def test_runs_lists_each_run_with_its_state(store):
    status, text = ask("runs", store=store)
    assert status == 0
    assert "train" in text
    assert "interrupted" in text
    assert "completed" in text


def test_runs_of_an_empty_store_say_so_and_make_nothing(tmp_path):
    status, text = ask("runs", store=Store(tmp_path / "nothing"))
    assert (status, text.strip()) == (0, f"no runs in {tmp_path / 'nothing'}")
    assert not (tmp_path / "nothing").exists()


def test_runs_as_json_has_the_documented_keys(store):
    status, text = ask("runs", "--json", store=store)
    found = {run["name"]: run for run in json.loads(text)}
    assert status == 0
    assert set(found) == {"train", "other"}
    page = (Path(nbresume.__file__).parents[1] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for key in found["train"]:
        assert f"`{key}`" in page


def test_show_tells_the_lineage(store):
    status, text = ask("show", "train", store=store)
    assert status == 0
    assert "epoch 3 of 30" in text
    assert "vanished" in text


def test_show_as_json_tells_where_the_run_stands(store):
    status, text = ask("show", "train", "--json", store=store)
    found = json.loads(text)
    assert status == 0
    assert found["state"] == "interrupted"
    assert found["where"] == FACTS["where"]
    assert found["snapshot"]["snapshot"] == "0001-00000001"
    assert [(a["number"], a["how"], a["snapshots"]) for a in found["attempts"]] == [(1, "vanished", 2)]
    assert found["differences"] == []


def test_a_run_can_be_named_by_its_id(store):
    ident = store.find("train").id
    assert json.loads(ask("show", ident, "--json", store=store)[1])["id"] == ident


@pytest.mark.parametrize("word", ["continue", "supersede"])
def test_a_decision_is_recorded_for_the_next_execution_and_said(store, word):
    status, text = ask(word, "train", store=store)
    assert status == 0
    assert "train" in text
    assert store.find("train").said() == word


def test_abandon_closes_the_run_and_keeps_its_files(store):
    before = files(store)
    status, text = ask("abandon", "train", store=store)
    assert status == 0
    assert "train" in text
    assert store.find("train").lineage().state == "abandoned"
    after = files(store)
    assert set(before) <= set(after)
    assert all(after[path] == data for path, data in before.items() if not path.endswith("journal.jsonl"))


def test_verify_reads_everything_and_changes_nothing(store):
    before = files(store)
    status, text = ask("verify", "train", store=store)
    assert status == 0
    assert "0001-00000000.h5" in text
    assert "0001-00000001.h5" in text
    assert "none that can't be believed" in text
    assert files(store) == before


def test_verify_names_the_bad_snapshot_and_ends_with_1(store):
    bad = store.find("train").path / "snapshots" / Snapshot.name(1, 1)
    bad.write_bytes(bad.read_bytes()[:-100])
    status, text = ask("verify", "train", store=store)
    assert status == 1
    assert "1 that can't be believed" in text
    status, text = ask("verify", "train", "--json", store=store)
    found = json.loads(text)
    assert status == 1
    assert [row["complete"] for row in found["snapshots"]] == [True, False]
    assert found["snapshots"][1]["why"]
    assert found["complete"] is False


@pytest.mark.parametrize("word", ["show", "continue", "supersede", "verify", "abandon"])
def test_a_run_that_is_not_there_is_one_sentence_and_status_3(store, capsys, word):
    before = files(store)
    status, text = ask(word, "trian", store=store)
    error = capsys.readouterr().err
    assert (status, text) == (3, "")
    assert error.startswith("nbresume: ")
    assert error.count("\n") == 1
    assert "'trian'" in error
    assert "train" in error  # names those that are there
    assert files(store) == before


def test_a_run_of_a_newer_format_is_not_taken_for_none(store, capsys):
    """Unreadable is never "no such run"."""
    record = store.find("train").path / "run.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "format": 99}))
    status, text = ask("show", "train", store=store)
    error = capsys.readouterr().err
    assert (status, text) == (2, "")
    assert error.startswith("nbresume: ")
    assert error.count("\n") == 1
    assert "99" in error


def test_any_other_error_is_one_sentence_and_status_2(capsys, monkeypatch):
    monkeypatch.setattr(_demo, "find_spec", lambda name: None)
    status, text = ask("demo")
    error = capsys.readouterr().err
    assert (status, text) == (2, "")
    assert error.startswith("nbresume: the demo starts a real kernel and needs ")
    assert error.count("\n") == 1


def test_a_wrong_word_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["sho", "train"])
    assert stop.value.code == 2
    assert "usage: nbresume" in capsys.readouterr().err


def test_the_environment_names_the_store_and_the_option_wins(store, tmp_path, monkeypatch):
    monkeypatch.setenv("NBRESUME_STORE", str(store.root))
    assert len(json.loads(ask("runs", "--json")[1])) == 2
    assert json.loads(ask("runs", "--json", store=Store(tmp_path / "empty"))[1]) == []


def test_without_a_word_the_store_is_the_folder_here(store, tmp_path, monkeypatch):
    monkeypatch.delenv("NBRESUME_STORE", raising=False)
    store.root.rename(tmp_path / ".nbresume")
    monkeypatch.chdir(tmp_path)
    assert len(json.loads(ask("runs", "--json")[1])) == 2


@pytest.mark.parametrize("command", ["nbresume", "jupyter-nbresume"])
def test_the_installed_commands_answer(command, store):
    script = Path(sys.executable).with_name(command)
    if not script.exists():
        pytest.fail(f"{script} is missing: install the package (bash tests/run does)")
    version = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"nbresume {nbresume.__version__}"
    env = {**os.environ, "NBRESUME_STORE": str(store.root)}
    runs = subprocess.run([script, "runs", "--json"], capture_output=True, text=True, check=True, env=env)
    assert {run["name"] for run in json.loads(runs.stdout)} == {"train", "other"}


CODE = "%%resumable secret --vars total\nfor i in range(2):\n    total += len(place)\n    print('a line of', place)"


@pytest.fixture
def public_run(notebook):
    """A real run whose inputs and output tell who ran it, and where."""
    notebook.run("total, place = 0, '/home/alice/projects/nose/data.csv'")
    notebook.run(CODE)
    return notebook.store


def test_plan_tells_of_each_statement_what_was_recorded_at_the_launch(public_run):
    status, text = ask("plan", "secret", store=public_run)
    assert status == 0
    assert re.search(r"3 +total \+= len\(place\) +runs +runs from the boundary on", text)
    assert re.search(r"total +saved +\d+ B", text)
    assert "Declared: total." in text
    found = json.loads(ask("plan", "secret", "--json", store=public_run)[1])
    assert [one["line"] for one in found["statements"]] == ["2", "3", "4"]
    assert found["declared"] == ["total"]


def test_plan_of_a_run_that_recorded_none_says_so(store):
    assert "was not recorded" in ask("plan", "train", store=store)[1]


def test_export_tells_all_and_redacted_nothing_that_is_not_for_others(public_run, tmp_path, capsys):
    found = json.loads(ask("export", "secret", store=public_run)[1])
    assert [event["event"] for event in found["events"]][:2] == ["launched", "snapshot"]
    assert [one["text"] for one in found["log"] if one["kind"] == "printed"] == [
        "a line of /home/alice/projects/nose/data.csv"
    ] * 2
    redacted = ask("export", "secret", "--redact", store=public_run)[1]
    private = ["alice", "nose", "a line of", "total +=", str(public_run.root), socket.gethostname(), "signature"]
    assert [one for one in private if re.search(rf"\b{re.escape(one)}", redacted)] == []
    assert json.loads(redacted)["state"] == "completed"
    file = tmp_path / "record.json"
    assert ask("export", "secret", "--output", str(file), store=public_run) == (0, f"{file} is written\n")
    assert json.loads(file.read_text()) == found
    assert ask("export", "secret", "--output", str(file), store=public_run)[0] == 2
    assert "is there already" in capsys.readouterr().err


def test_the_notebook_takes_the_same_words_with_the_same_options(public_run, notebook, capsys):
    capsys.readouterr()
    for line in (
        "runs",
        "status secret",
        "log secret --plain",
        "plan secret",
        "verify secret",
        "export secret --redact",
    ):
        status, text = ask(*line.split(), store=public_run)
        notebook.run(f"%nbresume {line}")
        assert (status, capsys.readouterr().out) == (0, text), line
    for line in ("sho secret", "log", "log secret --sine 10m"):
        error = notebook.fails(f"%nbresume {line}")
        assert type(error).__name__ == "UsageError"
        assert "%nbresume --help" in str(error)
    notebook.run("%nbresume --help")
    assert "panel" in capsys.readouterr().out


def test_a_reader_that_has_seen_enough_is_no_error(public_run):
    code = "import sys; from nbresume._cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "log", "secret", "--store", str(public_run.root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
