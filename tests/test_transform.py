"""From the cell as the user wrote it to the cell that finds its way back: what the user sees stays a plain cell."""

from __future__ import annotations

import ast
import gc
import re
import traceback

import pytest

from nbresume._policy import Every, Keep
from nbresume._transform import CellOptions, marked, marker_line, rewrite_cell
from nbresume._transform._names import Needs, bound_names, catches_interrupt, mutated_names, read_names
from nbresume.errors import OptionError, RefusedError

LOOP = "for i in range(3):\n    n = i\n"


def plan(code: str, holds_loop=lambda function: False):
    """Rewrite a cell; returns its plan."""
    return rewrite_cell(ast.parse(code), CellOptions("x"), holds_loop)[1]


# ------------------------------------------------------------------ the text


@pytest.mark.parametrize(
    "cell",
    [
        [],
        ["x = 1\n"],
        ["%%resumables train\n", "x\n"],
        ["%%time\n", "x\n"],
        ["\n", "%%resumable train\n", "x\n"],
        ["x = '''\n", "%%resumable train\n", "'''\n"],
    ],
)
def test_a_cell_without_the_magic_on_top_is_left_as_it_is(cell):
    assert marked(list(cell)) == cell


@pytest.mark.parametrize(
    "line", ["", " train", " train --every '10 & 30s'", "\ttrain", ' train --store "a b"', " {x} $y"]
)
def test_the_magic_line_becomes_one_statement_on_the_same_line(line):
    cell = [f"%%resumable{line}\n", "x = 1\n", "\n", "y = 2\n"]
    lines = marked(cell)
    assert len(lines) == len(cell)
    assert lines[1:] == cell[1:]
    tree = ast.parse("".join(lines))
    assert marker_line(tree) == (line.strip(), False, "")
    assert [node.lineno for node in tree.body] == [1, 2, 4]


def test_marking_twice_is_marking_once():
    """IPython calls a transformer more than once for a cell."""
    once = marked(["%%resumable train\n", LOOP])
    assert marked(list(once)) == once


@pytest.mark.parametrize("blank", [[], ["\n"], ["\n", "  \n"]])
def test_a_time_line_below_is_peeled_off_and_no_line_moves(blank):
    lines = marked(["%%resumable train\n", *blank, "%%time\n", "x = 1\n"])
    assert marker_line(ast.parse("".join(lines))) == ("train", True, "")
    assert lines[-1] == "x = 1\n"
    assert len(lines) == 3 + len(blank)


def test_another_magic_below_is_named():
    assert marker_line(ast.parse("".join(marked(["%%resumable train\n", "%%capture out\n", "x\n"])))) == (
        "train",
        False,
        "capture",
    )


# ------------------------------------------------------------------ the magic line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("train", {}),
        ("train --vars a,b", {"declared": ("a", "b")}),
        ("train --vars 'a, b'", {"declared": ("a", "b")}),
        ("train --vars a,a,", {"declared": ("a",)}),
        ("--vars a train", {"declared": ("a",)}),
        ("train --vars=a", {"declared": ("a",)}),
        ("train --every '10 & 30s'", {"every": Every(count=10, seconds=30.0)}),
        ("train --budget 2% --max-wait 90s --sync", {"budget": 0.02, "max_wait": 90.0, "sync": True}),
        ("train --keep 5 --keep-every 10", {"keep": Keep(5, 10)}),
        ("train --on-restart fail", {"on_restart": "fail"}),
        ("train --rebuild db,bar", {"rebuild": ("db", "bar")}),
        ("train --strict --plan", {"strict": True, "plan": True}),
        ("train --store '/tmp/a b'", {"store": "/tmp/a b"}),
    ],
)
def test_a_line_is_read_once(line, expected):
    assert CellOptions.from_line(line) == CellOptions("train", **expected)


@pytest.mark.parametrize("name", ["train", "train-2", "a.b", "größe", "0", "a_b"])
def test_a_name_that_can_be_a_folder(name):
    assert CellOptions.from_line(name).name == name


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("", "needs a name"),
        ("--vars a", "needs a name"),
        ("../x", "'../x'"),
        ("a/b", "'a/b'"),
        (".hidden", "'.hidden'"),
        ("'a b'", "'a b'"),
        ("train --vars a.b", "'a.b'"),
        ("train --vars 1a", "'1a'"),
        ("train --vars a --rebuild a", "a: in --vars and in --rebuild"),
        ("train --every often", "'often'"),
        ("train --keep 0", "0"),
        ("train --keep many", "'many'"),
        ("train --keep -1", "-1"),
        ("train --keep-every 0", "0"),
        ("train --on-restart maybe", "'maybe'"),
        ("train --varz a", "--varz"),
        ("train --var a", "--var"),
        ("train again", "again"),
        ("train --vars", "--vars"),
        ("train 'open", "quotation"),
    ],
)
def test_a_wrong_word_is_shown(line, word):
    with pytest.raises(OptionError) as error:
        CellOptions.from_line(line)
    assert word.lower() in str(error.value).lower()


def test_the_line_goes_before_the_defaults():
    defaults = {"every": "60s", "keep": 9, "on_restart": "fail", "strict": True}
    found = CellOptions.from_line("train --keep 2", defaults)
    assert (found.every, found.keep, found.on_restart, found.strict) == (Every(seconds=60.0), Keep(2), "fail", True)


# ------------------------------------------------------------------ what is refused, and where


@pytest.mark.parametrize(
    ("code", "line", "word"),
    [
        ("x = 1\nasync for a in b():\n    pass", 2, "async for"),
        ("for i in x:\n    async for a in b(): pass", 2, "async for"),
        ("for i in x:\n    yield i", 2, "yield"),
        ("x = 1", 1, "no boundary"),
        ("model.fit(x)", 1, "no boundary"),
        ("[f(i) for i in x]", 1, "no boundary"),
        ("def f():\n    for i in x: pass", 1, "no boundary"),
    ],
)
def test_what_cannot_be_resumed_is_refused_with_line_reason_and_way_out(code, line, word):
    with pytest.raises(RefusedError, match=word) as error:
        plan(code)
    assert error.value.line == line
    assert error.value.way_out


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    yield 1\nfor i in f(): pass",
        "async def f():\n    async for i in y: pass\nfor i in x: pass",
        "for i in (j for j in x): pass",
        "for i in x: f = lambda: (yield)",
    ],
)
def test_a_generator_function_in_the_cell_is_no_reason_to_refuse(code):
    assert plan(code).unit.loops


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("%%resumable t\n%%timeit\n" + LOOP, "%%timeit"),
        ("%%timeit\n%%resumable t\n" + LOOP, "timeit"),
        ("%%resumable t\n%%capture\n" + LOOP, "%%capture"),
        ("%%resumable t", "empty"),
        ("%%resumable t\n\n# nothing\n", "empty"),
        ("%%resumable t\nx = 1", "no boundary"),
        ("%%resumable\n" + LOOP, "needs a name"),
        ("%%resumable t --vars nope\n" + LOOP, "'nope'"),
        ("%%resumable t\nasync for i in x: pass", "async for"),
        ("%%resumable t\nfor i in range(3): yield i", "yield"),
    ],
)
def test_a_refused_cell_says_why_in_one_line_runs_nothing_and_the_next_cell_is_protected(notebook, capsys, cell, word):
    """An exception in an AST transformer makes IPython drop it, and the cell would run unprotected."""
    notebook.run("ran = []")
    notebook.fails(cell.replace("n = i", "ran.append(i)"))
    told = "".join(capsys.readouterr())
    assert word in told
    assert "Traceback" not in told
    assert notebook["ran"] == []
    assert notebook.runs == []
    notebook.run("%%resumable good --vars n\n" + LOOP)
    assert [run.name for run in notebook.runs] == ["good"]


def test_a_syntax_error_speaks_of_the_users_line(notebook, capsys):
    error = notebook.fails("%%resumable t\nx = 1\nfor i in range(3)\n    pass\n")
    assert isinstance(error, SyntaxError)
    assert error.lineno == 3
    assert "__nbresume" not in "".join(capsys.readouterr())
    error = notebook.fails("%%resumable t\nfor i in range(3):\n    pass\nbreak\n")
    assert isinstance(error, SyntaxError)
    assert error.lineno == 4
    notebook.run("%%resumable good --vars n\n" + LOOP)


@pytest.mark.parametrize("cell", ["return 1", "for i in range(2):\n    return i", "nonlocal x\nfor i in y: pass"])
def test_what_no_cell_may_hold_is_pythons_own_error(notebook, cell):
    assert isinstance(notebook.fails("%%resumable t\n" + cell), SyntaxError)


# ------------------------------------------------------------------ what the user sees is a plain cell

ERRORS = [
    "a = 1\nfor i in range(3):\n    b = 2\n    1 / (2 - i)\n",
    "x = 1\n\n1 / 0\nfor i in range(3):\n    pass\n",
    "for i in range(3):\n    pass\n\n\n1 / 0\n",
    "for i in range(1 / 0):\n    pass\n",
    "for i in range(3):\n    for j in range(2):\n        pass\n    1 / 0\n",
    "while True:\n    1 / 0\n",
    "while 1 / 0:\n    pass\n",
    "n = 1\nwhile (n or\n       1 / 0):\n    n -= 1\nelse:\n    pass\n",
    "n = 1\nwhile n or 1 / 0:\n    for i in range(2):\n        pass\n    n -= 1\n",
    "n = 1\nwhile n:\n    n -= 1\nelse:\n    1 / 0\n",
    "if 1 / 0:\n    for i in range(3): pass\n",
    "def f():\n    return 1 / 0\nfor i in range(3):\n    f()\n",
    "for a, b in [(1, 2), (3,)]:\n    pass\n",
    "for a, b in [(1, 2), (3,)]:\n    for i in range(2): pass\n",
    "for i in range(3):\n    if i:\n        raise ValueError(\n            i\n        )\n",
]


def frames(error: BaseException) -> list[tuple[int, str]]:
    """Return lines and functions of a traceback, as far as they are of a cell."""
    return [
        (frame.lineno, frame.name if not frame.name.startswith("<") else "cell")
        for frame in traceback.extract_tb(error.__traceback__)
        if "ipython-input" in frame.filename or "ipykernel" in frame.filename
    ]


@pytest.mark.parametrize("cell", ERRORS)
def test_an_error_has_the_type_the_line_and_the_frames_of_a_plain_cell(notebook, capsys, cell):
    plain = notebook.fails("# plain\n" + cell)
    capsys.readouterr()
    found = notebook.fails("%%resumable t --every 1\n" + cell)
    assert (type(found), str(found)) == (type(plain), str(plain))
    assert frames(found) == frames(plain)
    shown = "".join(capsys.readouterr())
    assert re.search(rf"-+> {frames(plain)[0][0]} ", shown)
    assert "nbresume/_" not in shown


def test_a_while_asks_its_test_as_often_as_ever_and_once_for_its_truth(notebook):
    notebook.run(
        "class Truth:\n    def __init__(self, value): self.value = value\n"
        "    def __bool__(self):\n        asked.append(self.value)\n        return self.value\n"
    )
    cell = (
        "asked, n = [], 3\nwhile Truth(n > 0):\n    n -= 1\n    if n == 1: continue\nelse:\n    asked.append('else')\n"
    )
    notebook.run(cell)
    plain = notebook["asked"]
    assert plain == [True, True, True, False, "else"]
    notebook.run("%%resumable t --every 1\n" + cell)
    assert notebook["asked"] == plain


def test_a_while_leaves_nothing_behind_that_waits_for_the_garbage_collector(notebook):
    """A run of many short loops would fill the memory between two collections."""
    cell = "for k in range(50):\n    n = 2\n    while n:\n        n -= 1\n        if k % 2: break\n    else:\n        pass\n"
    gc.collect()
    gc.disable()
    try:
        before = set(map(id, turns_alive()))  # what a failed test of another file holds is not ours
        notebook.run("%%resumable t --every 1h\n" + cell)
        assert [one for one in turns_alive() if id(one) not in before] == []
    finally:
        gc.enable()


def turns_alive() -> list[object]:
    """Return the generators that stand for a ``while``."""
    return [o for o in gc.get_objects() if type(o).__name__ == "generator" and o.gi_code.co_name == "_turns"]


def test_a_traceback_in_a_followed_function_shows_its_lines(notebook, capsys):
    code = "def work(n):\n    total = 0\n    for i in range(n):\n        total += 1 / (2 - i)\n    return total\n"
    notebook.run(code)
    plain = notebook.fails("# plain\nx = work(5)\n")
    capsys.readouterr()
    found = notebook.fails("%%resumable t\nx = work(5)\n")
    assert frames(found) == frames(plain)
    shown = "".join(capsys.readouterr())
    assert "total += 1 / (2 - i)" in shown
    assert "nbresume/_" not in shown


@pytest.mark.parametrize("end", ["n", "n;", "n # said", "print(n)", "None", "x = n", "n\n\n", "[n,\n n]"])
def test_the_last_expression_is_displayed_as_in_a_plain_cell(notebook, capsys, end):
    plain = notebook.run("# plain\n" + LOOP + end)
    shown = re.sub(r"Out\[\d+\]", "Out", capsys.readouterr().out)
    assert notebook.run("%%resumable t --vars n\n" + LOOP + end) == plain
    told = re.sub(r"Out\[\d+\]", "Out", capsys.readouterr().out)
    assert [line for line in told.splitlines() if not line.startswith("t: ")] == shown.splitlines()


def test_out_and_underscore_hold_the_value(notebook):
    notebook.run("%%resumable t --vars n\n" + LOOP + "n * 21")
    assert notebook.run("_") == 42
    assert 42 in notebook["Out"].values()


def test_a_semicolon_displays_nothing(notebook, capsys):
    notebook.run("%%resumable t --vars n\n" + LOOP + "n;")
    assert "Out[" not in capsys.readouterr().out


def test_top_level_await_works_before_in_and_after_the_loop(notebook):
    notebook.run("import asyncio")
    cell = "a = await asyncio.sleep(0, 1)\nfor i in range(3):\n    a += await asyncio.sleep(0, i)\nawait asyncio.sleep(0, a)"
    assert notebook.run("%%resumable t --vars a\n" + cell) == 4


def test_line_magics_and_shell_commands_work_in_the_body(notebook):
    cell = (
        "%%resumable t --vars out\nout = []\nfor i in range(2):\n    x = !echo {i}\n    out += x\n    y = %who_ls int\n"
    )
    notebook.run(cell)
    assert notebook["out"] == ["0", "1"]


@pytest.mark.parametrize("above", [True, False])
def test_time_above_and_below_is_honoured(notebook, capsys, above):
    cell = "%%time\n%%resumable t --vars n\n" if above else "%%resumable t --vars n\n%%time\n"
    value = notebook.run(cell + LOOP + "n")
    assert "Wall time" in capsys.readouterr().out
    assert notebook["n"] == 2
    assert value == 2
    assert [run.lineage().state for run in notebook.runs] == ["completed"]


@pytest.mark.parametrize("cell", ["%time fit()", "x = %time fit()", "for i in range(2):\n    %time fit()"])
def test_time_in_the_cell_does_not_hide_the_loop(notebook, capsys, cell):
    notebook.run("log = []\ndef fit():\n    for i in range(3):\n        log.append(i)\n    return 7\n")
    notebook.run("%%resumable t --vars log --every 1\n" + cell)
    assert "Wall time" in capsys.readouterr().out
    assert notebook["log"][:3] == [0, 1, 2]
    assert notebook.runs[0].lineage().attempts[0].snapshots >= 4
    if cell.startswith("x"):
        assert notebook["x"] == 7


def test_no_name_of_ours_is_left_behind(notebook):
    notebook.run("before = None")
    known = set(notebook.shell.user_ns)
    notebook.run("%%resumable t --vars n\n" + LOOP)
    assert set(notebook.shell.user_ns) - known <= {"n", "i", "_i2", "_i1", "_ih", "_2", "_1"} | {
        f"_i{k}" for k in range(9)
    }
    notebook.fails("%%resumable u --vars n\n" + LOOP + "1 / 0")
    assert not {name for name in notebook.shell.user_ns if "nbresume_item" in name or name == "__nbresume__"}
    assert notebook.run("%who_ls") == sorted(["before", "n", "i"])


def test_a_plain_cell_is_not_touched(notebook):
    notebook.run(LOOP)
    assert notebook.runs == []


def test_an_unloaded_extension_leaves_a_shell_as_it_was(notebook):
    import builtins

    from nbresume import load_ipython_extension, unload_ipython_extension

    shell = notebook.shell
    for _ in range(2):
        unload_ipython_extension(shell)
        assert not [t for t in shell.ast_transformers if "nbresume" in type(t).__module__]
        assert not [t for t in shell.input_transformers_cleanup if "nbresume" in getattr(t, "__module__", "")]
        assert "nbresume" not in shell.magics_manager.magics["line"]
        assert "__nbresume_cell__" not in shell.user_ns
        assert "resumable" in str(notebook.fails("%%resumable t\n" + LOOP))
        assert builtins.open.__module__ in ("_io", "io")
        load_ipython_extension(shell)
        load_ipython_extension(shell)
        notebook.run("%%resumable t --vars n --on-restart continue\n" + LOOP)


def test_loading_twice_protects_once(notebook):
    notebook.run("%load_ext nbresume\n%reload_ext nbresume")
    notebook.run("%%resumable t --vars n\n" + LOOP)
    assert len(notebook.runs) == 1
    assert notebook.runs[0].lineage().state == "completed"


# ------------------------------------------------------------------ names


def names(code: str, find) -> set[str]:
    return find(ast.parse(code).body)


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        ("a = b = 1", {"a", "b"}),
        ("(a, [b, *c]), d.e, f[0] = x", {"a", "b", "c"}),
        ("a: int = 1", {"a"}),
        ("a += 1", {"a"}),
        ("for a, b in x:\n    c = 1\nelse:\n    d = 1", {"a", "b", "c", "d"}),
        ("with x as a, y as (b, c): pass", {"a", "b", "c"}),
        ("import a.b, c as d\nfrom e import f, g as h", {"a", "d", "f", "h"}),
        ("def a(b, c=(d := 1)):\n    e = 1", {"a", "d"}),
        ("class A(B, metaclass=(m := type)):\n    x = 1", {"A", "m"}),
        ("try: a = 1\nexcept E as e: b = 1\nelse: c = 1\nfinally: d = 1", {"a", "b", "c", "d", "e"}),
        ("while (a := f()): b = a", {"a", "b"}),
        ("[c for c in x if (d := c)]", {"d"}),
        ("x = [a for a in b for c in d]", {"x"}),
        ("lambda a: (b := a)", set()),
        (
            "match x:\n    case [a, *b]: pass\n    case {'k': c, **d}: pass\n    case A(e) as f: pass",
            {"a", "b", "c", "d", "e", "f"},
        ),
        ("del a", set()),
        ("async with x as a: pass", {"a"}),
        ("@(d := deco)\ndef a(): pass", {"a", "d"}),
    ],
)
def test_the_names_that_code_can_bind(code, bound):
    assert names(code, bound_names) == bound


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("a[0] = 1", {"a"}),
        ("a.b.c = 1", {"a"}),
        ("a += 1", {"a"}),
        ("a.b[0].append(1)", {"a"}),
        ("del a[0]", {"a"}),
        ("a.add_(1)", {"a"}),
        ("f(a)", set()),
        ("a = 1", set()),
    ],
)
def test_the_names_whose_object_code_visibly_changes(code, changed):
    assert names(code, mutated_names) == changed


def test_reads_are_all_names_read_anywhere():
    assert read_names(ast.parse("a = b[c].d + (lambda e: f)(g)")) == {"b", "c", "e", "f", "g"} - {"e"}


def loop_needs(code: str) -> set[str]:
    """Return what the first loop of a cell needs at its boundary."""
    tree = ast.parse(code)
    needs = Needs(tree.body)
    return next(found for node, found in needs.head.items() if node.lineno == min(n.lineno for n in needs.head))


@pytest.mark.parametrize(
    ("code", "needed", "dead"),
    [
        ("for i in x:\n    t = 1\n    u = t", set(), {"t", "u", "i"}),
        ("for i in x:\n    t += 1", {"t"}, {"i"}),
        ("for i in x:\n    t = 1\nprint(t)", {"t"}, {"i"}),
        ("for i in x:\n    pass\nprint(i)", {"i"}, set()),
        ("for i in x:\n    if i: t = 1\n    print(t)", {"t"}, set()),
        ("for i in x:\n    if i: t = 1\n    else: t = 2\n    print(t)", set(), {"t"}),
        ("for i in x:\n    try: t = f()\n    except E: pass\n    print(t)", {"t"}, set()),
        ("for i in x:\n    for j in y: t = j\n    print(t)", {"t"}, set()),
        ("while c:\n    c = f(d)", {"c", "d"}, set()),
        ("while True:\n    t = 1\n    if t: break\nprint(z)", {"z"}, {"t"}),
        ("for i in x:\n    with y as t: u = t", set(), {"t", "u"}),
        ("for i in x:\n    if i: continue\n    t = 1\nelse:\n    print(e)", {"e"}, {"t"}),
        ("for i in x:\n    t[0] = i", {"t"}, set()),
        ("for i in x:\n    del t", {"t"}, set()),
    ],
)
def test_what_a_boundary_needs(code, needed, dead):
    found = loop_needs(code)
    assert needed <= found
    assert not dead & found


def test_a_handler_of_the_users_that_catches_the_interrupt_is_seen():
    def seen(code):
        return names(code, catches_interrupt)

    assert seen("for i in x:\n    try: f()\n    except KeyboardInterrupt: pass")
    assert seen("try: f()\nexcept (A, BaseException): pass")
    assert not seen("try: f()\nexcept Exception: pass")
    # A bare one in a body is there for other errors, and would swallow what is meant to end the cell.
    assert not seen("for i in x:\n    try: f()\n    except: pass")
