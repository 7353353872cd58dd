"""Other tools at the same work, in an environment of their own."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import _peer_tools
import _workloads
from _baselines import raw
from _measure import Bench, figure, sync_option

from nbresume import __version__

PACKAGES = ("numpy", "dill joblib", "torch==2.13.0", "safetensors", "'zarr>=3'", "orbax-checkpoint jax", "kishu")
"""What pip is asked for, one after the other, so that one that can't be had does not hinder the next."""

WORKS = ("arrays", "tensors", "objects")
SECONDS = 600
"""Longest that one tool may take at one work."""


def environment(folder: Path) -> tuple[Path, dict[str, str]]:
    """Make the environment, or use the one that NBRESUME_PEERS_VENV names.

    Returns
    -------
    python : Path
        Its interpreter.
    failed : dict
        What could not be installed, and pip's last word.
    """
    there = os.environ.get("NBRESUME_PEERS_VENV")
    target = Path(there) if there else folder / "peers"
    python = target / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
    pip = [str(python), "-m", "pip", "install", "-q"]
    failed = {}
    for asked in ("'pip>=25.1'", *PACKAGES):
        print(f"pip install {asked}", flush=True)
        done = subprocess.run([*pip, "--upgrade", *shlex.split(asked)] if "pip" in asked else [*pip, *shlex.split(asked)],
                              capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode:
            failed[asked] = (done.stderr.strip().splitlines() or ["no word from pip"])[-1]
    return python, failed


def take_all(asked: argparse.Namespace) -> dict[str, Any]:
    """Take every tool at every work, each in a process and a folder of its own, and nbresume in the same way."""
    figures: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="nbresume-peers-", dir=asked.folder) as name:
        folder = Path(name)
        python, failed = environment(folder)
        missing.update(failed)
        tools = Path(_peer_tools.__file__)
        more = ["--rounds", str(max(2, min(asked.rounds, 7))), "--scale", str(asked.scale)]
        jobs = [(tool, work) for work in WORKS for tool, (_, _, works) in _peer_tools.TOOLS.items() if work in works]
        for work in WORKS:
            for mode in ("sync", "background"):
                found = _take(folder, [sys.executable, __file__, work, mode, *more])
                _tell(f"nbresume, {mode}", work, found, figures, missing)
            for tool in (tool for tool, at in jobs if at == work):
                _tell(tool, work, _take(folder, [str(python), str(tools), tool, work, *more]), figures, missing)
    return {"figures": figures, "missing": missing, "scale": asked.scale}


def _take(folder: Path, command: list[str]) -> dict[str, Any] | str:
    """Run a measurement; returns its figure, or why there is none."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        own = {"JUPYTER_DATA_DIR": f"{work}/jupyter", "IPYTHONDIR": f"{work}/ipython", "HOME": work}
        try:
            done = subprocess.run(
                command,
                cwd=work,
                env={**os.environ, **own},
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"not done after {SECONDS} s"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:300]
        figure_of: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return figure_of


def _tell(
    tool: str, work: str, found: dict[str, Any] | str, figures: list[dict[str, Any]], missing: dict[str, str]
) -> None:
    if isinstance(found, str):
        missing[f"{tool}, {work}"] = found
        print(f"{work:10} {tool:24} missing: {found}", flush=True)
        return
    figures.append(found)
    whole = f", on the disk {found['whole']:.2f} x" if found["whole"] is not None else ""
    spread = f"{found['result']:8.2f} x  ({found['low']:.2f} to {found['high']:.2f})"
    print(f"{work:10} {tool:24} {spread}{whole}", flush=True)


def take_ours(work: str, mode: str, rounds: int, scale: float) -> dict[str, Any]:
    """Take nbresume at the work of the other tools."""
    bench = Bench(rounds, scale)
    state = getattr(_peer_tools, work)(scale)
    if work == "arrays":
        bench.shell.user_ns.update(state)
        names, change = list(state), _workloads.each(list(state), "{} += 1")
    else:
        bench.shell.user_ns.update(state=state, change=_peer_tools.change)
        names, change = ["state"], f"change({work!r}, state)"
    plain = raw_dict if work == "tensors" else raw
    one = figure("", "", "", None, bench.boundaries(plain, names, change, sync=mode == "sync"))
    behind = mode == "background" and bool(sync_option())
    return {
        "tool": f"nbresume, {mode}",
        "work": work,
        "version": __version__,
        "result": round(one.result, 3),
        "low": round(one.low, 3),
        "high": round(one.high, 3),
        "whole": None,
        "pairs": one.pairs,
        "note": "what the loop waits; the commit follows behind it" if behind else "",
    }


def raw_dict(state: dict[str, Any]) -> tuple[float, float]:
    """Write the values of a dict plainly."""
    return raw(*state.values())


def main() -> None:
    """Measure nbresume at one work and print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("mode", choices=("sync", "background"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    asked = parser.parse_args()
    sys.stdout.write(json.dumps(take_ours(asked.work, asked.mode, asked.rounds, asked.scale)) + "\n")


if __name__ == "__main__":
    main()
