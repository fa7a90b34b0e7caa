"""Gains of releases over live rounds, as `ownfeed bench quality` writes them, and how such curves are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor, log10
from pathlib import Path

import platformdirs
from pydantic import BaseModel, ConfigDict, ValidationError

WIDTH, HEIGHT = 440.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 16.0, 14.0, 34.0
LABELS_MOST = 10
INTERVALS = 6
"""Maximum number of intervals between the grid lines of a drawing."""
DIGITS_MOST = 6
"""Maximum number of decimals; smaller steps are written with an exponent."""


class Point(BaseModel):
    """A release after a number of rounds: its value, and its gain over the first with a 95 % interval."""

    model_config = ConfigDict(frozen=True)

    rounds: int
    release: str
    value: float
    gain: float
    low: float
    high: float


class Curve(BaseModel):
    """One measure for each release, the first release first."""

    model_config = ConfigDict(frozen=True)

    name: str
    points: tuple[Point, ...]


class MeasuredCurves(BaseModel):
    """The results file of `ownfeed bench quality`."""

    model_config = ConfigDict(frozen=True)

    curves: tuple[Curve, ...]
    readers: int
    devices: int
    cohort: int
    measured_at: datetime


@dataclass(frozen=True)
class Mark:
    """A point in the drawing's coordinates; low and high are the ends of its interval."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class CurveDrawing:
    """Gains with their intervals.

    level is the height of zero gain; ticks are (x, label) and (y, label).

    joined: all gains are relative to the same release, so a line from one to the next is meaningful.
    """

    width: float
    height: float
    left: float
    right: float
    bottom: float
    marks: tuple[Mark, ...]
    level: float
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    name: str
    joined: bool = True


def quality_file() -> Path:
    """Path where `ownfeed bench quality` stores its figures for the console."""
    return platformdirs.user_cache_path("ownfeed") / "bench" / "quality.json"


def measured() -> MeasuredCurves | None:
    """The last results on this machine; None if the bench never ran, or wrote another format."""
    try:
        return MeasuredCurves.model_validate_json(quality_file().read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def drawing(name: str, rows: Sequence[tuple[str, float, float, float]]) -> CurveDrawing:
    """Draw rows of (label, gain, low, high), evenly spaced; at least one."""
    low, high = min(0.0, *(row[2] for row in rows)), max(0.0, *(row[3] for row in rows))
    low, high = (low, high) if high > low else (low - 0.001, high + 0.001)

    def y(gain: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (high - gain) / (high - low), 1)

    def x(place: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (place / (len(rows) - 1) if len(rows) > 1 else 0.5), 1)

    every = ceil(len(rows) / LABELS_MOST)
    return CurveDrawing(
        WIDTH,
        HEIGHT,
        LEFT,
        WIDTH - RIGHT,
        HEIGHT - BOTTOM,
        tuple(Mark(x(place), y(gain), y(least), y(most)) for place, (_, gain, least, most) in enumerate(rows)),
        y(0.0),
        tuple((x(place), row[0]) for place, row in enumerate(rows) if place % every == 0),
        tuple((y(gain), label) for gain, label in ticks(low, high)),
        name,
    )


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Evenly spaced values from `low` <= 0 to `high` >= 0 with labels, at least three if there is room for them.

    They are multiples of 1, 2 or 5 times a power of ten, with as many digits as distinguish them, and include zero.
    """
    power = floor(log10((high - low) / INTERVALS))
    step, power = next(
        (times * 10.0**each, each) for each in (power, power + 1) for times in (1, 2, 5)
        if high - low <= INTERVALS * times * 10.0**each
    )  # fmt: skip
    form = f"+.{max(0, -power)}f" if power >= -DIGITS_MOST else "+.1e"
    places = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
    return [(place * step, f"{place * step:{form}}" if place else "0") for place in places]


def of_curve(curve: Curve) -> CurveDrawing:
    """Draw a measured curve by rounds."""
    return drawing(curve.name, [(str(each.rounds), each.gain, each.low, each.high) for each in curve.points])
