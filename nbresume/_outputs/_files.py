"""The files a cell writes by itself.

While a cell runs, ``open`` is managed: the user gets the very object that Python's own ``open`` returns, and we
remember
it. What a file was at a snapshot is its length, a fingerprint of its end, and a copy where it is small and is rewritten
as a whole. On a resume every such file is moved aside before the set-up or a ``with`` runs again; what those write is
dropped; then the file is put back and cut to what the snapshot knew. What is cut off is kept in the run's folder.

What a library opens below Python's ``open`` (HDF5, SQLite) is found by its descriptor. Such a file is written in place:
no length tells what it was, so the cell is refused.
"""

from __future__ import annotations

import base64
import builtins
import io
import json
import os
import sys
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import xxhash

from .. import _fs
from .._types import Json
from ..errors import RefusedError, ReplayError

COPY_LIMIT = 1 << 20
"""Bytes up to which a file that is rewritten as a whole is copied into the snapshot."""

PREFIX_LIMIT = 1 << 18
"""Bytes up to which an appended one is, for the notebook whose earlier cell truncates it at each restart."""

_TAIL = 1 << 16


@dataclass(slots=True)
class _Known:
    """A file that the cell opened for writing."""

    rewritten: bool = False
    handles: list[weakref.ref[IO[Any]]] = field(default_factory=list)

    def open_handles(self) -> list[IO[Any]]:
        found = [handle for ref in self.handles if (handle := ref()) is not None and not handle.closed]
        self.handles = [weakref.ref(handle) for handle in found]
        return found


class Files:
    """Follows the files that a cell opens.

    Parameters
    ----------
    folder : Path
        The run's folder: what is cut off goes into ``aside/``, what was opened into ``files.jsonl``.
    store : Path
        Root of the store, whose own files do not count.
    namespace : dict
        The notebook's globals: IPython puts an ``open`` of its own there, which would stand before ours.
    """

    def __init__(self, folder: Path, store: Path, namespace: dict[str, Any]) -> None:
        self.folder = folder
        self._namespace = namespace
        self._notebook_open: Any = None
        self._store = str(store.resolve())
        self._skipped = tuple(f"{root}{os.sep}" for root in (self._store, sys.prefix, sys.base_prefix))
        self._known: dict[str, _Known] = {}
        self._readers: dict[str, _Known] = {}
        self._real = builtins.open
        self._before: set[tuple[str, str]] = set()
        self._mapped_before: set[str] = set()
        self._aside: dict[str, Path] = {}

    # ------------------------------------------------------------------ following

    def start(self) -> None:
        """Manage ``open`` from here on."""
        self._real = builtins.open
        self._before = _writable_descriptors()
        self._mapped_before = _mapped_for_writing()
        builtins.open = io.open = self._open  # type: ignore[assignment]
        found = self._namespace.get("open")
        if getattr(found, "__wrapped__", None) is self._real:
            self._notebook_open = found
            self._namespace["open"] = self._open_in_notebook

    def stop(self) -> None:
        """Give ``open`` back."""
        if builtins.open == self._open:
            builtins.open = io.open = self._real
        if self._notebook_open is not None and self._namespace.get("open") == self._open_in_notebook:
            self._namespace["open"] = self._notebook_open

    def _open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        __tracebackhide__ = True
        return self._follow(self._real, file, mode, args, kwargs)

    def _open_in_notebook(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        __tracebackhide__ = True
        return self._follow(self._notebook_open, file, mode, args, kwargs)

    def _follow(self, real: Any, file: Any, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> IO[Any]:
        __tracebackhide__ = True
        path = self._path(file)
        writes = any(letter in mode for letter in "wax+")
        before = self._as_it_is(path) if path is not None and writes and path not in self._known else None
        handle: IO[Any] = real(file, mode, *args, **kwargs)
        if path is None:
            return handle
        if before is not None:
            self._known[path] = _Known()
            with _fs.open_log(self.folder / "files.jsonl") as log:
                log.write(json.dumps(before).encode() + b"\n")
        known = self._known[path] if writes else self._readers.setdefault(path, _Known())
        known.rewritten = "w" in mode or "+" in mode
        known.open_handles()
        known.handles.append(weakref.ref(handle))
        return handle

    @staticmethod
    def _as_it_is(path: str) -> Json:
        """Describe a file before the cell first writes to it, for a death before the next snapshot."""
        file = Path(path)
        length = file.stat().st_size if file.exists() else None
        return {"path": path, "length": length, "tail": _tail_digest(file, length or 0)}

    def _path(self, file: Any) -> str | None:
        if not isinstance(file, (str, bytes, os.PathLike)):
            return None
        path = os.path.realpath(os.fsdecode(file))
        ours = path.startswith((*self._skipped, "/dev/", "/proc/", "/sys/")) and not path.startswith("/dev/shm/")  # noqa: S108  # users do write there
        return None if ours or path.endswith(".pyc") else path

    # ------------------------------------------------------------------ at a boundary

    def state(self) -> list[Json]:
        """Describe the files as they are, after making their bytes durable.

        Raises
        ------
        RefusedError
            When a file is written in place, so that its length does not tell what it was.
        """
        self._refuse_in_place()
        return [self._describe(path, known) for path, known in self._known.items()]

    def reader_positions(self) -> list[Json]:
        """Tell where files open for reading stand; one whose position can't be told is a loop's own iterable."""
        found: list[Json] = []
        for path, known in self._readers.items():
            for nth, handle in enumerate(known.open_handles()):
                try:
                    found.append({"path": path, "nth": nth, "at": handle.tell()})
                except OSError:
                    continue
        return found

    def _describe(self, path: str, known: _Known) -> Json:
        handles = known.open_handles()
        for handle in handles:
            handle.flush()
        if not os.path.exists(path):  # noqa: PTH110
            return {"path": path, "length": None}
        file = Path(path)
        _fs.sync_file(file)
        length = file.stat().st_size
        entry: Json = {"path": path, "length": length, "tail": _tail_digest(file, length), "at": _positions(handles)}
        at_end = all(at in (None, length) for at in entry["at"]) or not known.rewritten
        whole = known.rewritten and (not handles or not at_end)
        if length <= (COPY_LIMIT if whole else PREFIX_LIMIT):
            entry["copy"] = base64.b64encode(file.read_bytes()).decode()
            entry["whole"] = whole
        elif whole and not at_end:
            raise RefusedError(
                f"{file.name} is open and written in the middle, and with {length:,} bytes too large to be copied",
                "Close it in the body, append to it, or write parts of at most 1 MB",
            )
        return entry

    def _refuse_in_place(self) -> None:
        found = [
            path for path, _ in _writable_descriptors() - self._before if os.path.realpath(path) not in self._known
        ]
        for path in [*found, *(_mapped_for_writing() - self._mapped_before)]:
            if os.path.realpath(path).startswith(self._store):
                continue
            raise RefusedError(
                f"{Path(path).name} is open for writing in place, by a library (HDF5, SQLite, a memory map)",
                "Write a file of its own in each iteration, opened and closed in the body; or collect the results and "
                "write them after the loop",
            )

    # ------------------------------------------------------------------ on a resume

    def check(self, recorded: list[Json]) -> None:
        """Check, before anything is touched, that every recorded file can be put back.

        Raises
        ------
        ReplayError
            When one is gone or was changed by someone else.
        """
        for entry in recorded:
            path, length = Path(entry["path"]), entry["length"]
            if length is None or entry.get("whole") or self._is_cut_short(path, entry):
                continue
            if not path.exists() and length:
                raise ReplayError(f"{path.name}, which the run had written, is gone. Put it back, or supersede the run")
            if length and _tail_digest(path, length) != entry["tail"]:
                raise ReplayError(
                    f"{path.name} was changed by someone else since the snapshot. Put it back, or supersede the run"
                )

    @staticmethod
    def _is_cut_short(path: Path, entry: Json) -> bool:
        """Whether a file is the beginning of what it was: an earlier cell has truncated it and written its header."""
        if "copy" not in entry:
            return False
        there = path.read_bytes() if path.exists() else b""
        return len(there) < entry["length"] and base64.b64decode(entry["copy"]).startswith(there)

    def later(self, recorded: list[Json]) -> list[Json]:
        """Describe files that were first opened after the snapshot, as they were before."""
        known = {entry["path"] for entry in recorded}
        found: dict[str, Json] = {}
        try:
            lines = (self.folder / "files.jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry["path"] not in known:
                found.setdefault(entry["path"], entry)
        return list(found.values())

    def set_aside(self, recorded: list[Json], attempt: int) -> None:
        """Move every recorded file away, so that what runs again finds the world of the launch."""
        moves = {
            entry["path"]: str(self.folder / "aside" / f"{attempt:04d}-{place:04d}-{Path(entry['path']).name}")
            for place, entry in enumerate(recorded)
        }
        if moves:
            # A death on the way back must not leave the user's files here: the next attempt looks.
            _fs.make_folder(self.folder / "aside")
            _fs.write(self._moved, json.dumps(moves).encode())
        for entry in recorded:
            path = Path(entry["path"])
            self._known.setdefault(str(path), _Known(rewritten=bool(entry.get("whole"))))
            if path.exists():
                target = Path(moves[entry["path"]])
                _fs.move(path, target)
                self._aside[str(path)] = target

    @property
    def _moved(self) -> Path:
        return self.folder / "aside" / "moved.json"

    def recover(self) -> None:
        """Put files back that an attempt had moved aside and could not put back itself."""
        try:
            moves = json.loads(self._moved.read_bytes())
        except FileNotFoundError:
            return
        for path, target in moves.items():
            if Path(target).exists():
                _fs.remove(Path(path))  # what ran again on the way has written it
                _fs.move(Path(target), Path(path))
        _fs.remove(self._moved)
        self._aside.clear()

    def put_back(self, recorded: list[Json], *, whole: bool = False) -> list[tuple[str, int]]:
        """Put every recorded file back as the snapshot knew it; returns names and the bytes cut off.

        Parameters
        ----------
        recorded : list of dict
            As ``state`` gave them.
        whole : bool
            Cut nothing: the run is complete.
        """
        cut = []
        for entry in recorded:
            path = Path(entry["path"])
            aside = self._aside.pop(str(path), None)
            if aside is None and entry["length"] is not None and path.exists():
                aside = self.folder / "aside" / f"{path.name}.now"
                _fs.make_folder(aside.parent)
                _fs.copy_prefix(path, aside, path.stat().st_size)
            if aside is not None and self._is_cut_short(aside, entry):
                whole = False
            had = aside.stat().st_size if aside is not None else 0
            keep = had if whole else entry["length"]
            self._put_back_one(path, aside, keep, {"at": entry.get("at")} if whole and aside is not None else entry)
            if keep is not None and had > keep:
                cut.append((path.name, had - keep))
            elif aside is not None and keep is not None:
                _fs.remove(aside)
        _fs.remove(self._moved)
        return cut

    def _put_back_one(self, path: Path, aside: Path | None, keep: int | None, entry: Json) -> None:
        known = self._known.get(str(path))
        handles = known.open_handles() if known else []
        for handle in handles:
            handle.flush()
        if keep is None:
            if not handles:
                _fs.remove(path)
            else:
                _fs.truncate(path, 0)
        elif entry.get("whole") or ("copy" in entry and (aside is None or aside.stat().st_size < entry["length"])):
            _fs.replace_bytes(path, base64.b64decode(entry["copy"]))
        elif aside is not None and not handles and aside.stat().st_size == keep:
            _fs.remove(path)
            _fs.move(aside, path)  # the very file, times and all
        elif aside is not None:
            _fs.copy_prefix(aside, path, keep)
        for handle, at in zip(handles, entry.get("at") or [None] * len(handles), strict=False):
            if at is None:
                handle.seek(0, os.SEEK_END)
            else:
                handle.seek(at)

    def put_readers(self, positions: list[Json]) -> None:
        """Put files open for reading where they stood."""
        for entry in positions:
            known = self._readers.get(entry["path"])
            handles = known.open_handles() if known else []
            if entry["nth"] < len(handles):
                handles[entry["nth"]].seek(entry["at"])


def _positions(handles: list[IO[Any]]) -> list[int | None]:
    found: list[int | None] = []
    for handle in handles:
        try:
            found.append(handle.tell())
        except OSError:
            found.append(None)
    return found


def _tail_digest(path: Path, length: int) -> str:
    """Digest the end of a file's first ``length`` bytes: it costs the same however long the file grows."""
    try:
        with io.FileIO(path) as file:
            file.seek(max(0, length - _TAIL))
            return xxhash.xxh3_128_hexdigest(file.read(min(_TAIL, length))) if path.stat().st_size >= length else ""
    except FileNotFoundError:
        return ""


def _writable_descriptors() -> set[tuple[str, str]]:
    """Return path and descriptor of each regular file open for writing in this process; none where nobody can tell."""
    found: set[tuple[str, str]] = set()
    if not sys.platform.startswith("linux"):
        return found
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # two system calls a descriptor, no more
        try:
            path = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
            if (
                not path.startswith("/")
                or path.startswith(("/dev/", "/proc/", "/sys/", "/memfd"))
                or "(deleted)" in path
            ):
                continue
            with io.FileIO(f"/proc/self/fdinfo/{name}") as info:
                flags = next(line for line in info.readall().splitlines() if line.startswith(b"flags:"))
        except (OSError, StopIteration):
            continue
        if int(flags.split()[1], 8) & os.O_ACCMODE:
            found.add((path, name))
    return found


def _mapped_for_writing() -> set[str]:
    """Return files that this process has mapped for shared writing: their descriptor is closed, their pages are not."""
    if not sys.platform.startswith("linux"):
        return set()
    with io.FileIO("/proc/self/maps") as maps:
        lines = maps.readall().decode("utf-8", "replace").splitlines()
    paths = {line[line.find("/") :] for line in lines if " rw-s " in line and "/" in line}
    return {path for path in paths if not path.startswith(_SHARED)}


_SHARED = ("/dev/", "/memfd", "/SYSV")
