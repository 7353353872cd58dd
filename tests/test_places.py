"""Every place in which a loop or a call can stand, and every form of a statement around it: killed midway, the same run.

``test_shapes`` kills at every boundary; here there is one kill a cell, in the middle, before and after its snapshot.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

# Loaded before the processes are forked, so that they don't each load it.
import numpy  # noqa: F401
import pytest
import torch.utils.data  # noqa: F401

from nbresume.testing import attempt, rehearse

pytestmark = pytest.mark.usefixtures("quick_disk")

IMPORTS = "import random, itertools, collections, contextlib, asyncio, numpy as np\n"
LOG = "log = []\n"

# name -> (cell, cells before it)
PLACES: dict[str, tuple[str, str]] = {
    "loop in try else": (
        "for a in range(2):\n    try:\n        x = a\n    except ValueError:\n        pass\n    else:\n        for i in range(3):\n            log.append((a, i, random.random()))\n",
        "",
    ),
    "loop in loop else": (
        "for a in range(2):\n    for j in range(2):\n        log.append(j)\n    else:\n        for i in range(3):\n            log.append((a, i, random.random()))\n",
        "",
    ),
    "loop in except and finally": (
        "for a in range(3):\n    try:\n        log.append(1 // a)\n    except ZeroDivisionError as e:\n        for i in range(2):\n            log.append((str(e), i, random.random()))\n    finally:\n        for i in range(2):\n            log.append(('f', i))\n",
        "",
    ),
    "calls in expressions": (
        "total = 0\nfor a in range(3):\n    log.append(f(a))\n    total += f(a)\n    log.append([f(b) for b in range(2)])\n",
        "def f(n):\n    s = 0\n    for i in range(n):\n        s += random.randrange(9)\n    return s\n",
    ),
    "await in the body": (
        "for i in range(3):\n    x = await later(i)\n    log.append((x, random.random()))\n",
        "async def later(i):\n    await asyncio.sleep(0)\n    return i * 2\n",
    ),
    "async with around a loop": (
        "async with gate():\n    for i in range(3):\n        x = await later(i)\n        log.append((x, random.random()))\n",
        "@contextlib.asynccontextmanager\nasync def gate():\n    yield\nasync def later(i):\n    await asyncio.sleep(0)\n    return i * 2\n",
    ),
    "match around loops": (
        "for k in range(3):\n    match k:\n        case 0:\n            for i in range(2): log.append(('zero', i, random.random()))\n        case x if x > 1:\n            while x: x -= 1; log.append(x)\n        case _:\n            log.append('other')\n",
        "",
    ),
    "with resources around nested loops": (
        "with open('a.txt', 'w') as f, open('b.txt', 'a') as g:\n    for i in range(2):\n        f.write(f'{i}\\n')\n        for j in range(2):\n            g.write(f'{i}{j}\\n')\n            log.append((i, j))\nlog.append(open('a.txt').read() + open('b.txt').read())\n",
        "",
    ),
    "while walrus": (
        "q = [3, 1, 2]\nwhile q and (x := q.pop()) is not None:\n    for j in range(x):\n        log.append((x, j))\n",
        "",
    ),
    "targets": (
        "class O: pass\no = O()\nd = {}\nfor o.a in range(2):\n    for d['k'] in range(2):\n        for i, *rest in [(1, 2, 3), (4,)]:\n            log.append((o.a, d['k'], i, rest))\n",
        "",
    ),
    "targets that shadow": (
        "for list in range(2):\n    for range in [3, 4]:\n        for print in 'ab':\n            log.append((list, range, print))\n",
        "",
    ),
    "names shadowed": (
        "list = [1, 2]\nlen = lambda x: 9\nfor id in list:\n    sum = id\n    log.append((sum, len(list)))\n",
        "",
    ),
    "del of the target": (
        "for i in range(3):\n    for j in range(2):\n        log.append((i, j))\n        del j\n    del i\n    log.append('i' in globals())\n",
        "",
    ),
    "name rebound in the body": (
        "xs = [1, 2, 3]\nfor x in xs:\n    xs = [x]\n    log.append(x)\n    for y in xs:\n        xs = xs + [y]\n        log.append(xs)\n",
        "",
    ),
    "return inside with and finally": (
        "a = f(2)\nb = f(9)\nlog.append((a, b))\n",
        "def f(n):\n    out = []\n    with contextlib.suppress(KeyError):\n        try:\n            for i in range(4):\n                out.append(i)\n                if i == n:\n                    return out\n        finally:\n            out.append('f')\n    return out\n",
    ),
    "break in with and try": (
        "for a in range(3):\n    with contextlib.nullcontext():\n        try:\n            for b in range(3):\n                if b == 1: break\n                log.append((a, b))\n            if a == 1: break\n        finally:\n            log.append('f')\n",
        "",
    ),
    "thrown through loops": (
        "try:\n    for a in range(3):\n        for b in range(3):\n            for c in range(2):\n                log.append((a, b, c))\n                if (a, b, c) == (1, 1, 0): raise KeyError('x')\nexcept KeyError as e:\n    log.append(repr(e))\nlog.append(random.random())\n",
        "",
    ),
    "reraise": (
        "for k in range(3):\n    try:\n        try:\n            for a in range(2):\n                log.append((k, a))\n                if k == 1: raise KeyError(a)\n        except KeyError:\n            log.append('seen')\n            raise\n    except KeyError as e:\n        log.append(e.args)\n        keep = e\nassert isinstance(keep, KeyError)\n",
        "",
    ),
    "thrown by a function": (
        "for k in range(3):\n    try:\n        f(k)\n    except Bad as e:\n        log.append(str(e))\n    f(0)\n",
        "class Bad(Exception): pass\ndef f(n):\n    for i in range(3):\n        log.append((n, i))\n        if n and i == n: raise Bad(n)\n",
    ),
    "assert": (
        "try:\n    for i in range(3):\n        log.append(i)\n        assert i < 2, 'big'\nexcept AssertionError as e:\n    log.append(str(e))\n",
        "",
    ),
    "global at top level": (
        "global log\nlog = []\nfor i in range(3):\n    global z\n    z = i\n    log.append(z)\n",
        "",
    ),
    "data nested 2,000 deep": (
        "log = []\nfor k in range(3):\n    deep = [deep, k]\n    log.append(deep[0][-1])\n",
        "deep = []\nfor _ in range(2000): deep = [deep]\n",
    ),
    "late binding": (
        "fs = []\nfor i in range(3):\n    fs.append(lambda: i)\n    def g(): return i * 2\n    fs.append(g)\n    log.append([h() for h in fs])\n",
        "",
    ),
    "exec and eval": ("for i in range(3):\n    exec('zz = i * 2')\n    log.append(eval('zz + i'))\n", ""),
    "star import": ("for i in range(3):\n    log.append((sqrt(i), random.random()))\n", "from math import *\n"),
    "star import in the cell": (
        "from math import *\nlog = []\nfor i in range(3):\n    log.append((sqrt(i), random.random()))\n",
        "",
    ),
    "annotation": ("x: int\nfor i in range(3):\n    y: 'list[int]'\n    z: int = i\n    log.append(z)\n", ""),
    "nonlocal statement call": (
        "for i in range(3):\n    x = c()\n    log.append(x)\n",
        "def mk():\n    n = 0\n    def c():\n        nonlocal n\n        for _ in range(2):\n            n += 1\n        return n\n    return c\nc = mk()\n",
    ),
    "f-strings": ("for i in range(3):\n    log.append(f\"{'a' + f'{i!r:>{3}}'} {i=}\")\n", ""),
    "decorated with a loop": (
        "for i in range(2):\n    x = f(3)\n    log.append(x)\n",
        "import functools\ndef deco(g):\n    @functools.wraps(g)\n    def w(*a):\n        log.append('w')\n        return g(*a)\n    return w\n@deco\ndef f(n):\n    s = 0\n    for i in range(n): s += random.randrange(5)\n    return s\n",
    ),
    "defaults that remember": (
        "for i in range(3):\n    x = f(i)\n    log.append(list(x))\n",
        "def f(n, acc=[]):\n    for k in range(2):\n        acc.append((n, k))\n    return acc\n",
    ),
    "property and static": (
        "o = K()\nfor i in range(3):\n    o.v = i\n    x = K.st(i)\n    log.append((o.v, x))\n",
        "class K:\n    n = 0\n    @property\n    def v(self): return self._v\n    @v.setter\n    def v(self, x):\n        K.n += 1\n        self._v = x + K.n\n    @staticmethod\n    def st(i):\n        s = 0\n        for k in range(i): s += random.randrange(4)\n        return s\n",
    ),
    "calls nested three deep": (
        "x = a(2)\nlog.append(x)\n",
        "def c(n):\n    out = []\n    for k in range(n):\n        out.append(random.random())\n    return out\ndef b(n):\n    out = []\n    for j in range(n):\n        x = c(n)\n        out.append((j, x))\n    return out\ndef a(n):\n    i = 0\n    while i < n:\n        i += 1\n        x = b(i)\n        log.append(x)\n    return b(1)\n",
    ),
    "keyword only and star args": (
        "x = f(1, 2, k=3, z=4)\nlog.append(x)\n",
        "def f(a, *rest, k, w=5, **more):\n    out = []\n    for r in rest + (a, k, w):\n        out.append((r, sorted(more)))\n    return out\n",
    ),
    "try finally with return in loop in cell loop": (
        "for i in range(3):\n    try:\n        if i == 1: continue\n        for j in range(2):\n            log.append((i, j))\n    finally:\n        log.append('fin')\n",
        "",
    ),
    "iterator made earlier": (
        "it = iter([1, 2, 3, 4, 5])\nfor a in it:\n    log.append(a)\n    if a == 2: break\nfor b in it:\n    log.append(('b', b))\n",
        "",
    ),
    "iterator of another cell": (
        "for a in it:\n    log.append(a)\n    if a == 2: break\nfor b in it:\n    log.append(('b', b))\n",
        "it = iter([1, 2, 3, 4, 5])\n",
    ),
    "zip of an iterator with itself": ("it = iter(range(6))\nfor a, b in zip(it, it):\n    log.append((a, b))\n", ""),
    "conditional loop expression": (
        "for i in range(2):\n    for j in (range(3) if i else [7]):\n        log.append((i, j))\n",
        "",
    ),
    "augassign target order": (
        "xs = [0, 0]\ni = 0\nfor k in range(3):\n    xs[i] += (i := 1 - i) + random.random()\n    log.append(list(xs))\n",
        "",
    ),
    "while else break": (
        "n = 5\nwhile n > 0:\n    n -= 1\n    while n % 2:\n        n -= 1\n        if n == 2: break\n    else:\n        log.append(('e', n))\n    log.append(n)\nelse:\n    log.append('done')\n",
        "",
    ),
}


def middle(cell: str, before: str) -> int:
    """Tell which boundary of a cell is the middle one."""
    with tempfile.TemporaryDirectory(prefix="nbresume-") as folder:
        whole = attempt(before, "%%resumable p --vars log --every 1\n" + cell, Path(folder))
    assert whole.status == "ended", whole.error
    return whole.boundaries // 2 + 1


@pytest.mark.parametrize("place", PLACES)
def test_a_cell_killed_in_its_middle_comes_out_the_same(place):
    cell, before = PLACES[place]
    cell, before = LOG + cell, IMPORTS + before
    found = rehearse(cell, before, names=["log"], kill_at=[middle(cell, before)])
    assert found.ok, str(found)
    assert found.kills == 2


def test_a_very_long_cell_comes_out_the_same():
    """A thousand statements around a loop."""
    head, tail = ("".join(f"{name}{k} = {k}\n" for k in range(500)) for name in "vw")
    cell = f"{LOG}{head}for i in range(3):\n    log.append((v499 + i, random.random()))\n{tail}"
    found = rehearse(cell, IMPORTS, names=["log", "v7", "w499"], kill_at=[2])
    assert found.ok, str(found)


def test_a_nest_of_nineteen_loops_comes_out_the_same():
    """Python allows twenty blocks in each other; the cell's own cursor is as deep."""
    heads = "".join("    " * k + f"for i{k} in range(1):\n" for k in range(19))
    cell = f"{LOG}{heads}{'    ' * 19}log.append((i18, random.random()))\n"
    found = rehearse(cell, IMPORTS, names=["log"], kill_at=[3, 19, 20, 37])
    assert found.ok, str(found)


REFUSED = {
    "a generator that is alive at a boundary": (
        "it = (random.random() for _ in range(9))\nfor i in range(3):\n    log.append(next(it))\n",
        "",
        "'it' (generator)",
    ),
    "a call whose function shares variables with one inside it": (
        "log.append(1)\nout = f(3)\n",
        "def f(n):\n    acc = []\n    def add(x):\n        acc.append(x)\n    for i in range(n):\n        add(i)\n    return acc\n",
        "this cell has no boundary",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_kept_is_refused_at_the_first_run_by_its_name(what):
    cell, before, why = REFUSED[what]
    found = rehearse(LOG + cell, IMPORTS + before, names=["log"])
    assert why in found.refused, str(found)


def test_a_later_loop_is_never_taken_for_an_earlier_one():
    """An iterator made in each epoch may lie where an earlier one lay; it is another all the same."""
    before = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "data = TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))\n"
        "loader = DataLoader(data, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(3))\n"
    )
    cell = f"{LOG}for e in range(9):\n    for i, (x, y) in enumerate(loader):\n        log.append((i, y.tolist()))\n"
    cell += "        others = [enumerate([]) for _ in range(3)]\n"
    found = rehearse(cell, IMPORTS + before, names=["log"], kill_at=[3, 4, 6, 7, 9, 10])
    assert found.ok, str(found)
