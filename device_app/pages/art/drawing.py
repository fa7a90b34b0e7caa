"""Drawn art for news: no photograph is fetched from anywhere, each picture follows from the section and the id.

The same news always gets the same picture. A section has its hue (`colours`), section and topic have their motifs; the
id decides the light, the composition and every measure in it. A picture of the wrong thing misleads, so what has no
motif of its own gets a newspaper.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from random import Random

from device_app.pages.art import motifs, motifs_arts, motifs_play
from device_app.pages.art.colours import mix_inks
from device_app.pages.art.shapes import HEIGHT, WIDTH

SHEETS_KEPT = 512
"""Pictures kept in memory, about 3 kB each."""

MUSIC = (motifs.stage, motifs_arts.record, motifs_arts.keys, motifs_arts.sound)
FILM = (motifs.stage, motifs_arts.reel)
SEA = (motifs.waves,)
CARS = (motifs.road, motifs_play.car)
MONEY = (motifs.ledger, motifs_play.candles)
NEWSPAPER = (motifs_play.paper,)
"""Of a section that has no motif of its own, and of topics on which each of their section's would mislead."""

MOTIFS: dict[str, tuple[motifs.Motif, ...]] = {
    "city": (motifs.skyline,), "local": (motifs.skyline,), "region": (motifs.hills, motifs.skyline),
    "housing": (motifs.skyline,), "politics": (motifs.columns,), "law": (motifs.columns, motifs.pages),
    "courts": (motifs.columns, motifs.pages), "news": NEWSPAPER, "world": (motifs.globe,),
    "business": (motifs.ledger, motifs.skyline), "economy": MONEY, "finance": MONEY, "markets": MONEY,
    "technology": (motifs.circuit,), "science": (motifs.orbits, motifs_play.cells), "space": (motifs.orbits,),
    "health": (motifs_play.cells, motifs.leaves),
    "environment": (motifs.hills, motifs.leaves), "climate": (motifs.sky, motifs.hills), "weather": (motifs.sky,),
    "culture": (motifs.stage,), "arts": (motifs.stage,), "music": MUSIC, "film": FILM,
    "movies": FILM, "tv": FILM, "entertainment": (motifs.stage,), "books": (motifs.pages,),
    "education": (motifs.pages,), "sport": (motifs.pitch,), "sports": (motifs.pitch,), "football": (motifs.pitch,),
    "basketball": (motifs_play.basket,), "cycling": (motifs_play.wheels,), "games": (motifs_play.board,),
    "crime": (motifs_play.prints,), "travel": (motifs.hills, motifs.waves), "food": (motifs.table,),
    "foodanddrink": (motifs.table,), "transport": (motifs.road,), "autos": CARS, "motoring": CARS, "sea": SEA,
    "ports": SEA, "labour": (motifs.ledger, motifs.skyline), "work": (motifs.ledger, motifs.skyline),
    "lifestyle": (motifs.leaves, motifs.table), "style": (motifs.leaves, motifs.stage), "opinion": (motifs.pages,),
}  # fmt: skip
TOPICS: dict[str, dict[str, tuple[motifs.Motif, ...]]] = {
    "politics": {"local government": (motifs.skyline,), "budget": (motifs.ledger,)},
    "business": {"strikes": (motifs.skyline,), "product recalls": NEWSPAPER, "company results": (motifs.ledger,)},
    "music": {
        "classical": (motifs_arts.keys,), "concerts": (motifs.stage,), "festivals": (motifs.stage,),
        "album reviews": (motifs_arts.record, motifs_arts.sound),
    },
    "film": {"television": (motifs_arts.reel,), "film festivals": (motifs.stage,), "cinemas": (motifs.stage,)},
    "health": {"diet": (motifs.table,), "mental health": (motifs.leaves,), "outbreaks": (motifs_play.cells,)},
    "climate": {
        "storms": (motifs.sky,), "heatwaves": (motifs.sky,), "floods": SEA, "wildlife": (motifs.leaves,),
        "climate treaties": (motifs.globe,), "energy transition": (motifs.hills,),
    },
    "crime": {
        "trials": (motifs.columns,), "appeals": (motifs.columns,), "district court": (motifs.columns,),
        "inquests": (motifs.columns,), "fraud": (motifs.ledger, motifs_play.prints), "prisons": NEWSPAPER,
        "policing": NEWSPAPER,
    },
    "science": {
        "space missions": (motifs.orbits,), "astronomy": (motifs.orbits,), "physics": (motifs.orbits,),
        "archaeology": (motifs.hills,), "animals": (motifs.leaves,), "oceans": SEA,
        "medical research": (motifs_play.cells,), "research fraud": (motifs.pages,),
    },
    "motoring": {
        "roads": (motifs.road,), "motorsport": (motifs.road,),
        "electric cars": (motifs_play.car,), "road tests": (motifs_play.car,), "recalls": (motifs_play.car,),
        "classic cars": (motifs_play.car,),
    },
    "travel": {
        "city breaks": (motifs.skyline,), "hotels": (motifs.skyline,), "rail travel": (motifs.road,),
        "airports": (motifs.sky,), "islands": SEA, "cruises": SEA, "overtourism": (motifs.skyline, motifs.waves),
    },
    "food": {"farming": (motifs.leaves,), "food prices": (motifs.ledger,)},
    "sports": {
        "basketball nba": (motifs_play.basket,), "basketball ncaa": (motifs_play.basket,),
        "cycling": (motifs_play.wheels,),
    },
}  # fmt: skip
"""Topics that ask for another motif than their section, or for one alone of those it has."""


def motifs_of(section: str, topic: str = "") -> tuple[motifs.Motif, ...]:
    """What may be drawn for news of a section and topic; hyphens, underscores and case are alike."""
    name = _plain(section)
    return TOPICS.get(name, {}).get(_plain(topic)) or MOTIFS.get(name, NEWSPAPER)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", " ").replace("_", " ")


@lru_cache(maxsize=SHEETS_KEPT)
def draw(section: str, news_id: str, topic: str = "") -> str:
    """The picture of a piece of news: an SVG document, 640 x 400, a few kB, without text, script or reference."""
    seed = hashlib.sha256(f"{section.strip().lower()}\0{news_id}".encode()).digest()
    chance = Random(seed)  # a picture, not a secret: it must be the same on every day
    inks = mix_inks(section, chance)
    drawn = "".join(chance.choice(motifs_of(section, topic))(chance, inks))
    mirrored = f' transform="matrix(-1 0 0 1 {WIDTH} 0)"' if chance.random() < 0.5 else ""
    tilt = chance.choice(("0 0 1 1", "0 0 0 1", "1 0 0 1"))
    x1, y1, x2, y2 = tilt.split()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'preserveAspectRatio="xMidYMid slice"><defs><linearGradient id="s" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}">'
        f'<stop stop-color="{inks.sky}"/><stop offset="1" stop-color="{inks.glow}"/></linearGradient></defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="url(#s)"/><g{mirrored}>{drawn}</g></svg>'
    )


def sheet(pictures: Sequence[str]) -> str:
    """All pictures of a page, as `draw` makes them, in one document: a page asks once.

    They lie one below the other; '#p3' at the end of its address shows the fourth.

    The document itself is as large as one picture, which is what an <img> takes its proportions from.
    """
    views = "".join(f'<view id="p{at}" viewBox="0 {at * HEIGHT} {WIDTH} {HEIGHT}"/>' for at in range(len(pictures)))
    drawn = "".join(
        f'<svg y="{at * HEIGHT}" width="{WIDTH}" height="{HEIGHT}"{_named(picture, at)}'
        for at, picture in enumerate(pictures)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">{views}{drawn}</svg>'


def _named(picture: str, at: int) -> str:
    """What follows '<svg' in a picture, with names that no other picture of the sheet has."""
    inside = picture.removeprefix("<svg").replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    return inside.replace('id="s"', f'id="s{at}"').replace("url(#s)", f"url(#s{at})")
