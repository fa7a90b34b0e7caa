"""Drawn art for news: no photograph is fetched from anywhere, each picture follows from the section and the id.

The same news always gets the same picture. A section has its hue (`colours`), section and topic have their motifs; the
id decides the light, the composition and every measure in it. A picture of the wrong thing misleads, so what has no
motif of its own gets a newspaper.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from random import Random

from device_app.pages.art import motifs, motifs_arts, motifs_play
from device_app.pages.art.colours import mix_inks
from device_app.pages.art.shapes import HEIGHT, WIDTH

SHEETS_KEPT = 512
"""Pictures kept in memory, about 3 kB each."""

_DRAWERS: tuple[motifs.Motif, ...] = (
    motifs.circuit, motifs.columns, motifs.globe, motifs.hills, motifs.leaves, motifs.ledger, motifs.orbits,
    motifs.pages, motifs.pitch, motifs.road, motifs.sky, motifs.skyline, motifs.stage, motifs.table, motifs.waves,
    motifs_arts.keys, motifs_arts.record, motifs_arts.reel, motifs_arts.sound,
    motifs_play.basket, motifs_play.board, motifs_play.candles, motifs_play.car, motifs_play.cells, motifs_play.paper,
    motifs_play.prints, motifs_play.wheels,
)  # fmt: skip
_BY_NAME = {motif.__name__: motif for motif in _DRAWERS}
_NAMED = json.loads((resources.files("device_app.pages.art") / "motifs.json").read_text("utf-8"))
"""Motifs by section and topic, for the browser's device as well."""


def _motifs(names: Sequence[str]) -> tuple[motifs.Motif, ...]:
    return tuple(_BY_NAME[name] for name in names)


NEWSPAPER = _motifs(_NAMED["otherwise"])
"""Of a section that has no motif of its own, and of topics on which each of their section's would mislead."""
MOTIFS: dict[str, tuple[motifs.Motif, ...]] = {name: _motifs(found) for name, found in _NAMED["sections"].items()}
TOPICS: dict[str, dict[str, tuple[motifs.Motif, ...]]] = {
    section: {topic: _motifs(found) for topic, found in topics.items()} for section, topics in _NAMED["topics"].items()
}
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
