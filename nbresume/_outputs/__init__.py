"""What a cell leaves behind besides its names: files it writes, and what it prints."""

from __future__ import annotations

from ._excess import Excess, excess, told
from ._files import Files
from ._log import Mark, OutputLog, list_of, read_mark

__all__ = ["Excess", "Files", "Mark", "OutputLog", "excess", "list_of", "read_mark", "told"]
