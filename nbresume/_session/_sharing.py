"""Whether values have a mutable object in common."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

_STATELESS = (np.dtype, np.generic, enum.Enum, type, types.FunctionType, types.ModuleType)


def share(one: dict[int, Any], other: dict[int, Any]) -> bool:
    """Whether two graphs have a mutable object in common."""
    small, large = sorted((one, other), key=len)
    return any(shares(value, large) for value in small.values())


def shares(value: Any, met: Mapping[int, Any]) -> bool:
    """Whether a value is one of the mutable objects of a graph."""
    return id(value) in met and not isinstance(value, _STATELESS) and not _is_dtype(value)


def is_hidden(name: str) -> bool:
    """Whether a name of the notebook is the shell's own."""
    return name.startswith("_") or name in ("In", "Out", "exit", "quit", "open", "get_ipython")


def _is_dtype(value: Any) -> bool:
    return type(value).__name__.endswith(("Dtype", "DType", "dtype", "device"))
