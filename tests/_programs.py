"""Random programs: cells of nested loops, branches, functions, draws, aliases and files, with the cells before them.

Every program is deterministic, ends, and stands at no more than some forty boundaries. What it computes means nothing;
what counts is that each statement leaves a trace, in ``log`` or in the state, that a resume would get wrong if it did
anything twice, not at all, or with other objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from _writer import Scope, Writer
from hypothesis import strategies as st

NAMES = ("n0", "n1", "xs", "ys", "log", "d", "nest", "A", "row", "flat", "g", "r", "box", "s", "q", "S", "fs", "hold")
"""What is compared at the end."""

PRELUDE = """\
import collections, contextlib, itertools, random
import numpy as np
class Stop(Exception):
    pass
"""

# name -> how it is made; each is made by an earlier cell or by the program's own cell.
STATE = {
    "n0": "n0 = 3",
    "n1": "n1 = 1",
    "log": "log = []",
    "xs": "xs = [2, 7, 1]",
    "ys": "ys = xs",
    "d": "d = {'a': 1, 'b': 5}",
    "nest": "nest = {'xs': xs, 'rows': [[1], ys], 'd': d}",
    "A": "A = np.arange(6.0).reshape(2, 3)",
    "row": "row = A[1]",
    "flat": "flat = A.reshape(-1)[::2]",
    "g": "g = np.random.default_rng(3)",
    "r": "r = random.Random(5)",
    "hold": "hold = [g, r, A]",
    "s": "s = 'x'",
    "q": "q = collections.deque([4, 0])",
    "S": "S = {1, 5, 8}",
    "fs": "fs = []",
    "box": "box = Box(xs)",
}

CLASSES = """\
class Box:
    made = 0
    def __init__(self, items):
        self.v, self.items = 1, items
        Box.made += 1
    def push(self, x):
        self.v = (self.v * 3 + x) % 89
        self.items.append(self.v)
        return self.v
class Walk:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n
def gen(n):
    for k in range(n):
        yield k + random.randrange(5)
def quiet(n):
    yield from range(n)
"""


@dataclass
class Program:
    """A notebook: earlier cells, the cell, and the names that the magic line declares."""

    before: str
    cell: str
    declared: tuple[str, ...]

    def __repr__(self) -> str:
        rule = "-" * 20
        return f"Program(\n{rule} before\n{self.before}{rule} --vars {','.join(self.declared)}\n{self.cell}{rule})"


@st.composite
def programs(draw: Callable[[st.SearchStrategy], object]) -> Program:
    """Draw a program."""
    writer = Writer(draw)
    before, cell = [], []
    made_before = draw(st.booleans())
    (before if made_before or draw(st.booleans()) else cell).append(CLASSES)
    classes_in_cell = bool(cell)
    state = list(STATE)
    split = len(state) if made_before and not classes_in_cell else draw(st.integers(0, len(state) - 1))
    split = min(split, state.index("box")) if classes_in_cell else split
    before += [STATE[name] + "\n" for name in state[:split]]
    cell += [STATE[name] + "\n" for name in state[split:]]
    for _ in range(draw(st.integers(0, 3))):
        text = "\n".join(writer.function()) + "\n"
        (before if not cell or draw(st.booleans()) and not classes_in_cell else cell).append(text)
    ints = ["n0", "n1"]
    loop = writer.for_(Scope(list(ints)))
    body = [*writer.block(Scope(list(ints)), 0, 2), *loop, *writer.block(Scope(list(ints)), 0, 3)]
    cell += ["\n".join(body) + "\n"]
    declared = draw(st.sets(st.sampled_from(("log", "xs", "A", "box", "d", "n0", "g")), min_size=1, max_size=3))
    return Program(PRELUDE + "".join(before), "".join(cell), tuple(sorted(declared)))
