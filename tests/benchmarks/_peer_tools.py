"""One other tool keeps the same state as often as asked, beside a raw write: run in the tools' own environment.

The last line printed is JSON. A tool writes into a new folder; all that it wrote is then fsynced, on the tool's
account, because none of them does so and a snapshot that a power cut takes back is none.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from _baselines import raw, sync_folder

MB = 1_000_000
Wait = Callable[[], Any]


def arrays(scale: float) -> dict[str, Any]:
    """Return 100 MB in ten arrays."""
    floats = max(10, int(100 * MB * scale / 80))
    return {f"a{number}": np.random.default_rng(number).normal(size=floats) for number in range(10)}


def tensors(scale: float) -> dict[str, Any]:
    """Return 300 MB in 500 tensors."""
    import torch

    numbers = max(10, int(300 * MB * scale / 2000))
    return {f"t{number}": torch.randn(numbers) for number in range(500)}


def objects(scale: float) -> dict[str, Any]:
    """Return a dict of 200,000 small objects."""
    return {f"key {k}": {"step": k, "pair": (k, k / 7)} for k in range(max(10, int(200_000 * scale)))}


def change(work: str, state: dict[str, Any]) -> None:
    """Change all numbers of the state, or one object."""
    if work == "objects":
        state["key 0"]["step"] += 1
        return
    for value in state.values():
        value[...] += 1


def views(state: dict[str, Any]) -> dict[str, Any]:
    """Return tensors as arrays on the same memory."""
    return {name: value.numpy() if hasattr(value, "numpy") else value for name, value in state.items()}


# ------------------------------------------------------------------ the tools: each returns what to wait for, or None


def np_savez(state: dict[str, Any], folder: Path) -> None:
    np.savez(folder / "state.npz", **views(state))


def pickle5(state: dict[str, Any], folder: Path) -> None:
    with (folder / "state.pickle").open("wb") as file:
        pickle.dump(state, file, 5)


def dill(state: dict[str, Any], folder: Path) -> None:
    import dill as tool

    with (folder / "state.dill").open("wb") as file:
        tool.dump(state, file)


def joblib(state: dict[str, Any], folder: Path) -> None:
    import joblib as tool

    tool.dump(state, folder / "state.joblib")


def torch_save(state: dict[str, Any], folder: Path) -> None:
    import torch

    made = {name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in state.items()}
    torch.save(made, folder / "state.pt")


def safetensors(state: dict[str, Any], folder: Path) -> None:
    from safetensors.numpy import save_file

    save_file(views(state), folder / "state.safetensors")


def zarr(state: dict[str, Any], folder: Path) -> None:
    import zarr as tool

    group = tool.open_group(folder / "state.zarr", mode="w")
    for name, value in views(state).items():
        group.create_array(name, data=value, chunks=value.shape, compressors=None)


def _orbax(kind: str) -> Any:
    import orbax.checkpoint as tool

    if kind not in _kept:
        handler = tool.PyTreeCheckpointHandler()
        _kept[kind] = tool.Checkpointer(handler) if kind == "sync" else tool.AsyncCheckpointer(handler)
    return _kept[kind]


def orbax(state: dict[str, Any], folder: Path) -> None:
    _orbax("sync").save(folder.resolve() / "state", views(state))


def orbax_async(state: dict[str, Any], folder: Path) -> Wait:
    tool = _orbax("async")
    tool.save(folder.resolve() / "state", views(state))
    return tool.wait_until_finished


def dcp_async(state: dict[str, Any], folder: Path) -> Wait:
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as tool

    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    made = {name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in state.items()}
    return tool.async_save(made, checkpoint_id=str(folder / "state")).result


def kishu(state: dict[str, Any], folder: Path) -> None:
    """Commit after a cell; the database grows, as it does in use."""
    del folder
    if "kishu" not in _kept:
        os.environ.update(ENV_KISHU_TEST_MODE="1", KISHU_PATH_ROOT=str(Path.cwd()))
        import nbformat
        from IPython.core.interactiveshell import InteractiveShell
        from kishu.jupyterint import KishuForJupyter
        from kishu.notebook_id import NotebookId

        notebook = Path("notebook.ipynb").resolve()
        nbformat.write(nbformat.v4.new_notebook(), notebook)
        shell = InteractiveShell.instance()
        one = KishuForJupyter(NotebookId("bench", notebook, "none"), shell)
        one.install_kishu_hooks()
        shell.user_ns.update(state if len(state) <= 1000 else {"state": state})
        _kept["kishu"] = shell
    shell = _kept["kishu"]
    # The change was made before, as by a cell: a cell that names the variables makes Kishu look at them.
    names = list(state) if len(state) <= 1000 else ["state"]
    shell.run_cell("; ".join([*names, "None"])).raise_error()
    sync_tree(Path())


_kept: dict[str, Any] = {}

ARRAYS = ("arrays", "tensors")
TOOLS: dict[str, tuple[Callable[..., Any], str, tuple[str, ...]]] = {
    "np.savez": (np_savez, "numpy", ARRAYS),
    "pickle 5": (pickle5, "", (*ARRAYS, "objects")),
    "dill": (dill, "dill", (*ARRAYS, "objects")),
    "joblib": (joblib, "joblib", (*ARRAYS, "objects")),
    "torch.save": (torch_save, "torch", ARRAYS),
    "safetensors": (safetensors, "safetensors", ARRAYS),
    "zarr": (zarr, "zarr", ARRAYS),
    "orbax": (orbax, "orbax-checkpoint", ARRAYS),
    "orbax async": (orbax_async, "orbax-checkpoint", ARRAYS),
    "torch DCP async": (dcp_async, "torch", ARRAYS),
    "kishu": (kishu, "kishu", ("arrays", "objects")),
}
"""Each with its package and the works that it is made for."""


def sync_tree(folder: Path) -> None:
    """Make all files below a folder last."""
    for root, _, names in os.walk(folder):
        for name in names:
            file = os.open(os.path.join(root, name), os.O_RDONLY)
            os.fsync(file)
            os.close(file)
        sync_folder(Path(root))


def measure(tool: str, work: str, rounds: int, scale: float) -> dict[str, Any]:
    """Take one tool at one work."""
    act, package, _ = TOOLS[tool]
    state = {"arrays": arrays, "tensors": tensors, "objects": objects}[work](scale)
    stalls, wholes = [], []
    for turn in range(rounds + 1):
        change(work, state)

        def ours(number: int = turn) -> tuple[float, float]:
            folder = Path(f"turn{number}")
            folder.mkdir()
            began = time.perf_counter()
            wait = act(state, folder)
            stall = time.perf_counter() - began
            if wait is not None:
                wait()
            sync_tree(folder)
            whole = time.perf_counter() - began
            shutil.rmtree(folder)
            return (whole if wait is None else stall), whole

        plain = [] if turn % 2 else [raw(*parts(work, state))[0]]
        stall, whole = ours()
        plain += [raw(*parts(work, state))[0]] if turn % 2 else []
        if turn:
            stalls.append(stall / plain[0])
            wholes.append(whole / plain[0])
    low, middle, high = statistics.quantiles(stalls, n=4, method="inclusive")
    return {
        "tool": tool,
        "work": work,
        "version": version(package) if package else "",
        "result": round(middle, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "whole": round(statistics.median(wholes), 3) if "async" in tool else None,
        "pairs": rounds,
        "note": "",
    }


def parts(work: str, state: dict[str, Any]) -> tuple[Any, ...]:
    """Return the values that a raw write writes; objects are pickled for it outside the clock."""
    return (state,) if work == "objects" else tuple(state.values())


def main() -> None:
    """Measure one tool and print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("work", choices=("arrays", "tensors", "objects"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    asked = parser.parse_args()
    found = measure(asked.tool, asked.work, asked.rounds, asked.scale)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
