"""What a process carries besides names and random streams, and what a body may have set for itself."""

from __future__ import annotations

import decimal
import os
import sys
from typing import Any

import numpy as np


def ambient_state() -> dict[str, Any]:
    """Return the state as picklable values."""
    state: dict[str, Any] = {
        "cwd": _cwd(),
        "environ": dict(os.environ),
        "decimal": decimal.getcontext().copy(),
        "numpy errors": np.geterr(),
        "numpy print": np.get_printoptions(),
        "recursion": sys.getrecursionlimit(),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = {
            "dtype": torch.get_default_dtype(),
            "grad": torch.is_grad_enabled(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
        }
    return state


def put_ambient(state: dict[str, Any], launch: dict[str, Any], here: dict[str, Any]) -> None:
    """Put back what the run had changed since its launch; the rest stays as this process found it.

    Parameters
    ----------
    state, launch, here : dict
        As it was at the snapshot, at the launch of the run, and when this attempt began.
    """
    cwd = state["cwd"] if state["cwd"] != launch["cwd"] else here["cwd"]
    if os.path.isdir(cwd):  # noqa: PTH112  # a str is what we keep
        os.chdir(cwd)
    for name in state["environ"].keys() | launch["environ"].keys() | here["environ"].keys():
        changed = state["environ"].get(name) != launch["environ"].get(name)
        value = (state if changed else here)["environ"].get(name)
        if value is None:
            os.environ.pop(name, None)
        elif os.environ.get(name) != value:
            os.environ[name] = value
    decimal.setcontext(state["decimal"].copy())
    np.seterr(**state["numpy errors"])
    np.set_printoptions(**{k: v for k, v in state["numpy print"].items() if k != "override_repr"})
    sys.setrecursionlimit(state["recursion"] if state["recursion"] != launch["recursion"] else here["recursion"])
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in state:
        _put_torch(torch, state["torch"])


def _put_torch(torch: Any, state: dict[str, Any]) -> None:
    """Set what differs only: asking for deterministic algorithms costs a second of imports, even for what is set."""
    if torch.get_default_dtype() != state["dtype"]:
        torch.set_default_dtype(state["dtype"])
    if torch.is_grad_enabled() != state["grad"]:
        torch.set_grad_enabled(state["grad"])
    if torch.are_deterministic_algorithms_enabled() != state["deterministic"]:
        torch.use_deterministic_algorithms(state["deterministic"])


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:  # the body removed the folder it stands in
        return ""
