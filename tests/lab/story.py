"""The notebook that the tests of front ends run, and what it comes to."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from labdrive import Lab

LOAD, SETUP, TRAIN, DIGEST, WORD, PANEL, SHOW = range(7)
CELLS = [
    "%load_ext nbresume",
    """\
import hashlib
from pathlib import Path
from time import sleep

import numpy as np

rng = np.random.default_rng(7)
inputs = rng.normal(size=(640, 8))
target = inputs @ rng.normal(size=8)


def think(seconds):
    if not Path("go").exists():
        sleep(seconds)""",
    """\
%%resumable train --vars weights,losses
weights, losses = np.zeros(8), []
for epoch in range(30):
    for batch in rng.permutation(640).reshape(10, 64):
        error = inputs[batch] @ weights - target[batch]
        weights -= 0.02 * error @ inputs[batch] / len(batch)
        think(0.05)
    losses.append(float(np.mean(error**2)))
    print(f"epoch {epoch + 1}: loss {losses[-1]:.6f}")""",
    "hashlib.sha256(weights.tobytes() + repr(losses).encode()).hexdigest()",
    "%nbresume supersede train",
    "%nbresume panel",
    "%nbresume show train",
]


def plain_digest() -> str:
    """Return what the cells come to when nobody interrupts them, without nbresume and without the waiting."""
    names: dict[str, Any] = {"print": lambda *_words: None}
    exec(CELLS[SETUP], names)
    names["think"] = lambda _seconds: None
    exec(CELLS[TRAIN].partition("\n")[2], names)
    return str(eval(CELLS[DIGEST], names))


def go(lab: Lab) -> None:
    """Let the training think no longer: what is left of it takes no time."""
    (lab.folder / "go").touch()


def results(lab: Lab) -> str:
    """Return what the cells came to."""
    lab.run(DIGEST)
    return lab.output(DIGEST).locator(".jp-OutputArea-output").inner_text().strip().strip("'")


def runs(lab: Lab) -> list[Path]:
    """Return the folders of the runs, oldest first."""
    found = (lab.folder / ".nbresume").glob("train-*")
    return sorted(found, key=lambda run: int(json.loads((run / "run.json").read_text())["number"]))


def journal(run: Path) -> list[dict[str, Any]]:
    """Return the events of a run."""
    return [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]


def contents(run: Path) -> dict[str, str]:
    """Digest of every file of a run that holds results: the journal is told what happens to it."""
    told = {"journal.jsonl", "word", "owner", "lock"}
    files = [path for path in run.rglob("*") if path.is_file() and path.name not in told]
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
