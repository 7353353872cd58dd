"""What a person sees of a run: text, HTML and the drawn lineage, as pure functions of one value."""

from __future__ import annotations

from collections.abc import Sequence

from ._html import headline, html
from ._offers import offers_html, offers_text
from ._rerun import rerun
from ._svg import svg
from ._text import runs_table, table, text
from ._verdict import verdict
from ._view import View
from ._words import size

__all__ = [
    "View",
    "html",
    "mimebundle",
    "offer_bundle",
    "rerun",
    "runs_table",
    "size",
    "svg",
    "table",
    "text",
    "verdict",
]


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


def offer_bundle(views: Sequence[View]) -> dict[str, str]:
    """Return the offer of interrupted runs: the card of a single one, else one list of all.

    Parameters
    ----------
    views : sequence of View
        The runs that were found interrupted, as they are now.
    """
    if len(views) > 1:
        return {"text/html": offers_html(views), "text/plain": offers_text(views)}
    return mimebundle(views[0], is_brief=views[0].state != "interrupted")
