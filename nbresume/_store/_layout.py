"""Where everything lies in a snapshot, and the bytes by which any HDF5 reader finds it.

HDF5 lays a file out once for a schema, into memory. From then on the file is written without HDF5: its own bytes are
known, and so is where the arrays go. That keeps HDF5 out of the loop's time (it takes 0.1 ms a dataset), and its lock
out of a process whose code may fork at any moment.
"""

from __future__ import annotations

import functools
import io
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._seal import PAGE, SEAL

META, DIGESTS, HEAP = "nbresume/meta", "nbresume/digests", "nbresume/heap"
RUNS, PIECES = "nbresume/runs", "nbresume/pieces"


class Dataset(NamedTuple):
    """An array in the file."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies in a file.

    Attributes
    ----------
    size : int
        Of the file, in bytes.
    body : int
        Where what changes begins; before it lie the seal, the JSON and the digests.
    offsets : dict of str to int
        Where the bytes of each dataset begin.
    parts : tuple of (int, bytes)
        What HDF5 itself writes, by offset.
    """

    size: int
    body: int
    offsets: dict[str, int]
    parts: tuple[tuple[int, bytes], ...]


@functools.lru_cache(maxsize=48)
def lay_out(meta: int, digests: int, body: tuple[Dataset, ...]) -> Layout:
    """Let HDF5 lay out a file.

    Parameters
    ----------
    meta : int
        Bytes of the JSON.
    digests : int
        Digests of 16 bytes.
    body : tuple of Dataset
        What follows, in the order in which it lies in the file.

    Returns
    -------
    Layout
    """
    import h5py
    from h5py import h5f, h5p

    file = _Written()
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_V110, h5f.LIBVER_V110)  # its own bytes carry checksums; 'earliest' has none
    access.set_alignment(PAGE, PAGE)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, file)
    making = h5p.create(h5p.FILE_CREATE)
    making.set_userblock(SEAL)
    making.set_file_space_strategy(h5f.FSPACE_STRATEGY_NONE, False, 1)  # no small thing in an older gap
    handle = h5f.create(b"snapshot", h5f.ACC_TRUNC, fapl=access, fcpl=making)
    plan = (Dataset(META, (meta,), "u1"), Dataset(DIGESTS, (digests, 16), "u1"), *body)
    offsets = {one.name: _dataset(handle, *one) for one in plan}
    handle.close()
    parts = tuple(sorted(file.parts.items()))
    return Layout(file.end, offsets[body[0].name], offsets, parts)


def _dataset(file: Any, name: str, shape: tuple[int, ...], dtype: str) -> int:
    from h5py import h5d, h5p, h5s, h5t

    creating = h5p.create(h5p.DATASET_CREATE)
    creating.set_layout(h5d.CONTIGUOUS)
    creating.set_alloc_time(h5d.ALLOC_TIME_EARLY)  # else no bytes are set aside for it
    creating.set_fill_time(h5d.FILL_TIME_NEVER)
    creating.set_obj_track_times(False)
    linking = h5p.create(h5p.LINK_CREATE)
    linking.set_create_intermediate_group(True)
    linking.set_char_encoding(h5t.CSET_UTF8)
    space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
    kind = h5t.py_create(np.dtype(dtype), logical=True)
    made = h5d.create(file, name.encode(), kind, space, dcpl=creating, lcpl=linking)
    return int(made.get_offset())


class _Written(io.RawIOBase):
    """Takes what HDF5 writes, and remembers only that."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.end = 0
        self._at = 0

    def write(self, data: Any) -> int:
        """Remember bytes at the place where they go."""
        self.parts[self._at] = bytes(data)
        self._at += len(data)
        self.end = max(self.end, self._at)
        return len(data)

    def readinto(self, target: Any) -> int:
        """Read zeros: HDF5 reads nothing back that it has not written."""
        target[:] = bytes(len(target))
        return len(target)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.end}[whence]
        return self._at

    def truncate(self, size: int | None = None) -> int:
        """Learn how long the file is."""
        self.end = self._at if size is None else size
        return self.end
