"""The only code that writes: whole or not at all, durable in the right order, by one process at a time."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from nbresume import _fs, _processes
from nbresume.errors import StoreError


def python(code: str, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, words)],
        capture_output=True,
        text=True,
        check=check,
        timeout=120,
    )


@pytest.fixture
def calls(monkeypatch):
    """Note the system calls that make a file durable; each is really made."""
    seen: list[tuple[str, str]] = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(fd):
        seen.append(("fsync", os.readlink(f"/proc/self/fd/{fd}")))
        return real_fsync(fd)

    def rename(source, target, **kwargs):
        seen.append(("rename", os.fspath(target)))
        return real_rename(source, target, **kwargs)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    return seen


# ------------------------------------------------------------------ publish


def test_a_published_file_is_fsynced_renamed_and_its_folder_fsynced_in_this_order(tmp_path, calls):
    """Any other order loses acknowledged files in a power cut."""
    _fs.write(tmp_path / "a", b"content")
    (first, temp), *rest = calls
    assert first == "fsync"
    assert Path(temp).parent == tmp_path  # a rename across file systems is a copy
    assert rest == [("rename", str(tmp_path / "a")), ("fsync", str(tmp_path))]
    assert (tmp_path / "a").read_bytes() == b"content"
    assert os.listdir(tmp_path) == ["a"]


def test_the_final_name_is_not_there_before_the_block_is_over(tmp_path):
    with _fs.publish(tmp_path / "a") as temp:
        temp.write_bytes(b"half")
        assert not (tmp_path / "a").exists()
        assert temp.name.startswith(".")
        temp.write_bytes(b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, ValueError])
@pytest.mark.parametrize("old", [None, b"old"])
def test_an_error_in_the_block_leaves_the_folder_as_it_was(tmp_path, error, old):
    if old:
        (tmp_path / "a").write_bytes(old)

    def half():
        with _fs.publish(tmp_path / "a") as temp:
            temp.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        half()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({"a": old} if old else {})


@pytest.mark.parametrize("where", ["fsync", "rename"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error")])
def test_a_failure_between_the_steps_leaves_nothing_under_the_final_name(tmp_path, monkeypatch, where, error):
    """An interrupt lands anywhere, and a disk fails at fsync more often than at write."""
    (tmp_path / "a").write_bytes(b"old")

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(os, where, fail)
    with pytest.raises((KeyboardInterrupt, StoreError)):
        _fs.write(tmp_path / "a", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_a_file_that_meets_its_size_limit_is_an_error_with_path_and_way_out_and_leaves_nothing(tmp_path):
    """A real refusal of the kernel, in the middle of the bytes."""
    (tmp_path / "a").write_bytes(b"old")
    told = python(
        """
        import resource, signal, sys
        from pathlib import Path
        from nbresume import _fs, _processes
        from nbresume.errors import StoreError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            _fs.write(Path(sys.argv[1]), bytes(1 << 20))
        except StoreError as error:
            print(error)
            print(error.path)
        """,
        tmp_path / "a",
    ).stdout.splitlines()
    assert "File too large" in told[0]
    assert str(tmp_path / "a") in told[0]
    assert "--store" in told[0]
    assert told[1] == str(tmp_path / "a")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_a_full_disk_is_told_with_the_bytes_free_and_leaves_nothing(tmp_path):
    """A real full file system: a tmpfs of 64 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    code = """
        import os, sys
        from pathlib import Path
        from nbresume import _fs, _processes
        from nbresume.errors import StoreError
        disk = Path(sys.argv[1])
        _fs.write(disk / "small", b"fits")
        try:
            _fs.write(disk / "big", bytes(1 << 20))
        except StoreError as error:
            print(error)
        print(sorted(os.listdir(disk)))
        _fs.write(disk / "later", b"fits again")
        """
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True, check=False)
    if mount.returncode == 0:
        try:
            told = python(code, disk).stdout.splitlines()
        finally:
            subprocess.run(["umount", disk], check=True)
        assert "No space left on device" in told[0]
        assert "bytes free" in told[0]
        assert told[1] == "['small']"
    else:  # no right to mount here: /dev/full gives the same error number from the kernel
        with pytest.raises(StoreError, match="No space left"), _fs.publish(tmp_path / "a") as temp:
            temp.symlink_to("/dev/full")
            temp.write_bytes(bytes(1 << 20))
        assert not list(tmp_path.glob(".a*"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_quota_is_told_like_a_full_disk(tmp_path, number):
    with pytest.raises(StoreError, match="bytes free"), _fs.publish(tmp_path / "a"):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("moment", ["written", "synced", "renamed"])
def test_a_kill_at_each_step_leaves_the_old_file_or_the_new_one_and_never_half(tmp_path, moment):
    (tmp_path / "a").write_bytes(b"old" * 1000)
    done = python(
        """
        import os, signal, sys
        from pathlib import Path
        from nbresume import _fs, _processes
        path, moment = Path(sys.argv[1]), sys.argv[2]
        def die(*args):
            os.kill(os.getpid(), signal.SIGKILL)
        if moment == "written":
            os.fsync = die
        elif moment == "synced":
            os.rename = die
        else:
            _fs.sync_folder = die
        _fs.write(path, b"new" * 1000)
        """,
        tmp_path / "a",
        moment,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "a").read_bytes() == (b"new" if moment == "renamed" else b"old") * 1000
    left = [path.name for path in tmp_path.iterdir() if path.name != "a"]
    assert all(name.startswith(".a.") and name.endswith(_fs.TEMP_SUFFIX) for name in left)
    assert sorted(_fs.remove_leftovers(tmp_path)) == sorted(left)
    assert os.listdir(tmp_path) == ["a"]


def test_two_writers_of_one_name_use_two_temporary_files(tmp_path):
    with _fs.publish(tmp_path / "a") as one, _fs.publish(tmp_path / "a") as two:
        assert one != two
        one.write_bytes(b"one")
        two.write_bytes(b"two")
    assert (tmp_path / "a").read_bytes() in (b"one", b"two")
    assert os.listdir(tmp_path) == ["a"]


def test_leftovers_are_ours_alone(tmp_path):
    for name in (".a.0123abcd.tmp", "b.tmp", ".hidden", "0001-00000001.h5"):
        (tmp_path / name).touch()
    assert _fs.remove_leftovers(tmp_path) == [".a.0123abcd.tmp"]
    assert sorted(os.listdir(tmp_path)) == [".hidden", "0001-00000001.h5", "b.tmp"]


# ------------------------------------------------------------------ folders and lines


def test_folders_are_their_owners_alone_and_their_names_are_durable(tmp_path, calls):
    _fs.make_folder(tmp_path / "a" / "b")
    assert all(stat.S_IMODE((tmp_path / part).stat().st_mode) == 0o700 for part in ("a", "a/b"))
    assert [path for what, path in calls] == [str(tmp_path), str(tmp_path / "a")]
    _fs.make_folder(tmp_path / "a" / "b")
    assert len(calls) == 2


def test_a_line_is_appended_in_one_write_and_fsynced(tmp_path, calls, monkeypatch):
    written = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: (written.append(data), real(fd, data))[1])
    _fs.append(tmp_path / "j", b"one\n")
    _fs.append(tmp_path / "j", b"two\n")
    assert written == [b"one\n", b"two\n"]
    names = [os.path.relpath(path, tmp_path) for _, path in calls]
    assert names == [".", "j", "j"]  # a new name is made durable, too
    assert (tmp_path / "j").read_bytes() == b"one\ntwo\n"


def test_a_line_that_the_disk_refuses_is_a_store_error(tmp_path):
    """Every error of ours has one base; a plain OSError would fly through the user's cell as a stranger."""
    told = python(
        """
        import resource, signal, sys
        from pathlib import Path
        from nbresume import _fs, _processes
        from nbresume.errors import StoreError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
        _fs.append(Path(sys.argv[1]), b"12345678")
        try:
            _fs.append(Path(sys.argv[1]), b"more\\n")
        except StoreError as error:
            print("StoreError", error)
        """,
        tmp_path / "j",
        check=False,
    ).stdout
    assert told.startswith("StoreError")
    assert str(tmp_path / "j") in told


def test_a_line_behind_a_torn_one_stands_on_its_own_line(tmp_path):
    """What a dying process tore must not swallow what the next attempt says."""
    _fs.append(tmp_path / "j", b'{"torn')
    _fs.append(tmp_path / "j", b"whole\n")
    assert b"whole" in (tmp_path / "j").read_bytes().splitlines()


# ------------------------------------------------------------------ the user's files


def test_a_file_is_cut_back_in_place(tmp_path):
    """The inode stays: who has the file open goes on with it."""
    file = tmp_path / "log"
    file.write_bytes(b"12345678")
    inode = file.stat().st_ino
    _fs.truncate(file, 3)
    assert file.read_bytes() == b"123"
    (tmp_path / "aside").write_bytes(b"abcdefgh")
    _fs.copy_prefix(tmp_path / "aside", file, 5)
    assert (file.read_bytes(), file.stat().st_ino) == (b"abcde", inode)
    _fs.replace_bytes(file, b"xy")
    assert (file.read_bytes(), file.stat().st_ino) == (b"xy", inode)


def test_a_prefix_of_a_large_file_is_copied_exactly(tmp_path):
    data = os.urandom((1 << 20) * 2 + 17)
    (tmp_path / "a").write_bytes(data)
    for length in (0, 1, 1 << 20, (1 << 20) + 1, len(data), len(data) + 5):
        _fs.copy_prefix(tmp_path / "a", tmp_path / "b", length)
        assert (tmp_path / "b").read_bytes() == data[:length]


# ------------------------------------------------------------------ who writes

HOLDER = """
    import os, sys, time
    from pathlib import Path
    from nbresume import _fs, _processes
    lock = _processes.Lock(Path(sys.argv[1]))
    print(lock.take(), os.getpid(), flush=True)
    {more}
    sys.stdin.read()
"""


def holder(path: Path, more: str = "") -> subprocess.Popen[str]:
    """Start a process that takes a lock and keeps it until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER.format(more=more)), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_second_process_does_not_get_the_lock_until_the_first_is_dead(tmp_path):
    path = tmp_path / "lock"
    with holder(path) as first:
        assert first.stdout.readline().split()[0] == "True"
        assert not _processes.Lock(path).take()
        assert _processes.is_locked(path)
        first.kill()
        first.wait()
    mine = _processes.Lock(path)
    assert mine.take()
    mine.release()
    mine.release()


def test_a_released_lock_is_free(tmp_path):
    path = tmp_path / "lock"
    with holder(path, "lock.release(); print('released', flush=True)") as other:
        other.stdout.readline()
        other.stdout.readline()
        assert not _processes.is_locked(path)
        other.stdin.close()


def test_a_forked_child_does_not_keep_the_lock_alive(tmp_path):
    """A worker that the user's body forked may outlive the kernel; the run may be taken over all the same."""
    path = tmp_path / "lock"
    more = (
        "child = os.fork()\n    if child == 0: os.close(1); time.sleep(60); os._exit(0)\n    print(child, flush=True)"
    )
    with holder(path, more) as first:
        first.stdout.readline()
        child = int(first.stdout.readline())
        try:
            assert _processes.is_locked(path)
            first.kill()
            first.wait()
            os.kill(child, 0)  # it lives
            assert not _processes.is_locked(path)
        finally:
            os.kill(child, signal.SIGKILL)


def test_no_lock_file_is_no_lock(tmp_path):
    assert not _processes.is_locked(tmp_path / "lock")
    assert not (tmp_path / "lock").exists()


def test_a_file_system_without_locks_lets_the_owner_record_decide(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_processes.fcntl, "lockf", refuse)
    lock = _processes.Lock(tmp_path / "lock")
    assert lock.take()
    lock.release()


def test_a_process_is_known_by_more_than_its_number():
    mine = _processes.process_identity()
    assert _processes.is_running(mine)
    for key, other in (("start", "1"), ("boot", "another"), ("node", -1), ("pid", 1)):
        assert not _processes.is_running({**mine, key: other})


def test_a_dead_process_and_a_zombie_do_not_run():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = _processes.process_identity(child.pid)
    assert _processes.is_running(identity)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not reaped: a zombie
    assert not _processes.is_running(identity)
    child.wait()
    assert not _processes.is_running(identity)


@pytest.mark.parametrize("record", [{}, {"pid": None}, {"pid": "12"}, {"pid": -1}, {"pid": 2**40}])
def test_a_record_that_names_no_process_is_of_nobody(record):
    assert not _processes.is_running(record)
