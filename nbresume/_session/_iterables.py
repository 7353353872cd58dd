"""Where the items of a ``for`` come from, and how that goes on in another process.

Four ways, tried in this order when the loop is entered:

``graph``   Python's own iterators over containers, and wrappers of them, know their position: the iterator itself
            belongs to the object graph, with the container it walks over. Going on is O(1), the order is pinned, and a
            list that the body appends to is that very list. So does an iterator object of a class of the user's.
``file``    An open file is read by lines from its offset; what the body reads from it by itself counts too.
``state``   An iterable with ``state_dict`` and ``load_state_dict`` tells its own state.
``replay``  Anything else is made again under the RNG of the loop's entry and advanced; see ``_replay``.

A progress bar is made again, and given the items of what it wraps, in one of these ways; it starts at k of N.
"""

from __future__ import annotations

import io
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .._capture import rng_encoded, rng_look
from .._types import Json, Stateful
from ..errors import RefusedError
from ._listings import any_order, is_listing, keeps_workers, pinned
from ._positions import is_container, is_positional, wrapped
from ._replay import Replay, Tell
from ._skip import Given, is_bar, start_bar_at

Mode = Literal["graph", "state", "file", "replay"]


@dataclass(slots=True)
class Entry:
    """What is known where a loop is entered.

    Attributes
    ----------
    saveable : callable
        Whether an iterator of the user's own class can be saved.
    rng : dict or None
        A look at the global random streams before the iterable's expression was evaluated; None when that drew nothing.
    own : sequence of object
        Random generators that the expression can reach.
    named : bool
        Whether the expression only names what is there already.
    alarm : callable
        Called when it turns out that a replay is not possible.
    """

    saveable: Callable[[Any], bool]
    rng: Json | None = None
    own: Sequence[Any] = ()
    named: bool = False
    alarm: Callable[[], None] = field(default=lambda: None)


def length_of(iterable: Any) -> int | None:
    """Tell how many items there will be, where that is known without a look at them."""
    if is_bar(iterable) and isinstance(iterable.total, (int, float)):
        return int(iterable.total)
    try:
        if isinstance(iterable, (zip, enumerate)):
            lengths = [length_of(part) for part in wrapped(iterable) if hasattr(part, "__next__")]
            known = [n for n in lengths if n is not None]
            return min(known) if known and len(known) == len(lengths) else None
        hint = operator.length_hint(iterable, -1)
    except Exception:  # noqa: BLE001  # a foreign __len__ may raise anything; the total is only a word on the card
        return None
    return hint if hint >= 0 else None


class Iteration:
    """The items of one entered loop.

    Attributes
    ----------
    mode : Mode
        How it goes on in another process.
    source : Iterator
        What the loop draws its items from.
    replay : Replay or None
        What is advanced in another process, if it is.
    bars : list of object
        Progress bars that its items come through.
    doubt : RefusedError or None
        Why no snapshot of the run can be gone on from once it has been entered.
    """

    __slots__ = ("_bar", "_part", "_stateful", "bars", "doubt", "iterable", "mode", "replay", "source")

    def __init__(self, mode: Mode, source: Iterator[Any], part: Any = None, stateful: Any = None) -> None:
        self.mode, self.source, self._part = mode, source, part
        self._stateful = stateful
        self._bar = False
        self.bars: list[Any] = []
        self.doubt: RefusedError | None = None
        self.iterable: Any = None
        """What stood behind ``in``: while this is known by its ``id``, nothing else may get that."""
        self.replay: Replay | None = source if isinstance(source, Replay) else None

    @classmethod
    def enter(cls, iterable: Any, entry: Entry) -> Iteration:
        """Choose the way when a loop is entered; ``iterable`` is what stands behind ``in``."""
        if is_bar(iterable):
            return cls.enter(iterable.iterable, entry).under(iterable)
        if isinstance(iterable, Stateful) and not hasattr(iterable, "parameters"):
            return cls("state", iter(iterable), None, iterable)
        if _is_seekable_file(iterable):
            return cls("file", _lines(iterable), None, iterable)
        rng = entry.rng if entry.rng is not None or is_container(iterable) else rng_look()
        existing = entry.named and hasattr(iterable, "__next__")
        iterator = iter(iterable) if existing else pinned(iter(iterable))
        if is_positional(iterator, entry.saveable):
            return cls("graph", iterator, iterator)
        refusal = _refusal(iterator, existing=existing)
        rng = rng if rng is not None else rng_look()
        found = cls(
            "replay",
            Replay(iterator, rng_encoded(rng), own=entry.own, alarm=entry.alarm, existing=existing, refusal=refusal),
        )
        found.doubt = _lasting(iterator)
        return found

    @classmethod
    def go_on(cls, cursor: Json, part: Any, iterable: Any, entry: Entry, *, tell: Tell) -> Iteration:
        """Go on where a snapshot says.

        Raises
        ------
        ReplayError
            When the iterable does not give again what it gave.
        """
        if cursor.get("bar"):
            inner = cls.go_on({**cursor, "bar": False}, part, iterable.iterable, entry, tell=tell)
            start_bar_at(iterable, cursor["count"])
            return inner.under(iterable)
        if cursor["mode"] == "graph":
            return cls("graph", part, part)
        if cursor["mode"] == "file":
            iterable.seek(cursor["at"])
            return cls("file", _lines(iterable), None, iterable)
        if cursor["mode"] == "state":
            iterable.load_state_dict(part)
            return cls("state", iter(iterable), None, iterable)
        existing = entry.named and hasattr(iterable, "__next__")
        iterator = iter(iterable) if existing else pinned(iter(iterable))
        replay = Replay(iterator, cursor["entry"], own=entry.own, alarm=entry.alarm, existing=existing)
        replay.forward(cursor["delivered"], cursor["last"], part, tell)
        found = cls("replay", replay)
        found.bars += replay.bars
        for bar in found.bars:  # of an iteration in progress, its item has been drawn, and does not count yet
            start_bar_at(bar, cursor["count"])
        return found

    def under(self, bar: Any) -> Iteration:
        """Drive a bar, which gives the items on."""
        Given(bar, self.source)
        self.source, self._bar = iter(bar), True
        self.bars.append(bar)
        return self

    @property
    def last(self) -> Any:
        """The item whose iteration is in progress, where it has been made again."""
        return self.replay.item if self.replay is not None else None

    @property
    def again(self) -> bool:
        """Whether the iterable's expression is evaluated again in another process."""
        return self.mode != "graph" or self._bar

    def in_graph(self) -> Any:
        """Return what belongs to the graph at a boundary.

        Raises
        ------
        RefusedError
            When the items can't be made again.
        """
        if self.replay is not None:
            return self.replay.part()
        return self._stateful.state_dict() if self.mode == "state" else self._part

    def cursor(self) -> Json:
        """Describe the position in JSON values."""
        found: Json = {"mode": self.mode, "bar": self._bar}
        if self.mode == "file":
            return {**found, "at": self._offset()}
        return {**found, **(self.replay.cursor() if self.replay is not None else {})}

    def _offset(self) -> int:
        try:
            return int(self._stateful.tell())
        except OSError as error:
            raise RefusedError(
                f"the body takes lines from the file by itself, and the file can't tell where it stands ({error})",
                "Take them with f.readline() instead of next(f)",
            ) from error


def _refusal(iterator: Any, *, existing: bool) -> RefusedError | None:
    name = any_order(iterator)
    if name:
        return RefusedError(
            f"{name} gives its items in the order in which they get ready, which is another each time",
            "Loop over the futures in their own order (for f in futures: f.result()), or over map in place of "
            "imap_unordered",
        )
    if existing and is_listing(iterator):
        return RefusedError(
            "the listing of a folder was there before the loop, and the folder may be another by the resume",
            "Make it in the loop's own line (for path in folder.glob(...)), or a list of it",
        )
    return None


def _lasting(iterator: Any) -> RefusedError | None:
    if keeps_workers(iterator):
        return RefusedError(
            "the DataLoader keeps its workers from one loop to the next (persistent_workers=True), and their random "
            "streams can't be put back",
            "Use persistent_workers=False",
        )
    return None


def _is_seekable_file(value: Any) -> bool:
    return isinstance(value, io.IOBase) and value.readable() and value.seekable()


def _lines(file: Any) -> Iterator[Any]:
    """Walk over a file's lines as ``for`` does, but so that it can still tell its offset."""
    return iter(file.readline, b"" if not isinstance(file, io.TextIOBase) else "")
