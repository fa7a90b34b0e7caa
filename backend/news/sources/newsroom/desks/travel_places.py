# ruff: noqa: E501 (prose reads better unbroken)
"""The travel desk on where to go: cities, islands and hotels, and places that have too many guests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE
from backend.news.sources.newsroom.world import Country, Money

T = TypeVar("T")

_SIGHTS = (
    ("a museum of locks", "the one room that nobody has managed to open"), ("a covered market from the age of iron", "the fishmonger who sings his prices"), ("a cathedral with one tower", "the reason, a wager, told by the sexton"), ("a bath house with a glass dome", "the cold pool, in which silence is the rule"),
    ("an opera house the size of a barn", "the rehearsals, which are open and free"), ("a botanical garden on a roof", "the carnivorous plants, fed at four"), ("a fortress that was never attacked", "the view from the wall towards nobody"), ("a street of puppet makers", "the workshop where a wolf is being strung"),
    ("a prison turned into a library", "the reading cells, with a lamp and a bolt on the inside"), ("a museum of failed inventions", "the umbrella for two strangers"), ("an observatory on a tram line", "Saturn, on clear Thursdays"), ("a palace that burned twice", "the charred staircase, left as it was"),
    ("a synagogue painted by a sign writer", "the lions, which look like the painter's dog"), ("a harbour crane that one may climb", "the driver's cabin, with his radio still tuned"), ("a gallery in a brewery", "the portraits of the brewers' horses"), ("a bridge with houses on it", "the hatter at number nine"),
    ("a clock museum in which no two agree", "noon, which lasts for eleven minutes"), ("an arcade with a bookseller for each century", "the bench for people who cannot decide"), ("a tower with a keeper who blows a horn", "the last note, which breaks off on purpose"), ("a museum of salt", "the chandelier that must not be dusted with a wet cloth"),
)  # fmt: skip
_EATS = (
    ("dumplings in broth", "a cellar without a sign, two doors past the pharmacy"), ("fried anchovies in a paper cone", "a hatch by the ferry steps"), ("veal tongue with green sauce", "a tavern where one shares the table"), ("buckwheat pancakes", "a former tram shelter"), ("lamb with quinces", "a courtyard with nine tables and a fig tree"), ("smoked eel on black bread", "a stall that closes when the eel is gone"),
    ("poppy-seed cake", "a café in which nobody has ever been hurried"), ("noodles pulled by hand", "a shop window steamed up from the inside"), ("tripe soup", "a counter that opens at five in the morning for porters and dancers"), ("chickpea flatbread", "a bakery whose oven has not gone out since the war"), ("pickled herring", "a bar with newspapers on sticks"), ("rice with saffron and hare", "a dining room over a chandler's"),
    ("goat's cheese with thyme honey", "a wine merchant's back room"), ("roast chestnuts and new wine", "a cart on the castle steps"), ("fish stew for two", "a boathouse with a stove"), ("almond soup", "a convent with a turntable in the wall"),
)  # fmt: skip
_WALKS = (
    "along the old rope walk to the lock", "up three hundred and eleven steps to the chapel of the sailmakers", "through the allotments, where people give away courgettes", "on top of the city wall, clockwise, as the guards did", "under the plane trees of the parade ground to the swimming place", "across the railway footbridge at the hour when the lamps come on", "through the quarter of the dyers, where the gutters have kept the colours", "by the canal to a pub with a rowing boat for a garden",
    "over the hill of the dead, which is where lovers go", "from fountain to fountain, with a cup", "past the gasworks to the heron pond", "down the street of stairs, behind a man with a piano, if one is lucky", "round the basin of the old port, counting cats", "through the university garden when the lectures end", "along the tram line to the last stop, and back for the price of a ticket", "by the backs of the houses, where the town hangs its shirts",
)  # fmt: skip
_TRIPS = (
    "a monastery where the bread is baked for whoever comes", "a beach that exists at low tide only", "the vineyards, by a train with wooden seats", "an abandoned mine with a brass band in it on Sundays", "a village in which every door is blue, and nobody says why", "hot springs in a quarry", "a ruined abbey, with sheep for a choir", "a waterfall that one can walk behind", "a salt marsh and its spoonbills", "a castle whose owner shows you round in slippers", "a lake with a ferry on a rope", "a forest of cork oaks and a shop for hats made of it",
    "a lighthouse, with lunch at the keeper's", "a potters' village, where seconds cost a coin",
)  # fmt: skip
_BEDS = (
    "a merchant's house with creaking stairs and eleven rooms", "a former telephone exchange, with a bed in the switchroom", "a pension run by two sisters who do not agree", "a hotel by the station where each room is named after a train", "a mill, with the wheel for a lullaby", "a seminary with narrow beds and a grand breakfast", "a barge below the cathedral", "the old customs house, where the scales weigh luggage for fun", "a printer's shop, with wallpaper of misprints", "a villa behind the zoo; ask for the side with the gibbons", "a theatre hotel, where the porter was once a Hamlet", "a school, with blackboards in the rooms",
)  # fmt: skip
_MOODS = (
    "a town that lets its guests find things out for themselves", "too large to be quaint and too small to be grand, which suits it", "best on a weekday, when it is busy with itself", "a place that has been rich, poor and rich again, and has kept the furniture", "a city of steps; pack shoes and patience", "cheaper than it looks and older than it says", "a port, so that nobody stares at strangers", "a student town, with the prices and the noise", "a city that goes to bed early and gets up for the market", "where people argue in the street and make up at the counter", "shut on Mondays and worth the Tuesday", "all brick, rain and wit",
)  # fmt: skip


@dataclass(frozen=True)
class Break:
    c: Country
    city: City
    sight: str
    gem: str
    sight2: str
    gem2: str
    eat: str
    place: str
    eat2: str
    place2: str
    walk: str
    walk2: str
    trip: str
    bed: str
    mood: str
    price: Money
    lunch: Money
    guide: Person
    local: Person
    hours: int
    minutes: int


def _other(scene: Scene, tag: str, table: tuple[T, ...], taken: T) -> T:
    """The next of a table that is dealt out, other than the one this story has."""
    while True:
        row = scene.deal(tag, table)
        if row != taken:
            return row


def _break(scene: Scene) -> Break:
    cities = [city for country in scene.world.countries for city in country.cities]
    city = scene.fresh("city break", cities)
    c = next(country for country in scene.world.countries if country.name == city.country)
    (sight, gem), (eat, place) = scene.deal("sight", _SIGHTS), scene.deal("eat", _EATS)
    sight2, gem2 = _other(scene, "sight", _SIGHTS, (sight, gem))
    eat2, place2 = _other(scene, "eat", _EATS, (eat, place))
    walk = scene.deal("walk", _WALKS)
    return Break(
        c, city, sight, gem, sight2, gem2, eat, place, eat2, place2, walk, _other(scene, "walk", _WALKS, walk), scene.deal("trip", _TRIPS), scene.deal("bed", _BEDS), scene.deal("mood", _MOODS), scene.money(60, 190, c.currency), scene.money(8, 26, c.currency),
        scene.person(c), scene.person(c), scene.pick((36, 48, 72)), scene.between(15, 70),
    )  # fmt: skip


CITY_BREAK = Beat(
    "city breaks",
    _break,
    (
        Stage(
            titles=("City break: {hours} hours in {city.name}, {c.name}", "{city.name}: a weekend of {eat} and {sight}", "Why {city.name} is {c.name}'s best city break", "A city break in {city.name}: where to eat, walk and sleep", "{hours} hours in {city.name}, with {eat} for lunch", "{city.name} on foot: a city guide"),
            abstracts=("{sight:cap}, {eat} and a walk {walk}: our guide to {city.name}.", "{city.name} is {mood}.", "For a city break in {c.name}: {sight}, {sight2} and a bed in {bed}.", "Where to eat {eat}, what to see and when to leave {city.name} alone."),
            leads=("{city.name} is {mood}. [A stay of {hours} hours is enough for a first look, and not enough for anything else|In {hours} hours one sees the outline; the colouring in takes longer|We had {hours} hours and could have used more].", "“[You have come on the right day, it is market day|People pass through; they ought to stop|I was born here and I still get lost, it is the best way],” says {local.name}, who [keeps a kiosk|mends umbrellas|drives a tram] in {city.name}. One believes it after a morning there. {city.name} is {mood}.", "Few visitors to {c.name} think of {city.name} first. They should: it has {sight}, it has {eat}, and it is {mood}.", "Arrive by train, leave the luggage and walk {walk}. That is the shortest introduction to {city.name}, which is {mood}.", "Some cities show off. {city.name} is {mood}, and keeps {sight} for those who ask.", "There are good reasons to spend {hours} hours in {city.name}, and most of them can be eaten: {eat}, {eat2}. Besides, it is {mood}.", "The train to {city.name} was late, and [the first thing anyone said to us|what the porter said] was: “[You have missed nothing, we were waiting|Have you eaten?|Leave the case here, I will look after it].” It is {mood}.", "It was raining in {city.name}, and it did not matter. [Between {sight} and {place}, one can spend a weekend there without an umbrella|For the eyes there is {sight}, for the rest {eat}, and people lend you their umbrellas]."),
            then=(say("Begin with {sight}. Everyone looks at the whole; look for {gem}.", "[The first morning belongs to|Start the day with|One begins, like everyone, with] {sight}. Do not miss {gem}.", "What one has to see is {sight}, and in it {gem}.", "There is {sight}, and the thing to ask for is {gem}.", "Go first to {sight}, and in it straight to {gem}.", "Of the sights, {sight} is the oddest. [Its treasure is|Its best part is] {gem}.", "Guidebooks send you to {sight}. They forget {gem}.", "Nobody leaves without having seen {sight}; few have seen {gem}."),
                  say("For lunch, {eat}: {place} does it [best|for {lunch}|as it was done before there were guides].", "The dish of the town is {eat}. Look for {place}[, and pay {lunch} or so|].", "Eat {eat}; the address is {place}. {guide.name}, who [leads walks here|wrote the town's first guide], says: “[If they ask how many, say two|Do not photograph it, it gets cold|The recipe is a secret that everybody knows].”")),
            loose=(say("In the afternoon walk {walk}.", "Towards evening, go {walk}. It takes {minutes} minutes, [more with stops|unless one meets somebody].", "The walk that locals take is {walk}."),
                   say("If it rains, there is {sight2}, where one should ask for {gem2}.", "The second day might start with {sight2}. Its pride is {gem2}.", "Less known is {sight2}[, a quarter of an hour from the centre|]: go for {gem2}."),
                   say("At night it is {eat2}, from {place2}.", "Supper: {eat2}. The address is {place2}[, and one should book|]." , "Those who live here go to {place2} for {eat2}[, and go early|]."),
                   say("With another day one can see {trip}, {minutes} minutes away by [bus|train|bicycle].", "Half a day is enough for {trip}. [Buses leave from the station|Hire a bicycle], and allow {minutes} minutes each way.", "Out of town lies {trip}."),
                   say("A good bed is to be had in {bed}, from {price}.", "There are grander addresses than {bed}, and none [that we liked better|with kinder porters]: {price} for two.", "Stay in {bed}. [It is not the cheapest|Ask for a room at the top]; expect to pay {price}.", "Our bed was in {bed}, for {price}.", "For the night there is {bed}, from {price} a room.", "One sleeps well in {bed}. Two pay {price}.", "Where to sleep: {bed}, about {price} for two.", "We stayed in {bed}. A double room costs {price}[, with breakfast|]."), say("Before leaving, walk {walk2}.", "There remains the walk {walk2}; [keep it for the last morning|it is best at dusk].")),
            close=(say("Trains from {c.capital} run [hourly|every two hours].", "Best months: [May and September|April, before the heat|October, for the light].", "The tourist office lends out [bicycles|umbrellas|a map drawn by schoolchildren].", chance=0.45),),
            weight=0.17, covered=0.04,
        ),
    ),
    share=0.9,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Isle:
    """An island: its size and quirks, what people do there, and what they say."""

    name: str
    lead: str
    quirk: str
    islander: str
    who: str
    do: str
    eat: str
    trouble: str


_ISLES: tuple[Isle, ...] = (
    Isle("Scarra", "has {n} inhabitants, one policeman and no crime since a bicycle was borrowed", "Letters are addressed by the colour of the door", "If you want to be alone here, you have to say so at the shop", "the postwoman", "One walks around it in {hours} hours, with the sea on the same side all the time", "Crab, cracked with a stone from the beach", "The school will close if the teacher marries"),
    Isle("Hollow Island", "is {n} hectares of heather around a lake that nobody has found the bottom of", "Cars are not forbidden, there is merely no road", "The ferry brings you and the fog keeps you", "who lets four rooms above the pub", "One rows to the middle of the lake and says nothing", "Mutton that has eaten seaweed", "Fresh water runs short in August"),
    Isle("Santa Perpetua", "has a volcano, a brass band and {n} goats, all of them a little out of tune", "At noon the church bell and the ferry's horn agree on the time", "We had tourists before, they were called pirates", "the bandmaster", "One climbs to the rim at night and comes down with grey shoes", "Capers, pickled by the jar and sold on trust", "A hotel with four hundred beds is planned on the only beach"),
    Isle("Lundholm", "freezes in for {weeks} weeks each winter and then has a road, over the ice", "In spring the road is declared closed by the man who falls in", "We marry in February, when people can drive over", "the man in question", "One skates to the next island for coffee", "Perch, smoked over juniper", "The ice comes later every year"),
    Isle("Isla Callada", "asks its guests to be quiet from two until five, and means it", "Even the cocks are shut in", "You hear your own blood, it is a bit like traffic", "a retired drummer", "One lies in a cove and listens to shrimps", "Black rice, at six, loudly", "A helicopter firm has applied for a licence"),
    Isle("Pulau Seribu Angin", "has a thousand winds by name and {n} people by number", "A child knows thirty of the winds before it can read", "This one is called the uncle, he comes uninvited", "a boat builder", "One learns to sail with a mat and a paddle", "Flying fish, which jump aboard", "Reefs on the eastern side have bleached"),
    Isle("the Wether Rocks", "are three islands at low tide and nine at high", "Two farms can reach each other for four hours a day", "Dinner invitations here come with a tide table", "a sheep farmer", "One crosses by the sands with a guide, barefoot", "Cockles, raked up on the way", "Two visitors had to be fetched by helicopter last year"),
    Isle("Vitr", "sold its only car when the garage shut, and has not missed it", "The fire brigade is a handcart with a bell", "We timed it, we are faster than the mainland", "the fire chief, who also bakes", "One borrows a bicycle and leaves it where one stops", "Rye bread baked in warm sand", "Young families cannot find a house"),
    Isle("Ilha das Cartas", "lives on postcards: each of its {n} letter boxes belongs to somebody far away", "For a small fee, an islander writes to you once a month", "I have a lady in the capital to whom I describe the weather", "a fisherman", "One reads one's post on the harbour wall", "Limpets, grilled with butter", "The postal service would like to cut deliveries"),
    Isle("Kalina", "was a prison, then a barracks, and since the spring is a park with one inn", "The cells are let, with the key on the inside", "My father was locked up here, and I make the beds", "the innkeeper", "One walks the wall, on which the guards grew figs", "Figs, naturally", "Descendants of prisoners want a memorial before a terrace"),
    Isle("Tern Island", "belongs to the birds from April to July, and to a warden with a hat", "Visitors carry a stick above their heads, for the terns to peck at", "They know me and they peck me anyway", "the warden", "One watches from a hut with a slit, in turns of twenty minutes", "Sandwiches, quickly", "Rats were found on a wreck, and traps are out"),
    Isle("Minamo", "is full of cats, foxes or poets, according to the season", "A festival celebrates the day on which the well did not run dry", "The poets leave the most rubbish", "the mayor's clerk", "One bathes in a spring that comes up through the beach", "Pickled plums and rice cooked over pine", "Every third house is empty, and the roofs are going"),
)  # fmt: skip


@dataclass(frozen=True)
class Trip:
    i: Isle
    c: Country
    port: City
    n: int
    hours: int
    weeks: int
    fare: Money
    price: Money
    islander: Person
    visitor: Person
    mayor: Person
    beds: int
    minutes: int


_ISLE_LANDS = {
    "Scarra": "Caldria",
    "Hollow Island": "Caldria",
    "Santa Perpetua": "Montavia",
    "Lundholm": "Skarland",
    "Isla Callada": "Castara",
    "Pulau Seribu Angin": "Pelinang",
    "the Wether Rocks": "Caldria",
    "Vitr": "Skarland",
    "Ilha das Cartas": "Belmara",
    "Kalina": "Lorvenia",
    "Tern Island": "Ontara",
    "Minamo": "Naruma",
}


def _trip(scene: Scene) -> Trip:
    i = scene.fresh("isle", _ISLES)
    c = next(country for country in scene.world.countries if country.name == _ISLE_LANDS[i.name])
    sizes = scene.world.kept(f"isle {i.name}", lambda: (scene.between(41, 390), scene.between(3, 7), scene.between(9, 14), scene.between(25, 110), scene.pick(c.cities[1:])))  # fmt: skip
    return Trip(i, c, sizes[4], sizes[0], sizes[1], sizes[2], scene.money(9, 48, c.currency), scene.money(50, 160, c.currency), scene.person(c, she=True if "woman" in i.who else False if "man" in i.who else None), scene.person(None), scene.person(c, "the island's mayor"), scene.between(14, 88), sizes[3])  # fmt: skip


ISLAND = Beat(
    "islands",
    _trip,
    (
        Stage(
            titles=("Island of the week: {i.name}, {c.name}", "{i.name:cap}: the island where “{i.islander}”", "On {i.name}, an island off {port.name}", "To {i.name} by ferry: {hours} hours on an island without hurry", "An island stay on {i.name}: {i.eat:lower}", "{i.name:cap}, {beds} beds and the sea: an island in {c.name}"),
            abstracts=("{i.quirk}.", "“{i.islander},” says {islander.name}, {i.who}.", "{i.do}. A visit to {i.name}, {minutes} minutes by ferry from {port.name}.", "{i.trouble}. For now, {i.name} is as it was."),
            leads=("{i.name:cap} {i.lead}. The ferry from {port.name} takes {minutes} minutes.", "It takes {minutes} minutes by ferry from {port.name} to leave {c.name} behind. {i.name:cap} {i.lead}.", "Ask {islander.name}, {i.who}, what there is to know, and you will be told this: {i.name} {i.lead}."),
            then=(say("{i.quirk}. {i.do}.", "{i.do}. It is that sort of place: {i.quirk:lower}."),),
            loose=(say("What one eats: {i.eat:lower}.", "On the table there is [always the same, and it's good|no choice]. {i.eat}."), say("“{i.islander},” {islander.name}, {i.who}, [likes to say|told us]." , "Everyone on {i.name} knows {islander.name}, {i.who}. “[Stay until the weather changes, then you've been here|We have time, we make it ourselves],” {islander.he} says."), say("Not all is well. {i.trouble}.", "{i.trouble}. {mayor.last} [is worried|hopes for an answer from the mainland]. “[You can love a place to death|We want guests, we don't want numbers],” {mayor.he} says."),
                   say("{visitor.name}, who [has come for nineteen summers|meant to stay for a night], [reads on the pier|has begun to greet people first]. “[Nothing happens, and you talk about it for days|I came for the birds and stayed for the silence],” {visitor.he} says."), say("There are {beds} beds on the island, from {price}; the ferry costs {fare} return[, and does not sail in a gale|].", "A room costs about {price}, the crossing {fare}. [Bring cash|Bring a torch|Bring a book and leave it there]."), say("Go in [June, for the light|September, when the water is warm|May, before the school holidays].")),
            weight=0.18, covered=0.05,
        ),
    ),
    share=0.6,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Inn:
    """A hotel: what it was, what is good, what is not."""

    was: str
    good: str
    bad: str
    breakfast: str
    host: str
    guest: str


_INNS: tuple[Inn, ...] = (
    Inn("a radio station", "beds in the studios, where it's so quiet that one hears one's watch", "a lift that announces floors in the voice of a long-dead newsreader", "comes at any hour, as on the night shift", "We took out the microphones and left the silence", "I have not slept like that since I was a child"),
    Inn("a biscuit factory", "a smell of butter in the corridors that no cleaning has removed", "bathrooms behind glass, for reasons known to the architect", "is biscuits, and then everything else", "People wake up hungry and don't know why", "My coat still smells of it"),
    Inn("a cavalry barracks", "ceilings at a height for men on horseback", "a bar that is lit like an operating theatre", "is served in the stables, at the mangers", "We found four hundred horseshoes under the floor, and they are the coat hooks", "You feel that you ought to stand up when the porter passes"),
    Inn("a sanatorium", "balconies on which one lies under three blankets and gets better", "doors as wide as a bed, and as loud", "includes a spoonful of something brown", "Nobody here is ill, but they like to be asked", "I booked for two nights and extended, as people used to"),
    Inn("a post office", "a lobby in which the counters sell wine", "rooms no larger than a sorting office for cards", "is brought in a pigeonhole", "Guests send each other letters, on the house", "I got post, for the first time in years"),
    Inn("a convent", "a garden within four walls, where the bees are older residents", "a bell at six that cannot be switched off", "is silent until eight, and one hears people chew", "We have two rules: no shoes upstairs and no telephones down", "I came for the frescoes and stayed for the soup"),
    Inn("a department store", "escalators that run again, slowly, to a pool on the roof", "a perfume hall that gave us both a headache", "is spread over three counters, under signs for haberdashery", "My grandmother sold gloves where you are sitting", "I slept in curtains and fabrics"),
    Inn("a fishing lodge", "a jetty from which to jump, in whatever state", "walls through which one learns a lot about one's neighbours", "is what was caught", "We close when the ice comes and open when I find the key", "There's nothing to do, and I was busy all day"),
    Inn("a bank", "a suite in the vault, with a door of nine tonnes that stays open", "a manager who speaks of experiences", "is guarded by a man in uniform who cuts the ham", "The safest sleep in the city, we say, and people do ask for the combination", "I counted sheep and they added up"),
    Inn("a tea estate", "verandas, and on them the hour before the rain", "hot water, which depends on the mood of a boiler called Victoria", "has eleven teas and one kind of toast", "Guests may pick, they're very slow and very proud", "I know now what a leaf costs"),
    Inn("an observatory", "a dome that opens over the bed", "cold, since one cannot heat the sky", "begins at noon, because nobody has been asleep", "I turn the telescope for those who ask and for those who can't sleep", "We saw the rings, then we saw the bill"),
    Inn("a goods station", "a window through which the night train looks in", "the night train", "is timed to the departures, and the eggs are called like platforms", "We never modernised, and now we are modern", "I waved and somebody waved back"),
    Inn("a school of music", "a piano on every floor, tuned", "a piano on every floor, played", "is accompanied, on Sundays, by a student with a cello", "We ask guests not to practise scales after nine", "There was a bassoon next door; he was good, luckily"),
    Inn("a customs house", "the harbour below the pillow", "gulls, from four", "is landed at seven and gone by nine", "The smugglers' door is now the fire exit", "I have watched ships being unloaded until I wanted to help"),
)  # fmt: skip


@dataclass(frozen=True)
class HotelStay:
    i: Inn
    c: Country
    city: City
    name: str
    rooms: int
    price: Money
    stars: int
    host: Person
    guest: Person
    years: int
    warm: str | None
    cool: str | None
    new: str | None


def _stay(scene: Scene) -> HotelStay:
    i = scene.fresh("inn", _INNS, uses=3)
    c = scene.country(f"inn {i.was}")
    city = scene.pick(c.cities)
    stars = scene.pick((2, 3, 4, 4, 5))
    name = f"{scene.pick(('the Hotel', 'the Grand', 'the Old', 'the Little', 'the'))} {scene.pick(('Aurora', 'Meridian', 'Linden', 'Heron', 'Paragon', 'Lantern', 'Swan', 'Belvedere', 'Signal', 'Quince', 'Halcyon', 'Marquis', 'Sextant', 'Almond Tree'))}"
    return HotelStay(i, c, city, name, scene.between(9, 84), scene.money(85, 420, c.currency), stars, scene.person(c), scene.person(None), scene.between(30, 140), "" if stars >= 4 else None, None if stars >= 4 else "", scene.maybe(0.5, ""))  # fmt: skip


HOTEL = Beat(
    "hotels",
    _stay,
    (
        Stage(
            titles=("Hotel review: {name}, {city.name}", "{name:cap} in {city.name}: a hotel in what was {i.was}", "A night at {name}, {city.name}: {stars} stars from us", "{city.name} hotel turns {i.was} into {rooms} rooms", "{new}New hotel opens in {city.name}, with {rooms} rooms", "{warm}Sleep well in {city.name}: {name} is a hotel to go back to", "{cool}{name:cap}, {city.name}: a hotel that tries too hard"),
            abstracts=("The house was once {i.was}. It has {i.good}, and {i.bad}.", "A double room costs {price}. Our rating: {stars} out of five.", "“{i.host},” says {host.name}, who runs it.", "What {name} in {city.name} does well, and what it does not."),
            leads=("{name:cap} in {city.name} was {i.was} for {years} years, and it is still a little bit one.", "{new}There is a new hotel in {city.name}. {name:cap}, in what used to be {i.was}, has {rooms} rooms and a good deal of self-confidence.", "{host.name} will tell anyone who asks what {name} in {city.name} used to be: {i.was}.", "One does not come to {name} in {city.name} by accident. It was {i.was}, and it has {rooms} rooms now.", "For {years} years nobody would have thought of sleeping in {i.was}. Now there are {rooms} rooms in it, and {name} is the talk of {city.name}."),
            then=(say("The great thing about it: {i.good}. The other thing: {i.bad}.", "To its credit, it has {i.good}. Against it, there is the matter of {i.bad}.", "One remembers {i.good}. One would like to forget {i.bad}."),
                  say("Breakfast {i.breakfast}.", "Breakfast, [for once worth getting up for|about which one could argue|which guests from town also attend], {i.breakfast}.", "As for breakfast, it {i.breakfast}.")),
            loose=(say("{host.name}, who [bought the building at an auction|gave up the law for it|inherited it with a leaking roof], says: “{i.host}.”", "“{i.host},” says {host.name}, the [owner|manager], [over a glass|at the reception, which is a table]."), say("At the next table sat {guest.name}, who [had driven all day|comes every year]. “{i.guest},” {guest.he} said.", "In the guest book {guest.name} has written: “{i.guest}.”"), say("A double room costs {price}[, breakfast included|; single travellers pay two thirds|]. There are {rooms} of them, no two alike.", "Of {rooms} rooms, [the corner ones|those under the roof|those at the back] are best. Prices start at {price}."),
                   say("{city.name} itself is [five minutes away on foot|at the door], [and the river behind the house|with a tram that stops outside|but one hardly notices]."), say("{warm}[Service is kind and quick|The staff remember names], and nobody [wears black|explains the concept].", "{cool}[Service is friendly and elsewhere|The staff are many and the soap is small], and the bill [has a line for air|was longer than the menu].", "{cool}It is [all idea and no hook for a coat|handsome, and it knows it]. [Somebody should hide the scented candles|A reading lamp would be a start]."), say("Rating: {stars} out of five.", "We give it {stars} out of five.", "Our verdict: {stars} out of five[, and a nap|].")),
            weight=0.17, covered=0.04,
        ),
    ),
    share=0.9,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Crowd:
    """A place that has more guests than it likes, and what it does about that."""

    place: str
    step: str
    why: str
    local: str
    who: str
    trade: str
    guest: str
    result: str


_CROWDS: tuple[Crowd, ...] = (
    Crowd("the old town", "charge day visitors {fee} to enter the old town", "On the busiest day, one resident met forty strangers before reaching the baker's", "I know what my front door looks like in nine hundred albums", "a resident of the third generation", "We sell coffee to people, not to principles", "For {fee} I would like to sit down", "a turnstile at each of the four gates"),
    Crowd("the beach", "limit towels on its beach to {n} at a time", "Sand is being carried away between toes, eleven lorries of it a year", "As children we had it to ourselves and one dog", "a lifeguard", "A reserved towel is a towel with a drink", "I got number nine and felt like royalty", "an app that shows free squares"),
    Crowd("the lake", "close the road to its lake at weekends", "Ambulances had needed forty minutes for two kilometres", "The cows came home and could not get in", "a farmer", "No cars, no cake sold, it's simple", "We walked, and it was the best thing about it", "a shuttle bus, and bicycles for hire"),
    Crowd("holiday flats", "ban new holiday flats for {years} years", "In one street there are eleven key boxes and one pram", "I'm the last who takes in parcels", "a tenant of 78", "I pay my mortgage with those weekends", "I wanted to live like a local, but there were none", "inspectors with a list"),
    Crowd("the mountain path", "sell permits for its best-known mountain path", "At the narrow place, people were waiting an hour in clouds", "There was singing in the queue, that was the worst", "a hut warden", "Hunger is the same with or without a permit", "It's the first time that I heard the birds", "{n} permits a day, drawn by lot"),
    Crowd("stag parties", "forbid pub crawls and costumes in its centre after ten", "Last year a bride's horse was left in the opera's cloakroom", "I can sleep through anything except a conga", "who lives above a bar", "A groom drinks for nine", "We came as penguins and left as accountants", "wardens with a whistle and a sense of humour"),
    Crowd("the flower fields", "fence its flower fields and build a tower to see them from", "Whole rows had been trampled for the sake of a photograph", "They lie down in my income", "a grower", "More visitors, fewer flowers, you can't sell that for long", "From up there you see what they meant", "a tower of larch with a slide"),
    Crowd("the film village", "take down the signs to the house from a television series", "An elderly couple had found strangers in their kitchen asking for the heroine", "I told them she had moved", "the owner of the kitchen", "It was a bakery without customers before", "We only wanted to see the stairs", "a copy of the door, in a meadow"),
    Crowd("cruise guests", "let no more than {ships} ships dock in a day", "The smoke of an idle ship equals that of the town's traffic", "At five they blow the horn, and then we have a town again", "a waiter", "Half of the shops live from four hours", "We had ninety minutes, and I spent them in a queue for the toilet", "a lottery for berths"),
    Crowd("suitcases", "forbid rolling suitcases in the lower town between ten and seven", "A sound meter had counted {n} sets of wheels in a night", "I can tell the brand by the rattle", "a light sleeper", "People carry them now, or their husbands do", "We put ours on a handcart, it was rather fun", "porters with rubber tyres"),
    Crowd("winter", "invite guests in the winter and send them away in the summer, by price", "In August there are nine guests to an islander, in January there is the wind", "I would like somebody to talk to when it's dark", "who keeps a pub on the quay", "A twelve-month season with four months of money is still a living", "It was grey, empty and wonderful", "a ferry fare that falls with the temperature"),
)  # fmt: skip


@dataclass(frozen=True)
class Throng:
    m: Crowd
    c: Country
    city: City
    fee: Money
    n: int
    years: int
    ships: int
    mayor: Person
    local: Person
    trader: Person
    guest: Person
    scholar: Person
    guests: str
    people: int
    ayes: int
    noes: int
    drop: int


def _throng(scene: Scene) -> Throng:
    m = scene.fresh("throng", _CROWDS, uses=3)
    c = scene.country(f"throng {m.place}")
    city = scene.pick(c.cities[1:])
    noes = scene.between(7, 18)
    return Throng(m, c, city, scene.money(4, 15, c.currency), scene.near(180, 900), scene.between(3, 8), scene.between(2, 4), scene.person(c, f"the mayor of {city.name}"), scene.person(c, she=False if "bride" in m.local else None), scene.person(c), scene.person(None), scene.person(None), f"{scene.tenth(0.6, 6.2):g} million", scene.near(9_000, 140_000), noes + scene.between(2, 14), noes, scene.between(8, 31))  # fmt: skip


TOURISM = Beat(
    "overtourism",
    _throng,
    (
        Stage(
            titles=("{city.name} votes to {m.step}", "Too many tourists: {city.name} wants to {m.step}", "“{m.local}”: {city.name} turns on its tourists", "{city.name} against the crowds: tourism and its price", "Tourists in {city.name} face new rules"),
            abstracts=("The town of {people} people had {guests} visitors last year. It will {m.step}.", "{m.why}.", "“{m.local},” says {local.name}, {m.who}. “{m.trade},” says a trader.", "The council of {city.name} votes {ayes:fig} to {noes:fig} for a limit on tourism."),
            leads=("{city.name} is to {m.step}, its council decided {on} by {ayes:fig} votes to {noes:fig}.", "The council of {city.name} has had enough of being admired. It voted {on} to {m.step}.", "It is not that {city.name} dislikes its guests. But {on}, by {ayes:fig} votes to {noes:fig}, the council decided to {m.step}.", "There are {people} people in {city.name} and there were {guests} visitors last year. {on:cap} the council drew a conclusion and voted to {m.step}."),
            then=(say("“[We are a town and not a set|We do not dislike guests, we'd like to recognise one|Everything in moderation, also hospitality],” said {mayor.last}.", "{mayor.last} called the step “[overdue and mild|an experiment, and if it fails we shall say so]”."), say("“{m.local},” said {local.name}, {m.who}.", "{local.name}, {m.who}, had come to hear the debate. “{m.local},” {local.he} said.")),
            loose=(say("Traders are divided. “{m.trade},” said {trader.name}, who [sells ice cream|has a shop on the square].", "“{m.trade},” said {trader.name}, [an innkeeper|a shopkeeper], who [spoke against it|had hoped for something softer]."), say("{m.why}."), say("{guest.name}, a visitor, [was surprised|took it well]. “{m.guest},” {guest.he} said."), say("{scholar.name}, who studies tourism, [doubts that it will help|has seen it work elsewhere]. “[Limits move people, they seldom stop them|What helps is to be a little bit inconvenient],” {scholar.he} said.", "“[Every town finds its own turnstile|A place is full when those who live there say so|The guests who come back are the ones who were sent away politely],” said {scholar.name}, who [advises resorts|has counted visitors in nine countries]."), say("About {guests} people visited {city.name} last year, [twice as many as ten years ago|most of them for less than a day].", "Tourism brings [a third|nearly half] of the income of {city.name}, a town of {people}.")),
            weight=0.3, covered=0.15,
        ),
        Stage(
            titles=("{city.name} tests new rules for tourists: {m.result}", "First weekend with fewer tourists in {city.name}", "{m.result:cap}: how {city.name} now counts its tourists"),
            abstracts=("There were {drop}% fewer visitors. “{m.guest},” said one of them.", "The town has set up {m.result}. Traders are waiting for the till."),
            leads=("The first days under new rules for visitors brought {drop}% fewer people to {city.name}, and {m.result}.", "{city.name} has begun to {m.step}. What one sees of it so far is {m.result}."),
            then=(say("“{m.guest},” said {guest.name}, a visitor.", "{guest.name}, on a first visit, [had read about it|had been warned]. “{m.guest},” {guest.he} said."),),
            loose=(say("{mayor.last} [wants to wait for the summer|was cautious]. “[One weekend is weather|Count again in August],” {mayor.he} said."), say("“{m.trade},” said {trader.name}, a trader, whose takings [fell|hardly changed]."), say("The council voted for the step {t0:on}, {ayes:fig} to {noes:fig}."), say("{local.name}, {m.who}, [slept in|heard a blackbird]. “{m.local},” {local.he} had said before the vote."), say("Neighbouring towns [fear that the crowds will come to them|have asked for the plans].")),
            after=(3, 8), weight=0.22, covered=0.06, chance=0.7,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip
