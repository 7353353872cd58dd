"""The only code that writes to disk.

A file that readers may believe appears by rename: written under a unique name in the same folder, fsynced, renamed to a
name that did not exist, and the folder fsynced. Leaving out any of the three lost acknowledged snapshots or the whole
store in simulated power cuts; the rename alone survives only a killed process, not a lost machine.

Cleanup stands under ``except BaseException``: a KeyboardInterrupt must not leave a half file behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import xxhash

from .errors import StoreError

TEMP_SUFFIX = ".tmp"
_open = open  # while a cell runs, everybody's open is managed: what we do ourselves is not the cell's doing
OWNER_ONLY, OWNER_READS = 0o700, 0o600


def make_folder(path: Path) -> None:
    """Create a folder (and its parents) that only its owner can enter, durably."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=OWNER_ONLY, exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: Path) -> None:
    """Make the bytes of a closed file durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Hand out a temporary path; what the block has written there becomes ``path``, whole or not at all.

    Raises
    ------
    StoreError
        When the disk refuses; the message names the path and the bytes free. Nothing is left behind.
    """
    temp = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    try:
        yield temp
        temp.chmod(OWNER_READS)
        sync_file(temp)
        temp.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        remove(temp)
        raise StoreError(_sentence(error, path), str(path)) from error
    except BaseException:
        remove(temp)
        raise


def _sentence(error: OSError, path: Path) -> str:
    what = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(path.parent).free
        what = f"{what} ({free:,} bytes free)"
    return f"cannot write {path}: {what}. Free some space or choose another store with --store"


def write(path: Path, data: bytes) -> None:
    """Publish a small file."""
    with publish(path) as temp, _open(temp, "xb") as file:
        file.write(data)


def write_new(path: Path, data: bytes) -> None:
    """Publish a secret; where another process was first its file stays, as a second name replaces nothing."""
    temp = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    try:
        with _open(temp, "xb", opener=_for_owner) as file:
            file.write(data)
        sync_file(temp)
        with contextlib.suppress(FileExistsError):
            os.link(temp, path)
        sync_folder(path.parent)
    finally:
        remove(temp)


def append(path: Path, line: bytes) -> None:
    """Append one line, durably, on a line of its own even where a dying process tore the one before.

    Raises
    ------
    StoreError
        When the disk refuses.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, OWNER_READS)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            data = memoryview(b"\n" + line if torn else line)
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise StoreError(_sentence(error, path), str(path)) from error


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; its bytes need not be durable before the next snapshot."""
    return _open(path, "ab", buffering=0, opener=_for_owner)


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, OWNER_READS)


def freshen(path: Path) -> None:
    """Give a file the time of now."""
    os.utime(path)


def remove(path: Path) -> None:
    """Remove a file that may not be there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def remove_leftovers(folder: Path) -> list[str]:
    """Remove temporary files of writers that are gone; the caller holds the run's lock."""
    gone = list(folder.glob(f".*{TEMP_SUFFIX}"))
    for path in gone:
        remove(path)
    return [path.name for path in gone]


# ------------------------------------------------------------------ the user's files, moved and cut back


def move(source: Path, target: Path) -> None:
    """Move a file of the user's, across file systems if need be."""
    make_folder(target.parent)
    shutil.move(str(source), str(target))


def copy_prefix(source: Path, target: Path, length: int) -> None:
    """Make the bytes of ``target`` the first ``length`` bytes of ``source``, in the file that is there."""
    with _open(source, "rb") as old, _open(target, "r+b" if target.exists() else "xb") as new:
        new.truncate(0)
        left = length
        while left:
            block = old.read(min(left, 1 << 20))
            if not block:
                break
            new.write(block)
            left -= len(block)
        new.flush()
        os.fsync(new.fileno())


def replace_bytes(target: Path, data: bytes) -> None:
    """Make ``data`` the whole content of a file of the user's, in the file that is there."""
    with _open(target, "r+b" if target.exists() else "xb") as file:
        file.truncate(0)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def truncate(target: Path, length: int) -> None:
    """Cut a file of the user's to a length."""
    os.truncate(target, length)


def keep_copy(source: Path, folder: Path) -> str:
    """Keep a copy of a file of the user's under the digest of its bytes; returns that name."""
    make_folder(folder)
    digest = xxhash.xxh3_128()
    temp = folder / f".{secrets.token_hex(8)}{TEMP_SUFFIX}"
    try:
        with _open(source, "rb") as old, _open(temp, "xb", opener=_for_owner) as new:
            while block := old.read(1 << 20):
                digest.update(block)
                new.write(block)
            new.flush()
            os.fsync(new.fileno())
        name = digest.hexdigest()
        if not (folder / name).exists():
            temp.rename(folder / name)
            sync_folder(folder)
    finally:
        remove(temp)
    return name


def keep_link(source: Path, folder: Path) -> str | None:
    """Keep a file that is about to lose its name, without a copy; None where the file systems differ."""
    make_folder(folder)
    name = f"kept-{secrets.token_hex(8)}"
    try:
        os.link(source, folder / name, follow_symlinks=False)
    except OSError:
        return None
    sync_folder(folder)
    return name


def give_name(source: Path, target: Path) -> None:
    """Rename a file or folder of the user's within one file system."""
    source.rename(target)


def make_link(path: Path, target: str) -> None:
    """Make a symbolic link of the user's."""
    path.symlink_to(target)


def make_open_folder(path: Path) -> None:
    """Make a folder of the user's, with the rights that a new folder has."""
    path.mkdir(parents=True, exist_ok=True)


def remove_empty(path: Path) -> None:
    """Remove a folder of the user's if nothing is in it."""
    with contextlib.suppress(OSError):
        path.rmdir()


# ------------------------------------------------------------------ who writes


class Lock:
    """A lock on a run that dies with its process and is not inherited by fork.

    ``fcntl.lockf`` rather than ``flock``: a forked child of the user's body would keep a ``flock`` alive. Closing *any*
    descriptor of the file drops a ``lockf``, so nothing else ever opens it. Where the file system knows no locks the
    owner record alone decides.

    Attributes
    ----------
    is_known : bool
        Whether the file system knows of it once it is taken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_known = True
        self._fd: int | None = None

    @property
    def is_taken(self) -> bool:
        """Whether it is ours."""
        return self._fd is not None

    def take(self) -> bool:
        """Take the lock; False when another process holds it."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, OWNER_READS)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                os.close(fd)
                return False
            self.is_known = False  # ENOLCK, ENOSYS, ENOTSUP: no locks on this file system
        self._fd = fd
        return True

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_locked(path: Path) -> bool | None:
    """Whether another process holds the lock; None where the file system can't tell.

    Never call it for a run of this process: closing would drop its lock.
    """
    if not path.exists():
        return False
    probe = Lock(path)
    free = probe.take()
    probe.release()
    return not free if probe.is_known else None


class Pulse:
    """Touches a file every few seconds, so that others can tell that this process lives.

    Parameters
    ----------
    path : Path
        The file.
    """

    PERIOD = 5.0

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="nbresume-pulse", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(self.PERIOD):
            with contextlib.suppress(OSError):  # a sign of life that can't be given is one that is missing
                os.utime(self._path)

    def stop(self) -> None:
        """Give no more signs of life."""
        self._ended.set()
        self._thread.join()


def age(path: Path) -> float:
    """Tell how long ago a file was touched; for ever, when it is not there. A clock that goes wrong may not block."""
    try:
        return abs(time.time() - path.stat().st_mtime)
    except OSError:
        return float("inf")


def unique() -> str:
    """Return a text that no other process has; nothing is drawn from the user's random streams."""
    return secrets.token_hex(8)
