"""``--plan``: what each statement will do, what is saved and how large, what is identity."""

from __future__ import annotations

from .._card import size, table
from .._identity import Identity
from .._transform import CellPlan
from ._forecast import Forecast, forecast, trouble
from ._reach import CELL, DECLARED_NAMES
from ._scope import Scope

_WIDTH = 52


def plan_text(plan: CellPlan, identity: Identity, scope: Scope) -> str:
    """Render the plan of a cell as aligned text."""
    refused = trouble(scope)
    names = forecast(scope, identity)
    lines = [f"plan of {plan.options.name}: nothing runs", ""]
    lines += table([("line", "statement", "at launch", "on resume"), *_statements(plan)])
    lines += ["", *table([("name", "becomes", "what it is", "size"), *map(_row, names)], right=3)]
    lines += ["", f"A snapshot takes about {size(sum(one.size or 0 for one in names))}, and what the cell will bind."]
    code = [name for name in identity.code if name not in (CELL, DECLARED_NAMES) and not name.isidentifier()]
    lines += [f"Identity: the cell, the inputs above, {', '.join([*code, *_versions(identity)])}."]
    missing = [one.name for one in names if one.fate == "missing"]
    lines += [f"Missing: {', '.join(missing)}. Run the cells that make them first."] if missing else []
    lines += [f"Would be refused: {refused}"] if refused and not missing else []
    return "\n".join(lines)


def _statements(plan: CellPlan) -> list[tuple[str, str, str, str]]:
    return [
        (str(line), text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…", launch, resume)
        for line, text, launch, resume in plan.unit.statements
    ]


def _row(one: Forecast) -> tuple[str, str, str, str]:
    return one.name, one.fate, one.why, "" if one.size is None else size(one.size)


def _versions(identity: Identity) -> list[str]:
    return [f"{name} {part.text}" for name, part in identity.environment.items()]
