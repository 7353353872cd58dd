"""``nbresume.stream``: an iterator whose position can be saved, whatever it walks over."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal

from .._capture import put_rng, rng_state
from .._identity import fingerprint
from .._types import Json
from ..errors import OptionError, ReplayError
from ._listings import pinned
from ._replay import Replay
from ._streams import put_streams, streams_in

Skip = Literal["replay", "sampler", "position"]


def stream(source: Any, /, *args: Any, skip: Skip = "replay", **kwargs: Any) -> Stream:
    """Return an iterator over a source whose position is saved with the run.

    Parameters
    ----------
    source : iterable or callable
        What can be walked again: a ``DataLoader``, or a function that returns an iterable each time it is called.
    *args, **kwargs
        Given to the function.
    skip : {"replay", "sampler", "position"}
        How a resume comes to where the stream stood. ``replay`` walks the source again under the random streams of its
        start and compares all items. ``sampler`` is for a ``DataLoader`` whose dataset draws no random numbers: only
        its sampler is advanced, nothing is loaded, also with workers. ``position`` calls ``source(position, *args)``,
        which gives the items from there on; nothing is passed over.

    Raises
    ------
    OptionError
        When the source can't be walked in that way.

    Examples
    --------
    An endless stream of batches, moved by hand::

        batches = nbresume.stream(endless, loader)
        while step < 10_000:
            x, y = next(batches)
    """
    if hasattr(source, "__next__"):
        raise OptionError(
            f"stream() is given an iterator ({type(source).__name__}), which can be walked only once. Give what makes "
            "it: stream(loader) in place of stream(iter(loader)), stream(items, n) in place of stream(items(n))"
        )
    if skip not in ("replay", "sampler", "position"):
        raise OptionError(f"skip={skip!r} is none of replay, sampler, position")
    if skip == "sampler" and not hasattr(source, "_index_sampler"):
        raise OptionError(f"skip='sampler' is for a torch DataLoader, and this is a {type(source).__name__}")
    if skip == "sampler" and hasattr(source.dataset, "__iter__") and not hasattr(source.dataset, "__getitem__"):
        raise OptionError("skip='sampler' needs a dataset that is read by index; this one is an IterableDataset")
    if skip == "position" and not callable(source):
        raise OptionError("skip='position' needs a function: source(position) gives the items from there on")
    return Stream(source, args, kwargs, skip)


class Stream:
    """An iterator whose attributes tell its position; made by ``nbresume.stream``."""

    def __init__(self, source: Any, args: tuple[Any, ...], kwargs: dict[str, Any], skip: Skip) -> None:
        self.source, self.args, self.kwargs, self.skip = source, args, kwargs, skip
        self._saved: dict[str, Any] | None = None
        self._items: _Items | None = None

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        if self._items is None:
            self._items = self._open()
        return next(self._items)

    def _open(self) -> _Items:
        """Begin, or go on where the saved position says; that draws nothing from anybody's streams."""
        if self._saved is None:
            return _Items(self, rng_state(), [state for _, state in self._own()])
        saved, self._saved = self._saved, None
        rng, own = rng_state(), self._own()
        try:
            put_rng(saved["rng"])
            put_streams([(one, state) for (one, _), state in zip(own, saved["own"], strict=False)])
            return _Items.go_on(self, saved)
        finally:
            put_streams(own)
            put_rng(rng)

    def _own(self) -> list[tuple[Any, Any]]:
        return streams_in([self.source, *self.args, *self.kwargs.values()])

    def own_streams(self) -> list[Any]:
        """Return the random generators that the source can reach."""
        return [one for one, _ in self._own()]

    def made(self, done: int) -> Iterator[Any]:
        """Make the source's iterator; ``done`` items of it are over."""
        if self.skip == "position":
            return iter(self.source(done, *self.args, **self.kwargs))
        called = isinstance(self.source, type) or not hasattr(self.source, "__iter__")
        items: Iterator[Any] = pinned(iter(self.source(*self.args, **self.kwargs) if called else self.source))
        return items

    def state_dict(self) -> dict[str, Any]:
        """Return the position."""
        return {"saved": self._saved if self._items is None else self._items.saved()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Stand at a position."""
        self._saved, self._items = state["saved"], None

    def __getstate__(self) -> dict[str, Any]:
        words = {name: getattr(self, name) for name in ("source", "args", "kwargs", "skip")}
        return {**words, "_items": None, "_saved": self.state_dict()["saved"]}


class _Items:
    """The items of a stream that has begun."""

    def __init__(self, stream: Stream, rng: Json, own: list[Any], *, done: int = 0, chain: str = "") -> None:
        self._rng, self._own, self._done = rng, own, done
        self._order: _Rest | None = None
        if stream.skip == "sampler":
            loader, self._order = _without(stream.source, done, chain)
            self._source = iter(loader)
        else:
            self._source = stream.made(done)
        if stream.skip == "replay":
            self._source = Replay(self._source, rng, own=stream.own_streams())

    def __next__(self) -> Any:
        item = next(self._source)
        self._done += 1
        if self._order is not None:
            self._order.delivered()
        return item

    def saved(self) -> dict[str, Any]:
        """Return all that another process needs to stand here."""
        found: dict[str, Any] = {"rng": self._rng, "own": self._own, "done": self._done}
        if self._order is not None:
            found["chain"] = self._order.chain
        if isinstance(self._source, Replay):
            found |= {"cursor": self._source.cursor(), "part": self._source.part()}
        return found

    @classmethod
    def go_on(cls, stream: Stream, saved: dict[str, Any]) -> _Items:
        """Stand where another process stood."""
        found = cls(stream, saved["rng"], saved["own"], done=saved["done"], chain=saved.get("chain", ""))
        if found._order is not None and found._done:
            found._order.begin()
        if isinstance(found._source, Replay):
            cursor = saved["cursor"]
            found._source.forward(cursor["delivered"], cursor["last"], saved["part"], _tell)
        return found


def _tell(text: str) -> None:
    from ._current import active_host

    host = active_host()
    if host is not None:
        host.tell(text)


def _without(loader: Any, done: int, chain: str) -> tuple[Any, _Rest]:
    """Return a loader whose sampler passes over what is done, and that sampler."""
    rest = copy.copy(loader)
    name = "batch_sampler" if loader.batch_sampler is not None else "sampler"
    order = rest.__dict__[name] = _Rest(getattr(loader, name), done, chain)
    return rest, order


class _Rest:
    """A sampler without its first indices. It begins when it is first asked, as a sampler does: that draws its seed.

    Workers ask for indices long before their batches are delivered, so the chain of fingerprints runs behind.
    """

    def __init__(self, sampler: Any, done: int, chain: str) -> None:
        self._sampler, self._done = sampler, done
        self._ahead: deque[str] = deque()
        self._indices: Iterator[Any] | None = None
        self._drawn, self.chain = "", chain

    def __len__(self) -> int:
        return len(self._sampler)

    def begin(self) -> Iterator[Any]:
        """Begin, once, and pass over what is done."""
        if self._indices is None:
            self._indices = iter(self._sampler)
            for _ in range(self._done):
                self._count(next(self._indices, None))
            if self._drawn != self.chain:
                raise ReplayError(
                    f"the first {self._done} batches of the sampler are not those that the run had seen. Give the "
                    "sampler a seed, or supersede the run"
                )
        return self._indices

    def __iter__(self) -> Iterator[Any]:
        for index in self.begin():
            self._count(index)
            self._ahead.append(self._drawn)
            yield index

    def _count(self, index: Any) -> None:
        self._drawn = fingerprint((self._drawn, index)).digest

    def delivered(self) -> None:
        """Note that the next batch has reached its reader."""
        self.chain = self._ahead.popleft()
