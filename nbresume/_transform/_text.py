"""The text of a cell: the magic line becomes one statement on that same line, so that line numbers stay."""

from __future__ import annotations

import ast
import re

MAGIC = "%%resumable"
MARKER = "__nbresume_cell__"
_PEELED = re.compile(r"%%time\s*$")
_OTHER = re.compile(r"%%(\w+)")


def marked(lines: list[str]) -> list[str]:
    """Replace the magic line of a cell by a marker statement; other cells come back as they are.

    Stateless: IPython calls it more than once for a cell.
    """
    if (
        not lines
        or not lines[0].startswith(MAGIC)
        or lines[0][len(MAGIC) : len(MAGIC) + 1] not in ("", " ", "\t", "\n")
    ):
        return lines
    rest = list(lines[1:])
    timed = False
    below = ""
    for place, line in enumerate(rest):
        if not line.strip():
            continue
        if _PEELED.match(line):
            rest[place], timed = "\n", True
        elif other := _OTHER.match(line):
            # Any other cell magic below would see the marker and not the cell: the rewrite refuses it by its name.
            rest[place], below = "\n", other[1]
        break
    arguments = lines[0][len(MAGIC) :].strip()
    return [f"{MARKER}({arguments!r}, timed={timed}, below={below!r})\n", *rest]


def marker_line(tree: ast.Module) -> tuple[str, bool, str] | None:
    """Read the marker statement of a cell: the magic line's arguments, ``%%time`` below, another magic below."""
    match tree.body[:1]:
        case [ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(line))], keywords=words))]:
            if name == MARKER:
                timed, below = (word.value.value for word in words if isinstance(word.value, ast.Constant))
                return line, bool(timed), str(below)
    return None
