"""Who writes a run, and what decides whether that process still lives.

Three things know it, each where the others don't. The record lock dies with its process, whatever machine that was on.
The owner record tells a process of this machine from every other that ever was: a lock is lost when anything in its
process closes the file. Where a file system knows no locks, and the record names another machine, only a pulse is left:
the owner touches its record every few seconds.

None of them is beyond doubt: a machine that is suspended loses its lock and has no pulse. So a writer looks at the
record before each snapshot, and one that has lost the run stops there; what it wrote in between belongs to an attempt
that is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from .. import _fs, _processes
from .._types import Json
from ..errors import BusyError, StoreError

PATIENCE = 2.5
"""Seconds to wait for an owner to end: a kernel whose server died lives on for up to one beside the new one."""
STILL = 30.0
"""Seconds without a pulse after which an owner that nothing else is known of is taken for dead."""
_STEP = 0.1
_SETTLE = 0.3
"""Seconds in which two that take a run without locks both write the record; the later one has it."""

_HELD: set[str] = set()
"""Keys of the claims of this process: a record that a dying disk kept after its claim was left is nobody's."""


class Claim:
    """The right to write a run, until ``leave``.

    Parameters
    ----------
    folder : Path
        The run's.
    record : dict
        What its owner record says.
    lock : Lock
        Taken.

    Attributes
    ----------
    lost : bool
        Whether another kernel has been found to have taken the run over.
    written : bytes
        The record of its owner: while the file holds these bytes, the run is ours.
    """

    def __init__(self, folder: Path, record: Json, lock: _processes.Lock) -> None:
        self.lost = False
        self.written = json.dumps(record).encode()
        self._folder, self._record, self._lock = folder, record, lock
        _HELD.add(record["key"])
        self._pulse = None if lock.is_known else _processes.Pulse(folder / "owner")

    @property
    def key(self) -> str:
        """What no other claim has."""
        return str(self._record["key"])

    def holds(self) -> bool:
        """Whether the run is still ours: this process may have stood still while another took it over."""
        try:
            return _fs.read(self._folder / "owner") == self.written
        except OSError:
            return False

    def check(self) -> None:
        """Check that the run is still ours; nothing may be written to it when it is not.

        Raises
        ------
        BusyError
            When another kernel has taken it over.
        StoreError
            When its folder does not answer: nobody has taken it over then.
        """
        if not self.holds():
            if trouble := _unreadable(self._folder):
                raise StoreError(
                    f"{self._folder} can't be read: {trouble}. Bring that disk back, or choose another store with "
                    "--store",
                    str(self._folder),
                )
            self.lost = True
            raise BusyError(
                "another kernel has taken this run over while this one stood still. This cell stops here and writes no "
                "more; what it computed since its last snapshot is done again there"
            )

    def leave(self) -> None:
        """Stop being the one that writes; a second call does nothing."""
        if self._pulse is not None:
            self._pulse.stop()
        _HELD.discard(self._record["key"])
        if self._lock.is_taken and self.holds():
            with contextlib.suppress(OSError):  # the lock, and the end of this process, tell it as well
                _fs.remove(self._folder / "owner")
        self._lock.release()


def owner(folder: Path) -> Json:
    """Read who writes a run; empty when nobody says."""
    try:
        record: Json = json.loads((folder / "owner").read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _unreadable(folder: Path) -> str:
    """Tell why a run's folder does not answer; empty when it does, and its owner record is not ours."""
    for name in ("run.json", "owner"):
        try:
            (folder / name).read_bytes()
        except FileNotFoundError as error:
            if name == "run.json":
                return error.strerror or str(error)
        except OSError as error:
            return error.strerror or str(error)
    return ""


def is_alive(folder: Path) -> bool:
    """Whether another process, or this one, is at work on a run."""
    record = owner(folder)
    if _processes.is_running(record):
        mine = record["pid"] == os.getpid() and "key" in record
        return not mine or record["key"] in _HELD  # of this process, the lock can't be asked: that would drop it
    locked = _processes.is_locked(folder / "lock")
    if locked is None and record and not _processes.is_from_here(record):
        return _processes.age(folder / "owner") < STILL
    return bool(locked)


def refuse_while_alive(folder: Path, name: str) -> None:
    """Wait a moment for the process that holds a run to end.

    Raises
    ------
    BusyError
        When it does not.
    """
    end = time.monotonic() + PATIENCE
    while is_alive(folder):
        if time.monotonic() > end:
            raise BusyError(_sentence(folder, name))
        time.sleep(_STEP)


def wait_for(lock: _processes.Lock, name: str) -> None:
    """Take a lock that is held for moments only.

    Raises
    ------
    BusyError
        When it is held for longer.
    """
    end = time.monotonic() + 2 * PATIENCE
    while not lock.take():
        if time.monotonic() > end:
            raise BusyError(f"another kernel is about to start or continue {name}. Run this cell again when it is done")
        time.sleep(_STEP)


def take(folder: Path, name: str, attempt: int) -> Claim:
    """Become the one that writes.

    Raises
    ------
    BusyError
        When another process holds the run.
    """
    refuse_while_alive(folder, name)
    lock = _processes.Lock(folder / "lock")
    if not lock.take():
        raise BusyError(f"{name} was just taken by another kernel, which goes on with it. Stop that one first")
    record = {**_processes.process_identity(), "attempt": attempt, "key": _processes.unique()}
    claim = Claim(folder, record, lock)
    try:
        _fs.write(folder / "owner", claim.written)
        if not lock.is_known:
            time.sleep(_SETTLE)
        claim.check()
        for where in (folder, folder / "snapshots", folder / "once", folder / "files"):
            _fs.remove_leftovers(where)
    except BaseException:
        claim.leave()
        raise
    return claim


def _sentence(folder: Path, name: str) -> str:
    record = owner(folder)
    if not record or _processes.is_from_here(record):
        where, way = f"in another kernel (process {record.get('pid', '?')})", ""
    elif _processes.is_locked(folder / "lock") is None:
        where = f"on another machine, which gave a sign of life {_processes.age(folder / 'owner'):.0f} s ago"
        way = f". If that machine is gone, run this cell again in {STILL:.0f} s"
    else:
        where, way = "in a kernel on another machine", ""
    return f"{name} is running {where}. Stop that one first, or give this cell another name{way}"
