"""Reads a snapshot without nbresume: the recipe of docs/reference/format.md, with h5py, numpy and xxhash alone.

``python tests/independent_reader.py FILE`` tells where the run stands and which arrays there are, all of it checked.
"""

import hashlib
import json
import sys

import h5py
import numpy as np
import xxhash

SLICE = 1 << 20


def read(path):
    """Return where the run stands, and the arrays of its top-level variables; a ValueError where the file has changed."""
    with open(path, "rb") as file:
        data = file.read()
    first, digest, facts = data[:4096].split(b"\n")[:3]
    if not first.startswith(b"nbresume snapshot, format 1"):
        raise ValueError(f"{path} is no snapshot of format 1")
    check(data[len(first) + len(digest) + 2 : 4096], digest.decode(), "the first page")
    seal = json.loads(facts)
    if len(data) != seal["size"]:
        raise ValueError(f"{path} has {len(data)} bytes instead of {seal['size']}")
    check(data[4096 : seal["body"]], seal["head"], "the head")
    offset, count = seal["digests"]
    for number in range(count):
        at = seal["body"] + number * SLICE
        check(data[at : at + SLICE], data[offset + 16 * number : offset + 16 * number + 16].hex(), f"slice {number}")
    for part in ("meta", "objects", "tables"):
        offset, size, sha = seal[part]
        if hashlib.sha256(data[offset : offset + size]).hexdigest() != sha:
            raise ValueError(f"{path}: {part} has changed")
    with h5py.File(path, "r") as file:
        meta = json.loads(file["nbresume/meta"][()].tobytes())
        arrays = {name: np.asarray(one[()]) for name, one in file.get("vars", {}).items()}
    return meta, arrays


def check(data, digest, what):
    """Compare bytes with their digest: XXH3, 128 bits."""
    if xxhash.xxh3_128_hexdigest(data) != digest:
        raise ValueError(f"{what} has changed")


if __name__ == "__main__":
    meta, arrays = read(sys.argv[1])
    print(json.dumps({key: meta[key] for key in ("run", "attempt", "seq", "cursor") if key in meta}))
    for name, array in arrays.items():
        print(f"{name}: {array.dtype} {array.shape}")
