"""Hands and eyes for real front ends in a real Chromium: JupyterLab, and Notebook 7.

Whoever reads a test that uses this should see what a person does: open a notebook, run a cell, press a button, look.
Waiting is always for something that can be seen, never for a time.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import nbformat
import psutil
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, Page, expect, sync_playwright

PATIENCE = 60.0
"""Seconds until something is taken for broken; a busy machine is slow."""
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class FrontEnd:
    """What a notebook is opened with.

    Attributes
    ----------
    name : str
        As the option ``--front-end`` takes it.
    module : str
        What ``python -m`` starts.
    place : str
        Where its server opens a notebook.
    python : str
        Environment variable that names the Python of server and kernel; empty for the one that runs the tests.
    hears_while_busy : bool
        Whether a click reaches the kernel while a cell runs.
    """

    name: str
    module: str
    place: str
    python: str = ""
    hears_while_busy: bool = True

    def interpreter(self) -> str:
        """Return the Python that it runs on."""
        return os.environ[self.python] if self.python else sys.executable


FRONT_ENDS = {
    one.name: one
    for one in (
        FrontEnd("lab", "jupyterlab", "lab/tree/{}"),
        FrontEnd("notebook", "notebook", "notebooks/{}"),
        FrontEnd("lab-4.2", "jupyterlab", "lab/tree/{}", "NBRESUME_LAB42_PYTHON", hears_while_busy=False),
    )
}


def until(look: Callable[[], _T | None], what: str, patience: float = PATIENCE) -> _T:
    """Look until there is something to see."""
    end = time.monotonic() + patience
    while not (seen := look()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {patience:.0f} s for {what}")
        time.sleep(0.05)
    return seen


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook that says which kernel it wants: without that, JupyterLab asks first."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, path)


class LabServer:
    """The server of a front end over one folder, with a home of its own in another."""

    def __init__(
        self, folder: Path, home: Path, *, theme: str = "JupyterLab Light", front_end: FrontEnd = FRONT_ENDS["lab"]
    ) -> None:
        self.folder, self._home, self.front_end = folder, home, front_end
        self._token = secrets.token_hex(8)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._address = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self._settings = {
            "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
            "apputils-extension/themes": {"theme": theme},
            # Else cells out of sight are taken off the page, and can't be found.
            "notebook-extension/tracker": {"windowingMode": "none"},
        }

    def __enter__(self) -> Self:
        for name, values in self._settings.items():
            file = self._home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values), encoding="utf-8")
        self._log = (self._home / "server.log").open("w")
        self._process = subprocess.Popen(
            self._command(), env=self._environment(), stdout=self._log, stderr=subprocess.STDOUT
        )
        until(self._answers, "the server")
        return self

    def __exit__(self, *_exc: object) -> None:
        kernels = self._kernels()
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for kernel in kernels:
            if kernel.is_running():
                kernel.kill()
        self._log.close()

    def url(self, notebook: str) -> str:
        """Return where a notebook is opened, alone: JupyterLab opens again what stood open before, unless it is reset."""
        return f"{self._address}/{self.front_end.place.format(notebook)}?token={self._token}&reset"

    def session(self, notebook: str) -> dict[str, Any] | None:
        """Return what the server knows of a notebook's kernel, if it has one."""
        return next((one for one in self._ask("sessions") if one["path"] == notebook), None)

    def kernel(self, notebook: str) -> psutil.Process | None:
        """Return the process of a notebook's kernel, while it is alive."""
        session = self.session(notebook)
        ident = session["kernel"]["id"] if session else "no kernel"
        return next((one for one in self._kernels() if ident in " ".join(one.cmdline())), None)

    def interrupt(self, notebook: str) -> None:
        """Interrupt a notebook's kernel, as the front end's button does it."""
        session = self.session(notebook)
        assert session is not None
        self._ask(f"kernels/{session['kernel']['id']}/interrupt", "POST")

    def shut_down(self, notebook: str) -> None:
        """End a notebook's kernel."""
        session = self.session(notebook)
        if session is not None:
            self._ask(f"sessions/{session['id']}", "DELETE")

    def _ask(self, what: str, method: str = "GET") -> Any:
        request = urllib.request.Request(
            f"{self._address}/api/{what}", headers={"Authorization": f"token {self._token}"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            told = answer.read()
        return json.loads(told) if told else None

    def _kernels(self) -> list[psutil.Process]:
        children = psutil.Process(self._process.pid).children(recursive=True)
        return [child for child in children if _is_kernel(child)]

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError((self._home / "server.log").read_text()[-3000:])
        try:
            self._ask("sessions")
        except OSError:
            return False
        return True

    def _command(self) -> list[str]:
        port = self._address.rpartition(":")[2]
        start = (self.front_end.interpreter(), "-m", self.front_end.module)
        return [
            *(*start, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"),
            *("--ServerApp.port_retries=0", f"--ServerApp.root_dir={self.folder}"),
            f"--IdentityProvider.token={self._token}",
        ]

    def _environment(self) -> dict[str, str]:
        places = {
            "HOME": "",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NBRESUME_", "JUPYTER"))}
        return kept | {name: str(self._home / folder) for name, folder in places.items()}


def _is_kernel(process: psutil.Process) -> bool:
    try:
        return "ipykernel_launcher" in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class Browser:
    """A Chromium that opens notebooks, each in a window of its own."""

    def __enter__(self) -> Self:
        self._playwright = sync_playwright().start()
        try:
            self.chromium: Chromium = self._playwright.chromium.launch(
                executable_path=os.environ.get("NBRESUME_CHROMIUM") or shutil.which("chromium"), args=_FLAGS
            )
        except BaseException:
            self._playwright.stop()
            raise
        self.windows = self.chromium.new_context()
        """Where windows are opened that share what was fetched: a front end is some MB of scripts."""
        expect.set_options(timeout=PATIENCE * 1000)
        return self

    def __exit__(self, *_exc: object) -> None:
        self.chromium.close()
        self._playwright.stop()


class Lab:
    """A window with one notebook open; without a browser it has one of its own."""

    def __init__(
        self,
        server: LabServer,
        notebook: str,
        *,
        browser: Browser | None = None,
        width: int = 1100,
        height: int = 1000,
        scale: int = 1,
    ) -> None:
        self.server, self._notebook, self._browser = server, notebook, browser
        self._own = Browser() if browser is None else None
        self._view: dict[str, Any] = {"viewport": {"width": width, "height": height}, "device_scale_factor": scale}

    def __enter__(self) -> Self:
        browser = self._browser or self._own
        assert browser is not None
        if self._own is not None:
            self._own.__enter__()
        try:
            self._context = browser.chromium.new_context(**self._view) if self._own is not None else browser.windows
            self.page: Page = self._context.new_page()
            self.page.set_viewport_size(self._view["viewport"])
            self.page.set_default_timeout(PATIENCE * 1000)
            self.page.goto(self.server.url(self._notebook))
            self.cell(0).wait_for()
            self.wait_for_kernel()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self.page.close()
        self.server.shut_down(self._notebook)
        if self._own is not None:
            self._own.__exit__()

    # ------------------------------------------------------------------ look

    @property
    def folder(self) -> Path:
        """The folder of the notebook."""
        return (self.server.folder / self._notebook).parent

    def cell(self, index: int) -> Locator:
        """Return a cell with all that it shows."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """Return what a cell shows below its code."""
        return self.cell(index).locator(".jp-OutputArea").first

    def card(self, index: int) -> Locator:
        """Return the first card below a cell."""
        return self.output(index).locator(".jp-RenderedHTML > div").first

    def printed(self, index: int, words: str | re.Pattern[str]) -> Locator:
        """Return the printed text below a cell that has these words; cards show printed lines too."""
        stream = '[data-mime-type="application/vnd.jupyter.stdout"]'
        return self.output(index).locator(stream, has_text=words).last

    def button(self, index: int, words: str) -> Locator:
        """Return the button below a cell that a screen reader calls so."""
        return self.output(index).get_by_role("button", name=words, exact=True)

    # ------------------------------------------------------------------ do

    def start(self, index: int) -> None:
        """Start a cell, as Ctrl+Enter does, and don't wait."""
        prompt = self.cell(index).locator(".jp-InputPrompt")
        prompt.click()
        # The number of a cell is how its end is seen, and a new kernel may give the same one again.
        prompt.evaluate("prompt => prompt.textContent = '[ ]:'")
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+Enter")

    def run(self, *cells: int) -> None:
        """Run cells one after the other."""
        for index in cells:
            self.start(index)
            self.wait_for_end(index)

    def wait_for_end(self, index: int) -> None:
        """Wait until a cell that was started has its number."""
        until(lambda: any(map(str.isdigit, self._prompt(index))), f"cell {index} to end")

    def kill_kernel(self) -> None:
        """SIGKILL the kernel; the front end notices, starts another and says so."""
        kernel = self.kernel()
        os.kill(kernel.pid, signal.SIGKILL)
        until(lambda: self.server.kernel(self._notebook) not in (None, kernel), "another kernel")
        self.page.get_by_role("dialog").get_by_role("button", name="Ok").click()
        self.wait_for_kernel()

    def restart_kernel(self) -> None:
        """Restart the kernel by the keys of the front end; the page stays."""
        kernel = self.kernel()
        self.cell(0).locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("0")
        self.page.keyboard.press("0")
        self.page.locator(".jp-Dialog-button.jp-mod-accept").click()  # its words differ from version to version
        until(lambda: self.server.kernel(self._notebook) not in (None, kernel), "another kernel")
        self.wait_for_kernel()

    def interrupt(self) -> None:
        """Interrupt the kernel once."""
        self.server.interrupt(self._notebook)

    def save(self) -> None:
        """Save the notebook."""
        file = self.server.folder / self._notebook
        before = file.stat().st_mtime_ns
        self.page.keyboard.press("Control+s")
        until(lambda: file.stat().st_mtime_ns != before, "the notebook to be saved")

    def reload(self) -> None:
        """Load the page again."""
        self.page.reload()
        self.cell(0).wait_for()

    def kernel(self) -> psutil.Process:
        """Return the process of the kernel."""
        return until(lambda: self.server.kernel(self._notebook), "the kernel's process")

    def wait_for_kernel(self) -> None:
        """Wait until the notebook has a kernel that waits for work."""

        def is_idle() -> bool:
            session = self.server.session(self._notebook)
            return session is not None and session["kernel"]["execution_state"] == "idle"

        until(is_idle, "the kernel")

    def _prompt(self, index: int) -> str:
        return self.cell(index).locator(".jp-InputPrompt").inner_text().strip()
