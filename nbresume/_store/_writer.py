"""Writes the snapshots of a run: whole ones, or only what has changed since the one before.

A snapshot is written in two steps. *Staging* finds the place of everything and, where the loop shall go on at once,
copies what is to be saved. *Committing* writes it, makes it durable and gives the file its name; it may happen in
another thread, since it touches neither HDF5 nor the user's objects.

A *whole* file is written over the bytes of one that is no longer needed, or over a clone of the newest where the file
system makes clones: then only the slices that differ are written. Where little has changed, in many places, seeking
them in a file takes longer than writing them in a row: such a snapshot is a *delta*, and names the one that it is
built on. A few deltas are followed by a whole file.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np
import xxhash

from .. import _fs
from .._types import Json
from ._image import SLICE, Extent, Image, Known, Runs, cut, digest, part_of, without_gaps
from ._keys import Keys
from ._layout import DIGESTS, META, PIECES, RUNS, Dataset, Layout, lay_out
from ._parallel import in_order, threads_for
from ._seal import PAGE, SEAL, Seal, page_digest, sha256
from ._staging import BlockLike, Staged, Stager

_WORTH = 1 << 20
"""Bytes from which on a file is written over an older one: below, a new file costs one fsync of a folder less."""
_LARGE = 1 << 24
"""Bytes from which on a snapshot may be a delta."""
_SHARE = 4
"""A delta holds at most this part of the whole, and all that are built on each other twice as much."""
_LONGEST = 12
"""Deltas that are built on one whole file."""
_FIRST_RUNG = 1 << 16


Mark = tuple[int, int, int] | None


@dataclass(slots=True)
class _Chain:
    """The newest snapshot, and what it is built on."""

    path: Path
    seal: str
    """Digest of its first page."""
    image: Known
    below: tuple[Path, ...] = ()
    """What it is built on, the whole file first."""
    written: int = 0
    """Bytes of the deltas."""


class Writer:
    """Writes snapshots into one folder, and signs them with the key that is this user's at its start.

    Attributes
    ----------
    keep_free : int
        Bytes that have to stay free on the disk.
    check : callable
        Called before a file gets its name; what it raises leaves nothing.
    """

    def __init__(self) -> None:
        self.keep_free = 0
        self.check: Callable[[], None] = lambda: None
        self._failed: Path | None = None
        self._key = Keys.find().own
        self._stager = Stager()
        self._files: dict[Path, Known] = {}
        """Whole files that were written here, and what they hold."""
        self._marks: dict[Path, Mark] = {}
        """What all files looked like when they had been written."""
        self._newest: _Chain | None = None
        self._newest_file: Path | None = None
        self._clones = False
        """Whether the file system makes clones."""
        self._is_sparse = False
        """Whether a delta would have been enough for a commit."""
        self._prepared = (0, 0, 0)
        """Rooms for which the layouts of deltas are known."""

    def stage(
        self,
        path: Path,
        meta: Json,
        stream: bytes,
        tables: bytes,
        blocks: Sequence[BlockLike],
        *,
        copy: bool = False,
    ) -> Staged:
        """Find the place of everything, see ``Stager.stage``."""
        staged = self._stager.stage(path, meta, stream, tables, blocks, copy=copy)
        rooms = (len(staged.meta), staged.digests, staged.size)
        if self._is_sparse and rooms != self._prepared:
            for rung in _rungs(staged.size):
                _delta_layout(staged, rung)  # HDF5 works now, and not in the thread that commits
            self._prepared = rooms
        return staged

    def commit(self, staged: Staged, retired: Path | None = None, *, whole: bool = False) -> int:
        """Write a staged snapshot and give it its name.

        Parameters
        ----------
        staged : Staged
            What is to be written.
        retired : Path, optional
            A snapshot that is no longer needed, and may be written over.
        whole : bool
            Whether it has to stand by itself.

        Returns
        -------
        int
            Bytes written.

        Raises
        ------
        StoreError
            When the disk refuses; nothing is left under the final name.
        """
        self._clean_up()
        self._failed = staged.path
        written = self._write(staged, retired, whole=whole)
        self._failed = None
        self._marks[staged.path] = _mark(staged.path)
        return written

    def _write(self, staged: Staged, retired: Path | None, *, whole: bool) -> int:
        body = staged.layout.body
        slices = list(cut(staged.extents, body, staged.size))
        newest = self._newest.image if self._newest is not None else Known()
        # What is staged by a copy is written beside the loop, which has a use for the other processors itself.
        threads = 1 if staged.is_copied else threads_for(staged.size)
        with in_order(digest, slices, threads) as digests:
            image = Image(slices, body, newest, digests)
            runs = image.changes(staged.size // _SHARE) if self._may_build(staged) else None
            self._is_sparse = self._is_sparse or runs is not None
            is_prepared = (len(staged.meta), staged.digests, staged.size) == self._prepared
            if runs is not None and not whole and is_prepared and (rung := _fitting(staged, runs.values())):
                return self._write_delta(staged, image, runs, rung)
            return self._write_whole(staged, image, retired)

    @property
    def base(self) -> str:
        """What the newest snapshot is built on; empty where it stands by itself."""
        return self._newest.below[-1].stem if self._newest is not None and self._newest.below else ""

    def _clean_up(self) -> None:
        """Remove what a commit that failed has left: a disk that had died kept that as well."""
        if self._failed is not None:
            with contextlib.suppress(OSError):  # then it is tried again
                _fs.remove(self._failed)
                _fs.remove_leftovers(self._failed.parent)

    def forget(self, path: Path) -> None:
        """Learn that a snapshot is gone."""
        self._marks.pop(path, None)
        self._files.pop(path, None)
        if self._newest_file == path:
            self._newest_file = None
        if self._newest is not None and self._newest.path == path:
            self._newest = None

    def disown(self, path: Path) -> None:
        """Learn that a file does not hold what was written: it goes, and nothing is built on it."""
        self.forget(path)
        self._failed = path
        self._clean_up()

    def _is_untouched(self, *paths: Path) -> bool:
        """Whether files are still those that were written: nothing is built on one that somebody has changed."""
        return all(path in self._marks and _mark(path) == self._marks[path] for path in paths)

    def _may_build(self, staged: Staged) -> bool:
        newest = self._newest
        return (
            newest is not None
            and staged.size >= _LARGE
            and not self._clones
            and newest.image.body == staged.layout.body
            and newest.image.size == staged.size
            and len(newest.below) < _LONGEST
            and newest.written < staged.size * 2 // _SHARE
            and self._is_untouched(newest.path, *newest.below)
        )

    # ------------------------------------------------------------------ whole

    def _write_whole(self, staged: Staged, image: Image, retired: Path | None) -> int:
        layout = staged.layout
        recycle = clone = None
        if layout.size >= _WORTH and retired in self._files and self._is_untouched(retired):
            recycle = retired
        if layout.size >= _LARGE and self._newest_file is not None and self._is_untouched(self._newest_file):
            clone = self._newest_file
        with _fs.draft(
            staged.path, clone=clone, recycle=recycle, needed=layout.size, keep_free=self.keep_free, check=self.check
        ) as draft:
            under = self._files[draft.holds] if draft.holds is not None else Known()
            if draft.holds is not None and draft.holds == recycle:
                del self._files[recycle]
            draft.resize(layout.size)
            known = image.write(draft, under)
            head = _head(staged, layout, known)
            draft.put(SEAL, [memoryview(head)])
            page = self._page({**_facts(staged, layout, head, known), **_signed_parts(staged)})
            draft.put(0, [memoryview(page)])
        if clone is not None:
            self._clones = draft.holds == clone
        self._files[staged.path] = known
        self._newest, self._newest_file = _Chain(staged.path, page_digest(page), known), staged.path
        return draft.written

    # ------------------------------------------------------------------ only what has changed

    def _write_delta(self, staged: Staged, image: Image, runs: dict[int, Runs], rung: int) -> int:
        assert self._newest is not None  # noqa: S101  # a delta is built on it
        newest, layout, known = self._newest, _delta_layout(staged, rung), image.known()
        all_runs = [(known.body + index * SLICE + low, high - low) for index, one in runs.items() for low, high in one]
        places = np.array(all_runs, "<u8").reshape(-1, 2)
        extents = [(offset, memoryview(part)) for offset, part in layout.parts if offset >= layout.body]
        extents.append((layout.offsets[RUNS], places.reshape(-1).view("u1").data))
        end = layout.offsets[PIECES] + sum(size for _, size in all_runs)
        hasher = xxhash.xxh3_128()
        with _fs.draft(staged.path, needed=end, keep_free=self.keep_free, check=self.check) as draft:
            draft.resize(layout.size)
            offset = layout.body
            extents.sort(key=itemgetter(0))
            whole = heapq.merge(extents, _pieces(image, runs, layout.offsets[PIECES]), key=itemgetter(0))
            for data in without_gaps(whole, layout.body, layout.size):
                hasher.update(data)
                if offset < end:  # behind it are zeros, which a new file has by itself
                    draft.put(offset, [data])
                offset += len(data)
            head = _head(staged, layout, known)
            draft.put(SEAL, [memoryview(head)])
            facts = {
                **_facts(staged, layout, head, known),
                **_signed_parts(staged),
                "base": [newest.path.stem, newest.seal],
                "image": [known.body, known.size],
                "runs": [layout.offsets[RUNS], len(places)],
                "pieces": layout.offsets[PIECES],
                "delta": hasher.hexdigest(),
            }
            page = self._page(facts)
            draft.put(0, [memoryview(page)])
        below = (*newest.below, newest.path)
        self._newest = _Chain(staged.path, page_digest(page), known, below, newest.written + draft.written)
        return draft.written

    def _page(self, facts: Json) -> bytes:
        signature = {"key": self._key.ident, "hmac": self._key.sign(*Seal(facts, {}).signed())}
        return Seal(facts, signature).page()


def _mark(path: Path) -> Mark:
    """Tell a file from what it becomes when somebody writes to it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _rungs(size: int) -> list[int]:
    """Rooms for what has changed: each is another layout, so there are few of them."""
    rungs = [_FIRST_RUNG]
    while rungs[-1] < size // _SHARE:
        rungs.append(rungs[-1] * 2)
    return rungs


def _fitting(staged: Staged, runs: Iterable[Runs]) -> int:
    """Return the smallest rung that holds the runs; 0 where none does."""
    sizes = [high - low for one in runs for low, high in one]
    needed = max(sum(sizes), len(sizes) * PAGE)
    return next((rung for rung in _rungs(staged.size) if rung >= needed), 0)


def _pieces(image: Image, runs: Mapping[int, Runs], at: int) -> Iterator[Extent]:
    """Yield what has changed of each slice; at once, since that is in many small parts."""
    for index, those in runs.items():
        parts = [piece for low, high in those for piece in part_of(image.slices[index], low, high)]
        data = parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
        yield at, data
        at += len(data)


def _delta_layout(staged: Staged, rung: int) -> Layout:
    body = (Dataset(RUNS, (rung // PAGE, 2), "<u8"), Dataset(PIECES, (rung,), "u1"))
    return lay_out(len(staged.meta), staged.digests, body)


def _head(staged: Staged, layout: Layout, known: Known) -> bytes:
    """Put together what lies between the seal and the body: HDF5's own bytes, the JSON, the digests."""
    head = bytearray(layout.body - SEAL)

    def put(offset: int, data: bytes) -> None:
        head[offset - SEAL : offset - SEAL + len(data)] = data

    for offset, part in layout.parts:
        if offset < layout.body:
            put(offset, part)
    put(layout.offsets[META], staged.meta)
    put(layout.offsets[DIGESTS], b"".join(one.digest for one in known.slices))
    return bytes(head)


def _facts(staged: Staged, layout: Layout, head: bytes, known: Known) -> Json:
    return {
        "snapshot": staged.path.stem,
        "size": layout.size,
        "body": layout.body,
        "digests": [layout.offsets[DIGESTS], len(known.slices)],
        "head": xxhash.xxh3_128_hexdigest(head),
        "meta": [layout.offsets[META], len(staged.meta), sha256(staged.meta)],
    }


def _signed_parts(staged: Staged) -> Json:
    """Digest what is unpickled so that nobody can make other bytes with the same digest."""
    inside = dict(staged.extents)
    return {
        name: [offset, size, sha256(inside.get(offset, memoryview(b"")))]
        for name, (offset, size) in staged.facts.items()
    }
