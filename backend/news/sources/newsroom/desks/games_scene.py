# ruff: noqa: E501 (prose reads better unbroken)
"""How the games desk covers those who play for money, those who make games, and what becomes of old ones."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from backend.news.sources.newsroom.beat import Beat, Scene, SpentError, Stage, say
from backend.news.sources.newsroom.desks.games_works import Studio, game_title, studio_pool
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import EVENING, OFFICE, ROUND
from backend.news.sources.newsroom.world import Country, Money, World


@dataclass(frozen=True)
class Squad:
    name: str
    country: Country
    city: City
    captain: Person
    star: Person
    coach: Person
    handle: str


@dataclass(frozen=True)
class Discipline:
    """A game played for money: what a match is made of (`unit`, 'map'), its `goal`, and a move spectators know."""

    name: str
    kind: str
    unit: str
    goal: str
    moves: tuple[str, ...]
    ground: tuple[str, ...]


_SQUADS = ("Granite Owls", "Velvet Storm", "Kraken Union", "Paper Tigers", "Northern Static", "Red Lantern", "Quiet Riot Club", "Iron Otters", "Zero Hour", "Salt Hounds", "Neon Monks", "Tidal Nine", "Copper Wasps", "Blackout Bay", "Silver Foxes United", "Late Train", "Hollow Kings", "Thunder Geese", "Glass Cannons", "Midnight Bakers")  # fmt: skip
_HANDLES = ("Mothman", "Tea Time", "Quill", "Nought", "Badger", "Snowdrift", "Octave", "Fidget", "Lemon", "Halfpint", "Vowel", "Kettle", "Static", "Minus", "Domino", "Parsnip", "Echo", "Ratchet", "Sundae", "Blink")  # fmt: skip
_GAMES = (
    Discipline("Citadel Six", "team shooter", "map", "defend two gates", ("a wall of smoke and a run through it", "a last stand with one bullet left", "a feint towards the east gate", "three kills through a closed door"), ("Foundry", "Old Harbour", "Monastery", "Cable Car", "Salt Mine")),
    Discipline("Riftkeepers", "strategy game", "game", "bring down the other side's tower", ("a stolen dragon", "a flank through the swamp", "a four-man ambush at the river", "a retreat that turned into a trap"), ("the northern lane", "the swamp", "the river", "the old gate")),
    Discipline("Turbo Rovers", "football game with cars", "game", "put a ball into a goal with a car", ("an overtime goal from the ceiling", "a save on the line by a flying wheel", "a pass off the back wall", "a double touch in mid-air"), ("the Aqua Dome", "the Night Arena", "the Salt Flats")),
    Discipline("Duel of Crowns", "fighting game", "set", "win three rounds out of five", ("a counter thrown in the last frame", "a perfect round", "a parry nobody thought possible", "a throw out of the corner"), ("the bridge stage", "the temple stage", "the rooftop stage")),
    Discipline("Hexfall", "card game", "game", "empty the opponent's deck", ("a bluff with an empty hand", "a card nobody had played in years", "a draw on the last turn", "a trap laid nine turns before"), ("the second deck", "the control deck", "the mirror match")),
)  # fmt: skip


_COACHES = (
    "We practised that for weeks and it worked twice",
    "I told them to breathe, and then I forgot to",
    "You could see they were tired; so were we, but we had bananas",
    "They read our book, so we wrote another one",
    "They are twenty years old and older than I am",
    "The plan lasted four minutes, and then talent took over",
    "I saw the gap on the second {d.unit} and kept quiet until the break",
    "We changed nothing but the order of speaking",
    "Nobody panicked, which is a new thing with us",
    "I have been hard on them this month, and I'll be nicer on Monday",
    "We slept well, that's the secret, eight hours and no telephones",
    "I used the break to talk about fishing",
    "They wanted to attack and I let them",
    "Our analyst found it in a match from two years ago",
    "It's a young team, and today the oldest of them was the calmest",
    "We bring a cook now, and I believe in the cook",
    "I'd have taken any result, so long as we played our own game",
    "We lost to them in practice nine times and kept the notes",
    "The first {d.unit} was ours on paper and they nearly tore it up",
    "I can't explain {winner.handle}, I only see that {winner.star.he} is fed",
    "They asked me what to do and I said: what would you do?",
    "There was one mistake, and I've already forgotten whose",
    "We trained with the sound off, so the crowd was a present",
    "I'd like to thank {loser.name} for a match that will make us better",
)  # fmt: skip
_LOSERS = (
    "I called the wrong side, and I heard it as I said it",
    "We were looking at the scoreboard",
    "It's a long bus ride, and nobody will talk until the border",
    "We lost it in the draft, before anybody had sat down",
    "They were better by a second everywhere",
    "Our hands were cold and our heads hot",
    "I'll watch it once, tonight, and then never again",
    "We had them where we wanted, and we wanted to be there too much",
    "The plan was fine; we didn't bring the team that it was for",
    "You can't give {winner.handle} that much room",
    "Somebody has to lose to a thing like that, and it was us",
    "We stopped talking to each other on the second {d.unit}",
    "I've no complaints, apart from the result",
    "I thought we had another minute",
    "They found the one weakness that we hadn't mentioned aloud",
    "It hurts more because we saw it coming",
    "We're out of the tournament and not out of ideas",
    "I let the others down in the opening, and it set the tone",
    "We played their game, at their speed, in their favourite place",
    "It's the third time they've done this to us, so I take it personally",
)  # fmt: skip
_STARS = (
    "I don't see the crowd, I hear it through the chair",
    "My wrists are insured and my sleep isn't",
    "My mother still thinks that I repair computers",
    "I knew where they would come from, don't ask me how",
    "I was nervous until the first click",
    "I've played that scene in my head on every tram ride",
    "It's not reflexes, it's having been there before",
    "I turned off my monitor in the break and counted tiles",
    "When it's loud I get slower, in a good way",
    "I'm only as good as the one who calls the plays",
    "I missed two easy ones, so let's not exaggerate",
    "I use my grandfather's desk, it's the right height",
    "A year ago I was watching this from the cheap seats",
    "I wanted to try it at least once on a big stage",
    "Somebody shouted my real name, and I nearly turned round",
    "The trick is to be bored at the right moment",
    "I'll eat something warm, and then we'll watch the next lot",
    "My hands knew it before I did",
    "I've retired twice and I'm twenty-three",
    "I had a bad week, so this is for the physiotherapist",
)  # fmt: skip
_FANS = (
    "He asked who the goalkeeper was, and at the end he was standing on the chair",
    "I've lost my voice and found four friends",
    "I play the same hero, only badly",
    "We came by night bus, and I'd do it again tomorrow",
    "I've got an exam in the morning and no regrets",
    "I cried, and my girlfriend filmed it",
    "The tickets cost less than a football match, and everyone says sorry when they push",
    "I knitted the scarf myself, before they changed the logo",
    "I've followed them since they played in a youth club",
    "My boss thinks I'm at the dentist's",
    "I explained it to the lady next to me, and she explained it to the next",
    "It's better at home for seeing, and better here for everything else",
    "I screamed into my neighbour's popcorn",
    "My heart rate was 160 sitting down, my watch says",
    "I brought my daughter, who is asleep",
    "I support the others, and I clapped anyway",
)  # fmt: skip
_CASTERS = (
    "I've run out of adjectives, and I'm paid in adjectives",
    "That's not in the manual",
    "I had a line ready for that and forgot it",
    "You'll see that again in every film about this year",
    "I've been doing this for nine years and stood up twice",
    "My co-commentator has left the room to walk it off",
    "That was a coin that landed on its edge",
    "It was ugly and it was brilliant, in that order",
    "I'd like the {d.unit} framed",
    "There's brave, there's foolish, and there's {winner.handle}",
    "I have checked the clock, and time did pass",
    "They'll be teaching that in schools, if schools have any sense",
    "Nobody in this hall knows how they survived that",
    "It was decided by a centimetre, and I'm being generous",
    "If you've just switched on, I am sorry for you",
)  # fmt: skip


def squads(world: World) -> tuple[Squad, ...]:
    rng = Random(f"{world.seed}:squads")
    found = []
    for name, handle in zip(_SQUADS, rng.sample(_HANDLES, len(_SQUADS)), strict=True):
        c = world.country(rng)
        found.append(
            Squad(
                name,
                c,
                rng.choice(c.cities),
                world.person(c, f"the captain of {name}", rng=rng),
                world.person(c, "", rng=rng),
                world.person(c, f"the coach of {name}", rng=rng),
                handle,
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class Match:
    d: Discipline
    winner: Squad
    loser: Squad
    won: int
    lost: int
    move: str
    second: str
    ground: str
    cup: str
    city: City
    crowd: int
    online: int
    prize: Money
    fan: Person
    caster: Person
    minutes: int
    next: Squad
    stage: str
    close: str | None
    clear: str | None
    coach_says: str
    loser_says: str
    star_says: str
    fan_says: str
    caster_says: str


def _match(scene: Scene) -> Match:
    pool = scene.world.kept("esports squads", lambda: squads(scene.world))
    d = scene.deal("discipline", _GAMES)
    for _ in range(40):
        winner, loser, following = scene.sample(pool, 3)
        try:
            scene.once("esports match", frozenset((winner.name, loser.name)))
            break
        except SpentError:
            continue
    else:
        raise SpentError("all squads have met")
    c = scene.country()
    won = scene.pick((2, 3))
    lost = scene.between(0, won - 1)
    move, second = scene.sample(d.moves, 2)
    return Match(d, winner, loser, won, lost, move, second, scene.pick(d.ground), scene.pick(("{} Masters", "{} Open", "{} Invitational", "{} Major")).format(c.capital), City(c.capital, c.name), scene.near(1_800, 19_000), scene.near(60_000, 900_000), scene.money(1e5, 2e6, c.currency), scene.person(c), scene.person(None), scene.between(48, 210), following,
                 scene.pick(("quarter-final", "semi-final", "final", "group match", "opening match")), "" if won - lost == 1 else None, None if won - lost == 1 else "", scene.deal("coaches", _COACHES), scene.deal("losers", _LOSERS), scene.deal("stars", _STARS), scene.deal("fans", _FANS), scene.deal("casters", _CASTERS))  # fmt: skip


ESPORTS = Beat(
    "esports",
    _match,
    (
        Stage(
            titles=("{winner.name} beat {loser.name} {won:fig}-{lost:fig} in {d.name} {stage}", "Esports: {winner.name} win {d.name} {stage} at {cup}", "{winner.star.family} leads {winner.name} past {loser.name} in {d.name}", "{close}{winner.name} edge out {loser.name} at {cup}", "{clear}{winner.name} sweep aside {loser.name} at {cup}", "{move:cap} decides {d.name} {stage} for {winner.name}"),
            abstracts=("{winner.name} won {won:fig}-{lost:fig} in front of {crowd} spectators in {city.name}.", "{move:cap} made the difference at the {cup}. About {online} people watched online.", "{close}The {stage} went to the last {d.unit}. {winner.star.name}, known as {winner.handle}, was the best player."),
            leads=("{winner.name} beat {loser.name} {won:fig}-{lost:fig} in the {d.name} {stage} of the {cup} {on}, [thanks to|after] {move}.", "{move:cap} [won|decided] the {stage} of the {d.name} tournament in {city.name} {on}: {winner.name} beat {loser.name} by {won:fig}-{lost:fig}.", "{close}It took {minutes} minutes and the last {d.unit}. Then {winner.name} had beaten {loser.name} {won:fig}-{lost:fig} in {d.name} at the {cup} {on}.", "{clear}{loser.name} had no answer {on}. {winner.name} won the {d.name} {stage} of the {cup} by {won:fig}-{lost:fig}.", "{winner.star.name}, who plays as {winner.handle}, carried {winner.name} to a {won:fig}-{lost:fig} win over {loser.name} in {d.name} at the {cup} {on}."),
            then=(say("{clear}On {ground}, it was [over quickly|never in doubt]: {winner.name} opened with {second}, and {loser.name} [never recovered|lost their nerve].", "{close}{loser.name} [were ahead|had a lead] on {ground} until {winner.handle} turned it round with {move}.", "The decisive scene came on {ground}: {move}, by {winner.handle}, with {loser.name} [looking the other way|one step too late].", "{winner.handle}, as {winner.star.name} is known to the crowd, [did most of the damage|was everywhere] on {ground}. {loser.name} answered once with {second}."),),
            loose=(say("“{coach_says},” said {winner.coach.last}.", "{winner.coach.last} [was hoarse|stayed calm|was brief]. “{coach_says},” {winner.coach.he} said."),
                   say("{loser.captain.last} [took the blame|looked for no excuses|was disappointed]. “{loser_says},” {loser.captain.he} said.", "“{loser_says},” said {loser.captain.last}."),
                   say("{winner.star.name} is from {winner.city.name} and [trains nine hours a day|learned the game from an elder sister|studies law on the side|used to be a goalkeeper]. “{star_says},” {winner.star.he} said.", "“{star_says},” said {winner.star.name}[ after the match| with a towel round the neck|]."),
                   say("Some {crowd} people were in the hall in {city.name}; {online} watched online.", "In the hall in {city.name}, {fan.name} [had painted a sign|stood in the last row|wore the colours of {winner.name}]. “{fan_says},” {fan.he} said.", "“{fan_says},” said {fan.name}, one of {crowd} spectators."),
                   say("The aim in {d.name}, a {d.kind}, is to {d.goal}[; this {stage} had everything|].", "“{caster_says},” said {caster.name}, who commentated.", "{caster.name}, the commentator, [was on {caster.his} feet|lost {caster.his} notes]. “{caster_says},” {caster.he} said."),
                   say("{winner.name} next meet {next.name}.", "The winners of the {cup} share {prize}.", "{next.name} are waiting in the next round.")),
            weight=0.3, covered=0.15,
        ),
    ),
    share=0.8,
    rhythm=EVENING,
)  # fmt: skip


@dataclass(frozen=True)
class Upheaval:
    """Trouble in a studio: `head` for titles, `news` a verb phrase in the present perfect, `why`, and what it leads to."""

    head: str
    news: str
    why: str
    quote: str
    reply: str
    detail: str
    then_head: str
    then_lead: str
    then_quote: str


_UPHEAVALS: tuple[Upheaval, ...] = (
    Upheaval("lays off {cut} game developers", "has dismissed {cut} of its {s.staff} employees", "its last game sold {small}0% fewer copies than planned", "They told us in a video call with the cameras off", "We grew for a boom that has ended", "Artists and testers are hit hardest. Those who go get {small} weeks' pay.", "Dismissed developers of {s.name} found their own game studio", "A group of developers dismissed by {s.name} {t0:on} has founded a studio of its own in {s.city.name}, they said {on}.", "We've got a cellar, nine computers and somebody's grandmother's carpet"),
    Upheaval("staff vote for a union", "has a union: {pct}% of employees voted in favour", "overtime before the last release had gone on for {small} months", "We love making games and would like to see our children while we do", "We respect the vote and would have preferred a talk", "It is among the first unions at a games studio in {s.country.name}.", "{s.name} and union agree on overtime", "{s.name} and its new union have agreed to limit overtime before a release, they said {on}.", "Crunch is over, it says here, and I have had it framed"),
    Upheaval("is bought for {sum}", "is being taken over by {rival.name} for {sum}", "its founders wanted to stop", "I kept the chair and sold the rest", "They make what we can't, and they do it on time, which we can't either", "The brand is to stay, and so are the {s.staff} employees, for {small} years at least.", "Founders leave {s.name} weeks after sale", "Both founders of {s.name} are leaving the studio, it said {on}, after its sale to {rival.name}.", "I'm going to make something small, with a beginning and an end"),
    Upheaval("closes after {years} years", "is closing after {years} years", "a publisher cancelled its game {small} months before it was finished", "We had the last level working on the day they rang", "The costs had run ahead of what anyone would pay", "All {s.staff} employees lose their jobs. A meeting in a pub has been announced.", "Unfinished game by closed studio {s.name} goes online", "The unfinished game of the closed studio {s.name} has been put online free of charge, its former employees said {on}.", "It has no ending, but then neither did we"),
    Upheaval("accused of copying a small studio's game", "is said to have copied a game by {rival.name}", "{rival.name} recognised its own spelling mistake in a menu", "They copied the bug as well, that's how we know", "Ideas are in the air", "Both games are about a courier. In each, the same shop sign is misspelt.", "{s.name} removes disputed game from shops", "{s.name} took a game out of shops {on} that {rival.name} calls a copy.", "We don't admit anything, and we have changed the sign"),
    Upheaval("under fire over loot boxes", "must remove chance purchases from its game for children", "a boy of {age} spent {fee} in an afternoon", "He thought it was pretend money, and so had I", "Parents can set limits in a menu", "The regulator calls such purchases gambling. In a test, the rarest item turned up once in {pct}00 tries.", "{s.name} refunds parents for chance purchases", "{s.name} will refund parents whose children bought loot boxes, the studio said {on}.", "The money is back, and he's grounded until the next version"),
    Upheaval("drops AI voices after actors protest", "will not use generated voices in its next game", "actors had recognised themselves in lines they never spoke", "I heard myself die, and I hadn't been there", "It was a test that went too far", "Actors in {s.country.name} are paid {fee} an hour for a game.", "Voice actors get say over AI copies at {s.name}", "{s.name} and voice actors signed an agreement {on}: copies need consent, each time.", "I've sold my voice three times and kept my no"),
    Upheaval("tries a four-day week, and a game comes out on time", "has finished a game in four-day weeks", "the studio measured that Fridays produced mostly bugs", "On Fridays we used to make Monday's work", "We thought it would cost us three months, and it saved one", "The number of faults fell by {pct}%, the studio says.", "More studios copy four-day week of {s.name}", "Another {small} studios in {s.country.name} will try a four-day week after the success of {s.name}, they said {on}.", "My cat has got used to Fridays, so there's no way back"),
    Upheaval("loses source code of its best-known game", "has lost the source code of {s.known_for}", "a server was thrown away in a move", "Somebody labelled the box kitchen", "It's embarrassing, and we'd be glad of any old disc", "A new edition for the anniversary had been announced.", "Lost source code of {s.name} found on intern's laptop", "The lost source code of {s.known_for} by {s.name} has turned up on a former intern's laptop, the studio said {on}.", "I'd kept it to show my mother"),
    Upheaval("raises the price of games to {dear}", "will charge {dear} for its next game", "costs have doubled within {small} years", "At that price I finish the ones I've got", "A film ticket per hour would be far dearer", "A large game now takes {s.staff} people and {small} years, the studio says.", "{s.name} lowers price of new game after protest", "{s.name} will sell its next game for less than announced, it said {on}.", "We've learned where the ceiling is by standing on a chair"),
    Upheaval("gives players the servers of a closed game", "has handed the servers of an old online game to its players", "{pct}0 people were still playing", "There are forty weddings on that server", "It was cheaper than the apology", "Players pay {fee} a month for the machine, out of a common purse.", "Old online game has record number of players", "The online game that {s.name} gave to its players {t0:on} has more players than in {years} years, they said {on}.", "We had to open a second village"),
    Upheaval("director quits over delay", "has parted with the director of its next game", "the game has been put off {small} times", "I wanted one more year and they wanted a date", "We are grateful and will miss the arguments", "The game has been worked on for {years} years.", "{s.name} names new director for long-delayed game", "The lead artist will finish the long-delayed game of {s.name}, the studio said {on}.", "I've hidden the calendar"),
    Upheaval("strikes gold with a game about {oddity}", "has sold a game about {oddity} {sold} times", "a streamer had played it by mistake", "We had planned for four hundred copies and a party", "I don't understand it, and I'm very happy for them", "It was made by {small} people in {years} weeks.", "After hit about {oddity}, {s.name} turns down offers", "{s.name} has turned down several offers to buy the studio since its hit about {oddity}, it said {on}.", "They wanted part two by the summer, and we want a holiday"),
    Upheaval("hacked: unfinished game leaks", "was robbed of {years} hours of film from an unfinished game", "an employee clicked on a parcel notice", "They've seen our game in its underwear", "Please don't watch it; it's like reading a diary", "The film shows grey boxes where houses are to stand.", "Leak of unfinished game: {age}-year-old questioned", "Police in {s.country.name} questioned a {age}-year-old {on} over the theft of film from {s.name}.", "He said that he couldn't wait, and I almost understand"),
)  # fmt: skip


@dataclass(frozen=True)
class Shake:
    u: Upheaval
    s: Studio
    rival: Studio
    dev: Person
    boss: Person
    union: Person
    analyst: Person
    player: Person
    cut: int
    small: int
    pct: int
    years: int
    age: int
    sum: Money
    fee: Money
    dear: Money
    oddity: str
    sold: str
    title: str


def _shake(scene: Scene) -> Shake:
    s = scene.fresh("studio shake", [one for one in studio_pool(scene) if one.staff >= 22])
    rival = scene.pick([one for one in studio_pool(scene) if one is not s])
    cur = s.country.currency
    return Shake(scene.fresh("upheaval", _UPHEAVALS), s, rival, scene.person(s.country), s.head, scene.person(s.country, "of the games workers' union"), scene.person(None, "who follows the games industry"), scene.person(s.country), max(9, int(s.staff * scene.rng.uniform(0.15, 0.35))), scene.between(3, 6), scene.between(54, 91), scene.between(9, 26), scene.between(10, 17),
                 scene.money(4e6, 3e8, cur), scene.money(60, 900, cur), scene.money(80, 95, cur), scene.pick(("ironing", "a lift attendant", "postmen in a snowstorm", "a goose at a wedding", "queueing", "moss")), f"{scene.tenth(0.4, 3.8)} million", game_title(scene))  # fmt: skip


UPHEAVALS = Beat(
    "game studios",
    _shake,
    (
        Stage(
            titles=("Games studio {s.name} {u.head}", "{s.name} {u.head}", "Video games: {s.name} {u.head}", "{s.city.name} games studio {s.name} {u.head}"),
            abstracts=("The reason: {u.why}. {u.detail}", "“{u.quote},” says a developer. The studio has {s.staff} employees.", "The studio, known for {s.known_for}, {u.news}."),
            leads=("The games studio {s.name}, known for {s.known_for}, {u.news}, it became known {on}.", "{s.name} of {s.city.name} {u.news}, the games studio said {on}. The background: {u.why}."),
            then=(say("“{u.quote},” said {dev.name}, who works there as a developer.", "{dev.name}, a developer, [told us about it in a café|chose the words with care]: “{u.quote}.”"), say("{boss.last} [put it differently|gave the studio's view]. “{u.reply},” {boss.he} said.", "“{u.reply},” said {boss.last}.")),
            loose=(say("{u.detail}"), say("Behind it is a plain fact: {u.why}.", "How it came about is quickly told: {u.why}."), say("{union.last} [sees a pattern|was not surprised]. “[Games earn more than films, and the people who make them rent rooms|Passion is a fine thing, and it has been used as a discount|It's a young trade with very old habits],” {union.he} said."), say("{analyst.last} [takes a longer view|kept to figures]. “[Two in three games never earn back their cost; the third pays for all|Everyone hired in the good year, and this is the bill|Players don't follow studios, they follow sequels],” {analyst.he} said."), say("{player.name}, a player, [has followed the studio for years|owns everything they made]. “[I just hope the servers stay on|Their games got me through a winter|I buy on the day, as a sort of tip],” {player.he} said."), say("{s.name} has {s.staff} employees in {s.city.name}. It is working on {title}.")),
            weight=0.4, covered=0.55,
        ),
        Stage(
            titles=("{u.then_head}", "Games: {u.then_head}"),
            abstracts=("“{u.then_quote},” says {dev.name}.", "{u.detail}"),
            leads=("{u.then_lead}",),
            then=(say("“{u.then_quote},” said {dev.name}, [a developer|one of those involved]."),),
            loose=(say("It had become known {t0:on} that the studio {u.news}."), say("{u.detail}"), say("“{u.reply},” {boss.last} had said."), say("{analyst.last} called it “[a footnote worth reading|good news by the standards of the trade]”."), say("{union.last} [welcomed it|wants more]. “[It starts with one studio|Write it down before they forget],” {union.he} said."), say("{player.name}, a player, [hopes for the best|was pleased]. “[I'll believe it when it has a release date|They deserve a bit of luck],” {player.he} said.")),
            after=(2, 6), weight=0.3, covered=0.35, chance=0.95,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Tale:
    head: str
    lead: str
    quote: str
    detail: str
    second: str
    reply: str
    who: str
    other: str


_TALES: tuple[Tale, ...] = (
    Tale("Video game record broken after {some} years, by a grandmother", "A woman of {old} in {city.name} has broken the speed record for a video game of her childhood", "My grandson held the stopwatch and stopped breathing", "She finished it in {small} minutes, two seconds faster than anybody.", "The record had stood for {some} years.", "She jumps where the rest of us duck", "the new record holder", "a former record holder"),
    Tale("Museum of video games opens in {city.name}", "A museum in {city.name} that collects video games opened its doors with {big} of them", "You may touch everything, which makes us the loudest museum in {c.name}", "The oldest machine dates from a university cellar. It still eats coins.", "Batteries in old cartridges are dying; volunteers replace {some} a week.", "My children asked where the touchscreen was, and I was moved", "the museum's founder", "a visitor"),
    Tale("School in {city.name} teaches history with strategy game", "Pupils at a school in {city.name} are replaying a peace congress in a strategy game", "They now know why nobody trusted anybody", "Each class plays a different country; messages are carried by runners in the corridor.", "In {small} of {some} games, the peace held.", "I had to stop two of them from signing a secret treaty in the lavatory", "the history teacher", "a pupil's father"),
    Tale("Lost video game found in attic after {some} years", "The only copy of a video game that was never sold has turned up in an attic in {city.name}", "It was under the Christmas things, in a bread bin", "Of {small} copies made, {small} were thought destroyed.", "It is about a plumber, a duck and a tax return.", "It's not good, and it's priceless", "who found it", "a collector"),
    Tale("Chess streamer, {young}, draws with grandmaster in {c.capital}", "A schoolgirl of {young} who plays chess for an online audience drew with a grandmaster in {c.capital}", "He offered me his hand and I nearly offered him mine back with a rook in it", "The game lasted {some} moves. Some {big} people watched.", "She learned the game from her bus driver.", "She plays like someone who doesn't know what's impossible, and I checked: it isn't", "her coach", "the grandmaster"),
    Tale("Players rebuild {city.name} in a game, brick by brick", "Some {some} volunteers have rebuilt all of {city.name} inside a building game", "The town hall took nine weeks, and they've just repainted the real one", "They counted {big} windows on foot.", "The planning office now uses the model.", "I found my window, with my curtains, and the light on", "who started the project", "a resident"),
    Tale("Hospital in {city.name} prescribes video game for hand injuries", "Surgeons in {city.name} let patients with injured hands practise with a video game", "Nobody does a hundred finger bends for me, but they'll do it for a dragon", "Patients practised for {some} minutes a day instead of {small}.", "The controller was built in the hospital's own workshop.", "I can hold a cup again, and I'm on level {some}", "a hand surgeon", "a patient"),
    Tale("Game without players runs on: {some} years of rain in empty world", "An online game that nobody has played for years is still running on a server in {city.name}", "I logged in, and a shopkeeper said he had missed me", "The server stands in a cupboard of a telephone company.", "Trees have grown over the roads, as programmed.", "It's the loneliest place I know, and I've been back twice", "who found it", "a historian of games"),
    Tale("Blind player reaches top rank of fighting game", "A blind player from {city.name} has reached the top rank of a fighting game, by ear", "Every kick has its own note, and people are louder than they think", "Of the last hundred matches, {pct} were won.", "The makers have added {small} new sounds at the player's request.", "I was beaten in nine seconds, and I wanted to apologise for my noise", "the player", "a beaten opponent"),
    Tale("Police in {city.name} solve theft of {some} arcade machines", "Police in {city.name} have recovered {some} arcade machines stolen from a seaside pier", "We had to test them, for evidence", "The machines stood in a barn, plugged in and dusted.", "A farmer's electricity bill gave the thief away.", "High scores were intact, I checked that first", "a police officer", "who owns the arcade"),
    Tale("Card worth more than a house sold at auction in {c.capital}", "A trading card with a misprint fetched {dear} at an auction in {c.capital}", "I'd used it as a bookmark, in a cookery book", "The dragon on it has five legs. Only {small} such cards are known.", "Bidders from {small} countries took part.", "The fifth leg is the expensive one", "the seller", "the auctioneer"),
    Tale("Retirement home in {city.name} wins bowling league, on the sofa", "A retirement home in {city.name} has won a national league in a bowling video game", "We train after lunch and before the news", "The average age of the team is {old}.", "In the final they beat a student hall.", "They talked us to death and then bowled a strike", "the team's captain", "a beaten student"),
    Tale("Father builds controller for son with one hand", "A mechanic in {city.name} has built a game controller for his son and put the plans online", "He beats me now, so I may take it back", "It is made from a bicycle brake and {small} buttons.", "Some {big} families have downloaded the plans.", "Mine arrived on a Tuesday and she hasn't looked up", "the father", "a mother who copied the design"),
    Tale("Orchestra in {city.name} sells out with video game music", "The orchestra of {city.name} sold out {small} evenings with music from video games", "They cheered after four bars, which happens to no symphony", "The average listener was {some} years old; at other concerts it is {old}.", "The trombones got a sound effect as a solo.", "I held my phone to my ear so that my brother could hear the boss fight", "the conductor", "a listener"),
    Tale("Bug in old game solved after {some} years", "Programmers in {city.name} have explained a fault in a video game that had puzzled players for {some} years", "It was a comma", "On every 29th of February, a door would not open.", "The original programmer, now {old}, confirmed it by letter.", "I stood at that door as a child, and again this year", "who found the fault", "a player"),
    Tale("Village of {some} people hosts {big} gamers", "A village in {region} doubled its population {small} times over for a weekend of games in barns", "They're polite, they're pale and they eat everything", "The fire brigade laid {km} kilometres of cable.", "The power failed once, during a final.", "I taught one of them to milk, and he has my number", "the mayor", "a farmer"),
)  # fmt: skip


@dataclass(frozen=True)
class Story:
    t: Tale
    c: Country
    city: City
    region: str
    who: Person
    other: Person
    expert: Person
    local: Person
    some: int
    old: int
    young: int
    small: int
    big: int
    pct: int
    km: int
    dear: Money


def _story(scene: Scene) -> Story:
    t = scene.fresh("game tale", _TALES)
    c = scene.country()
    she = True if t.who == "the new record holder" else False if t.who == "the father" else None
    return Story(t, c, scene.fresh("tale city", c.cities), scene.pick(c.land.regions), scene.person(c, t.who, she=she), scene.person(c, t.other), scene.person(None, scene.pick(("who studies games", "a games journalist", "an archivist of games", "who teaches game design"))), scene.person(c), scene.between(21, 39), scene.between(68, 84), scene.between(10, 15), scene.between(3, 9), scene.near(2_000, 60_000), scene.between(61, 94), scene.between(11, 40), scene.money(9e4, 6e5, c.currency))  # fmt: skip


TALES = Beat(
    "game culture",
    _story,
    (
        Stage(
            titles=("{t.head}", "Games: {t.head:lower}"),
            abstracts=("{t.detail} {t.second}", "“{t.quote},” says {who.name}.", "{t.second}"),
            leads=("{t.lead}, it became known {on}.", "{t.lead}.", "“{t.quote}.” With these words {who.name} of {city.name} sums up a story that began as a joke. {t.lead}."),
            then=(say("{t.detail}"), say("{t.second}")),
            loose=(say("“{t.reply},” said {other.last}.", "{other.last} [agrees|laughed]. “{t.reply},” {other.he} said."), say("“{t.quote},” said {who.last}.", "{who.last} [still can't quite believe it|tells it drily]: “{t.quote}.”"), say("{expert.last} [is not surprised|sees more in it]. “[Games are where people now keep their time|We archive films and throw away what our children remember|Nobody laughs at chess clubs any more, so give it ten years],” {expert.he} said.", "“[Play is the oldest thing we do, and the paperwork came later|It's always the odd cases that tell you what a medium is for],” said {expert.last}."), say("{local.name}, a neighbour, [takes it calmly|looked in]. “[As long as they don't shout after ten|I came to complain and stayed for a round],” {local.he} said.", "In {city.name}, [people are proud|it's the talk of the market]. “[We had been known for a bypass|My nephew explained it to me, twice],” said {local.name}, who [runs a kiosk|drives a taxi].")),
            weight=0.3, covered=0.6,
        ),
    ),
    share=0.5,
    rhythm=ROUND,
)  # fmt: skip
