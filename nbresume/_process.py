"""What tells a process from every other that ever was, and whether it still runs."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import Any


def process_identity(pid: int | None = None) -> dict[str, Any]:
    """Tell a process from every other that ever was: node, boot, space of process numbers, pid and start time."""
    pid = pid or os.getpid()
    node = uuid.getnode()
    # Without a network card Python makes a number up, another one in each process; it says so in this bit.
    place = {"node": 0 if node >> 40 & 1 else node, "boot": _boot_id(), "space": _pid_space()}
    return {**place, "pid": pid, "start": _start_time(pid)}


def is_from_here(identity: dict[str, Any]) -> bool:
    """Whether a process was one of this machine since it was last started."""
    here = process_identity()
    return all(identity.get(key) == here[key] for key in ("node", "boot", "space"))


def is_running(identity: dict[str, Any]) -> bool:
    """Whether the process still runs here; a process of another machine or boot does not."""
    pid = identity.get("pid")
    if not isinstance(pid, int):
        return False
    there = process_identity(pid)
    return there["start"] != "" and all(identity.get(key) == there[key] for key in there)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_space() -> str:
    """Tell containers of one machine apart: each counts its processes by itself."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # not a path of the file system
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    if sys.platform != "linux":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        return "unknown"
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The command name may hold spaces and brackets: count the fields after the last one.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
