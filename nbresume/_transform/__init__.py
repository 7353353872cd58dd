"""From the cell as the user wrote it to the cell that can find its way back; pure, nothing here runs it."""

from __future__ import annotations

from ._header import range_of
from ._names import attributes_set, facts_of, read_names
from ._options import CellOptions
from ._peel import peel_time
from ._places import Place, reached, statement_at
from ._plan import CallPlan, CellPlan, LoopPlan, Step, UnitPlan
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
    "Place",
    "Step",
    "UnitPlan",
    "attributes_set",
    "facts_of",
    "marked",
    "marker_line",
    "may_hold_boundary",
    "peel_time",
    "range_of",
    "reached",
    "read_names",
    "rewrite_cell",
    "rewrite_function",
    "statement_at",
]
