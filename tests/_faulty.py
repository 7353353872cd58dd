"""A disk that fails when it is told to: every call that nbresume makes to it is seen, and any of them can be refused."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbresume._session._commits import Commits

ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EFBIG", "ENOENT", "EINTR")
"""``ENOENT`` is what a mount that has vanished says."""
FLIPPED = "flipped"
"""One bit of what a call writes arrives as another, and nobody is told."""
_CALLS = ("open", "pwritev", "write", "ftruncate", "fdatasync", "fsync", "rename", "unlink")


@dataclass(frozen=True)
class Fault:
    """What happens to one call.

    Attributes
    ----------
    at : int
        Which call of the commit it is, counted from 0.
    how : str
        Name of an error; ``short`` and ``nothing`` for a write that does not write all, ``FLIPPED`` for one that writes
        something else; or what to do before the call.
    lasting : bool
        Whether all calls behind it fail too, until the commit has ended.
    """

    at: int
    how: str | Callable[[], None]
    lasting: bool = False


class Disk:
    """Stands between nbresume and the disk while snapshots are committed.

    Parameters
    ----------
    faults : mapping of int to Fault
        By number of the snapshot.
    """

    def __init__(self, faults: Mapping[int, Fault] | None = None) -> None:
        self.faults = dict(faults or {})
        self.seen: dict[int, list[str]] = {}
        """Calls of each commit."""
        self.ended: Callable[[int, Path], None] = lambda _seq, _folder: None
        """Told of each commit that has ended, well or not, and of the folder of the snapshots."""
        self._now: dict[int, int] = {}
        """Number of the snapshot that a thread commits."""

    @contextlib.contextmanager
    def in_place(self, *, always: bool = False) -> Iterator[Disk]:
        """Stand there; ``always`` takes all that this thread does for the commit of number -1."""
        real = {name: getattr(os, name) for name in _CALLS}
        ioctl, publish, tidy = fcntl.ioctl, Commits._publish, Commits._tidy
        try:
            for name in _CALLS:
                setattr(os, name, self._standing_before(name, real[name]))
            fcntl.ioctl = self._standing_before("ioctl", ioctl)  # type: ignore[assignment]
            Commits._publish = self._watched(publish)  # type: ignore[method-assign]
            Commits._tidy = self._watched(tidy, is_last=True)  # type: ignore[method-assign]
            if always:
                self._now[threading.get_ident()] = -1
            yield self
        finally:
            self._now.clear()
            for name in _CALLS:
                setattr(os, name, real[name])
            fcntl.ioctl, Commits._publish, Commits._tidy = ioctl, publish, tidy  # type: ignore[method-assign]

    def _watched(self, part: Callable[..., Any], *, is_last: bool = False) -> Callable[..., Any]:
        """Watch one of the two parts of a commit; the first may end it."""

        def watched(commits: Commits, what, *more, **words):
            seq, thread = int(what.path.stem.partition("-")[2]), threading.get_ident()
            if thread in self._now:
                return part(commits, what, *more, **words)
            self._now[thread] = seq
            has_ended = True
            try:
                found = part(commits, what, *more, **words)
                has_ended = is_last
            finally:
                del self._now[thread]
                if has_ended:
                    self.ended(seq, what.path.parent)
            return found

        return watched

    def _standing_before(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args, **kwargs):
            seq = self._now.get(threading.get_ident())
            if seq is None or not (label := self._label(name, args)):
                return real(*args, **kwargs)
            seen = self.seen.setdefault(seq, [])
            at = len(seen)
            seen.append(label)
            fault = self.faults.get(seq)
            if fault is not None and (at == fault.at or (fault.lasting and at > fault.at)):
                return self._fail(fault.how, name, real, args)
            return real(*args, **kwargs)

        return call

    @staticmethod
    def _fail(how: str | Callable[[], None], name: str, real: Callable[..., object], args: tuple) -> object:
        if callable(how):
            how()
            return real(*args)
        if how in ("short", "nothing") and name in ("pwritev", "write"):
            part = (lambda data: data[: len(data) // 2]) if how == "short" else (lambda data: data[:0])
            return real(args[0], [part(args[1][0])], *args[2:]) if name == "pwritev" else real(args[0], part(args[1]))
        if how == FLIPPED:
            data = bytearray(args[1][0])
            data[len(data) // 2] ^= 1
            return real(args[0], [data, *args[1][1:]], *args[2:])
        number = getattr(errno, how, 0)
        if not number:
            return real(*args)  # nothing but a write can be short
        raise OSError(number, os.strerror(number))

    @staticmethod
    def _label(name: str, args: tuple) -> str:
        """Name a call for a person."""
        first = Path(os.readlink(f"/proc/self/fd/{args[0]}") if isinstance(args[0], int) else os.fspath(args[0]))
        if not {".nbresume", "snapshots"} & set(first.parts) and first.suffix != ".jsonl":
            return ""
        if first.name in ("journal.jsonl", "lock", "owner", "run.json", "log.txt"):
            return f"{name} {first.name.partition('.')[0]}"
        if name == "open" and len(args) > 1 and not args[1] & (os.O_ACCMODE | os.O_DIRECTORY):
            name = "read"
        kind = {".tmp": "temporary file", ".h5": "snapshot", "": "folder"}.get(first.suffix, first.suffix)
        return f"{name} {kind}"
