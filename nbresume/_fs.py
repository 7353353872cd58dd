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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import xxhash

from .errors import StoreError

TEMP_SUFFIX = ".tmp"
_FICLONE = 0x40049409
"""``ioctl`` that lets a file share the blocks of another: XFS, btrfs, bcachefs."""
_MOST_PARTS = 512
"""Parts of one ``pwritev``; the system allows 1024."""
_ROW = 1 << 22
"""Bytes in a row from which on the disk is given something to do before all are there."""
_NOTHING = "the disk takes no more bytes, and does not say why"
_open = open  # while a cell runs, everybody's open is managed: what we do ourselves is not the cell's doing
OWNER_ONLY, OWNER_READS, ALL_READ = 0o700, 0o600, 0o644


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
def publish(path: Path, *, durable: bool = True, mode: int = OWNER_READS) -> Iterator[Path]:
    """Hand out a temporary path; what the block has written there becomes ``path``, whole or not at all.

    Parameters
    ----------
    path : Path
        The file's final name.
    durable : bool
        Whether it has to outlive the machine, and not only this process.
    mode : int
        Who may read it.

    Raises
    ------
    StoreError
        When the disk refuses; the message names the path and the bytes free. Nothing is left behind.
    """
    temp = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    try:
        yield temp
        temp.chmod(mode)
        if durable:
            sync_file(temp)
        temp.rename(path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        _drop(temp)
        raise StoreError(_sentence(error, path), str(path)) from error
    except BaseException:
        _drop(temp)
        raise


def _drop(path: Path) -> None:
    """Remove what is not to stay; what a dead disk keeps all the same is for ``remove_leftovers``."""
    with contextlib.suppress(OSError):
        path.unlink()


def _sentence(error: OSError, path: Path, needed: int = 0) -> str:
    what = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        need = f"{needed:,} bytes needed, " if needed else ""
        with contextlib.suppress(OSError):  # a disk that does not answer any more has said why already
            what = f"{what} ({need}{free_space(path.parent):,} bytes free)"
    return f"cannot write {path}: {what}. Free some space or choose another store with --store"


def free_space(folder: Path) -> int:
    """Return the bytes that a file system has free for its users."""
    return shutil.disk_usage(folder).free


class Draft:
    """A file on its way to its name, perhaps over the bytes of an older one.

    Attributes
    ----------
    holds : Path or None
        The file whose bytes it starts with.
    written : int
        Bytes written to it so far.
    """

    def __init__(self, fd: int, holds: Path | None) -> None:
        self.holds, self.written = holds, 0
        self._fd = fd
        self._row = (0, 0)
        """Where bytes begin and end that were written in a row, and that the disk has not been told of."""

    def resize(self, size: int) -> None:
        """Give the file its final length; what is new of it reads as zeros."""
        if os.fstat(self._fd).st_size != size:
            os.ftruncate(self._fd, size)

    def put(self, offset: int, parts: Sequence[memoryview]) -> None:
        """Write bytes, given in parts, at an offset; a short write is gone on with."""
        left = [part for part in parts if len(part)]
        while left:
            done = os.pwritev(self._fd, left[:_MOST_PARTS], offset)
            if not done:
                raise OSError(errno.EIO, _NOTHING)
            self._begin_to_write(offset, done)
            offset += done
            self.written += done
            while left and done >= len(left[0]):
                done -= len(left.pop(0))
            if done:
                left[0] = left[0][done:]

    def _begin_to_write(self, offset: int, size: int) -> None:
        """Let the disk begin with a long row of bytes, so that it is at work while the next are digested.

        To say that they are not needed has Linux write them at once; what is being written stays in memory meanwhile.
        """
        low, high = self._row
        low, high = (low, high + size) if offset == high else (offset, offset + size)
        if high - low >= _ROW and hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):  # a hint: what is wrong with the disk shows when the bytes are synced
                os.posix_fadvise(self._fd, low, high - low, os.POSIX_FADV_DONTNEED)
            low = high
        self._row = low, high


@contextlib.contextmanager
def draft(
    path: Path,
    *,
    clone: Path | None = None,
    recycle: Path | None = None,
    needed: int = 0,
    keep_free: int = 0,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Draft]:
    """Hand out a file to be written piece by piece; it becomes ``path``, whole or not at all.

    Parameters
    ----------
    path : Path
        Its final name, which no file has.
    clone : Path, optional
        A file whose bytes it may share where the file system can do that.
    recycle : Path, optional
        A file that nobody needs any more: else it loses its name, and its bytes are written over.
    needed : int, optional
        Bytes that will be written, for the message when there is no room for them.
    keep_free : int, optional
        Bytes that have to stay free on the disk: a file that would leave less is refused before it is begun.
    check : callable, optional
        Called before the file gets its name; what it raises leaves nothing.

    Raises
    ------
    StoreError
        When the disk refuses; nothing is left under the final name, nor under a temporary one.
    """
    temp = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    names, fd = [temp], -1
    try:
        fd = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        holds = clone if clone is not None and _share_bytes(clone, fd) else None
        over = recycle if holds is None and recycle is not None and _is_only_ours(recycle) else None
        if keep_free:
            _refuse_to_fill(path.parent, needed - (over.stat().st_size if over else 0), keep_free)
        if over:
            fd, empty = -1, fd
            os.close(empty)
            over.rename(temp)
            sync_folder(path.parent)  # so that a half-written file never stands under the older one's name
            fd, holds = os.open(temp, os.O_RDWR | os.O_CLOEXEC), over
        yield Draft(fd, holds)
        sync_data(fd)
        fd, full = -1, fd
        os.close(full)
        check()
        temp.rename(path)
        names.append(path)  # a name that may be gone after a power cut is none
        sync_folder(path.parent)
    except BaseException as error:
        for name in names:
            _drop(name)
        if isinstance(error, OSError):
            raise StoreError(_sentence(error, path, needed), str(path)) from error
        raise
    finally:
        if fd >= 0:
            os.close(fd)


def _refuse_to_fill(folder: Path, needed: int, keep_free: int) -> None:
    """Refuse a file that would leave too little room for others."""
    if free_space(folder) - max(0, needed) < keep_free:
        raise OSError(errno.ENOSPC, f"{keep_free:,} bytes have to stay free (--keep-free)")


def sync_data(fd: int) -> None:
    """Make the bytes of a file durable, and of what is known of it what is needed to read them."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(fd)


def _share_bytes(source: Path, fd: int) -> bool:
    """Make an empty file share the bytes of another; False where the file system can't."""
    try:
        old = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.ioctl(fd, _FICLONE, old)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EXDEV, errno.ENOSYS, errno.EPERM):
            return False
        raise
    finally:
        os.close(old)
    return True


def _is_only_ours(path: Path) -> bool:
    """Whether a file is there and has no other name: a hard link is somebody's copy, and must not change."""
    try:
        return path.stat().st_nlink == 1
    except FileNotFoundError:
        return False


def read(path: Path) -> bytes:
    """Read a file of ours: each boundary does, and what manages the cell's ``open`` has nothing to see in that."""
    with _open(path, "rb", buffering=0) as file:
        return bytes(file.read())


def write(path: Path, data: bytes, *, durable: bool = True, mode: int = OWNER_READS) -> None:
    """Publish a small file."""
    with publish(path, durable=durable, mode=mode) as temp, _open(temp, "xb") as file:
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


def append(path: Path, line: bytes, *, durable: bool = True) -> None:
    """Append one line, on a line of its own even where a dying process tore the one before.

    Parameters
    ----------
    path : Path
        The file.
    line : bytes
        Without its end.
    durable : bool
        Whether it has to outlive the machine, and not only this process.

    Raises
    ------
    StoreError
        When the disk refuses.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, OWNER_READS)
        try:
            size = os.fstat(fd).st_size
            if not size:
                sync_folder(path.parent)  # else a power cut takes the name, and all lines with it
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            data = memoryview(b"\n" + line if torn else line)
            while data:
                done = os.write(fd, data)
                if not done:
                    raise OSError(errno.EIO, _NOTHING)
                data = data[done:]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise StoreError(_sentence(error, path, len(line)), str(path)) from error


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
    """Keep a copy of a file of the user's under the digest of its bytes; returns that name.

    Raises
    ------
    StoreError
        When the disk refuses; nothing is left.
    """
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
    except OSError as error:
        raise StoreError(_sentence(error, folder / source.name, source.stat().st_size), str(folder)) from error
    finally:
        _drop(temp)
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
