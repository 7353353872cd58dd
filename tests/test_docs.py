"""README and reference name what exists, and leave out nothing."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

import nbresume
from nbresume._card import View
from nbresume._cli import command_parser
from nbresume._commands import COMMANDS
from nbresume._magic._config import ENVIRONMENT, NBResume
from nbresume._session._current import Current
from nbresume._transform import CellOptions
from nbresume._transform._options import WORDS, _parser

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
MAGIC = (DOCS / "reference" / "magic.md").read_text(encoding="utf-8")
CLI = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")


def test_the_readme_has_the_two_commands_that_do_everything():
    blocks = [block.strip() for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL)]
    assert blocks == [
        'python3 -m venv .venv && .venv/bin/pip install -q ".[demo]" && .venv/bin/nbresume demo',
        "bash tests/run",
    ]


@pytest.mark.parametrize("script", ["tests/run", ".ci/run"])
def test_the_scripts_exist_and_can_be_executed(script):
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    assert path.read_text().startswith("#!/usr/bin/env bash\n")


def test_every_suite_that_the_readme_names_is_one_of_the_test_command():
    text = (ROOT / "tests" / "run").read_text()
    for suite in re.findall(r"`bash tests/run (\w+)`", README):
        assert re.search(rf"^    {suite}\)$", text, re.MULTILINE)


def test_every_link_and_picture_of_the_readme_is_there():
    for target in re.findall(r"""(?:\]\(|(?:src|srcset)=")([^)"#]+)""", README):
        assert (ROOT / target).exists(), target


def test_the_readme_fits_one_screen_of_reading():
    assert len(README.splitlines()) < 70


def test_every_option_of_the_cell_is_in_the_reference():
    options = {action.option_strings[0] for action in _parser()._actions if action.option_strings}
    assert options == {f"--{f.name.replace('_', '-')}" for f in fields(CellOptions)} - {
        "--name",
        "--declared",
        "--timed",
    } | {
        "--vars",
        "--keep-every",
    }
    for option in options:
        assert re.search(rf"^`{option}\b", MAGIC, re.MULTILINE), option


def test_the_reference_names_no_option_that_the_cell_does_not_have():
    """But for those of the line magic: the declaration, and what it asks about disk space."""
    words = next(action.choices for action in command_parser()._actions if action.choices)
    parsers = [_parser(), *words.values()]
    options = {word for parser in parsers for action in parser._actions for word in action.option_strings}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", MAGIC)) <= options


def test_the_defaults_of_the_reference_are_the_real_ones():
    defaults = {action.option_strings[0]: action.default for action in _parser()._actions if action.option_strings}
    told = dict(re.findall(r"^`(--[a-z-]+)[^`]*` \(default `([^`]+)`\)", MAGIC, re.MULTILINE))
    assert told == {
        "--every": "auto",
        "--budget": "5%",
        "--max-wait": "10m",
        "--keep": "3",
        "--keep-free": "0",
        "--unprotected": "go-on",
        "--on-restart": "ask",
    }
    assert {option: str(defaults[option]) for option in told} == told


def test_the_help_in_the_notebook_has_every_option():
    source = (ROOT / "nbresume" / "_magic" / "_line.py").read_text(encoding="utf-8")
    told = set(re.findall(r'^@argument\("(--[a-z-]+)"', source, re.MULTILINE))
    assert told == {action.option_strings[0] for action in _parser()._actions if action.option_strings}


def test_every_word_of_on_restart_is_explained():
    for word in WORDS:
        assert re.search(rf"^  `{word}`$", MAGIC, re.MULTILINE)


def magic_lines() -> list[tuple[Path, str]]:
    return [
        (page, line.split("#")[0].strip())
        for page in [*PAGES, ROOT / "README.md"]
        for line in re.findall(r"^%%resumable (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        if not line.startswith("NAME")
    ]


@pytest.mark.parametrize(("page", "line"), magic_lines(), ids=lambda value: str(value)[-40:])
def test_every_magic_line_of_the_documentation_is_accepted(page, line):
    assert CellOptions.from_line(line).name


@pytest.mark.parametrize("name", nbresume.__all__)
def test_every_public_name_is_in_the_reference(name):
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert f"nbresume.{name}" in page


@pytest.mark.parametrize(
    "name", [*(field.name for field in fields(View)), *(name for name in vars(Current) if name[0] != "_")]
)
def test_every_attribute_of_a_view_and_of_current_is_in_the_reference(name):
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| .*`{name}`.* \|", page, re.MULTILINE)


def test_every_word_of_the_line_magic_is_in_the_reference_and_no_other():
    real = {word.word for word in COMMANDS if word.door != "shell"}
    assert set(re.findall(r"^\| `%nbresume (\w+)", MAGIC, re.MULTILINE)) == real


def test_every_setting_is_in_the_reference_and_no_other():
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `--([\w-]+)` \| `(\w+)`.* \| `NBResume\.(\w+)` \|", page, re.MULTILINE)
    assert {trait: variable for _, variable, trait in rows} == ENVIRONMENT
    assert all(option.replace("-", "_") == trait for option, _, trait in rows)
    assert set(ENVIRONMENT) == set(NBResume.class_own_traits(config=True))


def test_every_command_is_in_the_reference_and_no_other():
    real = {word.word for word in COMMANDS if word.door != "notebook"}
    assert set(re.findall(r"^\| `nbresume (\w+)", CLI, re.MULTILINE)) == real


def shell_lines() -> list[str]:
    found = []
    for page in [*PAGES, ROOT / "README.md"]:
        text = page.read_text(encoding="utf-8")
        found += re.findall(r"`(nbresume [a-z]+(?: [\w-]+)*)`", text)
    return sorted(set(found))


@pytest.mark.parametrize("line", shell_lines())
def test_every_command_of_the_documentation_is_accepted(line):
    words = shlex.split(line)[1:]
    try:
        command_parser().parse_args(words)
    except SystemExit:
        # `nbresume demo` and the like are complete; what has to follow may be left out where a command is only mentioned.
        more = {"install": ["--user"], "uninstall": ["--user"], "completion": ["bash"]}
        command_parser().parse_args([*words, *more.get(words[0], ["NAME"])])
    except argparse.ArgumentError as error:
        pytest.fail(str(error))


@pytest.mark.parametrize("page", ["guarantees", "needs"])
def test_every_test_that_the_explanation_names_exists(page):
    text = (DOCS / "explanation" / f"{page}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text))
    assert named
    for path, name in sorted(named):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"


def test_every_need_names_a_test_or_what_is_missing():
    text = (DOCS / "explanation" / "needs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.+) \| (.+) \| (.+) \|$", text, re.MULTILINE)
    groups = {group: {int(label[1:]) for label, *_ in rows if label[0] == group} for group in "ACDHIJ"}
    assert groups == {
        "A": {*range(1, 15)},
        "C": {*range(1, 24)},
        "D": {*range(1, 19)},
        "H": {*range(1, 7)},
        "I": {*range(1, 9)},
        "J": {*range(1, 9)},
    }
    for label, symptom, source, covered in rows:
        assert symptom
        assert "](https://" in source, label
        assert "`tests/" in covered or "not covered yet: " in covered or "does not apply: " in covered, label


def test_the_forbidden_word_is_said_once():
    """Jupyter owns the word; one sentence for those who search."""
    found = [
        page.name for page in PAGES for _ in re.findall(r"checkpoint", page.read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    assert found == ["statements.md"]


def test_the_licence_is_the_one_of_the_package():
    text = (DOCS / "LICENSE").read_text()
    assert text.startswith("BSD 3-Clause License")
    assert 'license = "BSD-3-Clause"' in (ROOT / "pyproject.toml").read_text()
