"""Whether changed code can go on from a snapshot: the same way to the boundary, and all names that it needs there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._identity import Identity
from .._transform import CellPlan, Place, UnitPlan, range_of, read_names, statement_at
from .._types import Json
from ._frames import Frame
from ._outlook import outlook
from ._reach import CELL, Reached


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands, and the code that would go on from there.

    Attributes
    ----------
    plan : CellPlan
        The cell as it is now.
    units : mapping
        Plans of the functions on the way, as they are now.
    meta : dict
        What the snapshot tells of itself.
    there : collection of str
        Names of the notebook now.
    is_fresh : bool
        Whether the set-up runs again.
    """

    plan: CellPlan
    units: Mapping[str, UnitPlan]
    meta: Json
    there: Collection[str] = ()
    is_fresh: bool = True

    def unit(self, name: str) -> UnitPlan | None:
        """Return the plan of a unit on the way."""
        return self.units.get(name) if name else self.plan.unit

    @property
    def cursor(self) -> list[Json]:
        """The frames of the snapshot."""
        frames: list[Json] = self.meta["cursor"]
        return frames


def obstacle(standing: Standing, old: Identity, now: Identity, found: Reached) -> str:
    """Tell why not even a person can declare the change to be none; empty when one can.

    Parameters
    ----------
    standing : Standing
        Where the run stands.
    old, now : Identity
        As recorded, and as it is.
    found : Reached
        What the cell reaches now.
    """
    if old.environment.get("python") != now.environment.get("python"):
        return "a snapshot is read by the Python that wrote it"
    extends = _header_names(standing)
    for name in sorted({*old.config, *now.config}):
        before, after = old.config.get(name), now.config.get(name)
        if before is None or (after is None and name not in found.wanted):
            continue  # read only by the changed code, or no longer by any
        if after is None or (before.digest != after.digest and name not in extends):
            return f"{name} is an input; only code and a longer range can be declared"
    return (
        other_way(standing) or _other_header(standing, old, now) or _not_held(standing) or _other_setup(standing, old)
    )


def _other_setup(standing: Standing, old: Identity) -> str:
    """Tell that the set-up has changed where it is passed over, since its objects live."""
    first = standing.plan.unit.steps[1].place[0]
    before, after = (ast.parse(text).body[: int(first)] for text in (old.code[CELL].text, standing.plan.source))
    same = standing.is_fresh or [*map(ast.unparse, before)] == [*map(ast.unparse, after)]
    return "" if same else "the set-up has changed, and it runs again only in a new kernel. Restart the kernel first"


def _not_held(standing: Standing) -> str:
    held = {*standing.meta["saved"], *standing.meta["inputs"]}
    lost = sorted({*out_of_reach(standing), *(name for name in standing.plan.options.declared if name not in held)})
    return f"{', '.join(lost)}: the changed code needs it, and the snapshot does not hold it" if lost else ""


def out_of_reach(standing: Standing) -> tuple[str, ...]:
    """Return names that the code needs at the boundary, and that neither the snapshot nor the set-up gives."""
    if other_way(standing):
        return ()
    frames = [
        Frame(step["id"], step["unit"], step["kind"], depth, step.get("label", ""), done=bool(step.get("done")))
        for depth, step in enumerate(standing.cursor)
    ]
    needed, remade = outlook(frames, standing.plan.unit, standing.units, "")
    bound = standing.plan.unit.bound
    could_bind = {*standing.meta.get("bindable", bound), *(bound.difference(standing.there))}
    lost = (needed & could_bind) - set(standing.meta["saved"]) - remade
    for depth, (frame, step) in enumerate(zip(frames, standing.cursor, strict=True)):
        if frame.kind == "call" and frame.label in standing.units:
            unit = standing.units[frame.label]
            inside, again = outlook(frames[depth + 1 :], unit, standing.units, frame.label)
            lost |= (inside & set(step.get("unsaved", ()))) - again
    return tuple(sorted(lost))


def other_way(standing: Standing) -> str:
    """Tell where the way to the boundary is not what it was."""
    above: dict[str, int] = {}
    for frame in standing.cursor:
        name = frame["unit"]
        unit = standing.unit(name)
        depth = above[name] = above.get(name, 0) + 1
        if unit is None or not _is_step(unit, frame, depth):
            what = f"{frame['kind']} {frame.get('label', '')}".replace("inside ", "with or try").strip()
            return f"the way to the resume point is another: {what!r} stood on it{f' in {name}()' if name else ''}"
    return ""


def _is_step(unit: UnitPlan, frame: Json, depth: int) -> bool:
    """Whether a statement of the way is there still, under the same number and as deep."""
    step = unit.steps.get(frame["id"])
    if step is None or step.kind != frame["kind"]:
        return False
    if step.kind == "for" and unit.loops[frame["id"]].label != frame["label"]:
        return False
    return depth == 1 + sum(_is_inside(step.place, other.place) for other in unit.steps.values())


def _is_inside(place: Place, other: Place) -> bool:
    return len(other) < len(place) and place[: len(other)] == other


def _other_header(standing: Standing, old: Identity, now: Identity) -> str:
    """Tell which iterable on the way has changed: its content was saved, and would be looped over all the same."""
    for place, (frame, before, after) in enumerate(_headers(standing, old, now)):
        if before is None or after is None or ast.unparse(before) == ast.unparse(after):
            continue
        if place or frame["unit"] or range_of(before) is None or range_of(after) is None:
            return (
                f"'for {frame['label']}' goes on over what it was entered with, {ast.unparse(before)}, "
                f"and not over {ast.unparse(after)}"
            )
    return ""


def _headers(
    standing: Standing, old: Identity, now: Identity
) -> Iterator[tuple[Json, ast.expr | None, ast.expr | None]]:
    for frame in standing.cursor:
        unit = standing.unit(frame["unit"])
        if frame["kind"] == "for" and unit is not None and "at" in frame:
            place = unit.steps[frame["id"]].place
            yield frame, _header(old, frame["unit"], tuple(frame["at"])), _header(now, frame["unit"], place)


def _header(identity: Identity, unit: str, place: Place) -> ast.expr | None:
    part = identity.code.get(f"{unit}()" if unit else CELL)
    if part is None or not part.text:
        return None
    tree: Any = ast.parse(part.text)
    header: ast.expr | None = getattr(statement_at(tree.body[0].body if unit else tree.body, place), "iter", None)
    return header


def _header_names(standing: Standing) -> set[str]:
    """Return the names that the length of the outermost loop hangs on, where it loops over a range."""
    loops = [frame for frame in standing.cursor if frame["kind"] in ("for", "while")]
    unit = standing.plan.unit
    if not loops or loops[0]["unit"] or loops[0].get("done") or loops[0]["id"] not in unit.steps:
        return set()
    statement = statement_at(ast.parse(standing.plan.source).body, unit.steps[loops[0]["id"]].place)
    return read_names(range_of(getattr(statement, "iter", None)))
