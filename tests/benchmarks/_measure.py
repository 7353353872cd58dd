"""How a row of the table is taken: a real cell in a scratch shell, a plain thing beside it, and what the pairs come to."""

from __future__ import annotations

import contextlib
import io
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import _baselines

from nbresume._magic._scratch import scratch_shell
from nbresume._transform._options import CellOptions
from nbresume.errors import OptionError

Timing = tuple[float, float]
"""Seconds, and those of them in which the thread waited for a processor."""

WARM = 5
"""Snapshots before any counts: imports, folders, and as many files as a run keeps, from which later ones are made."""


def sync_option() -> str:
    """Return the option that commits before the next iteration; empty where commits are always so."""
    try:
        CellOptions.from_line("name --sync")
    except OptionError:
        return ""
    return "--sync"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Attributes
    ----------
    row, what, against : str
        Key of the workload, the workload, and what it is compared with.
    goal : float or None
        Largest result that meets the goal; None for a figure that is only told.
    result, low, high : float
        Median and quartiles of the ratios of all pairs.
    unit : str
        ``x`` for a ratio, else of the result.
    adjusted : float
        The median ratio without the time that either side waited for a processor.
    plain, ours : float
        Medians in milliseconds.
    pairs : int
        How many.
    note : str
        What a reader has to know besides.
    """

    row: str
    what: str
    against: str
    goal: float | None
    result: float
    low: float
    high: float
    unit: str
    adjusted: float
    plain: float
    ours: float
    pairs: int
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        return None if self.goal is None else self.result <= self.goal


def figure(
    row: str,
    what: str,
    against: str,
    goal: float | None,
    pairs: Sequence[tuple[Timing, Timing]],
    *,
    unit: str = "x",
    note: str = "",
) -> Figure:
    """Take a figure from pairs of (plain, ours)."""
    results = [ours[0] / plain[0] for plain, ours in pairs]
    adjusted = statistics.median((ours[0] - ours[1]) / max(plain[0] - plain[1], 1e-9) for plain, ours in pairs)
    low, middle, high = statistics.quantiles(results, n=4, method="inclusive") if len(results) > 1 else results * 3
    plain, ours = (statistics.median(side[0] for side in sides) * 1e3 for sides in zip(*pairs, strict=True))
    return Figure(row, what, against, goal, middle, low, high, unit, adjusted, plain, ours, len(results), note)


BOUNDARIES = """\
gaps, plains = [], []
left = clock()
for turn in range({turns}):
    gaps.append(since(left))
    {settle}
    if turn % 2:
        plains.append({plain})
    {change}
    if turn % 2:
        plains.append({plain})
    left = clock()"""
"""Between ``left`` and the next ``since`` lies a boundary with a snapshot, and nothing else.

The plain thing is done with the state of the boundary, in turn right after it and right before the next one: each
comes first as often as the other."""


@dataclass
class Bench:
    """Where a row is taken: a shell, in a folder of its own.

    Attributes
    ----------
    rounds : int
        How many pairs.
    scale : float
        Part of the full size.
    """

    rounds: int
    scale: float = 1.0
    shell: Any = field(default_factory=scratch_shell)

    def __post_init__(self) -> None:
        self.shell.user_ns.update({name: getattr(_baselines, name) for name in ("clock", "since", "settle")})

    def size(self, full: int, least: int = 1) -> int:
        """Return a size or count, scaled."""
        return max(least, int(full * self.scale))

    def run(self, cell: str) -> None:
        """Run a cell without its words, and fail when it fails."""
        words = io.StringIO()
        with contextlib.redirect_stdout(words):
            done = self.shell.run_cell(cell)
        if not done.success:
            sys.stderr.write(words.getvalue())
        done.raise_error()

    def boundaries(
        self, plain: Callable[..., Timing], names: Sequence[str], change: str, *, sync: bool, rounds: int | None = None
    ) -> list[tuple[Timing, Timing]]:
        """Measure boundaries that become snapshots of these names, each beside the plain thing.

        Parameters
        ----------
        plain : callable
            Takes the values of the names; returns its own timing.
        names : sequence of str
            Variables of the shell.
        change : str
            Statement between two boundaries; may use ``turn``.
        sync : bool
            Commit before the next iteration. What goes on behind the loop is waited for outside the clock: the commit,
            or with ``sync`` only its reading back and the removal of older ones.
        rounds : int, optional
            How many pairs; default: those of the bench.
        """
        ns = self.shell.user_ns
        ns[plain.__name__] = plain
        turns = WARM + (rounds or self.rounds)
        mode = sync_option() if sync else ""
        cell = BOUNDARIES.format(
            turns=turns + turns % 2,
            settle="settle('measured', turn)",
            plain=f"{plain.__name__}({', '.join(names)})",
            change=change,
        )
        self.run(f"%%resumable measured --vars {','.join(names)} --every 1 {mode}\n{cell}")
        # A boundary that was none, or a number that `settle` waits for in vain, would make a figure of nothing.
        taken = _baselines.newest("measured") - (turns + turns % 2)
        if taken not in (0, 1):
            raise RuntimeError(f"{taken:+} snapshots against {turns} boundaries: the figures would mean something else")
        pairs = list(zip(ns["plains"], ns["gaps"][1:], strict=False))[WARM - 1 :]
        shutil.rmtree(".nbresume")
        return pairs
