"""What the cell prints goes to the front end as ever, and to the run's log, so that it outlives the browser tab."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from .. import _fs


class OutputLog:
    """Copies standard output into a file while a cell runs.

    The log's length belongs to the snapshot: on a resume it is cut back, so that no line stands twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._stream: Any = None
        self._write: Any = None
        self.muted = False
        self._quiet: set[int] = set()
        """Threads that say something which is not the cell's."""

    def start(self) -> None:
        """Begin to copy."""
        self._file = _fs.open_log(self.path)
        self._stream = stream = sys.stdout
        self._write = stream.write
        try:
            stream.write = self._both  # type: ignore[method-assign]
        except AttributeError:  # a terminal's own stream takes no attributes: stand before it
            sys.stdout = _Tee(stream, self)

    def stop(self) -> None:
        """Put standard output back."""
        if self._file is None:
            return
        if isinstance(sys.stdout, _Tee):
            sys.stdout = self._stream
        else:
            with contextlib.suppress(AttributeError):
                del self._stream.write
        self._file.close()
        self._file = None

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Copy nothing of this thread for a while: what it says is not the cell's."""
        thread = threading.get_ident()
        if thread in self._quiet:
            yield
            return
        self._quiet.add(thread)
        try:
            yield
        finally:
            self._quiet.discard(thread)

    def length(self) -> int:
        """Bytes logged so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    def cut_back(self, length: int, aside: Path) -> None:
        """Cut the log to a length, before it is written to; what is cut off is kept."""
        if self.length() > length:
            _fs.make_folder(aside.parent)
            _fs.copy_prefix(self.path, aside, self.length())
            _fs.truncate(self.path, length)

    def _both(self, text: str) -> int:
        written: int = self._write(text)
        self.copy(text)
        return written

    def copy(self, text: str) -> None:
        """Append to the log; a full disk must not end the user's cell because of a copy."""
        if self._file is not None and not self.muted and threading.get_ident() not in self._quiet:
            with contextlib.suppress(OSError):
                self._file.write(text.encode("utf-8", "backslashreplace"))


class _Tee:
    def __init__(self, stream: Any, log: OutputLog) -> None:
        self._stream, self._log = stream, log

    def write(self, text: str) -> int:
        written: int = self._stream.write(text)
        self._log.copy(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
