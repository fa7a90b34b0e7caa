# ruff: noqa: E501 (prose reads better unbroken)
"""How the cycling desk follows riders off the road: contracts, doping cases, crashes, velodromes and equipment."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.cycling_races import peloton
from backend.news.sources.newsroom.desks.cycling_riders import BREACHES, GEARS, SITES, Breach, Gear, Rider, Site, Team
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE, ROUND
from backend.news.sources.newsroom.world import Country, Money


def _riders(scene: Scene) -> list[tuple[Rider, Team]]:
    return [(rider, team) for team in peloton(scene) for rider in team.riders]


@dataclass(frozen=True)
class Move:
    rider: Rider
    old: Team
    new: Team
    kind: str
    agent: Person
    years: int
    pay: Money
    buyout: Money
    age: int
    wins: int
    hitch: str
    reason: str
    signs: bool
    goal: str


_HITCHES = ("bonus payments", "the choice of bicycle", "who may ride the autumn races", "the buy-out", "image rights", "a clause about mountain bike races", "a medical report", "a place for a favourite mechanic")  # fmt: skip
_REASONS = ("a team with two leaders", "a quarrel over the race calendar", "a sponsor's cuts", "months without a win", "a new training method", "an unpaid bonus", "a dispute about weight", "the loss of a trusted coach", "an argument on a bus")  # fmt: skip
_GOALS = ("a stage race overall", "one of the cobbled classics", "a world title", "ten wins in a season", "a proper sprint train", "success in the high mountains", "a time trial title", "a podium at home")  # fmt: skip


def _move(scene: Scene) -> Move:
    """A move of a rider who has not been reported as moving."""
    moved = scene.fresh("cycling mover", tuple(rider for rider, _ in _riders(scene)))
    old = next(team for rider, team in _riders(scene) if rider is moved)
    new = scene.pick([team for team in peloton(scene, old.women) if team is not old])
    kind = {
        id(old.climber): "climber",
        id(old.sprinter): "sprinter",
        id(old.clock): "time triallist",
        id(old.helper): "domestique",
        id(old.young): "all-rounder",
    }[id(moved)]
    pay = scene.money(1.6e5, 2.4e6, new.country.currency)
    return Move(
        moved, old, new, kind, scene.person(None, "the agent"), scene.between(2, 4), pay, pay.times(scene.rng.uniform(0.3, 0.8)), scene.between(21, 33), scene.between(2, 14),
        scene.pick(_HITCHES), scene.pick(_REASONS), scene.chance(0.7), scene.pick(_GOALS),
    )  # fmt: skip


TRANSFER = Beat(
    "rider transfers",
    _move,
    (
        Stage(
            titles=("{rider.last} wants to leave {old.name} over {reason}", "{new.name} in talks to sign {kind} {rider.last}", "Cycling transfers: {rider.last} and {old.name} close to split", "{kind:cap} {rider.last} linked with move from {old.name} to {new.name}"),
            abstracts=("{rider.name}, {age}, has {wins} wins and a contract that {old.name} may not be able to keep.", "{reason:cap} lies behind the wish of {rider.name} to move. {new.name} are interested.", "{new.name} are looking for {goal}, and {rider.name} could be the answer."),
            leads=("{rider.name} has asked {old.name} for a release from {rider.his} contract, people close to the team said {on}. {new.name} are said to be waiting.", "{new.name} are in talks with {rider.name}, the {old.name} {kind}, according to two people who know of them.", "There is trouble at {old.name}: {rider.name}, a {kind} with {wins} wins in the past two seasons, [wants to go|is looking elsewhere]. The cause is {reason}."),
            then=(say("“[I read about it in the lift|Contracts are made to be kept, as a rule|I've heard it from everyone except {rider.last}],” said {old.boss.name}, the manager of {old.name}.", "{old.boss.name}, who manages {old.name}, [did not deny it|called the talk “autumn leaves”]. “[We have a contract, and we have a telephone|Nobody is bigger than the bus],” {old.boss.he} said."),),
            loose=(say("{rider.last}, {age}, is {rider.of} and has won {wins} races in two seasons.", "At {age}, the {rider.of} rider has {wins} wins in two years."), say("{agent.last} [asked for understanding|would not name teams]. “[I talk to everyone, it's called good manners|My rider is happy, and could be happier].”", "“[A {kind} has three good contracts in a career, this is the second|We listen; listening is free],” said {agent.last}."), say("{new.name} have been looking for {goal} for some time."), say("A buy-out would cost about {buyout}[, people in the sport say|].", "The two sides are apart on {hitch}."), say("{new.boss.name}, who runs {new.name}, [grinned|changed the subject]. “[I look at all results|We have room on the bus].”"), say("Under the rules, moves in mid-season need the consent of both teams.", "A move now would need both teams and the federation to agree.")),
            weight=0.28, covered=0.12,
        ),
        Stage(
            titles=("{new.name} sign {rider.last} for {years} years", "{rider.last} joins {new.name} from {old.name}", "Transfer done: {kind} {rider.last} moves to {new.name}", "{rider.last} to ride for {new.name} after {old.name} release"),
            abstracts=("{rider.name} gets a contract for {years} years; {old.name} receive {buyout}.", "The {kind}, {age}, is to bring {goal}. {old.boss.name} lets {rider.him} go “with gritted teeth”."),
            leads=("{new.name} have signed {rider.name} from {old.name} for {years} years, both teams said {on}.", "{rider.name} is leaving {old.name} for {new.name}. The {kind} signed a contract for {years} years {on}."),
            then=(say("“[I've packed one case and eleven pairs of shoes|It wasn't about money, it was about {goal}|I needed a place where nobody knows my excuses],” said {rider.last}.",),),
            loose=(say("{new.boss.name}, the {new.name} manager, [wants {goal}|spoke of {goal}]. “[We didn't buy a {kind}, we bought a head|{rider.he:cap} asked better questions than I did].”"), say("People in the sport put {rider.his} pay at {pay} a year.", "{old.name} are to get {buyout}."), say("{old.boss.name} said goodbye “with gritted teeth”. “[You can't race against somebody's wishes|I'll look for {rider.him} in the feed zone].”"), say("{reason:cap} had driven {rider.last} to ask for a release, as became known {t0:on}.", "Talk of a move had begun {t0:on}; the cause was {reason}.", "It had been known since {t0:since} that {rider.last} wanted to leave over {reason}."), say("{agent.last} said talks had stuck on {hitch} “[until midnight|for a week]”."), say("{rider.last} may start for the new team [within a fortnight|once the papers are stamped].")),
            after=(2, 5), weight=0.32, covered=0.15, when=lambda f: f.signs,
        ),
        Stage(
            titles=("{rider.last} stays at {old.name} as {new.name} pull out", "Transfer off: {hitch} keeps {rider.last} at {old.name}", "{new.name} drop plan to sign {rider.last}"),
            abstracts=("Talks failed over {hitch}. {rider.name} will ride on for {old.name}.", "{new.boss.name} of {new.name} says the price, {buyout}, was “a joke told twice”."),
            leads=("{rider.name} will not move to {new.name} after all. Talks ended {on} over {hitch}.", "{new.name} withdrew {on} from talks about {rider.name}, who remains with {old.name}; the teams could not agree on {hitch}."),
            then=(say("“[Then I'll win here|I've apologised to the mechanics, they matter most|I know the way to the bus],” said {rider.last}.",),),
            loose=(say("{old.boss.name} [offered a handshake|was brief]. “[We've talked, we've eaten, it's over|A {kind} is what we needed and what we have].”"), say("{new.boss.name} said {buyout} was “a joke told twice”."), say("{reason:cap} had been given as the reason {t0:on}."), say("{agent.last} [was silent for once|spoke of “a postponement”]."), say("{rider.last} is {age} and has {wins} wins in two seasons.")),
            after=(0, 0), weight=0.25, when=lambda f: not f.signs,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    b: Breach
    rider: Rider
    team: Team
    lawyer: Person
    head: Person
    expert: Person
    mate: Person
    race: str
    c: Country
    months: int
    years: int
    guilty: str | None
    cleared: str | None
    wins: int
    lab: str
    hours: int
    pages: int


def _case(scene: Scene) -> Case:
    b = scene.fresh("doping", BREACHES, uses=2)
    rider = scene.fresh("doping rider", tuple(rider for rider, _ in _riders(scene)))
    team = next(team for one, team in _riders(scene) if one is rider)
    c = scene.country()
    return Case(b, rider, team, scene.person(None, "the rider's lawyer"), scene.person(None, "the head of the anti-doping agency"), scene.person(None), scene.pick([r for r in team.riders if r is not rider]), f"Tour of {scene.pick(c.land.regions)}", c,
                scene.between(2, 7), scene.pick((2, 3, 4)), "" if b.guilty else None, None if b.guilty else "", scene.between(2, 11), scene.pick(c.cities).name, scene.between(3, 11), scene.near(120, 900))  # fmt: skip


DOPING = Beat(
    "doping",
    _case,
    (
        Stage(
            titles=("{team.name} rider {rider.last} suspended in doping case", "Doping: {rider.last} suspended over {b.substance}", "{rider.last} provisionally suspended after doping control at {race}", "{rider.last} denies doping as {team.name} suspend rider"),
            abstracts=("{rider.name} is accused in connection with {b.substance}. “{b.plea},” says the rider.", "The {rider.of} rider was tested at the {race}. {team.name} have withdrawn {rider.him} from all races.", "The case against {rider.name} concerns {b.substance}. A second sample is to be opened."),
            leads=("{rider.name} of {team.name} has been suspended for the time being in a doping case that concerns {b.substance}, the anti-doping agency said {on}.", "A control at the {race} has put {rider.name}, of {team.name}, under suspicion of doping. The matter is {b.substance}.", "{team.name} took {rider.name} out of their squad {on}, after the anti-doping agency had told them of {b.substance}."),
            then=(say("“{b.plea},” said {rider.last} [in a statement|outside the team hotel|by telephone].",), say("{b.science}, according to the agency.", "{b.science}, {expert.name}, a pharmacologist, explained. “{b.expert}.”")),
            loose=(say("“[I read it on the bus and had to get off|We wait for the second sample, and until then I know nothing|Who is in doubt doesn't start, that's our rule],” said {team.boss.name}, the manager of {team.name}."), say("{head.last} said the case would be handled “[like any other|without looking at names]”.", "“[We test bottles, we don't test characters|The label has a number on it, and not a name],” said {head.last}."), say("{mate.name}, of the same team, [was shaken|asked for fairness]. “[We have shared rooms for {months} months|I don't know what to say, so I won't say it],” {mate.he} said."), say("{rider.last} has won {wins} races[, two of them this year|].", "The rider's {wins} wins are not affected for now."), say("The second sample will be opened in {lab} {t1:on}."), say("{lawyer.last} has asked for {pages} pages of laboratory records.", "“[We shall look at every seal|There's a result, and there's an explanation],” said {lawyer.last}.")),
            weight=0.42, covered=0.3,
        ),
        Stage(
            titles=("Second sample confirms finding in {rider.last} doping case", "{rider.last}: doping laboratory upholds result", "Doping case: {rider.last} lawyers attack laboratory in {lab}", "{rider.last} faces hearing over {b.substance}"),
            abstracts=("The laboratory in {lab} stands by its result. {lawyer.name} does not.", "{rider.name} will have to answer before a panel. “{b.plea},” {rider.he} repeats."),
            leads=("Nothing has changed for {rider.name}: the second examination confirmed the first, the laboratory in {lab} said {on}. The case concerns {b.substance}.", "{rider.name}, the {team.name} rider accused of doping, will face a panel. The finding of {t0:day}, {b.substance}, was confirmed {on}."),
            then=(say("“{b.expert},” said {expert.name}, a pharmacologist not involved in the case.", "{lawyer.last} [questioned the handling|spoke of haste]. “[Two readings of the same mistake make one mistake|We were given {hours} hours and {pages} pages].”"), say("“{b.plea},” {rider.last} said again[, with a tired voice|].")),
            loose=(say("{b.science}."), say("{rider.last} has been suspended since {t0:since}."), say("If found guilty, {rider.he} could be banned for up to {years} years [and lose {wins} wins|]."), say("{team.boss.name}, who manages {team.name}, [has terminated nothing yet|is waiting]. “[I've learned to wait|We pay until a panel says stop].”"), say("{head.last} [hoped for a hearing within days|defended the laboratory]. “[They do nine thousand a year|The rules are long because the stories are].”")),
            after=(2.5, 4.5), weight=0.3, covered=0.12,
        ),
        Stage(
            titles=("{guilty}{rider.last} banned for {years} years for doping", "{guilty}Doping: {rider.last} loses {wins} wins and {years} years", "{cleared}{rider.last} cleared in doping case", "{cleared}Doping panel clears {rider.last} of {team.name}", "{rider.last} doping ruling: {b.grounds}"),
            abstracts=("{guilty}The panel found that {b.grounds}. {rider.name} is banned for {years} years.", "{cleared}The panel found that {b.grounds}. {rider.name} may race again at once.", "{guilty}{rider.name}, who rode for {team.name}, was found guilty over {b.substance}.", "{cleared}{rider.name} was acquitted over {b.substance}. “I'd like those weeks back,” {rider.he} says."),
            leads=("{guilty}{rider.name} was banned for {years} years {on}. A panel found that {b.grounds}.", "{cleared}{rider.name} was cleared of doping {on}. A panel found that {b.grounds}.", "{guilty}A panel has found {rider.name} guilty of doping, in a case that concerned {b.substance}, and banned {rider.him} for {years} years.", "{cleared}The doping case against {rider.name} is over. A panel acquitted the {team.name} rider {on} after {hours} hours."),
            then=(say("{guilty}“[I don't accept it and I'm too tired to fight|I have been made an example, and examples are lonely|I'll ride to the bakery],” said {rider.last}.", "{cleared}“I'd like those weeks back,” said {rider.last}. “[Nobody writes an acquittal in the same size of letters|First I'm going to turn on my telephone].”"), say("The panel based its ruling on the finding that {b.grounds}.", "The written ruling has {pages} pages; the core of it is that {b.grounds}.")),
            loose=(say("{guilty}{lawyer.last} [will appeal|is considering an appeal]. “[The last word is spoken elsewhere|They wrote {pages} pages, and not one on how it got there].”", "{cleared}{lawyer.last} spoke of “[a ruling with its eyes open|a good day for dull paperwork]”."), say("{guilty}The {wins} wins go to those who came second.", "{cleared}The {wins} wins of {rider.last} stand."), say("{guilty}{team.name} [ended the contract within the hour|have removed {rider.his} picture].", "{cleared}{team.name} expect {rider.last} back [at once|within a fortnight]. “[The bike is in the truck, it has been cleaned every week].”"), say("{head.last} [took note of the ruling|had asked for more|would study the text]."), say("The case became public {t0:on}, after a control at the {race}."), say("{expert.name}, a pharmacologist, was not surprised. “{b.expert},” {expert.he} had said.")),
            after=(3, 6), weight=0.45, covered=0.3,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Crash:
    rider: Rider
    team: Team
    part: str
    where: str
    weeks: int
    c: Country
    town: str
    doctor: Person
    saw: Person
    mate: Rider
    goal: str
    others: int
    speed: int
    early: int


_PARTS = ("collarbone", "wrist", "pelvis", "elbow", "kneecap", "shoulder blade", "hand", "jaw", "cheekbone", "thigh bone", "ankle", "two ribs and a thumb")  # fmt: skip
_WHERES = ("on a wet descent", "when a dog ran into the bunch", "in the last corner of a sprint", "on a painted traffic island", "in training, behind a lorry", "on a cattle grid", "in a tunnel without lamps", "when a spectator held out a telephone", "at a level crossing", "on gravel left by roadworks", "in the feed zone", "while taking off a jacket", "when a tyre came off its rim", "on melted tar", "in a roundabout", "on a wooden bridge", "when two teams' cars touched", "on the boards of a velodrome")  # fmt: skip


def _crash(scene: Scene) -> Crash:
    rider = scene.fresh("crash", tuple(rider for rider, _ in _riders(scene)))
    team = next(team for one, team in _riders(scene) if one is rider)
    c = scene.country()
    return Crash(rider, team, scene.pick(_PARTS), scene.pick(_WHERES), scene.between(4, 16), c, scene.pick(c.cities).name, scene.person(None, "the team doctor"), scene.person(c), scene.pick([r for r in team.riders if r is not rider]), f"Tour of {scene.pick(scene.country().land.regions)}", scene.between(2, 23), scene.between(41, 78), scene.between(1, 2))  # fmt: skip


CRASH = Beat(
    "crashes",
    _crash,
    (
        Stage(
            titles=("{rider.last} out for {weeks} weeks after crash near {town}", "{rider.last} breaks {part} in crash {where}", "{team.name} lose {rider.last} to broken {part}", "Crash near {town} ends {rider.last}'s race", "{rider.last} to miss {goal} after crash"),
            abstracts=("{rider.name} of {team.name} fell {where} and will be out for about {weeks} weeks.", "The {rider.of} rider fell at {speed} kilometres an hour; {others} others went down too.", "A broken {part} means that {rider.name} will miss the {goal}."),
            leads=("{rider.name} of {team.name} broke {rider.his} {part} {on} when {rider.he} crashed {where}, near {town}.", "A crash {where} near {town} {on} will keep {rider.name} from racing for about {weeks} weeks.", "{team.name} will have to do without {rider.name} for {weeks} weeks. {rider.he:cap} fell {where} {on} and broke {rider.his} {part}.", "They were going at {speed} kilometres an hour near {town} {on} when {rider.name} went down {where}."),
            then=(say("“[I heard it before I felt it|I slid long enough to read a whole signpost|I'm all right, the bike isn't|It was nobody's fault, which is worse],” said {rider.last}, who rides for {team.name}.", "{rider.last}, who rides for {team.name}, [sent a picture with one thumb up|waved from the stretcher]. “[Tell my mother that it looks worse than it is|I counted my teeth and they're all here],” {rider.he} wrote."), say("{doctor.last} spoke of {weeks} weeks. “[The {part} will mend; the head takes longer|It's a clean break, if there's such a thing|Bones are polite, they keep to the timetable].”", "The {part} was operated on [the same evening|in {town}], {doctor.last} said. “[There are six screws in it|We'll see an exercise bike in three weeks].”")),
            loose=(say("With {rider.last}, {others} others fell; [all of them could ride on|two gave up].", "In all, {others} more riders [hit the ground|were held up]."), say("{mate.name}, of the same team, was right behind. “[I went over {rider.him} and said sorry in the air|There was nowhere to go but the hedge],” {mate.he} said."), say("{saw.name}, who lives [by that corner|opposite], [ran out with a blanket|rang for help]. “[They always take it too fast|It went quiet and then everyone shouted].”"), say("The {goal}, for which {rider.last} had been preparing, [comes too early|will take place without {rider.him}]."), say("{team.boss.name}, who manages {team.name}, asked for [better barriers|a word with the organisers]. “[We have rules for socks and none for that|We'd planned the whole season round {rider.him}].”", "The riders' union [wants the spot marked|has asked for a report].")),
            weight=0.28, covered=0.1,
        ),
        Stage(
            titles=("{rider.last} back on bike after crash", "{rider.last} hopes for early return from broken {part}", "Surgeons happy with {rider.last} after crash near {town}", "Crash rider {rider.last} asks for safer races"),
            abstracts=("{doctor.name} is pleased with the {part}. The comeback of {rider.name} may come sooner than feared.", "{rider.name}, who crashed {where}, has begun to train on rollers."),
            leads=("{rider.name}, who crashed near {town} {t0:on}, has been allowed to train on rollers, {team.name} said {on}.", "Days after breaking {rider.his} {part}, {rider.name} of {team.name} [sat on a bicycle again|left hospital] {on}.", "{rider.name} spoke {on} for the first time since the crash {where} that broke {rider.his} {part}."),
            then=(say("“[Ten minutes, and I've never been so tired or so glad|I dream of it in slow motion, and I always get round|I've watched the film once, with one eye],” said {rider.last}.",),),
            loose=(say("{doctor.last} [warned against haste|is content]. “[We said {weeks} weeks, and I'm not a betting person|The picture looks good; the rider looks bored].”"), say("{rider.last} called for [nets on descents|yellow cards for reckless riding|softer barriers]. “[We are quick and the roads are old|I like danger in small, announced portions|My son asked why there was no mattress, and he has a point|It happened to me and it could have been anyone].”"), say("{mate.name} has taken over [the leader's role|{rider.his} place in the team]. “[I'm keeping it warm].”"), say("{team.boss.name}, the {team.name} manager, would be happy with [a return in the autumn|any race at all this season]."), say("The organisers have [said they will move the route|promised straw bales].", "Whether the {goal} comes too soon is [open|for the doctors to say]."), say("{saw.name}, who had helped on the day, [got a signed jersey|had a visit from the team].")),
            after=(3, 6), weight=0.2, chance=0.7,
        ),
    ),
    share=0.8,
    rhythm=ROUND,
)  # fmt: skip


@dataclass(frozen=True)
class Ring:
    v: Site
    c: Country
    city: str
    name: str
    keeper: Person
    critic: Person
    child: Person
    official: Person
    years: int
    seats: int
    length: int
    cost: Money
    opened: str


def _ring(scene: Scene) -> Ring:
    c = scene.country()
    city, years = scene.fresh("velodrome", c.cities).name, scene.between(38, 96)
    return Ring(scene.fresh("velodrome matter", SITES, uses=2), c, city, scene.pick(("the velodrome", "the old cycling track", "the velodrome")), scene.person(c, "who runs the track"), scene.person(c), scene.person(c), scene.person(c), years, scene.near(900, 4_800), scene.pick((200, 250, 333, 400)), scene.money(2e5, 2.4e6, c.currency), str(scene.start.year - years))  # fmt: skip


VELODROME = Beat(
    "velodromes",
    _ring,
    (
        Stage(
            titles=("{city} velodrome {v.head}", "Velodrome in {city} {v.head}", "{c.demonym} track: {city} velodrome {v.head}", "{length}-metre velodrome in {city} {v.head}"),
            abstracts=("{v.why}. {keeper.name} runs the track in {city}.", "“{v.quote},” says {keeper.name}.", "{v.detail} The track in {city} dates from {opened}."),
            leads=("{name:cap} in {city} {v.news}, {keeper.last} said {on}.", "{v.why}. Now {name} in {city} {v.news}.", "Built in {opened} and {length} metres round, {name} in {city} {v.news}."),
            then=(say("“{v.quote},” said {keeper.last}.", "{keeper.last} [walked round the banking in socks|was oiling a gate]. “{v.quote},” {keeper.he} said."),),
            loose=(say("{v.detail}"), say("“{v.doubt},” said {critic.name}, [a former champion|who coaches juniors|of a rival club].", "{critic.name}, [who sells tickets on race nights|who has ridden here since childhood], is not convinced. “{v.doubt}.”"), say("Running the track costs about {cost} a year[, of which the city pays half|].", "The city of {city} spends about {cost} a year on the track, according to {official.name} of the sports office."), say("The track is {length} metres long and has {seats} seats.", "There are {seats} seats around its {length} metres."), say("{child.name}, who trains here [three evenings a week|on Saturdays], [has known nothing else|wants to go to the Olympics]. “[It's the only place where I like going downhill|My gran rode here and says it was steeper].”"), say("{official.name}, of the sports office, [asked for patience|promised a decision within weeks]. “[We have nine halls and one like this|I cycle, slowly, so I'm not neutral].”"), say("{c.name} has [seven|five|eleven] tracks left[, half as many as in {opened}|].")),
            weight=0.2, covered=0.06,
        ),
    ),
    share=0.4,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    g: Gear
    body: str
    head: Person
    rider: Rider
    mechanic: Person
    maker: Person
    firm: str
    price: Money
    votes: int
    months: int
    teams: int


def _rule(scene: Scene) -> Rule:
    rider, team = scene.pick(_riders(scene))
    return Rule(scene.fresh("cycling gear", GEARS), "the cycling federation", scene.person(None, "who chairs its technical committee"), rider, scene.person(None), scene.person(None), scene.pick(("Ostara", "Ferrum-Oak", "Vento", "Kadenz", "Altis", "Rotor & Sons")), scene.money(90, 2_400, team.country.currency), scene.between(5, 11), scene.between(3, 14), scene.between(3, 17))  # fmt: skip


GEAR = Beat(
    "bike technology",
    _rule,
    (
        Stage(
            titles=("Cycling federation {g.head}", "Bike technology: federation {g.head}", "Peloton divided as federation {g.head}", "{rider.last} critical as cycling federation {g.head}"),
            abstracts=("According to its experts, {g.claim}.", "“{g.quote},” says {head.name}. {rider.name} of {rider.team} is not persuaded.", "{g.detail} The rule takes effect in {months} months."),
            leads=("The cycling federation {g.news}, it said {on}.", "After {votes} hours of debate, the technical committee of the cycling federation {g.news}.", "Riders and mechanics woke up to a new rule {on}: the cycling federation {g.news}."),
            then=(say("The reason given was that {g.claim}.", "In the committee's view, {g.claim}."), say("“{g.quote},” said {head.last}.")),
            loose=(say("“{g.doubt},” said {rider.name} of {rider.team}.", "{rider.name}, who rides for {rider.team}, [shook {rider.his} head|laughed]. “{g.doubt}.”"), say("{g.detail}"), say("{mechanic.name}, a mechanic for twenty years, [sighed|reached for a file]. “[Another drawer full of things I can't use|By Sunday somebody will have found a way round it],” {mechanic.he} said."), say("{firm}, which makes such parts, sells them for about {price}. “[We'll adapt, we always have|It was legal on Friday],” said {maker.name}, its head of design."), say("In all, {teams} teams are affected.", "The rule takes effect in {months} months[, after a trial in smaller races|]."), say("The decision was taken by a [large|narrow] majority.")),
            weight=0.22, covered=0.1,
        ),
        Stage(
            titles=("Teams appeal after cycling federation {g.head}", "{firm} protests as federation {g.head}", "Bike rule: {rider.last} and {teams} teams write to federation"),
            abstracts=("In all, {teams} teams have signed a letter of protest. {head.name} is unmoved.", "{firm} fears for sales of a part that costs {price}."),
            leads=("Opposition to the cycling federation, which {g.news}, is growing: {teams} teams signed a letter {on}.", "{firm} said {on} that it would contest the decision of the cycling federation, which {g.news}."),
            then=(say("“{g.doubt},” said {rider.name}, of {rider.team}.",), say("“{g.quote},” {head.last} repeated.")),
            loose=(say("{g.detail}"), say("“[We'd ordered {teams} crates|All we ask for is a season's notice],” said {maker.name}, who designs for {firm}."), say("{mechanic.name}, a mechanic, sees it [calmly|with horror]. “[Rules come and go, grease stays].”"), say("The federation had argued that {g.claim}."), say("The rule was announced {t0:on}.")),
            after=(2, 5), weight=0.18, chance=0.6,
        ),
    ),
    share=0.35,
    rhythm=OFFICE,
)  # fmt: skip
