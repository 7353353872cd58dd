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

import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Json
from ._content import Content, opened, read_seal
from ._image import SLICE, Parts, cut, digest
from ._parallel import for_each, threads_for
from ._seal import SEAL, Seal, SnapshotError, sha256
from ._trust import Seen, check, look


class Snapshot:
    """A snapshot on disk.

    Parameters
    ----------
    path : Path
        ``<attempt>-<sequence>.h5``.
    base : str, optional
        What it is built on, where that is known without reading it.
    """

    def __init__(self, path: Path, base: str | None = None) -> None:
        self.path, self._base = path, base
        attempt, _, seq = path.stem.partition("-")
        self.attempt, self.seq = int(attempt), int(seq)
        self._meta: Json = {}
        self._seal: Seal | None = None

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
    def seal(self) -> Seal:
        """What its first page says."""
        if self._seal is None:
            self._seal = read_seal(self.path)
        return self._seal

    @property
    def signature(self) -> Seen:
        """What its signature says.

        Raises
        ------
        SnapshotError
            When it is one of ours and does not hold, or there is none to be read.
        """
        seen = look(self.seal.signature, *self.seal.signed())
        if seen.state == "changed":
            raise SnapshotError(f"it {seen.words}")
        return seen

    def check_signature(self) -> None:
        """Check that the file may be loaded.

        Raises
        ------
        UntrustedError
            When it is not signed with a key of ours, and nobody has said that it is trusted.
        """
        check(self.path.parent.parent, f"{self.path.parent.name}/{self.path.name}", self.signature)

    def check_place(self) -> None:
        """Check that the file is of this run: what is signed could be put elsewhere.

        Raises
        ------
        SnapshotError
            When it is not.
        """
        here = self.path.parent.parent.name
        if self.meta.get("run", here) != here:
            raise SnapshotError(f"it is of another run, {self.meta['run']}")

    @property
    def base(self) -> str:
        """The snapshot that it is built on; empty where it stands by itself."""
        if self._base is None:
            self._base = str(self.seal.facts["base"][0]) if "base" in self.seal.facts else ""
        return self._base

    @property
    def meta(self) -> Json:
        """Where the run stands, checked against its digest."""
        if not self._meta:
            with opened(self.path) as content:
                offset, size, known = content.seal.facts["meta"]
                text = content.head()[offset - SEAL : offset - SEAL + size]
            if sha256(text) != known:
                raise SnapshotError("meta has changed since it was written")
            self._meta = json.loads(text)
        return self._meta

    def verify(self) -> None:
        """Read everything and check it.

        Raises
        ------
        SnapshotError
            When the file is truncated, foreign, changed or of a newer format, or one that it is built on.
        """
        _ = self.signature
        self._read({}, whole=True)
        self.check_place()

    def verify_own(self) -> None:
        """Read back what this file holds and check it; what it is built on was checked when that was written.

        Raises
        ------
        SnapshotError
            When it does not hold what was written.
        """
        if self.base:
            with opened(self.path) as content:
                content.head()
                content.check_delta()
        else:
            self._read({}, whole=True, is_beside_loop=True)

    def stream_and_tables(self) -> tuple[bytes, bytes]:
        """Return the pickle stream and the tables, checked and trusted."""
        self.check_signature()
        self.check_place()
        with opened(self.path) as content:
            return _proven(content, "objects"), _proven(content, "tables")

    def read(self, targets: Mapping[int, NDArray[Any]]) -> None:
        """Fill arrays with blocks, straight from the file, and check every byte of the state on the way.

        Parameters
        ----------
        targets : mapping of int to ndarray
            Block numbers, and arrays of their size in bytes. They are filled even if the check fails then.

        Raises
        ------
        SnapshotError
            When the file is truncated, foreign, changed or of a newer format, or one that it is built on.
        """
        self._read(targets, whole=False)

    def _read(self, targets: Mapping[int, NDArray[Any]], *, whole: bool, is_beside_loop: bool = False) -> None:
        meta = self.meta
        wanted: list[tuple[int, memoryview]] = []
        aside: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for index, target in targets.items():
            name, at = meta["blocks"][index]
            straight = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
            if straight is not target:
                aside.append((target, straight))
            if straight.nbytes:
                wanted.append((meta["offsets"][name] + at, straight.reshape(-1).view("u1").data))
        with opened(self.path) as content:
            if whole:
                content.check_delta()
            offset, _ = content.seal.facts["digests"]
            known = memoryview(content.head())[offset - SEAL :]
            body, size = content.image
            scratch = _Scratch()

            def fill(numbered: tuple[int, Parts]) -> None:
                number, parts = numbered
                filled = scratch.fill_up(parts)
                content.read(body + number * SLICE, filled)
                if digest(filled) != known[16 * number : 16 * number + 16]:
                    what = _at(meta["offsets"], body + number * SLICE)
                    raise SnapshotError(f"{what} has changed since it was written")

            threads = 1 if is_beside_loop else threads_for(size)
            for_each(fill, list(enumerate(cut(wanted, body, size))), threads)
        for target, straight in aside:
            target[...] = straight


def _at(starts: Mapping[str, int], offset: int) -> str:
    """Name what lies at an offset, for a person."""
    return max((start, name) for name, start in starts.items() if start < offset + SLICE)[1]


def _proven(content: Content, name: str) -> bytes:
    """Read a part that the signature covers."""
    offset, size, known = content.seal.facts[name]
    data = content.take(offset, size)
    if sha256(data) != known:
        raise SnapshotError(f"{name} has changed since it was written")
    return data


class _Scratch(threading.local):
    """Memory for what is read and not wanted; each thread has its own."""

    memory = memoryview(b"")

    def fill_up(self, parts: Parts) -> Parts:
        """Put scratch memory where nothing is wanted."""
        found = []
        used, size = 0, sum(len(part) for part in parts if part.readonly)
        if size > len(self.memory):
            self.memory = memoryview(bytearray(size))
        for part in parts:
            found.append(self.memory[used : used + len(part)] if part.readonly else part)
            used += len(part) if part.readonly else 0
        return found


def base_of(snapshot: Snapshot) -> str | None:
    """Return what a snapshot is built on, empty where it stands by itself; None where it can't be read."""
    try:
        return snapshot.base
    except SnapshotError:
        return None


def with_bases(staying: Iterable[Snapshot], there: Iterable[Snapshot]) -> set[str]:
    """Return the names of snapshots, and of all that they are built on."""
    known = {one.ident: one for one in there}
    found: set[str] = set()
    for snapshot in staying:
        ident = snapshot.ident
        while ident and ident not in found:
            found.add(ident)
            ident = (base_of(known[ident]) or "") if ident in known else ""
    return found
