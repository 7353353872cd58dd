"""What a fingerprint costs: of arrays against a copy and a bare hash of the same bytes, of frames against pickle.

Each figure is taken in turn with the plain thing, in one process; the median of all turns is told. ``bash tests/run
bench`` prints the table.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xxhash

from nbresume._identity import fingerprint

Plain = Callable[[Any], Any]


def copied(value: np.ndarray) -> Any:
    """Copy an array."""
    return value.copy()


def hashed(value: np.ndarray) -> Any:
    """Hash the bytes of an array and nothing else."""
    return xxhash.xxh3_128_digest(np.ascontiguousarray(value).reshape(-1).view("u1").data)


def pickled(value: Any) -> Any:
    """Pickle a value."""
    return pickle.dumps(value, 5)


def cases(size: int) -> list[tuple[str, Any, Plain]]:
    """Return values of about so many bytes, each with what it is measured against."""
    rng = np.random.default_rng(0)
    array = rng.normal(size=size // 8)
    rows = size // 100
    words = np.array([f"word {k}" for k in range(1000)], object)[rng.integers(0, 1000, rows)]
    frame = pd.DataFrame({"a": rng.normal(size=rows), "b": np.arange(rows), "text": words})
    numbers = list(range(size // 50))
    return [
        ("array, against a copy", array, copied),
        ("array, against xxh3", array, hashed),
        ("strided array, against xxh3", array[::2], hashed),
        ("frame with texts, against pickle", frame, pickled),
        ("frame of categories, against pickle", frame.astype({"text": "category"}), pickled),
        ("list of numbers, against pickle", numbers, pickled),
        ("dict of lists, against pickle", {str(k): [k, k + 1, str(k)] for k in numbers[: len(numbers) // 8]}, pickled),
    ]


def seconds(act: Callable[[], Any]) -> float:
    """Time one call."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=200)
    asked = parser.parse_args()
    print(f"{'':38} {'plain':>9} {'ours':>9} ms {'ratio':>8} {'in detail':>10} ms")
    for what, value, plain in cases(asked.megabytes << 20):
        turns = [
            (
                seconds(lambda v=value, p=plain: p(v)),
                seconds(lambda v=value: fingerprint(v)),
                seconds(lambda v=value: fingerprint(v, in_detail=True)),
            )
            for _ in range(asked.rounds)
        ]
        one, ours, detailed = (statistics.median(side) * 1e3 for side in zip(*turns, strict=True))
        print(f"{what:38} {one:9.1f} {ours:9.1f}    {ours / one:8.2f} {detailed:10.1f}")


if __name__ == "__main__":
    main()
