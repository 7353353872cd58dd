"""One snapshot on disk: one HDF5 file, believed only when it is whole.

::

    first page           the seal: readable text, written last (``_seal``)
    /nbresume/meta       JSON: where the run stands; readable without unpickling
    /nbresume/digests    XXH3, 128 bits, of each 1 MB of what follows
    /nbresume/heap       the pickle stream, what belongs to it, and arrays that have no name
    /vars/<name>         the array of a top-level variable, as any HDF5 reader expects it

User keys are never HDF5 names: only identifiers are. Reading needs no HDF5: the seal and the JSON say where the bytes
are, and the digests cover every byte of the file.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from .._types import Json
from ._image import SLICE, Parts, cut, digest
from ._layout import SEAL
from ._seal import Seal, SnapshotError, sha256

_MOST_PARTS = 512


class Snapshot:
    """A snapshot on disk.

    Parameters
    ----------
    path : Path
        ``<attempt>-<sequence>.h5``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        attempt, _, seq = path.stem.partition("-")
        self.attempt, self.seq = int(attempt), int(seq)
        self._meta: Json = {}

    @staticmethod
    def name(attempt: int, seq: int) -> str:
        """Return the file name; the numbers are stored integers, the name only sorts well for people."""
        return f"{attempt:04d}-{seq:08d}.h5"

    @property
    def ident(self) -> str:
        """Name without its ending."""
        return self.path.stem

    @property
    def order(self) -> tuple[int, int]:
        """Key that sorts snapshots of one run by age."""
        return self.attempt, self.seq

    @property
    def meta(self) -> Json:
        """Where the run stands, checked against its digest."""
        if not self._meta:
            with self._open() as (file, seal):
                self._meta = json.loads(_proven(file, seal, "meta"))
        return self._meta

    def verify(self) -> None:
        """Read everything and check it.

        Raises
        ------
        SnapshotError
            When the file is truncated, foreign, changed or of a newer format.
        """
        self.read({})
        _ = self.meta

    def stream_and_tables(self) -> tuple[bytes, bytes]:
        """Return the pickle stream and the tables, checked."""
        with self._open() as (file, seal):
            return _proven(file, seal, "objects"), _proven(file, seal, "tables")

    def read(self, targets: Mapping[int, NDArray[Any]]) -> None:
        """Fill arrays with blocks, straight from the file, and check every byte of it on the way.

        Parameters
        ----------
        targets : mapping of int to ndarray
            Block numbers, and arrays of their size in bytes. They are filled even if the check fails then.

        Raises
        ------
        SnapshotError
            When the file is truncated, foreign, changed or of a newer format.
        """
        blocks = self.meta["blocks"]
        with self._open() as (file, seal):
            body, size = seal.facts["body"], seal.facts["size"]
            head = _bytes(file, SEAL, body - SEAL)
            if xxhash.xxh3_128_hexdigest(head) != seal.facts["head"]:
                raise SnapshotError("its head has changed since it was written")
            offset, count = seal.facts["digests"]
            known = head[offset - SEAL : offset - SEAL + 16 * count]
            starts = self.meta["offsets"]
            wanted: list[tuple[int, memoryview]] = []
            aside: list[tuple[NDArray[Any], NDArray[Any]]] = []
            for index, target in targets.items():
                name, at = blocks[index]
                straight = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
                if straight is not target:
                    aside.append((target, straight))
                if straight.nbytes:
                    wanted.append((starts[name] + at, straight.reshape(-1).view("u1").data))
            scratch = memoryview(bytearray(min(SLICE, size - body)))
            for number, parts in enumerate(cut(wanted, body, size)):
                filled = _fill(file, body + number * SLICE, parts, scratch)
                if digest(filled) != known[16 * number : 16 * number + 16]:
                    raise SnapshotError(f"{self._at(body + number * SLICE)} has changed since it was written")
            for target, straight in aside:
                target[...] = straight

    def _at(self, offset: int) -> str:
        """Name what lies at an offset, for a person."""
        starts: dict[str, int] = self.meta["offsets"]
        inside = [(start, name) for name, start in starts.items() if start < offset + SLICE]
        return max(inside)[1]

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[int, Seal]]:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise SnapshotError(f"it can't be opened: {error.strerror}") from error
        try:
            seal = Seal.read(os.pread(file, SEAL, 0))
            size = os.fstat(file).st_size
            if seal.facts["size"] != size:
                raise SnapshotError(f"it has {size:,} bytes instead of {seal.facts['size']:,}")
            if seal.facts["snapshot"] != self.ident:
                raise SnapshotError(f"it holds {seal.facts['snapshot']}, under another name")
            yield file, seal
        except OSError as error:
            raise SnapshotError(f"it can't be read: {error.strerror}") from error
        finally:
            os.close(file)


def _proven(file: int, seal: Seal, name: str) -> bytes:
    """Read a part that the signature covers."""
    offset, size, digest = seal.facts[name]
    data = _bytes(file, offset, size)
    if sha256(data) != digest:
        raise SnapshotError(f"{name} has changed since it was written")
    return data


def _bytes(file: int, offset: int, size: int) -> bytes:
    found = bytearray(size)
    _pread(file, offset, [memoryview(found)])
    return bytes(found)


def _fill(file: int, offset: int, parts: Parts, scratch: memoryview) -> Parts:
    """Read one slice into its parts; where none is wanted, and where there are too many, into scratch memory."""
    if len(parts) > _MOST_PARTS:
        size = sum(map(len, parts))
        _pread(file, offset, [scratch[:size]])
        at = 0
        for part in parts:
            if not part.readonly:
                part[:] = scratch[at : at + len(part)]
            at += len(part)
        return [scratch[:size]]
    used = 0
    filled = []
    for part in parts:
        if part.readonly:  # zeros between what is wanted
            filled.append(scratch[used : used + len(part)])
            used += len(part)
        else:
            filled.append(part)
    _pread(file, offset, filled)
    return filled


def _pread(file: int, offset: int, parts: Parts) -> None:
    left = list(parts)
    while left:
        done = os.preadv(file, left, offset)
        if not done:
            raise SnapshotError("it ends too early")
        offset += done
        while left and done >= len(left[0]):
            done -= len(left.pop(0))
        if done:
            left[0] = left[0][done:]
