"""What recall finds at what price: the current release's codebooks, and the frontier that the bench last measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, ValidationError

from backend.console.controller import ConsoleController
from device_app.wire.releases import Codebook

WIDTH, HEIGHT, MARGIN = 760.0, 340.0, 24.0
NAMES_WIDTH = 150.0
"""At the right, where the names stand under one another, each tied to its line."""
NAME_HEIGHT = 14.0
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 300.0)
DEPTH = 3
"""Of R@50/100/200/400: what is drawn is R@400."""
LEVELS = ("popularity (none)", "exact vector", "broadcast 16 B", "broadcast 32 B")
DRAWN = (
    "code K=16",
    "code K=64",
    "direction",
    "topics K=16",
    "subset K=16",
    "basis_laplace, as served",
    "basis_laplace, naive",
)


class Gain(BaseModel):
    """Points over popularity with their 95 % interval."""

    model_config = ConfigDict(frozen=True)

    mean: float
    low: float
    high: float


class FrontierPoint(BaseModel):
    """One mode at one epsilon, as experiments/recall/frontier.py writes it."""

    model_config = ConfigDict(frozen=True)

    mode: str
    epsilon: float
    found: tuple[float, ...]
    gain: tuple[Gain, ...]
    page: float
    changed: float
    cosine: float
    attack: tuple[float, float] | None


class MeasuredFrontier(BaseModel):
    """The part of the bench's file that is shown."""

    model_config = ConfigDict(frozen=True)

    rows: tuple[FrontierPoint, ...]
    wide: float
    readers: int


@dataclass(frozen=True)
class Line:
    """One mode in the drawing: points in its coordinates, and the height at which its name stands."""

    name: str
    points: tuple[tuple[float, float], ...]
    name_y: float


@dataclass(frozen=True)
class Level:
    """A mode without an epsilon: a line across the drawing, and the height at which its name stands."""

    name: str
    y: float
    name_y: float


@dataclass(frozen=True)
class FrontierDrawing:
    """Gain in R@400 over popularity against epsilon."""

    width: float
    height: float
    left: float
    right: float
    lines: tuple[Line, ...]
    levels: tuple[Level, ...]
    ticks: tuple[tuple[float, str], ...]


def frontier_file() -> Path:
    """Where `ownfeed bench recall` leaves its figures for the console."""
    return platformdirs.user_cache_path("ownfeed") / "bench" / "recall-frontier.json"


def measured() -> MeasuredFrontier | None:
    """What the bench last measured on this machine; None if it never ran, or wrote another format."""
    try:
        return MeasuredFrontier.model_validate_json(frontier_file().read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def drawing(rows: Sequence[FrontierPoint]) -> FrontierDrawing:
    """Lines of the modes that have an epsilon, levels of those that have none."""
    gains = [row.gain[DEPTH].mean for row in rows]
    low, high, right = min(0.0, *gains), max(1.0, *gains), WIDTH - NAMES_WIDTH

    def y(gain: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (high - gain) / (high - low), 1)

    def x(epsilon: float) -> float:
        first, last = math.log(EPSILONS[0]), math.log(EPSILONS[-1])
        return round(MARGIN + (right - MARGIN) * (math.log(epsilon) - first) / (last - first), 1)

    curves = {}
    for mode in DRAWN:
        mine = sorted((row for row in rows if row.mode == mode), key=lambda row: row.epsilon)
        if mine:
            curves[mode] = tuple((x(row.epsilon), y(row.gain[DEPTH].mean)) for row in mine)
    across = {row.mode: y(row.gain[DEPTH].mean) for row in rows if row.mode in LEVELS}
    ends = {mode: points[-1][1] for mode, points in curves.items()} | across
    names = dict(zip(ends, apart(list(ends.values()), NAME_HEIGHT), strict=True))
    return FrontierDrawing(
        WIDTH,
        HEIGHT,
        MARGIN,
        right,
        tuple(Line(mode, points, names[mode]) for mode, points in curves.items()),
        tuple(Level(mode, height, names[mode]) for mode, height in across.items()),
        tuple((x(epsilon), f"{epsilon:g}") for epsilon in EPSILONS),
    )


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Heights for names: in the same order, at least so far from each other, and near where they belong.

    Names that would touch become a block around the mean of where they belong.
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


def _told(book: Codebook) -> dict[str, float]:
    """A codebook's figures; the truth is what randomised response over its K codes leaves of a report."""
    truth = 1 / (1 + (book.size - 1) * math.exp(-book.epsilon))
    return {"size": book.size, "epsilon": book.epsilon, "truth": truth, "size_bytes": book.prototypes.size_bytes}


def router(controller: ConsoleController) -> APIRouter:
    """The recall page."""
    routes = APIRouter()

    @routes.get("/recall")
    def recall(request: Request) -> Response:
        def view() -> dict[str, object]:
            found = measured()
            manifest = controller.services.releases.current_manifest()
            return {
                "codebooks": [_told(book) for book in manifest.recall.codebooks] if manifest else [],
                "measured": found,
                "drawing": drawing(found.rows) if found else None,
            }

        return controller.show(request, "recall", view)

    return routes
