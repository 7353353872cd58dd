"""A run as its journal tells it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbresume._events import Event, decode, encode
from nbresume._lineage import Lineage, fold

CAUSES = ["stop", "exception", "signal", "preempted"]


def journal(*steps: tuple) -> list[Event]:
    """Make events of ``(kind, attempt, facts)``, a second apart."""
    return [Event(step[0], step[1], f"2026-01-01T00:00:{place:02d}", *step[2:]) for place, step in enumerate(steps)]


LAUNCH = ("launched", 1)
SNAP = ("snapshot", 1, {"where": "epoch 1 of 3", "bytes": 10})


def test_nothing_happened_to_an_empty_journal():
    assert fold([]) == Lineage()


def test_a_launch_whose_process_lives_is_running():
    found = fold(journal(LAUNCH, SNAP), alive=True)
    assert (found.state, found.cause, found.resumed) == ("running", "", False)


def test_a_launch_whose_process_is_gone_vanished_and_no_cause_is_invented():
    found = fold(journal(LAUNCH, SNAP))
    assert (found.state, found.cause, found.attempts[0].ended) == ("interrupted", "vanished", "")


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("alive", [False, True])
def test_an_interruption_keeps_its_cause(cause, alive):
    """The kernel that was interrupted may live on; the run does not."""
    found = fold(journal(LAUNCH, SNAP, ("interrupted", 1, {"cause": cause})), alive=alive)
    assert (found.state, found.cause, found.attempts[0].ended) == ("interrupted", cause, "2026-01-01T00:00:02")


def test_a_resume_proves_that_the_silent_attempt_before_it_vanished():
    found = fold(journal(LAUNCH, SNAP, ("resumed", 2, {"where": "epoch 1 of 3"})), alive=True)
    assert [(a.number, a.how, a.resumed_from) for a in found.attempts] == [(1, "vanished", ""), (2, "", "epoch 1 of 3")]
    assert found.state == "running"
    assert found.resumed


def test_a_resume_leaves_a_told_cause_as_it_was():
    found = fold(journal(LAUNCH, ("interrupted", 1, {"cause": "stop"}), ("resumed", 2, {"where": "the start"})))
    assert [a.how for a in found.attempts] == ["stop", "vanished"]


def test_each_attempt_counts_its_own_snapshots_and_says_where_it_stood():
    found = fold(
        journal(
            LAUNCH,
            SNAP,
            SNAP,
            ("resumed", 2, {"where": "epoch 1 of 3"}),
            ("snapshot", 2, {"where": "epoch 2 of 3", "bytes": 11}),
        )
    )
    assert [(a.snapshots, a.where) for a in found.attempts] == [(2, "epoch 1 of 3"), (1, "epoch 2 of 3")]
    assert dict(found.last_snapshot) == {"where": "epoch 2 of 3", "bytes": 11}
    assert found.last_snapshot_at == "2026-01-01T00:00:04"


@pytest.mark.parametrize("how", ["completed", "failed", "abandoned"])
@pytest.mark.parametrize("alive", [False, True])
def test_a_closeout_is_the_end_whoever_lives(how, alive):
    found = fold(journal(LAUNCH, SNAP, (how, 1)), alive=alive)
    assert found.state == how
    assert found.attempts[0].how == how


def test_abandoning_an_interrupted_run_does_not_rewrite_why_it_stopped():
    found = fold(journal(LAUNCH, ("interrupted", 1, {"cause": "exception"}), ("abandoned", 1)))
    assert (found.state, found.attempts[0].how) == ("abandoned", "exception")


def test_a_superseded_run_names_the_run_that_took_its_name():
    found = fold(journal(LAUNCH, SNAP, ("superseded", 1, {"by": "train-00ff00"})))
    assert (found.state, found.superseded_by, found.cause) == ("superseded", "train-00ff00", "vanished")


def test_a_completed_run_stays_completed_when_another_takes_its_name():
    found = fold(journal(LAUNCH, ("completed", 1), ("superseded", 1, {"by": "train-00ff00"})))
    assert (found.state, found.superseded_by) == ("completed", "train-00ff00")


def test_what_a_reader_should_see_is_kept_in_order():
    found = fold(
        journal(
            LAUNCH,
            ("rejected", 1, {"snapshot": "0001-00000003", "why": "truncated"}),
            ("cut", 1, {"file": "log.csv", "bytes": 7}),
            ("warned", 1, {"text": "disk full"}),
        )
    )
    assert [event.kind for event in found.notes] == ["rejected", "cut", "warned"]


def test_five_kills_tell_six_attempts():
    steps = [LAUNCH, SNAP]
    for number in range(2, 7):
        steps += [("resumed", number, {"where": "epoch 1 of 3"}), ("snapshot", number, {"where": f"epoch {number}"})]
    steps.append(("completed", 6))
    found = fold(journal(*steps))
    assert [a.how for a in found.attempts] == ["vanished"] * 5 + ["completed"]
    assert found.state == "completed"


def test_a_torn_last_line_is_dropped_before_the_fold():
    lines = b"".join(map(encode, journal(LAUNCH, SNAP, ("completed", 1))))
    found = fold(decode(lines[:-5].splitlines()))
    assert (found.state, found.attempts[0].snapshots) == ("interrupted", 1)


@st.composite
def histories(draw):
    """Events as a run can really write them."""
    steps, number = [LAUNCH], 1
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["snapshot", "interrupted", "resumed", "rejected", "cut", "warned", "reconciled"]))
        if kind == "resumed":
            number += 1
        facts = (
            {"where": "epoch 1 of 3"} if kind in ("snapshot", "resumed") else {"cause": draw(st.sampled_from(CAUSES))}
        )
        steps.append((kind, number, facts))
    end = draw(st.sampled_from([None, "completed", "failed", "abandoned", "superseded"]))
    if end:
        steps.append((end, number, {"by": "x"}))
    return journal(*steps)


@given(histories(), st.booleans(), st.data())
def test_any_prefix_of_a_journal_folds(events, alive, data):
    """A run can be looked at in every moment of its life."""
    prefix = events[: data.draw(st.integers(0, len(events)))]
    found = fold(prefix, alive=alive)
    starts = [event for event in prefix if event.kind in ("launched", "resumed")]
    assert [a.number for a in found.attempts] == [event.attempt for event in starts]
    assert sum(a.snapshots for a in found.attempts) == sum(event.kind == "snapshot" for event in prefix)
    assert all(a.how for a in found.attempts[:-1])
    if found.state == "running":
        assert alive
        assert not found.cause
    elif found.attempts:
        assert found.cause


@given(st.binary(max_size=60), histories())
def test_a_journal_with_a_lost_beginning_or_garbage_in_it_still_folds(garbage, events):
    """A lost line must not make a run unreadable: ``%nbresume runs`` shows what there is."""
    lines = [line for event in events for line in encode(event).splitlines()]
    fold(decode([garbage, *lines[1:]]))


@pytest.mark.parametrize("kind", ["snapshot", "interrupted", "completed", "failed", "abandoned"])
@pytest.mark.parametrize("alive", [False, True])
def test_late_words_of_an_attempt_that_was_taken_over_from_move_nothing(kind, alive):
    """A process that stood still may write a line that it had begun; the run is where the later attempt has brought it."""
    story = [LAUNCH, SNAP, ("resumed", 2, {"snapshot": "0001-00000000"}), ("snapshot", 2, {"where": "epoch 2 of 3"})]
    before = fold(journal(*story), alive=alive)
    after = fold(journal(*story, (kind, 1, {"where": "epoch 9 of 3", "cause": "stop"})), alive=alive)
    assert (after.state, after.cause) == (before.state, before.cause)
    assert (after.last_snapshot, after.attempts[1]) == (before.last_snapshot, before.attempts[1])


def test_the_record_of_the_successor_speaks_where_the_journal_does_not_yet():
    """It is written first: a death before the line leaves the record alone, and then tells the same story."""
    successor = {"id": "train-00ff00", "because": ["--on-restart supersede", "lr: 0.1 -> 0.2"]}
    line = ("superseded", 1, {"by": "train-00ff00", "because": successor["because"]})
    told = fold(journal(LAUNCH, SNAP, line))
    assert fold(journal(LAUNCH, SNAP), successor=successor) == told
    assert fold(journal(LAUNCH, SNAP, line), successor=successor) == told
    assert told.superseded_because == ("--on-restart supersede", "lr: 0.1 -> 0.2")


def test_a_result_names_the_attempts_that_it_is_made_of():
    found = fold(journal(LAUNCH, SNAP, ("resumed", 2), ("reconciled", 2, {"attempts": [1, 2]}), ("completed", 2)))
    assert (found.state, found.made_by) == ("completed", (1, 2))


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"cause": "stop", "signal": "SIGINT"}, "SIGINT"),
        ({"cause": "exception", "error": "ValueError", "message": "bad"}, "ValueError: bad"),
        ({"cause": "exception", "error": "ValueError"}, "ValueError"),
        ({"cause": "stop"}, ""),
        ({}, ""),
    ],
)
def test_what_is_known_of_an_end_is_told_and_no_more(facts, why):
    attempt = fold(journal(LAUNCH, ("interrupted", 1, facts))).attempts[0]
    assert (attempt.how, attempt.why) == (facts.get("cause", "unknown"), why)
