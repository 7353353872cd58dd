"""What of a run's identity counts at the boundary where it stands: what has run, or lies on the way.

Statements behind that boundary have never run, and so they may change: a typo in the tail, found after thirty hours, is
no other experiment. So are functions and classes that only such statements reach.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._identity import Identity, Part, code_digest
from .._transform import Place, facts_of, reached, read_names
from .._transform._names import Needs
from .._types import Json
from ._places import Places
from ._reach import CELL, DECLARED_NAMES, Reached, reach_from

_Parts = dict[str, Part]


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a boundary lies in one unit: the place of its innermost statement, and loops that have run once."""

    place: Place
    ran: frozenset[Place]


@dataclass(frozen=True, slots=True)
class _Cut:
    text: str
    body: list[ast.stmt]


def stands(cursor: list[Json]) -> dict[str, Stand]:
    """Tell where a cursor lies in each unit whose rest has never run; none for a snapshot that does not know."""
    found: dict[str, Stand] = {}
    ran: dict[str, frozenset[Place]] = {}
    if any(frame["kind"] == "point" for frame in cursor):
        return {}  # what stands behind such a point has begun to run
    for frame in cursor:
        unit = frame["unit"]
        if "at" not in frame or (unit not in found and any(ran.values())):
            return found  # a function that a loop has called before has run to its end
        place = tuple(frame["at"])
        has_run = bool(frame.get("done")) or frame.get("count", 0) > 0
        ran[unit] = ran.get(unit, frozenset()) | (frozenset({place}) if has_run else frozenset())
        found[unit] = Stand(place, ran[unit])
    return found


def counted(
    old: Identity, now: Identity, cursor: list[Json], places: Places, declared: tuple[str, ...]
) -> tuple[Identity, Identity]:
    """Leave out of two identities what does not count at a boundary.

    Parameters
    ----------
    old, now : Identity
        As recorded, and as it is.
    cursor : list of dict
        Where the run stands.
    places : Places
        The notebook's names, as they are now.
    declared : tuple of str
        ``--vars``.
    """
    known = stands(cursor)
    cuts = _cut_both(CELL, old, now, known[""]) if "" in known else None
    if cuts is None:
        return old, now
    body = cuts[1].body
    kept = _reach(body, places, declared, {})
    ours = {CELL: cuts}
    heads: dict[str, set[str]] = {}
    for unit, stand in known.items():
        both = _cut_both(f"{unit}()", old, now, stand) if unit and _is_called_once(unit, body, kept) else None
        if both is not None:
            ours[f"{unit}()"] = both
            heads[unit] = set().union(*map(read_names, both[1].body))
    kept = _reach(body, places, declared, heads) if heads else kept
    return _of_old(old, {key: both[0] for key, both in ours.items()}, kept, now), _of_now(
        now, {key: both[1] for key, both in ours.items()}, kept, old
    )


def _reach(body: list[ast.stmt], places: Places, declared: tuple[str, ...], heads: Mapping[str, set[str]]) -> Reached:
    names = facts_of(body)
    names |= {"entry": Needs(body).entry, "reads": names["reads"] | set(declared)}
    return reach_from(names, places, heads)


def _cut_both(key: str, old: Identity, now: Identity, stand: Stand) -> tuple[_Cut, _Cut] | None:
    before, after = (_cut(identity.code.get(key), stand, is_function=key != CELL) for identity in (old, now))
    return None if before is None or after is None else (before, after)


def _cut(part: Part | None, stand: Stand, *, is_function: bool) -> _Cut | None:
    if part is None or not part.text:
        return None
    tree: Any = ast.parse(part.text)
    unit = tree.body[0] if is_function else tree
    body = reached(unit.body, stand.place, stand.ran) if isinstance(unit, (ast.FunctionDef, ast.Module)) else None
    if body is None:
        return None
    unit.body = body
    return _Cut(ast.unparse(unit), [unit] if is_function else body)


def _is_called_once(unit: str, body: list[ast.stmt], kept: Reached) -> bool:
    """Whether the call in progress is the only place that names a function: then it has not been called before."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    named = [n for n in nodes if unit in (getattr(n, "id", ""), getattr(n, "attr", ""))]
    return len(named) == 1 and unit not in kept.mentioned


def root_name(key: str) -> str:
    """Return the name in the notebook that a part of the identity hangs on."""
    key = key.removeprefix("class ").removeprefix("module ").removesuffix("()")
    return key.partition(":")[0].partition(".")[0]


def _with_cuts(code: _Parts, cuts: Mapping[str, _Cut]) -> _Parts:
    return code | {key: Part(code_digest(cut.text), cut.text) for key, cut in cuts.items()}


def _of_old(old: Identity, cuts: Mapping[str, _Cut], kept: Reached, now: Identity) -> Identity:
    always = {CELL, DECLARED_NAMES}
    code = {k: v for k, v in old.code.items() if k in kept.code or k in always or root_name(k) in kept.wanted}
    config = {k: v for k, v in old.config.items() if k in now.config or root_name(k) in kept.wanted}
    made = {k: v for k, v in old.makers.items() if k in config}
    return Identity(_with_cuts(code, cuts), config, _versions(old, kept, now), makers=made)


def _of_now(now: Identity, cuts: Mapping[str, _Cut], kept: Reached, old: Identity) -> Identity:
    code = {k: v for k, v in now.code.items() if k in kept.code or k in (CELL, DECLARED_NAMES)}
    # An input of both counts even where only the tail reads it: the snapshot may hold it as it was.
    config = {k: v for k, v in now.config.items() if k in kept.inputs or k in old.config}
    return Identity(_with_cuts(code, cuts), config, _versions(now, kept, old), makers=now.makers)


def _versions(one: Identity, kept: Reached, other: Identity) -> _Parts:
    return {k: v for k, v in one.environment.items() if k == "python" or k in kept.versions or k in other.environment}
