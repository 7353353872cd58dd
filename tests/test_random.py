"""Random programs, killed at a random boundary, resumed, killed again, resumed: the same run as the plain cell.

``bash tests/run random`` does it for 2,000 programs of other seeds; here it is a few hundred, always the same ones.
"""

from __future__ import annotations

import collections
import os
import tempfile
from pathlib import Path

# Loaded before the processes are forked, so that they don't each load it.
import numpy  # noqa: F401
import pytest
from _programs import NAMES, Program, programs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbresume.testing import Outcome, attempt

pytestmark = pytest.mark.usefixtures("quick_disk")

FILES = ("out.txt", "status.txt")
PROGRAMS = int(os.environ.get("NBRESUME_PROGRAMS", "0"))
"""How many random ones to try; by default a few hundred that are always the same."""

REFUSED = ("RefusedError", "UnsaveableError")
SELDOM = 0.15
Kill = tuple[int, str]


def run(program: Program, folder: Path, **how) -> Outcome:
    magic = f"%%resumable r --vars {','.join(program.declared)} --on-restart continue --every 1\n"
    return attempt(program.before, magic + program.cell, folder, names=NAMES, files=FILES, **how)


def plainly(program: Program) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        return attempt(program.before, program.cell, Path(folder), names=NAMES, files=FILES)


def differences(want: Outcome, got: Outcome, folder: Path) -> list[str]:
    """Compare whole results: values, aliases, random streams, files, and what was printed."""
    if got.status != "ended":
        return [f"{got.status}: {got.error}"]
    found = [
        f"{name} is {got.values[name][1]}, and was {text}"
        for name, (digest, text) in want.values.items()
        if got.values[name][0] != digest
    ]
    (log,) = folder.glob(".nbresume/*/log.txt")
    if log.read_text() != want.printed:
        found.append(f"the log is {log.read_text()!r}, and was {want.printed!r}")
    return found


def killed(program: Program, kills: list[Kill]) -> tuple[str, list[str]]:
    """Kill a program in each attempt but the last; returns how it began, and what came out differently."""
    plain = plainly(program)
    if plain.status != "ended":
        return f"the plain cell fails: {plain.error.partition(':')[0]}", []
    with tempfile.TemporaryDirectory(prefix="nbresume-") as name:
        folder = Path(name)
        for place, (boundary, when) in enumerate([*kills, (None, "after")]):
            outcome = run(program, folder, kill_at=boundary, when=when, seed=place)
            if outcome.status != "killed":
                break
        if place == 0 and outcome.error.startswith(REFUSED):
            return "refused at the first run", [outcome.error]
        return f"killed {place} times", differences(plain, outcome, folder)


boundaries = st.one_of(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 30))
kills = st.lists(st.tuples(boundaries, st.sampled_from(["before", "after"])), min_size=1, max_size=2)


def test_random_programs_killed_at_random_boundaries_come_out_the_same():
    """What a program leaves is the same to the bit; or it is refused at its first run, never later, and seldom."""
    seen: collections.Counter[str] = collections.Counter()

    @settings(
        max_examples=PROGRAMS or 150,
        derandomize=not PROGRAMS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(), kills)
    def each(program, kills):
        how, found = killed(program, kills)
        seen[how.partition(":")[0]] += 1
        if how.startswith("killed"):
            assert not found, "\n".join([how, *found])

    each()
    print(dict(seen))
    total = sum(seen.values())
    assert seen["refused at the first run"] <= total * SELDOM, seen
    assert seen["the plain cell fails"] <= total * SELDOM, seen
    assert seen["killed 1 times"] + seen["killed 2 times"] > total / 10, seen
