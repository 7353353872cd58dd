"""What loads nbresume by itself, and what completes its words."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from _support import Kernel, shell

from nbresume._startup import NAME, TEXT
from nbresume._store import Store


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A person's own IPython folder."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return tmp_path / "ipython" / "profile_default" / "startup" / NAME


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A Python environment of its own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    return tmp_path / "env" / "etc" / "ipython" / "startup" / NAME


def say(*words: str) -> tuple[int, str]:
    from io import StringIO

    from nbresume._cli import main

    out = StringIO()
    return main(list(words), out), out.getvalue()


@pytest.mark.parametrize(("where", "fixture"), [("--user", "profile"), ("--sys-prefix", "environment")])
def test_install_writes_one_file_once_and_uninstall_takes_that_one_away(where, fixture, request, tmp_path, capsys):
    path = request.getfixturevalue(fixture)
    status, text = say("install", where)
    assert (status, path.read_text()) == (0, TEXT)
    assert str(path) in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o644  # whoever uses the image reads it
    before = path.stat()
    assert say("install", where)[0] == 0
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    (path.parent / "60-mine.py").write_text("mine = 1\n")
    assert say("uninstall", where)[0] == 0
    assert [one.name for one in path.parent.iterdir()] == ["60-mine.py"]
    assert say("uninstall", where)[0] == 0
    (path.parent / "60-mine.py").unlink()
    path.write_text(f"{TEXT}print('and mine')\n")
    for word in ("install", "uninstall"):
        assert say(word, where)[0] == 2
        assert f"{path} is not what nbresume writes" in capsys.readouterr().err
    assert path.read_text().endswith("print('and mine')\n")


def test_an_environment_that_is_not_ours_to_write_is_one_sentence(environment, tmp_path, capsys):
    (tmp_path / "env").write_text("a file where the folder would be")
    assert say("install", "--sys-prefix")[0] == 2
    error = capsys.readouterr().err
    assert error.startswith(f"nbresume: cannot write {environment}: ")
    assert error.count("\n") == 1
    assert "--user" in error


def interrupted_run(folder: Path) -> None:
    run = Store(folder / ".nbresume").create("train", {"identity": {}})
    run.note("launched", 1)


@pytest.mark.kernel
def test_a_kernel_of_this_user_loads_it_and_offers_with_the_first_cell_that_runs(profile, tmp_path):
    say("install", "--user")
    interrupted_run(tmp_path)
    with Kernel(tmp_path) as kernel:
        text, error = kernel.run("print('first')")
        assert not error
        assert "train  interrupted (vanished)" in text
        assert text.index("interrupted") < text.index("first")
        assert "interrupted" not in kernel.run("print('second')")[0]
        assert (
            kernel.run(
                "print([n for n in dir() if n[0] != '_' and n not in ('In', 'Out', 'exit', 'quit', 'get_ipython', 'open')])"
            )[0]
            == "[]\n"
        )
    say("uninstall", "--user")
    with Kernel(tmp_path) as kernel:
        assert kernel.run("print('first')")[0] == "first\n"


@pytest.mark.kernel
def test_a_kernel_of_the_environment_loads_it_whatever_the_user_has_configured(profile, tmp_path):
    """As in a Hub image: a user's own list of extensions replaces the image's, and a startup file stays."""
    env = tmp_path / "image"
    venv.create(env, with_pip=False, symlinks=True)
    (site,) = env.glob("lib/python*/site-packages")
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    (site / "all.pth").write_text("\n".join(paths) + "\n")
    python = env / "bin" / "python"
    code = "import sys; from nbresume._cli import main; sys.exit(main(sys.argv[1:]))"
    subprocess.run([python, "-c", code, "install", "--sys-prefix"], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert (env / "etc" / "ipython" / "startup" / NAME).read_text() == TEXT
    profile.parent.parent.mkdir(parents=True)
    (profile.parent.parent / "ipython_config.py").write_text("c.InteractiveShellApp.extensions = ['storemagic']\n")
    interrupted_run(tmp_path)
    with Kernel(tmp_path, python=python) as kernel:
        text, error = kernel.run("print('first')")
        assert not error
        assert "train  interrupted (vanished)" in text


def test_where_nbresume_is_gone_the_file_does_nothing(tmp_path):
    code = (
        "import sys, runpy\nsys.modules['nbresume'] = None\nsys.path[:] = []\n"
        "import importlib.util as u\nu.find_spec = lambda name: None\n"
        f"exec({TEXT!r}, {{}})\nprint('went on')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "went on\n"


# ------------------------------------------------------------------ completion


def completed(line: str, folder: Path) -> list[str]:
    """Ask as a shell does."""
    pytest.importorskip("argcomplete")
    told = folder / "told"
    code = "import sys; from nbresume._cli import main; sys.exit(main())"
    env = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": str(told),
        "_ARGCOMPLETE_IFS": "\n",
    }
    subprocess.run([sys.executable, "-c", code], env=env, cwd=folder, check=True)
    return [one.strip() for one in told.read_text().split("\n") if one.strip()]


def test_a_shell_completes_words_options_and_names_of_runs(tmp_path):
    interrupted_run(tmp_path)
    assert completed("nbresume st", tmp_path) == ["status", "stop"]
    assert completed("nbresume show tr", tmp_path) == ["train"]
    assert completed("nbresume log train --si", tmp_path) == ["--since"]


@pytest.mark.parametrize("which", ["bash", "zsh", "fish"])
def test_the_shell_is_told_how_to_complete(which, tmp_path):
    pytest.importorskip("argcomplete")
    status, text = say("completion", which)
    assert status == 0
    assert "nbresume" in text


def test_ipython_completes_words_options_and_names_of_runs(notebook):
    interrupted_run(notebook.folder)

    def offered(line: str) -> list[str]:
        _, found = notebook.shell.complete(None, line, len(line))
        return found

    assert {"status", "stop"} <= set(offered("%nbresume st"))
    assert "install" not in offered("%nbresume in")
    assert "train" in offered("%nbresume show tr")
    assert any(one.endswith("since") for one in offered("%nbresume log train --si"))
    (run,) = notebook.runs
    assert shell("runs", store=notebook.store.root)[0] == 0
    assert run.name in offered("%nbresume stop ")
