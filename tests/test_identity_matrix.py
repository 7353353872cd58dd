"""The identity matrix, both directions: every row in two real processes, of another hash seed and in another folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from _support import script

from nbresume._identity import Identity

LOOP = "for i in range(3):\n    out = {use}\n"

IDENTIFY = """
import ast, json, sys, types
from pathlib import Path
from nbresume._capture import Definitions
from nbresume._session._functions import finder
from nbresume._session._places import Places
from nbresume._session._reach import identify, reach
from nbresume._transform import CellOptions, rewrite_cell
sys.path.insert(0, ".")
found = {}
for name, before, cell, declared in json.loads(Path(sys.argv[1]).read_text()):
    for module in [m for m in sys.modules if m.startswith("beside")]:
        del sys.modules[module]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    namespace = vars(main)
    exec(compile(before, "<before>", "exec"), namespace)
    tree = ast.parse(cell)
    _, plan = rewrite_cell(tree, CellOptions("x", declared=tuple(declared)), finder(tree, namespace))
    places = Places(namespace)
    found[name] = identify(plan, reach(plan, places), places).to_json()
print(json.dumps(found))
"""


def use(name: str) -> str:
    return LOOP.format(use=name)


# what: (before, cell) and (before, cell)
EQUAL = {
    "comments and blank lines": (("a = 1", use("a")), ("a = 1", "# all\n\n" + use("a").replace("\n    ", "  # each\n\n    "))),
    "quotes": (("a = 1", use("{'x': a}")), ("a = 1", use('{"x": a}'))),
    "line breaks and brackets": (("a = 1", use("(a + 1)")), ("a = 1", use("a + \\\n        1"))),
    "a comment in a function": (("def f(x): return x", use("f(1)")), ("def f(x):\n    # x\n    return (x)", use("f(1)"))),
    "a docstring's quotes": (("def f(x):\n    'x'\n    return x", use("f(1)")), ('def f(x):\n    """x"""\n    return x', use("f(1)"))),
    "a helper that nothing reaches": (("def f(x): return x\ndef g(x): return 1", use("f(1)")), ("def f(x): return x\ndef g(x): return 2", use("f(1)"))),
    "an input that nothing reads": (("a, b = 1, 2", use("a")), ("a, b = 1, 3", use("a"))),
    "a set of texts": (("a = {str(n) for n in range(50)}", use("len(a)")),) * 2,
    "a set in a function": (("def f(x): return x in {'a', 'b', 'c', 'd'}", use("f(1)")),) * 2,
    "the history of a dict": (("a = {'x': 1, 'y': 2}", use("a")), ("a = {'y': 2, 'z': 0}\na['x'] = 1\ndel a['z']", use("a"))),
    "interned texts": (("a = ['learning', 'learning']", use("a")), ("a = [''.join(['lear', 'ning']), 'learning']", use("a"))),
    "a class defined again": (("class C:\n    n = 1\n    def f(self): return 1\nc = C()", use("c.f()")), ("class C: pass\nclass C:\n    n = 1  # one\n    def f(self): return 1\nc = C()\nc.f()", use("c.f()"))),
    "an object without attributes": (("a = object()", use("a")),) * 2,
    "fresh weights of a declared name": (("import numpy as np\nw = np.zeros(3)", "for i in range(3):\n    w += 1\n"), ("import numpy as np\nw = np.ones(3)", "for i in range(3):\n    w += 1\n")),
    "a view and its copy": (("import numpy as np\na = np.arange(9)[::2]", use("a")), ("import numpy as np\na = np.arange(9)[::2].copy()", use("a"))),
    "the order of an array's memory": (("import numpy as np\na = np.arange(6).reshape(2, 3)", use("a")), ("import numpy as np\na = np.asfortranarray(np.arange(6).reshape(2, 3))", use("a"))),
    "an open file": (("a = open('beside.py')", use("a")),) * 2,
    "a lock": (("import threading; a = threading.Lock()", use("a")),) * 2,
    "a time that was read from a clock": (("import time; a = time.time()", use("a")),) * 2,
    "a module beside the notebook": (("import beside", use("beside.f(1)")),) * 2,
    "a module beside, its unused neighbour": (("import beside_a", use("beside_a.f(1)")),) * 2,
}  # fmt: skip

FUNCTION = "import functools\nk = 1\ndef f(x, y=1):\n    z = x + 1\n    return [g(z, c) for c in (1, 2)]\ndef g(a, b): return h(a)\ndef h(a): return lambda: a + k\n"
CLASS = (
    "class Base:\n    def up(self): return 1\nclass C(Base):\n    rate = 0.1\n    __slots__ = ()\n    def f(self, x=1): return [x + 1]\n"
    "    @property\n    def p(self): return 1\n    @staticmethod\n    def s(): return 1\n    @classmethod\n    def c(cls): return 1\nc = C()\n"
)
PANDAS = "import numpy as np, pandas as pd\n"
TORCH = "import torch\n"
TYPES = "import collections, datetime, decimal, enum, dataclasses, functools, fractions, pathlib, types, uuid\nimport numpy as np\n"

# what: (before, another before) for a cell that reads ``a``
INPUTS = {
    "a number": ("a = 0.1", "a = 0.01"),
    "the last bit of a number": ("a = 0.1", "a = 0.1 + 1e-17 * 2"),
    "1 and 1.0": ("a = 1", "a = 1.0"),
    "1 and True": ("a = 1", "a = True"),
    "[1] and [True]": ("a = [1]", "a = [True]"),
    "0.0 and -0.0": ("a = 0.0", "a = -0.0"),
    "-0.0 in a list": ("a = [0.0]", "a = [-0.0]"),
    "a large number": ("a = 10 ** 40", "a = 10 ** 40 + 1"),
    "complex": ("a = 1 + 2j", "a = 1 - 2j"),
    "text": ("a = 'x'", "a = 'y'"),
    "text and bytes": ("a = 'x'", "a = b'x'"),
    "a long text": ("a = 'x' * 9999 + 'y'", "a = 'x' * 9999 + 'z'"),
    "bytes": ("a = b'x'", "a = b'y'"),
    "bytearray": ("a = bytearray(b'x')", "a = bytearray(b'y')"),
    "None and False": ("a = None", "a = False"),
    "a nested container": ("a = {'b': [1, {'c': (2, {3})}]}", "a = {'b': [1, {'c': (2, {4})}]}"),
    "the order of a list": ("a = [1, 2]", "a = [2, 1]"),
    "list and tuple": ("a = [1]", "a = (1,)"),
    "a key": ("a = {'x': 1}", "a = {'y': 1}"),
    "a key's type": ("a = {1: 1}", "a = {'1': 1}"),
    "a set": ("a = {1}", "a = {2}"),
    "frozenset": ("a = frozenset('x')", "a = frozenset('y')"),
    "range": ("a = range(3)", "a = range(4)"),
    "an empty range's step": ("a = range(0, 9, 2)", "a = range(0, 9, 3)"),
    "a number of a class of one's own": ("class I(int): pass\na = I(5)", "class I(int): pass\na = I(6)"),
    "a float of a class of one's own": ("class I(float): pass\na = I(5)", "class I(float): pass\na = I(6)"),
    "a text of a class of one's own": ("class S(str): pass\na = S('x')", "class S(str): pass\na = S('y')"),
    "bytes of a class of one's own": ("class S(bytes): pass\na = S(b'x')", "class S(bytes): pass\na = S(b'y')"),
    "a frozenset of a class of one's own": ("class S(frozenset): pass\na = S('x')", "class S(frozenset): pass\na = S('y')"),
    "a list of a class of one's own": ("class L(list): pass\na = L([1])", "class L(list): pass\na = L([2])"),
    "a tuple of a class of one's own": ("class L(tuple): pass\na = L([1])", "class L(tuple): pass\na = L([2])"),
    "a dict of a class of one's own": ("class D(dict): pass\na = D(x=1)", "class D(dict): pass\na = D(x=2)"),
    "an enum": ("class E(enum.Enum):\n    A = 1; B = 2\na = E.A", "class E(enum.Enum):\n    A = 1; B = 2\na = E.B"),
    "an enum's value": ("class E(enum.Enum):\n    A = 1\na = E.A", "class E(enum.Enum):\n    A = 2\na = E.A"),
    "an int enum": ("class E(enum.IntEnum):\n    A = 1; B = 2\na = E.A", "class E(enum.IntEnum):\n    A = 1; B = 2\na = E.B"),
    "an enum and its number": ("class E(enum.IntEnum):\n    A = 1\na = E.A", "a = 1"),
    "a flag": ("class E(enum.Flag):\n    A = 1; B = 2\na = E.A", "class E(enum.Flag):\n    A = 1; B = 2\na = E.A | E.B"),
    "numpy and Python numbers": ("a = np.float64(1)", "a = 1.0"),
    "numpy's own numbers": ("a = np.int32(1)", "a = np.int64(1)"),
    "an array": ("a = np.arange(9)", "a = np.arange(9); a[8] = 0"),
    "an array's type": ("a = np.zeros(3)", "a = np.zeros(3, 'f4')"),
    "an array's byte order": ("a = np.zeros(3, '<f8')", "a = np.zeros(3, '>f8')"),
    "an array's shape": ("a = np.zeros(4)", "a = np.zeros((2, 2))"),
    "-0.0 in an array": ("a = np.zeros(3)", "a = -np.zeros(3)"),
    "the payload of a nan in an array": ("a = np.array([0x7ff8000000000000], 'u8').view('f8')", "a = np.array([0x7ff8000000000001], 'u8').view('f8')"),
    "an object array": ("a = np.array([1, 'x'], object)", "a = np.array([1, 'y'], object)"),
    "a structured array": ("a = np.zeros(2, [('x', 'i4'), ('y', 'i4')])", "a = np.zeros(2, [('x', 'i4'), ('z', 'i4')])"),
    "a datetime array": ("a = np.array(['2026-01-01'], 'M8[D]')", "a = np.array(['2026-01-02'], 'M8[D]')"),
    "a datetime array's unit": ("a = np.array([1], 'M8[D]')", "a = np.array([1], 'M8[s]')"),
    "a text array": ("a = np.array(['x'])", "a = np.array(['y'])"),
    "a masked array": ("a = np.ma.array([1, 2], mask=[0, 1])", "a = np.ma.array([1, 2], mask=[0, 0])"),
    "a large array's last byte": ("a = np.zeros(10**6, 'u1')", "a = np.zeros(10**6, 'u1'); a[-1] = 1"),
    "a generator": ("a = np.random.default_rng(1)", "a = np.random.default_rng(2)"),
    "a frame's cell": (PANDAS + "a = pd.DataFrame({'x': [1.0, 2.0], 'y': ['u', 'v']})", PANDAS + "a = pd.DataFrame({'x': [1.0, 2.0], 'y': ['u', 'w']})"),
    "a frame's column": (PANDAS + "a = pd.DataFrame({'x': [1]})", PANDAS + "a = pd.DataFrame({'y': [1]})"),
    "the order of columns": (PANDAS + "a = pd.DataFrame({'x': [1], 'y': [1]})", PANDAS + "a = pd.DataFrame({'y': [1], 'x': [1]})"),
    "a frame's index": (PANDAS + "a = pd.DataFrame({'x': [1]})", PANDAS + "a = pd.DataFrame({'x': [1]}, index=['r'])"),
    "a frame's type": (PANDAS + "a = pd.DataFrame({'x': [1]})", PANDAS + "a = pd.DataFrame({'x': [1]}, dtype='i4')"),
    "a missing value": (PANDAS + "a = pd.DataFrame({'x': [1.0]})", PANDAS + "a = pd.DataFrame({'x': [None]}, dtype=float)"),
    "a series": (PANDAS + "a = pd.Series([1, 2])", PANDAS + "a = pd.Series([1, 3])"),
    "a series' name": (PANDAS + "a = pd.Series([1], name='x')", PANDAS + "a = pd.Series([1], name='y')"),
    "categories": (PANDAS + "a = pd.Categorical(['x'])", PANDAS + "a = pd.Categorical(['x'], categories=['x', 'y'])"),
    "a multi-index": (PANDAS + "a = pd.MultiIndex.from_tuples([(1, 2)])", PANDAS + "a = pd.MultiIndex.from_tuples([(1, 3)])"),
    "a time zone": (PANDAS + "a = pd.Timestamp('2026-01-01', tz='UTC')", PANDAS + "a = pd.Timestamp('2026-01-01', tz='Europe/Rome')"),
    "a nullable series": (PANDAS + "a = pd.array([1, None], dtype='Int64')", PANDAS + "a = pd.array([1, 2], dtype='Int64')"),
    "an interval": (PANDAS + "a = pd.Interval(0, 1)", PANDAS + "a = pd.Interval(0, 2)"),
    "a sparse matrix": ("import scipy.sparse as sp\na = sp.csr_matrix([[1, 0]])", "import scipy.sparse as sp\na = sp.csr_matrix([[0, 1]])"),
    "a sparse matrix' form": ("import scipy.sparse as sp\na = sp.csr_matrix([[1, 0]])", "import scipy.sparse as sp\na = sp.csc_matrix([[1, 0]])"),
    "a tensor": (TORCH + "a = torch.zeros(3)", TORCH + "a = torch.ones(3)"),
    "a tensor's type": (TORCH + "a = torch.zeros(3)", TORCH + "a = torch.zeros(3).to(torch.bfloat16)"),
    "a gradient": (TORCH + "a = torch.zeros(3)", TORCH + "a = torch.zeros(3, requires_grad=True)"),
    "a model's weights": (TORCH + "a = torch.nn.Linear(1, 1); torch.nn.init.ones_(a.weight); torch.nn.init.ones_(a.bias)", TORCH + "a = torch.nn.Linear(1, 1); torch.nn.init.ones_(a.weight); torch.nn.init.zeros_(a.bias)"),
    "a model's mode": (TORCH + "a = torch.nn.Dropout(0.5)", TORCH + "a = torch.nn.Dropout(0.5).eval()"),
    "a dataclass' field": ("@dataclasses.dataclass\nclass C:\n    x: int = 1\na = C()", "@dataclasses.dataclass\nclass C:\n    x: int = 1\na = C(2)"),
    "a dataclass' default": ("@dataclasses.dataclass\nclass C:\n    x: int = 1\n    y: int = 0\na = C(1)", "@dataclasses.dataclass\nclass C:\n    x: int = 1\n    y: int = 5\na = C(1)"),
    "a frozen dataclass with slots": ("@dataclasses.dataclass(frozen=True, slots=True)\nclass C:\n    x: int\na = C(1)", "@dataclasses.dataclass(frozen=True, slots=True)\nclass C:\n    x: int\na = C(2)"),
    "a named tuple": ("P = collections.namedtuple('P', 'x y')\na = P(1, 2)", "P = collections.namedtuple('P', 'x y')\na = P(1, 3)"),
    "slots": ("class C:\n    __slots__ = ('x',)\na = C(); a.x = 1", "class C:\n    __slots__ = ('x',)\na = C(); a.x = 2"),
    "inherited slots": ("class B:\n    __slots__ = ('x',)\nclass C(B):\n    __slots__ = ('y',)\na = C(); a.x = 1", "class B:\n    __slots__ = ('x',)\nclass C(B):\n    __slots__ = ('y',)\na = C(); a.x = 2"),
    "an attribute": ("class C: pass\na = C(); a.x = {'y': [1]}", "class C: pass\na = C(); a.x = {'y': [2]}"),
    "a namespace": ("a = types.SimpleNamespace(x=1)", "a = types.SimpleNamespace(x=2)"),
    "a mapping proxy": ("a = types.MappingProxyType({'x': 1})", "a = types.MappingProxyType({'x': 2})"),
    "a path": ("a = pathlib.Path('x')", "a = pathlib.Path('y')"),
    "a day": ("a = datetime.date(2026, 1, 1)", "a = datetime.date(2026, 1, 2)"),
    "a moment": ("a = datetime.datetime(2020, 1, 1)", "a = datetime.datetime(2020, 1, 1, 1)"),
    "a span": ("a = datetime.timedelta(1)", "a = datetime.timedelta(2)"),
    "a decimal's zeros": ("a = decimal.Decimal('1.0')", "a = decimal.Decimal('1.00')"),
    "a fraction": ("a = fractions.Fraction(1, 2)", "a = fractions.Fraction(1, 3)"),
    "a uuid": ("a = uuid.UUID(int=1)", "a = uuid.UUID(int=2)"),
    "an ordered dict": ("a = collections.OrderedDict(x=1)", "a = collections.OrderedDict(x=2)"),
    "a default": ("a = collections.defaultdict(int)", "a = collections.defaultdict(list)"),
    "a deque's length": ("a = collections.deque([1])", "a = collections.deque([1], 5)"),
    "a counter": ("a = collections.Counter('x')", "a = collections.Counter('xx')"),
    "a number of thousands of digits": ("a = 10 ** 9999", "a = 10 ** 9999 + 1"),
    "a number of thousands of digits in a list": ("a = [10 ** 9999]", "a = [10 ** 9999 + 1]"),
    "an alias of a library's function": ("from statistics import mean as a", "from statistics import median as a"),
    "an alias of a library": ("import json as a", "import pickle as a"),
    "a closure's value beside another": ("def make(n):\n    def f(x): return x + n\n    return f\na = make('x')", "def make(n):\n    def f(x): return x + n\n    return f\na = make('y')"),
    "a partial's argument": ("a = functools.partial(max, 1)", "a = functools.partial(max, 2)"),
    "a partial's function": ("def f(x): return 1\na = functools.partial(f, 1)", "def f(x): return 2\na = functools.partial(f, 1)"),
    "a cached function": ("@functools.lru_cache\ndef a(x): return 1", "@functools.lru_cache\ndef a(x): return 2"),
    "a lambda": ("a = lambda x: x + 1", "a = lambda x: x + 2"),
    "a lambda in a dict": ("a = {'f': lambda x: x + 1}", "a = {'f': lambda x: x + 2}"),
    "a function in a list": ("def f(x): return 1\na = [f]", "def f(x): return 2\na = [f]"),
    "what a function in a list calls": ("def g(): return 1\ndef f(x): return g()\na = [f]", "def g(): return 2\ndef f(x): return g()\na = [f]"),
    "a closure's value": ("def make(n):\n    return lambda x: x + n\na = make(1)", "def make(n):\n    return lambda x: x + n\na = make(2)"),
    "a bound method's object": ("class C:\n    def __init__(self, n): self.n = n\n    def f(self): return 1\na = C(1).f", "class C:\n    def __init__(self, n): self.n = n\n    def f(self): return 1\na = C(2).f"),
    "a decorator": ("def d(f): return f\n@d\ndef a(x): return 1", "def d(f): return lambda *w: 2 * f(*w)\n@d\ndef a(x): return 1"),
    "a pattern": ("import re; a = re.compile('x')", "import re; a = re.compile('x', re.I)"),
    "a builtin": ("a = max", "a = min"),
    "a type": ("a = int", "a = float"),
    "a slice": ("a = slice(1)", "a = slice(2)"),
    "a cell's own generator of texts": ("a = {w: i for i, w in enumerate(['x', 'y'])}", "a = {w: i for i, w in enumerate(['y', 'x'])}"),
}  # fmt: skip

# what: (text, another text) in FUNCTION or CLASS, which the cell reaches
CODE = {
    "a constant of a function": ("x + 1", "x + 2"),
    "a default": ("y=1", "y=2"),
    "a number in a nested tuple": ("(1, 2)", "(1, 3)"),
    "a called function's signature": ("def g(a, b): return h(a)", "def g(a, b=0): return h(a)"),
    "what is called": ("return h(a)", "return h(b)"),
    "a constant of a nested function": ("a + k", "a - k"),
    "a global that it reads": ("k = 1", "k = 2"),
    "an operator": ("z = x + 1", "z = x - 1"),
    "a statement more": ("    z = x", "    x += 0\n    z = x"),
    "a method": ("return [x + 1]", "return [x + 2]"),
    "a method's default": ("x=1)", "x=2)"),
    "a class attribute": ("rate = 0.1", "rate = 0.2"),
    "a property": ("def p(self): return 1", "def p(self): return 2"),
    "a static method": ("def s(): return 1", "def s(): return 2"),
    "a class method": ("def c(cls): return 1", "def c(cls): return 2"),
    "a base's method": ("def up(self): return 1", "def up(self): return 2"),
    "a base": ("class C(Base)", "class C"),
    "a method's name": ("def s()", "def t()"),
}
CELLS = {
    "a number": ("a = 0", use("i + 1"), use("i + 2")),
    "1 and True": ("a = 0", use("i + 1"), use("i + True")),
    "the target": ("a = 0", use("i"), use("j").replace("for i", "for j")),
    "the iterable": ("a = 0", use("i"), use("i").replace("3", "4")),
    "an order": ("a = 0", "x = 1\ny = 2\n" + use("i"), "y = 2\nx = 1\n" + use("i")),
    "an indentation": ("a = 0", use("i") + "    b = 1\n", use("i") + "b = 1\n"),
    "a condition": ("a = 0", use("i < 1"), use("i <= 1")),
    "a text's format": ("a = 0", use("f'{i}'"), use("f'{i:d}'")),
    "a definition in the cell": ("a = 0", "def f(x=1): return x\n" + use("f()"), "def f(x=2): return x\n" + use("f()")),
}
MODULES = {
    "a module's function": ("beside", "return x", "return -x"),
    "a module's number": ("beside", "RATE = 1", "RATE = 2"),
    "what a module imports": ("beside_a", "return x", "return -x"),
}
MODULE = "RATE = 1\ndef f(x):\n    return x\n"


def rows(side: int) -> list:
    found = [[f"equal: {name}", *pair[side], ["w"] if "declared" in name else []] for name, pair in EQUAL.items()]
    found += [[f"input: {name}", TYPES + pair[side], use("a"), []] for name, pair in INPUTS.items()]
    for name, pair in CODE.items():
        before = (FUNCTION + CLASS).replace(*pair) if side else FUNCTION + CLASS
        found.append([f"code: {name}", before, use("(f(1), c.f())"), []])
    found += [[f"cell: {name}", before, pair[side], []] for name, (before, *pair) in CELLS.items()]
    found += [
        [f"module: {name}", f"import {module}", use(f"{module}.f(1)"), []] for name, (module, *_) in MODULES.items()
    ]
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Every row, as two processes identify it."""
    sides = []
    for side in (0, 1):
        folder = tmp_path_factory.mktemp(f"side{side}")
        changed = {name: MODULE for name in ("beside", "beside_b")}
        changed |= {"beside_a": "from beside_b import f\n"}
        for name, text in changed.items():
            (folder / f"{name}.py").write_text(text + ("# the same\n" if side else ""))
        (folder / "rows.json").write_text(json.dumps(rows(side)))
        told = script(IDENTIFY, folder / "rows.json", cwd=folder, seed=str(side + 1))
        sides.append({name: Identity.from_json(one) for name, one in json.loads(told).items()})
    return sides


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_only_writing_or_history_is_the_same_run(found, name):
    """Another hash seed, another folder, another process."""
    one, other = (side[f"equal: {name}"] for side in found)
    assert one.differences(other) == ()


@pytest.mark.parametrize(
    "name", [*(f"input: {n}" for n in INPUTS), *(f"code: {n}" for n in CODE), *(f"cell: {n}" for n in CELLS)]
)
def test_everything_else_is_another_run(found, name):
    """With a line that says what differs."""
    one, other = (side[name] for side in found)
    lines = one.differences(other)
    assert lines
    assert all(": " in line and "0x" not in line for line in lines)


@pytest.mark.parametrize("name", MODULES)
def test_a_changed_local_module_is_another_run(found, name, tmp_path):
    """By its syntax tree, also where it is imported by another one; its comments don't count, as the fixture shows."""
    module, old, new = MODULES[name]
    for one in ("beside", "beside_b"):
        (tmp_path / f"{one}.py").write_text(MODULE.replace(old, new))
    (tmp_path / "beside_a.py").write_text("from beside_b import f\n")
    (tmp_path / "rows.json").write_text(json.dumps([["x", f"import {module}", use(f"{module}.f(1)"), []]]))
    told = json.loads(script(IDENTIFY, tmp_path / "rows.json", cwd=tmp_path))
    before = found[0][f"module: {name}"]
    assert before.differences(found[1][f"module: {name}"]) == ()
    (line, *_) = before.differences(Identity.from_json(told["x"]))
    assert line.startswith(("module beside: ", "module beside_b: ", "beside:RATE: "))


def test_the_minor_version_of_python_counts_and_stands_in_every_identity(found):
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert {one.environment["python"].text for side in found for one in side.values()} == {minor}
    assert Path(__file__).exists()
