"""Two kernels and one run: who may write, who takes over, and what one that has lost it does."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from _support import LIMIT, Kernel

from nbresume import _processes
from nbresume._store import Store
from nbresume._store import _owner as owner
from nbresume.errors import BusyError
from nbresume.testing import attempt, rehearse

SETUP = "%load_ext nbresume\nimport random, time, numpy as np\nrandom.seed(1); np.random.seed(1)\nlog = []\n"
CELL = "for i in range({n}):\n    log.append((i, random.random()))\n    print(i, flush=True)\n    time.sleep(0.1)\n"


def cell(n: int, options: str = "") -> str:
    return f"%%resumable t --vars log --every 1 {options}\n" + CELL.format(n=n)


NO_LOCKS = """
import fcntl, errno, uuid
def _refuse(*args): raise OSError(errno.ENOLCK, "No locks available")
fcntl.lockf = _refuse
uuid.getnode = lambda: {node}
from nbresume._store import _owner
from nbresume import _processes
_owner.STILL, _owner.PATIENCE, _processes.Pulse.PERIOD = {still}, {patience}, 0.2
"""


def machine(node: int, *, still: float = 3.0, patience: float = 0.5) -> str:
    """What makes of a kernel one on a machine of its own, whose file system knows no locks."""
    return NO_LOCKS.format(node=node, still=still, patience=patience)


# ------------------------------------------------------------------ real kernels


@pytest.mark.kernel
def test_a_kernel_that_stood_still_while_another_took_over_does_no_harm_when_it_wakes(tmp_path):
    """A suspended machine: no lock, no pulse. The other one finishes the run; the one that wakes stops, and says so."""
    with Kernel(tmp_path) as first, Kernel(tmp_path) as second:
        for kernel, node in ((first, 3), (second, 5)):
            _, error = kernel.run(SETUP + machine(node))
            assert not error, error
        running = first.send(cell(60))
        first.finish(running, until="4\n")
        told, error = second.run(cell(60))
        assert error.startswith("BusyError"), told + error
        assert "another machine" in error
        assert "sign of life" in error
        os.kill(first.pid, signal.SIGSTOP)
        second.run("_owner.PATIENCE = 20")
        told, error = second.run(cell(60))
        assert not error, told + error
        assert ", attempt 2, from" in told
        values = second.values("log", "i")
        (run,) = Store(tmp_path / ".nbresume")
        logs = ("log.txt", "log.jsonl")
        before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file() and path.name not in logs}
        os.kill(first.pid, signal.SIGCONT)
        told, error = first.finish(running)
        assert error.startswith("BusyError"), told + error
        assert "taken this run over" in error
        after = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file() and path.name not in logs}
        assert after == before
        assert second.run("%nbresume show t")[1] == ""
    lineage = run.lineage()
    assert [one.how for one in lineage.attempts] == ["vanished", "completed"]
    with Kernel(tmp_path) as plain:
        plain.run(SETUP)
        plain.run(CELL.format(n=60).replace("time.sleep(0.1)", "pass"))
        assert plain.values("log", "i") == values


@pytest.mark.kernel
def test_a_kernel_whose_server_died_is_waited_for_and_not_refused(tmp_path):
    """It lives on for up to a second beside the new one; who restarts at once sees a continuation, not an error."""
    with Kernel(tmp_path) as first, Kernel(tmp_path) as second:
        for kernel in (first, second):
            kernel.run(SETUP)
        running = first.send(cell(40))
        first.finish(running, until="3\n")
        subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(1); os.kill({first.pid}, 9)"])
        told, error = second.run(cell(40))
        assert not error, told + error
        assert ", attempt 2, from" in told


# ------------------------------------------------------------------ processes


def processes(code: str, count: int, *words: object) -> list[str]:
    """Run code in several processes that start together; returns what each printed."""
    env = {**os.environ, "PYTHONHASHSEED": "random"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        for _ in range(count)
    ]
    for one in started:
        assert one.stdout.readline() == "ready\n"
    for one in started:
        one.stdin.write("go\n")
        one.stdin.flush()
    told = [one.stdout.readline().strip() for one in started]
    for one in started:
        one.communicate(timeout=LIMIT)
        assert one.returncode == 0
    return told


TAKE = """
    import sys, fcntl, errno, uuid, os
    from pathlib import Path
    from nbresume._store import RunFolder
    from nbresume.errors import BusyError
    if sys.argv[2] == "no locks":
        def refuse(*args): raise OSError(errno.ENOLCK, "No locks available")
        fcntl.lockf = refuse
    run = RunFolder.open(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        claim = run.take(2)
        print("took", flush=True)
    except BusyError as error:
        print("refused", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("locks", ["locks", "no locks"])
def test_of_several_that_take_a_dead_run_over_at_once_one_wins(tmp_path, locks):
    run = Store(tmp_path).create("t", {"identity": {}})
    (run.path / "owner").write_text(json.dumps({"pid": 1, "node": 0, "boot": "gone", "start": "1"}))
    old = time.time() - 3600
    os.utime(run.path / "owner", (old, old))
    assert sorted(processes(TAKE, 3, run.path, locks)) == ["refused", "refused", "took"]


START = """
    import sys
    from pathlib import Path
    from nbresume.testing import attempt
    print("ready", flush=True)
    sys.stdin.readline()
    cell = "%%resumable t --vars log --every 1\\nfor i in range(4):\\n    log.append(i)\\n    time.sleep(1)\\n"
    found = attempt("import time\\nlog = []", cell, Path(sys.argv[1]), names=["log"])
    print(found.status, found.error[:9], flush=True)
"""


def test_of_two_first_launches_at_once_one_is_a_run_and_the_other_is_refused(tmp_path):
    """Each would find no run of the name, and make one."""
    assert sorted(processes(START, 2, tmp_path)) == ["ended", "error BusyError"]
    (run,) = Store(tmp_path / ".nbresume")
    assert run.lineage().state == "completed"


def test_a_run_works_where_the_file_system_knows_no_locks(monkeypatch):
    """NFS without its lock daemon, Lustre without flock: nothing to set, and nothing stays blocked after a death."""

    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_processes.fcntl, "lockf", refuse)
    monkeypatch.setattr(owner, "_SETTLE", 0.0)
    found = rehearse("for i in range(3):\n    log.append(i)", "log = []", names=["log"], kill_at=[1, 2])
    assert found.ok, str(found)


@pytest.fixture
def run(tmp_path):
    return Store(tmp_path / ".nbresume").create("t", {"identity": {}})


def elsewhere(run, **facts) -> None:
    """Leave a record of an owner on another machine."""
    (run.path / "owner").write_text(
        json.dumps({**_processes.process_identity(), "node": 1, "boot": "another", **facts})
    )


def test_a_live_owner_on_another_machine_is_known_by_its_pulse_where_there_are_no_locks(run, monkeypatch):
    monkeypatch.setattr(_processes.fcntl, "lockf", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOLCK, "none")))
    monkeypatch.setattr(owner, "PATIENCE", 0.0)
    (run.path / "lock").touch()
    elsewhere(run)
    assert run.is_alive()
    with pytest.raises(BusyError, match=r"on another machine, which gave a sign of life 0 s ago.*again in 30 s"):
        run.take()
    for gone in (-3600, 3600):  # a clock that goes wrong may not block for ever
        when = time.time() + gone
        os.utime(run.path / "owner", (when, when))
        assert not run.is_alive()
    claim = run.take()
    assert run.is_alive()
    claim.leave()
    assert not run.is_alive()


def test_where_there_are_locks_an_owner_on_another_machine_that_holds_none_is_dead(run):
    """The next pod has another host name, another boot, and the volume of the last one."""
    (run.path / "lock").touch()
    elsewhere(run)
    assert not run.is_alive()
    run.take().leave()


def test_a_process_number_of_another_container_is_another_process(run):
    """Each container counts from 1; they share the machine, its boot and the volume."""
    (run.path / "owner").write_text(json.dumps({**_processes.process_identity(), "space": "pid:[1]"}))
    assert not run.is_alive()


def test_a_pulse_touches_the_record_and_ends_with_the_claim(run, monkeypatch):
    monkeypatch.setattr(_processes.fcntl, "lockf", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOLCK, "none")))
    monkeypatch.setattr(_processes.Pulse, "PERIOD", 0.01)
    claim = run.take()
    os.utime(run.path / "owner", (0, 0))
    end = time.monotonic() + LIMIT
    while _processes.age(run.path / "owner") > 1000:
        assert time.monotonic() < end
    claim.leave()
    assert not (run.path / "owner").exists()
    assert not [one for one in __import__("threading").enumerate() if one.name == "nbresume-pulse"]


def test_a_claim_that_was_lost_leaves_the_new_owners_record_alone(run):
    claim = run.take()
    elsewhere(run, pid=7)
    record = (run.path / "owner").read_bytes()
    assert not claim.holds()
    with pytest.raises(BusyError, match="taken this run over"):
        claim.check()
    claim.leave()
    assert (run.path / "owner").read_bytes() == record


def test_a_forked_worker_that_outlives_its_kernel_does_not_hold_the_run(tmp_path):
    """A data loader's worker, left behind by SIGKILL: the next kernel takes over at once."""
    code = "import os, stat, time\npid = os.fork()\nif pid == 0:\n    for fd in range(256):\n        try: stat.S_ISFIFO(os.fstat(fd).st_mode) and os.close(fd)\n        except OSError: pass\n    time.sleep(60)\n    os._exit(0)\nopen('child', 'w').write(str(pid))\n"
    body = "%%resumable t --vars log --every 1\nfor i in range(4):\n    if i == 1 and not os.path.exists('child'):\n        exec(fork)\n    log.append(i)\n"
    setup = f"import os\nlog = []\nfork = {code!r}\n"
    try:
        assert attempt(setup, body, tmp_path, kill_at=3).status == "killed"
        found = attempt(setup, body, tmp_path, names=["log"])
        assert found.status == "ended", found.error
    finally:
        os.kill(int((Path(tmp_path) / "child").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("there", [b"", b"{}", b"null"])
def test_an_owner_record_that_is_not_ours_to_the_byte_is_no_claim(run, there):
    """Also an empty one, which a writer on a disk without atomic renames may leave for a moment."""
    claim = run.take()
    assert claim.holds()
    (run.path / "owner").write_bytes(there)
    assert not claim.holds()
    claim.leave()
