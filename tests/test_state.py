"""State that no line of the cell names: found, saved and put back, or refused at the first run.

Each cell is killed at each boundary by SIGKILL and resumed in a new process, as in ``test_shapes``.
"""

from __future__ import annotations

import numpy  # noqa: F401  # loaded before the processes are forked
import pytest

from nbresume.testing import rehearse

# name -> (names to compare, cell, cells before it)
HIDDEN: dict[str, tuple[str, str, str]] = {
    "globals() binds a name": (
        "out",
        "for i in range(4):\n    globals()['n' * 3] = globals().get('nnn', 0) + i\n    out.append(globals()['nnn'])\n",
        "out = []\n",
    ),
    "globals() rebinds a number": (
        "out",
        "for i in range(4):\n    globals()['hid' + 'den'] += i\n    out.append(globals()['hid' + 'den'])\n",
        "out, hidden = [], 5\n",
    ),
    "globals() changes an object in place": (
        "out",
        "for i in range(4):\n    globals()['sta' + 'te']['n'] += i\n    out.append(globals()['sta' + 'te']['n'])\n",
        "out, state = [], {'n': 0}\n",
    ),
    "globals() deletes a name": (
        "out",
        "for i in range(4):\n    out.append('fl' + 'ag' in globals())\n    globals().pop('fl' + 'ag', None)\n",
        "out, flag = [], 1\n",
    ),
    "a name comes and goes": (
        "out",
        (
            "for i in range(5):\n    seen = globals().pop('fl' + 'ag', None)\n    out.append(seen)\n"
            "    if i % 2: globals()['fl' + 'ag'] = i\n"
        ),
        "out, flag = [], 'first'\n",
    ),
    "exec": (
        "out",
        "for i in range(4):\n    exec('n = n + i; fresh = i')\n    out.append(eval('n + fresh'))\n",
        "out, n = [], 0\n",
    ),
    "%run -i": (
        "out",
        "for i in range(4):\n    get_ipython().run_line_magic('run', '-i s.py')\n    out.append(state['n'] + counter)\n",
        "out, state, counter = [], {'n': 0}, 0\nopen('s.py', 'w').write('counter += 1\\nstate[\"n\"] += counter\\n')\n",
    ),
    "a function writes the shell's namespace": (
        "out",
        "for i in range(4):\n    out.append(bump())\n",
        (
            "out, count = [], 0\ndef bump():\n    ns = get_ipython().user_ns\n    ns['count'] = ns['count'] + 1\n"
            "    return ns['count']\n"
        ),
    ),
    "a function imports __main__": (
        "out",
        "for i in range(4):\n    out.append(bump())\n",
        (
            "out, tally = [], {'n': 0}\ndef bump():\n    import __main__\n    __main__.tally['n'] += 1\n"
            "    return __main__.tally['n']\n"
        ),
    ),
    "a function gets an attribute": (
        "out",
        "for i in range(4):\n    out.append(step(i))\n",
        "out = []\ndef step(x):\n    step.calls = getattr(step, 'calls', 0) + 1\n    return x + step.calls\n",
    ),
    "a class gets an attribute": (
        "out",
        "for i in range(4):\n    K()\n    out.append(K.made)\n",
        "out = []\nclass K:\n    def __init__(self): type(self).made = getattr(type(self), 'made', 0) + 1\n",
    ),
    "a class loses an attribute": (
        "out",
        "for i in range(4):\n    out.append(hasattr(K, 'first'))\n    if hasattr(K, 'first'): del K.first\n",
        "out = []\nclass K:\n    first = True\n",
    ),
    "a module gets an attribute": (
        "out",
        "for i in range(4):\n    math.calls = getattr(math, 'calls', 0) + 1\n    out.append(math.calls)\n",
        "import math\nout = []\n",
    ),
    "a function sets an attribute of a module": (
        "out",
        "for i in range(4):\n    out.append(bump())\n",
        (
            "import math\nout = []\ndef bump():\n    setattr(math, 'calls', getattr(math, 'calls', 0) + 1)\n"
            "    return math.calls\n"
        ),
    ),
    "a figure of an earlier cell": (
        "out,lines",
        "for i in range(3):\n    out.append(i)\n    axes.plot(out)\nlines = len(axes.lines)\n",
        "import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\nout = []\n",
    ),
    "a partial over a list": (
        "out",
        "for i in range(3):\n    record(i)\n    out.append(len(rows))\n",
        "import functools\nout, rows = [], []\nrecord = functools.partial(rows.append)\n",
    ),
    "a weak reference to what changes": (
        "out",
        "for i in range(3):\n    n.k += i\n    out.append((n.k, r() is n))\n",
        "import weakref\nout = []\nclass N: k = 0\nn = N()\nn.k = 1\nr = weakref.ref(n)\n",
    ),
    "a weak set over a list that shrinks": (
        "out",
        "for i in range(3):\n    live.pop()\n    out.append(len(weak))\n",
        "import weakref\nout = []\nclass N: pass\nlive = [N() for _ in range(3)]\nweak = weakref.WeakSet(live)\n",
    ),
    "a view of a buffer": (
        "a,out",
        "for i in range(3):\n    view[i] = i + 1\n    out.append(sum(a))\n",
        "import array\na, out = array.array('d', [0, 0, 0]), []\nview = memoryview(a)\n",
    ),
    "a cache of a function of its arguments": (
        "out",
        "for i in range(6):\n    out.append(square(i % 3))\n",
        "import functools\nout = []\n@functools.lru_cache\ndef square(k): return k * k\n",
    ),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_state_that_no_line_names_comes_back(case):
    """However a name or an attribute came to its value, it has it again, and what was deleted stays deleted."""
    names, cell, before = HIDDEN[case]
    assert str(rehearse(cell, before, names=names.split(","))).endswith("every resume was the same run")


FORGOTTEN: dict[str, tuple[str, str]] = {
    "draws": ("import random\n@functools.cache\ndef f(k): return random.random()\n", "f(i % 2)"),
    "draws through a helper": (
        "import random\ndef g(): return random.random()\n@functools.cache\ndef f(k): return g() + k\n",
        "f(i % 2)",
    ),
    "looks at what changes": (
        "seen = []\n@functools.lru_cache(8)\ndef f(k): return len(seen)\n",
        "seen.append(f(i % 2))",
    ),
    "counts its calls": (
        "n = 0\n@functools.cache\ndef f(k):\n    global n\n    n += 1\n    return n\n",
        "f(i % 2)",
    ),
    "a method": (
        "import random\nclass A:\n    @functools.cache\n    def f(self, k): return random.random()\na = A()\n",
        "a.f(i % 2)",
    ),
    "asks something beyond": (
        "class Web:\n    def get(self, k): return k\nweb = Web()\n@functools.cache\ndef f(k): return web.get(k)\n",
        "f(i % 2)",
    ),
    "its counts are read": ("@functools.cache\ndef f(k): return k\n", "print(f(i % 2), f.cache_info())"),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_a_cache_that_could_not_be_computed_again_is_refused(case):
    """What an ``lru_cache`` remembers can't be saved: where it matters, the first run says so with a way out."""
    before, use = FORGOTTEN[case]
    found = rehearse(f"for i in range(4):\n    {use}\n", f"import functools\n{before}", names=["i"])

    assert "remembers (lru_cache) can't be saved" in found.refused
    assert "Keep what it remembers in a dict of your own" in found.refused


def test_a_cache_over_a_table_is_no_refusal():
    """``table.get(k)`` looks at a dict that the loop leaves alone: what is remembered is computed again."""
    before = "import functools\ntable = {0: 5, 1: 7}\n@functools.cache\ndef f(k): return table.get(k)\nout = []\n"
    found = rehearse("for i in range(4):\n    out.append(f(i % 2))\n", before, names=["out"])

    assert str(found).endswith("every resume was the same run")


def test_a_name_that_changes_without_a_word_is_told():
    """What joins the saved state is said aloud, with the reason; under ``--strict`` it is refused with the way out."""
    cell = "for i in range(3):\n    globals()['hid' + 'den'] += 1\n"
    found = rehearse(cell, "hidden = 0\n", names=["i"], options="--every 1 --strict")

    assert found.refused == (
        "RefusedError: line 1: --strict: hidden is not declared and has to be saved (the loop changes it). "
        "Add hidden to --vars"
    )


OUT_OF_SIGHT = {
    "a context variable": ("import contextvars\nv = contextvars.ContextVar('v', default=0)\n", "v.set(v.get() + 1)"),
    "a thread's own": ("import threading\nv = threading.local()\nv.n = 0\n", "v.n += 1"),
    "shared memory": ("import multiprocessing\nv = multiprocessing.Value('i', 0)\n", "v.value += 1"),
    "a queue in C": ("import queue\nv = queue.SimpleQueue()\n", "v.put(i)"),
}


@pytest.mark.parametrize("case", OUT_OF_SIGHT)
def test_what_changes_out_of_sight_is_refused(case):
    """Where neither its parts nor its pickle can be had, it is asked what it holds: a change ends the first run."""
    before, change = OUT_OF_SIGHT[case]
    found = rehearse(f"for i in range(3):\n    {change}\n", before, names=["i"])

    assert "cannot save 'v" in found.refused
    assert "the loop changes 'v'" in found.refused
