"""One snapshot in one write-once HDF5 file.

::

    /vars/<name>         the array of a top-level variable, as any HDF5 reader expects it
    /buffers/<n>         other large arrays, as raw bytes
    /nbresume/small      small arrays, one behind the other
    /nbresume/objects    the pickle stream of everything else
    /nbresume/tables     how arrays look at their bytes, and definitions of the notebook
    /nbresume/meta       JSON: where the run stands; readable without unpickling
    /nbresume/seal       JSON, written last: digests of all parts, and a signature; without it no snapshot

User keys are never HDF5 names: only identifiers are. The file is opened by no one while user code runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import h5py
import numpy as np
import xxhash
from numpy.typing import NDArray

from .. import _fs
from .._types import FORMAT, Json
from ._trust import Seen, canonical, check, look, sign

SMALL = 1 << 14
"""Bytes under which an array that is not a variable's own is put with other small ones: a dataset costs 0.1 ms."""

_LIBVER = ("v110", "v110")  # its metadata carries checksums; 'earliest' let 39 of 400 bit flips through


class BlockLike(Protocol):
    """What the store needs to know of a block of memory."""

    data: NDArray[Any] | None
    place: str


class SnapshotError(Exception):
    """A file under a snapshot's name can't be believed; the text says why."""


def write_snapshot(path: Path, meta: Json, stream: bytes, tables: bytes, blocks: Sequence[BlockLike]) -> int:
    """Publish a snapshot.

    Returns
    -------
    int
        Size of the file in bytes.

    Raises
    ------
    StoreError
        When the disk refuses; nothing is left under the final name.
    """
    with _fs.publish(path) as temp:
        with h5py.File(temp, "w", libver=_LIBVER, locking=False) as file:
            digests: dict[str, str] = {}
            where = _write_blocks(file, blocks, digests)
            _put(file, "nbresume/objects", np.frombuffer(stream, "u1"), digests)
            _put(file, "nbresume/tables", np.frombuffer(tables, "u1"), digests)
            described = json.dumps({**meta, "format": FORMAT, "blocks": where}, ensure_ascii=False)
            _put(file, "nbresume/meta", np.frombuffer(described.encode(), "u1"), digests)
            code = {"nbresume/objects": stream, "nbresume/tables": tables, "nbresume/meta": described.encode()}
            hashes = {name: hashlib.sha256(data).hexdigest() for name, data in code.items()}
            signature = sign(*_signed(digests, hashes))
            seal = json.dumps(
                {
                    "format": FORMAT,
                    "digests": digests,
                    "root": _root(digests),
                    "sha256": hashes,
                    "signature": signature,
                }
            )
            file["nbresume/seal"] = np.frombuffer(seal.encode(), "u1")
        return temp.stat().st_size


def _write_blocks(file: h5py.File, blocks: Sequence[BlockLike], digests: dict[str, str]) -> list[list[Any]]:
    """Write the blocks; returns for each its dataset and the offset in it."""
    where: list[list[Any]] = []
    small: list[NDArray[Any]] = []
    used = 0
    for block in blocks:
        data = block.data
        if data is None:
            where.append(["", 0])
        elif block.place.isidentifier():
            _put(file, f"vars/{block.place}", data, digests)
            where.append([f"vars/{block.place}", 0])
        else:
            flat = np.ascontiguousarray(data).reshape(-1).view("u1")
            if flat.size < SMALL:
                where.append(["nbresume/small", used])
                small.append(flat)
                used += flat.size
            else:
                name = f"buffers/{len(where)}"
                _put(file, name, flat, digests)
                where.append([name, 0])
    if small:
        _put(file, "nbresume/small", np.concatenate(small), digests)
    return where


def _put(file: h5py.File, name: str, data: NDArray[Any], digests: dict[str, str]) -> None:
    data = np.ascontiguousarray(data).reshape(data.shape)  # ascontiguousarray makes an array of a 0-d one
    digests[name] = _digest(data)
    if data.size:
        file[name] = data
    else:
        file.create_dataset(name, data=data)


def _digest(data: NDArray[Any]) -> str:
    return xxhash.xxh3_128_hexdigest(data.reshape(-1).view("u1").data)


def _root(digests: dict[str, str]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(digests, sort_keys=True).encode())


def _signed(digests: dict[str, str], hashes: dict[str, str]) -> tuple[bytes, ...]:
    """Return what is signed: anybody can find another array of the same XXH3, so what runs code has a SHA-256, too."""
    return b"nbresume:snapshot", canonical(digests), canonical(hashes)


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
        self._digests: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        self._seen = Seen("unsigned", "", "")
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
            with self._open() as file:
                self._meta = json.loads(self._bytes(file, "nbresume/meta"))
        return self._meta

    @property
    def signature(self) -> Seen:
        """What the signature says; a ``SnapshotError`` when it is one of ours and does not hold."""
        if not self._digests:
            self._open().close()
        return self._seen

    def check_signature(self) -> None:
        """Check that the file may be loaded.

        Raises
        ------
        UntrustedError
            When it is not signed with a key of ours, and nobody has said that it is trusted.
        """
        check(self.path.parent.parent, f"{self.path.parent.name}/{self.path.name}", self.signature)

    def check_place(self) -> None:
        """Check that the file is the one that was written for this place: what is signed could be put elsewhere.

        Raises
        ------
        SnapshotError
            When it is not.
        """
        here = {"run": self.path.parent.parent.name, "attempt": self.attempt, "seq": self.seq}
        if any(self.meta.get(key, value) != value for key, value in here.items()):
            raise SnapshotError(f"it is of another place: {', '.join(f'{key} {self.meta.get(key)}' for key in here)}")

    def verify(self) -> None:
        """Read everything and check it.

        Raises
        ------
        SnapshotError
            When the file is truncated, foreign, changed or of a newer format.
        """
        with self._open() as file:
            for name in self._digests:
                self._read(file, name)
        self.check_place()

    def stream_and_tables(self) -> tuple[bytes, bytes]:
        """Return the pickle stream and the tables, checked and trusted."""
        self.check_signature()
        self.check_place()
        with self._open() as file:
            return self._bytes(file, "nbresume/objects"), self._bytes(file, "nbresume/tables")

    def reader(self) -> _Reader:
        """Return what fills arrays with the blocks of this snapshot; to be closed."""
        return _Reader(self)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield the parts and their bytes."""
        with self._open() as file:
            for name in self._digests:
                yield name, file[name].size * file[name].dtype.itemsize

    def _open(self) -> h5py.File:
        try:
            file = h5py.File(self.path, "r", locking=False)
        except OSError as error:
            raise SnapshotError(
                f"not a complete HDF5 file ({str(error).partition('(')[2].rstrip(')') or error})"
            ) from error
        try:
            if not self._digests:
                self._digests = self._seal(file)
        except BaseException:
            file.close()
            raise
        return file

    def _seal(self, file: h5py.File) -> dict[str, str]:
        try:
            seal = json.loads(file["nbresume/seal"][()].tobytes())
            digests: dict[str, str] = dict(seal["digests"])
            found, root = int(seal["format"]), seal["root"]
            hashes: dict[str, str] = dict(seal.get("sha256", {}))
        except (KeyError, ValueError, TypeError, OSError, RuntimeError) as error:
            raise SnapshotError("it has no completion marker") from error
        if found > FORMAT:
            raise SnapshotError(f"its format {found} is newer than {FORMAT}, the newest that this nbresume reads")
        if _root(digests) != root:
            raise SnapshotError("its completion marker does not match")
        self._seen, self._hashes = look(seal.get("signature"), *_signed(digests, hashes)), hashes
        if self._seen.state == "changed":
            raise SnapshotError(f"it {self._seen.words}")
        return digests

    def _read(self, file: h5py.File, name: str) -> NDArray[Any]:
        try:
            data: NDArray[Any] = np.asarray(file[name][()])
        except (KeyError, OSError, RuntimeError, ValueError) as error:
            raise SnapshotError(f"{name} can't be read") from error
        self._check(name, data)
        return data

    def _check(self, name: str, data: NDArray[Any]) -> None:
        if _digest(np.ascontiguousarray(data).reshape(data.shape)) != self._digests[name]:
            raise SnapshotError(f"{name} has changed since it was written")

    def _bytes(self, file: h5py.File, name: str) -> bytes:
        data = self._read(file, name).tobytes()
        if self._seen.state != "unsigned" and hashlib.sha256(data).hexdigest() != self._hashes.get(name):
            raise SnapshotError(f"{name} has changed since it was signed")
        return data


class _Reader:
    """Fills arrays with verified blocks; the small ones are read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._where = snapshot.meta["blocks"]
        self._file = snapshot._open()  # noqa: SLF001  # two halves of one thing
        self._small: NDArray[Any] | None = None

    def __call__(self, index: int, target: NDArray[Any]) -> None:
        name, offset = self._where[index]
        snapshot = self._snapshot
        if name == "nbresume/small":
            if self._small is None:
                self._small = snapshot._read(self._file, name)  # noqa: SLF001
            part = self._small[offset : offset + target.nbytes]
            target[...] = part.view(target.dtype).reshape(target.shape)
            return
        dataset = self._file[name]
        if (
            target.flags.c_contiguous
            and dataset.dtype == target.dtype
            and dataset.shape == target.shape
            and target.size
        ):
            dataset.read_direct(target)
            snapshot._check(name, target)  # noqa: SLF001
        else:
            data = snapshot._read(self._file, name)  # noqa: SLF001
            target[...] = np.ascontiguousarray(data).reshape(-1).view(target.dtype).reshape(target.shape)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
