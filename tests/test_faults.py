"""Every call to the disk of one commit made to fail in turn, in every way in which a disk fails.

The table of outcomes is docs/explanation/faults.md; NBRESUME_WRITE_FAULTS=1 writes it anew.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
from _faulty import ERRORS, FLIPPED, Disk, Fault
from _support import commit, commit_again, load

from nbresume import _fs, _processes
from nbresume._store import RunFolder, Store
from nbresume._store._place import fleeting, kind_of_disk
from nbresume.errors import NbresumeError, StoreError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "faults.md"
FOREVER = "EROFS from then on"
WAYS = (*ERRORS, "short write", "empty write", FOREVER)
SMALL, LARGE = 1 << 10, 1 << 17
"""Numbers in the state: its file is written anew each time, or over an older one."""
FIRST = 6
"""The first commit that is disturbed: by then files are written over."""

CELL = """
for i in range({count}):
    state[:] = i
    log.append(i)
"""


@pytest.fixture
def disk_notebook(tmp_path, quick_disk, notebook, monkeypatch):
    """A notebook on a quick disk; what it says is kept in ``said``."""
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("NBRESUME_INDEX", "0")
        notebook.folder = Path(folder).resolve()
        notebook.restart()
        notebook.said = []
        notebook.shell._nbresume_extension.host.tell = notebook.said.append
        yield notebook


def launch(notebook, count, size, options="", name="run", cell=CELL):
    notebook.run(f"import numpy as np; state = np.zeros({size}); log = []")
    return f"%%resumable {name} --vars state,log --every 1 --keep 2 --on-restart continue {options}\n" + cell.format(
        count=count
    )


def check_result(notebook, count):
    assert notebook["log"] == list(range(count))
    assert (notebook["state"] == count - 1).all()
    assert notebook["i"] == count - 1


def latest(folder: Path) -> int:
    """Load the newest snapshot of a run, whole; its content is what a function of its number says."""
    snapshot, rejected = RunFolder.open(folder.parent).latest()
    assert not rejected
    if snapshot is None:
        return -1
    found = load(snapshot)
    last = len(found["log"]) - 1
    assert found["log"] == list(range(last + 1))
    assert (found["state"] == max(last, 0)).all()
    if not snapshot.meta.get("end"):
        assert last == snapshot.seq - 1  # each boundary had one, and boundary 0 comes before the first iteration
    return snapshot.seq


def fault(at: int, way: str) -> Fault:
    how = {"short write": "short", "empty write": "nothing", FOREVER: "EROFS"}.get(way, way)
    return Fault(at, how, lasting=way == FOREVER)


def can_fail(call: str, way: str) -> bool:
    """Whether a call knows of such an end: a file that is read back meets a dying disk, not a full one."""
    if call.startswith("read"):
        return way in ("EIO", "ENOENT", "EINTR")
    return "write" not in way or "write" in call


def disturb(notebook, size: int, options: str) -> dict[tuple[str, str], str]:
    """Let each call of a commit fail in each way, all in one run; returns what became of it."""
    calm = Disk()
    with calm.in_place():
        notebook.run(launch(notebook, FIRST + 2, size, options, name="calm"))
    calls = calm.seen[FIRST]
    plan = [(at, way) for at, call in enumerate(calls) for way in WAYS if can_fail(call, way)]
    disk = Disk({FIRST + 2 * n: fault(*one) for n, one in enumerate(plan)})
    after: dict[int, tuple[int, list[str], int]] = {}

    def ended(seq: int, folder: Path) -> None:
        after[seq] = (latest(folder), [path.name for path in folder.glob(".*")], len(notebook.said))

    disk.ended = ended
    count = FIRST + 2 * len(plan) + 1
    del notebook.said[:]
    with disk.in_place():
        notebook.run(launch(notebook, count, size, options))
    check_result(notebook, count)
    outcomes = {}
    for n, (at, way) in enumerate(plan):
        seq = FIRST + 2 * n
        assert disk.seen[seq][at] == calls[at], "the commit went another way than the one before"
        found, left, heard = after[seq]
        said = " ".join(notebook.said[heard : after[seq + 2][2]])
        outcomes[at, way] = outcome(seq, found, said, name=f"{seq:08d}.h5")
        if way in ("ENOSPC", "EDQUOT") and "not protected" in outcomes[at, way]:
            assert "bytes needed, " in said
            assert " bytes free)" in said
        assert not left or way == FOREVER, (calls[at], way, left)
        assert after[seq + 1][:2] == (seq + 1, []), (calls[at], way)
    return {(f"{at + 1}. {calls[at]}", way): text for (at, way), text in outcomes.items()}


def outcome(seq: int, found: int, said: str, name: str) -> str:
    """Put into words what a failure led to."""
    assert found >= seq - 1, "an acknowledged snapshot is lost"
    if "not protected" in said:
        assert "protected again" in said
        assert name in said or "journal.jsonl" in said, "the message names the path"
        return "not protected until the next" if found < seq else "stands, taken for lost"
    assert found == seq
    return "an old one stays until the next" if "can't be removed" in said else "no harm"


@pytest.mark.parametrize("options", ["", "--sync"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_each_call_to_the_disk_fails_in_each_way_and_the_loop_goes_on(disk_notebook, size, options):
    """The last good snapshot stays, nothing half is left, the next boundary protects again, the result is the same."""
    outcomes = disturb(disk_notebook, size, options)
    title = "written anew" if size == SMALL else "written over an older one"
    lines = table(title, outcomes)
    if os.environ.get("NBRESUME_WRITE_FAULTS"):
        write(title, lines)
    assert lines in PAGE.read_text(encoding="utf-8")


def table(title: str, outcomes: dict[tuple[str, str], str]) -> str:
    """Draw a table: a row a call, and for each outcome the ways to fail that led to it."""
    lines = [f"## A snapshot that is {title}", "", "| call | fails with | and then |", "| --- | --- | --- |"]
    rows = dict.fromkeys(call for call, _ in outcomes)
    for call in rows:
        by: dict[str, list[str]] = {}
        for (one, way), text in outcomes.items():
            if one == call:
                by.setdefault(text, []).append(way)
        lines += [f"| {call} | {', '.join(ways)} | {text} |" for text, ways in by.items()]
    return "\n".join(lines) + "\n"


def write(title: str, lines: str) -> None:
    head, *parts = PAGE.read_text(encoding="utf-8").split("\n## ")
    kept = ["## " + part.strip() + "\n" for part in parts if title not in part.partition("\n")[0]]
    PAGE.write_text(head.rstrip() + "\n\n" + "\n".join(sorted([*kept, lines])), encoding="utf-8")


# ------------------------------------------------------------------ the first commit, and the launch before it


@pytest.mark.parametrize("way", ["ENOSPC", FOREVER])
def test_the_first_commit_of_a_run_fails_at_each_call_and_the_loop_goes_on(disk_notebook, way):
    calm = Disk()
    with calm.in_place():
        disk_notebook.run(launch(disk_notebook, 2, SMALL, name="calm"))
    for at, call in enumerate(calm.seen[0]):
        disk = Disk({0: fault(at, way)})
        with disk.in_place():
            disk_notebook.run(launch(disk_notebook, 3, SMALL, name=f"first{at}"))
        check_result(disk_notebook, 3)
        assert disk.seen[0][at] == call
        run = disk_notebook.runs[-1]
        assert run.lineage().state == "completed"
        warned = [event.facts["text"] for event in run.events() if event.kind == "warned"]
        assert "not protected" in warned[0]
        assert "protected again" in warned[1]


@pytest.mark.parametrize("options", ["", "--sync"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_disk_that_keeps_another_byte_than_it_was_given_costs_no_older_snapshot(disk_notebook, size, options):
    """What is written is read back before an older snapshot goes."""
    calm = Disk()
    with calm.in_place():
        disk_notebook.run(launch(disk_notebook, FIRST + 2, size, options, name="calm"))
    writes = [at for at, call in enumerate(calm.seen[FIRST]) if call.startswith("pwritev")]
    assert len(writes) >= 2
    disk = Disk({FIRST + 2 * n: Fault(at, FLIPPED) for n, at in enumerate(writes)})
    found = {}
    disk.ended = lambda seq, folder: found.setdefault(seq, latest(folder))
    del disk_notebook.said[:]
    with disk.in_place():
        disk_notebook.run(launch(disk_notebook, FIRST + 2 * len(writes) + 1, size, options))
    check_result(disk_notebook, FIRST + 2 * len(writes) + 1)
    for seq in disk.faults:
        assert found[seq] == seq - 1
        assert found[seq + 1] == seq + 1
    told = [text for text in disk_notebook.said if "not protected" in text]
    assert len(told) == len(writes)
    assert all("was written and does not hold that: " in text for text in told)


@pytest.mark.parametrize("options", ["", "--sync"])
def test_a_stop_says_that_its_snapshot_does_not_hold_what_was_written(disk_notebook, options):
    """The one before counts, and is what running the cell again goes on from."""
    calm = Disk()
    with calm.in_place():
        disk_notebook.run(launch(disk_notebook, FIRST + 2, LARGE, options, name="calm"))
    at = next(at for at, call in enumerate(calm.seen[FIRST]) if call.startswith("pwritev"))
    cell = CELL + "    if i == 3: os.kill(os.getpid(), signal.SIGINT)\n"
    disk_notebook.run("import os, signal")
    with Disk({4: Fault(at, FLIPPED)}).in_place():
        error = disk_notebook.fails(launch(disk_notebook, 8, LARGE, options, cell=cell))
    assert "but no snapshot could be taken there: the one before counts" in str(error)
    assert latest(disk_notebook.runs[-1].path / "snapshots") == 3


def test_the_last_commit_of_a_run_is_tried_once_more(disk_notebook):
    """No boundary comes after it."""
    disk = Disk({4: fault(2, "EIO")})
    with disk.in_place():
        disk_notebook.run(launch(disk_notebook, 3, SMALL))
    assert disk.seen[4]
    assert disk_notebook.runs[-1].lineage().state == "completed"
    assert "protected again" in disk_notebook.said[-1]


@pytest.mark.parametrize("options", ["", "--sync"])
def test_memory_that_runs_out_in_a_commit_does_not_end_the_cell(disk_notebook, options):
    def refuse():
        raise MemoryError

    disk = Disk({3: Fault(4, refuse)})
    with disk.in_place():
        disk_notebook.run(launch(disk_notebook, 6, LARGE, options))
    check_result(disk_notebook, 6)
    told = [text.partition(": ")[2] for text in disk_notebook.said if "protected" in text]
    assert told == [
        "not protected since the last snapshot: MemoryError",
        "protected again: a snapshot has been committed",
    ]
    assert not list((disk_notebook.runs[-1].path / "snapshots").glob(".*"))


@pytest.mark.parametrize("way", ["EIO", FOREVER])
def test_a_launch_that_fails_at_any_call_is_refused_in_one_line_or_goes_on_and_can_be_run_again(disk_notebook, way):
    """Before anything has run, a person is there: the cell stops with a sentence, and is a launch once more."""
    calm = Disk()
    calm.ended = lambda _seq, _folder: None
    with calm.in_place(always=True):
        disk_notebook.run(launch(disk_notebook, 2, SMALL, "--sync", name="calm"))
    calls = calm.seen[-1]
    assert {"open run", "open owner", "write journal", "fsync folder", "pwritev temporary file"} & set(calls)
    step = 3 if way == "EIO" else 5
    for at in range(0, len(calls), step):
        disk = Disk({-1: fault(at, way)})
        cell = launch(disk_notebook, 2, SMALL, "--sync", name=f"launch{at}")
        with disk.in_place(always=True):
            result = disk_notebook.shell.run_cell(cell)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            assert isinstance(error, NbresumeError), (calls[at], error)
            assert str(error)
            assert disk_notebook["log"] == []
            disk_notebook.run(cell)
        check_result(disk_notebook, 2)
        if way != FOREVER or error is not None:  # else that disk has kept all it had to the end
            assert not list((disk_notebook.folder / ".nbresume").rglob("snapshots/.*.tmp")), calls[at]


# ------------------------------------------------------------------ interrupts and other ends


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("options", ["", "--sync"])
def test_an_interrupt_at_any_call_of_a_commit_stops_the_cell_whole_and_it_goes_on(disk_notebook, options, times):
    """Real signals, once or twice at the same instruction."""
    calm = Disk()
    with calm.in_place():
        disk_notebook.run(launch(disk_notebook, 4, LARGE, options, name="calm"))
    for at in range(0, len(calm.seen[3]), 1 if times == 1 else 3):
        disk = Disk({3: Fault(at, lambda: [os.kill(os.getpid(), signal.SIGINT) for _ in range(times)])})
        cell = launch(disk_notebook, 6, LARGE, options, name=f"int{at}")
        with disk.in_place():
            error = disk_notebook.fails(cell)
        assert isinstance(error, KeyboardInterrupt)
        run = disk_notebook.runs[-1]
        assert latest(run.path / "snapshots") >= 3, calm.seen[3][at]
        assert not list((run.path / "snapshots").glob(".*"))
        disk_notebook.run(cell)
        check_result(disk_notebook, 6)
        assert run.lineage().state == "completed"


def test_an_interrupt_that_the_cell_catches_itself_leaves_nothing_half(disk_notebook):
    """Then it is delivered at once, in the middle of a commit: as an exception at that very call."""

    def interrupt():
        raise KeyboardInterrupt

    cell = "try:" + CELL.replace("\n", "\n    ") + "\nexcept KeyboardInterrupt:\n    caught = True\n"
    calm = Disk()
    with calm.in_place():
        disk_notebook.run(launch(disk_notebook, 4, LARGE, "--sync", name="calm", cell=cell))
    in_loop = calm.seen[3][: calm.seen[3].index("write journal") + 1]  # what comes after it is done in a thread
    for at, call in enumerate(in_loop):
        disk = Disk({3: Fault(at, interrupt)})
        disk_notebook.run("caught = False")
        with disk.in_place():
            disk_notebook.run(launch(disk_notebook, 6, LARGE, "--sync", name=f"caught{at}", cell=cell))
        assert disk_notebook["caught"], call
        run = disk_notebook.runs[-1]
        assert not list((run.path / "snapshots").glob(".*")), call
        assert run.latest()[0].meta["end"]


def test_a_sigterm_at_any_call_of_a_commit_leaves_the_last_acknowledged_snapshot(tmp_path, quick_disk):
    """Python's default: the process is gone at that instruction."""
    code = """
        import os, signal, sys
        sys.path.insert(0, sys.argv[3])
        from _faulty import Disk, Fault
        from _support import commit_again
        from pathlib import Path
        from nbresume._store import RunFolder
        run, at = RunFolder.open(Path(sys.argv[1])), int(sys.argv[2])
        commit_again(run, range(6), Disk({4: Fault(at, lambda: os.kill(os.getpid(), signal.SIGTERM))}))
        """
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        store = Store(Path(folder))
        calm = Disk()
        commit_again(store.create("calm", {}), range(5), calm)
        for at, call in enumerate(calm.seen[4]):
            run = store.create(f"term{at}", {})
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code), run.path, str(at), str(Path(__file__).parent)],
                check=False,
            )
            assert done.returncode == -signal.SIGTERM, call
            snapshot, rejected = run.latest()
            assert not rejected
            assert snapshot.seq in (3, 4), call
            assert (load(snapshot)["state"] == snapshot.seq).all()
            run.take().leave()
            assert not list((run.path / "snapshots").glob(".*"))


# ------------------------------------------------------------------ real disks


@pytest.fixture
def mounted(tmp_path):
    """Mount file systems; where that is not allowed, the test is left out."""
    places = []

    def mount(kind, *options):
        place = tmp_path / f"disk{len(places)}"
        place.mkdir()
        done = subprocess.run(
            ["mount", "-t", kind, "-o", ",".join(options), "none", place], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no right to mount {kind} here: {done.stderr.decode().strip()}")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", place], check=True)


DISTURBED = """
import subprocess
for i in range(9):
    state[:] = i
    log.append(i)
    if i == 3:
        subprocess.run({bad!r}, shell=True, check=True)
    if i == 5:
        subprocess.run({good!r}, shell=True, check=True)
"""


@pytest.mark.parametrize("options", ["", "--sync"])
@pytest.mark.parametrize(
    ("bad", "good", "words"),
    [
        (
            "dd if=/dev/zero of={0}/.nbresume/filler bs=1k 2>/dev/null; true",
            "rm {0}/.nbresume/filler",
            r"No space left on device \(1,[01]\d\d,\d{3} bytes needed, ",
        ),
        ("mount --bind {0} {0} && mount -o remount,ro,bind {0}", "umount {0}", "Read-only file system"),
    ],
    ids=["full", "read-only"],
)
def test_a_real_disk_that_is_full_or_read_only_for_a_while_is_said_and_comes_out_the_same(
    notebook, mounted, bad, good, words, options
):
    disk = mounted("tmpfs", "size=24m")
    said = []
    notebook.shell._nbresume_extension.host.tell = said.append
    cell = DISTURBED.format(bad=bad.format(disk), good=good.format(disk))
    notebook.run(
        launch(
            notebook,
            9,
            LARGE,
            f"{options} --store {disk}/.nbresume --keep 20",
            cell=cell.replace("{", "{{").replace("}", "}}"),
        )
    )
    check_result(notebook, 9)
    (run,) = Store(disk / ".nbresume")
    assert run.lineage().state == "completed"
    assert latest(run.path / "snapshots") == run.snapshots()[-1].seq
    assert not list((run.path / "snapshots").glob(".*"))
    told = [text for text in said if "protected" in text]
    assert len(told) == 2
    assert "not protected since the last snapshot: " in told[0]
    assert re.search(words, told[0])
    assert str(run.path) in told[0]
    assert "protected again" in told[1]
    journal = [event.facts["text"] for event in run.events() if event.kind == "warned"]
    assert [text.partition(": ")[2] for text in told] == journal, "what the disk did not take is noted later"


def test_a_copy_of_a_users_file_that_finds_no_room_is_told_with_its_bytes(mounted, tmp_path):
    disk = mounted("tmpfs", "size=1m")
    (tmp_path / "rows.bin").write_bytes(bytes(3_000_000))
    with pytest.raises(StoreError, match=r"rows\.bin: No space left on device \(3,000,000 bytes needed, "):
        _fs.keep_copy(tmp_path / "rows.bin", disk / "files")
    assert not list((disk / "files").iterdir())


def test_a_mount_that_vanishes_and_comes_back_is_no_other_kernel(notebook, mounted):
    """The owner record can't be read then; nobody has taken the run over."""
    disk = mounted("tmpfs", "size=8m")
    said = []
    notebook.shell._nbresume_extension.host.tell = said.append
    aside = disk.parent / "aside"
    aside.mkdir()
    bad, good = f"mount --move {disk} {aside}", f"mount --move {aside} {disk}"
    cell = DISTURBED.format(bad=bad, good=good)
    shared = subprocess.run(["mount", "--make-private", disk.parent], capture_output=True, check=False)
    assert shared is not None
    notebook.run(
        launch(notebook, 9, LARGE, f"--store {disk}/.nbresume", cell=cell.replace("{", "{{").replace("}", "}}"))
    )
    check_result(notebook, 9)
    (run,) = Store(disk / ".nbresume")
    assert run.lineage().state == "completed"
    assert [word for text in said for word in ("not protected", "protected again") if word in text] == [
        "not protected",
        "protected again",
    ]


def test_a_real_limit_of_file_size_is_said_and_the_loop_goes_on(notebook, tmp_path):
    """EFBIG from the kernel; the signal that comes with it is ignored by Python."""
    import resource

    said = []
    notebook.shell._nbresume_extension.host.tell = said.append
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    cell = """
import resource
for i in range(5):
    state[:] = i
    log.append(i)
    if i in (1, 3):
        resource.setrlimit(resource.RLIMIT_FSIZE, ((1 << 19) if i == 1 else LIMIT, LIMIT))
"""
    try:
        notebook.shell.user_ns["LIMIT"] = before[1]
        notebook.run(launch(notebook, 5, LARGE, cell=cell.replace("{", "{{").replace("}", "}}")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    check_result(notebook, 5)
    told = [text for text in said if "protected" in text]
    assert "File too large" in told[0]
    assert "protected again" in told[-1]


@pytest.mark.parametrize("options", ["--keep-free 7MB", ""])
def test_what_has_to_stay_free_stays_free(notebook, mounted, monkeypatch, options):
    """The same by option and by environment; nothing is written that would leave less."""
    if not options:
        monkeypatch.setenv("NBRESUME_KEEP_FREE", "7 MB")
    disk = mounted("tmpfs", "size=8m")  # 8,388,608 bytes: there is room for one snapshot of 1.06 MB
    said = []
    notebook.shell._nbresume_extension.host.tell = said.append
    notebook.run(launch(notebook, 5, LARGE, f"--store {disk}/.nbresume {options}"))
    check_result(notebook, 5)
    (run,) = Store(disk / ".nbresume")
    assert [one.seq for one in run.snapshots()] == [0]
    assert _fs.free_space(disk) >= 7_000_000
    told = [text for text in said if "protected" in text]
    assert re.search(r"7,000,000 bytes have to stay free \(--keep-free\) \(1,[01]\d\d,\d{3} bytes needed", told[0])
    assert "its end could not be saved" in said[-1]


def test_a_store_in_memory_or_in_the_layer_of_a_container_works_and_is_said_once(
    notebook, mounted, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))  # else it is among temporary files
    said = []
    notebook.shell._nbresume_extension.host.tell = said.append
    places = {"tmpfs": mounted("tmpfs", "size=8m")}
    upper = mounted("tmpfs", "size=8m")  # an overlay can't lie on another, which a container's own disk is
    for name in ("lower", "upper", "work"):
        (upper / name).mkdir()
    layers = [f"{kind}dir={upper / kind}" for kind in ("lower", "upper", "work")]
    places["overlay"] = mounted("overlay", *layers)
    for kind, place in places.items():
        assert kind_of_disk(place / "not" / "there") == kind
        for name in ("one", "two"):
            notebook.run(launch(notebook, 3, SMALL, f"--store {place}/.nbresume", name=name))
            check_result(notebook, 3)
    told = [text for text in said if "To outlive that" in text]
    assert [f"({kind})" in text for kind, text in zip(places, told, strict=True)] == [True, True]


def test_a_store_among_temporary_files_and_one_on_a_disk_are_not_warned_of(tmp_path, monkeypatch):
    assert fleeting(tmp_path) == ""
    if Path("/dev/shm").is_dir():
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
        assert fleeting(Path("/dev/shm/store")) == ""


@pytest.mark.parametrize("kept", [0, 1, 4095, 4096, 4097, 1 << 16, -4096, -1])
def test_where_a_rename_is_not_atomic_half_a_file_under_a_final_name_is_not_believed(tmp_path, kept):
    """Some network and FUSE file systems copy: what proves that a snapshot is whole lies inside it."""
    run = Store(tmp_path / ".nbresume").create("train", {})
    for seq in (0, 1):
        commit(run, {"state": np.arange(float(LARGE)), "log": [], "i": seq}, seq=seq)
    data = run.snapshot_path(1, 1).read_bytes()
    run.snapshot_path(1, 2).write_bytes(data[:kept])
    holes = bytearray(data)
    holes[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    run.snapshot_path(1, 3).write_bytes(holes)
    snapshot, rejected = run.latest()
    assert snapshot.seq == 1
    assert [one.seq for one, _ in rejected] == [3, 2]
    assert load(snapshot)["i"] == 1


@pytest.mark.parametrize("call", ["open temporary file", "fdatasync temporary file"])
def test_a_commit_during_which_another_kernel_takes_the_run_over_gives_no_name(disk_notebook, call):
    """A machine that was suspended in the middle of a commit: it wakes, and writes no more."""
    calm = Disk()
    with calm.in_place():
        disk_notebook.run(launch(disk_notebook, 6, LARGE, name="calm"))
    before: list[list[str]] = []

    def take_over():
        (run,) = disk_notebook.store.named("run")
        (run.path / "owner").write_text('{"pid": 1, "key": "another"}')
        run.note("resumed", 2, snapshot=run.snapshots()[-1].ident)
        before.append(sorted(one.ident for one in run.snapshots()))

    disk = Disk({5: Fault(calm.seen[5].index(call), take_over)})
    with disk.in_place():
        error = disk_notebook.fails(launch(disk_notebook, 9, LARGE))
    assert "taken this run over" in str(error)
    (run,) = disk_notebook.store.named("run")
    there = sorted(path.stem for path in (run.path / "snapshots").iterdir())
    assert there[-1] == before[0][-1] == "0001-00000004"
    assert [event.facts["snapshot"] for event in run.events() if event.kind == "snapshot"][-1] == "0001-00000004"


def test_where_locks_are_refused_a_run_works(disk_notebook, monkeypatch):
    def refuse(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(_processes.fcntl, "lockf", refuse)
    monkeypatch.setattr(_processes.fcntl, "flock", refuse)
    disk_notebook.run(launch(disk_notebook, 3, LARGE))
    check_result(disk_notebook, 3)
    assert disk_notebook.runs[-1].lineage().state == "completed"
