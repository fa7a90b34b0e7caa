# ruff: noqa: E501 (prose reads better unbroken)
"""The health desk: drugs on trial, mental health and diet; outbreaks, hospitals and rules are in health_wards."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Desk, Scene, Stage, say
from backend.news.sources.newsroom.desks.health_matters import woman
from backend.news.sources.newsroom.desks.health_studies import MINDS, PLATES, REMEDIES, Mind, Plate, Remedy
from backend.news.sources.newsroom.desks.health_wards import HOSPITAL, OUTBREAK, POLICY
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE, ROUND
from backend.news.sources.newsroom.world import Company, Country, Money

_DRUG_HEADS = ("Velo", "Zana", "Tori", "Luma", "Oxi", "Pera", "Kavi", "Rela", "Sola", "Nevi", "Ami", "Dora", "Fena", "Quili", "Mira", "Bexa", "Halo", "Ibri", "Jova", "Cali")  # fmt: skip
_DRUG_TAILS = ("tide", "lumab", "nersen", "rin", "gliptin", "vastin", "pan", "kinra", "tril", "dexa", "stat", "vir")


@dataclass(frozen=True)
class Trial:
    r: Remedy
    co: Company
    c: Country
    city: City
    drug: str
    pct: int
    patients: int
    sites: int
    price: Money
    lower: Money
    share_pct: float
    doc: Person
    critic: Person
    patient: Person
    regulator: Person
    insurer: Person
    passed: str | None
    sent_back: str | None


def _trial(scene: Scene) -> Trial:
    r = scene.fresh("remedy", REMEDIES, uses=3)
    makers = [one for one in scene.world.companies if one.noun == "drugmaker"]
    co = scene.fresh("trial maker", makers, uses=9)
    c = scene.country()
    drug = scene.fresh("drug", [f"{head}{tail}" for head in _DRUG_HEADS for tail in _DRUG_TAILS])
    price = scene.money(1_800, 21_000, c.currency)
    passed = scene.chance(0.6)
    return Trial(
        r, co, c, scene.pick(c.cities), drug, scene.between(*r.pct), scene.near(240, 4_200), scene.between(11, 86), price, price.times(scene.rng.uniform(0.55, 0.8)), scene.tenth(1.4, 9.6),
        scene.person(c, "who led the trial"), scene.person(None), scene.person(c, she=woman(r.who)), scene.person(c, "who chairs the licensing committee"), scene.person(c, "who speaks for the health insurers"), "" if passed else None, None if passed else "",
    )  # fmt: skip


TRIAL = Beat(
    "drug trials",
    _trial,
    (
        Stage(
            titles=("{r.ill:cap} drug {drug} {r.did} in trial", "Trial of {r.ill} drug: what {drug} can do", "{co.name} says {r.ill} treatment {drug} works in trial", "New {r.ill} treatment: {r.form} passes its test", "{drug} for {r.ill}: hope, with a footnote"),
            abstracts=("Compared with {r.versus}, the treatment {r.did}. But {r.doubt}.", "{r.form:cap} with the active substance {drug} was tested on {patients} people. “{r.doc},” says {doc.name}, who led the trial.", "In a trial with {patients} patients, {drug} {r.did}. {co.name} is to apply for a licence."),
            leads=("{r.form:cap} called {drug} {r.did} in a trial with {patients} people, the {co.country.demonym} drugmaker {co.name} said {on}.", "People with {r.ill} may soon have another choice. {drug}, {r.form}, {r.did} in a trial at {sites} clinics whose results were published {on}.", "Results of a trial presented in {city.name} {on} suggest that {drug} helps against {r.ill}: compared with {r.versus}, it {r.did}."),
            then=(say("“{r.doc},” said {doc.last}.", "“{r.doc},” said {doc.last} in {city.name}.", "{doc.name}, who led the [trial|work], chose [plain|few] words. “{r.doc},” {doc.he} said."), say("{r.works}", "How does it work? {r.works}", "{r.works} That, at least, is the theory.")),
            loose=(say("The commonest side effect was {r.side}.", "It is not free of harm: doctors noted {r.side}.", "Side effects were [mostly mild|as expected], they said: {r.side}."), say("There are doubts: {r.doubt}. {critic.name}, [a specialist in {r.field}|who did not take part], advised patience. “[I'd like to see it in people who also have three other illnesses, like my patients|The confidence interval is wide enough to park in|Read the appendix, it's always in the appendix],” {critic.he} said."),
                   say("{patient.name}, {r.who}, [needs no statistics|has made up {patient.his} mind]. “{r.word},” {patient.he} said.", "“{r.word},” said {patient.name}, {r.who}."), say("Shares in {co.name} rose by {share_pct}%.", "{co.name} will apply for a licence [within weeks|in the summer], said {co.chief.name}, the chief executive."), say("The {patients} volunteers were treated at {sites} clinics, half of them with {r.versus}.", "Chance decided who among the {patients} received {drug} and who {r.versus}.")),
            weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{passed}Regulator approves {r.ill} drug {drug}", "{sent_back}Regulator sends back {r.ill} drug {drug}", "{passed}{drug} licensed: {c.name} clears {co.name} treatment for {r.ill}", "{sent_back}No licence yet for {co.name} drug against {r.ill}", "{sent_back}{c.demonym} experts want second trial of {drug}"),
            abstracts=("{passed}The committee finds that the benefit outweighs the risks. It still notes that {r.doubt}.", "{sent_back}The committee wants another trial, because {r.doubt}.", "{passed}{drug} may be prescribed by specialists in {r.field}.", "{sent_back}{co.name} must supply more data before {drug} can be sold."),
            leads=("{passed}The {c.demonym} medicines regulator licensed {drug}, {r.form} against {r.ill}, {on}.", "{sent_back}The {c.demonym} medicines regulator declined {on} to license {drug}, {r.form} against {r.ill}, and asked {co.name} for another trial.", "{passed}Doctors in {c.name} will be able to prescribe {drug} for {r.ill} within weeks, after the regulator gave its consent {on}.", "{sent_back}Hopes for an early licence for {drug} ended {on} on page {sites} of a report: the {c.demonym} regulator is not convinced that it helps enough against {r.ill}."),
            then=(say("{passed}“[The vote was clear and the discussion was long|We asked every question that a patient would ask, and some that a patient wouldn't],” said {regulator.last}.", "{sent_back}“[We'd rather be late than sorry|This is not a no; it's a not like this],” said {regulator.last}."),),
            loose=(say("In the trial, reported {t0:on}, {drug} {r.did}, compared with {r.versus}."), say("A weak point remains that {r.doubt}.", "[Longest|Hardest] of all, the committee [argued|debated] about one [point|thing]: {r.doubt}."), say("{doc.last} [had hoped for this|followed the hearing from a corridor]. “{r.doc},” {doc.he} said."), say("{passed}Only specialists in {r.field} may prescribe it at first.", "{sent_back}A new trial may take two years."),
                   say("{patient.name}, {r.who}, [was waiting for the news|had circled the date]. “{r.word},” {patient.he} said."), say("{passed}The package leaflet will warn of {r.side}.", "{sent_back}{co.chief.name}, who runs {co.name}, [spoke of a delay|said the data would be supplied]. Shares in the company fell by {share_pct}%.")),
            after=(3, 6), weight=0.45, covered=0.2, chance=0.9,
        ),
        Stage(
            titles=("{drug}: {price} a year for {r.ill} drug is too much, say insurers", "Price of {r.ill} drug {drug} divides doctors and insurers", "{co.name} and insurers haggle over price of {drug}", "What may a drug against {r.ill} cost?"),
            abstracts=("{co.name} asks {price} per patient and year. The insurers would pay {lower}.", "The licence is there, the price is not: {price} or {lower}."),
            leads=("{co.name} wants {price} per patient and year for {drug}, its new drug against {r.ill}. The {c.demonym} health insurers offered {lower} {on}.", "Two numbers lay on the table in {c.capital} {on}: {price}, which {co.name} would like for a year of {drug}, and {lower}, which the insurers would pay."),
            then=(say("“[We pay for health and not for share prices|At that price I can treat one patient, or hire half a nurse],” said {insurer.last}.",), say("{co.finance.name}, finance chief of {co.name}, [pointed to nine years of research|spoke of failed trials that must be paid for too]. “[A molecule that works carries nine that did not|Nobody haggles over a bridge once it stands],” {co.finance.he} said.")),
            loose=(say("{drug} was licensed {t1:on}. In the trial it {r.did}."), say("{patient.name}, {r.who}, [shook {patient.his} head|finds it hard to listen]. “{r.word},” {patient.he} said. “[Now put a price on that|And they talk about decimals].”"), say("An arbitration panel will decide [by the summer|if there is no agreement in six months]."), say("{doc.last} declined to take sides[, but not for long|]. “{r.doc},” {doc.he} said."), say("Critics note that {r.doubt}.")),
            after=(2, 4), weight=0.3, chance=0.8, when=lambda f: f.passed is not None,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    m: Mind
    c: Country
    city: City
    n: int
    many: int
    few: int
    pct: int
    doc: Person
    guest: Person
    sceptic: Person
    minister: Person


def _report(scene: Scene) -> Report:
    m = scene.fresh("mind", MINDS, uses=2)
    c = scene.country()
    n = scene.between(12, 38)
    return Report(m, c, scene.fresh("mind city", c.cities, uses=4), n, n * 100, scene.between(7, 12), scene.between(14, 48), scene.person(c), scene.person(c, she=woman(m.who)), scene.person(c), c.minister("health"))  # fmt: skip


_DOCTORS = "[a psychiatrist|who runs the project|a psychologist|who has worked on it for years]"

MIND = Beat(
    "mental health",
    _report,
    (
        Stage(
            titles=("{m.head}", "{m.head2}", "“{m.doc}”: mental health in {city.name}", "“{m.word}”: a mental health story from {city.name}"),
            abstracts=("{m.what}.", "{m.figure}. “{m.doc},” says {doc.name}.", "“{m.word},” says {guest.name}, {m.who}.", "{m.figure}. {m.doubt}"),
            leads=("{m.what}.", "“{m.word},” says {guest.name}, {m.who}. {guest.he:cap} is one of many. {m.what}.", "“{m.doc}.” That is how {doc.name} sums up years of work. {m.what}.", "{m.what}, it [was reported|became known] {on}."),
            then=(say(f"“{{m.doc}},” says {{doc.name}}, {_DOCTORS}.", "{doc.name}, [a doctor|who has seen it grow], has [little time for fine words|an explanation]. “{m.doc},” {doc.he} says."), say("{m.figure}.", "{m.figure}, according to [a first evaluation|the figures so far].")),
            loose=(say("{guest.name}, {m.who}, [agreed to talk about it|speaks of it quite calmly|laughs when asked]. “{m.word},” {guest.he} says."), say("{m.more}"), say("{m.turn}"), say("{m.doubt} {sceptic.name}, [who reviews such studies|a researcher elsewhere], would like to see it repeated. “[Good ideas deserve good evidence|I hope it is true, and hope is not a method|Kindness always scores well in the first year],” {sceptic.he} says.", "{m.doubt}"),
                   say("The health ministry of {c.name}, under {minister.name}, [is looking at it|has promised money for another year|did not reply to questions].", "In {c.name}, spending on mental health is [about a tenth of the health budget|growing more slowly than the number of patients].")),
            close=(say("Anyone in distress can ring the {c.demonym} helpline by day and night.", "The helpline in {c.name} is open round the clock.", chance=0.25),),
            weight=0.3, covered=0.15,
        ),
    ),
    share=0.7,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Meal:
    p: Plate
    c: Country
    city: City
    n: int
    pct: int
    doc: Person
    critic: Person
    eater: Person
    years: int


def _meal(scene: Scene) -> Meal:
    c, p = scene.country(), scene.fresh("plate", PLATES, uses=2)
    return Meal(p, c, scene.fresh("diet city", c.cities, uses=4), scene.between(43, 190), scene.between(6, 27), scene.person(c), scene.person(None), scene.person(c, she=woman(p.eater)), scene.between(3, 9))  # fmt: skip


DIET = Beat(
    "diet",
    _meal,
    (
        Stage(
            titles=("{p.head}", "Diet study from {city.name}: {p.head:lower}", "What a study from {city.name} says about {p.food}", "{p.food:cap} and health: what researchers in {city.name} found", "Nutrition: the truth about {p.food}, as seen from {city.name}"),
            abstracts=("In a new study, {p.link}. There is a catch: {p.but}.", "“{p.doc},” says {doc.name}, who led the study.", "A {c.demonym} study looks at {p.food}. Others advise caution: {p.but}.", "{doc.name} has studied {p.food} for {years} years. {doc.his:cap} advice: {p.tip}."),
            leads=("A study from {city.name}, published {on}, has news about {p.food}: {p.link}.", "The question was {p.food}, the answer [came {on}|is in]: {p.link}, say researchers in {city.name}.", "{doc.name} of {city.name} has spent {years} years on {p.food}. Now the result is there: {p.link}.", "“{p.word},” says {eater.name}, {p.eater}. [Science takes longer over it|Researchers need more words]: according to scientists in {city.name}, {p.link}.", "There is something to report about {p.food}. In a study led by {doc.name} in {city.name}, {p.link}, [as a journal wrote|it was announced] {on}.", "For {years} years {p.food} kept a small team in {city.name} busy. What came out, [published|made public] {on}, is this: {p.link}."),
            then=(say("The [design was simple|method is quickly explained]: {p.how}.", "For the study, {p.how}."), say("“{p.doc},” said {doc.name}, who led the work.", "{doc.name}, [a nutritionist|a doctor by training], who led it, [was careful|put it plainly]. “{p.doc},” {doc.he} said.")),
            loose=(say("{p.why}", "The likely reason? {p.why}"), say("Not everyone is convinced. “{p.critic},” said {critic.name}, [a statistician|who was not involved|an expert in nutrition].", "{critic.name}, [who reviewed the paper|who works on the same question], had an objection. “{p.critic},” {critic.he} said."), say("A caveat from the authors: {p.but}.", "One limit of the study is that {p.but}.", "[Before anybody changes their shopping|Lest anyone get carried away]: {p.but}.", "The paper admits that {p.but}."),
                   say("{eater.name}, {p.eater}, has {eater.his} own view. “{p.word},” {eater.he} said."), say("Advice from {city.name}: {p.tip}.", "And in the kitchen? {p.tip:cap}, says {doc.name}.", "What should one do? “{p.tip:cap},” says {doc.name}.", "{doc.name} has a rule for the table: {p.tip}.")),
            weight=0.25, covered=0.15,
        ),
    ),
    share=0.7,
    rhythm=ROUND,
)  # fmt: skip

HEALTH = Desk("health", (OUTBREAK, HOSPITAL, TRIAL, POLICY, MIND, DIET), share=0.9)
