"""``step = nbresume.resume_point()``: where a cell goes on whose loop belongs to a library.

The call becomes ``__nbresume__.point(number, …)``. What stands behind it in its block runs again on a resume, so each
name bound there is reported (``made``): a boundary refuses where the library's callbacks go on to change such a value.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..errors import RefusedError
from ._names import bound_names, is_point
from ._nodes import at
from ._plan import PointPlan

if TYPE_CHECKING:
    from ._rewrite import _Unit


def point_call(statement: ast.stmt) -> ast.Call | None:
    """Return the call of ``resume_point`` that is a statement of its own or an assigned value."""
    match statement:
        case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
            return call if is_point(call) else None
        case ast.AnnAssign(value=ast.Call() as call):
            return call if is_point(call) else None
    return None


def rewrite_point(unit: _Unit, statement: ast.stmt, call: ast.Call, depth: int, made: set[str]) -> ast.stmt:
    """Rewrite such a statement."""
    number = unit.number(statement, "point")
    made |= bound_names([statement])
    unit.points[number] = PointPlan(number, statement.lineno, unit.needed_after(statement), frozenset(made))
    unit.statements.append((statement.lineno, ast.unparse(statement), "returns 0", "lays the state over"))
    call.args[:] = [at(ast.Constant(number), call), call.func]
    call.func = at(unit.method("point"), call)
    return unit.entered(number, depth, [statement], statement)


def report_made(unit: _Unit, statement: ast.stmt) -> list[ast.stmt]:
    """Return what stands behind a plain statement that a resume repeats: a report of the names it binds."""
    names = sorted(bound_names([statement]))
    if not names:
        return [statement]
    told = ast.Call(unit.method("made"), [ast.Tuple([ast.Constant(name) for name in names], ast.Load())], [])
    return [statement, at(ast.Expr(told), statement)]


def refuse_without_boundary() -> None:
    """Refuse a cell in which no boundary can lie, naming every way to have one."""
    raise RefusedError(
        "this cell has no boundary: no loop of its own, and no call of a notebook function that holds one",
        "Put the loop into the cell; or call the function as a whole statement (fit(model), or result = fit(model)); "
        "or, for a loop inside a library, put step = nbresume.resume_point() before the call and "
        "nbresume.boundary(step, model=model) into its callback",
        1,
    )
