"""What a cell leaves behind besides its names: files it writes, and what it prints."""

from __future__ import annotations

from ._files import Files
from ._log import OutputLog

__all__ = ["Files", "OutputLog"]
