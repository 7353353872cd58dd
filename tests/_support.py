"""What several test files need: a notebook without a front end, and real kernels."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nbresume._capture import Definitions, capture, restore
from nbresume._store import RunFolder, Snapshot

LIMIT = 90.0
"""Seconds after which a kernel that says nothing is a failure."""


def script(code: str, *words: object, cwd: Path | None = None, seed: str = "random") -> str:
    """Run code in a Python of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commit(run: RunFolder, names: dict[str, Any], attempt: int = 1, seq: int = 0, **meta: Any) -> Path:
    """Publish a snapshot of real values, with its line in the journal; returns its file."""
    found = capture({"names": names}, definitions=Definitions({}), inputs={}, places=names)
    writer, path = run.writer(), run.snapshot_path(attempt, seq)
    writer.commit(writer.stage(path, meta, found.stream, found.tables, found.blocks))
    run.note("snapshot", attempt, snapshot=path.stem, bytes=path.stat().st_size)
    return path


def load(snapshot: Snapshot) -> dict[str, Any]:
    """Read the values of a snapshot back."""
    stream, tables = snapshot.stream_and_tables()
    return restore(stream, tables, definitions=Definitions({}), inputs={}, read=snapshot.read)["names"]


def round_trip(value: Any, namespace: dict[str, Any] | None = None, back: dict[str, Any] | None = None) -> Any:
    """Capture a value and restore it as another process would: from bytes alone."""
    found = capture(value, definitions=Definitions(namespace or {}), inputs={}, places={})
    stored = [None if block.data is None else np.array(block.data, copy=True, order="C") for block in found.blocks]

    def read(targets: Any) -> None:
        for i, target in targets.items():
            data = stored[i]
            target[...] = data.reshape(-1).view("u1").view(target.dtype).reshape(target.shape)

    definitions = Definitions(namespace or {} if back is None else back)
    return restore(found.stream, found.tables, definitions=definitions, inputs={}, read=read)


def h5_names(path: Path) -> set[str]:
    """Return the names of all datasets of a file."""
    found: list[str] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, node: found.append(name) if isinstance(node, h5py.Dataset) else None)
    return set(found)


def until(condition: Callable[[], Any], what: str = "what was waited for") -> Any:
    """Wait for something to be true; returns it."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come")


def shell(*words: str, store: Path) -> tuple[int, str]:
    """Say words to the command line; returns its exit status and its answer."""
    from nbresume._cli import main

    out = io.StringIO()
    return main([*words, "--store", str(store)], out), out.getvalue()


@contextlib.contextmanager
def meanwhile(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Do something in a thread while a cell of this process runs; what it raises is raised here."""
    found: list[Any] = []

    def done() -> None:
        try:
            found.append(work())
        except BaseException as error:  # raised below
            found.append(error)

    thread = threading.Thread(target=done)
    thread.start()
    yield found
    thread.join(LIMIT)
    assert found, "it did not end"
    if isinstance(found[0], BaseException):
        raise found[0]


class Kernel:
    """A real kernel, spoken to as a front end does."""

    def __init__(self, folder: Path, python: Path | None = None) -> None:
        from jupyter_client.manager import KernelManager

        self.manager = KernelManager(kernel_name="python3")
        if python is not None:
            self.manager.kernel_spec.argv[0] = str(python)
        self.manager.start_kernel(cwd=str(folder), env={**os.environ, "PYTHONHASHSEED": "random"})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self.manager.provisioner.process.pid)

    def send(self, code: str) -> str:
        """Start a cell; returns the id of its message."""
        return self.client.execute(textwrap.dedent(code), allow_stdin=True)

    def finish(self, message: str, until: str | None = None) -> tuple[str, str]:
        """Wait for a cell to end, or to print ``until``.

        Returns
        -------
        text : str
            What it printed and displayed.
        error : str
            Name and text of its error, or empty.
        """
        text, error = "", ""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            try:
                told = self.client.get_iopub_msg(timeout=0.5)
            except queue.Empty:
                assert self.manager.is_alive(), f"the kernel died: {text}"
                continue
            if told["parent_header"].get("msg_id") != message:
                continue
            content = told["content"]
            match told["msg_type"]:
                case "stream":
                    text += content["text"]
                case "execute_result" | "display_data":
                    text += str(content["data"].get("text/plain", "")) + "\n"
                case "error":
                    error = f"{content['ename']}: {content['evalue']}"
                case "status" if content["execution_state"] == "idle":
                    return text, error
            if until is not None and until in text:
                return text, error
        raise AssertionError(f"the cell did not end in {LIMIT} s: {text}")

    def run(self, code: str) -> tuple[str, str]:
        """Run a cell to its end."""
        return self.finish(self.send(code))

    def values(self, *names: str) -> dict[str, str]:
        """Return fingerprints of variables and of the global random streams."""
        code = (
            "from nbresume._identity import fingerprint as _f; from nbresume._capture import rng_state as _r\n"
            f"print({{**{{n: _f(globals().get(n, '(not bound)')).digest for n in {names!r}}}, 'streams': _f(_r()).digest}})"
        )
        text, error = self.run(code)
        assert not error, error
        return eval(text)

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer does it."""
        os.kill(self.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Let go of everything."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def commit_again(
    run: RunFolder,
    steps: Iterable[int],
    disk: Any = None,
    *,
    size: int = 1 << 17,
    attempt: int = 1,
    told: Callable[[int], None] = lambda _step: None,
) -> None:
    """Commit the states of a loop one after the other, as a cell does it: a number a step in a large array."""
    from nbresume._policy import Keep
    from nbresume._session._commits import Commits

    claim = run.take(attempt)
    if not run.events():
        run.note("launched", attempt)
    commits = Commits(run, attempt, claim, Keep(2), hold=lambda: None, let_go=lambda: None)
    names = {"state": np.zeros(size), "step": 0}
    with contextlib.nullcontext() if disk is None else disk.in_place():
        for step in steps:
            names["state"][:] = names["step"] = step
            found = capture({"names": names}, definitions=Definitions({}), inputs={}, places=names)
            path = run.snapshot_path(attempt, step)
            staged = commits.writer.stage(path, {"step": step}, found.stream, found.tables, found.blocks)
            commits.now(staged, {"where": str(step)}, time.perf_counter())
            commits.wait()
            commits.settle()
            told(step)
    claim.leave()
