# ruff: noqa: E501 (prose reads better unbroken)
"""The climate desk: the energy transition, wildlife, measurements and treaties; the weather is in climate_weather."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Desk, Scene, Stage, say
from backend.news.sources.newsroom.desks.climate_matters import (
    ACCORDS,
    CREATURES,
    FINDINGS,
    SCHEMES,
    Accord,
    Creature,
    Finding,
    Scheme,
    coast_of,
    country_of,
)
from backend.news.sources.newsroom.desks.climate_weather import FLOOD, HEAT, STORM
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Project:
    s: Scheme
    c: Country
    city: City
    region: str
    coast: str
    n: int
    many: int
    cost: Money
    tonnes: int
    years: int
    votes: int
    against: int
    head: Person
    guest: Person
    critic: Person
    expert: Person
    minister: Person


def _project(scene: Scene) -> Project:
    s = scene.fresh("energy scheme", SCHEMES, uses=2)
    c = country_of(scene, s.climate)
    against, n = scene.between(5, 13), scene.between(11, 48)
    return Project(
        s, c, scene.fresh("energy city", c.cities, uses=4), scene.pick(c.land.regions), coast_of(scene, c), n, n * 100, scene.money(9e6, 6e8, c.currency), scene.near(4_000, 160_000), scene.between(2, 6), against + scene.between(4, 19), against,
        scene.person(c, "who leads the project"), scene.person(c, she=True if "mother" in s.who else None), scene.person(c), scene.person(c, "an energy researcher"), c.minister("energy"),
    )  # fmt: skip


ENERGY = Beat(
    "energy transition",
    _project,
    (
        Stage(
            titles=("Energy transition: plan to {s.plan}", "{s.noun:cap} for {city.name}: {s.by} wants to {s.plan}", "{city.name} to get {s.noun} for {cost}", "New {s.noun} near {city.name} would save {tonnes} tonnes of carbon dioxide"),
            abstracts=("The {s.noun} is to cost {cost} and take {years} years. “{s.pro},” says {head.name}, who leads the project.", "{s.detail}", "“{s.word},” says {guest.name}, {s.who}.", "It would save {tonnes} tonnes of carbon dioxide a year. The council decides within weeks."),
            leads=("{s.by:cap} wants to {s.plan}, at a cost of {cost}.", "Plans to {s.plan} were [presented|laid out] in {city.name} {on} in a full [school hall|town hall]. Behind them is {s.by}.", "If all goes well, it will take {years} years: {s.by} intends to {s.plan}. The sum needed, {cost}, was [named|made public] {on}.", "The council of {city.name} voted {votes} to {against} {on} to let {s.by} {s.plan}."),
            then=(say("“{s.pro},” said {head.last}.", "{head.last} [needed one picture to explain it|spoke without notes]. “{s.pro},” {head.he} said."), say("{guest.name}, {s.who}, [listened at the back|had come to ask one question]. “{s.word},” {guest.he} said.", "“{s.word},” said {guest.name}, {s.who}.")),
            loose=(say("{s.detail}"), say("The project would save about {tonnes} tonnes of carbon dioxide a year, {expert.last} has worked out. “[That's a small town's worth|It is the dull ones that add up],” {expert.he} said.", "{expert.last} puts the saving at {tonnes} tonnes of carbon dioxide a year."), say("The money, {cost}, comes [from loans and a state grant|in equal parts from banks, the state and savers]."), say("{minister.last} [promised a quick permit|called it a model for {c.name}].", "In {c.name}, {minister.last} wants to double the pace of such projects."), say("Construction is to take {years} years.")),
            weight=0.35, covered=0.15,
        ),
        Stage(
            titles=("{s.hitch_head:cap}", "Setback for {s.noun} in {city.name}", "“{s.hitch_word}”: trouble for {city.name} {s.noun}", "{city.name} {s.noun} [delayed|runs into trouble]"),
            abstracts=("{s.hitch}.", "“{s.hitch_word},” says {critic.name}, {s.hitch_who}.", "The plan to {s.plan} is in difficulty."),
            leads=("{s.hitch}. It is a setback for the {s.noun} at {city.name}, for which {s.by} presented plans {t0:on}.", "{s.hitch}. That became known {on}, days after {s.by} had said it would {s.plan}.", "The {s.noun} at {city.name} has [a problem|met its first obstacle]. {s.hitch}."),
            then=(say("“{s.hitch_word},” said {critic.name}, {s.hitch_who}.",),),
            loose=(say("{head.last} [did not despair|asked for a fortnight]. “[We have had worse meetings|Every plan looks best the day before it meets the world],” {head.he} said."), say("{s.detail}"), say("The costs, put at {cost} so far, are likely to rise."), say("{guest.name}, {s.who}, was not [surprised|gloating]. “{s.word},” {guest.he} said."), say("“[Nine in ten of these get built in the end, and one in ten on time|It's a planning problem and not a technical one],” said {expert.last}."), say("The {s.noun} is meant to save {tonnes} tonnes of carbon dioxide a year.")),
            after=(2, 5), weight=0.3, covered=0.1, chance=0.9,
        ),
        Stage(
            titles=("{s.end_head:cap}", "{s.noun:cap} near {city.name}: a way out is found", "After setback, {city.name} {s.noun} goes ahead"),
            abstracts=("{s.end}.", "The {s.noun} will come after all. “{s.pro},” says {head.name}.", "A hitch had held up the {cost:adj} project."),
            leads=("{s.end}, it was announced in {city.name} {on}.", "There is an end to the wrangling over the {s.noun} at {city.name}. {s.end}.", "{s.end}. With that, the last obstacle to the {s.noun} at {city.name} has gone, {head.last} said {on}."),
            then=(say("“[It is later and dearer and better|I have aged a turbine's lifetime|We found it by listening, which is cheaper than lawyers],” said {head.last}.",),),
            loose=(say("Earlier, the worry was another. {s.hitch}, as was reported {t1:on}."), say("{critic.name}, {s.hitch_who}, [can live with it|was content]. “[They listened, late|I have nothing left to object to, it's a strange feeling],” {critic.he} said."), say("{guest.name}, {s.who}, [shrugged|smiled]. “{s.word},” {guest.he} said."), say("The project costs {cost} and should save {tonnes} tonnes of carbon dioxide a year."), say("{s.detail}"), say("{minister.last} [will cut the ribbon|sent congratulations].")),
            after=(3, 6), weight=0.35, covered=0.15, chance=0.9,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Sighting:
    a: Creature
    c: Country
    city: City
    region: str
    coast: str
    n: int
    few: int
    pct: int
    expert: Person
    guest: Person
    other: Person


def _sighting(scene: Scene) -> Sighting:
    a = scene.fresh("creature", CREATURES, uses=3)
    c = country_of(scene, a.climate)
    return Sighting(a, c, scene.fresh("wildlife city", c.cities, uses=4), scene.pick(c.land.regions), coast_of(scene, c), scene.between(12, 48), scene.between(3, 9), scene.between(58, 88), scene.person(c), scene.person(c), scene.person(None, "a conservationist"))  # fmt: skip


WILDLIFE = Beat(
    "wildlife",
    _sighting,
    (
        Stage(
            titles=("{a.head}", "{a.head2}", "Wildlife: {c.name} and its {a.animal}", "“{a.doc}”: the {a.animal} of {c.name}", "“{a.word}”: living with {a.animal} in {c.name}"),
            abstracts=("{a.news}.", "{a.figure} “{a.doc},” says {expert.name}, {a.expert}.", "{a.why} {a.threat}", "“{a.word},” says {guest.name}, {a.who}."),
            leads=("In {c.name} [there is something to report|they speak of little else]: {a.news:lower}.", "{a.news}, [researchers in {c.name}|{c.demonym} observers] reported {on}.", "“{a.word},” says {guest.name}, {a.who}. [All over {c.name} it's the same subject:|It's the talk of {c.name}:] {a.news:lower}.", "There is news of the {a.animal} in {c.name}. {a.news}."),
            then=(say("“{a.doc},” says {expert.name}, {a.expert}.", "{expert.name}, {a.expert}, [takes off {expert.his} cap|has waited for this]. “{a.doc},” {expert.he} says."),),
            loose=(say("{a.why}"), say("{a.figure}"), say("{a.threat}", "{a.threat} {other.last} sees no quick answer. “[Animals do not read plans|We share a map, like it or not|It's a matter of space, it always is],” {other.he} says."), say("{guest.name}, {a.who}, sees it [from another side|without romance]. “{a.word},” {guest.he} says.", "“{a.word},” says {guest.name}, {a.who}."), say("What comes next? {a.end}", "{a.end}")),
            weight=0.25, covered=0.12,
        ),
        Stage(
            titles=("What becomes of the {a.animal} of {c.name}?", "{a.animal:cap} near {city.name}: the quarrel after the joy", "{c.name} discusses its {a.animal}", "After the news of the {a.animal}: a visit to {city.name}"),
            abstracts=("{a.threat} {a.end}", "“{a.word},” says {guest.name}, {a.who}. {a.end}", "Few reports have brought so many letters as the one about the {a.animal}."),
            leads=("Since it was reported {t0:on} what the {a.animal} of {c.name} are up to, {expert.name}, {a.expert}, has answered {n} telephone calls. Most callers want to know what comes next.", "Joy and worry lie close together near {city.name} in {c.name}. {a.threat}", "A meeting about the {a.animal} filled the [village hall|inn] near {city.name} {on}, and people came from all over {c.name}."),
            then=(say("“{a.doc},” {expert.name}, {a.expert}, told [the callers|one of them].", "“{a.word},” said {guest.name}, {a.who}."),),
            loose=(say("The news was this: {a.news:lower}."), say("{a.end}"), say("{a.figure}"), say("{other.last} asks for patience. “[In ten years nobody will remember the fuss|Let us be generous with what we have nearly lost],” {other.he} says."), say("{guest.name}, {a.who}, has not changed {guest.his} mind[ and does not mean to|]."), say("{a.why}")),
            after=(3, 7), weight=0.2, chance=0.6, covered=0.05,
        ),
    ),
    share=0.8,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Measurement:
    f: Finding
    c: Country
    city: City
    region: str
    coast: str
    n: int
    many: int
    few: int
    pct: int
    doc: Person
    sceptic: Person
    minister: Person
    years: int


def _measurement(scene: Scene) -> Measurement:
    f = scene.fresh("finding", FINDINGS, uses=3)
    c, n = country_of(scene, f.climate), scene.between(11, 26)
    return Measurement(f, c, scene.fresh("finding city", c.cities, uses=4), scene.pick(c.land.regions), coast_of(scene, c), n, n * 100, scene.between(3, 8), scene.between(14, 36), scene.person(c), scene.person(None), c.minister("environment"), scene.between(4, 19))  # fmt: skip


SCIENCE = Beat(
    "climate science",
    _measurement,
    (
        Stage(
            titles=("{f.head}", "{f.head2}", "“{f.doc}”: climate research from {c.name}", "Climate study: {f.head:lower}"),
            abstracts=("Researchers say that {f.what}.", "{f.how} “{f.doc},” says {doc.name}.", "{f.means} {f.next}.", "{doc.name} has worked on it for {years} years. The result: {f.what}."),
            leads=("{f.what:cap}, according to a study published {on}.", "[The figure was a while in coming|It took a while]. Now it is on the table: {f.what}, {c.demonym} researchers reported {on}.", "{doc.name} [does not like|is wary of] big words. So here is the finding, after {years} years of work: {f.what}.", "Climate researchers in {c.name} have [new figures|done a sum]. {f.what:cap}."),
            then=(say("{f.how}", "How does one know? {f.how}"), say("“{f.doc},” said {doc.name}, [a {c.demonym} climate researcher|who led the study in {c.name}|lead author of the {c.demonym} study].", "{doc.name}, [who led the {c.demonym} team|who works in {c.name}], [was asked what it meant|shrugged]. “{f.doc},” {doc.he} said.")),
            loose=(say("{f.means}", "{f.means} That makes it [a matter for treasurers|more than a curiosity], too."), say("“{f.sceptic},” said {sceptic.name}, [who was not involved|who works on related questions].", "{sceptic.name}, [a colleague abroad|who reviewed the data], [advises care|has an objection]. “{f.sceptic},” {sceptic.he} said."), say("{f.next}.", "And then? {f.next}."), say("{minister.last} [called the figures sobering|has asked for a briefing|saw the course of the government confirmed]."), say("{f.scene}")),
            weight=0.3, covered=0.2,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Summit:
    a: Accord
    c: Country
    city: City
    rich: Country
    poor: Country
    n: int
    few: int
    members: int
    brackets: int
    chair: Person
    envoy: Person
    other: Person
    watcher: Person
    passed: str | None
    failed: str | None


def _summit(scene: Scene) -> Summit:
    a = scene.fresh("accord", ACCORDS, uses=2)
    c = scene.country("summit")
    near = [one for one in scene.world.countries if one is not c]
    rich = scene.pick(
        [
            one
            for one in near
            if one.name in ("Caldria", "Vestria", "Skarland", "Aurenne", "Ontara", "Naruma", "Montavia")
        ]
    )
    poor = scene.pick(
        [one for one in near if one.name in ("Castara", "Belmara", "Tamira", "Sundara", "Pelinang", "Oyala", "Zamburi")]
    )
    passed = scene.chance(0.65)
    return Summit(
        a, c, scene.pick(c.cities), rich, poor, scene.between(14, 60), scene.between(3, 9), scene.between(84, 168), scene.near(240, 1_900), scene.person(c, "who chairs the talks"), scene.person(rich, f"who leads the {rich.demonym} delegation"), scene.person(poor, f"the delegate of {poor.name}"),
        scene.person(None, "who observes the talks for an environmental group"), "" if passed else None, None if passed else "",
    )  # fmt: skip


TREATY = Beat(
    "climate treaties",
    _summit,
    (
        Stage(
            titles=("Climate talks on {a.name} open in {city.name}", "{members} countries meet in {city.name} to negotiate {a.name}", "{a.name:cap}: what the summit in {city.name} is about", "In {city.name}, talks begin on {a.on}"),
            abstracts=("The main dispute is {a.row}. The draft has {brackets} passages in brackets.", "Delegates from {members} countries have a week for {a.on}.", "“{a.poor},” says {other.name}, the delegate of {poor.name}."),
            leads=("Talks on {a.on} opened in {city.name} {on} with delegates from {members} countries and a draft that has {brackets} brackets in it.", "{a.sight} when delegates from {members} countries came together in {city.name} {on} to negotiate {a.on}.", "Everybody is in favour. The question in {city.name}, where {members} countries began to talk {on} about {a.on}, is {a.row}."),
            then=(say("“{a.poor},” said {other.last}.", "{other.last} [was applauded for one sentence|spoke early]. “{a.poor},” {other.he} said."), say("{envoy.last} [answered in the afternoon|saw it differently]. “{a.rich},” {envoy.he} said.", "“{a.rich},” said {envoy.last}.")),
            loose=(say("What divides them is {a.row}.", "The sticking point is {a.row}."), say("{chair.last} [rang a cow bell to open the meeting|asked for short speeches and got two]. “[The planet has no time zone|We have a week and {brackets} brackets, please do the division],” {chair.he} said."), say("{watcher.last} expects [night sittings|little before the last day]. “[They move when the cleaners come|The first three days are theatre],” {watcher.he} said."), say("{a.sight}."), say("A deal needs the consent of all {members} countries.")),
            weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("Climate summit in {city.name} stuck over {a.name}", "{a.name:cap} talks: {poor.name} and {rich.name} at odds", "Deadlock in {city.name} over {a.row}", "Night session in {city.name} as {a.name} hangs in balance"),
            abstracts=("Of {brackets} brackets, {n} are left, and they are the ones that matter.", "“{a.rich},” says {envoy.name}. The talks are stuck.", "The dispute: {a.row}."),
            leads=("Negotiations on {a.on} were stuck in {city.name} {on}, over the question that was there at the start: {a.row}.", "Of {brackets} brackets, {n} remain, and they are the ones that count. In {city.name}, talks on {a.on} went into the night {on}.", "{other.last} left the room at a quarter to two, and came back with coffee. It was, in {city.name} {on}, the most hopeful moment of the talks on {a.on}."),
            then=(say("“{a.rich},” said {envoy.last}.",), say("“{a.poor},” {other.last} replied.", "{other.last} would not have it. “{a.poor},” {other.he} said.")),
            loose=(say("{chair.last} has [put a text of {chair.his} own on the table|sent both sides into a smaller room]. “[I've taken away the chairs, it speeds things up|They agree on the commas],” {chair.he} said."), say("The talks began {t0:on} with {brackets} passages in brackets."), say("“[Watch the caterers: when they order breakfast, it goes on|I have seen worse drafts become law],” said {watcher.last}."), say("{a.sight}."), say("At the core of it is {a.row}.")),
            after=(2, 3), weight=0.4, covered=0.15,
        ),
        Stage(
            titles=("{passed}Deal in {city.name}: {members} countries agree on {a.name}", "{failed}Climate talks on {a.name} fail in {city.name}", "{passed}{a.name:cap} agreed after night of talks in {city.name}", "{failed}No {a.name}: summit in {city.name} ends without agreement", "{passed}Climate summit agrees {a.name}, with a gap", "{failed}Collapse in {city.name}: {a.missed}"),
            abstracts=("{passed}Under the agreement, {a.text}. But {a.left}.", "{failed}In the end {a.missed}. Talks are to go on in a year.", "{passed}“[It is a start with a roof on|Nobody is happy, so it's balanced],” says {chair.name}, who chaired the talks." , "{failed}“{a.poor},” says {other.name}, the delegate of {poor.name}."),
            leads=("{passed}After a night without sleep, {members} countries agreed in {city.name} {on} on {a.on}: {a.text}.", "{failed}Talks on {a.on} broke down in {city.name} {on}, because {a.missed}.", "{passed}The gavel came down at dawn. Delegates in {city.name} had agreed on {a.on}; {a.text}.", "{failed}It was already light when {chair.name} switched off the microphone. The talks on {a.on} had failed: {a.missed}."),
            then=(say("{passed}“[It's a start with a roof on|Nobody is happy, so it is balanced|We built a bridge and forgot the railing],” said {chair.last}.", "{failed}“[I won't call it progress|We'll meet again, older and warmer|There was a deal in that room, and it was left on the table],” said {chair.last}."),),
            loose=(say("{passed}Still, {a.left}.", "{failed}The dispute had been {a.row}."), say("“{a.rich},” {envoy.last} had said {t1:on}."), say("“{a.poor},” said {other.last}, [hoarse by now|on the way to the airport]."), say("{passed}“[I'd have liked more teeth|One can work with it],” said {watcher.last}.", "{failed}“[The atmosphere didn't wait outside|They've saved face and nothing else],” said {watcher.last}."), say("{passed}The agreement takes effect when half of the {members} countries have ratified it.", "{failed}The {members} countries will try again in a year."), say("When it began {t0:on}, the text had {brackets} brackets.")),
            after=(1.5, 3), weight=0.6, covered=0.4,
        ),
        Stage(
            titles=("{passed}What follows from the {a.name} of {city.name}", "{passed}{rich.name} [first to sign|signs] {a.name}", "{failed}After failed summit, {rich.name} goes ahead without {a.name}", "{failed}{a.name:cap}: {poor.name} and {rich.name} look for a smaller circle"),
            abstracts=("{passed}Under the accord {a.text}. Parliaments must agree.", "{failed}A group of {n} countries wants to go on alone."),
            leads=("{passed}{rich.name} began {on} to turn the {a.name} agreed in {city.name}, {c.name}, into law. Its core: {a.text}.", "{failed}A group of {n} countries led by {rich.name} and {poor.name} said {on} that it would go on without the others, after the talks on {a.on} in {city.name} failed {t2:on}."),
            then=(say("{passed}“[Signing takes a minute, the rest a decade|Now it is about meters and inspectors],” said {envoy.last}.", "{failed}“[Better a small boat than a large pier|Whoever wants to may come aboard],” said {envoy.last}."),),
            loose=(say("{passed}Open questions remain: {a.left}.", "{failed}In {city.name}, {a.missed}."), say("{other.last}, for {poor.name}, [kept up the pressure|was sober]. “{a.poor},” {other.he} said."), say("“[Paper is patient, the air isn't|I count ratifications, not speeches],” said {watcher.last}."), say("{chair.last} has gone home to sleep, {chair.his} office [said|let it be known]."), say("The summit had brought {members} countries together.")),
            after=(2, 4), weight=0.3, chance=0.8, covered=0.1,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip

CLIMATE = Desk("climate", (STORM, FLOOD, HEAT, ENERGY, WILDLIFE, SCIENCE, TREATY), share=0.9)
