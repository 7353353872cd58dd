"""What stays in a notebook that is published: nothing of the machine, the person or the job it ran on."""

from __future__ import annotations

import base64
import getpass
import json
import re
import socket
import subprocess
import sys

import nbformat
import pytest
from _support import LIMIT, Kernel

pytestmark = pytest.mark.kernel

SETUP = "import os, time\nlr = 0.1\nhome = os.path.expanduser('~')\n%load_ext nbresume"
CELL = """%%resumable train --vars losses --every 1
losses = []
for epoch in range(6):
    for batch in range(5):
        time.sleep(0.02)
    losses.append(1 / (epoch + 1))
    with open("rows.csv", "a") as rows:
        rows.write(f"{epoch}\\n")
    print("saved to", os.path.abspath("rows.csv"), flush=True)
    if epoch == 2 and not os.path.exists("go"):
        print("saved to nowhere", flush=True)
        time.sleep(600)
"""
SECRETS = {
    "USER": "eleanor-of-the-lab",
    "LOGNAME": "eleanor-of-the-lab",
    "HOSTNAME": "node-0815.cluster",
    "SLURM_JOB_ID": "99887766",
    "SLURM_JOB_PARTITION": "gpu-night-queue",
    "JUPYTERHUB_USER": "eleanor-of-the-lab",
    "JUPYTERHUB_HOST": "hub.example.edu",
}


def shown(kernel: Kernel, code: str, until: str | None = None) -> list[str]:
    """Run a cell; returns what the front end is given to keep, without what the cell itself prints."""
    message, found, printed = kernel.send(code), [], ""
    while True:
        told = kernel.client.get_iopub_msg(timeout=LIMIT)
        if told["parent_header"].get("msg_id") != message:
            continue
        content = told["content"]
        match told["msg_type"]:
            case "display_data" | "update_display_data" | "execute_result":
                found += [text if isinstance(text, str) else json.dumps(text) for text in content["data"].values()]
                found.append(json.dumps(content["metadata"]))
            case "stream":
                printed += content["text"]
                found += [line for line in content["text"].splitlines() if not line.startswith("saved to")]
            case "error":
                found.append("\n".join(content["traceback"]))
            case "status" if content["execution_state"] == "idle":
                return found
        if until is not None and until in printed:
            return found


def drawings(text: str) -> str:
    return "".join(base64.b64decode(data).decode() for data in re.findall(r"base64,([A-Za-z0-9+/=]+)", text))


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """All that nbresume has shown of a run that was launched, killed, offered, continued, looked at and stopped."""
    folder = tmp_path_factory.mktemp("project-of-eleanor")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        with Kernel(folder) as kernel:
            shown(kernel, SETUP)
            found += shown(kernel, CELL, until="nowhere")
            kernel.kill()
        (folder / "go").touch()
        with Kernel(folder) as kernel:
            found += shown(kernel, SETUP)
            found += shown(kernel, "%nbresume show train")
            found += shown(kernel, CELL)
            found += shown(kernel, CELL + "lr = lr")
            found += shown(kernel, "%nbresume runs") + shown(kernel, "%nbresume show train")
            pid = str(kernel.pid)
    whole = "\n".join(found)
    return folder, pid, whole + drawings(whole)


def test_no_output_tells_of_host_user_path_or_job(outputs):
    folder, pid, whole = outputs
    assert "completed in 2 attempts" in whole
    assert "rows.csv" in whole  # the log tail is there, with the file's name
    for secret in {*SECRETS.values(), str(folder), str(folder.parent), socket.gethostname(), sys.prefix}:
        assert secret not in whole
    for word in {getpass.getuser(), pid}:
        assert not re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", whole)


def test_the_card_of_the_cell_has_plots_pace_and_lineage(outputs):
    _, _, whole = outputs
    assert 'alt="losses: 6 values' in whole
    assert "1 launched" in whole
    assert "2 resumed" in whole
    assert "verified, signed" in whole
    assert "log cut back by 2 rows, rows.csv by 1 row;" in whole


def test_an_executed_notebook_is_legible_as_a_page(tmp_path):
    """nbconvert: the cards are there, and nothing is asked of a server, a script or a kernel."""
    book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    quick = CELL.replace("time.sleep(600)", "pass")
    book.cells = [nbformat.v4.new_code_cell(SETUP), nbformat.v4.new_code_cell(quick)]
    nbformat.write(book, tmp_path / "train.ipynb")
    command = ["-m", "nbconvert", "--to", "html", "--execute", "--ExecutePreprocessor.timeout=90", "train.ipynb"]
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT * 2, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "train.html").read_text()
    card = page[page.index("train</span>") :]
    for told in (
        "completed",
        "last snapshot",
        "what is saved: ",
        "what is identity: ",
        "last lines printed",
        "1 attempt",
    ):
        assert told in card
    assert "1 launched" in drawings(card)
    assert "application/vnd.jupyter.widget-view+json" not in page
