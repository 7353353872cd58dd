"""What the rewrite knows of a cell, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._options import CellOptions

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """A tracked loop.

    Attributes
    ----------
    id : int
        Its number in its unit.
    line : int
        Line in the source.
    kind : str
        ``for`` or ``while``.
    label : str
        How a person would name it: its target, or its condition.
    live : frozenset of str
        Names that may be read after its boundary before they are bound again.
    live_after : frozenset of str
        The same when it is done.
    remade : frozenset of str
        Names bound by statements on the way to it, which can run again.
    reads : frozenset of str
        Names that the iterable's expression reads.
    draws : bool
        Whether evaluating that expression may draw from a random stream.
    changes : bool
        Whether it may change what it reads.
    has_else : bool
        Whether something runs when it is exhausted.
    targets : frozenset of str
        Names that it binds with each item.
    """

    id: int
    line: int
    kind: str
    label: str
    live: Names = frozenset()
    live_after: Names = frozenset()
    remade: Names = frozenset()
    reads: Names = frozenset()
    draws: bool = True
    changes: bool = True
    has_else: bool = False
    targets: Names = frozenset()


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A tracked call of a notebook function that holds a loop."""

    id: int
    line: int
    function: str
    live: Names = frozenset()
    remade: Names = frozenset()


@dataclass(frozen=True, slots=True)
class PointPlan:
    """A call of ``nbresume.resume_point()``."""

    id: int
    line: int
    live: Names = frozenset()
    remade: Names = frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """A statement that a way back can lead through.

    Attributes
    ----------
    kind : str
        ``for``, ``while``, ``if``, ``inside``, ``call`` or ``point``, as in the cursor.
    place : tuple
        Where it stands in the unit's syntax tree: ``(3, "body", 0)``.
    """

    kind: str
    place: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """A piece of code that was rewritten: the cell itself, or a function.

    Attributes
    ----------
    name : str
        Empty for the cell.
    bound : frozenset of str
        Names the unit can bind in its own scope.
    reads : frozenset of str
        Names it reads.
    entry : frozenset of str
        Names it may read before it has bound them: they come from outside.
    read_inside : frozenset of str
        Names read by functions defined in it, at a time of their own.
    read_elsewhere : frozenset of str
        Names read anywhere but as the iterable of a loop.
    mutated : frozenset of str
        Names whose object it visibly changes in place.
    read_for_value : frozenset of str
        Names read for what they hold, not only told something or looped over.
    order_drawn : frozenset of str
        Names whose hidden order it would draw from, were they sets.
    popped : frozenset of str
        Names whose ``pop()`` it calls.
    catches_interrupt : bool
        Whether a handler of its own catches KeyboardInterrupt.
    withs : dict of int to int
        Number to line of each ``with`` outside the set-up that holds a boundary.
    with_targets : frozenset of str
        Names they bind.
    with_reads : dict of int to frozenset of str
        Number of each ``with`` in the set-up that holds a boundary, and the names its managers are made of.
    loops, calls, points, steps : dict
        By number; ``steps`` has all of them, and what stands around them.
    statements : tuple of (int, str, str, str)
        Line, text, what happens at launch, what happens on resume; for ``--plan``.
    """

    name: str
    bound: Names
    reads: Names
    entry: Names
    read_inside: Names
    read_elsewhere: Names
    mutated: Names
    popped: Names
    order_drawn: Names
    read_for_value: Names
    catches_interrupt: bool = False
    withs: dict[int, int] = field(default_factory=dict)
    with_targets: Names = frozenset()
    with_reads: dict[int, Names] = field(default_factory=dict)
    loops: dict[int, LoopPlan] = field(default_factory=dict)
    calls: dict[int, CallPlan] = field(default_factory=dict)
    points: dict[int, PointPlan] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)
    statements: tuple[tuple[int, str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CellPlan:
    """A cell under ``%%resumable``.

    Attributes
    ----------
    options : CellOptions
        The magic line.
    source : str
        The body, normalised: what ``code`` identity compares.
    unit : UnitPlan
        The cell's own scope.
    """

    options: CellOptions
    source: str
    unit: UnitPlan
