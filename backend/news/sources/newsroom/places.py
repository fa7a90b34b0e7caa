"""The countries of the invented world: their cities, regions, money and forms of government."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class City:
    name: str
    country: str


@dataclass(frozen=True)
class Currency:
    """How an amount is written: '£2.4bn' with a sign before, '2.4bn crowns' with a unit after."""

    sign: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Land:
    """What never changes about a country; `weight` says how often the paper's readers hear of it."""

    name: str
    demonym: str
    cultures: tuple[str, ...]
    premier: str
    house: str
    currency: Currency
    capital: str
    cities: tuple[str, ...]
    regions: tuple[str, ...]
    people_m: float
    weight: int


def _land(
    name: str, demonym: str, cultures: str, premier: str, house: str, currency: Currency,
    cities: str, regions: str, people_m: float, weight: int,
) -> Land:  # fmt: skip
    towns = tuple(town.strip() for town in cities.split(","))
    return Land(
        name, demonym, tuple(culture.strip() for culture in cultures.split(",")), premier, house, currency,
        towns[0], towns, tuple(region.strip() for region in regions.split(",")), people_m, weight,
    )  # fmt: skip


POUND, EURO, DOLLAR = Currency(sign="£"), Currency(sign="€"), Currency(sign="$")

LANDS: tuple[Land, ...] = (
    _land("Caldria", "Caldrian", "english, celtic", "prime minister", "parliament", POUND,
          "Wexmouth, Thornbridge, Ashcombe Regis, Port Merrin, Kingsmarsh, Halewick, Dunmere, Coldbrook, Lindhaven, "
          "Easterby, Harrowby, Penwick, Redcastle, Millbourne, Tarrant Bay, Glenharrow, Stoneferry, Brackwater, "
          "Saltersea, Aldermoor",
          "the Northmarch, Eastfold, the Carrow Valley, Southshire, the Merrin Coast, the Glens", 38.0, 9),
    _land("Vestria", "Vestrian", "german", "chancellor", "lower house", EURO,
          "Hohenbruck, Rothenau, Altwasser, Grafenwerd, Steinfurth, Oberlohe, Kaltenried, Marienhagen, Neuenfels, "
          "Wesselburg, Brunsthal, Lindenried",
          "Lower Vestria, Hochland, the Elver Valley, the Saarwald, Nordmark", 52.0, 6),
    _land("Skarland", "Skarlandic", "nordic", "prime minister", "parliament", Currency(unit="crowns"),
          "Holmvik, Bergsund, Tromsnes, Havnsund, Lillefjord, Nordhamn, Kvalstad, Granvik, Steinvik",
          "the Outer Isles, Finnvidda, Westfold Bay, Sondmark", 7.4, 4),
    _land("Montavia", "Montavian", "italian", "prime minister", "chamber of deputies", EURO,
          "Santelvio, Portovero, Castelmora, Montebruna, Acquanera, Valdoro, Sarzanella, Rocca Pia, Torrenova, "
          "Campoleone, Marittima, Vallescura",
          "Alta Montavia, the Bruna Plain, the Tramontane, Isola Grande, Costa Chiara", 41.0, 5),
    _land("Aurenne", "Aurennese", "french", "president", "national assembly", EURO,
          "Belcourt, Saint-Aubrac, Montreval, Port-Lazare, Beaulac, Fontremy, Valcreuse, Rochemare, Castelnac, Orsigny",
          "Haute-Aurenne, the Lazare Delta, Bas-Creuse, the Armance", 36.0, 5),
    _land("Castara", "Castaran", "spanish", "president", "congress", Currency(unit="pesos"),
          "Puerto Alameda, San Jacobo, Villanera, Santa Mireya, Las Encinas, Torrealba, Montegrande, Cerro Pinto, "
          "Bahia Serena, Los Alisos, Quebrada Honda, San Telmo del Rio",
          "the Altiplano, Costa Brumosa, the Encinas Basin, Tierra Llana", 29.0, 4),
    _land("Belmara", "Belmaran", "portuguese", "president", "senate", DOLLAR,
          "Porto Velado, Sao Gil, Vila Serena, Campo Alto, Ribeira Nova, Santa Leonor, Barra Funda, Monte Claro do Sul",
          "the Sertao, Baixada, the Upper Velado, Serra Negra", 63.0, 3),
    _land("Ontara", "Ontaran", "english, french, chinese", "prime minister", "assembly", DOLLAR,
          "Fort Lisgar, Bellhaven, Cedar Narrows, Prairie Cross, Lake Onida, Stillwater, Ridgeway, Port Talbot, "
          "Copper Bay, Whitehorn",
          "the Lake Country, the Western Plains, Northern Ontara, the Bell Peninsula", 24.0, 5),
    _land("Lorvenia", "Lorvenian", "slavic", "prime minister", "national assembly", EURO,
          "Velgrad, Kostova, Mirovec, Trebnik, Dobrava, Stari Most, Zlatna Gora, Lukovo",
          "the Drava Hills, Podgorje, the Eastern Plain, Primor", 9.8, 3),
    _land("Wislania", "Wislanian", "slavic", "president", "lower house", EURO,
          "Krasnopol, Olszanka, Gradzin, Lipnica, Nowy Brod, Zawicz, Bialobor, Wierzbin",
          "the Lakeland, Upper Wisla, Podlesie, the Amber Coast", 31.0, 3),
    _land("Tamira", "Tamiri", "arabic", "prime minister", "parliament", Currency(unit="dinars"),
          "Qasr Nour, Wadi Salem, Bir Hamra, Ain Zeitun, Port Rashad, Jebel Amin, Tel Marwa",
          "the Hamra Desert, the Northern Coast, the Zeitun Plateau", 18.0, 3),
    _land("Torgan", "Torgani", "turkic", "president", "parliament", DOLLAR,
          "Akbulak, Temirkul, Sarytau, Kyzyl Kala, Ulanbel, Karamyr",
          "the Northern Steppe, the Caspian Shelf, the Sary Mountains", 16.0, 2),
    _land("Sundara", "Sundaran", "south asian", "prime minister", "parliament", Currency(unit="rupees"),
          "Kalinagar, Devapore, Ratnapore, Suryapatnam, Lakshmigarh, Port Vimala, Chandrakot, Indrapet, Mahipur",
          "the Vimala Delta, the Western Hills, the Hill Districts, Upper Kalin", 148.0, 4),
    _land("Naruma", "Naruman", "japanese", "prime minister", "diet", DOLLAR,
          "Kitasawa, Minatomori, Hoshikawa, Shirotani, Aomizu, Kazehama, Tsurumine",
          "the Northern Island, Kazehama Bay, the Central Alps", 44.0, 4),
    _land("Haesan", "Haesani", "korean", "president", "assembly", DOLLAR,
          "Seonhae, Namgyeong, Bukcheon, Daehan Port, Yeongjin, Garam",
          "the South Coast, Gangnae Province, the Eastern Range", 27.0, 3),
    _land("Pelinang", "Pelinangese", "malay, chinese", "prime minister", "parliament", DOLLAR,
          "Tanjung Raya, Kota Permai, Batu Laut, Sungai Emas, Pulau Tengah, Bandar Suria",
          "the Outer Archipelago, East Pelinang, the Emas River Basin", 33.0, 3),
    _land("Oyala", "Oyalan", "west african", "president", "national assembly", DOLLAR,
          "Port Abeni, Ikorosi, Kumbase, Tafodu, Lake Sefu, Adonkro, Makurdo",
          "the Sefu Lakes, the Gold Hills, the Northern Savannah", 57.0, 3),
    _land("Zamburi", "Zamburian", "east african", "president", "parliament", Currency(unit="shillings"),
          "Mlangeni, Kisaro, Umbeti, Port Njoro, Mbalazi, Naivuru, Tandawe",
          "the Rift Highlands, the Njoro Coast, the Mbalazi Plains", 34.0, 3),
)  # fmt: skip
