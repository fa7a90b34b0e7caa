# ruff: noqa: E501 (prose reads better unbroken)
"""The films of the invented world's season, with the people who made them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.world import Country, World


@dataclass(frozen=True)
class Script:
    """`who` does `plot`; `scene` is what one remembers, `praise` and `fault` are clauses."""

    title: str
    kind: str
    who: str
    plot: str
    scene: str
    praise: str
    fault: str


@dataclass(frozen=True)
class Film:
    script: Script
    country: Country = field(repr=False)
    director: Person
    lead: Person
    second: Person
    studio: str
    minutes: int
    nth: int

    @property
    def name(self) -> str:
        return self.script.title

    @property
    def part(self) -> str:
        """What the lead does: 'plays a locksmith'."""
        who = self.script.who
        if who.startswith(("two ", "five ", "the staff")) or " and " in who:
            return "leads the cast"
        return f"plays {who}"


STUDIOS = ("Copperlight Pictures", "Nine Elms Film", "Atelier Moreau", "Harbour Gate Studios", "Tidewater Films", "Blue Hour", "Kestrel & Sons", "Longshot Pictures", "Studio Marabou", "Second Reel")  # fmt: skip

# fmt: off
SCRIPTS = tuple(Script(*row) for row in (
    ("The Weir", "canal drama", "a retired lock-keeper", "is asked to open the gates once more for a boat that nobody has registered", "a ten-minute shot of a barge rising two metres", "the water does half of the acting and all of the waiting", "the village has one secret too many"),
    ("Night Freight", "thriller", "a train driver", "notices that the last wagon is not on her list", "a chase in which nobody can leave the train", "it keeps the map of the train clear in your head and then turns out the lights", "the villain explains himself at every station"),
    ("Four Weddings Too Late", "comedy", "a caterer", "must serve the wedding of the man she left, his brother's, and two more", "a cake rescued by bicycle", "the jokes come from character and arrive with gravy", "the fourth wedding is a rerun of the second"),
    ("Moth", "horror film", "a night nurse", "hears something in the linen room that knows her name", "a corridor lit by one failing lamp", "it understands that a sound is worse than a face", "the last reel shows what it should have hidden"),
    ("The Second Moon", "science-fiction film", "a surveyor", "is sent to measure a moon that was not there last year", "a sunrise that happens twice", "its effects look touched by hand", "the dialogue has been through customs"),
    ("Grandmother Goes to Sea", "family film", "a woman of eighty", "steals the ferry that is about to be scrapped", "a storm filmed, quite openly, in a bathtub", "children will laugh and their parents will look at the floor", "a singing gull outstays its welcome"),
    ("Dry County", "western", "a well-digger", "is paid by two ranchers for the same water", "a shoot-out in which both men miss", "every hat tells you who is lying", "the score gallops when the horses don't"),
    ("Before the Bells", "wartime drama", "a bell-founder", "has one night to hide the bells of his town from an army", "a bell lowered into a river without a splash", "its courage is of the quiet kind", "speeches stand where looks would do"),
    ("Understudy", "backstage drama", "an actor of fifty", "has learned a part for six years and never played it", "a monologue delivered to a cloakroom", "it is merciless about hope and kind to people who have it", "the theatre jokes are for theatre people"),
    ("The Price of Salt Water", "courtroom drama", "a young lawyer", "defends a fisherman who rammed a warship", "a cross-examination about knots", "the law is made as tense as weather", "the verdict arrives with violins"),
    ("Left Back", "sports film", "a goalkeeper's sister", "takes over a women's team that has lost forty matches", "a penalty taken in fog", "it knows that losing is the interesting part", "the final match follows the usual rules"),
    ("Seven Rooms", "haunted-house film", "an estate agent", "sells the same house to seven families", "a dinner party with one guest too few", "the scares are built like good furniture", "it stops being a satire just when one wants more"),
    ("Signal Failure", "romantic comedy", "two strangers", "miss every train home for one night and fix each other's lives by accident", "a dance in a lost-property office", "the two of them listen, which is rarer than wit", "coincidence does too much overtime"),
    ("The Cartographer's Daughter", "costume drama", "a map-maker's daughter", "discovers an island her father left out on purpose", "a map drawn on a sleeping man's back", "ink has never looked so dangerous", "the island takes an hour to reach"),
    ("Small Hours", "crime film", "a locksmith", "opens the wrong safe for the right people", "a robbery conducted in sign language", "its plot clicks shut like a good door", "two policemen have wandered in from another film"),
    ("A Goat in the Chancellery", "political satire", "a press officer", "has to explain how an animal came to chair a committee", "a vote counted three times by men who can't count", "it is funny about cowardice and exact about carpets", "the goat deserves more lines"),
    ("Under the Ice Road", "survival film", "a lorry driver", "falls through a frozen lake with the radio still working", "forty seconds of black screen and breathing", "it is as lean as its heroine's rations", "a flashback warms what should stay cold"),
    ("The Beekeeper of Platform Two", "family film", "a stationmaster's son", "keeps bees where the trains no longer stop", "a swarm that follows an express", "it lets children be clever without being cute", "a property developer twirls an invisible moustache"),
    ("Room for One", "prison drama", "a warder", "shares night shifts with the man who robbed his mother", "a chess game played through a wall by knocking", "two faces and a door are enough for it", "its third act wants to be forgiven"),
    ("Echo Chamber", "techno-thriller", "a voice actor", "recognises herself in calls she never made", "an argument between a woman and her own recordings", "sound is used the way others use blood", "the explanation needs a diagram and gets one"),
    ("The Long Harvest", "farm drama", "a father and three daughters", "have one week to bring in a crop and settle an inheritance", "a thunderstorm watched from under a cart", "the land is photographed like a relative", "symbols are sown rather thickly"),
    ("Tango for Accountants", "musical comedy", "a tax inspector", "audits a dance school and stays", "a number performed with adding machines", "it sings when it should and counts when it must", "two songs could be written off"),
    ("Ash Wednesday Market", "detective film", "a one-eyed inspector", "looks for a man whom the whole market has seen and nobody describes", "a pursuit through hanging carpets", "its city is a suspect with alibis", "the inspector's dreams explain what the plot can't"),
    ("The Last Projectionist", "nostalgic drama", "a projectionist", "runs the final show in a town that has stopped coming", "a reel that burns while an audience of nine applauds", "its love of cinema is practical, with oil on its hands", "it weeps before we do"),
    ("Perihelion", "space drama", "the cook of a solar probe", "is the only one who hears the captain's order", "an omelette made in free fall", "it finds a kitchen comedy inside a disaster", "the science is waved through at the end"),
    ("Blue Mountain Road", "road movie", "a postwoman and her father", "deliver one letter across nine hundred kilometres", "a breakdown shared with a wedding party", "its stops are better than most films' destinations", "the letter's contents were guessed at the first petrol pump"),
    ("The Tuesday Club", "heist comedy", "five pensioners", "rob the bank that lost their savings, at the slow hours", "a getaway on a mobility bus", "its thieves are old without being sweet", "the bank manager is a cartoon in a film of portraits"),
    ("Wolf Winter", "folk horror", "a vet", "is called to a valley whose dogs will not bark", "a procession seen only by its lanterns", "the dread is in the manners of the place", "its mythology comes with footnotes"),
    ("Ordinary Seaman", "coming-of-age film", "a boy of sixteen", "joins a tanker under his dead brother's name", "a letter read aloud in five languages", "it watches work as others watch love", "the storm is borrowed from a larger film"),
    ("Mrs Okafor Regrets", "chamber comedy", "a hostess", "receives every guest she crossed off the list", "a soup that is passed round for a quarter of an hour", "each entrance changes the temperature", "one leaves humming the wallpaper"),
    ("The Glass Referendum", "journalist drama", "a reporter on a small paper", "finds the same signature on eleven thousand ballots", "an editor reading a story aloud to an empty office", "it makes checking a fact look like climbing", "the newspaper is nobler than newspapers are"),
    ("Paper Tigers", "martial-arts film", "a calligraphy teacher", "must fight for the school he swore to close", "a duel on wet tiles with brushes", "the fights have verbs and full stops", "between the fights it clears its throat"),
    ("Kilometre Zero", "disaster film", "a tunnel engineer", "has to choose which of two ends to open", "a choir of car horns in the dark", "it counts people instead of explosions", "the minister upstairs belongs in a cheaper film"),
    ("Hotel Meridian", "ensemble drama", "a chambermaid", "reads what guests leave behind and answers one letter", "a fire drill that brings everyone to the lawn in bathrobes", "nine stories share one staircase without bumping", "the tenth story can be skipped"),
    ("The Reluctant Saint", "religious comedy", "a plumber", "repairs a statue that then begins to weep on schedule", "a bishop with a spanner", "it teases faith and leaves it standing", "the miracle is explained twice"),
    ("Brother Sparrow", "children's fable", "a bell-ringer's boy with a fear of heights", "runs for mayor of a cathedral roof", "a parliament of pigeons in uproar", "every feather has been thought about", "its moral is carved rather deep"),
    ("Static", "ghost story", "a radio repairer", "picks up a broadcast from the week her husband vanished", "a dial turned one millimetre at a time", "the past is heard through a wall and never seen", "it tunes out ten minutes too late"),
    ("Two Hands of Clay", "biographical film", "a potter", "loses her sight and wins a commission in the same month", "a bowl thrown in real time", "it has the patience of its subject", "doctors enter with captions instead of characters"),
    ("The Winter Transfer", "spy film", "a chess arbiter", "carries a code in the notation of a drawn game", "a handover during a moment's applause", "its spies are tired and therefore frightening", "nobody could follow the middle without a clerk"),
    ("Everything Must Go", "shop-floor comedy", "the staff of a department store", "hide in the building on its last night", "a banquet laid out in bedding", "the whole cast seems to have worked together for years", "sentiment is marked down too early"),
    ("Red Earth Choir", "musical drama", "a mine's choirmaster", "has to pick which half of his singers will lose their jobs", "a hymn sung in a lift", "when they sing, the film needs nothing else", "when they don't, it needs a great deal"),
    ("The Understory", "eco-thriller", "a forest ranger", "finds a grove that the satellite pictures leave out", "an hour of pursuit without one word", "the trees are cast as carefully as the people", "its villains have come straight from a board meeting"),
    ("Marmalade", "children's film", "two sisters", "try to sell a house by filling it with the smell of oranges", "an auction run by a child of seven", "it has the logic and the cruelty of the age it is for", "the grown-ups are all the same grown-up"),
    ("Checkpoint", "border drama", "a customs officer", "lets one suitcase pass and spends a year looking for it", "a kiss through a car window in the rain", "moral questions are asked in the tone of small talk", "the year feels like one"),
    ("Ten Days in Port", "love story", "a ship's engineer and a translator", "have until the strike ends", "a quarrel conducted entirely in proverbs", "it trusts hands and silences", "one sunset would have been enough"),
    ("The Memory Tax", "dystopian film", "a clerk", "is ordered to collect recollections from people who can't pay", "an old woman paying with the taste of plums", "its future is made of present-day waiting rooms", "the rebellion has better costumes than ideas"),
))
# fmt: on


_OF_A_WOMAN = re.compile(r"\b(?:her|she|woman|sister|daughter|heroine|maid|chambermaid|hostess|wife|nun|widow)\b", re.I)
_OF_A_MAN = re.compile(r"\b(?:his|he|himself|man|boy|son|king)\b", re.I)


def played_by_a_woman(*texts: str) -> bool | None:
    """Whether a part is a woman's; None where the texts leave it open."""
    text = " ".join(texts)
    return True if _OF_A_WOMAN.search(text) else False if _OF_A_MAN.search(text) else None


def slate(world: World) -> tuple[Film, ...]:
    """Every script filmed once, in a country more often than not a near one."""
    rng = Random(f"{world.seed}:film")
    films = []
    for script in SCRIPTS:
        country = world.country(rng)
        director = world.person(country, "the director", rng=rng)
        lead = second = director
        while lead.family == director.family:
            lead = world.person(
                country, "the lead", she=played_by_a_woman(script.who, script.plot, script.praise), rng=rng
            )
        while second.family in (director.family, lead.family):
            second = world.person(country, rng=rng)
        films.append(
            Film(script, country, director, lead, second, rng.choice(STUDIOS), rng.randint(84, 148), rng.randint(2, 8))
        )
    return tuple(films)
