"""Hands and eyes for a real JupyterLab in a real Chromium.

Whoever reads a test that uses this should see what a person does: open a notebook, run a cell, press a button, look.
Waiting is always for something that can be seen, never for a time.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import nbformat
import psutil
from playwright.sync_api import Locator, Page, expect, sync_playwright

PATIENCE = 60.0
"""Seconds until something is taken for broken; a busy machine is slow."""

_T = TypeVar("_T")


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
    """JupyterLab over one folder, with a home of its own in another."""

    def __init__(self, folder: Path, home: Path, *, theme: str = "JupyterLab Light") -> None:
        self._folder, self._home = folder, home
        self._token = secrets.token_hex(8)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._address = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self._settings = {
            "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
            "apputils-extension/themes": {"theme": theme},
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
        kernels = self.kernels()
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
        """Return where a notebook is opened."""
        return f"{self._address}/lab/tree/{notebook}?token={self._token}"

    def sessions(self) -> list[dict[str, Any]]:
        """Return the notebooks that have a kernel, as the server knows them."""
        request = urllib.request.Request(
            f"{self._address}/api/sessions", headers={"Authorization": f"token {self._token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def kernels(self) -> list[psutil.Process]:
        """Return the processes of the kernels that are alive."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        return [child for child in children if _is_kernel(child)]

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError((self._home / "server.log").read_text()[-3000:])
        try:
            self.sessions()
        except OSError:
            return False
        return True

    def _command(self) -> list[str]:
        port = self._address.rpartition(":")[2]
        return [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"),
            *("--ServerApp.port_retries=0", f"--ServerApp.root_dir={self._folder}"),
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


class Lab:
    """A browser with one notebook open."""

    def __init__(self, server: LabServer, notebook: str, *, width: int = 1100, height: int = 1000, scale: int = 1):
        self.server, self._notebook = server, notebook
        self._view = {"viewport": {"width": width, "height": height}, "device_scale_factor": scale}

    def __enter__(self) -> Self:
        self._playwright = sync_playwright().start()
        try:
            self._browser = self._playwright.chromium.launch(
                executable_path=os.environ.get("NBRESUME_CHROMIUM") or shutil.which("chromium"),
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
            )
            self.page: Page = self._browser.new_context(**self._view).new_page()
            self.page.set_default_timeout(PATIENCE * 1000)
            expect.set_options(timeout=PATIENCE * 1000)
            self.page.goto(self.server.url(self._notebook))
            self.cell(0).wait_for()
            self.wait_for_kernel()
        except BaseException:
            self._playwright.stop()
            raise
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self._browser.close()
        self._playwright.stop()

    # ------------------------------------------------------------------ look

    def cell(self, index: int) -> Locator:
        """Return a cell with all that it shows."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """Return what a cell shows below its code."""
        return self.cell(index).locator(".jp-OutputArea").first

    def card(self, index: int) -> Locator:
        """Return the first card below a cell."""
        return self.output(index).locator(".jp-RenderedHTML > div").first

    def printed(self, index: int, words: str) -> Locator:
        """Return the printed text below a cell that has these words; cards show printed lines too."""
        stream = '[data-mime-type="application/vnd.jupyter.stdout"]'
        return self.output(index).locator(stream, has_text=words).last

    def button(self, index: int, words: str) -> Locator:
        """Return the button with these words below a cell; its icon is a letter to a browser, so roles don't help."""
        return self.output(index).locator("button:visible", has_text=re.compile(rf"^\s*{re.escape(words)}\s*$"))

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
        """SIGKILL the kernel; JupyterLab notices, starts another and says so."""
        (kernel,) = self.server.kernels()
        kernel.kill()
        until(lambda: [other for other in self.server.kernels() if other.pid != kernel.pid], "another kernel")
        self.page.get_by_role("dialog").get_by_role("button", name="Ok").click()
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        """Wait until the notebook has a kernel that waits for work."""
        until(lambda: any(s["kernel"]["execution_state"] == "idle" for s in self.server.sessions()), "the kernel")

    def _prompt(self, index: int) -> str:
        return self.cell(index).locator(".jp-InputPrompt").inner_text().strip()
