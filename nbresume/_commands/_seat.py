"""Where a word is said: in a shell or in a notebook, with somebody there or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from .._store import RunFolder, Store
from ..errors import NotFoundError, StoreError


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a word is said.

    Attributes
    ----------
    root : Path
        Where runs live.
    out : TextIO
        Where answers go.
    attended : callable
        Whether a person is there, who may declare.
    is_terminal : bool
        Whether what is shown can be drawn over.
    """

    root: Path
    out: TextIO
    attended: Callable[[], bool]
    is_terminal: bool = False

    @property
    def store(self) -> Store:
        """The runs."""
        return Store(self.root)

    def write(self, text: str) -> None:
        """Show text; who follows a run through a pipe reads it as it comes."""
        self.out.write(text)
        self.out.flush()

    def say(self, text: str) -> None:
        """Show a line, or several."""
        self.write(f"{text}\n")

    def find(self, name: str) -> RunFolder:
        """Return the newest run of a name, or the run of an id.

        Raises
        ------
        NotFoundError
            When there is none.
        StoreError
            When there is one that can't be read: unreadable is never "no such run".
        """
        store = self.store
        try:
            return store.find(name)
        except NotFoundError:
            trouble = store.unreadable(name)
            if trouble:
                raise StoreError(trouble, str(store.root)) from None
            raise
