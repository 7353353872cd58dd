"""Blocks made again, and the arrays, tensors and buffers that look at them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._blocks import Bytes, Layout, Look
from ._memory import bounds, bytes_at


def allocate(layout: Layout) -> tuple[Any, NDArray[Any]]:
    """Make an empty block.

    Returns
    -------
    home : ndarray or torch.Tensor
        What keeps the memory.
    target : ndarray
        Where the stored bytes are to be read to, in C order and shaped as they are stored.
    """
    if layout.maker == "array":
        home = np.empty(layout.shape, layout.dtype, order=layout.order)
        if layout.order == "F" and not layout.turned:
            return home, np.empty(layout.shape, layout.dtype)
        return home, home.T if layout.turned else home
    if layout.maker == "frozen":
        # Nobody has seen it yet: filling it now is what the C API has for making bytes.
        frozen = bytes(layout.nbytes)
        return frozen, bytes_at(bounds(np.frombuffer(frozen, "u1"))[0], layout.nbytes)
    if layout.maker == "filled":
        filled = bytearray(layout.nbytes)
        return filled, np.frombuffer(filled, "u1")
    if layout.maker == "torch":
        tensor = sys.modules["torch"].empty(layout.nbytes, dtype=sys.modules["torch"].uint8)
        return tensor, tensor.numpy()
    if layout.maker == "strided":
        count = int(np.prod(layout.shape, dtype="i8")) * layout.dtype.itemsize
        return np.zeros(layout.nbytes, "u1"), np.empty(count, "u1")
    home = np.empty(layout.nbytes, "u1")
    return home, home


def settle(layout: Layout, home: Any, target: NDArray[Any]) -> None:
    """Put bytes that were stored otherwise than they lie where they belong."""
    if layout.maker == "array" and layout.order == "F" and not layout.turned:
        home[...] = target
    if layout.maker == "strided":
        low = sum(min(0, (n - 1) * step) for n, step in zip(layout.shape, layout.strides, strict=True))
        view = np.ndarray(layout.shape, layout.dtype, home, -low, layout.strides)
        view[...] = target.view(layout.dtype).reshape(layout.shape)


def look_at(look: Look, home: Any) -> Any:
    """Make the array or tensor that looks at a block."""
    if look.kind == "numpy":
        return _numpy_look(look, home)
    torch = sys.modules["torch"]
    if home is None:
        return torch.empty_strided(look.shape, look.strides, dtype=look.dtype, device=look.flags["device"])
    if isinstance(home, np.ndarray):
        home = torch.from_numpy(_as_bytes(home))
    if look.flags["device"] != "cpu":
        home = home.to(look.flags["device"])
    tensor = torch.empty(0, dtype=look.dtype, device=home.device)
    start = home.storage_offset() * home.element_size() + look.offset
    tensor.set_(home.untyped_storage(), start // tensor.element_size(), look.shape, look.strides)
    tensor = tensor.conj() if look.flags["conj"] else tensor
    return tensor._neg_view() if look.flags["neg"] else tensor  # noqa: SLF001  # torch has no public word for it


def buffer_at(look: Look, home: Any) -> Any:
    """Make the buffer that an object is given back: ``bytes`` or a ``bytearray`` where it has its block for itself."""
    if isinstance(home, (bytes, bytearray)):
        return home
    if not isinstance(home, np.ndarray):
        home = home.detach().numpy()
    return _as_bytes(home)[look.offset : look.offset + look.shape[0]].data


def _numpy_look(look: Look, home: Any) -> NDArray[Any]:
    if home is None:
        array = np.empty(look.shape, look.dtype)
    elif _is_whole(look, home):
        array = home
    else:
        if not isinstance(home, np.ndarray):
            home = home.detach().numpy()
        array = np.ndarray(look.shape, look.dtype, _as_bytes(home), look.offset, look.strides)
    if not look.flags["writeable"]:
        array = array.view() if array is home else array
        array.flags.writeable = False
    return array


def _is_whole(look: Look, home: Any) -> bool:
    return (
        isinstance(home, np.ndarray)
        and look.offset == 0
        and (home.dtype, home.shape, home.strides) == (look.dtype, look.shape, look.strides)
    )


def _as_bytes(array: NDArray[Any]) -> Bytes:
    """See the bytes of a dense array in the order of its memory."""
    flat = array if array.flags.c_contiguous else array.T
    return flat.reshape(-1).view("u1")
