"""What lies beside the stream, and how it looks: the parts of a snapshot that are no objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Kind = Literal["numpy", "torch", "buffer"]


@dataclass(frozen=True, slots=True)
class Look:
    """How one piece looks at its block; the part of a piece that is stored."""

    kind: Kind
    block: int
    """Index of the block, -1 for an empty array."""
    offset: int
    """Bytes from the start of the block."""
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes for numpy, in elements for torch."""
    flags: dict[str, Any]

    def row(self) -> tuple[Any, ...]:
        """Return its fields, which pickle a good deal faster than the object."""
        return self.kind, self.block, self.offset, self.dtype, self.shape, self.strides, self.flags


@dataclass(frozen=True, slots=True)
class Layout:
    """How a block is made again; the part of a block that is stored."""

    nbytes: int
    maker: Literal["array", "torch", "bytes", "strided", "frozen", "filled", "input"]
    """``frozen`` and ``filled`` are the ``bytes`` and the ``bytearray`` that pickle would make of a buffer."""
    dtype: Any = None
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    order: Literal["C", "F"] = "C"
    name: str = ""
    """The input that holds these bytes, for ``input``."""
    turned: bool = False
    """Whether what is stored is the transpose of an array in Fortran order: its bytes as they lie in memory."""

    def row(self) -> tuple[Any, ...]:
        """Return its fields, which pickle a good deal faster than the object."""
        return (
            *(self.nbytes, self.maker, self.dtype, self.shape, self.strides),
            *(self.order, self.name, self.turned),
        )


@dataclass(slots=True)
class Block:
    """A run of bytes to be stored.

    Attributes
    ----------
    layout : Layout
        How it is made again.
    data : ndarray or None
        What is written, in C order: an array of the caller's (its transpose where that lies in C order), else bytes;
        None when an input holds them. It may have gaps, or lie in Fortran order where it has a place.
    place : str
        Name of the variable whose array it is, or empty.
    """

    layout: Layout
    data: NDArray[Any] | None
    place: str = ""

    @property
    def nbytes(self) -> int:
        """Number of bytes that are stored."""
        return 0 if self.data is None else int(self.data.nbytes)

    def fill(self, target: NDArray[Any]) -> None:
        """Copy the payload into an array of as many bytes, once, whatever the order of its own."""
        if self.data is not None:
            target.reshape(-1).view(self.data.dtype).reshape(self.data.shape)[...] = self.data

    def parts(self) -> Iterator[memoryview]:
        """Yield the payload in pieces: whole where it lies so, else copied a megabyte at a time."""
        if self.data is not None:
            yield from map(flat, _in_c_order(self.data))


def payload(block: Block) -> memoryview:
    """See the bytes of a block as they are stored: in C order. Of an array that lies otherwise they are a copy."""
    return memoryview(b"") if block.data is None else flat(np.ascontiguousarray(block.data))


def flat(array: NDArray[Any]) -> memoryview:
    """See the bytes of an array in C order."""
    return array.reshape(-1).view("u1").data


_PART = 1 << 20


def _in_c_order(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    if array.flags.c_contiguous or array.nbytes <= _PART:
        yield np.ascontiguousarray(array)
    elif array[0].nbytes > _PART:
        for row in array:
            yield from _in_c_order(row)
    else:
        rows = _PART // array[0].nbytes
        for start in range(0, len(array), rows):
            yield np.ascontiguousarray(array[start : start + rows])
