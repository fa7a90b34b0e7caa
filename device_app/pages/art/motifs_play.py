"""Motifs of sport and play, of markets, crime, cars and cells, and the sheet of a newspaper for all the rest."""

from __future__ import annotations

import math
from random import Random

from device_app.pages.art.colours import Inks
from device_app.pages.art.shapes import HEIGHT, WIDTH, arc, box, disc, line, ring, shape


def basket(chance: Random, inks: Inks) -> list[str]:
    """A backboard with its ring and net, and a ball on the way to it."""
    x, y = chance.uniform(390, 520), chance.uniform(120, 190)
    drawn = [box(0, 340, WIDTH, 60, inks.far), line([(0, 340), (WIDTH, 340)], inks.glow, 4)]
    drawn += [ring(x, 400, chance.uniform(120, 200), inks.glow, 4)]
    drawn += [box(x + 42, y - 96, 16, 130, inks.near, 1, 4), box(x + 58, y - 20, 26, HEIGHT, inks.near)]
    half = 46
    drawn += [line([(x - half + step * 23, y + 4), (x - 26 + step * 13, y + 74)], inks.glow, 3) for step in range(5)]
    drawn += [line([(x - half + 8, y + 30), (x + half - 8, y + 30)], inks.glow, 2)]
    drawn += [box(x - half, y, 2 * half, 8, inks.middle, 1, 4)]
    size, at = chance.uniform(44, 62), (chance.uniform(110, 260), chance.uniform(90, 210))
    drawn += [arc(at, (x, y - 10), chance.uniform(40, 90), inks.far, 4), disc(*at, size, inks.spot)]
    turn = chance.uniform(-0.7, 0.7)
    for angle in (turn, turn + math.pi / 2):
        dx, dy = size * math.cos(angle), size * math.sin(angle)
        drawn.append(line([(at[0] - dx, at[1] - dy), (at[0] + dx, at[1] + dy)], inks.near, 4))
    return drawn


def wheels(chance: Random, inks: Inks) -> list[str]:
    """A bicycle from the side, on a road that climbs a little."""
    rise, radius = chance.uniform(-26, 26), chance.uniform(78, 96)
    left, right = chance.uniform(150, 190), chance.uniform(420, 470)
    ground = 350.0
    back, front = (left, ground - radius - rise), (right, ground - radius + rise)
    drawn = [disc(chance.uniform(80, 560), chance.uniform(60, 120), chance.uniform(34, 60), inks.glow)]
    drawn += [shape([(0, ground - rise * 2), (WIDTH, ground + rise * 2), (WIDTH, HEIGHT + 40), (0, HEIGHT + 40)],
                    inks.far)]  # fmt: skip
    spokes = chance.randint(6, 9)
    for x, y in (back, front):
        drawn += [ring(x, y, radius, inks.near, 9), disc(x, y, 9, inks.near)]
        drawn += [
            line([(x, y), (x + radius * math.cos(k * math.tau / spokes), y + radius * math.sin(k * math.tau / spokes))],
                 inks.middle, 2)
            for k in range(spokes)
        ]  # fmt: skip
    middle = ((back[0] + front[0]) / 2 - 20, (back[1] + front[1]) / 2 + 6)
    seat, head = (middle[0] - 36, middle[1] - 112), (front[0] - 34, front[1] - 112)
    for path in ([back, middle, head, seat, middle], [seat, back], [head, front]):
        drawn += [line(path, inks.near, 14), line(path, inks.spot, 7)]
    drawn += [line([(seat[0] - 34, seat[1] - 14), (seat[0] + 26, seat[1] - 14)], inks.near, 13)]
    drawn += [line([head, (head[0] - 6, head[1] - 28), (head[0] + 34, head[1] - 30)], inks.near, 10)]
    return [*drawn, disc(*middle, 18, inks.near)]


def board(chance: Random, inks: Inks) -> list[str]:
    """A board with its pieces, or blocks of a screen falling into place."""
    if chance.random() < 0.5:
        side, ahead = 80, chance.choice((0, 1))
        drawn = [
            box(column * side, row * side, side, side, inks.far)
            for row in range(5)
            for column in range(8)
            if (row + column) % 2 == ahead
        ]
        for place in chance.sample(range(40), chance.randint(6, 10)):
            x, y = place % 8 * side + 40, place // 8 * side + 40
            ink = chance.choice((inks.near, inks.middle, inks.spot))
            drawn += [disc(x, y, 28, ink), ring(x, y, 17, inks.glow, 3)]
        return drawn
    side, drawn = 40, []
    for column in range(16):
        for row in range(chance.randint(1, 5)):
            ink = (inks.near, inks.middle, inks.far)[(row + column) % 3]
            drawn.append(box(column * side + 2, HEIGHT - (row + 1) * side + 2, side - 4, side - 4, ink, 1, 4))
    x = chance.randrange(3, 12)
    for dx, dy in chance.choice((((0, 0), (1, 0), (2, 0), (1, 1)), ((0, 0), (0, 1), (1, 1), (1, 2)), ((0, 0), (0, 1),
                                 (0, 2), (1, 2)))):  # fmt: skip
        drawn.append(box((x + dx) * side + 2, (1 + dy) * side + 2, side - 4, side - 4, inks.spot, 1, 4))
    return drawn


def candles(chance: Random, inks: Inks) -> list[str]:
    """Prices by the day: a bar from opening to close, a stroke from low to high."""
    count = chance.randint(14, 20)
    step, level = WIDTH / count, chance.uniform(160, 240)
    drawn = [box(0, 80 + 80 * k, WIDTH, 2, inks.far, 0.7) for k in range(4)]
    for k in range(count):
        after = min(max(level + chance.uniform(-56, 56), 70), 330)
        x, low, high = (k + 0.5) * step, max(level, after), min(level, after)
        ink = inks.near if after > level else inks.middle
        reach = chance.uniform(8, 34)
        drawn += [line([(x, high - reach), (x, low + reach)], ink, 3)]
        drawn += [box(x - step * 0.3, high, step * 0.6, max(low - high, 6), inks.spot if k == count - 1 else ink, 1, 2)]
        level = after
    return drawn


def prints(chance: Random, inks: Inks) -> list[str]:
    """The lines of a fingertip under a lens."""
    x, y = chance.uniform(210, 360), chance.uniform(160, 220)
    radius = chance.uniform(120, 150)
    drawn = [box(0, 60 + 44 * k, WIDTH, 2, inks.far, 0.6) for k in range(8)]
    drawn += [disc(x, y, radius, inks.glow)]
    for k in range(chance.randint(6, 8)):
        across, down, tip = 12 + 15 * k, 16 + 19 * k, chance.uniform(0.2, 0.5)
        steps = [math.pi * (tip + (2.0 - 2 * tip + 0.6) * t / 24) for t in range(25)]
        wide, high = across * 0.7, down * 0.62
        drawn.append(line([(x + wide * math.cos(t), y + 10 - high * math.sin(t)) for t in steps], inks.near, 6))
    drawn += [ring(x, y, radius, inks.near, 16)]
    turn = chance.uniform(0.5, 0.9)
    start = (x + (radius + 8) * math.cos(turn), y + (radius + 8) * math.sin(turn))
    return [*drawn, line([start, (start[0] + 190 * math.cos(turn), start[1] + 190 * math.sin(turn))], inks.spot, 30)]


def cells(chance: Random, inks: Inks) -> list[str]:
    """Cells side by side as under a microscope, some of them dividing."""
    drawn: list[str] = []
    for row in range(4):
        for column in range(6):
            x = 60 + column * 112 + (row % 2) * 50 + chance.uniform(-14, 14)
            y = 52 + row * 104 + chance.uniform(-12, 12)
            size = chance.uniform(40, 54)
            drawn += [disc(x, y, size, (inks.far, inks.middle)[(row + column) % 2], 0.85)]
            ink = inks.spot if chance.random() < 0.15 else inks.near
            if chance.random() < 0.25:
                drawn += [disc(x - 15, y, 12, ink), disc(x + 15, y, 12, ink)]
            else:
                drawn += [disc(x + chance.uniform(-10, 10), y + chance.uniform(-10, 10), size * 0.34, ink)]
    return drawn


def car(chance: Random, inks: Inks) -> list[str]:
    """A car from the side on its road."""
    x, y, long = chance.uniform(90, 170), chance.uniform(262, 290), chance.uniform(330, 400)
    tall = chance.uniform(78, 104)
    drawn = [disc(chance.uniform(90, 560), chance.uniform(60, 130), chance.uniform(36, 66), inks.glow)]
    drawn += [box(0, y + 40, WIDTH, HEIGHT, inks.far)]
    drawn += [box(k * 130 + chance.uniform(0, 16), 372, 70, 7, inks.glow) for k in range(5)]
    roof = [(x + long * 0.2, y - 46), (x + long * 0.34, y - tall - 30), (x + long * 0.68, y - tall - 30),
            (x + long * 0.86, y - 46)]  # fmt: skip
    drawn += [shape(roof, inks.near), box(x, y - 52, long, 84, inks.spot, 1, 26)]
    pane = [(x + long * 0.27, y - 50), (x + long * 0.37, y - tall - 14), (x + long * 0.5, y - tall - 14),
            (x + long * 0.5, y - 50)]  # fmt: skip
    drawn += [shape(pane, inks.sky)]
    for wheel in (x + long * 0.2, x + long * 0.79):
        drawn += [disc(wheel, y + 32, 40, inks.near), disc(wheel, y + 32, 17, inks.glow)]
    return drawn


def paper(chance: Random, inks: Inks) -> list[str]:
    """A sheet of a newspaper, its headline and columns as bars: what is shown where nothing else is known."""
    x, tall = chance.uniform(90, 190), chance.uniform(330, 380)
    drawn = [box(x + 22, 52, 330, tall, inks.far, 1, 4), box(x, 36, 330, tall + 20, inks.glow, 1, 4)]
    drawn += [box(x + 22, 60, chance.uniform(190, 286), 24, inks.near, 1, 3)]
    drawn += [box(x + 22, 94, chance.uniform(110, 230), 14, inks.middle, 1, 3)]
    picture = chance.choice((0, 1))
    drawn += [box(x + 22 + picture * 148, 130, 138, 96, inks.spot, 1, 3)]
    for column in (0, 1):
        top = 240 if column == picture else 134
        drawn += [
            box(x + 22 + column * 148, top + 18 * row, chance.uniform(100, 138), 8, inks.middle, 0.8, 3)
            for row in range(int((HEIGHT - top) / 18))
        ]
    return drawn
