"""A run goes on with changed code: by itself where the change had not been reached, else only as a person declares it."""

from __future__ import annotations

import json

import pytest

from nbresume._lineage import DECLARED, NOT_REACHED, OTHER_HARDWARE
from nbresume._store._trust import of_record, sign
from nbresume.errors import ChangedError, OptionError

MAGIC = "%%resumable t --vars log --every 1\n"
TAIL = "for i in range(4):\n    log.append(i)\ntotal = sum(log)\nprint(totl)\n"


def interrupt(notebook, cell: str, before: str = "", *, same_kernel: bool = False) -> None:
    """Leave an interrupted run behind, in a kernel of its own unless said otherwise."""
    notebook.run("log = []\n" + before)
    notebook.fails(MAGIC + cell)
    assert notebook.runs[0].lineage().state == "interrupted"
    if not same_kernel:
        notebook.restart()
        notebook.run("log = []\n" + before)


def changes(notebook) -> list:
    return [change for attempt in notebook.runs[-1].lineage().attempts for change in attempt.changes]


# ------------------------------------------------------------------ what had not been reached


@pytest.mark.parametrize("same_kernel", [True, False])
def test_a_typo_in_the_tail_is_repaired_and_the_run_continued_with_its_diff(notebook, capsys, same_kernel):
    """No iteration runs twice; the lineage, the text and the told line keep what has changed."""
    interrupt(notebook, TAIL, same_kernel=same_kernel)
    capsys.readouterr()
    notebook.run(MAGIC + TAIL.replace("totl", "total"))
    told = capsys.readouterr().out
    assert notebook["log"] == [0, 1, 2, 3]
    assert "only what had not run yet has changed" in told
    (change,) = changes(notebook)
    assert change.how == NOT_REACHED
    assert change.differences == ("the cell: line 4 changed: 'print(totl)' -> 'print(total)'",)
    assert "-print(totl)" in change.diff
    assert "+print(total)" in change.diff
    assert len(notebook.runs) == 1
    notebook.run("%nbresume show t")
    assert "print(total)" in capsys.readouterr().out


FUNCTION = """
def fit(log):
    for i in range(4):
        log.append(step(i))
    return finish(log)
def step(x): return x
def finish(log): return totl
def unused(): return 1
"""
NESTED = (
    "with open('notes', 'w') as f:\n    for i in range(3):\n        log.append(i)\n    f.write('x')\n    nothing()\n"
)
LATER = "for i in range(3):\n    log.append(i)\nstop()\nfor k in range(3):\n    log.append(-k)\n"
INNER = "for i in range(3):\n    for k in range(2):\n        log.append(k)\n    nothing()\n"

# name: the cell, what is before it, what is repaired (in either), whether the run then ends well
UNREACHED = {
    "a statement behind the loop": (TAIL, "", ("totl", "total")),
    "a statement more behind the loop": (TAIL, "", ("print(totl)", "x = 1\nlog.append(5)")),
    "the rest of the body of a with": (NESTED, "", ("nothing()", "log.append('y')")),
    "a loop more behind the loop": (TAIL, "", ("print(totl)", "for k in range(2):\n    log.append(k)")),
    "a later loop": (LATER, "", ("stop()\nfor k in range(3)", "for k in range(1)")),
    "the end of a followed function": ("out = fit(log)", FUNCTION, ("finish(log)\ndef", "len(log)\ndef")),
    "a helper that only the end reaches": ("out = fit(log)", FUNCTION, ("return totl", "return len(log)")),
    "a function that only the tail calls": (
        "for i in range(3):\n    log.append(i)\nend(log)", "def end(log): return totl\n", ("totl", "len(log)"),
    ),
    "a class that only the tail makes": (
        "for i in range(3):\n    log.append(i)\nx = End().go()",
        "class End:\n    def go(self): return totl\n",
        ("totl", "1"),
    ),
    "a body whose first iteration never ended": ("for i in range(3):\n    log.append(i / z)\n", "z = 0\n", ("i / z", "i")),
    "the end of a body in its first iteration": (INNER, "", ("nothing()", "log.append('end')")),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREACHED)
def test_what_was_never_reached_may_change(notebook, name):
    """The run goes on with the repaired code, and comes out as that code alone would."""
    cell, before, edit = UNREACHED[name]
    interrupt(notebook, cell, before)
    now = cell.replace(*edit), before.replace(*edit)
    assert now != (cell, before)
    notebook.run(now[1])
    notebook.run(MAGIC + now[0])
    got = notebook["log"]
    assert [change.how for change in changes(notebook)] == [NOT_REACHED]
    notebook.restart()
    notebook.run("log = []\n" + now[1] + "\n" + now[0])
    assert got == notebook["log"]


REACHED = {
    "the body of a loop that has run": (TAIL, "", ("log.append(i)", "log.append(i + 1)")),
    "a statement before the loop": ("x = 1\n" + TAIL, "", ("x = 1", "x = 2")),
    "a statement more before the loop": (TAIL, "", ("for i", "x = 1\nfor i")),
    "a loop more before the loop": (TAIL, "", ("for i in range(4)", "for k in range(2): pass\nfor i in range(4)")),
    "the end of a body that has run": (
        "for i in range(3):\n    for k in range(2):\n        log.append(k)\n    if i: raise ValueError\n", "",
        ("if i: raise ValueError", "log.append('end')"),
    ),
    "an else": (TAIL.replace("total = sum(log)\n", "else:\n    x = 1\n"), "", ("x = 1", "x = 2")),
    "a handler": (
        "try:\n    for i in range(3):\n        log.append(i)\n    totl\nexcept KeyError:\n    x = 1\n", "", ("x = 1", "x = 2"),
    ),
    "the end of a function that was called before": (
        "fit(log)\nfit(log)", "def fit(log):\n    for i in range(2):\n        log.append(i)\n    if len(log) > 2: totl\n",
        ("totl", "total"),
    ),
    "the end of a function that another way calls": (
        "log.append(other())\nout = fit(log)",
        FUNCTION.replace("return finish(log)", "if len(log) > 4: totl") + "def other(): return fit([])\n",
        ("totl", "total"),
    ),
    "a helper that the loop reaches": (TAIL.replace("(i)", "(f(i))"), "def f(x): return x\n", ("return x", "return -x")),
    "a helper that both reach": (
        TAIL.replace("(i)", "(f(i))").replace("totl", "f(totl)"), "def f(x): return x\n", ("return x", "return -x"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REACHED)
def test_what_has_run_may_not_change(notebook, name):
    """Nothing runs and nothing is touched."""
    cell, before, edit = REACHED[name]
    interrupt(notebook, cell, before)
    now = cell.replace(*edit), before.replace(*edit)
    assert now != (cell, before)
    notebook.run(now[1])
    files = notebook.files()
    assert isinstance(notebook.fails(MAGIC + now[0]), ChangedError)
    assert notebook.files() == files
    assert notebook["log"] == []


def test_of_a_complete_run_everything_counts(notebook):
    """Another tail is another run, beside the complete one."""
    cell = "for i in range(2):\n    log.append(i)\nx = 1\n"
    notebook.run("log = []")
    notebook.run(MAGIC + cell)
    notebook.restart()
    notebook.run("log = []")
    notebook.run(MAGIC + cell.replace("x = 1", "x = 2"))
    assert notebook["x"] == 2
    assert len(notebook.runs) == 2


def test_a_changed_tail_that_needs_what_was_not_saved_stops(notebook):
    """The old tail did not read it, so no snapshot holds it: a stale one would be read in its place."""
    cell = "f = open('x', 'w')\nfor i in range(2):\n    log.append(i)\n    f = open('x')\n    f.close()\nraise ValueError\n"
    interrupt(notebook, "import threading\nfor k in range(1):\n    lock = threading.Lock()\n" + cell)
    error = notebook.fails(
        MAGIC
        + ("import threading\nfor k in range(1):\n    lock = threading.Lock()\n" + cell).replace(
            "raise ValueError", "lock.acquire()"
        )
    )
    assert isinstance(error, ChangedError)
    assert "lock" in str(error)


def test_the_changed_tail_is_what_later_resumes_compare_with(notebook):
    """Both are kept: the record has the launch, the journal each change."""
    interrupt(notebook, TAIL)
    notebook.fails(MAGIC + TAIL.replace("totl", "totaal"))
    notebook.restart()
    notebook.run("log = []")
    notebook.run(MAGIC + TAIL.replace("totl", "total"))
    first, second = changes(notebook)
    assert first.differences == ("the cell: line 4 changed: 'print(totl)' -> 'print(totaal)'",)
    assert second.differences == ("the cell: line 4 changed: 'print(totaal)' -> 'print(total)'",)
    assert "totl" in json.loads((notebook.runs[0].path / "run.json").read_text())["identity"]["code"]["the cell"][1]


# ------------------------------------------------------------------ what only a person can declare

BODY = "for i in range(6):\n    log.append(step(i) * 2)\n    if i == stop: raise ValueError\n"
STEP = "stop = 3\ndef step(x):\n    y = x + 1\n    return y\nclass Model:\n    def f(self, x): return x\n"
DECLARE = "%nbresume continue t --declare-compatible"

# name: the cell, what is before it, what changes in either
COMPATIBLE = {
    "a bug in the body": (BODY, STEP, ("* 2", "* 3")),
    "a statement more in the body": (BODY, STEP, ("    if i", "    extra = i\n    if i")),
    "a bug in a helper": (BODY, STEP, ("y = x + 1", "y = x - 1")),
    "a new input of the changed code": (BODY, STEP, ("* 2", "* k")),
    "a bug in a class": ("m = Model()\n" + BODY.replace("step(i)", "m.f(i)"), STEP, ("return x\n", "return -x\n")),
    "a statement more in the set-up": ("a = 1\n" + BODY, STEP, ("a = 1", "a = 1\nb = 2")),
    "the body of a followed function": (
        "out = fit(log)", STEP + "def fit(log):\n    for i in range(5):\n        log.append(i)\n        if i == stop: raise ValueError\n    return 1\n",
        ("log.append(i)", "log.append(-i)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPATIBLE)
def test_compatible_code_is_continued_as_declared_and_only_then(notebook, name, capsys):
    """The finished part stays, the rest runs as the new code says, and the lineage says who said so."""
    cell, before, edit = COMPATIBLE[name]
    interrupt(notebook, cell, before)
    kept = list(notebook.runs[0].latest()[0].meta["cursor"])
    cell, before = cell.replace(*edit), before.replace(*edit)
    notebook.run(before + "k = 7")
    assert "--declare-compatible" in str(notebook.fails(MAGIC + cell))
    notebook.run(DECLARE)
    notebook.fails(MAGIC + cell)  # at the same i == stop
    (change,) = changes(notebook)
    assert change.how == DECLARED
    assert change.differences
    assert change.diff
    assert "declared the same run by a person" in capsys.readouterr().out
    assert kept
    notebook.restart()
    notebook.run("log = []\n" + before + "k, stop = 7, 3")
    notebook.run("stop = 99")
    assert "stop: 3 -> 99" in str(notebook.fails(MAGIC + cell))
    assert len(notebook.runs) == 1


def test_the_declared_code_is_the_one_that_runs(notebook):
    """Also where the snapshot holds objects of the class as it was."""
    cell = "m = Model()\nfor i in range(5):\n    log.append(m.f(i))\n    ticks(i)\n"
    before = "class Model:\n    def f(self, x): return x\ndef ticks(i):\n    if i == 2: raise ValueError\n"
    interrupt(notebook, cell, before)
    notebook.run(before.replace("return x", "return -x").replace("raise ValueError", "pass"))
    notebook.fails(MAGIC + cell)
    notebook.run(DECLARE)
    notebook.run(MAGIC + cell)
    assert notebook["log"] == [0, 1, -2, -3, -4]
    assert type(notebook["m"]) is notebook["Model"]


INCOMPATIBLE = {
    "an input": (BODY, STEP + "lr = 1\n", ("* 2", "* 2"), "lr = 2", None),
    "another loop around": (BODY, STEP, ("for i in range(6)", "for a in [0]:\n  for i in range(6)"), "", "way to the resume"),
    "another target": (BODY, STEP, ("for i in", "for j in"), "i = 0", "way to the resume"),
    "a loop before": (BODY, STEP, ("for i", "for k in [1]: pass\nfor i"), "", "way to the resume"),
    "a while instead": (BODY, STEP, ("for i in range(6)", "i = 0\nwhile i < 6"), "", "way to the resume"),
    "another iterable": (BODY, STEP, ("range(6)", "[0, 1, 2, 3, 4]"), "", "goes on over what it was entered with"),
    "a name that no snapshot holds": (
        BODY, STEP, ("    log.append(", "    if i: carry += 1\n    carry = i\n    log.append(carry + "), "", None,
    ),
    "a range of another step": (BODY, STEP, ("range(6)", "range(0, 12, 2)"), "", None),
    "a shorter range": (BODY, STEP, ("range(6)", "range(5)"), "", None),
    "a range of another start": (BODY, STEP, ("range(6)", "range(1, 9)"), "", None),
}  # fmt: skip


@pytest.mark.parametrize("name", INCOMPATIBLE)
def test_what_is_not_compatible_cannot_be_declared(notebook, name):
    """Refused with the reason; no iteration runs and nothing of the run is lost."""
    cell, before, edit, then, why = INCOMPATIBLE[name]
    cell = cell.replace("* 2", "* lr") if "lr" in before else cell
    interrupt(notebook, cell, before)
    notebook.run(then or "pass")
    notebook.run(DECLARE)
    snapshots = {n: data for n, data in notebook.files().items() if n.endswith(".h5")}
    error = notebook.fails(MAGIC + cell.replace(*edit))
    assert isinstance(error, ChangedError)
    assert "can't be declared" in str(error)
    assert (why or "") in str(error)
    assert notebook["log"] == []
    assert not changes(notebook)
    assert {n: data for n, data in notebook.files().items() if n.endswith(".h5")} == snapshots


def test_a_declaration_is_followed_once(notebook):
    interrupt(notebook, BODY, STEP)
    notebook.run(DECLARE)
    notebook.fails(MAGIC + BODY.replace("* 2", "* 3"))
    notebook.restart()
    notebook.run("log = []\n" + STEP)
    assert isinstance(notebook.fails(MAGIC + BODY.replace("* 2", "* 4")), ChangedError)
    assert len(changes(notebook)) == 1


def test_no_script_policy_or_option_can_declare(notebook, monkeypatch):
    """Not unattended, not in the environment, not on the magic line, not from a shell without a terminal."""
    import nbresume._cli as cli

    interrupt(notebook, BODY, STEP)
    now = BODY.replace("* 2", "* 3")
    for words in ("--declare-compatible", "--on-restart declare"):
        assert isinstance(notebook.fails(MAGIC.replace("--every 1", f"--every 1 {words}") + now), OptionError)
    monkeypatch.setenv("NBRESUME_ON_RESTART", "declare")
    assert isinstance(notebook.fails(MAGIC + now), OptionError)
    monkeypatch.delenv("NBRESUME_ON_RESTART")
    assert cli.main(["continue", "t", "--declare-compatible"]) == 2
    assert notebook.runs[0].said() == ""
    notebook.run(DECLARE)
    notebook.shell._nbresume_extension.host.attended = lambda: False
    notebook.fails(DECLARE)
    assert isinstance(notebook.fails(MAGIC + now), OptionError)
    assert not changes(notebook)


def test_a_terminal_can_declare(notebook):
    import sys

    import pexpect

    interrupt(notebook, BODY, STEP)
    words = ["-m", "nbresume._cli", "continue", "t", "--declare-compatible"]
    code = "import sys; from nbresume._cli import main; sys.exit(main(sys.argv[1:]))"
    found = pexpect.spawn(sys.executable, ["-c", code, *words[2:]], encoding="utf-8", timeout=60)
    found.expect("as declared by you")
    found.expect(pexpect.EOF)
    notebook.fails(MAGIC + BODY.replace("* 2", "* 3"))
    assert [change.how for change in changes(notebook)] == [DECLARED]


# ------------------------------------------------------------------ what the run goes over

SETUP = "n = int(open('n').read())\nfor i in range(n):\n    log.append(i)\n    if i == 2 and n == 4: raise ValueError\n"
COUNTED = "%%resumable t --vars log,k --every 1\n"


def put(notebook, n: int) -> None:
    (notebook.folder / "n").write_text(str(n))


def test_a_range_that_the_set_up_computes_anew_is_found(notebook):
    """Neither the old nor the new one goes on in silence; files and snapshots are as they were."""
    put(notebook, 4)
    interrupt(notebook, SETUP)
    put(notebook, 6)
    snapshots = {n: data for n, data in notebook.files().items() if n.endswith(".h5")}
    error = notebook.fails(MAGIC + SETUP)
    assert isinstance(error, ChangedError)
    assert error.differences == ("range(4) -> range(6): extended", "n: 4 -> 6")
    assert notebook["log"] == []
    assert {n: data for n, data in notebook.files().items() if n.endswith(".h5")} == snapshots
    put(notebook, 4)
    notebook.fails(MAGIC + SETUP)
    assert notebook["log"] == [0, 1, 2]


@pytest.mark.parametrize("bar", ["{}", "tqdm({}, disable=True)"])
def test_an_extended_range_goes_on_to_its_new_end_as_declared(notebook, bar):
    """However it is longer: in the set-up, in an input, in the code; also resumed again afterwards."""
    put(notebook, 4)
    body = SETUP.replace("range(n)", bar.format("range(n)"))
    before = "from tqdm import tqdm\n"
    interrupt(notebook, body, before)
    put(notebook, 6)
    notebook.fails(MAGIC + body)
    notebook.run(DECLARE)
    notebook.run(MAGIC + body)
    assert notebook["log"] == [0, 1, 2, 3, 4, 5]
    assert notebook["n"] == 6
    assert [c.differences for c in changes(notebook)] == [("range(4) -> range(6): extended", "n: 4 -> 6")]
    notebook.restart()
    notebook.run("log = []\n" + before)
    notebook.run(MAGIC + body)
    assert notebook["log"] == [0, 1, 2, 3, 4, 5]
    assert len(notebook.runs) == 1


LENGTHS = {
    "in the code": ("for i in range({n}):\n    log.append(i)\n    if i == stop: raise ValueError\n", ""),
    "in an input": ("for i in range(n):\n    log.append(i)\n    if i == stop: raise ValueError\n", "n = {n}\n"),
    "in the code of the set-up": (
        "n = {n}\nfor i in range(n):\n    log.append(i)\n    if i == stop: raise ValueError\n",
        "",
    ),
}


@pytest.mark.parametrize("same_kernel", [False, True])
@pytest.mark.parametrize("name", LENGTHS)
def test_a_longer_range_wherever_it_is_written(notebook, name, same_kernel):
    cell, before = LENGTHS[name]
    interrupt(notebook, cell.format(n=4), "stop = 2\n" + before.format(n=4), same_kernel=same_kernel)
    notebook.run(before.format(n=7) + "stop = 2")
    assert isinstance(notebook.fails(MAGIC + cell.format(n=7)), ChangedError)
    notebook.run(DECLARE)
    if same_kernel and "set-up" in name:
        assert "Restart the kernel" in str(notebook.fails(MAGIC + cell.format(n=7)))
        return
    notebook.run("import builtins; builtins.go_on = True")
    error = notebook.fails(MAGIC + cell.format(n=7))
    assert isinstance(error, ValueError)
    (change,) = [c for c in changes(notebook) if any("extended" in line for line in c.differences)]
    assert change.how == DECLARED
    view = notebook.runs[0].lineage()
    assert dict(view.last_snapshot)["loops"][0][2] in (4, 7)


GOES_OVER = {
    "a list made by the set-up": ("xs = [int(c) for c in open('n').read()]\nfor x in xs:\n    {body}", "12345", "123456", "5 items -> 6 items"),
    "another list": ("xs = [int(c) for c in open('n').read()]\nfor x in xs:\n    {body}", "12345", "12354", "other content"),
    "an array": ("import numpy as np\nxs = np.arange(int(open('n').read()))\nfor x in xs:\n    {body}", "6", "7", "shape (6,) -> shape (7,)"),
    "a declared array": ("for x in k:\n    {body}", "6", "6", "other content"),
    "enumerate": ("xs = list(open('n').read())\nfor x in enumerate(xs):\n    {body}", "12345", "12354", "for x"),
    "an iterable of one's own": ("loader = Loader(int(open('n').read()))\nfor x in loader:\n    {body}", "6", "7", "6 items -> 7 items"),
    "one that can't be saved, in a later loop": (
        "for i in range(1):\n    pass\nloader = Loader(int(open('n').read()))\nloader.lock = open('n')\nfor x in loader:\n    {body}", "6", "7",
        "6 items -> 7 items",
    ),
    "while": ("n = int(open('n').read())\nx = 0\nwhile x < n:\n    x += 1\n    {body}", "6", "7", "n: 6 -> 7"),
    "a call": ("n = int(open('n').read())\nfit(log, n)", "6", "7", "n: 6 -> 7"),
    "a loop that had ended": ("n = int(open('n').read())\nfor i in range(n):\n    pass\nfor x in [1, 2, 3, 4]:\n    {body}", "3", "4", "range(3) -> range(4)"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOES_OVER)
def test_other_data_stops_before_saved_state_covers_it(notebook, name):
    cell, old, new, line = GOES_OVER[name]
    cell = cell.format(body="log.append(str(x))\n    if len(log) == 3: raise ValueError")
    before = (
        "class Loader:\n    def __init__(self, n): self.n = n\n    def __len__(self): return self.n\n"
        "    def __iter__(self): return (k for k in range(self.n))\n"
        "import numpy as np\nk = np.arange(6) + seed\ndef fit(log, n):\n    for x in range(n):\n"
        "        log.append(x)\n        if x == 2: raise ValueError\n"
    )
    notebook.run("seed = 0; log = []\n" + before)
    (notebook.folder / "n").write_text(old)
    notebook.fails(COUNTED + cell)
    notebook.restart()
    notebook.run(f"seed = {int('declared' in name)}; log = []\n" + before)
    (notebook.folder / "n").write_text(new)
    error = notebook.fails(COUNTED + cell)
    assert isinstance(error, ChangedError), error
    assert line in str(error)
    assert notebook["log"] == (["0", "1"] if "later" in name else [])  # in a later one, what had been restored


def test_a_time_that_the_set_up_reads_is_no_data(notebook):
    """A deadline is another in each process, and the run keeps its own."""
    cell = "import time\nt = time.time() + 3600\nn = 0\nwhile time.time() < t and n < 5:\n    n += 1\n    log.append(n)\n    if n == stop: raise ValueError\n"
    interrupt(notebook, cell, "stop = 3\n")
    assert isinstance(notebook.fails(MAGIC + cell), ValueError)
    assert notebook["log"] == [1, 2, 3]


# ------------------------------------------------------------------ what stands beside the identity


def test_fresh_weights_of_a_declared_name_are_said_and_stop_nothing(notebook, capsys):
    cell = "for i in range(4):\n    w += 1\n    if i == 2 and stop: raise ValueError\n"
    magic = "%%resumable t --vars w,stop --every 1\n"
    notebook.run("import numpy as np; w, stop = np.zeros(3), np.array(True)")
    notebook.fails(magic + cell)
    notebook.restart()
    notebook.run("import numpy as np; w, stop = np.ones(3), np.array(True)")
    capsys.readouterr()
    notebook.fails(magic + cell)
    assert "w: other content than at the launch" in capsys.readouterr().out
    assert list(notebook["w"]) == [3, 3, 3]


MADE = "import sqlite3\npath = 'a.db'\ndb = sqlite3.connect(path)\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("(path)", "(path, timeout=9)", "db: made otherwise: 'db = sqlite3.connect(path)' -> 'db = sqlite3.connect(path, timeout=9)'"),
        ("'a.db'", "'b.db'", "db: made otherwise: what 'db = sqlite3.connect(path)' reads has changed"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_into_counts_by_the_statement_that_made_it(notebook, old, new, line):
    cell = "for i in range(4):\n    log.append(db.execute('select 1').fetchone()[0] + i)\n    if i == 2: raise ValueError\n"
    interrupt(notebook, cell, MADE)
    assert isinstance(notebook.fails(MAGIC + cell), ValueError)
    notebook.restart()
    notebook.run("log = []\n" + MADE.replace(old, new))
    assert notebook.fails(MAGIC + cell).differences == (line,)


def test_other_hardware_goes_on_and_is_said_everywhere(notebook, capsys):
    """In the told line, the journal, the closeout and the text; the launch was on a machine of another class."""
    interrupt(notebook, TAIL)
    path = notebook.runs[0].path / "run.json"
    record = json.loads(path.read_text())
    (real,) = {record["identity"]["surroundings"]["cpu"][1]}
    record["identity"]["surroundings"]["cpu"] = ["vax", "vax"]
    record["signature"] = sign(*of_record(record))
    path.write_text(json.dumps(record))
    capsys.readouterr()
    notebook.run(MAGIC + TAIL.replace("totl", "total"))
    assert f"bits not guaranteed: other hardware:\n    cpu: vax -> {real}" in capsys.readouterr().out
    lineage = notebook.runs[0].lineage()
    assert [change.how for change in changes(notebook)] == [NOT_REACHED, OTHER_HARDWARE]
    assert not lineage.is_exact
    assert notebook.runs[0].events()[-1].facts["bits"] == "bits not guaranteed: other hardware"
    notebook.run("%nbresume show t")
    assert "completed in 2 attempts, bits not guaranteed: other hardware" in capsys.readouterr().out


def test_another_version_of_a_package_counts_as_changed_code(notebook, monkeypatch):
    import numpy as np

    cell = "for i in range(4):\n    log.append(np.int64(i))\n    if i == 2: raise ValueError\n"
    interrupt(notebook, cell, "import numpy as np\n")
    monkeypatch.setattr(np, "__version__", "0.1")
    assert "numpy: " in str(notebook.fails(MAGIC + cell))
    notebook.run(DECLARE)
    assert isinstance(notebook.fails(MAGIC + cell), ValueError)
    assert [change.how for change in changes(notebook)] == [DECLARED]


def test_the_commit_is_kept_and_stops_nothing(notebook):
    """With whether it had changes; outside of a repository there is none."""
    import subprocess

    from nbresume._session._surroundings import commit

    assert commit(notebook.folder) == ""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    (notebook.folder / "file").write_text("1")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=notebook.folder, check=True)
    interrupt(notebook, TAIL)
    first = notebook.runs[0].record["identity"]["surroundings"]["commit"][1]
    assert len(first) == 12
    (notebook.folder / "file").write_text("2")
    assert commit(notebook.folder) == f"{first} with changes"
    assert isinstance(notebook.fails(MAGIC + TAIL), NameError)


def test_a_long_list_of_differences_is_cut_with_its_count(notebook):
    names = [f"n{k:02}" for k in range(30)]
    cell = f"for i in range(4):\n    log.append({' + '.join(names)})\n    if i == 2: raise ValueError\n"
    interrupt(notebook, cell, f"{' = '.join(names)} = 1\n")
    notebook.run(f"{' = '.join(names)} = 2\n")
    error = notebook.fails(MAGIC + cell)
    assert error.differences == tuple(f"{name}: 1 -> 2" for name in names)
    assert "n11: 1 -> 2\n    … and 18 more" in str(error)
