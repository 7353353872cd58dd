"""The decision table of what running the cell does, whole."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from nbresume._lineage import State
from nbresume._resume import Continue, Found, Restore, Start, Stop, Supersede, decide
from nbresume._types import Word

RUN = "train-00ff00"
CHANGED = ("lr: 0.1 -> 0.01",)
EQUAL = ()
WORDS = get_args(Word)

# state, differences, word -> the type of the answer; a word that is not named has the answer of "ask".
TABLE = {
    ("interrupted", EQUAL): {"ask": Continue, "fail": Stop},
    ("interrupted", CHANGED): {"ask": Stop},
    ("completed", EQUAL): {"ask": Restore},
    ("completed", CHANGED): {"ask": Start},
    ("superseded", EQUAL): {"ask": Start},
    ("superseded", CHANGED): {"ask": Start},
    ("failed", EQUAL): {"ask": Start},
    ("failed", CHANGED): {"ask": Start},
    ("abandoned", EQUAL): {"ask": Start},
    ("abandoned", CHANGED): {"ask": Start},
    ("running", EQUAL): {"ask": Stop},
    ("running", CHANGED): {"ask": Stop},
}


@pytest.mark.parametrize("word", WORDS)
def test_a_name_without_a_run_starts(word):
    assert decide(None, word) == Start()


@pytest.mark.parametrize("word", [word for word in WORDS if word != "supersede"])
@pytest.mark.parametrize(("state", "differences"), TABLE, ids=lambda value: str(value) or "equal")
def test_the_answer_follows_the_table(state, differences, word):
    row = TABLE[state, differences]
    assert type(decide(Found(RUN, state, differences), word)) is row.get(word, row["ask"])


def test_the_table_knows_every_state():
    assert {state for state, _ in TABLE} == set(get_args(State))


@pytest.mark.parametrize("word", [word for word in WORDS if word != "supersede"])
@pytest.mark.parametrize("state", get_args(State))
def test_a_changed_run_is_never_continued_nor_restored(state, word):
    """Neither by itself nor by a policy."""
    assert not isinstance(decide(Found(RUN, state, CHANGED), word), (Continue, Restore))


@pytest.mark.parametrize(("state", "differences", "word"), list(product(get_args(State), [EQUAL, CHANGED], WORDS)))
def test_trouble_stops_whatever_is_said(state, differences, word):
    """Alive elsewhere, unreadable, of a newer format: not even supersede may touch it."""
    assert decide(Found(RUN, state, differences, "its record can't be read"), word) == Stop("its record can't be read")


@pytest.mark.parametrize("word", ["ask", "continue"])
def test_a_stop_carries_the_differences(word):
    assert decide(Found(RUN, "interrupted", CHANGED), word).differences == CHANGED


@pytest.mark.parametrize("differences", [EQUAL, CHANGED])
@pytest.mark.parametrize("state", ["interrupted", "completed"])
def test_supersede_is_an_explicit_word_and_names_the_old_run(state, differences):
    assert decide(Found(RUN, state, differences), "supersede") == Supersede(RUN)


def test_supersede_never_takes_the_name_from_a_living_run():
    """Two processes would write under one name."""
    assert isinstance(decide(Found(RUN, "running", EQUAL), "supersede"), Stop)


@pytest.mark.parametrize("state", ["completed", "failed", "abandoned"])
def test_a_new_run_after_a_finished_one_is_linked_to_it(state):
    assert decide(Found(RUN, state, CHANGED), "ask") == Start(after=RUN)


def test_what_goes_on_is_named():
    assert decide(Found(RUN, "interrupted", EQUAL), "continue") == Continue(RUN)
    assert decide(Found(RUN, "completed", EQUAL), "ask") == Restore(RUN)
