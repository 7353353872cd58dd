"""``--plan``: what each statement will do, what is saved, what is identity."""

from __future__ import annotations

from .._identity import Identity
from .._transform import CellPlan
from ._reach import CELL, DECLARED_NAMES
from ._scope import Scope

_WIDTH = 52


def plan_text(plan: CellPlan, identity: Identity, scope: Scope) -> str:
    """Render the plan of a cell as aligned text."""
    lines = [f"plan of {plan.options.name}: nothing runs", "", f"{'line':>4}  {'statement':{_WIDTH}}  on resume"]
    for line, text, _, resume in plan.unit.statements:
        shown = text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
        lines.append(f"{line:>4}  {shown:{_WIDTH}}  {resume}")
    lines += ["", "saved: " + (", ".join(_saved(plan)) or "nothing")]
    lines += [f"input: {name} = {part.text}" for name, part in identity.config.items()]
    lines += [
        f"code:  {name}" for name in identity.code if name not in (CELL, DECLARED_NAMES) and not name.isidentifier()
    ]
    missing = [name for name in plan.options.declared if name not in scope.places and name not in scope.bindable]
    if missing:
        lines.append(f"missing: {', '.join(missing)} (run the cells that make them first)")
    return "\n".join(lines)


def _saved(plan: CellPlan) -> list[str]:
    declared = list(plan.options.declared)
    return [*declared, *(f"{name} (bound by the cell)" for name in sorted(plan.unit.bound) if name not in declared)]
