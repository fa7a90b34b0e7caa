# ruff: noqa: E501 (prose reads better unbroken)
"""What the science desk sees in the sky: astronomy."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import ROUND
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class Sight:
    """Something seen in the sky. `thing` is a noun phrase with its article; the other texts may use a Watch's facts."""

    thing: str
    head: str
    lead: str
    quote: str
    detail: str
    odd: str
    use: str


_SIGHTS: tuple[Sight, ...] = (
    Sight("a planet", "Planet with {days}-day year found around star {code}", "have found a planet that circles the star {code} once every {days} days", "[It's the size of ours and as hot as an oven|You would have a birthday every few weeks there|Its sun fills a quarter of the sky]",
          "It is {size} times as heavy as the earth and {far} light years away.", "One side always faces the star; it is day there for ever.", "The team wants to look for air"),
    Sight("a comet", "Comet {name} may be seen with the naked eye", "have discovered a comet that may be visible without a telescope within {weeks} weeks", "[Comets are like cats: they have tails and do what they want|I'd been looking for something else and there was a smudge|It has never been near the sun, so anything can happen]",
          "The comet, called {name} after its discoverer, was last here {big} years ago, if ever.", "Its tail is green, because of a molecule that falls apart in sunlight.", "The best view will be before dawn"),
    Sight("an exploding star", "Star explodes in nearby galaxy, and an amateur saw it first", "have confirmed the explosion of a star in a galaxy {far} million light years away", "[It was a star when I had my tea and a catastrophe when I had washed the cup|For a week it outshines all the others together|It died before there were people, and the news has just arrived]",
          "The star had {size} times the mass of the sun.", "It had brightened twice before, as if trying.", "Observatories on {small} continents are following it"),
    Sight("an asteroid", "Asteroid as large as a {block} to pass earth", "expect an asteroid the size of a {block} to pass closer than the moon within days", "[It will miss, and I've checked that a few more times than I needed to|In astronomy that is a near miss, in traffic you would not notice|It's a stone with a timetable]",
          "It will come within {big} kilometres, at {size} kilometres a second.", "Seen from its sunward side it was dark, which is why it was noticed so late.", "Radar dishes will film it as it tumbles"),
    Sight("radio bursts", "Radio bursts repeat every {days} days, astronomers find", "have found a source of radio bursts that comes back every {days} days", "[It's not a message; a message would be less regular|Somebody out there has a lighthouse, and by somebody I mean a dead star|We moved the microwave oven to the other building, to be sure]",
          "Each burst lasts for {small} thousandths of a second.", "It comes from {far} million light years away and lies at the edge of its galaxy.", "A second dish has been pointed there"),
    Sight("a ring system", "Dwarf planet beyond the outermost planet has a ring", "have found a ring around a dwarf planet at the edge of the solar system", "[The ring is where no ring can be, so there is work to do|A star blinked before it should have, and after|It's a hat on a very small head]",
          "The body is {size}0 kilometres across and takes {far} years for one orbit.", "By the textbook, the ring should long since have become a moon.", "Another star will pass behind it in {small} months"),
    Sight("a meteorite", "Meteorite breaks greenhouse near {city.name}", "have recovered a meteorite from a greenhouse near {city.name}", "[It missed the tomatoes and hit the watering can|It had been on its way for four billion years and came at breakfast|Somebody had already tried to clean it with soap, alas]",
          "The stone weighs {small}00 grams and is still black from its fall.", "Cameras had followed the fireball, so its path is known: it comes from beyond Mars.", "A slice will be examined in {other.name}"),
    Sight("a galaxy", "Galaxy without dark matter puzzles astronomers in {city.name}", "have found a galaxy that seems to contain no dark matter", "[It's like finding a house without walls, and the roof is up|One can see right through it and count what's behind|Half of my colleagues think I've mislaid it]",
          "It is {far} million light years away and has {big} million stars.", "Its star clusters move as slowly as if nothing else were there.", "The team has asked for {weeks} nights at a larger telescope"),
    Sight("a black hole", "Black hole wakes up before eyes of {city.name} astronomers", "have watched a black hole tear up a star", "[It had been asleep as long as anyone has looked|We call it spaghetti, and that's the technical term|The star went past once too often]",
          "The black hole is as heavy as {far} million suns.", "Half of the star was thrown out again, at a tenth of the speed of light.", "X-ray satellites will watch it fade for {small} months"),
    Sight("a twin sun", "Twin of our sun found {far} light years away", "have found a star that equals the sun in age, mass and colour", "[If you swapped them overnight, only the astronomers would notice|It even has spots, the same number this year|Of course we looked for planets at once, and no, not yet]",
          "The star, {code}, was born from the same cloud as the sun.", "It turns once in {days} days, a little faster than ours.", "A search for planets has begun"),
)  # fmt: skip

_PREFIXES = ("HK", "TVC", "Norrland", "KOS", "Marlow", "ELV", "Halewick", "SGP", "Ardent", "QN")
_BLOCKS = ("bus", "cathedral", "football stadium", "block of flats", "ferry", "grain silo")


@dataclass(frozen=True)
class Watch:
    s: Sight
    c: Country
    city: City
    other: Country
    astronomer: Person
    colleague: Person
    amateur: Person
    code: str
    name: str
    block: str
    telescope: str
    days: int
    weeks: int
    small: int
    size: int
    far: int
    big: int
    mirror: int


def _watch(scene: Scene) -> Watch:
    c = scene.country()
    amateur = scene.person(c)
    return Watch(
        scene.fresh("sight", _SIGHTS, uses=3), c, scene.fresh("sky city", c.cities), scene.pick([one for one in scene.world.countries if one is not c]), scene.person(c, scene.pick(("an astronomer", "who led the observations", "an astrophysicist", "the director of the observatory"))),
        scene.person(None, scene.pick(("an astronomer elsewhere", "a cosmologist", "who runs a rival survey", "a planetary scientist"))), amateur, f"{scene.pick(_PREFIXES)} {scene.between(110, 9_400)}", amateur.family, scene.pick(_BLOCKS),
        scene.pick(("a mountain top", "the roof of a former barracks", "the edge of the desert", "an island without street lamps", "a ridge above the clouds", "the roof of the university")), scene.between(11, 62), scene.between(2, 7), scene.between(3, 9), scene.between(11, 41), scene.between(12, 340), scene.near(1_200, 88_000), scene.between(2, 8),
    )  # fmt: skip


ASTRONOMY = Beat(
    "astronomy",
    _watch,
    (
        Stage(
            titles=("{s.head}", "Astronomers in {city.name} discover {s.thing}", "Telescope in {c.name} finds {s.thing}", "{city.name} observatory reports {s.thing} after {weeks} weeks of cloud", "Astronomy: {s.thing}, found from {telescope}"),
            abstracts=("{s.detail} {s.use}.", "Astronomers in {city.name} {s.lead}.", "{s.odd}"),
            leads=("Astronomers in {city.name} {s.lead}, they said {on}.", "With a telescope on {telescope} near {city.name}, astronomers {s.lead}, they reported {on}.", "Astronomers in {c.name} {s.lead}. The discovery was announced in {city.name} {on}."),
            then=(say("“{s.quote},” said {astronomer.last}.", "{astronomer.last} [was hoarse from talking|had not slept]. “{s.quote},” {astronomer.he} said."),),
            loose=(say("{s.detail}"), say("{s.odd}"), say("{s.use}, {astronomer.last} said.", "{s.use}."),
                   say("“[It fits nothing, and that's a recommendation|I'd like one more night of data before I ring my mother|Somebody had to be first; I had hoped it would be me],” said {colleague.last}.", "{colleague.last} [sent congratulations|checked the figures]. “[They're careful people with a small telescope, which is the best sort|We had it on our pictures as well, and nobody looked],” {colleague.he} said."),
                   say("{amateur.name}, an amateur who [first noticed it|sent the first picture], [teaches at a primary school|drives a milk lorry]. “[My wife thought it was the doorbell when I shouted|I'm out there {days} nights a year, and this is the one|The cat sat on the laptop and very nearly deleted it],” {amateur.he} said."),
                   say("The telescope on {telescope} has a mirror of {mirror} metres.", "Clouds had hidden the sky over {city.name} for {weeks} weeks.", "The observatory [is open to visitors on Fridays|has {size} employees and a goat]; it stands on {telescope}."), say("Colleagues in {other.name} [have confirmed it|are to check the result].")),
            weight=0.35, covered=0.4,
        ),
        Stage(
            titles=("New data on {s.thing} seen from {city.name}", "Second telescope confirms find by {city.name} astronomers", "{other.name} observatory confirms {s.thing} found in {city.name}"),
            abstracts=("Observers in {other.name} have confirmed it. {s.detail}", "{s.odd} More telescopes are looking."),
            leads=("Observers in {other.name} have confirmed what astronomers in {city.name} announced {t0:on}, they said {on}.", "More is known about the find that astronomers in {city.name} made public {t0:on}. A team in {other.name} said so {on}."),
            then=(say("“[It's where they said and does what they said|We had a gap in the clouds of nine minutes, and it was enough],” said {colleague.last}."),),
            loose=(say("{s.detail}"), say("“{s.quote},” {astronomer.last} had said at first."), say("{amateur.name}, the amateur who saw it first, has [been invited to give talks|become known in {city.name}]. “[The baker wants to know whether it will hit us|I nearly went to bed that night],” {amateur.he} said."), say("{s.use}."), say("{s.odd}")),
            after=(2, 6), weight=0.25, covered=0.15, chance=0.75,
        ),
    ),
    share=0.8,
    rhythm=ROUND,
)  # fmt: skip
