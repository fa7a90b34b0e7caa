# ruff: noqa: E501 (prose reads better unbroken)
"""What the motoring desk has to write about: cars that exist nowhere, their faults, roads, races and old-timers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from backend.news.sources.newsroom.world import Company, Money, World, rounded


@dataclass(frozen=True)
class Model:
    """A car: `drive` is 'electric', 'hybrid' or 'petrol'; `reach` its range in kilometres, None for petrol."""

    name: str
    co: Company
    body: str
    drive: str
    electric: str | None
    fuel: str | None
    price: Money
    kilowatts: int
    reach: int | None
    thirst: float | None
    sprint: float
    boot: int
    length: float


_WORDS = ("Lark", "Corvo", "Brio", "Tarn", "Meru", "Solano", "Wren", "Kappa", "Ibex", "Nomad", "Pico", "Vela", "Strada", "Fjell", "Otus", "Campo", "Rondo", "Linea", "Alto", "Mira", "Puma Nera", "Delta Nove", "Swift Nine", "Orla", "Bora", "Tessa", "Kestrel II", "Monte", "Arden", "Skua", "Pinto Verde", "Halo", "Cleo", "Dune", "Rivo", "Sable", "Quill", "Ember", "Fable", "Gala", "Harrier", "Ion", "Juno", "Karst", "Loma", "Moss", "Noor", "Opus", "Pilot", "Quest", "Roan", "Sienna", "Talus", "Umber", "Vigo", "Wisp", "Xeno", "Yara", "Zephyr", "Tundra")  # fmt: skip
_BODIES = ("hatchback", "estate", "family SUV", "saloon", "city car", "seven-seater", "small SUV", "roadster", "van with windows", "coupé")  # fmt: skip


def models(world: World) -> tuple[Model, ...]:
    """Every carmaker's range, with prices in its own currency."""
    rng = Random(f"{world.seed}:motoring")
    makers = [one for one in world.companies if one.noun == "carmaker"]
    words = rng.sample(_WORDS, len(_WORDS))
    made = []
    for index, word in enumerate(words):
        co = makers[index % len(makers)]
        drive = rng.choice(("electric", "electric", "hybrid", "petrol"))
        body = rng.choice(_BODIES)
        scale = 22 if co.currency.unit else 1
        low, high = (14_000, 24_000) if body in ("city car", "hatchback") else (27_000, 58_000)
        kilowatts = rng.randint(52, 96) if body == "city car" else rng.randint(85, 240)
        made.append(Model(f"{co.name.split()[0]} {word}", co, body, drive, "" if drive == "electric" else None, None if drive == "electric" else "", Money(rounded(rng.uniform(low, high)) * scale, co.currency), kilowatts,
                          rng.randrange(240, 620, 10) if drive == "electric" else None, None if drive == "electric" else round(rng.uniform(4.1, 8.4), 1), round(1400 / kilowatts + rng.uniform(-1.0, 1.0), 1) if kilowatts < 150 else round(rng.uniform(4.9, 8.2), 1), rng.randrange(180, 640, 10), round(rng.uniform(3.6, 4.9), 2)))  # fmt: skip
    return tuple(made)


GOOD_POINTS = (
    ("the seats", "[one gets out after four hundred kilometres without a groan|the back says thank you in the evening]"), ("the steering", "[it tells you what the front wheels think before they have thought it|quick, light and free of secrets]"), ("the silence", "[at motorway speed one hears the clock, if there were one|one whispers at 130 and is understood]"), ("the switches", "[there are real ones, for heat, volume and fear|they click, and they are where the hand is]"),
    ("the ride", "[it breathes with bad roads and does not argue with them|potholes become a rumour]"), ("the view out", "[thin pillars, low sills, and one parks it at once|as from a conservatory]"), ("the brakes", "[the pedal is firm and honest from the first millimetre|it stops like a sentence]"), ("the boot", "[a pram, a dog and a week's shopping, without a quarrel|a cello went in, with its owner's coat]"),
    ("the headlamps", "[night country roads become a stage set|they find the hare before the hare finds you]"), ("the economy", "driven gently, it sips"), ("the turning circle", "[it turns in a lane where others say their prayers|like a taxi of the old school]"), ("the finish", "[nothing rattles, and the door shuts with the sound of a good book|gaps one could not slide a stamp into]"),
    ("the heat pump", "warm feet in five minutes, on a morning of minus eight"), ("the rear bench", "tall teenagers fit and stop complaining for minutes at a time"),
    ("the heater", "[toast in three minutes|it is summer by the second traffic light]"), ("the driving position", "[one sits in it and not on it|the wheel comes to meet you]"), ("the sound", "[a low, contented hum|it purrs, and does not advertise the fact]"), ("the paint", "[five coats, and you can shave in it|deep enough to drown in]"),
    ("the spare wheel", "[there is one, a real one|under the floor, round, black, full size: we nearly wept]"), ("the cruise control", "[it brakes as a considerate person would|it keeps its distance and its temper]"), ("the doors", "[they open wide and close with two fingers|a grandmother gets in without a plan]"), ("the towing weight", "[a horse and its box, no trouble|it pulls two tonnes and asks for the next]"),
)  # fmt: skip
BAD_POINTS = (
    ("the touchscreen", "[three taps to demist the window is two too many|it answers late, and to another question]"), ("the lane assistant", "[it tugs at the wheel like a nervous aunt|it mistakes a repair in the tarmac for the edge of the world]"), ("the tyre noise", "[on coarse asphalt it drones|it sings in one key, loudly]"), ("the suspension", "[over cobbles it counts every stone aloud|sporting, says the brochure; hard, says the spine]"), ("the price of extras", "[a set of mats costs as much as a bicycle|the list is longer than the car]"),
    ("the gearbox", "it hunts for a ratio as others hunt for their glasses"), ("the charging flap", "[it sits where the kerb is|always on the other side]"), ("the rear window", "[a letter box, and a small letter|one reverses by faith]"), ("the speed warning", "[it chimes at signs meant for lorries|it scolds at 51 and forgives nothing]"), ("the cup holders", "[they hold cups that nobody has|one bend and the lap is wet]"),
    ("the voice control", "[it heard “home” and called my mother|it apologises in four languages and does nothing in any]"), ("the boot lip", "[it is high enough to hurt a back|crates of water have to be thrown]"), ("the door handles", "[they hide, and in frost they stay hidden|they come out like a butler, when they please]"), ("the app", "it forgot us twice"),
    ("the glove box", "[it holds gloves, one pair, thin|a sandwich would not fit]"), ("the mirrors", "[small, and full of pillar|they fold themselves when they feel like it]"), ("the upholstery", "[it squeaks in the sun|white, in a car meant for families]"), ("the key", "[a plastic card that one loses twice a day|it is as large as a bar of soap]"),
    ("the start-up jingle", "[eleven notes, each morning|it cannot be turned off, we asked]"), ("the menu language", "[“comfort ambience management” is the heater|translated, it seems, by a toaster]"), ("the rear wiper", "[there is none|it wipes what was clean already]"), ("the ventilation", "[it blows on knees and misses faces|two settings, breeze and gale]"),
)  # fmt: skip
ROUTES = (
    "over a pass with 34 hairpins, in sleet", "from {city.name} to the coast and back, with three children", "for a fortnight of school runs in {city.name}", "on the old post road through {region}", "to a wedding 480 kilometres away, in a hurry", "along the ring road of {city.name}, morning and evening", "up a forest track in {region} that the map calls a road", "on a wet test track, and then home through traffic", "with a trailer of firewood, which was not on the plan",
    "across {region} by night", "through {city.name} at rush hour, which lasts from three to seven", "to four garden centres and one disappointing zoo",
)  # fmt: skip


def fits(point: str, drive: str) -> bool:
    """Whether a car of this drive can have the point at all: no gearbox in an electric one."""
    if point in ("the heat pump", "the charging flap"):
        return drive == "electric"
    return drive != "electric" or point not in ("the gearbox", "the economy")


@dataclass(frozen=True)
class Fault:
    short: str
    what: str
    risk: str
    fix: str
    who: str
    word: str
    finding: str


FAULTS: tuple[Fault, ...] = (
    Fault("brake", "a brake hose may rub against the wheel arch and leak", "the pedal can go soft without warning", "a bracket and a new hose, forty minutes in all", "whose brakes failed on a hill", "[I used the gears, the handbrake and a hedge|The pedal went down like a foot into snow]", "a supplier had shortened the hose by eleven millimetres to save material"),
    Fault("airbag", "an airbag may open by itself in cold weather", "drivers have been hurt at the hands and face", "a new control unit", "whose airbag went off at a red light", "[It was like being slapped by a pillow with a grudge|I had my coffee in my hand, and then I had it everywhere]", "a sensor took the slam of a door on a frosty morning for a crash"),
    Fault("battery fire", "single battery cells can overheat while charging", "the car may catch fire, also when parked", "a new battery module, and until then a software limit of 80 per cent", "whose car burned in the garage", "[First it whistled, then it was New Year's Eve|The firemen put it in a skip full of water, like a lobster]", "a machine in the cell factory had folded a separator on the night shifts"),
    Fault("steering", "a bolt in the steering column may work loose", "the wheel can turn without the car doing so", "a bolt with a locking ring", "a driving instructor", "[My pupil said: it doesn't want to, and for once she was right|I have taught for thirty years, nobody had ever handed me the steering wheel]", "a robot had tightened every ninth bolt twice and the one after it not at all"),
    Fault("seat belt", "the catch of a seat belt can open when it is jolted", "in a crash the belt may let go", "new catches for the front seats", "who noticed it on a speed bump", "[Click, it said, and I was a free man|I tied a knot in it until I was home]", "a spring had been made from the wrong steel"),
    Fault("reversing camera", "the picture of the reversing camera freezes", "the driver sees an empty yard that is no longer empty", "a software update over the air", "who ran over a wheelbarrow", "[The screen showed no wheelbarrow, it showed yesterday|It could have been my grandson]", "an update meant for another model had been sent out by mistake"),
    Fault("fuel leak", "a fuel line can crack where it crosses the axle", "petrol may drip on hot parts", "a line of thicker plastic", "who smelled it first", "[My wife said it was the lawnmower, and we have no lawnmower|There was a rainbow on the drive]", "marten urine, of all things, attacks the plastic that was used"),
    Fault("software", "the car can switch itself off while it is moving", "power steering and brake servo go with it", "an update at the garage", "who stopped in the fast lane", "[It said “goodbye” on the screen, it was polite about it|Everything went dark and I coasted, with my heart in my ears]", "a counter in the program overflowed after 4,096 starts"),
    Fault("wheel", "wheel nuts of one batch may crack", "a wheel can come off", "twenty new nuts and a check of the thread", "who was overtaken by {victim.his} own wheel", "[I thought: there goes somebody's wheel|It rolled on for half a mile, very upright]", "the nuts had been hardened for an hour too long"),
    Fault("door", "rear doors may open while driving", "children could fall out", "new locks on both sides", "a mother of three", "[I heard the wind before I saw it, and then I saw my son looking at it|We've taped it shut, with the tape for the removal boxes]", "grease had been left out on one assembly line for eleven days"),
    Fault("exhaust", "cars on the road give off far more nitrogen oxide than on the test bench", "the type approval may be withdrawn", "a new program for the engine control, which costs a little power", "who bought it for its clean papers", "[I paid extra for the green sticker|It ran well, that should have made me think]", "the engine recognised the test by the position of the steering wheel"),
    Fault("heater", "a heating element in the seat may scorch the cover", "burns have been reported", "a new seat mat", "who drove {victim.his} grandmother to church", "[She said it was getting warm, and she's always cold|There's a hole in a good coat]", "a thermostat had been soldered in upside down"),
    Fault("windscreen wiper", "the wipers stop in heavy rain", "the driver cannot see", "a sealed motor", "a courier", "[They work perfectly when it's dry|I drove eleven kilometres with my head out of the window]", "water ran down a cable into the motor"),
    Fault("tow bar", "the tow bar can come away from its mounting", "trailers and caravans may break loose", "a reinforced plate", "whose caravan took another road", "[It went left, we went right, there was a certain logic to it|All the holiday crockery]", "the plate had been thinned to save 600 grams"),
)  # fmt: skip


@dataclass(frozen=True)
class Road:
    head: str
    news: str
    why: str
    official: str
    who: str
    word: str
    detail: str
    then_head: str
    then: str
    then_who: str
    then_word: str
    end_head: str
    end: str


ROADS: tuple[Road, ...] = (
    Road("Motorway bridge near {city.name} closed at once", "the motorway bridge near {city.name} has been closed to all traffic", "Inspectors found a crack as long as a forearm in the main girder", "[I would rather explain a queue than a collapse|Concrete does not send letters, it cracks]", "a lorry driver", "[An hour and a half for eleven kilometres, I've learned the words of every song|The detour goes past my mother's, so she's happy]", "Some {n},000 vehicles a day used it.", "Detour chokes villages around {city.name}", "Villages on the detour count a lorry every nine seconds", "who lives on the high street", "[The plates walk along the shelf|My bedroom has gone over to diesel]", "Bridge near {city.name} to be blown up", "The bridge can't be saved and will be blown up, so that a new one can be built within four years"),
    Road("{city.name} cuts city speed limit to 30", "{city.name} will cut the speed limit to 30 kilometres an hour on nearly all its streets", "Three children were run over in one year on the way to school", "[At 30 you stop in front of the ball, at 50 you stop behind the child|The journey across town gets two minutes longer, I have driven it]", "a taxi driver", "[I wish I ever got to 30|My passengers pay by the minute and they'll love me]", "Main roads with bus lanes stay at 50.", "Speed limit: {city.name} collects fines of a year in a week", "Cameras in {city.name} caught {heaps} drivers above the new limit within a week", "who was caught twice", "[I looked at the speedometer so hard that I missed the camera|I've paid for a bench, I want my name on it]", "30 in {city.name}: fewer accidents, same buses", "Accidents with injuries fell by {pct}% in the first months, and buses kept to their timetable"),
    Road("Toll for {region}: tourists to pay for the coast road", "drivers from outside will have to pay {fee} to use the coast road of {region}", "On summer Sundays, ambulances can't get through", "[A road isn't an all-you-can-eat buffet|Take the bus, it has a sea view and nobody has to brake]", "who has a beach bar", "[Half of my guests will turn round at the barrier, and the other half will be cross|I'm for it, I would like to get to my own bar]", "Residents and nurses drive for nothing.", "Toll in {region}: satnavs send drivers through the vineyards", "Drivers who want to save the toll have been sent by their telephones along vineyard tracks", "a wine grower", "[They ask me the way with a grape in the wing mirror|One was stuck between two rows until the harvest, nearly]", "Coast road of {region} empty for the first time", "On the first Sunday with a toll, a third fewer cars came, and buses were full"),
    Road("New tunnel under {city.name} opens eleven years late", "the road tunnel under {city.name} has opened, eleven years late and at three times its price", "Water, two bankruptcies and a Roman bath had held it up", "[I was a young man when we began|It's dry, it's lit, and I'll never build another]", "who was first through", "[Four minutes, I'd have liked it to last longer|I slept in the car so that nobody would get in front of me]", "The tunnel is {few} kilometres long.", "Fire alarm shuts {city.name} tunnel on third day", "The new tunnel had to be cleared, since a sausage stall at the entrance had set off its smoke alarm", "who sells the sausages", "[They're well done, I admit it|Eleven engines for six sausages]", "Where the traffic went: {city.name} takes back its riverside", "With traffic in the tunnel, the riverside has been closed to cars, and trees are being planted"),
    Road("Bypass for {city.name} gets the go-ahead after {n} years", "the bypass for {city.name} may be built, a court has decided, {n} years after it was first drawn", "The high street carries {heaps} lorries a day", "[My grandfather signed the first petition|We don't want fewer visitors, we want fewer who don't stop]", "who has a hardware shop", "[On the day it opens I'll clean my windows, and then wait for customers|They shake the screws out of the drawers]", "It crosses a meadow where corncrakes breed.", "Bypass at {city.name}: activists move into trees", "About {n} people have built tree houses on the route of the bypass", "who lives in an ash tree", "[The view is better than from the town hall|It rains through, but so does the environmental report]", "Compromise over {city.name} bypass: a lid for the corncrakes", "The road will run below ground for {many} metres, and the activists have come down"),
    Road("Potholes: {city.name} hands out paint", "{city.name} has asked citizens to circle potholes with yellow paint so that crews can find them", "After the frost there are some {heaps} of them", "[We have two vans and a great many holes|It's not a solution, it is a list]", "a cyclist", "[I know each of them by name|One had a duck in it]", "A repair holds for two winters if it is dry and for two weeks if not.", "Pothole painter of {city.name} turns out to be an artist", "Somebody has turned the circles round the potholes of {city.name} into fish, saucers and faces", "an art teacher", "[I did eleven, not the rude ones|They have begun to leave mine until last]", "{city.name} mends {many} potholes in a week", "Four crews worked day and night and filled {many} potholes, the painted ones included"),
    Road("Tram or cars? {city.name} gives a lane back", "{city.name} will turn a lane of its main avenue over to buses and bicycles", "A bus carries as many people as forty cars and stands behind them", "[The street is as wide as it was when it carried horses, so we have to choose|Nobody's taking your car, only its living room]", "a plumber", "[I can't carry a bath on a bicycle|If the others take the bus, there's room for me]", "Deliveries will be allowed until ten in the morning.", "Shops on {city.name} avenue fear for customers", "Shopkeepers have hung black cloths in their windows in protest at the lost lane", "who sells lamps", "[Nobody carries a chandelier on to a bus|It turned out that most of mine come on foot, I counted, I'm ashamed to say]", "Bus lane in {city.name} stays, with bays for vans", "The bus lane stays, and {n} loading bays will be cut into the pavement"),
    Road("Level crossing near {city.name}: barriers down for half of the day", "the barriers of a crossing near {city.name} are down for {few} hours a day, more than ever", "The railway runs more trains, and each needs its margin", "[We'd like a bridge, the railway would like a bridge, and the bridge would like someone to pay|It's the safest crossing we have, nobody can cross it]", "who lives on the far side", "[I've read two novels there since the spring|My pizza comes in two halves, so to speak]", "A bridge would cost {cost}.", "Couple marries at {city.name} crossing", "A couple who met in the queue have been married at the crossing, between two goods trains", "the registrar", "[I had four minutes, and it was enough|The train whistled at “I do”]", "Money for bridge over {city.name} crossing", "The state will pay three-quarters of the {cost} for a bridge"),
    Road("Wild boar fence: {region} motorway most dangerous for animals", "a motorway through {region} has more collisions with animals than any other in {c.name}", "It cuts through the way to their water", "[A boar of a hundred kilos has no indicators|Deer look left, never right]", "a tow-truck driver", "[I can tell by the dent what it was|Twice a week, and always at dusk]", "Last year {many} accidents were reported.", "Green bridge in {region}: camera films first crossing", "A camera on the new green bridge over the motorway has filmed its first user, a hedgehog", "a ranger", "[He took eleven minutes and stopped twice|We'd built it for stags, never mind]", "Fewer collisions on {region} motorway", "Since the fence and the green bridge were finished, collisions with animals are down by {pct}%"),
    Road("Lorry ban at night for {region}", "lorries may no longer cross {region} between ten at night and five in the morning", "On the valley road, sleep is measured in gaps", "[They save forty minutes and cost us the night|Transit isn't a right to my bedroom]", "a haulier", "[My tomatoes don't sleep|I shall need six more drivers, and I can't find one]", "About {heaps} lorries pass on an ordinary night.", "Lorries queue at {region} border until five", "Up to {many} lorries wait for five o'clock on the hard shoulder outside the district", "who drives to {city.name} each week", "[We play cards, the Wislanians cheat|At two minutes to five, all the engines start, it's like a race]", "Goods of {region} go by rail: lorries ride piggyback", "A train for lorries now runs through the valley each night, and the ban will stay"),
    Road("Driving test: two in five fail in {c.name}", "some {pct_fail}% of learners in {c.name} failed their driving test last year, more than ever", "Traffic has become denser, examiners say, and patience thinner", "[They can park and play, but not look|I pass whoever I would let drive my children]", "who failed four times", "[On the fifth I waved at the examiner as at an uncle|I've paid for a small car by now, in lessons]", "The average learner takes {n} lessons.", "Dealers in driving test dates: {c.name} investigates", "Dates for driving tests are bought up by software and resold at a threefold price, the authorities suspect", "a learner in {city.name}", "[I could have a date today, for the price of a bicycle|My test is in November, I'll have forgotten how]", "{c.name} doubles driving examiners", "Retired police officers may examine learners, and waiting times are to be halved by autumn"),
    Road("Roundabout with seven exits confuses {city.name}", "a new roundabout with seven exits has had {n} accidents in its first week in {city.name}", "An old square, a tram and three main roads meet there", "[It works in the simulation|It is quite simple, as long as nobody stops to think]", "who can see it from a kitchen window", "[I've sold coffee to people who gave up|There's a man in a blue van who may be there still]", "Signs as large as a garage door have been put up.", "Roundabout in {city.name}: a policeman dances", "A policeman with white gloves has been put in the middle of the roundabout, and draws a crowd", "the policeman", "[I did ballet until I was twelve|The lorries are the best audience]", "Roundabout in {city.name} loses two exits", "Two of the seven exits will be closed and planted with cherry trees"),
)  # fmt: skip


@dataclass(frozen=True)
class Volt:
    """A story of electric driving in two reports."""

    head: str
    head2: str
    news: str
    figure: str
    expert: str
    who: str
    word: str
    more: str
    then_head: str
    then: str
    then_word: str


VOLTS: tuple[Volt, ...] = (
    Volt("Electric cars pass a third of new registrations in {c.name}", "One new car in three is electric in {c.name}", "some {pct}% of the cars newly registered in {c.name} last month were electric, more than ever", "A year ago it was {pct_less}%.", "[The turning point came with the second-hand ones|It's no longer a conviction, it's a lease]", "who switched in spring", "[I miss the smell, I don't miss the pump|My son asked what that noise was, it was a petrol car]", "Company cars make up more than half.", "Used electric cars hard to sell in {c.name}", "Three-year-old electric cars fetch {pct}% of their price, dealers in {c.name} report", "[They ask for the battery's medical records|I've eleven in the yard, washed every week]"),
    Volt("Lamp posts of {city.name} learn to charge electric cars", "An electric car and no garage: {city.name} plugs in to its lamp posts", "{city.name} is fitting {many} lamp posts with sockets for electric cars", "A night at the post is good for about 150 kilometres.", "[The cable was there all along, we only changed the bulb|Four in ten here park on the street, where else are they to charge?]", "who lives on the third floor", "[I used to lower an extension lead from the kitchen|Now I have a lamp post of my own, in a way]", "The light stays on, people ask that first.", "Cable thieves strike at charging posts in {city.name}", "Thieves have cut {n} charging cables in {city.name} in a week, for the copper", "[It's {few} pounds of copper and a lot of walking to work|They cut mine while I was fetching bread]"),
    Volt("Fast charging in ten minutes: electric car battery passes cold test", "A battery that fills during a coffee", "a research group in {city.name} has charged an electric car battery from ten to 80 per cent in {few} minutes, at minus ten degrees", "Today it takes about half an hour, and longer in frost.", "[The ions used to queue, we've opened a second door|It has done it a thousand times and still does]", "who drives a taxi", "[Give it to me and I'll sell my petrol station card|Half an hour is a fare lost]", "A first factory line is planned within three years.", "Fast-charging battery: {co.name} buys in", "The carmaker {co.name} has bought a fifth of the firm that developed the battery", "[We've looked at forty and taken one|It is a bet, and a cheap one]"),
    Volt("Electric lorries on a test route through {region}", "The quiet lorry: {n} electric heavyweights in {region}", "a first {n} electric lorries have begun to run on a test route through {region}", "Each weighs 40 tonnes and takes on power during the driver's legal break.", "[The break was there anyway, now it does something|They brake downhill and get paid for it]", "who drives one", "[I can hear the radio and my own thoughts|It pulls like a train, at the lights I leave vans behind]", "Charging points for lorries need as much power as a village.", "Electric lorries wait for a cable in {region}", "Two of the four charging parks for lorries will open a year late, because transformers are sold out", "[We have the lorries and the drivers, and a hole in the ground|A transformer takes longer than a child]"),
    Volt("Small electric car for {price_small}: {co.name} shows its cheapest", "{co.name} and the return of the cheap electric car", "{co.name} will sell a small electric car for {price_small} from next year", "It is 3.5 metres long, goes {reach} kilometres and tops out at 130.", "[We left out all that nobody asked for, it took three years|No leather, no screen, four seats and a heater that works]", "who wants one", "[It has winding windows, I could kiss it|It costs what my first car did, in wages]", "Rivals sell nothing below a price half as high again.", "Dealers flooded with orders for {co.name} electric car", "More than {heaps} people have ordered the small car unseen, the carmaker said", "[We had planned for a tenth of that|My server gave up before my salesman did]"),
    Volt("Electric cars and winter: how far they really get", "Range in frost: {n} electric cars in the cold", "a group of {n} electric cars driven until they stopped, at minus twelve degrees in {region}, lost an average of {pct_less}% of their range", "The best lost a tenth, the worst nearly half.", "[Heat is the dear part, the motor hardly notices|Preheat it at the plug and you've won half of it back]", "who drove the one that came last", "[I saw the others go by, wrapped up and waving|We pushed it the last two hundred metres, one gets warm]", "Petrol cars lose range as well; nobody counts it.", "After winter test: carmakers dispute the range", "Three carmakers have complained about the winter test, in which wind and hills were not the same for all", "[The wind blew for everybody, I was there|If you lose, it was the weather, if you win it was the engineers]"),
    Volt("Garages in {c.name} train for high voltage", "The mechanic with the rubber gloves: electric cars in the workshop", "one garage in {few} in {c.name} may work on electric cars, the trade says", "A course takes {few} days and a pair of gloves tested for a thousand volts.", "[The car is simpler, the fear is bigger|No oil, no exhaust, half of my shelf is history]", "a mechanic for thirty years", "[I've never had such clean nails|You can't hear any more what's wrong with it]", "Repairs to batteries may only be made by specialists.", "First workshop that mends batteries opens in {city.name}", "A workshop in {city.name} replaces single cells where others exchange the whole battery", "[It's dentistry: you don't pull all the teeth|Most have one bad cell of 288]"),
    Volt("Power from the car: {city.name} tests electric cars as house batteries", "The car that boils the kettle", "some {n} households in {city.name} draw power in the evening from their electric cars, in a trial", "A full battery would keep a house going for four days.", "[It stands about for 23 hours a day, it might as well work|We asked them to leave 40 per cent in for the way to work]", "who takes part", "[We cooked dinner on the car, the children told everyone|On the first morning I had enough left for the baker's and back, he laughed]", "The supplier pays {fee} a month for it.", "Cars feed {city.name} through a power cut", "During a power cut of three hours, the houses in the trial kept their lights on", "[The whole street came, with their telephones and a cake|We were an island, with a fridge]"),
    Volt("Silent and dangerous? Electric cars in {c.name} must sound", "What should an electric car sound like?", "electric cars in {c.name} must make a sound at walking pace, and carmakers may no longer choose it freely", "Accidents with pedestrians are {pct_less}% more frequent with silent cars.", "[It should sound like a car and not like a spaceship with a cold|One of them played a harp, nobody jumped aside for a harp]", "who is blind", "[I hear with my feet and my nose, and they gave me neither|A kitten, a choir, a washing machine: I have been nearly run over by all three]", "The sound ends at 25 kilometres an hour.", "Composer's car sound chosen for {c.name}", "A jury of blind people has chosen a low, slightly rough sound for all electric cars in {c.name}", "[It sounds like somebody coming, and that's all I want|It won by nine votes to the harp's none]"),
    Volt("Charging: three tariffs, eleven cards, one cable", "Price jungle at the charging post: electric drivers in {c.name} pay up to triple", "the price of charging an electric car in {c.name} varies by a factor of {few}, the consumer association has found", "The same post in {city.name} had {few} prices on one day.", "[Imagine petrol that costs more depending on your wallet|They give it names like flavours of ice cream]", "who carries eleven cards", "[I need the biggest wallet for the smallest car|I paid the price of a dinner, and dinner was a roll]", "Cards are to become unnecessary from next year.", "Charging prices: {c.name} orders one big sign", "Posts for electric cars in {c.name} must show their price on a sign as large as those of petrol stations", "[A number, a unit, a lamp above it, why did that take ten years?|I'd like to see it from the road]"),
    Volt("Electric car sharing in villages of {region} works", "One electric car, eleven households: a village in {region}", "{few} villages in {region} share {n} electric cars, and families have sold their second car", "Each is on the road {few} hours a day; a private car manages one.", "[In the city it's a fashion, in the village it's a neighbour with a key|The diary hangs at the baker's, that is our app]", "who has sold the family's second car", "[I thought we'd quarrel about it, we quarrel about the crumbs|I know now when I really need a car: on Thursdays]", "The villages pay a third of the cost.", "Car sharing: {region} village buys a bus", "The villages have bought an electric minibus, which pensioners drive in turns", "[I'm eighty and have a clean licence and a captain's cap|They say where they want to go, I go via the bakery]"),
    Volt("Old batteries of electric cars light a stadium in {city.name}", "A second life for electric car batteries in {city.name}", "some {n}0 old batteries from electric cars now store power for a stadium in {city.name}", "In the car they had lost a quarter of their strength.", "[Too tired to drive and fit enough to light a match|They retire into floodlights]", "the groundsman", "[Grass doesn't care where the light comes from|There's a hum below the stand, the away fans think it is us]", "After ten years they will be melted down.", "Recycling plant for car batteries planned near {city.name}", "A plant near {city.name} is to win back {pct_high}% of the metals from old car batteries", "[The mine of the future is a car park|We get more lithium from a tonne of batteries than from a mountain]"),
)  # fmt: skip


@dataclass(frozen=True)
class Oldtimer:
    head: str
    head2: str
    news: str
    what: str
    who: str
    quote: str
    expert: str
    detail: str
    end: str


OLDTIMERS: tuple[Oldtimer, ...] = (
    Oldtimer("Roadster found under hay near {city.name} after {n} years", "Barn find: a classic car, a hen and {n} years of dust", "a roadster of the thirties has been found under hay in a barn near {city.name}, where it had stood for {n} years", "One of {few} built, it was thought to have been melted down in the war.", "whose barn it was", "[I used to play pilot in it, nobody told me what it was|The hen has laid in it for years, she didn't want to move]", "[Don't wash it, whatever you do don't wash it|The dust is worth as much as the engine]", "The engine turned over on the second try.", "It will be shown as it was found, with the hen's feathers"),
    Oldtimer("Retired postman drives 1961 van round the world", "{n},000 kilometres in a post van", "a retired postman from {city.name} has come home after {n},000 kilometres in a post van of 1961", "Its top speed is 72 kilometres an hour, downhill.", "the postman", "[At that speed you meet people|I delivered one letter in every country, by hand]", "[A vehicle without electronics can be mended with a belt and a boiled egg, and he used both|It's worth little, and it is priceless]", "Four clutches were used up.", "The van goes to the postal museum, but only in winter"),
    Oldtimer("Classic car prices fall by {pct_less}%", "The dream cars of the fathers nobody wants", "prices of classic cars have fallen by {pct_less}% within a year, an index kept in {city.name} shows", "Buyers who were young with them are getting old.", "who deals in them", "[They come with the widow and leave with the taxi|The young want what stood in their poster, and it has a spoiler]", "[The eighties go up, the fifties come down, it's like hemlines|Nobody can drive them any more, three pedals and no map]", "Pre-war limousines lost most.", "An auction next month will show where the floor is"),
    Oldtimer("Tram conductor rebuilds a bus from photographs", "The bus that was made from {many} photographs", "a tram conductor in {city.name} has rebuilt a city bus of 1948 from {many} photographs", "Not one of the originals survives.", "the conductor", "[I had the bell, and built a bus around it|My wife hasn't seen the garage floor for nine years]", "[It's a forgery with love, I'd ride in it any day|He has copied even the dent]", "The seats came from a cinema.", "It'll run on Sundays along the old line"),
    Oldtimer("Vintage rally: {n} cars cross {region} at 40 km/h", "Oil, leather, patience: with old cars through {region}", "some {n} cars built before 1931 have crossed {region} in a rally where the slowest wins a prize as well", "The oldest has a tiller in place of a wheel.", "who took part with a grandson", "[We lost a wheel and found a hotel|He navigates by telephone, I by church towers, we arrived an hour apart, in the same car]", "[They want to be driven, standing kills them|Every stop is a village fête, it's why we are always late]", "Three gave up; one was pulled in by a horse.", "Next year they'll go up the pass"),
    Oldtimer("Electric motors in classic cars: sacrilege or rescue?", "The old lady hums: classic cars go electric in {city.name}", "a workshop in {city.name} fits electric motors to classic cars, and has a waiting list of {n}", "The old engine is greased, boxed and given back.", "who runs it", "[It can all be undone, we don't drill one hole|They were bought for the shape, and the shape doesn't burn oil]", "[A clock with a battery tells the time too|It's a stuffed tiger, in my view]", "A conversion costs as much as a new small car.", "A club is to vote on whether they may join in"),
    Oldtimer("Stolen coupé comes home after {n} years", "Number plates in the river: a coupé and {n} years", "a coupé stolen in {city.name} {n} years ago has been returned to its owner", "A buyer had noticed that its chassis number was stamped by hand.", "the owner", "[My comb was still in the door|I'd had hair then]", "[Somebody has cared for it well, I'd like to thank the thief|It's worth forty times what it was]", "The insurer, which paid at the time, waives its claim for a drive.", "It goes to a granddaughter, with a steering lock"),
    Oldtimer("School builds a car from 1903, from scratch", "Pupils of {city.name} cast, forge and drive", "pupils in {city.name} have built a motor car of 1903 from drawings, down to the screws", "It took {few} years and three maths teachers.", "who is sixteen and made the crankshaft", "[It's the first homework I ever took for a ride|We know why people had moustaches: against the oil]", "[The tolerance is better than the original's, do not tell anyone|It's the best physics lesson in the country]", "It runs at 28 kilometres an hour and has no roof.", "A motorcycle is next"),
    Oldtimer("Last mechanic for {few} forgotten makes", "He knows where the oil goes: the last mechanic of his kind", "a mechanic of {age} in {city.name} is the last who can set the carburettors of {few} forgotten makes", "People bring their cars to him from three countries.", "who has no apprentice", "[You listen with a screwdriver at your teeth|I've written it down, but you can't write down a smell]", "[When he stops, they all stop|He's a library with oily hands]", "He takes no more than two cars a week.", "Two young women have asked to learn from him, and he has bought a third chair"),
    Oldtimer("Camper vans of the seventies dearer than new ones", "A roof, a cooker, a cult: the camper van", "camper vans of the seventies cost more in {c.name} than new ones, dealers say", "A good one is worth as much as a flat was in those days.", "who has lived in one since May", "[It leaks, it smells, I've never been so happy|You're overtaken by bicycles, they greet you]", "[Rust is the true owner of these cars|You buy the idea, the van comes with it]", "Thieves take whole ones, with the sleeping bags.", "A maker plans to build it again, with a battery"),
)  # fmt: skip
