"""What a power cut can leave behind, after POSIX: only what was fsynced is sure.

``Recorder`` writes down the real calls of nbresume to a real disk. ``Machine`` does them again in a model: a write goes
to a page that may or may not have reached the disk, in any version that it has had since the last fsync; a size is any
that the file has had since then; a name is made, moved or removed by an operation that may or may not have happened
until its folder is fsynced. A rename is atomic. Nothing else is: operations on names that were not fsynced are in no order.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nbresume import _fs

PAGE = 4096


class Step(NamedTuple):
    """One call: its kind, what it is about, and more."""

    kind: str
    what: Any
    more: Any = None


class Recorder:
    """Writes down what is done to a folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.steps = root, []
        self._files: dict[int, int] = {}
        self._made = 0

    def say(self, kind: str, what: Any) -> None:
        """Write down something that is no call."""
        self.steps.append(Step(kind, what))

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand between nbresume and the disk."""
        names = ("open", "pwritev", "write", "ftruncate", "fdatasync", "fsync", "rename", "unlink", "mkdir")
        real = {name: getattr(os, name) for name in names}
        real_open = _fs._open

        def call(name):
            def called(*args, **kwargs):
                before = self._before(name, args)
                done = real[name](*args, **kwargs)
                self._after(name, args, done, before)
                return done

            return called

        def opened(path, mode="r", **more):
            file = real_open(path, mode, **more)
            if "x" not in mode or not self._is_ours(path):
                return file
            number = self._new(os.fstat(file.fileno()).st_ino)
            self.steps.append(Step("name", (self._name(path), number)))
            close, write, at = file.close, file.write, [0]

            def wrote(data):
                self.steps.append(Step("write", number, (at[0], bytes(data))))
                at[0] += len(data)
                return write(data)

            return _Watched(file, wrote, close)

        try:
            for name in names:
                setattr(os, name, call(name))
            _fs._open = opened
            yield
        finally:
            for name in names:
                setattr(os, name, real[name])
            _fs._open = real_open

    def _is_ours(self, path: Any) -> bool:
        return Path(os.fspath(path)).is_relative_to(self.root)

    def _name(self, path: Any) -> str:
        return str(Path(os.fspath(path)).relative_to(self.root))

    def _new(self, inode: int) -> int:
        self._made += 1
        self._files[inode] = self._made
        return self._made

    def _before(self, name: str, args: tuple) -> Any:
        if name == "open" and self._is_ours(args[0]):
            return not os.path.lexists(args[0])
        return os.fstat(args[0]).st_size if name == "write" else None

    def _after(self, name: str, args: tuple, done: Any, before: Any) -> None:
        add = self.steps.append
        if name == "open":
            if before and args[1] & os.O_CREAT:
                add(Step("name", (self._name(args[0]), self._new(os.fstat(done).st_ino))))
            return
        if name in ("rename", "unlink", "mkdir"):
            if self._is_ours(args[0]):
                add(Step(name, tuple(self._name(path) for path in args[: 2 if name == "rename" else 1])))
            return
        path = os.readlink(f"/proc/self/fd/{args[0]}")
        if not self._is_ours(path):
            return
        if os.path.isdir(path):
            add(Step("sync folder", self._name(path)))
            return
        file = self._files[os.fstat(args[0]).st_ino]
        match name:
            case "pwritev":
                add(Step("write", file, (args[2], b"".join(args[1])[:done])))
            case "write":
                add(Step("write", file, (before, bytes(args[1][:done]))))
            case "ftruncate":
                add(Step("size", file, args[1]))
            case "fsync" | "fdatasync":
                add(Step("sync", file))


class _Watched:
    """A file whose writes are written down."""

    def __init__(self, file: Any, write: Any, close: Any) -> None:
        self._file, self.write, self.close = file, write, close

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@dataclass
class File:
    """A file: what is sure, and what may have reached the disk since."""

    data: bytearray = field(default_factory=bytearray)
    """As a reader sees it while the machine runs."""
    pages: dict[int, list[bytes]] = field(default_factory=dict)
    """Of each page that was written since the last fsync: what it may hold, the sure content first."""
    sizes: list[int] = field(default_factory=lambda: [0])

    def write(self, at: int, data: bytes) -> None:
        end = at + len(data)
        for page in range(at // PAGE, -(-end // PAGE)):
            self.pages.setdefault(page, [self._page(page)])
        if end > len(self.data):
            self.resize(end)
        self.data[at:end] = data
        for page in range(at // PAGE, -(-end // PAGE)):
            self.pages[page].append(self._page(page))

    def resize(self, size: int) -> None:
        self.data = self.data[:size] + bytes(max(0, size - len(self.data)))
        self.sizes.append(size)

    def sync(self) -> None:
        self.pages, self.sizes = {}, [len(self.data)]

    def _page(self, page: int) -> bytes:
        return bytes(self.data[page * PAGE : (page + 1) * PAGE]).ljust(PAGE, b"\0")

    def after(self, chance: random.Random, share: float) -> bytes:
        """Return what a power cut leaves: each page and the size in any version, new ones with a probability."""
        found = bytearray(self.data)
        found.extend(bytes(max(0, max(self.sizes) - len(found))))
        for page, versions in self.pages.items():
            new = chance.random() < share
            one = versions[chance.randrange(1, len(versions))] if new else versions[0]
            if new and chance.random() < 0.1:  # torn within the page, at a sector
                cut = 512 * chance.randrange(8)
                one = one[:cut] + versions[0][cut:]
            found[page * PAGE : (page + 1) * PAGE] = one
        size = self.sizes[-1] if chance.random() < share else chance.choice(self.sizes)
        return bytes(found[:size]).ljust(size, b"\0")


class Machine:
    """Does recorded steps, and tells what a power cut could leave after each."""

    def __init__(self) -> None:
        self.files: dict[int, File] = {}
        self._sure: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._pending: list[tuple[str, tuple]] = []
        self._folders: set[str] = set()

    def do(self, step: Step) -> None:
        """Do one step."""
        match step.kind:
            case "name":
                path, number = step.what
                self.files[number] = File()
                self._change("set", (path, number))
            case "rename":
                self._change("move", (*step.what, self._names[step.what[0]]))
            case "unlink":
                self._change("drop", step.what)
            case "mkdir":
                self._folders.add(step.what[0])  # a lost folder is a lost launch: nothing was told of by then
            case "write":
                self.files[step.what].write(*step.more)
            case "size":
                self.files[step.what].resize(step.more)
            case "sync":
                self.files[step.what].sync()
            case "sync folder":
                for one in [one for one in self._pending if _folder(one) == step.what]:
                    _apply(self._sure, *one)
                    self._pending.remove(one)

    def _change(self, kind: str, what: tuple) -> None:
        self._pending.append((kind, what))
        _apply(self._names, kind, what)

    def crash(self, chance: random.Random) -> dict[str, bytes]:
        """Return the files that a power cut leaves."""
        names, share = dict(self._sure), chance.choice([0.0, 0.5, 0.9, 1.0])
        for one in self._pending:
            if chance.random() < share:
                _apply(names, *one)
        data = chance.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        return {path: self.files[number].after(chance, data) for path, number in names.items()}


def _folder(change: tuple[str, tuple]) -> str:
    return str(Path(change[1][0]).parent)


def _apply(names: dict[str, int], kind: str, what: tuple) -> None:
    match kind:
        case "set":
            names[what[0]] = what[1]
        case "move":
            names.pop(what[0], None)
            names[what[1]] = what[2]
        case "drop":
            names.pop(what[0], None)
