"""What Python tells of a file before it touches it.

An audit hook can never be removed, so there is one for the process, and it costs a look at a name where no resumable
cell runs. It hears ``open`` in all its forms (``io``, ``os``, ``pathlib``, ``gzip``, ``numpy``, ``pandas``, ...),
renames, removals, folders and SQLite; and it hears *before* it happens, in time to keep what is about to be lost. What
it does not hear is in ``_hidden``.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Protocol


class Follower(Protocol):
    """Who wants to know."""

    def about_to_open(self, path: str, flags: int) -> None:
        """Know that a file is opened for writing."""

    def about_to_change(self, path: str) -> None:
        """Know that a file is written in place."""

    def about_to_remove(self, path: str) -> None:
        """Know that a name is removed, or made for something that is no new file."""

    def about_to_rename(self, source: str, target: str) -> None:
        """Know that something gets another name."""

    def about_to_make_folder(self, path: str) -> None:
        """Know that a folder is made."""

    def about_to_remove_folder(self, path: str) -> None:
        """Know that a folder is removed."""


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC
_installed = False
_follower: Follower | None = None
_pid = 0
_telling: set[int] = set()
"""Threads in which we act on what we heard: what they do meanwhile is not the cell's doing."""


def follow(follower: Follower) -> None:
    """Tell a follower from here on."""
    global _installed, _follower, _pid  # noqa: PLW0603  # the hook is the process's, and stays
    if not _installed:
        sys.addaudithook(_hook)
        _installed = True
    _follower, _pid = follower, os.getpid()


def unfollow(follower: Follower) -> None:
    """Tell it nothing more."""
    global _follower  # noqa: PLW0603
    if _follower is follower:
        _follower = None


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _follower is None or event not in _EVENTS:
        return
    if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITES):
        return
    _tell(_follower, event, args)


def _tell(follower: Follower, event: str, args: tuple[Any, ...]) -> None:
    thread = threading.get_ident()
    if thread in _telling or os.getpid() != _pid:
        return  # a forked worker: the run's folder is its parent's to write
    _telling.add(thread)
    try:
        match event:
            case "open":
                if (path := _absolute(args[0])) is not None:
                    follower.about_to_open(path, args[2])
            case "os.truncate" | "sqlite3.connect":
                if (path := _absolute(args[0])) is not None:
                    follower.about_to_change(path)
            case "os.remove":
                follower.about_to_remove(_named(args[0], args[1]))
            case "os.link" | "os.symlink":
                follower.about_to_remove(_named(args[1], args[-1]))
            case "os.rename":
                follower.about_to_rename(_named(args[0], args[2]), _named(args[1], args[3]))
            case "os.mkdir":
                follower.about_to_make_folder(_named(args[0], args[2]))
            case "os.rmdir":
                follower.about_to_remove_folder(_named(args[0], args[1]))
    finally:
        _telling.discard(thread)


_EVENTS = frozenset("open os.truncate os.remove os.link os.symlink os.rename os.mkdir os.rmdir sqlite3.connect".split())


def _absolute(file: Any) -> str | None:
    """Return the file behind a path or descriptor, through links."""
    if isinstance(file, int):
        try:
            return os.readlink(f"/proc/self/fd/{file}")  # noqa: PTH115
        except OSError:
            return None
    if not isinstance(file, (str, bytes, os.PathLike)):
        return None
    name = os.fsdecode(file)
    if name in ("", ":memory:"):
        return None
    if name.startswith("file:"):
        name = name[5:].partition("?")[0]
    return os.path.realpath(name)


def _named(path: Any, folder: Any) -> str:
    """Return a name in a folder, not what it may link to."""
    name = os.fsdecode(path)
    if isinstance(folder, int) and folder >= 0 and not name.startswith("/"):
        name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)  # noqa: PTH115, PTH118
    head, tail = os.path.split(os.path.abspath(name))  # noqa: PTH100
    return os.path.join(os.path.realpath(head), tail)  # noqa: PTH118
