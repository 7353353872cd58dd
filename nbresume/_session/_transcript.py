"""What a cell has printed, line by line: by which attempt, when and where; and how its attempts began and ended.

The log is read as it grows. It never gets shorter but by a resume, which cuts off what is done again: what has been
read of that stays read, and the lines of the next attempt follow.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from .._card._words import beginning, ending
from .._lineage import Attempt, Lineage
from .._outputs import Mark, list_of, read_mark
from .._policy import read_length
from .._store import RunFolder
from ..errors import OptionError

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Since:
    """Where to begin: a time, or an attempt; without both, at the beginning."""

    at: float = 0.0
    attempt: int = 0

    @classmethod
    def parse(cls, text: str) -> Since:
        """Read ``10m``, ``2h``, a time in ISO 8601 or ``attempt:2``.

        Raises
        ------
        OptionError
            When it is none of these.
        """
        text = text.strip()
        word, _, number = text.partition(":")
        if word == "attempt" and number.isdecimal():
            return cls(attempt=int(number))
        if (seconds := read_length(text)) is not None:
            return cls(at=(datetime.now(UTC) - timedelta(seconds=seconds)).timestamp())
        try:
            return cls(at=datetime.fromisoformat(text).astimezone().timestamp())
        except ValueError:
            raise OptionError(f"--since {text!r} is no time. Use 10m, 2h, 2026-01-31T12:00 or attempt:2") from None


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes
    ----------
    kind : str
        ``printed``, or that an attempt ``begins`` or ``ends``.
    attempt : int
        Whose it is.
    at : str
        When, in ISO 8601; empty where nobody knows.
    where : str
        The iteration of each loop that printed it: ``epoch 7/30, batch 310/500``.
    text : str
        What was printed, as it was; or how the attempt began or ended.
    """

    kind: Literal["printed", "begins", "ends"]
    attempt: int
    at: str
    where: str
    text: str


class Transcript:
    """Reads the log of a run; each ``read`` goes on where the one before ended.

    Parameters
    ----------
    run : RunFolder
        The run.
    since : Since
        Where to begin.
    """

    def __init__(self, run: RunFolder, since: Since | None = None) -> None:
        self._run, self._since = run, since or Since()
        self._path = run.path / "log.txt"
        self._marks = _Marks(run)
        self._begun = 0
        """Attempts whose beginning has been told."""
        self._ended = 0
        self._at = 0
        self._rest = b""

    def read(self) -> Iterator[Line]:
        """Yield the lines that there are by now."""
        size = self._path.stat().st_size if self._path.exists() else 0
        lineage = self._run.lineage()
        self._marks.refresh()
        starts = self._starts(lineage, size)
        for place in range(max(0, self._begun - 1), len(lineage.attempts)):
            attempt, is_last = lineage.attempts[place], place == len(lineage.attempts) - 1
            end = min([size, *starts[place + 1 :]])
            if place >= self._begun:
                self._begun, self._at, self._rest = place + 1, starts[place], b""
                if self._is_after(attempt.started) and attempt.number >= self._since.attempt:
                    yield Line("begins", attempt.number, attempt.started, "", beginning(attempt))
                self._at = max(self._at, self._skipped(attempt, end))
            yield from self._printed(attempt, end, whole=not is_last or bool(attempt.how))
            if attempt.how and self._ended <= place:
                self._ended = place + 1
                if self._is_after(attempt.ended) and attempt.number >= self._since.attempt:
                    yield Line("ends", attempt.number, attempt.ended, attempt.where, ending(attempt))

    def _starts(self, lineage: Lineage, size: int) -> list[int]:
        """Tell from which byte on the log is whose."""
        told = {one.attempt: one.facts.get("log") for one in self._run.events() if one.kind in ("launched", "resumed")}
        found = []
        for place, attempt in enumerate(lineage.attempts):
            start = told.get(attempt.number)
            found.append(min(start if isinstance(start, int) else self._marks.first_of(attempt.number, size), size))
            if not place:
                found[0] = 0
        return found

    def _is_after(self, at: str) -> bool:
        return not self._since.at or (bool(at) and datetime.fromisoformat(at).timestamp() >= self._since.at)

    def _skipped(self, attempt: Attempt, end: int) -> int:
        """Tell where the lines begin that are asked for."""
        if attempt.number < self._since.attempt:
            return end
        return self._marks.after(self._since.at, end) if self._since.at else 0

    def _printed(self, attempt: Attempt, end: int, *, whole: bool) -> Iterator[Line]:
        if self._at > end:  # cut back by a resume
            self._at, self._rest = end, b""
        while self._at < end:
            with self._path.open("rb") as file:
                file.seek(self._at)
                block = file.read(min(_BLOCK, end - self._at))
            if not block:
                break
            yield from self._lines(attempt, block)
        if whole and self._rest:
            yield self._line(attempt, self._at - len(self._rest), self._rest)
            self._rest = b""

    def _lines(self, attempt: Attempt, block: bytes) -> Iterator[Line]:
        start = self._at - len(self._rest)
        *lines, rest = (self._rest + block).split(b"\n")
        self._at, self._rest = self._at + len(block), rest
        for line in lines:
            yield self._line(attempt, start, line)
            start += len(line) + 1

    def _line(self, attempt: Attempt, offset: int, line: bytes) -> Line:
        mark = self._marks.at(offset)
        text = line.decode("utf-8", "replace")
        if mark is None:
            return Line("printed", attempt.number, "", "", text)
        at = datetime.fromtimestamp(mark.at, UTC).isoformat(timespec="milliseconds")
        return Line("printed", mark.attempt, at, place(mark), text)


class _Marks:
    """The marks of a log, read as they are added."""

    def __init__(self, run: RunFolder) -> None:
        self._path = list_of(run.path / "log.txt")
        self._file = (0, 0)
        self._found: list[Mark] = []

    def refresh(self) -> None:
        """Read what has been added; all of it where the file is another one."""
        try:
            with self._path.open("rb") as file:
                now = file.seek(0, 2)
                number = self._path.stat().st_ino
                if number != self._file[0] or now < self._file[1]:
                    self._file, self._found = (number, 0), []
                file.seek(self._file[1])
                data = file.read()
        except FileNotFoundError:
            return
        whole = data.rfind(b"\n") + 1
        self._file = (number, self._file[1] + whole)
        self._found += [mark for line in data[:whole].splitlines() if (mark := read_mark(line)) is not None]

    def at(self, offset: int) -> Mark | None:
        """Return the mark that speaks of a byte."""
        place = bisect.bisect_right(self._found, offset, key=lambda mark: mark.offset)
        return self._found[place - 1] if place else None

    def first_of(self, attempt: int, size: int) -> int:
        """Return the first byte that an attempt printed; the end where it has not."""
        return next((mark.offset for mark in self._found if mark.attempt >= attempt), size)

    def after(self, at: float, end: int) -> int:
        """Return the first byte that was printed at a time or later."""
        return next((mark.offset for mark in self._found if mark.at >= at), end)


def place(mark: Mark) -> str:
    """Tell a position in short words: ``epoch 7/30, batch 310/500``."""
    return ", ".join(
        f"{label} {number}" + (f"/{total}" if total is not None else "") for label, number, total in mark.position
    )
