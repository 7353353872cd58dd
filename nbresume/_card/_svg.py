"""The lineage, drawn: a lane for each run, a mark for each event, a branch where a run was superseded.

The drawing is shown through ``<img>``, where it knows nothing of the page's theme: every colour here has a contrast of
at least 4:1 on white and on Jupyter's dark background, and no meaning hangs on colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise

from ._marks import Kind, Mark, marks, sentence
from ._view import View

COLOURS: dict[Kind, str] = {
    "launched": "#2f81c4",
    "resumed": "#2f81c4",
    "running": "#2f81c4",
    "snapshots": "#7a7a7a",
    "interrupted": "#c8590a",
    "completed": "#0b8a63",
    "superseded": "#9467bd",
    "failed": "#c8590a",
    "abandoned": "#7a7a7a",
    "more": "#7a7a7a",
}
GREY = "#7a7a7a"
_STEP: dict[Kind, int] = {"launched": 72, "resumed": 72, "snapshots": 64, "more": 62}
_PAUSE, _BEFORE_CLOSEOUT, _WITHOUT_SNAPSHOTS = 54, 68, 104
_LANE, _TOP, _LEFT, _INDENT, _BRANCH, _BEND = 86, 44, 7, 26, 37, 8
_RUNS, _ATTEMPTS, _EARLIER_ATTEMPTS = 4, 4, 2
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"

_SHAPES: dict[Kind, str] = {
    "launched": '<circle r="6" fill="{c}"/>',
    "resumed": '<path d="M-5-7 8 0-5 7Z" fill="{c}"/>',
    "snapshots": '<path d="M-5-5V5M0-5V5M5-5V5" stroke="{c}" stroke-width="2"/>',
    "interrupted": '<path d="M-5-5 5 5M5-5-5 5" stroke="{c}" stroke-width="3" stroke-linecap="round"/>',
    "running": '<circle r="5" fill="none" stroke="{c}" stroke-width="2.5" stroke-dasharray="3 2.2"/>',
    "completed": '<circle r="8" fill="{c}"/><path d="M-4 0-1 3 4-3" fill="none" stroke="#fff" stroke-width="2"/>',
    "superseded": '<path d="M0-7 7 0 0 7-7 0Z" fill="{c}"/>',
    "failed": '<path d="M-5-5 5 5M5-5-5 5M-8-8H8V8H-8Z" fill="none" stroke="{c}" stroke-width="2"/>',
    "abandoned": '<rect x="-5.5" y="-5.5" width="11" height="11" fill="none" stroke="{c}" stroke-width="2.5"/>',
    "more": '<path d="M-6 0h.1M0 0h.1M6 0h.1" stroke="{c}" stroke-width="4" stroke-linecap="round"/>',
}
_BEGINNINGS: tuple[Kind, ...] = ("launched", "resumed")
_QUIET: tuple[Kind, ...] = ("snapshots", "more")
_ABOVE: tuple[Kind, ...] = (*_QUIET, "superseded")


def svg(view: View) -> str:
    """Draw the lineage of a run and of those that it supersedes.

    Parameters
    ----------
    view : View
        The run; its earlier family is drawn above it. Of many runs and attempts the first and the newest are drawn,
        and how many are left out is written.

    Returns
    -------
    str
        A standalone SVG document; the same for the same view.
    """
    runs = [*view.family, (view.id, view.lineage)]
    shown = runs[-_RUNS:]
    body, x, width = [], _LEFT, 0
    top = _TOP if len(runs) > 1 else _TOP - 16
    for index, (run, lineage) in enumerate(shown):
        last = index == len(shown) - 1
        y = top + index * _LANE
        kept = view.kept or None if last else None
        lane = marks(lineage, _ATTEMPTS if last else _EARLIER_ATTEMPTS, kept)
        places = _places(lane, x)
        earlier = len(runs) - len(shown)
        title = f"{run}  (+ {earlier} earlier)" if earlier and not index else run
        body += [_title(x + (10 if index else -7), y - 29, title)] if len(runs) > 1 else []
        body += _line(lane, places, y)
        body += [_mark(mark, place, y) for mark, place in zip(lane, places, strict=True)]
        end = places[-1] if places else x
        width = max(width, end + 40, x + 7 * len(title))
        if not last:
            x += _INDENT
            body.append(_branch(end, x, y))
    return _document(view, width, top + (len(shown) - 1) * _LANE + 34, body)


def _places(lane: tuple[Mark, ...], x: int) -> list[int]:
    places = []
    for mark, after in pairwise((*lane, None)):
        if mark:
            places.append(x)
            x += _step(mark.kind, after.kind if after is not None else None)
    return places


def _step(kind: Kind, after: Kind | None) -> int:
    """Leave room for the words below the line: "2 resumed" before "vanished", "preempted" before "superseded"."""
    if kind in _BEGINNINGS and after != "snapshots":
        return _WITHOUT_SNAPSHOTS
    rest = _PAUSE if after is None or after in (*_BEGINNINGS, *_ABOVE) else _BEFORE_CLOSEOUT
    return _STEP.get(kind, rest)


def _line(lane: tuple[Mark, ...], places: list[int], y: int) -> Iterator[str]:
    """Join the marks: solid while a process was at work, dotted between two attempts."""
    for mark, start, end in zip(lane, places, places[1:], strict=False):
        works = mark.kind in ("launched", "resumed", "snapshots")
        dash = "" if works else ' stroke-dasharray="1 5" stroke-linecap="round"'
        yield f'<path d="M{start} {y}H{end}" stroke="{GREY}" stroke-width="2"{dash}/>'


def _mark(mark: Mark, x: int, y: int) -> str:
    colour = COLOURS[mark.kind]
    shape = _SHAPES[mark.kind].format(c=colour)
    above, begins = mark.kind in _ABOVE, mark.kind in _BEGINNINGS
    label = _label(mark.label, -13 if above else 23, GREY if mark.kind in _QUIET else colour, is_first=begins)
    title = f"<title>{escape(mark.detail)}</title>"
    return f'<g data-event="{mark.kind}" transform="translate({x} {y})">{title}{shape}{label}</g>'


def _branch(end: int, start: int, y: int) -> str:
    """Lead from where a run was superseded down to where the next one begins."""
    across, down = y + _BRANCH, y + _LANE - 9
    way = (
        f"M{end} {y + 9}V{across - _BEND}q0 {_BEND} -{_BEND} {_BEND}H{start + _BEND}q-{_BEND} 0 -{_BEND} {_BEND}V{down}"
    )
    return f'<path d="{way}" fill="none" stroke="{COLOURS["superseded"]}" stroke-width="2" stroke-dasharray="5 3"/>'


def _label(words: str, y: int, colour: str, *, is_first: bool = False) -> str:
    """Write a word above or below a mark; that of an attempt's beginning stands under the line that follows."""
    place = 'x="-6"' if is_first else 'text-anchor="middle"'
    return f'<text {place} y="{y}" fill="{colour}">{escape(words)}</text>'


def _title(x: int, y: int, words: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{GREY}" font-weight="600">{escape(words)}</text>'


def _document(view: View, width: int, height: int, body: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{_FONT}" font-size="11">'
        f"<title>{escape(f'Lineage of {view.name}')}</title><desc>{escape(sentence(view))}</desc>"
        f"{''.join(body)}</svg>"
    )
