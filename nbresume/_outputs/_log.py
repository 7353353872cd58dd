"""What the cell prints goes to the front end as ever, and to the run's log, so that it outlives the browser tab."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .. import _fs

_SAME = 1.0
"""Seconds after which output of one and the same iteration gets a mark of its own, to tell when it was printed."""
_LONGEST = 1 << 16
"""Characters of an unfinished line of standard error that are kept in mind."""


class OutputLog:
    """Copies standard output and standard error into a file while a cell runs.

    The log holds what was printed and nothing else; of standard error whole lines, each as it was seen last: a progress
    bar draws over itself a hundred thousand times. A list beside it tells which attempt printed what, when, and in
    which iteration. The log's length belongs to the snapshot: on a resume both are cut back, so that no line stands
    twice.

    Parameters
    ----------
    path : Path
        Of the log.
    attempt : int
        Whose output it is.

    Attributes
    ----------
    position : callable
        Tells the iteration in progress of each loop.
    """

    def __init__(self, path: Path, attempt: int = 1) -> None:
        self.path = path
        self.position: Callable[[], list[list[Any]]] = list
        self._list = list_of(path)
        self._attempt = attempt
        self._marks: IO[bytes] | None = None
        self._is_new_line = True
        self._marked: tuple[list[list[Any]], float] = ([], 0.0)
        self._file: IO[bytes] | None = None
        self._taps: list[_Tap] = []
        self._unfinished = ""
        self.muted = False
        self._quiet: set[int] = set()
        """Threads that say something which is not the cell's."""

    def start(self) -> None:
        """Begin to copy."""
        self._file, self._marks = _fs.open_log(self.path), _fs.open_log(self._list)
        self._taps = [_Tap("stdout", self.copy)]
        if sys.stderr is not sys.stdout:
            self._taps.append(_Tap("stderr", self._copy_lines))

    def stop(self) -> None:
        """Put standard output and error back."""
        if self._file is None or self._marks is None:
            return
        for tap in self._taps:
            tap.take_away()
        if self._unfinished:
            self._copy_lines("\n")
        self._file.close()
        self._marks.close()
        self._file = self._marks = None

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Copy nothing of this thread for a while: what it says is not the cell's."""
        thread = threading.get_ident()
        if thread in self._quiet:
            yield
            return
        self._quiet.add(thread)
        try:
            yield
        finally:
            self._quiet.discard(thread)

    def length(self) -> int:
        """Bytes logged so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    def cut_back(self, length: int, aside: Path) -> None:
        """Cut the log to a length, before it is written to; what is cut off is kept."""
        if self.length() > length:
            _fs.make_folder(aside.parent)
            _fs.copy_prefix(self.path, aside, self.length())
            _fs.truncate(self.path, length)
        if self._list.exists():
            lines = self._list.read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if (mark := read_mark(line)) is not None and mark.offset < length]
            if len(kept) < len(lines):
                _fs.write(self._list, b"".join(kept))

    def copy(self, text: str) -> None:
        """Append to the log; a full disk must not end the user's cell because of a copy."""
        if self._file is not None and self._is_heard():
            with contextlib.suppress(OSError):
                if self._is_new_line:
                    self._mark()
                self._is_new_line = text[-1:] == "\n" if text else self._is_new_line
                self._file.write(text.encode("utf-8", "backslashreplace"))

    def _copy_lines(self, text: str) -> None:
        """Append the lines that have come to their end."""
        if not self._is_heard():
            return
        *ended, rest = (self._unfinished + text).split("\n")
        self._unfinished = rest[-_LONGEST:]
        for line in ended:
            self.copy(line.rstrip("\r").rpartition("\r")[2] + "\n")

    def _is_heard(self) -> bool:
        return not self.muted and threading.get_ident() not in self._quiet

    def _mark(self) -> None:
        """Tell of the line that begins now where it comes from, unless the mark before says the same."""
        position, at = self.position(), time.time()
        if self._file is None or self._marks is None or (position == self._marked[0] and at < self._marked[1] + _SAME):
            return
        self._marked = position, at
        offset = os.fstat(self._file.fileno()).st_size
        self._marks.write(json.dumps([offset, self._attempt, round(at, 3), position]).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of the bytes of a log from an offset on.

    Attributes
    ----------
    offset : int
        In the log.
    attempt : int
        Which attempt printed them.
    at : float
        When the first of them was printed, in seconds since 1970.
    position : tuple of (str, int, int or None)
        Label, iteration in progress and total of each loop, outermost first.
    """

    offset: int
    attempt: int
    at: float
    position: tuple[tuple[str, int, int | None], ...]


def list_of(path: Path) -> Path:
    """Return the file of a log's marks."""
    return path.with_suffix(".jsonl")


def read_mark(line: bytes) -> Mark | None:
    """Read a line of that file; None where a dying process tore it."""
    try:
        offset, attempt, at, position = json.loads(line)
        return Mark(int(offset), int(attempt), float(at), tuple((str(a), int(b), c) for a, b, c in position))
    except (ValueError, TypeError):
        return None


class _Tap:
    """Tells of what is written to a standard stream, beside writing it."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self._name, self._tell = name, tell
        self._stream = stream = getattr(sys, name)
        self._write = stream.write
        self._had_own = "write" in getattr(stream, "__dict__", {})  # IPython copies as well
        try:
            stream.write = self.write
        except AttributeError:  # a terminal's own stream takes no attributes: stand before it
            setattr(sys, name, _Tee(stream, self))

    def write(self, text: str) -> int:
        written: int = self._write(text)
        self._tell(text)
        return written

    def take_away(self) -> None:
        """Put the stream back, unless somebody has put another there."""
        if isinstance(getattr(sys, self._name), _Tee):
            setattr(sys, self._name, self._stream)
        elif self._had_own:
            self._stream.write = self._write
        else:
            with contextlib.suppress(AttributeError):
                del self._stream.write


class _Tee:
    def __init__(self, stream: Any, tap: _Tap) -> None:
        self._stream, self.write = stream, tap.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
