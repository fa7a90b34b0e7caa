# ruff: noqa: E501 (prose reads better unbroken)
"""What the politics desk has to write about: the bills, scandals and town quarrels of the invented world."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bill:
    """A draft law. `means` is a verb phrase, `pro` and `con` are said aloud, `range` bounds its number `{n}`."""

    name: str
    office: str
    field: str
    aim: str
    means: str
    pro: str
    con: str
    detail: str
    people: str
    group: str
    clash: str
    range: tuple[int, int] = (2, 9)


BILLS: tuple[Bill, ...] = (
    Bill("rent cap bill", "housing", "housing", "hold down rents", "limits yearly rent increases to {n}% in the larger cities",
         "A home can't be a thing you are priced out of every spring", "Cap the rent and you cap the building, it is as simple as that",
         "New buildings would be exempt for ten years. Landlords who [renovate|insulate] could raise the rent further, by up to half the cost spread over eight years.",
         "tenants and landlords", "the national tenants' federation", "the exemption for new buildings", (2, 4)),
    Bill("night train act", "transport", "transport", "bring back night trains",
         "sets aside money for {n} overnight rail routes and obliges operators to sell through tickets",
         "You should be able to fall asleep here and wake up by the sea", "We are buying sleeping cars for people who already have a choice",
         "The ministry would lease carriages and let the routes by tender. The first two lines would link the capital with the coast.",
         "rail passengers", "the passengers' association", "who pays when trains run empty"),
    Bill("phone-free schools bill", "education", "schools", "keep phones out of classrooms",
         "bans mobile phones in lessons and breaks for pupils under {n}", "Children have told us they want the choice taken off their shoulders",
         "Head teachers already run their schools and need no law to hide a telephone",
         "Schools would get lockers or pouches. Pupils with medical devices that need a handset are exempt, and so are journeys to and from school.",
         "parents and teachers", "the parents' council", "who buys the lockers", (14, 16)),
    Bill("organ donor bill", "health", "health", "find more organ donors",
         "makes every adult an organ donor unless they opt out", "People are dying on a list while we avoid a conversation",
         "Silence isn't consent, and the state should not treat it as such",
         "Relatives would still be asked. Hospitals with more than {n}00 beds would have to employ a donor coordinator.",
         "patients and doctors", "the kidney patients' union", "how far relatives may object", (3, 6)),
    Bill("whistle-blower bill", "justice", "justice", "protect whistle-blowers",
         "forbids the dismissal of employees who report wrongdoing and creates an office to hear them",
         "The person who tells the truth should not be the one clearing a desk", "This invites every office feud into a courtroom",
         "Firms with more than {n}0 employees would need a confidential channel. Those who take revenge on a witness face fines.",
         "employers and unions", "the transparency network", "whether anonymous reports count", (5, 9)),
    Bill("short-let bill", "housing", "housing", "curb holiday lets",
         "lets town halls limit short-term holiday rentals to {n}0 nights a year",
         "Whole stairwells have no neighbours left in them", "A widow letting a room in August isn't the cause of the housing crisis",
         "Owners would register each flat and show the number in every advertisement. Platforms that list unregistered flats would pay the fine.",
         "hosts and residents", "the old towns' residents' league", "the number of nights", (6, 9)),
    Bill("coastal wind bill", "energy", "energy", "speed up offshore wind farms",
         "cuts the time for approving offshore wind farms from {n} years to three",
         "The wind does not wait for a stamp, and neither does the gas bill", "Speed is a fine word until it is your fishing ground",
         "Several studies now done one after another would run side by side. Fishing fleets would be paid for grounds they lose.",
         "fishing crews and energy firms", "the inshore fishermen's union", "compensation for fishing grounds", (6, 9)),
    Bill("dual citizenship bill", "interior", "citizenship", "let newcomers keep two passports",
         "lets newcomers keep their old passport when they naturalise after {n} years",
         "Nobody should have to choose between a country and a mother", "Citizenship is a promise, not a loyalty card",
         "Applicants would still sit a language test. Those who gave up another nationality in the past could apply to regain it.",
         "immigrant families", "the newcomers' forum", "the length of residence", (5, 8)),
    Bill("farm water bill", "agriculture", "farming", "save groundwater",
         "puts meters on farm wells and sets a yearly quota for each river basin",
         "We can't keep drawing on an account that nobody pays into", "They will count every drop on my farm and none on the golf course",
         "Growers who cut their use by a third would be paid for drip pipes. Basins where the water table has fallen by more than {n} metres come first.",
         "farmers", "the growers' cooperative union", "the size of the quotas"),
    Bill("gig work bill", "labour", "employment", "give couriers employee rights",
         "treats delivery riders and drivers as employees unless the platform can prove otherwise",
         "If a phone tells you when to start, where to go and what you earn, you have a boss", "Half of these riders will have all of the rights and none of the work",
         "Riders would get sick pay and a say over the software that hands out jobs. Self-employed drivers with {n} or more clients are left out.",
         "couriers and delivery firms", "the riders' collective", "the burden of proof", (3, 5)),
    Bill("campaign finance bill", "interior", "party funding", "take big money out of politics",
         "caps gifts to parties at {n},000 a year and publishes all above a tenth of that",
         "Voters are entitled to know who paid for the poster", "It ties the hands of new parties and leaves the old ones with their villas",
         "Loans count as gifts. Online advertising would have to say who paid, how much, and whom it was shown to.",
         "party treasurers", "the clean money campaign", "whether unions are covered", (5, 9)),
    Bill("conscription bill", "defence", "defence", "bring back military service",
         "calls up {n},000 eighteen-year-olds a year by lot for ten months of service",
         "Peace needs people who know what to do if it ends", "You do not mend an army's staffing with a lottery",
         "Both sexes would be called. Those who refuse on grounds of conscience may serve in hospitals, fire brigades or flood defence.",
         "school leavers", "the national youth council", "exemptions for students"),
    Bill("public library bill", "culture", "culture", "save village libraries",
         "obliges every district of more than {n},000 people to keep a staffed library",
         "It's the last warm room in town where nobody asks you to buy something", "We can't order villages to love books and send them the invoice",
         "Districts may share a building or run a library bus. The state would pay a third of the wages.",
         "librarians and mayors", "the society of librarians", "the state's share of the wages"),
    Bill("sugar levy bill", "health", "public health", "tax sugary drinks",
         "adds a levy of {n} cents a litre to drinks with more than five grams of sugar in 100 millilitres",
         "Dentists have begged us for this, and so have their patients' parents", "A tax on the thirsty is still a tax on the poor",
         "Fruit juice and milk drinks are exempt at first. The money would go to school kitchens and swimming lessons.",
         "drinks makers and doctors", "the dental association", "the exemption for juices", (12, 25)),
    Bill("artificial intelligence transparency bill", "science", "digital policy", "make companies label AI content",
         "requires firms to mark pictures and speech made by artificial intelligence",
         "People have a right to know whether a face ever drew breath", "It will be obeyed by the honest and ignored by everyone it was written for",
         "Satire and art are exempt if the maker is named. Breaches would cost up to {n}% of yearly sales.",
         "publishers and technology firms", "the digital rights association", "the exemption for satire", (2, 6)),
    Bill("four-day week pilot bill", "labour", "employment", "test a four-day week",
         "pays {n},000 public employees full wages for four days' work in a two-year trial",
         "Let us find out instead of shouting about it", "Who answers the telephone on the fifth day?",
         "Tax offices, registries and two hospitals would take part, and a university would measure sickness, output and complaints.",
         "public employees", "the public service union", "which offices take part"),
)  # fmt: skip


@dataclass(frozen=True)
class Scandal:
    """What a junior minister is said to have done: `short` for headlines, `what` as a verb phrase in the past."""

    short: str
    what: str
    proof: str
    denial: str
    finding: str
    office: str


SCANDALS: tuple[Scandal, ...] = (
    Scandal("lake house", "failed to declare a lake house bought with help from a contractor",
            "land registry papers and two bank transfers", "I bought a ruin from a friend at the price of a ruin",
            "the price was about half what the house was worth", "transport"),
    Scandal("doctorate", "copied long passages of a doctoral thesis", "a side-by-side comparison of the thesis with five older works",
            "I was twenty-six, I was careless with notes, and I never meant to deceive", "at least 38 pages were taken from others", "education"),
    Scandal("lobbying messages", "traded private messages with a lobbyist while drafting pharmacy rules", "more than 200 messages from a work telephone",
            "I talk to everyone; that is what the job is", "three sentences of the rules were the lobbyist's own", "health"),
    Scandal("flights", "took free flights on a mining company's aircraft", "passenger lists for four flights",
            "There were no other planes and there was work to do", "none of the four flights had been declared", "environment"),
    Scandal("family contract", "signed a cleaning contract with a firm run by a brother-in-law", "the minutes of a tender committee",
            "The cheapest bid won, and I left the room", "no second bid had ever been opened", "interior"),
    Scandal("tax", "paid no tax on income from three rented flats", "letters from a tax office",
            "My accountant made a mistake and I have put it right", "tax on the flats had gone unpaid for six years", "housing"),
    Scandal("expenses", "charged family holidays to a ministry account", "hotel bills and a diary kept by a former aide",
            "There were meetings on every one of those days", "eleven of the fourteen trips had no official purpose", "culture"),
    Scandal("leaked tender", "warned a shipyard of a rival's bid for patrol boats", "an e-mail sent on the eve of the decision",
            "I passed on what was already in the newspapers", "the figures in the e-mail weren't public", "defence"),
    Scandal("school place", "pressed a head teacher to admit a relative's child", "a recording of a telephone call",
            "I asked a question, as any aunt or uncle might", "the call came from the ministry during a selection round", "science"),
    Scandal("shares", "held shares in a battery firm while awarding battery grants", "a share register",
            "They were in a fund and I did not look", "the shares had been bought in person a year earlier", "energy"),
)  # fmt: skip


@dataclass(frozen=True)
class TownMatter:
    """A decision of a town hall; `vote` completes 'councillors voted to', `head` a headline after the city's name."""

    head: str
    vote: str
    why: str
    pro: str
    con: str
    detail: str
    who: str
    topic_word: str


TOWN_MATTERS: tuple[TownMatter, ...] = (
    TownMatter("bans cars from old market square", "close the old market square to cars", "Shopkeepers counted 9,000 vehicles a day crossing it",
               "In a year nobody will remember why we parked there", "My customers carry wardrobes, not handbags",
               "Deliveries remain possible until ten in the morning, and residents keep their permits.", "a shopkeeper on the square", "traffic"),
    TownMatter("to close three swimming pools", "close three of the city's seven swimming pools", "Heating bills have doubled in two years",
               "We would rather run four pools well than seven badly", "My daughter learned to swim there and my son will not",
               "School lessons move to the remaining pools, with buses paid for by the city.", "a mother of two", "budget"),
    TownMatter("makes buses free for under-18s", "make buses free for everyone under 18", "Ridership among teenagers had fallen by a fifth since the last fare rise",
               "A child who takes the bus becomes an adult who takes the bus", "Free is a word for things somebody else pays for",
               "The scheme costs about 4m a year and is paid for from parking fees.", "a bus driver of twenty years", "transport"),
    TownMatter("rejects 22-storey tower by the station", "refuse a 22-storey tower beside the station", "More than 6,000 residents had signed a petition",
               "We want homes there, not a monument", "We have just told 300 families to keep looking",
               "The developer may appeal, or return with a lower design.", "the developer's agent", "planning"),
    TownMatter("to plant 10,000 street trees", "plant 10,000 street trees in five years", "Last summer the centre was seven degrees hotter than its suburbs at night",
               "Shade is a public service", "Trees need water and I see no budget for a hose",
               "Lindens and field maples make up half of the list; the first go to streets without any.", "a retired gardener", "environment"),
    TownMatter("hands bin collection back to city staff", "take rubbish collection back from a private contractor", "Complaints of missed bins had tripled",
               "We know where the bins are, and we intend to empty them", "They have bought forty lorries to solve a problem of supervision",
               "The contractor's crews keep their jobs under city contracts.", "a caretaker in the north of the city", "services"),
    TownMatter("limits fireworks to one display", "ban private fireworks and hold one public display", "Hospitals treated 41 people for burns last New Year",
               "One big sky for everyone", "It's the one night I feel like a boy",
               "Fines start at 150, and half of the old spending on clean-up goes to the display.", "a shop owner who sells fireworks", "safety"),
    TownMatter("to buy 400 flats from landlord", "buy 400 flats from a private landlord", "The owner had planned to sell them one by one",
               "These flats will never be a line in somebody's quarterly report again", "We have bought four hundred leaking roofs",
               "Rents stay as they are for five years while roofs and lifts are mended.", "a tenant of thirty years", "housing"),
    TownMatter("scraps statue after two-year row", "remove a general's statue from the main park", "Historians had tied him to the burning of three villages",
               "You can read history in a book; you don't have to bow to it at lunchtime", "Next they will come for the street names",
               "The statue goes to the city museum, where a panel will tell the whole story.", "a history teacher", "heritage"),
    TownMatter("approves night mayor for clubs and bars", "appoint a night mayor for clubs and bars", "Noise complaints and club closures had both reached a record",
               "The city at night is an economy and deserves an address", "I need sleep, not another official",
               "The post is part-time and comes with a mediator for quarrels over noise.", "the owner of a jazz club", "nightlife"),
    TownMatter("votes for tram line to hospital", "build a tram line to the university hospital", "Half of the hospital's staff live within a kilometre of the route",
               "We argued for eleven years; the building will take three", "They will dig up the same street for the third time",
               "The line has nine stops, and work starts with the bridge over the ring road.", "a nurse at the hospital", "transport"),
    TownMatter("cuts library hours to save money", "cut opening hours at all branch libraries", "The city must save 2% of its budget",
               "It's this or the youth clubs, and I could not choose the youth clubs", "They are turning off the light in the room where I did my homework",
               "Branches will open four days a week, and the central library stays open on Sundays.", "a student of seventeen", "budget"),
    TownMatter("to let citizens decide on part of its budget", "let residents decide how to spend 5% of the budget", "A trial in two districts had drawn 11,000 ideas",
               "People who spend their own money read the invoice", "It's a beauty contest for playgrounds",
               "Anyone older than 14 may propose and vote; projects must be finished within two years.", "a pupil who proposed a skate park", "democracy"),
    TownMatter("to ban cruise ships of more than 2,000 passengers", "turn away cruise ships with more than 2,000 passengers", "On peak days visitors outnumber residents",
               "We are a town, not a gangway", "My whole season comes down that gangway",
               "Ships already booked may still call; the limit starts with the season after next.", "a souvenir seller at the harbour", "tourism"),
    TownMatter("doubles parking fees for heavy cars", "double parking fees for cars heavier than two tonnes", "The average car in the centre is a third heavier than twenty years ago",
               "If you take up more street, you pay for more street", "I have four children and one car, what am I to do?",
               "Disabled drivers and tradespeople are exempt.", "a father of four", "traffic"),
    TownMatter("turns empty department store into school", "turn an empty department store into a secondary school", "Pupils have been taught in containers for three years",
               "The escalators stay; they are the best physics lesson in town", "It was built to sell curtains and it has no yard",
               "The ground floor will house a market hall and the roof a playground.", "a head teacher", "education"),
)  # fmt: skip
