"""Memory for copies of what is being saved, so that the loop can go on while they are written.

Private, in huge pages where the system has them (a copy there is as fast as memory gets), and left out of forked
processes: a worker pool of the user's neither copies it nor pays for its page tables.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ._parallel import for_each, threads_for

_ADVICE = ("MADV_HUGEPAGE", "MADV_DONTFORK", "MADV_DONTDUMP")
_ALIGNED = 64
_SMALL = 1 << 21
"""Less than a huge page is not worth a mapping of its own."""
_PIECE = 1 << 20


class Arena:
    """One run of memory that is used again and again."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | bytearray = bytearray()

    def has_room(self, size: int) -> bool:
        """Whether so many bytes can be copied without danger: the system has a good deal more than that left."""
        return self._suits(size) or memory_left() > 2 * size

    def copy(self, sources: Iterable[memoryview]) -> list[memoryview]:
        """Copy bytes; what was copied before is overwritten.

        Parameters
        ----------
        sources : iterable of memoryview
            Contiguous bytes.

        Raises
        ------
        MemoryError
            When there is no room for them.
        """
        sources = list(sources)
        starts, end = [], 0
        for source in sources:
            starts.append(end)
            end += -(-len(source) // _ALIGNED) * _ALIGNED
        self._make_room(end)
        whole = np.frombuffer(self._memory, "u1", count=end)
        pieces = [
            (start + at, source[at : at + _PIECE])
            for start, source in zip(starts, sources, strict=True)
            for at in range(0, len(source), _PIECE)
        ]

        def put(piece: tuple[int, memoryview]) -> None:
            start, source = piece
            np.copyto(whole[start : start + len(source)], np.frombuffer(source, "u1"))

        for_each(put, pieces, threads_for(end))  # the loop stands still meanwhile
        view = whole.data
        return [view[start : start + len(source)] for start, source in zip(starts, sources, strict=True)]

    def _suits(self, size: int) -> bool:
        return size <= len(self._memory) <= 4 * max(size, _SMALL)

    def _make_room(self, size: int) -> None:
        if self._suits(size):
            return
        self._memory = bytearray()  # given back before the next is asked for
        if size < _SMALL:
            self._memory = bytearray(size)
            return
        try:
            memory = mmap.mmap(-1, size + size // 8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(str(error)) from error
        for advice in _ADVICE:
            if hasattr(mmap, advice):
                memory.madvise(getattr(mmap, advice))
        self._memory = memory


_CGROUP = Path("/sys/fs/cgroup")


def memory_left() -> int:
    """Tell how many bytes this process may still take before the system, or its container, ends a process."""
    left = [_field(Path("/proc/meminfo"), "MemAvailable:") * 1024]
    limit, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    if limit and used:
        left.append(limit - used + _field(_CGROUP / "memory.stat", "inactive_file"))
    return max(0, min(left))


def _number(path: Path) -> int:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


def _field(path: Path, name: str) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 1 << 40  # no telling: another system
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
