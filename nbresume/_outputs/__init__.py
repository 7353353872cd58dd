"""What a cell leaves behind besides its names: files it writes, and what it prints."""

from __future__ import annotations

from ._excess import Excess, excess, told
from ._files import Files
from ._log import OutputLog

__all__ = ["Excess", "Files", "OutputLog", "excess", "told"]
