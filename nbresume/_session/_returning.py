"""What is looked at, and put back, on the way back beside the saved graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._capture import Definitions, Loaded, content_digest, load
from .._identity import fingerprint
from .._store import Snapshot, SnapshotError
from ..errors import ReplayError
from ._places import Places
from ._skip import is_bar, start_bar_at, start_clock


class Held:
    """The bytes of the snapshot to go back to, read and checked at once: its objects are made when the loop is reached.

    Attributes
    ----------
    loaded : Loaded or None
        None where they can't be held; why shows when the objects are made.
    """

    def __init__(self) -> None:
        self.loaded: Loaded | None = None

    def take(self, snapshot: Snapshot) -> None:
        """Read a snapshot.

        Raises
        ------
        SnapshotError
            When it can't be believed.
        UntrustedError
            When it is not signed with a key of ours.
        """
        stream, tables = snapshot.stream_and_tables()
        try:
            self.loaded = load(stream, tables, snapshot.read)
        except SnapshotError:
            raise
        except Exception:  # noqa: BLE001  # a module that is missing, too little memory
            self.loaded = None
            snapshot.verify()


def check_inputs(
    digests: Mapping[str, str], places: Places, definitions: Definitions, *, is_declared: bool = False
) -> None:
    """Check inputs saved by name, in the process that has run the cell before.

    Parameters
    ----------
    digests : mapping of str to str
        As the snapshot knows them; empty where there was no telling.
    places : Places
        The notebook's names.
    definitions : Definitions
        Its functions and classes.
    is_declared : bool
        Whether a person has declared a longer range: then the number it hangs on is another.

    Raises
    ------
    ReplayError
        When one has been changed since.
    """
    for place, digest in digests.items():
        if place not in places or (is_declared and type(places[place]) is int):
            continue
        if digest and content_digest(places[place], definitions=definitions)[0] != digest:
            raise ReplayError(
                f"{place!r} has been changed since the snapshot, which does not hold it. Restart the kernel and run "
                "the notebook from its top"
            )


def changed_name(restored: Mapping[str, Any], places: Places) -> str:
    """Name what the way back has changed of what was restored."""
    for name, value in restored.items():
        if name not in places or fingerprint(value).digest != fingerprint(places[name]).digest:
            return name
    return "an object that several names share"


def put_bars(bars: Mapping[str, int], places: Places, driven: Sequence[Any]) -> None:
    """Let progress bars stand where they stood, and count the time from now on.

    Parameters
    ----------
    bars : mapping of str to int
        Where each bar of the cell stood.
    places : Places
        The notebook's names.
    driven : sequence of object
        Bars that loops drive: those stand there already.
    """
    known = {id(bar) for bar in driven}
    named = {name: places[name] for name in bars if name in places and is_bar(places[name])}
    own = {name: bar for name, bar in named.items() if id(bar) not in known}
    for name, bar in own.items():
        if bar.n:  # of this process, with the time that it took
            bar.n = bar.last_print_n = bars[name]
        else:
            start_bar_at(bar, bars[name])
    for bar in [*driven, *own.values()]:
        start_clock(bar)
