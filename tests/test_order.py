"""Each item once and in its order, whatever a loop walks over; or refused at the first run."""

from __future__ import annotations

import itertools

# Loaded before the processes are forked, so that they don't each load it.
import numpy as np
import pandas  # noqa: F401
import pytest
import sklearn.model_selection  # noqa: F401
import torch
import torch.utils.data
from tqdm import tqdm

import nbresume
from nbresume._capture import rng_look, rng_state
from nbresume._session._iterables import Entry, Iteration
from nbresume._session._replay import LOG_LIMIT, Progress, Replay
from nbresume.errors import OptionError, RefusedError, ReplayError
from nbresume.testing import rehearse

pytestmark = pytest.mark.usefixtures("quick_disk")

IMPORTS = "import random, itertools, os, csv, numpy as np\nfrom pathlib import Path\nimport nbresume\n"
BODY = "    log.append((x, random.random(), float(np.random.normal())))\n"
TORCH = (
    "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\ndata = TensorDataset(torch.arange(6.0))\n"
)
LOADER = TORCH + "loader = DataLoader(data, batch_size=2, shuffle=True)\n"
TENSORS = "log.append((x.tolist(), torch.rand(1).item(), random.random()))\n"
FOLDER = "os.makedirs('d/e/f', exist_ok=True)\nos.makedirs('d/x', exist_ok=True)\nfor n in 'abc': open('d/' + n, 'w').close()\n"

# name -> (cell, cells before it)
SHAPES: dict[str, tuple[str, str]] = {
    "a loader with workers whose data set draws": (
        "log = []\nfor epoch in range(2):\n    for i, x in DataLoader(Noisy(), batch_size=2, shuffle=True, num_workers=2):\n        log.append((i.tolist(), x.tolist(), random.random()))\n",
        TORCH
        + "class Noisy(torch.utils.data.Dataset):\n    def __len__(self): return 4\n    def __getitem__(self, i): return i, torch.rand(1).item() + float(np.random.rand())\n",
    ),
    "a generator that shares a numpy Generator with the body": (
        "rng = np.random.default_rng(2)\nlog = []\nfor x in (float(rng.normal()) for _ in range(4)):\n    log.append((x, float(rng.normal())))\n",
        "",
    ),
    "a generator function that draws from a notebook's Generator, through another function": (
        "log = []\nfor x in items():\n    log.append((x, float(kept['rng'].normal())))\n",
        "kept = {'rng': np.random.default_rng(2)}\ndef draw(): return float(kept['rng'].normal())\ndef items():\n    for _ in range(4): yield draw()\n",
    ),
    "a method that draws from its object's Generator": (
        "log = []\nfor x in s.items():\n    log.append((x, float(s.rng.normal())))\n",
        "class S:\n    def __init__(self): self.rng = np.random.default_rng(2)\n    def items(self):\n        for _ in range(4): yield float(self.rng.normal())\ns = S()\n",
    ),
    "map of a function that draws": (
        "log = []\nfor x in map(noisy, range(4)):\n" + BODY,
        "def noisy(i): return i + random.random()\n",
    ),
    "a shuffle whose items are alike": (
        "log = []\nfor x in order():\n" + BODY,
        "def order():\n    a = [0, 0, 1, 1]; random.shuffle(a)\n    yield from a\n",
    ),
    "enumerate of a loader": (
        "log = []\nfor e in range(2):\n    for i, (x,) in enumerate(loader):\n        " + TENSORS,
        LOADER,
    ),
    "zip of two loaders": (
        "log = []\nfor (x,), (y,) in zip(loader, other):\n    log.append(y.tolist())\n    " + TENSORS,
        LOADER + "other = DataLoader(data, batch_size=2, shuffle=True)\n",
    ),
    "a bar over a loader": (
        "from tqdm import tqdm\nlog = []\nfor e in range(2):\n    for (x,) in tqdm(loader):\n        " + TENSORS,
        LOADER,
    ),
    "one bar over a loader, walked in each epoch": (
        "from tqdm import tqdm\nbar = tqdm(loader)\nlog = []\nfor e in range(2):\n    for (x,) in bar:\n        "
        + TENSORS,
        LOADER,
    ),
    "a bar over a permutation by the run's own Generator": (
        "from tqdm import tqdm\nrng = np.random.default_rng(1)\nlog = []\nfor x in tqdm(rng.permutation(4)):\n    log.append((int(x), float(rng.normal())))\n",
        "",
    ),
    "a loader whose dataset draws": (
        "log = []\nfor x in loader:\n    " + TENSORS,
        TORCH
        + "class Noisy(torch.utils.data.Dataset):\n    def __len__(self): return 6\n    def __getitem__(self, i): return i + torch.rand(1).item()\nloader = DataLoader(Noisy(), batch_size=2, shuffle=True)\n",
    ),
    "os.walk, pruned by the body, which puts files there": (
        "log = []\nfor x, folders, files in os.walk('d'):\n    folders[:] = sorted(f for f in folders if f != 'x')\n    files = sorted(f for f in files if f != 'out')\n    open(x + '/out', 'w').close()\n    log.append((x, files))\n",
        FOLDER,
    ),
    "os.scandir, while the body puts files there": (
        "log = []\nfor x in os.scandir('d'):\n    open(f'd/{x.name}.out', 'w').close()\n    log.append((x.name, x.is_dir()))\n",
        FOLDER,
    ),
    "Path.rglob, while the body puts files there": (
        "log = []\nfor x in enumerate(Path('d').rglob('*')):\n    (x[1].parent / f'{x[0]}.out').write_text('')\n    log.append(x)\n",
        FOLDER,
    ),
    "chain of a list and a generator": (
        "log = []\nfor x in itertools.chain([1, 2], (random.random() for _ in range(2))):\n" + BODY,
        "",
    ),
    "tee, one of the two moved by hand": (
        "a, b = itertools.tee(range(4))\nnext(b)\nlog = []\nfor x in a:\n    log.append((x, next(b, None)))\n",
        "",
    ),
    "futures as they get ready, inside of a loop": (
        "from concurrent.futures import ThreadPoolExecutor, as_completed\nlog = []\nfor e in range(3):\n    got = []\n    with ThreadPoolExecutor(2) as pool:\n        for f in as_completed([pool.submit(pow, i, 2) for i in range(4)]):\n            got.append(f.result())\n    log.append((e, sorted(got), random.random()))\n",
        "",
    ),
    "stream of an endless generator, moved by hand": (
        "batches = nbresume.stream(endless, loader)\nlog = []\nwhile len(log) < 4:\n    (x,) = next(batches)\n    "
        + TENSORS,
        LOADER + "def endless(loader):\n    while True:\n        yield from loader\n",
    ),
    "stream made in an earlier cell": (
        "log = []\nfor (x,) in batches:\n    " + TENSORS,
        LOADER + "batches = nbresume.stream(loader)\n",
    ),
    "stream by its sampler": (
        "log = []\nfor e in range(2):\n    for i, (x,) in enumerate(nbresume.stream(loader, skip='sampler')):\n        "
        + TENSORS,
        LOADER,
    ),
    "stream by its position": (
        "log = []\nfor x in nbresume.stream(rows, 4, skip='position'):\n" + BODY,
        "def rows(start, stop):\n    yield from range(start, stop)\n",
    ),
    "stream that shares a Generator with the body": (
        "rng = np.random.default_rng(1)\ns = nbresume.stream(noise, rng)\nlog = []\nfor k in range(4):\n    log.append((next(s), float(rng.normal())))\n",
        "def noise(r):\n    while True: yield float(r.normal())\n",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_item_comes_once_and_in_its_order(shape):
    """Plain, under nbresume, completed and run again, killed and resumed: one result."""
    cell, before = SHAPES[shape]
    found = rehearse(cell, IMPORTS + before, names=["log"], kill_at=[3])
    assert found.ok, str(found)
    assert found.kills == 2


def test_a_second_loop_goes_on_with_the_iterator_of_the_first():
    """Between the two there is no place to go on from, which is said; in each of them there is."""
    cell = (
        "log = []\nit = (random.random() for _ in range(5))\nfor x in it:\n"
        + BODY
        + "    if len(log) == 2: break\nfor x in it:\n"
        + BODY
    )
    found = rehearse(cell, IMPORTS, names=["log"], kill_at=[2, 5])
    assert found.ok, str(found)


WORKERS = "from torch.utils.data import DataLoader\nmake = lambda: DataLoader(range(6), batch_size=2, num_workers=1, persistent_workers=True)\n"
REFUSED = {
    "a loader that keeps its workers": (
        "loader = make()\nfor epoch in range(2):\n    for i, x in enumerate(loader): log.append((i, x.tolist()))\n",
        WORKERS,
        "persistent_workers=True",
    ),
    "a loader of an earlier cell that keeps its workers": (
        "for epoch in range(2):\n    for x in tqdm(loader): log.append(x.tolist())\n",
        WORKERS + "from tqdm import tqdm\nloader = make()\n",
        "persistent_workers=True",
    ),
    "futures as they get ready": (
        "from concurrent.futures import ThreadPoolExecutor, as_completed\nwith ThreadPoolExecutor(2) as pool:\n    fs = [pool.submit(pow, i, 2) for i in range(4)]\n    for f in as_completed(fs): log.append(f.result())\n",
        "",
        "in the order in which they get ready",
    ),
    "a generator of an earlier cell that holds a Generator the body draws from": (
        "for x in it: log.append((x, rng.normal()))\n",
        "rng = np.random.default_rng(2)\nit = (rng_.normal() for rng_ in [rng] * 4)\nnext(it)\n",
        "'it' can't be saved and holds an object of 'rng'",
    ),
    "an expression that drains what it reads": (
        "for x in (v * 2 for v in drain()): log.append(x)\n",
        "q = [1, 2, 3, 4, 5, 6]\ndef drain():\n    out = q[:4]; del q[:4]\n    return out\n",
        "making the items of 'for x' changes 'q'",
    ),
    "items of an outer loop that can't be saved, by an iterator that is": (
        "for x in Locks():\n    for j in range(2): log.append((j, x.locked()))\n",
        "import threading\nclass Locks:\n    n = 0\n    def __iter__(self): return self\n    def __next__(self):\n        self.n += 1\n        if self.n > 3: raise StopIteration\n        return threading.Lock()\n",
        "cannot save 'x' (_thread.lock)",
    ),
    "a generator that the cell moves by hand": (
        "it = (i for i in range(9))\nwhile len(log) < 3: log.append(next(it))\n",
        "",
        "nbresume.stream",
    ),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_cannot_be_gone_on_with_is_refused_at_the_first_run(shape):
    cell, before, why = REFUSED[shape]
    found = rehearse("log = []\n" + cell, IMPORTS + before, names=["log"], kill_at=[])
    assert why in found.refused


# ------------------------------------------------------------------ how much is done again


def entry(**more) -> Entry:
    return Entry(lambda _: False, rng_look(), **more)


class Counted(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.loaded = []

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        self.loaded.append(index)
        return index


@pytest.mark.parametrize(
    "wrap", [lambda x: x, enumerate, tqdm, lambda x: enumerate(tqdm(x)), lambda x: zip(x, range(9999), strict=False)]
)
def test_a_loader_without_workers_is_advanced_without_loading_what_it_passes_over(wrap):
    """At batch 90 of 100 one batch is loaded, the last one, to be compared; and the next one is the right one."""
    loader = torch.utils.data.DataLoader(data := Counted(), batch_size=10, shuffle=True)
    torch.manual_seed(3)
    start = rng_look()
    iteration = Iteration.enter(wrap(loader), Entry(lambda _: False, start))
    items = list(itertools.islice(iteration.source, 90))
    cursor, part = iteration.cursor(), iteration.in_graph()
    coming = next(iteration.source)
    data.loaded.clear()
    torch.manual_seed(3)
    again = Iteration.go_on({**cursor, "count": 90}, part, wrap(loader), entry(), tell=print)
    assert len(data.loaded) == 10
    assert str(next(again.source)) == str(coming)
    assert str(again.last if again.replay.delivered == 90 else items[-1]) == str(items[-1])


def test_a_sequence_is_gone_on_with_without_a_look_at_what_was_done():
    class Rows(list):
        asked = 0

        def __getitem__(self, place):
            Rows.asked += 1
            return super().__getitem__(place)

    iteration = Iteration.enter(range(10**9), entry())
    assert iteration.mode == "graph"
    seen = [next(iteration.source) for _ in range(3)]
    again = Iteration.go_on({**iteration.cursor(), "count": 3}, iteration.in_graph(), None, entry(), tell=print)
    assert (seen, next(again.source)) == ([0, 1, 2], 3)


def test_a_bar_stands_at_k_of_n_before_its_next_item():
    iteration = Iteration.enter(tqdm("abcd"), entry())
    list(itertools.islice(iteration.source, 3))
    bar = tqdm("abcd")
    again = Iteration.go_on({**iteration.cursor(), "count": 3}, iteration.in_graph(), bar, entry(), tell=print)
    assert (bar.n, bar.initial, bar.total, list(again.source)) == (3, 3, 4, ["d"])


def test_a_bar_keeps_what_it_wraps():
    """A bar that is made once and walked in each epoch gives all its items each time."""
    bar = tqdm([1, 2])
    for _ in range(2):
        assert list(Iteration.enter(bar, entry()).source) == [1, 2]
    assert bar.iterable == [1, 2]


def test_a_generator_that_draws_too_often_between_the_body_s_draws_says_so_at_that_very_item():
    said = []
    replay = Replay(
        iter(lambda: float(np.random.normal()), None), rng_state(), alarm=lambda: said.append(replay.delivered)
    )
    for _ in range(LOG_LIMIT + 1):
        next(replay)
        np.random.normal()
    assert (said, replay.refusal) == ([], None)
    next(replay)
    assert said == [LOG_LIMIT + 1]
    with pytest.raises(RefusedError, match="more than 1000 times"):
        replay.part()


def test_an_order_that_differs_before_its_last_item_is_found():
    """The last item alone would be equal."""
    replay = Replay(iter([1, 2, 3]), rng_state())
    list(itertools.islice(replay, 3))
    other = Replay(iter([2, 1, 3]), rng_state())
    with pytest.raises(ReplayError, match="not those that the run had seen"):
        other.forward(3, replay.cursor()["last"], replay.part(), print)


def test_a_long_replay_tells_where_it_is_and_more_and_more_seldom():
    now, told = [0.0], []
    progress = Progress(80_000, told.append, clock=lambda: now[0])
    for place in range(1, 80_001):
        now[0] += 0.001
        progress.at(place)
    assert told[0] == "replaying 1,000 of 80,000 items"
    assert len(told) == 6


# ------------------------------------------------------------------ stream


@pytest.mark.parametrize(
    ("source", "words", "why"),
    [
        (iter([1]), {}, "walked only once"),
        ([1], {"skip": "sampler"}, "for a torch DataLoader"),
        ([1], {"skip": "position"}, "needs a function"),
        ([1], {"skip": "count"}, "none of replay, sampler, position"),
    ],
)
def test_a_stream_that_could_not_be_gone_on_with_is_an_error_where_it_is_made(source, words, why):
    with pytest.raises(OptionError, match=why):
        nbresume.stream(source, **words)


def test_a_stream_by_its_sampler_loads_nothing_of_what_is_over():
    data = Counted()
    loader = torch.utils.data.DataLoader(data, batch_size=10, shuffle=True)
    one = nbresume.stream(loader, skip="sampler")
    list(itertools.islice(one, 90))
    state, rest = one.state_dict(), [batch.tolist() for batch in one]
    data.loaded.clear()
    again = nbresume.stream(loader, skip="sampler")
    again.load_state_dict(state)
    before = rng_state()
    assert [batch.tolist() for batch in again] == rest
    assert (len(data.loaded), rng_state()) == (100, before)


def test_a_stream_whose_sampler_gives_another_order_stops():
    loader = torch.utils.data.DataLoader(Counted(), batch_size=10, shuffle=True)
    one = nbresume.stream(loader, skip="sampler")
    list(itertools.islice(one, 3))
    other = nbresume.stream(torch.utils.data.DataLoader(Counted(), batch_size=10), skip="sampler")
    other.load_state_dict(one.state_dict())
    with pytest.raises(ReplayError, match="first 3 batches"):
        next(other)
