"""Fingerprints of code, and which global names a code object touches.

A notebook function is known by its code object, not by its text: comments, blanks, quotes and line numbers do not
count, and it works where no source can be found (a class of ``__main__`` has no file).
"""

from __future__ import annotations

import ast
import dis
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path

import xxhash


def normalised(tree: ast.AST) -> str:
    """Render a syntax tree so that comments, blanks, quotes and positions do not count."""
    return ast.unparse(tree)


def code_digest(text: str | bytes) -> str:
    """Digest a text."""
    return xxhash.xxh3_128_hexdigest(text if isinstance(text, bytes) else text.encode())


def function_digest(code: types.CodeType) -> str:
    """Digest what a code object does, without its name, file and lines."""
    hasher = xxhash.xxh3_128()
    hasher.update(code.co_code)
    for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        hasher.update("\0".join(names).encode() + b"\1")
    hasher.update(f"{code.co_argcount},{code.co_posonlyargcount},{code.co_kwonlyargcount},{code.co_flags}".encode())
    hasher.update(getattr(code, "co_exceptiontable", b""))
    for const in code.co_consts:
        hasher.update(_const(const).encode() + b"\2")
    return hasher.hexdigest()


def _const(const: object) -> str:
    match const:
        case types.CodeType():
            return function_digest(const)
        case tuple():
            return "(" + ",".join(_const(item) for item in const) + ")"
        case frozenset():
            return "{" + ",".join(sorted(_const(item) for item in const)) + "}"
        case _:
            return f"{type(const).__name__}:{const!r}"


def nested_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and all that are defined inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from nested_codes(const)


def rebound_cells(code: types.CodeType) -> set[str]:
    """Return the closure's variables that a code object rebinds."""
    return {str(one.argval) for one in dis.get_instructions(code) if one.opname in ("STORE_DEREF", "DELETE_DEREF")}


def reads_and_writes(code: types.CodeType) -> tuple[set[str], set[str]]:
    """Tell which global names a code object, and all that it defines inside, reads and rebinds."""
    reads, writes = set(), set()
    for inner in nested_codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                reads.add(str(instruction.argval))
            elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                writes.add(str(instruction.argval))
    return reads, writes


_ANY_NAME = frozenset({"globals", "exec", "eval"})
_ANY_NAME_HERE = frozenset({"locals", "vars"})
_SHELL_NAMES = frozenset({"user_ns", "user_global_ns", "run_cell", "ex"})
_RUNNING_MAGICS = frozenset({"run", "rerun", "store", "prun", "timeit"})


def reaches_any_name(code: types.CodeType) -> bool:
    """Whether code can touch globals that it does not name: ``globals()``, ``exec``, ``import __main__``, ``%run``."""
    return any(_opens(inner, one) for inner in nested_codes(code) for one in dis.get_instructions(inner))


def _opens(code: types.CodeType, instruction: dis.Instruction) -> bool:
    match instruction.opname:
        case "LOAD_GLOBAL":
            return instruction.argval in _ANY_NAME
        case "LOAD_NAME":
            return instruction.argval in _ANY_NAME | _ANY_NAME_HERE
        case "IMPORT_NAME":
            return bool(instruction.argval == "__main__")
        case "LOAD_ATTR" | "LOAD_METHOD":
            runs = instruction.argval == "run_line_magic" and bool(_RUNNING_MAGICS & set(map(str, code.co_consts)))
            return runs or instruction.argval in _SHELL_NAMES
    return False


def mentioned(code: types.CodeType) -> set[str]:
    """Return every name that a code object, or one inside it, mentions: globals and attributes."""
    return {name for inner in nested_codes(code) for name in inner.co_names}


def _installed_roots() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({Path(path).resolve() for name in names if (path := sysconfig.get_path(name))})


def is_local_module(module: types.ModuleType) -> bool:
    """Whether a module belongs to no installed distribution: beside the notebook, or an editable install."""
    file = getattr(module, "__file__", None)
    if not file or module.__name__ == "__main__" or module.__name__.partition(".")[0] == "nbresume":
        return False
    path = Path(file).resolve()
    if path.suffix != ".py" or {"site-packages", "dist-packages"} & set(path.parts):
        return False
    return not any(path.is_relative_to(root) for root in _installed_roots())


def local_module_of(value: object) -> types.ModuleType | None:
    """Return the local module that a function, class or instance comes from, if it does."""
    name = getattr(value, "__module__", None) or type(value).__module__
    module = sys.modules.get(name) if isinstance(name, str) else None
    return module if module is not None and is_local_module(module) else None


def module_parts(module: types.ModuleType) -> tuple[str, dict[str, str]]:
    """Digest the source of a local module by its syntax tree, whole and by function and class."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(source)
    except SyntaxError:  # it was edited after its import: what runs is the import, what counts is the difference
        return code_digest(source), {}
    texts: dict[str, str] = {}
    for node in tree.body:
        kinds = {ast.FunctionDef: "function", ast.AsyncFunctionDef: "function", ast.ClassDef: "class"}
        name = f"{kinds[type(node)]} {node.name}" if type(node) in kinds else "its top level"  # type: ignore[attr-defined]
        texts[name] = texts.get(name, "") + ast.unparse(node) + "\n"
    return code_digest(normalised(tree)), {name: code_digest(text)[:16] for name, text in texts.items()}
