"""How an input came to be that can't be looked into: the statement of an earlier cell that bound it."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Iterable, Sequence

from .._identity import Part, code_digest, fingerprint
from .._transform import read_names
from .._transform._names import bound_names
from ._places import Places
from ._reach import is_clock

_SHOWN = 80


def makers(names: Iterable[str], history: Sequence[str], places: Places) -> dict[str, Part]:
    """Find the statement that bound each name, and fingerprint it with the plain values that it reads.

    Parameters
    ----------
    names : iterable of str
        Inputs with something in them that can't be compared.
    history : sequence of str
        The cells that ran, oldest first; one that can't be parsed tells nothing.
    places : Places
        The notebook's names.
    """
    names = list(names)
    statements = [statement for cell in (history if names else ()) for statement in _parsed(cell)]
    found: dict[str, Part] = {}
    for name in names:
        made = next((one for one in reversed(statements) if name in bound_names([one])), None)
        if made is not None and not isinstance(made, (ast.Import, ast.ImportFrom)):
            text = ast.unparse(made)
            digest = code_digest("\n".join([text, *_plain_reads(made, places)]))
            found[name] = Part(digest, text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
    return found


def _plain_reads(statement: ast.stmt, places: Places) -> list[str]:
    values = {name: places[name] for name in sorted(read_names(statement)) if name in places}
    return [f"{name} {fingerprint(value).digest}" for name, value in values.items() if _is_telling(value)]


def _is_telling(value: object) -> bool:
    """Whether a value is plain and no accident of its process, as a time or a temporary folder is."""
    if isinstance(value, str):
        return not value.startswith(tempfile.gettempdir())
    return isinstance(value, (bool, int, float, bytes)) and not is_clock(value)


def _parsed(cell: str) -> list[ast.stmt]:
    try:
        return ast.parse(cell).body
    except SyntaxError:
        return []
