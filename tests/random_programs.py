"""Many random programs, of other seeds each time, in as many processes as there are processors.

    python tests/random_programs.py [--programs 2000] [--seed N] [--jobs N]

A difference ends with status 1 and the smallest program that shows it; ``--seed`` runs the same programs again.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

TEST = Path(__file__).parent / "test_random.py"
BATCH = 50
"""Programs of one seed: within one, Hypothesis varies what it tried before; other seeds are other programs."""


def start(seed: int, programs: int) -> subprocess.Popen[str]:
    words = ["-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", "-s", str(TEST)]
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *words],
        env={**os.environ, "NBRESUME_PROGRAMS": str(programs)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--programs", type=int, default=2000)
    words.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    words.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = words.parse_args()
    print(f"{asked.programs} programs from seed {asked.seed}", flush=True)
    seeds = [asked.seed + place for place in range(-(-asked.programs // BATCH))]
    failed = 0
    for place in range(0, len(seeds), asked.jobs):
        running = [(seed, start(seed, BATCH)) for seed in seeds[place : place + asked.jobs]]
        for seed, process in running:
            told, _ = process.communicate()
            print(f"seed {seed}: {told.partition('}')[0].strip('{')}", flush=True)
            if process.returncode:
                failed += 1
                print(told, flush=True)
    print(f"{len(seeds) * BATCH} programs, {failed} of {len(seeds)} seeds with a difference")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
