"""A long notebook cell that survives the death of its kernel.

Load the extension with ``%load_ext nbresume`` and put ``%%resumable NAME --vars a,b`` on top of a long cell. Importing
this package does nothing and is quick: every name below is fetched when it is first used (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import errors, testing
    from ._magic import load_ipython_extension, panel, unload_ipython_extension
    from ._session import boundary, current, open_run, resumable, resume_point, runs, stream
    from ._types import Stateful

__version__ = "0.1.0"

__all__ = [
    "Stateful",
    "boundary",
    "current",
    "errors",
    "load_ipython_extension",
    "open_run",
    "panel",
    "resumable",
    "resume_point",
    "runs",
    "stream",
    "testing",
    "unload_ipython_extension",
]

_HOMES = {
    "Stateful": "_types",
    "boundary": "_session",
    "current": "_session",
    "load_ipython_extension": "_magic",
    "open_run": "_session",
    "panel": "_magic",
    "resumable": "_session",
    "resume_point": "_session",
    "runs": "_session",
    "stream": "_session",
    "unload_ipython_extension": "_magic",
}


def __getattr__(name: str) -> Any:
    if name in ("errors", "testing"):
        return import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
