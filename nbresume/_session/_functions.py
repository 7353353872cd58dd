"""Loops in functions of the notebook: found before the cell runs, rewritten when it calls them."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._identity import reads_and_writes
from .._transform import UnitPlan, rewrite_function
from .._transform._names import FUNCTIONS, LOOPS, bound_names, is_point, own_nodes, read_names
from ..errors import RefusedError


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A function that keeps a cursor."""

    function: types.FunctionType
    plan: UnitPlan
    needs: int
    """How many positional arguments it can't do without."""


def finder(tree: ast.Module, namespace: dict[str, Any]) -> Callable[[ast.expr], bool]:
    """Return what tells whether a called expression names a notebook function that holds a loop."""
    own = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    methods = _methods(tree, namespace)

    def holds_loop(function: ast.expr) -> bool:
        if isinstance(function, ast.Name) and function.id in own:
            return _followable(own[function.id])
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            known = namespace.get(function.value.id)
            if known is None or type(known).__module__ == "__main__":
                # The object may be made by the cell itself: which method it is shows when it is called.
                return function.attr in methods
        value = _resolve(function, namespace)
        node = _definition(value) if value is not None else None
        return node is not None and _followable(node)

    return holds_loop


def _methods(tree: ast.Module, namespace: dict[str, Any]) -> set[str]:
    """Return the names of methods, of the cell's and the notebook's classes, that hold a loop."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {
        node.name for one in classes for node in one.body if isinstance(node, ast.FunctionDef) and _followable(node)
    }
    for kind in list(namespace.values()):
        if isinstance(kind, type) and kind.__module__ == "__main__":
            for name, member in vars(kind).items():
                node = _definition(member) if isinstance(member, types.FunctionType) else None
                if node is not None and _followable(node):
                    found.add(name)
    return found


def _resolve(function: ast.expr, namespace: dict[str, Any]) -> types.FunctionType | None:
    match function:
        case ast.Name(id=name):
            value = namespace.get(name)
        case ast.Attribute(value=ast.Name(id=owner), attr=attr):
            holder = namespace.get(owner)
            if isinstance(holder, types.ModuleType) or type(holder).__module__ != "__main__":
                return None
            value = getattr(holder, attr, None)
        case _:
            return None
    return plain_function(value, namespace)


def plain_function(value: Any, namespace: dict[str, Any]) -> types.FunctionType | None:
    """Return the function behind a name or bound method, if it is the notebook's own."""
    value = value.__func__ if isinstance(value, types.MethodType) else value
    if isinstance(value, types.FunctionType) and value.__globals__ is namespace:
        return value
    return None


def _followable(node: ast.FunctionDef) -> bool:
    """Whether a function can be rewritten and has a reason to be."""
    inner = [n for statement in node.body for n in own_nodes(statement)]
    plain = all(isinstance(d, (ast.Name, ast.Attribute)) and "resumable" in ast.unparse(d) for d in node.decorator_list)
    stops = any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor)) for n in inner)
    holds = any(isinstance(n, LOOPS) or is_point(n) for n in inner)
    return plain and holds and not stops and not _shares_cells(node)


def _definition(function: types.FunctionType) -> ast.FunctionDef | None:
    try:
        lines, start = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef):
        return None
    ast.increment_lineno(node, start - 1)
    return node


def _shares_cells(node: ast.FunctionDef) -> bool:
    """Whether functions inside share variables with it: restored, each would have cells of its own."""
    bound = bound_names(node.body) | {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
    inner = [n for n in ast.walk(node) if isinstance(n, FUNCTIONS) and n is not node]
    return any((read_names(one) | _rebinds(one)) & bound - {getattr(one, "name", "")} for one in inner)


def _rebinds(function: ast.AST) -> set[str]:
    return set().union(*(n.names for n in ast.walk(function) if isinstance(n, ast.Nonlocal)))


class Functions:
    """Rewrites the functions that a cell calls, each once for a run."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._known: dict[types.FunctionType, Rewritten | None] = {}
        self._reads: dict[types.FunctionType, set[str]] = {}

    def of(self, value: Any) -> Rewritten | None:
        """Return the rewritten function, or None when a call of it is atomic."""
        function = plain_function(value, self._namespace)
        if function is None or threading.current_thread() is not threading.main_thread():
            return None
        if function not in self._known:
            self._known[function] = self._rewrite(function)
        return self._known[function]

    def adopt(self, restored: Any, own: Any) -> None:
        """Take a function that came back from a snapshot for the notebook's own, whose source is known."""
        new, old = plain_function(restored, self._namespace), plain_function(own, self._namespace)
        known = self._known.get(old) if old is not None else None
        if new is None or old is None or known is None or new is old:
            return
        if new.__code__.co_freevars != old.__code__.co_freevars:
            return
        made = types.FunctionType(
            known.function.__code__, new.__globals__, new.__name__, new.__defaults__, new.__closure__
        )
        made.__kwdefaults__ = new.__kwdefaults__
        self._known[new] = Rewritten(made, known.plan, known.needs)

    def reads(self, name: str) -> set[str]:
        """Return the global names that the notebook's code behind a name reads, through all that it calls."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for function in self._code_of(self._namespace.get(waiting.pop())):
                if function not in self._reads:
                    self._reads[function] = reads_and_writes(function.__code__)[0]
                waiting += self._reads[function] - found
                found |= self._reads[function]
        return found

    def _code_of(self, value: Any) -> list[types.FunctionType]:
        """Return the notebook's functions behind a value: itself, or the methods of its class."""
        value = value.func if isinstance(value, functools.partial) else value
        function = plain_function(value, self._namespace)
        kinds = () if function is not None else (value if isinstance(value, type) else type(value)).__mro__
        members = [member for kind in kinds if kind.__module__ == "__main__" for member in vars(kind).values()]
        found = [function, *(plain_function(getattr(one, "__func__", one), self._namespace) for one in members)]
        return [one for one in found if one is not None]

    def _rewrite(self, function: types.FunctionType) -> Rewritten | None:
        node = _definition(function)
        if node is None or not _followable(node) or node.name != function.__name__:
            return None
        holds_loop = finder(ast.Module([], []), self._namespace)
        try:
            node, plan = rewrite_function(node, holds_loop)
        except RefusedError:
            return None
        code = _compile(node, function)
        made = types.FunctionType(
            code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        made.__kwdefaults__ = function.__kwdefaults__
        return Rewritten(made, plan, code.co_argcount)


def _compile(node: ast.FunctionDef, function: types.FunctionType) -> types.CodeType:
    """Compile a rewritten function as the user's own: same file, same lines, same closure, same private names."""
    free = function.__code__.co_freevars
    # A name of its own: the user's would hide the global one, by which a function calls itself.
    node.name = "__nbresume_function__"
    kind = function.__qualname__.rpartition(".")[0].rpartition(".")[2]
    inner: ast.stmt = node
    if kind.isidentifier():
        inner = ast.ClassDef(kind, bases=[], keywords=[], body=[node], decorator_list=[])
    outer = ast.FunctionDef(
        "__nbresume_outer__",
        ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, []),
        [inner],
        [],
    )
    ast.copy_location(outer, node)
    ast.copy_location(inner, node)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    code = compile(module, function.__code__.co_filename, "exec", dont_inherit=True)
    for name in ("__nbresume_outer__", *([kind] if inner is not node else []), node.name):
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    code = code.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    if code.co_freevars != free:
        # A variable that only the rewrite dropped or ordered otherwise would take another's cell.
        code = code.replace(co_freevars=tuple(sorted(code.co_freevars)))
    return code
