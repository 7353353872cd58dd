"""What a unit of code needs after a boundary, and what the way to it can make again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._transform import UnitPlan
from ._frames import Frame


def outlook(
    stack: Iterable[Frame], unit: UnitPlan, units: Mapping[str, UnitPlan], name: str
) -> tuple[frozenset[str], frozenset[str]]:
    """Tell which names a unit needs after a boundary, and which the way to it can make again."""
    needed: frozenset[str] = frozenset()
    remade: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    """Targets of loops in progress: only a replay makes the item again."""
    stack = list(stack)
    for place, frame in enumerate(stack):
        if frame.unit != name:
            inside |= units[frame.unit].reads if frame.unit in units else frozenset()
            continue
        if frame.kind in ("for", "while"):
            loop = unit.loops[frame.id]
            if place < len(stack) - 1 and frame.iteration is not None and frame.iteration.mode != "replay":
                lost |= loop.targets
            needed, remade = (loop.live_after if frame.done else loop.live), loop.remade
        elif frame.kind == "call":
            call = unit.calls[frame.id]
            needed, remade = call.live, call.remade
        elif frame.kind == "point":
            point = unit.points[frame.id]
            needed, remade = point.live, point.remade
    return needed | unit.read_inside | inside, remade - lost
