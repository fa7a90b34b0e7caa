# ruff: noqa: E501 (prose reads better unbroken)
"""How the games desk covers the games themselves: reviews, long-awaited releases, and games on a table."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import DOLLAR, City
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE
from backend.news.sources.newsroom.world import Country, Money, World


@dataclass(frozen=True)
class Studio:
    name: str
    country: Country
    city: City
    head: Person
    staff: int
    known_for: str


_STUDIO_NAMES = (
    "Paper Lighthouse", "Ninth Moon", "Soft Hammer", "Tall Grass Interactive", "Copper Fox", "Late Bus Games", "Old Stairs", "Bright Ditch", "Salt Engine", "Moth & Lamp", "Second Breakfast Studio", "Grumpy Heron", "Kettle Black", "Far Shed", "Velvet Anvil",
    "Quiet Thunder", "Bent Spoon Works", "Low Orbit", "Hollow Tree", "Wet Paint Games", "Iron Pigeon", "North Pier", "Tin Crown", "Slow Rabbit", "Glass Tractor", "Dusty Attic", "Red Kettle Interactive", "Blue Hour",
)  # fmt: skip
_KNOWN = ("a farming game", "a series of puzzle games", "a racing game", "a war epic", "a detective story", "a game about trains", "a dungeon crawler", "a football manager game", "a horror game in a hospital", "a space opera")  # fmt: skip


def studios(world: World) -> tuple[Studio, ...]:
    rng = Random(f"{world.seed}:studios")
    found = []
    for name in _STUDIO_NAMES:
        country = world.country(rng)
        found.append(
            Studio(
                name,
                country,
                rng.choice(country.cities),
                world.person(country, f"who heads {name}", rng=rng),
                rng.choice((9, 14, 22, 38, 60, 110, 240, 480, 900)),
                rng.choice(_KNOWN),
            )
        )
    return tuple(found)


def studio_pool(scene: Scene) -> tuple[Studio, ...]:
    return scene.world.kept("game studios", lambda: studios(scene.world))


@dataclass(frozen=True)
class Kind:
    """A genre of video game: what one does in it, and what may be good or bad about one."""

    name: str
    plots: tuple[str, ...]
    joys: tuple[str, ...]
    faults: tuple[str, ...]


_KINDS: tuple[Kind, ...] = (
    Kind("role-playing game", ("a grave-digger who inherits a war", "two sisters who share one memory", "a kingdom that has run out of sleep", "a cook in an army of demons"), ("companions quarrel about your choices and remember them", "every side quest has a second bottom", "dialogue is short and has claws", "fights feel like chess with weather"), ("the map is larger than its ideas", "the inventory needs a secretary", "the last ten hours repeat the first", "loading times test one's faith")),
    Kind("strategy game", ("a railway company on a melting continent", "beekeepers at war", "a city under a lake", "the last salt caravan"), ("one loses slowly and learns quickly", "the computer opponent cheats less than it bluffs", "every turn asks one good question", "supply lines are a joy, which I never thought to write"), ("the tutorial takes an evening", "late turns crawl", "diplomacy consists of three sentences", "icons are the size of ants")),
    Kind("platform game", ("a lost umbrella", "a snail who carries its house uphill", "a paper boy on the roofs of a city", "a ghost afraid of heights"), ("jumps have weight and grace", "each level invents a trick and throws it away", "the music hops along", "failure costs three seconds and a giggle"), ("two bosses are pure chance", "it is over in four hours", "the camera hides the one spike that matters", "the ice level is the ice level")),
    Kind("puzzle game", ("a clockmaker's flat", "a lighthouse keeper's letters", "a library where books swap endings", "a train that only stops if you are kind"), ("solutions feel stolen rather than given", "it never explains and is always fair", "one idea is turned over until it shines", "the hints are better than other games' jokes"), ("the story is a garnish", "puzzle {some} has a single absurd step", "colours are hard to tell apart", "it stops where it should begin")),
    Kind("racing game", ("mail vans on an island", "rally cars in a country without roads", "hovering bathtubs", "night couriers"), ("the cars slide like gossip", "rain changes everything and always on time", "opponents make mistakes of character", "one hears the gravel"), ("there are nine tracks and one remembers five", "upgrades want to be bought", "the commentator has four sentences", "the garage menu is a maze")),
    Kind("shooter", ("a war between two lighthouses", "a heist in a frozen bank", "a mining colony gone quiet", "ghost hunters with paintbrushes"), ("every weapon has a drawback worth loving", "the sound alone tells you where to run", "matches end before they bore", "silence is its sharpest weapon"), ("the campaign is a long corridor", "servers were full on the first night", "the villain explains too much", "progress is measured in hats")),
    Kind("life simulation", ("a failing ferry line", "a village shop with one shelf", "a retirement home for robots", "an allotment by the railway"), ("a rainy day is a gift", "neighbours have opinions on soup", "nothing hurries and time flies", "decorating a kitchen takes a week and should"), ("fishing is the same fish", "the town runs out of things to say by autumn", "saving is allowed only in bed", "one waits a lot for onions")),
    Kind("horror game", ("a hospital without doors", "a choir that rehearses at night", "a hotel whose guest book fills itself", "a radio station that should be off air"), ("it frightens with what it leaves out", "footsteps upstairs are enough", "one dreads the light more than the dark", "the monster learns"), ("the torch battery is a bad joke", "jump scares spoil its own mood", "the ending runs out of courage", "the map is a rumour")),
)  # fmt: skip

_TITLE_A = ("Hollow", "Last", "Paper", "Ember", "Salt", "Second", "Crooked", "Silent", "Winter", "Copper", "Distant", "Broken", "Lantern", "Iron", "Velvet", "Drowned", "Hungry", "Tiny", "Glass", "Northern")  # fmt: skip
_TITLE_B = ("Harbour", "Kingdoms", "Orchard", "Signal", "Parade", "Tides", "Caravan", "Attic", "Choir", "Frontier", "Machines", "Hours", "Garden", "Empire", "Staircase", "Station", "Reckoning", "Dominion", "Moths", "Ferry")  # fmt: skip


_DESIGNERS = (
    "We cut half of it in the last year, and it was the better half that stayed",
    "My daughter finished it before our testers did",
    "I wanted a game you could play with a cup in one hand",
    "There's a joke in chapter two for exactly one person, and she has found it",
    "It began as a bug that was fun",
    "We had a rule: no meetings about dragons",
    "We built it for our friends, and then we ran out of friends",
    "The first version had no ending, and two of us wanted to keep it that way",
    "I draw on paper until somebody takes the paper away",
    "Every sound in it comes from my kitchen",
    "We asked a retired engineer to tell us what was wrong, and she needed two days",
    "It's about my uncle, though he thinks it is about his brother",
    "The budget went into the weather, and I would do it again",
    "We watched forty strangers play and took notes on their shoulders",
    "If a rule needs two sentences, it goes",
    "I've stopped reading comments and started reading bug reports, which are kinder",
    "The hardest thing was the doors; it is always the doors",
    "We argued for a year about whether one can jump",
    "Nobody told us that it couldn't be done on our engine, and it can't, really",
    "I'd like people to finish it on a Sunday evening and sit there for a bit",
    "We deleted the best level because it was in the wrong game",
    "Half the team had never made a game, which I recommend",
    "It ran on my old laptop to the end, that was my one demand",
    "The villain was meant to be funny, and then the actor came in",
)  # fmt: skip
_TESTERS = (
    "I'm bad at it, and it was nice about that",
    "I swore in two languages and bought it",
    "I only wanted to look at the menu, and it was dark when I looked up",
    "It taught me more about patience than my driving instructor",
    "My flatmate came in for the salt and stayed for three hours",
    "I died in the tutorial, which I am told is rare",
    "I've named everything that can be named",
    "It made me ring my sister",
    "By the second evening I dreamed in its colours",
    "I'd have liked a map and was happy without",
    "I stopped when my tea was cold for the third time",
    "It's the first in years that I finished",
    "I kept apologising to characters I had shot",
    "It gave me a stomach ache, the good sort",
    "I found a way to break it and felt guilty",
    "The hard setting is a dare and I took it",
    "My thumb hurts and my mood is excellent",
    "I wrote down a sentence from it and put it on the fridge",
    "I was lost for an hour and didn't mind",
    "I've never cared so much about a door",
    "I went back twice to say goodbye to a horse",
    "It was over when I had just found out how to hold it",
    "I laughed once, very loudly, on a train",
    "My nephew explained it to me with great tact",
)  # fmt: skip


def game_title(scene: Scene) -> str:
    return scene.fresh("game title", [f"{a} {b}" for a in _TITLE_A for b in _TITLE_B])


@dataclass(frozen=True)
class Review:
    s: Studio
    k: Kind
    title: str
    plot: str
    joy: str
    second: str
    fault: str
    writer: Person
    player: Person
    designer: Person
    composer: Person
    hours: int
    score: int
    price: Money
    some: int
    small: int
    good: str | None
    mixed: str | None
    said: str
    felt: str


def _review(scene: Scene) -> Review:
    k = scene.deal("game kind", _KINDS)
    score = scene.pick((4, 5, 6, 7, 7, 8, 8, 9))
    s = scene.deal("studio reviewed", studio_pool(scene))
    joy, second = scene.sample(k.joys, 2)
    return Review(s, k, game_title(scene), scene.deal(f"plot {k.name}", k.plots), joy, second, scene.pick(k.faults), scene.person(None), scene.person(None), scene.person(s.country, "the lead designer"), scene.person(None), scene.between(4, 62), score, Money(float(scene.pick((15, 20, 25, 30, 40, 50, 60, 70))), DOLLAR if s.country.currency.unit else s.country.currency),
                  scene.between(11, 60), scene.between(3, 9), "" if score >= 7 else None, None if score >= 7 else "", scene.deal("designers say", _DESIGNERS), scene.deal("testers say", _TESTERS))  # fmt: skip


REVIEWS = Beat(
    "video games",
    _review,
    (
        Stage(
            titles=("{title} review: {k.name} about {plot}", "Video game review: {title} by {s.name}", "{good}{title} is the {k.name} of the season", "{mixed}{title} wastes a fine idea for a {k.name}", "{title}: {score} out of ten for {s.name}'s {k.name}", "Review: in {title}, you play with {plot}"),
            abstracts=("{good}At its best, {joy}. The {k.name} takes about {hours} hours. Rating: {score} out of ten.", "{mixed}There is a good game in here, but {fault}. Rating: {score} out of ten.", "The new {k.name} by {s.name} is about {plot}. We played it for {hours} hours."),
            leads=("The new {k.name} from {s.name} is about {plot}, and that is [not even its oddest idea|the least of it]. {title} takes some {hours} hours[, more if one dawdles|].", "After {hours} hours with {title}, the {k.name} that {s.name} has made about {plot}, [one thing is clear|I can report]: {joy}.", "{s.name}, the studio known for {s.known_for}, has made a {k.name}. {title} is about {plot}.", "There is a moment in {title}, {small} hours in, when [everything falls into place|one understands what it is about|one puts down the controller]. Until then, the new work by {s.name} is a {k.name} about {plot}."),
            then=(say("What works: {joy}[, and {second}|]. [It sounds simple|That is rarer than it sounds].", "[Above all|First of all], {joy}. One [keeps playing|stays up] for that alone.", "{joy:cap}; {second}. [There is a lot to like|The studio knows its trade].", "The studio from {s.city.name} [has listened|takes its time]: {second}, and {joy}."),
                  say("{good}Against that, {fault}. [One forgives it|It hardly matters|A patch could mend that].", "{mixed}The trouble is that {fault}. [By the end it is all one sees|It drags the rest down].", "Less happily, {fault}.", "[Not everything succeeds|There are dents]: {fault}.")),
            loose=(say("“{said},” said {designer.last}.", "“{said},” {designer.last} [says|told us].", "{designer.last} [laughed when asked|has explained it often]: “{said}.”"),
                   say("The music, by {composer.name}, [stays in the background, where it is superb|uses {small} instruments and a door|is better than it needed to be].", "{composer.name}'s music [hums along for days|stops at the right moments]."), say("{player.name}, who tried it for us, [needed {small} attempts at the first boss|got stuck on level {small}|finished it in {hours} hours]. “{felt},” {player.he} said.", "“{felt},” said {player.name}, a colleague.", "We lent it to {player.name}, [a nurse|a student|a locksmith|a postman]. “{felt},” {player.he} [said afterwards|reported]."),
                   say("It runs smoothly on [newer consoles|ordinary computers] and [stutters|gets warm] on [handhelds|older ones].", "In our version there were [{small} crashes|no faults worth mentioning|a few missing subtitles].", "[Text is large enough to read from a sofa|Colours can be changed for the colour-blind|Every button can be reassigned]; {title} [needs {some} gigabytes|takes up {some} gigabytes]."), say("{title} costs {price}."), say("{good}Verdict: {score} out of ten. [Cancel something|For a long weekend|Not only for friends of the {k.name}].", "{mixed}Verdict: {score} out of ten. [For the patient|Wait for a sale|A rental, if one still could]."), say("{s.name} has {s.staff} employees in {s.city.name} and is known for {s.known_for}.")),
            weight=0.22, covered=0.08,
        ),
    ),
    share=0.75,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Release:
    s: Studio
    k: Kind
    title: str
    nth: str
    plot: str
    fan: Person
    streamer: Person
    analyst: Person
    director: Person
    years: int
    months: int
    small: int
    sold: str
    players: int
    price: Money
    why: str
    excuse: str
    bug: str
    feature: str
    smooth: str | None
    rough: str | None


_LATE = (
    ("the ending did not work", "We have an ending, and the testers laughed at it"), ("the horses still walk through walls", "A horse that goes through a wall is funny for a week"), ("the lead programmer became a father of twins", "There are things you can't patch"), ("the translation was not finished", "Two languages were still telling different stories"),
    ("it runs too slowly on older consoles", "We won't sell a slide show"), ("voice actors are on strike", "They're right, and we wait"), ("a rival comes out in the same week", "You don't open a café next to a fireworks display"), ("the studio flooded", "The servers were on the first floor, and so was the fish"),
)  # fmt: skip
_BUGS = ("characters whose eyes face the wrong way", "a bridge that kills whoever crosses it on a Tuesday", "saved games that vanish", "a king who greets every player as a number", "rain indoors", "a shopkeeper who pays for everything twice", "chickens that cannot be stopped from multiplying", "a final door without a handle")  # fmt: skip
_FEATURES = ("a world without a map", "enemies that remember you", "a two-player mode for strangers", "seasons that follow the real calendar", "a dog one cannot lose", "villages that grow without the player", "a language players have to learn", "no weapons at all", "weather that tells the story", "a diary written by the game")  # fmt: skip


def _release(scene: Scene) -> Release:
    s = scene.fresh("studio release", studio_pool(scene))
    k = scene.deal("release kind", _KINDS)
    why, excuse = scene.deal("late", _LATE)
    smooth = scene.chance(0.5)
    return Release(s, k, game_title(scene), scene.pick(("", " 2", " 3", " II")), scene.pick(k.plots), scene.person(s.country), scene.person(None), scene.person(None, "a games market analyst"), scene.person(s.country, "the game's director"), scene.between(3, 9), scene.between(2, 8), scene.between(2, 8), f"{scene.tenth(0.3, 6.5)} million", scene.near(20_000, 900_000),
                   Money(float(scene.pick((40, 50, 60, 70))), DOLLAR if s.country.currency.unit else s.country.currency), why, excuse, scene.deal("bug", _BUGS), scene.deal("feature", _FEATURES), "" if smooth else None, None if smooth else "")  # fmt: skip


RELEASES = Beat(
    "game releases",
    _release,
    (
        Stage(
            titles=("{title}{nth} delayed by {months} months", "{s.name} postpones {k.name} {title}{nth}", "Fans must wait: {title}{nth} not before {months} months", "{title}{nth} delayed because {why}"),
            abstracts=("The {k.name} about {plot} needs more time: {why}.", "{director.name} apologises to players. The new date is {months} months away."),
            leads=("{s.name} has delayed {title}{nth}, its {k.name} about {plot}, by {months} months because {why}, the studio said {on}.", "There is more waiting ahead for players: {title}{nth} will come out {months} months late, {s.name} said {on}."),
            then=(say("“{excuse},” said {director.last}.", "{director.last} [was frank|did not blame anybody]: “{excuse}.”"),),
            loose=(say("{fan.name}, who runs a fan site, [was calm|had a countdown on the wall]. “[I've waited {years} years, so I can do {months} months|I'd booked the week off, and now I'll paint the fence|Better late than patched],” {fan.he} said.", "On the forums there was [anger and a petition|more understanding than one might think]. “[Take your time|We've been here before|Finish it and then tell us|I'd rather have it late than twice],” wrote {fan.name}, a moderator."), say("The game promises {feature}. {s.name} has worked on it for {years} years."), say("{analyst.last} [expects costs to rise|saw it coming|has seen worse|reads it calmly]. “[A delay is forgotten on the day, a bad start isn't|Every month costs them a year of somebody's wages|{months} months is what they say when they hope for {small}|It moves them out of a crowded season, so it may even pay],” {analyst.he} said."), say("{s.name} has {s.staff} employees in {s.city.name}. {s.head.last} ruled out [overtime|weekend work].", "The studio from {s.city.name} is known for {s.known_for}."), say("Those who ordered early [can have their {price} back|get a soundtrack as consolation|keep their place in the queue]."), say("A trailer has been watched {players} times.")),
            weight=0.35, covered=0.35,
        ),
        Stage(
            titles=("First look: {title}{nth} has {feature}", "{s.name} shows {title}{nth}, a {k.name} with {feature}", "Trial version of {title}{nth} draws {players} players"),
            abstracts=("We played an hour of {title}{nth}. It is about {plot}.", "{players} people tried the {k.name} in a weekend test."),
            leads=("{s.name} let reporters play an hour of {title}{nth} {on}: a {k.name} about {plot}, with {feature}.", "A trial version of {title}{nth} opened {on}, and {players} players [came|queued]. The {k.name} by {s.name} has {feature}."),
            then=(say("“[We took out everything that said press X|The first hour was the last thing we made|I watch people play and sit on my hands],” said {director.last}.",),),
            loose=(say("The date was moved {t0:on} because {why}."), say("{streamer.name}, who plays for an audience of {small}00, [got lost at once|was won over]. “[I forgot to talk, which is my job|I've named the dog|It doesn't like me, and I respect that],” {streamer.he} said."), say("Not everything works yet: testers report {bug}.", "[Early testers|Players] have already found {bug}."), say("{fan.name}, a fan of the first hour, [wants more|fears for the ending]. “[It's like meeting somebody from the internet, and they're nice|I've drawn the map the game doesn't have],” {fan.he} said."), say("The finished game will cost {price}."), say("{analyst.last} [expects it to sell {sold} times|believes in it]. “[There's a crowd that wants precisely this|It's a small genre with long arms],” {analyst.he} said.")),
            after=(2, 4), weight=0.25, covered=0.12,
        ),
        Stage(
            titles=("{smooth}{s.name} sells rights to film of {title}{nth}", "{smooth}Publisher of {title}{nth} counts {sold} advance orders", "{rough}Players find {bug} in {title}{nth}", "{rough}{s.name} withdraws trial version of {title}{nth} after bug"),
            abstracts=("{smooth}The {k.name} has been ordered {sold} times in advance.", "{rough}The studio apologises for {bug}. Players are having fun with it."),
            leads=("{smooth}{title}{nth} has been ordered {sold} times before its release, {s.name} said {on}, and a film is being planned.", "{rough}{s.name} took the trial version of {title}{nth} offline {on} because of {bug}."),
            then=(say("{smooth}“[We're {s.staff} people in {s.city.name}, so I read the number to them twice|My mother now asks what it is about],” said {director.name}, the director.", "{rough}“[It's our fault, and some of it is quite beautiful|We found it on the first day and thought it was rare],” said {director.name}, the director."),),
            loose=(say("It had been delayed {t0:on} because {why}."), say("{rough}{streamer.name}, a streamer, [built a whole evening around it|refused to stop]. “[Don't you dare mend it|It's the best thing in it],” {streamer.he} said.", "{smooth}{streamer.name}, a streamer, has [mixed feelings|one wish]. “[Please, no singing|In the film the dog must live],” {streamer.he} said."), say("{fan.name}, who runs a fan site, [collects pictures of it|is content]."), say("{analyst.last} [was not surprised|kept to the sums]. “[Attention is attention|It pays for the next {years} years],” {analyst.he} said."), say("The game is about {plot}.")),
            after=(2, 5), weight=0.3, covered=0.1, chance=0.8,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A board game: what the players do, how it works, and what is said at the table."""

    title: str
    theme: str
    works: str
    quote: str
    moan: str


_TABLES: tuple[Table, ...] = (
    Table("Lock Keepers", "running a canal", "boats move only when somebody else opens a gate", "You need your enemy's gate more than your own", "It punishes politeness"),
    Table("Harvest Supper", "seating relatives at a wedding", "each guest card hates two others", "My aunt recognised herself in card nine", "The aunt card is too strong"),
    Table("Sixpence Opera", "staging an opera with no money", "players bid with promises that come due in the last act", "I promised the tenor to three people", "Bookkeeping with feathers"),
    Table("Moss", "growing over a stone", "you win by being slow", "It's the only game where my grandfather and my daughter play at the same speed", "For an hour, nothing happens, and then it is over"),
    Table("Night Post", "delivering letters in the dark", "one player alone sees the map and may only hum", "We have been humming at breakfast", "The box should contain a tuning fork"),
    Table("Border Town", "smuggling cheese", "one lies to the customs officer, who is the player on the left", "My husband can't lie about cheddar, it turns out", "Groups of nice people will be bored"),
    Table("The Weighing", "a market with false scales", "a real balance stands in the middle of the table", "Children cheat better, they have lighter fingers", "The balance breaks if you sneeze"),
    Table("Signal Box", "trains in fog", "all play at once against a sand timer", "I've never shouted platform four with such feeling", "After two rounds one needs a lie-down"),
    Table("Seven Sisters", "an inheritance", "cards are passed on face down with a compliment", "The compliments got worse and the game got better", "Best not played with sisters"),
    Table("Peat", "cutting peat before the rain", "the weather deck is known, the neighbours are not", "It smells of rain, I swear", "The rule book is as thick as a brick of the stuff"),
    Table("Understudy", "theatre on tour", "roles change hands at each station", "You fall ill on purpose, it's glorious", "The dice decide the last act"),
    Table("Lamplighters", "lighting a city street by street", "one builds routes of matchsticks", "My cat is banned from it", "The matches roll"),
    Table("Tollbooth", "holding up traffic", "players pay each other for every move", "Nobody stays rich, nobody stays friends", "Arithmetic at midnight"),
    Table("Small Hours", "getting children to sleep", "all win or all lose, mostly all lose", "We lost eleven times, it's very accurate", "Too close to home"),
    Table("Cartographer's Widow", "mapping an island from letters", "players draw what others describe", "My volcano was taken for a hat", "It wants people who can draw, or people who can laugh"),
    Table("Glassblowers", "making vases before they cool", "the clock is a cup of ice", "It ends when the ice does, so choose your room", "Bring a towel"),
    Table("Ferrywoman", "crossing a river with goats", "a classic riddle changes with each turn", "The wolf is the reasonable one", "One clever player solves it for all"),
    Table("Quorum", "a village meeting", "one wins by making others stay", "I voted for a pond I hated", "Real meetings are shorter"),
)  # fmt: skip


@dataclass(frozen=True)
class Play:
    t: Table
    c: Country
    city: City
    designer: Person
    shop: Person
    player: Person
    critic: Person
    minutes: int
    least: int
    most: int
    years: int
    copies: int
    price: Money
    cards: int
    age: int
    job: str
    prize: str


def _play(scene: Scene) -> Play:
    c = scene.country()
    return Play(scene.fresh("board game", _TABLES), c, scene.fresh("board game city", c.cities), scene.person(c), scene.person(c), scene.person(c), scene.person(None, scene.pick(("who sits on the jury", "a games critic", "who collects games"))), scene.between(3, 12) * 10, 2, scene.between(4, 6), scene.between(2, 9), scene.near(800, 60_000), scene.money(19, 59, c.currency), scene.between(48, 180), scene.between(8, 12),
                scene.pick(("a dentist", "a bus driver", "a retired teacher", "a civil engineer", "a nurse", "a beekeeper", "a tax inspector", "a stage carpenter")), scene.pick(("the Golden Pawn", "the Wooden Crown", "the Game of the Year award", "the Silver Die")))  # fmt: skip


BOARD = Beat(
    "board games",
    _play,
    (
        Stage(
            titles=("{designer.family}'s board game {t.title} turns {t.theme} into an evening", "{t.title}: board game about {t.theme} sells {copies} copies", "Board game review: {t.title} by {designer.name}", "{city.name} designer's board game {t.title} is a hit", "New from {city.name}: {t.title}, a board game about {t.theme}"),
            abstracts=("The idea: {t.works}. It takes {minutes} minutes.", "{designer.name}, {job}, worked on it for {years} years. Some {copies} boxes have been sold.", "A board game about {t.theme}, for {least} to {most} players."),
            leads=("{designer.name} is {job} in {city.name} and spent {years} years on a board game about {t.theme}. {t.title} came out {on}.", "In {t.title}, a new board game about {t.theme}, {t.works}.", "Some {copies} boxes of {t.title} were gone before it reached the shops {on}: the board game about {t.theme} has become the surprise of the season."),
            then=(say("“{t.quote},” said {player.name}, one of our testers.", "“{t.quote},” said {player.name} after {player.his} third game."), say("[The trick|The heart of it] is that {t.works}. A game takes {minutes} minutes.", "It works like this: {t.works}. [After {minutes} minutes it is over|One needs {minutes} minutes, and coffee].")),
            loose=(say("“[I tried it out on colleagues in the lunch break, and we were late for {years} years|My kitchen table has {cards} pencil marks|It was too long, so I threw away the part I liked best|I wanted a game about {t.theme} because there wasn't one],” said {designer.name}, {job}.", "{designer.name}, {job}, [cut the first cards from cereal boxes|has a drawer of {years} failed versions]. “[My family plays it no more, they've done their duty|The first version had a volcano; they all have],” {designer.he} said."), say("{critic.last} has one reservation. “{t.moan},” {critic.he} said.", "“{t.moan},” said {critic.last}. {critic.he:cap} likes it all the same."), say("{shop.name}, who keeps a games shop in {city.name}, [has a waiting list|reordered twice]. “[People come in and hum the rules at me|It's the first in months that grandmothers ask for],” {shop.he} said."), say("The box holds {cards} cards and costs {price}. It is meant for {least} to {most} players from the age of {age}; {copies} copies have been sold."), say("The illustrations [are lovely|look like old seed packets|help to find the right card], the rules [fit on two pages|could be shorter].")),
            weight=0.22, covered=0.45,
        ),
        Stage(
            titles=("{t.title} by {designer.family} nominated for {prize}", "Board game jury puts {t.title} from {city.name} on shortlist", "{designer.family} in running for {prize} with board game {t.title}"),
            abstracts=("The jury praises a board game in which {t.works}.", "{designer.name} hears of it at work. Another {copies} boxes are on order."),
            leads=("{t.title}, the board game about {t.theme} by {designer.name} of {city.name}, is in the running for {prize}, the jury said {on}.",),
            then=(say("“[I was at work and had to say it was a wrong number|My children asked whether we can stop testing now],” said {designer.name}, {job}."),),
            loose=(say("In the game, {t.works}."), say("{critic.last} [praised it|spoke of a close race]. “[It's the one we played again without being paid|{t.moan}, and still],” {critic.he} said."), say("{shop.name}, who sells games in {city.name}, [has none left|put it in the window]."), say("“{t.quote},” said {player.name}, a player of the first hour."), say("It costs {price}."), say("The prize is awarded [next month|in {years} weeks]; it usually brings [tens of thousands of sales|a second printing|a good year].")),
            after=(2, 6), weight=0.25, covered=0.35, chance=0.9,
        ),
    ),
    share=0.7,
    rhythm=LEISURE,
)  # fmt: skip
