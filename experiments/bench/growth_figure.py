"""Draws docs/images/growth.svg, which shows how costs grow, from the record of `ownfeed bench growth`.

One panel each for articles, devices and cohorts. Both axes are logarithmic, so a line's slope is its exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from experiments.bench.growth import FOUND, MEASURED
from experiments.records import Record

RECORD, PATH = "bench-growth", Path("docs/images/growth.svg")
PANEL_WIDTH, HEIGHT, MARGIN, GAP, LEGEND_LINE = 300, 300, 44, 16, 17
COLOURS = ("#1f5f8b", "#b5532a", "#3c7d4f", "#6b4f8f")
STYLE = (
    "text{font:11px sans-serif;fill:#222}.t{font-weight:bold;font-size:12px}.g{stroke:#ddd}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#444}}"
)
Points = Sequence[tuple[float, float]]


def shown(record: Record) -> str:
    """Return the figure's markdown, with the exponents as alternative text."""
    told = (f"{what} by {of} {exponent}" for of, what, *_, exponent, _ in record.table(FOUND).rows)
    return f"![Costs by size, both axes logarithmic; exponents: {', '.join(told)}](../images/{PATH.name})"


def draw(record: Record) -> str:
    """Return the figure as SVG. Raises KeyError for a record without the tables."""
    exponents = {(of, what): exponent for of, what, *_, exponent, _ in record.table(FOUND).rows}
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for of, what, size, cost in record.table(MEASURED).rows:
        panels.setdefault(str(of), {}).setdefault(str(what), []).append((float(size or 0), float(cost or 0)))
    lines = max(len(courses) for courses in panels.values())
    width, height = len(panels) * (PANEL_WIDTH + GAP), HEIGHT + lines * LEGEND_LINE
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' aria-label="Costs by size, both logarithmic"><style>{STYLE}</style>'
    ]
    for number, (of, courses) in enumerate(panels.items()):
        drawn.append(f'<g transform="translate({number * (PANEL_WIDTH + GAP)} 0)">')
        drawn += _panel(of, courses)
        for line, what in enumerate(courses):
            at, colour = HEIGHT + line * LEGEND_LINE + 8, COLOURS[line]
            drawn.append(
                f'<line x1="{MARGIN}" x2="{MARGIN + 18}" y1="{at}" y2="{at}" stroke="{colour}" stroke-width="2"/>'
            )
            told = escape(f"{what}: exponent {exponents[(of, what)]:g}")
            drawn.append(f'<text x="{MARGIN + 24}" y="{at + 4}">{told}</text>')
        drawn.append("</g>")
    return "\n".join((*drawn, "</svg>\n"))


def _panel(of: str, courses: dict[str, list[tuple[float, float]]]) -> Iterator[str]:
    every = [point for points in courses.values() for point in points]
    across, up = _decades([x for x, _ in every]), _decades([y for _, y in every])

    def place(x: float, y: float) -> tuple[float, float]:
        share = [(math.log10(value) - low) / (high - low) for value, (low, high) in ((x, across), (y, up))]
        room = PANEL_WIDTH - MARGIN - 8, HEIGHT - 2 * MARGIN
        return MARGIN + share[0] * room[0], HEIGHT - MARGIN - share[1] * room[1]

    yield f'<text class="t" x="{MARGIN}" y="20">by {escape(of)}</text>'
    for decade in range(across[0], across[1] + 1):
        x, bottom = place(10.0**decade, 10.0 ** up[0])
        yield f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{MARGIN}" y2="{bottom:.1f}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{_power(decade)}</text>'
    for decade in range(up[0], up[1] + 1):
        left, y = place(10.0 ** across[0], 10.0**decade)
        yield f'<line class="g" x1="{left:.1f}" x2="{PANEL_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{left - 5:.1f}" y="{y + 4:.1f}" text-anchor="end">{_power(decade)}</text>'
    for colour, points in zip(COLOURS, courses.values(), strict=False):
        placed = [place(*point) for point in points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        yield f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten around the values."""
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _power(decade: int) -> str:
    return f"{10**decade:,}" if decade >= 0 else f"{10.0**decade:g}"
