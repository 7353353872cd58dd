"""Whether what lies in a run's folder was written by somebody who holds a key of ours.

What a resume believes is signed: each snapshot and result of ``once``, the launch record, and the lines of the journal
that say what the identity has become. A person can say that they trust what is signed with another key, or not at all:
then the fingerprints of exactly what lay there go into the file ``trusted``, signed with the own key. What is put there
later is not trusted by that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .. import _fs
from .._types import Json
from ..errors import UntrustedError
from ._keys import Keys

State = Literal["signed", "foreign", "unsigned", "changed"]
"""``foreign``: with a key that we don't have. ``changed``: with one of ours, and it does not hold."""

_TRUSTED = "trusted"
_WORDS = {
    "foreign": "is signed with another key ({key})",
    "unsigned": "is not signed",
    "changed": "has been changed by somebody who does not have the key ({key}) that it was signed with",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a signature says.

    Attributes
    ----------
    state : State
        Whether it holds.
    key : str
        Ident of the key it was made with; empty when there is none.
    fingerprint : str
        SHA-256 of what is signed.
    """

    state: State
    key: str
    fingerprint: str

    @property
    def words(self) -> str:
        """What is wrong, as the rest of a sentence; empty when nothing is."""
        return _WORDS[self.state].format(key=self.key) if self.state != "signed" else ""


def sign(*parts: bytes) -> Json:
    """Sign with the own key."""
    own = Keys.find().own
    return {"key": own.ident, "hmac": own.sign(*parts)}


def look(signature: object, *parts: bytes, keys: Keys | None = None) -> Seen:
    """Check a signature, which may be anything that was found where one belongs.

    Parameters
    ----------
    signature : object
        As it was read.
    *parts : bytes
        What it should be of.
    keys : Keys, optional
        For many at once; else they are looked for.
    """
    fingerprint = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()
    if not isinstance(signature, dict) or not isinstance(signature.get("hmac"), str):
        return Seen("unsigned", "", fingerprint)
    ident = str(signature.get("key", ""))[:16]
    key = (keys or Keys.find()).of(ident)
    if key is None:
        return Seen("foreign", ident if ident.isalnum() else "?", fingerprint)
    return Seen("signed" if key.holds(signature["hmac"], *parts) else "changed", ident, fingerprint)


def of_record(record: Json) -> tuple[bytes, ...]:
    """Return what is signed of a launch record."""
    return b"nbresume:run", canonical({key: value for key, value in record.items() if key != "signature"})


def of_change(ident: str, attempt: int, facts: Json) -> tuple[bytes, ...]:
    """Return what is signed of a line of the journal that says what a run's identity has become."""
    told = {key: value for key, value in facts.items() if key != "signature"}
    return b"nbresume:changed", ident.encode(), canonical([attempt, told])


def of_files(ident: str, kind: str, record: Json) -> tuple[bytes, ...]:
    """Return what is signed of a record about the files that a cell writes."""
    told = {key: value for key, value in record.items() if key != "signature"}
    return b"nbresume:files", ident.encode(), kind.encode(), canonical(json.loads(json.dumps(told)))


def signer(ident: str) -> Callable[[str, Json], Json]:
    """Return what signs records about the files of a run; the key is looked for once."""
    own = Keys.find().own
    return lambda kind, record: {"key": own.ident, "hmac": own.sign(*of_files(ident, kind, record))}


def canonical(value: object) -> bytes:
    """Return the one text of a JSON value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


# ------------------------------------------------------------------ a person's word


def check(folder: Path, name: str, seen: Seen) -> None:
    """Check that something may be believed.

    Parameters
    ----------
    folder : Path
        The run's.
    name : str
        What it is, within the folder.
    seen : Seen
        Its signature.

    Raises
    ------
    UntrustedError
        When it may not.
    """
    if doubtful(folder, [(name, seen)]):
        way = (
            "Put back a copy of it, or start anew with --on-restart supersede"
            if seen.state == "changed"
            else "If the run is yours, set NBRESUME_KEY_FILE to the key it was written with; if you trust whoever "
            f"wrote {folder}, add --trust to the magic line once"
        )
        raise UntrustedError(
            f"{name} of {folder.name} {seen.words}. A resume believes it, and runs code that a run's files hold: it "
            f"stopped before that, and nothing was touched. {way}",
            str(folder / name.partition(",")[0]),
        )


def trust(folder: Path, things: Mapping[str, Seen]) -> None:
    """Note what a person trusts, as it is now."""
    known = {**_trusted(folder), **{name: seen.fingerprint for name, seen in things.items()}}
    record = {"trusted": known, "signature": sign(b"nbresume:trusted", folder.name.encode(), canonical(known))}
    _fs.write(folder / _TRUSTED, json.dumps(record, indent=1).encode())


def doubtful(folder: Path, things: Iterable[tuple[str, Seen]]) -> dict[str, Seen]:
    """Return what is neither signed nor trusted already."""
    known = _trusted(folder)
    return {name: seen for name, seen in things if seen.state != "signed" and known.get(name) != seen.fingerprint}


def _trusted(folder: Path) -> Mapping[str, str]:
    """Return the fingerprints that were trusted; none where that was said with another key."""
    try:
        record = json.loads((folder / _TRUSTED).read_bytes())
        known, signature = record["trusted"], record["signature"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    seen = look(signature, b"nbresume:trusted", folder.name.encode(), canonical(known))
    return known if seen.state == "signed" and isinstance(known, dict) else {}
