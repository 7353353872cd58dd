"""Every error of nbresume: a sentence with a value and a way out.

::

    NbresumeError(Exception)
    ├── OptionError(ValueError)          a word on the magic line, in the environment or the config
    ├── RefusedError(ValueError)         this cell can't be made resumable as it stands
    │   └── UnsaveableError(TypeError)   something the run needs can't be saved
    ├── StoppedError(RuntimeError)       nothing was touched; a person has to choose
    │   ├── ChangedError                 what identifies the run differs
    │   ├── ReplayError                  the restored run would not be the same run
    │   ├── BusyError                    the run is alive in another process
    │   └── UntrustedError               what the run holds is not signed with a key of ours
    ├── StoreError(OSError)              the disk, or what lies on it
    │   └── CorruptError                 no snapshot of the run can be believed
    └── NotFoundError(LookupError)       no run of that name
"""

from __future__ import annotations

__all__ = [
    "BusyError",
    "ChangedError",
    "CorruptError",
    "NbresumeError",
    "NotFoundError",
    "OptionError",
    "RefusedError",
    "ReplayError",
    "StoppedError",
    "StoreError",
    "UnsaveableError",
    "UntrustedError",
]


class NbresumeError(Exception):
    """Base of all errors of nbresume."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in a notebook: the frames between would be ours, not the user's."""
        return [f"{type(self).__name__}: {self}"]


class OptionError(NbresumeError, ValueError):
    """An option has a value that it can't have."""


class RefusedError(NbresumeError, ValueError):
    """The cell can't be made resumable as it stands; raised before, or at, its first boundary.

    Attributes
    ----------
    reason : str
        What stands in the way.
    way_out : str
        What the user can do.
    line : int or None
        Line of the cell, counted from 1 with the magic line.
    """

    def __init__(self, reason: str, way_out: str, line: int | None = None) -> None:
        self.reason, self.way_out, self.line = reason, way_out, line
        where = f"line {line}: " if line else ""
        super().__init__(f"{where}{reason}. {way_out}")


class UnsaveableError(RefusedError, TypeError):
    """A value the run needs can't be saved.

    Attributes
    ----------
    path : str
        From the variable to the culprit, such as ``cfg.db``.
    type_name : str
        Type of the culprit, such as ``sqlite3.Connection``.
    """

    def __init__(self, path: str, type_name: str, why: str, way_out: str, line: int | None = None) -> None:
        self.path, self.type_name = path, type_name
        super().__init__(f"cannot save {path!r} ({type_name}): {why}", way_out, line)


class StoppedError(NbresumeError, RuntimeError):
    """The cell stopped before anything ran; files and snapshots are as they were."""


class ChangedError(StoppedError):
    """What identifies the run differs from the interrupted run of the same name.

    Attributes
    ----------
    differences : tuple of str
        One readable line for each difference, such as ``lr: 0.1 -> 0.01``.
    """

    def __init__(self, message: str, differences: tuple[str, ...]) -> None:
        self.differences = differences
        super().__init__(message)


class ReplayError(StoppedError):
    """On the way back something came out differently; continuing would be another run."""


class BusyError(StoppedError):
    """The run is alive in another process."""


class UntrustedError(StoppedError):
    """What the run holds is not signed, or with another key, and loading it could run anybody's code.

    Attributes
    ----------
    path : str
        What can't be trusted.
    """

    def __init__(self, message: str, path: str = "") -> None:
        self.path = path
        super().__init__(message)


class StoreError(NbresumeError, OSError):
    """The store can't be read or written.

    Attributes
    ----------
    path : str
        The file or folder.
    """

    def __init__(self, message: str, path: str = "") -> None:
        self.path = path
        super().__init__(message)

    def __str__(self) -> str:
        return str(self.args[0])


class CorruptError(StoreError):
    """Snapshots were published and none of them can be believed."""


class NotFoundError(NbresumeError, LookupError):
    """No run of that name in this store."""
