"""IPython in a terminal: the same promises without any front end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pexpect
import pytest

pytestmark = pytest.mark.kernel

PROMPT = r"In \[\d+\]: "
LOOP = "for i in range(60):\n    log.append((i, random.random()))\n    time.sleep(0.05)\n    if i == 3: print('reached', 'four')\n"


class Terminal:
    """An IPython in a pseudo-terminal."""

    def __init__(self, folder: Path) -> None:
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "IPython", "--no-banner", "--simple-prompt", "--colors=NoColor", "--no-confirm-exit"],
            cwd=str(folder),
            encoding="utf-8",
            timeout=90,
            env={**os.environ, "TERM": "dumb", "IPYTHONDIR": str(folder / "ipython"), "PYTHONHASHSEED": "random"},
        )
        self.child.setecho(False)
        self.child.expect(PROMPT)

    def say(self, line: str) -> str:
        """Type a line and return what came before the next prompt."""
        self.child.sendline(line)
        self.child.expect(PROMPT)
        return str(self.child.before)

    def type_cell(self, cell: str) -> None:
        """Type a cell magic with its body; an empty line ends it."""
        for line in cell.splitlines():
            self.child.sendline(line)
        self.child.sendline("")
        self.child.sendline("")


CELL = "%%resumable t --vars log --every 1\n" + LOOP


def in_mid_cell(folder):
    """Start a terminal, and the cell in it."""
    first = Terminal(folder)
    first.say("import random, time; random.seed(3); log = []")
    first.say("%load_ext nbresume")
    first.type_cell(CELL)
    first.child.expect("reached four")
    return first


def test_load_run_kill_restart_continue(tmp_path):
    first = in_mid_cell(tmp_path)
    os.kill(first.child.pid, signal.SIGKILL)
    first.child.close(force=True)

    second = Terminal(tmp_path)
    second.say("import random, time; random.seed(8); log = []")
    told = second.say("%load_ext nbresume")
    assert "interrupted" in told
    second.type_cell(CELL)
    second.child.expect(", attempt 2, from")
    second.child.expect(PROMPT)
    # The lines typed after the cell may have given prompts of their own.
    second.child.sendline("random.seed(3); print('equal', log == [(i, random.random()) for i in range(60)], 'end')")
    second.child.expect(r"equal (\w+) end")
    assert second.child.match[1] == "True"
    assert "completed" in second.say("%nbresume runs") + second.say("%nbresume runs")
    second.child.close(force=True)


def test_an_interrupt_stops_at_the_boundary_and_the_word_supersedes(tmp_path):
    """Ctrl-C is answered in words at once, and by one line in place of a traceback; the other answer needs its word."""
    first = in_mid_cell(tmp_path)
    first.child.sendintr()
    first.child.expect("t: stopping at the next boundary, with a snapshot. Interrupt once more to stop at once")
    first.child.expect(
        r"KeyboardInterrupt: t stopped at a boundary, i (\d+) of 60 done, with a snapshot\. Run the cell"
    )
    done = int(first.child.match[1])
    assert "Traceback" not in first.child.before
    first.child.sendline("print('stands', len(log), 'end')")
    first.child.expect(r"stands (\d+) end")
    assert int(first.child.match[1]) == done < 60
    os.kill(first.child.pid, signal.SIGKILL)
    first.child.close(force=True)

    second = Terminal(tmp_path)
    second.say("import random, time; random.seed(4); log = []")
    told = second.say("%load_ext nbresume")
    assert "interrupted (stop)" in told
    assert f"i {done} of 60 done" in told
    assert "\x1b" not in told
    assert "starts a new run" in second.say("%nbresume supersede t")
    second.type_cell(CELL)
    second.child.expect("t: a new run; t-[0-9a-f]+ is kept and marked superseded")
    second.child.expect(PROMPT)
    second.child.sendline("random.seed(4); print('equal', log == [(i, random.random()) for i in range(60)], 'end')")
    second.child.expect(r"equal (\w+) end")
    assert second.child.match[1] == "True"
    runs = second.say("%nbresume runs") + second.say("%nbresume runs")
    assert "superseded" in runs
    assert "completed" in runs
    second.child.close(force=True)
