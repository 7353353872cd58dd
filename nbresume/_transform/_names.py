"""Which names code binds, reads and needs later.

``needs`` is the classic backward liveness analysis over a syntax tree, conservative where Python is dynamic: a name it
calls dead is bound again on every path before it is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.While, ast.AsyncFor)
_MUTATORS = frozenset(
    "add append appendleft clear discard extend extendleft fill insert pop popitem popleft push put remove reverse "
    "rotate setdefault sort update step backward load_state_dict partial_fit shuffle".split()
)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without entering the functions and classes it defines; their headers belong to it."""
    yield node
    for child in _own_children(node):
        yield from own_nodes(child)


def _own_children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from node.decorator_list
        yield from (default for default in [*node.args.defaults, *node.args.kw_defaults] if default is not None)
    elif isinstance(node, ast.ClassDef):
        yield from [*node.decorator_list, *node.bases, *(word.value for word in node.keywords)]
    elif isinstance(node, ast.Lambda):
        yield from (default for default in [*node.args.defaults, *node.args.kw_defaults] if default is not None)
    else:
        yield from ast.iter_child_nodes(node)


def is_point(node: ast.AST) -> bool:
    """Whether a node is a call of ``nbresume.resume_point()``."""
    match node:
        case ast.Call(func=ast.Name(id="resume_point") | ast.Attribute(attr="resume_point"), args=[], keywords=[]):
            return True
    return False


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements can bind in their own scope; comprehension variables are not among them."""
    found: set[str] = set()
    for node in nodes:
        _collect_bound(node, found)
    return found


def _collect_bound(node: ast.AST, found: set[str]) -> None:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            found.add(name)
        case ast.Name(id=name, ctx=ast.Store()):
            found.add(name)
        case ast.alias(name=name, asname=asname):
            found.add(asname or name.partition(".")[0])
        case ast.ExceptHandler(name=str(name)):
            found.add(name)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            found.add(name)
        case ast.MatchMapping(rest=str(name)):
            found.add(name)
    if isinstance(node, COMPREHENSIONS):
        found.update(
            inner.target.id
            for inner in ast.walk(node)
            if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name)
        )
        return
    for child in _own_children(node):
        _collect_bound(child, found)


def read_names(node: ast.AST | None) -> set[str]:
    """Return every name that is read in a tree, nested scopes included: more than less."""
    if node is None:
        return set()
    return {
        n.id
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store) and not n.id.startswith("__nbresume")
    }


def read_inside_functions(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names read by functions and classes defined in the code: they read them whenever they are called."""
    found: set[str] = set()
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, SCOPES):
                found |= _free_reads(inner)
    return found


def _free_reads(node: ast.AST) -> set[str]:
    """Return the names a tree reads and that its functions don't bind as their own."""
    if isinstance(node, ast.Name):
        return read_names(node)
    found: set[str] = set().union(*map(_free_reads, ast.iter_child_nodes(node)))
    if not isinstance(node, FUNCTIONS):
        return found
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    shared = (n for statement in body for n in own_nodes(statement) if isinstance(n, (ast.Global, ast.Nonlocal)))
    own = bound_names(body) | {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
    headers = set().union(*map(read_names, _own_children(node)))
    return (found - (own - {name for one in shared for name in one.names})) | headers


def read_outside_headers(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names read anywhere but as the plain iterable of a loop."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name):
            found |= read_outside_headers([node.target, *node.body, *node.orelse])
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store):
                found.add(node.id)
        else:
            found |= read_outside_headers(ast.iter_child_nodes(node))
    return found


def mutated_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names whose object the code visibly changes: ``x[i] = v``, ``x += v``, ``x.append(v)``, ``del x[i]``."""
    found: set[str] = set()
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                    found |= _root(inner)
                case ast.AugAssign(target=target):
                    found |= _root(target)
                case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in _MUTATORS or attr.endswith("_"):
                    found |= _root(owner)
    return found


def attributes_set(nodes: Iterable[ast.AST]) -> set[tuple[str, ...]]:
    """Return the dotted paths of attributes that code sets by name: ``a.b.c = v``, ``setattr(a.b, "c", v)``."""
    found: set[tuple[str, ...]] = set()
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.Attribute(value=owner, attr=attr, ctx=ast.Store() | ast.Del()):
                    found.add((*_dotted(owner), attr))
                case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str(attr)), *_]):
                    found.add((*_dotted(owner), attr))
    return {path for path in found if path[0]}


def _dotted(node: ast.AST) -> tuple[str, ...]:
    """Return a dotted name in parts; an empty one for anything else."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=owner, attr=attr):
            return (*_dotted(owner), attr)
    return ("",)


def read_for_value(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names that are read for what they hold: not only told something (``bar.update(1)``) or looped over."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name()), args=args, keywords=words)):
                found |= read_for_value([*args, *words])
            case ast.For(iter=ast.Name()):
                found |= read_for_value([node.target, *node.body, *node.orelse])
            case ast.Name(id=name, ctx=ast.Load()):
                found.add(name)
            case _:
                found |= read_for_value(ast.iter_child_nodes(node))
    return found


def order_drawn(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names that, were they sets, would give their hidden order away: ``list(s)``, ``[x for x in s]``, ``*s``.

    Membership, counting, sorting and set algebra don't, nor does a tracked loop, whose order is pinned.
    """
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp() | ast.AugAssign():
                found |= order_drawn(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.Name))
            case ast.Call(func=ast.Name(id=name), args=args) if name in _ORDERLESS:
                found |= order_drawn(arg for arg in args if not isinstance(arg, ast.Name))
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr=attr), args=args) if attr != "pop":
                found |= order_drawn(args) if attr not in _SET_METHODS else set()
            case ast.For(iter=ast.Name()):
                found |= order_drawn([*node.body, *node.orelse])
            case ast.If(test=ast.Name()) | ast.While(test=ast.Name()):
                found |= order_drawn([*node.body, *node.orelse])
            case ast.Assign(value=ast.Name()) | ast.Return(value=ast.Name()):
                continue
            case ast.Name(id=name, ctx=ast.Load()):
                found.add(name)
            case _:
                found |= order_drawn(ast.iter_child_nodes(node))
    return found


_ORDERLESS = frozenset(
    {"len", "sorted", "min", "max", "any", "all", "set", "frozenset", "bool", "isinstance", "print", "id"}
)
_SET_METHODS = frozenset(name for name in dir(set) if not name.startswith("_") and name != "pop")


def popped_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names whose ``pop()`` is called without an argument: on a set, that draws from its hidden order."""
    found: set[str] = set()
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="pop"), args=[]):
                    found.add(name)
    return found


def _root(node: ast.AST) -> set[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def facts_of(body: list[ast.stmt]) -> dict[str, set[str]]:
    """Return what a unit's plan says of its names, but for ``entry``."""
    return {
        "bound": bound_names(body),
        "reads": set().union(*map(read_names, body)),
        "read_inside": read_inside_functions(body),
        "read_elsewhere": read_outside_headers(body),
        "mutated": mutated_names(body),
        "popped": popped_names(body),
        "order_drawn": order_drawn(body),
        "read_for_value": read_for_value(body),
    }


class Needs:
    """Backward liveness over one unit.

    ``head`` holds what is needed at a loop's boundary, ``after`` what is needed behind a statement, ``entry`` what the
    unit needs when it starts.
    """

    def __init__(self, body: list[ast.stmt]) -> None:
        self.head: dict[ast.stmt, set[str]] = {}
        self.after: dict[ast.stmt, set[str]] = {}
        self.entry = self._block(body, set(), set(), set(), set())

    def _block(self, body: list[ast.stmt], after: set[str], brk: set[str], cont: set[str], exc: set[str]) -> set[str]:
        for statement in reversed(body):
            self.after[statement] = after
            after = self._statement(statement, after, brk, cont, exc) | exc
        return after

    def _statement(  # noqa: PLR0911, C901  # one case a statement
        self, node: ast.stmt, after: set[str], brk: set[str], cont: set[str], exc: set[str]
    ) -> set[str]:
        match node:
            case ast.For() | ast.AsyncFor():
                return self._for(node, after, exc) | read_names(node.iter)
            case ast.While():
                return self._while(node, after, exc)
            case ast.If():
                taken = self._block(node.body, after, brk, cont, exc)
                return taken | self._block(node.orelse, after, brk, cont, exc) | read_names(node.test)
            case ast.With() | ast.AsyncWith():
                inner = self._block(node.body, after, brk, cont, exc)
                targets = bound_names(item.optional_vars for item in node.items if item.optional_vars)
                return (inner - targets) | set().union(*(read_names(item) for item in node.items))
            case ast.Try():
                return self._try(node, after, brk, cont, exc)
            case ast.Break():
                return set(brk)
            case ast.Continue():
                return set(cont)
            case ast.Return():
                return read_names(node.value)
            case ast.Raise():
                return read_names(node) | exc
            case ast.Assign(targets=targets, value=value):
                plain = {target.id for target in targets if isinstance(target, ast.Name)}
                for target in targets:
                    if isinstance(target, (ast.Tuple, ast.List)):
                        plain |= {part.id for part in target.elts if isinstance(part, ast.Name)}
                return (after - plain) | read_names(value) | set().union(*(read_names(t) for t in targets))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                return (after - {name}) | read_names(value)
            case ast.AugAssign(target=target):
                return after | read_names(node) | _root(target)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                return (after - {name}) | read_names(node)
            case ast.Import() | ast.ImportFrom():
                return after - bound_names([node])
            case _:
                return after | read_names(node)

    def _for(self, node: ast.For | ast.AsyncFor, after: set[str], exc: set[str]) -> set[str]:
        targets = bound_names([node.target])
        exits = self._block(node.orelse, after, set(), set(), exc) if node.orelse else after
        head = set(exits)
        while True:
            inner = self._block(node.body, head, after, head, exc)
            wider = head | (inner - targets) | read_names(node.target)
            if wider == head:
                self.head[node] = head
                return head
            head = wider

    def _while(self, node: ast.While, after: set[str], exc: set[str]) -> set[str]:
        exits = self._block(node.orelse, after, set(), set(), exc) if node.orelse else after
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        head = read_names(node.test) | (set() if endless else exits)
        while True:
            wider = head | self._block(node.body, head, after, head, exc)
            if wider == head:
                self.head[node] = head
                return head
            head = wider

    def _try(self, node: ast.Try, after: set[str], brk: set[str], cont: set[str], exc: set[str]) -> set[str]:
        last = self._block(node.finalbody, after, brk, cont, exc) if node.finalbody else after
        caught = set(exc)
        for handler in node.handlers:
            caught |= self._block(handler.body, last, brk | last, cont | last, exc) | read_names(handler.type)
        caught |= last if node.finalbody else set()
        done = self._block(node.orelse, last, brk, cont, exc) if node.orelse else last
        return self._block(node.body, done, brk | (last if node.finalbody else set()), cont, caught)


def catches_interrupt(nodes: Iterable[ast.AST]) -> bool:
    """Whether a handler of the code catches KeyboardInterrupt."""
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.ExceptHandler) and {"KeyboardInterrupt", "BaseException"} & read_names(inner.type):
                return True
    return False
