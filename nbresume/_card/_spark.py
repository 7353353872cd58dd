"""A metric as a line the height of two words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

WIDTH, HEIGHT = 150, 30
_MARGIN, _MOST = 3, 300


def spark(values: Sequence[float]) -> str:
    """Draw values as a small line; what is not finite is a gap.

    Parameters
    ----------
    values : sequence of float
        In order; of very many, evenly spaced ones and the last are drawn.

    Returns
    -------
    str
        A standalone SVG document.
    """
    kept = _thinned(values)
    points = _points(kept)
    lines = [_line(points, run) for run in _runs(kept)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'fill="none" stroke="#2f81c4" stroke-width="1.5" stroke-linejoin="round">{"".join(lines)}</svg>'
    )


def _thinned(values: Sequence[float]) -> list[float]:
    step = max(1, -(-len(values) // _MOST))
    kept = [float(value) for value in values[::-step]]
    return kept[::-1]


def _runs(values: list[float]) -> list[list[int]]:
    finite = groupby(range(len(values)), key=lambda index: math.isfinite(values[index]))
    return [list(run) for is_finite, run in finite if is_finite]


def _points(values: list[float]) -> list[tuple[float, float]]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    across = (WIDTH - 2 * _MARGIN) / max(len(values) - 1, 1)
    # Halved before they are subtracted: the distance of two floats may be no float.
    spread = high / 2 - low / 2

    def height(value: float) -> float:
        share = (value / 2 - low / 2) / spread if spread and math.isfinite(value) else 0.5
        return HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN)

    return [(_MARGIN + index * across, height(value)) for index, value in enumerate(values)]


def _line(points: list[tuple[float, float]], run: list[int]) -> str:
    if len(run) == 1:
        x, y = points[run[0]]
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.5" fill="#2f81c4"/>'
    drawn = " ".join(f"{points[index][0]:.1f},{points[index][1]:.1f}" for index in run)
    return f'<polyline points="{drawn}"/>'
