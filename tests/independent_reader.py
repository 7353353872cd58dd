"""Reads a snapshot without nbresume: the recipe of docs/reference/file-format.md, with h5py, numpy and xxhash alone."""

import hashlib
import io
import json
import pathlib
import sys

import h5py
import numpy as np
import xxhash


def read(path):
    """Return where the run stands, and the arrays of its top-level variables; a ValueError where a file has changed."""
    image, seal, own = contents(pathlib.Path(path))
    body, size = seal.get("image", (seal["body"], seal["size"]))
    offset, count = seal["digests"]
    for number, at in zip(range(count), range(body, size, 1 << 20), strict=True):
        check(image[at : min(at + (1 << 20), size)], own[offset + 16 * number :][:16].hex(), f"slice {number}")
    for name, data in (("meta", own), ("objects", image), ("tables", image)):
        offset, length, digest = seal[name]
        if hashlib.sha256(data[offset : offset + length]).hexdigest() != digest:
            raise ValueError(f"{path}: {name} has changed")
    with h5py.File(io.BytesIO(image), "r") as file:
        arrays = {name: np.asarray(one[()]) for name, one in file.get("vars", {}).items()}
    offset, length, _ = seal["meta"]
    return json.loads(own[offset : offset + length]), arrays


def contents(path):
    """Return the bytes of the whole file at the bottom with all that was added laid over it; the seal; the own bytes."""
    own = path.read_bytes()
    first, digest, facts = own[:4096].split(b"\n")[:3]
    check(own[len(first) + len(digest) + 2 : 4096], digest.decode(), "the first page")
    seal = json.loads(facts)
    if first != b"nbresume snapshot, format 1" or len(own) != seal["size"]:
        raise ValueError(f"{path} is no whole snapshot of format 1")
    check(own[4096 : seal["body"]], seal["head"], "the head")
    if "base" not in seal:
        return bytearray(own), seal, own
    check(own[seal["body"] :], seal["delta"], "what is added")
    name, bound = seal["base"]
    image, _, below = contents(path.with_name(f"{name}.h5"))
    check(below[:4096], bound, "the file below")
    (offset, count), at = seal["runs"], seal["pieces"]
    for start, length in np.frombuffer(own, "<u8", 2 * count, offset).reshape(-1, 2).tolist():
        image[start : start + length] = own[at : at + length]
        at += length
    return image, seal, own


def check(data, digest, what):
    if xxhash.xxh3_128_hexdigest(bytes(data)) != digest:
        raise ValueError(f"{what} has changed")


if __name__ == "__main__":
    print(read(sys.argv[1])[0]["cursor"])
    print(*(f"{name}: {one.dtype} {one.shape}" for name, one in read(sys.argv[1])[1].items()), sep="\n")
