"""Records about files as a run writes them down: signed, and with paths that move with the folder of the notebook.

A notebook may be moved or copied together with its files and its runs. What a record says of a file in that folder is
said of the file beside the notebook, wherever that is now; paths elsewhere stay what they are.

A record says what a resume does to the user's files: somebody who could write one could have any file replaced. So each
is signed, and checked before a run is gone on with.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._types import Json

Sign = Callable[[str, Json], Json]
_HERE = "<notebook>"


class Portable:
    """Rewrites paths in records.

    Parameters
    ----------
    folder : Path
        Of the notebook: where its store lies.
    sign : callable
        Returns the signature of a record of a kind; an empty one where nothing is signed.
    """

    def __init__(self, folder: Path, sign: Sign = lambda _kind, _record: {}) -> None:
        self._folder = str(folder.resolve())
        self._sign = sign

    def sealed(self, kind: str, record: Json) -> Json:
        """Return a record as it is written down, signed."""
        packed: Json = self.pack(record)
        signature = self._sign(kind, packed)
        return {**packed, "signature": signature} if signature else packed

    def opened(self, record: Json) -> Json:
        """Return a record that was written down, without its signature: that has been checked by then."""
        found: Json = self.unpack({key: value for key, value in record.items() if key != "signature"})
        return found

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
