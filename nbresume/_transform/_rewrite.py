"""The rewrite: every run of plain statements gets a guard, every loop a cursor, and the user's lines stay theirs.

What the guards mean (``__nbresume__`` is the runtime object):

``live``      the code runs as the user wrote it
``setup``     live, or on the way back in a fresh kernel: what stands before the cell's first loop runs again
``again(…)``  on the way back, for a statement that binds a name which could not be saved
``enters(i)`` live, or the way back leads through statement ``i``

A ``while`` becomes a ``for`` over its turns, with the test as its first statement: a generator's turn costs a quarter
of a call in the test. The item is true where the way back leads into the body, and the test is not evaluated.

An innermost loop's body needs no guard at all: it is entered only when the code is live. That is what keeps the cost of
an iteration low.

Nothing here signals through exceptions of the user's code, since a bare ``except:`` in a body would swallow it: a loop
that has to stop just ends, and what follows is guarded.

Every injected node takes the position of a statement of the user's, so that a traceback stays in the cell.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from ._header import gate, listed_names
from ._names import Needs, bound_names, catches_interrupt, facts_of, read_names
from ._nodes import at, is_future, label, may_change, may_draw, only_binds, refuse_unsupported
from ._options import CellOptions
from ._places import places
from ._plan import CallPlan, CellPlan, LoopPlan, PointPlan, Step, UnitPlan
from ._points import point_call, refuse_without_boundary, report_made, rewrite_point

RUNTIME = "__nbresume__"
ITEM = "__nbresume_item__"

HoldsLoop = Callable[[ast.expr], bool]
"""Whether the function that an expression names is one of the notebook's that holds a loop."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_UNGUARDED = (ast.Global, ast.Nonlocal, ast.Pass)


def rewrite_cell(tree: ast.Module, options: CellOptions, holds_loop: HoldsLoop) -> tuple[ast.Module, CellPlan]:
    """Rewrite the body of a cell.

    Parameters
    ----------
    tree : ast.Module
        The body without the magic line.
    options : CellOptions
        The magic line.
    holds_loop : callable
        Tells calls that have to be followed from calls that are atomic.

    Returns
    -------
    tree : ast.Module
    plan : CellPlan

    Raises
    ------
    RefusedError
        With the line, the reason and the way out.
    """
    source = ast.unparse(tree)
    refuse_unsupported(tree.body)
    unit = _Unit("", tree.body, holds_loop, options.declared)
    body = unit.top_level(tree.body)
    plan = unit.plan()
    if not plan.loops and not plan.calls and not plan.points:
        refuse_without_boundary()
    module = ast.Module(body=body, type_ignores=[])
    return ast.fix_missing_locations(module), CellPlan(options, source, plan)


def rewrite_function(node: ast.FunctionDef, holds_loop: HoldsLoop) -> tuple[ast.FunctionDef, UnitPlan]:
    """Rewrite a function that the cell calls and that holds a loop; raises RefusedError as ``rewrite_cell``."""
    refuse_unsupported(node.body)
    unit = _Unit(node.name, node.body, holds_loop)
    arguments = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
    body = [unit.runtime_statement("entered", node.body[0]), *unit.block(node.body, depth=0)]
    node.body = body
    node.decorator_list = []
    return ast.fix_missing_locations(node), unit.plan(arguments)


def may_hold_boundary(statement: ast.stmt, holds_loop: HoldsLoop) -> bool:
    """Whether a boundary can lie inside a statement."""
    return _Unit("", [], holds_loop).tracked(statement)


class _Unit:
    """Rewrites one scope and collects its plan."""

    def __init__(self, name: str, body: list[ast.stmt], holds_loop: HoldsLoop, declared: Collection[str] = ()) -> None:
        self.name, self.body, self.holds_loop = name, body, holds_loop
        self.loops: dict[int, LoopPlan] = {}
        self.calls: dict[int, CallPlan] = {}
        self.points: dict[int, PointPlan] = {}
        self.withs: dict[int, int] = {}
        self.with_targets: set[str] = set()
        self.with_reads: dict[int, frozenset[str]] = {}
        self.statements: list[tuple[int, str, str, str]] = []
        self._needs = Needs(body)
        self._catches = catches_interrupt(body)
        self.is_setup = not name  # only a cell has a set-up
        self._behind_point = False
        # Taken before the rewrite changes the tree under it.
        self._facts = {**facts_of(body), "entry": self._needs.entry}
        self.own, self.listed = {*self._facts["bound"], *declared}, listed_names(body)
        self._places = dict(places(body))
        self.steps: dict[int, Step] = {}

    def plan(self, arguments: set[str] | None = None) -> UnitPlan:
        facts = {key: frozenset(names) for key, names in self._facts.items()}
        facts["bound"] |= arguments or set()
        return UnitPlan(
            self.name,
            catches_interrupt=self._catches,
            withs=self.withs,
            with_targets=frozenset(self.with_targets),
            with_reads=self.with_reads,
            loops=self.loops,
            calls=self.calls,
            points=self.points,
            steps=self.steps,
            statements=tuple(sorted(self.statements)),
            **facts,
        )

    # ------------------------------------------------------------------ blocks

    def top_level(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a cell: expressions stay expressions, so that they are displayed as ever."""
        out: list[ast.stmt] = []
        made: set[str] = set()
        for place, statement in enumerate(body):
            last = place == len(body) - 1
            if isinstance(statement, ast.Expr) and not self.tracked(statement):
                out.append(self._shown(statement, last=last))
                made |= bound_names([statement])
            elif isinstance(statement, ast.Expr) and point_call(statement) is None:
                out += gate(self, statement)
                out.append(self._shown_call(statement, made, last=last))
            else:
                out += self._one(statement, 0, made)
        if not body or not isinstance(body[-1], ast.Expr) or point_call(body[-1]) is not None:
            where = body[-1] if body else ast.Pass(lineno=1, col_offset=0)
            out.append(at(ast.Expr(self._call("last", ast.Constant(None))), where))
        return out

    def _shown(self, statement: ast.Expr, *, last: bool) -> ast.stmt:
        guard = self._guard(statement)
        self._describe(statement)
        value: ast.expr = at(ast.IfExp(guard, statement.value, ast.Constant(None)), statement)
        return at(ast.Expr(self._call("last", value) if last else value), statement)

    def _shown_call(self, statement: ast.Expr, made: set[str], *, last: bool) -> ast.stmt:
        number, call = self._tracked_call(statement, statement.value, made)
        value = at(ast.IfExp(self._enters(number, 0), call, ast.Constant(None)), statement)
        return at(ast.Expr(self._call("last", value) if last else value), statement)

    def block(self, body: list[ast.stmt], depth: int, made: set[str] | None = None) -> list[ast.stmt]:
        """Rewrite a block that holds something tracked."""
        made = set() if made is None else set(made)
        outer, self._behind_point = self._behind_point, False
        out = [new for statement in body for new in self._one(statement, depth, made)]
        self._behind_point = outer
        return out

    def _one(self, statement: ast.stmt, depth: int, made: set[str]) -> list[ast.stmt]:
        """Rewrite one statement; ``made`` collects the names that the way to what follows can bind again."""
        if self.tracked(statement):
            return [*gate(self, statement), *self._tracked(statement, depth, made)]
        if self.is_setup or only_binds(statement):
            made |= bound_names([statement])
        if isinstance(statement, _UNGUARDED) or is_future(statement):
            return [statement]
        self._describe(statement)
        inner = report_made(self, statement) if self._behind_point else [statement]
        return [at(ast.If(self._guard(statement), inner, []), statement)]

    def _guard(self, statement: ast.stmt) -> ast.expr:
        if self.is_setup or (isinstance(statement, _DEFINITIONS) and not self.name):
            return self.method("setup")
        names = sorted(bound_names([statement]))
        if not names or not only_binds(statement):
            return self.method("live")
        return self._live_or_again(names)

    def _live_or_again(self, names: list[str]) -> ast.expr:
        again = self._call("again", ast.Tuple([ast.Constant(name) for name in names], ast.Load()))
        return ast.BoolOp(ast.Or(), [self.method("live"), again])

    def _describe(self, statement: ast.stmt) -> None:
        resume = "runs again" if self.is_setup else "passed over"
        if isinstance(statement, _DEFINITIONS) and not self.name:
            resume = "runs again"
        text = ast.unparse(statement).splitlines()[0]
        self.statements.append((statement.lineno, text, "runs", resume))

    # ------------------------------------------------------------------ what is tracked

    def tracked(self, statement: ast.stmt) -> bool:
        """Whether a boundary can lie inside a statement."""
        match statement:
            case ast.For() | ast.While():
                return True
            case ast.If():
                return any(map(self.tracked, [*statement.body, *statement.orelse]))
            case ast.With() | ast.AsyncWith() | ast.Try():
                return any(map(self.tracked, statement.body))
            case _:
                return point_call(statement) is not None or self._called(statement) is not None

    def _called(self, statement: ast.stmt) -> ast.Call | None:
        match statement:
            case (
                ast.Expr(value=ast.Call() as call)
                | ast.Assign(value=ast.Call() as call)
                | ast.AnnAssign(value=ast.Call() as call)
                | ast.Return(value=ast.Call() as call)
            ):
                return call if self.holds_loop(call.func) else None
        return None

    def _tracked(self, statement: ast.stmt, depth: int, made: set[str]) -> list[ast.stmt]:
        match statement:
            case ast.For():
                return self._for(statement, depth, made)
            case ast.While():
                return self._while(statement, depth, made)
            case ast.If():
                return self._if(statement, depth, made)
            case ast.With() | ast.AsyncWith() | ast.Try():
                return self._inside(statement, depth, made)
            case ast.Expr() | ast.Assign() | ast.AnnAssign() | ast.Return():
                if (point := point_call(statement)) is not None:
                    self.is_setup, self._behind_point = False, True
                    return [rewrite_point(self, statement, point, depth, made)]
                assert statement.value is not None  # noqa: S101  # a tracked call is its value
                number, call = self._tracked_call(statement, statement.value, made)
                statement.value = call
                return [self.entered(number, depth, [statement], statement)]
        raise AssertionError(statement)

    def number(self, node: ast.stmt, kind: str) -> int:
        """Give the next tracked statement its number."""
        number = len(self.steps) + 1
        self.steps[number] = Step(kind, self._places[node])
        return number

    # ------------------------------------------------------------------ one rewrite a kind

    def _for(self, node: ast.For, depth: int, made: set[str]) -> list[ast.stmt]:
        number = self.number(node, "for")
        made |= bound_names([node.iter])
        plan = LoopPlan(
            number,
            node.lineno,
            "for",
            label(node.target),
            live=frozenset(self._needs.head[node]),
            live_after=frozenset(self._needs.after[node]),
            remade=frozenset(made),
            reads=frozenset(read_names(node.iter)),
            draws=may_draw(node.iter),
            changes=may_change(node.iter),
            has_else=bool(node.orelse),
            targets=frozenset(bound_names([node.target])),
        )
        self.loops[number] = plan
        self.statements.append(
            (node.lineno, f"for {plan.label} in {ast.unparse(node.iter)}:", "loop", "goes on where it stood")
        )
        self.is_setup = False
        keeps = self._call("keeps", ast.Constant(number))
        node.iter = at(
            self._call("loop", ast.Constant(number), ast.IfExp(keeps, ast.Constant(None), node.iter)), node.iter
        )
        if any(map(self.tracked, node.body)):
            names = sorted(bound_names([node.target]))
            target, node.target = node.target, at(ast.Name(ITEM, ast.Store()), node.target)
            unpack = at(ast.Assign([target], ast.Name(ITEM, ast.Load())), target)
            head = at(ast.If(self._live_or_again(names) if names else self.method("live"), [unpack], []), target)
            node.body = [head, *self.block(node.body, depth + 1, made | set(names))]
        else:
            for statement in node.body:
                self.statements.append(
                    (statement.lineno, ast.unparse(statement).splitlines()[0], "runs", "runs from the boundary on")
                )
        node.orelse = self._when_live(node.orelse)
        return [self.entered(number, depth, [node, self.runtime_statement("leave", node, number)], node)]

    def _while(self, node: ast.While, depth: int, made: set[str]) -> list[ast.stmt]:
        number = self.number(node, "while")
        label = ast.unparse(node.test)
        live, after = frozenset(self._needs.head[node]), frozenset(self._needs.after[node])
        has_else = bool(node.orelse)
        self.loops[number] = LoopPlan(
            number, node.lineno, "while", label, live, after, frozenset(made), has_else=has_else
        )
        self.statements.append((node.lineno, f"while {label}:", "loop", "goes on where it stood"))
        self.is_setup = False
        test, body = node.test, node.body
        if any(map(self.tracked, body)):
            test = ast.BoolOp(ast.Or(), [ast.Name(ITEM, ast.Load()), test])
            body = self.block(body, depth + 1, made)
        ends: list[ast.stmt] = [ast.Break()]
        if node.orelse:  # a 'break' would pass it over: there the turns themselves end
            ends = [ast.Expr(self._call("over", ast.Constant(number))), ast.Continue()]
        tests = at(ast.If(ast.UnaryOp(ast.Not(), test), ends, []), node.test)
        turns, orelse = self._call("turns", ast.Constant(number)), self._when_live(node.orelse)
        loop = at(ast.For(ast.Name(ITEM, ast.Store()), turns, [tests, *body], orelse), node)
        return [self.entered(number, depth, [loop, self.runtime_statement("leave", node, number)], node)]

    def _if(self, node: ast.If, depth: int, made: set[str]) -> list[ast.stmt]:
        number = self.number(node, "if")
        choose = self._call("branch", ast.Constant(number), node.test)
        taken = self._call("taken", ast.Constant(number))
        node.test = at(ast.IfExp(self.method("live"), choose, taken), node.test)
        was_setup = self.is_setup
        node.body = self.block(node.body, depth + 1, made)
        if node.orelse:
            after, self.is_setup = self.is_setup, was_setup
            node.orelse = self.block(node.orelse, depth + 1, made)
            self.is_setup = self.is_setup and after
        return [self.entered(number, depth, [node], node)]

    def _inside(self, node: ast.With | ast.AsyncWith | ast.Try, depth: int, made: set[str]) -> list[ast.stmt]:
        number = self.number(node, "inside")
        if isinstance(node, (ast.With, ast.AsyncWith)):
            targets = bound_names(node.items)
            made |= targets
            if not self.is_setup:
                self.withs[number] = node.lineno
                self.with_targets |= targets
            else:
                self.with_reads[number] = frozenset().union(*(read_names(item.context_expr) for item in node.items))
            text = ", ".join(ast.unparse(item) for item in node.items)
            self.statements.append((node.lineno, f"with {text}:", "enters", "enters again"))
        node.body = [self.runtime_statement("inside", node, number), *self.block(node.body, depth + 1, made)]
        if isinstance(node, ast.Try):
            node.orelse = self._when_live(node.orelse)
        return [self.entered(number, depth, [node], node)]

    def _tracked_call(self, statement: ast.stmt, value: ast.expr, made: set[str]) -> tuple[int, ast.expr]:
        number = self.number(statement, "call")
        assert isinstance(value, ast.Call)  # noqa: S101  # by _called
        name = ast.unparse(value.func)
        self.calls[number] = CallPlan(
            number, statement.lineno, name, frozenset(self._needs.after[statement]), frozenset(made)
        )
        self.statements.append(
            (
                statement.lineno,
                ast.unparse(statement).splitlines()[0],
                "followed into the function",
                "goes on inside it",
            )
        )
        self.is_setup = False
        function = value.func
        value.func = at(self._call("call", ast.Constant(number), function), function)
        # Looked up once before the state is laid over, and once after: a closure comes back with other cells.
        find = ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.parse(name, mode="eval").body)
        again = self._call("recall", ast.Constant(number), find)
        return number, at(ast.IfExp(self.method("live"), value, again), statement)

    # ------------------------------------------------------------------ small pieces

    def _when_live(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Guard a block that no way back leads into."""
        return [at(ast.If(self.method("live"), body, []), body[0])] if body else []

    def entered(self, number: int, depth: int, body: list[ast.stmt], where: ast.AST) -> ast.stmt:
        """Guard a tracked statement."""
        return at(ast.If(self._enters(number, depth), body, []), where)

    def _enters(self, number: int, depth: int) -> ast.expr:
        return self._call("enters", ast.Constant(number), ast.Constant(depth))

    def needed_after(self, statement: ast.stmt) -> frozenset[str]:
        """Return the names that may be read behind a statement."""
        return frozenset(self._needs.after[statement])

    def runtime_statement(self, method: str, where: ast.AST, *arguments: int) -> ast.stmt:
        """Make a statement that calls the runtime."""
        return at(ast.Expr(self._call(method, *(ast.Constant(argument) for argument in arguments))), where)

    def method(self, attribute: str) -> ast.expr:
        """Name an attribute of the runtime."""
        return ast.Attribute(ast.Name(RUNTIME, ast.Load()), attribute, ast.Load())

    def _call(self, method: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(self.method(method), list(arguments), [])
