"""Writes statements at random: what stands in the cells of ``_programs``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

BUDGET = 34
"""Boundaries that the loops of one program add up to, about."""


@dataclass
class Scope:
    """Where statements are written: which names can be read, and what may stand there."""

    ints: list[str]
    function: str = ""
    """Name of the function, empty for the cell."""
    loops: int = 0
    breakable: bool = False
    catching: bool = False
    """Whether a handler further out takes a ``Stop``."""
    weight: int = 1
    """How often a statement here runs, about."""
    depth: int = 0

    def inner(self, **changes: object) -> Scope:
        facts = {**vars(self), "ints": list(self.ints), "depth": self.depth + 1, **changes}
        return Scope(**facts)  # type: ignore[arg-type]


@dataclass
class Function:
    name: str
    cost: int
    raises: bool
    parameters: int


@dataclass
class Writer:
    """Writes one program; every choice is Hypothesis's, so that a failing program shrinks."""

    draw: Callable[[st.SearchStrategy], object]
    functions: list[Function] = field(default_factory=list)
    left: int = BUDGET
    count: int = 0

    # ------------------------------------------------------------------ choices

    def pick(self, *options: object) -> object:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent  # shrinks to no

    def small(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # ------------------------------------------------------------------ expressions

    def number(self, scope: Scope, deep: int = 2) -> str:
        """Write an expression that is a small integer."""
        plain = [*scope.ints, "1", "2"]
        if not deep or self.chance(45):
            return str(self.pick(*plain))
        a, b = self.number(scope, deep - 1), self.number(scope, deep - 1)
        return str(
            self.pick(
                f"({a} + {b}) % 97",
                f"{a} * 2 % 53",
                "len(xs)",
                "sum(xs[-3:]) % 31",
                "random.randrange(9)",
                "int(np.random.randint(7))",
                "int(g.integers(8))",
                "r.randrange(6)",
                "d.get('a', 0)",
                "box.v",
                "Box.made",
                "int(A.sum()) % 41",
                "len(log) % 5",
                f"(w := {a}) + 1",
                f"max({a}, {b})",
                "len(s)",
                "(q[0] if q else 9)",
                f"sum(v for v in range({len(a) % 4}) if {b})",
                f"(lambda v: v + {b})({a})",
                "len(S)",
                "next(iter(S), 0)",
                *(self.call(scope, f) for f in self.callable(scope)[:1]),
            )
        )

    def test(self, scope: Scope) -> str:
        a, b = self.number(scope, 1), self.number(scope, 1)
        return str(
            self.pick(
                f"{a} % 2 == 0",
                f"{a} > {b}",
                "random.random() < 0.5",
                "len(xs) % 3 == 1",
                f"{a} == 1 or {b} == 2",
                "not xs",
                "'k' in d",
                "r.random() < 0.4",
            )
        )

    def callable(self, scope: Scope) -> list[Function]:
        return [
            f for f in self.functions if f.cost * scope.weight <= max(self.left, 0) and (scope.catching or not f.raises)
        ]

    def call(self, scope: Scope, function: Function) -> str:
        self.left -= function.cost * scope.weight
        words = [str(self.pick(*scope.ints, "1", "2")) for _ in range(function.parameters)]
        if function.parameters == 2 and self.chance(30):
            words[1] = f"b={words[1]}"
        return f"{function.name}({', '.join(words)})"

    # ------------------------------------------------------------------ blocks

    def block(self, scope: Scope, least: int = 1, most: int = 3) -> list[str]:
        lines: list[str] = []
        for _ in range(self.small(least, most)):
            lines += self.statement(scope)
        return lines

    def statement(self, scope: Scope) -> list[str]:
        if scope.depth < 4 and self.left > 0 and self.chance(38):
            return self.compound(scope)
        return self.leaf(scope)

    def compound(self, scope: Scope) -> list[str]:
        kinds = [self.for_, self.for_, self.while_, self.if_, self.if_, self.try_, self.with_, self.match_]
        return self.pick(*kinds)(scope)  # type: ignore[operator,no-any-return]

    def suite(self, scope: Scope, least: int = 1, most: int = 3) -> list[str]:
        return ["    " + line for line in self.block(scope, least, most)]

    # ------------------------------------------------------------------ loops

    def for_(self, scope: Scope) -> list[str]:
        n = self.small(1, 3)
        target, iterable, names = self.iterable(scope, n)
        body = scope.inner(loops=scope.loops + 1, breakable=True, weight=scope.weight * n)
        self.left -= scope.weight * (n + 1)
        body.ints += names
        lines = [f"for {target} in {iterable}:", *self.suite(body)]
        if self.chance(20):
            lines += ["else:", *self.suite(scope.inner(), 1, 2)]
        if self.chance(30):
            lines += self.record(scope, *names)
        return lines

    def record(self, scope: Scope, *names: str) -> list[str]:
        """Read names that a loop may not have bound."""
        return [
            "try:",
            f"    log.append(('after', {', '.join(names)}))",
            "except NameError:",
            "    log.append('unbound')",
        ]

    def iterable(self, scope: Scope, n: int) -> tuple[str, str, list[str]]:
        i, v = self.fresh("i"), self.fresh("v")
        one = [
            f"range({n})",
            f"range({self.number(scope, 1)} % {n + 1})",
            f"xs[-{n}:]",
            f"list(xs)[:{n}]",
            f"map(int, '{'120'[:n]}')",
            f"[{', '.join(map(str, range(n)))}]",
            f"gen({n})",
            f"quiet({n})",
            f"Walk({n})",
            f"(random.randrange(9) for _ in range({n}))",
            f"reversed(range({n}))",
            f"sorted(S)[:{n}]",
            f"np.random.permutation({n})",
            f"map(lambda v: v * 2, range({n}))",
            f"itertools.islice(itertools.count(2), {n})",
            f"itertools.chain(xs[:1], range({n - 1}))",
            f"A[:, :{n}].ravel()[:{n}].astype(int)",
            "tuple(S)[:2]",
            f"filter(None, range({n + 1}))",
            "set(xs[:2])",
            f"iter(range({n}))",
            "list(q)[:2]",
        ]
        pairs = [
            f"enumerate(xs[:{n}])",
            f"zip(range({n}), xs)",
            f"enumerate(list(d.items())[:{n}])",
            f"enumerate(gen({n}))",
            f"zip(range({n}), (random.randrange(4) for _ in range({n})))",
            f"itertools.product(range({n}), 'z')",
        ]
        match self.small(0, 9):
            case 0 | 1:
                return f"{i}, {v}", str(self.pick(*pairs)), [i]
            case 2 if not scope.function:
                target = self.pick("box.t", "d['t']", "xs[0]")
                return str(target), f"range({n})", []
            case 3:
                return f"{i}, *{v}", f"[(k, k + 1, k + 2) for k in range({n})]", [i]
            case 4:
                return i, f"collections.deque(xs[:{n}])", [i]
            case _:
                return i, str(self.pick(*one)), [i]

    def while_(self, scope: Scope) -> list[str]:
        n = self.small(1, 3)
        k = self.fresh("k")
        self.left -= scope.weight * (n + 1)
        body = scope.inner(loops=scope.loops + 1, breakable=True, weight=scope.weight * n)
        body.ints.append(k)
        step = [f"    {k} -= 1"]
        match self.small(0, 5):
            case 0 | 1:
                lines = [f"{k} = {n}", f"while {k} > 0:", *step, *self.suite(body)]
            case 2:
                lines = [f"{k} = {n}", f"while ({k} := {k} - 1) >= 0:", *self.suite(body)]
            case 3:
                lines = [f"{k} = {n}", "while True:", *step, f"    if {k} < 0: break", *self.suite(body)]
            case 4:
                lines = [f"{k} = {n}", f"while {k} and random.random() < 0.9:", *step, *self.suite(body)]
            case _:
                lines = [f"{k} = [{', '.join(map(str, range(n)))}]", f"while {k}:", f"    {k}0 = {k}.pop()"]
                body.ints[-1] = f"{k}0"
                lines += self.suite(body)
        if self.chance(20):
            lines += ["else:", *self.suite(scope.inner(), 1, 2)]
        return lines

    # ------------------------------------------------------------------ other compounds

    def if_(self, scope: Scope) -> list[str]:
        lines = [f"if {self.test(scope)}:", *self.suite(scope.inner())]
        if self.chance(30):
            lines += [f"elif {self.test(scope)}:", *self.suite(scope.inner())]
        if self.chance(40):
            lines += ["else:", *self.suite(scope.inner())]
        return lines

    def try_(self, scope: Scope) -> list[str]:
        lines = ["try:", *self.suite(scope.inner(catching=True))]
        kind = self.pick("Stop", "(Stop, ZeroDivisionError)", "Exception", "")
        bound = bool(kind) and self.chance(40)
        lines.append(f"except {kind} as e:" if bound else f"except {kind}:" if kind else "except:")
        lines += ["    log.append(('e', str(e)))"] if bound else []
        lines += self.suite(scope.inner(), 1, 2)
        if scope.catching and self.chance(15):
            lines.append("    raise")
        if self.chance(25):
            lines += ["else:", *self.suite(scope.inner(), 1, 2)]
        if self.chance(30):
            lines += ["finally:", *self.suite(scope.inner(breakable=False), 1, 2)]
        return lines

    def with_(self, scope: Scope) -> list[str]:
        name = self.fresh("c")
        inner = scope.inner()
        manager = self.pick(
            "contextlib.suppress(ZeroDivisionError)",
            "np.errstate(divide='ignore')",
            f"contextlib.nullcontext(4) as {name}",
            "contextlib.suppress(Stop)",
            f"open('w{self.count}.txt', 'w') as {name}",
            f"open('a{self.count}.txt', 'a') as {name}",
        )
        lines = [f"with {manager}:"]
        if "nullcontext" in str(manager):
            inner.ints.append(name)
        if "suppress(Stop)" in str(manager):
            inner.catching = True
        if "open(" in str(manager):
            lines += [f"    {name}.write('line %d\\n' % ({self.number(scope, 1)}))"]
        return [*lines, *self.suite(inner)]

    def match_(self, scope: Scope) -> list[str]:
        name = self.fresh("m")
        inner = scope.inner()
        inner.ints.append(name)
        lines = [f"match {self.number(scope, 1)} % 3:", "    case 0:"]
        lines += ["    " + line for line in self.suite(scope.inner())]
        lines += [f"    case {name}:"]
        return lines + ["    " + line for line in self.suite(inner)]

    # ------------------------------------------------------------------ leaves

    def leaf(self, scope: Scope) -> list[str]:
        a, b = self.number(scope), self.number(scope, 1)
        t = self.fresh("t")
        options: list[str] = [
            f"log.append(({self.count}, {a}, {b}))",
            f"log.append(({self.count}, {a}))",
            f"xs.append({a})",
            f"d['k'] = {a}",
            f"d[({b}) % 3] = d.pop(({b}) % 3, 0) + 1",
            f"A[({a}) % 2, ({b}) % 3] += {a}",
            f"row[({b}) % 3] = {a}",
            "flat[:] += 1",
            "A[1] *= 0.5",
            "random.shuffle(xs)",
            "g.shuffle(row)",
            "np.random.shuffle(A)",
            "log.append(random.gauss(0, 1))",
            "log.append(float(np.random.standard_normal()))",
            "nest['rows'].append(nest['rows'][0])",
            f"nest['rows'][-1].append({a})",
            "nest.setdefault('extra', []).append(xs)",
            f"box.push({a})",
            f"box.v = {a}",
            f"box.extra = [{a}, xs]",
            f"q.append({a})",
            "q and log.append(q.popleft())",
            f"S.add({a} % 11)",
            f"S.discard({a} % 4)",
            "log.append(sorted(S))",
            f"{t} = {a}; log.append({t})",
            f"{t}: int = {a}; xs.append({t})",
            f"{t}, *{t}r = xs or [0]; log.append(({t}, len({t}r)))",
            f"print('p', {a})",
            "log.append([y * 2 for y in xs[:3]])",
            f"log.append(dict(zip('ab', [{a}, {b}])))",
            "log.append({k: v for k, v in zip('ab', xs)})",
            f"log.append(f\"{{{a}}}-{{'in' + str({b})}}\")",
            f"with open('out.txt', 'a') as fh: fh.write('%d\\n' % ({a}))",
            f"with open('status.txt', 'w') as fh: fh.write('at %d\\n' % ({a}))",
            f"fs.append(lambda: ({a.replace('w :=', '0 +')}, len(xs)))" if not scope.function else "pass",
            f"fs.append(lambda v={b}: v + len(xs))",
            "log.append([f() for f in fs][-2:])" if not scope.function else "pass",
            f"log.append(1 // ({a} % 2))" if scope.catching else f"log.append({a})",
            f"try: log.append(1 // ({a} % 2))\nexcept ZeroDivisionError: log.append('zero')\nfinally: xs.append(1)",
            "del xs[3:]",
            "del log[9:]",
            "d.pop('k', None)",
            "hold.append(hold[0])",
            "hold[0].random()",
            "assert log is not None",
            "pass",
            *([f"if {self.test(scope)}: raise Stop({a})"] * 2 if scope.catching else []),
            *([f"if {self.test(scope)}: {self.pick('break', 'continue')}"] * 3 if scope.breakable else []),
            *(self.calls(scope, t) * 6 if self.callable(scope) else []),
            *self.assignments(scope, a, b),
        ]
        return str(self.pick(*options)).split("\n")

    def assignments(self, scope: Scope, a: str, b: str) -> list[str]:
        """Bind names of the cell; in a function they would be its own."""
        if scope.function:
            ends = [f"if {self.test(scope)}: return {a}", f"return {a}"] if scope.loops else []
            return [f"acc = (acc + {a}) % 83", "acc += 1", f"log.append(('acc', acc, {b}))", *ends]
        return [
            f"n0 = {a}",
            f"n0 += {b}",
            f"n1 = (n1 * 2 + {a}) % 71",
            "ys = xs",
            f"ys = xs[:] + [{a}]",
            "xs = ys",
            f"xs = [*xs[-3:], {a}]",
            "n0, n1 = n1, n0",
            "s += str(n1)[-1:]",
            "nest['ys'] = ys",
            "box = Box(ys)",
            "A = A.copy()",
            "A *= 0.5",
            "flat += 1",
            "row = A[0]",
            "gone = 1\ndel gone",
            "hold = [g, xs, fs]",
            "r = random.Random(n0)",
            "g = np.random.default_rng(n1)",
            "S = {*S, n0 % 9}",
            "q = collections.deque(xs[:2])",
            "fs = fs[-2:]",
            "import math; n1 = math.gcd(n0, 12)",
        ]

    def calls(self, scope: Scope, name: str) -> list[str]:
        function: Function = self.pick(*self.callable(scope))  # type: ignore[assignment]
        call = self.call(scope, function)
        return [f"{call}", f"{name} = {call}; log.append({name})", f"log.append({call})", f"xs.append({call} % 9)"][
            self.small(0, 3) :
        ][:1]

    # ------------------------------------------------------------------ functions

    def function(self) -> list[str]:
        """Write a function of the notebook; what it costs counts where it is called."""
        name = self.fresh("f")
        kind = self.small(0, 7)
        before, self.left = self.left, 9
        scope = Scope(ints=["a", "b", "acc"], function=name, depth=1)
        head, foot = ["    acc = a"], ["    return acc"]
        if kind == 1:
            head = ["    global n0, s", "    acc = n0", "    n0 = (n0 + a) % 61"]
        lines = [f"def {name}(a, b=2):", *head, *self.suite(scope, 1, 3), *foot]
        cost, self.left = 9 - self.left, before
        if kind == 2:
            lines = ["def make_" + lines[0][4:].replace("(a, b=2)", "()"), "    calls = 0"] + [
                "    " + one for one in lines
            ]
            lines[3:3] = ["        nonlocal calls", "        calls += 1", "        log.append(('calls', calls))"]
            lines += [f"    return {name}", f"{name} = make_{name}()"]
        elif kind == 3:
            lines = [
                f"def deco_{name}(f):",
                "    def wrapped(a, b=2):",
                "        log.append('in')",
                "        return f(a, b)",
                "    return wrapped",
                f"@deco_{name}",
                *lines,
            ]
        elif kind == 4:
            lines[1:1] = ["    if a > 3: return " + f"{name}(a % 3, b) + 1"]
            cost *= 2
        elif kind == 5:
            lines = [f"class C{name}:", "    def __init__(self): self.n = 0"] + ["    " + one for one in lines]
            lines[2] = lines[2].replace("(a, b=2)", "(self, a, b=2)")
            lines[3:3] = ["        self.n += a"]
            lines += [f"o{name} = C{name}()"]
            name = f"o{name}.{name}"
        self.functions.append(Function(name, cost + 1, raises=False, parameters=self.small(1, 2)))
        return lines
