"""Motifs of music and film: records, keys, sound waves, reels."""

from __future__ import annotations

import math
from random import Random

from device_app.pages.art.colours import Inks
from device_app.pages.art.shapes import HEIGHT, WIDTH, box, disc, line, ring, shape


def record(chance: Random, inks: Inks) -> list[str]:
    """A record with its grooves and an arm across it."""
    x, y, radius = chance.uniform(200, 360), chance.uniform(170, 300), chance.uniform(150, 210)
    grooves = chance.randint(3, 6)
    drawn = [disc(x, y, radius, inks.near)]
    drawn += [ring(x, y, radius * (0.94 - 0.52 * k / grooves), inks.middle, 2.5) for k in range(grooves)]
    drawn += [disc(x, y, radius * 0.34, inks.spot), disc(x, y, radius * 0.05, inks.glow)]
    bend = (x + radius * 1.25, y - radius * chance.uniform(0.1, 0.5))
    drawn += [line([(bend[0] + 20, -10), bend, (x + radius * 0.6, y + radius * 0.4)], inks.far, 10)]
    return [*drawn, disc(bend[0], bend[1], 15, inks.far)]


def keys(chance: Random, inks: Inks) -> list[str]:
    """Piano keys from below, one of them struck."""
    count, top = chance.randint(9, 13), chance.uniform(120, 210)
    width = WIDTH / count
    struck = chance.randrange(1, count - 1)
    drawn = [box(0, top - 34, WIDTH, 34, inks.near)]
    for at in range(count):
        ink = inks.spot if at == struck else inks.glow
        drawn.append(box(at * width + 1.5, top, width - 3, HEIGHT - top + 20, ink, 1, 5))
    drawn += [
        box(at * width - width * 0.29, top, width * 0.58, (HEIGHT - top) * 0.58, inks.near, 1, 4)
        for at in range(1, count)
        if at % 7 not in (3, 0)
    ]
    rise = chance.uniform(30, 60)
    return [*drawn, *(ring((struck + 0.5) * width, top - 60, rise * (k + 1) * 0.5, inks.middle, 3) for k in range(3))]


def sound(chance: Random, inks: Inks) -> list[str]:
    """A sound wave as bars around a line, swelling and falling."""
    count, middle = chance.randint(26, 40), HEIGHT * chance.uniform(0.45, 0.58)
    step = WIDTH / count
    swell, second = chance.uniform(0.8, 2.2), chance.uniform(4, 9)
    loud = chance.randrange(count)
    drawn = []
    for at in range(count):
        share = at / count
        height = abs(math.sin(share * math.pi * swell + 0.4)) * 190 + abs(math.sin(share * math.pi * second)) * 90 + 14
        ink = inks.spot if at == loud else (inks.near, inks.middle)[at % 3 == 1]
        drawn.append(box(at * step + step * 0.2, middle - height / 2, step * 0.6, height, ink, 1, step * 0.3))
    return drawn


def reel(chance: Random, inks: Inks) -> list[str]:
    """A strip of film across the sheet, each frame with a sun or a hill of its own."""
    top, height, frame = chance.uniform(70, 150), chance.uniform(170, 220), chance.uniform(150, 200)
    start = -chance.uniform(0, frame)
    drawn = [box(-10, top, WIDTH + 20, height, inks.near)]
    for at in range(math.ceil((WIDTH - start) / frame)):
        x = start + at * frame
        inner, ground = frame - 18, top + 34 + (height - 68)
        drawn.append(box(x + 9, top + 34, inner, height - 68, (inks.middle, inks.far)[at % 2], 1, 4))
        peak = x + 9 + inner * chance.uniform(0.3, 0.7)
        drawn.append(disc(peak, top + height * chance.uniform(0.36, 0.5), 20, inks.spot))
        drawn.append(shape([(x + 9, ground), (peak, ground - height * 0.28), (x + frame - 9, ground)], inks.glow, 0.8))
        drawn += [
            box(x + 9 + hole * frame / 4, edge, frame / 8, 14, inks.glow, 0.9, 3)
            for hole in range(4)
            for edge in (top + 10, top + height - 24)
        ]
    return drawn
