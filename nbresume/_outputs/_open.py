"""The managed ``open``: the user gets the very object that Python's own returns, and we remember it."""

from __future__ import annotations

import builtins
import io
import os
import sys
import weakref
from collections.abc import Callable
from typing import IO, Any

from ._known import Known

_PASS_ON = frozenset({"pathlib", "codecs", "tempfile", "fsspec"})
"""Libraries that hand the very file on; what others hold open for writing bytes goes through a state of theirs."""


class ManagedOpen:
    """Stands before ``open`` while a cell runs.

    Parameters
    ----------
    namespace : dict
        The notebook's globals: IPython puts an ``open`` of its own there, which would stand before ours.
    path_of : callable
        Returns a file's path, or None for one that does not count.
    """

    def __init__(self, namespace: dict[str, Any], path_of: Callable[[str], str | None]) -> None:
        self._namespace, self._path_of = namespace, path_of
        self._notebook_open: Any = None
        self._real = builtins.open
        self.written: dict[str, Known] = {}
        self.read: dict[str, Known] = {}

    def start(self) -> None:
        """Manage ``open`` from here on."""
        self._real = builtins.open
        builtins.open = io.open = self._open  # type: ignore[assignment]
        found = self._namespace.get("open")
        if getattr(found, "__wrapped__", None) is self._real:
            self._notebook_open = found
            self._namespace["open"] = self._open_in_notebook

    def stop(self) -> None:
        """Give ``open`` back."""
        if builtins.open == self._open:
            builtins.open = io.open = self._real
        if self._notebook_open is not None and self._namespace.get("open") == self._open_in_notebook:
            self._namespace["open"] = self._notebook_open

    def _open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        __tracebackhide__ = True
        return self._follow(self._real, file, mode, args, kwargs)

    def _open_in_notebook(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        __tracebackhide__ = True
        return self._follow(self._notebook_open, file, mode, args, kwargs)

    def _follow(self, real: Any, file: Any, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> IO[Any]:
        __tracebackhide__ = True
        handle: IO[Any] = real(file, mode, *args, **kwargs)
        path = self._path(file)
        if path is None:
            return handle
        writes = any(letter in mode for letter in "wax+")
        known = (self.written if writes else self.read).setdefault(path, Known())
        known.open_handles()
        known.handles.append(weakref.ref(handle))
        if writes and "b" in mode:
            known.keeper = _keeper(sys._getframe(2).f_globals)  # noqa: SLF001  # who asked tells who will write
        return handle

    def _path(self, file: Any) -> str | None:
        if isinstance(file, int):  # such as os.fdopen gives
            try:
                return self._path_of(os.readlink(f"/proc/self/fd/{file}"))  # noqa: PTH115
            except OSError:
                return None
        if not isinstance(file, (str, bytes, os.PathLike)):
            return None
        return self._path_of(os.path.realpath(os.fsdecode(file)))


def _keeper(caller: dict[str, Any]) -> str:
    """Return the name of the library that opens a file; empty for the user's own code."""
    name, file = str(caller.get("__name__", "")), str(caller.get("__file__") or "")
    is_library = file.startswith((sys.prefix, sys.base_prefix)) and name.partition(".")[0] not in _PASS_ON
    return name if is_library else ""
