"""Every shape of cell, killed at every boundary, before and after its snapshot, and resumed: the same run, to the bit.

Each attempt is a process of its own that really dies by SIGKILL (``nbresume.testing``), and each resume starts from other
random streams. What is compared: the named variables, the files, and all global random streams.
"""

from __future__ import annotations

# Loaded before the processes are forked, so that they don't each load it.
import numpy  # noqa: F401
import pandas  # noqa: F401
import pytest
import torch  # noqa: F401
import torch.utils.data  # noqa: F401
from tqdm import tqdm  # noqa: F401

from nbresume.testing import rehearse

pytestmark = pytest.mark.usefixtures("quick_disk")

IMPORTS = "import random, itertools, collections, numpy as np\n"

# name -> (names to compare, cell, cells before it)
SHAPES: dict[str, tuple[str, str, str]] = {
    "for": ("total,i", "total = 0\nfor i in range(5):\n    total = total * 10 + i\n", ""),
    "for, draws": ("x", "x = []\nfor i in range(4):\n    x.append((i, random.random(), np.random.normal()))\n", ""),
    "while": ("n,log", "n, log = 17, []\nwhile n > 1:\n    n = n // 2\n    log.append((n, random.random()))\n", ""),
    "while with walrus": ("log", "q, log = [3, 1, 2], []\nwhile (x := q.pop()) != 3:\n    log.append(x)\n", ""),
    "while True": ("n", "n = 0\nwhile True:\n    n += 1\n    if n > 3: break\n", ""),
    "while with a draw in its test": ("n", "n = 0\nwhile random.random() < 0.75 and n < 6:\n    n += 1\n", ""),
    "nest of 2": (
        "log,total",
        "log = []\nfor i in range(2):\n    total = 0.0\n    for j in range(2):\n        total += i * 10 + j + random.random()\n    log.append(total)\n",
        "",
    ),
    "nest of 3": (
        "log",
        "log = []\nfor i in range(2):\n    a = [i]\n    for j in 'ab'[i:]:\n        a.append(j)\n        for k in (1,):\n            log.append((i, j, k, tuple(a), random.random()))\n",
        "",
    ),
    "while in for": (
        "log",
        "log = []\nfor i in range(1, 3):\n    n = i\n    while n:\n        n -= 1\n        log.append((i, n))\n",
        "",
    ),
    "for in while": (
        "log",
        "log, go = [], 2\nwhile go:\n    for i in range(go):\n        log.append((go, i))\n    go -= 1\n",
        "",
    ),
    "break": (
        "i,log",
        "log = []\nfor i in range(9):\n    log.append(i)\n    if i == 3:\n        break\nelse:\n    log.append('else')\nlog.append('after')\n",
        "",
    ),
    "break of an outer loop": (
        "log",
        "log = []\nfor i in range(3):\n    for j in range(3):\n        if j == 1: break\n        log.append((i, j))\n    else:\n        log.append('else')\n    if i == 1: break\nelse:\n    log.append('never')\nlog.append(random.random())\n",
        "",
    ),
    "continue": (
        "log",
        "log = []\nfor i in range(4):\n    if i % 2: continue\n    log.append(i)\nelse:\n    log.append('else')\n",
        "",
    ),
    "continue around an inner loop": (
        "log",
        "log = []\nfor i in range(3):\n    if i == 1: continue\n    for j in range(2):\n        if j == i: continue\n        log.append((i, j))\n    log.append(i)\n",
        "",
    ),
    "while else": ("n,log", "n, log = 3, []\nwhile n:\n    n -= 1\nelse:\n    log.append('done')\nlog.append(n)\n", ""),
    "while else after break and without": (
        "log",
        "log = []\nfor k in (2, 5):\n    n = 0\n    while n < 4:\n        n += 1\n        if n == k: break\n        if n == 1: continue\n        log.append((k, n))\n    else:\n        log.append('else')\n    log.append(random.random())\n",
        "",
    ),
    "while else around a loop, in a loop that its else ends": (
        "log",
        "log = []\nfor k in range(3):\n    n = k\n    while n < 2:\n        for j in range(2): log.append((k, n, j))\n        n += 1\n        if k == 0: break\n    else:\n        log.append('else')\n        break\nlog.append('end')\n",
        "",
    ),
    "while whose test raises": (
        "log",
        "log, n = [], 3\ntry:\n    while 6 / n > 1:\n        log.append(n)\n        n -= 1\n    else:\n        log.append('no')\nexcept ZeroDivisionError:\n    log.append('caught')\nlog.append(n)\n",
        "",
    ),
    "while in while, draws in both tests": (
        "log",
        "log = []\nwhile len(log) < 4 and random.random() < 0.9:\n    while random.random() < 0.5 and len(log) < 6:\n        log.append(random.random())\n    log.append(len(log))\n",
        "",
    ),
    "while in a function that returns out of it": (
        "log",
        "log = []\nn = hunt(log)\nlog.append(n)\n",
        "def hunt(log):\n    n = 0\n    while True:\n        n += 1\n        log.append(n)\n        if n == 3:\n            return n\n    else:\n        return 0\n",
    ),
    "loop in try": (
        "log",
        "log = []\ntry:\n    for i in range(5):\n        log.append(1 / (3 - i))\nexcept ZeroDivisionError:\n    log.append('caught')\nelse:\n    log.append('no')\nfinally:\n    log.append('finally')\nlog.append('after')\n",
        "",
    ),
    "loop in try without error": (
        "log",
        "log = []\ntry:\n    for i in range(3):\n        log.append(i)\nexcept ZeroDivisionError:\n    log.append('no')\nelse:\n    log.append('else')\nfinally:\n    log.append('finally')\n",
        "",
    ),
    "try in a loop": (
        "log",
        "log = []\nfor i in range(4):\n    try:\n        log.append(1 // (i - 1))\n    except ZeroDivisionError as e:\n        log.append(str(e))\n    finally:\n        log.append(i)\n",
        "",
    ),
    "bare except around everything": (
        "log",
        "log = []\nfor i in range(4):\n    try:\n        log.append([1, 2][i])\n    except:\n        log.append('bare')\n",
        "",
    ),
    "try around an inner loop": (
        "log",
        "log = []\nfor i in range(2):\n    try:\n        for j in range(2):\n            log.append((i, 1 // (i + j - 1)))\n    except ZeroDivisionError:\n        log.append((i, 'zero'))\n    finally:\n        log.append('f')\n",
        "",
    ),
    "with": (
        "log",
        "log = []\nwith np.errstate(divide='ignore'), suppress(ZeroDivisionError):\n    for i in range(3):\n        log.append((i, np.geterr()['divide']))\nlog.append(np.geterr()['divide'])\n",
        "from contextlib import suppress",
    ),
    "with in a loop around a loop": (
        "log",
        "log = []\nfor i in range(2):\n    with torch.no_grad():\n        for j in range(2):\n            log.append(torch.is_grad_enabled())\n    log.append(torch.is_grad_enabled())\n",
        "import torch",
    ),
    "if around": (
        "log",
        "log, mode = [], 'a'\nif mode == 'a':\n    for i in range(3):\n        log.append(i)\n        mode = 'b'\nelif mode == 'b':\n    for i in range(9):\n        log.append('no')\nelse:\n    log.append('no')\nlog.append(mode)\n",
        "",
    ),
    "elif around": (
        "log",
        "log, mode = [], 2\nif mode == 1:\n    log.append('no')\nelif mode == 2:\n    for i in range(3):\n        log.append(i)\n        mode = 1\nelse:\n    for i in range(3): log.append('no')\n",
        "",
    ),
    "else around, random": (
        "log",
        "log = []\nfor i in range(3):\n    if random.random() < 0.5:\n        for j in range(1): log.append((i, j))\n    else:\n        for j in range(1): log.append((i, -j))\n",
        "",
    ),
    "several loops": (
        "a,b,c,n",
        "a = []\nfor i in range(2):\n    a.append(random.random())\nn = len(a)\nb = [n * x for x in a]\nfor i in b:\n    n += 1\nc = random.random()\nwhile n < 6:\n    n += 1\nc = (c, random.random())\n",
        "",
    ),
    "walrus in the iterable": (
        "log,xs",
        "log = []\nfor x in (xs := [3, 1, 2]):\n    log.append(x)\n    if x == 3: xs.append(9)\n",
        "",
    ),
    "target rebound": (
        "log,c",
        "log = []\nfor c in [[1], [2]]:\n    c = c + [0]\n    for j in range(1):\n        log.append((c, j))\n    c = 'bound'\nlog.append(c)\n",
        "",
    ),
    "targets of every kind": (
        "log,d,a,b",
        "log, d = [], {}\nfor d['k'], (a, *b) in [(1, 'xy'), (2, 'zuv')]:\n    for k in range(1):\n        log.append((dict(d), a, b))\n",
        "",
    ),
    "list that the body appends to": ("q", "q = [3]\nfor x in q:\n    if x: q.append(x - 1)\n", ""),
    "list that shrinks": (
        "q,log",
        "q, log = [1, 2, 3, 4, 5], []\nfor x in q:\n    log.append(x)\n    if x == 1: q.remove(2)\n",
        "",
    ),
    "function of an earlier cell": (
        "result,seen",
        "result = work(4)\nseen.append('after')\n",
        "seen = []\ndef work(n):\n    total = 0\n    for i in range(n):\n        total += i * random.random()\n        seen.append((i, total))\n    return total\n",
    ),
    "function of the cell": (
        "result",
        "def work(n, k=2):\n    out = []\n    for i in range(n):\n        out.append(i * k)\n    return out\nresult = work(3)\n",
        "",
    ),
    "function called in a loop": (
        "log",
        "log = []\nfor e in range(2):\n    loss = epoch(e, scale=2)\n    log.append(loss)\n",
        "def epoch(e, *, scale):\n    total = 0\n    for i in range(2):\n        total += scale * (e * 10 + i) + random.random()\n    return total\n",
    ),
    "function in a function": (
        "x",
        "x = outer(2)\n",
        "def inner(n, acc):\n    for j in range(n):\n        acc.append(j)\n    return len(acc)\ndef outer(n):\n    acc = []\n    for i in range(n):\n        k = inner(2, acc)\n        acc.append(('o', i, k))\n    return acc\n",
    ),
    "method": (
        "m",
        "m.fit(4)\n",
        "class M:\n    def __init__(self):\n        self.w, self.log = 0.0, []\n    def fit(self, n):\n        for i in range(n):\n            self.w += random.random()\n            self.log.append((i, self.w))\n        return self\nm = M()\n",
    ),
    "method of an object of the cell": (
        "out",
        "m = M()\nout = m.fit(3)\n",
        "class M:\n    def fit(self, n):\n        out = []\n        for i in range(n):\n            out.append(random.random())\n        return out\n",
    ),
    "return in a loop": (
        "a,b",
        "a = find(1)\nb = find(99)\n",
        "def find(n):\n    for i in range(2):\n        for j in range(1 + (n < 9)):\n            if i * 2 + j == n:\n                return i, j\n    return None\n",
    ),
    "enumerate": ("log", "log = []\nfor i, x in enumerate('abcd', 5):\n    log.append((i, x))\n", ""),
    "zip": ("log", "log = []\nfor a, b in zip(range(4), np.arange(4) * 2):\n    log.append((a, b))\n", ""),
    "reversed": ("log", "log = []\nfor x in reversed([1, 2, 3, 4]):\n    log.append(x)\n", ""),
    "map and filter": (
        "log",
        "log = []\nfor x in map(lambda v: v * k, filter(None, [0, 1, 2, 3])):\n    log.append(x)\n",
        "k = 3",
    ),
    "itertools": (
        "log",
        "log = []\nfor a, b in itertools.islice(itertools.product('ab', itertools.chain([1], [2, 3])), 1, 5):\n    log.append((a, b))\nfor x in itertools.accumulate([1, 2]):\n    log.append(x)\n",
        "",
    ),
    "count and break": ("n", "for n in itertools.count(3):\n    if n == 7: break\n", ""),
    "dict views": (
        "log,d",
        "log, d = [], {'b': 1, 'a': 2, 'c': 3}\nfor k in d: log.append(k)\nfor k, v in d.items(): d[k] = v + 1\n",
        "",
    ),
    "set of str": (
        "order,s",
        "s = {'alpha', 'beta', 'gamma', 'delta'}\norder = collections.Counter()\nfor x in s:\n    order[x] += 1\norder[min(s)] += 1\n",
        "",
    ),
    "generator expression with draws": (
        "log",
        "log = []\nfor x in (random.random() * i for i in range(4)):\n    log.append((x, random.random()))\n",
        "",
    ),
    "generator function": (
        "log",
        "log = []\nfor x in batches(5, 2):\n    log.append((x, np.random.normal()))\n",
        "def batches(n, size):\n    order = np.random.permutation(n).tolist()\n    for k in range(0, n, size):\n        yield order[k : k + size]\n",
    ),
    "generator with a generator of its own": (
        "log,rng",
        "rng = np.random.default_rng(3)\nlog = []\nfor x in (rng.integers(100) for _ in range(4)):\n    log.append(int(x))\n",
        "",
    ),
    "shuffled each epoch": (
        "log",
        "log, idx = [], np.arange(4)\nfor e in range(2):\n    np.random.shuffle(idx)\n    for b in idx[:2]:\n        log.append((e, int(b)))\n",
        "",
    ),
    "tqdm": (
        "log,total",
        "log, total = [], 0\nfor i in tqdm(range(5)):\n    total += i\n    log.append(i)\n",
        "from tqdm import tqdm",
    ),
    "tqdm with a handle": (
        "log",
        "log = []\nbar = tqdm(['a', 'b', 'c'], desc='x')\nfor c in bar:\n    bar.set_postfix(c=c)\n    log.append((c, bar.total))\n",
        "from tqdm import tqdm",
    ),
    "tqdm into a buffer": (
        "log",
        "log = []\nfor i in tqdm(range(4), file=sink):\n    log.append(i)\n",
        "import io\nfrom tqdm import tqdm\nsink = io.StringIO()",
    ),
    "DataLoader with a generator of its own": (
        "log,w",
        "log, w = [], torch.zeros(2)\nfor e in range(2):\n    for i, (x, y) in enumerate(loader):\n        w += (x.sum(0) + torch.randn(2))\n        log.append((i, y.tolist()))\n",
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\ndata = TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))\nloader = DataLoader(data, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(3))",
    ),
    "the parameters of a module": (
        "net,log",
        "log = []\nfor i in range(2):\n    net(torch.ones(1, 2)).sum().backward()\n    with torch.no_grad():\n        for k, (p, q) in enumerate(zip(net.parameters(), ema.parameters())):\n            p -= 0.1 * p.grad\n            q.mul_(0.9).add_(p, alpha=0.1)\n            log.append(k)\n",
        "import copy, torch\ntorch.manual_seed(1)\nnet = torch.nn.Linear(2, 1)\nema = copy.deepcopy(net)",
    ),
    "a with that puts the streams back": (
        "log",
        "log = []\nfor e in range(2):\n    with seeded(e):\n        for i in range(2):\n            log.append(random.random())\n    log.append(random.random())\n",
        "import random\nfrom contextlib import contextmanager\n@contextmanager\ndef seeded(n):\n    state = random.getstate()\n    random.seed(n)\n    try:\n        yield\n    finally:\n        random.setstate(state)",
    ),
    "a clock of an earlier cell": (
        "log",
        "log = []\nfor i in range(3):\n    log.append(time.time() > t0)\n",
        "import time\nt0 = time.time()",
    ),
    "lines of a file after its header": (
        "log,heads",
        "log, heads = [], []\nwith open('in.txt') as f:\n    for part in range(2):\n        heads.append(f.readline())\n        for line in f:\n            if line == '-\\n':\n                break\n            log.append(line)\n",
        "open('in.txt', 'w').write('a\\n1\\n2\\n-\\nb\\n3\\n4\\n-\\n')",
    ),
    "a class that counts, and functions that remember": (
        "log",
        "log = []\nfor i in range(3):\n    Node(); step(); f.calls += 1\n    log.append((Node.made, count(), f.calls))\n",
        "class Node:\n    made = 0\n    def __init__(self): Node.made += 1\ndef maker():\n    n = 0\n    def count():\n        nonlocal n\n        n += 1\n        return n\n    return count\ncount = maker()\ndef f(): pass\nf.calls = 0\nk = []\ndef step(): k.append(len(k))",
    ),
    "names that only share an object": (
        "params,log,W",
        "log = []\nfor i in range(3):\n    for p in params:\n        p -= 0.1\n    log.append(params[0] is W)\n",
        "import numpy as np\nW = np.ones(2)\nparams = [W, np.zeros(2)]",
    ),
    "a name that the cell does not read, and that holds what it changes": (
        "xs,ys,nest,d,A,row,same",
        "for i in range(3):\n    xs.append(i)\n    A += i\n",
        "xs = [1]\nys = xs\nd = {}\nA = np.zeros((2, 2))\nrow = A[1]\nnest = {'deep': {'rows': [[0], ys]}, 'd': d}\nsame = (lambda: (nest['deep'], d, row))",
    ),
    "a list inside an input that does not change": (
        "log,t,cfg",
        "log = []\nfor i in range(4):\n    log += [t[0], cfg.layers]\n    if i == 2: log[0].append(i); log[1].append(i)\n",
        "class Cfg: pass\ncfg, t = Cfg(), ([1], [2])\ncfg.layers = [1]",
    ),
    "a class of the cell that counts": (
        "log",
        "class Node:\n    made, all = 0, []\n    def __init__(self):\n        Node.made += 1\n        Node.all.append(Node.made)\nlog = []\nfirst = Node()\nfor i in range(3):\n    Node()\n    log.append((Node.made, list(Node.all)))\n",
        "",
    ),
    "a class defined in the body": (
        "log",
        "log = []\nfor k in range(3):\n    class T:\n        xs = []\n        for i in range(2):\n            xs.append(i + random.randrange(3))\n    log.append(T.xs)\n",
        "",
    ),
    "names that only exec and globals() show": (
        "log,hid",
        "log, hid = [], 0\nfor i in range(4):\n    globals()['hid'] += i\n    exec('acc = globals().get(\"acc\", 0) + i')\n    log.append((hid, eval('acc')))\n",
        "",
    ),
    "a function that calls itself": (
        "r",
        "r = f(3)\n",
        "def f(n):\n    out = []\n    for i in range(n):\n        t = f(n - 1)\n        out.append((i, t, random.random()))\n    return out\n",
    ),
    "a function that an inner one shares a counter with": (
        "log",
        "log = []\nfor i in range(3):\n    x = run(i)\n    log.append(x)\n",
        "def run(k):\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n    for i in range(k):\n        up()\n    return n\n",
    ),
    "a method with private names": (
        "o",
        "o = K()\no.run(3)\n",
        "class K:\n    def __init__(self): self.__w = 0\n    def run(self, n):\n        for i in range(n):\n            self.__w += random.randrange(9)\n",
    ),
    "a with that binds what can't be saved, and does more": (
        "log,n",
        "log, n = [], 0\nfor i in range(2):\n    with open('a.txt', 'a') as f:\n        f.write('x')\n        n += 1\n        log.append(n)\n    for j in range(2):\n        log.append((i, j))\n",
        "",
    ),
    "DataLoader": (
        "log,w",
        "log, w = [], torch.zeros(2)\nfor e in range(2):\n    for x, y in loader:\n        w += (x.sum(0) + torch.randn(2))\n        log.append(y.tolist())\n",
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\ndata = TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))\nloader = DataLoader(data, batch_size=2, shuffle=True)",
    ),
    "torch training": (
        "model,opt,sched,log",
        "log = []\nfor e in range(4):\n    opt.zero_grad()\n    loss = model(X + torch.randn_like(X) * 0.1).square().mean()\n    loss.backward()\n    opt.step()\n    sched.step()\n    log.append(loss.item())\n",
        "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(), torch.nn.Linear(3, 1))\nopt = torch.optim.AdamW(model.parameters(), lr=0.1)\nsched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)\nX = torch.ones(4, 2)",
    ),
    "del": (
        "log",
        "log, warm = [], [1]\nfor i in range(4):\n    if i == 1:\n        del warm\n    log.append('warm' in globals())\n",
        "",
    ),
    "numpy views": (
        "base,row,flat",
        "base = np.zeros((3, 4))\nrow, flat = base[1], base.reshape(-1)[::2]\nfor i in range(4):\n    row[i] = i\n    flat[0] += row.sum()\n",
        "",
    ),
    "aliases": (
        "W1,b1,params",
        "for i in range(2):\n    for p in params:\n        p -= 0.1 * (i + 1) * np.random.normal(size=p.shape)\n",
        "W1, b1 = np.ones((2, 2)), np.zeros(2)\nparams = [W1, b1]",
    ),
    "alias that is not declared": (
        "grid",
        "for i in range(4):\n    sim['grid'] += i\n    grid[0] *= 2\n",
        "grid = np.ones(3)\nsim = {'grid': grid}",
    ),
    "decimal": (
        "s",
        "decimal.getcontext().prec = 10\ns = decimal.Decimal(0)\nfor k in range(1, 5):\n    decimal.getcontext().prec += 5\n    s += decimal.Decimal(1) / k / 3\n",
        "import decimal",
    ),
    "global in a function": (
        "count,seen",
        "for i in range(4):\n    bump(i)\n",
        "count, seen = 0, []\ndef bump(i):\n    global count\n    count += i\n    seen.append(count)\n",
    ),
    "closure that records": (
        "losses",
        "losses = []\nrecord = lambda x: losses.append(x)\nfor i in range(4):\n    record(i)\n",
        "",
    ),
    "closure with a counter": (
        "log",
        "log = []\nfor i in range(4):\n    log.append(up())\n",
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up\nup = counter()",
    ),
    "generators in variables": (
        "a,b,log",
        "log = []\nfor i in range(4):\n    log.append((a.normal(), b['rng'].normal()))\n    if i == 1: child = a.spawn(1)[0]\n",
        "a = np.random.default_rng(3)\nb = {'rng': a}",
    ),
    "class of the cell": (
        "boxes",
        "class Box:\n    def __init__(self, n): self.n = n\nboxes = []\nfor i in range(3):\n    boxes.append(Box(i))\nassert all(isinstance(b, Box) for b in boxes)\n",
        "",
    ),
    "iterator of a class": (
        "log",
        "log = []\nfor x in Walk(4):\n    log.append(x)\n",
        "class Walk:\n    def __init__(self, n): self.n = n\n    def __iter__(self): return self\n    def __next__(self):\n        if not self.n: raise StopIteration\n        self.n -= 1\n        return self.n, random.random()\n",
    ),
    "deque that is drained and refilled": (
        "log,jobs",
        "jobs, log = collections.deque([3, 1]), []\nwhile jobs:\n    x = jobs.popleft()\n    log.append(x)\n    if x == 3: jobs.append(2)\n",
        "",
    ),
    "work after the loop": (
        "out",
        "xs = []\nfor i in range(3): xs.append(random.random())\nout = [sum(xs), random.random(), np.random.normal()]\n",
        "",
    ),
    "print": (
        "n",
        "n = 0\nprint('start')\nfor i in range(3):\n    n += i\n    print('step', i, n)\nprint('end')\n",
        "",
    ),
    "empty loops": (
        "log",
        "log = []\nfor i in []:\n    log.append('no')\nelse:\n    log.append('else')\nfor i in range(2):\n    for j in range(i):\n        log.append((i, j))\n",
        "",
    ),
    "one-line bodies": ("t", "t = 0\nfor i in range(3): t += i; t *= 2\nwhile t > 5: t -= 4\n", ""),
    "match in the body": (
        "log",
        "log = []\nfor x in [1, 'a', (2, 3), {'k': 1, 'r': 2}]:\n    match x:\n        case int(): log.append('int')\n        case (a, b): log.append(a + b)\n        case {'k': k, **rest}: log.append(rest)\n        case _: log.append('other')\n",
        "",
    ),
    "comprehensions in the body": (
        "log",
        "log = []\nfor i in range(3):\n    ys = [y * i for y in range(3) if (last := y) < 2]\n    log.append((ys, last, {k: v for k, v in zip('ab', ys)}))\n",
        "",
    ),
    "set-up that draws": (
        "order,log",
        "order = list(range(4))\nrandom.shuffle(order)\nlog = []\nfor i in order:\n    log.append((i, random.random()))\n",
        "",
    ),
    "sorted with a key": (
        "log",
        "log = []\nfor w in sorted(words, key=len, reverse=True):\n    log.append(w)\n",
        "words = ['aa', 'b', 'cccc', 'ddd']",
    ),
    "pandas rows": (
        "out",
        "out = []\nfor i, row in df.iterrows():\n    out.append((i, row['a'] * 2))\nfor key, part in df.groupby('b'):\n    out.append((key, len(part)))\n",
        "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3], 'b': ['x', 'y', 'x']})",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cell_killed_at_any_boundary_comes_out_the_same(shape):
    names, cell, before = SHAPES[shape]
    found = rehearse(cell, IMPORTS + before, names=names.split(","))
    assert found.ok, str(found)
    assert found.kills == 2 * found.boundaries > 2


# A boundary without a snapshot: the resume goes back further and does the work between again.
@pytest.mark.parametrize(
    "shape", ["nest of 2", "shuffled each epoch", "function called in a loop", "generator function", "aliases"]
)
@pytest.mark.parametrize("every", ["2", "3"])
def test_a_kill_between_two_snapshots_comes_out_the_same(shape, every):
    names, cell, before = SHAPES[shape]
    found = rehearse(cell, IMPORTS + before, names=names.split(","), options=f"--every {every}")
    assert found.ok, str(found)


def test_an_object_of_a_local_module_keeps_its_state(tmp_path, monkeypatch):
    """State in a module beside the notebook is saved as a notebook's own is."""
    (tmp_path / "counting_nb.py").write_text(
        "total = 0\nseen = []\ndef add(n):\n    global total\n    total += n\n    seen.append(total)\n    return total\n"
    )
    before = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport counting_nb\n"
    found = rehearse(
        "log = []\nfor i in range(4):\n    log.append(counting_nb.add(i))\nlast = counting_nb.total, list(counting_nb.seen)\n",
        before,
        names=["log", "last"],
    )
    assert found.ok, str(found)


def test_what_a_rehearsal_tells_is_worth_something():
    """A cell that can't resume is not called the same run: a rehearsal that finds nothing would be worth nothing."""
    found = rehearse(
        "import os\nlog = []\nfor i in range(3):\n    log.append(os.getpid())\n", names=["log"], kill_at=[2]
    )
    assert not found.ok
    assert "log" in str(found)
