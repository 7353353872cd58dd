"""A journal line tells what happened, and a torn one tells nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbresume._events import Event, Kind, decode, encode, now

KINDS = get_args(Kind)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FACTS = st.dictionaries(st.text().filter(lambda key: key not in ("event", "attempt", "at")), JSON, max_size=4)
EVENTS = st.builds(Event, st.sampled_from(KINDS), st.integers(1, 9999), st.just("2026-01-02T03:04:05.678+00:00"), FACTS)


def lines(journal: bytes) -> list[bytes]:
    """Cut a journal into lines as the store does."""
    return journal.splitlines()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_as_it_was_written(kind):
    event = Event(kind, 3, now(), {"where": "epoch 7 of 30", "loops": [["epoch", 7, 30]], "seconds": 0.25})
    assert decode(lines(encode(event))) == [event]


@given(st.lists(EVENTS, max_size=6))
def test_any_journal_comes_back_whole(events):
    """Facts hold any JSON value, with line breaks of every alphabet in them: an event is one line all the same."""
    journal = b"".join(map(encode, events))
    assert journal.count(b"\n") == len(events)
    assert decode(lines(journal)) == events


@given(st.lists(EVENTS, min_size=1, max_size=4), st.data())
def test_a_journal_cut_at_any_byte_gives_its_whole_lines(events, data):
    """A process that dies while it appends tears the last line; no earlier one is lost."""
    journal = b"".join(map(encode, events))
    cut = data.draw(st.integers(0, len(journal)))
    found = decode(lines(journal[:cut]))
    whole = journal[:cut].count(b"\n")
    assert found[:whole] == events[:whole]
    assert len(found) - whole in (0, 1)  # only the line break of the last one may be missing
    assert found == events[: len(found)]


def test_a_line_written_behind_a_torn_one_is_all_that_is_lost():
    """The next attempt appends to what the dying one left."""
    first, second, third = (Event("snapshot", 1, now(), {"n": n}) for n in range(3))
    torn = encode(first) + encode(second)[:-7] + encode(third) + encode(first)
    assert decode(lines(torn)) in ([first, first], [first, third, first])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b"{}",
        b'{"event": "launched"}',
        b'{"event": "launched", "attempt": 1}',
        b'{"event": "of a later version", "attempt": 1, "at": ""}',
        b"\xff\xfe\x00",
        b"\0" * 40,
    ],
    ids=repr,
)
def test_a_line_that_is_no_event_is_dropped(line):
    event = Event("launched", 1, now())
    assert decode([line, encode(event), line]) == [event]


def test_text_of_any_alphabet_stays_readable_on_disk():
    line = encode(Event("warned", 1, now(), {"text": "größer als 1 µs"}))
    assert "größer als 1 µs".encode() in line


def test_times_are_utc_and_sort_as_text():
    first, second = now(), now()
    assert datetime.fromisoformat(first).utcoffset() == timedelta(0)
    assert first <= second


@pytest.mark.parametrize("how", ["completed", "abandoned"])
def test_the_first_journals_are_read_in_the_words_of_today(how):
    """They had one word for both ends."""
    line = f'{{"event": "closed", "attempt": 2, "at": "2026-01-01", "how": "{how}", "resumed": true}}'.encode()
    assert decode([line]) == [Event(how, 2, "2026-01-01", {"resumed": True})]
