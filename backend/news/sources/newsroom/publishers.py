"""The papers of the invented world, and which of them prints what."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Publisher:
    """A paper with its domain; `beats` are the sections it is strong in, none for a general paper."""

    name: str
    domain: str
    weight: int
    beats: frozenset[str] = frozenset()


def _of(name: str, domain: str, weight: int, sections: str = "") -> Publisher:
    return Publisher(name, f"{domain}.example", weight, frozenset(sections.split(", ")) if sections else frozenset())


AGENCY = _of("Meridian News Agency", "meridian-agency", 5)

PUBLISHERS: tuple[Publisher, ...] = (
    AGENCY,
    _of("The Wexmouth Courier", "wexmouthcourier", 7),
    _of("Morning Ledger", "morningledger", 6),
    _of("The Evening Lantern", "eveninglantern", 5),
    _of("Northern Dispatch", "northerndispatch", 4),
    _of("The Halewick Post", "halewickpost", 3),
    _of("Continental Review", "continentalreview", 3),
    _of("Hohenbruck Tribune", "hohenbrucktribune", 3),
    _of("Open Square", "opensquare", 2),
    _of("The Counting House", "countinghouse", 9, "business, markets"),
    _of("Benchmark Wire", "benchmarkwire", 5, "markets, business, technology"),
    _of("Touchline", "touchline", 10, "football, tennis, cycling, basketball, ice hockey"),
    _of("The Final Whistle", "finalwhistle", 6, "football, basketball, ice hockey"),
    _of("Peloton & Baseline", "pelotonbaseline", 6, "tennis, cycling"),
    _of("The Circuit", "thecircuit", 9, "technology, games, science"),
    _of("Save Point", "savepoint", 8, "games"),
    _of("Orbit & Cell", "orbitandcell", 7, "science, health, climate"),
    _of("Ward Round", "wardround", 8, "health"),
    _of("The Watershed", "thewatershed", 7, "climate"),
    _of("Backstage", "backstage-weekly", 8, "music, film"),
    _of("The Reading Room", "readingroom", 8, "books"),
    _of("Table & Trail", "tableandtrail", 8, "food, travel"),
    _of("The Blackboard", "theblackboard", 7, "education"),
    _of("Court Circular Daily", "courtdaily", 6, "crime"),
    _of("Open Road", "openroadmag", 8, "motoring, travel"),
)


def publisher_for(section: str, rng: Random, other_than: frozenset[str] = frozenset()) -> Publisher:
    """A paper that prints the section: any general one, or one strong in it; none whose name is in `other_than`."""
    able = [
        paper for paper in PUBLISHERS if (not paper.beats or section in paper.beats) and paper.name not in other_than
    ]
    return rng.choices(able, [paper.weight for paper in able])[0]
