"""What a person sees of a run: text, HTML and the drawn lineage, as pure functions of one value."""

from __future__ import annotations

from ._html import html
from ._svg import svg
from ._text import runs_table, text
from ._view import View

__all__ = ["View", "html", "mimebundle", "runs_table", "svg", "text"]


def mimebundle(view: View, *, now: str | None = None) -> dict[str, str]:
    """Return the card as a front end takes it, for ``display(..., raw=True)``.

    Parameters
    ----------
    view : View
        The run.
    now : str, optional
        The time that ages are told from, as the journal writes it.
    """
    return {"text/html": html(view, now=now), "text/plain": text(view, now)}
