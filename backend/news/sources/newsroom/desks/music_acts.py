# ruff: noqa: E501 (prose reads better unbroken)
"""The bands, programmes and quarrels of the invented world's music."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.world import Country, World


@dataclass(frozen=True)
class Genre:
    name: str
    noun: str
    sounds: tuple[str, ...]


GENRES = (
    Genre(
        "folk",
        "folk trio",
        ("fiddles and a creaking chair", "three voices round one microphone", "a harmonium that wheezes in tune"),
    ),
    Genre(
        "indie rock",
        "guitar band",
        ("two guitars in friendly argument", "a bass line that limps", "drums recorded in a corridor"),
    ),
    Genre(
        "electronic",
        "electronic duo",
        ("warm synthesisers and a cold beat", "sampled railway announcements", "bass that you feel in the teeth"),
    ),
    Genre("hip-hop", "rap group", ("dusty soul loops", "verses traded like cards", "a choir behind the beat")),
    Genre(
        "jazz",
        "jazz quartet",
        ("a saxophone that whispers", "brushes on a wet cymbal", "a piano left slightly out of tune"),
    ),
    Genre(
        "pop",
        "pop group",
        ("choruses stacked like plates", "handclaps and a toy piano", "a falsetto and a drum machine"),
    ),
    Genre(
        "metal",
        "metal band",
        ("guitars tuned down to the cellar", "a scream held for eleven seconds", "double bass drums at a gallop"),
    ),
    Genre(
        "soul",
        "soul band",
        ("horns in tight formation", "an organ with a slow rotor", "a backing trio that answers back"),
    ),
    Genre(
        "country",
        "country band",
        ("pedal steel and slow waltzes", "a banjo in a bad mood", "harmonies from across a kitchen"),
    ),
    Genre(
        "punk", "punk band", ("three chords and a siren", "shouted choruses", "songs that end before they are finished")
    ),
)

_FIRST = (
    "Paper",
    "Velvet",
    "Slow",
    "Copper",
    "Midnight",
    "Glass",
    "Winter",
    "Northern",
    "Silent",
    "Broken",
    "Hollow",
    "Electric",
    "Salt",
    "Second",
    "Little",
    "Distant",
    "Wild",
    "Quiet",
    "Golden",
    "Rusty",
)
_SECOND = (
    "Lanterns",
    "Harbour",
    "Foxes",
    "Machines",
    "Sisters",
    "Orchard",
    "Signals",
    "Pilots",
    "Kitchens",
    "Rivers",
    "Neighbours",
    "Cathedrals",
    "Mondays",
    "Ferries",
    "Wolves",
    "Telephones",
    "Gardens",
    "Engines",
    "Sparrows",
    "Borders",
)
_TITLES_A = (
    "The Long",
    "A Small",
    "Every",
    "No",
    "Half a",
    "My Other",
    "This Side of the",
    "Under the",
    "Letters from the",
    "Waiting for the",
    "The Last",
    "Another",
    "Before the",
    "Our",
)
_TITLES_B = (
    "Winter",
    "Kitchen",
    "Ferry",
    "Staircase",
    "Answer",
    "Garden",
    "Season",
    "Parade",
    "Harvest",
    "Telephone",
    "Weather",
    "Promise",
    "Goodbye",
    "Platform",
    "Lighthouse",
    "Suitcase",
    "Motorway",
    "Rehearsal",
)


def title_of(rng: Random) -> str:
    """The title of a song or a record."""
    return f"{rng.choice(_TITLES_A)} {rng.choice(_TITLES_B)}"


def titles(rng: Random, count: int) -> list[str]:
    """`count` titles that differ in both halves."""
    pairs = zip(rng.sample(_TITLES_A, count), rng.sample(_TITLES_B, count), strict=True)
    return [f"{first} {second}" for first, second in pairs]


@dataclass(frozen=True)
class Act:
    """A band; plural in the paper."""

    name: str
    genre: Genre
    country: Country = field(repr=False)
    city: City
    singer: Person
    years: int


def acts(world: World) -> tuple[Act, ...]:
    rng = Random(f"{world.seed}:music")
    names = rng.sample([f"{first} {second}" for first in _FIRST for second in _SECOND], 110)
    made = []
    for index, name in enumerate(names):
        country = world.country(rng)
        made.append(Act(f"The {name}" if rng.random() < 0.3 else name, GENRES[index % len(GENRES)], country, rng.choice(country.cities),
                        world.person(country, "the singer", rng=rng), rng.randint(3, 24)))  # fmt: skip
    return tuple(made)


@dataclass(frozen=True)
class Programme:
    short: str
    work: str
    who: str
    verdict: str
    detail: str


CLASSICAL = (
    Programme(
        "a Brahms violin concerto",
        "Brahms's Violin Concerto",
        "violinist",
        "the slow movement stood still in the best sense",
        "The cadenza was the soloist's own, and shorter than most.",
    ),
    Programme(
        "Schubert songs",
        "a set of Schubert songs in orchestral dress",
        "soprano",
        "words came first and the voice never hurried",
        "Two of the songs were sung almost without vibrato.",
    ),
    Programme(
        "a forgotten piano concerto",
        "a piano concerto rescued from a library after ninety years",
        "pianist",
        "one understood both why it was lost and why it was worth finding",
        "The score had turned up in a box marked “laundry”.",
    ),
    Programme(
        "Haydn and a new work for cello",
        "a Haydn symphony and a new cello concerto",
        "cellist",
        "the new piece outshone the old",
        "The composer, twenty-eight, asks the soloist to hum.",
    ),
    Programme(
        "a Verdi requiem",
        "Verdi's Requiem",
        "mezzo",
        "the drums shook dust from the lamps",
        "A choir of amateurs had rehearsed since the spring.",
    ),
    Programme(
        "Bach played on accordion",
        "three Bach concertos on the accordion",
        "accordionist",
        "after ten minutes nobody missed the harpsichord",
        "The instrument breathes where a keyboard can't, and the fugues gained from it.",
    ),
    Programme(
        "a Sibelius symphony",
        "Sibelius's Fifth Symphony and a set of songs",
        "baritone",
        "the last six chords were worth the ticket",
        "The silences between those chords were held so long that a child asked whether it was over.",
    ),
    Programme(
        "a string quartet marathon",
        "four quartets with added string orchestra",
        "first violin",
        "stamina turned into style",
        "The players stood throughout.",
    ),
    Programme(
        "an opera in concert",
        "a one-act opera in concert dress",
        "tenor",
        "acting with the eyebrows did the work of a set",
        "The chorus wore outdoor coats, for reasons that became clear in the snow scene.",
    ),
    Programme(
        "a Mozart clarinet concerto",
        "Mozart's Clarinet Concerto",
        "clarinettist",
        "it was played as if for the first time",
        "A basset clarinet was used, as in Mozart's day, and gave the low notes back.",
    ),
    Programme(
        "film music without the film",
        "a suite of film scores",
        "trumpeter",
        "the music did not need the pictures",
        "Half of the audience was younger than twenty.",
    ),
    Programme(
        "Mahler with a young alto",
        "Mahler's Third Symphony",
        "alto",
        "a hundred minutes went by like forty",
        "The boys' choir entered from the balcony.",
    ),
)


@dataclass(frozen=True)
class Quarrel:
    head: str
    news: str
    why: str
    quote: str
    reply: str
    detail: str


QUARRELS = (
    Quarrel(
        "sue record label over streaming money",
        "are suing their record company over streaming royalties",
        "For years the statements had not added up",
        "We had forty million plays and a cheque for a sandwich",
        "They signed it; we all signed it",
        "The contract dates from the age of the compact disc and does not mention streaming.",
    ),
    Quarrel(
        "split up in mid-tour",
        "have split up with eleven concerts still to play",
        "A quarrel in a motorway café had gone on for three days",
        "We love each other and can't stand the van",
        "It was never about the music, it was about the window seat",
        "Tickets will be refunded, the promoter says.",
    ),
    Quarrel(
        "pull songs from streaming service",
        "have withdrawn all their songs from the largest streaming service",
        "An automated playlist had placed copies of their sound beside them",
        "A machine was singing in my accent",
        "Nobody under thirty will know that they exist",
        "The records can be had on vinyl, on disc and from the band's own website.",
    ),
    Quarrel(
        "accused of copying children's rhyme",
        "have been accused of taking a melody from a children's rhyme",
        "A primary school teacher had noticed",
        "There are twelve notes, and children got there first",
        "It's the same tune with a drum under it",
        "A musicologist found nine identical bars.",
    ),
    Quarrel(
        "reunite after drummer's letter",
        "will play together again after a letter from their former drummer",
        "For a decade they had spoken through lawyers",
        "He wrote four lines and I read them forty times",
        "I only wanted my cymbals back",
        "Three concerts are planned, all of them in small halls.",
    ),
    Quarrel(
        "cap ticket resale at face value",
        "will cancel any ticket resold above its price",
        "Tickets for the tour had appeared at nine times their price",
        "I would rather play to gaps than to a racket",
        "The fans end up locked out in the rain, not the touts",
        "Names will be checked at the door.",
    ),
    Quarrel(
        "win back master tapes",
        "have won back the tapes of their first three albums",
        "The tapes had been sold twice without their knowledge",
        "It's like getting your childhood bedroom back, smaller and with better light",
        "They were in a salt mine; they had never been safer",
        "New editions are to follow, with the mistakes left in.",
    ),
    Quarrel(
        "drop single after outcry",
        "have withdrawn a single after complaints about its words",
        "A verse was taken to mock people who stammer",
        "We wrote it badly, and that is on us",
        "It was a joke and now it's a hearing",
        "A charity had written to the band before the release and got no answer.",
    ),
    Quarrel(
        "sack manager of two decades",
        "have parted with their manager after two decades",
        "An audit had found gaps",
        "We asked where a van went, and there had never been a van",
        "I found them in a youth club and I made them",
        "An accountant has been put in charge for the time being.",
    ),
    Quarrel(
        "give away album on memory cards in library books",
        "hid their new album in library books",
        "The band had promised an album that could not be streamed",
        "If you find it, it's yours, but you have to bring the book back",
        "It is a stunt, and a very good one",
        "Two hundred copies were slipped into books in nine cities.",
    ),
)
