"""From the cell as the user wrote it to the cell that can find its way back; pure, nothing here runs it."""

from __future__ import annotations

from ._names import attributes_set
from ._options import CellOptions
from ._peel import peel_time
from ._plan import CallPlan, CellPlan, LoopPlan, UnitPlan
from ._rewrite import ITEM, RUNTIME, may_hold_boundary, rewrite_cell, rewrite_function
from ._text import MAGIC, MARKER, marked, marker_line

__all__ = [
    "ITEM",
    "MAGIC",
    "MARKER",
    "RUNTIME",
    "CallPlan",
    "CellOptions",
    "CellPlan",
    "LoopPlan",
    "UnitPlan",
    "attributes_set",
    "marked",
    "marker_line",
    "may_hold_boundary",
    "peel_time",
    "rewrite_cell",
    "rewrite_function",
]
