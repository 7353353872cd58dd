"""What comes from outside: listings of folders are pinned, and an order that nobody can tell is named."""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Iterator
from typing import Any, Self

from ..errors import ReplayError
from ._skip import is_bar

_MODULE_WALKS = "torch.nn.modules.module"


def pinned(iterator: Any) -> Any:
    """Return an iterator over the same items that knows its position; the same one where that is not known how.

    A listing of a folder is taken when the loop is entered, as for the first snapshot it has to be: the body may go on
    to put files there. ``os.walk`` goes on to look into each folder when it comes to it.
    """
    if type(iterator) in (zip, enumerate):
        kind, arguments, *_ = iterator.__reduce__()
        parts = [pinned(part) for part in arguments]
        return kind(*parts) if any(new is not old for new, old in zip(parts, arguments, strict=True)) else iterator
    if type(iterator).__name__ == "ScandirIterator":
        return Entries(list(iterator))
    if is_listing(iterator) or _home(iterator) == _MODULE_WALKS:
        return iter(list(iterator))
    if _is_walk(iterator):
        words = iterator.gi_frame.f_locals
        if words["topdown"]:
            return Walk(words["top"], words["onerror"], follow_links=words["followlinks"])
        return iter(list(iterator))
    return iterator


def is_listing(iterator: Any) -> bool:
    """Whether an iterator lists files of a folder."""
    return _home(iterator).partition(".")[0] in ("glob", "pathlib") and iterator.gi_code.co_name != "walk"


def _is_walk(iterator: Any) -> bool:
    is_walk = _home(iterator) == "os" and iterator.gi_code.co_name in ("walk", "_walk")
    return is_walk and inspect.getgeneratorstate(iterator) == inspect.GEN_CREATED


def _home(iterator: Any) -> str:
    """Return the module of a generator's code."""
    frame = iterator.gi_frame if isinstance(iterator, types.GeneratorType) else None
    return str(frame.f_globals.get("__name__", "")) if frame is not None else ""


class Entries:
    """The entries of a folder, as ``os.scandir`` gives them; in another process they are looked up by name."""

    def __init__(self, entries: list[os.DirEntry[Any]]) -> None:
        self.paths = [entry.path for entry in entries]
        self.place = 0
        self._entries: list[os.DirEntry[Any]] | None = entries

    def __getstate__(self) -> dict[str, Any]:
        return {"paths": self.paths, "place": self.place, "_entries": None}

    def __iter__(self) -> Iterator[os.DirEntry[Any]]:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give nothing any more, as after ``with os.scandir(...)``."""
        self.place = len(self.paths)

    def __next__(self) -> os.DirEntry[Any]:
        if self.place >= len(self.paths):
            raise StopIteration
        if self._entries is None:
            self._entries = _look_up(self.paths, self.place)
        self.place += 1
        return self._entries[self.place - 1]


def _look_up(paths: list[Any], start: int) -> list[os.DirEntry[Any]]:
    there = {entry.path: entry for entry in os.scandir(os.path.dirname(paths[0]) or ".")}  # noqa: PTH120  # str or bytes
    there |= {os.path.basename(path): entry for path, entry in there.items() if path not in paths}  # noqa: PTH119
    gone = [path for path in paths[start:] if path not in there]
    if gone:
        raise ReplayError(
            f"{os.fsdecode(gone[0])} is not there any more, and the loop over the folder had not come to it. Put it "
            "back, or loop over sorted(os.listdir(...))"
        )
    return [there.get(path) for path in paths]  # type: ignore[misc]  # those passed over are not asked for


class Walk:
    """What ``os.walk`` gives from the top down, folder by folder, each looked into when it is come to."""

    def __init__(self, top: Any, on_error: Any, *, follow_links: bool) -> None:
        self.waiting, self.on_error, self.follow_links = [top], on_error, follow_links
        self.open: tuple[Any, list[Any]] | None = None

    def __iter__(self) -> Walk:
        return self

    def __next__(self) -> tuple[Any, list[Any], list[Any]]:
        self._enter_folders()
        while self.waiting:
            top = self.waiting.pop()
            found = next(os.walk(top, onerror=self.on_error, followlinks=self.follow_links), None)
            if found is not None:
                self.open = (top, found[1])
                return found
        raise StopIteration

    def _enter_folders(self) -> None:
        """Take the folders that the body has left in the list it was given."""
        if self.open is None:
            return
        top, names = self.open
        self.open = None
        paths = [os.path.join(top, name) for name in names]  # noqa: PTH118  # what os.walk gives
        self.waiting += [path for path in reversed(paths) if self.follow_links or not os.path.islink(path)]  # noqa: PTH114


_ANY_ORDER = {
    "concurrent.futures._base.as_completed": "concurrent.futures.as_completed",
    "asyncio.tasks.as_completed": "asyncio.as_completed",
    "multiprocessing.pool.IMapUnorderedIterator": "Pool.imap_unordered",
    "distributed.client.as_completed": "dask.distributed.as_completed",
}


def any_order(iterator: Any) -> str:
    """Name what gives its items in the order in which they get ready, here or inside a bar; empty for all else."""
    return next(filter(None, (_ANY_ORDER.get(_known_as(one), "") for one in _inside(iterator))), "")


def keeps_workers(iterator: Any) -> bool:
    """Whether a loader inside keeps its workers from one loop to the next, and with them their random streams."""
    return any(
        getattr(one, "_persistent_workers", getattr(one, "persistent_workers", False)) for one in _inside(iterator)
    )


def _inside(iterator: Any) -> Iterator[Any]:
    """Yield the iterators, or iterables, that a loop's iterator gives the items of."""
    if type(iterator) in (zip, enumerate):
        for part in iterator.__reduce__()[1]:
            yield from _inside(part)
        return
    bar: Any = inspect.getgeneratorlocals(iterator).get("self") if isinstance(iterator, types.GeneratorType) else None
    if is_bar(bar):
        yield from _inside(bar.iterable)
    else:
        yield iterator


def _known_as(iterator: Any) -> str:
    if isinstance(iterator, types.GeneratorType):
        return f"{_home(iterator)}.{iterator.gi_code.co_name}"
    return f"{type(iterator).__module__}.{type(iterator).__qualname__}"
