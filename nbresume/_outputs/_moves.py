"""Files moved aside on the way back, and never lost there.

Where each went is written down before the first one moves: a death on the way must not leave the user's files here.
"""

from __future__ import annotations

import json
from pathlib import Path

from .. import _fs
from ._portable import Portable


class Moves:
    """Moves files into a folder of the run.

    Parameters
    ----------
    folder : Path
        Made when the first is moved.
    portable : Portable
        Knows how paths are written down.
    """

    def __init__(self, folder: Path, portable: Portable) -> None:
        self.folder, self._portable = folder, portable
        self._there: dict[str, Path] = {}
        self._kept = 0

    @property
    def _list(self) -> Path:
        return self.folder / "moved.json"

    def begin(self, paths: list[Path], attempt: int) -> None:
        """Move files aside until ``done`` or ``recover``."""
        moves = {
            str(path): str(self.folder / f"{attempt:04d}-{place:04d}-{path.name}") for place, path in enumerate(paths)
        }
        if moves:
            _fs.make_folder(self.folder)
            _fs.write(self._list, json.dumps(self._portable.sealed("moved", {"moves": moves})).encode())
        for path, target in moves.items():
            if Path(path).is_file() or Path(path).is_symlink():
                _fs.move(Path(path), Path(target))
                self._there[path] = Path(target)

    def of(self, path: Path) -> Path | None:
        """Return where a file is now."""
        return self._there.get(str(path))

    def take(self, path: Path) -> Path | None:
        """Return where a file is now, to be put back."""
        return self._there.pop(str(path), None)

    def keep(self, path: Path) -> Path:
        """Move a file aside for good."""
        target = self._free(path.name)
        _fs.move(path, target)
        return target

    def copy(self, path: Path) -> Path:
        """Copy a file that is held open aside."""
        target = self.folder / f"{path.name}.now"
        _fs.make_folder(self.folder)
        _fs.copy_prefix(path, target, path.stat().st_size)
        return target

    def _free(self, name: str) -> Path:
        while (self.folder / f"undone-{self._kept:04d}-{name}").exists():
            self._kept += 1
        return self.folder / f"undone-{self._kept:04d}-{name}"

    def done(self) -> None:
        """Forget what was moved: all has been put back."""
        _fs.remove(self._list)

    def recover(self) -> None:
        """Put files back that an attempt had moved aside and could not put back itself."""
        try:
            moves = self._portable.opened(json.loads(self._list.read_bytes()))["moves"]
        except FileNotFoundError:
            return
        for path, target in moves.items():
            if Path(target).is_file() or Path(target).is_symlink():
                _fs.remove(Path(path))  # what ran again on the way has written it
                _fs.make_open_folder(Path(path).parent)
                _fs.move(Path(target), Path(path))
        _fs.remove(self._list)
        self._there.clear()
