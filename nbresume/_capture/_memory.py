"""Arrays and tensors as pieces of memory blocks, so that what shared its bytes shares them again.

Every array met in the graph becomes a *piece*: a span of addresses and how to look at it. Pieces whose spans overlap
share a *block*, which is stored once, whoever owned it: numpy views of one base, torch tensors of one storage, and a
tensor made from an array alike. A view whose base is not saved keeps its own bytes alone.

A large buffer that an object offers to pickle is a piece too: Arrow columns over numpy's memory keep looking at it.

Strides survive, so that a restored array takes the same path through numpy's loops and gives the same bits.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import RefusedError
from ._blocks import Block, Bytes, Kind, Layout, Look
from ._torch import is_dense_tensor


@dataclass(slots=True)
class _Piece:
    low: int
    high: int
    value: Any
    kind: Kind
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    flags: dict[str, Any]


class Memory:
    """Collects pieces while the graph is walked and makes blocks of them afterwards."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self._pieces: list[_Piece] = []
        self._index: dict[int, int] = {}
        self._inputs = [(name, *bounds(value)) for name, value in inputs.items() if _spans(value)]

    def add_array(self, array: NDArray[Any]) -> int:
        """Take in a numpy array; returns its index."""
        low, high = bounds(array)
        flags = {"writeable": bool(array.flags.writeable)}
        return self._add(_Piece(low, high, array, "numpy", array.dtype, array.shape, array.strides, flags))

    def add_tensor(self, tensor: Any) -> int:
        """Take in a dense torch tensor; returns its index."""
        low, high = bounds(tensor)
        flags = {
            "device": "cpu" if tensor.is_cpu else str(tensor.device),
            "conj": bool(tensor.is_conj()),
            "neg": bool(tensor.is_neg()),
        }
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        return self._add(_Piece(low, high, tensor, "torch", tensor.dtype, shape, strides, flags))

    def add_buffer(self, raw: memoryview) -> int:
        """Take in the bytes of a buffer; returns its index."""
        seen = np.frombuffer(raw, "u1")
        low, high = bounds(seen)
        return self._add(_Piece(low, high, seen, "buffer", None, (raw.nbytes,), (1,), {"writeable": not raw.readonly}))

    def _add(self, piece: _Piece) -> int:
        index = self._index.get(id(piece.value))
        if index is None:
            index = self._index[id(piece.value)] = len(self._pieces)
            self._pieces.append(piece)
        return index

    def check_apart(self, loose: list[NDArray[Any]]) -> None:
        """Check that arrays which are pickled by themselves share memory with no other.

        Raises
        ------
        RefusedError
            Saved one by one, they would come back apart.
        """
        spans = [(piece.low, piece.high) for piece in self._pieces if piece.kind == "numpy"]
        for array in loose:
            low, high = bounds(array)
            if any(low < end and start < high for start, end in spans):
                what = "an array of objects" if array.dtype.hasobject else f"a {type(array).__name__}"
                raise RefusedError(
                    f"{what} shares memory with another array, and would come back apart from it",
                    "Keep one of the two, or a copy",
                )
            spans.append((low, high))

    def blocks(self, places: dict[int, str]) -> tuple[list[Block], list[Look], set[str]]:
        """Make blocks of the pieces.

        Parameters
        ----------
        places : dict of int to str
            ``id`` of a top-level array to its variable's name.

        Returns
        -------
        blocks : list of Block
        looks : list of Look
            One for each piece, by its index.
        joining : set of str
            Inputs that share only part of their bytes with the graph: they have to be saved with it.
        """
        blocks: list[Block] = []
        looks: list[Look | None] = [None] * len(self._pieces)
        joining: set[str] = set()
        for group in self._groups():
            block = self._block([self._pieces[i] for i in group], places, joining)
            low = min(self._pieces[i].low for i in group)
            if block.layout.maker == "input":
                low = next(start for name, start, _ in self._inputs if name == block.layout.name)
            for i in group:
                piece = self._pieces[i]
                empty = piece.low == piece.high
                offset = 0 if empty else _first_byte(piece) - low
                looks[i] = Look(
                    piece.kind,
                    -1 if empty else len(blocks),
                    offset,
                    piece.dtype,
                    piece.shape,
                    piece.strides,
                    piece.flags,
                )
            if block.layout.nbytes:
                blocks.append(block)
        return blocks, [look for look in looks if look is not None], joining

    def _groups(self) -> list[list[int]]:
        """Merge pieces whose spans overlap, on one device."""
        order = sorted(range(len(self._pieces)), key=lambda i: (self._device(i), self._pieces[i].low))
        groups: list[list[int]] = []
        device, high = "", -1
        for i in order:
            piece = self._pieces[i]
            if groups and self._device(i) == device and piece.low < high:
                groups[-1].append(i)
                high = max(high, piece.high)
            else:
                groups.append([i])
                device, high = self._device(i), piece.high
        # In the order of the walk: addresses differ each time for what a reduce makes on the spot.
        return sorted(groups, key=min)

    def _device(self, i: int) -> str:
        return str(self._pieces[i].flags.get("device", "cpu"))

    def _block(self, group: list[_Piece], places: dict[int, str], joining: set[str]) -> Block:
        low, high = (group[0].low, group[0].high) if len(group) == 1 else _span(group)
        on_cpu = group[0].flags.get("device", "cpu") == "cpu"
        for name, start, end in self._inputs if on_cpu else ():
            if low < end and start < high:
                if start <= low and high <= end:
                    return Block(Layout(end - start, "input", name=name), None)
                joining.add(name)
        if len(group) == 1 and on_cpu and group[0].kind == "torch":
            return Block(Layout(high - low, "torch"), bytes_at(low, high - low))
        if all(p.kind == "buffer" and (p.low, p.high) == (low, high) for p in group):
            is_frozen = not any(p.flags["writeable"] for p in group)
            return Block(Layout(high - low, "frozen" if is_frozen else "filled"), group[0].value)
        whole = [p for p in group if p.kind == "numpy" and (p.low, p.high) == (low, high) and _dense(p.value)]
        owner = next((p for p in whole if p.value.flags.owndata), whole[0] if whole else None)
        if owner is not None and _stored_natively(owner.dtype):
            order: Literal["C", "F"] = "C" if owner.value.flags.c_contiguous else "F"
            place = next((places[id(p.value)] for p in whole if id(p.value) in places), "")
            turned = order == "F" and not place  # a variable's own array reads as it is, with any HDF5 reader
            layout = Layout(high - low, "array", owner.dtype, owner.shape, order=order, turned=turned)
            return Block(layout, owner.value.T if turned else owner.value, place)
        first = group[0]
        if len(group) == 1 and first.kind == "numpy" and first.value.nbytes * 2 < high - low:
            layout = Layout(high - low, "strided", first.dtype, first.shape, first.strides)
            return Block(layout, first.value)
        if not on_cpu:
            return Block(Layout(high - low, "torch"), _device_bytes(first.value, low, high - low))
        maker: Literal["torch", "bytes"] = "torch" if all(p.kind == "torch" for p in group) else "bytes"
        return Block(Layout(high - low, maker), bytes_at(low, high - low))


def _span(group: list[_Piece]) -> tuple[int, int]:
    return min(p.low for p in group), max(p.high for p in group)


def bounds(value: Any) -> tuple[int, int]:
    """Return the first address of an array or dense tensor and the one behind its last byte."""
    if isinstance(value, np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(value) if value.size else (0, 0)
        return int(low), int(high)
    if not value.numel():
        return 0, 0
    low = int(value.data_ptr())
    if value.is_contiguous():
        return low, low + int(value.nbytes)
    last = sum((n - 1) * step for n, step in zip(value.shape, value.stride(), strict=True))
    return low, low + (last + 1) * int(value.element_size())


def share_memory_at(value: Any) -> int:
    """Return what arrays and tensors of one memory have in common: the address of the first byte of its owner."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        return bounds(value)[0]
    if is_dense_tensor(value) and value.device.type == "cpu" and value.numel():
        return int(value.untyped_storage().data_ptr())
    return 0


def _spans(value: Any) -> bool:
    if type(value) is np.ndarray:
        return bool(value.size)
    return is_dense_tensor(value) and value.device.type == "cpu" and bool(value.numel())


def _first_byte(piece: _Piece) -> int:
    """Address of the element at index zero; with negative strides it is not the lowest one."""
    if piece.kind == "numpy":
        return int(piece.value.__array_interface__["data"][0])
    return piece.low


def _dense(array: NDArray[Any]) -> bool:
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def _stored_natively(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iufcb" and dtype.itemsize <= 16 and dtype.isnative  # noqa: PLR2004  # complex128


def bytes_at(address: int, count: int) -> Bytes:
    """Look at memory that the pieces keep alive; the union of overlapping spans has no hole."""
    memory: Any = (ctypes.c_ubyte * count).from_address(address)
    seen: Bytes = np.frombuffer(memory, "u1")
    return seen


def _device_bytes(tensor: Any, low: int, count: int) -> Bytes:
    torch = sys.modules["torch"]
    storage = tensor.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, 0, (storage.nbytes(),), (1,))
    start = low - storage.data_ptr()
    part: Bytes = whole[start : start + count].cpu().numpy()
    return part
