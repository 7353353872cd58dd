"""The extension: IPython is known here alone."""

from __future__ import annotations

from ._extension import load_ipython_extension, unload_ipython_extension
from ._panel import panel

__all__ = ["load_ipython_extension", "panel", "unload_ipython_extension"]
