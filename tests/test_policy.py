"""When a boundary becomes a snapshot, and which snapshots stay."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbresume._policy import BUDGET, Every, Keep, Pace
from nbresume.errors import OptionError


def taken(rule: str, boundaries: int, cost: float = 0.0) -> list[int]:
    """Walk over boundaries without waiting; returns those that became a snapshot."""
    pace = Pace(Every.parse(rule))
    found = []
    for number in range(boundaries):
        if pace.due and pace.wants():
            found.append(number)
            pace.taken(cost)
    pace.stop()
    return found


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("auto", Every(auto=True)),
        (" auto ", Every(auto=True)),
        ("1", Every(count=1)),
        ("250", Every(count=250)),
        ("30s", Every(seconds=30.0)),
        ("0.5s", Every(seconds=0.5)),
        ("2m", Every(seconds=120.0)),
        ("2min", Every(seconds=120.0)),
        ("1.5h", Every(seconds=5400.0)),
        ("10 & 30s", Every(count=10, seconds=30.0, both=True)),
        ("10&30s", Every(count=10, seconds=30.0, both=True)),
        ("30s & 10", Every(count=10, seconds=30.0, both=True)),
        ("100 | 60s", Every(count=100, seconds=60.0, both=False)),
        ("60s|100", Every(count=100, seconds=60.0, both=False)),
    ],
)
def test_a_rule_is_read(text, rule):
    assert Every.parse(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "0s", "-1", "-5s", "1.5", "s", "often", "10x", "10 s 5", "1e3", "nan", "inf", "AUTO"),
        *("10 & 20", "10s | 20s", "10 &", "& 10", "10 & 30s & 5", "10 & 30s | 5", "10 || 30s", "auto & 10", "10, 30s"),
    ],
)
def test_anything_else_is_an_error_that_shows_the_text(text):
    with pytest.raises(OptionError) as error:
        Every.parse(text)
    assert repr(text) in str(error.value)
    assert "30s" in str(error.value)


@given(st.text(max_size=12))
def test_no_text_gives_a_rule_that_never_saves_or_another_error(text):
    try:
        rule = Every.parse(text)
    except OptionError:
        return
    assert rule.auto or rule.count or rule.seconds
    assert (rule.count or 1) >= 1
    assert (rule.seconds or 1) > 0


@pytest.mark.parametrize("rule", ["auto", "1", "7", "1h", "5 & 1h", "5 | 1h"])
def test_boundary_0_is_always_a_snapshot(rule):
    assert taken(rule, 3)[0] == 0


def test_a_count_takes_every_nth():
    assert taken("1", 5) == [0, 1, 2, 3, 4]
    assert taken("3", 11) == [0, 3, 6, 9]


def test_either_of_two_is_enough_and_both_are_not():
    assert taken("4 | 1h", 9) == [0, 4, 8]
    assert taken("4 & 1h", 9) == [0]
    assert taken("1 | 1h", 3) == [0, 1, 2]
    assert taken("1 & 1h", 3) == [0]


def test_both_take_the_first_boundary_after_count_and_time():
    pace = Pace(Every.parse("2 & 0.05s"))
    assert pace.wants()
    pace.taken(0.0)
    assert [pace.wants() for _ in range(4)] == [False] * 4
    began = time.monotonic()
    while not pace.wants():
        assert time.monotonic() - began < 10
    assert time.monotonic() - began < 5
    pace.stop()


def test_seconds_set_the_flag_by_themselves_and_only_once_they_have_passed():
    """An iteration reads one attribute and no clock."""
    pace = Pace(Every.parse("0.1s"))
    assert pace.wants()
    began = time.monotonic()
    pace.taken(0.0)
    assert not pace.due
    while not pace.due:
        assert time.monotonic() - began < 10
    assert time.monotonic() - began >= 0.09
    assert pace.wants()
    pace.stop()


def test_auto_waits_until_the_loop_has_earned_what_the_snapshot_cost():
    """Snapshots cost at most the budget: 5 ms of snapshot are followed by 20 times as much of loop.

    The first one, which pays for imports too, is not taken at its word; once a few are known, the budget holds.
    """
    pace = Pace(Every.parse("auto"))
    assert pace.wants()
    cost = 0.005
    for _ in range(5):
        pace.taken(cost)
    began = time.monotonic()
    while not (pace.due and pace.wants()):
        assert time.monotonic() - began < 10
    assert time.monotonic() - began >= cost / BUDGET * 0.9
    pace.stop()


def test_a_free_snapshot_does_not_stop_the_pace():
    """A cost of zero on a coarse clock must not leave the flag down for good."""
    pace = Pace(Every.parse("auto"))
    assert pace.wants()
    pace.taken(0.0)
    began = time.monotonic()
    while not pace.due:
        assert time.monotonic() - began < 10
    assert pace.wants()
    pace.stop()


def test_a_forced_boundary_is_taken_under_any_rule_once():
    for rule in ("auto", "1000", "1h", "1000 & 1h"):
        pace = Pace(Every.parse(rule))
        assert pace.wants()
        pace.taken(1.0)
        pace.force()
        assert pace.due
        assert pace.wants()
        pace.taken(1.0)
        assert not (pace.due and pace.wants())
        pace.stop()


def test_stop_leaves_no_thread_behind():
    pace = Pace(Every.parse("1h"))
    assert pace.wants()
    pace.taken(0.0)
    assert any(thread.name == "nbresume-pace" for thread in threading.enumerate())
    pace.stop()
    began = time.monotonic()
    while any(thread.name == "nbresume-pace" for thread in threading.enumerate()):
        assert time.monotonic() - began < 10
    pace.stop()


@pytest.mark.parametrize("newest", [9, 10, 11, 99, 100, 9999, 10000, 99_999_999, 100_000_000])
def test_the_newest_stay_across_every_change_of_digits(newest):
    """Numbers are compared as numbers: 10 is newer than 9, whatever a name would sort like."""
    numbers = list(range(max(0, newest - 6), newest + 1))
    gone = set(Keep(3).to_prune(numbers))
    assert [number for number in numbers if number not in gone] == [newest - 2, newest - 1, newest]


def test_each_nth_stays_for_good():
    gone = set(Keep(2, every=10).to_prune(list(range(35))))
    assert [number for number in range(35) if number not in gone] == [0, 10, 20, 30, 33, 34]


@given(st.integers(1, 9), st.none() | st.integers(1, 9), st.lists(st.integers(0, 99), unique=True).map(sorted))
def test_pruning_never_takes_the_newest_and_never_more_than_there_is(latest, every, numbers):
    gone = list(Keep(latest, every).to_prune(numbers))
    assert set(gone) <= set(numbers)
    assert not set(gone) & set(numbers[-latest:])
    stay = [number for number in numbers if number not in gone]
    assert list(Keep(latest, every).to_prune(stay)) == []


@pytest.mark.parametrize(("latest", "every"), [(0, None), (-1, None), (3, 0), (3, -2)])
def test_keeping_nothing_is_an_error(latest, every):
    with pytest.raises(OptionError, match=r"--keep"):
        Keep(latest, every)
