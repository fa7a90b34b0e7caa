# ruff: noqa: E501 (prose reads better unbroken)
"""How the technology desk covers break-ins and the keeping of secrets: cyber attacks, and what apps know."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money, rounded


@dataclass(frozen=True)
class Target:
    """What a break-in does to a trade: the `effect` on people, how work went on, and which `data` were taken.

    `kind` is a company's noun, or a public body's name with a place for the city.
    """

    kind: str
    effect: str
    works: str
    data: str
    people: str
    public: bool = False


_TARGETS: tuple[Target, ...] = (
    Target("supermarket chain", "tills in hundreds of stores went dark and shelves were half empty by evening", "Cashiers added up on paper, and some stores let regulars pay later.", "loyalty card records and home addresses", "shoppers"),
    Target("fashion retailer", "its online shop closed and parcels stopped leaving the warehouse", "Shop assistants phoned other branches to ask for sizes.", "names, sizes and delivery addresses", "customers"),
    Target("carmaker", "robots on the assembly line froze with the doors half fitted", "Workers were sent home with pay, and suppliers' lorries were turned back at the gate.", "design files and salary slips", "employees"),
    Target("drugmaker", "two laboratories lost their measurements and a vaccine line stood still", "Technicians read thermometers every hour and wrote the numbers on the fridge doors.", "the records of patients in trials", "trial patients"),
    Target("airline", "check-in failed and flights left hours late, some of them without luggage", "Boarding cards were written by hand, with seats marked on a paper plan.", "passport numbers and travel plans", "passengers"),
    Target("software company", "payroll software used by thousands of firms stopped working days before wages were due", "Accountants dug out last month's figures and paid the same again.", "wage records and bank details", "employees of its customers"),
    Target("energy supplier", "customers could not read their meters, top up or reach anybody by telephone", "Nobody was cut off; the company said it would send no bills for the time being.", "meter readings, which show when a home is empty", "households"),
    Target("food group", "dairies poured away milk because nobody could see where it was meant to go", "Drivers were sent on the previous week's rounds.", "recipes and the contracts of farmers", "farmers"),
    Target("telecoms operator", "calls dropped across whole towns and its shops could sell nothing", "Emergency numbers were carried over rival networks.", "who called whom, and for how long", "subscribers"),
    Target("parcel carrier", "sorting machines stopped and parcels piled up to the ceiling", "Depots sorted by eye, with postcodes called out across the hall.", "delivery addresses and signatures", "recipients"),
    Target("shipping line", "containers could not be found in ports on three continents", "Port workers walked the stacks with clipboards.", "cargo lists and customs papers", "importers"),
    Target("hotel group", "guests were locked out of their rooms because key cards no longer worked", "Porters opened doors with master keys that had hung in an office for years.", "passport scans and room bills", "guests"),
    Target("brewer", "brewing went on but orders, deliveries and invoices did not", "Pubs ordered by text message to a manager's own phone.", "the debts of publicans", "publicans"),
    Target("furniture maker", "kitchens arrived without doors and doors without kitchens", "The night shift matched orders from printed photographs.", "floor plans of customers' homes", "customers"),
    Target("{} university hospital", "operations were put off and ambulances sent elsewhere", "Nurses went back to paper charts; porters ran with blood results.", "patients' diagnoses and X-rays", "patients", True),
    Target("the city council of {}", "offices could issue neither passports nor parking permits", "Weddings went ahead with a register last used in the 1990s.", "benefit claims and tax files", "residents", True),
    Target("{} airport", "departure boards went blank and baggage belts stopped", "Staff wrote gates on whiteboards and shouted.", "security passes of employees", "travellers", True),
    Target("the university of {}", "examinations were cancelled and the libraries could not lend", "Lectures were held without slides, which some students praised.", "marks, medical notes and unpublished research", "students", True),
    Target("the public library service of {}", "catalogues vanished and nobody could say which books were out", "Librarians lent on trust, with a shoebox of cards.", "what people had borrowed over a decade", "readers", True),
    Target("the waterworks of {}", "engineers switched pumps by hand after screens showed a message in red", "The water stayed clean, and was tested every hour to be sure.", "plans of pipes and the addresses of customers", "households", True),
    Target("the ambulance service of {}", "crews lost their maps and were guided by radio", "Dispatchers put pins in a wall map found behind a cupboard.", "emergency calls, word for word", "callers", True),
    Target("the land registry of {}", "house sales stopped on the day when most completions are due", "Solicitors queued with paper deeds; some families slept in the removal van.", "mortgages and the names of secret owners", "house buyers", True),
    Target("the tram company of {}", "ticket machines stopped and trams ran free of charge", "Drivers kept time by their own watches.", "the daily journeys of season ticket holders", "passengers", True),
    Target("the courts of {}", "hearings were called off because judges could not open files", "A burglary trial went ahead with the lawyers' own notes.", "sealed files, among them adoptions", "witnesses", True),
)  # fmt: skip


def crowd(count: float) -> int | str:
    """A number of people as papers print it: from a million, '2.4 million'."""
    return f"{count / 1e6:.1f}".removesuffix(".0") + " million" if count >= 1e6 else int(count)


_GANGS = ("Black Sturgeon", "Nightsoil", "Velvet Crow", "Tin Locust", "Salt Wolf", "Moth Council", "Grey Heron", "Cold Kettle", "Ninth Bell", "Paper Viper", "Iron Thrush", "Dry Anchor")  # fmt: skip

_WAYS = (
    (
        "a password that a contractor had used for nine years",
        "change passwords that contractors hold",
        "contractor's password",
    ),
    ("an email that looked like an invoice for printer ink", "train the people who open invoices", "fake invoice"),
    ("a remote access system that had missed four updates", "close remote access until it is patched", "missed update"),
    (
        "a telephone call to the help desk by somebody who claimed to be on holiday",
        "make the help desk ring back",
        "telephone call to help desk",
    ),
    (
        "the account of an employee who had died two years before",
        "delete accounts within a day of departure",
        "dead employee's account",
    ),
    ("a backup server that nobody remembered", "make a list of every machine it owns", "forgotten backup server"),
    (
        "a memory stick handed out at a trade fair",
        "glue up the sockets of its computers",
        "memory stick from trade fair",
    ),
    ("an update of widely used accounting software", "test updates before they are installed", "accounting software"),
    (
        "a camera in a car park, still set to its factory password",
        "put cameras on a network of their own",
        "car park camera",
    ),
    ("a former administrator's laptop, sold second-hand", "wipe machines before it sells them", "second-hand laptop"),
    ("a fake job advertisement sent to engineers", "separate private mail from work", "fake job advert"),
    (
        "a flaw in file transfer software that was made public a week earlier",
        "patch within 48 hours",
        "file transfer software",
    ),
)


@dataclass(frozen=True)
class Breach:
    t: Target
    name: str
    what: str
    c: Country
    city: City
    chief: Person
    watchdog: Person
    expert: Person
    user: Person
    police: Person
    worker: Person
    gang: str
    way: str
    advice: str
    door: str
    records: int | str
    final: int | str
    ransom: Money
    cost: Money
    days: int
    computers: int
    pays: str | None
    refuses: str | None
    arrested: str | None
    fined: str | None
    fine: Money
    suspects: int
    age: int
    other: Country


def _breach(scene: Scene) -> Breach:
    t = scene.fresh("breach target", _TARGETS, uses=2)
    if t.public:
        c = scene.country()
        city = scene.fresh("breach city", c.cities)
        name, what = t.kind.format(city.name), t.kind.format(city.name)
        chief = scene.person(c, f"who runs {name}")
    else:
        co = scene.fresh("breach company", [one for one in scene.world.companies if one.noun == t.kind])
        c, city, name, what, chief = co.country, co.city, co.name, f"the {co.country.demonym} {co.noun}", co.chief
    way, advice, door = scene.deal("breach way", _WAYS)
    records = scene.near(40_000, 2_400_000)
    pays, arrested = scene.chance(0.3), scene.chance(0.5)
    return Breach(
        t, name, what, c, city, chief, scene.person(c, "the data protection commissioner"), scene.person(None, scene.pick(("a security researcher", "who hunts such gangs for a living", "a former hacker who advises firms", "who teaches computer security"))),
        scene.person(c), scene.person(c, "who leads the cybercrime unit"), scene.person(c), scene.deal("gang", _GANGS), way, advice, door, crowd(records), crowd(rounded(records * scene.rng.uniform(1.4, 3.2))),
        scene.money(4e5, 9e6, c.currency), scene.money(2e6, 6e7, c.currency), scene.between(4, 9), scene.near(300, 9_000), "" if pays else None, None if pays else "",
        "" if arrested else None, None if arrested else "", scene.money(3e5, 8e6, c.currency), scene.between(2, 5), scene.between(17, 29), scene.pick([one for one in scene.world.countries if one is not c]),
    )  # fmt: skip


BREACH = Beat(
    "cyber attacks",
    _breach,
    (
        Stage(
            titles=("Cyber attack hits {name}", "Hackers [paralyse|cripple|shut down] {name}", "{name:cap} goes offline after [cyber attack|ransomware attack]", "Ransomware at {name}: {computers} computers locked",
                    "{name:cap} fights to restore computers after hack"),
            abstracts=("At {name}, {t.effect}. Police are investigating.", "{t.works} It is not known [when computers will be back|who is behind it].", "Some {computers} computers are locked. A gang called {gang} has left its name."),
            leads=("A cyber attack on {name} was [discovered|noticed] early {on}, and within hours {t.effect}.", "{name:cap} switched off {computers} computers {on} after hackers broke into its network. The result: {t.effect}.",
                   "It began with a few frozen screens. By midday {on}, at {name}, {t.effect}; the cause was a cyber attack.", "Criminals have locked the computers of {name} and want money, [two people familiar with the matter|officials] said {on}."),
            then=(say("{t.works}"),
                  say("“[We pulled every plug we could find|We don't know yet how deep they are|I have been told not to use the word disaster, so I won't],” said {chief.last}.", "{chief.last} [apologised|asked for patience]. “[Our people are working in shifts and sleeping on the floor|We will be back when we are clean, and not before|The telephones work, for which I'm grateful],” {chief.he} said.",
                      "“[There is no plan for a Monday without computers; there will be now|I would rather be slow than be hit twice],” {chief.last} said at a hastily called press conference.")),
            loose=(say("A note on the screens [was signed by a group called {gang}|bore the name of {gang}, a gang known since last year]; it gave [three days and an address|{days} days].", "{gang}, a gang [that rents its software to others|known for its politeness], claimed the attack on its website."),
                   say("{user.name}, [who had waited since the morning|one of thousands affected], [shrugged|was losing patience]. “[They tell me to check the website, and the website is what is broken|The lady was kind and couldn't do anything|I took a picture of the queue for my boss],” {user.he} said.",
                       "“[I've printed everything I own since this morning|You notice how much of your life is a login],” said {user.name}, one of the {t.people} affected."),
                   say("{police.last} said [specialists were on the site|evidence was being secured]. “[Don't delete anything, don't reply to anything|We ask for quiet, the other side reads the papers too],” {police.he} said."),
                   say("{expert.last} thought that [the gang had been inside for weeks|the timing was no accident]. “[They like weekends and bank holidays|The locking is the last step, not the first|By the time the screen turns red, the copying is done],” {expert.he} said."),
                   say("Whether data were taken is [not known|being examined]. The network holds {t.data}."),
                   say("{worker.name}, who works there, [heard of it on the bus|was sent home]. “[We are using carbon paper; I had to be shown how|Somebody found a fax machine, and there was applause|My first quiet day in years, and I hate it],” {worker.he} said.")),
            weight=0.5, covered=0.4,
        ),
        Stage(
            titles=("{gang} hackers demand {ransom} from {name}", "Data of {records} {t.people} stolen in hack of {name}", "Hackers publish [sample|first files] from {name}", "{refuses}{name:cap} refuses to pay {ransom} to hackers", "{pays}{name:cap} negotiates with ransomware gang"),
            abstracts=("Files that {gang} put online include {t.data}. Some {records} people are affected so far.", "{refuses}The gang wants {ransom}. {chief.name} says it will get nothing.", "{pays}The gang wants {ransom}. Insurers are said to be talking."),
            leads=("The hackers who broke into {name} copied {t.data}, [it confirmed|it admitted] {on}. Some {records} people are affected.", "{gang}, the group behind the attack on {name}, demanded {ransom} {on} and published a sample of {t.data} to show that it was serious.",
                   "Among the files that hackers took from {name} are {t.data}, according to a sample posted {on} by the gang {gang}."),
            then=(say("{refuses}“[We don't pay, because we'd be paying for the next one|You can't buy back a secret; you can only rent it],” said {chief.last}.", "{refuses}{name:cap} will not pay, said {chief.last}. “[They are thieves with a customer service desk|I have {days} reasons, and all of them are the law],” {chief.he} said.",
                      "{pays}{chief.last} would not say whether money was being discussed. “[I'm responsible for {t.people}, not for principles|Ask me when it's over],” {chief.he} said."),),
            loose=(say("The attack began {t0:on}, when {t.effect}."), say("{t.works}"), say("“[People must be told what was taken, in words they understand|A letter that says 'certain data' isn't a warning],” said {watchdog.last}, who opened an inquiry.", "{watchdog.last} [gave the organisation|set a limit of] 72 hours to [tell everyone concerned|inform {t.people}]."),
                   say("{user.name}, [whose details are in the sample|who found {user.his} own name there], [changed {user.his} passwords|rang the bank]. “[You can change a password; you can't change where you live|It's strange to see your life in a spreadsheet, in column M|They spelled my name right, which is more than the post does],” {user.he} said."),
                   say("{expert.last} [looked through|examined] the sample and found it genuine. “[It's tidy; they have a librarian|They hold back the worst for the second round],” {expert.he} said."),
                   say("{police.last} [advised against paying|warned against giving in]. “[Half of those who pay are hit again within a year|Every transfer hires another programmer],” {police.he} said."),
                   say("Experts advise {t.people} to [watch their accounts|be wary of calls that know too much].", "A telephone line for {t.people} was [swamped|set up]; callers waited up to {days}0 minutes.")),
            after=(1, 3), weight=0.5, covered=0.3,
        ),
        Stage(
            titles=("{name:cap} [back online|restores systems] {days} days after cyber attack", "Hack of {name} began with a {door}", "{door:cap} let hackers into {name}, report says", "{final} records stolen from {name}, more than first thought", "Cyber attack cost {name} {cost}"),
            abstracts=("The hackers came in through {way}. The bill: {cost}.", "Twice the fear: {final} people are affected, not {records}.", "{chief.name} calls the work of the past days “archaeology”."),
            leads=("Most computers at {name} were running again {on}, [after|following] {days} days of [paper and pencil|makeshift work] that cost {cost}.", "The hackers who attacked {name} got in through {way}, a first report said {on}.", "The theft at {name} was larger than first said: {final} people are affected, it [disclosed|said] {on}, and not {records}."),
            then=(say("“[We rebuilt it from bare metal, room by room|I know now where every cable goes|It was a door nobody had looked at, and that's on us],” said {chief.last}.",
                      "{chief.last} [thanked|promised a bonus to] [the night shift|those who had slept in the office|the technicians]. “[They deserve a better network than the one we gave them|One of them asked to keep the camp bed],” {chief.he} said."),
                  say("The bill so far: {cost}[, not counting lost sales|, half of it for consultants|, overtime included].", "It has cost {cost} [so far|to date][, most of it for new computers|].", "Repairs, overtime and advice have cost {cost}.", "[Insurers|Insurance] will bear [part|a third] of the {cost} it cost.", chance=0.75)),
            loose=(say("According to the report, the way in was {way}. It [tells|urges] the organisation to {advice}.", "How did they get in? Through {way}, [the investigators say|the technicians believe].", "The report [calls for one thing above all|puts one thing first]: to {advice}. The way in had been {way}.", "Investigators [followed the trail to|settled on] {way}. They [advise|recommend] the organisation to {advice}."), say("The attack, claimed by {gang}, was noticed {t0:on}; {t.effect}."), say("{refuses}No ransom was paid, it said. The gang had asked for {ransom}.", "{refuses}The {ransom} that {gang} had demanded [was not paid|stayed where it was].", "{refuses}{name:cap} says it [paid nothing|did not pay a penny of the {ransom} demanded].", "{pays}Whether the {ransom} that the gang wanted was paid in the end [remains open|was not disclosed]."),
                   say("{expert.last} was [impressed by the speed|not surprised by the cause]. “[It's never a genius; it's always {way}, or something like it|{days} days is quick; the average is three weeks],” {expert.he} said."),
                   say("{watchdog.last} [expects to be busy for months|wants to know why old files had been kept at all|has sent a list of questions]. “[What isn't stored can't be stolen|Ask whether you needed it in the first place],” {watchdog.he} said."),
                   say("{worker.name}, an employee, [kept a notebook|missed the quiet|was glad of it]. “[The first thing I got was four thousand emails|I had forgotten my password, with all that|We found out how many forms nobody needs|My handwriting has come back, I'm told it had been good|The kettle was the busiest machine in the building],” {worker.he} said.")),
            after=(2, 4), weight=0.38, covered=0.15,
        ),
        Stage(
            titles=("Police arrest {suspects} over hack of {name}", "Suspected {gang} hacker, {age}, held in {other.name}", "{suspects} arrests after cyber attack on {name}"),
            abstracts=("The oldest suspect is {age}. Police seized laptops in {other.name}.", "{police.name} calls it a blow to {gang}. Others doubt it."),
            leads=("Police in {other.name} arrested {suspects} people {on} over the cyber attack on {name}. The [eldest|oldest] is {age}.", "{suspects} suspected members of the {gang} gang, which attacked {name}, were arrested in {other.name} {on}."),
            then=(say("“[They were good at computers and bad at laundry: the money led us to a flat|One of them had used the same nickname since school],” said {police.last}.",),),
            loose=(say("The attack was discovered {t0:on}. {t.works}"), say("Their way in was {way}."), say("{expert.last} [warned against celebrating|gave the gang a month]. “[The brand dies, the people change the sign on the door|They've arrested the waiters, the kitchen is elsewhere],” {expert.he} said."),
                   say("Of the {ransom} demanded, [nothing|a small part] was found."), say("Some {final} people had their data stolen, among them {t.data}."), say("{chief.name}, who runs {name}, said {chief.he} would [like to meet them|sleep better]. “[I have a few questions about our backups|I'd like the {days} days back],” {chief.he} said."),
                   say("Lawyers for two of the suspects [denied the charges|said their clients had merely sold software]. {c.name} will ask for extradition.")),
            after=(2, 5), weight=0.45, covered=0.2, when=lambda f: f.arrested is not None,
        ),
        Stage(
            titles=("{name:cap} faces fine over hack of {final} records", "Watchdog [criticises|rebukes] {name} over stolen data", "Lapses at {name} let hackers in, watchdog finds"),
            abstracts=("{watchdog.name} wants {fine}. Warnings had been ignored.", "The way in, {way}, had been [pointed out|flagged] a year earlier."),
            leads=("{name:cap} should pay {fine} for failing to protect {t.data}, the data protection commissioner said {on}.", "Warnings about security at {name} went unanswered for a year before the attack that was made public {t0:on}, the data protection commissioner found."),
            then=(say("“[The alarm rang and somebody had turned down the volume|A hospital locks its medicine cupboard; data deserve the same],” said {watchdog.last}.", "“[It wasn't bad luck, it was a bad list with nobody's name on it|Nothing here was clever, on either side],” said {watchdog.last}."),),
            loose=(say("{chief.name}, who runs {name}, [accepted the criticism|may contest it]. “[We've learned it the dear way|I would have spent the money on engineers],” {chief.he} said."), say("In all, {final} people are affected.", "The thieves took the data of {final} people."), say("A group of {t.people} has asked for compensation[; its lawyer wants {fine} more|].", "{user.name}, one of the {t.people}, wants an apology. “[A voucher isn't an apology|I got three letters and none of them said sorry],” {user.he} said."),
                   say("{expert.last} expects [more such cases|others to act now]. “[Fines don't patch servers, but they find the budget|Boards read one kind of letter, and it has a figure in it],” {expert.he} said."), say("The attackers of {gang} have not been found.")),
            after=(0, 0), weight=0.35, when=lambda f: f.fined is not None,
        ),
    ),
    share=1.3,
)  # fmt: skip


@dataclass(frozen=True)
class Snoop:
    """What a service did with its users' data: `act` is a verb phrase in the past, `short` a noun phrase for headlines."""

    service: str
    short: str
    act: str
    found: str
    excuse: str
    protest: str
    remedy: str


_SNOOPS: tuple[Snoop, ...] = (
    Snoop("period-tracking app", "selling cycle data", "sold the dates of its users' periods to advertisers", "A student compared the adverts shown to her flatmates and noticed that hers changed with the calendar.", "The data carried no names, only a number that never changes", "They knew I was late before my husband did", "delete the data of users who ask"),
    Snoop("doorbell camera", "sharing doorstep video", "let employees watch recordings from customers' doorsteps", "A former employee had kept a list of favourite doors.", "Our trainers must see a cat to teach a camera what a cat is", "I'm in slippers in half of those", "ask before any human looks"),
    Snoop("school timetable app", "profiling pupils", "kept a record of how long each child took over homework and sold forecasts of their marks", "A father who works with databases asked for his daughter's file and got 900 pages.", "Forecasts help teachers to help", "She's nine, and there is a curve of her", "stop profiling children"),
    Snoop("connected car service", "tracking drivers' journeys", "passed on the speed and braking of drivers to insurers", "Drivers who had never had an accident saw their premiums rise and asked why.", "Careful drivers gain from it", "I braked for a hedgehog, and now I'm a risk", "ask drivers anew, in one sentence"),
    Snoop("supermarket loyalty card", "guessing customers' illnesses", "sorted customers into groups such as “likely diabetic” from what they bought", "The labels appeared on a receipt by mistake.", "A label is not a diagnosis", "I buy the biscuits for the scouts", "drop all labels that touch on health"),
    Snoop("video chat service", "keeping deleted calls", "kept recordings of calls that users had deleted", "It came out when a couple in a divorce case were sent each other's.", "Deletion takes time in large systems", "Four years is a lot of time", "delete within 30 days"),
    Snoop("fitness watch", "revealing where users live", "showed the routes of runners to anyone who asked, with their front doors as the starting point", "Soldiers' morning runs drew the outline of a barracks.", "Sharing is what a community does", "Under my run he'd written: nice gate", "hide the first and last kilometre"),
    Snoop("smart television", "listening in living rooms", "recorded talk in front of the set, even when it was off", "An engineer noticed that his set sent more at night than in the evening.", "Only the word that wakes it was stored, and what came shortly before", "My wife has views on the neighbours, and now a server has them too", "fit a switch that cuts the microphone"),
    Snoop("dating app", "publishing users' distance", "gave users' distance to within a few metres, so that three measurements found their home", "Researchers located a volunteer in a block of flats, and then the floor.", "Users could have switched it off", "I've moved, and I'd rather not say where", "round distances to the kilometre"),
    Snoop("messaging service", "scanning photographs", "scanned private photographs for brands to sell to advertisers", "Pictures of a birthday cake were followed by offers from three bakeries.", "A machine looked, not a person", "It was my mother's last birthday, and they saw a sponge cake", "leave private messages alone"),
    Snoop("parking app", "leaking number plates", "let anyone look up when a car had parked where, by number plate", "A jealous husband turned out to be its most active user.", "The function was meant for lost tickets", "I only went swimming, as it happens, but that isn't the point", "show parking data to the payer alone"),
    Snoop("mental health helpline", "passing on chat messages", "gave the text of distress messages to a firm that trains sales robots", "A volunteer recognised a sentence in a sales demonstration.", "All names had been removed", "You don't need a name to recognise your worst night", "destroy the copies"),
    Snoop("electricity meter", "watching households by the minute", "sold readings taken every ten seconds, from which one can tell when people sleep, cook and go out", "Burglars in one suburb seemed to know the holidays of everybody.", "Fine readings make a stable grid", "They know when I get up at night, and how often", "send readings once a day"),
    Snoop("children's doll", "recording what children tell it", "stored what children said to it in an account that any telephone nearby could open", "A neighbour heard a voice from the flat next door on her own telephone.", "Parents agree to it in the settings, on page six", "She'd told it about a surprise, and it was meant for me", "take the doll off the shelves"),
    Snoop("face-search website", "collecting faces without consent", "copied billions of portraits from the web to let people search by face", "A waitress was called by her full name by a guest she had never seen.", "All pictures were public", "Being seen in a street isn't the same as being filed", "remove all residents who object"),
    Snoop("job portal", "letting bosses see who is looking", "told employers which of their own people were looking for a new job", "{user.name}, an accountant, was offered a rise and sacked in the same week.", "The alert was a test", "I had only wanted to know what I was worth", "hide applicants from their employers"),
    Snoop("weather app", "tracking users around the clock", "sent its users' location every two minutes, rain or shine, to {small} brokers", "A reporter bought a week of her own movements.", "A forecast has to know where you are", "It didn't need two hundred looks a day to tell me it was raining", "ask for the town and no more"),
    Snoop("baby monitor", "leaving cameras open", "left {users} cameras open to anyone with a web address", "Strangers had been singing to a child.", "Customers should have changed the password", "The voice was quite friendly, and that made it worse", "send a new password to every customer"),
)  # fmt: skip

_SERVICES = ("Mirabo", "Taplo", "Nestkin", "Wayfar", "Kindlewood", "Homelight", "Pipsqueak", "Lullabee", "Dashly", "Orbo", "Fennel", "Toolip", "Quippo", "Bramblo", "Savvi", "Loopling", "Hallo Hey", "Periwinkle")  # fmt: skip


@dataclass(frozen=True)
class Probe:
    s: Snoop
    brand: str
    c: Country
    city: City
    watchdog: Person
    speaker: Person
    campaigner: Person
    user: Person
    scholar: Person
    users: int | str
    fine: Money
    small: int
    pct: int
    paid: str | None
    fights: str | None


def _probe(scene: Scene) -> Probe:
    c = scene.country()
    brand = scene.fresh("snoop brand", _SERVICES)
    paid = scene.chance(0.5)
    return Probe(
        scene.fresh("snoop", _SNOOPS), brand, c, scene.pick(c.cities), scene.person(c, "the data protection commissioner"), scene.person(c, f"a spokesperson for {brand}"),
        scene.person(c, scene.pick(("who campaigns for digital rights", "of the consumer association", "a privacy lawyer"))), scene.person(c), scene.person(c, scene.pick(("who teaches information law", "a historian of surveillance", "who studies advertising"))),
        crowd(scene.near(90_000, 8_000_000)), scene.money(8e5, 6e7, c.currency), scene.between(3, 9), scene.between(2, 4), "" if paid else None, None if paid else "",
    )  # fmt: skip


PRIVACY = Beat(
    "online privacy",
    _probe,
    (
        Stage(
            titles=("{s.service:cap} {brand} accused of {s.short}", "Privacy: {c.demonym} watchdog investigates {brand} over {s.short}", "{brand} {s.act}, complaint says", "Privacy complaint against maker of {s.service}"),
            abstracts=("A complaint says that {brand} {s.act}. It has {users} users.", "{s.found} Now the data protection commissioner is looking into it.", "{campaigner.name} filed the complaint. The company rejects it."),
            leads=("The {s.service} {brand} {s.act}, according to a complaint filed in {city.name} {on}.", "The data protection commissioner of {c.name} opened an investigation {on} into {brand}, a {s.service} with {users} users, over claims that it {s.act}.", "A complaint about the {s.service} {brand} reached the data protection commissioner of {c.name} {on}. The company, it says, {s.act}."),
            then=(say("“{s.protest},” said {user.name}, who [has used|used] {brand} [for years|until last week].", "{user.name}, a user [since the beginning|for three years], [has switched it off|is furious]. “{s.protest},” {user.he} said."),
                  say("“{s.excuse},” said {speaker.last}.", "{brand} [rejects the charge|sees nothing wrong]. “{s.excuse},” {speaker.last} said.")),
            loose=(say("{s.found}"), say("“[It's always the settings page that nobody finds|People agreed to a service and got a witness],” said {campaigner.last}.", "{campaigner.last} [calls it|speaks of] a pattern. “[First they collect, then they wonder what for|I've read the terms so that you don't have to, and I'm still angry],” {campaigner.he} said."),
                   say("{watchdog.last} [has asked the company for|wants to see] [its contracts|all logs since last year|the minutes of {small} meetings]. “[We start with the question of what it was for|I don't prejudge; I read],” {watchdog.he} said."),
                   say("Under {c.demonym} law, the fine can be up to {pct}% of [yearly sales|turnover]."), say("{scholar.last} [drew a comparison|was reminded of the telephone]. “[Every new device is first a toy, then a habit and then a witness|The surprise isn't that they do it; it's how cheaply it is sold],” {scholar.he} said."),
                   say("{brand} has about {users} users in {c.name}[ and neighbouring countries|].")),
            weight=0.38, covered=0.3,
        ),
        Stage(
            titles=("{brand} fined {fine} for {s.short}", "Privacy watchdog orders {brand} to {s.remedy}", "{fine} fine for {s.service} that {s.act}"),
            abstracts=("The {s.service} must pay {fine} and {s.remedy}.", "{watchdog.name} says the users of {brand} were never properly asked."),
            leads=("{brand} must pay {fine} because it {s.act}, the {c.demonym} data protection commissioner decided {on}.", "The data protection commissioner fined the {s.service} {brand} {fine} {on} and ordered it to {s.remedy}."),
            then=(say("“[Consent that has to be dug for isn't consent|They had a choice of {small} ways to do it properly|If it's buried on page forty, it wasn't said],” said {watchdog.last}."),),
            loose=(say("The complaint became public {t0:on}. {s.found}"), say("{paid}The company said it would pay. “[We got it wrong and we'll put it right|It's a lot of money and a fair point],” said {speaker.last}.", "{fights}The company will [appeal|go to court]. “{s.excuse},” said {speaker.last}."), say("“{s.protest},” said {user.name}, one of the users who had complained."),
                   say("{campaigner.last} [welcomed|praised] the ruling[ and wants more|]. “[The fine is a week's revenue, and the shame is a year's|Somebody has to be the example],” {campaigner.he} said."),
                   say("{scholar.last} thinks that [other services will follow quietly|the order matters more than the sum]. “[Companies fear a deleted database more than a bill|Watch what they change on a Friday evening],” {scholar.he} said."), say("The company has {small} weeks to {s.remedy}.")),
            after=(3, 6), weight=0.42, covered=0.25,
        ),
        Stage(
            titles=("{fights}{brand} takes {fine} privacy fine to court", "{paid}{brand} loses users after privacy fine", "{paid}What {brand} changed after its {fine} fine"),
            abstracts=("{fights}The {s.service} says that the commissioner misread the law.", "{paid}One user in {small} has left since the affair began."),
            leads=("{fights}{brand} filed an appeal {on} against the {fine} fine it got {t1:on} because it {s.act}.", "{paid}One user in {small} has left {brand} since it became known that the {s.service} {s.act}, market researchers said {on}."),
            then=(say("{fights}“{s.excuse},” [repeated|insisted] {speaker.last}.", "{paid}“[We'd earn trust back faster if we had lost it more slowly|It's quiet in the office],” said {speaker.last}."),),
            loose=(say("{watchdog.last} had ordered the company to {s.remedy}."), say("{s.found}"), say("{campaigner.last} [was unmoved|expects more of the same]. “[They have more lawyers than engineers by now|People do leave, if you tell them where the door is],” {campaigner.he} said."), say("{user.name}, [a former user|who complained first], [has a paper diary now|went back to the old one]. “{s.protest},” {user.he} said [again|then]."), say("The court will hear the case [within a year|next year].")),
            after=(2, 5), weight=0.25, covered=0.05, chance=0.7,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip
