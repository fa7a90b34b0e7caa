"""The frontier of recall against privacy, as `ownfeed bench recall` writes it, and how it is drawn.

The frontier over bytes and pool size has a drawing per pool, of the figures that `ownfeed bench pools` recorded.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as measured_dataclass

from backend.measurements.published import PublishedRecord, PublishedTable

WIDTH, HEIGHT, MARGIN = 760.0, 340.0, 28.0
NAMES_WIDTH = 184.0
"""Width at the right for the names, which are stacked and each connected to its line."""
NAME_HEIGHT = 14.0
GRID_POINTS = 2
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 300.0)
DEPTH = 3
"""Index into R@50/100/200/400: R@400 is drawn."""

FORMAT = ConfigDict(ser_json_inf_nan="strings")
"""JSON has no infinity, so the file has the text "Infinity"."""


@measured_dataclass(frozen=True)
class PairedGain:
    """A mean difference in points with its 95 % interval over readers."""

    mean: float
    low: float
    high: float


@measured_dataclass(frozen=True)
class ValidationChoice:
    """The choices made on the validation readers: the epoch, and s for each kind of list.

    `code 16` is the codebook of size 16.
    """

    epoch: int
    sharpness: dict[str, float]


@measured_dataclass(frozen=True, config=FORMAT)
class FrontierRow:
    """One way of reporting at one epsilon on the test readers.

    found is R@50/100/200/400 in percent; gain is its paired difference to popularity in points. page is R@20 after
    local ranking, and changed is the share of those 20 that the list by popularity would not have contained, both in
    percent. cosine is `changed` if the device ranks by content alone instead of by content and popularity. drawn:
    whether it is in the drawing, on a line by epsilon, or as a level if epsilon is 0 or infinite. attack is R@100/400
    of the history by the strongest attack tried, None if none was.
    """

    mode: str
    epsilon: float
    found: tuple[float, ...]
    gain: tuple[PairedGain, ...]
    page: float
    changed: float
    cosine: float
    drawn: bool
    attack: tuple[float, float] | None = None

    @property
    def level(self) -> bool:
        """Whether nothing or everything is revealed, so that there is no epsilon to draw it at."""
        return self.epsilon == 0 or math.isinf(self.epsilon)


@measured_dataclass(frozen=True, config=FORMAT)
class Frontier:
    """rows: in the order of the table. wide: R@600 of the constant list. Also the number of test readers, and channels
    per reader.
    """

    rows: tuple[FrontierRow, ...]
    chosen: ValidationChoice
    wide: float
    readers: int
    channels: float
    code_bytes: dict[int, int]

    def row(self, mode: str, epsilon: float) -> FrontierRow:
        """The row of a mode at an epsilon. Raises KeyError."""
        for row in self.rows:
            if (row.mode, row.epsilon) == (mode, epsilon):
                return row
        raise KeyError(mode, epsilon)


FRONTIER = TypeAdapter(Frontier)

PUBLISHED = "bench-recall"
"""Name of the record of the figures published with this version, made from a `Frontier`."""
PUBLISHED_COLUMNS = ("report", "epsilon", "@400 against popularity")
DRAWN_FROM = 3
"""Minimum number of epsilons for a line: fewer don't show their effect."""


@dataclass(frozen=True)
class DrawnGain:
    """Data of the drawing: one way of reporting at one epsilon, and its gain in R@400 in points."""

    mode: str
    epsilon: float
    gain: float

    @property
    def level(self) -> bool:
        return self.epsilon == 0 or math.isinf(self.epsilon)


def published_gains(record: PublishedRecord) -> list[DrawnGain]:
    """Rows of a published record to draw: those without an epsilon, and modes with at least DRAWN_FROM epsilons.

    Values are as recorded. Raises ValueError for a record without such a table.
    """
    table = next((each for each in record.tables if set(PUBLISHED_COLUMNS) <= set(each.columns)), None)
    if table is None:
        raise ValueError(f"no table of {record.command!r} has the columns {', '.join(PUBLISHED_COLUMNS)}")
    mode, epsilon, gain = (table.columns.index(each) for each in PUBLISHED_COLUMNS)
    found = [
        DrawnGain(
            str(row[mode]),
            math.inf if row[epsilon] == "none" else float(str(row[epsilon])),
            float(str(row[gain]).split()[0]),
        )
        for row in table.rows
    ]
    epsilons = Counter(each.mode for each in found)
    return [each for each in found if each.level or epsilons[each.mode] >= DRAWN_FROM]


@dataclass(frozen=True)
class Line:
    """One mode in the drawing: points in its coordinates, and the height of its name."""

    name: str
    points: tuple[tuple[float, float], ...]
    name_y: float


@dataclass(frozen=True)
class Level:
    """A mode without an epsilon: a horizontal line, and the height of its name."""

    name: str
    y: float
    name_y: float


@dataclass(frozen=True)
class FrontierDrawing:
    """Gain in R@400 over popularity against epsilon.

    ticks are (x, epsilon), gain_ticks (y, points).
    """

    width: float
    height: float
    left: float
    right: float
    lines: tuple[Line, ...]
    levels: tuple[Level, ...]
    ticks: tuple[tuple[float, str], ...]
    gain_ticks: tuple[tuple[float, str], ...]


def frontier_file() -> Path:
    """Path where `ownfeed bench recall` stores its figures for the console."""
    return platformdirs.user_cache_path("ownfeed") / "bench" / "recall-frontier.json"


def measured() -> Frontier | None:
    """The last results on this machine; None if the bench never ran, or wrote another format."""
    try:
        return FRONTIER.validate_json(frontier_file().read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def keep(frontier: Frontier) -> None:
    """Store the results for the console."""
    frontier_file().parent.mkdir(parents=True, exist_ok=True)
    frontier_file().write_bytes(FRONTIER.dump_json(frontier, indent=1))


def measured_gains(rows: Sequence[FrontierRow]) -> list[DrawnGain]:
    return [DrawnGain(row.mode, row.epsilon, row.gain[DEPTH].mean) for row in rows if row.drawn]


def drawing(rows: Sequence[DrawnGain]) -> FrontierDrawing:
    """Draw lines for modes with an epsilon, and levels for those without."""
    gains = [row.gain for row in rows]
    low, high, right = min(0.0, *gains), max(1.0, *gains), WIDTH - NAMES_WIDTH

    def y(gain: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (high - gain) / (high - low), 1)

    def x(epsilon: float) -> float:
        first, last = math.log(EPSILONS[0]), math.log(EPSILONS[-1])
        return round(MARGIN + (right - MARGIN) * (math.log(epsilon) - first) / (last - first), 1)

    curves: dict[str, list[DrawnGain]] = {}
    for row in rows:
        if not row.level:
            curves.setdefault(row.mode, []).append(row)
    lines = {
        mode: tuple((x(row.epsilon), y(row.gain)) for row in sorted(mine, key=lambda row: row.epsilon))
        for mode, mine in curves.items()
    }
    across = {row.mode: y(row.gain) for row in rows if row.level}
    ends = {mode: points[-1][1] for mode, points in lines.items()} | across
    names = dict(zip(ends, apart(list(ends.values()), NAME_HEIGHT), strict=True))
    return FrontierDrawing(
        WIDTH,
        HEIGHT,
        MARGIN,
        right,
        tuple(Line(mode, points, names[mode]) for mode, points in lines.items()),
        tuple(Level(mode, height, names[mode]) for mode, height in across.items()),
        tuple((x(epsilon), f"{epsilon:g}") for epsilon in EPSILONS),
        tuple((y(each), f"{each:+d}") for each in range(*_even(low, high), GRID_POINTS)),
    )


def _even(low: float, high: float) -> tuple[int, int]:
    """The range of multiples of GRID_POINTS between `low` and `high`, end exclusive."""
    return math.ceil(low / GRID_POINTS) * GRID_POINTS, math.floor(high) + 1


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Heights for names: in the same order, at least `least` apart, and near their targets.

    Names that would overlap become a block around the mean of their targets.
    """
    order = sorted(range(len(heights)), key=lambda at: heights[at])
    blocks: list[tuple[float, list[int]]] = []  # the middle of each, and whose names are in it
    for at in order:
        middle, members = heights[at], [at]
        while blocks and middle - blocks[-1][0] < least * (len(members) + len(blocks[-1][1])) / 2:
            members = [*blocks.pop()[1], *members]
            middle = sum(heights[member] for member in members) / len(members)
        blocks.append((middle, members))
    placed = [0.0] * len(heights)
    for middle, members in blocks:
        for place, member in enumerate(members):
            placed[member] = round(middle + least * (place - (len(members) - 1) / 2), 1)
    return placed


PUBLISHED_BY_POOL = "bench-pools"
FOUND_COLUMNS, WEIGHT_COLUMNS = ("pool", "report", "epsilon", "R@400 %"), ("pool", "report", "400 places")
COPY = "broadcast"
"""The method that sends the whole pool; drawn as a level, since its size doesn't grow with the list."""
COPY_PLACE = "R@400 %"
SHARE_TICKS, WEIGHT_TICK_KB = 10, 200


@dataclass(frozen=True)
class DrawnMethod:
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
    pools: dict[int, tuple[list[DrawnMethod], dict[str, float]]] = {}
    for row in found.rows:
        lists, levels = pools.setdefault(int(str(row[0])), ([], {}))
        sizes = weights[row[0], row[1]]
        if str(row[1]).startswith(COPY):
            megabytes = sizes[0] / 1e6
            levels[f"{COPY}, {megabytes:.1f} MB"] = float(str(row[found.columns.index(COPY_PLACE)]))
        else:
            points = zip(sizes, (float(str(row[at])) for at in shares), strict=True)
            name = str(row[1]) if row[2] in ("0", "none") else f"{row[1]}, epsilon {row[2]}"
            lists.append(DrawnMethod(name, tuple(points)))
    return [DrawnPool(news, pool_drawing(*pool)) for news, pool in pools.items()]


def pool_drawing(ways: Sequence[DrawnMethod], levels: dict[str, float]) -> FrontierDrawing:
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
