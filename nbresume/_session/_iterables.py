"""Where the items of a ``for`` come from, and how that goes on in another process.

Five ways, tried in this order when the loop is entered:

``graph``   Python's own iterators over containers, and wrappers of them, know their position: the iterator itself
            belongs
            to the object graph, with the container it walks over. Going on is O(1), the order is pinned, and a list
            that
            the body appends to is that very list. So does an iterator object of a class of the user's.
``bar``     A progress bar is made again and given the iterator of what it wraps; it starts at k of N.
``file``    An open file is read by lines from its offset; what the body reads from it by itself counts too.
``state``   An iterable with ``state_dict`` and ``load_state_dict`` tells its own state.
``replay``  Anything else is made again under the RNG of the loop's entry and advanced; the last item delivered must
            come
            out with the same fingerprint. The RNG state before a ``next()`` that drew belongs to the cursor, since the
            body's own draws lie between.
"""

from __future__ import annotations

import collections
import io
import itertools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from .._capture import draws_differ, put_rng, rng_state
from .._identity import fingerprint
from .._types import Json, Stateful
from ..errors import RefusedError, ReplayError

LOG_LIMIT = 1000
"""Draws between the body's own draws that a cursor remembers; an entry takes some 7 kB."""

Mode = Literal["graph", "bar", "state", "file", "replay"]


class _Sequence:
    def __getitem__(self, place: int) -> int:
        raise IndexError(place)


_LEAVES = frozenset(
    map(
        type,
        [
            iter([]),
            iter(()),
            iter(range(0)),
            iter(range(1 << 70, 1 << 71)),
            iter(""),
            iter("é"),
            iter(b""),
            iter(bytearray()),
            iter({}),
            iter({}.values()),
            iter({}.items()),
            reversed({}),
            reversed({}.values()),
            reversed({}.items()),
            iter(set()),
            iter(collections.deque()),
            reversed(collections.deque()),
            reversed([]),
            reversed(()),
            iter(_Sequence()),
            iter(np.arange(0)),
        ],
    )
)
_WRAPPERS: frozenset[type] = frozenset({enumerate, zip, map, filter})
if sys.version_info < (3, 14):  # later ones tell nobody where they stand
    _WRAPPERS |= {itertools.chain, itertools.islice, itertools.zip_longest, itertools.count, itertools.repeat}
    _WRAPPERS |= {itertools.product, itertools.permutations, itertools.combinations, itertools.compress}
    _WRAPPERS |= {itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.cycle}
_CONTAINERS = (list, tuple, range, str, bytes, bytearray, dict, set, frozenset, collections.deque, np.ndarray)
_QUIET = (*_CONTAINERS, type({}.keys()), type({}.values()), type({}.items()), *_WRAPPERS, *_LEAVES)


def is_positional(iterator: Any, saveable: Callable[[Any], bool]) -> bool:
    """Whether an iterator can tell where it stands without being moved."""
    kind = type(iterator)
    if kind in _LEAVES:
        return True
    if kind not in _WRAPPERS:
        return False
    for part in _parts(iterator):
        if hasattr(part, "__next__"):
            if not is_positional(part, saveable):
                return False
        elif callable(part) and not saveable(part):
            return False
    return True


def _parts(wrapper: Any) -> list[Any]:
    """Return what a wrapping iterator was made of."""
    _, arguments, *state = wrapper.__reduce__()
    inner = state[0] if state and isinstance(state[0], tuple) else ()
    return [*arguments, *inner]


def is_bar(value: Any) -> bool:
    """Whether a value wraps an iterable as ``tqdm`` does."""
    return all(hasattr(value, name) for name in ("iterable", "n", "initial", "update", "total"))


def length_of(iterable: Any) -> int | None:
    """Tell how many items there will be, where that is known without a look at them."""
    if is_bar(iterable) and isinstance(iterable.total, (int, float)):
        return int(iterable.total)
    try:
        if isinstance(iterable, (zip, enumerate)):
            lengths = [length_of(part) for part in _parts(iterable) if hasattr(part, "__next__")]
            known = [n for n in lengths if n is not None]
            return min(known) if known and len(known) == len(lengths) else None
        hint = operator.length_hint(iterable, -1)
    except Exception:  # noqa: BLE001  # a foreign __len__ may raise anything; the total is only a word on the card
        return None
    return hint if hint >= 0 else None


def is_quiet(iterable: Any) -> bool:
    """Whether walking over a value draws nothing and changes nothing."""
    return isinstance(iterable, _QUIET)


class Iteration:
    """The items of one entered loop.

    Attributes
    ----------
    mode : Mode
        How it goes on in another process.
    source : Iterator
        What the loop draws its items from.
    part : object
        What belongs to the graph: the iterator, or the state.
    """

    __slots__ = ("_stateful", "mode", "part", "replay", "source")

    def __init__(self, mode: Mode, source: Iterator[Any], part: Any = None, stateful: Any = None) -> None:
        self.mode, self.source, self.part = mode, source, part
        self._stateful = stateful
        self.replay: Replay | None = source if isinstance(source, Replay) else None

    @classmethod
    def enter(cls, iterable: Any, entry: Json | None, saveable: Callable[[Any], bool]) -> Iteration:
        """Choose the way when a loop is entered.

        Parameters
        ----------
        iterable : object
            What stands behind ``in``.
        entry : dict or None
            RNG state before that was evaluated; None when evaluating it drew nothing.
        saveable : callable
            Whether an iterator of the user's own class can be saved.
        """
        if is_bar(iterable):
            inner = iter(iterable.iterable)
            if is_positional(inner, saveable):
                iterable.iterable = inner
                return cls("bar", iter(iterable), inner)
        elif isinstance(iterable, Stateful) and not hasattr(iterable, "parameters"):
            return cls("state", iter(iterable), None, iterable)
        elif _is_seekable_file(iterable):
            return cls("file", _lines(iterable), None, iterable)
        if entry is None and not isinstance(iterable, _QUIET):
            entry = rng_state()
        iterator = _settled(iter(iterable))
        if is_positional(iterator, saveable) or (_is_own_class(iterator) and saveable(iterator)):
            return cls("graph", iterator, iterator)
        return cls("replay", Replay(iterator, entry if entry is not None else rng_state()))

    @classmethod
    def go_on(
        cls, cursor: Json, part: Any, iterable: Any, count: int, *, in_progress: bool
    ) -> tuple[Iteration, list[Any]]:
        """Go on where a snapshot says.

        Returns
        -------
        iteration : Iteration
        items : list
            The item whose iteration is in progress, if any.

        Raises
        ------
        ReplayError
            When the iterable does not give again what it gave.
        """
        progress = [None] if in_progress else []
        if cursor["mode"] == "graph":
            return cls("graph", part, part), progress
        if cursor["mode"] == "bar":
            iterable.iterable = part
            iterable.n = iterable.initial = count
            iterable.last_print_n = count
            return cls("bar", iter(iterable), part), progress
        if cursor["mode"] == "file":
            iterable.seek(cursor["at"])
            return cls("file", _lines(iterable), None, iterable), progress
        if cursor["mode"] == "state":
            iterable.load_state_dict(part)
            return cls("state", iter(iterable), None, iterable), progress
        replay = Replay(iter(iterable), cursor["entry"])
        last = replay.forward(cursor)
        return cls("replay", replay), [last] if in_progress else []

    def in_graph(self) -> Any:
        """Return what belongs to the graph at a boundary."""
        return self._stateful.state_dict() if self.mode == "state" else self.part

    def cursor(self) -> Json:
        """Describe the position in JSON values."""
        if self.mode == "file":
            try:
                return {"mode": self.mode, "at": self._stateful.tell()}
            except OSError as error:
                raise RefusedError(
                    f"the body takes lines from the file by itself, and the file can't tell where it stands ({error})",
                    "Take them with f.readline() instead of next(f)",
                ) from error
        return {"mode": self.mode, **(self.replay.cursor() if self.replay is not None else {})}


def _settled(iterator: Any) -> Any:
    """Pin what walks over the parts of a torch module (``parameters()`` and its kin): those are there all the time."""
    if isinstance(iterator, types.GeneratorType):
        home = iterator.gi_code.co_filename
        return iter(list(iterator)) if home.endswith(_MODULE_WALKS) else iterator
    if type(iterator) in (zip, enumerate):
        kind, arguments, *_ = iterator.__reduce__()
        settled = [_settled(part) for part in arguments]
        if any(new is not old for new, old in zip(settled, arguments, strict=True)):
            return kind(*settled)
    return iterator


_MODULE_WALKS = ("torch/nn/modules/module.py", "torch\\nn\\modules\\module.py")


def _is_seekable_file(value: Any) -> bool:
    return isinstance(value, io.IOBase) and value.readable() and value.seekable()


def _lines(file: Any) -> Iterator[Any]:
    """Walk over a file's lines as ``for`` does, but so that it can still tell its offset."""
    return iter(file.readline, b"" if not isinstance(file, io.TextIOBase) else "")


def _is_own_class(iterator: Any) -> bool:
    """Whether an iterator is an object of a Python class: its attributes are its position."""
    return (
        hasattr(type(iterator), "__dict__")
        and type(iterator).__module__ not in ("builtins", "itertools")
        and hasattr(iterator, "__dict__")
    )


class Replay:
    """An iterator that remembers enough to be made again and advanced to the same place."""

    __slots__ = ("_entry", "_item", "_iterator", "_last", "_log", "_natural", "delivered", "overflow")

    def __init__(self, iterator: Iterator[Any], entry: Json) -> None:
        self._iterator, self._entry = iterator, entry
        self._natural = rng_state()
        self._log: dict[str, Json] = {}
        self._last = ""
        self._item: Any = None
        self.delivered = 0
        self.overflow = False

    def __iter__(self) -> Replay:
        return self

    def __next__(self) -> Any:
        before = rng_state()
        item = next(self._iterator)
        after = rng_state()
        if draws_differ(before, after) and draws_differ(before, self._natural):
            if len(self._log) < LOG_LIMIT:
                self._log[str(self.delivered)] = before
            else:
                self.overflow = True
        self._natural = after
        self.delivered += 1
        self._item, self._last = item, fingerprint(item).digest
        return item

    def walks(self, iterator: Any) -> bool:
        """Whether this is the iterator that is advanced here."""
        return self._iterator is iterator

    def cursor(self) -> Json:
        """Describe the position; refuses, rather than in the middle of the user's code, what has become too long."""
        if self.overflow:
            raise RefusedError(
                f"the iterable draws random numbers with its items, more than {LOG_LIMIT} times between the body's own",
                "Give it a generator of its own (rng = np.random.default_rng(seed)), or make a list of it first",
            )
        # The body may have changed the item, and the item may be a part of the state: both digests are right.
        last = [self._last, fingerprint(self._item).digest] if self.delivered else []
        return {"entry": self._entry, "log": self._log, "delivered": self.delivered, "last": last}

    def forward(self, cursor: Json) -> Any:
        """Advance to where a snapshot stood and return the last item delivered."""
        self._log = dict(cursor["log"])
        item = None
        for place in range(cursor["delivered"]):
            if str(place) in self._log:
                put_rng(self._log[str(place)])
            try:
                item = next(self._iterator)
            except StopIteration:
                raise ReplayError(
                    f"the iterable gave {place} items and had given {cursor['delivered']}: it is not the same. "
                    "Put back what it reads, or supersede the run"
                ) from None
        self.delivered = cursor["delivered"]
        self._natural = rng_state()
        if self.delivered:
            self._last = fingerprint(item).digest
            self._item = item
            if self._last not in cursor["last"]:
                raise ReplayError(
                    f"item {self.delivered} of the iterable is not the one that the run had seen. "
                    "Make its order depend on a seed, or loop over a list; or supersede the run"
                )
        return item
