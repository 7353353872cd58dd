"""The rows of the table that are not a boundary beside a plain write: restores, memory, many snapshots, whole runs."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _baselines import PLAIN, newest, raw, timed
from _measure import Bench, Figure, Timing, figure, sync_option
from _workloads import MB, arrays, change_one, each, factor_of

from nbresume._capture import Definitions, rebuild
from nbresume._session._returning import Held
from nbresume._store import RunFolder, Store

# ------------------------------------------------------------------ restore


def load(folder: RunFolder, names: dict[str, Any]) -> Any:
    """Find, verify and load the newest snapshot of a run: what a resume does before the cell turns live."""
    held = Held()
    folder.latest(held.take)
    assert held.loaded is not None
    return rebuild(held.loaded, definitions=Definitions(names), inputs=names)


def restore(bench: Bench) -> list[Figure]:
    """100 MB come back, from a first snapshot and from one after ten that were each changed a little."""
    found = []
    for deltas, after in ((0, ""), (10, ", after 10 deltas")):
        names = arrays(bench, 10, 100, row=512)
        count = len(bench.shell.user_ns["a0"])
        change = each(names, f"{{}}[(turn * 97) % {count}::10] += 1") if deltas else "pass"
        ns = bench.shell.user_ns
        loop = f"for turn in range({deltas}):\n    {change}"
        bench.run(f"%%resumable restored --vars {','.join(names)} --every 1 {sync_option()}\n{loop}")
        values = [ns[name] for name in names]
        rounds = [_three_ways(bench, values, turn) for turn in range(bench.rounds + 2)][2:]
        shutil.rmtree(".nbresume")
        for file in Path().glob("value*"):
            file.unlink()
        what = f"restore + verify of 100 MB{after}"
        for way, against, goal in ((0, "readv into preallocated", 1.6), (2, "np.load", 1.0)):
            found.append(figure("restore", what, against, goal, [(one[way], one[1]) for one in rounds]))
    return found


def _three_ways(bench: Bench, values: list[np.ndarray], turn: int) -> tuple[Timing, Timing, Timing]:
    folder = Store(Path(".nbresume")).find("restored")
    if not Path("values.bin").exists():
        Path("values.bin").write_bytes(b"".join(value.tobytes() for value in values))
        for number, value in enumerate(values):
            np.save(f"value{number}.npy", value)
    targets = [np.ones_like(value) for value in values]
    results: dict[str, Any] = {}

    def readv() -> None:
        file = os.open("values.bin", os.O_RDONLY)
        left = sum(target.nbytes for target in targets)
        parts = [memoryview(target.reshape(-1).view("u1")) for target in targets]
        while left:
            done = os.readv(file, parts)
            left -= done
            while parts and done >= len(parts[0]):
                done -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][done:]
        os.close(file)

    def ours() -> None:
        results["graph"] = load(folder, bench.shell.user_ns)

    def numpy_load() -> None:
        results["arrays"] = [np.load(f"value{number}.npy") for number in range(len(values))]

    ways = [readv, ours, numpy_load]
    timings: dict[int, Timing] = {}
    for place in [(turn + step) % 3 for step in range(3)]:
        timings[place] = timed(ways[place])
    graph = results["graph"]["names"]
    for number, value in enumerate(values):  # what was read fast must be what was written
        assert graph[f"a{number}"].tobytes() == value.tobytes() == results["arrays"][number].tobytes()
    return timings[0], timings[1], timings[2]


# ------------------------------------------------------------------ memory

MEMORY = """\
import sys
sys.path[:0] = {path!r}
import numpy as np
from _measure import Bench, sync_option

def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))

bench = Bench(1)
bench.shell.user_ns.update(x=np.ones(1000))
line = "%%resumable {{}} --vars x --every 1 " + sync_option()
loop = "\\nfor turn in range(6):\\n    x += 1"
bench.run(line.format("first") + loop)  # loads all that is loaded once
bench.shell.user_ns["x"] = np.ones({floats})
before = status("VmRSS")
bench.run(line.format("second") + loop)
print((status("VmHWM") - before) / bench.shell.user_ns["x"].nbytes)
"""


def memory(bench: Bench) -> list[Figure]:
    """One array of 200 MB is saved in a process of its own; its memory at most, above what it held before."""
    shares = []
    code = MEMORY.format(path=[str(Path(__file__).parent)], floats=bench.size(200 * MB // 8))
    for number in range(min(bench.rounds, 5)):
        Path(f"memory{number}").mkdir()
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=f"memory{number}", capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        shares.append(max(float(done.stdout.split()[-1]), 0.0))
        shutil.rmtree(f"memory{number}")
    pairs = [((1.0, 0.0), (share, 0.0)) for share in shares]
    return [figure("memory", "peak extra memory, one array of 200 MB, sync", "the array", 0.25, pairs)]


# ------------------------------------------------------------------ many

MANY = """\
gaps, plains, works = [], [], []
left, worked = clock(), process_time()
for turn in range({turns}):
    works.append(process_time() - worked)
    gaps.append(since(left)[0])
    if turn % 10 == 0:
        plains.append(raw(weights, table)[0])
    weights += 1
    if len(gaps) == 100:
        record([sorted(gaps)[50], sorted(plains)[5], sorted(works)[50]])
        gaps, plains, works = [], [], []
    left, worked = clock(), process_time()"""


def snapshots(bench: Bench) -> list[Figure]:
    """A run takes 10,000 snapshots; the last tenth is set beside the first, each by plain writes at its time."""
    blocks = bench.size(100, least=5)
    ns = bench.shell.user_ns
    ns.update(weights=np.ones(1000), table={"step": 0}, raw=raw, process_time=time.process_time)
    cell = MANY.format(turns=blocks * 100 + 1)
    ns["record"] = record
    bench.run(f"%%resumable many --vars weights,table --every 1 {sync_option()}\n{cell}")
    found = [json.loads(line) for line in (PLAIN / "blocks.txt").read_text(encoding="ascii").splitlines()]
    assert newest("many") >= blocks * 100
    tenth = max(2, blocks // 10)
    first, last = found[1 : 1 + tenth], found[-tenth:]  # the first block warms up
    over = [one[0] / one[1] for one in first], [one[0] / one[1] for one in last]
    pairs = [((one, 0.0), (other, 0.0)) for one, other in zip(*over, strict=True)]
    sides = [statistics.median(side) for side in over]
    work = [statistics.median(one[2] for one in side) * 1e3 for side in (first, last)]
    begun, ended = (f"{side:.2f} raw writes, {ms:.2f} ms of processor" for side, ms in zip(sides, work, strict=True))
    note = f"at first {begun}; at last {ended}"
    what = f"{blocks * 100:,} snapshots in one run, sync: boundary at the end"
    return [figure("snapshots", what, "boundary at the begin", 1.10, pairs, note=note)]


def record(medians: list[float]) -> None:
    """Keep what was measured outside of the state of the run, and of what nbresume follows."""
    with open(PLAIN / "blocks.txt", "a", encoding="ascii") as file:
        file.write(json.dumps(medians) + "\n")


def runs(bench: Bench) -> list[Figure]:
    """A store holds 1,000 runs; ``nbresume runs`` lists them."""
    count = bench.size(1_000, least=5)
    bench.shell.user_ns["x"] = np.ones(10)
    for number in range(count):
        bench.run(f"%%resumable run{number} --vars x --every 1h\nfor turn in range(2):\n    x += 1")
    Path("empty").mkdir()
    pairs = []
    for _ in range(min(bench.rounds, 7) + 1):
        nothing = timed(lambda: _list_runs("empty", 0))
        pairs.append((nothing, timed(lambda: _list_runs(".nbresume", count))))
    ours = [((1.0, 0.0), one) for _, one in pairs[1:]]
    start = statistics.median(plain[0] for plain, _ in pairs[1:])
    note = f"the whole command; {start:.2f} s of it with an empty store"
    return [figure("runs", f"{count:,} runs in one store: nbresume runs", "1 s", 0.5, ours, unit="s", note=note)]


def _list_runs(store: str, count: int) -> None:
    code = "from nbresume._cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, "runs", "--store", store]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("run") >= count


# ------------------------------------------------------------------ a whole run

WHOLE = """\
for turn in range({turns}):
    multiply(factor, {parts})
    change_one(({names}), turn)"""


def multiply(factor: np.ndarray, parts: int) -> None:
    """Multiply matrices so many times."""
    for _ in range(parts):
        np.matmul(factor, factor)


def whole(bench: Bench) -> list[Figure]:
    """A run of 20 ms iterations that changes a tenth of its 100 MB in each, with ``--every auto`` and without nbresume."""
    names = arrays(bench, 10, 100)
    ns = bench.shell.user_ns
    ns.update(factor=factor_of(), multiply=multiply, change_one=change_one)
    values = tuple(ns[name] for name in names)
    multiply(ns["factor"], 100)  # so that the processor runs as fast as it will in the loop
    one = statistics.median(timed(lambda: multiply(ns["factor"], 10))[0] / 10 for _ in range(30))
    change = statistics.median(timed(lambda turn=turn: change_one(values, turn))[0] for turn in range(30))
    parts = max(1, round((0.020 - change) / one))
    turns = bench.size(1_000, least=3)
    cell = WHOLE.format(turns=turns, parts=parts, names=", ".join(names))
    pairs = []
    taken = 0
    for number in range(max(2, bench.rounds // 3) + 1):
        line = f"%%resumable whole{number} --vars {','.join(names)} --every auto\n"
        ways = [lambda: bench.run(cell), lambda line=line: bench.run(line + cell)]
        order = (0, 1) if number % 2 else (1, 0)
        timings = {place: timed(ways[place]) for place in order}
        pairs.append((timings[0], timings[1]))
        taken = newest(f"whole{number}") + 1
        shutil.rmtree(".nbresume")
    pairs = pairs[1:]
    seconds = statistics.median(plain[0] for plain, _ in pairs)
    note = f"{taken} snapshots in {turns:,} iterations of {seconds / turns * 1e3:.0f} ms"
    what = "whole run, 20 ms iterations, 100 MB state, auto"
    return [figure("whole", what, "the plain loop", 1.05, pairs, note=note)]
