"""The file that loads nbresume in every kernel and terminal, without a word in any notebook.

IPython runs what lies in ``startup`` of the user's profile, and in ``etc/ipython/startup`` of the environment. A file
there holds whatever a user's own configuration sets, which a list of extensions does not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from . import _fs
from .errors import StoppedError, StoreError

NAME = "50-nbresume.py"
TEXT = """\
# Written by `nbresume install`; `nbresume uninstall` takes it away again.
# Loads nbresume in each kernel and terminal, and does nothing where it is not installed.
__import__("importlib.util").util.find_spec("nbresume") and get_ipython().extension_manager.load_extension("nbresume")
"""


def startup_file(*, user: bool) -> Path:
    """Return the path of the file: in the environment, or in the user's default profile."""
    if not user:
        return Path(sys.prefix) / "etc" / "ipython" / "startup" / NAME
    home = Path(os.environ.get("IPYTHONDIR") or "~/.ipython").expanduser()
    return home / "profile_default" / "startup" / NAME


def write_startup(*, user: bool) -> str:
    """Write the file, if it is not there; returns what to tell the person.

    Raises
    ------
    StoppedError
        When another file has its name.
    StoreError
        When it can't be written.
    """
    path = startup_file(user=user)
    there = _content(path)
    if there == TEXT:
        return f"{path} is there already: every new kernel loads nbresume"
    if there is not None:
        raise StoppedError(f"{path} is not what nbresume writes: it was left as it is. Move it away first")
    try:
        _fs.make_open_folder(path.parent)
        _fs.write(path, TEXT.encode(), mode=_fs.ALL_READ)
    except OSError as error:
        why = error.__cause__ or error
        way = "Have somebody do it who may, or use --user" if not user else "Choose another IPYTHONDIR"
        raise StoreError(f"cannot write {path}: {getattr(why, 'strerror', '') or why}. {way}", str(path)) from error
    return (
        f"{path} is written: every new kernel loads nbresume; to take it away again: nbresume uninstall {_word(user)}"
    )


def remove_startup(*, user: bool) -> str:
    """Take the file away, if it is as we wrote it; returns what to tell the person.

    Raises
    ------
    StoppedError
        When somebody has changed it.
    StoreError
        When it can't be removed.
    """
    path = startup_file(user=user)
    there = _content(path)
    if there is None:
        return f"{path} is not there: nothing to take away"
    if there != TEXT:
        raise StoppedError(f"{path} is not what nbresume writes: it was left as it is. Remove it by hand")
    try:
        _fs.remove(path)
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {error.strerror}", str(path)) from error
    if not user:
        for folder in (path.parent, path.parent.parent):
            _fs.remove_empty(folder)
    return f"{path} is taken away"


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _word(user: bool) -> str:  # noqa: FBT001  # as it is said on the command line
    return "--user" if user else "--sys-prefix"
