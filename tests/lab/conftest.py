"""One server and one browser for each front end; each test has a notebook, a kernel and a window of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from labdrive import FRONT_ENDS, Browser, FrontEnd, Lab, LabServer, write_notebook
from story import CELLS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--front-end",
        action="append",
        choices=[*FRONT_ENDS],
        help="what notebooks are opened with (lab); may come often",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "front_end" in metafunc.fixturenames:
        names = metafunc.config.getoption("front_end") or ["lab"]
        metafunc.parametrize("front_end", [FRONT_ENDS[name] for name in names], ids=names, scope="session")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def server(front_end: FrontEnd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    folder = tmp_path_factory.mktemp(front_end.name)
    (folder / "work").mkdir()
    (folder / "home").mkdir()
    with LabServer(folder / "work", folder / "home", front_end=front_end) as server:
        yield server


@pytest.fixture
def lab(server: LabServer, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The notebook of the story, open, with nothing run yet."""
    name = re.sub(r"\W+", "-", request.node.name)
    (server.folder / name).mkdir()
    write_notebook(server.folder / name / "train.ipynb", CELLS)
    with Lab(server, f"{name}/train.ipynb", browser=browser, height=1600) as lab:
        yield lab
