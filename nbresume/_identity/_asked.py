"""Objects that keep their content out of Python's sight: what they can be asked for."""

from __future__ import annotations

import contextvars
import sys
from typing import Any


def shown(value: Any) -> list[Any]:
    """Return what an object that can't be looked into tells of itself; nothing where it tells nothing."""
    if isinstance(value, contextvars.ContextVar):
        return [value.get(None)]
    shared, managers = sys.modules.get("multiprocessing.sharedctypes"), sys.modules.get("multiprocessing.managers")
    if shared is not None and isinstance(value, shared.SynchronizedBase):
        return [bytes(memoryview(value.get_obj()).cast("B"))]
    if managers is not None and isinstance(value, managers.BaseProxy):
        return _told(value._getvalue)  # noqa: SLF001  # there is no public word for it
    return _told(value.qsize) if callable(getattr(type(value), "qsize", None)) else []


def _told(ask: Any) -> list[Any]:
    try:
        return [ask()]
    except (OSError, EOFError, NotImplementedError):  # its server is gone, or the system doesn't count
        return []
