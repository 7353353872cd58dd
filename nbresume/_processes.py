"""Which process writes: locks that die with it, signs of life, and what tells it from every other that ever was."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any


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
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
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


def process_identity(pid: int | None = None) -> dict[str, Any]:
    """Tell a process from every other that ever was: node, boot, space of process numbers, pid and start time."""
    pid = pid or os.getpid()
    node = uuid.getnode()
    # Without a network card Python makes a number up, another one in each process; it says so in this bit.
    place = {"node": 0 if node >> 40 & 1 else node, "boot": _boot_id(), "space": _pid_space()}
    return {**place, "pid": pid, "start": _start_time(pid)}


def is_from_here(identity: dict[str, Any]) -> bool:
    """Whether a process was one of this machine since it was last started."""
    here = process_identity()
    return all(identity.get(key) == here[key] for key in ("node", "boot", "space"))


def is_running(identity: dict[str, Any]) -> bool:
    """Whether the process still runs here; a process of another machine or boot does not."""
    pid = identity.get("pid")
    if not isinstance(pid, int):
        return False
    there = process_identity(pid)
    return there["start"] != "" and all(identity.get(key) == there[key] for key in there)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_space() -> str:
    """Tell containers of one machine apart: each counts its processes by itself."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # not a path of the file system
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    if sys.platform != "linux":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        return "unknown"
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The command name may hold spaces and brackets: count the fields after the last one.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
