# ruff: noqa: E501 (prose reads better unbroken)
"""How the film desk covers what runs in the cinemas: reviews, the box office and the picture houses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.news.sources.newsroom.beat import Beat, Scene, SpentError, Stage, say
from backend.news.sources.newsroom.desks.film_matters import HOUSES, House
from backend.news.sources.newsroom.desks.film_slate import Film, Script, slate
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City, Currency
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE, moment_on
from backend.news.sources.newsroom.world import Country, Money


def films(scene: Scene) -> tuple[Film, ...]:
    return scene.world.kept("film slate", lambda: slate(scene.world))


@dataclass(frozen=True)
class Review:
    f: Film
    s: Script
    camera: Person
    composer: Person
    stars: int
    shot: int
    age: int
    look: str
    play: str
    second_part: str
    good: str | None
    mixed: str | None
    bad: str | None


_LOOKS = (
    "on grainy stock in the last hour of daylight", "with a hand-held camera that never shows off", "in long takes, few of them moving", "in a palette of wet slate and mustard", "almost wholly in close-up",
    "from the height of a child", "through windows, mirrors and half-open doors", "in black and white, for no reason except that it looks right", "with one lens for the whole film", "under street lamps and nothing else",
    "so dark that one leans forward", "in a square frame that squeezes everybody", "in wide shots in which people are small and furniture is large", "with the sun in the lens and dust in the sun", "like a news report that has lost its reporter",
    "in autumn, and you can smell it", "with fixed cameras, as if the place were being watched", "in four seasons, on a year's patience",
)  # fmt: skip
_PLAYS = (
    "with a stillness that makes everyone else look busy", "as a person who has rehearsed every sentence and forgets them", "without once asking to be liked", "with shoulders that tell the story before the mouth does", "like somebody carrying a full glass",
    "with comic timing one would not have guessed at", "in a voice worn down to its grain", "as if listening to another film in the next room", "with a smile that arrives a second late", "so plainly that it takes an hour to see how much is going on",
    "with rage kept in a drawer", "as a coward with excellent manners", "with the tired grace of a waiter at closing time", "all elbows and apology", "with eyes that do sums",
    "as though each line cost money", "in what must be half the usual number of words", "with a walk one could pick out of a crowd",
)  # fmt: skip
_SECONDS = ("a sibling who says what nobody wants to hear", "a rival with better shoes", "a neighbour who knows too much", "an old friend who wants a favour", "a clerk of impressive rudeness", "the only grown-up in the story", "a doctor who drinks", "a stranger with a map", "a boss who cries easily", "a policeman on his last week", "an in-law with opinions", "a lodger behind with the rent")  # fmt: skip


def _review(scene: Scene) -> Review:
    f = scene.fresh("film review", films(scene), uses=2)
    stars = scene.pick((1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5))
    return Review(f, f.script, scene.person(None), scene.person(None), stars, scene.between(24, 68), scene.between(29, 71), scene.pick(_LOOKS), scene.pick(_PLAYS), scene.pick(_SECONDS),
                  "" if stars >= 4 else None, "" if stars == 3 else None, "" if stars <= 2 else None)  # fmt: skip


REVIEW = Beat(
    "film reviews",
    _review,
    (
        Stage(
            titles=(
                "{f.name} review – {s.kind} with {s.scene}", "Film review: {f.name}, a {s.kind} by {f.director.last}", "{good}{f.lead.last} shines in {s.kind} {f.name}", "{good}{f.name}: {stars:count star} for a {s.kind} in which {s.praise}",
                "{bad}{f.name} review – {s.kind} sinks [under its own weight|without trace]", "{bad}Not even {f.lead.last} can save {f.name}, a {s.kind} about {s.who}", "{mixed}{f.name} film review: fine {s.kind}, but {s.fault}", "{mixed}{f.director.last}'s {f.name} is half a great {s.kind}",
                "In cinemas now: {f.name}, {f.director.last}'s {s.kind} about {s.who}", "{good}{f.director.last}'s {s.kind} {f.name} is the film of the month",
            ),
            abstracts=(
                "{s.who:cap} {s.plot}: {f.director.name:s} {f.nth:ord} film runs for {f.minutes} minutes. Rating: {stars} out of five.", "{good}{f.lead.name} {f.part} {play}, and {s.praise}.", "{mixed}There is much to like in {f.director.name:s} film, though {s.fault}. {stars:count star}.",
                "{bad}{f.director.name} had a fine idea, and {s.fault}. {stars} out of five.", "A {f.country.demonym} {s.kind} with {s.scene}, shot {look}.", "{good}“{s.praise:cap}”: why {f.name} is worth {f.minutes} minutes of anybody's evening.", "{bad}{f.lead.name} deserved better than this {s.kind} from {f.country.name}.",
            ),
            leads=(
                "{good}{s.who:cap} {s.plot}. That is the whole of {f.name}, the {f.nth:ord} film by {f.director.name}, and it is plenty.", "{bad}{s.who:cap} {s.plot}. That is the whole of {f.name}, the {f.nth:ord} film by {f.director.name}, and it lasts {f.minutes} minutes.",
                "{good}The image one takes home from {f.name} is {s.scene}. It comes {shot} minutes into this {s.kind} by {f.director.name}, and the film never loses its nerve afterwards.", "{mixed}The image one takes home from {f.name} is {s.scene}. It comes {shot} minutes into this {s.kind} by {f.director.name}, and nothing later quite matches it.",
                "{bad}Somewhere in {f.name} there is {s.scene}. Around it lies a {s.kind} by {f.director.name} that [has run out of road|can't decide what it is|was finished in a hurry].", "{f.director.name} shot {f.name} {look}. It is a {s.kind}, in which {s.who} {s.plot}.",
                "{good}{f.lead.name} {f.part} in {f.name} {play}. One could watch that alone for {f.minutes} minutes, but {f.director.name:s} {s.kind} has more to offer.", "{mixed}For about {shot} minutes, {f.name} is the best {s.kind} of the year. Then it goes on.", "There are easier things to film than {s.scene}. {f.director.name}, in a {s.kind} called {f.name}, makes it look [natural|like the simplest thing in the world].",
                "How does one make a {s.kind} in which {s.who} {s.plot}? {f.director.name:s} answer, {f.name}, is shot {look}.",
            ),
            then=(
                say(
                    "{f.lead.name} {f.part}, {play}. Opposite, {f.second.name} makes [something real|the most] of {second_part}.", "As {second_part}, {f.second.name} [steals two scenes and borrows a third|has the better lines]; {f.lead.name}, in the lead, acts {play}.", "Most of it rests on {f.lead.name}, [aged {age}|{age} this year|who at {age} has never been better used], who acts {play}.",
                    "The cast is [led|headed] by {f.lead.name}, {play}[, with {f.second.name} as {second_part}|].", "{bad}{f.lead.name} acts {play}, [to no avail|as if the script were better], and {f.second.name} is wasted as {second_part}.", "{good}Between {f.lead.name} and {f.second.name}, who plays {second_part}, there is [electricity|a whole history in half a page]; {f.lead.he} acts {play}.",
                    "{f.second.name} turns up as {second_part} after {shot} minutes. Until then it is all {f.lead.name}, {play}.",
                ),
                say(
                    "{good}What lifts it is that {s.praise}. If one must complain: {s.fault}.", "{good}Above all, {s.praise}[. And when, near the end, {s.fault}, it costs the film next to nothing|].", "{good}One may object that {s.fault}. One will do so on the way home, and quietly.", "{mixed}At its best, {s.praise}. At its worst, {s.fault}.", "{mixed}So {s.praise}; on the other hand, {s.fault}. It is a matter of what one came for.",
                    "{mixed}It has to be said that {s.fault}. It also has to be said that {s.praise}.", "{bad}One can see what was meant: now and then {s.praise}. For the most part {s.fault}.", "{bad}The trouble begins early: {s.fault}. And when {f.director.last} finds {f.director.his} feet, the credits are near.", "{bad}That {s.praise} is true of three scenes. Of the others it is true that {s.fault}.",
                ),
            ),
            loose=(
                say("{camera.name}, behind the camera, has filmed it {look}.", "It is shot, by {camera.name}, {look}[, which suits a {s.kind}|].", "Shooting {look}, {camera.name} gives this {s.kind} [a face|an air] of its own.", "The eye behind {f.name} is that of {camera.name}, who filmed it {look}.", "{camera.name:s} pictures, taken {look}, [do more than the words|earn their keep]."),
                say("“[I wanted to make a film that my father would not fall asleep in|We cut a third and nobody has missed it|I don't believe in messages, I believe in doors|The producers asked for hope, so I gave them a window|I have never understood what a character arc is],” {f.director.last} said [at the premiere|after a first screening] in {f.country.capital}.",
                    "{f.director.last}, who [came to film from television|used to drive a taxi|was an editor for ten years|studied law], has said {f.director.he} wrote it [in nine days|on trains|twice, having lost the first version]. “[The second time, I knew what to leave out|You can't write waiting, you have to wait|I had the last scene and worked backwards].”",
                    "Asked in {f.country.capital} why there was {s.scene}, {f.director.last} [laughed|sighed]. “[Because I could see it, and nothing else|It was the only day on which we had money|We had permission for one morning, so I used the morning].”",
                    "“[The first cut was four hours, and only my mother liked it|Every film is a building site and this one had good workers|I'd shoot it again tomorrow, differently],” {f.director.last} told an audience in {f.country.capital}."),
                say("The music, by {composer.name}, [stays out of the way|is mostly a clarinet|knows when to stop|sounds like pipes in an old house].", "{composer.name} has written a score for [strings and a typewriter|two pianos|accordion and wind|voices only], [and uses it sparingly|some of it lovely].", "{bad}{composer.name:s} music tells us what to feel, [loudly|and when].", "[Of music there is little|The film does mostly without music]; what {composer.name} has written [lasts|arrives late].", "{composer.name:s} music sounds, in a {s.kind}, [oddly cheerful|just right|like a visitor from another film].", "After {shot} minutes comes the first music, by {composer.name}, [and one notices its absence in hindsight|and it is worth the wait]."),
                say("{f.studio} is releasing it [with a lot of posters|without much noise|in the larger cities first].", "The film runs for {f.minutes} minutes and [opens this week|is in cinemas now].", "It cost little by the standards of {f.studio}, [and shows it in the right places|which financed it together with two broadcasters].", "{f.name}, produced by {f.studio}, was made in {f.country.name}."),
            ),
            close=(say(
                "{good}[Go|See it], and [sit close to the screen|don't read any more about it first|leave the telephone at home].", "{good}A {s.kind} like this comes along [once a year|too seldom].", "{mixed}[Worth|It is worth] an evening[, with reservations|], if only for {s.scene}.", "{mixed}{stars:count star}, then, and a wish: that {f.director.last} had trusted {f.lead.last} more.",
                "{bad}{f.lead.last} will make better films. So, one hopes, will {f.director.last}.", "{bad}One leaves wondering what {s.who} would have made of it.", "{bad}There is a short film in here, and it contains {s.scene}.", "{good}It ends, unlike most films of {f.minutes} minutes, [too early|before one wants it to].", chance=0.75),),
            weight=0.25, covered=0.14,
        ),
    ),
    share=1.1,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Takings:
    f: Film
    s: Script
    c: Country
    two: Film
    three: Film
    gross: Money
    two_gross: Money
    three_gross: Money
    again: Money
    total: Money
    cost: Money
    screens: int
    drop: int
    sold: Money
    weeks: int
    analyst: Person
    manager: Person
    usher: Person
    town: str
    hit: str | None
    flop: str | None
    legs: str | None
    slump: str | None
    weather: str
    times: tuple[datetime, ...]


def _weekend(scene: Scene) -> tuple[datetime, Country]:
    """A Monday before now, likelier that of the scene, and a country whose weekend nobody has reported."""
    monday = scene.start - timedelta(days=scene.start.weekday())
    for days in (0, -7, 7):
        day = monday + timedelta(days=days)
        if day <= scene.world.now:
            with suppress(SpentError):
                return day, scene.country(f"box office {day:%F}")
    raise SpentError("every country's box office has been reported")


def _takings(scene: Scene) -> Takings:
    monday, c = _weekend(scene)
    f = scene.fresh(f"box office film {monday:%F}", films(scene))
    two, three = scene.sample([film for film in films(scene) if film is not f], 2)
    hit = scene.chance(0.65)
    legs = scene.chance(0.4)
    gross = scene.money(1.9e6, 9.5e6, c.currency) if hit else scene.money(2.4e5, 8e5, c.currency)
    drop = scene.between(9, 21) if legs else scene.between(44, 67)
    again = gross.times(1 - drop / 100)
    above = gross.times(scene.rng.uniform(1.3, 2.2))
    return Takings(
        f, f.script, c, two, three, gross, gross.times(scene.rng.uniform(0.5, 0.85)) if hit else above, gross.times(scene.rng.uniform(0.25, 0.45)) if hit else gross.times(scene.rng.uniform(1.08, 1.25)),
        again, Money(gross.amount * 1.4 + again.amount, c.currency).times(1), gross.times(scene.rng.uniform(1.4, 3.2)) if hit else gross.times(scene.rng.uniform(9, 19)), scene.near(90, 640), drop,
        Money(gross.times(1 / scene.rng.uniform(8.5, 11.5)).amount, Currency()), scene.between(3, 11), scene.person(c), scene.person(c), scene.person(c), scene.pick(c.cities).name, "" if hit else None, None if hit else "", "" if legs else None, None if legs else "",
        scene.pick(("a wet weekend", "an early thaw", "the school holidays", "a bus strike", "a cup final on television", "two days of storm", "a long weekend", "a heat that nobody had ordered")),
        (moment_on(monday, OFFICE, scene.rng), moment_on(monday + timedelta(days=7), OFFICE, scene.rng)),
    )  # fmt: skip


BOX_OFFICE = Beat(
    "box office",
    _takings,
    (
        Stage(
            titles=(
                "{hit}{f.name} tops {c.demonym} box office with {gross}", "{hit}Box office: {s.kind} {f.name} takes {gross} in first weekend in {c.name}", "{hit}{c.demonym} cinemas fill for {f.name}, a {gross} opening", "{hit}{f.name} beats {two.name} at the {c.demonym} box office",
                "{flop}{f.name} flops at {c.demonym} box office with {gross}", "{flop}Box office: empty seats for {s.kind} {f.name} in {c.name}", "{flop}{two.name} stays ahead at {c.demonym} box office as {f.name} stumbles", "{flop}{cost} film {f.name} opens to {gross} in {c.name}",
            ),
            abstracts=(
                "{hit}The {s.kind} by {f.director.name} sold about {sold} tickets on {screens} screens. {two.name} came second with {two_gross}.", "{hit}{weather:cap} helped: {f.studio} reports {gross} for {f.name} in {c.name}.", "{flop}The {s.kind} with {f.lead.name} cost {cost} and took {gross} on {screens} screens.", "{flop}{two.name} leads with {two_gross}; {f.name} is not even third.",
                "{f.name}, in which {s.who} {s.plot}, took {gross} between Thursday and Sunday.", "{hit}{c.demonym} box office: {f.name} {gross}, {two.name} {two_gross}, {three.name} {three_gross}.",
            ),
            leads=(
                "{hit}{f.name} was the most-watched film in {c.demonym} cinemas at the weekend, with takings of {gross} on {screens} screens, its distributor, {f.studio}, said {on}.", "{hit}A {s.kind} in which {s.who} {s.plot} has gone straight to the top of the box office in {c.name}: {f.name} took {gross} from Thursday to Sunday.",
                "{hit}{weather:cap} and good word of mouth sent {c.demonym} audiences to {f.name}, which opened with {gross}, figures published {on} show.", "{flop}{f.name}, a {s.kind} that cost {cost}, took no more than {gross} in its first weekend in {c.name}, figures published {on} show.",
                "{flop}Rows of empty seats greeted {f.name} in {c.name}. The {s.kind} with {f.lead.name} took {gross} on {screens} screens, [less than two films that have been out for weeks|too little for the top three].", "{flop}The box office in {c.name} had bad news for {f.studio} {on}: {gross} for {f.name}, on which {cost} had been spent.",
                "{hit}Some {sold} people in {c.name} bought a ticket for {f.name} at the weekend, which makes the {s.kind} by {f.director.name} number one.",
            ),
            then=(
                say("{hit}{two.name}, in its {weeks:ord} week, came second with {two_gross}, ahead of {three.name} with {three_gross}.", "{hit}Second place went to {two.name} ({two_gross}), third to {three.name} ({three_gross}).", "{hit}Behind it follow {two.name}, a {two.script.kind}, with {two_gross} and {three.name}, a {three.script.kind}, with {three_gross}.", "{flop}{two.name}, out for {weeks} weeks already, stayed first with {two_gross}. {three.name} made {three_gross}.", "{flop}{two_gross} for {two.name} and {three_gross} for {three.name} were enough for the first two places."),
                say("{hit}“[People will leave the house if you give them a reason|It's a film you can explain in one sentence, so people do|Nobody saw it coming, and that includes us],” said {manager.name}, who runs a cinema in {town}.", "{hit}{manager.name}, [the manager of a cinema|who has three screens] in {town}, put on [two extra shows|a late show at midnight]. “[We ran out of ice cream on Friday|I sold standing room, don't print that|I haven't seen the car park full since spring],” {manager.he} said.",
                    "{flop}“[I had eleven people in a hall for three hundred, and two had come in from the rain|They asked for their money back, politely|The trailer showed everything and the poster showed nothing],” said {manager.name}, who runs a cinema in {town}.", "{flop}{manager.name}, who has booked {f.name} for {weeks} weeks in {town}, [will honour the contract|is moving it to the small hall]. “[The popcorn did better than the film|My usher learned a language in there],” {manager.he} said."),
            ),
            loose=(
                say("{hit}{analyst.name}, who counts tickets for the trade, [called it|spoke of] “[the best start for a {s.kind} in years|a proper hit, of the kind that pays for five others|proof that reviews still matter]”.", "{flop}{analyst.name}, who tracks the market, blamed “[a bad date|three films fishing in one pond|a title that says nothing]”[, and {weather}|].", "Over all, takings in {c.name} were [up|down] on last year, said {analyst.name}, an observer of the trade, who put it down to {weather}."),
                say("{hit}The film cost about {cost}; {f.studio} [should be in profit within a month|can relax].", "{flop}To break even, {f.studio} would need [many times that|a miracle or foreign sales].", "{f.director.name}, the director, made it for about {cost} in {f.country.name}."),
                say("{f.lead.name}, who leads the cast, [had toured {c.name} for a week|had given interviews until the last evening]. “[I shook four hundred hands|You never know, and people who say they know are selling something],” {f.lead.he} said before the start.", "“[I stood at the back in {town} and watched people's necks|I don't look at figures until Tuesday],” {f.director.last} said."),
                say("{usher.name}, an usher in {town}, noted that people [stayed for the credits|came out talking|came out quiet|asked what else was on].", "“[Three generations in one row, that's rare|They laughed where they shouldn't|Half of them had seen it before],” said {usher.name}, who tears tickets in {town}."),
                say("The film opened on {screens} screens.", "With {screens} screens, {f.name} had [one of the widest releases of the season|a modest release].", "{hit}On {screens} screens, that comes to [a healthy|a respectable] average."),
            ),
            weight=0.28, covered=0.15,
        ),
        Stage(
            titles=(
                "{legs}{f.name} holds on at {c.demonym} box office, down just {drop}%", "{legs}Second weekend at the box office: {f.name} takes another {again} in {c.name}", "{slump}{f.name} loses {drop}% in second weekend at {c.demonym} box office", "{slump}{c.demonym} box office: {f.name} fades to {again}",
                "{f.name} reaches {total} at box office in {c.name}",
            ),
            abstracts=("After {again} in its second weekend, {f.name} has made {total} in {c.name}.", "{legs}The {s.kind} lost {drop}% of its audience; most films lose half.", "{slump}A fall of {drop}% within a week. {f.studio} had hoped for better."),
            leads=(
                "{legs}{f.name} has found its public in {c.name}: the {s.kind} took {again} in its second weekend, {drop}% less than in its first, according to figures published {on}.", "{slump}Takings for {f.name} fell by {drop}% to {again} in its second weekend in {c.name}, the trade reported {on}.",
                "In ten days, {f.name} has earned {total} in {c.name}, {f.studio} said {on}. The second weekend brought {again}.",
            ),
            then=(say("{legs}“[Aunts are telling nieces, and that is worth more than posters|A drop like that isn't a drop, it's a draught],” said {analyst.name}, who counts tickets for the trade.", "{slump}“[Everybody who wanted to see it has seen it|First weekends can be bought, second ones can't],” said {analyst.name}, who follows the trade.", "{legs}{manager.name}, who runs a cinema in {town}, is keeping it on for {weeks} more weeks. “[They come in pairs and go out in arguments|My Monday is as good as my Friday].”", "{slump}In {town}, {manager.name} has taken {f.name} off the big screen. “[I need the hall for a film with an audience|It was fun for a week],” {manager.he} said."),),
            loose=(
                say("It had opened with {gross}.", "The first weekend, reported {t0:on}, had brought {gross}.", "A week ago, on {screens} screens, the figure had been {gross}."), say("{two.name} and {three.name} are still in the top five.", "{two.name}, a {two.script.kind}, [was not far behind|came close].", "Newcomers [made little impression|will test it next week]."),
                say("{f.director.name} is [already at work on another film|writing, {f.director.he} says, “something with fewer people”].", "{f.lead.name}, who plays the lead, said {f.lead.he} had watched it in {town} [from the last row|with {f.lead.his} parents]. “[They were quiet in the right places|One man left; I followed him out; he had a train].”"), say("The {s.kind}, in which {s.who} {s.plot}, cost about {cost}.", "It was made for about {cost} in {f.country.name}."),
                say("{usher.name}, an usher in {town}, has seen it [nine|six|fourteen] times. “[I could prompt|I still look away once].”", "{weather:cap} [had an effect in the larger cities|made the comparison difficult], exhibitors said."),
            ),
            weight=0.22, covered=0.08, chance=0.8,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Hall:
    name: str
    city: City
    c: Country
    h: House
    owner: Person
    guest: Person
    official: Person
    seats: int
    opened: str
    years: int
    owners: int
    price: Money
    screens: int


_HOUSE_NAMES = ("Rialto", "Odeum", "Astra", "Lichtburg", "Palace", "Eldorado", "Capitol", "Scala", "Apollo", "Lux", "Excelsior", "Metropol", "Kosmos", "Alhambra", "Tivoli", "Orpheum", "Rex", "Aurora", "Luna", "Select", "Studio Nine", "Urania", "Regent", "Filmeck", "Corso", "Gloria", "Panorama", "Colosseum", "Roxy", "Bijou", "Arcadia", "Ritz")  # fmt: skip


def _hall(scene: Scene) -> Hall:
    c = scene.country()
    return Hall(f"the {scene.fresh('cinema name', _HOUSE_NAMES)}", scene.fresh("cinema town", c.cities), c, scene.fresh("cinema matter", HOUSES, uses=2), scene.person(c, "the owner"), scene.person(c), scene.person(c),
                scene.between(84, 620), str(scene.between(1911, 1968)), scene.between(11, 38), scene.near(1_900, 2_140), scene.money(7, 14, c.currency), scene.between(1, 4))  # fmt: skip


CINEMAS = Beat(
    "cinemas",
    _hall,
    (
        Stage(
            titles=("{city.name} cinema {h.head}", "Cinema: {name} in {city.name} {h.head}", "{name:cap}, a cinema of {opened}, {h.head}", "{city.name}: old cinema {h.head}"),
            abstracts=("{h.why}. {owner.name} runs the house in {city.name}.", "“{h.quote},” says {owner.name}, who runs {name}.", "{h.detail} {name:cap} has stood in {city.name} since {opened}."),
            leads=(
                "{name:cap}, a cinema in {city.name} with {seats} seats, {h.news}, {owner.last} said {on}.", "The cinema that everybody in {city.name} calls {name} {h.news}. {h.why}.", "{h.why}. The result, announced {on}: {name}, a cinema in {city.name}, {h.news}.",
                "Since {opened} there has been a cinema called {name} in {city.name}. It {h.news}.",
            ),
            then=(say("“{h.quote},” said {owner.last}[, who took the house over from an uncle|, who sells the tickets as well|].", "{owner.last} [is cheerful about it|has little time to talk]. “{h.quote},” {owner.he} said between two screenings."),),
            loose=(
                say("{h.detail}"), say("“{h.other},” said {guest.name}, [who has been going to {name} since childhood|who lives round the corner|waiting in the queue].", "{guest.name}, a regular in the [fourth|second|last] row, is not so sure. “{h.other}.”"), say("{name:cap} opened in {opened}. It has {screens:count screen} and {seats} seats; a ticket costs {price}.", "A ticket at {name} costs {price}. The house, built in {opened}, has {seats} seats."),
                say("{official.name}, who [looks after culture for|sits on the council of] {city.name}, said the town would “[help where it can|lose more than a screen if it closed|not spend money it does not have]”.", "The city's arts officer, {official.name}, [was at the till in person|had not been told]. “[I come for the previews|A town without a cinema goes to bed early],” {official.he} said."),
                say("Of the {years} cinemas that {city.name} and its surroundings once had, [three|four|five] are left.", "In {c.name} as a whole, the number of screens has [fallen slightly|hardly changed] in five years, according to the trade.", "{c.demonym} cinemas sold [more|fewer] tickets last year than the year before, though [small houses did better than large ones|the provinces did better than {c.capital}]."),
                say("Tonight's film has [nineteen|forty|eleven] bookings so far.", "This week {name} is showing [a western and a cartoon|three films, one of them silent|a season of old comedies].", "[Outside, somebody was changing the letters above the door|The foyer smelled of floor polish and caramel]."),
            ),
            weight=0.2, covered=0.08,
        ),
    ),
    share=0.45,
    rhythm=LEISURE,
)  # fmt: skip
