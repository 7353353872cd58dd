"""What the layers promise and import-linter can't see."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbresume
from nbresume import errors

PACKAGE = Path(nbresume.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path not in (PACKAGE / "_fs.py", PACKAGE / "_processes.py"))

# Writing calls by name. A method is known by its name alone, whatever the object: better one name too many.
WRITING_METHODS = frozenset(
    "write_text write_bytes mkdir unlink rename touch symlink_to hardlink_to rmdir chmod "
    "tofile dump_to_file save savez savez_compressed".split()
)
WRITING_MODULES = {
    "os": frozenset(
        "open write writev pwrite pwritev truncate ftruncate rename replace renames remove unlink rmdir removedirs mkdir makedirs "
        "link symlink mkfifo mknod chmod chown utime sendfile copy_file_range".split()
    ),
    "shutil": None,  # all of it, but for a look at the free space
    "tempfile": frozenset(
        "mkdtemp mkstemp TemporaryFile NamedTemporaryFile TemporaryDirectory SpooledTemporaryFile".split()
    ),
}
HARMLESS = {"shutil": frozenset({"disk_usage", "which", "get_terminal_size"})}
OWN_CLASSES = frozenset(
    node.name
    for path in MODULES
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef)
)
READING = re.compile(r"r[bt]?|[bt]r")


ALLOWED = {
    # A rehearsal happens in temporary folders, in processes that tell their outcome through a pipe.
    "testing.py": ("tempfile.TemporaryDirectory(", "tempfile.TemporaryFile(", "os.write(writable, "),
}


def writing_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every call that may write to a disk."""
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _writes(node, aliases):
            yield node.lineno, ast.unparse(node)


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Map local names to the full names of what was imported."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _writes(call: ast.Call, aliases: dict[str, str]) -> bool:
    head, _, rest = ast.unparse(call.func).partition(".")
    full = aliases.get(head, head) + (f".{rest}" if rest else "")
    module, _, name = full.rpartition(".")
    if full == "os.open" and set(re.findall(r"O_\w+", ast.unparse(call.args[1]))) <= {"O_RDONLY", "O_CLOEXEC"}:
        return not ast.unparse(call.args[1]).startswith("os.O_RDONLY")
    if module in WRITING_MODULES:
        names = WRITING_MODULES[module]
        return name not in HARMLESS.get(module, ()) and (names is None or name in names)
    if full in ("open", "io.open", "builtins.open", "io.FileIO", "os.fdopen"):
        return not _mode_reads(call, 1)
    if full == "h5py.File":
        return not _mode_reads(call, 1, default="")
    if isinstance(call.func, ast.Attribute):
        if call.func.attr == "open" and head not in aliases and head not in OWN_CLASSES:
            return not _mode_reads(call, 0)
        if call.func.attr in ("truncate", "replace") and len(call.args) == 1 and not call.keywords:
            return True  # Path.replace and file.truncate take one argument; str.replace and dataclasses.replace do not
        return call.func.attr in WRITING_METHODS and aliases.get(head, "") not in ("numpy.random",)
    return False


def _mode_reads(call: ast.Call, place: int, default: str = "r") -> bool:
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), None)
    if mode is None and len(call.args) > place:
        mode = call.args[place]
    if mode is None:
        return READING.fullmatch(default) is not None
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and READING.fullmatch(mode.value) is not None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_fs_writes_to_disk(path):
    """One door to the disk: durability has to be right in one place only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = ALLOWED.get(str(path.relative_to(PACKAGE)), ())
    found = [f"line {line}: {text}" for line, text in writing_calls(tree)]
    assert not [call for call in found if not call.partition(": ")[2].startswith(known or ("\0",))]


@pytest.mark.parametrize(
    "line",
    [
        "open('x', 'w')",
        "open('x', mode='a')",
        "open('x', mode)",
        "path.open('xb')",
        "import os; os.open('x', os.O_WRONLY)",
        "import os; os.open('x', flags)",
        "from os import remove as gone; gone('x')",
        "import shutil as s; s.rmtree('x')",
        "path.write_text('x')",
        "path.unlink()",
        "path.replace(other)",
        "file.truncate(3)",
        "import tempfile; tempfile.mkdtemp()",
        "import h5py; h5py.File('x')",
        "import h5py; h5py.File('x', 'r+')",
        "import numpy as np; np.save('x', y)",
    ],
)
def test_the_search_for_writing_calls_finds_them(line):
    assert list(writing_calls(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "open('x')",
        "path.open('rb')",
        "path.read_text()",
        "import h5py; h5py.File('x', 'r')",
        "'text'.replace('a', 'b')",
        "from dataclasses import replace; replace(thing, how='vanished')",
        "import os; os.environ.get('x')",
        "import os; os.open('x', os.O_RDONLY | os.O_CLOEXEC)",
        "import shutil; shutil.disk_usage('x').free",
    ],
)
def test_the_search_for_writing_calls_leaves_reading_alone(line):
    assert not list(writing_calls(ast.parse(line)))


def test_hdf5_writes_into_memory_alone():
    """Its lock, and files that it holds open, would be those of a process whose code may fork at any moment."""
    making = [path.name for path in MODULES if "h5f.create" in path.read_text(encoding="utf-8")]
    assert making == ["_layout.py"]
    assert "set_fileobj_driver" in (PACKAGE / "_store" / "_layout.py").read_text(encoding="utf-8")


HEAVY = ("IPython", "h5py", "dill", "numpy", "ipywidgets", "torch", "jupyter_client", "nbformat", "ipykernel")


def test_importing_does_nothing_and_loads_nothing_heavy(tmp_path):
    """The extension costs a kernel nothing until the first cell needs it."""
    code = (
        "import sys, threading, os, gc\n"
        "import nbresume\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not heavy, heavy\n"
        "assert threading.active_count() == 1\n"
        "assert not os.listdir('.'), os.listdir('.')\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PACKAGE.parent), "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_every_public_name_can_be_fetched():
    for name in nbresume.__all__:
        assert getattr(nbresume, name) is not None
    assert set(nbresume.__all__) <= set(dir(nbresume))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nbresume.nothing


@pytest.mark.parametrize("name", ["nbresume", "nbresume._identity", "nbresume._session", "nbresume._store"])
def test_a_package_whose_names_are_fetched_has_those_it_lists_and_no_others(name):
    package = importlib.import_module(name)
    assert [one for one in package.__all__ if getattr(package, one) is None] == []
    assert {one for one in dir(package) if not one.startswith("__")} == set(package.__all__)
    assert package.__all__ == sorted(package.__all__)


def test_a_list_of_runs_imports_nothing_that_saves_or_runs_a_cell(tmp_path):
    code = (
        "import sys\nfrom nbresume._cli import main\nassert main(['runs', '--store', 'nothing']) == 0\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\nassert not heavy, heavy\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def drawn_tree() -> dict[str, tuple[str, str]]:
    """Read the tree in the docstring: class name to (parent, the built-in beside it)."""
    found, parents = {}, {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([│├└─ ]*)(\w+Error)(?:\((\w+)\))?(?:\s|$)", line)
        if match:
            depth = len(match[1]) // 4
            parents[depth] = match[2]
            found[match[2]] = (parents.get(depth - 1, ""), match[3] or "")
    return found


def test_the_tree_of_errors_in_the_docstring_is_the_real_one():
    real = {}
    for name, cls in vars(errors).items():
        if inspect.isclass(cls) and issubclass(cls, Exception) and cls.__module__ == errors.__name__:
            ours = [base.__name__ for base in cls.__bases__ if issubclass(base, errors.NbresumeError)]
            builtin = [base.__name__ for base in cls.__bases__ if not issubclass(base, errors.NbresumeError)]
            real[name] = (ours[0] if ours else "", builtin[0] if builtin else "")
    assert drawn_tree() == real
    assert set(errors.__all__) == set(real)


def test_every_error_that_the_package_defines_is_in_the_tree():
    """An error elsewhere would be one that nobody can look up; internal ones never leave their layer."""
    internal = {"SnapshotError"}
    for path in MODULES:
        if path == PACKAGE / "errors.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                assert node.name in internal, f"{path.name} defines {node.name}"


def test_the_top_level_holds_what_a_reader_expects_there_and_nothing_else():
    """A log or a scratch file of a working day is never committed beside the package."""
    top = {path.name for path in PACKAGE.parent.iterdir() if not path.name.startswith(".")}

    assert top == {"pyproject.toml", "nbresume", "tests", "notebooks", "docs", "README.md"}
