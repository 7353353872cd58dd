"""Take the pictures of the documentation: the offer in a new kernel, on a light and on a dark page.

.venv/bin/python tests/lab/picture.py        writes docs/_static/offer.png and offer-dark.png
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from labdrive import Lab, LabServer, until, write_notebook
from test_offer_in_lab import CELLS, LOAD, SETUP, TRAIN

STATIC = Path(__file__).parents[2] / "docs" / "_static"
PICTURES = {"offer.png": "JupyterLab Light", "offer-dark.png": "JupyterLab Dark"}
DEATHS = (0.3, 0.7)
MARGIN = 6


def take(picture: Path, theme: str) -> None:
    """Let a training die twice, load the extension in the third kernel, and look."""
    with tempfile.TemporaryDirectory() as folder:
        work, home = Path(folder, "work"), Path(folder, "home")
        work.mkdir()
        home.mkdir()
        write_notebook(work / "train.ipynb", CELLS)
        with LabServer(work, home, theme=theme) as server, Lab(server, "train.ipynb", width=1000, scale=2) as lab:
            for death in DEATHS:
                lab.run(LOAD, SETUP)
                lab.start(TRAIN)
                until(lambda: progress(lab) >= death, "snapshots")  # noqa: B023  # called before death changes
                lab.kill_kernel()
            lab.run(LOAD)
            lab.button(LOAD, "Supersede").wait_for()
            lab.page.keyboard.press("Control+b")  # the file browser goes
            lab.page.add_style_tag(content=".jp-cell-toolbar { display: none !important }")
            lab.page.mouse.move(0, 0)
            top, bottom = lab.cell(LOAD).bounding_box(), lab.cell(TRAIN).locator(".jp-InputArea").bounding_box()
            assert top is not None
            assert bottom is not None
            height = bottom["y"] + bottom["height"] - top["y"] + MARGIN
            place = {"x": top["x"], "y": top["y"] - MARGIN, "width": top["width"], "height": height}
            lab.page.screenshot(path=picture, clip=place)


def progress(lab: Lab) -> float:
    """Return how much of the training is in a snapshot."""
    bar = lab.card(TRAIN).locator("progress")
    return float(bar.get_attribute("value") or 0) if bar.count() else 0.0


if __name__ == "__main__":
    STATIC.mkdir(exist_ok=True)
    for name, theme in PICTURES.items():
        take(STATIC / name, theme)
