"""The moves of readers between FINDING's groups, as the paper draws them: a band from each group to each, as wide as
the devices that went there. The server knows them from sums; it knows no device's group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.federation.strategies.clustering import GroupMoves

SHOWN = 4
"""Clusterings on the page, the last ones."""
WIDTH, HEIGHT, LEFT, BAR = 344.0, 220.0, 44.0, 9.0
GAP = 8.0
"""Between two groups of a column."""


@dataclass(frozen=True)
class GroupBar:
    """A group in one of the two columns: where its bar begins, how tall it is, and what is written beside it."""

    x: float
    y: float
    height: float
    label_x: float
    label: str


@dataclass(frozen=True)
class MovesBand:
    """The devices that went from one group to another, counted from 1, as the path of an SVG."""

    path: str
    devices: int
    old: int
    new: int

    @property
    def stays(self) -> bool:
        """From a group to itself."""
        return self.old == self.new


@dataclass(frozen=True)
class MovesDrawing:
    """One clustering: its groups before and after, groups counted from 1, and the bands between them."""

    found: GroupMoves
    devices: int
    stayed: int
    bars: tuple[GroupBar, ...]
    bands: tuple[MovesBand, ...]
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def sizes(self) -> tuple[int, ...]:
        """Devices of each group after it."""
        return tuple(sum(row[group] for row in self.found.moves) for group in range(len(self.found.moves)))


def drawn(found: GroupMoves) -> MovesDrawing:
    """Columns are as tall as the devices that took part, with a gap between groups; groups keep their order.

    In each bar the bands lie in the order of the groups at their other ends. Raises ValueError for moves that are not
    square.
    """
    size = len(found.moves)
    if not size or any(len(row) != size for row in found.moves):
        raise ValueError(f"moves: as many to groups as from groups, got {[len(row) for row in found.moves]} of {size}")
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
    """What the page's script compares: another one once readers were grouped anew."""
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
