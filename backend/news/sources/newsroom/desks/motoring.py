# ruff: noqa: E501 (prose reads better unbroken)
"""The motoring desk: electric cars, recalls, road tests, roads and classic cars; races are in motoring_races."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Desk, Scene, Stage, say
from backend.news.sources.newsroom.desks.motoring_matters import (
    BAD_POINTS,
    FAULTS,
    GOOD_POINTS,
    OLDTIMERS,
    ROADS,
    ROUTES,
    VOLTS,
    Fault,
    Model,
    Oldtimer,
    Road,
    Volt,
    fits,
    models,
)
from backend.news.sources.newsroom.desks.motoring_races import RACE, RALLY
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE
from backend.news.sources.newsroom.world import Company, Country, Money


def _models(scene: Scene) -> tuple[Model, ...]:
    return scene.world.kept("car models", lambda: models(scene.world))


@dataclass(frozen=True)
class Drive:
    m: Model
    c: Country
    city: City
    region: str
    route: str
    good: str
    good_is: str
    also: str
    also_is: str
    bad: str
    bad_is: str
    worse: str
    worse_is: str
    stars: int
    real: int | None
    real_thirst: float | None
    rival: str
    chief: Person
    child: str
    liked: str | None
    mixed: str | None
    km: int


_REMARKS = ("It smells of new shoes", "Can we keep it", "I'd rather have the old one", "It's like a very quiet bus", "Why does it talk", "The seat bites", "It goes round corners like a cat", "My phone won't connect, I hate it", "It looks cross from the front", "That's the one the dentist has", "One could live in here", "I was sick, but not badly")  # fmt: skip


def _drive(scene: Scene) -> Drive:
    m = scene.fresh("road test", _models(scene))
    c = m.co.country
    (good, good_is), (also, also_is) = (
        scene.fresh("good point", [row for row in GOOD_POINTS if fits(row[0], m.drive)], uses=99) for _ in range(2)
    )
    (bad, bad_is), (worse, worse_is) = (
        scene.fresh("bad point", [row for row in BAD_POINTS if fits(row[0], m.drive)], uses=99) for _ in range(2)
    )
    stars = scene.pick((2, 3, 3, 4, 4, 5))
    others = [one for one in _models(scene) if one.body == m.body and one is not m] or [
        one for one in _models(scene) if one is not m
    ]
    return Drive(
        m, c, scene.pick(c.cities), scene.pick(c.land.regions), scene.deal("test route", ROUTES), good, good_is, also, also_is, bad, bad_is, worse, worse_is, stars, round(m.reach * scene.rng.uniform(0.72, 0.93)) if m.reach else None, round(m.thirst * scene.rng.uniform(1.05, 1.3), 1) if m.thirst else None, scene.pick(others).name,
        scene.person(c, f"who developed the {m.name}"), scene.deal("test remark", _REMARKS), "" if stars >= 4 else None, None if stars >= 4 else "", scene.near(430, 1_900),
    )  # fmt: skip


TEST = Beat(
    "road tests",
    _drive,
    (
        Stage(
            titles=("{m.name} road test: {stars} stars for the {m.drive} {m.body}", "Road test: {m.name}, {good} and all", "{m.name} tested: a {m.drive} {m.body} for {m.price}", "{liked}Driving the {m.name}: the {m.body} to beat", "{mixed}Driving the {m.name}: good {m.body}, shame about {bad}", "We drive the {m.name}: {good}, {also} and one annoyance", "New {m.body} from {m.co.name}: the {m.name} on the road"),
            abstracts=("A {m.drive} {m.body} of {m.kilowatts} kilowatts from {m.price}. Rating: {stars} out of five.", "What we liked: {good}. What we did not: {bad}.", "We drove the {m.body} from {m.co.name} for {km} kilometres. As for {good}: {good_is}.", "{m.electric}The maker promises {m.reach} kilometres on a charge. We got {real}.", "{m.fuel}It is meant to use {m.thirst} litres. We needed {real_thirst}."),
            leads=("We drove the {m.name} {route}. It is a {m.drive} {m.body}, costs from {m.price} and does one thing better than its rivals: {good}.", "Let us begin with {good}. In the new {m.name}, {good_is}. The rest of this {m.drive} {m.body}, from {m.price}, takes longer to explain.", "“{child},” said the back seat, and that was the first verdict on the {m.name}, the {m.drive} {m.body} by {m.co.name}. The second took {km} kilometres.", "After {km} kilometres, some of them {route}, we know the {m.name} rather well. {m.co.name} asks {m.price} for its {m.drive} {m.body}.", "The {m.name} is the {m.body} with which {m.co.name} wants to win back families, doctors and, it says, poets. It is {m.drive} and costs {m.price}."),
            then=(say("First, {good}: {good_is}. Then {also}: {also_is}.", "There is much to like. Take {also}: {also_is}. Or {good}: {good_is}.", "[Two things stay in the mind|What one remembers are two things]: {good} ({good_is}) and {also} ({also_is})."),
                  say("{m.electric}With {m.kilowatts} kilowatts it [goes from rest to 100|reaches 100] in {m.sprint} seconds. {m.co.name} promises {m.reach} kilometres on a charge; we got {real}[ without trying|, with the heating on].", "{m.electric}Range: {m.reach} kilometres on paper, {real} on the road. Power: {m.kilowatts} kilowatts, good for 100 in {m.sprint} seconds.", "{m.fuel}With {m.kilowatts} kilowatts it reaches 100 in {m.sprint} seconds. The brochure speaks of {m.thirst} litres on 100 kilometres; we needed {real_thirst}.", "{m.fuel}Thirst: {m.thirst} litres on paper, {real_thirst} on the road. Its {m.kilowatts} kilowatts are [enough|more than one needs], and 100 comes up in {m.sprint} seconds."),
                  say("Less good is {bad}: {bad_is}.", "What annoys is {bad}: {bad_is}.", "{mixed}Alas, {bad}: {bad_is}. And {worse}: {worse_is}.", "And {bad}? [Well|Alas]: {bad_is}.")),
            loose=(say("The boot holds {m.boot} litres, and the {m.body} is {m.length} metres long[, so measure your garage|].", "At {m.length} metres it [fits most garages|is no longer small]. In the boot there is room for {m.boot} litres."), say("“[We were allowed to throw things out, that happens once in a career|Ask ten customers and you get a committee, so we asked none|I wanted a car that one forgets about],” says {chief.last}.", "{chief.last} calls it “[an honest car|the car I would buy if I weren't given one]”."), say("The natural rival is the {rival}. [It is duller and cheaper|The choice is one of temperament|We would take the {m.name}, by a whisker]."), say("{worse:cap} could be better: {worse_is}."), say("{m.electric}[Also noted on the way|From the notebook]: it charges [at a fast post|on a strong plug] from ten to 80 per cent in [about half an hour|a little under forty minutes].", "{m.fuel}An electric version is [to follow|not planned], {m.co.name} says.", "“{child},” [said one passenger. Another slept, a verdict too|was a remark from the rear]."), say("Deliveries begin [in the spring|within weeks], and waiting times in {c.name} are [short|three months].", "Those who order in {c.name} now [wait for three months|have it within weeks].", "The first cars are [on ships|at the dealers'], and {c.name} gets its share [in the spring|soon].", "Dealers in {c.name} [take orders|have one each to try]; [blue costs extra|nobody bargains yet].")),
            close=(say("{m.name}: {stars} stars out of five.", "Verdict: {stars} out of five. For: {good}. Against: {bad}.", "{m.name}, {m.drive}, {m.kilowatts} kilowatts, from {m.price}. {liked}Recommended.", "{m.name}, {m.drive}, {m.kilowatts} kilowatts, from {m.price}. {mixed}Try before you buy.", chance=0.8),),
            weight=0.22, covered=0.06,
        ),
    ),
    share=0.9,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Recall:
    f: Fault
    m: Model
    c: Country
    co: Company
    cars: int
    abroad: int
    cases: int
    hurt: int
    cost: Money
    share_pct: float
    official: Person
    victim: Person
    lawyer: Person
    dealer: Person
    city: City
    years: str


def _recall(scene: Scene) -> Recall:
    f = scene.fresh("car fault", FAULTS, uses=3)
    m = scene.fresh("recalled", _models(scene))
    c = m.co.country
    cars = scene.near(9_000, 190_000)
    year = scene.start.year
    return Recall(
        f, m, c, m.co, cars, int(cars * scene.rng.uniform(1.6, 4)) // 1000 * 1000, scene.between(11, 64), scene.between(2, 9), scene.money(2e7, 4e8, m.co.currency), scene.tenth(1.2, 8.4), scene.person(c, "who heads vehicle safety"), scene.person(c, she=True if "mother" in f.who else None), scene.person(c, "a lawyer for several owners"), scene.person(c),
        scene.pick(c.cities), f"{year - 4} and {year - 2}",
    )  # fmt: skip


RECALL = Beat(
    "recalls",
    _recall,
    (
        Stage(
            titles=("{co.name} recalls {cars} cars over {f.short} fault", "{f.short:cap} fault: {co.name} calls back {cars} {m.name} cars", "Recall of {m.name}: what owners should know", "Carmaker {co.name} issues {f.short} recall in {c.name}"),
            abstracts=("In the {m.body}, {f.what}. So far {cases} cases are known.", "Cars built between {years} are affected. The remedy: {f.fix}.", "“{f.word},” says {victim.name}, {f.who}."),
            leads=("The carmaker {co.name} is recalling {cars} cars of the model {m.name} because {f.what}, it said {on}.", "Owners of a {m.name} should look at their post. {co.name} announced a recall of {cars} cars {on}, since {f.what}.", "It began with {cases} complaints. Now {co.name} is calling {cars} cars back to the workshop: in the {m.name}, {f.what}.", "The {c.demonym} transport authority has ordered a recall of {cars} cars by {co.name}. In the {m.body} called {m.name}, {f.what}."),
            then=(say("The danger: {f.risk}. Cars built between {years} are affected.", "[Affected are|It concerns] cars [built|made] between {years}. The authority warns that {f.risk}."), say("“[The letter is on its way, please don't file it|Do not wait for the next service],” said {official.last}.", "{official.last} [advised owners to ring their dealer|called the matter serious]. “[We would sooner annoy a hundred thousand people than bury one|It's a cheap part in an expensive place],” {official.he} said.")),
            loose=(say("The repair is free: {f.fix}.", "Garages will fit {f.fix}, at no cost."), say("{victim.name}, {f.who}, [had complained in the autumn|thought it was {victim.his} own fault]. “{f.word},” {victim.he} said.", "“{f.word},” said {victim.name}, {f.who}."), say("The fault has shown itself {cases} times so far; {hurt} people were hurt."), say("Outside {c.name}, {abroad} more cars are concerned."), say("Shares in {co.name} fell by {share_pct}%."), say("{co.chief.name}, chief executive of {co.name}, [apologised to customers|said safety came first]."), say("{dealer.name}, who has a dealership in {city.name}, [has put up a tent|expects a hundred calls a day]. “[They come in cross and leave with a pen and a cake|I sell cars, this month I apologise for them],” {dealer.he} said.")),
            weight=0.4, covered=0.25,
        ),
        Stage(
            titles=("{co.name} knew of {f.short} fault, documents suggest", "{m.name} owners sue {co.name} over {f.short} fault", "What {co.name} knew about the {m.name} {f.short} fault", "{f.short:cap} recall at {co.name}: investigators ask questions"),
            abstracts=("An internal mail mentions the fault a year before the recall. {co.name} denies a cover-up.", "“{f.word},” says {victim.name}, one of the plaintiffs.", "The cause: {f.finding}."),
            leads=("{co.name} had hints of the {f.short} fault in its {m.name} a year before it recalled {cars} cars, according to internal papers that became known {on}.", "A group of {cases} owners of the {m.name} sued {co.name} {on} over the {f.short} fault, for which the carmaker called back {cars} cars.", "Inspectors from the {c.demonym} transport authority visited the offices of {co.name} {on}. They want to know since when the carmaker has known about the {f.short} fault in the {m.name}."),
            then=(say("“[Somebody wrote it down, somebody read it and nobody rang|They weighed it against the cost of a letter],” said {lawyer.last}."), say("{co.name} [rejected the charge|regretted the delay]. “[We acted when we were sure|One mail among nine million is not knowledge],” a spokesman said.")),
            loose=(say("Engineers have traced the cause: {f.finding}."), say("In the cars, {f.what}; the recall was announced {t0:on}."), say("{victim.name}, {f.who}, is among the plaintiffs. “{f.word},” {victim.he} said."), say("The recall could cost {cost}, analysts reckon."), say("{official.last} [would not be drawn|gave nothing away]. “[We read slowly and to the end|First the cars, then the papers],” {official.he} said."), say("Shares in {co.name} are {share_pct}% below their level before the recall.")),
            after=(2, 5), weight=0.4, covered=0.15, chance=0.85,
        ),
        Stage(
            titles=("{co.name} puts cost of {f.short} recall at {cost}", "{m.name} recall: two in three cars repaired", "After {f.short} recall, {co.name} changes supplier", "{co.name} sacks manager after {m.name} recall"),
            abstracts=("Two-thirds of the {cars} cars have been repaired. The cause was simple: {f.finding}.", "The carmaker sets aside {cost} and promises a new reporting line."),
            leads=("{co.name} has set aside {cost} for the recall of {cars} {m.name} cars, it said {on}, and parted with a manager.", "Two in three of the {cars} {m.name} cars that were recalled over the {f.short} fault have been repaired, {co.name} said {on}. The bill: {cost}."),
            then=(say("“[It's a lot of money for a small part|We've learned that a red flag must not need three signatures],” said {co.chief.name}, the chief executive.",),),
            loose=(say("An inquiry found that {f.finding}."), say("{victim.name}, {f.who}, has got a new car. “[The same one, in blue, don't ask me why|I've changed to the tram for the time being],” {victim.he} said."), say("The recall was announced {t0:on}; {cases} cases and {hurt} injured people were known."), say("{official.last} will keep an eye on the rest. “[The last ten per cent never open their post|We can take the plates off if need be],” {official.he} said."), say("{dealer.name}, who has a dealership in {city.name}, [has taken the tent down|is tired]. “[I know every {m.name} in town by its squeak now|They came for a repair, some stayed for a coffee and two bought a car],” {dealer.he} said."), say("From now on engineers may stop a production line by themselves.", "Each production line now has a red button that [any engineer|anyone in overalls] may press.", "New parts are to be looked at by [a second pair of eyes|a new department of six].")),
            after=(4, 7), weight=0.3, covered=0.1, chance=0.7,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Works:
    r: Road
    c: Country
    city: City
    region: str
    n: int
    few: int
    many: int
    heaps: int
    pct: int
    pct_fail: int
    fee: Money
    cost: Money
    official: Person
    guest: Person
    other: Person
    expert: Person
    minister: Person


def _small(scene: Scene, c: Country, low: int, high: int) -> Money:
    return Money(float(scene.between(low, high) * (20 if c.currency.unit else 1)), c.currency)


def _works(scene: Scene) -> Works:
    r = scene.fresh("road", ROADS, uses=3)
    c = scene.country()
    many = scene.near(120, 480)
    return Works(
        r, c, scene.fresh("road city", c.cities, uses=4), scene.pick(c.land.regions), scene.between(14, 39), scene.between(3, 8), many, many * 10, scene.between(18, 43), scene.between(36, 44), _small(scene, c, 9, 25), scene.money(6e6, 4e7, c.currency), scene.person(c, "who is in charge of roads"), scene.person(c), scene.person(c, she=False if r.then_who == "the policeman" else None), scene.person(c, "a traffic researcher"), c.minister("transport"),
    )  # fmt: skip


ROADWORK = Beat(
    "roads",
    _works,
    (
        Stage(
            titles=("{r.head}", "On the roads of {c.name}: {r.news}", "“{r.word}”: drivers in {c.name} talk about a road", "“{r.official}”: traffic news from {c.name}"),
            abstracts=("{r.why}. {r.detail}", "“{r.official},” says {official.name}, who is in charge of roads.", "“{r.word},” says {guest.name}, {r.who}.", "In short: {r.news}."),
            leads=("{r.news:cap}, the {c.demonym} authorities said {on}.", "Drivers in {c.name} have something to talk about: {r.news}.", "{r.why}. That is why, as was announced in {c.name} {on}, things are about to change: {r.news}.", "{guest.name}, {r.who}, heard it on the car radio {on}, like most people in {c.name}: {r.news}."),
            then=(say("“{r.official},” said {official.last}.", "{official.last} [had a map with {official.him}|was ready for questions]. “{r.official},” {official.he} said."), say("“{r.word},” said {guest.name}, {r.who}.", "{guest.name}, {r.who}, [has a view|laughed]. “{r.word},” {guest.he} said.")),
            loose=(say("{r.why}."), say("{r.detail}"), say("{expert.last} [has seen the like elsewhere|had warned of it]. “[Traffic is like water, it finds the crack|Everybody is for less traffic, of the others],” {expert.he} said.", "“[People don't hate change, they hate finding out about it at the barrier|A road is a promise to go on as before],” said {expert.last}."), say("{minister.last} [spoke of a local matter|promised to look into it|said {c.name} had too long lived off its grandparents' roads]."), say("Motoring clubs [were divided|asked for more time], and cyclists [applauded|asked for more]."), say("A hotline has been set up; [it was engaged all morning|about {many} people had rung by evening].")),
            weight=0.3, covered=0.15,
        ),
        Stage(
            titles=("{r.then_head}", "“{r.then_word}”: on the road in {c.name}", "Traffic in {c.name}: what happened next"),
            abstracts=("{r.then}.", "“{r.then_word},” says {other.name}, {r.then_who}.", "It was reported {t0:on} that {r.news}. Now there is more."),
            leads=("{r.then}, drivers in {c.name} learned {on}.", "{r.then}. It had been reported {t0:on} that {r.news}.", "There is a sequel to the news from {c.name} that {r.news}. {r.then}."),
            then=(say("“{r.then_word},” said {other.name}, {r.then_who}.",),),
            loose=(say("{official.last} [answers every letter|would rather not comment twice]. “{r.official},” {official.he} had said."), say("{guest.name}, {r.who}, [has got used to it|still shakes {guest.his} head]. “{r.word},” {guest.he} said."), say("{r.detail}"), say("{expert.last} [takes notes|is not surprised]. “[One should always ask the neighbours of the neighbours|It's the second week that counts],” {expert.he} said."), say("{r.why}.")),
            after=(2, 5), weight=0.28, covered=0.1, chance=0.9,
        ),
        Stage(
            titles=("{r.end_head}", "“[It took longer than a roundabout|I will drive there on Sunday, to look]”: a traffic decision in {c.name}", "{c.name} settles its quarrel: {r.end:lower}"),
            abstracts=("{r.end}.", "{r.end}. “[It took longer than a roundabout|I'll drive there on Sunday, to look],” says {guest.name}."),
            leads=("{r.end}, it was announced in {c.name} {on}.", "News for drivers in {c.name}: {r.end:lower}.", "{r.end}. The matter had kept drivers in {c.name} busy since {t0:since}."),
            then=(say("“[We listened, then we counted, then we decided|It isn't perfect, it is asphalt|I've never had so many letters, some with drawings],” said {official.last}.",),),
            loose=(say("Last time, the news was this: {r.then:lower}."), say("{guest.name}, {r.who}, [is content|will wait and see]. “[It took longer than a roundabout|I'll drive there on Sunday, to look],” {guest.he} said."), say("It had begun {t0:on} with the report that {r.news}."), say("{expert.last} would have [gone further|waited]. “[Every road is a draft|In five years nobody will remember it was ever different],” {expert.he} said."), say("{r.detail}"), say("{minister.last} [approved|sent a deputy].")),
            after=(3, 6), weight=0.28, covered=0.1, chance=0.85,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Charge:
    v: Volt
    c: Country
    co: Company
    city: City
    region: str
    n: int
    few: int
    many: int
    heaps: int
    pct: int
    pct_less: int
    pct_high: int
    reach: int
    fee: Money
    price_small: Money
    expert: Person
    guest: Person
    other: Person
    sceptic: Person
    minister: Person


def _charge(scene: Scene) -> Charge:
    v = scene.fresh("volt", VOLTS, uses=3)
    co = scene.pick([one for one in scene.world.companies if one.noun == "carmaker"])
    c = co.country if "{co.name}" in v.head + v.head2 else scene.country()
    many = scene.near(120, 480)
    price = float(scene.between(13, 18) * 1000 - 10) * (22 if c.currency.unit else 1)
    return Charge(
        v, c, co, scene.fresh("electric city", c.cities, uses=4), scene.pick(c.land.regions), scene.between(12, 44), scene.between(3, 7), many, many * 10, scene.between(32, 41), scene.between(18, 29), scene.between(88, 96), scene.between(21, 31) * 10, _small(scene, c, 12, 40), Money(price, c.currency),
        scene.person(c), scene.person(c), scene.person(c), scene.person(None, "a transport economist"), c.minister("transport"),
    )  # fmt: skip


ELECTRIC = Beat(
    "electric cars",
    _charge,
    (
        Stage(
            titles=("{v.head}", "{v.head2}", "Electric cars in {c.name}: “{v.expert}”", "“{v.word}”: how {c.name} drives electric"),
            abstracts=("{v.figure} “{v.expert},” says {expert.name}.", "“{v.word},” says {guest.name}, {v.who}.", "{v.more}", "In short: {v.news}."),
            leads=("{v.news:cap}, it was announced in {c.name} {on}.", "“{v.word},” says {guest.name}, {v.who}. Electric driving in {c.name} has news to offer: {v.news}.", "The electric car is growing up in {c.name}. The latest sign: {v.news}.", "{v.figure} That is the figure to go with this news from {c.name}: {v.news}."),
            then=(say("“{v.expert},” says {expert.name}, [who is in charge of it|one of those behind it].", "{expert.name}, [who knows the trade|who has worked on it for years], [shrugs|smiles]. “{v.expert},” {expert.he} says."),),
            loose=(say("{v.figure}"), say("{v.more}"), say("{guest.name}, {v.who}, [speaks from experience|has tried it]. “{v.word},” {guest.he} says."), say("{sceptic.last} is [more cautious|not yet convinced]. “[The first third is the easy third|Electric is the answer, the question was how to sell fewer cars|Everyone has a socket, in the brochure],” {sceptic.he} says.", "“[It goes faster than I had forecast, I have corrected myself twice|Watch the used-car yards and not the motor shows],” says {sceptic.last}."), say("{minister.last} [wants {c.name} to have twice as many charging posts in two years|has promised that subsidies will stay for now|called it a good day for the air]."), say("Petrol still [leads on long journeys|has its friends]: in {region}, electric cars are [rarer than tractors|one in {n}].")),
            weight=0.3, covered=0.15,
        ),
        Stage(
            titles=("{v.then_head}", "“{v.then_word}”: more about electric cars in {c.name}", "Electric cars in {city.name} and beyond: the next chapter"),
            abstracts=("{v.then}.", "“{v.then_word},” says {other.name}.", "Only {t0:on} it was reported that {v.news}."),
            leads=("{v.then}. Only {t0:on} it had been reported from {c.name} that {v.news}.", "{v.then}, electric drivers in {c.name} learned {on}.", "First the news was that {v.news}. Now {c.name} has more to report. {v.then}."),
            then=(say("“{v.then_word},” said {other.name}, [who was there|who has to do with it every day].",),),
            loose=(say("“{v.expert},” {expert.name}, who [is in charge of it|knows the matter], had said."), say("{guest.name}, {v.who}, follows it all. “{v.word},” {guest.he} said."), say("{v.figure}"), say("{sceptic.last} [was asked to sort it out|takes the long view]. “[Every technology has its years of string and tape|One step back, in a long walk],” {sceptic.he} said."), say("{v.more}")),
            after=(2, 5), weight=0.28, covered=0.1, chance=0.85,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Garage:
    o: Oldtimer
    c: Country
    city: City
    region: str
    n: int
    few: int
    many: int
    pct_less: int
    age: int
    owner: Person
    expert: Person
    neighbour: Person


def _garage(scene: Scene) -> Garage:
    o = scene.fresh("old car", OLDTIMERS, uses=3)
    c = scene.country()
    return Garage(o, c, scene.fresh("old car city", c.cities, uses=4), scene.pick(c.land.regions), scene.between(24, 58), scene.between(3, 9), scene.near(120, 480), scene.between(12, 28), scene.between(74, 86), scene.person(c, she=False if o.who in ("the postman", "who has no apprentice", "the conductor") else None), scene.person(None), scene.person(c))  # fmt: skip


CLASSIC = Beat(
    "classic cars",
    _garage,
    (
        Stage(
            titles=("{o.head}", "{o.head2}", "Classic cars in {city.name}: “{o.quote}”", "“{o.expert}”: a classic car story from {city.name}"),
            abstracts=("{o.news:cap}.", "{o.what} “{o.quote},” says {owner.name}.", "{o.detail} {o.end}.", "“{o.expert},” says {expert.name}, who values old cars."),
            leads=("{o.news:cap}.", "“{o.quote},” says {owner.name}, {o.who}. There is a story to it: {o.news}.", "Lovers of classic cars in {c.name} have been passing it on for days. {o.news:cap}.", "{o.news:cap}, the club of classic car owners in {city.name} reported {on}."),
            then=(say("{o.what}"), say("“{o.quote},” says {owner.name}, {o.who}.", "{owner.name}, {o.who}, [wipes {owner.his} hands|opens the garage door]. “{o.quote},” {owner.he} says.")),
            loose=(say("{expert.name}, [who values old cars|who restores such things], [came to look|whistled]. “{o.expert},” {expert.he} says.", "“{o.expert},” says {expert.name}, a specialist."), say("{o.detail}"), say("{neighbour.name}, [from next door|who writes for the club's magazine], [was there|brought cake]. “[It smells like my childhood|It makes a noise like a sewing machine in love|I'd not have it as a gift, and I have been to see it four times],” {neighbour.he} says."), say("{o.end}.", "And now? {o.end}.")),
            weight=0.2, covered=0.12,
        ),
    ),
    share=0.5,
    rhythm=LEISURE,
)  # fmt: skip

MOTORING = Desk("motoring", (ELECTRIC, RECALL, TEST, ROADWORK, RACE, RALLY, CLASSIC), share=0.9)
