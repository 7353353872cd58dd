"""The key that snapshots are signed with, so that a file of somebody else's is told from one of ours.

Unpickling runs code, and a digest can be computed anew by whoever changes a file: only a secret that is not in the
store tells who wrote it. It is looked for in this order, each time anew, so that a changed environment counts at once:

1. ``NBRESUME_KEY_FILE``, a file with a key a line: the first one signs, all of them are believed. So a key is replaced
   by putting the new one above the old one, and taking the old one out when no run needs it any more.
2. ``NBRESUME_KEY``, the key itself.
3. A random key of this user's, kept with Jupyter's own data.

Where no key can be kept (a home that can't be written, or none), a random one serves for as long as this process lives.
Refusing the cell instead would take snapshots away from whoever needs them only against errors and interrupts, and
signing nothing would make every later resume a matter of trust. It is said aloud when the run starts, with the way out.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from .. import _fs
from ..errors import OptionError, StoreError
from ._home import data_folder

FILE, TEXT = "NBRESUME_KEY_FILE", "NBRESUME_KEY"
SHORTEST = 16
"""Characters: whoever reads a signature may try all shorter ones."""
_LONGEST = 1 << 16
_MAKE = "python -c 'import secrets; print(secrets.token_hex(32))'"
_TOO_OPEN = stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH

Part = bytes | memoryview


class Key:
    """A secret that signs.

    Parameters
    ----------
    secret : bytes
        Never shown, and never in a store.

    Attributes
    ----------
    ident : str
        Tells keys apart, and says nothing about them.
    """

    __slots__ = ("_secret", "ident")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.ident = hmac.digest(secret, b"nbresume: which key is this", "sha256").hex()[:16]

    def __repr__(self) -> str:
        return f"Key({self.ident})"

    def sign(self, *parts: Part) -> str:
        """Sign bytes; each part goes in with its length, so that no other parts look like these."""
        mac = hmac.new(self._secret, digestmod=hashlib.sha256)
        for part in parts:
            view = memoryview(part).cast("B")
            mac.update(len(view).to_bytes(8, "big"))
            mac.update(view)
        return mac.hexdigest()

    def holds(self, signature: str, *parts: Part) -> bool:
        """Whether a signature is of these parts; takes as long for a wrong one as for a right one."""
        return hmac.compare_digest(signature.encode(), self.sign(*parts).encode())


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of this process.

    Attributes
    ----------
    own : Key
        Signs.
    known : tuple of Key
        Are believed, the own one first.
    warning : str
        What a person has to know before relying on it; mostly empty.
    """

    own: Key
    known: tuple[Key, ...]
    warning: str = ""

    @classmethod
    def find(cls) -> Keys:
        """Find the keys as the environment names them now; the user's own one is made when it is first needed.

        Raises
        ------
        OptionError
            When a key is named that is missing, too short, or open to others.
        StoreError
            When the user's own one can't be believed.
        """
        if FILE in os.environ:
            return _of(_read_named(Path(os.environ[FILE])))
        if TEXT in os.environ:
            return _of([_checked(os.environ[TEXT], TEXT)])
        folder = data_folder()
        try:
            if folder is None:
                return _passing("this user has no home folder")
            return _of([_user_key(folder / "key")])
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            return _passing(f"no key can be kept in {folder}: {error.strerror or error}")

    def of(self, ident: str) -> Key | None:
        """Return the believed key of an ident."""
        return next((key for key in self.known if key.ident == ident), None)


def _of(lines: list[str]) -> Keys:
    known = tuple(Key(line.encode()) for line in lines)
    return Keys(known[0], known)


def _passing(why: str) -> Keys:
    key = _key_of_this_process()
    return Keys(
        key,
        (key,),
        f"{why}. Snapshots are signed with a key that ends with this kernel, and a resume in another one will need "
        f"--trust. Set {FILE} to a file that stays",
    )


@functools.cache
def _key_of_this_process() -> Key:
    return Key(secrets.token_bytes(32))


def _read_named(path: Path) -> list[str]:
    """Read the keys of the file that the environment names."""
    path = path.expanduser()
    way = f"Make one with: (umask 077; {_MAKE} > PATH), or unset {FILE}"
    try:
        data, mode = _read(path)
        lines = [line.strip() for line in data.decode().splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise OptionError(f"{FILE}={path} is not text. {way}") from None
    except OSError as error:
        raise OptionError(f"{FILE}={path} can't be read: {error.strerror or error}. {way}") from error
    if mode & _TOO_OPEN:
        raise OptionError(f"{FILE}={path} {_open_to_others(mode, path)}; for a mounted secret, defaultMode: 0440")
    if not lines:
        raise OptionError(f"{FILE}={path} is empty. {way}")
    return [_checked(line, f"{FILE}={path}, key {number}") for number, line in enumerate(lines, 1)]


def _checked(text: str, where: str) -> str:
    text = text.strip()
    if len(text) < SHORTEST:
        raise OptionError(
            f"{where} has {len(text)} characters, and a key needs {SHORTEST} or more. Make one with: {_MAKE}"
        )
    return text


def _user_key(path: Path) -> str:
    """Read this user's own key; make it where there is none."""
    try:
        data, mode = _read(path)
    except FileNotFoundError:
        _fs.make_folder(path.parent)
        _fs.write_new(path, secrets.token_hex(32).encode() + b"\n")  # of two that come at once, one is kept
        data, mode = _read(path)
    text = data.decode("ascii", "replace").strip()
    if mode & _TOO_OPEN:
        raise StoreError(f"the key {path} {_open_to_others(mode, path)}", str(path))
    if len(text) < SHORTEST:
        raise StoreError(f"the key {path} is damaged. Put back a copy, or remove it: runs then need --trust", str(path))
    return text


def _read(path: Path) -> tuple[bytes, int]:
    """Read a key, and tell who else can: the mode of the very file that was read."""
    with path.open("rb") as file:
        return file.read(_LONGEST), os.fstat(file.fileno()).st_mode


def _open_to_others(mode: int, path: Path) -> str:
    return f"can be read or written by others (mode {stat.S_IMODE(mode):04o}). Use: chmod 600 {path}"
