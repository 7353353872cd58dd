"""An iterable that is made again and advanced: what its cursor remembers, and how it is compared.

All items count, by a chain of their fingerprints: that the last one is equal says little where the order is a shuffle.
The streams' state before a ``next()`` that drew belongs to the cursor where the body had drawn since the one before.

A torch ``DataLoader`` without workers is advanced by its sampler: the indices of the batches passed over are drawn,
and compared, but nothing is loaded except for the last batch, which is compared too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import xxhash

from .._identity import fingerprint
from .._types import Json
from ..errors import RefusedError, ReplayError
from ._skip import bare, behind_bars, enter_samplers, has_bar, skipped
from ._streams import StreamWatch

LOG_LIMIT = 1000
"""Draws between the body's own draws that a cursor remembers; an entry takes some 13 kB."""

Tell = Callable[[str], None]


def _nothing() -> None:
    pass


class Replay:
    """An iterator that remembers enough to be made again and advanced to the same place.

    Parameters
    ----------
    iterator : iterator
        What gives the items.
    entry : dict
        Global random streams before it was made.
    own : sequence of object
        Random generators that it can reach beside those.
    alarm : callable
        Called once when it turns out that it can't be made again.
    existing : bool
        Whether it was there before its loop: then the loop's entry does not tell what it had drawn.
    refusal : RefusedError, optional
        Why it can't be made again, where that is known from the start.

    Attributes
    ----------
    delivered : int
        Items given.
    item : object
        The last of them.
    bars : list of object
        Progress bars inside that did not count what was replayed.
    refusal : RefusedError or None
        Why it can't be made again.
    skips : bool
        Whether the items passed over need not be made, where a sampler tells their order.
    """

    __slots__ = (
        "_alarm",
        "_before",
        "_chain",
        "_entry",
        "_existing",
        "_iterator",
        "_last",
        "_log",
        "_natural",
        "_samplers",
        "_script",
        "_watch",
        "bars",
        "delivered",
        "item",
        "refusal",
        "skips",
    )

    def __init__(  # what is known when a loop is entered
        self,
        iterator: Iterator[Any],
        entry: Json,
        *,
        own: Sequence[Any] = (),
        alarm: Callable[[], None] = _nothing,
        existing: bool = False,
        refusal: RefusedError | None = None,
    ) -> None:
        self._iterator, self._entry, self._alarm, self._existing = iterator, entry, alarm, existing
        self.refusal = refusal
        self._watch = StreamWatch(own)
        self._natural = self._before = self._watch.look()
        self._samplers = enter_samplers(iterator, lambda inner: Replay(inner, entry, own=own, alarm=self._refuse_draws))
        self._log: dict[int, Any] = {}
        self._script: dict[int, Any] | None = None
        self._chain = self._last = ""
        self.item: Any = None
        self.bars: list[Any] = []
        self.delivered = 0
        self.skips = True

    def __iter__(self) -> Replay:
        return self

    def __next__(self) -> Any:
        if self._script is not None:
            return self._again()
        before = self._watch.look()
        item = next(self._iterator)
        after = self._watch.look()
        if not self._samplers and self._watch.differ(before, after) and self._watch.differ(before, self._natural):
            self._remember(before)
        self._natural, self._before = after, before
        self._count(item)
        return item

    def _again(self) -> Any:
        assert self._script is not None  # noqa: S101  # by the caller
        if self.delivered in self._script:
            self._watch.put(self._script[self.delivered])
        item = next(self._iterator)
        self._count(item)
        return item

    def _remember(self, before: Any) -> None:
        if len(self._log) < LOG_LIMIT:
            self._log[self.delivered] = self._watch.kept(before)
        else:
            self._refuse_draws()

    def _refuse_draws(self) -> None:
        self.refuse(
            f"the iterable draws random numbers with its items, more than {LOG_LIMIT} times between the body's own",
            "Give it a generator of its own that the body does not draw from (rng = np.random.default_rng(seed)), or "
            "make a list of it first",
        )

    def refuse(self, reason: str, way_out: str) -> None:
        """Note why it can't be made again, and say so at once."""
        if self.refusal is None:
            self.refusal = RefusedError(reason, way_out)
            self._alarm()

    def _count(self, item: Any) -> None:
        found = fingerprint(item)
        if self._existing and found.holes:
            self.refuse(
                f"its items can't be compared ({found.holes[0]}), and the iterator was there before the loop",
                "Make it in the loop's own line, or with nbresume.stream(...)",
            )
        if self.delivered:
            self._chain = xxhash.xxh3_128_hexdigest((self._chain + self._last).encode())
        self.delivered += 1
        self.item, self._last = item, found.digest

    def walks(self, iterator: Any) -> bool:
        """Whether this is the iterator that is advanced here."""
        return self._iterator is iterator

    # ------------------------------------------------------------------ what is saved

    def cursor(self) -> Json:
        """Describe the position in JSON values."""
        # The body may have changed the item, and the item may be a part of the state: both digests are right.
        last = [self._last, fingerprint(self.item).digest] if self.delivered else []
        return {"entry": self._entry, "delivered": self.delivered, "last": last}

    def part(self) -> dict[str, Any]:
        """Return what belongs to the graph.

        Raises
        ------
        RefusedError
            When it can't be made again.
        """
        if self.refusal is not None:
            raise self.refusal
        return {
            "log": self._log,
            "chain": self._chain,
            "before": self._watch.kept(self._before) if self._samplers and self.delivered else None,
            "samplers": [sampler.part() for sampler in self._samplers],
            "skips": self.skips,
        }

    # ------------------------------------------------------------------ the way back

    def forward(self, delivered: int, last: Sequence[str], part: dict[str, Any], tell: Tell) -> Any:
        """Advance to where a snapshot stood and return the last item delivered.

        Raises
        ------
        ReplayError
            When the items are not those that the run had seen.
        """
        progress = Progress(delivered, tell)
        self._follow(part)
        whole = self._iterator
        # An iterator that was there before the loop has a name of the user's, and stays the object that it is.
        has_bars = has_bar(whole) and not self._existing
        if has_bars:
            self._iterator = bare(whole)
        try:
            if self._samplers and part["skips"] and delivered:
                self._skip(delivered - 1, progress)
            while self.delivered < delivered:
                if self.delivered == delivered - 1 and part["before"] is not None:
                    self._watch.put(part["before"])
                self._again()
                progress.at(self.delivered)
        except StopIteration:
            raise ReplayError(
                f"the iterable gave {self.delivered} items and had given {delivered}: it is not the same. "
                "Put back what it reads, or supersede the run"
            ) from None
        if has_bars:
            self._iterator, self.bars = behind_bars(whole, self._iterator, delivered)
        same = self._settle(part) and (not delivered or self._last in last)
        if not same:
            raise ReplayError(
                f"the {delivered} items that the iterable gave are not those that the run had seen. Make its order "
                "depend on a seed, loop over a list, or over nbresume.stream(...); or supersede the run"
            )
        return self.item

    def _follow(self, part: dict[str, Any]) -> None:
        self._script = part["log"]
        for sampler, saved in zip(self._samplers, part["samplers"], strict=True):
            sampler._script = saved["log"]  # noqa: SLF001  # of this class

    def _skip(self, count: int, progress: Progress) -> None:
        for sampler in self._samplers:
            for place in range(count):
                next(sampler)
                progress.at(place + 1)
        self._iterator = skipped(self._iterator, count)
        self.delivered = count

    def _settle(self, part: dict[str, Any]) -> bool:
        """End the replay; tells whether all items but the last were those of the run."""
        self._script, self._log = None, dict(part["log"])
        self._natural = self._before = self._watch.look()
        # What a dataset draws for a batch that was passed over does not count: its sampler's order does.
        compared = not self._samplers
        same = self._chain == part["chain"] or not compared
        self._chain = part["chain"]
        for sampler, saved in zip(self._samplers, part["samplers"], strict=True):
            same &= sampler._settle(saved)  # noqa: SLF001  # of this class
        return same


class Progress:
    """Tells how far a long replay is, after a second and then more and more seldom.

    Parameters
    ----------
    total : int
        Items to be replayed.
    tell : callable
        Shows a line.
    clock : callable
        Seconds.
    """

    def __init__(self, total: int, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._tell, self._clock = total, tell, clock
        self._wait = 1.0
        self._next = clock() + self._wait

    def at(self, place: int) -> None:
        """Tell, if it is time, that so many items have been replayed."""
        if self._clock() >= self._next:
            self._tell(f"replaying {place:,} of {self._total:,} items")
            self._wait = min(2 * self._wait, 60.0)
            self._next = self._clock() + self._wait
