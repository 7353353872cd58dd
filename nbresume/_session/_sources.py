"""The source of what a notebook has defined, without comments; empty where none can be found."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import types
from collections.abc import Iterator


def source_of(function: types.FunctionType) -> str:
    """Return a function's source."""
    try:
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, TypeError, SyntaxError):
        return ""


def class_source(kind: type) -> str:
    """Return a class's source: that of the cell its methods were compiled from, since ``__main__`` has no file."""
    for code in _codes(kind):
        for node in ast.walk(_parsed(code.co_filename)):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                last = node.end_lineno or node.lineno
                if node.lineno <= code.co_firstlineno <= last:
                    return ast.unparse(node)
    return ""


def _codes(kind: type) -> Iterator[types.CodeType]:
    for member in vars(kind).values():
        inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if isinstance(inner, types.FunctionType):
            yield inner.__code__


def _parsed(filename: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:  # a cell with a line magic
        return ast.Module([], [])
