"""Take the pictures of the documentation, of a run that is really killed: on a light and on a dark page.

.venv/bin/python tests/lab/picture.py [offer|running|panel|lineage|page|terminal ...]      writes docs/_static/NAME.png and
NAME-dark.png; without words all of them. All but the last are one story, told by one notebook.
"""

from __future__ import annotations

import html
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
from labdrive import Lab, LabServer, until, write_notebook
from PIL import Image

STATIC = Path(__file__).parents[2] / "docs" / "_static"
THEMES = {"": "JupyterLab Light", "-dark": "JupyterLab Dark"}
MARGIN, SCALE, LIMIT = 6, 1.6, 150_000

LOAD, SETUP, WORD, TRAIN, PANEL = range(5)
CELLS = [
    "%load_ext nbresume",
    """\
import numpy as np
from time import sleep

rng = np.random.default_rng(7)
inputs = rng.normal(size=(640, 8))
target = inputs @ rng.normal(size=8)""",
    "%nbresume supersede train",
    """\
%%resumable train --vars weights,losses
weights, losses = np.zeros(8), []
for epoch in range(30):
    for batch in rng.permutation(640).reshape(10, 64):
        error = inputs[batch] @ weights - target[batch]
        weights -= 0.02 * error @ inputs[batch] / len(batch)
        sleep(0.03)
    losses.append(float(np.mean(error**2)))""",
    "%nbresume panel",
]


def keep(name: str, shot: bytes) -> None:
    """Write a picture, with no more colours than it needs."""
    picture = Image.open(io.BytesIO(shot)).convert("RGB").quantize(160, dither=Image.Dither.NONE)
    path = STATIC / f"{name}.png"
    picture.save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {picture.width} x {picture.height}, {size / 1000:.0f} kB")
    assert size < LIMIT


def tell(wanted: set[str]) -> None:
    """Tell the story of one notebook: two deaths, the offer, a new run, another death, the end."""
    with tempfile.TemporaryDirectory() as folder:
        work, home = Path(folder, "work"), Path(folder, "home")
        work.mkdir()
        home.mkdir()
        write_notebook(work / "train.ipynb", CELLS)
        with LabServer(work, home) as server, Lab(server, "train.ipynb", width=940, height=1500, scale=SCALE) as lab:
            lab.page.keyboard.press("Control+b")  # the file browser goes
            lab.page.add_style_tag(content=".jp-cell-toolbar, .jp-Toolbar { display: none !important }")
            die(lab, 0.3)
            die(lab, 0.7)
            lab.run(LOAD)
            lab.button(LOAD, "Continue").wait_for()
            if "offer" in wanted:
                shoot(lab, "offer", lambda: around(lab, LOAD))
            lab.run(SETUP, WORD)
            lab.start(TRAIN)
            until(lambda: progress(lab) >= 0.3, "snapshots of the new run")
            lab.kill_kernel()
            lab.run(LOAD, SETUP, PANEL)
            lab.start(TRAIN)
            until(lambda: progress(lab) >= 0.5, "progress after the resume")
            if "running" in wanted:
                shoot(lab, "running", lambda: around(lab, TRAIN))
            if "panel" in wanted:
                lab.button(PANEL, "Snapshot now").click()
                lab.output(PANEL).get_by_text("the next boundary will act").wait_for()
                shoot(lab, "panel", lambda: box(lab.cell(PANEL), margin=0))
            lab.wait_for_end(TRAIN)
            lab.card(TRAIN).get_by_text("completed in 2 attempts").wait_for()
            if "lineage" in wanted:
                shoot(lab, "lineage", lambda: box(lab.card(TRAIN), margin=0))
            lab.page.keyboard.press("Control+s")
            until(lambda: "completed in 2 attempts" in (work / "train.ipynb").read_text(), "the notebook to be saved")
            if "page" in wanted:
                export(work, lab)


def die(lab: Lab, share: float) -> None:
    """Run the training, and kill it when so much of it is done."""
    lab.run(LOAD, SETUP)
    lab.start(TRAIN)
    until(lambda: progress(lab) >= share, "snapshots")
    lab.kill_kernel()


def progress(lab: Lab) -> float:
    """Return how much of the training is told as done."""
    bar = lab.card(TRAIN).locator("progress")
    return float(bar.get_attribute("value") or 0) if bar.count() else 0.0


def shoot(lab: Lab, name: str, where: Callable[[], dict[str, float]]) -> None:
    """Take one picture in each theme."""
    for suffix, theme in THEMES.items():
        change_theme(lab, theme)
        lab.page.mouse.move(0, 0)
        keep(name + suffix, lab.page.screenshot(clip=where()))
    change_theme(lab, THEMES[""])


def change_theme(lab: Lab, theme: str) -> None:
    """Choose a theme in the menu, as a person does."""
    if lab.page.locator(f"body[data-jp-theme-name='{theme}']").count():
        return
    lab.page.locator(".lm-MenuBar-item", has_text="Settings").click()
    lab.page.locator(".lm-Menu-item", has_text="Theme").first.click()
    lab.page.locator(".lm-Menu-item", has_text=theme).first.click()
    lab.page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
    lab.page.locator("#jupyterlab-splash").wait_for(state="detached")


def box(place: object, margin: int = MARGIN) -> dict[str, float]:
    """Return where something is on the page, with a margin."""
    place.scroll_into_view_if_needed()  # type: ignore[attr-defined]
    found = place.bounding_box()  # type: ignore[attr-defined]
    assert found is not None
    width, height = found["width"] + 2 * margin, found["height"] + 2 * margin
    return {"x": found["x"] - margin, "y": found["y"] - margin, "width": width, "height": height}


def around(lab: Lab, cell: int) -> dict[str, float]:
    """Return where a cell is, with what it shows."""
    return box(lab.cell(cell))


def export(work: Path, lab: Lab) -> None:
    """Make a page of the saved notebook, and look at it without a kernel."""
    context = lab.page.context.browser.new_context(viewport={"width": 980, "height": 1100}, device_scale_factor=SCALE)
    for suffix, theme in (("", "light"), ("-dark", "dark")):
        command = ["-m", "nbconvert", "--to", "html", f"--HTMLExporter.theme={theme}", "--output", f"page{suffix}"]
        subprocess.run([sys.executable, *command, "train.ipynb"], cwd=work, check=True, capture_output=True)
        page = context.new_page()
        page.goto(f"file://{work}/page{suffix}.html")
        train = page.locator(".jp-CodeCell").nth(TRAIN)
        keep(f"page{suffix}", page.screenshot(clip=box(train)))
    context.close()


# ---------------------------------------------------------------------- a terminal

_PROMPT = r"In \[\d+\]: "
_LINES = [
    "%%resumable train --vars total",
    "total = 0.0",
    "for step in range(200):",
    "    total += random.random()",
    "    time.sleep(0.02)",
]
_PAGE = """<body style="margin:0;background:{back};display:inline-block">
<pre style="margin:0;padding:14px 18px;color:{fore};background:{back};font:13px/1.45 'DejaVu Sans Mono',monospace">{text}</pre>"""
_COLOURS = {
    "": {"back": "#ffffff", "fore": "#24292f", "prompt": "#0b6e4f"},
    "-dark": {"back": "#16181d", "fore": "#d7dae0", "prompt": "#5fd7a7"},
}


@contextmanager
def terminal(folder: Path) -> Iterator[pexpect.spawn]:
    """Start IPython in a terminal, and load the extension."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "IPython", "--no-banner", "--simple-prompt", "--colors=NoColor", "--no-confirm-exit"],
        cwd=str(folder),
        encoding="utf-8",
        timeout=90,
        dimensions=(60, 118),
        env={**os.environ, "TERM": "dumb", "IPYTHONDIR": str(folder / "ipython")},
    )
    child.expect(_PROMPT)
    yield child
    child.close(force=True)


def type_cell(child: pexpect.spawn) -> None:
    """Type the cell; an empty line ends it."""
    for line in [*_LINES, ""]:
        child.sendline(line)
        child.expect(r"\.\.\.: ")
    child.sendline("")


def is_half_done(journal: Path) -> bool:
    """Whether a snapshot stands behind step 100."""
    return re.search(r"step \d{3} of", journal.read_text()) is not None


def in_a_terminal() -> None:
    """Lose a run in a terminal, and show the next session: the offer, the resume, one interrupt."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with terminal(folder) as child:
            child.sendline("import random, time, nbresume; random.seed(3)")
            child.expect(_PROMPT)
            child.sendline("%load_ext nbresume")
            child.expect(_PROMPT)
            type_cell(child)
            until(lambda: any(map(is_half_done, folder.glob(".nbresume/*/journal.jsonl"))), "half of the steps")
            os.kill(child.pid, signal.SIGKILL)
        with terminal(folder) as child:
            seen = io.StringIO()
            child.logfile_read = seen
            child.sendline("import random, time")
            child.expect(_PROMPT)
            child.sendline("%load_ext nbresume")
            child.expect(_PROMPT)
            type_cell(child)
            child.expect("continued train")
            child.expect("supersede train")
            child.sendintr()
            child.expect("KeyboardInterrupt: .*\n")
            child.expect(_PROMPT)
            child.logfile_read = None
    text = re.sub(r"\n(\s*\.\.\.: ?\n)+", "\n", seen.getvalue().replace("\r", ""))
    draw(re.sub(r"\n{3,}", "\n\n", "In [1]: " + text.strip()))


def draw(text: str) -> None:
    """Show what a terminal has shown, on a light and on a dark page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=os.environ.get("NBRESUME_CHROMIUM") or "/usr/bin/chromium", args=["--no-sandbox"]
        )
        for suffix, colours in _COLOURS.items():
            prompts = re.sub(
                r"(?m)^(In \[\d+\]:| +\.\.\.:)", rf'<b style="color:{colours["prompt"]}">\1</b>', html.escape(text)
            )
            page = chromium.new_context(viewport={"width": 1000, "height": 900}, device_scale_factor=SCALE).new_page()
            page.set_content(_PAGE.format(text=prompts, **colours))
            keep(f"terminal{suffix}", page.locator("pre").screenshot())
        chromium.close()


if __name__ == "__main__":
    STATIC.mkdir(exist_ok=True)
    words = set(sys.argv[1:]) or {"offer", "running", "panel", "lineage", "page", "terminal"}
    if words - {"terminal"}:
        tell(words)
    if "terminal" in words:
        in_a_terminal()
