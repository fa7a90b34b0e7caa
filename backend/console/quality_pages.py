"""The quality page: the effect of training on quality. Also draws how devices move between FINDING's groups.

The page shows the gate's scores of releases, the measurements of a demo's simulated readers, and the benchmark's last
curves. The moves are drawn as in the paper: a band between two groups is as wide as the number of devices that moved.
The server knows these numbers from sums, but no device's group.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.federation.strategies.grouped import GroupMoves
from backend.federation.strategies.release_gate import Score
from backend.measurements.curves import CurveDrawing, drawing, measured, of_curve
from backend.measurements.published import published
from protocol.fleet_figures import FleetFigures, InterestCurve, read_fleet_figures
from protocol.text_catalogue import TextCatalogue

SHOWN = 4
"""Number of past clusterings that are shown."""
WIDTH, HEIGHT, LEFT, BAR = 344.0, 220.0, 44.0, 9.0
GAP = 8.0
"""Gap between two groups of a column."""


@dataclass(frozen=True)
class GroupBar:
    """A group in one of the two columns: the position and height of its bar, and its label."""

    x: float
    y: float
    height: float
    label_x: float
    label: str


@dataclass(frozen=True)
class MovesBand:
    """The devices that moved from one group to another, numbered from 1, as the path of an SVG."""

    path: str
    devices: int
    old: int
    new: int

    @property
    def stays(self) -> bool:
        """Whether it leads from a group to itself."""
        return self.old == self.new


@dataclass(frozen=True)
class MovesDrawing:
    """One clustering: its groups before and after, numbered from 1, and the bands between them."""

    found: GroupMoves
    devices: int
    stayed: int
    bars: tuple[GroupBar, ...]
    bands: tuple[MovesBand, ...]
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def sizes(self) -> tuple[int, ...]:
        """Devices of each group afterwards."""
        return tuple(sum(row[group] for row in self.found.moves) for group in range(len(self.found.moves)))


def drawn(found: GroupMoves) -> MovesDrawing:
    """A drawing of the moves: two columns of groups, and bands between them.

    Within a bar, bands are ordered by the group at their other end. Raises ValueError for moves that are not square.
    """
    size = len(found.moves)
    if not size or any(len(row) != size for row in found.moves):
        raise ValueError(f"moves must be square [{size}, {size}], got rows of {[len(row) for row in found.moves]}")
    devices = sum(map(sum, found.moves))
    scale = (HEIGHT - GAP * (size - 1)) / max(1, devices)
    before = [sum(row) for row in found.moves]
    after = [sum(row[group] for row in found.moves) for group in range(size)]
    tops = [_tops(each, scale) for each in (before, after)]
    right = WIDTH - LEFT - BAR
    bars = [GroupBar(LEFT, tops[0][at], count * scale, LEFT - 6, _named(at, count)) for at, count in enumerate(before)]
    bars += [
        GroupBar(right, tops[1][at], count * scale, right + BAR + 6, _named(at, count))
        for at, count in enumerate(after)
    ]
    bands, left_ends, right_ends = [], list(tops[0]), list(tops[1])
    for old, row in enumerate(found.moves):
        for new, count in enumerate(row):
            if count:
                path = _band(LEFT + BAR, left_ends[old], right, right_ends[new], count * scale)
                bands.append(MovesBand(path, count, old + 1, new + 1))
            left_ends[old] += count * scale
            right_ends[new] += count * scale
    stayed = sum(row[group] for group, row in enumerate(found.moves))
    return MovesDrawing(found, devices, stayed, tuple(bars), tuple(bands))


def state_of(found: Sequence[GroupMoves]) -> str:
    """A value that changes once readers are regrouped; the page's script compares it."""
    return found[-1].round if found else "never"


def _named(group: int, count: int) -> str:
    return f"{group + 1}: {count:,}"


def _tops(counts: Sequence[int], scale: float) -> list[float]:
    return [sum(counts[:at]) * scale + at * GAP for at in range(len(counts))]


def _band(left: float, top: float, right: float, end: float, height: float) -> str:
    middle = (left + right) / 2
    there = f"M{left:.1f} {top:.1f}C{middle:.1f} {top:.1f} {middle:.1f} {end:.1f} {right:.1f} {end:.1f}"
    low, low_end = top + height, end + height
    back = f"V{low_end:.1f}C{middle:.1f} {low_end:.1f} {middle:.1f} {low:.1f} {left:.1f} {low:.1f}Z"
    return there + back


WORDS = TextCatalogue("backend.console", "words.toml")

INTERVAL = 1.96
TASTES = WORDS.pairs("tastes")


@dataclass(frozen=True)
class InterestCurveView:
    """A measure of the simulated readers' interests as the page shows it; line is the text that describes it."""

    curve: InterestCurve
    drawing: CurveDrawing
    line: str


def of_tastes(found: FleetFigures | None) -> list[InterestCurveView]:
    """Every measure that a demo's fleet reported, first release first; none without a fleet."""
    views = []
    for curve in found.curves if found else ():
        name, line = TASTES.get(curve.measure, (curve.measure, ""))
        rows = [(each.release, each.gain, each.low, each.high) for each in curve.points]
        if rows:
            views.append(InterestCurveView(curve, drawing(name, rows), line))
    return views


def of_scores(found: Sequence[Score]) -> CurveDrawing | None:
    """A drawing of the gate's scores, oldest first; None before its first verdict."""
    if not found:
        return None
    drawn = drawing(
        WORDS("gain"),
        [
            (each.release, each.gain, each.gain - INTERVAL * each.error, each.gain + INTERVAL * each.error)
            for each in found
        ],
    )
    return replace(drawn, joined=False)


def router(controller: ConsoleController) -> APIRouter:
    routes, services = APIRouter(), controller.services

    def fleet_figures() -> FleetFigures | None:
        return read_fleet_figures(services.settings.fleet_figures)

    @routes.get("/quality/live")
    def live(request: Request) -> Response:
        return controller.answer(request, lambda: {"state": _state(fleet_figures())})

    @routes.get("/quality")
    def quality(request: Request) -> Response:
        def view() -> Values:
            found, scores, fleet = measured(), services.coordinator.scores(), fleet_figures()
            return {
                "with_fleet": services.settings.fleet_figures is not None,
                "fleet": fleet,
                "fleet_state": _state(fleet),
                "tastes": of_tastes(fleet),
                "measured": found,
                "drawings": [of_curve(each) for each in found.curves] if found else [],
                "scores": scores[::-1],
                "scored": of_scores(scores),
                "published": published("bench-quality"),
            }

        return controller.show(request, "quality", view)

    return routes


def _state(fleet: FleetFigures | None) -> str:
    """A value that changes once the fleet has reported more; the page's script compares it."""
    points = sum(len(curve.points) for curve in fleet.curves) if fleet else 0
    return f"{points} points" if points else "waiting"
