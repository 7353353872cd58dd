"""An executed notebook as a page and in print: without a kernel, a script or a network."""

from __future__ import annotations

import subprocess
import sys

import nbformat
import pytest
from playwright.sync_api import expect
from test_published import CELL, SETUP


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A notebook that nbconvert has executed and made into pages."""
    folder = tmp_path_factory.mktemp("page")
    book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    book.cells = [nbformat.v4.new_code_cell(cell) for cell in (SETUP, CELL.replace("time.sleep(600)", "pass"))]
    nbformat.write(book, folder / "train.ipynb")
    convert = [sys.executable, "-m", "nbconvert", "train.ipynb", "--to"]
    for more in (
        ["notebook", "--execute", "--inplace"],
        ["html"],
        ["html", "--HTMLExporter.theme=dark", "--output=dark"],
    ):
        subprocess.run([*convert, *more], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("page", ["train.html", "dark.html"])
def test_the_card_is_legible_on_a_page_and_in_print(browser, folder, page, tmp_path):
    """Every drawing is there, nothing runs over the edge, and the printed page holds the same."""
    context = browser.chromium.new_context(
        java_script_enabled=False, offline=True, viewport={"width": 900, "height": 900}
    )
    window = context.new_page()
    window.goto(f"file://{folder / page}")
    for media in ("screen", "print"):
        window.emulate_media(media=media)
        card = window.locator(".jp-RenderedHTML > div").last
        for told in ("train", "completed", "last snapshot", "what is saved: ", "1 attempt"):
            expect(card).to_contain_text(told)
        for place in range(card.locator("img").count()):
            drawing = card.locator("img").nth(place)
            expect(drawing).to_be_visible()
            size, whole = drawing.bounding_box(), card.bounding_box()
            assert size["width"] > 100
            assert size["x"] + size["width"] <= whole["x"] + whole["width"]
    printed = tmp_path / "page.pdf"
    window.pdf(path=printed)
    assert printed.read_bytes().startswith(b"%PDF")
    assert printed.stat().st_size > 10_000
    context.close()
