"""A long notebook cell that survives the death of its kernel.

Load the extension with ``%load_ext nbresume`` and put ``%%resumable NAME --vars a,b`` on top of a long cell. Importing
this package does nothing and is quick: every name below is fetched when it is first used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import attach

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

__getattr__, __dir__ = attach(
    __name__,
    {
        "errors": "",
        "testing": "",
        "_magic": "load_ipython_extension panel unload_ipython_extension",
        "_session": "boundary current open_run resumable resume_point runs stream",
        "_types": "Stateful",
    },
)
