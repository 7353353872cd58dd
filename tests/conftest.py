"""Fixtures that several files use."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


class Notebook:
    """A shell with the extension loaded, standing in a folder of its own; ``restart`` is a new kernel's memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.restart()

    def restart(self) -> None:
        """Forget all names; runs stay."""
        from nbresume._magic._scratch import scratch_shell

        self.close()
        self.shell = scratch_shell()
        self.shell.run_line_magic("colors", "nocolor")

    def run(self, cell: str) -> Any:
        """Run a cell that has to end well; returns its value."""
        result = self.shell.run_cell(cell, store_history=True)
        result.raise_error()
        return result.result

    def fails(self, cell: str) -> BaseException:
        """Run a cell that has to fail; returns its error."""
        result = self.shell.run_cell(cell, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        assert error is not None, "the cell ended well"
        return error

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.shell.user_ns

    @property
    def store(self) -> Any:
        """Its store."""
        from nbresume._store import Store

        return Store(self.folder / ".nbresume")

    @property
    def runs(self) -> list[Any]:
        """Its runs, oldest first."""
        return list(self.store)

    def files(self) -> dict[str, bytes]:
        """Return every file of the store."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in (self.folder / ".nbresume").rglob("*")
            if path.is_file()
        }

    def close(self) -> None:
        """Unload the extension."""
        from nbresume import unload_ipython_extension

        shell = getattr(self, "shell", None)
        if shell is not None:
            unload_ipython_extension(shell)


@pytest.fixture(autouse=True, scope="session")
def own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the index of stores away from the one of whoever runs the tests; kernels inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(tmp_path_factory.mktemp("jupyter")))
        yield


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A notebook in the process of the test."""
    main, hook, trace = sys.modules["__main__"], sys.displayhook, sys.excepthook
    for name in (
        "STORE",
        "EVERY",
        "KEEP",
        "KEEP_EVERY",
        "KEEP_FREE",
        "UNPROTECTED",
        "ON_RESTART",
        "STRICT",
        "REBUILD",
        "PLAN",
        "BUDGET",
        "MAX_WAIT",
        "SYNC",
    ):
        monkeypatch.delenv(f"NBRESUME_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    found = Notebook(tmp_path)
    yield found
    found.close()
    type(found.shell).clear_instance()
    sys.modules["__main__"], sys.displayhook, sys.excepthook = main, hook, trace


@pytest.fixture
def quick_disk(monkeypatch):
    """Let rehearsals happen in memory: a killed process loses nothing there, and an fsync costs nothing."""
    if Path("/dev/shm").is_dir():
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
