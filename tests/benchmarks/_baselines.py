"""The plain things that nbresume is measured against, and the clock; called from inside the measured cells.

Nothing here keeps anything between two calls: what a module of the notebook holds would be an input of the run, and
nbresume would have to look at it at each boundary.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PLAIN = Path(".nbresume") / ".plain"
"""Where the plain things are written: in the store's folder, because nbresume follows what a cell writes elsewhere."""


def clock() -> tuple[float, float]:
    """Return the time, and how long this thread has waited for a processor, in seconds."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            waited = int(file.read().split()[1]) / 1e9
    except OSError:
        waited = 0.0
    return time.perf_counter(), waited


def since(began: tuple[float, float]) -> tuple[float, float]:
    """Return the seconds since then, and those of them in which this thread waited for a processor."""
    now, waited = clock()
    return now - began[0], waited - began[1]


def timed(act: Callable[[], Any]) -> tuple[float, float]:
    """Time one call."""
    began = clock()
    kept = act()
    spent = since(began)
    del kept  # to give memory back is not part of it
    return spent


def buffers(values: tuple[Any, ...]) -> list[Any]:
    """Return the bytes of arrays, tensors and other things, without copying large ones."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype != object:
            found.append(memoryview(np.ascontiguousarray(value).reshape(-1).view("u1")))
        elif type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "data_ptr"):
            found.append(memoryview(value.detach().numpy().reshape(-1).view("u1")))
        elif isinstance(value, (list, tuple)) and value and hasattr(value[0], "nbytes"):
            found += buffers(tuple(value))
        else:
            aside: list[Any] = []
            found.append(memoryview(pickle.dumps(value, 5, buffer_callback=aside.append)))
            found += [buffer.raw() for buffer in aside]
    return found


def raw(*values: Any) -> tuple[float, float]:
    """Write bytes into one new file as safely as it can be done, and nothing else."""
    parts = buffers(values)
    file = fresh("raw.bin")
    return timed(lambda: write_durably(parts, file))


def fresh(name: str) -> Path:
    """Return where a file is written; that an old one is freed is not part of it: the harder baseline."""
    PLAIN.mkdir(parents=True, exist_ok=True)
    file = PLAIN / name
    file.unlink(missing_ok=True)
    return file


def write_durably(parts: list[Any], path: Path) -> None:
    """Write, fsync, rename, fsync the folder."""
    temp = path.with_suffix(".tmp")
    file = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        for part in parts:
            done = 0
            while done < len(part):
                done += os.write(file, part[done:])
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(temp, path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def numpy_save(*arrays: np.ndarray) -> tuple[float, float]:
    """Write arrays with ``np.save`` and fsync the file."""
    path = fresh("arrays.npy")

    def act() -> None:
        with open(path, "wb") as file:
            for array in arrays:
                np.save(file, array)
            file.flush()
            os.fsync(file.fileno())

    return timed(act)


def memcpy(*arrays: np.ndarray) -> tuple[float, float]:
    """Copy arrays into memory that has been touched."""
    targets = [np.zeros_like(array) for array in arrays]
    for target in targets:
        target.fill(1)

    def act() -> None:
        for target, array in zip(targets, arrays, strict=True):
            np.copyto(target, array)

    return timed(act)


def pickled(*values: Any) -> tuple[float, float]:
    """Pickle into memory."""
    return timed(lambda: pickle.dumps(values, 5))


def pickled_durably(*values: Any) -> tuple[float, float]:
    """Pickle in protocol 5 into a file, safely."""
    file = fresh("values.pickle")
    return timed(lambda: write_durably([memoryview(pickle.dumps(values, 5))], file))


def settle(run: str, seq: int, seconds: float = 60.0) -> bool:
    """Wait until a run's snapshot of this number is published; tells whether it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if newest(run) >= seq:
            time.sleep(0.05)  # what follows a publication, such as pruning
            return True
        time.sleep(0.005)
    sys.stderr.write(f"snapshot {seq} of {run} was not there after {seconds} s\n")
    return False


def newest(run: str) -> int:
    """Return the number of the newest snapshot that a run in this folder has published; -1 without one."""
    found = Path(".nbresume").glob(f"{run}-??????/snapshots/*-*.h5")
    return max((int(path.stem.partition("-")[2]) for path in found), default=-1)
