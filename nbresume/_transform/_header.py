"""What the header of a cell's first loop, or of the call that holds it, hangs on: the data that the run goes over."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from ._names import bound_names, read_names
from ._nodes import at, label

if TYPE_CHECKING:
    from ._rewrite import _Unit

_LOOKS = frozenset({"range", "enumerate", "zip", "reversed", "len"})
_VIEWS = frozenset({"items", "keys", "values"})


def range_of(node: ast.expr | None) -> ast.Call | None:
    """Return the ``range`` that a loop goes over, itself or through a progress bar; None for any other iterable."""
    match node:
        case ast.Call(func=ast.Name(id="range" | "trange")):
            return node
        case ast.Call(func=ast.Name(id="tqdm"), args=[first, *_]):
            return range_of(first)
    return None


def header_values(statement: ast.stmt, names: Collection[str]) -> dict[str, ast.expr]:
    """Return what can be looked at, without changing anything, before a first loop is entered.

    Parameters
    ----------
    statement : ast.stmt
        A loop, or a statement whose value is a tracked call.
    names : collection of str
        Names that identify nothing by themselves: the cell binds them, or declares them.

    Returns
    -------
    dict of str to ast.expr
        The iterable, under ``for x``, and the names that the header reads.
    """
    found: dict[str, ast.expr] = {}
    if isinstance(statement, ast.For):
        looked = _innermost(statement.iter)
        if _is_look(looked) and read_names(looked) & set(names) | ({"range"} if range_of(looked) else set()):
            found[f"for {label(statement.target)}"] = looked
    header = statement.iter if isinstance(statement, ast.For) else getattr(statement, "test", None)
    header = header or getattr(statement, "value", None)
    found |= {name: ast.Name(name, ast.Load()) for name in sorted(set(_plain_names(header)) & set(names))}
    return found


def gate(unit: _Unit, statement: ast.stmt) -> list[ast.stmt]:
    """Let the runtime look at what the run goes over, where the set-up ends and before saved state covers it."""
    if not unit.is_setup or isinstance(statement, (ast.If, ast.With, ast.AsyncWith, ast.Try)):
        return []
    found = header_values(statement, unit.own - unit.listed)
    if not found:
        return []
    values = ast.Dict([ast.Constant(key) for key in found], list(found.values()))
    look = ast.Expr(ast.Call(unit.method("gate"), [ast.Constant(len(unit.steps) + 1), values], []))
    is_firm = not any(read_names(value) & unit.own for value in found.values())
    gates = ast.Call(unit.method("gates"), [ast.Constant(is_firm)], [])
    return [at(ast.If(gates, [look], []), statement)]


def listed_names(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that are made of a look into a folder: the run itself may move or make files there.

    It goes on over the list of its launch, which is saved.
    """
    found: set[str] = set()
    for statement in body:
        value = getattr(statement, "value", None)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None:
            calls = (n.func for n in ast.walk(value) if isinstance(n, ast.Call))
            called = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}
            if called & _LISTINGS or read_names(value) & found:
                found |= bound_names([statement])
    return found


_LISTINGS = frozenset({"listdir", "scandir", "walk", "glob", "iglob", "rglob", "iterdir"})


def _innermost(node: ast.expr) -> ast.expr:
    """Look through progress bars: making one shows it."""
    match node:
        case ast.Call(func=ast.Name(id="trange"), args=args):
            return ast.Call(ast.Name("range", ast.Load()), list(args), [])
        case ast.Call(func=ast.Name(id="tqdm"), args=[first, *_]):
            return first
    return node


def _is_look(node: ast.expr) -> bool:
    """Whether evaluating an expression once more changes nothing."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _LOOKS:
            return all(map(_is_look, args))
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=attr), args=[], keywords=[]):
            return attr in _VIEWS
        case ast.BinOp(left=left, right=right):
            return _is_look(left) and _is_look(right)
        case ast.UnaryOp(operand=operand):
            return _is_look(operand)
    return False


def _plain_names(node: ast.AST | None) -> Iterator[str]:
    """Yield the names that an expression reads by itself, without those it calls or looks into."""
    match node:
        case None | ast.Lambda():
            return
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        case ast.Call(args=args, keywords=words):
            for part in (*args, *(word.value for word in words)):
                yield from _plain_names(part)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _plain_names(child)
