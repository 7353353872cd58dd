"""Files that are open for writing in this process, whoever opened them."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import struct
import sys


def writable_descriptors() -> set[tuple[str, int]]:
    """Return path and descriptor of each regular file open for writing in this process; none where nobody can tell."""
    found: set[tuple[str, int]] = set()
    if not sys.platform.startswith("linux"):
        return found
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # two system calls a descriptor, no more
        number = int(name)
        try:
            if not fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE or not stat.S_ISREG(os.fstat(number).st_mode):
                continue
            path = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
        except OSError:  # it is closed by now: the one that listed them, or a thread's
            continue
        if path.startswith("/") and not is_no_file(path) and "(deleted)" not in path:
            found.add((path, number))
    return found


def mapped_for_writing() -> set[str]:
    """Return files that this process has mapped for shared writing: their descriptor is closed, their pages are not."""
    if not sys.platform.startswith("linux"):
        return set()
    with io.FileIO("/proc/self/maps") as maps:
        if _has_none(maps.fileno()):
            return set()
        data = maps.readall()
    found = set()
    at = data.find(_SHARED)
    while at >= 0:
        end = data.find(b"\n", at)
        path = data.find(b"/", at, end)
        if path >= 0:  # else it has no file
            found.add(os.fsdecode(data[path:end]))
        at = data.find(_SHARED, end)
    return {path for path in found if not is_no_file(path)}


def _has_none(maps: int) -> bool:
    """Whether the kernel knows at once that there are none; reading hundreds of lines takes a hundred times as long."""
    query = bytearray(_QUERY_SIZE)
    struct.pack_into("=QQ", query, 0, _QUERY_SIZE, _WRITABLE | _SHARED_VMA | _NEXT | _OF_FILE)
    try:
        fcntl.ioctl(maps, _PROCMAP_QUERY, query)
    except OSError as error:
        return error.errno == errno.ENOENT  # else it is older than Linux 6.11
    return False


def is_no_file(path: str) -> bool:
    """Whether a path is a device or shared memory; in a folder of ``/dev/shm`` people keep files, for speed."""
    if path.startswith(_SHM):
        return "/" not in path.removeprefix(_SHM)
    return path.startswith(("/dev/", "/proc/", "/sys/", "/memfd", "/SYSV"))


_SHARED = b" rw-s "
"""How a mapping is told that is shared and can be written to; a search for it reads a thousand lines in no time."""
_PROCMAP_QUERY, _QUERY_SIZE = 0xC0686611, 104
"""``ioctl`` that finds the next mapping of a kind, and bytes of its ``struct procmap_query``; Linux 6.11."""
_WRITABLE, _SHARED_VMA, _NEXT, _OF_FILE = 0x02, 0x08, 0x10, 0x20
_SHM = "/dev/shm/"  # noqa: S108  # read from the kernel, not made
