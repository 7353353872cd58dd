"""The hidden order of sets: what comes back iterates, pops and grows as the set that was saved would have."""

from __future__ import annotations

import random

import pytest
from _support import round_trip
from hypothesis import given
from hypothesis import strategies as st

from nbresume._capture import keeps_order
from nbresume._capture._sets import hash_alike, table_of
from nbresume.testing import rehearse

CHANGES = ("add", "add", "add", "discard", "update", "filter", "difference", "copy", "union", "pop", "clear")


def change(one: set[int], how: str, number: int) -> set[int]:
    """Change a set in one of the ways that move its table."""
    match how:
        case "add":
            one.add(number)
        case "discard":
            one.discard(min(one, default=0, key=lambda element: (element * 7919 + number) % 1009))
        case "update":
            one.update(range(number % 90, number % 90 + 30, 3))
        case "filter":
            one = {element for element in one if (element + number) % 3}
        case "difference":
            one -= set(range(0, number % 100, 2))
        case "copy":
            one = one.copy()
        case "union":
            one = one | {number, number * 8}
        case "pop" if one:
            one.pop()
        case "clear" if not number % 5:
            one.clear()
    return one


steps = st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 10**12) | st.integers(0, 60)), max_size=60)


@given(steps, steps)
def test_a_set_of_numbers_goes_on_as_it_would_have(before, after):
    """Whatever happened to it before: the same order, the same ``pop``, the same table after each later change."""
    one: set[int] = set()
    for how, number in before:
        one = change(one, how, number)
    owner, back = round_trip({"one": one, "again": one}), one

    assert owner["one"] is owner["again"]
    there = owner["one"]
    for how, number in [*after, ("pop", 0)]:
        assert (list(there), table_of(there)) == (list(back), table_of(back))
        there, back = change(there, how, number), change(back, how, number)


@pytest.mark.parametrize(
    ("elements", "alike"),
    [
        ({1, 2.5, 3j}, True),
        ({(1, (2, 3)), frozenset({4})}, True),
        ({"a", "b"}, False),
        ({(1, "a"), (2, "b")}, False),
        ({float("nan"), 1.0}, False),
        ({None, 1}, False),
    ],
)
def test_what_hashes_alike_in_every_process_is_known(elements, alike):
    """Text, None and NaN hash by process or by address: no table of theirs is taken for one that can be had again."""
    assert hash_alike(elements) is alike
    assert keeps_order(elements) is alike


def test_a_frozen_set_keeps_its_order_or_is_known_not_to():
    """A frozen set can't be filled again in place: where its order would be another, that is seen."""
    drawn = random.Random(3)
    for _ in range(200):
        one = set(drawn.sample(range(10**6), drawn.randrange(2, 40)))
        one = frozenset(one - set(drawn.sample(sorted(one), len(one) // 2)))
        back = round_trip([one])[0]
        assert list(back) == list(one) or not keeps_order(one)


# name -> (names to compare, cell, cells before it)
LOOPS: dict[str, tuple[str, str, str]] = {
    "pop from a work list": (
        "out,todo",
        "while todo:\n    u = todo.pop()\n    out.append(u)\n    if len(out) < 9: todo |= {(u * 7 + k) % 101 for k in range(2)}\n",
        "out, todo = [], {5, 17, 99}\n",
    ),
    "ties broken by order": (
        "out",
        "while far:\n    u = min(far, key=lambda v: v % 5)\n    far.remove(u)\n    out.append((u, list(far)))\n",
        "out, far = [], set(range(0, 140, 11))\n",
    ),
    "neighbours in a dict of sets": (
        "out,near",
        (
            "for i in range(12):\n    a, b = random.randrange(6), random.randrange(1000)\n    near[a] |= {b, b * 8}\n"
            "    near[a].discard(b)\n    out.append([sum(s) and next(iter(s)) for s in near.values()])\n"
        ),
        "import random\nrandom.seed(2)\nout, near = [], {v: set() for v in range(6)}\n",
    ),
    "a set in an object": (
        "out",
        "for i in range(5):\n    out.append(g.step())\n",
        (
            "out = []\nclass G:\n    def __init__(self): self.todo = {3, 17, 8, 40}\n    def step(self):\n"
            "        u = self.todo.pop()\n        self.todo.add(u * 9 % 97)\n        return u\ng = G()\n"
        ),
    ),
}


@pytest.mark.parametrize("case", LOOPS)
def test_a_loop_over_hidden_order_comes_out_the_same(case):
    """Killed at any boundary: what is drawn from the order of a set of numbers is what would have been drawn."""
    names, cell, before = LOOPS[case]
    assert str(rehearse(cell, before, names=names.split(","))).endswith("every resume was the same run")


def test_text_is_refused_with_a_way_out():
    """A set of text has another order in each kernel: the first run says so."""
    found = rehearse("while todo:\n    out.append(todo.pop())\n", "out, todo = [], {'a', 'b'}\n", names=["out"])

    assert "todo.pop() takes from the hidden order of a set" in found.refused
    assert "Use a list or a deque" in found.refused
