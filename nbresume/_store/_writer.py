"""Writes the snapshots of a run, each over the bytes of one that is no longer needed where that saves writing.

A snapshot is written in two steps. *Staging* finds the place of everything in the file and, where the loop shall go on
at once, copies what is to be saved. *Committing* writes what the file underneath does not hold yet, makes it durable
and gives the file its name; it may happen in another thread, since it touches neither HDF5 nor the user's objects.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from .. import _fs
from .._types import FORMAT, Json
from ._arena import Arena
from ._heap import Heap
from ._image import SLICE, Known, cut, write
from ._layout import DIGESTS, HEAP, META, PAGE, SEAL, Layout, Variable, lay_out
from ._seal import Seal, sha256

SMALL = 1 << 14
"""Bytes under which an array that is not a variable's own is put with other small ones."""
_WORTH = 1 << 20
"""Bytes from which on a file is written over an older one: below, a new file costs one fsync of a folder less."""

Sign = Callable[[bytes], Json]


class BlockLike(Protocol):
    """What the store needs to know of a block of memory."""

    data: NDArray[Any] | None
    place: str


@dataclass(slots=True)
class Staged:
    """A snapshot that is ready to be written."""

    path: Path
    layout: Layout
    extents: list[tuple[int, memoryview]]
    meta: bytes
    """JSON, padded to its room."""
    facts: Json
    """Offset and bytes of the parts that a signature covers."""
    is_copied: bool
    """Whether what is saved may change before the snapshot is committed."""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.layout.size


class Writer:
    """Writes snapshots into one folder.

    Parameters
    ----------
    folder : Path
        Where they go.
    sign : callable
        Signs bytes; returns what the seal says of the signature.

    Attributes
    ----------
    keep_free : int
        Bytes that have to stay free on the disk.
    """

    def __init__(self, folder: Path, sign: Sign = lambda _: {}) -> None:
        self._folder, self._sign = folder, sign
        self._heap, self._arena = Heap(), Arena()
        self._room = _Room()
        self._known: dict[Path, Known] = {}
        self._newest: Path | None = None
        self._failed: Path | None = None
        self.keep_free = 0

    def stage(  # what a snapshot is made of
        self,
        path: Path,
        meta: Json,
        stream: bytes,
        tables: bytes,
        blocks: Sequence[BlockLike],
        *,
        copy: bool = False,
    ) -> Staged:
        """Find the place of everything.

        Parameters
        ----------
        path : Path
            Name of the snapshot.
        meta : dict
            JSON values: where the run stands.
        stream, tables : bytes
            The pickle stream and what belongs to it.
        blocks : sequence of BlockLike
            Memory that lies beside the stream.
        copy : bool
            Whether the memory is copied, so that it may change before the snapshot is committed. Where there is too
            little memory for that, it is not.
        """
        small: list[memoryview] = []
        where, variables, heaped = _sort(blocks, small)
        heaped = {"objects": memoryview(stream), "tables": memoryview(tables), "small": _joined(small), **heaped}
        growing = frozenset({"objects", "tables", "small"})
        offsets = self._heap.place({key: len(data) for key, data in heaped.items()}, growing)
        schema = tuple(Variable(name, array.shape, array.dtype.str) for name, array in variables)
        blocks_at = [_address(one, offsets) for one in where]
        full = {**meta, "snapshot": path.stem, "format": FORMAT, "blocks": blocks_at}
        # Where the datasets begin is known once the room for this text is: it gets room for that, too.
        room = self._room.meta(len(json.dumps(full, ensure_ascii=False).encode()) + 64 + sum(map(_named, variables)))
        layout = self._lay_out(schema, room)
        text = json.dumps({**full, "offsets": _starts(layout)}, ensure_ascii=False).encode().ljust(room)
        start = layout.offsets[HEAP]
        extents = [(start + offsets[key], data) for key, data in heaped.items() if len(data)]
        extents += [(layout.offsets[f"vars/{name}"], _raw(array)) for name, array in variables]
        copy = copy and self._arena.has_room(sum(len(data) for _, data in extents))
        if copy:
            copies = self._arena.copy(data for _, data in extents)
            extents = [(offset, data) for (offset, _), data in zip(extents, copies, strict=True)]
        extents += [(offset, memoryview(part)) for offset, part in layout.parts if offset >= layout.body]
        facts = {key: [start + offsets[key], len(heaped[key])] for key in ("objects", "tables")}
        return Staged(path, layout, extents, text, facts, copy)

    def _lay_out(self, schema: tuple[Variable, ...], meta: int) -> Layout:
        """Lay out a file with room for the digest of each slice; how many there are shows once it is laid out."""
        digests = self._room.digests(1)
        while True:
            layout = lay_out(schema, meta, digests, self._heap.capacity)
            needed = -(-(layout.size - layout.body) // SLICE)
            if needed <= digests:
                return layout
            digests = self._room.digests(needed)

    def commit(self, staged: Staged, retired: Path | None = None, check: Callable[[], None] = lambda: None) -> int:
        """Write a staged snapshot and give it its name.

        Parameters
        ----------
        staged : Staged
            What is to be written.
        retired : Path, optional
            A snapshot that is no longer needed, and may be written over.
        check : callable, optional
            Called before the file gets its name; what it raises leaves nothing.

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
        layout, newest = staged.layout, self._known.get(self._newest) if self._newest else None
        recycle = retired if retired in self._known and layout.size >= _WORTH else None
        clone = self._newest if layout.size >= _WORTH else None
        with _fs.draft(
            staged.path, clone=clone, recycle=recycle, needed=layout.size, keep_free=self.keep_free, check=check
        ) as draft:
            under = self._known[draft.holds] if draft.holds is not None else Known()
            if draft.holds is not None and draft.holds == recycle:
                del self._known[recycle]
            draft.resize(layout.size)
            known = write(draft, cut(staged.extents, layout.body, layout.size), layout.body, under, newest or Known())
            head = _head(staged, known)
            draft.put(SEAL, [memoryview(head)])
            draft.put(0, [memoryview(self._seal(staged, head, known).page())])
        self._known[staged.path], self._newest, self._failed = known, staged.path, None
        return draft.written

    def _clean_up(self) -> None:
        """Remove what a commit that failed has left: a disk that had died kept that as well."""
        if self._failed is not None:
            with contextlib.suppress(OSError):  # then it is tried again
                _fs.remove(self._failed)
                _fs.remove_leftovers(self._folder)

    def forget(self, path: Path) -> None:
        """Learn that a snapshot is gone."""
        self._known.pop(path, None)
        self._newest = None if self._newest == path else self._newest

    def _seal(self, staged: Staged, head: bytes, known: Known) -> Seal:
        layout = staged.layout
        inside = dict(staged.extents)
        facts: Json = {
            "snapshot": staged.path.stem,
            "size": layout.size,
            "body": layout.body,
            "digests": [layout.offsets[DIGESTS], len(known.slices)],
            "head": xxhash.xxh3_128_hexdigest(head),
            "meta": [layout.offsets[META], len(staged.meta), sha256(staged.meta)],
        }
        for name, (offset, size) in staged.facts.items():
            facts[name] = [offset, size, sha256(inside.get(offset, memoryview(b"")))]
        seal = Seal(facts, {})
        return Seal(facts, self._sign(seal.signed()))


class _Room:
    """How much is set aside for the JSON and the digests: as much as before, as long as it is enough."""

    def __init__(self) -> None:
        self._meta = self.of_digests = 0

    def meta(self, needed: int) -> int:
        if not needed <= self._meta <= 16 * needed:
            self._meta = -(-needed * 3 // 2 // PAGE) * PAGE
        return self._meta

    def digests(self, needed: int) -> int:
        if not needed <= self.of_digests <= 4 * needed + PAGE:
            self.of_digests = -(-needed * 5 // 4 // 64) * 64
        return self.of_digests


def _head(staged: Staged, known: Known) -> bytes:
    """Put together what lies between the seal and the body: HDF5's own bytes, the JSON, the digests."""
    layout = staged.layout
    head = bytearray(layout.body - SEAL)

    def put(offset: int, data: bytes) -> None:
        head[offset - SEAL : offset - SEAL + len(data)] = data

    for offset, part in layout.parts:
        if offset < layout.body:
            put(offset, part)
    put(layout.offsets[META], staged.meta)
    put(layout.offsets[DIGESTS], b"".join(one.digest for one in known.slices))
    return bytes(head)


def _sort(
    blocks: Sequence[BlockLike], small: list[memoryview]
) -> tuple[list[Any], list[tuple[str, NDArray[Any]]], dict[Any, memoryview]]:
    """Sort blocks into datasets of their own, large ones in the heap, and small ones."""
    where: list[Any] = []
    variables: list[tuple[str, NDArray[Any]]] = []
    heaped: dict[Any, memoryview] = {}
    used = 0
    for block in blocks:
        data = block.data
        if data is None:
            where.append(None)
            continue
        array = np.ascontiguousarray(data).reshape(data.shape)  # ascontiguousarray makes an array of a 0-d one
        if block.place.isidentifier():
            where.append(f"vars/{block.place}")
            variables.append((block.place, array))
            continue
        view = _raw(array)
        if array.nbytes < SMALL:
            where.append(("small", used))
            small.append(view)
            used += array.nbytes
        else:
            key = (int(array.__array_interface__["data"][0]), array.nbytes)
            where.append((key, 0))
            heaped[key] = view
    # Large ones first: those that may change their size lie behind, and move nothing.
    return where, sorted(variables, key=lambda one: (-one[1].nbytes, one[0])), heaped


def _address(one: Any, offsets: dict[Any, int]) -> list[Any]:
    """Tell where a block lies: a dataset, and an offset in it."""
    if one is None:
        return ["", 0]
    if isinstance(one, str):
        return [one, 0]
    key, at = one
    return [HEAP, offsets[key] + at]


def _named(variable: tuple[str, NDArray[Any]]) -> int:
    return len(variable[0].encode()) + 32


def _starts(layout: Layout) -> dict[str, int]:
    """Tell where the datasets begin that hold blocks."""
    return {name: offset for name, offset in layout.offsets.items() if name not in (META, DIGESTS)}


def _raw(array: NDArray[Any]) -> memoryview:
    """See the bytes of an array; it is contiguous."""
    return array.reshape(-1).view("u1").data


def _joined(parts: list[memoryview]) -> memoryview:
    return memoryview(b"".join(parts))
