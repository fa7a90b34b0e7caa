"""Drawn art for news: no photograph is fetched from anywhere, each picture follows from the section and the id.

The same news always gets the same picture. A section has its hue (`colours`) and its motif (`motifs`); the id decides
the light, the composition and every measure in it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from random import Random

from device_app.pages.art import motifs, motifs_arts
from device_app.pages.art.colours import mix_inks
from device_app.pages.art.shapes import HEIGHT, WIDTH

SHEETS_KEPT = 512
"""Pictures kept in memory, about 3 kB each."""

MUSIC = (motifs.stage, motifs_arts.record, motifs_arts.keys, motifs_arts.sound)
FILM = (motifs.stage, motifs_arts.reel)
MOTIFS: dict[str, tuple[motifs.Motif, ...]] = {
    "city": (motifs.skyline,), "local": (motifs.skyline,), "region": (motifs.hills, motifs.skyline),
    "housing": (motifs.skyline,), "politics": (motifs.columns,), "law": (motifs.columns, motifs.pages),
    "courts": (motifs.columns, motifs.pages), "news": (motifs.globe, motifs.skyline), "world": (motifs.globe,),
    "business": (motifs.ledger, motifs.skyline), "economy": (motifs.ledger,), "finance": (motifs.ledger,),
    "technology": (motifs.circuit,), "science": (motifs.orbits,), "space": (motifs.orbits,), "health": (motifs.leaves,),
    "environment": (motifs.hills, motifs.leaves), "climate": (motifs.sky, motifs.hills), "weather": (motifs.sky,),
    "culture": (motifs.stage,), "arts": (motifs.stage,), "music": MUSIC, "film": FILM,
    "movies": FILM, "tv": FILM, "entertainment": (motifs.stage,), "books": (motifs.pages,),
    "education": (motifs.pages,), "sport": (motifs.pitch,), "sports": (motifs.pitch,), "football": (motifs.pitch,),
    "travel": (motifs.hills, motifs.waves), "food": (motifs.table,), "foodanddrink": (motifs.table,),
    "transport": (motifs.road,), "autos": (motifs.road,), "sea": (motifs.waves,), "ports": (motifs.waves,),
    "labour": (motifs.ledger, motifs.skyline), "work": (motifs.ledger, motifs.skyline),
    "lifestyle": (motifs.leaves, motifs.table), "style": (motifs.leaves, motifs.stage), "opinion": (motifs.pages,),
}  # fmt: skip
EVERY_MOTIF: tuple[motifs.Motif, ...] = (
    motifs.skyline, motifs.waves, motifs.hills, motifs.orbits, motifs.pitch, motifs.ledger, motifs.leaves, motifs.stage,
    motifs.circuit, motifs.columns, motifs.globe, motifs.pages, motifs.sky, motifs.road, motifs.table,
    motifs_arts.record, motifs_arts.keys, motifs_arts.sound, motifs_arts.reel,
)  # fmt: skip


def _motifs_of(section: str) -> tuple[motifs.Motif, ...]:
    name = section.strip().lower()
    if name in MOTIFS:
        return MOTIFS[name]
    return (EVERY_MOTIF[hashlib.sha256(b"motif" + name.encode()).digest()[0] % len(EVERY_MOTIF)],)


@lru_cache(maxsize=SHEETS_KEPT)
def draw(section: str, news_id: str) -> str:
    """The picture of a piece of news: an SVG document, 640 x 400, a few kB, without text, script or reference."""
    seed = hashlib.sha256(f"{section.strip().lower()}\0{news_id}".encode()).digest()
    chance = Random(seed)  # a picture, not a secret: it must be the same on every day
    inks = mix_inks(section, chance)
    drawn = "".join(chance.choice(_motifs_of(section))(chance, inks))
    mirrored = f' transform="matrix(-1 0 0 1 {WIDTH} 0)"' if chance.random() < 0.5 else ""
    tilt = chance.choice(("0 0 1 1", "0 0 0 1", "1 0 0 1"))
    x1, y1, x2, y2 = tilt.split()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'preserveAspectRatio="xMidYMid slice"><defs><linearGradient id="s" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}">'
        f'<stop stop-color="{inks.sky}"/><stop offset="1" stop-color="{inks.glow}"/></linearGradient></defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="url(#s)"/><g{mirrored}>{drawn}</g></svg>'
    )
