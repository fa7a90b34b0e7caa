# ruff: noqa: E501 (prose reads better unbroken)
"""How the science desk covers medicine research, trial by trial, and research that turns out to be false."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Company, Country, Money


@dataclass(frozen=True)
class Ailment:
    """A disease with what trials count (`less`, a plural: 'attacks'), how the treatment works, and what living with it is like."""

    name: str
    kind: str
    less: str
    works: str
    patient: str
    side: str
    surprise: str

    @property
    def harm(self) -> str | None:
        return None if self.side.startswith("none") else self.side


_AILMENTS: tuple[Ailment, ...] = (
    Ailment("migraine", "nose spray", "attacks", "blocks a nerve signal before the pain begins", "I had a drawer of sunglasses and I've given it up", "a bitter taste", "it worked best in those who had given up on drugs"),
    Ailment("asthma", "half-yearly injection", "attacks", "calms a kind of white cell", "I walked up the hill to the school and talked all the way", "sore arms", "smokers benefited too"),
    Ailment("type 1 diabetes", "cell transplant", "insulin doses", "puts lab-grown cells beneath the skin of the arm", "I ate a plum without doing arithmetic", "mild infections", "one patient has needed no insulin for a year"),
    Ailment("gout", "cherry-derived tablet", "flare-ups", "helps the kidneys to get rid of uric acid", "A sheet on my toe used to be torture", "an upset stomach", "the placebo group improved a little as well"),
    Ailment("malaria", "antibody jab", "infections", "stops the parasite on its way to the liver", "My children slept through the rains", "a day of fever", "one dose lasted for two rainy seasons"),
    Ailment("sickle cell disease", "gene therapy", "pain crises", "switches on a gene that sleeps after birth", "I've booked a holiday in the mountains, because now I may", "weeks of weakness", "patients' older damage healed in part"),
    Ailment("heart failure", "implanted sensor", "hospital stays", "warns of fluid days before the legs swell", "It rings before I notice anything, and then my daughter rings", "small bruises", "the effect was largest in those living alone"),
    Ailment("pancreatic cancer", "personal vaccine", "relapses", "teaches the immune system the marks of the patient's own tumour", "I've planted a tree, which I wasn't going to", "chills", "the vaccine worked in patients thought too weak"),
    Ailment("depression", "magnetic stimulation", "relapses", "wakes a quiet area behind the forehead", "It's like a window being cleaned from outside", "headaches", "the effect showed within {small} days"),
    Ailment("insomnia", "breathing course", "sleepless nights", "slows the heart with a longer outward breath", "I was asleep before the end of the recording", "none, apart from boredom", "it beat the pill it was compared with"),
    Ailment("hay fever", "milk-based tablet", "bad days", "gets the immune system used to pollen in small amounts", "I mowed the lawn, just to see", "itchy lips", "it helped with cats, too"),
    Ailment("rheumatoid arthritis", "nerve stimulator", "swollen joints", "sends a pulse down a nerve in the neck", "I opened a jar, and then another, because I could", "a hoarse voice", "half of the patients were able to stop their drugs"),
    Ailment("stroke", "music therapy", "errors of speech", "borrows the singing side of the brain for speech", "I couldn't ask for salt, but I could sing for it", "none", "patients who had never sung did best"),
    Ailment("tuberculosis", "shorter course of tablets", "relapses", "attacks the germ's energy supply", "Four months and not nine, and I kept my job", "tiredness", "even resistant strains gave way"),
    Ailment("Alzheimer's disease", "antibody infusion", "points lost in memory tests", "clears clumps of protein from the brain", "He asked me what we were having for supper, and he asked once", "small swellings in the brain", "it helped only those treated early"),
    Ailment("childhood leukaemia", "cell therapy", "relapses", "trains the child's own cells to hunt the cancer", "She's back in school and complaining about it", "high fever", "the engineered cells were still there after {small} years"),
    Ailment("peanut allergy", "daily powder", "severe reactions", "raises the tolerated dose grain by grain", "We went to a birthday party and I stayed in the kitchen", "tummy aches", "toddlers responded better than teenagers"),
    Ailment("knee arthritis", "cartilage patch", "painful steps", "grows from the patient's own nose cells", "The stairs and I are on speaking terms", "swelling", "former footballers did as well as others"),
    Ailment("epilepsy", "fat-rich diet", "seizures", "changes the fuel that the brain runs on", "He hasn't fallen since the spring, and he's sick of butter", "constipation", "a milder diet did nearly as well"),
    Ailment("chronic back pain", "talking therapy", "days on painkillers", "teaches the brain that the alarm is false", "It's still there, but it isn't in charge", "none", "the gains lasted two years"),
    Ailment("high blood pressure", "twice-yearly jab", "readings above the limit", "switches off the liver's part in raising the pressure", "I kept forgetting the tablet, and one can't forget a jab", "redness at the site", "pressure fell at night, too, when it matters"),
    Ailment("sepsis", "bedside test", "deaths", "finds the germ in {small} hours rather than days", "I remember the ceiling and then a doctor who knew the name of it", "none", "doctors used fewer antibiotics as well"),
    Ailment("tinnitus", "sound and tongue device", "bad days", "pairs tones with a tingling on the tongue", "The whistle is in the next room now", "a dry mouth", "people over seventy did as well as the young"),
    Ailment("long-standing stammer", "virtual reality training", "blocked words", "lets patients speak to an audience that isn't there", "I ordered a beer with my own name on the tab", "dizziness", "a silent audience helped more than a kind one"),
    Ailment("eczema", "bacterial cream", "flare-ups", "puts back germs that healthy skin has", "She slept with her gloves off", "a smell of yoghurt", "it did best where antibiotics had failed"),
    Ailment("Crohn's disease", "worm-derived capsule", "flare-ups", "copies a substance with which worms calm the gut", "I've stopped mapping towns by their lavatories", "nausea", "the capsule outdid the worm"),
    Ailment("premature birth", "progesterone gel", "births before the 34th week", "keeps the neck of the womb closed", "Every day was a day, and we got sixty of them", "none of note", "twins gained most"),
    Ailment("snake bite", "universal antivenom", "amputations", "binds a part that most venoms share", "I was weeding, and I'm weeding again", "rashes", "it worked on {small} kinds of snake that nobody had tried"),
)  # fmt: skip

_STUDY_NAMES = ("HARBOUR", "LANTERN", "SWIFT", "CEDAR", "ORCHID", "COMPASS", "DRUMLIN", "FALCON", "PRISM", "THISTLE", "JUNIPER", "ANCHOR", "MOSAIC", "RIDGE", "TEMPO", "WILLOW", "BEACON", "QUARTZ", "HERON", "SEXTANT", "MAPLE", "TOPAZ", "VESPER", "BRIDGE", "KESTREL", "LINDEN", "OPAL", "SUMMIT")  # fmt: skip


@dataclass(frozen=True)
class Trial:
    a: Ailment
    study: str
    c: Country
    city: City
    lead: Person
    critic: Person
    patient: Person
    nurse: Person
    co: Company
    regulator: Person
    health: Person
    people: int
    hospitals: int
    fall: int
    months: int
    small: int
    price: Money
    pct: int
    works: str | None
    fails: str | None
    age: int


def _trial(scene: Scene) -> Trial:
    a = scene.fresh("ailment", _AILMENTS)
    c = scene.country()
    works = scene.chance(0.72)
    return Trial(
        a, scene.fresh("study name", _STUDY_NAMES), c, scene.fresh("trial city", c.cities, uses=3), scene.person(c, scene.pick(("who led the trial", "the trial's chief investigator", "a physician who led the study"))),
        scene.person(None, scene.pick(("a physician not involved", "who teaches medical statistics", "who edits a medical journal", "a drug safety expert"))), scene.person(c), scene.person(c, "a research nurse"),
        scene.pick([one for one in scene.world.companies if one.noun == "drugmaker"]), scene.person(c, "who heads the medicines agency"), c.minister("health"),
        scene.near(120, 4_800), scene.between(11, 46), scene.between(22, 68), scene.between(12, 36), scene.between(3, 9), scene.money(240, 60_000, c.currency), scene.between(3, 19), "" if works else None, None if works else "", scene.between(19, 78),
    )  # fmt: skip


TRIALS = Beat(
    "medical research",
    _trial,
    (
        Stage(
            titles=("{works}{a.kind:cap} cuts {a.less} in {a.name} by {fall}%, trial finds", "{works}{a.name:cap}: {a.kind} passes test with {people} patients", "{works}Medical trial in {hospitals} hospitals: {a.kind} helps against {a.name}", "{fails}{a.name:cap} trial of {a.kind} fails in {c.name}", "{fails}No benefit from {a.kind} for {people} {a.name} patients", "{works}Researchers in {city.name} test {a.kind} for {a.name}"),
            abstracts=("{works}In a study with {people} patients, {a.surprise}.", "{works}The treatment {a.works}. Side effects included {a.harm}.", "{works}The treatment {a.works}.", "{fails}After {months} months, {people} patients were no better off than with a placebo.", "{fails}Hopes for a {a.kind} against {a.name} have been dashed. The trial took {months} months."),
            leads=("{works}A {a.kind} reduced {a.less} in patients with {a.name} by {fall}% in a trial led from {city.name}, researchers reported {on}.", "{works}People with {a.name} had {fall}% fewer {a.less} when they were given a {a.kind}, according to a study of {people} patients published {on}.", "{works}The largest trial so far of a {a.kind} for {a.name} has gone well, doctors in {city.name} said {on}; with {people} patients, it found {fall}% fewer {a.less}.",
                   "{fails}A {a.kind} against {a.name} has failed in a trial with {people} patients, doctors in {city.name} said {on}.", "{fails}Patients with {a.name} gained nothing from a {a.kind} on which great hopes had rested, according to a study published {on}."),
            then=(say("{works}“[I've told so many people to wait that I had stopped hearing myself|It's not a cure; it's a better Tuesday|The curves part after {small} weeks and never meet again|We broke the seal, looked at the graph, and somebody laughed out loud],” said {lead.last}.", "{fails}“[It was a beautiful idea, and nature wasn't interested|We'd all have liked another graph|A clear no is worth something; it closes a door that others need not try],” said {lead.last}."),),
            loose=(say("{works}The treatment {a.works}. [Curiously|Unexpectedly], {a.surprise}.", "{fails}The treatment {a.works}, and in mice it had done so reliably."), say("The study, called {study}, ran for {months} months in {hospitals} hospitals[; half of the patients got a placebo|].", "In {hospitals} hospitals, {people} patients [took part in the trial|were enrolled|joined the trial], [which goes by the name of|known as] {study}[, and neither they nor the doctors knew who got what|]."),
                   say("Side effects: {a.side}. [About {pct}% dropped out|Some {pct}% of patients stopped early].", "Doctors recorded {a.harm}[ and nothing worse|] in {pct}% of patients."),
                   say("{works}{patient.name}, {age}, [was among the first to get it|took part in {city.name}]. “{a.patient},” {patient.he} said.", "{works}“{a.patient},” said {patient.name}, {age}, who has had {a.name} for {small} years.", "{fails}{patient.name}, {age}, [had hoped for more|took part in {city.name}]. “[I felt better, which shows what hope can do|I'd do it again, for those who come after|They looked after me so well that I'll miss it],” {patient.he} said."),
                   say("{critic.last} was [cautiously pleased|impressed by the care taken|not carried away]. “[A fall of {fall}% sounds large, so ask: of how many?|I'd want to see it in older patients, who are the ones I have|Good trial, short trial],” {critic.he} said.", "{works}“[It's the first real step in {small} years|If the price is sane, I'd use it],” said {critic.last}.", "{fails}“[They published a failure in full, and I'd give a prize for that|The mice were right about mice],” said {critic.last}."),
                   say("{nurse.last} [saw it in the waiting room first|kept the diaries]. “[They came in with shopping bags, and before they came in with a relative|You get to know them; some send me jam|I'd guessed who was on the real thing, and I was wrong about half],” {nurse.he} said."),
                   say("{co.name}, the maker, paid for the study[ and had no say in the analysis, the authors write|].", "The trial was paid for by [the health ministry|a charity] and {co.name}, a {co.country.demonym} {co.noun}.")),
            weight=0.42, covered=0.5,
        ),
        Stage(
            titles=("{works}{c.demonym} medicines agency to review {a.kind} for {a.name}", "{works}What the {a.name} {a.kind} may cost: {price}", "{fails}{co.name} gives up {a.kind} for {a.name}", "{fails}After failed {a.name} trial, {lead.family} looks for reasons"),
            abstracts=("{works}{co.name} has applied for approval. A year's treatment would cost {price}.", "{fails}The {co.noun} ends the programme. Researchers will publish all data."),
            leads=("{works}{co.name} has asked the {c.demonym} medicines agency to approve its {a.kind} for {a.name}, the company said {on}, and named a price: {price} a year.", "{works}The {c.demonym} medicines agency will give the {a.kind} for {a.name} a fast review, it said {on}.", "{fails}{co.name} will stop work on its {a.kind} for {a.name}, the {co.noun} said {on}.", "{fails}Why did it not work? {lead.name}, who led the {study} trial on {a.name}, presented a first answer {on}."),
            then=(say("{works}“[We'll be quick and we won't be careless|We've got {months} months of data and {small} questions],” said {regulator.last}.", "{works}{regulator.last} [promised an answer within {small} months|asked for more data on older patients]. “[The trial is good, and the world isn't a trial|I read the side effects first, out of habit],” {regulator.he} said.", "{fails}“[The dose was too low, or the patients too ill, or we were wrong|It may work earlier in the disease; somebody braver will have to try],” said {lead.last}."),),
            loose=(say("{works}The results of the {study} study became known {t0:on}. They showed {fall}% fewer {a.less}.", "{fails}The trial, with {people} patients, was declared a failure {t0:on}."), say("{works}The treatment {a.works}."), say("{works}{health.last} [called the price ambitious|wants to negotiate]. “[Our budget isn't a placebo|Take {price} times all patients and you have a new hospital],” {health.he} said.", "{works}Insurers [are not amused|want a discount]. At {price} a year, the treatment is [dearer than the usual tablets by far|in the upper range]."), say("{works}{patient.name}, {age}, who took part, [hopes for a place in the next study|keeps a diary]. “{a.patient},” {patient.he} said."),
                   say("{critic.last} [kept to the point|was blunt]. “[Cheap drugs are tested less and work as well|A drug nobody can afford works in nobody|The honest answer is that we need a second trial],” {critic.he} said."), say("{works}{co.name} has {co.staff} employees; its shares rose by {small}%.", "{fails}{co.name} has {co.staff} employees; its shares fell by {small}%."), say("{fails}Data from all {people} patients will be [open to other researchers|put online].")),
            after=(2, 6), weight=0.32, covered=0.3, chance=0.95,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Fraud:
    """A result too good to be true: `claim` is a sentence's core, `tell` what gave it away, `harm` what followed from it."""

    field: str
    claim: str
    tell: str
    harm: str


_FRAUDS: tuple[Fraud, ...] = (
    Fraud("psychology", "tidy rooms make people more honest", "the odometer readings of {big} cars were spread as evenly as dice", "Insurers in {small} countries had rewritten their forms."),
    Fraud("cancer research", "a pepper extract shrinks tumours", "the same photograph of cells appeared {small} times, once upside down", "Patients had bought the extract online."),
    Fraud("materials science", "a plastic heals itself in the rain", "the noise in two curves was identical to the last decimal", "A start-up had raised millions on it."),
    Fraud("archaeology", "a mask is 3,000 years old", "the rust contained a modern lubricant", "It adorned the cover of a schoolbook."),
    Fraud("nutrition", "chocolate at breakfast helps people lose weight", "a participant was said to be 1{years}9 years old", "Newspapers, this one included, had reported it."),
    Fraud("ecology", "spiders have personalities", "whole blocks of figures had been copied from one column to the next", "Some {some} later studies build on it."),
    Fraud("physics", "a metal becomes a superconductor under pressure", "raw data, when at last handed over, had been drawn by a programme", "Laboratories in {small} countries lost a year trying to repeat it."),
    Fraud("dentistry", "a varnish makes fillings unnecessary", "ninety patients shared three sets of teeth in the X-rays", "Dentists had begun to charge for the varnish."),
    Fraud("education research", "pupils learn faster standing up", "two of the schools do not exist", "Some {big} standing desks had been ordered."),
    Fraud("genetics", "a gene for night owls has been found", "{some} of the volunteers had supposedly given blood on a public holiday", "A test for it was on sale."),
    Fraud("climate history", "vines grew on an arctic island", "the pollen came from a supermarket bouquet", "It was quoted in parliament."),
    Fraud("surgery", "a new plate heals broken hips in half the time", "no ethics board had ever heard of the trial", "The plate was implanted in {big} patients."),
    Fraud("linguistics", "a lost language survives in three villages", "the last speaker turned out to be the author's aunt", "A dictionary had been printed."),
    Fraud("economics", "a small rise in tax makes people work more", "four rows had been left out of a table", "At least {small} governments had quoted it."),
    Fraud("chemistry", "a catalyst turns air into fertiliser at room temperature", "the ammonia had come from the breath of a researcher", "Farmers had been promised a box for the barn."),
)  # fmt: skip


@dataclass(frozen=True)
class Retraction:
    f: Fraud
    c: Country
    city: City
    author: Person
    sleuth: Person
    editor: Person
    junior: Person
    dean: Person
    peer: Person
    years: int
    small: int
    some: int
    big: int
    papers: int
    grant: Money
    guilty: str | None
    sloppy: str | None
    job: str


def _retraction(scene: Scene) -> Retraction:
    c = scene.country()
    guilty = scene.chance(0.55)
    return Retraction(
        scene.fresh("fraud", _FRAUDS), c, scene.fresh("fraud city", c.cities, uses=2), scene.person(c, "the lead author"), scene.person(None), scene.person(None, "the journal's editor"), scene.person(c), scene.person(c, "the university's rector"), scene.person(None, scene.pick(("who studies research fraud", "a statistician", "a colleague in the field"))),
        scene.between(3, 9), scene.between(3, 8), scene.between(12, 70), scene.near(2_000, 19_000), scene.between(11, 34), scene.money(4e5, 6e6, c.currency), "" if guilty else None, None if guilty else "", scene.pick(("a night porter with a degree in maths", "a retired actuary", "a librarian", "a schoolteacher who checks figures for fun", "a doctoral student on the other side of the world", "a programmer")),
    )  # fmt: skip


RETRACTIONS = Beat(
    "research fraud",
    _retraction,
    (
        Stage(
            titles=("Doubts over {f.field} study that said {f.claim}", "Star {f.field} paper from {city.name} under suspicion", "Science sleuth {sleuth.family}: odd data in {f.field} study", "Questions for {city.name} team over claim that {f.claim}"),
            abstracts=("According to an analysis posted online, {f.tell}. The author denies wrongdoing.", "{sleuth.name}, {job}, had looked at the numbers. {f.harm}"),
            leads=("A well-known study according to which {f.claim} may rest on invented data: an analysis published {on} found that {f.tell}.", "{sleuth.name}, {job}, wanted to know whether it is true that {f.claim}. {sleuth.he:cap} looked into the data and found that {f.tell}, {sleuth.he} wrote {on}.", "The university of {city.name} is looking into a {f.field} study by one of its best-known professors, it said {on}, after a critic showed that {f.tell}."),
            then=(say("“[I wasn't hunting; I wanted to use the data in a talk|Real numbers are messy, and these had been ironed|It took one evening and a free programme],” said {sleuth.name}, {job}.", "{sleuth.name}, {job}, has [found {some} such cases|never met the author]. “[I have nothing against anybody, only against this column|You look at it long enough and it looks back],” {sleuth.he} said."),
                  say("“[I stand by the result; mistakes in a table are mistakes in a table|The data were collected by others, long ago|I'll answer in the proper place, and that isn't the internet],” said {author.last}.")),
            loose=(say("{f.harm}"), say("The paper, published {years} years ago, has been cited {big} times."), say("{peer.last} [had wondered for years|found the evidence strong]. “[We read results and not data; that's the hole they come through|Fraud is rare and carelessness isn't, and from outside they look alike],” {peer.he} said."), say("{junior.name}, who worked in the group, [left science|says nobody asked]. “[We got files with the answer already in them|I tried to repeat it for two years and thought I was the problem],” {junior.he} said."), say("The work was supported with {grant} of public money.", "{author.last} has published {papers} papers and [sits on many committees|won a prize for this one].")),
            weight=0.38, covered=0.45,
        ),
        Stage(
            titles=("Journal retracts {city.name} study claiming {f.claim}", "Famous {f.field} paper from {city.name} withdrawn", "{f.field:cap} study retracted after {years} years"),
            abstracts=("The editor no longer trusts the data: {f.tell}.", "“We should have asked for the data then,” says {editor.name}."),
            leads=("The journal that published a study saying that {f.claim} withdrew it {on}, {years} years later.", "A {f.field} study from {city.name} that was cited {big} times has been retracted, the journal said {on}."),
            then=(say("“[We should have asked for the data then|Three reviewers praised the writing, and not one opened the file|A retraction is a stain that comes from washing],” said {editor.last}."),),
            loose=(say("It had become known {t0:on} that {f.tell}."), say("{f.harm}"), say("“[I don't agree and I won't sue|It's a witch hunt with spreadsheets],” said {author.last}.", "{author.last} [agreed to the step|opposed the step]."), say("{sleuth.name}, who had found the fault, [was already looking at the next paper|took no pleasure in it]. “[There's a list, and it's long|Somebody will now have to tell the people who used it],” {sleuth.he} said."), say("{peer.last} praised the pace. “[Two years is usual; this was days|The machine can work if somebody kicks it],” {peer.he} said."), say("Of the author's other {papers} papers, {small} are being examined.")),
            after=(2, 5), weight=0.35, covered=0.3,
        ),
        Stage(
            titles=("{guilty}University of {city.name} finds professor invented data", "{guilty}{f.field:cap} professor {author.last} resigns over false data", "{sloppy}Inquiry clears {f.field} professor of fraud, not of carelessness", "{sloppy}No fraud in {f.field} study, {city.name} inquiry finds"),
            abstracts=("{guilty}The commission found {small} invented data sets. The grant of {grant} must be repaid.", "{sloppy}A file had been sorted wrongly by an assistant, the commission says."),
            leads=("{guilty}{author.name} invented data in at least {small} studies, a commission of the university of {city.name} found {on}. One of them said that {f.claim}.", "{sloppy}The author of a withdrawn {f.field} study did not deceive, a commission of the university of {city.name} said {on}, but {author.he} did not look either."),
            then=(say("{guilty}“[We were proud of {author.him}, and that's how it works|The apology is owed to the students, above all],” said {dean.last}.", "{sloppy}“[It's a relief with a headache|Carelessness isn't a crime, and in our trade it's close],” said {dean.last}."),),
            loose=(say("The affair began {t0:on}, when {sleuth.name}, {job}, showed that {f.tell}."), say("{f.harm}"), say("{guilty}{author.last} [has resigned|could not be reached]. {author.his:cap} lawyer spoke of [“a life's work in ruins”|overwork].", "{sloppy}“[I'd rather be sloppy than a liar, but I'd have liked a third choice|I have checked everything since, at night, and it's dreadful],” said {author.last}."), say("{junior.name}, once in the group, [wept|felt vindicated]. “[I have my two years back, sort of|I'm going to frame the failed experiments],” {junior.he} said."), say("The university will [require raw data to be stored for ten years|appoint an ombudsman]."), say("{guilty}The {grant} in public money is to be paid back.")),
            after=(3, 6), weight=0.4, covered=0.15, chance=0.8,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip
