"""What nbresume costs: an iteration that takes no snapshot, a snapshot, and a restore.

Each figure is taken against the plain thing, in one process and in turn with it, so that a machine that is slow for a
while is slow for both; the median of all turns is told, with its quartiles. The cells are real ones, rewritten and run
by a real shell. ``bash tests/run bench`` prints the table and writes it to docs/benchmarks/bookkeeping.json.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np

from nbresume._capture import Definitions, rebuild
from nbresume._magic._scratch import scratch_shell
from nbresume._session._returning import Held
from nbresume._store import Store

TABLE = Path(__file__).parents[2] / "docs" / "benchmarks" / "bookkeeping.json"
ARRAYS, FLOATS = 10, 1_250_000  # 100 MB
SLICES = 5
"""Times that the inner loop is run and clocked within one execution of a cell."""

LOOPS = {
    "for over range": "for i in range({count}):\n    x += 1",
    "for over a list": "for i in items:\n    x += 1",
    "while": "while x < {count}:\n    x += 1",
}
"""Innermost loops, each around the cheapest body there is."""

CLOCKED = """\
seconds = []
for turn in range({slices}):
    x = 0
    began = thread_time()
{loop}
    seconds.append(thread_time() - began)"""

SNAPSHOTS = """\
left, ours, plain = perf_counter(), [], []
for turn in range({rounds} + 1):
    ours.append(perf_counter() - left)
    {change}
    plain.append(write_plainly([{names}]))
    left = perf_counter()"""

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: medians of both sides, and of what each pair comes to, with its quartiles."""

    what: str
    plain: float
    ours: float
    unit: str
    result: float
    low: float
    high: float
    result_unit: str
    pairs: int

    @classmethod
    def of(cls, what: str, unit: str, pairs: list[Pair], result_unit: str) -> Figure:
        """Take a figure from pairs of (plain, ours); its result is their difference, or their ratio ``x``."""
        is_ratio = result_unit == "x"
        results = [ours / plain if is_ratio else ours - plain for plain, ours in pairs]
        low, middle, high = statistics.quantiles(results, n=4)
        plain, ours = (statistics.median(side) for side in zip(*pairs, strict=True))
        return cls(what, plain, ours, unit, middle, low, high, result_unit, len(pairs))

    def __str__(self) -> str:
        sides = f"{self.plain:9.1f} {self.ours:9.1f} {self.unit:13}"
        return f"{self.what:27} {sides} {self.result:8.2f}  ({self.low:.2f} to {self.high:.2f}) {self.result_unit}"


def iterations(shell: Any, count: int, rounds: int) -> Iterator[Figure]:
    """Measure an iteration when no snapshot is due, over the same cell without the magic."""
    shell.user_ns["items"] = list(range(count))
    for number, (what, source) in enumerate(LOOPS.items()):
        cell = CLOCKED.format(slices=SLICES, loop=indent(source.format(count=count), " " * 4))
        pairs: list[Pair] = []
        for turn in range(rounds + 1):
            name = f"bench{number}_{turn}"  # of a complete run nothing would run
            cells = [cell, f"%%resumable {name} --every 1h\n{cell}"]
            # Each is first as often as the other.
            sides = [run(shell, one) for one in cells[:: 1 if turn % 2 else -1]][:: 1 if turn % 2 else -1]
            if turn:  # the first one warms up
                pairs += zip(*([s / count * 1e9 for s in side] for side in sides), strict=True)
        yield Figure.of(what, "ns/iteration", pairs, "ns more")


def run(shell: Any, cell: str) -> list[float]:
    """Run a cell and return what it clocked."""
    execute(shell, cell)
    return list(shell.user_ns["seconds"])


def execute(shell: Any, cell: str) -> None:
    """Run a cell without its words, and fail when it fails."""
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(cell).raise_error()


def snapshots(shell: Any, rounds: int) -> Figure:
    """Measure all that a boundary with a snapshot does, against writing the same bytes once."""
    names = [f"a{number}" for number in range(ARRAYS)]
    for number, name in enumerate(names):
        shell.user_ns[name] = np.random.default_rng(number).normal(size=FLOATS)
    shell.user_ns["write_plainly"] = write_plainly
    change = "; ".join(f"{name} += 1" for name in names)
    cell = SNAPSHOTS.format(rounds=rounds, change=change, names=", ".join(names))
    execute(shell, f"%%resumable arrays --vars {','.join(names)} --every 1\n{cell}")
    # The first gap holds the opening of the run, and no write had been made before it.
    plain, ours = shell.user_ns["plain"][:-1], shell.user_ns["ours"][1:]
    pairs = [(one * 1e3, other * 1e3) for one, other in zip(plain, ours, strict=True)]
    return Figure.of("snapshot, 100 MB", "ms", pairs, "x")


def write_plainly(arrays: list[Any]) -> float:
    """Write arrays into one file as safely as it can be done, and nothing else; returns the seconds."""
    began = time.perf_counter()
    file = os.open("plain.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for array in arrays:
        os.write(file, memoryview(array).cast("B"))
    os.fsync(file)
    os.close(file)
    Path("plain.tmp").replace("plain")
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return time.perf_counter() - began


def restores(shell: Any, rounds: int) -> Figure:
    """Measure finding, verifying and loading the newest snapshot, against loading the same arrays from .npy files."""
    folder = Store(Path(".nbresume")).find("arrays")
    names = [f"a{number}" for number in range(ARRAYS)]
    for name in names:
        np.save(f"{name}.npy", shell.user_ns[name])

    def plain() -> float:
        began = time.perf_counter()
        loaded = [np.load(f"{name}.npy") for name in names]
        assert len(loaded) == ARRAYS
        return (time.perf_counter() - began) * 1e3

    def ours() -> float:
        began = time.perf_counter()
        held = Held()
        folder.latest(held.take)
        assert held.loaded is not None
        state = rebuild(held.loaded, definitions=Definitions(shell.user_ns), inputs=shell.user_ns)
        assert state
        return (time.perf_counter() - began) * 1e3

    pairs = [(plain(), ours()) for _ in range(rounds + 1)]
    return Figure.of("restore and verify, 100 MB", "ms", pairs[1:], "x")


def measure(count: int, rounds: int) -> Iterator[Figure]:
    """Take every figure, in a folder of its own on the disk where the temporary files are."""
    with tempfile.TemporaryDirectory(prefix="nbresume-bench-") as folder, contextlib.chdir(folder):
        shell = scratch_shell()
        # An iteration has no disk to wait for: of its thread's time a busy machine takes nothing.
        shell.user_ns.update(perf_counter=time.perf_counter, thread_time=time.thread_time)
        yield from iterations(shell, count, rounds)
        yield snapshots(shell, rounds)
        yield restores(shell, rounds)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=200_000, help="of the inner loop (200000)")
    parser.add_argument("--rounds", type=int, default=15, help="each side in turn (15)")
    options = parser.parse_args()
    print(f"{'':27} {'plain':>9} {'nbresume':>9} {'':13} {'result':>8}  (quartiles)")
    figures = []
    for figure in measure(options.iterations, options.rounds):
        print(figure, flush=True)
        figures.append({name: round(v, 3) if isinstance(v, float) else v for name, v in asdict(figure).items()})
    about = {"python": platform.python_version(), "numpy": np.__version__, "cpus": os.cpu_count()}
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(json.dumps({"about": about, "figures": figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
