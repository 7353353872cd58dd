"""What snapshots and restores cost, row by row against a goal: ratios to a plain thing in the same process.

Each row is taken in a process and a folder of its own, by real cells in a real shell. The two sides of a pair are taken
in turn, each as often first as the other; the median of the ratios of all pairs is told, with its quartiles, and in
the JSON also without the time in which either side waited for a processor. ``bash tests/run bench snapshots`` prints
the table and writes it to docs/benchmarks/snapshots.json, with a plot in docs/_static/.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import _long
import _report
import _workloads
from _measure import Bench, Figure, sync_option

DOCS = Path(__file__).parents[2] / "docs"
GIGABYTES = 12
"""Free space that the largest row needs, with room."""

ROWS: dict[str, Callable[[Bench], list[Figure]]] = {
    function.__name__: function
    for function in (
        _workloads.changed,
        _workloads.background,
        _workloads.scattered,
        _workloads.twentieth,
        _workloads.unchanged,
        _workloads.small,
        _workloads.objects,
        _workloads.training,
        _workloads.frame,
        _long.restore,
        _long.memory,
        _long.snapshots,
        _long.runs,
        _long.whole,
    )
}


def take(row: str, asked: argparse.Namespace) -> list[Figure]:
    """Take a row in a process of its own, which leaves nothing behind.

    Raises
    ------
    RuntimeError
        When it fails, with the last lines that it said.
    """
    with tempfile.TemporaryDirectory(prefix="nbresume-bench-", dir=asked.folder) as folder:
        out = Path(folder) / "figures.json"
        work = Path(folder) / "work"
        work.mkdir()
        command = [sys.executable, __file__, "--row", row, "--out", str(out)]
        command += ["--rounds", str(asked.rounds), "--scale", str(asked.scale)]
        # The stores of a benchmark do not belong into the list that a person's notebooks search.
        own = {"JUPYTER_DATA_DIR": f"{folder}/jupyter", "IPYTHONDIR": f"{folder}/ipython", "TMPDIR": folder}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NBRESUME_")}
        done = subprocess.run(command, cwd=work, env={**kept, **own}, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(" ".join(done.stderr.split())[-400:])
        sys.stderr.write(done.stderr)
        return [Figure(**one) for one in json.loads(out.read_text(encoding="utf-8"))]


def take_here(row: str, asked: argparse.Namespace) -> None:
    """Take a row in this process and write its figures."""
    found = ROWS[row](Bench(asked.rounds, asked.scale))
    names = [field.name for field in fields(Figure)]
    asked.out.write_text(json.dumps([{name: getattr(one, name) for name in names} for one in found]), encoding="utf-8")


def chosen(pattern: str) -> Iterator[str]:
    """Yield the rows that a pattern names, or several with commas between."""
    for row in ROWS:
        if any(fnmatch.fnmatch(row, part) for part in pattern.split(",")):
            yield row


def known(target: Path) -> dict[str, Any]:
    """Return what was measured before."""
    file = target / "benchmarks" / "snapshots.json"
    nothing = {"about": {}, "figures": [], "failed": {}, "peers": {}}
    return {**nothing, **json.loads(file.read_text(encoding="utf-8"))} if file.exists() else nothing


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11, help="pairs of each row (11)")
    parser.add_argument("--only", default="*", help=f"rows, as a pattern; others stay as they were: {', '.join(ROWS)}")
    parser.add_argument("--peers", action="store_true", help="measure other tools too, in an environment of their own")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full sizes, for a try (1.0)")
    parser.add_argument("--folder", default=None, help="on the disk to be measured (where temporary files are)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where table and plots are written (docs)")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Measure, print, write."""
    asked = options()
    if asked.row:
        take_here(asked.row, asked)
        return 0
    folder = Path(asked.folder or tempfile.gettempdir())
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < GIGABYTES * asked.scale * 1e9:
        print(
            f"{folder} has less than {GIGABYTES * asked.scale:.1f} GB free. Name another with --folder", file=sys.stderr
        )
        return 2
    found = known(asked.docs)
    found["about"] = {
        **_report.about(folder),
        "commits": sync_option() or "always before going on",
    }
    order = list(ROWS)
    print(_report.HEAD)
    for row in chosen(asked.only):
        found["figures"] = [one for one in found["figures"] if one["row"] != row]
        found["failed"].pop(row, None)
        try:
            figures = take(row, asked)
        except RuntimeError as error:
            figures, found["failed"][row] = [], str(error)
            print(f"{row:64} could not be taken: {error}", flush=True)
        for figure in figures:
            print(_report.line(figure), flush=True)
            found["figures"].append({**_report.rounded(figure), "scale": asked.scale})
        found["figures"].sort(key=lambda one: order.index(one["row"]))
        _report.write(asked.docs, found)  # after each: what was taken is not lost with what follows
    if asked.peers:
        import _peers

        found["peers"] = _peers.take_all(asked)
    _report.write(asked.docs, found)
    _report.draw(asked.docs, found)
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
