# ruff: noqa: E501 (prose reads better unbroken)
"""How the technology desk covers the industry: chip plants and shortages, start-ups that rise and close."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Company, Country, Money


@dataclass(frozen=True)
class Chip:
    """A turn in the chip trade; the texts may use any fact of a ChipStory. `role` says who `quote` is from."""

    heads: tuple[str, str]
    brief: str
    lead: str
    role: str
    quote: str
    detail: str
    detail2: str
    sequel: str
    sequel_lead: str
    sequel_quote: str

    @property
    def h0(self) -> str:
        return self.heads[0]

    @property
    def h1(self) -> str:
        return self.heads[1]


_CHIPS: tuple[Chip, ...] = (
    Chip(("{co.name} to build {sum:adj} chip plant near {city.name}", "Chipmaker {co.name} picks {city.name} for new fab"), "The plant is to make {nm}-nanometre chips and employ {jobs} people.",
         "{co.name} will build a semiconductor plant near {city.name} for {sum}, the chipmaker said {on}, its first in {c.name} for {years} years.", "the mayor", "We were a town that people drove past, and now there is a waiting list for land",
         "The plant will need as much water as a town of {jobs}0 people. Most of it is to be cleaned and used again.", "{c.name} adds a subsidy of a fifth of the cost, on condition that the plant runs for {years} years.",
         "{city.name} chip plant held up by rare orchids", "Work on the chip plant of {co.name} near {city.name} stopped {on} after botanists found {small} rare orchids on the site.", "We can move a road, and I'm told we can't move an orchid"),
    Chip(("Memory chip prices rise {pct}% in a month", "Phones and laptops to cost more as memory chips run short"), "Makers have switched their lines to chips for AI. Ordinary memory is scarce.",
         "The price of memory chips has risen {pct}% within a month, traders said {on}, because makers including {co.name} have turned their plants over to chips for artificial intelligence.", "who buys parts for a laptop maker", "I'm offered half of what I ordered, at twice the price, with a smile",
         "A laptop holds memory worth about {few}; at the start of the year it was half of that.", "Plants cannot be added quickly: a new line takes three years.",
         "Laptop makers raise prices as memory chips stay scarce", "Two laptop makers said {on} that they would charge more, {t0:ago} after the rise of memory chips by {pct}%.", "We held out as long as the warehouse did"),
    Chip(("{other.name} restricts export of chipmaking gas", "Chip plants fear for purified neon from {other.name}"), "The gas keeps the lasers running. {co.name} has stocks for {small} weeks.",
         "{other.name} will require licences for the export of the purified gas that chip plants use in their lasers, it said {on}, and {co.name} warned of stoppages.", "who trades in industrial gases", "It's a by-product of steel that nobody wanted when I started, and now ministers ring me",
         "About a third of the world's supply comes from {other.name}. Recycling can replace part of it.", "{co.name} has stocks for {small} weeks, its suppliers say; smaller firms have less.",
         "First chip plant slows down for lack of gas", "{co.name} slowed one of its production lines {on} because the laser gas that {other.name} restricts was running out.", "We dim one laser at a time, like the lights in a theatre"),
    Chip(("{co.name} shows chip with {nm}-nanometre circuits", "Smallest chip yet: {co.name} goes to {nm} nanometres"), "The chipmaker claims {pct}% less power. It will be {small} years until shops have it.",
         "{co.name} presented a processor {on} whose smallest parts measure {nm} nanometres and which, the chipmaker says, needs {pct}% less power.", "the company's head of process technology", "At that scale a fingerprint is a mountain range",
         "One wafer in {small} came out of the trial line without a fault. For a business, it has to be nine in ten.", "The name is a label: nothing on the chip measures exactly {nm} nanometres any more, as engineers in the trade admit.",
         "Rival doubts {nm}-nanometre claim of {co.name}", "A competitor challenged the {nm}-nanometre chip of {co.name} {on}, saying that it had measured a sample and found larger parts.", "A ruler would settle it, if we could agree where to put it"),
    Chip(("Power cut ruins {small} weeks of chips at {co.name}", "Flicker in the grid costs chipmaker {co.name} {cost}"), "The lights dimmed for less than a second. Thousands of wafers were lost.",
         "A power failure of less than a second has destroyed chips worth {cost} at a plant of {co.name} in {city.name}, the company said {on}.", "a shift engineer", "You hear the fans change their note, and you know your week has gone",
         "Wafers spend up to {small} weeks in the plant. A stop at any step spoils all that are under way.", "The grid operator traced the dip to a crane that touched a line {far} kilometres away.",
         "Grid operator and chipmaker argue over lost wafers", "The grid operator in {c.name} rejected a claim by {co.name} for {cost} {on}, over the power dip that ruined its chips.", "The contract promises electricity, and it doesn't promise calm"),
    Chip(("Engineers wanted: chip industry in {c.name} lacks {jobs} people", "{co.name} trains bakers and welders as chip technicians"), "A course of {small} months turns craftsmen into clean-room workers.",
         "The chip industry in {c.name} cannot fill {jobs} posts, its association said {on}; {co.name} has begun to train bakers, welders and opticians.", "a former baker", "You get up early, you keep things clean and you watch the oven",
         "Trainees wear the white suits for two hours at first, since many find them hard to bear.", "Pay starts at {few} an hour, above what most of them earned before.",
         "First class of {co.name} chip trainees finishes", "Of the {years} people who began the first course for chip technicians at {co.name}, all but {small} finished it {on}.", "The suit is the worst of it; after that it is plumbing"),
    Chip(("Fake chips found in train brakes in {c.name}", "Counterfeit chips: {c.demonym} railway checks {jobs} brakes"), "The parts were taken from scrapped washing machines and given new labels.",
         "Counterfeit chips have turned up in the brake controls of trains in {c.name}, the rail regulator said {on}; the label was that of {co.name}.", "who inspects rolling stock", "They had sanded off washing machine and printed train",
         "The fakes work, but they fail in the cold. No accident is known.", "The dealer, in {other.name}, has closed. {co.name} says it warned of the batch two years ago.",
         "Dealer in counterfeit chips traced to garage in {other.name}", "Police in {other.name} found {jobs} relabelled chips in a garage {on}, days after fakes were discovered in the brakes of trains in {c.name}.", "He had a toaster, a sander and a very good printer"),
    Chip(("{co.name} cuts {jobs} jobs as car chips pile up", "Glut of car chips: {co.name} sheds {jobs} jobs"), "Carmakers ordered too much after the last shortage. Now they order nothing.",
         "{co.name} is to cut {jobs} jobs at its plant in {city.name}, it said {on}, because carmakers have stopped ordering chips.", "a union representative", "Two years ago we slept here to keep the cars coming",
         "Warehouses of carmakers hold chips for {small} months; six weeks would be usual.", "The company says that sales to carmakers have fallen {pct}% in a year.",
         "Rival offers jobs to chip workers from {city.name}", "A rival from {other.name} set up a stand outside the plant of {co.name} in {city.name} {on} to hire those who are about to lose their jobs.", "They brought coffee and contracts, and I took one of each"),
    Chip(("Light instead of current: {co.name} tests optical chip", "Chip that calculates with light leaves laboratory in {city.name}"), "It could save most of the power that AI centres use. It has to be kept at an even temperature.",
         "Engineers in {city.name} have built a chip that calculates with light instead of current, {co.name} said {on}, and will try it in a data centre.", "who invented the design", "It is a very small room with a great many mirrors",
         "In the laboratory it used {pct}% less energy for the same sum. Reading out the result uses up some of that.", "A change of two degrees is enough to make it miscount.",
         "Optical chip passes first month in data centre", "The optical chip that {co.name} is testing has run in a data centre in {city.name} without a fault, the company said {on}.", "It has been so dull that I look in to see if it's on"),
    Chip(("{co.name} and {c.name} quarrel over chip subsidy", "Chipmaker {co.name} asked to pay back {cost}"), "The government says that the promised {jobs} jobs never came.",
         "{c.name} wants {cost} back from {co.name}, the trade ministry said {on}, because the chipmaker created fewer jobs than it had promised for its subsidy.", "who wrote the audit", "They counted the builders, the caterers and a man who came about the bees",
         "The contract named {jobs} jobs. The auditors found a third of them.", "{co.name} says that machines have become better, which is what the subsidy was for.",
         "{co.name} to repay part of chip subsidy", "{co.name} will repay a third of the {cost} that {c.name} demanded, the two sides said {on}.", "Both of us are unhappy, so it may be fair"),
    Chip(("Old chip, new use: {co.name} revives design of {years} years ago", "Chipmaker restarts {years}-year-old line for pacemakers"), "Hospitals need a part that nobody makes any more. Two pensioners know how.",
         "{co.name} has restarted a production line in {city.name} that had stood idle for {years} years, it said {on}, because makers of pacemakers need the old chip.", "a retired engineer who came back", "I found my own handwriting on the valve",
         "Medical devices are approved with their parts; to change a chip means years of tests.", "The manual was typed. One page is missing, and nobody is sure what it said.",
         "Missing page of chip manual turns up in attic", "The missing page of a manual for an old chip line at {co.name} was found in an attic in {city.name}, the company said {on}.", "My wife had used the back of it for a recipe"),
    Chip(("Chipmakers bet on glass: {co.name} invests {cost}", "{co.name} swaps plastic for glass under its chips"), "Glass stays flat when hot. It also breaks.",
         "{co.name} will mount its largest processors on glass instead of plastic, it said {on}, and put {cost} into a line in {city.name}.", "the plant manager", "We hired from the window trade, because they know how not to drop it",
         "Chips for AI get so hot that the plastic beneath them warps by a hair's breadth, which is too much.", "In the first trials, one sheet in {small} broke.",
         "Glassmaker and chipmaker in {city.name} join forces", "{co.name} will take a stake in a {c.demonym} maker of window glass, it said {on}, to be sure of thin sheets for its chips.", "My grandfather made church windows; it's the same fear of the hammer"),
    Chip(("Data centre boom: {co.name} sells chips {small} years ahead", "{co.name} lifts chip output by {pct}% for AI centres"), "Customers pay in advance and send their own trucks.",
         "{co.name} has sold its output of AI chips for the next {small} years, the chipmaker said {on}, and will raise production by {pct}%.", "who analyses the industry", "When customers pay for a thing that doesn't exist yet, I check where the exit is",
         "A single one of the processors costs {dear}. A data centre takes tens of thousands.", "Part of the orders may be double: buyers book with several makers and cancel the slower.",
         "Data centre cancels chip order with {co.name}", "An operator of data centres has cancelled an order for chips from {co.name}, it said {on}, days after the company had called itself sold out.", "One swallow doesn't make an autumn, but I've marked the date"),
    Chip(("Scrap yard in {city.name} mines gold from chips", "Old phones yield chips for reuse at {city.name} plant"), "A tonne of circuit boards holds more gold than a tonne of ore.",
         "A plant in {city.name} has begun to take chips from old telephones for use in new devices, its owners said {on}; {co.name} will test and sell them.", "who founded the plant", "People keep three dead phones in a drawer; that drawer is the best mine in {c.name}",
         "A robot heats the boards until the solder melts and picks the chips off. It manages {far} an hour.", "Reused chips go into toys, lamps and thermostats. They cost {pct}% less.",
         "{co.name} gives {small}-year warranty on reused chips", "{co.name} will guarantee reused chips from {city.name} for {small} years, it said {on}, as long as for new ones.", "They have already survived one owner, which no new chip can say"),
)  # fmt: skip


@dataclass(frozen=True)
class ChipStory:
    h: Chip
    co: Company
    c: Country
    city: City
    other: Country
    speaker: Person
    analyst: Person
    house: str
    official: Person
    sum: Money
    cost: Money
    few: Money
    dear: Money
    nm: int
    jobs: int
    years: int
    small: int
    pct: int
    far: int


def _chip(scene: Scene) -> ChipStory:
    h = scene.fresh("chip", _CHIPS)
    co = scene.fresh("chipmaker", [one for one in scene.world.companies if one.noun == "chipmaker"], uses=2)
    other = scene.pick([one for one in scene.world.countries if one is not co.country])
    return ChipStory(
        h, co, co.country, scene.pick(co.country.cities), other, scene.person(co.country, h.role), scene.person(None, "an analyst"), scene.pick(("Oriel Research", "Marram Capital", "Siliconwatch", "Lindqvist Partners")),
        co.country.minister("trade"), scene.money(2.1e9, 9e9, co.currency), scene.money(2e7, 3e8, co.currency), scene.money(18, 60, co.currency), scene.money(14_000, 38_000, co.currency), scene.pick((2, 3, 4)), scene.near(300, 2_800), scene.between(11, 24), scene.between(3, 8),
        scene.between(14, 46), scene.between(11, 70),
    )  # fmt: skip


CHIPS = Beat(
    "chip industry",
    _chip,
    (
        Stage(
            titles=("{h.h0}", "{h.h1}"),
            abstracts=("{h.brief}",),
            leads=("{h.lead}",),
            then=(say("“{h.quote},” said {speaker.last}.", "“{h.quote},” {speaker.last} [said|told this newspaper].", "{speaker.last} [sums it up|has an image for it]: “{h.quote}.”"),),
            loose=(say("{h.detail}"), say("{h.detail2}"),
                   say("{analyst.name}, who follows the industry for {house}, [took a sober view|was cautious]. “[Chips are pork bellies with better marketing: feast, famine, feast|It takes three years to build and three months to be wrong|Everybody wants a plant at home until the water bill comes],” {analyst.he} said.",
                       "{analyst.name} of {house} [expects others to follow|sees a pattern]. “[When one of them sneezes, a car is delivered without a radio|Nobody in this trade has ever stopped at the right moment|The order books are full of hope and copies],” {analyst.he} said.",
                       "“[Ask who gets the second-best chips; that's where the shortage shows|Supply is a map, and the map has four dots],” said {analyst.name} of {house}."),
                   say("{official.last} [spoke of|called it] a question of independence. “[We would like to switch on a lamp without asking three continents|A country that can't make a chip has to be very polite],” {official.he} said.", "{official.last} said the government would [look at its rules for subsidies|talk to its neighbours about common stocks]."),
                   say("{co.name}, based in {co.city.name}, employs {co.staff} people and had sales of {co.revenue} last year.", "{co.chief.name}, chief executive of {co.name}, said the company [would keep its plans|saw demand rising]. “[We plan in decades and report in quarters|My worry is always the one part we didn't think of|You can't hurry a crystal],” {co.chief.he} said.")),
            weight=0.38, covered=0.3,
        ),
        Stage(
            titles=("{h.sequel}",),
            abstracts=("“{h.sequel_quote},” [says|comes the answer from] {city.name}.", "The affair [began|came to light] {t0:on}. {h.detail}", "{h.detail2}"),
            leads=("{h.sequel_lead}",),
            then=(say("“{h.sequel_quote},” said one [of those involved|person involved].", "“{h.sequel_quote},” a [manager|person close to the matter] said."),),
            loose=(say("{h.detail}"), say("{h.detail2}"), say("“{h.quote},” {speaker.last} had said [at the start|when the news broke]."), say("{analyst.name}, an analyst at {house}, called it “[a footnote with a price|the sort of thing that isn't in the model]”.", "{analyst.name} of {house} [was amused|took note]. “[It shows how thin the ice is|Write it down, it'll happen again elsewhere],” {analyst.he} said."), say("{co.name} has {co.staff} employees[, most of them in {c.name}|].", "{co.finance.name}, finance chief of {co.name}, did not expect [an effect on this year's results|higher costs].")),
            after=(2, 6), weight=0.28, covered=0.12, chance=0.85,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Idea:
    """What a young company does: `does` a verb phrase, `short` an adjective phrase before start-up, `snag` its trouble."""

    name: str
    short: str
    does: str
    origin: str
    pitch: str
    snag: str
    doubt: str


_IDEAS: tuple[Idea, ...] = (
    Idea("Loamly", "soil sensor", "puts sensors the size of a carrot into fields and tells farmers when to water", "The founders met on a failed tomato farm.", "We sell the absence of one telephone call at five in the morning", "moles like the sensors", "Farmers buy what their neighbour has had for three years"),
    Idea("Brickback", "building scrap", "finds new owners for doors, beams and bathtubs from demolished houses", "It began with forty oak doors in the founder's hallway.", "Every house is a shop that nobody has opened yet", "storage eats the margin", "The idea is lovely and every bathtub is a different size"),
    Idea("Nurso", "hospital rota", "plans the shifts of nurses with software that learns who needs to be home when", "One founder is a nurse who once found herself on two wards at the same hour.", "A rota is a promise to a family", "hospitals take two years to sign", "It works where the head nurse wants it, and nowhere else"),
    Idea("Kelpworks", "seaweed packaging", "makes cups and wrappers from seaweed that dissolve in a month", "The first cup dissolved during the first meeting.", "You could eat it, but you won't want to", "it still costs three times as much as plastic", "Paper is cheaper and already brown"),
    Idea("Tandem Bank", "shared account", "offers bank accounts for people who share a flat", "Three flatmates quarrelled over a gas bill.", "Money is the washing-up of every flat", "flatmates move out", "They have users, and users are not yet customers"),
    Idea("Echolot", "leak detection", "hears leaks in water mains by listening to hydrants at night", "The founder tuned pianos before she studied engineering.", "A leak sings a slightly flat B", "town halls pay late", "It is dull, useful and very hard to copy, so I like it"),
    Idea("Ovenly", "kitchen sharing", "rents restaurant kitchens to home bakers in the hours when they stand empty", "A bakery owner noticed that her oven slept more than she did.", "Half of all ovens in this city are cold at any moment", "inspectors want a separate sink for each tenant", "It's an estate agency that smells better"),
    Idea("Pollenate", "robot bee", "builds drones that pollinate greenhouse strawberries", "A cold spring kept the bumblebees at home.", "We don't replace bees; we do the shifts they won't", "the drones are louder than bees", "A box of bumblebees costs less than a battery"),
    Idea("Grannyflat", "home care", "matches students who need a room with old people who need company", "The founder lived for two years with a retired judge.", "Rent is paid in soup and crosswords", "one match in five ends in a quarrel over heating", "You can't automate liking somebody"),
    Idea("Ferrytale", "ferry booking", "sells tickets for small ferries that nobody could book online", "It took its founder nine calls to reach an island.", "There are two thousand ferries out there without a website", "captains prefer cash", "Somebody large will copy it in a weekend"),
    Idea("Coldstream", "server heat", "heats swimming pools with the waste heat of computers", "A pool attendant and a programmer share a garden fence.", "The customers are warm and so are the computers", "pools close in summer", "It's physics I understand with a tariff I don't"),
    Idea("Attestly", "contract checking", "checks tenancy agreements for clauses that no court would uphold", "It grew out of a students' legal advice evening.", "Landlords copy each other's mistakes", "landlords have begun to use it too", "They are one change of law away from nothing"),
    Idea("Halfway", "cargo bike", "moves parcels from vans to bicycles at the edge of town", "The founders, both couriers, kept passing the same queue.", "The last mile is uphill and we have calves", "bicycles vanish", "In flat cities with bad parking it flies"),
    Idea("Stillwell", "sleep tracking", "measures sleep with a strip under the mattress", "Its founder was told by four doctors to relax.", "We tell you the one thing that helped others like you", "a cat counts as a person", "Sleepless people buy everything once"),
    Idea("Remend", "clothes repair", "collects torn clothes, has them mended and brings them back within the week", "The first workshop was a caravan outside an office.", "A jacket is cheaper on its second life", "tailors are hard to find", "It survives if fast fashion gets slower"),
    Idea("Quorumly", "residents' meeting", "runs the meetings of flat owners, with votes by telephone", "A dispute about a bicycle shed lasted eleven years.", "We've cut the average meeting from four hours to thirty minutes", "old owners miss the quarrels", "There is one of these in every country, and none of them travels"),
    Idea("Saltpan", "battery", "develops batteries from table salt for houses with solar panels", "It came out of a doctoral thesis that was nearly thrown away.", "It is heavy, cheap and won't catch fire, like a good friend", "the factory is late", "The chemistry is right and the price of its rival halves every year"),
    Idea("Birdseye", "roof survey", "examines church roofs with drones", "A bishop complained about the price of scaffolding.", "We find the slate before it finds a parishioner", "jackdaws attack the drones", "A small market that never goes away; I'd take it"),
    Idea("Plumline", "craftsman booking", "lets people book plumbers by the half-hour, with a price agreed beforehand", "The founder waited for a plumber on three days of his honeymoon.", "Plumbers hate telephones, and so do customers", "the good plumbers don't need it", "Three others have died of this idea"),
    Idea("Wordfield", "dialect", "teaches computers to understand dialects, which most voice services ignore", "A grandmother had shouted at a heating control for a week.", "My grandmother is the test lab", "every valley is a new language", "Large firms could do it, and haven't been bothered in ten years"),
    Idea("Micella", "mushroom leather", "grows leather from mushroom roots on sawdust", "The founders rent a former mushroom cellar under a brewery.", "It grows in nine days, and a cow takes two years", "no two sheets have the same thickness", "Fashion wants a novelty, and shoemakers want the same thing every time"),
    Idea("Tidepool", "wave power", "builds buoys that turn waves into power for fish farms", "The first buoy drifted off and was returned by a trawler.", "A fish farm burns diesel in the middle of an ocean of energy", "storms", "The sea has bankrupted better engineers"),
    Idea("Cubby", "nursery place", "shows parents free nursery places in real time", "A mother of twins had kept a spreadsheet of eighty nurseries.", "The places exist; nobody had counted them", "nurseries fill up and leave", "A town hall could do this, and should"),
    Idea("Rootcast", "tree inspection", "listens to street trees with microphones to find rot", "The founder's car was under one that nobody had inspected.", "Every tree has a note, and the rotten ones are out of tune", "woodpeckers", "City budgets are cut from the top, like hedges"),
)  # fmt: skip


@dataclass(frozen=True)
class Venture:
    i: Idea
    c: Country
    city: City
    founder: Person
    second: Person
    investor: Person
    rival: Person
    client: Person
    fund: str
    sum: Money
    worth: Money
    early: Money
    staff: int
    months: int
    clients: int
    pct: int
    fails: str | None
    grows: str | None
    other: Country


_FUNDS = ("Larchmont Ventures", "Second Kettle", "Tidewrack Capital", "Groundfloor Partners", "Hundred Acre Fund", "Nightbus Capital", "Ploughshare Ventures", "Glasshouse Growth")  # fmt: skip


def _venture(scene: Scene) -> Venture:
    i = scene.fresh("idea", _IDEAS)
    c = scene.country()
    city = scene.pick(c.cities)
    fails = scene.chance(0.45)
    total = scene.money(1.5e6, 4.8e7, c.currency)
    return Venture(
        i, c, city, scene.person(c, f"who founded {i.name}"), scene.person(c, "the co-founder"), scene.person(None), scene.person(None, scene.pick(("an investor who passed on it", "who invests in rivals", "who teaches entrepreneurship"))), scene.person(c),
        scene.pick(_FUNDS), total, total.times(scene.rng.uniform(3.5, 6.5)), total.times(scene.rng.uniform(0.08, 0.2)), scene.between(11, 90), scene.between(14, 50), scene.near(120, 9_000), scene.between(14, 60),
        "" if fails else None, None if fails else "", scene.pick([one for one in scene.world.countries if one is not c]),
    )  # fmt: skip


VENTURE = Beat(
    "start-ups",
    _venture,
    (
        Stage(
            titles=("{city.name} start-up {i.name} raises {sum}", "{i.short:cap} start-up {i.name} [gets|lands] {sum} from {fund}", "Investors put {sum} into {i.name}, a start-up that {i.does}", "Start-up {i.name} now valued at {worth}"),
            abstracts=("{i.name} {i.does}. The new money brings its value to {worth}.", "The start-up has {staff} employees and {clients} customers. One problem: {i.snag}.", "{founder.name} calls the round “oxygen”. {fund} leads it."),
            leads=("{i.name}, a start-up from {city.name} that {i.does}, has raised {sum} from investors led by {fund}, it said {on}.", "Investors led by {fund} are putting {sum} into {i.name}, which {i.does}. The {city.name} start-up announced the round {on}.", "Hardly {months} months after its first customer, {i.name} of {city.name} is worth {worth}. The start-up, which {i.does}, announced a round of {sum} {on}."),
            then=(say("“{i.pitch},” said {founder.last}.", "{founder.last} [has a line for it|explains it in one sentence]: “{i.pitch}.”"),),
            loose=(say("{i.origin}"), say("The money is meant for [a second office|more engineers|a move into {other.name}]. {i.name} has {staff} employees.", "With the money, the company wants to [double its staff of {staff}|open in {other.name}].", "Most of the {sum} will go into [people|sales]; {i.name} has {staff} employees now."),
                   say("There is one difficulty: {i.snag}. “[We're working on it|It came up in every meeting, and rightly|If it were easy, it would be crowded],” said {second.last}.", "Asked about the obvious trouble, that {i.snag}, {second.last} [nodded|sighed]. “[That's the company, really: solving that|Ask me in a year],” {second.he} said."),
                   say("{rival.last} is not convinced. “{i.doubt},” {rival.he} said.", "“{i.doubt},” said {rival.last}."),
                   say("“[We looked at forty of them and rang this one back|I tried it on my mother, and she kept it|They know what they don't know, which is rare at that age],” said {investor.name}, a partner at {fund}.", "{investor.name} of {fund} [met the founders at a bus stop|had turned them down once]. “[The second time they brought numbers|It's the sort of thing one is annoyed not to have thought of],” {investor.he} said."),
                   say("{client.name}, one of {clients} customers, [is content|uses it daily]. “[It's done what it said, which I wasn't used to|They answer the telephone, the founders themselves|It paid for itself by the second month],” {client.he} said."),
                   say("An earlier round brought in {early}. Sales grew by {pct}% in the past year[, from a low base|].")),
            weight=0.3, covered=0.25,
        ),
        Stage(
            titles=("{fails}Start-up {i.name} delays launch in {other.name}", "{fails}{i.name} loses co-founder weeks after raising {sum}", "{grows}{i.name} start-up opens in {other.name}", "{grows}Start-up {i.name} buys rival in {other.name}"),
            abstracts=("{fails}{second.name} leaves the {city.name} start-up. The reason: {i.snag}.", "{grows}The {city.name} company {i.does}, and soon abroad as well."),
            leads=("{fails}{second.name}, co-founder of {i.name}, is leaving the {city.name} start-up, it said {on}, and its launch in {other.name} has been put off.", "{grows}{i.name}, the {city.name} start-up that {i.does}, is taking over a smaller rival in {other.name}, it said {on}."),
            then=(say("{fails}“[We disagreed about speed, as founders do|{second.given} built the first one with {second.his} own hands, and we'll miss {second.him}],” said {founder.name}, the other founder.", "{grows}“[They had the customers, and we had the software|We'd rather buy a team that loves the problem than hire one],” said {founder.name}, the founder."),),
            loose=(say("The start-up had raised {sum} from {fund} and others, it said {t0:on}.", "It was {t0:on} that {fund} and others put {sum} into the company."), say("{i.origin}"), say("The trouble, people in the industry say, is that {i.snag}."), say("{rival.last} had seen it coming. “{i.doubt},” {rival.he} said."), say("{client.name}, a customer, [had noticed nothing|hopes the price stays]. “[As long as it works on Monday|I only know them from their invoices],” {client.he} said."), say("{i.name} employs {staff} people in {city.name}. {investor.name} of {fund} [keeps faith|asked for a new plan by the end of the quarter].")),
            after=(3, 7), weight=0.22, chance=0.7,
        ),
        Stage(
            titles=("Start-up {i.name} files for insolvency", "{i.name}, {i.short} start-up once worth {worth}, closes"),
            abstracts=("The {city.name} company leaves {staff} employees and {clients} customers. {i.snag:cap}.",),
            leads=("{i.name}, a {city.name} start-up that was worth {worth} on paper, filed for insolvency {on}.", "The lights went out {on} at {i.name}. The start-up, which {i.does}, could not find new money."),
            then=(say("“[We were right too early, or wrong on time; I go back and forth|I'd do it again, with half the money and twice the plumbers|It's a strange thing to switch off a server you named],” said {founder.name}, the founder."),),
            loose=(say("Investors had put {sum} into it. {fund} wrote off its stake."), say("In the end, the trouble was simple: {i.snag}."), say("Its {staff} employees [were told in a call of nine minutes|will be paid until the end of the month]."), say("“{i.doubt},” {rival.last} had said [when the money was raised|{t0:on}]."), say("{client.name}, a customer, [is looking for a replacement|is sorry]. “[They were nice people with a nice idea|I paid for the year in advance, so I'm now an investor as well],” {client.he} said.")),
            after=(2, 4), weight=0.35, chance=0.8, when=lambda f: f.fails is not None,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip
