# ruff: noqa: E501 (prose reads better unbroken)
"""The world desk on people on the move, on relief, on referendums and on protests."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.world_cast import among, head, minister, neighbour, pair
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class Passage:
    """Something that happened to migrants, or was decided about them."""

    head: str
    lead: str
    detail: str
    who: str
    voice: str
    official: str
    charity: str
    next: str
    sea: bool = False


PASSAGES: tuple[Passage, ...] = (
    Passage("coastguard rescues {n} migrants from sinking boat", "The coastguard of {a.name} took {n} migrants off a sinking wooden boat {on}, forty miles short of the coast", "The boat, built for eighty, had been at sea for {days} days with a lorry engine and a compass from a car", "who had left with a brother and arrived alone", "We threw the bags first, then the food, then we looked at each other", "Nobody under my command asks for papers in the water", "The sea is now the only open border", "The group is to be housed in a former naval school", True),
    Passage("camp on the border holds {n} migrants in the cold", "Some {n} migrants are stuck in a camp on the frontier between {a.name} and {b.name}, three weeks after the gate was shut", "There are nine taps and one doctor, who comes when her own clinic is closed", "a tailor who mends the tents of the whole row", "I came to work and I am good at queuing now", "We will open the gate when the other side counts people properly", "The tents were lent to us for a music festival", "Talks about moving families with small children begin this week"),
    Passage("work visas for {many} migrants from {b.name}", "{a.name} will offer {many} work visas a year to migrants from {b.name}, in farming, nursing and building", "Applicants need a job offer, a language test and, for the first year, a sponsor", "a nurse who has waited for {migrant.his} certificates since the autumn", "I have practised the word for bandage in front of the mirror", "We can have people with contracts or people without; none is not on offer", "A visa tied to one employer is a visa tied to his moods", "The first consulates take applications next month"),
    Passage("asylum seekers wait {days} months for a decision", "The backlog of asylum claims in {a.name} has passed {many}, and the average wait is {days} months", "Case workers handle four interviews a day, and a third of them leave within the year", "an engineer who has been washing dishes since {migrant.his} interview", "They asked me what colour my school was, and then they asked me again", "We are hiring, but judgement cannot be hired by the dozen", "People grow old in a waiting room with plastic flowers", "A second office is to open within the year"),
    Passage("deal with {b.name} on return of migrants under fire", "An agreement under which {a.name} sends rejected migrants back by way of {b.name} came under attack {on}", "In the first {days} weeks, {many} people were flown out, and about half of them set off again", "who was returned twice and spoke by telephone", "They gave me a sandwich, a form and my shoelaces", "A no that has no consequence is not a no", "You cannot pay a neighbour to forget his own laws", "A court is to hear a first complaint next week"),
    Passage("shrinking village takes in {n} migrants", "A shrinking village in {region} voted {on} to take in {n} migrants who arrived by bus from the coast", "Four in ten houses there stand empty, and the school was to close in the summer", "who runs the grocery and needs the customers", "We have more keys than people", "They asked for nothing but a bus that also runs on Saturdays", "It works because nobody called it a programme", "Language lessons are to be held in the priest's garage"),
    Passage("smugglers jailed after migrants found in lorry", "Police in {a.name} found {n} migrants in a refrigerated lorry {on}, all alive, and arrested a ring of smugglers within hours", "A motorist had seen a finger through a vent and followed the lorry for {days} kilometres", "who was one of those inside", "We knocked in time, all together, so that it would not sound like the engine", "The price is four thousand a head, and the return on it beats any drug", "Close one route and they paint the lorry", "The driver is to appear in court"),
    Passage("{many} return home as refugees leave camps", "Convoys with {many} refugees crossed from {b.name} into {a.name} {on}, the largest return since the fighting ended", "Each family receives two months of flour, a stove and a leaflet on mines", "who had kept {migrant.his} door key on a string for {days} years", "The lock is new, but the door remembers me", "They are voters, builders and children, and we need all three", "Going home is not a day, it is a year", "Two more convoys are planned"),
    Passage("children who came alone to be moved to families", "{a.name} will move {n} migrant children who arrived without parents out of hotels and into families", "The youngest, aged seven, crossed {b.name} with a cousin of eleven", "who has taken in two brothers", "They put the bread in their pockets, and I pretend not to see", "Hotels have corridors. Children need kitchens", "A social worker for forty children is a telephone number", "Training for the first families begins within days"),
    Passage("fence on border with {b.name} divides farmers", "Work on a fence along {days} kilometres of the border between {a.name} and {b.name} began {on}, to keep out migrants who have crossed by way of the fields", "About {many} crossings were counted there last year, most of them by night", "who farms on both sides", "They have fenced my cows out of their own shade", "A border that is not guarded is a suggestion", "People will walk around it, and the walk will be longer and colder", "The last section is due in the autumn"),
    Passage("ship with {n} migrants refused port", "A rescue ship with {n} migrants aboard was refused entry to {city.name} {on}, for the {days:ord} day in a row", "The captain reports cases of scabies, two pregnancies and one guitar", "who spoke by radio from the deck", "We can see a church, a crane and people eating ice cream", "The nearest safe port is not always ours", "It is a ship, not a theory", "{b.name} has offered to take some of those aboard", True),
    Passage("tax break to lure emigrants home", "{a.name}, which has lost {many} young people to emigration in a decade, will tax those who return at half the rate for five years", "Two out of three settled in {b.name}, where wages are higher and the bread, they say, is worse", "who came back with a bakery oven and an accent", "I left with a suitcase and returned with a lease", "We educate them, and others get the use of them", "It's unfair on those who stayed and paid", "The law is to apply from the new tax year"),
    Passage("migrants may get a vote in town halls", "Migrants who have lived in {city.name} for {days} years would be allowed to vote in town elections under a plan set out {on}", "The change would add {many} names to the rolls", "who has paid local taxes since {migrant.he} opened a laundry", "I choose the powder, the hours and the price, but not the mayor", "Who sweeps a pavement should have a say about the broom", "A right with a waiting list is still a right", "The council votes before the summer recess"),
    Passage("language classes for migrants full, teachers wanted", "Language courses for migrants in {a.name} are full for the next {days} months, and {many} people are on the waiting list", "A retired postman teaches two groups in the waiting room of a station", "who learns verbs from football commentary", "I can say offside, I cannot say I am ill", "A course is cheaper than an interpreter, and much cheaper than neither", "Half the teachers are volunteers and half of those are over seventy", "The state will train extra teachers from the summer"),
)  # fmt: skip


@dataclass(frozen=True)
class Move:
    a: Country
    b: Country
    p: Passage
    city: City
    region: str
    n: int
    many: int
    days: int
    migrant: Person
    official: Person
    helper: Person
    scholar: Person
    interior: Person
    share: int
    year: int


def _move(scene: Scene) -> Move:
    p = scene.fresh("passage", PASSAGES, uses=3)
    a, b = pair(scene, f"migration {p.head}", sea=p.sea)
    city = scene.pick(a.cities)
    return Move(
        a, b, p, city, scene.pick(a.land.regions), scene.near(110, 480), scene.near(6_000, 59_000), scene.between(5, 19), scene.person(b), scene.person(a, scene.pick(("who heads the border agency's regional office", f"the prefect of {city.name}", "a senior official of the immigration service", "who speaks for the interior ministry", "who directs the state's reception centres"))), scene.person(a, "who runs a refugee charity"),
        scene.person(None), minister(a, "interior"), scene.between(8, 44), scene.near(11_000, 140_000),
    )  # fmt: skip


MIGRATION = Beat(
    "migration",
    _move,
    (
        Stage(
            titles=("{a.name}: {p.head}", "{a.demonym} migration: {p.head}", "Migration: {p.head} in {a.name}", "{p.head:cap}: the migration question in {a.name}"),
            abstracts=("{p.detail}.", "“{p.voice},” says {migrant.name}.", "{interior.last} says {a.name} is “[doing its part|at its limit]”; charities disagree.", "Arrivals in {a.name} have risen by {share}% within a year. “{p.charity},” a charity says."),
            leads=("{p.lead}.", "{p.lead}, [the interior ministry confirmed|officials in {a.capital} said|according to the border agency|local papers reported].", "{p.lead}. [It is one of many such cases this spring|The debate about migration has a new chapter|The matter has been in the making for months|Few in {a.capital} were surprised]."),
            then=(say("{migrant.name}, {p.who}, [spoke quietly|gave an account of it]. “{p.voice}.”", "“{p.voice},” said {migrant.name}, {p.who}.", "Among those concerned is {migrant.name}, {p.who}. “{p.voice},” {migrant.he} said."),
                  say("“{p.official},” said {official.name}, {official.role}.", "{official.name}, {official.role}, [defended the policy|saw no alternative]. “{p.official}.”")),
            loose=(say("{p.detail}."), say("“{p.charity},” said {helper.name}, {helper.role} [in {city.name}|and has done so for a decade].", "{helper.name}, {helper.role}, was [less sure|blunt]. “{p.charity}.”"),
                   say("Last year {a.name} registered {year} arrivals, {share}% more than the year before.", "Figures from the ministry show {year} arrivals last year, a rise of {share}%. [Two thirds were men under thirty|Every fourth was a child]."), say("{scholar.name}, who [studies migration at a university in {b.capital}|has interviewed several hundred migrants], said numbers followed “[jobs and wars, in that order|the weather, the exchange rate and rumour]”.", "“[People do not move because of a law, and they do not stay because of one|Most stop at the first safe place that has work],” said {scholar.name}, who [teaches demography|advises governments on migration]."),
                   say("{interior.last} told the {a.house} that the state would be “[firm at the gate and decent behind it|judged by how it does both]”. The opposition [asked for figures|wants stricter rules].", "{b.name} [has not commented|says it was not consulted|called for a common policy]."), say("{p.next}.")),
            weight=0.4, covered=0.18,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Need:
    """A shortage, and how relief gets through to it."""

    short: str
    why: str
    scene: str
    mother: str
    route: str
    obstacle: str
    small: str
    places: tuple[str, ...] = ("Tamira", "Oyala", "Zamburi", "Sundara", "Castara", "Belmara", "Torgan", "Pelinang")


NEEDS: tuple[Need, ...] = (
    Need("food aid", "two failed harvests", "Women sift the floor of an empty granary for seed", "I tell the children that the pot needs longer", "barges that leave at dawn with flour and beans", "a customs stamp that only one man may give", "A spoon of peanut paste a day brings a child back within six weeks"),
    Need("cholera vaccine", "a broken sewer in a camp", "Buckets of chlorine stand at the gate, and everybody washes and nobody talks", "She was dancing on Monday", "motorcycles with cool boxes", "three bridges that were carried off in the rains", "One dose costs less than a bar of soap"),
    Need("drinking water", "wells that have turned salt", "The queue at the tanker is marked by jerrycans, so that people can sit in the shade", "We wash the baby and then the floor and then the goat, in the same water", "tankers that drive in pairs", "the price of diesel, which has doubled", "A ceramic filter the size of a flowerpot serves a family for two years"),
    Need("winter tents", "fighting that emptied forty villages", "Snow has brought down every tenth tent, and families sleep back to back", "I have put my daughters in the middle", "mules, since lorries slide", "a pass that both armies claim", "A stove made from an oil drum keeps nine people warm and one awake"),
    Need("school meals", "a budget that ran out in the second month", "In the yard, the kettles are turned upside down so that rain does not rust them", "He says his stomach reads before his eyes do", "local farmers, paid by the sack", "a donor who has changed his mind", "Attendance fell by a third in the week the kitchen closed"),
    Need("malaria nets", "the heaviest rains in a generation", "The nets that are left have been mended with fishing line", "I count mosquitoes the way others count money", "canoes with a nurse in the bow", "a warehouse that burned down before it was insured", "A net lasts three years, if no goat finds it"),
    Need("flour", "a siege that has lasted since the autumn", "Sacks fall under striped parachutes, which the town has learned to sew into shirts", "We run towards the sound of an aeroplane now", "cargo planes that never land", "anti-aircraft guns whose crews have not been paid", "Each drop feeds the town for four days"),
    Need("insulin", "sanctions that were not meant to stop it", "A pharmacist keeps the last eleven vials in a well, on a string", "I eat less so that I need less", "a doctor's suitcase, by bus", "banks that refuse any payment with the country's name on it", "An adult needs a vial every ten days"),
    Need("cash aid", "a currency that lost two thirds of its value", "Prices are written in chalk and corrected with a sleeve", "I was a teacher and I sell my books by weight", "telephone transfers of a few notes a week", "a network that goes down when it rains", "Recipients spend most of it on rent and flour, a survey found"),
    Need("prosthetic limbs", "mines laid in three wars by three armies", "A carpenter carves feet from mango wood in four sizes", "He wants to kick a ball; I said first the stairs", "a workshop in two containers", "import duty at the rate for luxury furniture", "A child outgrows a leg in eight months"),
    Need("seed potatoes", "a blight that crossed the border on the wind", "Fields smell of vinegar and the cellars are bare", "We ate what we should have planted", "army lorries on loan", "quarantine rules written for tulips", "A sack planted now is eleven sacks in the autumn"),
    Need("midwife kits", "clinics that closed when the staff went unpaid", "Births are announced by a drum, so that somebody will bring a lamp", "I walked through labour and arrived with my son in my arms", "porters, two days on foot", "a river without a ferry", "A kit holds a blade, a sheet, gloves, soap and a torch"),
)  # fmt: skip


@dataclass(frozen=True)
class Relief:
    c: Country
    need: Need
    region: str
    donor: Country
    agency: str
    chief: Person
    mother: Person
    driver: Person
    people: int
    tonnes: int
    wanted: str
    got: int
    weeks: int
    official: Person


def _relief(scene: Scene) -> Relief:
    need = scene.fresh("need", NEEDS, uses=2)
    c = among(scene, f"need of {need.short}", need.places)
    agency = f"{scene.pick(('Lantern', 'Harbour', 'Cistern', 'Open Hand', 'Seven Wells', 'Long Table'))} {scene.pick(('Relief', 'International', 'Aid'))}"
    return Relief(
        c, need, scene.pick(c.land.regions), scene.country(), agency, scene.person(None, f"who leads the work of {agency} there"), scene.person(c, she=True), scene.person(c), scene.near(14_000, 860_000), scene.between(18, 190),
        f"${scene.between(9, 95)}m", scene.between(12, 61), scene.between(3, 9), minister(c, "health"),
    )  # fmt: skip


RELIEF = Beat(
    "humanitarian aid",
    _relief,
    (
        Stage(
            titles=("Aid agencies warn of {need.short} shortage in {c.name}", "{people} people in {region} in need of aid, {agency} says", "{need.short:cap} running out in {region}, aid workers warn", "Aid appeal for {c.name} {got}% funded, with {need.short} in short supply", "{c.name}: appeal for {wanted} in aid after {need.why}"),
            abstracts=("{agency} needs {wanted} and has {got}% of it. The cause of the shortage is {need.why}.", "“{need.mother},” says {mother.name}, one of {people} people who depend on relief in {region}.", "Supplies of {need.short} will last {weeks} weeks, {chief.name} of {agency} says.", "{need.scene}. Relief for {region} depends on {need.route}."),
            leads=("{need.scene}. In {region}, in {c.name}, {people} people depend on outside help after {need.why}, and {agency} warned {on} that it could not go on for long.", "Stocks of {need.short} in {region} will last no more than {weeks} weeks, {agency} said {on}, asking for {wanted}.", "After {need.why}, some {people} people in {region} need help to get through the next {weeks} weeks, according to {agency}, which [sent out an appeal|counted its stocks] {on}."),
            then=(say("{need.small}. “[So it's not a question of money alone, it is a question of attention|I can tell you what a week costs, to the cent],” said {chief.name}, {chief.role}. Of {wanted} asked for, {got}% has come in.", "“[We are planning for half rations and hoping to be wrong|Everyone has promised and somebody must now pay],” said {chief.name}, {chief.role}. The appeal for {wanted} is {got}% funded.", "{chief.name}, {chief.role}, put the need at {wanted}, of which {got}% has arrived. {need.small}."),),
            loose=(say("{need.scene}."), say("Help travels by {need.route}. What holds it up is {need.obstacle}.", "The way in is by {need.route}, and the trouble on the way is {need.obstacle}."), say("“{need.mother},” said {mother.name}, [a mother of four|who has walked for two days|a grandmother at the back of the queue|who is twenty-six]."), say("{official.last} [thanked donors|disputed the figures] and said the government was “[doing what a poor state can|not a beggar, but a partner]”.", "{donor.name} has pledged [a first shipment|{tonnes} tonnes|part of the sum], and [two other states are expected to follow|no one else has]."),
                   say("{driver.name}, who [drives for the agency|loads and unloads], has [made the trip nineteen times|been shot at twice]. “[The road is bad, the waiting is worse|They wave when you come and they wave when you go, and you know which is harder],” {driver.he} said.")),
            weight=0.35, covered=0.15,
        ),
        Stage(
            titles=("First aid convoy with {need.short} reaches {region}", "{tonnes} tonnes of aid arrive in {c.name} from {donor.name}", "Aid for {region} gets through after days of delay", "{donor.name} sends {need.short} to {c.name}"),
            abstracts=("A delivery of {tonnes} tonnes has reached {region}. It will last {weeks} weeks.", "{agency} calls it “a start”. The delay was caused by {need.obstacle}.", "{driver.name} drove the first load. “[I did not stop to count the children],” {driver.he} says."),
            leads=("A first delivery of {tonnes} tonnes of relief reached {region} {on}, some of it from {donor.name}.", "Help has come to {region}. Workers of {agency} unloaded {tonnes} tonnes {on}, days after warning that {need.short} would run out.", "{driver.name} slept for eleven hours, and had earned it. {driver.he:cap} had brought the first of {tonnes} tonnes of aid into {region} {on}."),
            then=(say("“[I did not stop to count the children, I would still be counting|Nobody pushed. That is how tired they are],” {driver.name} said.", "“[It buys us {weeks} weeks|One delivery is a sentence, and we need the book],” said {chief.name}, {chief.role}."),),
            loose=(say("The delivery had been held up by {need.obstacle}."), say("{need.small}."), say("{mother.name}, one of {people} people in need, [was given a card with a number|got her share on the second day|had been waiting since {t0:day}]. “{need.mother},” {mother.he} said."), say("The agency asked {t0:on} for {wanted}. It now has {got}% of that."), say("{need.scene}, even now."), say("{official.last} came to watch the unloading and [carried a sack for the cameras|left without speaking].", "The government sent {official.last}, who [thanked {donor.name} in three sentences|was asked why it had taken so long and did not say].", "{donor.name} promised [a second load|twice as much before the month is out].", "Whether a second load will follow depends on {need.obstacle}.")),
            after=(1.5, 4.5), weight=0.3, covered=0.12, chance=0.7,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What a country asks its voters, and what both camps say."""

    short: str
    ask: str
    yes: str
    no: str
    stall: str
    effect: str


QUESTIONS: tuple[Question, ...] = (
    Question("term limits", "whether a head of government may serve more than two terms", "Two terms are enough for anybody with ideas", "Voters can limit a term themselves, it's called an election", "a man in a paper crown hands out stopwatches", "The rule would bind the present leader too"),
    Question("a second chamber", "whether to set up a senate of the regions", "A country with one chamber has one set of nerves", "It means sixty more salaries and the same laws, later", "both camps share a tea urn", "The first senators would be chosen within two years"),
    Question("conscription", "whether to bring back military service for men and women", "Everybody should owe something and be thanked for it", "You do not build a community by ordering it to get up at five", "grandmothers wear their old caps", "The first year to be called up is now in its last year of school"),
    Question("nuclear power", "whether to build four nuclear plants", "The sun sets, and hospitals do not", "We have not yet found a shelf for the first waste", "a lead box is on show, said to be empty", "The first site would be named within the year"),
    Question("joining a customs union", "whether to join the customs union of its neighbours", "We follow their rules already, we might as well help to write them", "A small boat tied to a large one goes where it is towed", "a blind tasting pits cheese from both sides of the border against each other", "Duties would disappear over six years"),
    Question("a basic income", "whether to pay every adult a small sum each month", "Dignity should not need a form", "It is a great deal of money for a great many people who do not need it", "campaigners give away coins, and some are handed back", "The payments would start with the over-sixties"),
    Question("moving the capital", "whether to move the capital inland", "The old city is full, it is sinking, and ministries are heavy", "You can move the desks; you cannot move the reason", "a lorry stands loaded with an empty cabinet", "The parliament would go last, in about twelve years"),
    Question("a wealth tax", "whether to tax fortunes of more than ten million", "Those who own the view can help to pay for the window", "Money has wheels, and the border is near", "a man sells mugs with both outcomes", "The first bills would go to about four thousand households"),
    Question("voting at sixteen", "whether to lower the voting age to sixteen", "They will live longest with what we decide", "They may not buy fireworks, and I would like to keep it that way", "pupils run a shadow count with better snacks", "It would add about one voter in thirty to the rolls"),
    Question("regional autonomy", "whether its regions may raise their own taxes", "The nearer the purse, the better one watches it", "Rich valleys will have swimming pools, and poor ones will have autonomy", "each stall flies a flag and one flies all of them", "Three regions have promised to use the right at once"),
    Question("a new flag", "whether to replace its flag, which was drawn by a foreign surveyor", "I would like to salute something that one of us thought of", "My father's coffin was under that one", "nine-year-olds offer designs of their own, mostly with tigers", "Both flags would fly for a year"),
    Question("Sunday trading", "whether shops may open on Sundays", "Nobody is obliged to buy a lamp on a Sunday", "One day without a till is not much to ask", "bakers, who are exempt, sell to both camps", "Shop workers could refuse and be paid all the same"),
)  # fmt: skip


@dataclass(frozen=True)
class Vote:
    c: Country
    q: Question
    yesman: Person
    noman: Person
    voter: Person
    elder: Person
    observer: Person
    head: Person
    pct: int
    other: int
    turnout: int
    poll: int
    won: str | None
    lost: str | None
    city: City
    stations: int
    margin: int
    age: int


def _vote(scene: Scene) -> Vote:
    q = scene.fresh("question", QUESTIONS, uses=1)
    c = scene.country("referendum")
    pct, won = scene.between(51, 64), scene.chance(0.55)
    return Vote(
        c, q, scene.person(c, "who leads the yes campaign"), scene.person(c, "who leads the no campaign"), scene.person(c), scene.person(c), scene.person(None, "who heads a team of foreign observers"), head(c), pct, 100 - pct, scene.between(41, 78), scene.between(46, 53),
        "" if won else None, None if won else "", scene.pick(c.cities), scene.near(2_100, 31_000), 2 * pct - 100, scene.between(79, 97),
    )  # fmt: skip


REFERENDUM = Beat(
    "referendums",
    _vote,
    (
        Stage(
            titles=("{c.name} prepares for referendum on {q.short}", "{c.demonym} referendum on {q.short} too close to call", "Referendum in {c.name}: the case for and against {q.short}", "{c.name} to vote on {q.short} as camps make last appeals"),
            abstracts=("Voters decide {q.ask}. The last poll has {poll}% in favour.", "“{q.yes},” say some. “{q.no},” say others. {c.name} votes within days.", "On market squares in {city.name}, neighbours argue about {q.short}."),
            leads=("Voters in {c.name} are about to decide {q.ask}. A last poll, published {on}, had {poll}% in favour.", "In {city.name}, {q.stall}. It is the last week before {c.name} votes on {q.short}.", "The question is one sentence long, and {c.name} has been arguing about it for a year: {q.ask}. The final stretch of the referendum campaign began {on}."),
            then=(say("“{q.yes},” said {yesman.name}, {yesman.role}. {noman.name}, {noman.role}, [saw it differently|was not impressed]: “{q.no}.”", "{noman.name}, {noman.role}, [has toured the country in a bread van|speaks in sports halls]. “{q.no},” {noman.he} tells them. “{q.yes},” answers {yesman.name}, {yesman.role}."),),
            loose=(say("In the market of {city.name}, {q.stall}."), say("{voter.name}, [a dental nurse|a bus mechanic|a student of law] in {city.name}, [has not made up {voter.his} mind|intends to decide in the booth]. “[I change my mind with each poster|At home we have agreed not to say the word at supper],” {voter.he} said."), say("{q.effect}."), say("{head.last} supports the change [but has kept out of the campaign|and has staked {head.his} name on it]. “[It is your country, not mine to keep|I'll respect either answer and I will like one better],” {head.he} said."), say("Voting takes place at {stations} polling stations; {observer.name}, {observer.role}, has [so far seen nothing to worry about|asked for more ramps and fewer posters].")),
            weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{won}{c.name} votes yes to {q.short} in referendum", "{lost}{c.name} says no to {q.short} in referendum", "{won}Referendum: {pct}% of {c.demonym} voters back {q.short}", "{lost}Voters in {c.name} reject {q.short} by {pct}% to {other}%", "{won}{q.short:cap} approved: {c.demonym} referendum won with {pct}%", "{lost}{head.last} loses {c.demonym} referendum on {q.short}"),
            abstracts=("{won}With all votes counted, {pct}% are in favour. Turnout was {turnout}%.", "{lost}The no camp wins {pct}% of the vote, on a turnout of {turnout}%.", "{won}“{q.yes},” the winners said in the campaign. {q.effect}.", "{lost}“{q.no},” the winning side said, and {pct}% agreed."),
            leads=("{won}{c.name} voted in favour of {q.short} {on}, by {pct}% to {other}%.", "{lost}{c.name} voted against {q.short} {on}, by {pct}% to {other}%, [a heavier defeat than polls had suggested|in line with the mood of the last week].", "{won}The yes camp won the {c.demonym} referendum on {q.short} {on} with {pct}% of the vote. Turnout was {turnout}%.", "{lost}Asked {q.ask}, {pct}% of {c.demonym} voters answered no {on}."),
            then=(say("{won}{yesman.name}, {yesman.role}, [climbed on a chair in {city.name}|needed a moment]. “[We argued for a year and nobody threw anything; I am proud of that too|It was won in kitchens].”", "{lost}{noman.name}, {noman.role}, [climbed on a chair in {city.name}|kept it short]. “[People read the small print|A no is also an answer, and a clear one].”", "{won}“[I lost, and I know where the voters live: next door|We will watch how it's done],” said {noman.name}, {noman.role}.", "{lost}“[Next time we'll ask a better question|We were right too early],” said {yesman.name}, {yesman.role}."),
                  say("Turnout was {turnout}%. The cities leaned one way and [the villages the other|the farms the other], with {city.name} split almost evenly.", "With a turnout of {turnout}%, the margin was {margin} points. {observer.name}, {observer.role}, called the vote “[orderly and well lit|better run than some that I will not name]”.")),
            loose=(say("{won}{q.effect}.", "{lost}The law stays as it is, and [nobody expects another attempt soon|a softer version may come back]."), say("{elder.name}, who is {age}, [had walked to the polling station|was the first in the queue in {city.name}]. “[I have voted in everything since I was allowed|I brought my own pencil],” {elder.he} said.", "At a school in {city.name}, {voter.name} [brought cake for the counters|had taken the day off to help count]. “[You see the country go through your fingers|I got to nine hundred and lost my place],” {voter.he} said."),
                   say("{won}{head.last}, who had backed the change, spoke of “[a grown-up decision|a result to work with]”.", "{lost}{head.last}, who had backed the change, [will stay in office, aides said|left by a side door]. “[I asked and I was told|That was plain enough],” {head.he} said."), say("The last poll before the vote had {poll}% in favour.")),
            after=(2, 5), weight=0.65, covered=0.5,
        ),
    ),
    share=0.6,
)  # fmt: skip


@dataclass(frozen=True)
class Anger:
    """What brings people into the streets abroad."""

    short: str
    trigger: str
    sign: str
    chant: str
    who: str
    say: str
    give: str
    colour: str


ANGERS: tuple[Anger, ...] = (
    Anger("bread prices", "the price of a loaf rose by a third overnight", "a flat loaf nailed to a broomstick", "Flour, not speeches", "a baker who marches in his apron", "I raised the price in the morning and marched against it in the evening", "a subsidy for flour until the harvest", "White handprints cover the door of the finance ministry"),
    Anger("a pension law", "the age of retirement was put up by two years", "a walking frame hung with bells", "Not on our knees", "a roofer of 61", "Let the minister carry tiles for a week and then do the sum", "an exception for heavy work", "Older marchers brought folding chairs and did not hurry"),
    Anger("fuel duty", "a duty on diesel was doubled by decree", "a tractor with a coffin on the fork", "We drive because you closed the line", "a district nurse with ninety kilometres to cover", "My patients do not live on a bus route, and neither does anybody's mother", "a rebate for rural drivers", "Roundabouts are held by people with soup and a generator"),
    Anger("a rigged count", "a regional election was decided by ballots found in a lift shaft", "a ballot box with a mousetrap inside", "Count again", "a mathematics teacher who added up the published figures", "I set this as homework, and eleven-year-olds found the mistake", "a recount in forty districts", "Every evening at eight, people bang pots on the balconies"),
    Anger("power cuts", "power was cut to six hours a day", "candles in beer bottles", "Light or leave", "a seamstress whose machines stand still", "I sew in the hours when my children sleep, because that is when there is current", "eleven hours of power and a published timetable", "Students study under the lamps of the presidential avenue, which never go out"),
    Anger("a port sale", "the main port was sold to a foreign fund", "an anchor carried by twelve dockers", "You cannot sell a tide", "a crane driver", "My grandfather dug it with a shovel and they sold it with a pen", "publication of the contract", "Ships' horns join in at noon, for as long as it takes to empty a glass"),
    Anger("police violence", "a nineteen-year-old student died in a police van", "nineteen white chairs", "Say his name", "the student's cousin", "He went out for batteries", "an independent inquiry", "For nineteen minutes a day, traffic stops by itself"),
    Anger("rents", "a court allowed landlords to raise rents without a limit", "a door on wheels", "We live here too", "a cook who moves for the fourth time in five years", "I have unpacked so often that I label the boxes for good", "a freeze for one year", "Tents stand between the statues on the main square, with numbered doors"),
    Anger("a mine licence", "an open-cast mine was licensed beside a lake that feeds three cities", "bottles of cloudy water", "Water is the gold", "a farmer who had never been on a march", "I read the permit, and on page ninety it says that we do not exist", "a halt until a new report", "Boats moored in a chain spell out one word that can be read from the air"),
    Anger("internet shutdown", "the mobile network was switched off for a week of examinations", "a tin-can telephone ten metres long", "Give us the line", "a courier", "Without the map I'm a man on a moped with somebody's lunch", "a promise to block single sites only", "Messages are passed on paper along the tram lines, and they arrive"),
    Anger("a school merger", "four hundred village schools were to be closed", "school desks set out across a motorway", "Two hours is not a bus ride", "a parent of three", "They leave in the dark and come home in the dark, and they are seven", "a review of each school by name", "Lessons were held on the steps of the ministry, with spelling"),
    Anger("a judges' law", "the government took over the appointment of judges", "wigs on sticks", "Free courts", "a retired judge who walks with a stick", "I have sent people down for less", "hearings before the law takes effect", "Lawyers stood in their gowns in the rain, silent, in rows of twelve"),
)  # fmt: skip


@dataclass(frozen=True)
class March:
    c: Country
    m: Anger
    city: City
    crowd: int
    held: int
    hurt: int
    marcher: Person
    leader: Person
    interior: Person
    head: Person
    scholar: Person
    crowd_later: int
    towns: int
    yields: bool
    neighbour: Country


def _march(scene: Scene) -> March:
    m = scene.fresh("anger", ANGERS, uses=2)
    c = scene.country(f"march {m.short}")
    crowd = scene.near(6_000, 90_000)
    return March(
        c, m, scene.pick(c.cities[:3]), crowd, scene.between(17, 240), scene.between(4, 60), scene.person(c), scene.person(c, "one of the organisers"), minister(c, "interior"), head(c), scene.person(None), int(crowd * 1.6 // 1000 * 1000), scene.between(6, 23), scene.chance(0.5), neighbour(scene, c),
    )  # fmt: skip


PROTEST = Beat(
    "protests",
    _march,
    (
        Stage(
            titles=("Protests in {c.name} over {m.short}: {crowd} march in {city.name}", "Protesters fill {city.name} over {m.short}", "“{m.chant}”: {c.name} protests over {m.short}", "{held} arrested as protest over {m.short} grips {city.name}", "{c.demonym} protesters carry {m.sign} through {city.name}"),
            abstracts=("Some {crowd} people march after {m.trigger}. Police report {held} arrests.", "“{m.say},” says {marcher.name}, {m.who}.", "The protest in {city.name} was mostly peaceful. {m.colour}."),
            leads=("They came with {m.sign}. About {crowd} people marched through {city.name} in {c.name} {on}, after {m.trigger}.", "Anger about {m.short} brought some {crowd} people into the streets of {city.name} {on}. It had built up since {m.trigger}.", "“{m.chant}” was the cry in {city.name} {on}, when about {crowd} people protested because {m.trigger}."),
            then=(say("“{m.say},” said {marcher.name}, {m.who}.", "{marcher.name}, {m.who}, had [come by bus|closed early]. “{m.say},” {marcher.he} said."), say("Police [used water cannon at one bridge|kept their distance for most of the day] and arrested {held} people; {hurt:count person/people} were hurt. {interior.last} called the march “[a right, and a nuisance|the work of a loud few]”.", "{interior.last} said the right to march did not include “[the right to a bridge|stones]”. Police made {held} arrests. Medics treated {hurt:count person/people}, some of them officers.")),
            loose=(say("{m.colour}."), say("At the head of the march went {m.sign}. “{m.chant},” people called from the windows.", "“{m.chant},” read a banner[ that took nine people to carry| the length of a tram]."), say("{leader.last}, [a lawyer|who had never organised anything larger than a wedding], asked for {m.give}. “[We are not asking for the moon|We will come back every week, and bring an aunt],” {leader.he} said."), say("{head.last} [has not commented|said from a trip to {neighbour.name} that {head.he} had “heard the noise”]. {c.opposition.name:cap} [backed the protesters|called for calm].", "{scholar.name}, who studies protest movements, [was struck by who had come|had expected fewer]. “[When the ones who never march are marching, look out|It is about {m.short}, and it's about ten years of other things],” {scholar.he} said.")),
            weight=0.5, covered=0.3,
        ),
        Stage(
            titles=("{c.demonym} protests over {m.short} spread to {towns} towns", "Second night of protests in {c.name} draws {crowd_later}", "General strike called in {c.name} as protests over {m.short} grow", "Protest camp grows in {city.name}: “{m.chant}”"),
            abstracts=("Up to {crowd_later} people were on the streets in {towns} towns. Organisers want {m.give}.", "{m.colour}. The government in {c.capital} has not moved.", "“{m.say},” says {marcher.name}, {m.who}. The protests are spreading."),
            leads=("Protests over {m.short} spread to {towns} {c.demonym} towns {on}, with {crowd_later} people on the streets by the organisers' count.", "{m.colour}. The protests over {m.short} that began in {city.name} have reached {towns} towns.", "What started as one march has become a habit. {on:cap}, {crowd_later} people in {towns} towns of {c.name} protested over {m.short}."),
            then=(say("{leader.last} [read out a list with one demand|addressed the crowd from a lorry]: {m.give}. “[We can do this all spring|If they want us to go home, they know the price].”", "“[Each arrest brings a cousin|On the first day I knew everybody, and now I know nobody],” said {leader.last}. The movement wants {m.give}."),),
            loose=(say("{marcher.name}, {m.who}, was there [again|for the third time]. “{m.say}.”"), say("{interior.last} [spoke of outside influence|promised a measured response]; {held} people remain in custody."), say("The first large march took place {t0:on}, after {m.trigger}."), say("Unions called for a one-day strike[, and the railways may join|]; shops in {city.name} [closed early|put up shutters, some with slogans of support]."), say("“{m.chant},” somebody has [painted on a water tower|written on the river wall in letters two metres high]."), say("Within {c.party.name}, some ask for a gesture. “[We are losing the patient ones|I get it at my own kitchen table],” said one member of the {c.house}.")),
            after=(1, 3), weight=0.45, covered=0.2,
        ),
        Stage(
            titles=("{c.demonym} government gives way to protests over {m.short}", "After protests, {head.last} offers {m.give}", "Protesters in {city.name} claim victory over {m.short}"),
            abstracts=("{head.last} promises {m.give}. Organisers will decide whether to go home.", "“{m.chant},” they had called. Now there is {m.give}."),
            leads=("After days of protest over {m.short}, the {c.demonym} government gave ground {on} and offered {m.give}.", "{head.last} went on television {on} and offered {m.give}. In {city.name}, people listened on car radios and then sounded the horns."),
            then=(say("“[I have heard you, and I would have preferred to hear it at a lower volume|A government that can't change its mind should not have one],” {head.last} said.",),),
            loose=(say("{leader.last} called it “[half a loaf, and we will take the half|more than they said was possible]”. The camp [will stay until it is in writing|began to fold its tents]."), say("{marcher.name}, {m.who}, [was sweeping up|had lost {marcher.his} voice]. “{m.say},” {marcher.he} said."), say("The protests began {t0:on} when {crowd} people marched in {city.name}."), say("The release of {held} people who are still in custody is under discussion."), say("{c.opposition.name:cap} asked why it had taken [so long|{towns} towns]. {scholar.name}, who studies such movements, said [most end like this, without an ending|the hard part was to stop].")),
            after=(1.5, 4), weight=0.5, covered=0.3, when=lambda f: f.yields,
        ),
    ),
    share=0.9,
)  # fmt: skip
