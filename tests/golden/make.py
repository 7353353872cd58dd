"""Makes the golden files of the present format: ``python tests/golden/make.py``.

They are made once for each format, and read by every later version; before a format is released they may be made anew.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

FOLDER = Path(__file__).parent
STATES = {
    "0001-00000000": {},
    "0001-00000003": {
        "weights": np.arange(12.0).reshape(3, 4),
        "counts": np.arange(5, dtype="i2"),
        "flag": np.array(True),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "history": [1.5, None, "größer", {"a/b": (1, 2)}],
    },
    "0012-00000345": {
        "heap": {"..": np.arange(20_000, dtype="u1"), "small": [np.arange(3), np.ones((2, 2))]},
        "shared": [np.arange(4.0)] * 2,
        "n": 345,
    },
}


def main() -> None:
    """Write one file for each state."""
    from _support import commit

    from nbresume._store import Store
    from nbresume._types import FORMAT

    target = FOLDER / f"format-{FORMAT}"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = Store(Path(folder)).create("golden", {})
        for name, state in STATES.items():
            attempt, seq = map(int, name.split("-"))
            path = commit(run, state, attempt=attempt, seq=seq, where=f"epoch {seq}")
            (target / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
