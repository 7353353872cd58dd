"""Makes the golden files of the present format: ``python tests/golden/make.py``.

They are made once for each format, and read by every later version; before a format is released they may be made anew.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

FOLDER = Path(__file__).parent


def grid(step: int) -> np.ndarray:
    """Return an array of which another row has changed with each step."""
    found = np.arange(64 * 512.0).reshape(64, 512)
    for row in range(step + 1):
        found[row * 9] = -row
    return found


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
GRIDS = {f"0013-{step:08d}": {"grid": grid(step), "step": step} for step in range(3)}
"""Three snapshots in a row, of which the later ones are built on the first."""
STATES |= GRIDS
KEY = "the key that golden files are signed with"


def main() -> None:
    """Write one file for each state."""
    from _support import commit

    from nbresume._capture import Definitions, capture
    from nbresume._store import Store, _writer
    from nbresume._types import FORMAT

    os.environ["NBRESUME_KEY"] = KEY
    os.environ.pop("NBRESUME_KEY_FILE", None)
    _writer._LARGE = 1 << 16  # deltas of a little file
    target = FOLDER / f"format-{FORMAT}"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = Store(Path(folder)).create("golden", {})
        writer = run.writer()
        writer._is_sparse = True
        for name, state in STATES.items():
            attempt, seq = map(int, name.split("-"))
            if name in GRIDS:
                found = capture({"names": state}, definitions=Definitions({}), inputs={}, places=state)
                path = run.snapshot_path(attempt, seq)
                meta = {"where": f"epoch {seq}"}
                writer.commit(writer.stage(path, meta, found.stream, found.tables, found.blocks))
            else:
                path = commit(run, state, attempt=attempt, seq=seq, where=f"epoch {seq}")
            (target / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
