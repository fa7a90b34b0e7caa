"""The frontier of recall over bytes and pool size, with a drawing per pool.

The figures are those that `ownfeed bench pools` recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.measurements.frontier import (
    HEIGHT,
    MARGIN,
    NAME_HEIGHT,
    NAMES_WIDTH,
    WIDTH,
    FrontierDrawing,
    Level,
    Line,
    apart,
)
from backend.measurements.published import PublishedRecord, PublishedTable

PUBLISHED = "bench-pools"
FOUND_COLUMNS, WEIGHT_COLUMNS = ("pool", "report", "epsilon", "R@400 %"), ("pool", "report", "400 places")
COPY = "broadcast"
"""The method that sends the whole pool; drawn as a level, since its size doesn't grow with the list."""
COPY_PLACE = "R@400 %"
SHARE_TICKS, WEIGHT_TICK_KB = 10, 200


@dataclass(frozen=True)
class DrawnWay:
    """One method of finding articles in one pool: (bytes, percent found), by length."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class DrawnPool:
    """The drawing of a pool of this size: percent found by kilobytes of an answer."""

    news: int
    drawing: FrontierDrawing


def drawn_pools(record: PublishedRecord) -> list[DrawnPool]:
    """Every pool of the record. Raises ValueError for a record without the two tables."""
    found, weight = _table(record, FOUND_COLUMNS), _table(record, WEIGHT_COLUMNS)
    shares = [at for at, column in enumerate(found.columns) if column.startswith("R@")]
    places = [at for at, column in enumerate(weight.columns) if column.endswith(" places")]
    weights = {(row[0], row[1]): [float(str(row[at])) for at in places] for row in weight.rows}
    pools: dict[int, tuple[list[DrawnWay], dict[str, float]]] = {}
    for row in found.rows:
        lists, levels = pools.setdefault(int(str(row[0])), ([], {}))
        sizes = weights[row[0], row[1]]
        if str(row[1]).startswith(COPY):
            megabytes = sizes[0] / 1e6
            levels[f"{COPY}, {megabytes:.1f} MB"] = float(str(row[found.columns.index(COPY_PLACE)]))
        else:
            told = zip(sizes, (float(str(row[at])) for at in shares), strict=True)
            name = str(row[1]) if row[2] in ("0", "none") else f"{row[1]}, epsilon {row[2]}"
            lists.append(DrawnWay(name, tuple(told)))
    return [DrawnPool(news, drawing(*pool)) for news, pool in pools.items()]


def drawing(ways: Sequence[DrawnWay], levels: dict[str, float]) -> FrontierDrawing:
    """Draw percent found against bytes of an answer, both from their lowest tick."""
    right = WIDTH - NAMES_WIDTH
    most = max(size for way in ways for size, _ in way.points)
    shares = [share for way in ways for _, share in way.points] + list(levels.values())
    low, high = SHARE_TICKS * (min(shares) // SHARE_TICKS), max(shares)

    def x(size: float) -> float:
        return round(MARGIN + (right - MARGIN) * size / most, 1)

    def y(share: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (high - share) / (high - low), 1)

    lines = {way.name: tuple((x(size), y(share)) for size, share in way.points) for way in ways}
    across = {name: y(share) for name, share in levels.items()}
    ends = {name: points[-1][1] for name, points in lines.items()} | across
    names = dict(zip(ends, _within(apart(list(ends.values()), NAME_HEIGHT)), strict=True))
    return FrontierDrawing(
        WIDTH,
        HEIGHT,
        MARGIN,
        right,
        tuple(Line(name, points, names[name]) for name, points in lines.items()),
        tuple(Level(name, height, names[name]) for name, height in across.items()),
        tuple((x(1e3 * each), f"{each} kB") for each in range(0, int(most / 1e3) + 1, WEIGHT_TICK_KB)),
        tuple((y(each), f"{each}") for each in range(int(low), int(high) + 1, SHARE_TICKS)),
    )


def _within(heights: Sequence[float]) -> list[float]:
    """Move the names' heights below the drawing's edge and keep them apart."""
    placed, least = list(heights), NAME_HEIGHT
    for at in sorted(range(len(placed)), key=lambda at: placed[at]):
        placed[at] = max(placed[at], least)
        least = placed[at] + NAME_HEIGHT
    return placed


def _table(record: PublishedRecord, columns: Sequence[str]) -> PublishedTable:
    found = next((each for each in record.tables if set(columns) <= set(each.columns)), None)
    if found is None:
        raise ValueError(f"no table of {record.command!r} has the columns {', '.join(columns)}")
    return found
