"""Copies of the user's files, as they were before something changed them."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from pathlib import Path

from .. import _fs
from .._types import Json
from ..errors import ReplayError

INLINE = 1 << 16
"""Bytes up to which a copy stands in the record itself; a file of its own would cost one more wait for the disk."""

COPY_LIMIT = 1 << 28
"""Bytes up to which a file is copied at all: 256 MB, about a second of a disk's time."""

Copy = Json
"""``inline``: the bytes; ``kept``: the name of a file in the run's folder."""


class Copies:
    """Copies in a folder of the run, by the digest of their bytes.

    Parameters
    ----------
    folder : Path
        Made when the first is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def keep(self, path: Path, size: int) -> Copy | None:
        """Keep a copy; None where the file is too large."""
        if size <= INLINE:
            with io.FileIO(path) as file:
                return {"inline": base64.b64encode(file.readall()).decode()}
        if size > COPY_LIMIT:
            return None
        name = _fs.keep_copy(path, self.folder)
        self._found.add(name)
        return {"kept": name}

    def keep_before_removal(self, path: Path, size: int) -> Copy | None:
        """Keep a file that loses its name: a second name costs nothing, however large it is."""
        if size <= INLINE:
            return self.keep(path, size)
        name = _fs.keep_link(path, self.folder)
        if name is None:
            return self.keep(path, size)
        self._found.add(name)
        return {"kept": name}

    def is_there(self, copy: Copy) -> bool:
        """Whether a copy can be put back."""
        return "inline" in copy or (self.folder / copy["kept"]).exists()

    def equals(self, copy: Copy, path: Path) -> bool:
        """Whether a file is what a copy is."""
        if not path.is_file():
            return False
        if "inline" in copy:
            return path.read_bytes() == base64.b64decode(copy["inline"])
        kept = self.folder / copy["kept"]
        return path.stat().st_size == kept.stat().st_size and _same(path, kept)

    def starts_with(self, copy: Copy, path: Path) -> bool:
        """Whether a file is the beginning of what a small copy is."""
        there = path.read_bytes() if path.exists() else b""
        return "inline" in copy and base64.b64decode(copy["inline"]).startswith(there)

    def put(self, copy: Copy, target: Path) -> None:
        """Make a copy the content of a file, in the file that is there."""
        if "inline" in copy:
            _fs.replace_bytes(target, base64.b64decode(copy["inline"]))
            return
        kept = self.folder / copy["kept"]
        if not kept.exists():
            raise ReplayError(
                f"the copy of {target.name} is gone from the run's folder. Put it back, or supersede the run"
            )
        _fs.copy_prefix(kept, target, kept.stat().st_size)

    def give_back(self, copy: Copy, target: Path) -> bool:
        """Give a file its name back, times and all, where it was kept under another one."""
        if not copy.get("kept", "").startswith("kept-") or not self.is_there(copy):
            return False
        _fs.move(self.folder / copy["kept"], target)
        return True

    def prune(self, used: Iterable[str]) -> None:
        """Remove copies that no record names."""
        for name in self._found - set(used):
            _fs.remove(self.folder / name)
            self._found.discard(name)


def names_in(records: Iterable[Json]) -> set[str]:
    """Return the names of the kept copies that records refer to."""
    return {record["copy"]["kept"] for record in records if "kept" in (record.get("copy") or {})}


def _same(one: Path, other: Path) -> bool:
    with io.FileIO(one) as a, io.FileIO(other) as b:
        while block := a.read(1 << 20):
            if block != b.read(len(block)):
                return False
    return True
