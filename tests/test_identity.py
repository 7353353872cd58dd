"""What counts as the same run: equal under everything that is only writing, different under everything that is not."""

from __future__ import annotations

import ast
import importlib
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _support import script

from nbresume._identity import (
    Identity,
    Part,
    code_digest,
    fingerprint,
    function_digest,
    is_local_module,
    normalised,
    reads_and_writes,
)
from nbresume._identity._details import OTHER_ORDER


def notebook(code: str) -> dict[str, Any]:
    """Run code as a notebook's cells are run."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(code, namespace)
    return namespace


def print_of(code: str, name: str = "x") -> str:
    """Fingerprint what a cell binds."""
    return fingerprint(notebook(code)[name]).digest


def in_function(code: str) -> str:
    """Make code the body of a function."""
    return "def x():\n" + textwrap.indent(code.replace("\t", "    "), "    ")


# ------------------------------------------------------------------ code


EQUAL_CODE = [
    ("for i in range(3):\n    total += i", "for i in range(3): # three\n\n        total += i  # sum"),
    ("a = 'x'", 'a = "x"'),
    ("a = (1)", "a = 1"),
    ("f(a, b)", "f(\n    a,\n    b,\n)"),
    ("a = 1; b = 2", "a = 1\nb = 2"),
    ("a = 1_000", "a = 1000"),
    ("a = 'x' 'y'", "a = 'xy'"),
    ("if a:\n\tb", "if a:\n    b"),
]
OTHER_CODE = [
    ("a = 0.1", "a = 0.01"),
    ("a = 1", "a = 1.0"),
    ("a = 1", "a = True"),
    ("a = 'x'", "a = 'y'"),
    ("a = 'x'", "a = b'x'"),
    ("a + b", "a - b"),
    ("f(a)", "f(a, 1)"),
    ("f(a=1)", "f(b=1)"),
    ("for i in x: f()", "for j in x: f()"),
    ("a = 1\nb = 2", "b = 2\na = 1"),
    ("a < b", "a <= b"),
    ("[i for i in x]", "{i for i in x}"),
    ("if a:\n    f()\n    g()", "if a:\n    f()\ng()"),
    ("f'{a}'", "f'{a!r}'"),
    ("f'{a:.2f}'", "f'{a:.3f}'"),
    ("a = -0.0", "a = 0.0"),
    ("x[1:2]", "x[1:3]"),
    ("global a", "global b"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL_CODE)
def test_comments_blanks_and_quotes_do_not_count(one, other):
    assert normalised(ast.parse(one)) == normalised(ast.parse(other))
    assert print_of(in_function(one)) == print_of(in_function(other))


@pytest.mark.parametrize(("one", "other"), OTHER_CODE)
def test_any_other_change_counts(one, other):
    assert code_digest(normalised(ast.parse(one))) != code_digest(normalised(ast.parse(other)))


@pytest.mark.parametrize(("one", "other"), [pair for pair in OTHER_CODE if "global" not in pair[0]])
def test_any_other_change_of_a_function_counts(one, other):
    assert print_of(in_function(one)) != print_of(in_function(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def x(a=1): return a", "def x(a=2): return a"),
        ("def x(*, a=1): return a", "def x(*, a=2): return a"),
        ("def x(a): return a", "def x(*a): return a"),
        ("def x(a, b): return a", "def x(a, /, b): return a"),
        ("def x(a): return lambda: a + 1", "def x(a): return lambda: a + 2"),
        ("def x(): return [i + 1 for i in y]", "def x(): return [i + 2 for i in y]"),
        ("def x(): return 1 in {1, 2}", "def x(): return 1 in {1, 3}"),
        ("def x(): return (1, (2, 0.5))", "def x(): return (1, (2, 0.25))"),
        ("def x(): return 0.0", "def x(): return -0.0"),
        ("def x():\n try: f()\n except ValueError: g()", "def x():\n try: f()\n except KeyError: g()"),
        ("def x(): yield 1", "async def x(): yield 1"),
        ("def m(k): return lambda: k\nx = m(1)", "def m(k): return lambda: k\nx = m(2)"),
        ("def m(k): return lambda: k\nx = m([1])", "def m(k): return lambda: k\nx = m([2])"),
        ("x = lambda: len", "x = lambda: max"),
    ],
)
def test_what_a_function_does_is_its_fingerprint(one, other):
    assert print_of(one) != print_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def x(a): return a", "\n\n# moved\ndef x(a):\n    # said\n    return a"),
        ("def x(a): return 'k'", 'def x(a): return "k"'),
        ("def x(a: int) -> int: return a", "def x(a: int) -> int:\n    return (a)"),
    ],
)
def test_where_and_how_a_function_is_written_does_not_count(one, other):
    assert print_of(one) == print_of(other)


CLASS = """
class Base:
    k = 1
class x(Base):
    rate = 0.1
    def go(self, a): return a + 1
    @property
    def p(self): return 1
    @staticmethod
    def s(): return 1
    @classmethod
    def c(cls): return 1
    class Inner:
        n = 1
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rate = 0.1", "rate = 0.2"),
        ("a + 1", "a + 2"),
        ("def p(self): return 1", "def p(self): return 2"),
        ("def s(): return 1", "def s(): return 2"),
        ("def c(cls): return 1", "def c(cls): return 2"),
        ("n = 1", "n = 2"),
        ("k = 1", "k = 2"),
        ("class x(Base)", "class x"),
        ("def go", "def went"),
    ],
)
def test_every_part_of_a_class_counts(old, new):
    assert print_of(CLASS) != print_of(CLASS.replace(old, new))


def test_a_class_defined_again_by_the_same_text_is_equal():
    assert print_of(CLASS) == print_of(CLASS.replace("rate = 0.1", "rate = 0.1  # slow"))


def test_using_a_class_does_not_change_its_fingerprint():
    """Python and pickle put things of their own into a class when it is first used."""
    import copy

    ns = notebook(CLASS + "import abc\nclass A(abc.ABC):\n    pass\n")
    before = [fingerprint(ns[name]).digest for name in ("x", "A")]
    copy.copy(ns["x"]())
    isinstance(1, ns["A"])
    assert [fingerprint(ns[name]).digest for name in ("x", "A")] == before


def test_the_global_names_that_code_touches_are_told():
    code = """
def f(a):
    global count
    count += step * a
    def inner():
        return deep
    return [late for _ in range(3)]
"""
    reads, writes = reads_and_writes(notebook(code)["f"].__code__)
    assert {"count", "step", "deep", "late", "range"} <= reads
    assert writes == {"count"}
    assert "a" not in reads


def test_a_digest_of_code_does_not_depend_on_name_file_or_line():
    codes = [compile(f"{blank}def f(): return 1", name, "exec") for blank, name in (("", "a"), ("\n\n", "b"))]
    functions = [next(const for const in code.co_consts if hasattr(const, "co_code")) for code in codes]
    assert function_digest(functions[0]) == function_digest(functions[1])


# ------------------------------------------------------------------ values

BASE = """
import numpy as np, pandas as pd, torch, dataclasses, collections, random, enum, datetime, decimal
@dataclasses.dataclass
class C:
    lr: float = 0.1
    deep: dict = None
"""
CHANGES = [
    ("x = 0.1", "x = 0.1000000001"),
    ("x = 1", "x = 1.0"),
    ("x = 1", "x = True"),
    ("x = 0.0", "x = -0.0"),
    ("x = 'a'", "x = b'a'"),
    ("x = None", "x = 'None'"),
    ("x = [1, 2]", "x = [2, 1]"),
    ("x = [1, 2]", "x = (1, 2)"),
    ("x = [[1], 2]", "x = [[1, 2]]"),
    ("x = ['a', 'b']", "x = ['ab']"),
    ("x = {'a': [1, {'b': 2}]}", "x = {'a': [1, {'b': 3}]}"),
    ("x = {'a': 1}", "x = {'b': 1}"),
    ("x = {1: 2}", "x = {2: 1}"),
    ("x = {1, 2}", "x = {1, 3}"),
    ("x = {1, 2}", "x = frozenset({1, 2})"),
    ("x = range(3)", "x = range(4)"),
    ("x = slice(1)", "x = slice(2)"),
    ("x = np.arange(9)", "x = np.arange(9); x[8] = 0"),
    ("x = np.arange(9)", "x = np.arange(9).reshape(3, 3)"),
    ("x = np.arange(9)", "x = np.arange(9, dtype='i4')"),
    ("x = np.zeros(2)", "x = -np.zeros(2)"),
    ("x = np.array(['a', None], object)", "x = np.array(['b', None], object)"),
    ("x = np.zeros(2, [('a', 'f8')])", "x = np.zeros(2, [('b', 'f8')])"),
    ("x = np.float32(1)", "x = np.float64(1)"),
    ("x = np.datetime64('2026-01-01')", "x = np.datetime64('2026-01-02')"),
    ("x = np.ma.array([1, 2], mask=[0, 1])", "x = np.ma.array([1, 2], mask=[1, 0])"),
    ("x = pd.DataFrame({'a': [1, 2]})", "x = pd.DataFrame({'a': [1, 3]})"),
    ("x = pd.DataFrame({'a': [1, 2]})", "x = pd.DataFrame({'b': [1, 2]})"),
    ("x = pd.DataFrame({'a': [1, 2]})", "x = pd.DataFrame({'a': [1, 2]}, index=[1, 2])"),
    ("x = pd.DataFrame({'a': [1, 2]})", "x = pd.DataFrame({'a': [1.0, 2.0]})"),
    ("x = pd.DataFrame({'a': ['u', 'v']})", "x = pd.DataFrame({'a': ['u', 'w']})"),
    ("x = pd.Series([1], name='a')", "x = pd.Series([1], name='b')"),
    ("x = pd.Categorical(['a', 'b'])", "x = pd.Categorical(['a', 'b'], ordered=True)"),
    ("x = pd.Series(pd.Categorical(['a', 'b']))", "x = pd.Series(pd.Categorical(['a', 'b'], categories=['b', 'a']))"),
    ("x = pd.Series([1, 2], index=['a', 'b'])", "x = pd.Series([1, 2], index=['a', 'c'])"),
    ("x = pd.Timestamp('2026-01-01')", "x = pd.Timestamp('2026-01-02')"),
    ("x = torch.ones(3)", "x = torch.zeros(3)"),
    ("x = torch.ones(3)", "x = torch.ones(3, dtype=torch.float64)"),
    ("x = torch.ones(3)", "x = torch.ones(3, requires_grad=True)"),
    ("x = torch.ones(3).to(torch.bfloat16)", "x = torch.zeros(3).to(torch.bfloat16)"),
    (
        "x = torch.nn.Linear(2, 2, bias=False); torch.nn.init.ones_(x.weight)",
        "x = torch.nn.Linear(2, 2, bias=False); torch.nn.init.zeros_(x.weight)",
    ),
    ("x = torch.nn.ReLU()", "x = torch.nn.GELU()"),
    ("x = C()", "x = C(0.2)"),
    ("x = C(deep={'a': C()})", "x = C(deep={'a': C(0.2)})"),
    ("x = collections.OrderedDict(a=1)", "x = collections.OrderedDict(a=2)"),
    ("x = collections.defaultdict(int, a=1)", "x = collections.defaultdict(list, a=1)"),
    ("x = collections.deque([1])", "x = collections.deque([1], maxlen=2)"),
    ("x = collections.Counter('ab')", "x = collections.Counter('abb')"),
    ("x = datetime.date(2026, 1, 1)", "x = datetime.date(2026, 1, 2)"),
    ("x = datetime.timedelta(1)", "x = datetime.timedelta(2)"),
    ("x = decimal.Decimal('1.0')", "x = decimal.Decimal('1.00')"),
    ("x = random.Random(1)", "x = random.Random(2)"),
    ("x = np.random.default_rng(1)", "x = np.random.default_rng(2)"),
    ("x = np.random.RandomState(1)", "x = np.random.RandomState(2)"),
    ("x = np.random.SeedSequence(1)", "x = np.random.SeedSequence(2)"),
    ("class D(dict): pass\nx = D(a=1)", "class D(dict): pass\nx = D(a=2)"),
    ("class L(list): pass\nx = L([1])", "class L(list): pass\nx = L([2])"),
    ("class S:\n __slots__='a'\nx = S(); x.a = 1", "class S:\n __slots__='a'\nx = S(); x.a = 2"),
    ("class E(enum.Enum):\n A=1; B=2\nx = E.A", "class E(enum.Enum):\n A=1; B=2\nx = E.B"),
    ("import functools\nx = functools.partial(max, 1)", "import functools\nx = functools.partial(max, 2)"),
    (
        "class M:\n def __init__(s, n): s.n = n\n def go(s): pass\nx = M(1).go",
        "class M:\n def __init__(s, n): s.n = n\n def go(s): pass\nx = M(2).go",
    ),
    ("from pathlib import Path; x = Path('a')", "from pathlib import Path; x = Path('b')"),
    ("import re; x = re.compile('a')", "import re; x = re.compile('b')"),
    ("x = memoryview(b'a').tobytes()", "x = memoryview(b'b').tobytes()"),
    ("x = [1]; x.append(x)", "x = [2]; x.append(x)"),
    ("a = [1]; x = [[a], a]", "a = [1]; x = [[a], [a]]"),
]


@pytest.mark.parametrize(("one", "other"), CHANGES)
def test_a_change_of_a_value_changes_its_fingerprint(one, other):
    assert print_of(BASE + one) != print_of(BASE + other)


@pytest.mark.parametrize("code", dict.fromkeys(code for pair in CHANGES for code in pair))
def test_the_same_value_made_twice_is_equal(code):
    """Fingerprints see content: neither identity nor history."""
    one, other = notebook(BASE + code)["x"], notebook(BASE + code)["x"]
    assert fingerprint(one).digest == fingerprint(other).digest
    assert fingerprint(one).digest == fingerprint(one).digest


def test_the_history_of_a_value_does_not_count():
    dict_one = {"a": 1, "b": 2}
    dict_two = {"c": 0, "b": 2, "a": 1}
    del dict_two["c"]
    set_one, set_two = set(range(50)), set(reversed(range(1000)))
    set_two &= set_one
    base = np.arange(20)
    text = "".join(["lear", "ning"])  # not interned
    for one, other in (
        (dict_one, dict_two),
        (set_one, set_two),
        (base[::2], base[::2].copy()),
        (np.asfortranarray(base.reshape(4, 5)), base.reshape(4, 5)),
        (["learning", "learning"], [text, "learning"]),
        ([0.1, 0.1], [0.1, float("0.1")]),
    ):
        assert fingerprint(one).digest == fingerprint(other).digest


EVERYTHING = (
    BASE
    + "values = {}\n"
    + "\n".join(
        f"try:\n    exec({code!r})\n    values[{place}] = fingerprint(x).digest\nexcept ImportError: pass"
        for place, code in enumerate(dict.fromkeys(code for pair in CHANGES for code in pair))
    )
)


def test_a_fingerprint_is_equal_in_every_process():
    """Real processes under other hash seeds: nothing is compared by an address or by the order of a set."""
    code = (
        "import json\nfrom nbresume._identity import fingerprint\n"
        + EVERYTHING
        + (
            "\nvalues['set'] = fingerprint({str(n) for n in range(99)}).digest"
            "\nvalues['f'] = fingerprint(lambda x: x in {'a', 'b', 'c', 'd'}).digest"
            "\nvalues['object'] = fingerprint(object()).digest"
            "\nprint(json.dumps(values))"
        )
    )
    found = [json.loads(script(code, seed=seed)) for seed in ("0", "1", "12345")]
    assert len(found[0]) > 100
    assert found[0] == found[1] == found[2]


def test_what_cannot_be_looked_into_counts_by_its_type_and_is_named():
    import threading

    found = fingerprint({"a": threading.Lock(), "b": (n for n in [1])})
    assert found.holes == ("_thread.lock", "builtins.generator")
    assert found.digest == fingerprint({"a": threading.Lock(), "b": (n for n in [2])}).digest


def test_fingerprinting_changes_nothing_and_calls_nothing_of_the_users():
    calls = []

    class Loud:
        def __eq__(self, other):
            calls.append("eq")
            return True

        __hash__ = object.__hash__

        def __len__(self):
            calls.append("len")
            return 1

        def __iter__(self):
            calls.append("iter")
            return iter(())

        def __repr__(self):
            calls.append("repr")
            return "Loud"

    fingerprint([Loud(), {"a": Loud()}])
    assert calls == []
    moving = iter([1, 2, 3])
    fingerprint(moving)
    assert next(moving) == 1
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    fingerprint(rng)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    "value", [object(), lambda: 1, [object()] * 3, {"a": object()}, type("T", (), {})(), sys.modules["os"]]
)
def test_no_text_shows_an_address(value):
    assert "0x" not in fingerprint(value).text
    assert len(fingerprint(value).text) <= 80


def test_a_short_text_shows_the_value_itself():
    assert fingerprint(0.1).text == "0.1"
    assert fingerprint("adam").text == "'adam'"
    assert fingerprint({"lr": 0.1}).text == "{'lr': 0.1}"
    assert fingerprint(np.zeros((3, 4))).text == "float64 array (3, 4)"
    assert fingerprint(np.float64(0.5)).text in ("np.float64(0.5)", "0.5")
    assert len(fingerprint("x" * 1000).text) <= 60


def test_a_schema_takes_fresh_weights_for_equal_and_another_shape_for_different():
    def schema(value):
        return fingerprint(value, schema_only=True).digest

    assert schema({"w": np.zeros(3)}) == schema({"w": np.ones(3)})
    assert schema(np.zeros(3)) != schema(np.zeros(4))
    assert schema(np.zeros(3)) != schema(np.zeros(3, "f4"))
    assert schema({"w": np.zeros(3)}) != schema({"v": np.zeros(3)})
    assert schema({"lr": 0.1}) != schema({"lr": 0.2})
    assert schema(np.random.default_rng(1)) == schema(np.random.default_rng(2))


def test_a_very_deep_value_is_a_hole_and_no_crash():
    value: list = []
    for _ in range(5000):
        value = [value]
    assert fingerprint(value).digest


# ------------------------------------------------------------------ local modules


def test_a_module_beside_the_notebook_is_local_and_an_installed_one_is_not(tmp_path, monkeypatch):
    (tmp_path / "beside_nb.py").write_text("RATE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("beside_nb")
    assert is_local_module(module)
    for name in ("json", "numpy", "numpy.random", "nbresume", "nbresume._fs", "sys", "torch", "pytest"):
        assert not is_local_module(importlib.import_module(name)), name
    del sys.modules["beside_nb"]


# ------------------------------------------------------------------ the difference, readably


def differences(old: dict, new: dict) -> tuple[str, ...]:
    return Identity(**old).differences(Identity(**new))


def test_equal_identities_have_no_difference():
    identity = Identity({"the cell": Part("1", "a")}, {"lr": Part("2", "0.1")}, {"python": Part("3.11", "3.11")})
    assert identity.differences(identity) == ()
    assert identity.differences(Identity.from_json(json.loads(json.dumps(identity.to_json())))) == ()


@pytest.mark.parametrize(
    ("part", "old", "new", "line"),
    [
        ("config", {"lr": Part("1", "0.1")}, {"lr": Part("2", "0.01")}, "lr: 0.1 -> 0.01"),
        (
            "config",
            {"w": Part("1", "array (3,)")},
            {"w": Part("2", "array (3,)")},
            "w: array (3,), content differs",
        ),
        ("config", {}, {"k": Part("1", "1")}, "k: is read now and was not"),
        ("config", {"k": Part("1", "1")}, {}, "k: 1 -> it is not there (run the cells above first?)"),
        ("environment", {"python": Part("3.11", "3.11")}, {"python": Part("3.12", "3.12")}, "python: 3.11 -> 3.12"),
        (
            "code",
            {"f()": Part("1", "a = 1\nb = 2")},
            {"f()": Part("2", "a = 1\nb = 3")},
            "f(): line 2 changed: 'b = 2' -> 'b = 3'",
        ),
        ("code", {"f()": Part("1", "a")}, {"f()": Part("2", "a\nb")}, "f(): line 2 added: 'b'"),
        ("code", {"f()": Part("1", "a\nb")}, {"f()": Part("2", "a")}, "f(): line 2 removed: 'b'"),
        ("code", {"module m": Part("1")}, {"module m": Part("2")}, "module m: its code changed"),
        ("code", {"f()": Part("1", "a")}, {"f()": Part("2", "a")}, "f(): what it reaches changed"),
        ("code", {}, {"f()": Part("1", "a")}, "f(): is used now and was not"),
        ("code", {"f()": Part("1", "a")}, {}, "f(): was used and is not now"),
    ],
)
def test_a_difference_is_one_readable_line(part, old, new, line):
    assert differences({part: old}, {part: new}) == (line,)


BIG = "np.arange(10_000)"
READABLE = {
    "nested": ("{'optim': {'lr': 0.1}, 'n': [1, {'a': 2}]}", "{'optim': {'lr': 0.01}, 'n': [1, {'a': 2}]}", ("x['optim']['lr']: 0.1 -> 0.01",)),
    "a key that came and one that went": ("{'a': 1, 'b': 2}", "{'b': 2, 'c': 3}", ("x['a']: 1 is gone", "x['c']: 3 is new")),
    "shapes": ("np.zeros((10, 3))", "np.zeros((12, 3))", ("x: shape (10, 3) -> (12, 3)",)),
    "types of arrays": ("np.zeros(3)", "np.zeros(3, 'f4')", ("x: float64 array (3,) -> float32 array (3,)",)),
    "elements": (BIG, f"np.where(np.isin({BIG}, [17, 40, 99]), -1, {BIG})", ("x: 3 of 10,000 elements differ, first at [17]",)),
    "an element of a list": ("list(range(500))", "[*range(499), -1]", ("x: 1 of 500 elements differ, first at [499]",)),
    "a block of a large array": ("np.zeros(10**6)", "np.eye(1, 10**6, 5000)[0]", ("x: content differs, first in [5000:6000]",)),
    "lengths": ("list(range(100))", "list(range(120))", ("x: 100 items -> 120 items",)),
    "a field": ("C(lr=0.1)", "C(lr=0.01)", ("x.lr: 0.1 -> 0.01",)),
    "a field deep inside": ("C(deep={'a': C(0.1)})", "C(deep={'a': C(0.2)})", ("x.deep['a'].lr: 0.1 -> 0.2",)),
    "a column": ("pd.DataFrame({'a': [1, 2], 'b': ['u', 'v']})", "pd.DataFrame({'a': [1, 3], 'b': ['u', 'v']})", ("x['a']: Series (2,), content differs",)),
    "rows": ("pd.DataFrame({'a': [1, 2]})", "pd.DataFrame({'a': [1, 2, 3]})", ("x shape: (2, 1) -> (3, 1)", "x.index: shape (2,) -> (3,)", "x['a']: shape (2,) -> (3,)")),
    "the numbers that a set's order gave": ("dict(zip('abc', [0, 1, 2]))", "dict(zip('abc', [2, 0, 1]))", (f"x: {OTHER_ORDER}",)),
    "a large one": ("{str(k): k for k in range(900)}", "{str(k): 899 - k for k in range(900)}", (f"x: {OTHER_ORDER}",)),
    "types": ("1", "1.0", ("x: 1 -> 1.0",)),
    "a tensor": ("torch.zeros(3)", "torch.ones(3)", ("x: Tensor (3,), content differs",)),
}  # fmt: skip


@pytest.mark.parametrize("name", READABLE)
def test_a_difference_of_values_names_the_part_that_differs(name):
    """As the journal would keep it: through JSON and back."""
    one, other, lines = READABLE[name]
    parts = []
    for code in (one, other):
        found = fingerprint(notebook(f"{BASE}x = {code}")["x"], in_detail=True)
        parts.append(Identity(config={"x": Part(found.digest, found.text, found.details)}))
    old = Identity.from_json(json.loads(json.dumps(parts[0].to_json())))
    assert old.differences(parts[1]) == lines
    assert len(json.dumps(old.to_json())) < 60_000


def test_several_changed_lines_are_counted_and_the_first_is_shown():
    old, new = Part("1", "def f():\n    a\n    b\n    c"), Part("2", "def f():\n    a\n    x\n    y")
    assert differences({"code": {"f()": old}}, {"code": {"f()": new}}) == (
        "f(): line 3 changed: 'b' -> 'x' (and 1 more)",
    )


def test_a_changed_function_of_a_module_is_named():
    old = Part("1", details={"function f": ["a"], "its top level": ["b"], "class C": ["c"]})
    new = Part("2", details={"function f": ["x"], "its top level": ["b"], "function g": ["d"]})
    assert differences({"code": {"module helpers": old}}, {"code": {"module helpers": new}}) == (
        "module helpers: function f changed, function g is new, class C is gone",
    )


def test_an_input_that_the_run_itself_left_so_is_no_difference():
    """The same kernel runs the cell again: the loop has changed what it reads."""
    launch, left, by_hand = Part("1", "[]"), Part("2", "list of 7"), Part("3", "list of 9")
    old, seen = Identity(config={"history": launch}), Identity(config={"history": left})
    assert old.differences(seen, left=seen) == ()
    assert old.differences(old, left=seen) == ()
    assert old.differences(Identity(config={"history": by_hand}), left=seen)


def test_where_the_tests_stand_is_no_part_of_any_fingerprint(tmp_path):
    code = "from nbresume._identity import fingerprint\ndef f(a): return a\nprint(fingerprint(f).digest)"
    assert script(code, cwd=tmp_path) == script(code, cwd=Path(__file__).parent)
