"""What a run stands on beside its code: versions, the class of the hardware, the commit of its folder."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .._identity import Part

_VECTORS = ("avx512f", "avx2", "avx", "sve", "asimd", "neon")
"""Widest first: sums are cut into lanes of this width, and so come out in other last bits."""
_GPU_USERS = frozenset({"torch", "cupy", "jax", "tensorflow", "numba"})
_NVIDIA = Path("/proc/driver/nvidia/gpus")
_PATIENCE = 2.0


def version_of(package: str) -> str:
    """Return the version of a package's distribution; empty where nobody tells."""
    told = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(told, str):
        return told
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    names = _distributions().get(package, [])
    return ", ".join(sorted(importlib.metadata.version(name) for name in set(names)))


@functools.cache
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


def surroundings(folder: Path) -> dict[str, Part]:
    """Tell what stops nothing, and is kept: the class of CPU and GPU, and the commit.

    Parameters
    ----------
    folder : Path
        Where the notebook stands.
    """
    found = {"cpu": cpu_class(), "gpu": gpu_class(), "commit": commit(folder)}
    return {name: Part(text, text) for name, text in found.items() if text}


def cpu_class() -> str:
    """Name the class of the CPU: machine, maker, and the width of its vectors."""
    facts = _cpu_facts()
    flags = set(facts.get("flags", facts.get("Features", "")).split())
    words = (platform.machine(), facts.get("vendor_id", ""), next((name for name in _VECTORS if name in flags), ""))
    return " ".join(word for word in words if word)


def _cpu_facts() -> dict[str, str]:
    """Read what Linux tells of the first processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def gpu_class() -> str:
    """Name the GPUs, where a library that uses one is imported; asking the library itself would wake them."""
    return ", ".join(sorted(set(_gpus()))) if _GPU_USERS & sys.modules.keys() else ""


def _gpus() -> Iterator[str]:
    with contextlib.suppress(OSError):
        for path in _NVIDIA.glob("*/information"):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                name, _, value = line.partition(":")
                if name.strip() == "Model":
                    yield value.strip()


def commit(folder: Path) -> str:
    """Name the commit that a folder stands at, and whether it has changes; empty outside of a repository."""
    if not any((one / ".git").exists() for one in (folder, *folder.parents)):
        return ""
    head = _git(folder, "rev-parse", "--short=12", "HEAD")
    return f"{head} with changes" if head and _git(folder, "status", "--porcelain", "-uno") else head


def _git(folder: Path, *words: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603  # fixed words, and no shell
            ["git", *words],  # noqa: S607  # the user's own git
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
        return done.stdout.strip()
    return ""
