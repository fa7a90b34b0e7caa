"""Game studios, professional squads, and titles of games."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from random import Random

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.places import City
from newsroom.scene import Scene, SpentError
from newsroom.tables import shared
from newsroom.world import Country, World

_PAIRING_TRIES = 40
_STUDIO_STAFF = (9, 14, 22, 38, 60, 110, 240, 480, 900)


@dataclass(frozen=True)
class Squad:
    name: str
    country: Country
    city: City
    captain: Person
    star: Person
    coach: Person
    handle: str


@dataclass(frozen=True)
class Studio:
    name: str
    country: Country
    city: City
    head: Person
    staff: int
    known_for: str


def _squads(world: World) -> tuple[Squad, ...]:
    rng, given = Random(f"{world.seed}:squads"), shared("games")
    found = []
    for name, handle in zip(given.squads, rng.sample(given.handles, len(given.squads)), strict=True):
        country = world.country(rng)
        city = rng.choice(country.cities)
        roles = (f"the captain of {name}", "", f"the coach of {name}")
        captain, star, coach = (world.person(country, role, rng=rng) for role in roles)
        found.append(Squad(name, country, city, captain, star, coach, handle))
    return tuple(found)


def _studios(world: World) -> tuple[Studio, ...]:
    rng, given = Random(f"{world.seed}:studios"), shared("games")
    found = []
    for name in given.studio_names:
        country = world.country(rng)
        city = rng.choice(country.cities)
        head = world.person(country, f"who heads {name}", rng=rng)
        found.append(Studio(name, country, city, head, rng.choice(_STUDIO_STAFF), rng.choice(given.known)))
    return tuple(found)


def _studio_pool(scene: Scene) -> tuple[Studio, ...]:
    return scene.world.kept("game studios", lambda: _studios(scene.world))


def _pairing(scene: Scene) -> tuple[Squad, Squad, Squad]:
    """Return two squads that have not met, the winner first, and the winner's next opponent."""
    pool = scene.world.kept("esports squads", lambda: _squads(scene.world))
    for _ in range(_PAIRING_TRIES):
        winner, loser, following = scene.sample(pool, 3)
        with suppress(SpentError):
            scene.once("esports match", frozenset((winner.name, loser.name)))
            return winner, loser, following
    raise SpentError("all squads have met")


def _game_title(scene: Scene) -> str:
    given = shared("games")
    return scene.fresh("game title", [f"{first} {second}" for first in given.title_a for second in given.title_b])


VERBS: dict[str, Verb] = {"game_title": _game_title, "pairing": _pairing, "studio_pool": _studio_pool}
