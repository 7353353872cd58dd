"""The rows of the table that are boundaries of a loop, each beside a plain way to keep the same state."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import time
from typing import Any

import numpy as np
from _baselines import memcpy, newest, numpy_save, pickled, pickled_durably, raw, timed
from _measure import Bench, Figure, figure

MB = 1_000_000


def arrays(bench: Bench, count: int, megabytes: float, *, row: int = 1) -> list[str]:
    """Put arrays of so many bytes together into the shell; returns their names."""
    floats = bench.size(int(megabytes * MB / count / 8), least=4 * row) // row * row
    names = [f"a{number}" for number in range(count)]
    for number, name in enumerate(names):
        bench.shell.user_ns[name] = np.random.default_rng(number).normal(size=floats).reshape(-1, row).squeeze()
    return names


def each(names: list[str], statement: str) -> str:
    """Return a statement about each of the names."""
    return "; ".join(statement.format(name) for name in names)


def changed(bench: Bench) -> list[Figure]:
    """All of 100 MB in 10 arrays changes."""
    names = arrays(bench, 10, 100)
    pairs = bench.boundaries(raw, names, each(names, "{} += 1"), sync=True)
    return [figure("changed", "100 MB in 10 arrays, all changed, sync", "raw", 0.9, pairs)]


LOADED = """\
gaps, spent, copies, published, settled = [], [], [], [], []
left = clock()
for turn in range({turns}):
    gaps.append(since(left))
    copies.append(memcpy({names}))
    began = clock()
    work(({names}), factor, {parts})
    spent.append(since(began))
    published.append(newest('loaded'))
    sleep(0.3)
    settled.append(newest('loaded'))
    copies.append(memcpy({names}))
    left = clock()"""
"""Every other boundary becomes a snapshot: the work after it is done while the snapshot is written, and all other work
while nothing is."""


WARM_TURNS = 4


def factor_of() -> np.ndarray:
    """Return a matrix that takes a millisecond to multiply and next to nothing to look at."""
    return np.random.default_rng(0).normal(size=(400, 400))


def work(values: tuple[np.ndarray, ...], factor: np.ndarray, parts: int) -> None:
    """Change all arrays in place and multiply matrices, so many times; a loop of the cell's own would be boundaries."""
    for _ in range(parts):
        for _ in range(10):
            np.matmul(factor, factor)
        for value in values:
            np.add(value, 1, out=value)


def median_of(timings: list[tuple[float, float]]) -> float:
    """Return the median of their seconds."""
    return statistics.median(timing[0] for timing in timings)


def background(bench: Bench) -> list[Figure]:
    """All of 200 MB changes, and the loop has something to do while it is written."""
    names = arrays(bench, 10, 200)
    ns = bench.shell.user_ns
    ns.update(factor=factor_of(), memcpy=memcpy, newest=newest, work=work, sleep=time.sleep)
    values = tuple(ns[name] for name in names)

    # As much work as takes three times as long as to write the state plainly: the commit ends within it.
    one = statistics.median(timed(lambda: work(values, ns["factor"], 1))[0] for _ in range(5))
    parts = int(np.clip(3 * raw(*values)[0] / one, 2, 200))

    turns = 2 * (WARM_TURNS + bench.rounds) + 1
    cell = LOADED.format(turns=turns, names=", ".join(names), parts=parts)
    bench.run(f"%%resumable loaded --vars {','.join(names)} --every 2\n{cell}")

    # Which turns begin with a snapshot is seen by what they wait.
    odd = int(median_of(ns["gaps"][3::2]) > median_of(ns["gaps"][2::2]))
    stalls, wholes = [], []
    unfinished = 0
    for turn in range(2 * WARM_TURNS + odd, turns - 1, 2):
        copy = min(ns["copies"][2 * turn - 1], ns["copies"][2 * turn])  # right before this boundary, and right after
        stall, busy = ns["gaps"][turn], ns["spent"][turn]
        idle = ns["spent"][turn + 1 if turn // 2 % 2 else turn - 1]  # the turn without a snapshot: after, or before
        stalls.append((copy, stall))
        wholes.append((copy, tuple(sum(three) for three in zip(stall, busy, (-one for one in idle), strict=True))))
        unfinished += ns["published"][turn] < ns["settled"][turn]
    late = f"in {unfinished} of {len(stalls)} rounds the commit took longer than the work beside it" * bool(unfinished)
    shutil.rmtree(".nbresume")
    what = "200 MB all changed, background"
    return [
        figure("background", f"{what}: stall of the loop", "memcpy", 1.2, stalls, note=late),
        figure("background", f"{what}: whole cost to the loop", "memcpy", 1.5, wholes, note=late),
    ]


def picked(count: int, turn: int) -> np.ndarray:
    """Return a tenth of so many rows, others at each turn."""
    return np.random.default_rng(turn).choice(count, max(1, count // 10), replace=False)


def scattered(bench: Bench) -> list[Figure]:
    """A tenth of the 4 kB rows of 100 MB changes."""
    names = arrays(bench, 10, 100, row=512)
    count = len(bench.shell.user_ns["a0"])
    bench.shell.user_ns["picked"] = picked
    change = each(names, f"{{}}[picked({count}, turn)] += 1")
    pairs = bench.boundaries(numpy_save, names, change, sync=True)
    what = "100 MB, 10 % scattered 4 kB rows changed, sync"
    return [figure("scattered", what, "np.save + fsync of the whole", 0.30, pairs)]


def change_one(values: tuple[np.ndarray, ...], turn: int) -> None:
    """Change one array, the next at each turn."""
    value = values[turn % len(values)]
    np.add(value, 1, out=value)


def twentieth(bench: Bench) -> list[Figure]:
    """One of 20 arrays of 500 MB changes, in turn."""
    names = arrays(bench, 20, 500)
    bench.shell.user_ns["change_one"] = change_one
    change = f"change_one(({', '.join(names)}), turn)"
    pairs = bench.boundaries(raw, names, change, sync=True)
    return [figure("twentieth", "500 MB, one array of 5 % changed, sync", "raw", 0.25, pairs)]


def unchanged(bench: Bench) -> list[Figure]:
    """Nothing of 100 MB changes."""
    names = arrays(bench, 10, 100)
    pairs = bench.boundaries(numpy_save, names, "pass", sync=True)
    return [figure("unchanged", "100 MB unchanged, sync", "np.save + fsync", 0.10, pairs)]


def small(bench: Bench) -> list[Figure]:
    """Twenty arrays of 1 KB and 200 small objects change."""
    names = [f"a{number}" for number in range(20)]
    for name in names:
        bench.shell.user_ns[name] = np.ones(128)
    bench.shell.user_ns["objects"] = [{"step": k, "name": f"object {k}", "loss": k / 7} for k in range(200)]
    change = each(names, "{} += 1") + "; objects[turn % 200]['step'] += 1"
    pairs = bench.boundaries(raw, [*names, "objects"], change, sync=True, rounds=bench.rounds * 4)
    what = "20 arrays of 1 KB + 200 small objects, sync"
    return [figure("small", what, "raw", 1.6, pairs, note="pickled beforehand for the raw write")]


def table_of(count: int) -> dict[str, Any]:
    """Return a dict of so many small objects."""
    return {f"key {k}": {"step": k, "pair": (k, k / 7)} for k in range(count)}


def objects(bench: Bench) -> list[Figure]:
    """One entry in a dict of 200,000 small objects changes."""
    ns = bench.shell.user_ns
    ns["table"] = table_of(bench.size(200_000))
    change = "table['key 0']['step'] += 1"
    what = "dict of 200,000 small objects"
    found = []
    for sync, goal, mode in ((False, 1.1, "background: stall"), (True, None, "sync")):
        pairs = bench.boundaries(pickled, ["table"], change, sync=sync)
        found.append(figure("objects", f"{what}, {mode}", "pickle.dumps", goal, pairs))
    return found


def resnet(scale: float) -> tuple[Any, Any]:
    """Return a model with the parameters of ResNet-50 and its Adam after one step: 483 tensors, 300 MB."""
    import torch

    def width(channels: int) -> int:
        return max(1, int(channels * scale**0.5))

    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7)]
    inside = 64
    for channels, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            shapes += [(channels, inside, 1, 1), (channels, channels, 3, 3), (4 * channels, channels, 1, 1)]
            if not block:
                shapes.append((4 * channels, inside, 1, 1))
            inside = 4 * channels
    parameters = []
    for shape in shapes:
        out, into, *kernel = shape
        parameters.append(torch.nn.Parameter(torch.randn(width(out), width(into), *kernel)))
        parameters += [torch.nn.Parameter(torch.ones(width(out))) for _ in range(2)]  # its batch norm
    parameters += [torch.nn.Parameter(torch.randn(1000, width(2048))), torch.nn.Parameter(torch.zeros(1000))]
    model = torch.nn.ParameterList(parameters)
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def tensors_of(model: Any, optimizer: Any) -> list[Any]:
    """Return all tensors of a model and its Adam."""
    states = [optimizer.state[one] for one in model]
    return [*(one.detach() for one in model), *(state[key] for state in states for key in ("exp_avg", "exp_avg_sq"))]


def raw_state(model: Any, optimizer: Any) -> tuple[float, float]:
    """Write all tensors plainly."""
    return raw(tensors_of(model, optimizer))


def increment(model: Any, optimizer: Any) -> None:
    """Change all tensors in place."""
    import torch

    with torch.no_grad():
        torch._foreach_add_(tensors_of(model, optimizer), 1e-3)


def training(bench: Bench) -> list[Figure]:
    """All of a ResNet-sized model and its Adam changes."""
    ns = bench.shell.user_ns
    ns["model"], ns["optimizer"] = resnet(bench.scale)
    ns["increment"] = increment
    count = len(tensors_of(ns["model"], ns["optimizer"]))
    pairs = bench.boundaries(raw_state, ["model", "optimizer"], "increment(model, optimizer)", sync=True)
    return [figure("training", f"ResNet-50 + Adam in {count} tensors, 300 MB, sync", "raw", 1.0, pairs)]


def frame_of(rows: int, texts: str) -> Any:
    """Return a table of ten mixed columns; its texts are kept as this dtype."""
    import pandas as pd

    rng = np.random.default_rng(0)
    words = np.array([f"word {k}" for k in range(1000)], object)
    columns = {f"f{k}": rng.normal(size=rows) for k in range(4)}
    columns |= {"id": np.arange(rows), "count": rng.integers(0, 100, rows), "flag": rng.random(rows) < 0.5}
    columns["when"] = np.datetime64("2026-01-01", "s") + np.arange(rows)
    columns["kind"] = pd.Categorical.from_codes(rng.integers(0, 5, rows), list("abcde"))
    columns["text"] = pd.Series(words[rng.integers(0, 1000, rows)], dtype=texts)
    return pd.DataFrame(columns)


def frame(bench: Bench) -> list[Figure]:
    """The numbers of a table of 1M x 10 change."""
    rows = bench.size(1_000_000, least=10)
    change = "frame[['f0', 'f1', 'f2', 'f3', 'count']] += 1"
    found = []
    what = "DataFrame 1M x 10 mixed, sync"
    if importlib.util.find_spec("pyarrow"):
        bench.shell.user_ns["frame"] = frame_of(rows, "string[pyarrow]")
        pairs = bench.boundaries(raw, ["frame"], change, sync=True)
        found.append(figure("frame", f"{what}, Arrow strings", "raw", 2.0, pairs))
    bench.shell.user_ns["frame"] = frame_of(rows, "object")
    pairs = bench.boundaries(pickled_durably, ["frame"], change, sync=True)
    found.append(figure("frame", f"{what}, object strings", "pickle 5 + fsync", 1.0, pairs))
    return found
