"""What a process carries besides names and random streams, and what a body may have set for itself.

Put back is what the run has changed since its launch; all else stays as this process found it. Each source is a
mapping of its settings, so that one that changed does not drag along the others.
"""

from __future__ import annotations

import decimal
import gc
import locale
import os
import socket
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Settings = dict[str, Any]
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class _Source:
    """Settings of one module; looked at only where it is imported."""

    module: str
    look: Callable[[], Settings]
    put: Callable[[str, Any], None]


def ambient_state() -> dict[str, Settings]:
    """Return the state as picklable values, by source."""
    return {name: source.look() for name, source in _SOURCES.items() if source.module in sys.modules}


def put_ambient(state: Mapping[str, Settings], launch: Mapping[str, Settings], here: Mapping[str, Settings]) -> None:
    """Put back what the run had changed since its launch; the rest stays as this process found it.

    Parameters
    ----------
    state, launch, here : mapping
        As it was at the snapshot, at the launch of the run, and when this attempt began.
    """
    for source, now in ambient_state().items():
        then, first, found = state.get(source, {}), launch.get(source, {}), here.get(source, {})
        for name in then.keys() | first.keys() | found.keys() | now.keys():
            changed = then.get(name, _ABSENT) != first.get(name, _ABSENT)
            # A module that was imported only since had its own defaults before.
            value = then.get(name, _ABSENT) if changed or source not in here else found.get(name, _ABSENT)
            if value != now.get(name, _ABSENT):
                _SOURCES[source].put(name, value)


# ---------------------------------------------------------------------- Python


def _process() -> Settings:
    return {
        "cwd": _cwd(),
        "recursion limit": sys.getrecursionlimit(),
        "locale": locale.setlocale(locale.LC_ALL),
        "socket timeout": socket.getdefaulttimeout(),
        "garbage collection": gc.isenabled(),
        "garbage thresholds": gc.get_threshold(),
        "decimal": decimal.getcontext().__reduce__()[1],
        "warnings": tuple(warnings.filters),
    }


def _put_process(name: str, value: Any) -> None:
    match name:
        case "cwd" if os.path.isdir(value):  # noqa: PTH112  # a str is what we keep
            os.chdir(value)
        case "recursion limit":
            sys.setrecursionlimit(value)
        case "locale":
            locale.setlocale(locale.LC_ALL, value)
        case "socket timeout":
            socket.setdefaulttimeout(value)
        case "garbage collection":
            (gc.enable if value else gc.disable)()
        case "garbage thresholds":
            gc.set_threshold(*value)
        case "decimal":
            decimal.setcontext(decimal.Context(*value))
        case "warnings":
            warnings.resetwarnings()  # which makes each module forget what it has shown
            warnings.filters[:] = value  # type: ignore[index]


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:  # the body removed the folder it stands in
        return ""


def _environ() -> Settings:
    """Return the environment without the key that signs snapshots: it never goes into a store."""
    return {name: value for name, value in os.environ.items() if name not in ("NBRESUME_KEY", "NBRESUME_KEY_FILE")}


def _put_environ(name: str, value: Any) -> None:
    if value is _ABSENT:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


# ---------------------------------------------------------------------- numpy, pandas, scikit-learn


def _numpy() -> Settings:
    options = {name: value for name, value in np.get_printoptions().items() if name != "override_repr"}
    return {"errors": np.geterr(), "print": options}


def _put_numpy(name: str, value: Any) -> None:
    (np.seterr if name == "errors" else np.set_printoptions)(**value)


def _pandas() -> Settings:
    found: Settings = {}
    waiting = [("", sys.modules["pandas"].options.d)]
    while waiting:
        prefix, options = waiting.pop()
        for name, value in options.items():
            if isinstance(value, dict):
                waiting.append((f"{prefix}{name}.", value))
            else:
                found[prefix + name] = value
    return found


def _put_pandas(name: str, value: Any) -> None:
    if value is not _ABSENT:
        sys.modules["pandas"].set_option(name, value)


def _sklearn() -> Settings:
    config: Settings = sys.modules["sklearn"].get_config()
    return config


def _put_sklearn(name: str, value: Any) -> None:
    if value is not _ABSENT:
        sys.modules["sklearn"].set_config(**{name: value})


# ---------------------------------------------------------------------- torch


def _torch() -> Settings:
    torch = sys.modules["torch"]
    return {
        "dtype": torch.get_default_dtype(),
        "device": str(torch.get_default_device()),
        "grad": torch.is_grad_enabled(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "matmul precision": torch.get_float32_matmul_precision(),
        "threads": torch.get_num_threads(),
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
    }


def _put_torch(name: str, value: Any) -> None:
    """Set one mode. Asking for deterministic algorithms costs a second of imports, so only what differs is set."""
    torch = sys.modules["torch"]
    match name:
        case "dtype":
            torch.set_default_dtype(value)
        case "device":
            torch.set_default_device(value)
        case "grad":
            torch.set_grad_enabled(value)
        case "deterministic":
            torch.use_deterministic_algorithms(value[0], warn_only=value[1])
        case "matmul precision":
            torch.set_float32_matmul_precision(value)
        case "threads":
            torch.set_num_threads(value)
        case _:
            setattr(torch.backends.cudnn, name.removeprefix("cudnn."), value)


_SOURCES = {
    "process": _Source("sys", _process, _put_process),
    "environ": _Source("os", _environ, _put_environ),
    "numpy": _Source("numpy", _numpy, _put_numpy),
    "pandas": _Source("pandas", _pandas, _put_pandas),
    "sklearn": _Source("sklearn", _sklearn, _put_sklearn),
    "torch": _Source("torch", _torch, _put_torch),
}
