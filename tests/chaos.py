"""ckpt-chaos, a program of others that kills a job at each change of a file, against a resumable cell.

``bash tests/run chaos [--max-points N]``. All verdicts have to be PASS; LOST_WORK counts as a failure. It takes the last
number in a name for the step, which is the 5 of ``0001-00000003.h5``: it is given the names without their ending.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from ckpt_chaos import byo, cli

JOB = Path(__file__).with_name("chaos_job.py")
FORMS = {
    "small, behind the loop": ["500", "--keep", "99"],
    "small, --sync": ["500", "--sync", "--keep", "99"],
    "large, --sync": ["150000", "--sync", "--keep", "99"],
    "large, over older ones": ["150000", "--sync", "--keep", "2"],
}
"""Snapshots that are pruned ckpt-chaos can't follow: in the last form it looks for all but LOST_WORK."""


def without_ending(pattern: str, out: Path) -> dict:
    """Find snapshots as ckpt-chaos does it, with the names that it can read."""
    found = {}
    for hit in Path(out).glob(pattern.replace("{out}/", "")):
        found[hit.stem] = (int(hit.stem.partition("-")[2]), byo._signature(hit))
    return found


def main() -> int:
    """Kill each form of the job; returns how many of them had a verdict other than PASS."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--max-points", default="160")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--modes", default="before,torn,term,unsynced")
    options = parser.parse_args()
    byo._snapshot = without_ending
    failed = 0
    for form, words in FORMS.items():
        print(f"== {form}", flush=True)
        with tempfile.TemporaryDirectory(prefix="nbresume-") as work:
            failed += cli.main(
                [
                    *("run", "--work", f"{work}/runs", "--max-points", options.max_points, "--jobs", options.jobs),
                    *("--modes", options.modes, "--fail-on", "HARD_FAIL,SILENT_DIVERGENCE,LOST_WORK,CONTROL_FAIL"),
                    *("--checkpoint-glob", "{out}/.nbresume/*/snapshots/*.h5"),
                    *("--step-regex", r"resumed from step (\d+)", "--result-file", "{out}/result.json"),
                    *("--", sys.executable, str(JOB), "{out}", *words),
                ]
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
