"""The first page of a snapshot: readable text that says what the file holds, and proves that it is whole.

::

    nbresume snapshot, format 1
    <XXH3-128 of the rest of the page>
    {"snapshot": "0002-00000042", "size": ..., "meta": [offset, bytes, sha256], ...}
    {"hmac": ..., "key": ...}

HDF5 begins behind it: the page is what HDF5 calls a user block.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

import xxhash

from .._types import FORMAT, Json

PAGE = 1 << 12
SEAL = PAGE
"""Bytes before the HDF5 file proper, which HDF5 leaves to its users (a *user block*)."""

_MAGIC = re.compile(rb"nbresume snapshot, format (\d+)\n([0-9a-f]{32})\n")


class SnapshotError(Exception):
    """A file under a snapshot's name can't be believed; the text says why."""


@dataclass(frozen=True, slots=True)
class Seal:
    """What a snapshot says of itself.

    Attributes
    ----------
    facts : dict
        ``snapshot``, ``size``, ``body``, ``digests`` (offset and count), ``head`` (digest of what lies between this
        page and the body), and for ``meta``, ``objects`` and ``tables`` their offset, bytes and SHA-256.
    signature : dict
        ``key``, which one, and ``hmac``, HMAC-SHA256; empty when it is not signed.
    """

    facts: Json
    signature: Json

    def signed(self) -> tuple[bytes, bytes]:
        """Return what the signature is of."""
        return b"nbresume:snapshot", self._text()

    def _text(self) -> bytes:
        return json.dumps(self.facts, sort_keys=True).encode()

    def page(self) -> bytes:
        """Return the page."""
        text = self._text() + b"\n" + json.dumps(self.signature, sort_keys=True).encode() + b"\n"
        first = f"nbresume snapshot, format {FORMAT}\n".encode()
        rest = text.ljust(SEAL - len(first) - 33)
        return first + xxhash.xxh3_128_hexdigest(rest).encode() + b"\n" + rest

    @classmethod
    def read(cls, page: bytes) -> Seal:
        """Read the page.

        Raises
        ------
        SnapshotError
            When it is not one, is damaged, or of a newer format.
        """
        match = _MAGIC.match(page)
        if match is None or len(page) != SEAL:
            raise SnapshotError("it has no completion marker")
        if int(match[1]) > FORMAT:
            raise SnapshotError(
                f"its format {int(match[1])} is newer than {FORMAT}, the newest that this nbresume reads"
            )
        rest = page[match.end() :]
        if xxhash.xxh3_128_hexdigest(rest).encode() != match[2]:
            raise SnapshotError("its completion marker does not match")
        facts, signature, _ = rest.split(b"\n", 2)
        return cls(json.loads(facts), json.loads(signature))


def page_digest(page: bytes) -> str:
    """Digest the page, for a delta that is built on the file."""
    return xxhash.xxh3_128_hexdigest(page)


def sha256(data: bytes | memoryview) -> str:
    """Digest bytes so that nobody can make others with the same digest."""
    return hashlib.sha256(data).hexdigest()
