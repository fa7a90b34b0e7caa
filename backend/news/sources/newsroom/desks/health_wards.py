# ruff: noqa: E501 (prose reads better unbroken)
"""How the health desk covers outbreaks, hospitals and public health rules."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.health_matters import GERMS, RULES, WARDS, Germ, Rule, Ward, woman
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE, ROUND
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class Outbreak:
    germ: Germ
    c: Country
    city: City
    first: int
    second: int
    total: int
    beds: int
    tested: int
    quiet: int
    doc: Person
    sleuth: Person
    patient: Person
    mayor: Person


def _outbreak(scene: Scene) -> Outbreak:
    germ = scene.fresh("germ", GERMS, uses=3)
    c = scene.country()
    first = scene.between(*germ.first)
    second = round(first * scene.rng.uniform(1.5, 2.2)) + 1
    return Outbreak(
        germ, c, scene.fresh("outbreak city", c.cities, uses=4), first, second, round(second * scene.rng.uniform(1.15, 1.4)) + 1, max(2, second // 6), scene.near(120, 900), scene.between(12, 21),
        scene.person(c, "who heads the city's health office"), scene.person(c, "an epidemiologist"), scene.person(c), scene.person(c, "the mayor"),
    )  # fmt: skip


OUTBREAK = Beat(
    "outbreaks",
    _outbreak,
    (
        Stage(
            titles=("{germ.name:cap} outbreak in {city.name}: {first:fig} cases {germ.at}", "{first:fig} ill with {germ.name} in {city.name}", "{germ.name:cap} in {city.name}: health office looks for source of outbreak", "Doctors in {city.name} report outbreak of {germ.name} {germ.at}"),
            abstracts=("The health office has confirmed {first} cases; {germ.measure}.", "Investigators want to know {germ.guess}. Signs are {germ.signs}.", "“{germ.doc},” says {doc.name} of the health office."),
            leads=("Doctors in {city.name} have found {first} cases of {germ.name} {germ.at}, the health office said {on}.", "An outbreak of {germ.name} {germ.at} has made {first:count person/people} ill in {city.name}, [and the number is likely to grow|and more results are due].",
                   "The first calls came [at the weekend|before breakfast]. By the time the laboratory had answered {on}, {city.name} had {first} confirmed cases of {germ.name}, all of them {germ.at}.", "{germ.name:cap} has been confirmed in {first:count patient} in {city.name}, all of them {germ.at}, and officials began {on} to ask {germ.guess}."),
            then=(say("“{germ.doc},” said {doc.last}.", "{doc.last} [told reporters|said at a hastily called briefing]: “{germ.doc}.”", "{doc.last} asked for calm, [and for soap|and got some]. “{germ.doc},” {doc.he} said."),
                  say("The illness shows itself by {germ.signs}. {germ.advice:cap}, {doc.last} said.", "Typical signs are {germ.signs}. Officials say that {germ.advice}.")),
            loose=(say("As a first step, {germ.measure}.", "On the advice of the health office, {germ.measure}."), say("{patient.name}, {germ.who}, [took it with patience|was still shaken|had other worries a week ago]. “{germ.word},” {patient.he} said."),
                   say("What nobody knows yet is {germ.guess}. {sleuth.last} and two colleagues [arrived from {c.capital} with a cool box|have begun to ring every patient].", "“We ask everybody the same eighty questions,” said {sleuth.last}. The point of them is {germ.guess}."),
                   say("Of the {first} patients, {beds} [are being|had to be] treated in hospital[; none is in danger|].", "Most are [at home|recovering at home]; {beds} are in hospital."), say("Samples from {tested} more people are [being tested|on their way to the laboratory]."), say("{mayor.name}, the mayor, promised a daily bulletin[ at noon|, “also on days with nothing in it”].")),
            weight=0.45, covered=0.2,
        ),
        Stage(
            titles=("{germ.name:cap} cases in {city.name} rise to {second}", "{city.name} {germ.name} outbreak: {second} ill, source unknown", "{second} cases of {germ.name} in {city.name} as search for source goes on", "Tracing {germ.name}: with the disease detectives of {city.name}"),
            abstracts=("The number has grown from {first} since {t0:since}. Investigators still ask {germ.guess}.", "{sleuth.name} and a small team are asking {germ.guess}. So far {tested} samples have been taken.", "In hospital there are {beds:count patient}. “{germ.word},” says one of those affected."),
            leads=("The number of people with {germ.name} in {city.name} has risen to {second}, from {first} {t0:on}, the health office said {on}.", "On the wall of a meeting room in {city.name} hangs a sheet of paper with {second} names. Next to each stands a date, and next to a few a question mark: they all have {germ.name}.",
                   "By now {second} people have fallen ill with {germ.name} in {city.name}, and still nobody can say {germ.guess}.", "Another day, another list: {city.name} counted {second} cases of {germ.name} {on}."),
            then=(say("“[We have three theories and I have a favourite, which I'm keeping to myself|It's slow work, mostly telephoning|People remember what they ate on their birthday and not on a Wednesday],” said {sleuth.last}.", "{sleuth.last} [rubbed {sleuth.his} eyes|had slept four hours]. “[The newest cases are the useful ones|We are looking for the thing they have in common and don't know they have],” {sleuth.he} said."),),
            loose=(say("As a precaution, {germ.measure}.", "Already {t0:on}, {germ.measure}."), say("“{germ.word},” said {patient.name}, {germ.who}."), say("Hospitals are treating {beds} of the patients. [Nobody is in a critical condition|Some have already gone home]."),
                   say("The advice stands: {germ.advice}."), say("{doc.last} expects [more cases in the next days, because the illness takes time to show|the peak within a week]. “{germ.doc},” {doc.he} said."), say("Laboratories have looked at {tested} samples[, some of them twice|]."), say("The signs are {germ.signs}.")),
            after=(1.5, 3), weight=0.4, covered=0.15,
        ),
        Stage(
            titles=("{city.name} {germ.name} outbreak traced to {germ.source}", "Source of {germ.name} found in {city.name}: {germ.source}", "How {city.name} found what caused its {germ.name} outbreak", "{germ.source:cap} behind {germ.name} outbreak in {city.name}, officials say"),
            abstracts=("{germ.found}", "Investigators say that {germ.cause}. In all {total} people have fallen ill.", "After days of questions and {tested} samples, the health office has its answer."),
            leads=("The search is over: {germ.cause}, the health office of {city.name} said {on}.", "Investigators in {city.name} know why {total} people caught {germ.name}: {germ.cause}.", "The riddle of the {germ.name} outbreak in {city.name} was solved {on}, after {tested} samples and a good many telephone calls.", "It was {germ.source}, then. The health office of {city.name} said {on} that {germ.cause}, and that this had given {germ.name} to {total} people."),
            then=(say("“[It is always a small thing|I was nearly disappointed, it was so simple|You look for a monster and you find a habit],” said {sleuth.last}.", "{sleuth.last} [heard the news on a platform|opened the result twice]. “[I would have bet on something else|One phone call more and we would have had it on the first day],” {sleuth.he} said."),),
            loose=(say("{germ.found}", chance=0.6), say("The first cases were reported {t0:on}. By {t1:since} there were {second}; now there are {total}."), say("What was ordered {t0:on} stays in force: {germ.measure}.", "In the meantime {germ.measure}, and that will [not change for now|stay so for a while]."), say("{patient.name}, {germ.who}, is [well again|on the mend]. “[So that's what it was|I would like to say something to whoever it was, and I won't],” {patient.he} said."),
                   say("{doc.last} said charges were [not for {doc.him} to bring|a matter for the prosecutor]. “I do germs,” {doc.he} said.", "Whether anybody will be prosecuted is [open|for others to decide], said {doc.last}."), say("In the course of the outbreak {beds:count patient} had to go to hospital.", "{mayor.name}, the mayor, thanked “[those who rang and those who answered|everyone who filled in eighty questions]”.")),
            after=(2, 4), weight=0.5, covered=0.25,
        ),
        Stage(
            titles=("{germ.name:cap} outbreak in {city.name} declared over", "{city.name} free of {germ.name} after {total} cases", "No new {germ.name} in {city.name} for {quiet} days", "After {total} cases, {city.name} lifts last {germ.name} rules"),
            abstracts=("No case has been added for {quiet} days. “{germ.after},” says {doc.name}.", "The outbreak, traced to {germ.source}, made {total} people ill."),
            leads=("The outbreak of {germ.name} in {city.name} is over. The health office, which had counted {total} cases, took down its last notices {on}.", "{city.name} can breathe out: there has been no new case of {germ.name} for {quiet} days, and restrictions ended {on}.", "In the end {total} people fell ill, {beds} were taken to hospital, and {on} the health office of {city.name} closed its file on {germ.name}."),
            then=(say("“{germ.after},” said {doc.last}.",),),
            loose=(say("The cause, it turned out, was {germ.source}: {germ.cause}."), say("{germ.found}"), say("{patient.name}, {germ.who}, [has put it behind {patient.him}|still tires easily]. “{germ.word},” {patient.he} had said at the time."), say("A report for the ministry in {c.capital} lists what should be done faster next time[: above all, telephoning|]."),
                   say("{sleuth.last} is already elsewhere. “[There's always a next one|Nobody calls me with good news],” {sleuth.he} said."), say("For everyday life the advice remains that {germ.advice}.")),
            after=(4, 7), weight=0.25, chance=0.8,
        ),
    ),
    share=1.2,
    rhythm=ROUND,
)  # fmt: skip


@dataclass(frozen=True)
class Hospital:
    w: Ward
    c: Country
    city: City
    hospital: str
    beds: int
    boss: Person
    staff: Person
    patient: Person
    other: Person
    later: Person
    minister: Person
    mayor: Person


_KINDS = ("General", "University Hospital", "Infirmary", "District Hospital", "Central Hospital", "St Luke's", "Memorial Hospital", "Lakeside Hospital")  # fmt: skip


def _hospital(scene: Scene) -> Hospital:
    w = scene.fresh("ward", WARDS, uses=2)
    c = scene.country()
    city = scene.fresh("hospital city", c.cities, uses=4)
    return Hospital(
        w, c, city, f"{city.name} {scene.deal('hospital kind', _KINDS)}", scene.near(280, 1_300), scene.person(c, "the hospital's director"), scene.person(c), scene.person(c, she=woman(w.who)), scene.person(c, she=woman(w.then_who)), scene.person(c),
        c.minister("health"), scene.person(c, "the mayor"),
    )  # fmt: skip


HOSPITAL = Beat(
    "hospitals",
    _hospital,
    (
        Stage(
            titles=("{hospital} {w.head}", "{city.name} hospital {w.head}"),
            abstracts=("{w.why}. “{w.boss},” says {boss.name}, the director.", "{w.why}. {w.detail}", "“{w.word},” says {patient.name}, {w.who}.", "{hospital} {w.news}."),
            leads=("{hospital} {w.news}, it said {on}.", "{hospital}, with {beds} beds [the largest for miles|the only one in the district], {w.news}.", "It came {on} in a note to the press, under the heading “For your information”: {hospital} {w.news}."),
            then=(say("{w.why}, the management said.", "The reason is quickly told. {w.why}.", "{w.why}, according to an internal paper."), say("“{w.boss},” said {boss.last}.", "{boss.last} [took questions for an hour|met the staff in the canteen]. “{w.boss},” {boss.he} said.")),
            loose=(say("{staff.name}, a {w.job}, [has worked there for years|had just come off a shift]. “{w.staff},” {staff.he} said.", "“{w.staff},” said {staff.name}, who works there as a {w.job}."), say("{patient.name}, {w.who}, [had read it in the lift|heard of it from a neighbour|had an opinion]. “{w.word},” {patient.he} said."), say("{w.detail}"),
                   say("{minister.last} [asked for a report by the end of the week|said the hospital had the ministry's ear|did not wish to comment].", "The ministry under {minister.name} [was told in advance|said it was following the matter]."), say("{hospital} has {beds} beds and serves {city.name} and the villages around it."), say("{mayor.name}, the mayor of {city.name}, [said the town would keep a close eye on it|wants the council to hear the director].")),
            weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{hospital} {w.then_head}", "{city.name} hospital {w.then_head}", "“{w.then_word}”: a hospital story from {city.name}"),
            abstracts=("{w.then}.", "“{w.then_word},” says {other.name}, {w.then_who}.", "The hospital {w.news}, as became known {t0:on}."),
            leads=("{w.then}, days after it became known that {hospital} {w.news}.", "{w.then}. It is the latest turn at {hospital}, which {w.news}, as reported {t0:on}.", "[Much has happened|The week has been long] at {hospital}, which {w.news}. {w.then}."),
            then=(say("“{w.then_word},” said {other.name}, {w.then_who}.",),),
            loose=(say("{boss.last} [answered in a letter|said little]. “{w.boss},” {boss.he} had said {t0:on}."), say("{w.why}, the hospital had explained."), say("{w.detail}"), say("{patient.name}, {w.who}, [follows it closely|has heard enough]. “{w.word},” {patient.he} said."), say("{staff.name}, a {w.job}, puts it like this: “{w.staff}.”"),
                   say("A hearing before the health committee in {c.capital} [is set for next week|has been asked for]."), say("{minister.last} [will visit {city.name} within days|has kept out of it so far].")),
            after=(2, 5), weight=0.35, covered=0.12,
        ),
        Stage(
            titles=("{hospital} {w.end_head}", "{city.name} hospital {w.end_head}"),
            abstracts=("{w.end}.", "“{w.end_word},” says {later.name}, {w.end_who}.", "{w.end}. {boss.name}, the director, says the matter is not closed."),
            leads=("{w.end}, {hospital} said {on}.", "{w.end}. So ends, for now, a story that began {t0:on}, when {hospital} said why it was in the news: it {w.news}.", "News from {hospital}: {w.end:lower}, it was announced {on}."),
            then=(say("“{w.end_word},” said {later.name}, {w.end_who}.",),),
            loose=(say("{boss.last} [was relieved|thanked the staff]. “[We have learned it in public, which is the hard way|I would not call it a happy end, I'd call it an end|It took longer than it should have],” {boss.he} said."), say("The news from {city.name} {t1:on} was a different one: {w.then:lower}."), say("It all began because {w.why:lower}."), say("{staff.name}, a {w.job}, [was sceptical|had a cake in the staff room]. “[I'll believe it in a year|We shall see on the night shift],” {staff.he} said."),
                   say("{patient.name}, {w.who}, read about it at home. “[About time|Better than nothing, and I have had nothing],” {patient.he} said."), say("{w.detail}")),
            after=(3, 6), weight=0.35, covered=0.15, chance=0.9,
        ),
    ),
    share=1.1,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Policy:
    r: Rule
    c: Country
    city: City
    place: str
    minister: Person
    lobby: Person
    expert: Person
    critic: Person
    guest: Person
    yes: int
    no: int
    ayes: int
    noes: int
    months: int


def _policy(scene: Scene) -> Policy:
    r = scene.fresh("health rule", RULES, uses=2)
    c = scene.country("health policy")
    yes, ayes = scene.between(47, 66), scene.between(112, 198)
    return Policy(
        r, c, scene.pick(c.cities), r.place, c.minister("health"), scene.person(c, f"who speaks for the {r.trade}"), scene.person(c, "a professor of public health"), scene.person(c),
        scene.person(c), yes, scene.between(21, 31), ayes, ayes - scene.between(9, 60), scene.between(5, 14),
    )  # fmt: skip


POLICY = Beat(
    "public health",
    _policy,
    (
        Stage(
            titles=("{c.name} [plans|wants] to {r.plan}", "{c.demonym} health minister takes on {r.trade} over {r.head}", "Public health: {minister.last} presents law on {r.head}", "{minister.last} wants to {r.plan}"),
            abstracts=("{r.reason}, says {minister.name}, the health minister.", "Doctors are pleased and {r.trade} are not. A survey finds {yes}% in favour.", "The plan of the {c.demonym} health ministry would take effect in {months} months."),
            leads=("{c.name} is to {r.plan}, under a draft that {minister.last} presented {on}.", "{r.reason}. The {c.demonym} health ministry now wants to {r.plan}, it said {on}.", "{minister.last} has picked {minister.his} next fight: {minister.he} wants to {r.plan}.", "The {c.demonym} government agreed {on} to {r.plan}, [a step that doctors have long wanted|which doctors have urged for years]."),
            then=(say("“{r.pro},” {minister.last} said in {c.capital}.", "{minister.last} [kept it short|had brought charts]. “{r.pro},” {minister.he} said."), say("“{r.con},” [replied|said] {lobby.last}.", "Opposition came within the hour. “{r.con},” said {lobby.last}.")),
            loose=(say("{r.detail}"), say("{expert.last} [called it overdue|would have gone further]. “[Every such law was laughed at for a year and taken for granted after five|The evidence is not perfect, it's merely good],” {expert.he} said.", "“[Prevention has no grateful patients, that's its problem|It will not save the world, it will save a few hundred people a year],” said {expert.last}."),
                   say("In a survey {yes}% were in favour and {no}% against.", "Voters like the idea: {yes}% say yes, {no}% no, according to a survey."), say("The law would come into force {months} months after the vote."), say("{critic.name}, who speaks for {c.opposition.name} on health, [would not say how the party will vote|called it “a law for the evening news”].")),
            weight=0.45, covered=0.2,
        ),
        Stage(
            titles=("{r.head:cap}: what the {c.demonym} health plan would change", "Row over {r.head} in {c.name}", "{c.name} argues about {r.head}", "{r.trade:cap} fight {c.demonym} plan on {r.head}"),
            abstracts=("{guest.name} {r.who}. “{r.word},” {guest.he} says.", "{minister.name} wants to {r.plan}. A visit to {place}.", "The {r.trade} have written to every member of the {c.house}. A majority of voters disagrees with them."),
            leads=("{guest.name} {r.who}. That makes {guest.him} an expert on the law that {c.name} is quarrelling about: the government wants to {r.plan}.", "{guest.name} {r.who}. If {minister.last} has {minister.his} way, a good deal will change: {minister.he} wants to {r.plan}, and {r.trade} have begun to fight back.", "The dispute over {r.head} in {c.name} grew sharper {on}, when the {r.trade} handed in [a petition|{months} boxes of signatures] at the {c.house}. Among those who watched was {guest.name}, who {r.who}."),
            then=(say("“{r.word},” says {guest.name}[|, who has followed it from the start].", "{guest.name} [has thought about it|was asked three times in one week]. “{r.word},” {guest.he} says."),),
            loose=(say("{r.scene}"), say("“{r.con},” said {lobby.last}."), say("{minister.last} presented the plan {t0:on}. “{r.pro},” {minister.he} said then."), say("{expert.last} [has read the studies|advises two governments]. “[Ask in ten years and nobody will remember having been against it|It works best on those who would not have come to us],” {expert.he} said."),
                   say("Surveys are steady: {yes}% in favour, {no}% against."), say("{r.detail}"), say("{critic.name} of {c.opposition.name} sees room for a compromise[, “though not much”|].")),
            after=(2, 5), weight=0.35, covered=0.1,
        ),
        Stage(
            titles=("{c.demonym} {c.house} passes law on {r.head}", "{c.name} votes to {r.plan}, with a concession", "{r.head:cap}: {c.demonym} health law passed, {r.change_short}", "{r.change_short:cap} as {c.name} passes health law"),
            abstracts=("The {c.house} voted {ayes} to {noes}. In a late change, {r.change}.", "{minister.name} gets {minister.his} law, and {r.trade} a concession.", "A compromise carried the vote: {r.change}."),
            leads=("The {c.demonym} {c.house} voted by {ayes} to {noes} {on} to {r.plan}.", "After [a week of haggling|a late sitting], {c.name} has a law on {r.head}. It passed by {ayes} votes to {noes} {on}, in a softer form: {r.change}.", "{minister.last} has [got|won] {minister.his} law on {r.head}, by {ayes} votes to {noes}, and the {r.trade} have got something too: {r.change}."),
            then=(say("“[A law with a compromise in it is still a law|I would have liked more, and I'll take this|The next minister may sharpen it],” said {minister.last}.",), say("{lobby.last} [spoke of half a victory|was not consoled]. “{r.con},” {lobby.he} repeated.")),
            loose=(say("In the final text, {r.change}."), say("The law takes effect in {months} months."), say("{expert.last} [regretted the change|was content]. “[It's three-quarters of what is needed|One shouldn't count the exceptions on the day],” {expert.he} said."), say("“{r.word},” said {guest.name}, who {r.who}."), say("{r.reason}, the ministry had argued when it [presented|published] the draft {t0:on}."), say("{r.detail}"), say("In surveys {yes}% were in favour.")),
            after=(3, 6), weight=0.55, covered=0.3,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip
