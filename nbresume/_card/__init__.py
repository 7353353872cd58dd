"""What a person sees of a run: text, HTML and the drawn lineage, as pure functions of one value."""

from __future__ import annotations

from ._html import headline, html
from ._svg import svg
from ._text import runs_table, table, text
from ._verdict import verdict
from ._view import View
from ._words import size

__all__ = ["View", "html", "mimebundle", "runs_table", "size", "svg", "table", "text", "verdict"]


def mimebundle(view: View, *, now: str | None = None, is_brief: bool = False) -> dict[str, str]:
    """Return the card as a front end takes it, for ``display(..., raw=True)``.

    Parameters
    ----------
    view : View
        The run.
    now : str, optional
        The time that ages are told from, as the journal writes it.
    is_brief : bool
        Only name and state, where the whole card stands elsewhere.
    """
    if is_brief:
        return {"text/html": headline(view), "text/plain": text(view, now).partition("\n")[0]}
    return {"text/html": html(view, now=now), "text/plain": text(view, now)}
