"""Invented cars, the points that testers make about them, and racing drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.scene import Scene
from newsroom.tables import shared
from newsroom.world import Company, Country, Money, World, rounded

_SATURDAY = 5
_UNIT_SCALE, _CAR_UNIT_SCALE = 20, 22
_ELECTRIC_ONLY = ("the heat pump", "the charging flap")
_NOT_ELECTRIC = ("the gearbox", "the economy")


@dataclass(frozen=True)
class CarModel:
    """A car: `drive` is 'electric', 'hybrid' or 'petrol'; `reach` its range in kilometres, None for petrol."""

    name: str
    co: Company
    body: str
    drive: str
    electric: str | None
    fuel: str | None
    price: Money
    kilowatts: int
    reach: int | None
    thirst: float | None
    sprint: float
    boot: int
    length: float


def _model(word: str, co: Company, rng: Random) -> CarModel:
    drive = rng.choice(("electric", "electric", "hybrid", "petrol"))
    body = rng.choice(shared("motoring").bodies)
    low, high = (14_000, 24_000) if body in ("city car", "hatchback") else (27_000, 58_000)
    kilowatts = rng.randint(52, 96) if body == "city car" else rng.randint(85, 240)
    electric = drive == "electric"
    scale = _CAR_UNIT_SCALE if co.currency.unit else 1
    return CarModel(
        name=f"{co.name.split()[0]} {word}",
        co=co,
        body=body,
        drive=drive,
        electric="" if electric else None,
        fuel=None if electric else "",
        price=Money(rounded(rng.uniform(low, high)) * scale, co.currency),
        kilowatts=kilowatts,
        reach=rng.randrange(240, 620, 10) if electric else None,
        thirst=None if electric else round(rng.uniform(4.1, 8.4), 1),
        sprint=(
            round(1400 / kilowatts + rng.uniform(-1.0, 1.0), 1) if kilowatts < 150 else round(rng.uniform(4.9, 8.2), 1)
        ),
        boot=rng.randrange(180, 640, 10),
        length=round(rng.uniform(3.6, 4.9), 2),
    )


def _range(world: World) -> tuple[CarModel, ...]:
    """Return every carmaker's range, with prices in its own currency."""
    rng, words = Random(f"{world.seed}:motoring"), shared("motoring").model_names
    makers = [one for one in world.companies if one.noun == "carmaker"]
    named = enumerate(rng.sample(words, len(words)))
    return tuple(_model(word, makers[index % len(makers)], rng) for index, word in named)


def _models(scene: Scene) -> tuple[CarModel, ...]:
    return scene.world.kept("car models", lambda: _range(scene.world))


def _fitting(_: Scene, points: Sequence[Any], drive: str) -> list[Any]:
    """Return the points that a car with this drive can have: an electric one has no gearbox."""
    never = _NOT_ELECTRIC if drive == "electric" else _ELECTRIC_ONLY
    return [point for point in points if point[0] not in never]


def _small(scene: Scene, country: Country, low: int, high: int) -> Money:
    """Return a fee, larger in a currency of small units."""
    scale = _UNIT_SCALE if country.currency.unit else 1
    return Money(float(scene.between(low, high) * scale), country.currency)


def _racers(scene: Scene) -> list[tuple[Person, Country]]:
    """Return five drivers for each country, with the country."""
    world = scene.world
    return world.kept("racing drivers", lambda: [(world.person(one), one) for one in world.countries for _ in range(5)])


def _weekend(scene: Scene, *days: int) -> tuple[datetime, ...]:
    """Return afternoon times on the days after the Saturday nearest to the story's start, which is day 0."""
    saturday = scene.day((_SATURDAY - scene.start.weekday() + 3) % 7 - 3)
    return tuple(
        saturday.replace(hour=scene.between(14, 20), minute=scene.between(0, 59)) + timedelta(days=day) for day in days
    )


VERBS: dict[str, Verb] = {
    "fitting": _fitting,
    "models": _models,
    "racers": _racers,
    "small": _small,
    "weekend": _weekend,
}
