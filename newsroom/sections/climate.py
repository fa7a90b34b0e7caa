"""Where the climate section's stories can happen: cold and warm countries, and those with a coast."""

from __future__ import annotations

from newsroom.expressions import Verb
from newsroom.scene import Scene
from newsroom.tables import shared
from newsroom.world import Country


def _country_of(scene: Scene, climate: str) -> Country:
    """Return a country with cold winters, warm ones, or any, likelier a near one."""
    temperate = shared("climate").temperate
    among = [one for one in scene.world.countries if climate == "any" or (one.name in temperate) == (climate == "cold")]
    return scene.world.country(scene.rng, among)


def _coast_of(scene: Scene, country: Country) -> str:
    """Return one of the country's coastal regions, or its coast as a whole."""
    words = shared("climate").coasts
    coasts = [region for region in country.land.regions if any(word in region for word in words)]
    return scene.pick(coasts) if coasts else f"the {country.demonym} coast"


VERBS: dict[str, Verb] = {"country_of": _country_of, "coast_of": _coast_of}
