"""What one boundary saves."""

from __future__ import annotations

from dataclasses import dataclass

from .._capture import Captured


@dataclass(slots=True)
class Selection:
    """What one boundary saves.

    Attributes
    ----------
    saved : tuple of str
        Places in the graph.
    unsaved : tuple of str
        Names that the cell has bound and that could not be saved.
    inputs : dict of str to str
        Digest of each input that is saved by name only; empty where it can't be digested.
    gone : tuple of str
        Places that the launch had and that are not bound any more.
    captured : Captured
        The graph itself.
    """

    saved: tuple[str, ...]
    unsaved: tuple[str, ...]
    inputs: dict[str, str]
    gone: tuple[str, ...]
    captured: Captured
