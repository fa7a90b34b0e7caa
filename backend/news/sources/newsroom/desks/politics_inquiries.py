# ruff: noqa: E501 (prose reads better unbroken)
"""How the politics desk follows parliamentary inquiries, from the first hearing to the report."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Probe:
    """What members inquire into: `what` follows 'how', `role` is the witness, `other` the one who contradicts."""

    short: str
    what: str
    office: str
    role: str
    evidence: str
    other: str
    reply: str
    file: str
    finding: str
    advice: str
    colour: str


PROBES: tuple[Probe, ...] = (
    Probe("ferry contract", "a ferry contract went to a firm without a ferry", "transport", "who signed the contract", "I asked to see the boat and was shown a drawing", "a retired harbour master", "A child with a bathtub would have asked more", "a one-page offer with a coffee stain", "nobody at the ministry had rung the shipyard", "a register of ships that bidders really own", "Members passed a toy boat along the bench until the chair put it in a drawer"),
    Probe("field hospital", "a field hospital was bought, stored and never unpacked", "health", "who ran the stores", "The crates were labelled in a language that none of us reads", "a nurse who found the crates", "We were boiling instruments in a kitchen while the steriliser sat in a barn", "a list of crates with the numbers out of order", "three offices each believed that another had the key", "one store, one list and one person with the key", "A dented crate stood in front of the witness table all day"),
    Probe("school cheating software", "schools were sold software that accused honest pupils of cheating", "education", "who chose the software", "The demonstration was very convincing, it used the firm's own pupils", "a teacher whose class was accused", "It failed the boy who writes best, because nobody could believe him", "the results of a trial that was stopped early", "the warnings of eleven head teachers were filed under praise", "a test by outsiders before any such purchase", "A member read out her own maiden speech, which the software had marked as copied"),
    Probe("border radios", "border guards were given radios that do not work in rain", "interior", "who tested the radios", "The test took place in June, and it was a lovely June", "a border guard with nineteen years of service", "In November we wave torches, like our grandfathers", "a test report with the weather left blank", "the rain test had been struck out to save a week", "trials in the season and place of use", "The radio brought as evidence crackled through the whole sitting"),
    Probe("empty prison", "a prison was finished and stands empty", "justice", "who was in charge of the building", "The doors open outwards, and in a prison that is a matter of opinion", "the architect", "I drew what I was told, twice", "nine versions of the same floor plan", "the number of cells had been agreed before anyone asked for whom", "no more building before the staff are hired", "Members had visited, and two of them were locked in for twenty minutes"),
    Probe("lost vaccine", "a winter's vaccine was left in a warm warehouse", "health", "who ran the cold store", "The alarm rang in an office that had moved", "a driver who delivered the boxes", "I said it's warm in here, and they offered me a cold drink", "a temperature chart that is flat from Friday to Monday", "the alarm had gone to a disconnected number for a year", "alarms that ring until somebody answers", "The thermometer was passed round in a plastic bag"),
    Probe("dredging bill", "a river was dredged on paper only", "environment", "who passed the invoices", "I had forty invoices a day and no boat", "a fisherman who lives beside the river", "I'd have noticed a dredger, I notice a heron", "photographs of a dredger that turned out to be of another river", "the same photograph had been paid for six times", "inspections by people with boots", "A jar of undredged mud was entered in the record"),
    Probe("wiretaps", "the telephones of four reporters were tapped", "interior", "who headed the listening service", "I was told it was a training exercise, and it did train us", "one of the reporters", "They know my mother's recipe for quince jelly better than I do", "an order with the date typed over", "no judge had seen the order before it was carried out", "a judge's signature for each number and each week", "Members handed in their own telephones at the door"),
    Probe("flood warning", "a flood warning reached the valley after the flood", "environment", "who was on duty that night", "I pressed the button, and the button asked me for a password", "the head of a valley fire brigade", "The warning woke people who were already on their roofs", "a log with a gap of two hours and ten minutes", "the password had expired at midnight", "a siren that a person can reach with an arm", "One member counted the two hours aloud, in minutes"),
    Probe("art loans", "paintings lent to ministries cannot be found", "culture", "who keeps the state's collection", "We know where the frames are", "a restorer", "I was brought a landscape with a dart in it", "a catalogue with 140 question marks", "former ministers had taken pictures home as one takes a pen", "a yearly walk through all offices with the list in hand", "A missing still life was found during the lunch break, in the committee's own corridor"),
    Probe("rail signals", "new signals were installed facing the wrong way", "transport", "who approved the plans", "On the plan, north was at the bottom", "a train driver", "I saw a lovely green light in the mirror", "a plan with the compass drawn in pencil", "three firms had each turned the plan round to be helpful", "one drawing office for the whole railway", "A working signal was set up in the room and shown to be facing the wall"),
    Probe("army boots", "soldiers were given boots whose soles came off", "defence", "who bought the boots", "They were within the budget for shoes", "a sergeant", "We marched out as a battalion and came back in socks", "a purchase order that says 'similar to leather'", "the glue had been changed after the samples were approved", "tests on boots from the shelf and not from the sample box", "A sole came away in the chair's hand, and the clerk recorded laughter"),
    Probe("tax letters", "thousands of families were wrongly told to repay a benefit", "finance", "who ran the tax office's computers", "The program was right about the rule and wrong about the people", "a mother of three who sold her car to repay", "They told me to be patient, in red capitals", "a memo that calls the letters robust", "the error had been known for fourteen months", "a person to ring, with a name, on each letter", "Folders of letters covered the floor, because the table would not hold them"),
    Probe("harvest aid", "harvest aid went to golf courses", "agriculture", "who designed the aid", "We paid by the area of grass, and it is grass", "a dairy farmer", "I had hail, and the ninth hole had a cheque", "a map of the recipients with eighteen small flags", "nobody had asked what grew there", "payment for what is harvested", "Asked to define a crop, the witness asked for water"),
)  # fmt: skip


@dataclass(frozen=True)
class Inquiry:
    c: Country
    p: Probe
    chair: Person
    witness: Person
    other: Person
    minister: Person
    member: Person
    sittings: int
    called: int
    pages: int
    cost: Money
    ayes: int
    noes: int
    months: int
    premier: Person


def _inquiry(scene: Scene) -> Inquiry:
    p = scene.fresh("inquiry matter", PROBES, uses=2)
    c = scene.country(f"inquiry {p.office}")
    ayes = scene.between(9, 14)
    return Inquiry(
        c, p, scene.person(c, "who chairs the committee"), scene.person(c, p.role), scene.person(c, p.other), c.minister(p.office),
        scene.person(c, f"a member of {c.opposition.name}"), scene.between(11, 24), scene.between(26, 70), scene.between(112, 640),
        scene.money(4e6, 2.4e8, c.currency), ayes, ayes - scene.between(3, 7), scene.between(4, 11), c.premier,
    )  # fmt: skip


INQUIRY = Beat(
    "inquiries",
    _inquiry,
    (
        Stage(
            titles=("{c.demonym} {c.house} opens inquiry into {p.short}", "Inquiry to ask how {p.what}", "{p.short:cap}: committee of {c.demonym} {c.house} begins hearings", "{chair.last} to lead parliamentary inquiry into {p.short}", "Committee calls {called} witnesses in {c.demonym} {p.short} inquiry"),
            abstracts=("A committee led by {chair.name} is to find out how {p.what}. It has called {called} witnesses.", "The {p.short} has cost {c.name} {cost} so far. {minister.name}, the {p.office} minister, promises to cooperate.", "Members want to know how {p.what}. The report is due in {months} months."),
            leads=(
                "A committee of the {c.demonym} {c.house} began {on} to ask how {p.what}.", "How could it happen that {p.what}? In {c.capital}, an inquiry into the {p.short} {on} [put the question to its first witnesses|opened with a roll call and a long silence].",
                "{chair.name} [rang a small brass bell|took {chair.his} seat under the clock] in {c.capital} {on}, and with that the {c.demonym} inquiry into the {p.short} was open.", "The affair of the {p.short} reached the {c.demonym} {c.house} {on}. A committee with {called} witnesses on its list is to establish how {p.what}.",
            ),
            then=(say("“[We are not a court, but we can count|I would like to understand it myself before I explain it to others|Nobody here is charged with anything except remembering],” said {chair.last}. In all, {called} witnesses have been called.", "{chair.last}, [a lawyer by training|known for {chair.his} patience], said the committee [would sit until it understood|wanted papers before opinions]. “[Bring the originals, please|The short answers first],” {chair.he} told the first witnesses."),),
            loose=(
                say("The first document before the committee is {p.file}.", "Members were given {p.file}, and [asked for a better copy|passed it round twice]."),
                say("{minister.last} said {minister.he} had “[nothing to hide and a great deal to look up|ordered a search of every cupboard]”.", "“[I inherited it|I learned of it from a newspaper, like everyone],” said {minister.last}, [who is to appear last|who will be heard at the end]."),
                say("So far the matter has cost {cost}. {member.last} thinks that [half of it is still to come|the bill is not complete].", "{member.last} put the cost to the taxpayer at {cost}. “[For that you could have done it properly, twice|It's not the sum, it's the shrug],” {member.he} said."),
                say("{p.colour}."),
                say("The committee has {months} months and plans {sittings} sittings[, most of them in public|].", "The plan provides for {sittings} sittings [and a report in|over] {months} months."),
            ),
            weight=0.35, covered=0.15,
        ),
        Stage(
            titles=("“{p.evidence}”: witness heard in {c.demonym} {p.short} inquiry", "{p.short:cap} inquiry: {witness.last} questioned for hours", "{witness.last} and {other.last} clash at {c.demonym} inquiry into {p.short}", "Inquiry hears how {p.what}", "{p.short:cap} witness tells {c.demonym} members of {p.file}"),
            abstracts=("“{p.evidence},” says {witness.name}, {p.role}. {other.name}, {p.other}, disagrees.", "The committee of the {c.demonym} {c.house} questioned {witness.name}, {p.role}.", "“{p.reply},” {other.name}, {p.other}, tells members."),
            leads=(
                "{witness.name}, {p.role}, told a {c.demonym} inquiry {on}: “{p.evidence}.”", "“{p.evidence},” {witness.name} told members of the {c.demonym} {c.house} {on}, when they wanted to know how {p.what}.",
                "It took the inquiry into the {c.demonym} {p.short} until {today} to get to {witness.name}, {p.role}. Members [had many questions and got some answers|asked the same thing in five ways].", "Two witnesses, two stories: the {c.demonym} committee looking into the {p.short} heard {witness.name}, {p.role}, and {other.name}, {p.other}, {on}.",
            ),
            then=(say("{other.name}, {p.other}, [saw it differently|was heard next]. “{p.reply},” {other.he} said.", "Then came {other.name}, {p.other}: “{p.reply}.”"),),
            loose=(
                say("{p.colour}."), say("{member.last} held up {p.file}. [“Is this your handwriting?” {member.he} asked. “It was a busy spring,” said {witness.last}.|“Did it not strike you as odd?” {member.he} asked. “It strikes me now,” said {witness.last}.]", "Much of the morning was spent on {p.file}, which {witness.last} [said {witness.he} had never seen whole|remembered differently]."),
                say("{chair.last} [had to remind members that speeches come later|asked for short questions and got long ones]. “[A question ends in a question mark|I've been in shorter marriages],” {chair.he} said."),
                say("Hearings began {t0:on}. {minister.name}, the {p.office} minister, [is to be heard last|followed on a screen in {minister.his} office].", "The committee, which first met {t0:on}, has [some {called} people|{called} names] on its list."),
                say("Asked what {witness.he} would do differently, {witness.last} [thought for a while|looked at the ceiling]: “[Ask once more|Put it in writing, and keep a copy|Take the day off].”"),
            ),
            after=(1, 4), weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("Inquiry report on {p.short} faults {c.demonym} {p.office} ministry", "{c.demonym} {p.short} inquiry finds {p.finding}", "Committee on {p.short} calls for {p.advice}", "{minister.last} under fire as inquiry reports on {p.short}", "The {p.short} on {pages} pages: what the {c.demonym} inquiry found"),
            abstracts=("The committee finds that {p.finding} and calls for {p.advice}.", "A report of {pages} pages, adopted by {ayes} votes to {noes}, explains how {p.what}.", "{minister.name}, the {p.office} minister, accepts the findings of the inquiry [in part|with regret]."),
            leads=(
                "A {c.demonym} inquiry into how {p.what} has found that {p.finding}. Its report was published {on}.", "On {pages} pages, published {on}, a committee of the {c.demonym} {c.house} explains how {p.what}. The short version: {p.finding}.",
                "The {c.demonym} inquiry into the {p.short} ended {on} with a call for {p.advice}, and the finding that {p.finding}.", "“[No villain, and no excuse either|Everybody did a little, and nobody did the sum],” {chair.name} said {on}, presenting the report on the {c.demonym} {p.short}. It finds that {p.finding}.",
            ),
            then=(say("The committee asks for {p.advice}. It adopted the report by {ayes} votes to {noes}[, with members of the governing parties on both sides|].", "By {ayes} votes to {noes}, the committee recommended {p.advice}. “[That is not much to ask|It could be done by Monday],” said {chair.last}."),),
            loose=(
                say("{minister.last} [thanked the committee|read a short statement]. “[It happened on my watch, and I'll mend it on my watch|I accept most of it, and I'll read the rest again],” {minister.he} said.", "{minister.last} said the ministry would [answer within a month|follow the advice]. {minister.he:cap} [did not offer to resign|took no questions]."),
                say("{other.name}, {p.other}, was [content|not surprised]. “{p.reply},” {other.he} had said under questioning[, and the report quotes it|]."),
                say("“[It names everybody and blames nobody|The report is better than I feared and shorter than I hoped],” said {member.last}, who wanted [a stronger ending|resignations]."),
                say("The cost to the taxpayer is put at {cost}.", "The affair has cost {cost}, [not counting the inquiry|the report says on its first page]."),
                say("{witness.name}, {p.role}, is [criticised on four pages|treated mildly]. {witness.last} had told members: “{p.evidence}.”"),
                say("{premier.name}, the {c.title}, said the lessons would be [learned|drawn]. Hearings had begun {t0:on}."),
            ),
            after=(2, 5), weight=0.5, covered=0.25,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip
