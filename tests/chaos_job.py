"""The job that ckpt-chaos kills: a resumable cell, as a program runs it; ``chaos.py`` says how."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import sys
from pathlib import Path

CELL = """
for i in range(4):
    state += np.random.default_rng(i).standard_normal(len(state))
    state[::7] *= 0.5
    log.append(float(state.sum()))
"""


def main() -> None:
    """Run the cell in a folder, tell which snapshot it went on from, and leave the result beside the store."""
    from nbresume._magic._scratch import scratch_shell
    from nbresume._store import Store

    out, size, options = Path(sys.argv[1]), int(sys.argv[2]), " ".join(sys.argv[3:])
    if "CKPT_CHAOS_WATCH" in os.environ:  # it compares names from run to run
        numbers = itertools.count()
        secrets.token_hex = lambda count: f"{next(numbers):0{2 * count}x}"
    out.mkdir(exist_ok=True)
    os.environ["NBRESUME_INDEX"] = "0"
    shell = scratch_shell()
    shell.run_cell(f"import numpy as np; state = np.zeros({size}); log = []").raise_error()
    told: list[str] = []
    shell._nbresume_extension.host.tell = told.append
    magic = f"%%resumable job --vars state,log --every 1 --on-restart continue --store {out}/.nbresume"
    shell.run_cell(f"{magic} {options}\n{CELL}").raise_error()
    (run,) = Store(out / ".nbresume").named("job")
    begun = [event.facts.get("snapshot") for event in run.events() if event.kind == "resumed"]
    if any("already complete" in text for text in told):
        begun = [run.snapshots()[-1].ident]
    if begun and begun[-1]:
        print("resumed from step", int(begun[-1].partition("-")[2]))
    state = shell.user_ns["state"]
    temp = out / "result.tmp"
    temp.write_text(json.dumps([shell.user_ns["log"], state.tobytes().hex()[:4096], float(state.sum())]))
    temp.rename(out / "result.json")


if __name__ == "__main__":
    main()
