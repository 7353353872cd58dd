"""``nbresume demo``: a real kernel is killed in the middle of a real cell, another goes on, and the bits are compared.

Nothing is staged: the notebook is the shipped ``quickstart.ipynb``, the kernels are ordinary ones, the death is
SIGKILL. A silent fresh start would give the same bits here, because the notebook seeds its streams; so the journal has
to say as well that the second attempt went on from a snapshot.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from . import _fs
from ._events import Event, decode
from .errors import NbresumeError, NotFoundError

NAME = "train"
"""The run of the quickstart notebook."""

SHARE = 0.4
"""How much of the training cell's time passes before its kernel is killed."""

PATIENCE = 120.0
"""Seconds after which a silent kernel is given up."""

_REPORT = """
import hashlib as _h, json as _j, random as _r, numpy as _n
def _nbresume_demo_report():
    def digest(data): return _h.sha256(data).hexdigest()
    def array(a): return digest(f"{a.dtype.str}{a.shape}".encode() + a.tobytes())
    kind, keys, *rest = _n.random.get_state()
    return _j.dumps({
        "w": array(w),
        "velocity": array(velocity),
        "history": digest(repr([(int(e), float(l).hex()) for e, l in history]).encode()),
        "np.random": digest(keys.tobytes() + repr((kind, rest)).encode()),
        "random": digest(repr(_r.getstate()).encode()),
    })
print(_nbresume_demo_report())
"""


@dataclass(slots=True)
class Reply:
    """What a kernel answered to one cell."""

    status: str = "ok"
    """``ok``, ``error``, or ``killed`` by us."""
    stream: str = ""
    shown: list[str] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


def run_demo(out: TextIO, folder: Path | None) -> int:
    """Kill a kernel in the middle of the quickstart notebook, go on in another, compare.

    Parameters
    ----------
    out : TextIO
        Where progress is told.
    folder : Path or None
        Where the two runs live; a new temporary folder when None. It stays, to be looked at.

    Returns
    -------
    int
        0 when every bit is equal and the run was continued, 1 when anything differs.

    Raises
    ------
    NbresumeError
        When the demo itself can't go on: a package is missing, or a kernel fails.
    """
    _require("ipykernel", "jupyter_client", "nbformat")
    folder = (folder or Path(tempfile.gettempdir()) / f"nbresume-demo-{secrets.token_hex(4)}").resolve()
    say = _Teller(out)
    cells = _cells(_notebook())
    reference, killed = Place(folder / "reference"), Place(folder / "killed")
    if reference.journals() or killed.journals():
        raise NbresumeError(f"{folder} holds runs already. Give another with --folder, or none for a new temporary one")

    say(f"the notebook quickstart.ipynb, {len(cells)} cells, in {folder}")
    say("1. reference: a kernel that nobody disturbs")
    with _kernel(reference) as kernel:
        seconds, _ = _run_notebook(kernel, cells)
        expected = _bits(kernel)
    say(f"   done; the training cell took {seconds:.1f} s and {len(reference.snapshots())} snapshots")

    say(f"2. the same notebook, killed with SIGKILL after about {SHARE:.0%} of the training cell")
    with _kernel(killed) as kernel:
        _run_until_killed(kernel, cells, killed, seconds * SHARE)
    latest = killed.snapshots()
    say(f"   killed; the latest of {len(latest)} snapshots stands at {latest[-1].facts.get('where', 'its start')}")

    say("3. a new kernel, the notebook run again from the top")
    with _kernel(killed) as kernel:
        seconds, offer = _run_notebook(kernel, cells)
        found = _bits(kernel)
    say(f"   done; the training cell took {seconds:.1f} s")
    _quote(out, offer.partition("\nattempts")[0])  # the rest stands in the lineage below

    say("4. compared with the reference, to the bit")
    faults = _compare(out, expected, found) + _not_continued(killed)
    _show(out, killed)
    for fault in faults:
        say(f"DIFFERENT: {fault}")
    say("the same run, to the bit" if not faults else "this is not the same run")
    return 1 if faults else 0


# ------------------------------------------------------------------ the steps


def _run_notebook(kernel: Kernel, cells: list[str]) -> tuple[float, str]:
    """Run all cells; returns the seconds of the training cell and what loading the extension showed."""
    seconds, offer = 0.0, ""
    for cell in cells:
        reply = kernel.run(cell)
        if reply.status != "ok":
            raise NbresumeError(f"the cell {_first_line(cell)!r} failed: {reply.error}")
        if _is_training(cell):
            seconds = reply.seconds
        if cell.startswith("%load_ext"):
            offer = "\n".join([*reply.shown, reply.stream]).strip()
    return seconds, offer


def _run_until_killed(kernel: Kernel, cells: list[str], place: Place, after: float) -> None:
    begun = [0.0]

    def in_the_middle() -> bool:
        # Not by the clock alone: something beyond boundary 0 has to lie on the disk.
        begun[0] = begun[0] or time.monotonic()
        return time.monotonic() - begun[0] >= after and len(place.snapshots()) > 1

    for cell in cells:
        reply = kernel.run(cell, kill_when=in_the_middle if _is_training(cell) else None)
        if reply.status == "killed":
            return
        if reply.status != "ok":
            raise NbresumeError(f"the cell {_first_line(cell)!r} failed: {reply.error}")
    raise NbresumeError(
        "the training cell was over before its kernel could be killed. Try again on a less busy machine"
    )


def _compare(out: TextIO, expected: dict[str, str], found: dict[str, str]) -> list[str]:
    faults = []
    for name, digest in expected.items():
        equal = found.get(name) == digest
        out.write(f"           {name:<10} {digest[:16]}  {'equal' if equal else 'DIFFERENT'}\n")
        if not equal:
            faults.append(f"{name} is {found.get(name, 'missing')[:16]}, the reference has {digest[:16]}")
    return faults


def _not_continued(place: Place) -> list[str]:
    """Tell why the journal does not describe one run in two attempts; a silent fresh start must not pass."""
    if len(place.journals()) != 1:
        return [f"{len(place.journals())} runs were recorded where one was continued"]
    resumed = [event for event in place.events() if event.kind == "resumed"]
    if not resumed or not resumed[0].facts.get("snapshot"):
        return ["the second kernel did not go on from a snapshot"]
    if not any(event.kind == "completed" for event in place.events()):
        return ["the run was not closed as completed"]
    return []


def _show(out: TextIO, place: Place) -> None:
    from ._card import text
    from ._session import view
    from ._store import Store

    run = Store(place.store).find(NAME)
    _quote(out, text(view(run)))
    files = sorted((run.path / "snapshots").glob("*.h5"))
    out.write(f"         snapshots, plain HDF5 files, in {run.path / 'snapshots'}:\n")
    out.writelines(f"           {file.name}  {file.stat().st_size:,} bytes\n" for file in files)


# ------------------------------------------------------------------ the notebook


def _notebook() -> Path:
    here = Path(__file__).resolve().parent
    for path in (here / "notebooks" / "quickstart.ipynb", here.parent / "notebooks" / "quickstart.ipynb"):
        if path.is_file():
            return path
    raise NotFoundError(f"quickstart.ipynb is not in {here / 'notebooks'}. Install nbresume again")


def _cells(path: Path) -> list[str]:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def _is_training(cell: str) -> bool:
    return cell.startswith("%%resumable")


def _first_line(cell: str) -> str:
    return cell.partition("\n")[0]


# ------------------------------------------------------------------ the folder a kernel works in


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with one store, where the kernels of one run work one after the other."""

    path: Path

    @property
    def store(self) -> Path:
        """Where its runs live."""
        return self.path / ".nbresume"

    def journals(self) -> list[Path]:
        """One for each run."""
        return sorted(self.store.glob(f"{NAME}-*/journal.jsonl"))

    def events(self) -> list[Event]:
        """Everything that the journals tell."""
        return [event for path in self.journals() for event in decode(path.read_bytes().splitlines())]

    def snapshots(self) -> list[Event]:
        """Tell of the snapshots that were published."""
        return [event for event in self.events() if event.kind == "snapshot"]


# ------------------------------------------------------------------ the kernel


@contextlib.contextmanager
def _kernel(place: Place) -> Iterator[Kernel]:
    _fs.make_folder(place.path)
    with _fs.open_log(place.path / "kernel.log") as log:
        kernel = Kernel(place, log)
        try:
            yield kernel
        finally:
            kernel.close()


class Kernel:
    """An ordinary kernel, apart from the user's own settings and history."""

    def __init__(self, place: Place, log: Any) -> None:
        from jupyter_client.manager import KernelManager

        self._manager = KernelManager(kernel_name="python3")
        self._manager.kernel_spec.argv[:] = [
            sys.executable,
            "-m",
            "ipykernel_launcher",
            "--HistoryManager.hist_file=:memory:",
            "-f",
            "{connection_file}",
        ]
        ours = {
            "NBRESUME_STORE": str(place.store),
            "NBRESUME_INDEX": "0",
            "IPYTHONDIR": str(place.path / "ipython"),
        }
        theirs = {key: value for key, value in os.environ.items() if not key.startswith(("NBRESUME_", "JPY_"))}
        self._manager.start_kernel(cwd=str(place.path), env={**theirs, **ours}, stdout=log, stderr=log)
        self._client = self._manager.client()
        try:
            self._client.start_channels()
            self._client.wait_for_ready(timeout=PATIENCE)
        except RuntimeError as error:
            self.close()
            raise NbresumeError(f"the kernel did not start ({error}). Its own words are in {log.name}") from error
        except BaseException:
            self.close()
            raise

    def run(self, code: str, kill_when: Callable[[], bool] | None = None) -> Reply:
        """Execute a cell and wait for its end.

        Parameters
        ----------
        code : str
            The cell.
        kill_when : callable, optional
            Asked again and again; the kernel is killed as soon as it says True.
        """
        request = self._client.execute(code, allow_stdin=False)
        reply, begun = Reply(), time.monotonic()
        while not reply.seconds:
            if kill_when is not None and kill_when():
                os.kill(self._manager.provisioner.pid, signal.SIGKILL)
                reply.status = "killed"
                return reply
            try:
                message = self._client.get_iopub_msg(timeout=0.01 if kill_when else 0.5)
            except queue.Empty:
                self._still_there(begun)
                continue
            if message["parent_header"].get("msg_id") == request:
                _hear(reply, message, begun)
        return reply

    def _still_there(self, begun: float) -> None:
        if not self._manager.is_alive():
            raise NbresumeError("the kernel died by itself. Its own words are in kernel.log beside the store")
        if time.monotonic() - begun > PATIENCE:
            raise NbresumeError(f"the kernel said nothing for {PATIENCE:.0f} s")

    def close(self) -> None:
        """End the kernel; it may be dead already."""
        self._client.stop_channels()
        with contextlib.suppress(ProcessLookupError):
            self._manager.shutdown_kernel(now=True)


def _hear(reply: Reply, message: dict[str, Any], begun: float) -> None:
    content = message["content"]
    match message["msg_type"]:
        case "stream":
            reply.stream += content["text"]
        case "display_data" | "execute_result":
            reply.shown.append(content["data"].get("text/plain", ""))
        case "error":
            reply.status, reply.error = "error", f"{content['ename']}: {content['evalue']}"
        case "status" if content["execution_state"] == "idle":
            reply.seconds = time.monotonic() - begun


def _bits(kernel: Kernel) -> dict[str, str]:
    """Digest the results inside the kernel, so that nothing is rounded on the way."""
    reply = kernel.run(_REPORT)
    if reply.status != "ok":
        raise NbresumeError(f"the results can't be read: {reply.error}")
    bits: dict[str, str] = json.loads(reply.stream)
    return bits


# ------------------------------------------------------------------ words


class _Teller:
    """Writes lines with the seconds since the start."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._begun = out, time.monotonic()

    def __call__(self, line: str) -> None:
        self._out.write(f"[{time.monotonic() - self._begun:5.1f} s] {line}\n")
        self._out.flush()


def _quote(out: TextIO, text: str) -> None:
    for line in text.splitlines():
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
        out.write(f"         | {plain}".rstrip() + "\n")
    out.flush()


def _require(*modules: str) -> None:
    missing = [module.replace("_", "-") for module in modules if find_spec(module) is None]
    if missing:
        raise NbresumeError(
            f"the demo starts a real kernel and needs {', '.join(missing)}, not installed here. "
            f"Install the extra: {sys.executable} -m pip install 'nbresume[demo]'"
        )
