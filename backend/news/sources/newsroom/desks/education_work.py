# ruff: noqa: E501 (prose reads better unbroken)
"""The education desk on strikes of teachers and on learning a trade."""

from __future__ import annotations

from dataclasses import dataclass, replace

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Grievance:
    short: str
    wish: str
    line: str
    sign: str
    scene: str


_GRIEVANCES: tuple[Grievance, ...] = (
    Grievance(
        "class sizes",
        "no more than twenty-four pupils in a class",
        "I know thirty-one names and four faces",
        "31 is not a class, it is a crowd",
        "Pickets chalked thirty-one pairs of feet on the pavement",
    ),
    Grievance(
        "cold classrooms",
        "eighteen degrees in every room",
        "I teach verbs in mittens",
        "We are warming to it, slowly",
        "Strikers handed out tea in front of the ministry's heated lobby",
    ),
    Grievance(
        "unpaid hours",
        "pay for marking",
        "My Sundays are blue and red",
        "Mark this",
        "A heap of exercise books was left at the ministry's door, unmarked",
    ),
    Grievance(
        "temporary contracts",
        "permanent contracts after three years",
        "I have said goodbye every July for nine years",
        "Here today",
        "Nine hundred suitcases stood in rows on the square",
    ),
    Grievance(
        "support staff",
        "an assistant in each first-year class",
        "I tie forty laces before I teach one letter",
        "Two hands, twenty-eight laces",
        "The march was led by dinner ladies with ladles",
    ),
    Grievance(
        "pensions",
        "the old retirement age",
        "At sixty-six I am to jump over a vaulting horse",
        "Too old to vault",
        "A woman of sixty-four did a handstand on the ministry's steps",
    ),
    Grievance(
        "paperwork",
        "half of the forms",
        "I have filled in a form about the number of forms",
        "Form 11b: enough",
        "A paper chain of forms was wound twice around the ministry",
    ),
    Grievance(
        "violence in class",
        "a second adult in difficult classes",
        "I have a whistle and a plan of the exits",
        "Teach, not dodge",
        "Some had come with their arms in slings, and not for show",
    ),
    Grievance(
        "rural pay",
        "a bonus for remote schools",
        "My nearest colleague is a lighthouse",
        "Pay the last stop",
        "A bus from the islands arrived with its fare box nailed shut",
    ),
)


@dataclass(frozen=True)
class Strike:
    c: Country
    g: Grievance
    city: City
    leader: Person
    minister: Person
    teacher: Person
    parent: Person
    pupil: Person
    head: Person
    demand: float
    offer: float
    deal: float
    yes: int
    schools: int
    crowd: int
    days: int
    wage: Money
    union: str


def _strike(scene: Scene) -> Strike:
    g = scene.fresh("teacher grievance", _GRIEVANCES, uses=2)
    c = scene.country("teacher strike")
    demand = scene.tenth(6.5, 11.5)
    offer = scene.tenth(1.8, 3.4)
    return Strike(
        c, g, scene.pick(c.cities), scene.person(c, scene.pick(("who leads the teachers' union", "the union's leader"))), replace(c.minister("education"), role=f"the {c.demonym} education minister"), scene.person(c), scene.person(c), scene.person(c, f"aged {scene.between(8, 15)}"), scene.person(c, "a headteacher"),
        demand, offer, round((demand + offer) / 2 - 0.4, 1), scene.between(71, 96), scene.near(800, 16_000), scene.near(3_000, 60_000), scene.between(1, 4), scene.money(22_000, 48_000, c.currency), scene.pick(("the Association of Teachers", "the Schools Union", "the National Union of Teachers", "the Teachers' League")),
    )  # fmt: skip


TEACHER_STRIKE = Beat(
    "teacher strikes",
    _strike,
    (
        Stage(
            titles=("{c.demonym} teachers vote to strike over {g.short}", "Teachers in {c.name} to strike: {yes}% vote yes", "{schools} schools in {c.name} face teachers' strike", "Strike looms at {c.demonym} schools over pay and {g.short}"),
            abstracts=("In the ballot, {yes}% were in favour. Teachers want {demand}% and {g.wish}.", "“{g.line},” says {teacher.name}, a teacher. The government offers {offer}%.", "If nothing changes, {schools} schools will close {t1:on}."),
            leads=("Teachers in {c.name} will strike {t1:on} after {yes}% of them voted for it, {union} said {on}.", "A strike will close most of the {schools} schools in {c.name} {t1:on}. {union:cap} announced {on} that {yes}% of its members had voted yes.", "“{g.line},” says {teacher.name}, who teaches in {city.name} and has voted to strike. So, it was announced {on}, have {yes}% of the members of {union}."),
            then=(say("The union wants {demand}% more pay and {g.wish}; the government has offered {offer}%. “[We have asked nicely, in writing, for two years|It is not the money first, it is {g.short}],” said {leader.last}.", "{leader.last} called the ballot “[an alarm clock|louder than we had dared to hope]”. The union asks for {demand}% and {g.wish}. On the table are {offer}%."), say("“[A strike teaches the wrong lesson|The door of my office has no lock],” said {minister.last}. A new teacher in {c.name} earns {wage} a year.", "{minister.last} [regretted the vote|spoke of a small majority of a small turnout] and [offered talks|asked for an arbitrator].")),
            loose=(say("{head.name}, {head.role} in {city.name}, will [keep one room open for those who cannot stay at home|close and put up a notice]. “[I agree with them, and I have four hundred children|My caretaker has offered to teach woodwork],” {head.he} said."), say("{parent.name}, a parent of two, [has taken leave|is ringing round the neighbours]. “[They are right and I'm stuck|I do sums at the kitchen table and it's a strike there as well],” {parent.he} said."), say("“[I hope it's on a Wednesday, we have double maths|They should get it, they look tired],” said {pupil.name}, {pupil.role}."), say("The last strike of teachers in {c.name} was [six|nine|eleven] years ago and lasted [a day|three weeks].")),
            weight=0.42, covered=0.2,
        ),
        Stage(
            titles=("Teachers' strike closes schools across {c.name}", "{crowd} teachers march in {c.capital} over {g.short}", "“{g.sign}”: {c.demonym} teachers on strike", "Schools shut in {c.name} as teachers walk out"),
            abstracts=("{g.scene}. Most of the {schools} schools in {c.name} stayed shut.", "Some {crowd} teachers march. The government stands by {offer}%.", "“{g.line},” says {teacher.name}, on strike for the first time."),
            leads=("Most of the {schools} schools in {c.name} were closed {on} as teachers went on strike over pay and {g.short}.", "{g.scene}. It was the first day of the teachers' strike in {c.name}, and {crowd} came to {c.capital}.", "Instead of a bell there was a whistle. About {crowd} teachers marched through {c.capital} {on}, with signs that read “{g.sign}”."),
            then=(say("“{g.line},” said {teacher.name}, a teacher from {city.name}, [who had never been on strike|with a sign round the neck].", "{teacher.name}, who had come by [bus|an early train] from {city.name}, carried a sign: “{g.sign}.” “{g.line},” {teacher.he} said."), say("{leader.last} told the crowd that the union would “[be back, and bring the parents|not go home for {offer}%]”. {minister.last} [invited both sides for the weekend|stayed out of sight].")),
            loose=(say("{g.scene}."), say("{parent.name} had brought the children[ to the march| to work]. “[They are learning something, I suppose|Today is civics],” {parent.he} said."), say("The strike, decided {t0:on}, is to last {days:count day}. The union wants {demand}%."), say("{head.name}, {head.role}, had [nine children in the hall and a film|a silent school and a full inbox]. “[You hear the clocks|I did the drains],” {head.he} said."), say("“[It's boring after eleven|I read to my brother and he paid me],” said {pupil.name}, {pupil.role}.")),
            after=(2, 5), weight=0.5, covered=0.25,
        ),
        Stage(
            titles=("{c.demonym} teachers' strike ends with {deal}%", "Deal for teachers in {c.name}: {deal}% and {g.wish}", "Lessons resume in {c.name} after teachers' deal on {g.short}"),
            abstracts=("The agreement brings {deal}% and {g.wish}, in steps.", "“[We will be able to teach again|Nobody should have to shout for this],” the union says. Members vote on it."),
            leads=("The teachers' strike in {c.name} is over. {union:cap} and the government agreed {on} on {deal}% more pay and, in steps, {g.wish}.", "{minister.last} and the teachers reached a deal {on}: {deal}% and {g.wish}, spread over three years."),
            then=(say("“[Nobody should have to shout for this|It's a good mark and not the best],” said {leader.last}. {minister.last} called the deal “[expensive and right|a relief, above all for kitchen tables]”."),),
            loose=(say("The union had asked for {demand}%, the government had offered {offer}%."), say("“{g.line},” {teacher.name}, a teacher in {city.name}, had said during the strike. {teacher.he:cap} [will vote yes|wants to read it first]."), say("Lost lessons are [to be made up in the holidays|not to be made up, to general relief]."), say("{parent.name}, a parent, was [relieved|back at work]. “[I know now what they earn it for|We got as far as fractions],” {parent.he} said."), say("Starting pay will rise from {wage} a year.")),
            after=(2, 5), weight=0.42, covered=0.2, chance=0.75,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Trade:
    """News of a trade and those who learn it, or of people who learn late."""

    head: str
    lead: str
    detail: str
    learner: str
    who: str
    master: str
    doubt: str


_TRADES: tuple[Trade, ...] = (
    Trade("apprentices shun {n} bakeries in {city}", "Not one young person in {city} began to learn the baker's trade this year, the guild said {on}", "Of {n} bakeries, nine have the oven cold on Mondays for want of hands", "My friends come home when I get up, we meet at the door", "the one apprentice left, in her last year", "The hours are terrible and the bread is not", "A trade that begins at two needs more than a poster"),
    Trade("apprenticeships beat degrees on pay in {c.name}, study finds", "At thirty, plumbers in {c.name} earn {pct}% more than graduates in the humanities, a study published {on} found", "The gap closes at fifty, when knees come into it", "I own a van, a ladder and, soon, a flat", "a plumber of 24", "Water finds the weak spot, and so does a good apprentice", "One should not choose a life by its salary at thirty"),
    Trade("school for bell founders opens in {city} with {few} apprentices", "A school for bell founders took in its first {few} apprentices in {city} {on}", "They need three years to learn to tune by ear and one to trust it", "You only hear your mistake when it is eleven hundredweight", "one of the first class", "I am the last who knows the mixture, and I would like to be the last but seven", "There are more bell towers than orders"),
    Trade("grandmothers in evening class: {city} teaches reading to {n}", "A course for adults who can't read began in {city} {on} with {n} places, all of them taken", "Many had hidden it for decades, with forgotten glasses and bandaged hands", "I had my grandson read the label to me and said it was a game", "a cleaner of 58", "They come in by the back door, and after a month by the front", "For each one here there are fifty at home"),
    Trade("women train as crane drivers in {city} port", "The first all-female course of crane drivers passed its test in the port of {city} {on}", "The examination consists in setting down an egg", "From up there nobody can tell you anything", "who used to sell perfume", "They read the wind, and they don't race", "It is one course, the changing rooms have not been built"),
    Trade("apprentice pay in {c.name} to rise by {pct}%", "Apprentices in {c.name} will earn {pct}% more from the summer, employers and unions agreed {on}", "In the first year that is {wage} a month", "I can fill the tank and also drive it", "a roofer in the second year", "You pay for one who can't do it yet so that one day he can do it without you", "Small firms will take one where they took two"),
    Trade("watchmakers of {city} find apprentices among gamers", "A workshop in {city} has filled all {few} apprenticeships by testing players of video games, it said {on}", "They sat for an hour with tweezers and did not look up", "It's like a level that nobody has finished", "a new apprentice of 17", "Steady hands, bad posture; we can mend the posture", "A watch lasts a century, a player's patience is unproven"),
    Trade("sixty and learning: {city} opens apprenticeships to all ages", "There is no longer an age limit for apprentices in {city}, the chamber of trades decided {on}, and {n} over fifty have applied", "One is a surgeon who would like to mend boats", "I have told people where it hurts for thirty years, now my back tells me", "a trainee upholsterer of 61", "They ask why, and then they sweep without being told", "Who will employ them at sixty-four?"),
    Trade("stone masons of {city} cathedral take on {few} apprentices", "The cathedral workshop in {city} took on {few} apprentices {on}, the most for a generation", "They will not live to see the tower without scaffolding", "I carved a leaf for six weeks and then he turned it over and said: again", "an apprentice in the first year", "We work for the pigeons and for people not born yet", "Acid rain is quicker than we are"),
    Trade("hairdressers top list of broken-off apprenticeships in {c.name}", "Every third apprenticeship in {c.name} is broken off, figures showed {on}, and most often in hairdressing", "The reason named first is tone, the second is feet", "I swept for a year, I can tell you everything about sweeping", "who is now training to be a tram driver", "I shouted because I had been shouted at, and I have stopped", "A contract for three years at sixteen is a long engagement"),
    Trade("prison, kitchen, diploma: {city} chefs train ex-offenders", "The first {few} graduates of a cookery course for former prisoners received their diplomas in {city} {on}", "The guests at the examination dinner included two judges", "I was nervous, there were people there I had met before", "who cooked the fish", "Knives are not the problem, time-keeping is", "One relapse and the headlines will write themselves"),
    Trade("skills gap: {c.name} short of {n} thousand electricians", "{c.name} needs {n} thousand more electricians to meet its own climate targets, a report said {on}", "Colleges have the places, but one workshop in three has no teacher", "I have had four offers and I haven't finished my exam", "an apprentice in {city}", "They want solar roofs by Friday, I have two lads and a ladder", "You can't decree a socket"),
)  # fmt: skip


@dataclass(frozen=True)
class TradeNews:
    c: Country
    t: Trade
    city: City
    learner: Person
    master: Person
    doubter: Person
    official: Person
    n: int
    pct: int
    few: int
    wage: Money
    firms: int


def _trade(scene: Scene) -> TradeNews:
    t = scene.fresh("trade", _TRADES, uses=3)
    c = scene.country(f"trade {t.who}")
    return TradeNews(c, t, scene.pick(c.cities), scene.person(c, she=True if " her " in t.who or "perfume" in t.who else None), scene.person(c, scene.pick(("who trains the young ones", "a master of the trade", "head of the workshop"))), scene.person(c), scene.person(c, scene.pick(("of the chamber of trades", "who advises school leavers", "of the employment office"))), scene.between(13, 47), scene.between(8, 26), scene.between(5, 9), scene.money(700, 1_400, c.currency), scene.near(120, 2_400))  # fmt: skip


APPRENTICES = Beat(
    "apprenticeships",
    _trade,
    (
        Stage(
            titles=("{t.head:cap}", "“{t.learner}”: apprentices in {city.name}", "“{t.master}”: learning a trade in {city.name}"),
            abstracts=("{t.detail}.", "“{t.learner},” says {learner.name}, {t.who}.", "“{t.master},” says a master of the trade. {t.detail}."),
            leads=("{t.lead}.", "{t.lead}. [The news went round the workshops quickly|Vocational colleges in {c.name} are taking note|It is a small thing with a long history]."),
            then=(say("“{t.learner},” said {learner.name}, {t.who}. {t.detail}.", "{t.detail}. {learner.name}, {t.who}, [wiped both hands before answering|spoke over the noise of the shop]. “{t.learner}.”"), say("{master.name}, {master.role}, [nodded|has seen many come and go]. “{t.master},” {master.he} said.", "“{t.master},” said {master.name}, {master.role}.")),
            loose=(say("Not everyone is convinced. “{t.doubt},” said {doubter.name}, who [researches the labour market|ran a firm in {city.name}].", "“{t.doubt},” said {doubter.name}, [an economist|a former college principal]."), say("{official.name}, {official.role}, counts {firms} firms in the region that [would train if they could|take apprentices]. “[Parents still dream of offices|A good hand is scarcer than a good degree],” {official.he} said.", "In and around {city.name}, {firms} firms offer places, said {official.name}, {official.role}."), say("An apprentice in the first year earns about {wage} a month in {c.name}[, before deductions|].", "First-year pay is about {wage} a month, [more in the cities|less in the villages].", "Pay begins at {wage} a month and [rises with each year|, in many trades, with each exam].", "For {wage} a month to begin with, [it is not a trade for the impatient|one has to like it]."), say("Training takes three years, with [a day|two days] a week at college.", "The next course begins [after the summer|in the autumn]; applications are [open|coming in].")),
            weight=0.22, covered=0.1,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip
