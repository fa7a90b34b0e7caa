# ruff: noqa: E501 (prose reads better unbroken)
"""How the business desk covers work and trade: strikes, sites, recalls, small firms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE
from backend.news.sources.newsroom.world import Company, Country, Money


@dataclass(frozen=True)
class Strike:
    co: Company
    union: str
    leader: Person
    boss: Person
    worker: Person
    user: Person
    demand: float
    offer: float
    deal: float
    strikers: int
    sites: int
    hours: int
    yes: int
    gripe: str
    settled_extra: str


_GRIPES = (
    "night shifts rostered at three days' notice",
    "unpaid minutes at the start of a shift",
    "pay that has fallen behind prices",
    "a canteen that closes before the late shift",
    "temporary contracts renewed year after year",
    "cuts to sick pay",
)


def _strike(scene: Scene) -> Strike:
    co = scene.fresh("strike", [one for one in scene.world.companies if one.staff > 3_000])
    demand = scene.tenth(6.5, 12)
    offer = scene.tenth(2, 4)
    return Strike(
        co, scene.pick(("the Transport and Trades Union", "the United Workers", "the General Staff Union", "the Federation of Industrial Workers", "Solidar")),
        scene.person(co.country, "the union's leader"), scene.person(co.country, "who leads the company's side in the talks"), scene.person(co.country), scene.person(co.country),
        demand, offer, round((demand + offer) / 2 - 0.4, 1), scene.near(900, min(9_000, co.staff * 0.7)), scene.between(4, 21), scene.pick((24, 36, 48, 72)),
        scene.between(78, 97), scene.pick(_GRIPES), scene.pick(("two extra days off", "a one-off payment before the holidays", "a promise not to outsource cleaning", "rosters four weeks ahead")),
    )  # fmt: skip


STRIKE = Beat(
    "strikes",
    _strike,
    (
        Stage(
            titles=("{co.name} workers vote to strike over pay", "{co.sector.worker:cap}s at {co.name} back strike by {yes}%", "Strike looms at {co.noun} {co.name} as {union} rejects {offer}% offer", "Union calls {hours}-hour strike at {co.name}"),
            abstracts=("Members of {union} vote {yes}% in favour. They want {demand}%; the company offers {offer}%.", "A {hours}-hour walkout would hit {sites} {co.sector.site:plural}. The grievance: {gripe}."),
            leads=("Workers at {co.name} voted by {yes}% to strike over pay, {union} said {on}, after the {co.noun} offered {offer}% against a demand for {demand}%.",
                   "The {co.country.demonym} {co.noun} {co.name} faces a {hours}-hour strike after {yes}% of the members of {union} who voted {on} chose to walk out."),
            then=(say("“[Nobody strikes for fun. They strike for the rent|We have been polite for five months|They found money for a new lobby],” said {leader.name}, who leads the union. {leader.he:cap} [named|listed] {gripe} as a further grievance."),
                  say("{boss.name}, who leads the talks for the company, called {demand}% “[out of reach|a number from another decade|a wish, not a proposal]” and [said the offer of {offer}% was fair|defended the offer of {offer}% as the best in the trade|asked the union to look at {offer}% again].", "On the other side of the table sits {boss.name}, who negotiates for {co.name}. “[A rise of {demand}% would be paid for by those we could then not hire|We have put {offer}% on the table, and the table is still there],” {boss.he} said.", "{co.name} had offered {offer}%. “[I have nothing in my other pocket|There is room between {offer} and {demand}, but it has walls],” said {boss.name}, its negotiator.")),
            loose=(say("{worker.name}, a {co.sector.worker} in {co.city.name}, voted yes. “[I did the sums at the kitchen table|I have never struck in nineteen years],” {worker.he} said."), say("The strike would begin {t1:on} and affect {sites} {co.sector.site:plural}."),
                   say("{co.name} employs {co.staff} people, of whom about {strikers} belong to the union."), say("Talks are to resume before then[, with a mediator|]."), say("The dispute is [also about|as much about] {gripe}, union members say.")),
            weight=0.45, covered=0.2,
        ),
        Stage(
            titles=("Strike begins at {co.name}: {strikers} walk out", "{co.name} strike shuts {sites} {co.sector.site:plural}", "Picket lines at {co.name} as {hours}-hour strike starts", "{co.sector.worker:cap}s walk out at {co.noun} {co.name}"),
            abstracts=("About {strikers} people have stopped work at {sites} {co.sector.site:plural}. No new talks are planned.", "The {hours}-hour strike over pay began {on}. Customers are told to expect delays."),
            leads=("About {strikers} workers at {co.name} walked out {on} at the start of a {hours}-hour strike over pay and {gripe}.", "The lights were on and the {co.sector.site:plural} were empty: a {hours}-hour strike began at {co.name} {on}, and some {strikers} employees stayed out."),
            then=(say("“[It is cold and we are in a good mood|I would rather be at work, on proper pay|My whole shift is here],” said {worker.name}, a {co.sector.worker}, at the gate in {co.city.name}."),),
            loose=(say("{boss.name}, for the company, said {sites} {co.sector.site:plural} were affected and apologised to customers."), say("{user.name}, a customer in {co.city.name}, was [patient|less patient]. “[I would do the same|I ordered three weeks ago],” {user.he} said."),
                   say("{leader.name}, who leads {union}, said turnout was “[higher than at the vote|as near to complete as I have seen]”."), say("The union wants {demand}%; the company has offered {offer}%."), say("Members voted for the strike {t0:on} by {yes}%.")),
            after=(2, 4), weight=0.5, covered=0.3,
        ),
        Stage(
            titles=("{co.name} and {union} [return to|resume] talks after strike", "Mediator called in to {co.name} pay dispute", "Pay talks at {co.name} [inch forward|run into the night] as second strike threatened"),
            abstracts=("The two sides sat in separate rooms. The gap is between {offer}% and {demand}%.", "{leader.name} threatens a second strike if talks fail; {boss.name} says there is room to move."),
            leads=("{co.name} and {union} went back to the table {on}, with a mediator shuttling between two rooms in {co.city.name}.", "The silence ended {on} when {co.name} and its largest union resumed talks about pay."),
            then=(say("“[We have moved from no to not yet|There is coffee, there are numbers, there is no deal],” said {leader.name}, the union's leader."),),
            loose=(say("{boss.name}, for the company, said there was room to move on {gripe} [but less on money|if not on everything]."), say("The {hours}-hour strike that began {t1:on} had shut {sites} {co.sector.site:plural}."), say("A second strike, if it comes, would be longer[, the union has warned|]."),
                   say("The demand stands at {demand}%, the offer at {offer}%."), say("{worker.name}, a {co.sector.worker} who was on the picket line, hoped for an end. “[I would like to stop reading my telephone|We all have bills],” {worker.he} said.")),
            after=(1.2, 2.2), weight=0.3, chance=0.7,
        ),
        Stage(
            titles=("{co.name} strike ends with {deal}% pay deal", "{co.name} and {union} agree on {deal}%", "Deal at {co.name}: {deal}% more pay and {settled_extra}"),
            abstracts=("The agreement gives {deal}% and {settled_extra}. Members must still vote.", "Halfway between {offer}% and {demand}%, the two sides shake hands."),
            leads=("{co.name} and {union} reached a deal {on} that gives workers {deal}% more pay and {settled_extra}.", "The pay dispute at {co.name} is over. Workers at the {co.noun} get {deal}% and {settled_extra} under an agreement signed {on}."),
            then=(say("“[Not everything, but a good deal more than {offer}%|Our members did this, I only held the pen],” said {leader.name}, the union's leader. “[Now we vote|We recommend it].”"),),
            loose=(say("{boss.name}, who negotiated for the company, said the price was “[high and bearable|what peace costs]”."), say("The union had asked for {demand}%, the company had offered {offer}%."), say("A {hours}-hour strike that began {t1:on} involved about {strikers} people."),
                   say("{worker.name}, a {co.sector.worker} in {co.city.name}, said {worker.he} would vote for it. “[It is the extra I wanted most: {settled_extra}|I can live with it],” {worker.he} said."), say("Members vote [next week|by post until the end of the month].")),
            after=(1, 3), weight=0.5, covered=0.3,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    co: Company
    city: City
    jobs: int
    cost: Money
    opens: str | None
    shuts: str | None
    mayor: Person
    worker: Person
    years: int
    when: str
    reason: str


def _site(scene: Scene) -> Site:
    co = scene.fresh("site", scene.world.companies)
    opens = scene.chance(0.5)
    return Site(
        co, scene.pick(co.country.cities), scene.near(80, min(1_900, co.staff * 0.25)), scene.money(2e7, 9e8, co.currency), "" if opens else None, None if opens else "",
        scene.person(co.country, "the mayor"), scene.person(co.country), scene.between(11, 34), scene.pick(("by next summer", "within eighteen months", "at the end of next year")),
        scene.pick((f"{co.sector.input} and a road that never came", "a lease that runs out", "weak orders", "machines older than the people who run them") if not opens else
                   ("a rail link and a technical college", "cheap land and a willing council", "the end of a long search", "a port that ships at night")),
    )  # fmt: skip


SITE = Beat(
    "jobs",
    _site,
    (
        Stage(
            titles=("{opens}{co.name} to build {co.sector.site} in {city.name}, creating {jobs} jobs", "{shuts}{co.name} to close {city.name} {co.sector.site} with loss of {jobs} jobs", "{opens}{city.name} wins {cost:adj} {co.name} {co.sector.site}",
                    "{shuts}{jobs} jobs to go at {co.name} in {city.name}", "{opens}{jobs} new jobs as {co.noun} {co.name} picks {city.name}", "{shuts}{co.noun:cap} {co.name} shuts {city.name} {co.sector.site} after {years} years"),
            abstracts=("{opens}The {co.noun} will invest {cost}. The city offered {reason}.", "{shuts}The {co.noun} blames {reason}. Production moves elsewhere {when}.", "{opens}Work is to be finished {when}, {co.chief.name} says.", "{shuts}“I trained half of them,” says {worker.name}, who has worked there for {years} years."),
            leads=("{opens}{co.name} will build a {co.sector.site} in {city.name} and hire {jobs} people, the {co.noun} said {on}.", "{shuts}{co.name} told employees in {city.name} {on} that their {co.sector.site} would close {when}, with the loss of {jobs} jobs.",
                   "{opens}After a contest among several towns, {city.name} has won a {cost:adj} {co.sector.site} that {co.name} says will employ {jobs} people.", "{shuts}The {co.sector.site} that {co.name} has run in {city.name} for {years} years will shut {when}, costing {jobs} people their jobs."),
            then=(say("{opens}“[We liked the town before we liked the numbers|They answered every letter within a day],” said {co.chief.name}, chief executive. {co.chief.he:cap} mentioned {reason}.", "{opens}{co.chief.name}, the chief executive, [gave|named] {reason} as what had tipped the scales. “[We looked at maps for a year and at {city.name} for a day|I was shown a field and could see the car park],” {co.chief.he} said.", "{opens}What spoke for {city.name}? {reason:cap}, said {co.chief.name}, the chief executive. “[And there was cake, both times|Nobody tried to sell us anything, so we bought].”", "{shuts}{co.chief.name}, the chief executive, [came in person|wrote to every employee] and blamed {reason}. “[I have no good way to say it|There is no villain in this],” {co.chief.he} said."),
                  say("{opens}{mayor.name}, the mayor of {city.name}, [was beaming|could hardly sit still]. “[Eleven towns wanted it and we have it|My grandchildren may not have to move away],” {mayor.he} said.", "{opens}For {mayor.name}, the mayor of {city.name}, it was [a good day|the best day in office so far]. “[I have cut ribbons for roundabouts, this is another thing|The school will need a second bus, and I look forward to arguing about it],” {mayor.he} said.", "{shuts}{mayor.name}, the mayor of {city.name}, said {mayor.he} had learned of it “[from the radio|an hour before the workers did]”. {mayor.he:cap} has asked for a meeting.")),
            loose=(say("{opens}{worker.name}, [who lives nearby and has been out of work since spring|who now drives an hour to work], [had come to listen|means to apply]. “[Everyone I know is writing the same letter|It is eleven minutes by bicycle|I have learned to wait, now I would like to learn a machine|My daughter filled in the form before I had my shoes on],” {worker.he} said.", "{shuts}{worker.name}, a {co.sector.worker} there for {years} years, [stood at the gate after the meeting|was not surprised]. “[I trained half of them|You could see it in the orders],” {worker.he} said."),
                   say("{co.name}, based in {co.city.name}, employs {co.staff} people."), say("{opens}The {co.sector.site} is due to open {when}.", "{shuts}Talks on severance pay begin [next week|within days]."), say("{opens}Critics on the council ask what was promised in return. [The contract is to be published|The mayor's office says: land, at the market price].",
                    "{opens}The building permit is [expected within weeks|the last hurdle]; neighbours have until the end of the month to object.",
                    "{opens}A training course for future {co.sector.worker:plural} [begins|is planned] at the town's vocational college.",
                    "{opens}Wages will be [in line with the trade agreement|settled with the union before the first shift], {co.name} said.", "{shuts}A union called the decision “[cold arithmetic|short-sighted]” and said it would [fight for every post|look for a buyer]."),
                   say("The company had sales of {co.revenue} last year.")),
            weight=0.4, covered=0.2,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    product: str
    trade: str
    fault: str
    harm: str
    fix: str
    low: int
    high: int


_FAULTS = (
    Fault("coffee machine", "furniture maker", "a heating plate that can melt", "eleven people reported smoke", "a free replacement", 20_000, 90_000),
    Fault("yoghurt", "food group", "splinters of plastic", "a child cut her lip", "a refund without a receipt", 40_000, 400_000),
    Fault("family car", "carmaker", "seat belts that can come loose", "no accident is known", "an hour at a workshop", 9_000, 120_000),
    Fault("electric hatchback", "carmaker", "batteries that overheat while charging", "three garages burned", "new software and, in some cars, a new battery", 6_000, 40_000),
    Fault("toy crane", "toymaker", "small magnets that come off", "two children were treated in hospital", "a voucher", 15_000, 80_000),
    Fault("children's bunk bed", "furniture maker", "a rail that can trap a head", "one child was freed by firefighters", "a repair kit by post", 4_000, 30_000),
    Fault("loaf of seeded bread", "food group", "undeclared sesame", "four people had allergic reactions", "a refund", 30_000, 200_000),
    Fault("winter boot", "fashion retailer", "dye that irritates the skin", "dozens of customers had a rash", "a refund", 8_000, 60_000),
    Fault("bottle of alcohol-free beer", "brewer", "a second fermentation that bursts the glass", "a shop assistant was hurt", "a new crate", 50_000, 600_000),
    Fault("heat pump", "energy supplier", "a valve that leaks refrigerant", "no injuries are known", "a visit by an engineer", 3_000, 22_000),
    Fault("blood pressure tablet", "drugmaker", "a packet with the wrong leaflet", "no harm is known", "an exchange at the chemist's", 20_000, 160_000),
    Fault("van", "carmaker", "brakes that fade on long descents", "one driver broke a wrist", "new brake lines", 5_000, 36_000),
    Fault("dolls' house", "toymaker", "paint with too much lead", "no illness is known", "a refund", 6_000, 32_000),
    Fault("frozen lasagne", "supermarket chain", "traces of listeria", "six people fell ill", "a refund without a receipt", 18_000, 150_000),
    Fault("phone charger", "telecoms operator", "a casing that can crack", "one customer had a shock", "a free replacement", 40_000, 300_000),
    Fault("folding chair", "furniture maker", "a hinge that pinches", "two fingertips were lost", "a refund", 9_000, 70_000),
)  # fmt: skip


@dataclass(frozen=True)
class Recall:
    co: Company
    fault: Fault
    items: int
    sold_since: datetime
    expert: Person
    buyer: Person
    found_by: str


def _recall(scene: Scene) -> Recall:
    fault = scene.fresh("fault", _FAULTS, uses=2)
    co = scene.fresh(f"recall {fault.product}", [one for one in scene.world.companies if one.noun == fault.trade])
    scene.once("recall", co.name)
    return Recall(co, fault, scene.near(fault.low, fault.high), scene.day(-scene.between(60, 240)), scene.person(co.country, "a safety inspector"), scene.person(co.country),
                  scene.pick(("a routine test", "a customer's letter", "its own quality control", "a consumer magazine")))  # fmt: skip


RECALL = Beat(
    "product recalls",
    _recall,
    (
        Stage(
            titles=("{co.name} recalls {items} {fault.product:plural} over {fault.fault}", "Recall: {co.name} {fault.product:plural} [may have|found to have] {fault.fault}", "{co.noun:cap} {co.name} [withdraws|calls back] {fault.product:plural} after safety warning", "{fault.product:cap} recall at {co.name} [affects|covers] {items} customers"),
            abstracts=("The problem is {fault.fault}; {fault.harm}. Buyers get {fault.fix}.", "The {co.noun} asks customers to stop using the product at once. It was sold since {sold_since:date}.", "{found_by:cap} brought the fault to light. {co.name} offers {fault.fix}."),
            leads=("{co.name} is recalling {items} {fault.product:plural} because of {fault.fault}, the {co.noun} said {on}. So far {fault.harm}.", "Customers who bought a {fault.product} from {co.name} since {sold_since:date} should stop using it, the {co.noun} warned {on}, because of {fault.fault}.", "After {found_by} revealed {fault.fault}, the {co.country.demonym} {co.noun} {co.name} recalled {items} {fault.product:plural} {on}."),
            then=(say("“[We are sorry, and we would rather be embarrassed than wrong|One is too many|It should have been caught at the line],” said {co.chief.name}, the chief executive. Buyers will get {fault.fix}."),),
            loose=(say("{expert.name}, a safety inspector, said the company had acted “[quickly, once it knew|a week later than I should have liked]”.",
                    "“[A recall is a sign that somebody looked|Most people never send the thing back, and they should],” said {expert.name}, an inspector.",
                    "Inspectors under {expert.name} [are examining|have asked for] the rest of the range[, as the rules require|]."), say("The fault came to light through {found_by}."), say("{buyer.name}, who owns one, [was not worried|found out from a neighbour]. “[I put it in the shed and shut the door|I had wondered about that],” {buyer.he} said."),
                   say("So far {fault.harm}."), say("The batch number is on the [label|underside]. A telephone line is open [until ten in the evening|round the clock]."), say("Shares in {co.name} [slipped|were unchanged]. The company has {co.staff} employees.")),
            weight=0.35, covered=0.25,
        ),
    ),
    share=0.6,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Firm:
    """A small firm: `idea` follows 'a firm that', `head` follows 'How' or 'The people who'."""

    idea: str
    head: str
    start: str
    first: str
    snag: str
    quote: str
    lesson: str


_FIRMS = (
    Firm("repairs umbrellas by post", "mending umbrellas by post", "in a stairwell", "a box of forty from a hotel", "finding ribs of the right length", "Nobody loves an umbrella until it is broken", "charge for the postage both ways"),
    Firm("grows mushrooms in disused car parks", "growing mushrooms in car parks", "on the third level below a cinema", "a soup kitchen", "the smell of diesel", "It's dark, damp and free; to a mushroom that is a palace", "never promise a harvest date"),
    Firm("hires out grandmothers as cooking teachers", "teaching cooking with grandmothers", "in a church hall", "a birthday of seven teenagers", "insurance for hot oil", "They don't do recipes, they do supervision", "pay the cook before the rent"),
    Firm("rents out ladders, tents and cake tins", "lending ladders and cake tins", "in a garage", "a neighbour's wedding", "things that come back dirty", "People want the hole, not the drill", "count the tent pegs"),
    Firm("turns church bells into ringtones for orchestras to sample", "recording old bells", "with a borrowed microphone", "a film composer", "swallows", "Every bell has a village stuck to it", "ask the priest first and the bishop later"),
    Firm("makes shoes for odd-sized feet", "making shoes in two sizes a pair", "in a former butcher's", "a postman", "boxes", "Half the world has a left foot and a right foot, and they aren't twins", "measure in the afternoon"),
    Firm("delivers library books by cargo bicycle", "delivering books by bicycle", "with one bicycle and a thermos", "a home for the elderly", "hills", "I have the strongest legs in literature", "sell advertising on the box"),
    Firm("builds beehives out of old wine crates", "building hives from wine crates", "behind a vineyard", "a school", "glue", "The bees have excellent taste", "let customers paint their own"),
    Firm("translates letters from the tax office into plain language", "turning tax letters into plain language", "at a kitchen table", "a florist in tears", "lawyers", "Most people aren't bad with money, they're bad with sentences", "refuse to give advice"),
    Firm("roasts chestnuts and coffee on a converted barge", "selling coffee from a barge", "on a canal", "the lock-keeper", "bridges that are too low", "Rent is lower when you can cast off", "watch the water level"),
    Firm("restores typewriters for schools", "bringing back the typewriter", "in a cellar", "a drama teacher", "ribbons", "Children adore a machine that can't do anything else", "buy every spare space bar"),
    Firm("knits covers for hot-water tanks", "knitting for boilers", "in a knitting circle", "a landlord with cold tenants", "moths", "It's a cardigan for your bill", "wool is cheaper in June"),
    Firm("sells ugly vegetables in boxes", "selling crooked carrots", "at the edge of a wholesale market", "a crèche", "supermarkets that began to copy it", "A bent cucumber is still a cucumber", "never call it ugly on the box"),
    Firm("cleans graves for families far away", "tending graves for people abroad", "with a bucket and a van", "two sisters overseas", "weather", "We send a photograph, and people write back pages", "learn the names"),
    Firm("makes school desks from wind turbine blades", "turning turbine blades into desks", "in a shipyard", "a school by the sea", "dust", "They were built to bend for twenty years, so they can stand a fidget", "patent the hinge"),
    Firm("tunes pianos in a single night for hotels", "tuning pianos by night", "with a head torch", "a ballroom", "guests with requests", "I have never been heard by anyone and I like it", "carry biscuits for the porter"),
    Firm("sharpens kitchen knives at bus stops", "sharpening knives at bus stops", "on line 14", "a bus driver", "the police, briefly", "Twelve minutes is exactly one bread knife", "don't wave at the passengers"),
    Firm("prints wallpapers from old maps", "printing maps as wallpaper", "in an attic", "a dentist", "seams that fall on capital cities", "People look for their own street and then buy the whole sea", "sell by the river, not by the metre"),
)  # fmt: skip


@dataclass(frozen=True)
class Portrait:
    c: Country
    city: City
    firm: Firm
    founder: Person
    partner: Person
    banker: Person
    staff: int
    years: int
    sales: Money


def _portrait(scene: Scene) -> Portrait:
    c = scene.country()
    return Portrait(
        c,
        scene.pick(c.cities),
        scene.fresh("small firm", _FIRMS),
        scene.person(c),
        scene.person(c),
        scene.person(c),
        scene.between(3, 24),
        scene.between(2, 9),
        scene.money(1.2e5, 1.9e6, c.currency),
    )


PORTRAIT = Beat(
    "small firms",
    _portrait,
    (
        Stage(
            titles=("How {founder.last} [built|made] a business out of {firm.head}", "The {city.name} start-up that {firm.idea}", "Small firm, odd trade: {firm.head} in {city.name}", "{founder.name} and the business of {firm.head}", "From {city.name}, a company that {firm.idea}"),
            abstracts=("{founder.name} began {firm.start}. Today the firm has {staff} employees and one rule: {firm.lesson}.", "“{firm.quote},” says {founder.name}, whose company {firm.idea}.", "The firm that {firm.idea} takes in {sales} a year."),
            leads=("{founder.name} runs a company that {firm.idea}. It sounds like a joke, and {founder.he} tells it well, but it takes in {sales} a year.", "It began {firm.start}. {years} years later, {founder.name} employs {staff} people in {city.name} in a firm that {firm.idea}.", "In a side street of {city.name} there is a firm that {firm.idea}, and it is doing rather well."),
            then=(say("“{firm.quote},” {founder.last} says."), say("The first customer was {firm.first}. [Then came a newspaper photograph, then the telephone|After that, word went round]. {partner.name}, [a cousin|a former colleague|an old school friend], joined in the second year to [do the books|say no to people].")),
            loose=(say("The difficulty was {firm.snag}. “[I cried once and bought a spreadsheet|We lost a summer to that],” {founder.last} says."), say("Sales last year came to {sales}[, of which a little was profit|]. The firm employs {staff}[, most of them part-time|]."), say("{banker.name}, who handled the loan at a local savings bank, [had doubts|remembers the meeting]. “[I asked for figures and got a demonstration|It was the only application that month that made me laugh],” {banker.he} says.", "The money came from {banker.name:s} savings bank. “[We lend to people, the rest is stationery|It has been paid back early, which we don't like to see],” {banker.he} says.", "“[The first plan had a drawing of a dog on it|I said no twice, to see what would happen],” says {banker.name} of the bank that gave the loan."),
                   say("Advice to others? “[Simple|Only one thing]: {firm.lesson},” says {partner.name}."), say("There are plans for a second branch in another town[, though not this year|]. {founder.last} is in no hurry.", "Would {founder.he} open elsewhere? {founder.last} [shakes {founder.his} head|looks at the ceiling]. “[One roof leaks enough|I can only be tired in one place].”", "{founder.last} has been asked to sell [twice|three times]. “[And do what on Mondays?|They would keep the name and change the rest].”")),
            weight=0.25, covered=0.08,
        ),
    ),
    share=0.35,
    rhythm=LEISURE,
)  # fmt: skip
