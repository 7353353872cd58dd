"""Paths as a run writes them down: those in the folder of the notebook move with it.

A notebook may be moved or copied together with its files and its runs. What a record says of a file in that folder is
said of the file beside the notebook, wherever that is now; paths elsewhere stay what they are.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_HERE = "<notebook>"


class Portable:
    """Rewrites paths in records.

    Parameters
    ----------
    folder : Path
        Of the notebook: where its store lies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve())

    def pack(self, record: Any) -> Any:
        """Return a record as it is written down."""
        return _replaced(record, self._folder, _HERE)

    def unpack(self, record: Any) -> Any:
        """Return a record that was written down with the paths of this folder."""
        return _replaced(record, _HERE, self._folder)


def _replaced(value: Any, old: str, new: str) -> Any:
    match value:
        case str():
            inside = value == old or value.startswith(old + os.sep)
            return new + value[len(old) :] if inside else value
        case dict():
            return {_replaced(key, old, new): _replaced(part, old, new) for key, part in value.items()}
        case list() | tuple():
            return [_replaced(part, old, new) for part in value]
    return value
