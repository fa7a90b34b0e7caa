# ruff: noqa: SIM905 (a word list reads better as prose)
"""Trades of the invented world and the names of their companies."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


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


def _sector(
    noun: str, suffixes: str, things: str, site: str, worker: str, cost: str,
    staff: tuple[int, int], per_head: tuple[int, int],
) -> Sector:  # fmt: skip
    return Sector(
        noun, tuple(suffixes.split(", ")), tuple(things.split(", ")), site, worker, cost, staff, per_head
    )  # fmt: skip


SECTORS: tuple[Sector, ...] = (
    _sector("supermarket chain", "Stores, Foods, Markets", "groceries, own-label ranges, fresh food", "store",
            "shop worker", "wholesale food prices", (9_000, 140_000), (140_000, 240_000)),
    _sector("fashion retailer", "Clothing, & Daughters, Apparel", "coats, knitwear, footwear", "shop",
            "shop worker", "cotton prices", (2_500, 40_000), (90_000, 180_000)),
    _sector("carmaker", "Motors, Automobile, Werke", "family cars, electric hatchbacks, vans", "assembly plant",
            "assembly worker", "steel and battery prices", (12_000, 110_000), (280_000, 480_000)),
    _sector("drugmaker", "Pharma, Biologics, Therapeutics", "heart drugs, vaccines, cancer treatments", "laboratory",
            "technician", "research spending", (3_000, 60_000), (260_000, 520_000)),
    _sector("airline", "Air, Airways, Aviation", "short-haul flights, long-haul seats, holiday packages", "base",
            "cabin crew member", "jet fuel prices", (3_000, 38_000), (220_000, 420_000)),
    _sector("chipmaker", "Semiconductor, Silicon, Devices", "memory chips, sensors, power chips", "fabrication plant",
            "engineer", "equipment spending", (4_000, 52_000), (260_000, 520_000)),
    _sector("software company", "Systems, Software, Cloud", "payroll software, security tools, design software",
            "office", "developer", "hosting costs", (900, 30_000), (150_000, 380_000)),
    _sector("energy supplier", "Energy, Power, Utilities", "household power, gas contracts, heat pumps",
            "power station", "engineer", "wholesale gas prices", (2_500, 34_000), (420_000, 900_000)),
    _sector("food group", "Dairies, Bakeries, Provisions", "yoghurt, bread, ready meals", "factory",
            "factory worker", "milk and grain prices", (2_000, 48_000), (180_000, 340_000)),
    _sector("housebuilder", "Homes, Construction, Estates", "starter homes, flats, family houses", "building site",
            "site worker", "timber and cement prices", (1_200, 16_000), (280_000, 560_000)),
    _sector("telecoms operator", "Telecom, Mobile, Networks", "broadband, mobile contracts, fibre lines", "call centre",
            "network engineer", "spectrum fees", (4_000, 60_000), (200_000, 360_000)),
    _sector("parcel carrier", "Logistics, Freight, Express", "parcels, next-day delivery, freight space", "depot",
            "driver", "diesel prices", (5_000, 90_000), (80_000, 160_000)),
    _sector("steelmaker", "Steel, Metals, Foundries", "construction steel, car sheet, rails", "steelworks",
            "steelworker", "iron ore and power prices", (4_000, 44_000), (240_000, 460_000)),
    _sector("shipping line", "Lines, Maritime, Shipping", "container slots, ferry tickets, bulk cargo", "terminal",
            "docker", "bunker fuel prices", (1_800, 28_000), (340_000, 700_000)),
    _sector("furniture maker", "Furniture, Interiors, Living", "sofas, kitchens, office chairs", "workshop",
            "joiner", "timber prices", (900, 14_000), (110_000, 200_000)),
    _sector("hotel group", "Hotels, Resorts, Hospitality", "city breaks, conference rooms, beach holidays", "hotel",
            "hotel worker", "energy bills", (2_500, 36_000), (60_000, 120_000)),
    _sector("brewer", "Brewery, Breweries, Malt", "lager, alcohol-free beer, cider", "brewery",
            "brewery worker", "barley and glass prices", (1_000, 18_000), (220_000, 420_000)),
    _sector("toymaker", "Toys, Play, Games Works", "building sets, board games, dolls", "factory",
            "factory worker", "plastic prices", (700, 9_000), (160_000, 300_000)),
)  # fmt: skip

_ROOTS = tuple(
    (
        "Halden Norvik Brightwell Castellan Orison Tremont Averley Kestrel Lumina Sorrel Vantor Meridew Oakhaven "
        "Pellam Quorum Rivermark Solberg Tessera Umbra Valmont Wrenfield Ysolde Zephyra Arbour Belgarde Corvane "
        "Dunholm Elstree Farrow Gilder Ironbridge Juniper Kelmscott Larkspur Mondial Nordheim Ostrel Palisade "
        "Quillon Rosmer Sandholm Tarquin Ulverton Verity Westering Yarrow Zennor Alpenrose Brambling Cardew "
        "Delphin Estuary Fennimore Granta Harbinger Jarrold Kingfisher Linnet Marchmont Nightingale Orchard "
        "Pemberton Quince Ravensworth Saltmarsh Thistle Underwood Vellum Wychwood Aldgate Bellwether Cormorant "
        "Dovetail Everard Foxglove Greyfriars Hollin Jubilee Keystone Lodestar Mistral Northlight Osprey Pinewood "
        "Redstart Sheldrake Tidewater Upland Vireo Whitethorn Arkana Balmori Cerulean Elgara Hibernia Istria "
        "Jacana Kairos Lorimer Mazarin Nimbus Octave Pavane Rialto Sirocco Talavera Umbria Vesper Wolfram Zircon "
        "Amaranth Birchall Calloway Draycott Ellerby Falmere Gosling Hartwood Ingram Jessamy Kendrick Lockhart "
        "Mercer Northcote Oswald Prentice Rookwood Selwyn Trevanion Vaughan Winslow Anselm Barrow Clement "
        "Edelweiss Fairmont Garrick Hesper Ilex Jonquil Kirkdale Lanyon Mulberry Pascoe Rowan Sable Tollgate "
        "Varley Adler Bramley Coppice Denholm Elmira Ferrand Glaston Hollow Ivory Kallista Lindgren Montrose "
        "Novara Pallas Rhenus Sterling Torvald Vistula Wessel Aurora Boreal Cavendish Durance Esker Flint Garland "
        "Heron Imber Kite Laurel Marlin Nereid Otter Petrel Rook Teal Viola Weir "
    ).split()
)
PER_SECTOR = 10


def trade_names(rng: Random) -> dict[Sector, list[str]]:
    """PER_SECTOR company names for each trade; no two companies of the world share a root."""
    roots = iter(rng.sample(_ROOTS, len(_ROOTS)))
    return {sector: [f"{next(roots)} {rng.choice(sector.suffixes)}" for _ in range(PER_SECTOR)] for sector in SECTORS}
