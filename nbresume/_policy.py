"""When a boundary becomes a snapshot, and which snapshots stay."""

from __future__ import annotations

import contextlib
import queue
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .errors import OptionError

BUDGET = 0.05
"""Share of the loop's time that snapshots may cost under ``auto``."""
MAX_WAIT = 600.0
"""Seconds after which ``auto`` takes a snapshot whatever it costs."""

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_NUMBER = r"\d+(?:\.\d+)?"
_DAY = 86400.0
"""Seconds of the longest sleep: a longer one may be no timeout of the system's, and an early alarm does no harm."""
_SOON = 1e-9
"""Seconds that are no time: what is left of a wait by rounding."""


def read_share(text: str) -> float:
    """Read the share of the loop's time that snapshots may cost: ``5%`` or ``0.05``.

    Raises
    ------
    OptionError
        When it is no share, or one that allows nothing.
    """
    match = re.fullmatch(rf"({_NUMBER})\s*(%)?", text.strip())
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise OptionError(f"--budget {text!r} is not a share of the loop's time. Use 5% or 0.05, and at most 100%")
    return share


def read_seconds(text: str) -> float:
    """Read how long ``auto`` waits at most: ``90s``, ``10m`` or ``2h``.

    Raises
    ------
    OptionError
        When it is no length of time.
    """
    seconds = read_length(text)
    if not seconds:
        raise OptionError(f"--max-wait {text!r} is not a length of time. Use 90s, 10m or 2h")
    return seconds


def read_length(text: str) -> float | None:
    """Read a length of time in seconds: ``90s``, ``10m`` or ``2h``; None when it is none."""
    match = re.fullmatch(rf"({_NUMBER})(s|m|min|h)", text.strip())
    return float(match[1]) * _SECONDS[match[2]] if match else None


@dataclass(frozen=True, slots=True)
class Every:
    """When a boundary becomes a snapshot.

    Attributes
    ----------
    count : int or None
        Every so many boundaries.
    seconds : float or None
        After so many seconds since the last snapshot.
    both : bool
        Whether count and seconds must both have passed (``&``) or either (``|``).
    auto : bool
        As often as the budget allows.
    """

    count: int | None = None
    seconds: float | None = None
    both: bool = True
    auto: bool = False

    @classmethod
    def parse(cls, text: str) -> Every:
        """Read ``auto``, ``10``, ``30s``, ``10 & 30s`` or ``100 | 60s``.

        Raises
        ------
        OptionError
            When the text is none of these.
        """
        text = text.strip()
        if text == "auto":
            return cls(auto=True)
        parts = re.split(r"\s*([&|])\s*", text)
        fields: dict[str, float] = {}
        for part in parts[::2]:
            match = re.fullmatch(rf"({_NUMBER})(s|m|min|h)?", part)
            name = "seconds" if match and match[2] else "count"
            if match is None or name in fields or (name == "count" and not part.isdigit()) or float(match[1]) == 0:
                raise OptionError(f"--every {text!r} is not a rule. Use auto, 10, 30s, '10 & 30s' or '100 | 60s'")
            fields[name] = float(match[1]) * _SECONDS.get(match[2] or "s", 1.0)
        return cls(
            int(fields["count"]) if "count" in fields else None, fields.get("seconds"), "|" not in parts, auto=False
        )


class Clock:
    """Tells the time, and wakes at a time: one sleeping thread, started when it is first needed.

    Its thread is told through a queue that needs no lock of ours: a fork finds nothing held. The child has no thread,
    and asks for none: it takes no snapshots.
    """

    __slots__ = ("_orders", "_thread", "_wake")

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._wake: Callable[[], None] = lambda: None

    def now(self) -> float:
        """Return the time, in seconds since some instant."""
        return time.monotonic()

    def wake_at(self, when: float, wake: Callable[[], None]) -> None:
        """Call ``wake`` at a time, from another thread; forget the time asked for before."""
        self._wake = wake
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, args=(self._orders,), name="nbresume-pace", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no thread can start: whoever asked has to look at the time by himself
                self._thread = None
                wake()
                return
        self._orders.put(when)

    def stop(self) -> None:
        """Forget the time, and let the thread end."""
        if self._thread is not None:
            self._thread = None
            self._orders.put(None)
            self._orders = queue.SimpleQueue()

    def _watch(self, orders: queue.SimpleQueue[float | None]) -> None:
        when = orders.get()
        while when is not None:
            with contextlib.suppress(queue.Empty):
                when = orders.get(timeout=min(max(0.0, when - time.monotonic()), _DAY))
                continue
            self._wake()
            when = orders.get()


class Pace:
    """The live side of ``Every``: ``due`` is what the hot loop reads, and nearly all that it reads.

    With a rule of seconds a sleeping thread sets ``due``, so that an iteration pays no clock. A body that holds the GIL
    delays the flag by one boundary at most. Where the rule ``counts``, the hot loop also takes one off ``left`` at each
    boundary it passes, and asks at the last: ``asks`` says the same to whoever is in no hurry.

    Under ``auto`` there is no guess at what the next snapshot will cost: each is paid for after it was taken, by the
    loop running on. What it cost is a debt; a second of the loop pays ``budget`` seconds back; with no debt the next
    boundary is a snapshot. So all snapshots but the latest are within the budget at any time, whatever their costs do:
    one that is a hundred times larger is followed by a wait a hundred times as long, and the next small one by a short
    one. Three bounds make this fit a real loop:

    * Credit: a loop that could not take a snapshot for long (an iteration of an hour) has earned one, and no more.
    * Debt: after ``max_wait`` seconds a snapshot is taken whatever is owed, and what it leaves owed is never more than
      ``max_wait`` pays.
    * The first snapshot of a process pays for imports and folders: what it cost more than the second is forgiven.

    The loop's thread calls everything but ``force``, ``committed`` and the alarm, which may come from any thread or a
    signal's handler at any instruction. They only ever raise flags; who lowers ``due`` looks at those flags again.
    """

    __slots__ = (
        *("_at", "_background", "_budget", "_clock", "_costs", "_debt", "_enough", "_every", "_forgiven"),
        *("_in_flight", "_max_wait", "_since", "counts", "due", "forced", "left"),
    )

    def __init__(
        self, every: Every, *, budget: float = BUDGET, max_wait: float = MAX_WAIT, clock: Clock | None = None
    ) -> None:
        self._every, self._budget, self._max_wait = every, budget, max_wait
        self._clock = clock or Clock()
        self.counts, self.left, self._enough = every.count is not None, 0, False
        self._since = self._at = self._clock.now()
        self._debt = self._forgiven = 0.0
        self._costs: list[float] = []
        """Of the first two snapshots, and of the latest."""
        self._background: deque[float] = deque()
        self._in_flight = False
        self.due = True
        self.forced = True  # boundary 0 is always committed

    def force(self) -> None:
        """Make the next boundary a snapshot; from any thread, or a signal's handler."""
        self.forced = self.due = True

    def asks(self) -> bool:
        """Whether a boundary has to ask ``wants``; where it has not, it counts as passed."""
        if self.due or not self.counts:
            return self.due
        if self.left > 1:
            self.left -= 1
            return False
        return True

    def wants(self) -> bool:
        """Tell, at a boundary that has to ask, whether it becomes a snapshot.

        While a commit is in flight the seconds of a rule wait for it, and its count does not.
        """
        self.left -= 1
        if self.forced:
            self.forced = False
            return True
        every = self._every
        if every.count is None:
            return self._is_time()
        self._enough = self._enough or self.left <= 0
        if every.seconds is None or self._enough is not every.both:
            self._lower()
            return self._enough
        if self._enough:
            self.left = sys.maxsize  # it hangs on the time alone now
        return self._is_time()

    def taken(self, stall: float) -> None:
        """Learn that a snapshot was taken at this boundary, and for how many seconds the loop waited for it."""
        self._settle(stall)
        self._costs[2:] = []
        self._costs.append(0.0)
        self._charge(stall)
        self._since = self._clock.now()
        every = self._every
        self.left, self._enough = every.count or 0, False
        if every.auto or (every.seconds is not None and not (every.count and every.both)):
            self._is_time()
        else:
            self._lower()

    def committing(self) -> None:
        """Learn that the commit of the snapshot just taken is in flight; ``committed`` has to follow."""
        self._in_flight = True

    def committed(self, cost: float) -> None:
        """Learn, from any thread, that the commit is done or has failed, and its cost in seconds of processor time."""
        self._background.append(cost)
        self._in_flight = False
        self.due = True

    def stop(self) -> None:
        """Forget the alarm."""
        self._clock.stop()

    # ------------------------------------------------------------------ time

    def _lower(self) -> None:
        self.due = False
        if self.forced:
            self.due = True  # raised while it was lowered

    def _is_time(self) -> bool:
        """Look at the clock; where it is too early, lower ``due`` until it may be time."""
        waits = self._in_flight
        left = 0.0 if waits else self._seconds_left()
        if not waits and left <= _SOON:
            self.due = True
            return True
        self._lower()
        if not waits:
            self._clock.wake_at(self._clock.now() + left, self._wake)
        elif not self._in_flight:
            self.due = True  # the commit ended while it was lowered
        return False

    def _wake(self) -> None:
        self.due = True

    def _seconds_left(self) -> float:
        self._settle()
        waited = self._clock.now() - self._since
        if self._every.auto:
            return min(self._debt / self._budget, self._max_wait - waited)
        return (self._every.seconds or 0.0) - waited

    # ------------------------------------------------------------------ the account of auto

    def _settle(self, stall: float = 0.0) -> None:
        """Bring the account up to now: what the loop has paid by running, and what commits behind it have cost."""
        now, behind = self._clock.now(), 0.0
        while self._background:
            behind += self._background.popleft()
        credit = self._costs[-1] if self._costs else 0.0
        ran = now - self._at - stall - behind
        self._at = now
        self._debt = max(self._debt - self._budget * ran, -credit)
        if behind and self._costs:
            self._charge(behind)

    def _charge(self, cost: float) -> None:
        """Owe what the latest snapshot cost."""
        costs = self._costs
        costs[-1] += cost
        if len(costs) == _KNOWN:
            before, self._forgiven = self._forgiven, max(0.0, costs[0] - costs[1])
            cost += before - self._forgiven
        self._debt = min(self._debt + cost, self._budget * self._max_wait)


_KNOWN = 2
"""Snapshots that tell what the first one cost beyond a snapshot."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Which snapshots stay: the newest ``latest``, and each ``every``-th for good."""

    latest: int = 3
    every: int | None = None

    def __post_init__(self) -> None:
        if self.latest < 1:
            raise OptionError(f"--keep {self.latest} keeps nothing to resume from. Use 1 or more; the default is 3")
        if self.every is not None and self.every < 1:
            raise OptionError(f"--keep-every {self.every} is not a number of snapshots. Use 1 or more")

    def to_prune(self, sequence: Sequence[int]) -> Iterable[int]:
        """Tell which snapshots go.

        Parameters
        ----------
        sequence : sequence of int
            Sequence numbers in order, oldest first; the newest has been verified.
        """
        return [seq for seq in sequence[: -self.latest] if not (self.every and seq % self.every == 0)]
