"""Small questions about syntax, and the position of what is injected."""

from __future__ import annotations

import ast
from typing import TypeVar

from ..errors import RefusedError
from ._names import own_nodes

_T = TypeVar("_T", bound=ast.AST)
_STILL = frozenset({"range", "reversed", "len", "tqdm", "trange"})
_WALKING = _STILL | {"enumerate", "zip", "list", "tuple", "sorted", "dict", "set"}
"""These make an iterator of what they are given, which draws when that is a loader; and change nothing."""
_STILL_METHODS = frozenset({"items", "keys", "values", "copy"})


def refuse_unsupported(body: list[ast.stmt]) -> None:
    """Refuse what no cursor can stand in, by its line."""
    for statement in body:
        for node in own_nodes(statement):
            line = getattr(node, "lineno", None)
            if isinstance(node, ast.AsyncFor):
                raise RefusedError(
                    "'async for' can't be resumed: its source goes on without us",
                    "Collect it into a list first, then loop over that",
                    line,
                )
            if isinstance(node, (ast.Yield, ast.YieldFrom)):
                raise RefusedError(
                    "'yield' can't be resumed: the frame of a generator can't be saved",
                    "Append to a list instead",
                    line,
                )


def at(node: _T, where: ast.AST) -> _T:
    """Give a new node, and what it holds that has no place yet, the position of one of the user's."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.expr, ast.stmt)) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, where)
    return node


def label(target: ast.expr) -> str:
    """Name a loop by the first name of its target."""
    names = [inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name)]
    return names[0] if names else ast.unparse(target)


def is_future(statement: ast.stmt) -> bool:
    """Whether a statement is an import from the future, which nothing may stand before."""
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def may_draw(node: ast.expr) -> bool:
    """Whether evaluating an iterable's expression may draw: anything but plain looks at what is there."""
    return _calls(node, _STILL)


def may_change(node: ast.expr) -> bool:
    """Whether evaluating an iterable's expression may change what it reads."""
    return _calls(node, _WALKING)


def _calls(node: ast.expr, harmless: frozenset[str]) -> bool:
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id=name)) if name in harmless:
                continue
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _STILL_METHODS:
                continue
            case ast.Call() | ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.Await():
                return True
    return False


def only_binds(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but bind names: where one can't be saved, it may run again on the way back."""
    match statement:
        case ast.AugAssign() | ast.Delete() | ast.For() | ast.While() | ast.AsyncFor():
            return False
        case ast.If() | ast.With() | ast.AsyncWith() | ast.Try() | ast.TryStar() | ast.Match():
            inner = [n for n in own_nodes(statement) if isinstance(n, ast.stmt) and n is not statement]
            return all(only_binds(n) and not isinstance(n, ast.Expr) for n in inner)
    return True
