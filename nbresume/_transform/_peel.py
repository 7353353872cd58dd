"""``%time`` hides work in a string, in a quarter of long cells: it is taken out and honoured."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ._nodes import at
from ._rewrite import RUNTIME


def peel_time(tree: ast.Module, worth: Callable[[ast.stmt], bool]) -> ast.Module:
    """Replace ``%time statement`` by the statement and a clock around it.

    Parameters
    ----------
    tree : ast.Module
        A cell after IPython's own transformation, in which the line is a call with a string.
    worth : callable
        Whether a boundary can lie inside a statement; any other ``%time`` stays as it is.
    """
    return _Peel(worth).visit(tree)  # type: ignore[no-any-return]


class _Peel(ast.NodeTransformer):
    def __init__(self, worth: Callable[[ast.stmt], bool]) -> None:
        self._worth = worth

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        body = self._hidden(node.value)
        return node if body is None else [_clock("clock", node), *body, _clock("clocked", node)]

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        body = self._hidden(node.value)
        if body is None or len(body) != 1 or not isinstance(body[0], ast.Expr):
            return node
        node.value = body[0].value
        return [_clock("clock", node), node, _clock("clocked", node)]

    def _hidden(self, node: ast.expr) -> list[ast.stmt] | None:
        match node:
            case ast.Call(
                func=ast.Attribute(attr="run_line_magic"),
                args=[ast.Constant(value="time"), ast.Constant(value=str(text))],
            ):
                try:
                    body = ast.parse(text).body
                except SyntaxError:
                    return None
                if not any(map(self._worth, body)):
                    return None
                for statement in body:
                    for inner in ast.walk(statement):
                        if isinstance(inner, (ast.expr, ast.stmt)):
                            ast.copy_location(inner, node)
                return body
        return None


def _clock(method: str, where: ast.AST) -> ast.stmt:
    call = ast.Call(ast.Attribute(ast.Name(RUNTIME, ast.Load()), method, ast.Load()), [], [])
    return at(ast.Expr(call), where)
