# ruff: noqa: E501 (prose reads better unbroken)
"""How the motoring desk covers motorsport: races on circuits and rallies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.grammar import listed
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import EVENING, LEISURE
from backend.news.sources.newsroom.world import Country, World

_TRACKS = ("Ravenmoor", "the Altring", "Porto Sereno", "Kilnsey Park", "the Steinwald", "Lago Lungo", "Brackley Sands", "Cerro Azul", "the Hamra Oval", "Minato Bay", "Fort Lisgar Island", "Dunmere Heath", "Valcreuse", "Karamyr Steppe", "Seonhae Harbour", "the Old Aerodrome", "Serra Negra", "Halewick Docks", "Tanjung Street Circuit", "Nordmark", "Castel Rosso", "Lake Onida", "the Quarry Ring", "Sarzanella", "Windrush", "Sefu Lagoon", "Oberlohe", "Tarrant Sands", "Gold Hills", "Lipnica Forest")  # fmt: skip
_CLASSES = (("touring car", "touring cars"), ("GT", "GT cars"), ("electric single-seater", "electric single-seaters"), ("saloon car", "saloon cars"), ("truck", "racing trucks"), ("junior formula", "junior formula cars"), ("endurance", "endurance prototypes"), ("historic", "historic racing cars"))  # fmt: skip
_TEAMS = ("Scuderia Alba", "Northwind Racing", "Team Vantage Point", "Kestrel Motorsport", "Eberlein Rennstall", "Bluebird Engineering", "Minato Works", "Écurie Delorme", "Altiplano Racing", "Holm & Sons", "Red Quarry", "Team Orrery")  # fmt: skip
_DRAMA = (
    "A rain shower on lap {few} caught half of the field on the wrong tyres, and {third.name} gained six places in as many minutes.",
    "{out.name} had led until {out.his} engine let go in a cloud of blue smoke, {left} laps from the end.",
    "{out.name} hit the wall at the chicane, climbed out unhurt and kicked a tyre.",
    "A fox on the track brought out the safety car, and the gaps shrank to nothing.",
    "In the pits, {out.name} lost a wheel nut and {few} positions.",
    "{second.name} and {out.name} touched at the hairpin; only one of them came out of it facing the right way.",
    "A drone hung over the start and delayed it by {n} minutes.",
    "The stewards looked at a pass under yellow flags for an hour and let it stand.",
    "{out.name} was given a stop-and-go penalty for speeding in the pit lane, by a fifth of a kilometre an hour.",
    "An advertising hoarding blew on to the straight, and marshals carried it off like a coffin.",
    "Three cars went off on the oil left by one, and the race was stopped for {n} minutes.",
    "{third.name} drove the last {few} laps without a mirror, a bonnet catch or, it seemed, a worry.",
    "A flat battery left {out.name} on the grid with an arm in the air.",
    "Crosswinds on the back straight made the cars walk sideways.",
)  # fmt: skip
_WON = (
    "[I stopped breathing on the last lap and started again on the podium|I looked in the mirror so often that I know {second.his} face better than {second.his} mother does]", "[Four years I have told people it would come|My engineer was singing, it was awful and lovely]", "[We weren't the fastest, we were the least unlucky|I saved the tyres, the team saved me]", "[I grew up forty minutes from here, I used to sit on that fence|I'm going to sleep with the cup, it has been arranged]",
    "[The car did what I thought, before I thought it|On the grid I was afraid, and I like that]", "[Nobody had us on the list, I have kept the list|I was told to wait, and I can't wait]", "[Half of this belongs to the man who changes the left rear|It's only a race, ask me tomorrow, today it's everything]", "[I heard nothing for an hour and then I heard you all|The rain is my friend, I have no other explanation]",
    "[My father sold his van for my first kart|I made one mistake and nobody saw it]", "[I'd have settled for fifth at breakfast|You drive with your backside, and mine was awake]",
)  # fmt: skip
_LOST = (
    "[I gave it everything and it was a tenth too little|Second is the first who has to smile]", "[I shall see that corner tonight|One should not look at a scoreboard at 240]", "[The tyres went, then the brakes, then my temper|It was a fair fight, which makes it worse]", "[{winner.he} was braver by a metre|We chose the wrong stop, all of us, together]", "[I'm not unhappy, I only look it|There's another one in a fortnight]", "[I had him, and then I had a wall|My hands are shaking, feel]",
)  # fmt: skip


def _drivers(world: World) -> list[tuple[Person, Country]]:
    return [(world.person(country), country) for country in world.countries for _ in range(5)]


def _weekend(scene: Scene, *days: int) -> tuple[datetime, ...]:
    """Afternoon times on the days after the Saturday nearest to the story's start, which is day 0."""
    saturday = scene.day((5 - scene.start.weekday() + 3) % 7 - 3)
    return tuple(
        saturday.replace(hour=scene.between(14, 20), minute=scene.between(0, 59)) + timedelta(days=day) for day in days
    )


@dataclass(frozen=True)
class Race:
    name: str
    kind: str
    cars: str
    c: Country
    winner: Person
    home: Country
    second: Person
    third: Person
    out: Person
    pole: Person
    team: str
    rival: str
    laps: int
    left: int
    gap: float
    grid: int
    few: int
    n: int
    crowd: int
    drama: str
    drama2: str
    won: str
    lost: str
    rest: str
    boss: Person
    times: tuple[datetime, ...]


def _race(scene: Scene) -> Race:
    pool = scene.world.kept("racing drivers", lambda: _drivers(scene.world))
    picks = scene.sample(pool, 8)
    (winner, home), (second, _), (third, _), (out, _), *others = picks
    kind, cars = scene.deal("race class", _CLASSES)
    laps = scene.between(24, 68)
    drama, drama2 = (scene.deal("race drama", _DRAMA) for _ in range(2))
    team, rival = scene.sample(_TEAMS, 2)
    grid = scene.between(2, 11)
    return Race(
        scene.fresh("track", _TRACKS, uses=2), kind, cars, scene.country(), winner, home, second, third, out, scene.pick((second, out)), team, rival, laps, scene.between(3, 14), scene.tenth(0.2, 14.9), grid, scene.between(3, 9), scene.between(12, 55), scene.near(6_000, 74_000),
        drama, drama2, scene.deal("race won", _WON), scene.deal("race lost", _LOST), listed([one.name for one, _ in others[:3]]), scene.person(None), _weekend(scene, 0, 1, scene.between(2, 4)),
    )  # fmt: skip


RACE = Beat(
    "motorsport",
    _race,
    (
        Stage(
            titles=("{pole.name} takes pole for {kind} race at {name}", "Motorsport: {pole.last} fastest in qualifying at {name}", "Qualifying at {name}: pole for {pole.last}, {winner.last} only {grid:ord}"),
            abstracts=("{pole.name} starts from the front at {name}; {winner.name} has to be content with {grid:ord} place on the grid.", "The {kind} race over {laps} laps begins {t1:on}."),
            leads=("{pole.name} was fastest in qualifying for the {kind} race at {name} {on} and will start from pole position.", "One clean lap was enough: {pole.name} took pole position at {name} {on}, in the last minute of qualifying.", "{winner.name} of {home.name} will start the {kind} race at {name} from {grid:ord} place, and was not pleased. Pole went {on} to {pole.name}."),
            then=(say("“[Tomorrow they don't give cups for today|The lap was ugly and quick|I have had pole here before and finished in a gravel trap],” {pole.name} said.",),),
            loose=(say("{winner.name} lost time in [traffic|the second sector]. “[From there one sees more of the others|I've won from worse],” {winner.he} said."), say("{rest:cap} complete the front rows."), say("{boss.name}, who runs {team}, [expects rain|spoke of a long race]. “[The grid is a photograph and the race is a film|We shall do our talking at the stops],” {boss.he} said."), say("The race, for {cars}, is over {laps} laps."), say("About {crowd} tickets have been sold."), say("{third.name} had an accident in practice [and starts from the back|, but is fit to drive].")),
            weight=0.25, covered=0.1, rhythm=EVENING,
        ),
        Stage(
            titles=("{winner.name} wins {kind} race at {name}", "Motorsport: {winner.last} beats {second.last} by {gap} seconds at {name}", "{winner.last} wins at {name} from {grid:ord} on grid", "{second.last} misses out as {winner.last} takes {name} race", "{team} celebrates: {winner.last} first at {name}"),
            abstracts=("The {home.demonym} driver finished {gap} seconds ahead of {second.name}. {third.name} came third.", "“{won},” says {winner.name} after {laps} laps.", "{drama}", "From {grid:ord} place to first: {winner.name} wins for {team}."),
            leads=("{winner.name} won the {kind} race at {name} {on}, {gap} seconds ahead of {second.name}, after {laps} laps.", "{drama} When everything was over, {winner.name} of {home.name} had won the {kind} race at {name}, from {second.name} and {third.name}.", "{winner.name}, {grid:ord} on the grid, was first at the flag. The {home.demonym} driver beat {second.name} by {gap} seconds at {name} {on}.", "It took {laps} laps and a good deal of nerve: {winner.name} won at {name} {on} for {team}."),
            then=(say("“{won},” said {winner.name}.", "{winner.name} [needed a moment|sat down on a tyre]. “{won},” {winner.he} said."),),
            loose=(say("{drama2}"), say("{second.name}, of {rival}, [congratulated the winner|left quickly]. “{lost},” {second.he} said.", "“{lost},” said {second.name}, second for {rival}."), say("{third.name} came third, {rest} followed.", "Behind {third.name} in third place came {rest}."), say("{pole.name} had started from pole position."), say("{boss.name}, who runs {team}, [had looked away on the last lap|hugged whoever was nearest]. “[We stopped once, they stopped twice, that's the story|I have grey hair from sector three],” {boss.he} said."), say("Around {crowd} people watched[, most of them in waterproofs|].")),
            after=(0.9, 1.3), weight=0.4, covered=0.3, rhythm=EVENING,
        ),
        Stage(
            titles=("{second.last} protests against {winner.last} win at {name}", "After {name}: {second.last} and {winner.last} not on speaking terms", "Stewards look again at {name} race"),
            abstracts=("{rival} has lodged a protest over the rear wing of the winning car.", "“{lost},” {second.name} had said after the race."),
            leads=("{rival} protested {on} against the victory of {winner.name} at {name}, claiming that the rear wing of {winner.his} car was {few} millimetres too wide.", "The race at {name} isn't over, it seems. {rival}, whose driver {second.name} came second, has asked the stewards to measure the winner's rear wing."),
            then=(say("“[We would like to see it measured, with a ruler and in daylight|I don't say they cheat, I say it's wide],” said {second.name}.", "{boss.name}, who runs {team}, [was amused|waved it away]. “[It was narrow enough on the way to the podium|They may bring their own ruler],” {boss.he} said."),),
            loose=(say("{winner.name} had won {t1:on} by {gap} seconds."), say("The stewards will decide [within a week|before the next race]."), say("{third.name}, who came third, would move up. “[I don't want a cup by post|I'll keep the afternoon free],” {third.he} said."), say("“{won},” {winner.name} had said after the race."), say("Similar protests [have come to nothing|succeeded twice in ten years].")),
            after=(1.5, 3), weight=0.25, covered=0.1, chance=0.45, rhythm=LEISURE,
        ),
    ),
    share=0.8,
    rhythm=EVENING,
)  # fmt: skip

_RALLIES = ("the Rally of the Glens", "the Hochland Rally", "the Thousand Lakes Night", "the Rally Tramontane", "the Sary Mountains Raid", "the Encinas Rally", "the Serra Negra Rally", "the Amber Coast Rally", "the Safari of the Rift", "the Northern Island Snow Rally", "the Desert Cup", "the Armance Rally", "the Drava Hills Rally", "the Bell Peninsula Gravel Rally", "the Vimala Monsoon Rally", "the Outer Isles Tour")  # fmt: skip
_STAGE_TALES = (
    "On the stage called “Devil's Kitchen”, {second.name} rolled, landed on all four wheels and drove on without a windscreen.",
    "{out.name} hit a rock the size of a suitcase and walked the last three kilometres, to applause.",
    "A herd of goats held up the leaders; the marshals gave everybody the same {few} minutes.",
    "In the night stage, {winner.name} drove by the light of one headlamp.",
    "Fog lay so thick over the pass that the co-drivers counted fence posts.",
    "{out.name} ran out of fuel within sight of the service park, which will be talked about in the winter.",
    "A farmer pulled {third.name} out of a ditch, got an autograph and went back to his hay.",
    "Ice on the last climb turned two of the favourites into spectators.",
    "{second.name} lost a minute with a puncture and won half of it back in one stage.",
    "Spectators stood too close at the ford, and a stage had to be called off.",
)  # fmt: skip


@dataclass(frozen=True)
class Rally:
    name: str
    c: Country
    winner: Person
    mate: Person
    home: Country
    second: Person
    third: Person
    out: Person
    team: str
    rival: str
    stages: int
    km: int
    gap: float
    lead: float
    few: int
    tale: str
    tale2: str
    won: str
    lost: str
    times: tuple[datetime, ...]


def _rally(scene: Scene) -> Rally:
    pool = scene.world.kept("racing drivers", lambda: _drivers(scene.world))
    (winner, home), (second, _), (third, _), (out, _) = scene.sample(pool, 4)
    team, rival = scene.sample(_TEAMS, 2)
    tale, tale2 = (scene.deal("rally tale", _STAGE_TALES) for _ in range(2))
    return Rally(
        scene.fresh("rally", _RALLIES), scene.country(), winner, scene.person(home), home, second, third, out, team, rival, scene.between(12, 21), scene.between(190, 340), scene.tenth(1.2, 58), scene.tenth(0.4, 31), scene.between(3, 9), tale, tale2, scene.deal("race won", _WON), scene.deal("race lost", _LOST), _weekend(scene, 0, 1),
    )  # fmt: skip


RALLY = Beat(
    "motorsport",
    _rally,
    (
        Stage(
            titles=("{second.last} leads {name} by {lead} seconds", "Rallying: {second.last} ahead of {winner.last} after first day of {name}", "{name:cap}: {second.last} in front, {out.last} in a ditch"),
            abstracts=("After the first day {second.name} is {lead} seconds ahead of {winner.name}.", "{tale}"),
            leads=("{second.name} leads {name} after the first day, {lead} seconds ahead of {winner.name}.", "{tale} By the evening {on}, {second.name} led {name} by {lead} seconds from {winner.name}.", "Dust, {km} kilometres against the clock and a small gap: after day one of {name}, {second.name} leads {winner.name} by {lead} seconds."),
            then=(say("“[Nothing is won on the first day|I drove at nine-tenths, the tenth I keep|My hands have been asleep since stage four],” said {second.name}.",),),
            loose=(say("{winner.name} of {home.name}, with co-driver {mate.name}, [was content|had lost time at a ford]. “[We know where it is to be had|Tomorrow's stages are ours],” {winner.he} said."), say("{third.name} lies third for {rival}."), say("{out.name} is out after [leaving the road|an accident in which nobody was hurt]."), say("The rally has {stages} special stages of {km} kilometres in all."), say("{tale2}")),
            weight=0.25, covered=0.1,
        ),
        Stage(
            titles=("{winner.name} wins {name}", "Rallying: {winner.last} overtakes {second.last} to win {name}", "{name:cap} goes to {winner.last} by {gap} seconds", "{winner.last} turns {name} round on last day"),
            abstracts=("{winner.name} and co-driver {mate.name} finished {gap} seconds ahead of {second.name}.", "“{won},” says {winner.name}.", "{tale2}"),
            leads=("{winner.name} won {name} {on}, {gap} seconds ahead of {second.name}, who had led after the first day.", "{winner.name} and {mate.name}, of {home.name}, have won {name}. They made up {lead} seconds and finished {gap} ahead of {second.name}.", "{tale2} It decided {name}: {winner.name} won {on}, by {gap} seconds from {second.name}."),
            then=(say("“{won},” said {winner.name}.",), say("{mate.name}, the co-driver, [had lost {mate.his} voice|held up the notes]. “[I read, {winner.he} believed|I said right and it was right, every time but once],” {mate.he} said.")),
            loose=(say("“{lost},” said {second.name}, who drives for {rival}."), say("{third.name} came third."), say("Of the {stages} special stages, {winner.name} won {few}."), say("The route led over {km} kilometres of {c.demonym} [gravel|forest roads|mountain roads]."), say("For {team} it was the first win [for a year|of the season]."), say("{tale}")),
            after=(1.5, 2.4), weight=0.35, covered=0.25,
        ),
    ),
    share=0.35,
    rhythm=EVENING,
)  # fmt: skip
