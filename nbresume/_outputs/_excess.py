"""What stands in files beyond a snapshot, and is cut off when a run goes on from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

_MOST = 1 << 26
"""Bytes that are looked through for rows; more are told as bytes."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Excess:
    """What is cut off from one file.

    Attributes
    ----------
    name : str
        Of the file.
    size : int
        Bytes.
    rows : int
        Lines of text; 0 where it is none.
    """

    name: str
    size: int
    rows: int = 0

    @property
    def amount(self) -> str:
        """Tell how much it is."""
        count, unit = (self.rows, "row") if self.rows else (self.size, "byte")
        return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"


def excess(path: Path, length: int, name: str = "", *, of_rows: bool = True) -> Iterator[Excess]:
    """Yield what a file holds beyond a length, if anything."""
    size = path.stat().st_size - length if path.is_file() else 0
    if size > 0:
        yield Excess(name or path.name, size, _rows(path, length, size) if of_rows and size <= _MOST else 0)


def _rows(path: Path, length: int, size: int) -> int:
    with path.open("rb") as file:
        file.seek(length)
        tail = file.read(size)
    # A row that a dying process tore counts: it is made again.
    return 0 if b"\0" in tail else tail.count(b"\n") + (not tail.endswith(b"\n"))


def told(cut: Iterable[Excess]) -> str:
    """Put what is cut back into words; empty where nothing is.

    Files of which the same amount is cut stand together: ``log and rows.csv cut back by 2 rows``.
    """
    groups = [(amount, [one.name for one in some]) for amount, some in groupby(cut, lambda one: one.amount)]
    words = [f"{' and '.join(names)} by {amount}" for amount, names in groups[:_SHOWN]]
    more = sum(len(names) for _, names in groups[_SHOWN:])
    listed = ", ".join([*words, *([f"and {more} more"] if more else [])])
    return listed.replace(" by ", " cut back by ", 1)
