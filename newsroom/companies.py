"""Trades of the invented world and the names of their companies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from newsroom.tables import document, row


@dataclass(frozen=True)
class Sector:
    """A trade: `noun` names the company, `things` what it sells, `site` where its people work, `worker` who they are.

    `staff` bounds its headcount; `revenue_per_head` its yearly sales per employee in units of money.
    """

    noun: str
    suffixes: tuple[str, ...]
    things: tuple[str, ...]
    site: str
    worker: str
    input: str
    staff: tuple[int, int]
    revenue_per_head: tuple[int, int]


PER_SECTOR = 10


@cache
def sectors() -> tuple[Sector, ...]:
    """Return the trades in data/companies.toml."""
    found = document("companies.toml")["sectors"]
    return tuple(row(Sector, one, "companies.toml", f"sectors[{at}]") for at, one in enumerate(found))


def trade_names(rng: Random) -> dict[Sector, list[str]]:
    """Return PER_SECTOR company names for each trade; no two companies of the world share a root."""
    every = document("companies.toml")["roots"]
    roots = iter(rng.sample(every, len(every)))
    return {sector: [f"{next(roots)} {rng.choice(sector.suffixes)}" for _ in range(PER_SECTOR)] for sector in sectors()}
