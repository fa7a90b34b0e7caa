# ruff: noqa: E501 (prose reads better unbroken)
"""The court desk with the police: thefts and searches from the first call to the arrest, and fraud."""

from __future__ import annotations

from dataclasses import dataclass, replace

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Crime:
    """A crime under investigation: what was taken or done, how, what was seen, and how it was solved."""

    short: str
    done: str
    way: str
    who: str
    voice: str
    clue: str
    theory: str
    found: str
    suspect: str


CRIMES: tuple[Crime, ...] = (
    Crime("cathedral theft", "stole a silver reliquary from the cathedral of {city}", "They came down a bell rope and left by the choir door", "the sacristan", "They took the saint and left the candlesticks, so somebody had read the guidebook", "a climbing glove in the organ loft", "a theft to order, since the piece is too well known to sell", "in a laundry bag at a bus station, with one finger missing", "a former bell-ringer"),
    Crime("cash van robbery", "held up a cash van on the ring road of {city}", "A hearse blocked the road, and four men in black got out of it", "a cyclist who was behind the van", "I took off my cap, because I thought it was a funeral", "dye from a burst case on a hedge", "inside knowledge of a route that had been changed the day before", "under a poultry shed, stained blue", "a guard who had called in sick"),
    Crime("gold coin theft", "broke into the town museum of {city} and took nine gold coins", "A skylight was lifted out in one piece and set down on felt", "the guard on the night shift", "The alarm had gone off so often for pigeons that I told it to be quiet", "a pigeon feather dipped in glue", "a thief who had trained the alarm for weeks", "sewn into the hem of a curtain", "a theatre rigger"),
    Crime("bee rustling", "drove off with sixty beehives from orchards near {city}", "The hives were closed with foam, which only a beekeeper would know how to do", "the orchard's owner", "I heard nothing, and that is what woke me", "wax of another colour on a gatepost", "a beekeeper who lost his own stock to mites", "forty miles away, repainted green", "a honey dealer"),
    Crime("jewellery raid", "smashed the windows of a jeweller's in {city} with a bin lorry", "It took ninety seconds, and the lorry had been washed", "who waits at tables across the street", "One of them held the door open for a lady with a pram", "a glove filled with sugar", "a crew that has struck in two other towns", "in the filter of a fish tank", "a refuse collector"),
    Crime("arson series", "set fire to a ninth barn near {city}", "Each of the fires was lit with hay, a candle and a paper cup", "a farmer who lost forty heifers", "I recognise the smoke now, like a neighbour's car", "wax from a brand of altar candle", "somebody who is among the first to arrive each time", "in a locker at the fire station: candles, and a sleeve of paper cups", "a volunteer firefighter"),
    Crime("painting theft", "cut a small landscape out of its frame in the town hall of {city}", "The frame was hung straight again, with a poster inside it", "the registrar, who marries couples beneath it", "Eleven couples said yes to a bus timetable", "a knife of the sort used for veneers", "somebody with a key and a steady hand", "rolled up in a drainpipe", "a picture restorer"),
    Crime("cocaine landing", "landed two tonnes of cocaine on a beach near {city}", "The bales were marked as cat litter and stacked in a chapel", "who was walking the dog", "The dog sat down and would not go on", "a tide chart with a child's drawing on the back", "a supplier that lost its harbour last year", "in the hold of a dredger", "a harbour pilot"),
    Crime("truffle thefts", "emptied the cellars of four truffle dealers in {city} in one night", "They passed over the safe, the wine and the computers", "a dealer of the third generation", "My grandmother would have smelled them coming", "the hair of a pig of a foreign breed", "a rival with an order book that is suspiciously full", "in flour sacks, by a sniffer dog on its day off", "a restaurant supplier"),
    Crime("metal theft", "stole four kilometres of copper wire from the railway at {city}", "They had wired up a dummy so that the signals stayed green", "a train driver", "It was green, green, green, and then it was dark", "a pair of bolt cutters engraved with initials", "people who know the timetable by heart", "in coils, under a skating rink", "a signal fitter"),
    Crime("bank tunnel raid", "emptied a hundred and ten deposit boxes at a bank in {city} by way of a tunnel", "They dug for five weeks from a shop that sold blinds and never had a customer", "a tenant above the bank", "I complained about the drilling, and they sent me flowers", "a sandwich box with a date", "diggers from the mining towns", "in the boot of a taxi, all but two watches", "a mining engineer"),
    Crime("rare books theft", "took the atlases, and only the atlases, from the old library of {city}", "Each was replaced by a telephone directory of the same height", "a reader of forty years' standing", "I asked for the oceans and was brought the plumbers", "a pencilled list in mirror writing", "a collector who wants the maps and will burn the bindings", "between the false bottom and the real one of a piano stool", "a bookbinder"),
    Crime("tractor thefts", "drove nineteen tractors out of a showroom at {city} in a single night", "They went in convoy, with lights on, and a patrol car waved them through", "the dealer", "The doormat was straight, the keys were on their hooks, and the hall was empty", "a tyre gauge left on a kerb", "an order from abroad with a ship already waiting", "on a car ferry, under a tarpaulin marked as carousel", "a ploughing champion"),
    Crime("dog thefts", "took eleven pedigree puppies from a kennel near {city}", "The mother was given a bone that was still there in the morning", "the breeder", "They knew which of them were sold and which were not", "tyre marks of a caravan", "a buyer abroad who had lost an auction", "in a nursery school, where they had been given as a gift", "a courier"),
)  # fmt: skip


@dataclass(frozen=True)
class Inquiry:
    c: Country
    crime: Crime
    city: City
    chief: Person
    local: Person
    neighbour: Person
    expert: Person
    suspect: Person
    value: Money
    officers: int
    calls: int
    age: int
    raids: int
    reward: Money
    street: str


def _inquiry(scene: Scene) -> Inquiry:
    crime = scene.fresh("crime", CRIMES, uses=2)
    c = scene.country(f"crime {crime.short}")
    city = scene.pick(c.cities)
    return Inquiry(
        c, crime, city, scene.person(c, f"{scene.pick(('a chief inspector', 'a superintendent', 'the detective in charge', 'an inspector'))} with the {city.name} police"), scene.person(c), scene.person(c), scene.person(None), scene.person(c), scene.money(8e4, 4e6, c.currency),
        scene.between(12, 80), scene.near(40, 900), scene.between(23, 61), scene.between(3, 9), scene.money(5_000, 60_000, c.currency), scene.pick(("Mill Street", "the station quarter", "the old harbour", "Tanners' Lane", "the western suburbs", "Cross Street")),
    )  # fmt: skip


INVESTIGATION = Beat(
    "police investigations",
    _inquiry,
    (
        Stage(
            titles=("Police hunt suspects after {crime.short} in {city.name}", "{crime.short:cap} in {city.name}: police appeal for witnesses", "Detectives investigate {crime.short} in {city.name}", "{city.name} police seek clues in {crime.short}", "{crime.short:cap}: {officers} officers on the case in {city.name}"),
            abstracts=("{crime.way}. Police are looking for witnesses.", "“{crime.voice},” says {local.name}, {crime.who}.", "The only trace so far is {crime.clue}.", "A unit of {officers} officers has been set up in {city.name}."),
            leads=("Somebody {crime.done}, and the police would like to know who. Detectives [appealed for|began to look for] witnesses {on}.", "Police in {city.name} opened an inquiry {on} after unknown persons {crime.done}." , "The police in {city.name} began an investigation {on} into what they call [the oddest case of the year|a planned and patient crime]: somebody {crime.done}.", "Police in {city.name} [were still taking measurements|had put up a tent] {on}, after somebody {crime.done}."),
            then=(say("{crime.way}. “[We are not looking for an amateur|They had time, and they used it|I have a theory, and I have colleagues with a better one],” said {chief.last}.", "{chief.last} [gave few details|spoke at the scene]. “[Somebody saw something and thought nothing of it|The first two days are worth the next two months].” The police have one trace: {crime.clue}.", "“[There is always one thing that they forget|We are asking for every photograph taken in the area],” said {chief.last}. So far there is {crime.clue}, and little else."),),
            loose=(say("“{crime.voice},” said {local.name}, {crime.who}[, still shaking a little| with a shrug|].", "{local.name}, {crime.who}, was the first to notice. “{crime.voice},” {local.he} said."), say("Officers found {crime.clue}[, which has gone to the laboratory|; they would not say where]."), say("Investigators are thinking of {crime.theory}.", "One line of inquiry is {crime.theory}, [people close to the case say|though nothing has been ruled out]."),
                   say("Police have received {calls} calls, [two of them useful|one from a clairvoyant]. A reward of {reward} has been offered.", "A reward of {reward} is on offer; the police have had {calls} calls."), say("{neighbour.name}, who lives [nearby|round the corner] in {street}, [had heard a van|had noticed a stranger with a notebook|slept through it]. “[I wrote down half of the number plate; the wrong half, as it turns out|You see things, and you think it's the council|One doesn't like to stare],” {neighbour.he} said."), say("{expert.name}, a retired detective who [writes about such crimes|now advises insurers], was [impressed|not surprised]. “[It is easy to take a thing. It is very hard to be its owner|People talk. Give it a week],” {expert.he} said.")),
            weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{city.name} police release picture of suspect in {crime.short}", "{crime.short:cap}: police follow {calls} leads in {city.name}", "Breakthrough claimed in {city.name} {crime.short}", "Police search houses in {city.name} over {crime.short}"),
            abstracts=("Detectives have searched {raids} houses in {city.name} and are looking for {crime.suspect}.", "The laboratory has examined {crime.clue}. Police speak of {crime.theory}.", "The case of the {crime.short} has a first name in it, police say."),
            leads=("Police searched {raids} houses in and around {city.name} {on} in connection with the {crime.short}.", "The laboratory has spoken. {crime.clue:cap} has led detectives in {city.name} to a suspect in the {crime.short}, police said {on}.", "After {calls} calls from the public, police in {city.name} said {on} that they had a good idea of who was behind the {crime.short}."),
            then=(say("“[We know where to look, and we think they know that we know|It would be wise to ring us before we ring the bell],” said {chief.last}. [Investigators are working on the assumption of|The file speaks of|The line of inquiry is] {crime.theory}.", "{chief.last} [would not name anyone|spoke to reporters for two minutes]. “[It is a matter of doors now|We are down to a short list],” {chief.he} said, and [mentioned|pointed to] {crime.theory}."),),
            loose=(say("{crime.way}. That was how it began; police made the case public {t0:on}.", "The case became known {t0:on}. {crime.way}."), say("“{crime.voice},” said {local.name}, {crime.who}, who has been [interviewed three times|shown a folder of photographs]."), say("Key to the case is {crime.clue}."), say("The reward of {reward} [has been doubled|still stands]."), say("{expert.name}, a retired detective, [advised patience|thought an arrest was near]. “[They are at the stage of quarrelling about shares|The neighbours notice a new car before the police do],” {expert.he} said.")),
            after=(1, 3), weight=0.3, covered=0.12, chance=0.7,
        ),
        Stage(
            titles=("Arrest in {city.name} {crime.short}: police hold {crime.suspect}", "{city.name} police solve {crime.short}", "{crime.suspect:cap} arrested over {crime.short} in {city.name}", "Police make arrest in {city.name} {crime.short}", "{crime.short:cap}: suspect, {age}, in custody in {city.name}"),
            abstracts=("The suspect, aged {age}, is {crime.suspect}. A search ended {crime.found}.", "Police were led to the arrest by {crime.clue}.", "{chief.name} speaks of “[patience and shoe leather|a lucky week]”."),
            leads=("Police in {city.name} arrested a suspect {on} in the {crime.short}: {crime.suspect}, aged {age}.", "The {crime.short} has been solved, police in {city.name} said {on}. {crime.suspect:cap}, {age}, is in custody.", "The search that began {t0:on} is over. It ended {crime.found}, and with the arrest {on} of {crime.suspect}."),
            then=(say("What police had been looking for turned up {crime.found}. “[I have been doing this for twenty years and I did laugh|It was the dullest part of the work that did it, the lists],” said {chief.last}.", "The trail led from {crime.clue} to a house in {street}. {chief.last} said the suspect had [put the kettle on|asked what had taken them so long]."),),
            loose=(say("The suspect, {crime.suspect}, will appear before a magistrate [in the morning|within two days] and has [said nothing so far|denied any part in it|partly confessed]."), say("“{crime.voice},” {local.name}, {crime.who}, had [told police at the start|said when it began]. {local.he:cap} [was relieved|was the first to be told|would like things to be as they were]."), say("The investigators had assumed {crime.theory}."), say("Some {officers} officers worked on the case and checked {calls} calls from the public."), say("Whether anyone will claim the {reward:adj} reward is [unclear|a matter for the insurers]."), say("{neighbour.name}, who lives [in the same street|two doors away], said the suspect was “[polite, and always up early|the last person, they all say that, and it is always the last person]”.")),
            after=(1.5, 4), weight=0.45, covered=0.2, chance=0.75,
        ),
    ),
    share=1.1,
)  # fmt: skip


@dataclass(frozen=True)
class Swindle:
    """A fraud: how it worked, who fell for it, how it came out; `people` if many lost `each` a part."""

    short: str
    trick: str
    job: str
    victim: str
    voice: str
    tell: str
    spent: str
    lawyer: str
    people: tuple[int, int] | None = None
    each: tuple[int, int] = (0, 0)


SWINDLES: tuple[Swindle, ...] = (
    Swindle("vineyard fraud", "sold shares in a vineyard that turned out to be a car park", "a wine broker", "a dentist", "I was sent a bottle each Christmas, with my name on the label", "a buyer flew over it on holiday", "a yacht called Vintage", "The wine was real, even if the hill was not", (40, 390), (4_000, 60_000)),
    Swindle("charity fraud", "collected for a children's hospice that was never built", "a fundraiser", "a bus driver who gave each month", "I would have given to anything with that photograph on it", "a nurse asked for the address so as to apply for work", "kitchen fittings and a racehorse", "The plans exist, and so does my client's remorse", (900, 3_100), (40, 300)),
    Swindle("romance fraud", "courted eleven pensioners at once by letter, in the name of a widowed sea captain", "a call centre worker", "a retired librarian", "His spelling was perfect, and I let that count for too much", "two of the pensioners met at a bridge club", "a house with a sea view", "Nobody here was promised anything but affection", (11, 11), (9_000, 70_000)),
    Swindle("ticket fraud", "sold four thousand tickets for a concert in a hall that holds nine hundred", "an event promoter", "who had taken two trains to get there", "My daughter asked why all the people were wearing the same seat", "a printer had kept the order", "the next concert's deposit", "It began as optimism", (3_100, 3_100), (60, 140)),
    Swindle("payroll fraud", "paid wages to twenty-six employees who had never been born", "an accountant", "the owner of the firm", "We gave one of them a prize for attendance", "the ghosts all lived at one address", "poker, mainly", "My client kept better books on the ghosts than anyone kept on the living"),
    Swindle("diploma fraud", "issued medical degrees from a university with a letterbox and a coat of arms", "a former registrar", "a patient who was operated on by one of the graduates", "He had a lovely manner and held the X-ray upside down", "a graduate applied to teach anatomy", "a hall of residence for one", "There are worse universities with better buildings", (30, 90), (4_000, 30_000)),
    Swindle("pension fraud", "moved the savings of a bus company's drivers into a hotel that stood half finished", "a pension adviser", "a driver four years from retirement", "I have driven past my pension twice, and it has no roof", "an auditor took a taxi there", "commission at eleven per cent", "It was a poor investment and not a crime", (210, 820), (6_000, 70_000)),
    Swindle("gold fraud", "stored customers' gold bars that were brass beneath the surface", "a bullion dealer", "a couple who had sold a farm", "We visited it, we even patted it", "a child dropped one and it rang", "a fleet of old cars", "My client was deceived by a supplier", (40, 190), (5_000, 80_000)),
    Swindle("care grants fraud", "claimed grants for a day nursery with ninety infants, none of whom existed", "a nursery owner", "who had asked for a place for twins", "I was told that there was no room, and there was nothing but room", "an inspector asked to hear a nursery rhyme", "a second nursery, also empty", "The forms were confusing, and the payments came by themselves"),
    Swindle("antiques fraud", "aged new chairs with tea, chains and a hammer and sold them as two centuries old", "a furniture dealer", "a museum curator", "They are very good chairs, which is what makes it so annoying", "a screw with a modern thread", "oak", "Everyone in the trade looks at the screws; nobody made them look away", (21, 70), (3_000, 40_000)),
    Swindle("crypto fraud", "raised money for a digital coin whose computers were cardboard boxes with lamps", "a software salesman", "a student who had put in a loan", "There was an app, and the number on it went up, and I stopped eating out to watch it", "the electricity bill was too low", "a stadium box", "Markets fall, and some of them fall to zero", (310, 4_200), (400, 9_000)),
    Swindle("insurance fraud", "staged a hundred and forty car accidents on the same roundabout", "a garage owner", "an insurer's clerk", "I knew the hedge from the photographs before I ever saw it", "one witness had seen all of them", "neck braces, in bulk", "It is a dangerous roundabout"),
    Swindle("lottery fraud", "filmed a draw the day before and broadcast it as live", "a lottery technician", "a pub landlord who ran a syndicate", "Nine years of the same numbers, and on the day it was a film", "the clock on the studio wall was covered by a plant", "lottery tickets, of all things", "No prize was paid, so nobody has lost"),
)  # fmt: skip


@dataclass(frozen=True)
class Fraud:
    c: Country
    s: Swindle
    city: City
    d: Person
    victim: Person
    prosecutor: Person
    lawyer: Person
    judge: Person
    total: Money
    each: Money | None
    people: int | None
    since: int
    years: int
    files: int
    back: int


def _fraud(scene: Scene) -> Fraud:
    s = scene.fresh("swindle", SWINDLES, uses=3)
    c = scene.country(f"swindle {s.short}")
    people = scene.between(*s.people) if s.people else None
    each = scene.money(*s.each, c.currency) if people else None
    total = each.times(people) if each and people else scene.money(4e5, 9e6, c.currency)
    d = scene.person(c)
    return Fraud(
        c, s, scene.pick(c.cities), replace(d, role=f"{s.job} aged {scene.between(29, 64)}"), scene.person(c), scene.person(c, "a prosecutor for economic crime"), scene.person(c, "the defence lawyer"), scene.person(c, "the judge"), total, each,
        people, scene.between(2, 9), scene.between(2, 8), scene.near(90, 2_000), scene.between(4, 38),
    )  # fmt: skip


FRAUD = Beat(
    "fraud",
    _fraud,
    (
        Stage(
            titles=("{s.job:cap} charged with {total:adj} {s.short} in {city.name}", "{s.short:cap}: prosecutors charge {d.last}", "{people} victims of alleged {s.short} in {c.name}", "{d.last} accused of {total:adj} fraud in {city.name}", "How a {s.short} in {city.name} came to light"),
            abstracts=("Prosecutors say {d.name} {s.trick}. The loss is put at {total}.", "It came out when {s.tell}. The damage is put at {total}.", "“{s.voice},” says {victim.name}, {s.victim}."),
            leads=("Prosecutors in {city.name} charged {d.last} with fraud {on}, saying that {d.he} {s.trick}.", "For {since:count year}, according to the charge sheet, {d.last} {s.trick}. Prosecutors in {city.name} brought the case to court {on}.", "A {total:adj} fraud came before a court in {city.name} {on}. {d.last} is said to have been the one who {s.trick}."),
            then=(say("The scheme ran for {since:count year} and took in {people} people, who lost {each} each on average, said {prosecutor.last}. It came out when {s.tell}.", "{prosecutor.last} put the damage at {total}, over {since:count year}. “[It was clumsy and it worked|Nobody checks what they hope is true].” It came out when {s.tell}.", "It might have gone on if chance had not stepped in: {s.tell}. By then, {prosecutor.last} said, [{people} people had lost {total} between them|a sum of {total} was gone]."),
                  say("“{s.voice},” said {victim.name}, {s.victim}.", "{victim.name}, {s.victim}, is among the injured parties. “{s.voice},” {victim.he} said.")),
            loose=(say("The money, investigators say, went on {s.spent}."), say("{lawyer.last} denied intent. “{s.lawyer}.”", "“{s.lawyer},” said {lawyer.last}, [who expects an acquittal|and asked for bail]."), say("Police seized {files} files[, two computers and a shredder|] and have traced {back}% of the money.", "Of the {total}, {back}% has been [found|frozen]. The rest is [being looked for abroad|gone, in the view of investigators]."), say("{d.last} [has been released on bail|is in custody because of the risk of flight]."), say("“[People are ashamed, so they do not call|The clever ones are the easiest, they explain it to themselves],” {prosecutor.last} said. [A telephone line for further victims has been set up|Others who paid in are asked to come forward|More cases may come to light].")),
            weight=0.38, covered=0.18,
        ),
        Stage(
            titles=("{d.last} jailed for {years} years over {s.short}", "{years} years in prison for {s.short} in {city.name}", "{s.job:cap} convicted of {total:adj} fraud", "{s.short:cap}: court orders {d.last} to pay back {total}"),
            abstracts=("{d.name} {s.trick}. The court orders {d.him} to repay {total}.", "“{s.lawyer},” the defence had pleaded. The judge did not agree.", "So far {back}% of the money has been found."),
            leads=("{d.last} was jailed for {years} years in {city.name} {on} for a fraud in which {d.he} {s.trick}.", "A court in {city.name} convicted {d.last} of fraud {on} and ordered {d.him} to pay back {total}.", "It took the court in {city.name} one morning to end what had run for {since:count year}. {d.last}, who {s.trick}, was sentenced {on} to {years} years in prison."),
            then=(say("“[You sold people a picture of themselves|You were good at this, and you could have been good at something],” said {judge.last}.", "{judge.last} [spoke of a gift for trust, and its misuse|counted the confession in {d.his} favour]. {d.last} {s.trick}."),),
            loose=(say("“{s.voice},” {victim.name}, {s.victim}, had told the court. {victim.he:cap} [came to hear the sentence|will get back a fraction]."), say("The fraud was found out when {s.tell}."), say("In all, {people} people lost {total}; {back}% has been recovered. Much of the rest went on {s.spent}.", "Of {total}, {back}% has been recovered. The rest went on {s.spent}."), say("{lawyer.last} had asked for a suspended sentence. “{s.lawyer}.”", "“{s.lawyer},” {lawyer.last} had pleaded, [without success|to little effect].", "The plea of {lawyer.last} was short: “{s.lawyer}.”"), say("{prosecutor.last} called the sentence “[fair|a message to the trade]”. An appeal is possible within [two|three] weeks.", "“[It will not bring the money back, but it stops the next one|I hope it is read in a few offices],” said {prosecutor.last}.", "{d.last} has [two|three] weeks to appeal.")),
            after=(3, 8), weight=0.35, covered=0.12, chance=0.75,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip
