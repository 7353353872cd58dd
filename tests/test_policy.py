"""When a boundary becomes a snapshot, and which snapshots stay."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field

import pytest
from _support import meanwhile, until
from hypothesis import given, settings
from hypothesis import strategies as st

from nbresume._policy import BUDGET, MAX_WAIT, Clock, Every, Keep, Pace, read_seconds, read_share
from nbresume.errors import OptionError


class Time(Clock):
    """A time that passes when the test says so, and rings as the real one does."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1000.0
        self.alarm = None

    def now(self):
        return self.time

    def wake_at(self, when, wake):
        self.alarm = when, wake

    def pass_by(self, seconds):
        self.time += seconds
        if self.alarm is not None and self.time >= self.alarm[0]:
            (_, wake), self.alarm = self.alarm, None
            wake()


@dataclass
class Loop:
    """A loop in simulated time: where its snapshots are, and what they cost.

    A commit behind the loop takes ``behind`` seconds from its next iteration, and ``commit`` more until it is done.
    """

    rule: str
    budget: float = BUDGET
    max_wait: float = MAX_WAIT
    boundary: int = -1
    at: list[int] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    own: float = 0.0
    asked: int = 0

    def __post_init__(self) -> None:
        self.time = Time()
        self.pace = Pace(Every.parse(self.rule), budget=self.budget, max_wait=self.max_wait, clock=self.time)
        self.since = self.time.now()
        self.left = self.behind = self.taken_away = 0.0

    def run(self, iteration: float, cost: float = 0.0, *, behind: float = 0.0, commit: float = 0.0) -> bool:
        """Run one iteration and stand at the boundary behind it; tells whether it became a snapshot."""
        self.own += iteration
        seconds, self.taken_away = iteration + self.taken_away, 0.0
        if self.left and seconds >= self.left:
            seconds -= self.left
            self._end_commit()
        elif self.left:
            self.left -= seconds
        self.time.pass_by(seconds)
        return self.stand(cost, behind=behind, commit=commit)

    def stand(self, cost: float = 0.0, *, behind: float = 0.0, commit: float = 0.0) -> bool:
        self.boundary += 1
        if not self.pace.asks():
            return False
        self.asked += 1
        if not self.pace.wants():
            return False
        if self.at:
            self.gaps.append(self.time.now() - self.since)
        self.at.append(self.boundary)
        stall = cost + self.left  # the engine waits for the commit in flight
        if self.left:
            self._end_commit()
        self.time.pass_by(cost)
        self.since = self.time.now()
        self.pace.taken(stall)
        self.costs.append(stall + behind)
        if behind or commit:
            self.pace.committing()
            self.left, self.behind, self.taken_away = behind + commit, behind, behind
        return True

    def _end_commit(self) -> None:
        self.time.pass_by(self.left)
        self.left = 0.0
        self.pace.committed(self.behind)

    @property
    def share(self) -> float:
        """The share of the loop's time that snapshots cost, without the latest, which is being paid for."""
        return sum(self.costs[:-1]) / self.own


def taken(rule: str, boundaries: int, cost: float = 0.0) -> list[int]:
    """Walk over boundaries without waiting; returns those that became a snapshot."""
    loop = Loop(rule)
    for _ in range(boundaries):
        loop.stand(cost)
    return loop.at


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


@pytest.mark.parametrize(
    ("text", "share"), [("5%", 0.05), ("0.05", 0.05), (" 12.5 % ", 0.125), ("100%", 1.0), ("1", 1.0), ("0.5%", 0.005)]
)
def test_a_budget_is_read_as_a_share_or_in_percent(text, share):
    assert read_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "0", "0%", "5", "101%", "-5%", "nan", "inf", "5 percent", "%", "1e-2"])
def test_another_budget_is_an_error_that_shows_it(text):
    with pytest.raises(OptionError, match="--budget") as error:
        read_share(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("90s", 90), ("2h", 7200), (" 0.5min ", 30)])
def test_a_longest_wait_is_read(text, seconds):
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "10", "-1m", "m", "inf", "auto", "10 & 30s"])
def test_another_longest_wait_is_an_error_that_shows_it(text):
    with pytest.raises(OptionError, match="--max-wait") as error:
        read_seconds(text)
    assert repr(text) in str(error.value)


# ------------------------------------------------------------------ counts, seconds, and both


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


@given(
    count=st.integers(1, 6),
    seconds=st.integers(1, 20),
    sign=st.sampled_from(["", "&", "|", "s"]),
    iterations=st.lists(st.integers(0, 12), max_size=60),
    cost=st.integers(0, 30),
)
def test_counts_and_seconds_are_exact_whatever_an_iteration_takes(count, seconds, sign, iterations, cost):
    """Against the rule said in words, boundary by boundary; snapshots may cost what they like."""
    rule = {"": f"{count}", "s": f"{seconds}s"}.get(sign, f"{count} {sign} {seconds}s")
    loop = Loop(rule)
    loop.stand(cost)
    want, boundaries, waited = [0], 0, 0
    for number, iteration in enumerate(iterations, 1):
        loop.run(iteration, cost)
        boundaries, waited = boundaries + 1, waited + iteration
        enough, late = boundaries >= count, waited >= seconds
        if {"": enough, "s": late, "&": enough and late, "|": enough or late}[sign]:
            want.append(number)
            boundaries = waited = 0
    assert loop.at == want


def test_between_two_snapshots_no_boundary_asks():
    """An iteration reads one attribute: 100,000 boundaries ask as often as there are snapshots, or their alarms."""
    for rule in ("30s", "auto", "10000", "10000 | 1h", "1000 & 20s", "20000 | 20s"):
        loop = Loop(rule)
        for _ in range(100_000):
            loop.run(0.001, 0.5)
        assert len(loop.at) >= 4, rule
        assert loop.asked <= 2 * len(loop.at) + 1, rule


# ------------------------------------------------------------------ auto


def test_auto_waits_until_the_loop_has_earned_what_the_snapshot_cost():
    """One second of snapshot is followed by twenty of the loop."""
    loop = Loop("auto")
    for _ in range(20_000):
        loop.run(0.01, 1.0)
    # One more is to its credit by rounding at most.
    assert all(19.9 <= gap <= 20.1 for gap in loop.gaps[1:])
    assert loop.share <= BUDGET


@pytest.mark.parametrize(("budget", "gap"), [(0.01, 100.0), (0.5, 2.0), (1.0, 1.0)])
def test_auto_keeps_the_budget_that_it_is_given(budget, gap):
    loop = Loop("auto", budget=budget)
    for _ in range(60_000):
        loop.run(0.01, 1.0)
    assert all(gap - 0.1 <= one <= gap + 0.1 for one in loop.gaps[1:])
    assert loop.share <= budget


@pytest.mark.parametrize(("before", "after"), [(0.01, 1.0), (1.0, 0.01)])
def test_auto_follows_a_state_that_grows_or_shrinks_a_hundredfold_from_the_next_snapshot_on(before, after):
    loop = Loop("auto")
    for _ in range(20_000):
        loop.run(0.01, before)
    known = len(loop.at)
    for _ in range(20_000):
        loop.run(0.01, after)
    # The first gap is still that of the snapshot before, and one may be to its credit.
    assert all(gap == pytest.approx(after * 20, abs=0.02) for gap in loop.gaps[known + 1 :])
    assert len(loop.gaps[known + 1 :]) >= 8
    assert loop.share <= BUDGET


@pytest.mark.parametrize(("before", "after"), [(0.01, 1.0), (1.0, 0.01)])
def test_auto_follows_iterations_that_grow_or_shrink_a_hundredfold(before, after):
    """The time between two snapshots stays what the cost asks for, to the next boundary."""
    loop = Loop("auto")
    for iteration in (before, after):
        known = len(loop.at)
        for _ in range(int(400 / iteration)):
            loop.run(iteration, 0.5)
        assert all(10 - 2 <= gap <= 10 + iteration + 0.1 for gap in loop.gaps[known + 1 :])
    assert loop.share <= BUDGET


def test_with_hour_long_iterations_every_boundary_is_a_snapshot():
    loop = Loop("auto")
    loop.stand(300.0)
    for _ in range(24):
        assert loop.run(3600.0, 300.0)


def test_boundaries_of_an_inner_loop_become_snapshots_by_time():
    """An hour of outer iteration, made of many short ones: the work is safe every few minutes, not every hour."""
    loop = Loop("auto")
    loop.stand(10.0)
    for _ in range(3):
        for _ in range(36_000):
            loop.run(0.1, 10.0)
        loop.stand(10.0)
    assert max(loop.gaps) <= 200.2


def test_an_idle_hour_earns_one_snapshot_and_no_more():
    """Else what was earned in an hour would be burnt in minutes of short iterations."""
    loop = Loop("auto")
    for _ in range(3):
        loop.run(3600.0, 1.0)
    begun = len(loop.at)
    for _ in range(1000):
        loop.run(0.01, 1.0)
    assert len(loop.at) - begun <= 1


def test_iterations_a_little_too_short_for_the_cost_use_the_budget_up():
    """What one iteration earned beyond a snapshot counts for the next: three of four boundaries, not every second."""
    loop = Loop("auto")
    for _ in range(1000):
        loop.run(15.0, 1.0)
    assert 0.049 <= loop.share <= BUDGET


def test_one_outlier_is_paid_for_once():
    """A disk that was busy once makes one wait longer, and no later one."""
    loop = Loop("auto")
    for number in range(30_000):
        loop.run(0.01, 8.0 if number == 10_000 else 0.1)
    waits = [gap for gap in loop.gaps[1:] if gap > 2.1]
    assert len(waits) <= 1
    assert loop.share <= BUDGET


def test_what_the_first_snapshot_costs_beyond_the_second_is_forgiven():
    """It pays for imports and folders; the second one is forced, as it is in every loop."""
    loop = Loop("auto")
    loop.stand(3.0)
    loop.pace.force()
    loop.run(0.01, 0.01)
    for _ in range(500):
        loop.run(0.01, 0.01)
    assert loop.gaps[1] <= 0.45
    assert len(loop.at) >= 20


def test_a_free_snapshot_does_not_stop_the_pace():
    """A cost of zero on a coarse clock must not leave the flag down for good."""
    loop = Loop("auto")
    assert [loop.run(0.0) for _ in range(5)] == [True] * 5


def test_the_longest_wait_goes_before_the_budget():
    loop = Loop("auto", max_wait=60.0)
    loop.stand(30.0)
    for _ in range(10_000):
        loop.run(0.1, 30.0)
    assert all(60 <= gap <= 60.11 for gap in loop.gaps)


def test_a_debt_that_the_longest_wait_overrode_is_not_paid_for_hours():
    """A day of expensive snapshots leaves no longer wait behind than one of them."""
    loop = Loop("auto", max_wait=60.0)
    for _ in range(10_000):
        loop.run(1.0, 30.0)
    known = len(loop.at)
    for _ in range(1000):
        loop.run(0.1, 0.01)
    assert len(loop.at) - known > 50


seconds = st.floats(0.0, 1e4) | st.sampled_from([0.0, 1e-6, 1e-3, 0.02, 1.0, 3600.0])
steps = st.lists(
    st.tuples(seconds, seconds, st.sampled_from([0.0, 1e-3, 0.5, 40.0]), st.integers(1, 30)), min_size=1, max_size=12
)


@settings(max_examples=300, deadline=None)
@given(steps=steps, budget=st.sampled_from([0.01, 0.05, 0.5]), max_wait=st.sampled_from([1.0, 60.0, 600.0, 1e9]))
def test_whatever_iterations_and_snapshots_cost_auto_keeps_the_budget_and_the_longest_wait(steps, budget, max_wait):
    """All snapshots but the latest, what the first cost beyond the second, and what the longest wait asked for."""
    loop = Loop("auto", budget=budget, max_wait=max_wait)
    loop.stand(steps[0][1])
    for iteration, cost, behind, times in steps:
        for _ in range(times):
            loop.run(iteration, cost, behind=behind, commit=behind)
            # The boundary comes after an iteration, and waits for what was in flight.
            late = iteration + 3 * max(one for _, _, one, _ in steps)
            assert loop.time.now() - loop.since <= max_wait + late + 1e-6
    costs = loop.costs
    overdue = sum(cost for cost, gap in zip(costs, loop.gaps, strict=False) if gap >= max_wait - 1e-6)
    forgiven = max(0.0, costs[0] - costs[1]) if len(costs) > 1 else 0.0
    assert sum(costs[:-1]) - forgiven - overdue <= budget * loop.own + 1e-6 * sum(costs) + 1e-9 * len(costs)


# ------------------------------------------------------------------ commits behind the loop


def test_while_a_commit_is_in_flight_auto_and_seconds_defer_to_the_boundary_after_it():
    for rule in ("auto", "1s", "1 & 1s", "100 | 1s"):
        loop = Loop(rule)
        assert loop.stand(behind=0.0, commit=50.0), rule
        assert not any(loop.run(1.0) for _ in range(49)), rule
        assert loop.run(1.0), rule
        assert loop.run(10.0), rule


def test_no_boundary_asks_while_a_rule_of_seconds_waits_for_a_commit():
    loop = Loop("1s")
    loop.stand(commit=50.0)
    for _ in range(490):
        loop.run(0.1)
    assert loop.asked <= 3


def test_a_count_does_not_wait_for_a_commit_in_flight():
    """The engine waits for it, then: that is what a count means."""
    for rule, want in (("1", [0, 1, 2, 3]), ("2", [0, 2, 4]), ("2 | 1h", [0, 2, 4]), ("1 | 1s", [0, 1, 2, 3])):
        loop = Loop(rule)
        loop.stand(commit=50.0)
        while loop.boundary < want[-1]:
            loop.run(0.1, commit=50.0)
        assert loop.at == want, rule


@pytest.mark.parametrize("rule", ["auto", "1000", "1h", "1000 & 1h", "1000 | 1h"])
def test_a_forced_boundary_is_taken_under_any_rule_once_and_in_flight_too(rule):
    for commit in (0.0, 500.0):
        loop = Loop(rule)
        assert loop.stand(1.0, commit=commit)
        assert not loop.stand()
        loop.pace.force()
        assert loop.pace.due
        assert loop.stand(1.0, commit=commit)
        assert not loop.stand()


def test_a_wish_that_comes_while_a_snapshot_is_taken_is_for_the_next_boundary():
    """A click or a signal may come at any instruction."""
    pace = Pace(Every.parse("1h"), clock=Time())
    assert pace.wants()
    pace.force()
    pace.taken(1.0)
    assert pace.due
    assert pace.wants()


class Raced(Pace):
    """A pace that another thread comes in on, just before the flag goes down."""

    meanwhile = staticmethod(lambda: None)

    @property
    def due(self):
        return self.flag

    @due.setter
    def due(self, value):
        if not value:
            self.meanwhile()
        self.flag = value


@pytest.mark.parametrize("rule", ["auto", "1h"])
def test_what_comes_at_the_instant_when_the_flag_goes_down_is_not_lost(rule):
    """A wish, or the end of the commit in flight, from any thread."""
    for wish in ("force", "committed"):
        pace = Raced(Every.parse(rule), clock=Time())
        assert pace.wants()
        pace.taken(1.0)
        if wish == "committed":
            pace.committing()
        assert not pace.wants()
        assert not pace.due
        pace.meanwhile = pace.force if wish == "force" else lambda pace=pace: pace.committed(0.0)
        assert not pace.wants()
        assert pace.due


def test_what_a_commit_behind_the_loop_costs_counts_into_the_budget():
    loop = Loop("auto")
    for _ in range(40_000):
        loop.run(0.01, 0.1, behind=0.9, commit=1.0)
    assert all(18 <= gap <= 23 for gap in loop.gaps[2:])
    assert loop.share <= BUDGET


def test_a_commit_of_long_wall_time_costs_what_it_takes_from_the_loop():
    """A slow disk behind the loop is waited for, and not charged."""
    loop = Loop("auto")
    for _ in range(10_000):
        loop.run(0.01, 0.001, behind=0.001, commit=5.0)
    assert all(gap <= 5.1 for gap in loop.gaps)


# ------------------------------------------------------------------ the real clock


def alarms():
    return [thread for thread in threading.enumerate() if thread.name == "nbresume-pace"]


def test_seconds_set_the_flag_by_themselves_and_only_once_they_have_passed():
    """An iteration reads one attribute and no clock."""
    until(lambda: not alarms())  # those of other tests have ended
    pace = Pace(Every.parse("0.1s"))
    assert pace.wants()
    for _ in range(3):
        began = time.monotonic()
        pace.taken(0.0)
        assert not pace.due
        until(lambda: pace.due)
        assert time.monotonic() - began >= 0.09
        assert pace.wants()
    assert len(alarms()) == 1
    pace.stop()


def test_an_earlier_alarm_goes_before_a_later_one():
    """A commit that cost nothing ends a wait that was for a costly one."""
    clock, rung = Clock(), threading.Event()
    clock.wake_at(clock.now() + 3600, rung.set)
    clock.wake_at(clock.now() + 0.05, rung.set)
    assert rung.wait(10)
    clock.stop()


def test_auto_with_the_real_clock_waits_as_long_as_was_earned():
    pace = Pace(Every.parse("auto"))
    assert pace.wants()
    cost = 0.005
    for _ in range(5):
        pace.taken(cost)
    began = time.monotonic()
    until(lambda: pace.due and pace.wants())
    assert time.monotonic() - began >= cost / BUDGET * 0.9
    pace.stop()


def test_a_wait_longer_than_any_timeout_is_one():
    until(lambda: not alarms())  # those of other tests have ended
    pace = Pace(Every.parse("99999999999999999h"))
    assert pace.wants()
    pace.taken(0.0)
    (alarm,) = alarms()
    alarm.join(0.05)
    assert alarm.is_alive()
    assert not pace.due
    pace.stop()


def test_stop_leaves_no_thread_behind():
    until(lambda: not alarms())  # those of other tests have ended
    pace = Pace(Every.parse("1h"))
    assert pace.wants()
    pace.taken(0.0)
    assert alarms()
    pace.stop()
    until(lambda: not alarms())
    pace.stop()


def test_a_rule_of_counts_starts_no_thread():
    until(lambda: not alarms())  # those of other tests have ended
    pace = Pace(Every.parse("2"))
    assert pace.wants()
    pace.taken(0.0)
    assert not pace.wants()
    assert not alarms()


def test_where_no_thread_can_start_the_rule_holds_all_the_same():
    """Each boundary looks at the clock, then."""
    before = threading.stack_size(1 << 46)  # more than there are addresses
    try:
        with pytest.raises(RuntimeError):
            threading.Thread(target=int).start()
        pace = Pace(Every.parse("0.1s"))
        assert pace.wants()
        pace.taken(0.0)
        began = time.monotonic()
        assert not (pace.due and pace.wants())
        until(lambda: pace.due and pace.wants())
        assert time.monotonic() - began >= 0.09
        pace.stop()
    finally:
        threading.stack_size(before)


def test_a_forked_child_can_use_the_pace_and_end():
    """It has no alarm, and nothing in it waits for one."""
    pace = Pace(Every.parse("1h"))
    assert pace.wants()
    pace.taken(0.0)
    child = os.fork()
    if not child:
        pace.force()
        good = pace.due and pace.wants()
        pace.taken(0.0)
        pace.committing()
        pace.committed(1.0)
        pace.stop()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not pace.due
    pace.stop()


# ------------------------------------------------------------------ real cells

SHAPES = {
    "for": "for i in range(23):\n    log.append(i)",
    "while": "while len(log) < 23:\n    log.append(0)",
    "while else": "while len(log) < 23:\n    log.append(0)\nelse:\n    log.append(1)",
    "nested": "for i in range(6):\n    for j in range(i):\n        log.append(j)\n    n = i\n    while n:\n        n -= 1\n        if n == 2: break\n    log.append(n)",
    "function": "for i in range(6):\n    work(i)",
}


def places(notebook, name, options, cell):
    """Run a cell and return where its snapshots are."""
    notebook.run("log = []")
    notebook.run(f"%%resumable {name} --vars log {options}\n{cell}")
    return [event.facts["where"] for event in notebook.store.find(name).events() if event.kind == "snapshot"]


@pytest.mark.parametrize("shape", SHAPES)
def test_each_nth_boundary_of_a_real_cell_is_a_snapshot_wherever_it_lies(notebook, shape):
    """Boundary 0, the one after the first iteration, each N-th from there, and the end."""
    notebook.run("def work(n):\n    for k in range(n):\n        log.append(k)\n")
    *each, end = places(notebook, "each", "--every 1", SHAPES[shape])
    first = next(k for k, where in enumerate(each) if k and where != "the start")
    for n in (2, 3, 7, 1000):
        for rule in (f"{n}", f"{n} | 1h"):
            *found, last = places(notebook, f"by{n}{len(rule)}", f"--every '{rule}'", SHAPES[shape])
            assert found == [*each[: first + 1], *each[first + n :: n]], rule
            assert last == end


def test_the_budget_and_the_longest_wait_decide_how_often_a_real_loop_is_saved(notebook):
    notebook.run("import time")
    seldom = places(
        notebook, "seldom", "--budget 0.01%", "for i in range(150):\n    time.sleep(0.004)\n    log.append(i)"
    )
    assert len(seldom) == 3  # boundary 0, the one after the first iteration, and the end
    # How soon there are so many depends on the disk; that there are does not.
    cell = "for i in range(100_000):\n    time.sleep(0.004)\n    log.append(i)\n    if os.path.exists('enough'): break"
    for name, options in (("often", "--budget 100%"), ("soon", "--budget 0.01% --max-wait 0.05s")):
        notebook.run("import time, os\nif os.path.exists('enough'): os.remove('enough')")

        def enough(name=name):
            def many():
                events = notebook.store.find(name).events() if name in {run.name for run in notebook.runs} else ()
                return sum(event.kind == "snapshot" for event in events) > 6

            try:
                until(many, f"the seventh snapshot of {name}")
            finally:
                (notebook.folder / "enough").touch()

        with meanwhile(enough):
            places(notebook, name, options, cell)


def test_the_options_come_through_every_door(notebook, monkeypatch):
    from nbresume._magic._config import NBResume
    from nbresume._transform import CellOptions

    config = NBResume()

    def options(line="t"):
        found = CellOptions.from_line(line, config.defaults())
        return found.budget, found.max_wait, found.sync

    assert options() == (0.05, 600.0, False)
    config.budget, config.max_wait, config.sync = 0.2, "1m", True
    assert options() == (0.2, 60.0, True)
    config.budget = "30%"
    assert options() == (0.3, 60.0, True)
    for name, value in (("BUDGET", "0.01"), ("MAX_WAIT", "2h"), ("SYNC", "no")):
        monkeypatch.setenv(f"NBRESUME_{name}", value)
    assert options() == (0.01, 7200.0, False)
    assert options("t --budget 7% --max-wait 3s --sync") == (pytest.approx(0.07), 3.0, True)


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
