"""Finds the place of everything in a file before it is written, and copies what the loop is about to change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._types import FORMAT, Json
from ._arena import Arena
from ._heap import Heap
from ._image import SLICE
from ._layout import DIGESTS, HEAP, META, Dataset, Layout, lay_out
from ._seal import PAGE

SMALL = 1 << 14
"""Bytes under which an array that is not a variable's own is put with other small ones."""


class BlockLike(Protocol):
    """What the store needs to know of a block of memory."""

    data: NDArray[Any] | None
    place: str


@dataclass(slots=True)
class Staged:
    """A snapshot that is ready to be written."""

    path: Path
    layout: Layout
    digests: int
    """Room for digests."""
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


class Stager:
    """Stages the snapshots of one folder: what stays in memory keeps its place in the file."""

    def __init__(self) -> None:
        self._heap, self._arena = Heap(), Arena()
        self._room = _Room()

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
        arrays = [Dataset(f"vars/{name}", array.shape, array.dtype.str) for name, array in variables]
        large = sum(array.nbytes >= SLICE for _, array in variables)
        body = (*arrays[:large], Dataset(HEAP, (self._heap.capacity,), "u1"), *arrays[large:])
        blocks_at = [_address(one, offsets) for one in where]
        full = {**meta, "snapshot": path.stem, "format": FORMAT, "blocks": blocks_at}
        opened = json.dumps(full, ensure_ascii=False).encode().removesuffix(b"}")
        # Where the datasets begin is known once the room for this text is: it gets room for that, too.
        room = self._room.meta(len(opened) + 65 + sum(map(_named, variables)))
        layout = self._lay_out(room, body)
        offsets_text = json.dumps(_starts(layout), ensure_ascii=False).encode()
        text = (opened + b', "offsets": ' + offsets_text + b"}").ljust(room)
        start = layout.offsets[HEAP]
        extents = [(start + offsets[key], data) for key, data in heaped.items() if len(data)]
        extents += [(layout.offsets[f"vars/{name}"], _raw(array)) for name, array in variables if array.size]
        changing = [data for _, data in extents if not isinstance(data.obj, bytes)]
        copy = copy and self._arena.has_room(sum(map(len, changing)))
        if copy:
            copies = iter(self._arena.copy(changing))
            extents = [(offset, data if isinstance(data.obj, bytes) else next(copies)) for offset, data in extents]
        extents += [(offset, memoryview(part)) for offset, part in layout.parts if offset >= layout.body]
        facts = {key: [start + offsets[key], len(heaped[key])] for key in ("objects", "tables")}
        return Staged(path, layout, self._room.of_digests, extents, text, facts, is_copied=copy)

    def _lay_out(self, meta: int, body: tuple[Dataset, ...]) -> Layout:
        """Lay out a file with room for the digest of each slice; how many there are shows once it is laid out."""
        digests = self._room.digests(1)
        while True:
            layout = lay_out(meta, digests, body)
            needed = -(-(layout.size - layout.body) // SLICE)
            if needed <= digests:
                return layout
            digests = self._room.digests(needed)


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
