# ruff: noqa: E501 (prose reads better unbroken)
"""The court desk on inquests, appeals, small cases, prisons and how the police work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Death:
    """A death that a coroner looks into: how, what was missed, and what must change."""

    short: str
    who: str
    how: str
    missed: str
    said: str
    kin: str
    finding: str
    order: str
    body: str


DEATHS: tuple[Death, ...] = (
    Death("level crossing death", "a postman of 52", "was struck by a train at a level crossing whose bell had been muffled after complaints", "two near misses in the same month", "The bell was too loud for some, and then it was too quiet for one", "a sister", "a missed warning", "bells at nineteen crossings to be restored", "the railway"),
    Death("swimming lesson death", "a boy of nine", "drowned in a school swimming lesson in a pool with a cloudy bottom", "a filter that had been out of order for three weeks", "You couldn't see the lines, and nobody said stop", "an aunt", "neglect", "no lesson where the bottom cannot be seen", "the leisure trust"),
    Death("ambulance delay death", "a cook of 44", "died of a heart attack after an ambulance had been sent to a street of the same name in another town", "a screen that shows street names without towns", "I could hear her breathing, and then I was talking to myself", "a flatmate", "a death that could probably have been avoided", "towns to be shown in capital letters", "the ambulance service"),
    Death("scaffold death", "an apprentice of 19", "fell from a scaffold on the fourth day of work", "a training form that was signed in advance", "They gave him a helmet and a broom and told him to mind his head", "a grandmother", "unlawful killing", "a register of trainers", "the building firm"),
    Death("cell death", "a market trader of 37", "died in a police cell after asking eleven times for an inhaler", "a note on the custody sheet that reads: play-acting", "He could not breathe and they thought that was an argument", "a brother-in-law", "a failure of care", "inhalers to be left with the person who needs them", "the police"),
    Death("maternity ward death", "a newborn girl", "died after a night in which one midwife looked after four births", "a request for help that was logged as information", "I rang the bell, and I could hear it ringing in an empty room", "the child's grandfather", "gross failures", "a minimum of midwives for each night shift", "the hospital"),
    Death("festival crush", "two students", "were crushed at the gate of a music festival when a second entrance was kept shut", "a radio message that was taken for a test", "We were moving without our feet", "a friend who was with them", "a breakdown of planning", "a named officer with the power to stop a show", "the promoter"),
    Death("carbon monoxide deaths", "a couple in their sixties", "died in a holiday cottage of fumes from a boiler that had been serviced on paper", "a bird's nest in the flue", "They had written in the guest book how warm it was", "a son-in-law", "unlawful killing", "alarms in every let property", "the letting agency"),
    Death("mountain rescue death", "a volunteer rescuer of 31", "fell while looking for a party that had already reached the hotel", "a text message that said: down safe, sent to the wrong number", "She went up for people who were having soup", "a team mate", "misadventure", "a duty on hotels to report late arrivals", "the rescue service"),
    Death("tower block fall", "a toddler", "fell from a window whose lock had been reported broken nine times", "nine entries in nine different hands", "I put the cot against the other wall, that was all I could do", "a neighbour", "systemic failure", "window locks to be mended within a day", "the housing association"),
    Death("diabetes camp death", "a girl of thirteen", "died at a summer camp after her insulin had been locked in an office for safety", "a key that went home with a member of staff", "She told them the number, and nobody knew what the number meant", "a teacher from her school", "neglect", "a nurse at each camp", "the camp's owners"),
    Death("canal lock death", "a rower of 27", "drowned when a lock was emptied by remote control without a look at the camera", "a camera that had shown the day before for a week", "We shouted at a pole", "a member of the crew", "an avoidable accident", "a keeper at the lock in season", "the canal authority"),
)  # fmt: skip


_KIN = {
    "a sister": True,
    "an aunt": True,
    "a grandmother": True,
    "a brother-in-law": False,
    "the child's grandfather": False,
    "a son-in-law": False,
}


@dataclass(frozen=True)
class Inquest:
    c: Country
    death: Death
    city: City
    coroner: Person
    kin: Person
    boss: Person
    lawyer: Person
    expert: Person
    days: int
    minutes: int
    months: int
    cases: int


def _inquest(scene: Scene) -> Inquest:
    death = scene.fresh("death", DEATHS, uses=2)
    c = scene.country(f"death {death.short}")
    city = scene.pick(c.cities)
    return Inquest(
        c, death, city, scene.person(c, f"the {city.name} coroner"), scene.person(c, she=_KIN.get(death.kin)), scene.person(c, f"who spoke for {death.body}"), scene.person(c, "the family's lawyer"), scene.person(c), scene.between(3, 11), scene.between(9, 57), scene.between(9, 26), scene.between(2, 7),
    )  # fmt: skip


INQUEST = Beat(
    "inquests",
    _inquest,
    (
        Stage(
            titles=("Inquest opens into {death.short} in {city.name}", "{death.short:cap} in {city.name}: inquest hears of {death.missed}", "“{death.said}”: {city.name} inquest hears evidence", "Coroner in {city.name} examines {death.short}", "Inquest told of {minutes} minutes that decided {city.name} case"),
            abstracts=("The coroner is looking into how {death.who} {death.how}.", "“{death.said},” {death.kin} tells the inquest.", "Evidence in {city.name} turns on {death.missed}."),
            leads=("An inquest opened in {city.name} {on} into the death of {death.who}, who {death.how}.", "“{death.said},” {kin.name}, {death.kin}, told an inquest in {city.name} {on}. It is hearing how {death.who} {death.how}.", "The inquest into the {death.short} in {city.name} turned {on} to {death.missed}."),
            then=(say("{coroner.last} said the hearing would last {days} days and was “[not a trial of anyone|there to find out how, and not who]”. [The case is {months} months old|It concerns a death {months} months ago].", "It happened {months} months ago. {coroner.last} [read the facts into the record|thanked the family for its patience] and set aside {days} days for the hearing.", "{coroner.last} will hear evidence for {days} days. It is {months} months since the death[, which {coroner.he} called too long|]."),
                  say("{boss.name}, {boss.role}, [apologised to the family|read a statement]. “[We should have seen it and we did not|The system allowed it, and the system was ours],” {boss.he} said, asked about {death.missed}.", "Much time was given to {death.missed}. {boss.name}, {boss.role}, said that had since been [put right|looked into]. “[I have no excuse to offer the court|I wish I could tell you that somebody decided it. Nobody did],” {boss.he} said.")),
            loose=(say("{kin.name}, {death.kin}, [had brought a photograph and stood it on the ledge|sat beside the lawyers]. “[We don't want anyone hanged. We want it written down|It is the small things they are asking about, and it was the small things],” {kin.he} said."), say("{lawyer.last} asked how long it had taken. The answer was {minutes} minutes[, and nobody spoke for a while|].", "Between the first call and the first act lay {minutes} minutes, {lawyer.last} established."), say("{expert.name}, an independent expert, told the court of {cases} similar cases in {c.name} in ten years.", "There have been {cases} comparable cases in {c.name} within a decade, according to {expert.name}, who [wrote a report for the court|advised the coroner]."), say("The hearing continues {t1:day}.", "A finding is expected by the end of the hearing, {t1:on}.")),
            weight=0.3, covered=0.12,
        ),
        Stage(
            titles=("Inquest in {city.name} finds {death.finding} in {death.short}", "Coroner rules {death.finding} in {city.name} inquest", "{death.short:cap}: coroner {coroner.last} demands {death.order}", "{death.body:cap} criticised by {city.name} coroner over {death.short}"),
            abstracts=("The coroner finds {death.finding} and asks for {death.order}.", "{death.body:cap} has eight weeks to reply to the report.", "“{death.said},” the inquest had heard."),
            leads=("A coroner in {city.name} recorded {death.finding} {on} at the inquest into the death of {death.who}, who {death.how}.", "{coroner.last} concluded the inquest into the {death.short} {on} with a finding of {death.finding}, and a list of demands.", "It was {death.finding}, an inquest in {city.name} found {on}, when {death.who} {death.how}."),
            then=(say("{coroner.last} named {death.missed} as a cause and called for {death.order}. “[I have written reports like this before, and I would like to stop|It took {minutes} minutes to go wrong and a year to be admitted].”", "In a report to {death.body}, {coroner.last} asks for {death.order}. The coroner was in no doubt about the role of {death.missed}."),),
            loose=(say("{kin.name}, {death.kin}, [thanked the court|read from a card]. “[Now it is written down|If one bell rings because of this, good|We can start to be sad in the usual way],” {kin.he} said."), say("“{death.said},” the inquest had heard {t0:on}." , "The sentence of the hearing had been spoken {t0:on}: “{death.said}.”"), say("{boss.name}, {boss.role}, said {death.body} accepted the finding [in full|and had begun to act on it]."), say("{lawyer.last} said the family would [now consider a claim|ask the prosecutor to look at the file again]."), say("An answer is due within eight weeks. {expert.name}, who counted {cases} similar cases, [will be watching|hopes it comes sooner].")),
            after=(2, 5), weight=0.35, covered=0.15, chance=0.85,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Plea:
    """What a higher court had to decide, and what turns on it."""

    short: str
    issue: str
    won: str
    lost: str
    side: str
    voice: str
    rule: str
    next: str


PLEAS: tuple[Plea, ...] = (
    Plea("wrongful conviction", "whether a conviction for murder {years} years ago can stand after a new test of the fibres", "quashed the conviction and ordered the prisoner's release", "upheld the conviction, since the fibres had not been decisive", "who has served {years} years", "I have learned four languages in there and the words for sorry in none of them", "Evidence that was right by the science of its day may still be wrong", "A claim for damages"),
    Plea("noise ban", "whether a church may ring its bells at six in the morning", "allowed the bells, but from seven", "upheld the ban, saying that six o'clock was part of the night", "a baker who lives under the tower", "I'm up at three, it's for the others that I ask", "Age does not make a noise quieter", "A hearing about the organ"),
    Plea("privacy claim", "whether a paper may print a politician's letters to a sister", "found for the politician and ordered the pages to be withdrawn", "found for the paper, since the letters concerned a public contract", "the editor at the time", "We printed nine lines out of nine hundred and they were the nine that mattered", "A letter is private until it spends public money", "A final appeal"),
    Plea("dismissal", "whether a nurse could be dismissed for a joke about the parking fees", "ruled the dismissal void", "let the dismissal stand, because the joke named a colleague", "a nurse of twenty years", "It was not even a good joke", "A notice board is not a broadcaster", "Talks about a return to work"),
    Plea("inheritance dispute", "whether a dog can inherit a house through a trust", "allowed the trust, for as long as the dog lives", "struck down the trust and gave the house to two nephews", "one of the nephews", "We like the dog; we just don't want it to have a terrace", "A trust needs somebody who can complain", "A date for the keys"),
    Plea("sentence for a driver", "whether eight years was too much for a driver who killed two while reading a message", "cut the sentence by two years", "left the sentence as it was", "a relative of one of those killed", "I can't do that sum and I don't think they can either", "The phone was a choice, and it was made at each bend", "A campaign for tougher limits"),
    Plea("asylum dispute", "whether a witness against a foreign general may be sent home", "blocked the removal", "allowed the removal, on conditions", "who testified by video", "They know my street, and the street has not moved", "Assurances must come from those who hold the keys", "A new decision by the ministry"),
    Plea("patent dispute", "whether the smell of cut grass can be a trade mark for tennis balls", "recognised the smell as a mark", "refused to register a smell that nobody can draw", "the inventor", "Everyone who opens the tin is twelve again", "A mark must be clear to those who have a cold", "An application for the sound of a bounce"),
    Plea("damages award", "whether a city must pay a cyclist who fell into a hole that had been reported {years} times", "restored the award in full", "cut the award by half, because of a broken lamp", "the cyclist", "They offered me a helmet with the city's arms on it", "A city that is told has been told", "Repairs, the city says"),
    Plea("climate claim", "whether pensioners can sue the state over heatwaves", "said the claim may go ahead", "threw the claim out, as a matter for parliament", "one of the claimants, who is 84", "I do not have the time to wait for a policy", "A right that begins only at death is late", "A full hearing next year"),
    Plea("deportation of a chef", "whether a chef may stay who was born on a ship with no flag", "granted a right to stay", "sent the case back to the ministry", "the chef", "I have a knife, a stove and no country, and people still complain about the salt", "Nobody may be sent to a place that does not have them", "A passport, the first"),
    Plea("school ban", "whether a school may ban telephones from the bus", "upheld the ban", "lifted the ban, since the bus belongs to the city", "a pupil of fifteen who brought the case", "I read the bus contract, so I did learn something", "A rule needs a place where it begins and one where it ends", "A new rule, this time by the city"),
)  # fmt: skip


@dataclass(frozen=True)
class Ruling:
    c: Country
    p: Plea
    court: str
    years: int
    judge: Person
    party: Person
    lawyer: Person
    scholar: Person
    votes: str
    pages: int
    months: int
    won: str | None
    lost: str | None


def _ruling(scene: Scene) -> Ruling:
    p = scene.fresh("plea", PLEAS, uses=3)
    c = scene.country(f"plea {p.short}")
    won = scene.chance(0.55)
    return Ruling(
        c, p, scene.pick(("the appeal court", "the court of appeal", "the supreme court", "the high court")), scene.between(11, 24), scene.person(c, "the presiding judge"), scene.person(c), scene.person(c, "who argued the case for the government"), scene.person(c),
        scene.pick(("three judges to two", "two to one", "all five judges", "four to one", "all three judges")), scene.between(14, 120), scene.between(5, 30), "" if won else None, None if won else "",
    )  # fmt: skip


APPEAL = Beat(
    "appeals",
    _ruling,
    (
        Stage(
            titles=("{c.demonym} appeal judges rule on {p.short}", "{won}Appeal succeeds in {c.demonym} {p.short} case", "{lost}Appeal fails in {c.demonym} {p.short} case", "Judges in {c.capital} settle appeal over {p.short}", "{p.short:cap}: what the {c.demonym} appeal ruling means", "{won}Appeal court in {c.capital} overturns ruling in {p.short} case"),
            abstracts=("The question was {p.issue}. The answer runs to {pages} pages.", "“{p.rule},” the judges write.", "{won}The court {p.won}.", "{lost}The court {p.lost}."),
            leads=("{won}Asked {p.issue}, {court} in {c.capital} gave its answer {on}: it {p.won}.", "{lost}Asked {p.issue}, {court} in {c.capital} gave its answer {on}: it {p.lost}.", "{won}It took {months} months and {pages} pages to answer a simple question: {p.issue}. {on:cap}, {court} of {c.name} {p.won}.", "{lost}For {months} months, {court} of {c.name} had considered {p.issue}. {on:cap} it {p.lost}.",
                   "{won}There was a crowd on the steps of {court} in {c.capital} {on}. The judges had to decide {p.issue}. They {p.won}.", "{lost}Few had expected to wait an hour on the steps of {court} in {c.capital} {on}. The judges had to decide {p.issue}, and in the end they {p.lost}."),
            then=(say("“{p.rule},” said {judge.last}, reading from a ruling of {pages} pages.", "“{p.rule},” wrote {judge.last} for the court. The decision was taken by {votes}.", "{judge.last} gave the core of it in one sentence: “{p.rule}.”", "{judge.last} [did not hide that it had been hard|was brief]. “{p.rule}.”"),
                  say("“{p.voice},” said {party.name}, {p.side}.", "{party.name}, {p.side}, [heard the ruling standing|was in court]. “{p.voice},” {party.he} said.")),
            loose=(say("Lower courts in {c.name} will have to [follow the ruling|read the {pages} pages with care].", "The reasons run to {pages} pages[, with a table of cases|, a third of them footnotes|]."), say("{lawyer.last} said the government would “[read it before it speaks|respect it and study it]”.", "For the state, {lawyer.last} spoke of “[a result we can live with|work for the legislator]”.", "{lawyer.last} left without comment[, but with two copies|]."  ), say("{scholar.name}, who teaches law [in {c.capital}|at a provincial university], called the decision “[narrow and right|bolder than it looks|a small door in a large wall]”. “[It will be quoted for years, mostly by people who lost|Lawyers were waiting for somebody to say it|The footnotes are where it happens],” {scholar.he} said.", "{scholar.name}, [a former judge|who has written a commentary on the law], read it [twice|on the train]. “[They have answered the question and raised two|Hard cases make long judgments],” {scholar.he} said."), say("{won}A lower court had [decided the other way|come to the opposite view] {months} months ago.", "{lost}The ruling [confirms|leaves in place] that of a lower court, given {months} months ago.", "{won}It sets aside a judgment that was {months} months old and [had been much criticised|that few had expected to fall].", "{lost}The case has been in the courts for {months} months."), say("{p.next} [comes next|is what comes now|is the next step].")),
            weight=0.36, covered=0.18,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Small:
    """A small case before a district court, with its plea and its price."""

    head: str
    act: str
    job: str
    plea: str
    witness: str
    saw: str
    fine: str


SMALLS: tuple[Small, ...] = (
    Small("geese fined", "let nine geese stand on a zebra crossing for twenty minutes", "a smallholder", "They were crossing; I was only with them", "a bus driver", "I sounded the horn, and they took it for one of their own", "a fine and a lesson in leads"),
    Small("stolen hedge", "dug up forty metres of a neighbour's hedge and planted it at home", "a tax adviser", "It was leaning our way", "the neighbour", "I recognised it by the wren", "the return of the hedge, in the planting season"),
    Small("false inspector", "ate in eleven restaurants while pretending to be a food critic", "an unemployed actor", "I did write about them, only not in a paper", "a waiter", "{d.he:cap} sent back the soup, and {d.he} was right", "ninety hours of washing up"),
    Small("drunk on a mower", "drove a lawnmower along a ring road with three times the permitted alcohol", "a groundsman", "It has no number plate, so I took it for furniture", "a constable", "We were overtaking him on foot", "the loss of a licence and of the mower"),
    Small("library fraud", "returned books with the last pages cut out", "a crossword setter", "I wanted them to talk to each other", "a librarian", "People came back looking bereaved", "reading the missing pages aloud to the elderly"),
    Small("choir assault", "struck a fellow tenor with a folder during a requiem", "a dentist", "He came in early for eleven years", "the conductor", "It was in time, I will say that", "a fine, and a place among the basses"),
    Small("parking permits", "painted a disabled parking bay outside a dental practice with a home-made stencil", "a receptionist", "The need was real, it was only the paint that wasn't", "a traffic warden", "The wheelchair had five wheels", "a fine and the removal of the paint by hand"),
    Small("garden gnomes", "abducted sixty gnomes and sent their owners postcards from abroad", "a student of geography", "They all came home browner", "an owner", "He has been to more countries than I have", "a fine for each stamp"),
    Small("scooter race", "raced a mobility scooter through a shopping arcade at night", "a pensioner of 79", "There were no signs, because nobody thought we would", "a security guard", "There were two of them and one had flags", "a caution and a bell"),
    Small("fake bus stop", "put up a bus stop in front of a snack bar", "a snack bar owner", "People were happier waiting there, ask them", "a passenger", "I waited an hour and had two sausages", "a fine, less the price of the bench"),
    Small("wedding brawl", "threw a cake and then a cousin into a fish pond", "a best man", "I was aiming for the pond with the cake", "the photographer", "I have it frame by frame, and it's the best work I've done", "damages for eleven carp"),
    Small("cheese smuggling", "brought ninety kilos of raw cheese across the border in a pram", "a grandparent of four", "It was asleep", "a customs officer", "The dog sat down and cried", "confiscation and a fine by weight"),
    Small("drone nuisance", "flew a drone over a nudist beach to count birds", "an amateur ornithologist", "I have four hundred pictures of terns and one misunderstanding", "a bather", "Terns don't hover at that height", "the loss of the drone and an apology in writing"),
    Small("statue dressed", "dressed a general's statue in swimming trunks on eleven nights", "a seamstress", "He looked hot", "the mayor's driver", "They fitted, that is what struck me", "a fine that strangers paid within the hour"),
    Small("pigeon poisoner", "fed pigeons with corn soaked in schnapps", "a roofer", "They were merrier, and they left", "a vet", "They walked into the surgery by themselves", "a ban on feeding and a donation"),
    Small("piano at night", "played the same waltz on a public piano for nineteen nights", "a night porter", "I was waiting for somebody who knows it", "a resident", "On the twentieth night I missed it", "an order to play before nine"),
    Small("phantom dentist", "sold whitening treatments that were toothpaste and a lamp", "a beautician", "They smiled when they left", "a customer", "My cat ran away from the glow", "the return of the money and a ban"),
    Small("bicycle bell theft", "unscrewed two hundred bicycle bells and made a glockenspiel", "a music teacher", "They were all out of tune with each other", "a courier", "I heard my bell in a concert, third bar", "the return of the bells, in order of size"),
)  # fmt: skip


@dataclass(frozen=True)
class Petty:
    c: Country
    s: Small
    city: City
    d: Person
    witness: Person
    judge: Person
    sum: Money
    minutes: int
    previous: int


def _petty(scene: Scene) -> Petty:
    s = scene.fresh("small", SMALLS, uses=2)
    c = scene.country(f"small {s.head}")
    d = scene.person(c)
    return Petty(c, s, scene.pick(c.cities), replace(d, role=s.job), scene.person(c), scene.person(c, "the judge"), scene.money(120, 3_200, c.currency), scene.between(11, 50), scene.between(2, 7))  # fmt: skip


SMALL_CASE = Beat(
    "district court",
    _petty,
    (
        Stage(
            titles=("{city.name} district court: {s.head}", "“{s.plea}”: {d.last} before district court in {city.name}", "{city.name} district court hears how {d.last} {s.act}", "{s.job:cap} in {city.name} court over {s.head}", "{d.last} before {city.name} judge: {s.head}"),
            abstracts=("The accused {s.act}. The judge decided on {s.fine}.", "“{s.saw},” {s.witness} told the court.", "It took the district court in {city.name} {minutes} minutes."),
            leads=("{d.last} appeared before the district court in {city.name} {on}, because {d.he} {s.act}.", "It is not an everyday charge. {d.last}, the district court in {city.name} heard {on}, {s.act}.", "Courtroom [two|three|nine] in {city.name} is a small room for small matters. {on:cap} it heard that {d.last} {s.act}.", "The charge sheet was read twice in {city.name} {on}, since the judge had thought it a slip. {d.last} {s.act}, it says.", "For {minutes} minutes {on}, the district court in {city.name} gave its attention to {d.last}, who {s.act}."),
            then=(say("{d.last} did not deny it. “{s.plea},” {d.he} said[, and sat down|, to laughter that the judge cut short|].", "Asked to explain, {d.last} thought for a while. “{s.plea}.”", "“{s.plea},” was all that {d.last} would say [at first|in defence]."),
                  say("“{s.saw},” said {witness.name}, {s.witness}[, the only witness|, who gave evidence with a straight face|].", "The only witness was {witness.name}, {s.witness}. “{s.saw},” {witness.he} said.", "{witness.name}, {s.witness}, was asked to describe what had happened. “{s.saw}.”"),
                  say("{judge.last} settled on {s.fine}, plus {sum} in costs. “[I have had worse mornings|This court does not want to see you again, though it has enjoyed it|The law has a sense of humour, but it's a small one].”", "After {minutes} minutes, {judge.last} announced {s.fine}, and costs of {sum}. “[You are not a criminal, you are a nuisance|I am supposed to deter others, and I don't think there are any others].”")),
            loose=(say("{d.last} [had come without a lawyer|had brought a lawyer, who said little|was defended by a trainee].", "In mitigation, it was said that {d.last} had [apologised with flowers|slept badly since|lost a bet]."), say("The prosecutor had asked for [twice as much|a week in jail|a warning only]. {d.last} has no previous convictions.", "{d.last} has [no record|been before the court {previous} times, never for the same thing].", "It was the {previous:ord} case of the morning, and the longest.", "An appeal is possible, [though nobody seemed to want one|and {d.last} is thinking about it]."), say("“[I will pay, and I'd like a receipt|I respect it, I don't agree with it|I feel lighter],” {d.last} said in the corridor."), say("The next case concerned [a dispute over a gutter|a stolen sandwich|two brothers and one tractor].", "The public gallery held [a school class|two pensioners with sandwiches|a journalist and somebody sheltering from the rain].")),
            weight=0.16, covered=0.05,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Inside:
    """Something from a prison: what happens, and what warders, prisoners and the ministry say."""

    head: str
    lead: str
    detail: str
    inmate: str
    warder: str
    critic: str
    next: str


INSIDES: tuple[Inside, ...] = (
    Inside("two prisoners flee {city} jail in laundry van", "Two prisoners escaped from the jail in {city} {on} in a van that had been paid for by the laundry", "The driver noticed it at the second traffic light, when the sheets sneezed", "We all knew, it was too quiet at breakfast", "We count three times a day, and they left between two and three", "The jail has a third of its watchtowers manned", "Roadblocks are to stay for two days"),
    Inside("overcrowded {city} prison holds {pct}% more inmates than beds", "The prison in {city} holds {pct}% more people than it has beds for, an inspection report said {on}", "In one wing, three men share a cell that was drawn for one and a bucket", "You sleep in turns, and you hate in turns", "I have a hundred and ten men and one pair of eyes", "A cell is not a shelf", "The ministry must answer within forty days"),
    Inside("prison bakery in {city} wins bread prize", "Inmates of the prison in {city} won a prize for a rye loaf {on}, in a contest where the judges did not know who had baked it", "The oven was built by a former safe-breaker", "It is the only thing I have ever finished on time", "They get up at three without being told", "A trade inside is a rent outside", "The loaf is to be sold at the gate"),
    Inside("guards at {city} prison catch {count} drones over the walls", "Guards at the prison in {city} have brought down {count} drones within a month, it was announced {on}", "They carried telephones, steaks and, in one case, a birthday candle", "It is quicker than the canteen", "We used to look at the wall, now we look at the sky", "Nets do not cure demand", "Nets are to be stretched over two yards"),
    Inside("prison unrest in {city} ends after {hours} hours", "A revolt in the prison at {city} ended {on} after {hours} hours, when inmates handed back the keys of a wing", "It had started over the loss of an hour in the yard", "We wanted the hour, the roof came later", "They gave me my cap back", "The report that foretold this has a date on it", "An inquiry will be led by a retired judge"),
    Inside("fewer reoffend after prison theatre scheme in {city}", "Prisoners who took part in a theatre scheme in {city} were {pct}% less likely to be convicted again, researchers said {on}", "They play to the public twice a year, and the front row is reserved for victims", "I had never listened to a whole sentence by somebody else", "The bell goes and they ask for ten more minutes", "It's the cheapest hour in the building", "The scheme may be tried in four more prisons"),
    Inside("prison officers in {city} walk out over staffing", "Officers at the prison in {city} refused to start their shift {on} after a colleague was attacked for the {count:ord} time this year", "At night, one officer looks after a hundred and eighty cells", "When they are short we are locked in, that's the arithmetic", "I have been punched, spat on and promoted", "You cannot rehabilitate through a hatch", "Talks with the ministry begin within days"),
    Inside("women's prison in {city} opens nursery", "A prison in {city} opened a nursery {on} in which children may live with their mothers until they are three", "The bars on its windows have been painted as giraffes", "He takes his first steps in a corridor, but he takes them with me", "Nobody shouts on that floor", "The better answer is not to jail mothers of infants", "Eleven places are available"),
    Inside("inmates at {city} prison build fire engine", "Prisoners in {city} handed over a fire engine {on} that they had rebuilt from three wrecks", "It went to a village whose old one had been sold for scrap", "I set fires, that's why I am here, so laugh", "They argued over who would polish the bell", "Work is the one sentence that shortens the other", "A second engine is on the ramp"),
    Inside("{city} prison fits handrails for its ageing inmates", "The jail in {city} is fitting handrails and stairlifts, since one in {count} of its inmates is over sixty-five", "The oldest, aged ninety-one, has forgotten what he is in for", "We have a dominoes league and a waiting list for knees", "I signed up to guard and I do buttons", "It is a care home with the wrong locks", "A ward for dementia is planned"),
    Inside("{city} prison puts a telephone in every cell", "Each cell in the prison at {city} is to have a telephone, the justice ministry said {on}", "Calls are recorded and cost a tenth of the old price", "My daughter does her sums with me at six", "Fewer fights in the queue, because there's no queue", "Contact with home is the best predictor that we have", "The trial is to run for a year"),
    Inside("prison library in {city} lends more than city's own", "The library of the prison in {city} lent more books last year than the municipal one, figures showed {on}", "The most popular title is a manual on leasehold law", "I have read everything up to the letter R", "They bring them back; that is more than I do", "You can be somewhere else for the length of a chapter", "The two libraries are to share a catalogue"),
)  # fmt: skip


@dataclass(frozen=True)
class Jail:
    c: Country
    i: Inside
    city: City
    inmate: Person
    warder: Person
    critic: Person
    minister: Person
    pct: int
    count: int
    hours: int
    held: int
    total: int


def _jail(scene: Scene) -> Jail:
    i = scene.fresh("jail", INSIDES, uses=2)
    c = scene.country(f"jail {i.next}")
    return Jail(c, i, scene.pick(c.cities), scene.person(c, she=True if "women" in i.head else None), scene.person(c), scene.person(c), replace(c.minister("justice"), role=f"the {c.demonym} justice minister"), scene.between(18, 47), scene.between(5, 14), scene.between(7, 31), scene.near(180, 1_400), scene.near(4_100, 74_000))  # fmt: skip


PRISON = Beat(
    "prisons",
    _jail,
    (
        Stage(
            titles=("{i.head:cap}", "{c.name}: {i.head}", "Behind the walls: {i.head}"),
            abstracts=("{i.detail}.", "“{i.warder},” says an officer. The prison holds {held} inmates.", "“{i.inmate},” says a prisoner. {i.next}." , "{minister.name}, the justice minister, speaks of [a lesson|one prison among many]. A reform group is less sure."),
            leads=("{i.lead}.", "{i.lead}. [It is not the first such report from {c.name} this year|The prison has {held} inmates|{c.name} has {total} people behind bars]."),
            then=(say("{i.detail}. “{i.inmate},” said an inmate, {inmate.name}, in the visiting room.", "“{i.inmate},” said {inmate.name}, who is [serving the last year of six|in for burglary|due out in the spring]. {i.detail}."), say("{warder.name}, an officer [of nineteen years' service|on the wing|who trains recruits], [put it this way|did not want to complain]. “{i.warder},” {warder.he} said.", "“{i.warder},” said {warder.name}, who [has worked there since school|looks after the east wing].")),
            loose=(say("{critic.name} of a group that campaigns for penal reform [agreed in part|was not satisfied]. “{i.critic}.”", "“{i.critic},” said {critic.name}, who [visits prisons as a volunteer|heads a reform group]."), say("{minister.last} told the {c.house} that the number of places would rise, [but not this year|and that the number of prisoners should fall].", "{minister.last} said {minister.he} had “[read it twice|asked for a plan, with dates]”."), say("{i.next}."), say("The prison in {city.name} holds {held} people; in all of {c.name} there are {total}.", "Of {total} prisoners in {c.name}, {held} are held in {city.name}.")),
            weight=0.3, covered=0.12,
        ),
    ),
    share=0.6,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Practice:
    """How the police work, and what is wrong with it or new in it."""

    head: str
    lead: str
    detail: str
    officer: str
    doubter: str
    citizen: str
    who: str


BEATS: tuple[Practice, ...] = (
    Practice("{city} police try face recognition at station", "Police in {city} began a trial of face recognition at the main station {on}", "In a first week, the system named a bishop as a wanted pickpocket", "It is a suggestion, and an officer looks at every one", "A suggestion with handcuffs", "I shaved, and the gate did not know me", "a commuter"),
    Practice("burglaries fall by {pct}% in {c.name}, police figures show", "The number of burglaries in {c.name} fell by {pct}% last year, the police said {on}, to the lowest for a generation", "Bicycles, parcels and passwords are stolen instead", "They no longer climb in, they log in", "Half of the victims do not report it any more", "They took my parcel and left me a review", "a pensioner"),
    Practice("police in {city} bring back the beat on foot", "Forty officers in {city} left their cars for good {on} and will walk", "Each has two streets, a notebook and a telephone number that is printed on a card", "You can't say good morning at fifty kilometres an hour", "Walking is nice, solving is nicer", "He knows which of my locks sticks", "a greengrocer"),
    Practice("officer suspended after {city} stop and search", "A police officer in {city} was suspended {on} after stopping the same man nineteen times in a year", "The man is a judge", "We have looked at the pattern, and the pattern looks back", "It came out because he keeps a diary; most people don't", "Nineteen times he asked me where I was going, and it was to work", "the judge"),
    Practice("police horses to go after {years} years in {city}", "The mounted police of {city} rode out for the last time {on}, after {years} years", "The eleven horses go to a forester, a riding school and, in two cases, their riders", "A crowd parts for a horse and argues with a van", "Oats are cheaper than lawsuits, they might have thought of that", "I came with carrots, like every Saturday", "who lives beside the stables"),
    Practice("{pct}% of emergency calls to {c.demonym} police go unanswered for a minute", "Some {pct}% of emergency calls to the police in {c.name} ring for more than a minute, auditors said {on}", "The busiest hour is after closing time, and the shift ends just before it", "We have the desks, we don't have the people who can bear them", "A minute is a long time to hold a door shut", "I counted the rings so that I would not count anything else", "whose flat was broken into"),
    Practice("police dog retires after {count} years and {years} arrests", "A police dog in {city} worked the last shift of a career of {count} years {on}", "There was a sausage, a speech and a certificate, which was eaten", "She never filed a report and was never wrong", "I only wish that all units had her record of complaints", "She found my son in a maize field", "a farmer"),
    Practice("{city} police to wear cameras at all times", "Each police officer on patrol in {city} will wear a camera from next month, the force said {on}", "Films are to be kept for sixty days and released to either side in a dispute", "I behave better with it, and so do they", "The button is on the officer's chest, that's the problem", "I would like to see the part before it starts", "a street trader"),
    Practice("police crack phone network used by {years} gangs", "Police in {c.name} said {on} that they had been reading the messages of {years} gangs for seven months", "The network cost a hundred a month and came with a button to wipe it", "They were so sure of it that they sent each other holiday pictures", "Most of the users were criminals, and some were lawyers", "I bought one by mistake, and it was very good", "a florist"),
    Practice("shortage of detectives leaves {pct}% of cases in {c.name} unsolved", "The clear-up rate in {c.name} has fallen because every third detective's post is empty, a union said {on}", "New recruits prefer to work outdoors", "I have eighty files, and I dream in initials", "Pay them for nights and they will come", "I have a crime number and nothing else", "a shopkeeper"),
    Practice("river police in {city} get first electric boat", "The river police of {city} took delivery of an electric boat {on} and caught a smuggler within the hour", "It makes so little noise that it has been fitted with a hum", "We came alongside and he asked us for a light", "One boat for ninety kilometres", "The ducks have not noticed yet", "an angler"),
    Practice("police apologise over {years}-year-old case in {city}", "The police chief of {city} apologised {on} for the way in which a missing girl's family had been treated {years} years ago", "A file of nine pages had been reduced to one, and the one was lost", "It was our work, it was bad work, and I am sorry", "An apology costs nothing, it should be followed by something that does", "I've waited so long that I am older than my mother was", "a sister of the girl's"),
)  # fmt: skip


@dataclass(frozen=True)
class Force:
    c: Country
    b: Practice
    city: City
    officer: Person
    doubter: Person
    citizen: Person
    chief: Person
    pct: int
    years: int
    count: int
    staff: int


def _force(scene: Scene) -> Force:
    b = scene.fresh("force", BEATS, uses=2)
    c = scene.country(f"force {b.detail}")
    city = scene.pick(c.cities)
    return Force(c, b, city, scene.person(c), scene.person(c), scene.person(c), scene.person(c, f"the police chief of {city.name}"), scene.between(11, 34), scene.between(21, 96), scene.between(7, 12), scene.near(900, 8_800))  # fmt: skip


POLICING = Beat(
    "policing",
    _force,
    (
        Stage(
            titles=("{b.head:cap}", "“{b.officer}”: {b.head}", "Policing: {b.head}"),
            abstracts=("{b.detail}.", "“{b.officer},” says an officer. “{b.doubter},” says a critic.", "“{b.citizen},” says {citizen.name}, {b.who}."),
            leads=("{b.lead}.", "{b.lead}. [Not everybody is pleased|It had been talked about for months|The force has {staff} officers]."),
            then=(say("{b.detail}."), say("“{b.officer},” said {officer.name}, [a sergeant|a superintendent|an inspector] with the force.", "{officer.name}, a [sergeant of long standing|chief inspector], [explained|had no illusions]. “{b.officer}.”")),
            loose=(say("“{b.citizen},” said {citizen.name}, {b.who}.", "{citizen.name}, {b.who}, [had a view|was asked]. “{b.citizen},” {citizen.he} said."), say("{doubter.name} of [a civil rights group|the lawyers' association|a victims' charity] [was not convinced|saw another side]. “{b.doubter},” {doubter.he} said.", "“{b.doubter},” said {doubter.name}, who [teaches criminology|advises a citizens' group]."), say("{chief.last}, who [took office last year|leads {staff} officers], said {chief.he} would “[look at the results in six months|rather try and be laughed at]”.", "“[We are the last service that still comes when you call|Trust is earned one doorstep at a time],” said {chief.last}."), say("The force in {city.name} has {staff} officers, [fewer than ten years ago|and a hundred posts that nobody fills].")),
            weight=0.28, covered=0.12,
        ),
    ),
    share=0.6,
    rhythm=OFFICE,
)  # fmt: skip
