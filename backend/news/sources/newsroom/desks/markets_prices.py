# ruff: noqa: E501 (prose reads better unbroken)
"""How the markets desk covers prices: what raw materials cost, and what money is worth abroad."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.markets_shares import HOUSES, TRADING
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import DOLLAR, City
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Good:
    """A raw material: its price range in dollars per `unit`, causes, who buys it, and who is glad when it is dear."""

    name: str
    unit: str
    price: tuple[float, float]
    short: tuple[str, str]
    glut: tuple[str, str]
    buyer: str
    buyer_says: str
    seller: str
    seller_says: str
    effect: str


_GOODS: tuple[Good, ...] = (
    Good("coffee", "pound", (2.4, 4.8), ("frost in the hills of {origin.name}", "a strike in the ports of {origin.name}"), ("a record harvest in {origin.name}", "rain at the right time"), "who roasts coffee", "I print new price labels every Monday now", "a coffee grower", "For once the tree pays for its own fertiliser", "A cup in a café follows the market by about {weeks} months."),
    Good("cocoa", "tonne", (5_200, 11_000), ("swollen shoot disease in {origin.name}", "drought in {origin.name}"), ("better trees in {origin.name}", "chocolate makers that use less"), "a chocolatier", "I make the bars thinner and look people in the eye", "a cocoa farmer", "We pruned for nine years, and now somebody calls it luck", "Chocolate bars have shrunk by {small} grams within a year."),
    Good("copper", "tonne", (8_400, 12_600), ("a mine collapse in {origin.name}", "orders from makers of power cables"), ("weak building in {other.name}", "rising stocks in warehouses"), "who makes cables", "We've started to sleep next to the spools", "a mine manager", "They laughed when we kept the old shaft open", "Thieves have taken {weeks} kilometres of railway wire in {c.name} this year."),
    Good("wheat", "tonne", (190, 340), ("a heatwave in {origin.name}", "an export ban in {origin.name}"), ("a bumper crop in {origin.name}", "the end of an export ban"), "a miller", "I can change the flour; I can't change the loaf", "a wheat farmer", "It's the first year in {weeks} that I've looked at the market for pleasure", "Flour makes up a tenth of the price of bread; the rest is wages, rent and heat."),
    Good("oil", "barrel", (58, 96), ("a pipeline leak in {origin.name}", "tankers turned back off {origin.name}"), ("more supply from {origin.name}", "a mild winter"), "who runs a haulage firm", "We fill up on Tuesdays, when it's a cent less", "who owns three small wells", "My father drilled it in the week I was born, and it has fed me badly until now", "Petrol in {c.name} may follow within {small} days."),
    Good("natural gas", "megawatt hour", (24, 58), ("a cold spell", "an outage at a terminal in {origin.name}"), ("full storage", "strong wind power"), "who runs a glassworks", "A furnace can't be turned off like a lamp", "a gas trader", "Weather is my boss and my bonus", "Storage in {c.name} is {pct}% full."),
    Good("gold", "ounce", (2_300, 4_200), ("worries about currencies", "buying by central banks"), ("higher interest rates", "a calmer political mood"), "a goldsmith", "People bring me their grandmothers' rings and ask by the gram", "a coin dealer", "There was a queue, and nobody was smiling", "Jewellers in {c.name} have raised prices by {small}%."),
    Good("silver", "ounce", (26, 48), ("demand from makers of solar panels", "a short squeeze"), ("weak orders for solar panels", "scrap coming to market"), "who makes solar panels", "We use less per panel each year and pay the same", "a silversmith", "Spoons are being weighed that were meant to be inherited", "Solar panels take {pct}% of all silver."),
    Good("lithium", "tonne", (9_000, 17_000), ("a licence withdrawn in {origin.name}", "strong sales of electric cars"), ("new mines in {origin.name}", "slower sales of electric cars"), "who buys for a battery maker", "Two years ago I begged, last year they begged, and now we both drink tea", "who runs a brine field", "We evaporate water for a living, so we are used to waiting", "A car battery holds about {small} kilograms of it."),
    Good("olive oil", "tonne", (4_800, 9_600), ("drought in {origin.name}", "a fly that eats olives"), ("rain in {origin.name}", "shoppers who switched to other oils"), "who owns a trattoria", "I've taken the bottle off the table and put it behind the bar", "an olive farmer", "The trees look dead and the price looks alive", "Shops have put security tags on bottles."),
    Good("orange juice", "pound", (2.2, 5.4), ("a hurricane in {origin.name}", "greening disease in {origin.name}"), ("a good bloom in {origin.name}", "people drinking water instead"), "who bottles juice", "We've invented a breakfast drink, which means carrots", "an orange grower", "I've cut down half of it, and the other half is paying", "A bottle costs {pct}% more than two years ago."),
    Good("sugar", "pound", (0.16, 0.29), ("cane turned into fuel in {origin.name}", "a poor monsoon"), ("good rains in {origin.name}", "a tax on soft drinks"), "who makes jam", "I sell fruit and fear sugar", "a cane farmer", "Two good weeks don't buy a tractor, but they mend one", "Makers of sweets lock in prices {small} months ahead."),
    Good("iron ore", "tonne", (84, 138), ("a cyclone at the ports of {origin.name}", "a dam failure in {origin.name}"), ("steelworks cutting output in {other.name}", "new mines in {origin.name}"), "who buys for a steelworks", "Half my job is reading other people's weather", "a train driver at a mine", "They've put on two more trains a day, and I get the night one", "A tonne of steel takes a tonne and a half of ore."),
    Good("nickel", "tonne", (14_500, 24_000), ("an export ban in {origin.name}", "floods at smelters"), ("new smelters in {origin.name}", "batteries that do without it"), "who makes stainless sinks", "A sink costs what it costs, and my margin goes down the drain", "a smelter foreman", "We were to close in March", "Warehouses hold enough for {weeks} weeks."),
    Good("rice", "tonne", (380, 640), ("an export ban in {origin.name}", "salt water in the delta of {origin.name}"), ("a bumper harvest in {origin.name}", "the release of state stocks"), "who runs a canteen", "I can't serve half a bowl", "a rice farmer", "The dealer used to wait for me to call", "In {origin.name}, families spend {pct}% of their income on food."),
    Good("cotton", "pound", (0.62, 1.08), ("a bollworm plague in {origin.name}", "late rain in {origin.name}"), ("weak orders from clothing makers", "cheap polyester"), "who spins yarn", "Shirts get shorter, if you look closely", "a cotton picker", "They pay by the kilo, so it's the kilo I'd like to see go up", "There is about a dollar's worth of cotton in a pair of jeans."),
    Good("rubber", "kilo", (1.3, 2.4), ("leaf blight in {origin.name}", "floods on plantations"), ("tyre makers with full stores", "new plantations in {origin.name}"), "who retreads tyres", "When new ones are dear, they remember me", "a rubber tapper", "One tree gives a cup a day, whatever the screen says", "A tyre takes years to be replaced and days to be repriced."),
    Good("timber", "cubic metre", (180, 390), ("bark beetles in {origin.name}", "forest fires in {origin.name}"), ("fewer houses being built in {c.name}", "storm wood coming to market"), "who builds roofs", "I quote for a roof on Monday and pray until Friday", "a forester", "The beetle did the felling, and I do the selling", "A wooden house takes about {weeks}0 cubic metres."),
    Good("tin", "tonne", (24_000, 38_000), ("fighting near mines in {origin.name}", "a crackdown on illegal pits"), ("illegal pits reopening", "fewer telephones being made"), "who makes solder", "There's a bit of it in everything that beeps", "a miner", "We dig with our hands and read the price on a telephone that has our tin in it", "Half of all tin becomes solder."),
    Good("butter", "tonne", (4_600, 8_200), ("hay that is short in {origin.name}", "cows that give less fat"), ("more milk in {origin.name}", "bakers who use margarine"), "a pastry cook", "A croissant has twenty-seven layers, and each has gone up", "a dairy farmer", "My cows don't know, and I haven't told them", "Supermarkets in {c.name} sell {pct}% less of it than a year ago."),
    Good("wool", "kilo", (6.2, 11.8), ("a drought among flocks in {origin.name}", "mills restocking"), ("cheap fleece", "mills shutting in {other.name}"), "who weaves cloth", "Good cloth starts with a sheep that wasn't thirsty", "a shepherd", "It paid for the shearing, which it hasn't done for {small} years", "In {origin.name}, sheep outnumber people {small} to one."),
    Good("vanilla", "kilo", (90, 420), ("a cyclone in {origin.name}", "theft from fields in {origin.name}"), ("too many new plantations", "makers switching to flavouring"), "who makes ice cream", "I could drop vanilla, and then I could drop the shop", "a vanilla farmer", "We sleep in the field, with a dog and a drum", "The pods are pollinated by hand, one morning a year."),
    Good("fertiliser", "tonne", (260, 620), ("sanctions on {origin.name}", "dear gas"), ("cheap gas", "a new plant in {origin.name}"), "an arable farmer", "I spread less and hope more", "who runs a fertiliser depot", "They ring before they plough", "Farmers in {c.name} buy {pct}% of it before the sowing."),
    Good("palm oil", "tonne", (720, 1_240), ("an export ban in {origin.name}", "too few pickers"), ("full tanks in {origin.name}", "a law against cleared forest"), "who makes biscuits", "Page through the ingredients in any kitchen and count", "a planter", "It pays the school bus this year", "It is in every second product of a supermarket."),
)  # fmt: skip


@dataclass(frozen=True)
class Move:
    g: Good
    c: Country
    city: City
    origin: Country
    other: Country
    price: Money
    later: Money
    pct: int
    back: int
    day_pct: float
    cause: str
    second: str
    up: str | None
    down: str | None
    analyst: Person
    house: str
    buyer: Person
    seller: Person
    official: Person
    weeks: int
    small: int
    high: int
    turns: str | None
    goes_on: str | None


def _move(scene: Scene) -> Move:
    g = scene.fresh("commodity", _GOODS)
    way = "up" if scene.chance(0.6) else "down"
    c = scene.country()
    origin, other = scene.sample([one for one in scene.world.countries if one is not c], 2)
    raw = scene.rng.uniform(*g.price)
    price = Money(round(raw, 2) if raw < 100 else float(round(raw / 5) * 5), DOLLAR)
    back = scene.between(3, 9)
    turns = scene.chance(0.5)
    sign = (-1 if turns else 1) * (1 if way == "up" else -1)
    after = price.amount * (1 + sign * back / 100)
    up = way == "up"
    first, second = scene.sample(g.short if up else g.glut, 2)
    return Move(
        g, c, scene.pick(c.cities), origin, other, price, Money(round(after, 2) if after < 100 else float(round(after / 5) * 5), DOLLAR), scene.between(11, 44), back, scene.tenth(2.1, 7.8), first, second, "" if up else None, None if up else "",
        scene.person(None, "a commodities analyst"), scene.pick(HOUSES), scene.person(c, g.buyer), scene.person(origin, g.seller), scene.person(origin, scene.pick(("the head of the growers' board", "an export official", "who heads the producers' association"))) , scene.between(3, 9), scene.between(3, 8), scene.between(2, 14),
        "" if turns else None, None if turns else "",
    )  # fmt: skip


COMMODITIES = Beat(
    "commodities",
    _move,
    (
        Stage(
            titles=("{up}{g.name:cap} price jumps {day_pct}% on {cause}", "{down}{g.name:cap} price drops {day_pct}% on {cause}", "{up}{g.name:cap} at {high}-year high on {cause}", "{down}{g.name:cap} cheapest in {high} years after {cause}", "{up}Commodities: {g.name} rises to {price} on {cause}", "{down}Commodities: {g.name} sinks to {price} on {cause}", "{up}Why {g.name} is {pct}% dearer than a month ago", "{down}Why {g.name} is {pct}% cheaper than a month ago"),
            abstracts=("{up}A {g.unit} costs {price}, {pct}% more than a month ago. The reason: {cause}.", "{down}A {g.unit} costs {price}, {pct}% less than a month ago. The reason: {cause}.", "{g.effect} Behind the move: {cause}."),
            leads=("{up}The price of {g.name} rose by {day_pct}% to {price} a {g.unit} {on}, the most in {high} years, on {cause}.", "{down}The price of {g.name} fell by {day_pct}% to {price} a {g.unit} {on} on {cause}, the lowest in {high} years.", "{up}Because of {cause}, {g.name} is getting dearer: a {g.unit} cost {price} {on}, up {day_pct}% on the day and {pct}% within a month.", "{down}Because of {cause}, {g.name} is getting cheaper: a {g.unit} cost {price} {on}, down {day_pct}% on the day and {pct}% within a month.", "{up}Traders paid {price} for a {g.unit} of {g.name} {on}, {day_pct}% more than the day before; they cited {cause}.", "{down}Traders paid {price} for a {g.unit} of {g.name} {on}, {day_pct}% less than the day before; they cited {cause}."),
            then=(say("“[The market was short of news, and this was news|There's less of it than people had pencilled in|Fear moves faster than ships],” said {analyst.name} of {house}.", "{analyst.name} of {house} [named|pointed to] a second reason: {second}. “[One alone would have been a bad day|Two causes make a trend, at least until Friday],” {analyst.he} said.", "“[I look at {cause}, and then I look at stocks, and I stop arguing|Everybody was leaning the same way when it turned],” said {analyst.name}, who follows {g.name} for {house}."),),
            loose=(say("{up}{buyer.last} feels it already. “{g.buyer_says},” {buyer.he} said.", "{up}“{g.buyer_says},” said {buyer.last}.", "{down}For {buyer.last}, it comes as a relief. “[I'd stopped looking|About time; I've eaten the last two rises myself|I'm buying for half a year and hoping I'm not a fool],” {buyer.he} said."),
                   say("{up}In {origin.name}, where much of it comes from, {seller.last} [is content|does not complain]. “{g.seller_says},” {seller.he} said.", "{down}In {origin.name}, {seller.last} [fears for the season|does sums at night]. “[At that price I leave it where it is|We can't eat the forecast|The dealer doesn't look me in the eye],” {seller.he} said."),
                   say("{g.effect}"), say("Over a month, the change comes to {pct}%."), say("{official.last} [warned against panic|said the market would calm down]. “[There is enough, it's just in the wrong place|Prices have a short memory, growers don't],” {official.he} said.", "{official.last} expects [a new estimate|clarity] within {weeks} weeks."), say("Funds have [raised|cut] their bets on {g.name} for {weeks} weeks running.", "Besides that, traders spoke of {second}."), say("{up}Contracts for delivery in [a year|{weeks} months] are cheaper[, a sign that traders expect the shortage to end|; the market does not think that it will last].", "{down}Contracts for delivery in [a year|{weeks} months] are dearer[, a sign that traders expect the glut to pass|; the market thinks the glut will pass].")),
            weight=0.32, covered=0.45,
        ),
        Stage(
            titles=("{turns}{up}{g.name:cap} gives back {back}% after rally", "{turns}{down}{g.name:cap} recovers {back}% from low", "{goes_on}{up}{g.name:cap} rises further to {later}", "{goes_on}{down}{g.name:cap} falls further to {later}", "{up}What dearer {g.name} means for shoppers in {c.name}", "{down}Cheaper {g.name}, same bill: shoppers in {c.name} wait"),
            abstracts=("A {g.unit} cost {later}, after {price} {t0:on}.", "{g.effect} A {g.unit} now costs {later}."),
            leads=("{turns}{up}The price of {g.name} fell by {back}% to {later} a {g.unit} {on}, after its jump {t0:on}.", "{turns}{down}The price of {g.name} rose by {back}% to {later} a {g.unit} {on}, after its slump {t0:on}.", "{goes_on}{up}The price of {g.name} went on rising {on}, to {later} a {g.unit}, from {price} {t0:on}.", "{goes_on}{down}The price of {g.name} went on falling {on}, to {later} a {g.unit}, from {price} {t0:on}."),
            then=(say("{turns}“[The market had run ahead of the facts and is walking back|That was the weekend crowd leaving],” said {analyst.name} of {house}.", "{goes_on}“[I'd expected a pause, and the market didn't ask me|There's no floor in sight and no ceiling either],” said {analyst.name} of {house}."),),
            loose=(say("{g.effect}"), say("The cause was {cause}.", "It had been {cause} that moved the price {t0:on}.", "Traders still speak of {cause}[, and of {second}|]."), say("{up}“{g.buyer_says},” said {buyer.last}.", "{down}{buyer.last} [has ordered more|is filling the store]. “[I won't lower prices before I've got my losses back, and everybody does the same|It'll be a good quarter],” {buyer.he} said."), say("{up}“{g.seller_says},” said {seller.last}.", "{down}In {origin.name}, {seller.last} [has let two people go|hopes for better months]. “[You plant for five years and they trade for five minutes|I've seen worse, and it was last year],” {seller.he} said."), say("{official.last} [announced talks|called for calm]; {origin.name} may [release stocks|limit exports]."), say("Consumers in {c.name} will notice [in a few weeks|later, if at all], {analyst.last} said[; contracts run for months|].")),
            after=(2, 5), weight=0.25, covered=0.3,
        ),
    ),
    share=1.1,
    rhythm=TRADING,
)  # fmt: skip

_UNITS = {"£": "pound", "€": "euro", "$": "dollar"}
_FALLS = (
    ("a hole in the budget", "A country can live beyond its means until the day somebody asks to see the receipts"),
    ("the resignation of the finance minister's deputy", "It wasn't the man, it was the letter he left"),
    ("weak exports", "They sell what the world has stopped buying"),
    ("a central bank seen as too slow", "Inflation runs and they are tying their shoes"),
    ("rumours of capital controls", "If you want a run, deny it twice"),
    ("falling oil income", "It is a petrol station with a flag, as my old boss used to say, and the pumps are quiet"),
    ("a surprise election", "Markets forgive anything except a date they didn't know"),
    ("flight into safer money", "When it thunders, everyone goes to the same two trees"),
    ("a downgrade by a rating agency", "They said aloud what the bond market had been muttering"),
    ("a bank that asked for help", "One bank is a story, two are a currency"),
)
_RISES = (
    ("unexpectedly high interest rates", "You're paid to hold it, it's that simple"),
    ("a large gas find", "The well won't flow for six years, and the money couldn't wait six hours"),
    ("a flood of tourists", "Everyone who lands has to buy some"),
    ("record exports", "The order books are full and somebody has to pay in the local coin"),
    ("demand for a safe haven", "It's boring there, and boring is scarce"),
    ("a budget surplus", "A finance minister with money left over: analysts had to look it up"),
)


@dataclass(frozen=True)
class Swing:
    c: Country
    other: Country
    unit: str
    city: City
    pct: float
    more: float
    total: float
    years: int
    cause: str
    quip: str
    strategist: Person
    house: str
    governor: Person
    minister: Person
    trader: Person
    traveller: Person
    firm: Person
    spent: Money
    up: str | None
    down: str | None
    acts: str | None
    waits: str | None
    small: int


def _swing(scene: Scene) -> Swing:
    own = [one for one in scene.world.countries if one.currency.sign != "€"]
    c = scene.fresh("currency", own)
    up = scene.chance(0.35)
    cause, quip = (
        scene.fresh("currency cause up", _RISES, uses=2) if up else scene.fresh("currency cause down", _FALLS, uses=2)
    )
    pct, more = scene.tenth(1.6, 5.8), scene.tenth(0.8, 3.2)
    acts = scene.chance(0.6)
    unit = c.currency.unit.removesuffix("s") or _UNITS[c.currency.sign]
    return Swing(c, scene.pick([one for one in scene.world.countries if one is not c]), unit, scene.pick(c.cities), pct, more, round(pct + more, 1), scene.between(2, 11), cause, quip, scene.person(None, "a currency strategist"), scene.pick(HOUSES), c.minister("central bank"), c.minister("finance"), scene.person(c), scene.person(None), scene.person(c),
                 scene.money(8e8, 9e9, DOLLAR), "" if up else None, None if up else "", "" if acts else None, None if acts else "", scene.between(3, 9))  # fmt: skip


CURRENCIES = Beat(
    "currencies",
    _swing,
    (
        Stage(
            titles=("{down}{c.demonym} {unit} falls {pct}% on {cause}", "{up}{c.demonym} {unit} rises {pct}% on {cause}", "{down}{c.demonym} {unit} at {years}-year low against euro", "{up}{c.demonym} {unit} at {years}-year high against euro", "{down}Run on the {unit}: {c.demonym} currency loses {pct}%", "{up}Strong {unit} worries exporters in {c.name}"),
            abstracts=("{down}The currency lost {pct}% against the euro in a day. Traders blame {cause}.", "{up}The currency gained {pct}% against the euro in a day, thanks to {cause}.", "The {c.demonym} {unit} is on the move. Behind it: {cause}."),
            leads=("{down}The {c.demonym} {unit} lost {pct}% against the euro {on} and fell to its lowest in {years} years; traders cited {cause}.", "{up}The {c.demonym} {unit} gained {pct}% against the euro {on} and reached its highest in {years} years; traders cited {cause}.", "{down}{cause:cap} sent the {c.demonym} {unit} down by {pct}% {on}.", "{up}{cause:cap} sent the {c.demonym} {unit} up by {pct}% {on}."),
            then=(say("“{quip},” said {strategist.name} of {house}."),),
            loose=(say("{governor.last} said the bank was [following events closely|ready to act]. “[We have the means and the nerves|I don't comment on a Tuesday what will be forgotten on a Thursday|A currency is a mirror, and one doesn't shout at a mirror],” {governor.he} said."), say("{minister.last} [spoke of speculation|called the move exaggerated]. “[Our books are open|The market will calm down when it has had lunch],” {minister.he} said."),
                   say("{down}{traveller.name}, on holiday in {city.name}, [had noticed|was waiting at an exchange bureau]. “[My dinner got cheaper between the starter and the bill|It's nice for us, and I can see it isn't for the waiter],” {traveller.he} said.", "{up}{traveller.name}, on holiday in {city.name}, [had noticed|was waiting at an exchange bureau]. “[We've gone from restaurants to sandwiches|Last year I was rich here],” {traveller.he} said."),
                   say("{down}{firm.name}, who imports [spare parts|wine|toys] in {city.name}, [wrote new price lists|was on the telephone]. “[Each order costs me more than the last, and I can't print labels fast enough|I buy in euros and sell in hope],” {firm.he} said.", "{up}{firm.name}, who exports [machines|fruit|furniture] from {city.name}, [is worried|has stopped hiring]. “[I've done nothing wrong and I'm {pct}% dearer|A strong {unit} is a medal that you pay for yourself],” {firm.he} said."),
                   say("{trader.name}, who trades currencies in {c.capital}, had not seen such volumes in [years|{years} years]. “[It was bid, bid, bid and then nobody|My coffee has a skin on it],” {trader.he} said.", "In the afternoon it moved {small} times within minutes, dealers said."), say("The {c.demonym} central bank has reserves for {small} months of imports.")),
            weight=0.38, covered=0.3,
        ),
        Stage(
            titles=("{down}{acts}{c.demonym} central bank intervenes to prop up the {unit}", "{up}{acts}{c.demonym} central bank intervenes to hold down the {unit}", "{down}{waits}{c.demonym} {unit} slides again as central bank waits", "{up}{waits}{c.demonym} {unit} climbs again as central bank waits", "{acts}{spent} spent on steadying the {c.demonym} {unit}"),
            abstracts=("{acts}The bank used about {spent}. {strategist.name} doubts that it will last.", "{waits}Another {more}% in a day, {total}% in all. {governor.name} sees no need to act."),
            leads=("{acts}{down}The {c.demonym} central bank bought its own currency {on} to stop its fall, spending about {spent}, traders estimated.", "{acts}{up}The {c.demonym} central bank sold its own currency {on} to stop its rise; about {spent} changed hands, traders estimated.", "{waits}{down}The {c.demonym} {unit} fell by another {more}% {on}, and the central bank looked on.", "{waits}{up}The {c.demonym} {unit} rose by another {more}% {on}, and the central bank looked on."),
            then=(say("{acts}“[We don't defend a number, we defend order|Those who bet against us should know the size of the drawer],” said {governor.last}.", "{waits}“[Reserves are for storms, and this is weather|You can't lean against a door that everyone is pushing],” said {governor.last}."),),
            loose=(say("The turbulence began {t0:on} with {cause}."), say("“{quip},” {strategist.name} of {house} had said at the start."), say("{strategist.last} [gave it a week|thought it might work]. “[They bought time, and time is worth what you do with it|The market tests every fence once],” {strategist.he} said."), say("{minister.last} [thanked|would not comment on] the bank."), say("{firm.name}, a merchant in {city.name}, [quotes prices by the hour|now asks for euros]. “[I've got a blackboard again|My customers understand and don't buy],” {firm.he} said."), say("{waits}In all, the {unit} has moved by {total}% within days.", "The move began with {pct}% in a single day.")),
            after=(1, 3), weight=0.42, covered=0.25,
        ),
        Stage(
            titles=("Calm returns to {c.demonym} {unit}", "What the swing of the {unit} cost {c.name}", "{c.demonym} {unit} steadies after {pct}% move"),
            abstracts=("After days of turbulence, trading is quiet. Importers and exporters count the cost.", "{minister.name} draws lessons from the turbulence."),
            leads=("Trading in the {c.demonym} {unit} was quiet {on} for the first time since {cause} set off the turbulence {t0:on}.", "The {c.demonym} {unit} hardly moved {on}, after a week that {minister.name}, the finance minister, called “instructive”."),
            then=(say("“[It's like the sea after a storm, flat and full of planks|Everybody's tired],” said {strategist.name} of {house}."),),
            loose=(say("{down}Petrol and bread [will cost|cost] more in {c.name}; economists expect up to {small} tenths of a point on inflation.", "{up}Exporters in {c.name} fear for orders; economists expect growth to be {small} tenths of a point lower."), say("{governor.last} said the bank [had learned from it|would publish its account in a month]."), say("{traveller.name}, who was on holiday in {city.name}, [has gone home with a good tan and a bad rate|changed money at the worst moment]."), say("{firm.name}, who runs a business in {city.name}, will [insure against swings|bill in euros] in future. “[It costs, and I sleep|My accountant says he told me],” {firm.he} said."), say("“{quip},” {strategist.last} had said {t0:on}."), say("{acts}The central bank's purchases and sales came to {spent}.")),
            after=(2, 4), weight=0.22, chance=0.75,
        ),
    ),
    share=0.8,
    rhythm=TRADING,
)  # fmt: skip
