# ruff: noqa: E501 (prose reads better unbroken)
"""How the basketball desk follows clubs between games: transfers, injuries, coaches, arenas and the young."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.basketball_games import clubs
from backend.news.sources.newsroom.desks.basketball_league import Club
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE, ROUND
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Deal:
    old: Club
    new: Club
    player: Person
    place: str
    agent: Person
    general: Person
    fan: Person
    age: int
    cm: int
    average: float
    boards: float
    fee: Money
    pay: Money
    years: int
    done: str | None
    off: str | None
    hitch: str
    gift: str


def _deal(scene: Scene) -> Deal:
    old = scene.fresh("basketball seller", clubs(scene), uses=2)
    new = scene.pick([club for club in clubs(scene) if club.women is old.women and club is not old])
    place = scene.fresh(f"basketball mover {old.name}", ("guard", "wing", "forward", "centre"))
    player = getattr(old, place)
    tall = {"guard": 181, "wing": 191, "forward": 200, "centre": 208}[place] - (12 if old.women else 0)
    fee = scene.money(6e4, 9e5, new.country.currency)
    done = scene.chance(0.7)
    return Deal(old, new, player, {"guard": "point guard", "wing": "shooting guard"}.get(place, place), scene.person(None, "the player's agent"), scene.person(new.country, "the sporting director"), scene.person(old.country), scene.between(20, 33), tall + scene.between(-4, 8), scene.tenth(9.1, 21.8), scene.tenth(2.1, 5.4) if "guard" in place or place == "wing" else scene.tenth(5.2, 11.3), fee, fee.times(scene.rng.uniform(0.8, 2.5)), scene.between(1, 4), "" if done else None, None if done else "",
                scene.pick(("a buy-out clause", "a medical on one knee", "the agent's commission", "image rights", "summers with the national team", "a flat for the player's parents", "bonus payments", "a clause about a foreign league")),
                scene.pick(("a pass nobody else sees", "long arms and a short memory", "a jump shot with a high release", "shoulders that make room", "a quick first step", "a calm hand at the line", "a voice on defence", "a knack for loose balls", "range from well beyond the arc")))  # fmt: skip


TRANSFER = Beat(
    "basketball transfers",
    _deal,
    (
        Stage(
            titles=("{new.name} want {old.name} {place} {player.last}", "{place:cap} {player.last} linked with move to {new.name}", "{old.name} fight to keep {place} {player.last}", "Basketball transfers: {new.name} make offer for {player.last}"),
            abstracts=("{player.name}, who averages {average} points, has {gift}. {new.name} have offered {fee}.", "{old.name} have said no once. {new.name} are expected to come back for {player.name}.", "The {place} stands {cm} centimetres tall and has {gift}."),
            leads=("{new.name} have offered {fee} for {player.name}, the {old.name} {place}, people close to the talks said {on}.", "{player.name}, who averages {average} points and {boards} rebounds for {old.name}, is wanted by {new.name}.", "{old.name} may lose their {place}: {new.name} made an offer for {player.name} {on}."),
            then=(say("“[I'd miss {player.him} at both ends|It's a short season and a long bench, we need everyone|They can ask; I've also asked for things],” said {old.coach.name}, who coaches {old.name}.", "{old.coach.name}, the {old.name} coach, [shrugged|was not amused]. “[We drew up forty plays, and {player.he} is in thirty-nine|Every year somebody rings in this month],” {old.coach.he} said."),),
            loose=(say("{player.last}, {age} and {cm} centimetres tall, has {gift}.", "At {cm} centimetres, {player.last} has {gift}[, and at {age} some years ahead|]."), say("{general.last} [would confirm only that {general.he} owned a telephone|had been seen at two games]. “[We're looking for size, and for somebody who talks|I like the way {player.he} loses].”"), say("{agent.last} said {player.last} was “[flattered, and busy|a professional with a suitcase]”."), say("{fan.name}, who has [a season ticket|the player's number on a scarf], would be sorry. “[{player.he:cap} signs everything, even a cast|We develop them and wave].”"), say("The transfer window closes [at the end of the month|in two weeks]."), say("{new.name} are known to be looking for [help inside|scoring].")),
            weight=0.26, covered=0.1,
        ),
        Stage(
            titles=("{done}{new.name} sign {player.last} from {old.name}", "{done}{player.last} completes move to {new.name}", "{done}{new.name} pay {fee} for {place} {player.last}", "{off}{player.last} to stay at {old.name} as {new.name} deal fails", "{off}Transfer of {player.last} to {new.name} off over {hitch}", "{off}{new.name} give up on {place} {player.last}"),
            abstracts=("{done}The {place} signs for {years:count year}; {old.name} receive {fee}.", "{done}{player.name} has {gift}, and now plays for {new.name}.", "{off}Talks broke down over {hitch}. {player.name} stays with {old.name}.", "{off}{new.name} and {old.name} had agreed on {fee}, then came {hitch}."),
            leads=("{done}{new.name} have signed {player.name} from {old.name}, the clubs said {on}; the {place} gets a contract for {years:count year}.", "{done}{player.name} is leaving {old.name} for {new.name}, who are paying {fee} for the {place}, it was announced {on}.", "{off}{player.name} is staying at {old.name}. Talks with {new.name} ended {on} over {hitch}.", "{off}The move of {player.name} from {old.name} to {new.name} fell through {on} because of {hitch}."),
            then=(say("{done}“[I drove past the arena twice before I dared go in|They told me where they'd want me on the last play, and that did it|I'll need bigger curtains],” said {player.last}.", "{off}“[I unpacked and made soup|I never asked to go, I asked to be asked|Now I've two sets of keys],” said {player.last}."),),
            loose=(say("{done}{new.coach.name}, who coaches {new.name}, gets a player with {gift}. “[It makes practice nastier, which I like|Now I have two, and can sleep].”", "{off}{new.coach.name}, the coach of {new.name}, [will make do|was short]. “[I coach who is in the room].”"), say("{done}{player.last} will earn about {pay} a year, [people in the league say|it is said].", "{done}The pay is put at {pay} a year." , "{off}{old.chair.name}, who chairs {old.name}, was [relieved|already thinking of next year]. “[Sometimes the best deal is a handshake].”"), say("{player.last} averages {average} points and {boards} rebounds."), say("{agent.last} said there had been [a long night over|some noise about] {hitch}."), say("The interest had become known {t0:on}."), say("{done}{general.name}, who does the signing at {new.name}, spoke of “[the missing piece|size, speed and manners]”.", "{off}{general.name}, who does the signing at {new.name}, said there were “[other tall people|no hard feelings and no contract]”.")),
            after=(2, 4.5), weight=0.32, covered=0.15,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Injury:
    club: Club
    player: Person
    place: str
    part: str
    how: str
    doctor: Person
    mate: Person
    weeks: int
    average: float
    games: int
    early: str | None
    late: str | None
    age: int


_HOWS = ("landing on an opponent's foot", "diving for a loose ball", "in a collision under the basket", "on a fast break", "in the warm-up", "in a practice game of five against five", "reaching for a rebound", "blocking a shot", "slipping on a wet patch", "taking a charge", "hanging on the rim", "on the stairs of the team bus", "after a fall over a photographer")  # fmt: skip
_PARTS = (("sprained ankle", 3, 5), ("torn calf muscle", 4, 7), ("broken finger", 4, 6), ("knee ligament injury", 14, 30), ("strained hamstring", 3, 5), ("broken nose", 1, 2), ("bruised hip", 2, 3), ("stress fracture in the foot", 9, 14), ("dislocated shoulder", 6, 10), ("torn Achilles tendon", 30, 40), ("back spasm", 2, 3), ("concussion", 2, 3), ("broken hand", 6, 8))  # fmt: skip


def _injury(scene: Scene) -> Injury:
    places = ("guard", "wing", "forward", "centre")
    player = scene.fresh("basketball injury", tuple(getattr(club, place) for club in clubs(scene) for place in places))
    club = next(club for club in clubs(scene) if player in club.squad)
    place = next(place for place in places if getattr(club, place) is player)
    part, low, high = scene.pick(_PARTS)
    early = scene.chance(0.5)
    return Injury(club, player, {"guard": "point guard", "wing": "shooting guard"}.get(place, place), part, scene.pick(_HOWS), scene.person(club.country, "the club doctor"), scene.pick([other for other in club.squad if other is not player]), scene.between(low, high), scene.tenth(7.2, 21.9), scene.between(14, 34), "" if early else None, None if early else "", scene.between(20, 34))  # fmt: skip


INJURY = Beat(
    "injuries",
    _injury,
    (
        Stage(
            titles=("{club.name} {place} {player.last} out for {weeks:count week} with {part}", "{player.last} injured {how}, {club.name} say", "{club.name} lose {player.last} to {part}", "Injury blow for {club.name}: {part} for {player.last}", "{part:cap} sidelines {club.name} {place} {player.last}"),
            abstracts=("The {place}, who averages {average} points, was hurt {how}.", "{club.name} will have to do without {player.name} for about {weeks:count week}.", "A scan showed a {part}. {club.coach.name} must find points elsewhere."),
            leads=("{player.name} will be out for about {weeks:count week} with a {part}, {club.name} said {on}. The {place} was hurt {how}.", "{club.name} have lost their {place}, {player.name}, to a {part} suffered {how}, the club said {on}.", "A scan {on} brought bad news for {club.name}: {player.name}, hurt {how}, has a {part} and will miss about {weeks:count week}.", "The {place} {player.name}, who averages {average} points for {club.name}, was injured {how} and faces {weeks:count week} without basketball."),
            then=(say("“[I heard a noise that wasn't the shoe|I'll watch from the bench and annoy the referees|It's my first in {games} games, so I can't complain, but I will],” said {player.name}.", "“[You can't replace {player.him}, you can only share {player.him} out|We've fourteen players and thirteen of them are healthy, I try to look at those|Somebody will have a chance, and I want to see greed],” said {club.coach.name}, the {club.name} coach."),),
            loose=(say("{doctor.last} [spoke of luck|would not be held to a date|drew it on a napkin]. “[It could have been worse; they all hate it when I say so|The body has its own calendar|I give weeks, players hear days].”"), say("{mate.name}, of the same team, saw it. “[The gym went quiet, and that never happens|{player.he:cap} waved, so we went on].”", "{mate.name} is likely to start in {player.his} place. “[I've been ready since I was nine|I'd rather have got it another way|Half of {player.his} plays I know, the other half I'll learn tonight|I asked {player.him} for advice, {player.he} said: shoot].”"), say("{player.last}, {age}, had played {games} games in a row."), say("{club.name} play in the {club.league}, where injuries have been [frequent|rare] this season.", "It is the [second|third] long absence at {club.name} this season."), say("{player.last} averages {average} points[, the most in the team|, second in the team|]."), say("Supporters left [flowers|a card two metres high] at {club.arena}.", "{club.chair.name}, who chairs the club, [ruled out a new signing|has asked about a short-term signing]. “[We'll look, without running].”")),
            weight=0.26, covered=0.08,
        ),
        Stage(
            titles=("{early}{player.last} ahead of schedule after {part}", "{late}Setback for {player.last} after {part}", "{club.name} give injury update on {player.last}", "{player.last} on {part}: “I count ceiling tiles”"),
            abstracts=("{early}{player.name} is shooting again, from a chair.", "{late}{player.name} will need longer to recover than hoped, {club.name} say.", "An update on {player.name}, the {club.name} {place}."),
            leads=("{early}{player.name}, out since a {part} made public {t0:on}, has begun to shoot again, from a chair, {club.name} said {on}.", "{late}{player.name} will be out for longer than {weeks:count week}, {club.name} said {on}; the {part} is healing slowly.", "{player.name} of {club.name}, injured {how}, met reporters {on} for the first time."),
            then=(say("“[I count ceiling tiles, there are four hundred and six|I've learned to cook two dishes and to hate both|From up there the game looks easy, I'm ashamed of what I shouted],” {player.last} said."),),
            loose=(say("{doctor.last} [urged patience|was satisfied]. “[We add ten minutes a day|I have the only key to the gym].”"), say("{mate.name} has [filled in well|taken over the last shot]. “[It's {player.his} chair, I only sit in it].”"), say("{club.coach.name}, the coach, [plans without {player.him}|has {player.him} scout opponents]. “[{player.he:cap} sees more from there than I do].”"), say("Before the injury, {player.last} had averaged {average} points."), say("The club had spoken of {weeks:count week} {t0:on}.")),
            after=(3, 6), weight=0.16, chance=0.55,
        ),
    ),
    share=0.8,
    rhythm=ROUND,
)  # fmt: skip


@dataclass(frozen=True)
class Bench:
    club: Club
    coach: Person
    heir: Person
    fan: Person
    wins: int
    games: int
    months: int
    years: int
    creed: str
    past: str
    slip: str


def _bench(scene: Scene) -> Bench:
    club = scene.fresh("basketball bench", sorted(clubs(scene), key=lambda club: club.won)[:14])
    return Bench(club, club.coach, scene.person(None, "the new coach"), scene.person(club.country), scene.between(2, 3), scene.between(10, 13), scene.between(5, 29), scene.between(2, 3), scene.pick(("zone defence", "eight seconds or less", "two centres and no fear", "early three-pointers", "full-court press", "a ten-player rotation")), scene.pick(("a spell with a national youth team", "six years abroad", "a season in television", "a school where two champions learned to shoot", "the second division")), scene.pick(("a shouting match in a time-out", "a bus journey in silence", "a defeat by thirty", "a captain left at home", "a walk-out by two players", "a play drawn on the wrong end of the board")))  # fmt: skip


COACH = Beat(
    "coaches",
    _bench,
    (
        Stage(
            titles=("{club.name} coach {coach.last} under pressure after {wins:count win} in {games}", "{club.name}: coach {coach.last} fights for job after {slip}", "{coach.last} refuses to quit as {club.name} coach"),
            abstracts=("After {slip}, {coach.name} is running out of time at {club.name}.", "First {wins:count win} from {games} games, and then {slip}."),
            leads=("{coach.name} is still the coach of {club.name}, {club.chair.name}, who chairs the club, said {on}, and did not say for how long.", "A run of {wins:count win} in {games} games and then {slip} have brought {coach.name}, the coach of {club.name}, to the edge."),
            then=(say("“[I've a board, a pen and a team, and I'd like to keep all three|We lose by four and it feels like forty|I will leave when they take the whistle],” {coach.last} said."),),
            loose=(say("{club.captain.name}, the captain, [backed the coach|chose careful words]. “[The plays are right, the players are late|We owe {coach.him} a game].”"), say("{coach.last} arrived {months} months ago and preached {creed}."), say("{fan.name}, who drums at {club.arena}, [has seen worse|is torn]. “[I drum the same, I get tired sooner|We booed the bus, and felt bad about it|Whoever coaches, it's the passing that hurts].”"), say("{club.chair.name} [asked for calm|has met two candidates, it is said]."), say("It had come to {slip} [last week|after the last game].")),
            weight=0.28,
        ),
        Stage(
            titles=("{club.name} dismiss coach {coach.last}", "{heir.last} replaces {coach.last} as {club.name} coach", "{club.name} turn to {heir.last} after parting with coach {coach.last}"),
            abstracts=("{coach.name} goes after {months} months. {heir.name} takes over for {years} years.", "{heir.name}, with {past} behind {heir.him}, is to save {club.name}."),
            leads=("{club.name} parted with {coach.name} {on} and named {heir.name} as coach, with a contract for {years} years.", "{heir.name} is the new coach of {club.name}. {coach.name} was told {on}, after {months} months."),
            then=(say("“[I've watched nine games in two nights and I have a headache and an idea|They told me it was urgent, and I said I could see that|{creed:cap} is over; from now on we run|First we'll learn to come back on defence, then we can talk|I don't promise wins, I promise sweat],” said {heir.last}.",),),
            loose=(say("{heir.last} has behind {heir.him} {past}.", "What recommended {heir.last} was {past}.", "After {past}, {heir.last} had been waiting for an offer like this."), say("{coach.last} [left by the back door|shook every hand]. “[I leave them fitter than I found them|I've three plays that nobody has seen, and I'm taking them with me|It's a job with a packed bag in it],” {coach.he} said."), say("{club.chair.name} spoke of “[a new voice|a hard morning]”."), say("{club.guard.name}, the point guard, [was asked to stay behind|has been given the ball and the keys]. “[We talked for an hour, mostly about feet|I was told to shout more|We're learning the names of things again].”"), say("{fan.name}, with the drum, [will give it a month|likes the new one|was at the first practice]."), say("As late as {t0:since}, {coach.last} had refused to go.")),
            after=(1.5, 4), weight=0.35, covered=0.12,
        ),
    ),
    share=0.4,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Matter:
    head: str
    news: str
    why: str
    quote: str
    other: str
    detail: str


# fmt: off
ARENAS = tuple(Matter(*row) for row in (
    ("to be built on railway yard", "is to be built on a disused railway yard", "The old hall leaks on the home side only", "We'll have nine thousand seats and none behind a pillar", "They promised us trees in that yard", "The turntable will be kept, under the centre circle."),
    ("closed after ceiling panel falls", "has been closed after a panel fell on to the free-throw line", "Inspectors had looked at it in spring", "It fell on a Monday, and on Mondays nobody misses free throws", "I've sat under that panel for thirty years", "Three home games are to be played in a riding hall."),
    ("gets floor from forest nearby", "has been given a new floor of local maple", "The old boards had dead spots that only the home side knew", "We've lost our two best defenders, the dead spots", "It smells like a sauna", "Two hundred and twenty-five panels lock together in a night."),
    ("bans air horns", "will be without air horns from now on", "A physician had measured a hundred and eighteen decibels", "A drum says come on, a horn says go away", "I bought it in a ship's chandler and I'm keeping it", "Confiscated horns go to the harbour office."),
    ("renamed after bread firm", "will carry the name of a bread company", "Naming rights pay for the youth teams", "I've been called worse than a bun", "It'll always be the Old Hall to me", "Free rolls are promised for every blocked shot."),
    ("cuts ticket prices to fill upper tier", "is halving prices in the upper tier", "Echoes had been heard in there", "An empty seat has never bought a sausage", "Now I'll have neighbours", "The cheapest seat costs less than parking."),
    ("heated by ice rink next door", "is to be heated with waste heat from the ice rink", "The two halls had worked against each other for decades", "They sweat for our warmth, we'll cheer for their cold", "The hockey people get free tickets and so should we", "The pipe is eighty metres long and was dug in a week."),
    ("floods before derby", "was under four centimetres of water on the eve of a derby", "A sprinkler had reacted to a smoke machine", "The players mopped, which is the most together they've looked", "I bailed out row A with my hat", "Fans were asked to bring towels, and brought carpets."),
    ("installs seats for taller visitors", "has fitted two rows with more legroom", "The average height of visitors has grown by six centimetres in forty years", "The measure was a former centre, who fell asleep in it", "I'm a metre fifty and I can't see past them", "The rows are at the back, for the sake of everybody else."),
    ("sold to supporters for one coin", "has been sold to a supporters' trust for the price of one coin", "The owner had wanted to be rid of the roof", "We own a roof with a hall under it", "A coin is what it's worth", "Repairs will cost rather more than the coin."),
    ("hosts first game without cash", "no longer takes cash at its bars", "Queues had lasted into the second quarter", "The beer is faster than our guards", "I had coins in my hand and nobody wanted them", "Two tills for cash return after a protest by pensioners."),
    ("keeps wooden stand after vote", "is to keep its wooden stand", "Fire inspectors and sentiment had been at war", "When they stamp, the scoreboard loses a digit", "My grandfather carved something rude under seat forty", "Forty extinguishers and a ban on pipes are the price."),
))

YOUTH = tuple(Matter(*row) for row in (
    ("wins title with seven players", "has won the national under-16 title with a squad of seven", "Influenza had taken the rest", "In the last minute we had four, and two of them were crying", "I fouled out and led the singing", "The bench consisted of a mother, a doctor and a ball."),
    ("lowers baskets for under-tens", "plays its under-tens' games at lower baskets", "Children had been learning to throw instead of to shoot", "They used to heave it like a bucket, now they shoot", "My dad says it's cheating; my dad can't shoot", "Scores have trebled, and so has the number of girls."),
    ("bans parents from touchline for month", "has banned parents from the hall for a month", "A referee of fifteen had been reduced to tears", "The silence was strange, then we heard squeaking shoes", "I watched through the window like a burglar", "Grandparents are exempt, on good behaviour."),
    ("trains in church as hall is shut", "is training in a church while their gym is repaired", "The school gym has asbestos in its roof", "You dribble between the pews and learn to protect the ball", "The organ is out of bounds, literally", "The priest coaches the under-12s in foul shooting."),
    ("loses star of 15 to foreign academy", "is losing its best player, aged fifteen, to an academy abroad", "Three clubs had sent people with business cards", "A child of fifteen should be tired from homework", "I've packed my pillow and my left shoe for luck", "The federation wants compensation for clubs that train children."),
    ("revives league with night games for teenagers", "opens its gym at night for teenagers", "Police had counted youths in car parks", "At eleven at night they defend as if it were daylight", "It's better than the car park, and there's soup", "Nobody asks for names; everyone gets a bib."),
    ("has more girls than boys", "has more girls than boys for the first time", "A local player had won a medal and come home with it", "We've run out of small shirts", "She let me hold the medal, it's heavier than a cat", "Four more coaches are being trained."),
    ("drops shot clock for under-12s", "no longer plays with a shot clock below the age of twelve", "Panic had been taught along with passing", "They've begun to think, it takes some getting used to", "Now they just stand there and talk", "The rule will be looked at after one season."),
    ("wheelchair team beats first side", "saw its wheelchair youth team beat the first team, in wheelchairs", "The match had been a bet", "They're taller than us only when they stand", "I have blisters on my blisters", "The takings paid for three sports chairs."),
    ("scores 203 points and apologises", "has apologised after a 203-11 win", "The other team had five players, one of them a goalkeeper", "I told them to pass ten times first; they passed ten times, quickly", "We celebrated eleven points like a title", "The league is discussing an early end to such games."),
    ("starts school team with 61 pupils", "has sixty-one pupils in its first basketball team", "A teacher had hung a laundry basket in the yard", "We started with the basket, then we got a ball", "There's a queue even for the bench", "Games are played with rolling substitutions, by the minute."),
    ("twins barred from swapping shirts", "must number its twins differently", "Fouls had been shared between two sisters", "Even I got it wrong, and they're my nieces", "We only did it in the third quarter", "They now wear ribbons of different colours, under protest."),
))
# fmt: on


@dataclass(frozen=True)
class Hall:
    m: Matter
    club: Club
    c: Country
    town: str
    head: Person
    voice: Person
    official: Person
    child: Person
    seats: int
    cost: Money
    years: int
    members: int
    built: str


def _hall(scene: Scene) -> Hall:
    club = scene.fresh("basketball arena", clubs(scene))
    return Hall(scene.fresh("arena matter", ARENAS, uses=2), club, club.country, club.city, scene.person(club.country, "who manages the hall"), scene.person(club.country), scene.person(club.country), scene.person(club.country), scene.near(1_800, 11_900), scene.money(1.8e4, 9e5, club.country.currency), scene.between(4, 61), scene.between(120, 900), str(scene.start.year - scene.between(14, 88)))  # fmt: skip


def _youth(scene: Scene) -> Hall:
    c = scene.country()
    return Hall(scene.fresh("youth matter", YOUTH, uses=2), scene.pick(clubs(scene)), c, scene.fresh("youth town", c.cities).name, scene.person(c, "the youth coach"), scene.person(c), scene.person(c), scene.person(c), scene.between(90, 600), scene.money(4e3, 9e4, c.currency), scene.between(4, 61), scene.between(70, 480), str(scene.start.year - scene.between(14, 88)))  # fmt: skip


ARENA = Beat(
    "arenas",
    _hall,
    (
        Stage(
            titles=("{town} arena {m.head}", "Arena of {club.name} {m.head}", "Basketball arena in {town} {m.head}", "{club.name}: home arena {m.head}"),
            abstracts=("{m.why}. {head.name} manages the home of {club.name}.", "“{m.quote},” says {head.name}, who manages the arena in {town}.", "{m.detail} {club.name} play in front of up to {seats} people."),
            leads=("The home arena of {club.name} in {town} {m.news}, it was announced {on}.", "{m.why}. Now the arena of {club.name} {m.news}.", "The hall in {town} where {club.name} play {m.news}, {head.last} said {on}."),
            then=(say("“{m.quote},” said {head.last}.", "{head.last} [was on a ladder|had a bunch of forty keys]. “{m.quote},” {head.he} said."),),
            loose=(say("{m.detail}"), say("“{m.other},” said {voice.name}, [a season-ticket holder|who has followed {club.name} for {years} years|on the steps outside]."), say("The costs, about {cost}, are [shared with the city|carried by the club].", "{official.name}, who is in charge of sport at the town hall, put the cost at {cost}."), say("{club.coach.name}, who coaches {club.name}, [cared about one thing only|laughed]. “[Are the rims level?|I've coached in a barn, and we won there].”"), say("The building dates from {built} and holds {seats}.", "It was opened in {built}; {seats} people fit in when everyone breathes in."), say("{child.name}, who wipes the floor at games, [approves|has counted the steps]. “[I'm on television more than the centre].”")),
            weight=0.2, covered=0.08,
        ),
    ),
    share=0.4,
    rhythm=LEISURE,
)  # fmt: skip

JUNIORS = Beat(
    "youth basketball",
    _youth,
    (
        Stage(
            titles=("Youth basketball: {town} club {m.head}", "{town} basketball juniors: club {m.head}", "{c.demonym} youth club {m.head}", "Junior basketball club in {town} {m.head}"),
            abstracts=("{m.why}. {head.name} coaches the juniors in {town}.", "“{m.quote},” says {head.name}, youth coach in {town}.", "{m.detail} The club in {town} has {members} members."),
            leads=("The young basketball players of {town} are in the news: their club {m.news}.", "{m.why}. In {town}, that means: the basketball club {m.news}.", "The junior section of the basketball club in {town} {m.news}, {head.last} said {on}."),
            then=(say("“{m.quote},” said {head.last}.", "{head.last} [had a whistle in {head.his} mouth|was pumping up balls]. “{m.quote},” {head.he} said."),),
            loose=(say("{m.detail}"), say("“{m.other},” said {child.name}, [who is eleven|who is thirteen and plays guard|aged ten]."), say("The club has {members} members, [two thirds of them under sixteen|most of them children], and a budget of {cost}."), say("{official.name}, of the {c.demonym} federation, [welcomed it|will look into it]. “[Children are our only renewable resource|We write rules, they find the gaps],” {official.he} said."), say("{voice.name}, whose two children play there, [drives the minibus|washes the shirts]. “[I've learned the rules from the back seat|They sleep well, that's all I ask].”"), say("It was founded in {built}.", "One former junior now plays for {club.name}.")),
            weight=0.18, covered=0.06,
        ),
    ),
    share=0.4,
    rhythm=LEISURE,
)  # fmt: skip
