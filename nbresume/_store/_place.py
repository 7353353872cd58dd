"""On what kind of disk a store lies: some do not outlive the machine."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_FLEETING = {
    "tmpfs": "in memory (tmpfs): it is gone when this machine is switched off",
    "ramfs": "in memory (ramfs): it is gone when this machine is switched off",
    "overlay": "in the layer of a container (overlay): it is gone when this container is removed",
}


def fleeting(folder: Path) -> str:
    """Tell how a folder is lost with its machine; empty where it is not, or nobody can tell."""
    return "" if is_temporary(folder) else _FLEETING.get(kind_of_disk(folder), "")


def is_temporary(folder: Path) -> bool:
    """Whether a store lies among temporary files: whoever puts it there knows that it does not last."""
    return folder.is_relative_to(Path(tempfile.gettempdir()).resolve()) or folder.is_relative_to(tempfile.gettempdir())


def kind_of_disk(folder: Path) -> str:
    """Tell the kind of the file system that a folder lies on; empty where the system does not say."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    place, found = folder.resolve(), ("", "")
    for line in lines:
        fields = line.split(" ")
        mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        # Of two at one place the later one lies above.
        if place.is_relative_to(mount) and len(mount) >= len(found[0]):
            found = mount, fields[fields.index("-", 6) + 1]
    return found[1]
