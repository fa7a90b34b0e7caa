# ruff: noqa: E501 (prose reads better unbroken)
"""The travel desk on getting there: railways, airports and ships."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.world_cast import pair
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Line:
    """News of a railway line between two cities."""

    head: str
    alt: str
    lead: str
    ride: str
    rider: str
    boss: str
    catch: str


_LINES: tuple[Line, ...] = (
    Line("Night train returns between {a} and {b}", "Sleeper from {a} to {b}: in bed by the border", "After {years} years without one, a night train runs again between {a} and {b}, from {day}", "There are couchettes, a shower and a dining car with lamps, and the brakes are applied as if by a nurse", "I went to sleep in one language and was woken in another", "A bed that moves earns twice, as a room and as a seat", "In summer it is booked out for weeks ahead"),
    Line("{hours} hours by the slow train from {a} to {b}", "The railway line that refuses to hurry: {a} to {b}", "The stopping train from {a} to {b} takes {hours} hours and calls at {stops} stations, and the railway has decided to keep it", "It climbs through two spirals and waits at a halt where the guard waters the geraniums", "I missed it on purpose the first time, to see the station", "We tried to speed it up and received letters", "There is no buffet, but at the fourth stop somebody sells cherries"),
    Line("High-speed rail cuts {a} to {b} by {n} minutes", "New railway bridge shortens trip from {a} to {b}", "Trains between {a} and {b} are {n} minutes faster from {day}, thanks to a new bridge", "One crosses the valley at two hundred metres and has eleven seconds to look", "I had a sandwich that takes longer than that", "We have spent {sum} for {n} minutes, and people will get used to them within a week", "The old line, with the better view, closes"),
    Line("Rail pass for all of {c}: one month, {fare}", "{c} sells a railway ticket for everything", "A pass for all trains in {c} will cost {fare} a month from {day}", "It covers branch lines, funiculars and one lake steamer, but not the restaurant car", "I have been to see an aunt, a canyon and a shoe museum", "Empty seats cost the same as full ones", "Commuters fear for their standing room"),
    Line("Rail closure: {a} to {b} by bus for {weeks} weeks", "Replacement buses between {a} and {b} for {weeks} weeks", "The railway between {a} and {b} closes for {weeks} weeks from {day}, and travellers must take the bus", "A tunnel has to be made seven centimetres higher, for the sake of wider freight trains", "By bus you learn what the villages are called", "We can do it in one go or annoy you for four years", "Bicycles are not taken"),
    Line("Dining cars are back on trains from {a}", "Lunch at two hundred an hour: a railway kitchen from {a} to {b}", "The railway has put dining cars with real stoves back on the trains between {a} and {b}, starting {day}", "Soup is served in deep plates and only on the straight", "I took the earlier train so as to have the longer lunch", "Nobody remembers a seat, everybody remembers an omelette", "A table has to be reserved, and the last sitting is before the tunnel"),
    Line("Steam engine leaves its park and takes a train to {b}", "Old engine pulls {stops} coaches from {a} to {b}", "A steam engine that had stood in a park for {years} years pulled {stops} coaches from {a} to {b} on {day}", "Children had climbed on it for two generations, and the paint had to be scraped off their names", "I was the stoker once, and my back has remembered it", "She runs on what we learned from three old men and a notebook", "It drinks forty litres a kilometre and stops at every river"),
    Line("Cross-border rail link from {a} to {b2} opens", "By rail to {neighbour}: a line with two names", "For the first time in {years} years one can take a train from {a} to {b2} in {neighbour} without changing, since {day}", "At the frontier the driver changes and so does the word for exit", "My grandmother did it with a goose in a basket", "We had two widths of track, two voltages and two kinds of stubbornness", "Tickets still have to be bought in two halves"),
    Line("Bicycles fill trains out of {a}", "No room for bikes: weekend rush on the line from {a} to {b}", "The railway will add a coach for bicycles between {a} and {b} from {day}, after weekends on which cyclists were left behind", "Last year {n} bicycles had to be turned away on a single Sunday", "I took out the front wheel and held it on my lap like a child", "We built trains for people with briefcases", "A place for a bike has to be booked by the evening before"),
    Line("A view from the cab: railway sells front seats to {b}", "Sit beside the driver from {a} to {b}", "For the price of a second ticket, travellers between {a} and {b} may sit behind the driver, from {day}", "One sees deer, signals and the end of a tunnel as a coin that grows", "I braked with my feet all the way", "The driver has the right to silence", "There are two seats, and both are gone until the autumn"),
    Line("Late trains: {a} to {b} is {c}'s least punctual railway", "{n} minutes late on average: riding the line to {b}", "No train in {c} is late as often as the one from {a} to {b}, figures showed on {day}", "It shares its track with freight, a level crossing with a herd, and a drawbridge", "We have a choir now, we met on the platform", "I could make the timetable longer, then it would be on time and slower", "Refunds are paid from the thirtieth minute"),
    Line("Panoramic train opens route over the pass to {b}", "Glass roofs and snow: by rail from {a} to {b}", "A panoramic train with glass roofs runs between {a} and {b} from {day}", "It goes through {stops} tunnels, and in each of them you see yourself with your mouth open", "I have no photographs, I was looking", "We wash the roof at each end, it's the only luxury", "A seat costs about three times the ordinary fare"),
)  # fmt: skip


@dataclass(frozen=True)
class Ride:
    m: Line
    land: Country
    a: City
    b: City
    b2: City
    c: str
    neighbour: str
    n: int
    years: int
    hours: int
    stops: int
    weeks: int
    fare: Money
    single: Money
    sum: Money
    day: str
    rider: Person
    boss: Person
    expert: Person
    seats: int


def _ride(scene: Scene) -> Ride:
    m = scene.fresh("line", _LINES, uses=4)
    c = scene.country(f"line {m.head}")
    a, b = scene.sample(c.cities, 2)
    other = c
    if "{b2}" in m.lead:
        c, other = pair(scene, "cross-border line", sea=False)
        a, b = scene.pick(c.cities), scene.pick(other.cities)
    return Ride(
        m, c, a, b, b, c.name, other.name, scene.between(17, 58), scene.between(14, 66), scene.between(5, 9), scene.between(11, 27), scene.between(6, 11), scene.money(18, 90, c.currency), scene.money(9, 70, c.currency), scene.money(2e8, 3e9, c.currency),
        f"{scene.day(0):%A}", scene.person(c), scene.person(c, "who runs the line for the railway"), scene.person(None), scene.between(180, 460),
    )  # fmt: skip


RAIL = Beat(
    "rail travel",
    _ride,
    (
        Stage(
            titles=("{m.head:cap}", "{m.alt:cap}", "“{m.rider}”: by train from {a.name} to {b.name}", "{a.name} to {b.name} by rail: what travellers should know"),
            abstracts=("{m.ride}.", "“{m.rider},” says {rider.name}. {m.catch}.", "The journey from {a.name} to {b.name}, with its pleasures and its catch: {m.catch:lower}.", "“{m.boss},” the railway says."),
            leads=("{m.lead}.", "{m.lead}. [We took a seat by the window|There was a queue for the first departure|It is about time, say those who know the line]."),
            then=(say("{m.ride}. “{m.rider},” said {rider.name}, [a passenger|a retired surveyor with a thermos|a student on the way home|who had come for the ride].", "“{m.rider},” said {rider.name}, [across the aisle|a passenger who keeps a log]. {m.ride}.", "{m.ride}. {rider.name}, [who was travelling with two grandchildren|on board for the fourth time], put it like this: “{m.rider}.”"),),
            loose=(say("“{m.boss},” said {boss.name}, {boss.role}.", "{boss.name}, {boss.role}, [is proud of it|knows the arithmetic]. “{m.boss},” {boss.he} said.", "At the railway's office in {a.name}, {boss.name} [poured tea|unrolled a map]. “{m.boss},” {boss.he} said."), say("The catch: {m.catch:lower}.", "{m.catch}."),
                   say("[Sit on the left|Sit on the right|Take a seat at the back] when leaving {a.name}, [for the river|for the castle|for the best of the curves]; [the other side has the quarries|after an hour it does not matter].", "In {b.name}, the station is [ten minutes on foot from the centre|in the middle of the market|a sight in itself], [and the café opposite opens before the first train|and the café opposite bakes its own rolls|with a left-luggage office run by one family|and taxis are not needed]."),
                   say("{expert.name}, who [writes timetables for a living|advises passengers' groups], [approves|has a reservation]. “[Railways are won on Sundays|It is not speed that people want, it is to sit down],” {expert.he} said.", "“[One can tell a railway by its cheapest seat|A line is as good as its worst connection],” said {expert.name}, [a historian of transport|who has ridden every line in {c}].", "Each train has {seats} seats. [Tickets are on sale ninety days ahead|Children under twelve travel free|Dogs need a ticket and cats do not]."), say("The fare from {a.name} to {b.name} begins at {single}[ one way|, if booked early|].")),
            weight=0.24, covered=0.08,
        ),
    ),
    share=1.0,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Stop:
    """What closes or slows an airport, and what people make of it."""

    short: str
    what: str
    sight: str
    stuck: str
    boss: str
    rule: str
    end: str


_STOPS: tuple[Stop, ...] = (
    Stop("baggage failure", "a baggage belt broke and {bags} suitcases were left behind", "In hall three, the cases stand in rows like a parked army, and one of them is ringing", "My tent is in the mountains and I am at the gate in sandals", "The belt is nineteen kilometres long and it stopped at a sock", "Passengers may claim for what they need, within reason and with receipts", "the last cases were sent on by lorry"),
    Stop("controllers' strike", "air traffic controllers stopped work over rosters", "On the board, the word cancelled runs down the column like a zip", "I have been to the wedding by telephone", "We can land them or we can talk, and today we talk", "Airlines must offer another flight or the money", "controllers got two more people for each shift"),
    Stop("drone sighting", "a drone was seen above the runway {n} times", "Police marksmen lay on the roof of the car park, and passengers lay on the floor of the hall", "We sat in the plane for four hours and sang", "One toy, and eleven thousand people stand still", "It does not count as the airline's fault, so there is a bed but no money", "a boy of fourteen was given back his toy without the battery"),
    Stop("fog", "fog closed both runways for the third morning in a row", "One hears the aeroplanes and sees a man with two lit sticks", "My whole holiday is a bench", "You can't negotiate with fog", "Airlines owe meals and a bed, but no compensation", "a wind got up"),
    Stop("security queue", "people waited up to {n} minutes at security, since one lane in three had no staff", "The queue leaves the building, goes twice around the taxi rank and comes back by way of the chapel", "I read a novel and got through the checks in the last chapter", "We pay less than the bakery on level two", "Those who miss a flight because of the queue have to prove when they joined it", "soldiers were lent to carry trays"),
    Stop("burst pipe", "water from a burst pipe ran down the departure boards", "Cleaners are pushing a small lake towards gate nine", "I swam with my hand luggage, more or less", "It was the one pipe that had been renewed", "Rebooking is free until the end of the week", "the boards came on again, showing a flight from last year"),
    Stop("computer outage", "a check-in program stopped in the middle of a name", "Boarding passes are written by hand, and somebody has found a stamp", "I am seat 14A, it says so on my arm", "There were two systems in case one failed, and both had the same clock", "A delay of three hours brings a right to money, even if a computer is to blame", "engineers set back a clock"),
    Stop("runway crack", "a crack as wide as a thumb was found in the only long runway", "Men in orange are on their knees with syringes of resin", "They told us to be glad that they had found it, and I am glad, in a way", "The last jumbo found it for us", "Flights go from the airport at {other}, with a bus", "the resin had set"),
    Stop("bird strike", "a flock of starlings met an engine, and inspectors closed the airspace", "The pilot shook everyone's hand and went to look at the feathers", "There was a bang and a smell of Sunday lunch", "They have more right to the air than we do, but they should file a plan", "An emergency landing is nobody's fault in law", "the starlings left for the north"),
)  # fmt: skip


@dataclass(frozen=True)
class Closure:
    c: Country
    s: Stop
    city: City
    other: City
    bags: int
    n: int
    flights: int
    people: int
    hours: int
    stuck: Person
    boss: Person
    guide: Person
    helper: Person
    beds: int
    price: Money


def _closure(scene: Scene) -> Closure:
    s = scene.fresh("airport", _STOPS, uses=3)
    c = scene.country(f"airport {s.short}")
    city, other = scene.sample(c.cities[:6], 2)
    return Closure(c, s, city, other, scene.near(3_000, 14_000), scene.between(13, 96), scene.between(44, 390), scene.near(9_000, 61_000), scene.between(5, 28), scene.person(None), scene.person(c, f"who speaks for the airport in {city.name}"), scene.person(None), scene.person(c), scene.near(300, 1_900), scene.money(90, 340, c.currency))  # fmt: skip


AIRPORT = Beat(
    "airports",
    _closure,
    (
        Stage(
            titles=("{flights} flights cancelled in {city.name}: {s.short} stops airport", "{s.short:cap} at {city.name} airport strands {people} passengers", "Chaos at {city.name} airport after {s.short}", "{city.name} airport: {s.short} and what travellers can do", "“{s.stuck}”: stranded at {city.name} airport"),
            abstracts=("Some {people} passengers are affected in {city.name}. {s.rule}.", "“{s.stuck},” says {stuck.name}, one of {people} passengers.", "{s.sight}."),
            leads=("About {flights} flights to and from {city.name} were cancelled {on} because {s.what}.", "The airport of {city.name} was all but closed {on} after {s.what}.", "Travellers in {city.name} were told to stay at home {on}, or wherever they were, after {s.what}.", "Some {people} travellers were stranded in {city.name} {on}, when {s.what}."),
            then=(say("“{s.stuck},” said {stuck.name}, [on the way to a cousin's|bound for {other.name}|who has missed two connections].", "{stuck.name}, [a teacher|who was travelling with a cello], [had built a bed of coats|was on the telephone, ninetieth in a queue]. “{s.stuck},” {stuck.he} said."), say("“{s.boss},” said {boss.name}, {boss.role}. {s.rule}.", "{s.rule}, [lawyers say|according to a consumer group]. {boss.name}, {boss.role}, [apologised|had not slept]: “{s.boss}.”")),
            loose=(say("{s.sight}."), say("The airport has put up {beds} camp beds. Hotels in {city.name} [are full|asked {price} a night for what was left]."), say("{guide.name}, who advises travellers, says one should [keep each receipt|rebook before queueing|photograph the board]. “[The desk is slow, the telephone is slower, and the app works|Ask for the train],” {guide.he} said.", "The advice of {guide.name}, who works for a consumer group: [stay in the building|do not leave without a written refusal|ask about other airports], and [be kind to those behind the desk|eat before midnight].", "What to do? “[Claim, and claim early|Join the short queue, at the airline's ticket desk|Write down names],” said {guide.name}, who [has written a handbook for travellers|once ran a check-in desk]."), say("{helper.name}, [a volunteer|from a parish in {city.name}], handed out [soup|blankets and crosswords]. “[People are kinder than you'd think after midnight|I have learned to say gate in six languages],” {helper.he} said.", "Children [were asleep on a luggage belt|had built a house of suitcases|were playing football with a neck pillow]. {helper.name}, who [cleans the hall|runs the bookshop on level one], had [opened early|given away the last of the sandwiches]."), say("Delays are likely to last for [{hours} hours|the rest of the day].", "The airport hopes to be back to normal {t1:on}.", "Normal service is expected {t1:on}, [with luck|according to the airport].", "Nobody expects a full timetable before {t1:day}.")),
            weight=0.4, covered=0.25,
        ),
        Stage(
            titles=("{city.name} airport reopens after {s.short}", "Flights resume in {city.name}, backlog to last days", "After {s.short}: how {city.name} airport got going again"),
            abstracts=("It took {hours} hours until {s.end}.", "The backlog will last for days. {s.rule}.", "In all, {people} passengers were affected."),
            leads=("The airport of {city.name} was back at work {on}, after {s.end}.", "Flights from {city.name} resumed {on}, after {s.end}. The {s.short} had lasted for {hours} hours.", "It took {hours} hours until {s.end}. The first plane left {city.name} {on}, [to applause|half empty, since nobody had expected it]."),
            then=(say("“{s.boss},” {boss.name}, {boss.role}, had said {t0:on}. Now {boss.he} spoke of “[a long broom|two or three days of tidying up]”.",),),
            loose=(say("{stuck.name}, who was [among the last to leave|on the first plane], had [grown fond of a bench|made nine friends]. “[I will miss the soup|I don't want to see a trolley for a year],” {stuck.he} said."), say("{s.rule}. Claims can be made for [two years|up to a year]."), say("{guide.name}, a travel adviser, expects [a flood of claims|most claims to be settled by voucher]. “[Take the money, not the voucher|Be polite and do not give up],” {guide.he} said."), say("In all, {flights} flights and {people} people were affected.")),
            after=(0.9, 2), weight=0.28, covered=0.1, chance=0.8,
        ),
    ),
    share=0.75,
)  # fmt: skip


@dataclass(frozen=True)
class Voyage:
    """A ship, where it goes, and who is aboard."""

    ship: str
    lead: str
    day: str
    aboard: str
    who: str
    cabin: str
    shore: str


_VOYAGES: tuple[Voyage, ...] = (
    Voyage("mail boat", "The mail boat from {a} takes passengers again, eleven of them, and calls wherever there is a letter", "At the third pier a woman hands over a cake, and nobody says for whom", "I booked for two days and have been on it for nine", "a translator with a hammock", "Cabins are narrow and smell of rope and coffee", "No stop lasts longer than it takes to drink a glass"),
    Voyage("river barge", "For {days} days a barge with eight cabins goes down the river from {a} to {b}, at the pace of a bicycle", "Locks are worked by hand, and guests are given a glove", "You see the backs of towns, where they hang their washing", "a retired conductor", "Beds face the window, so that ducks look in at you", "Each evening it ties up under a different plane tree"),
    Voyage("car ferry", "A new ferry runs between {a} and {b} from this week, with a sauna and without a casino", "The crossing takes {hours} hours, and the last one is spent in an inlet that is narrower than the brochure says", "I drove on in the rain and drove off in another season", "a lorry driver who has made the trip four hundred times", "The cheapest bunks are under the car deck, where it hums", "On the quay at {b} one smells resin and fried fish"),
    Voyage("cruise ship ban", "From next season no cruise ship with more than a thousand beds may dock in {a}", "On the busiest day last year, eleven thousand people came ashore before lunch", "They photograph my cat and ask if it is included", "a resident of the lower town", "A smaller ship will pay {fare} a head", "The quay is to have benches, and later trees"),
    Voyage("sailing cargo ship", "A three-master that carries coffee and six guests left {a} for {b}, where it hopes to arrive in {days} days", "Guests may steer, peel and be seasick in turn", "There is no timetable, there is only the wind and the cook", "a lawyer on leave", "Cabins have a bunk, a hook and a book on knots", "In port one unloads by hand and has muscles for a week"),
    Voyage("expedition ship", "A former research ship takes {n} passengers from {a} to the ice, with four scientists and no cabaret", "At breakfast there is a lecture on krill, and at lunch there it is", "I came for the whales and fell in love with lichen", "a dentist from inland", "Boots are disinfected at each landing, as at a hospital", "One may stay ashore for ninety minutes, at five metres from any penguin"),
    Voyage("lake steamer", "The oldest paddle steamer of {c} is back on the lake at {b} after {years} years in a shed", "The pistons are behind glass, and children do not want to go on deck", "My parents met at that funnel", "a passenger in her best hat", "First class has plush, second has the view", "It calls at six villages, two of which have no road"),
    Voyage("houseboats", "Houseboats that anyone may steer are for hire in {a}, after a lesson of forty minutes", "The lesson covers knots, bridges and the toilet, in that order of importance", "We hit everything once, and quite gently", "a beginner with three children", "Six can sleep in it, if four of them are friends", "The best mooring is behind the mill, where the baker comes by bicycle"),
    Voyage("ferry price cut", "Ferries to the islands off {b} cost half as much from this week, and for islanders nothing", "The saloon was full of people who had not been to the other side for years", "I went to buy a screw and came back with a husband", "an islander", "There are no cabins, but there is a stove", "The last boat goes back earlier than one would like"),
    Voyage("solar catamaran", "A catamaran that runs on sunlight alone takes {n} guests along the coast from {a}", "When clouds come, the captain slows down and opens the wine", "It is so quiet that fish look up", "a piano tuner", "Cabins are in the hulls, and the water talks to you all night", "One anchors in coves that are too shallow for anyone else"),
)  # fmt: skip


@dataclass(frozen=True)
class Cruise:
    v: Voyage
    land: Country
    a: City
    b: City
    c: str
    n: int
    years: int
    hours: int
    days: int
    fare: Money
    price: Money
    guest: Person
    captain: Person
    writer: Person


def _cruise(scene: Scene) -> Cruise:
    v = scene.fresh("voyage", _VOYAGES, uses=3)
    c = scene.country(f"voyage {v.ship}")
    a, b = scene.sample(c.cities, 2)
    return Cruise(v, c, a, b, c.name, scene.between(18, 90), scene.between(12, 41), scene.between(6, 19), scene.between(4, 12), scene.money(4, 19, c.currency), scene.money(300, 2_900, c.currency), scene.person(c, she=True if " her " in v.who or "husband" in v.aboard else None), scene.person(c, scene.pick(("the captain", "the skipper", "the mate"))), scene.person(None))  # fmt: skip


CRUISE = Beat(
    "cruises",
    _cruise,
    (
        Stage(
            titles=("By {v.ship} from {a.name}: a voyage in {c}", "{v.ship:cap}, {a.name}: “{v.aboard}”", "On the water in {c}: {v.ship} at {a.name}", "{c} by sea and river: the {v.ship} of {a.name}"),
            abstracts=("{v.day}.", "“{v.aboard},” says {guest.name}, {v.who}.", "{v.shore}. A report from {a.name}."),
            leads=("{v.lead}.", "{v.lead}. [We went to see|It was high time|Not everyone on the quay was pleased]."),
            then=(say("{v.day}. “{v.aboard},” said {guest.name}, {v.who}.", "“{v.aboard},” said {guest.name}, {v.who}. {v.day}."),),
            loose=(say("{v.cabin}."), say("{v.shore}."), say("{captain.last}, [who went to sea at sixteen|asked about the weather], said: “[The weather decides and I pass it on|We are never late, we are sometimes slow|People ask when we arrive, and I ask why].”"), say("Prices begin at {price} a head[, food included|, without drinks|]; bookings are taken [by telephone|until the end of the month|on board, with luck].", "The season runs until [the first storms|the end of October]; [spring is quietest|in high summer one should book early]. From {price}."), say("{writer.name}, who [wrote a guide to the coast|has travelled by nothing else for years], advises [a bunk on the lee side|taking a jersey, whatever the forecast|eating before the open stretch].", "A tip from {writer.name}, [a frequent passenger|who plans such trips for others]: [go in the last week of the season|ask for the cabin nobody wants|bring something to give away].")),
            weight=0.2, covered=0.06,
        ),
    ),
    share=0.8,
    rhythm=LEISURE,
)  # fmt: skip
