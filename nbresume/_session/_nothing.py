"""What the rewritten cell finds in the place of a runtime when it only asks for its plan."""

from __future__ import annotations

from typing import Any


class Nothing:
    """The runtime under ``--plan``: everything is passed over."""

    live = setup = False

    def gates(self, _is_firm: bool) -> bool:  # noqa: FBT001  # a constant of the rewritten cell
        """Look at nothing."""
        return False

    def enters(self, _number: int, _depth: int) -> bool:
        """Enter nothing."""
        return False

    def again(self, _names: tuple[str, ...]) -> bool:
        """Repeat nothing."""
        return False

    def last(self, _value: Any) -> None:
        """Display nothing."""
