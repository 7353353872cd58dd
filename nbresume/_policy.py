"""When a boundary becomes a snapshot, and which snapshots stay."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import OptionError

BUDGET = 0.05
"""Share of the loop's time that snapshots may cost under ``auto``."""

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


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
            match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|min|h)?", part)
            name = "seconds" if match and match[2] else "count"
            if match is None or name in fields or (name == "count" and not part.isdigit()) or float(match[1]) == 0:
                raise OptionError(f"--every {text!r} is not a rule. Use auto, 10, 30s, '10 & 30s' or '100 | 60s'")
            fields[name] = float(match[1]) * _SECONDS.get(match[2] or "s", 1.0)
        return cls(
            int(fields["count"]) if "count" in fields else None, fields.get("seconds"), "|" not in parts, auto=False
        )

    @property
    def always(self) -> bool:
        """Whether every boundary is a snapshot."""
        return self.count == 1 and (self.seconds is None or not self.both)


class Pace:
    """The live side of ``Every``: ``due`` is what the hot loop reads, and nearly all that it reads.

    With a rule of seconds a sleeping thread sets ``due``, so that an iteration pays no clock. A body that holds the GIL
    delays the flag by one boundary at most. A rule of counts has to be told of every boundary: ``due`` stays true.
    """

    __slots__ = ("_boundaries", "_costs", "_every", "_guessed", "_known", "_since", "_timer", "due", "forced")

    def __init__(self, every: Every) -> None:
        self._every = every
        self._boundaries = 0
        self._costs: deque[float] = deque(maxlen=4)
        self._guessed = self._known = False
        self._since = time.monotonic()
        self._timer: threading.Timer | None = None
        self.due = True
        self.forced = True  # boundary 0 is always committed

    def force(self) -> None:
        """Make the next boundary a snapshot."""
        self.forced = self.due = True

    def wants(self) -> bool:
        """Tell, at a boundary that found ``due`` set, whether it becomes a snapshot."""
        self._boundaries += 1
        every, forced, self.forced = self._every, self.forced, False
        if forced or every.always:
            return True
        left = self._seconds_left()
        if every.count is None:
            if left > 0:
                self.due = False
                self._wake_after(left)
            return left <= 0
        enough = self._boundaries >= every.count
        if every.seconds is None:
            return enough
        return (enough and left <= 0) if every.both else (enough or left <= 0)

    def _seconds_left(self) -> float:
        wait = min(self._costs, default=0.0) / BUDGET if self._every.auto else self._every.seconds or 0.0
        return self._since + wait - time.monotonic()

    def taken(self, cost: float) -> None:
        """Learn that a snapshot was taken and what it cost, in seconds."""
        every = self._every
        self._boundaries = 0
        # The first one pays for imports and folders, and a busy disk for its neighbours: the smallest is the cost.
        if self._guessed:
            self._costs.clear()
        self._guessed = not self._costs and not self._known
        self._costs.append(cost / 4 if self._guessed else cost)
        self._known = True
        self._since = time.monotonic()
        if every.always:
            return
        self.due = every.count is not None
        if every.count is None:
            self._wake_after(self._seconds_left())

    def _wake_after(self, seconds: float) -> None:
        self.stop()
        self._timer = threading.Timer(seconds, self._wake)
        self._timer.daemon = True
        self._timer.name = "nbresume-pace"
        self._timer.start()

    def _wake(self) -> None:
        self.due = True

    def stop(self) -> None:
        """Forget the alarm."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


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
