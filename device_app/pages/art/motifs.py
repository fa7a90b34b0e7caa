"""What the pictures show: one function a motif, each drawing SVG elements on a 640 x 400 sheet."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random

from device_app.pages.art.colours import Inks
from device_app.pages.art.shapes import HEIGHT, WIDTH, arc, box, disc, leaf, line, oval, ring, shape

Motif = Callable[[Random, Inks], list[str]]


def skyline(chance: Random, inks: Inks) -> list[str]:
    """Streets of houses before one another, some windows lit."""
    drawn = [disc(chance.uniform(90, 550), chance.uniform(70, 150), chance.uniform(34, 70), inks.spot)]
    for ink, low, high, wide in ((inks.far, 150, 290, 60), (inks.middle, 90, 220, 76), (inks.near, 50, 140, 96)):
        x = -20.0
        while x < WIDTH:
            width, height = chance.uniform(0.5, 1.2) * wide, chance.uniform(low, high)
            drawn.append(box(x, HEIGHT - height, width, height, ink))
            if chance.random() < 0.35:
                peak = chance.uniform(14, 40)
                top = HEIGHT - height
                drawn.append(shape([(x, top + 1), (x + width / 2, top - peak), (x + width, top + 1)], ink))
            if ink == inks.middle and chance.random() < 0.6:
                drawn += [box(x + width * 0.3, HEIGHT - height + 22 + 26 * row, 9, 13, inks.glow) for row in range(3)]
            x += width + chance.choice((0, 0, 8))
    return drawn


def waves(chance: Random, inks: Inks) -> list[str]:
    """Water in layers, a low sun, sometimes a hull."""
    sun = chance.uniform(120, 520)
    drawn = [disc(sun, chance.uniform(120, 175), chance.uniform(46, 86), inks.spot)]
    layers = ((inks.far, 190), (inks.middle, 250), (inks.near, 318))
    for at, (ink, level) in enumerate(layers):
        phase, length, swell = chance.uniform(0, 6), chance.uniform(90, 190), chance.uniform(8, 24)
        if at == 1 and chance.random() < 0.7:
            x = chance.uniform(120, 440)
            drawn.append(shape([(x, 232), (x + 130, 232), (x + 108, 274), (x + 22, 274)], inks.near))
            drawn += [box(x + 24 + 22 * stack, 206, 18, 26, inks.glow) for stack in range(chance.randint(2, 4))]
        crest = [(x, level + swell * math.sin(x / length * math.tau / 2 + phase)) for x in range(0, WIDTH + 1, 20)]
        drawn.append(shape([*crest, (WIDTH, HEIGHT), (0, HEIGHT)], ink))
    return drawn


def hills(chance: Random, inks: Inks) -> list[str]:
    """Ridges behind ridges, and a road or a wood in front."""
    drawn = [disc(chance.uniform(80, 560), chance.uniform(60, 140), chance.uniform(30, 60), inks.spot)]
    for ink, base, rough in ((inks.glow, 210, 80), (inks.far, 255, 66), (inks.middle, 305, 46), (inks.near, 350, 26)):
        knots = [(x, base - chance.uniform(0, rough)) for x in range(-40, WIDTH + 121, chance.choice((80, 110, 140)))]
        drawn.append(shape([*knots, (WIDTH + 120, HEIGHT), (-40, HEIGHT)], ink))
    for _ in range(chance.randint(0, 7)):
        x, tall = chance.uniform(0, WIDTH), chance.uniform(40, 90)
        drawn.append(
            shape([(x, HEIGHT - 30 - tall), (x + tall * 0.3, HEIGHT - 20), (x - tall * 0.3, HEIGHT - 20)], inks.near)
        )
    return drawn


def orbits(chance: Random, inks: Inks) -> list[str]:
    """A body, its rings and its moons."""
    x, y = chance.uniform(180, 460), chance.uniform(140, 260)
    core = chance.uniform(48, 92)
    drawn = [disc(chance.uniform(0, WIDTH), chance.uniform(0, HEIGHT), 2, inks.glow) for _ in range(26)]
    for step in range(chance.randint(3, 5)):
        radius = core + 42 * (step + 1)
        drawn.append(ring(x, y, radius, inks.far, 2 + step % 2 * 5, 0.7))
        turn = chance.uniform(0, math.tau)
        drawn.append(disc(x + radius * math.cos(turn), y + radius * math.sin(turn), chance.uniform(8, 22),
                           inks.spot if step == 1 else inks.middle))  # fmt: skip
    drawn += [disc(x, y, core, inks.near), disc(x - core * 0.22, y - core * 0.2, core * 0.72, inks.middle, 0.75)]
    return drawn


def pitch(chance: Random, inks: Inks) -> list[str]:
    """A field in stripes with its lines and the flight of a ball, or lanes round a bend."""
    if chance.random() < 0.4:
        x, y, inner = chance.uniform(-60, 160), chance.uniform(330, 460), chance.uniform(110, 170)
        drawn = [ring(x, y, inner + 46 * lane, (inks.middle, inks.near)[lane % 2], 42) for lane in range(6)]
        turn = chance.uniform(-1.2, -0.5)
        at = inner + 46 * chance.randrange(2, 5)
        return [*drawn, disc(x + at * math.cos(turn), y + at * math.sin(turn), 20, inks.spot)]
    slant, wide = chance.uniform(-80, 80), chance.choice((60, 90, 120))
    drawn = [shape([(wide * k - 90, 0), (wide * (k + 0.5) - 90, 0), (wide * (k + 0.5) - 90 + slant, HEIGHT),
                     (wide * k - 90 + slant, HEIGHT)], inks.far, 0.35) for k in range(14)]  # fmt: skip
    drawn += [ring(chance.uniform(60, 580), HEIGHT, chance.uniform(120, 230), inks.glow, 6),
              box(0, chance.uniform(110, 250), WIDTH, 6, inks.glow)]  # fmt: skip
    reach, peak = chance.uniform(300, 560), chance.uniform(150, 290)
    steps = range(chance.randint(8, 15))
    flight = [(40 + reach * t / 14, 350 - peak * math.sin(t / 16 * math.pi)) for t in steps]
    return [
        *drawn,
        line(flight, inks.near, 5, 0.8),
        disc(*flight[-1], 32, inks.near),
        disc(*flight[-1], 21, inks.spot),
    ]


def ledger(chance: Random, inks: Inks) -> list[str]:
    """Columns that rise and fall and a line over them."""
    count = chance.randint(7, 12)
    step, level = (WIDTH - 60) / count, chance.uniform(90, 200)
    tops: list[tuple[float, float]] = []
    drawn = [box(0, 60 + 70 * k, WIDTH, 2, inks.far, 0.7) for k in range(5)]
    for k in range(count):
        level = min(max(level + chance.uniform(-60, 70), 40), 320)
        drawn.append(box(30 + k * step, HEIGHT - level, step * 0.72, level, (inks.middle, inks.near, inks.far)[k % 3]))
        tops.append((30 + k * step + step * 0.36, HEIGHT - level - chance.uniform(18, 46)))
    return [*drawn, line(tops, inks.spot, 7), disc(*tops[-1], 13, inks.spot)]


def leaves(chance: Random, inks: Inks) -> list[str]:
    """Stems with leaves, from one side of the sheet."""
    drawn: list[str] = [disc(chance.uniform(100, 540), chance.uniform(90, 240), chance.uniform(70, 120), inks.glow)]
    for stem in range(chance.randint(3, 5)):
        x, lean = chance.uniform(60, 580), chance.uniform(-120, 120)
        ink = (inks.far, inks.middle, inks.near)[stem % 3]
        tall = chance.uniform(220, 370)
        spine = [(x + lean * (t / 8) ** 2, HEIGHT - tall * t / 8) for t in range(9)]
        drawn.append(line(spine, ink, 5))
        for at, (px, py) in enumerate(spine[1:], 1):
            side, long = (1 if at % 2 else -1), (10 - at) * 11 + 12
            drawn.append(leaf(px, py, side * long, long, ink))
    return [
        *drawn,
        *(disc(chance.uniform(60, 580), chance.uniform(60, 300), 9, inks.spot) for _ in range(chance.randint(3, 8))),
    ]


def stage(chance: Random, inks: Inks) -> list[str]:
    """Beams from above, a curtain's edge, arcs of seats."""
    drawn = []
    for _ in range(chance.randint(2, 4)):
        x, foot, spread = chance.uniform(60, 580), chance.uniform(80, 560), chance.uniform(60, 130)
        drawn.append(shape([(x - 8, 0), (x + 8, 0), (foot + spread, 330), (foot - spread, 330)], inks.glow, 0.45))
    x = chance.uniform(220, 420)
    drawn += [disc(x, 300, 34, inks.spot), box(x - 26, 300, 52, 100, inks.spot)]
    drawn += [ring(WIDTH / 2, 690, 380 - 46 * k, (inks.near, inks.middle)[k % 2], 30) for k in range(4)]
    edge = chance.choice((0, 1))
    drawn += [
        box(edge * (WIDTH - 130) + k * 34, -10, 26, HEIGHT, (inks.far, inks.middle)[k % 2], 0.9, 12) for k in range(4)
    ]
    return drawn


def circuit(chance: Random, inks: Inks) -> list[str]:
    """Tracks with right angles between pads."""
    drawn = []
    for k in range(chance.randint(9, 14)):
        x, y = chance.randrange(1, 16) * 40, chance.randrange(1, 10) * 40
        points: list[tuple[float, float]] = [(x, y)]
        for turn in range(chance.randint(2, 4)):
            far = chance.choice((-160, -80, 80, 160))
            x, y = (x + far, y) if (turn + k) % 2 else (x, y + far)
            points.append((x, y))
        ink = (inks.far, inks.middle, inks.near)[k % 3]
        drawn += [line(points, ink, 9), disc(*points[0], 14, ink), disc(*points[0], 6, inks.sky)]
    x, y = chance.randrange(3, 10) * 40, chance.randrange(2, 6) * 40
    return [*drawn, box(x, y, 150, 110, inks.near, 1, 10), box(x + 22, y + 20, 106, 70, inks.spot, 1, 6)]


def columns(chance: Random, inks: Inks) -> list[str]:
    """A house of columns under a gable, or a chamber of seats."""
    if chance.random() < 0.45:
        x = chance.uniform(240, 400)
        drawn = []
        for row in range(5):
            radius = 90 + row * 52
            seats = 7 + row * 3
            for seat in range(seats):
                turn = math.pi * (seat + 0.5) / seats
                ink = inks.spot if chance.random() < 0.12 else (inks.middle if seat < seats * 0.55 else inks.near)
                drawn.append(disc(x + radius * math.cos(turn), 372 - radius * math.sin(turn), 15, ink))
        return [*drawn, box(x - 34, 330, 68, 70, inks.near, 1, 4)]
    count, left, wide = chance.randint(4, 7), chance.uniform(40, 110), chance.uniform(420, 520)
    top = chance.uniform(150, 190)
    drawn = [disc(left + wide * chance.random(), 110, chance.uniform(50, 90), inks.spot, 0.9)]
    drawn += [shape([(left - 20, top), (left + wide / 2, top - 90), (left + wide + 20, top)], inks.middle)]
    drawn += [
        box(left, top, wide, 26, inks.near),
        box(left - 30, 352, wide + 60, 18, inks.near),
        box(left - 60, 370, wide + 120, 30, inks.middle),
    ]
    step = wide / count
    return [
        *drawn,
        *(
            box(left + step * (k + 0.25), top + 26, step * 0.5, 352 - top - 26, inks.far if k % 2 else inks.middle)
            for k in range(count)
        ),
    ]


def globe(chance: Random, inks: Inks) -> list[str]:
    """A sphere with meridians and routes across it."""
    x, y, radius = chance.uniform(220, 420), chance.uniform(180, 240), chance.uniform(130, 190)
    drawn = [disc(x, y, radius, inks.far)]
    drawn += [oval(x, y, radius * k / 5, radius, inks.glow, 3) for k in range(1, 5)]
    for down in (-radius * 0.6, 0.0, radius * 0.6):
        half = math.sqrt(radius**2 - down**2)
        drawn.append(line([(x - half, y + down), (x + half, y + down)], inks.glow, 3))
    spots = [(chance.uniform(30, 610), chance.uniform(40, 360)) for _ in range(5)]
    drawn += [arc(start, end, 80, inks.near, 5) for start, end in pairwise(spots)]
    return [*drawn, *(disc(px, py, 12, inks.spot if k else inks.near) for k, (px, py) in enumerate(spots))]


def pages(chance: Random, inks: Inks) -> list[str]:
    """Books on a shelf, leaning, or one lying open."""
    drawn = [disc(chance.uniform(80, 560), chance.uniform(60, 140), chance.uniform(40, 80), inks.glow)]
    x = 30.0
    while x < 600:
        width, tall = chance.uniform(28, 70), chance.uniform(150, 280)
        ink = chance.choice((inks.far, inks.middle, inks.near, inks.middle, inks.spot))
        lean = chance.uniform(-14, 14) if chance.random() < 0.25 else 0
        drawn.append(shape([(x + lean, 350 - tall), (x + lean + width, 350 - tall), (x + width, 350), (x, 350)], ink))
        drawn.append(box(x + lean * 0.8 + 8, 350 - tall * 0.8, width - 16, 8, inks.sky, 0.8))
        x += width + (chance.uniform(20, 60) if lean else 3)
    return [*drawn, box(0, 350, WIDTH, 50, inks.near)]


def sky(chance: Random, inks: Inks) -> list[str]:
    """A sun or moon, clouds, and rain on some days."""
    drawn = [disc(chance.uniform(120, 520), chance.uniform(90, 190), chance.uniform(60, 100), inks.spot)]
    for ink in (inks.glow, inks.far, inks.middle):
        x, y, grow = chance.uniform(40, 440), chance.uniform(130, 280), chance.uniform(0.8, 1.5)
        drawn += [
            disc(x + dx * grow, y + dy * grow, r * grow, ink)
            for dx, dy, r in ((0, 0, 38), (48, -20, 50), (104, -6, 42), (146, 8, 28))
        ]
        drawn.append(box(x - 36 * grow, y + 2, 210 * grow, 36 * grow, ink, 1, 18))
    if chance.random() < 0.6:
        for _ in range(26):
            x, y = chance.uniform(0, WIDTH), chance.uniform(240, 400)
            drawn.append(line([(x, y), (x - 14, y + 34)], inks.near, 4, 0.7))
    return drawn


def road(chance: Random, inks: Inks) -> list[str]:
    """A way to the horizon, rails or lanes."""
    far, level = chance.uniform(160, 480), chance.uniform(150, 210)
    drawn = [
        disc(chance.uniform(80, 560), level - 30, chance.uniform(40, 80), inks.spot),
        box(0, level, WIDTH, HEIGHT, inks.middle),
    ]
    drawn.append(shape([(0, level), (180, level - chance.uniform(30, 90)), (WIDTH, level)], inks.far))
    left, right = chance.uniform(-80, 160), chance.uniform(480, 720)
    drawn.append(shape([(far - 5, level), (far + 5, level), (right, HEIGHT), (left, HEIGHT)], inks.near))
    for step in range(5):
        a, b = (step / 5) ** 1.8, ((step + 0.5) / 5) ** 1.8
        mid = (left + right) / 2
        y1, y2 = level + a * (HEIGHT - level), level + b * (HEIGHT - level)
        x1, x2 = far + (mid - far) * a, far + (mid - far) * b
        drawn.append(
            shape([(x1 - 1 - 9 * a, y1), (x1 + 1 + 9 * a, y1), (x2 + 1 + 9 * b, y2), (x2 - 1 - 9 * b, y2)], inks.glow)
        )
    return drawn


def table(chance: Random, inks: Inks) -> list[str]:
    """Plates and what lies on them, from above."""
    drawn = [box(k * 80, 0, 40, HEIGHT, inks.glow, 0.5) for k in range(8)]
    for x, y in (
        (chance.uniform(120, 240), chance.uniform(120, 260)),
        (chance.uniform(390, 520), chance.uniform(120, 290)),
    ):
        radius = chance.uniform(90, 130)
        drawn += [disc(x, y, radius, inks.far), disc(x, y, radius * 0.76, inks.sky)]
        for k in range(chance.randint(4, 7)):
            turn, out = chance.uniform(0, math.tau), chance.uniform(0, radius * 0.45)
            ink = (inks.middle, inks.near, inks.spot)[k % 3]
            drawn.append(disc(x + out * math.cos(turn), y + out * math.sin(turn), chance.uniform(14, 32), ink))
    x = chance.uniform(290, 340)
    return [*drawn, box(x, 70, 12, 260, inks.near, 1, 6), box(x - 14, 60, 40, 70, inks.near, 1, 14)]
