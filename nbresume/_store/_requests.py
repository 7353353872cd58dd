"""What another process asks of the one that writes a run: an empty file in the run's folder, addressed by its name.

It speaks to one claim of one attempt, by the key that no other claim has: a request that was left behind is nobody's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from .. import _fs, _processes
from ._owner import owner

RequestWord = Literal["stop", "snapshot"]

_NAME = re.compile(rf"(\d+)-([0-9a-f]+)-({'|'.join(get_args(RequestWord))})-([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes
    ----------
    word : str
        ``stop`` or ``snapshot``.
    attempt : int
        Number of the attempt it speaks to.
    key : str
        Of that attempt's claim.
    ident : str
        Tells it from others.
    """

    word: RequestWord
    attempt: int
    key: str
    ident: str

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.attempt:04d}-{self.key}-{self.word}-{self.ident}"


def ask(folder: Path, word: RequestWord, attempt: int) -> Request | None:
    """Ask the process that writes an attempt; where the same waits to be heard already, that is asked no second time.

    Returns
    -------
    Request or None
        None when nobody says that he writes that attempt.
    """
    record = owner(folder)
    if not record.get("key") or record.get("attempt") != attempt:
        return None
    key = str(record["key"])
    waiting = [one for one in requests_to(folder, key) if one.word == word]
    if waiting:
        return waiting[0]
    request = Request(word, attempt, key, _processes.unique()[:8])
    _fs.make_folder(folder / "requests")
    _fs.write(folder / "requests" / request.name, b"")
    return request


def requests_to(folder: Path, key: str) -> list[Request]:
    """Return what waits to be heard by the holder of a claim, in no order."""
    return [one for one in _there(folder) if one.key == key]


def drop_request(folder: Path, request: Request) -> None:
    """Take a request away: it has been heard, or nobody is left who could."""
    _fs.remove(folder / "requests" / request.name)


def drop_old_requests(folder: Path, key: str) -> None:
    """Take away what was asked of earlier attempts."""
    for request in _there(folder):
        if request.key != key:
            drop_request(folder, request)


def _there(folder: Path) -> list[Request]:
    try:
        names = [path.name for path in (folder / "requests").iterdir()]
    except OSError:  # nobody has asked anything yet; or the disk is away, and asks again when it is back
        return []
    found = []
    for match in filter(None, map(_NAME.fullmatch, names)):
        word: RequestWord = "stop" if match[3] == "stop" else "snapshot"
        found.append(Request(word, int(match[1]), match[2], match[4]))
    return found
