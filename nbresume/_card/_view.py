"""All that a card shows of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._lineage import Lineage, State


@dataclass(frozen=True, slots=True)
class View:
    """One run, as a person looks at it.

    Attributes
    ----------
    name : str
        Name on the magic line.
    id : str
        Folder name, unique in its store.
    lineage : Lineage
        Its attempts and how they ended.
    state : State
        Where its lineage stands now.
    where : str
        Where it stands, in words: ``epoch 7 of 30, batch 310 of 500``.
    loops : tuple of (str, int, int or None)
        Label, finished items, and total where it is known; outermost first.
    snapshot : mapping
        Facts of the newest snapshot event: ``snapshot``, ``where``, ``bytes``, ``seconds``, ``loops``.
    snapshot_at : str
        When that was, as the journal writes it.
    saved : tuple of (str, int)
        Each saved name and its bytes.
    identity : tuple of (str, str)
        Each part that must stay equal, and a short text of it.
    differences : tuple of str
        What differs from the identity now; empty when it is the same run.
    notes : tuple of str
        What a reader should know: rejected snapshots, files cut back, warnings.
    family : tuple of (str, Lineage)
        Earlier runs of the same name, oldest first, by id.
    log_tail : tuple of str
        The last lines that the cell printed.
    metrics : mapping of str to sequence of float
        Values to plot small, in order.
    offer : bool
        Whether a fresh kernel found it interrupted and offers to continue it.
    said : str
        What a person decided and no execution has followed yet: ``continue``, ``supersede`` or empty.
    disk : int
        Bytes that the run takes on the disk, with all that it keeps.
    seconds_left : float or None
        How long it will still take, where the pace and the length of its loops are known.
    rate : tuple of (str, float) or None
        Label of a loop, and how many of its iterations are done in a second of work.
    active : float or None
        Seconds that it has worked, in all attempts that led here.
    stands_at : str
        When a running attempt said that it stands there; empty where it is known from the last snapshot alone.
    kept : mapping of int to int
        How many snapshots of each attempt are on the disk.
    belief : str
        What was seen of the newest snapshot's file: ``verified`` when all of it was read and compared, ``complete``
        when its completion marker was; and whether it is signed. Else why it can't be believed.
    """

    name: str
    id: str
    lineage: Lineage
    state: State
    where: str = ""
    loops: tuple[tuple[str, int, int | None], ...] = ()
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    snapshot_at: str = ""
    saved: tuple[tuple[str, int], ...] = ()
    identity: tuple[tuple[str, str], ...] = ()
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    family: tuple[tuple[str, Lineage], ...] = ()
    log_tail: tuple[str, ...] = ()
    metrics: Mapping[str, Sequence[float]] = field(default_factory=dict)
    offer: bool = False
    said: str = ""
    disk: int = 0
    seconds_left: float | None = None
    rate: tuple[str, float] | None = None
    active: float | None = None
    stands_at: str = ""
    kept: Mapping[int, int] = field(default_factory=dict)
    belief: str = ""
