# ruff: noqa: E501 (prose reads better unbroken)
"""How the food desk covers farming, food prices and the trade of chefs."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.food_table import CHEFS_PLACES
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Trouble:
    """What befalls farmers, in three reports."""

    crop: str
    head: str
    news: str
    why: str
    who: str
    word: str
    detail: str
    turn_head: str
    turn: str
    turn_who: str
    turn_word: str
    end_head: str
    end: str


TROUBLES: tuple[Trouble, ...] = (
    Trouble("apples", "Late frost takes {pct}% of apple blossom in {region}", "a night of minus five has killed {pct}% of the apple blossom in {region}", "The trees had opened two weeks early, after a warm spell", "who grows apples on {n} hectares", "[We lit eight hundred candles, and from above it must have looked like a procession|You cut a blossom open, and if the heart is black, that was it]", "Fruit farmers burn paraffin candles between the rows or spray water, so that ice shields the buds.", "Bees sent home: no blossom, no work in {region}", "Beekeepers have taken their hives away from the orchards, because there is nothing left to visit", "a beekeeper", "[They sat in front of the hive like men outside a closed factory|I've driven them to the rape, they aren't particular]", "Frost-hit apple growers get loans and a cider idea", "The state will lend growers money without interest, and a cidery wants whatever small fruit is left"),
    Trouble("pigs", "Swine fever: first dead boar found in {region}", "a wild boar found dead in {region} had African swine fever", "The virus, harmless to people, kills nearly every pig it meets", "who keeps {many} pigs", "[I change boots three times between the house and the sty|One sandwich thrown from a lorry is enough, and I look at the motorway]", "Fences of 40 kilometres are being put up, and dogs trained to find carcasses are on their way.", "Pig farmers in {region} may not sell; the sties fill up", "Abroad, buyers have stopped taking pork, and fattened pigs stay in the sty", "who trades in livestock", "[Each day they eat more and are worth less|The lorries stand in my yard, washed]", "Zone lifted: pork from {region} may be sold again", "No further carcass was found in the core zone, and slaughterhouses may take pigs from the district"),
    Trouble("wheat", "Wheat harvest in {c.name} smallest in {few} years", "farmers in {c.name} have brought in {pct}% less wheat than hoped for", "Rain came when the ears should have ripened, and then it did not stop", "who farms {many} hectares", "[The combine sank to its axles, and I went home to read|It's good for hens, that's what the miller said]", "Much of it has too little protein for bread and will go to the trough.", "Bakers look for flour as wheat disappoints", "Mills have begun to mix in foreign wheat, and bakers complain of doughs that run", "a miller", "[Flour has moods, and this year it's sulking|I ring Ontara at night and ask what they've got]", "More rye, less wheat: bread in {c.name} gets darker", "Bakers and mills have agreed on breads with a third of rye, at the old price"),
    Trouble("milk", "Milk price falls below cost for farmers in {region}", "dairies in {region} pay farmers less for milk than it costs to produce it", "There is too much of it, since exports have dried up", "who milks {n} cows", "[I pay for the privilege of getting up at four|Water in a bottle costs more, and nobody has to milk it]", "Every week about {few} farms give up.", "Farmers pour milk on to fields in {region}", "Some 60 farmers have driven their tanks to a field and opened the taps", "who was there", "[My father would have hit me, and I'd have deserved it|It's a white lake, the children thought it was lovely, I had to look away]", "Dairy raises milk price after protest", "The largest dairy of the region will pay four cents more for a litre, and the supermarkets a little as well"),
    Trouble("olives", "Olive harvest in {region} halved by drought", "the olive harvest in {region} will be half of last year's, presses say", "Not a drop of rain fell between blossom and autumn", "whose trees are four hundred years old", "[They have seen worse, but I haven't|The olives are like capers, with stones]", "Irrigated groves do better, but the wells are {pct}% lower than they were.", "Thieves come for the olives of {region}", "Guards patrol the groves by night, since olives worth a van have been shaken off in the dark", "who patrols with two dogs", "[They come with nets and a lookout, it's a trade|My dogs are Oil and Vinegar, and Vinegar bites]", "Rain saves the late olives of {region}", "Four days of rain have come in time for the late varieties, and presses expect a third more than they feared"),
    Trouble("hens", "Bird flu: {many}00 hens culled near {city.name}", "all {many}00 hens of a farm near {city.name} have been culled because of bird flu", "Wild ducks bring the virus with them on their autumn and spring journeys", "who owned the hens", "[The silence is the worst, I had not known how loud they were|I've gone in at five every morning for twelve years, I went in today]", "Within ten kilometres, all poultry must stay indoors.", "No free-range eggs from {region}: hens must stay in", "Eggs from hens that are locked in for more than sixteen weeks may not be called free-range, and boxes need new labels", "who keeps hens in a meadow", "[They stand at the door like children on a wet Sunday|The sticker costs more than the egg]", "Hens of {region} let out after vaccination", "Hens in the region may go outdoors again, and a vaccine is to be tried on two farms"),
    Trouble("strawberries", "Too few pickers: strawberries rot near {city.name}", "growers near {city.name} are leaving strawberries in the field, because they are {many} pickers short", "Permits for seasonal workers arrived three weeks late", "who grows strawberries", "[A berry waits for nobody, least of all a consulate|I've asked the football club, the choir and the prison]", "Picking pays by the kilogram; a good picker manages eleven in an hour.", "Pick them yourself: {city.name} empties a strawberry field", "More than {many} people came to a field on a Sunday to pick for nothing", "a mother with three baskets", "[We ate a kilo each and the car smells of June|My back knows now what a punnet costs]", "Strawberry growers get their pickers, and a robot", "The permits have come, and two growers are to try a machine that can tell red from pink"),
    Trouble("hops", "Hop growers in {region} tear out a tenth of their gardens", "hop growers in {region} have taken down the poles on {many} hectares", "Breweries hold stocks for two years and order little", "who grows hops", "[I cut it in a day, it took my father eleven years to put up|It's the drinkers who have gone, the plant is in splendid health]", "A garden costs as much to plant as a house and lasts for twenty years.", "What grows where the hops were? Farmers in {region} try lavender", "On the first empty gardens, lavender, quinoa and tents for weddings are being tried", "who advises the growers", "[One has planted a maze|Everything grows here, the question is who eats it]", "Brewers promise to buy hops for five years", "Three large breweries have signed contracts over five years, with a price that moves with costs"),
    Trouble("bees", "Beekeepers near {city.name} lose {pct}% of their hives", "beekeepers near {city.name} found {pct}% of their colonies dead after the winter", "A mite weakens the brood, and a wet autumn did the rest", "who kept {n} hives", "[I knock on the box, and nobody answers|There is honey in the comb and no one to eat it]", "Orchards nearby depend on about {many} hives.", "Almond growers in {region} rent bees from afar", "Lorries with bees from 600 kilometres away have come by night, because there are too few for the blossom", "who drives one of the lorries", "[They are the best passengers, as long as it's dark|One stop for diesel, windows shut, on no account a breakdown]", "Bee yard opens for beginners as old keepers give up", "The beekeepers' club trains {n} newcomers and gives each a colony of a strain that grooms off the mite"),
    Trouble("potatoes", "Potatoes stuck in mud: {pct}% unharvested in {region}", "some {pct}% of the potatoes in {region} are still in the ground", "It has rained on {n} of the past {n_more} days", "who grows potatoes", "[The tractor pulls, the field pulls back|They're drowning down there, potatoes breathe]", "After two weeks under water they rot.", "Chips made thinner? Factories run short of potatoes", "Two chip factories have cut shifts, since deliveries from {region} fail to arrive", "a shift worker", "[We peel what comes, and nothing comes|I've eaten chips for lunch since school, I had a salad, it was odd]", "Frost hardens the fields, and potato lorries roll again in {region}", "With the ground hard at last, growers worked three nights by headlamp, and most of what could be saved is in"),
    Trouble("tractors", "Farmers block {city.name} with {many} tractors", "farmers have blocked the ring road of {city.name} with {many} tractors to protest against dearer diesel", "A rebate on farm diesel is to end in the new budget", "who drove in from forty kilometres away", "[I left at two, at 38 kilometres an hour one sees the country|My son's in the trailer with his homework]", "For an average farm the rebate is worth as much as {few} cows.", "Minister meets farmers in a barn near {city.name}", "The agriculture minister, {minister.name}, has spoken to 400 farmers in a barn, for three hours and standing on a bale", "who was there", "[At least the minister's boots got dirty|We booed first, and then we listened, we are polite people]", "Diesel: farmers of {c.name} keep half of their rebate", "Half of the rebate stays, for four years, and the tractors have gone home"),
    Trouble("salmon", "Jellyfish kill {many}0 tonnes of salmon off {city.name}", "a swarm of jellyfish has killed {many}0 tonnes of farmed salmon near {city.name}", "The sea is two degrees too warm for the season, and the jellyfish like it", "who manages the farm", "[They're the size of a thumbnail, they go through the net like fog|We heard it before we saw it, the fish were jumping]", "Bubble curtains are meant to keep them off; they are switched on by hand.", "Who clears away the salmon? Quarrel near {city.name}", "Dead fish have lain in tanks on the quay for days, because two districts dispute who must take them", "who lives near the quay", "[We eat indoors, and we eat little|The gulls have put on weight]", "Salmon farm near {city.name} to move farther out", "The farm will be moved two miles out, where the water is colder and the waves are higher"),
    Trouble("vines", "Mildew in the vines: growers in {region} spray at night", "growers in {region} expect to lose {pct}% of their grapes to mildew", "The summer brought warm rain, week after week", "who makes wine in the fifth generation", "[The leaves look as if someone had shaken flour over them|I spray at three in the morning, when there's no wind and no neighbour]", "Resistant varieties stand on {few}% of the area.", "Old rivals of {region} plant vines that need no spray", "Eleven estates have ordered vines of a new kind that the appellation does not allow on its labels", "who sits on the appellation's board", "[Tradition's a fine thing in a dry year|I voted against it, and I've ordered two rows]", "New vine admitted to wines of {region}", "Up to a tenth of the new varieties may go into the wines of the region, under the old name"),
    Trouble("sheep", "Wool worth less than the shearing: farmers in {region} burn fleeces", "sheep farmers in {region} have burned fleeces, because wool fetches less than the shearer costs", "Carpets and jumpers are made of plastic now", "who has {many} ewes", "[It smelled of hair, and of my grandmother's cardigan|I pay the shearer four times what the fleece brings]", "A fleece weighs two to three kilograms.", "Wool against slugs: what a gardener in {region} found out", "A gardener who mulched with raw wool has saved her lettuces, and now buys it by the tonne", "the gardener", "[Slugs hate it, it's like crossing a doormat|I rang one farmer and eleven came]", "Pellets from wool: a mill for {region}", "A cooperative will press wool into fertiliser and pay three times what the merchants do"),
)  # fmt: skip


@dataclass(frozen=True)
class Farm:
    t: Trouble
    c: Country
    city: City
    region: str
    pct: int
    n: int
    n_more: int
    few: int
    many: int
    aid: Money
    farmer: Person
    other: Person
    union: Person
    adviser: Person
    minister: Person


def _farm(scene: Scene) -> Farm:
    t = scene.fresh("farm trouble", TROUBLES, uses=3)
    c = scene.country()
    n = scene.between(14, 48)
    she = True if t.turn_who in ("the gardener", "a mother with three baskets") else None
    return Farm(t, c, scene.fresh("farm city", c.cities, uses=4), scene.pick(c.land.regions), scene.between(24, 68), n, n + scene.between(4, 11), scene.between(3, 9), scene.near(110, 480), scene.money(3e6, 9e7, c.currency), scene.person(c), scene.person(c, she=she), scene.person(c, "who heads the farmers' union"), scene.person(c, "an agronomist"), c.minister("agriculture"))  # fmt: skip


FARMING = Beat(
    "farming",
    _farm,
    (
        Stage(
            titles=("{t.head}", "Farming: {t.head:lower}", "“{t.word}”: farmers in {c.name} and their {t.crop}", "Trouble with the {t.crop} in {c.name}"),
            abstracts=("{t.why}. “{t.word},” says {farmer.name}.", "{t.detail}", "The farmers' union asks for {aid}. {t.why}.", "In short: {t.news}."),
            leads=("{t.news:cap}, the farmers' union of {c.name} said {on}.", "{farmer.name}, {t.who}, [does not want to complain|has seen a good deal], like many in {c.name}. But {t.news}.", "“{t.word},” says {farmer.name}, {t.who} near {city.name} in {c.name}. It has come to this: {t.news}.", "In the {c.demonym} countryside people talk of one thing. {t.news:cap}, according to [figures|a report] published {on}."),
            then=(say("{t.why}.", "The reason, says {adviser.last}, is not hard to find. {t.why}.", "“{t.why},” explained {adviser.last}."),),
            loose=(say("{farmer.name}, {t.who}, [leans on the gate|shows the damage|has no time to talk, and talks]. “{t.word},” {farmer.he} says."), say("{t.detail}"), say("{union.last} asks for {aid} in aid[, and soon|]. “[We don't want pity, we want the invoice split|Every shop window is full, so nobody believes us],” {union.he} said.", "For {union.last}, [the sum is simple|there is no way round it]: {aid} in aid. “[Half now would do more than all of it later|We grow what they put on posters, and they should remember it].”", "“[People want us picturesque and cheap, and we can do one of them|Ask again when the shelf is empty],” said {union.last}, who wants {aid} in aid."), say("{minister.last} [will visit {region} within days|promised to look at every case|said help would come, but not to everyone]."), say("{adviser.last} thinks that farms will have to change. “[The weather has no contract with us|One crop is a bet, three are a farm],” {adviser.he} said.", "{adviser.last} sees a [long|slow] change coming. “[What my father called a bad year is now a year|You can insure a barn, not a climate],” {adviser.he} said.", "“[A farm is planned in decades and paid in weeks|I tell them to keep a hedge and a reserve],” said {adviser.last}.")),
            weight=0.3, covered=0.15,
        ),
        Stage(
            titles=("{t.turn_head}", "“{t.turn_word}”: a farming story from {c.name}", "{c.name} and its {t.crop}: the trouble goes on"),
            abstracts=("{t.turn}.", "“{t.turn_word},” says {other.name}, {t.turn_who}.", "The trouble began when it was reported {t0:on} that {t.news}."),
            leads=("{t.turn}. The background, as reported from {c.name} {t0:on}: {t.news}.", "First it was said that {t.news}. Now there is [a sequel|more to tell], in {region} and in all {c.name}. {t.turn}.", "It was [only|] {t0:on} that farmers in {c.name} sounded the alarm about their {t.crop}. Since then things have moved. {t.turn}."),
            then=(say("“{t.turn_word},” said {other.name}, {t.turn_who}.",),),
            loose=(say("{farmer.name}, {t.who}, follows it [from the kitchen table|on the tractor radio]. “{t.word},” {farmer.he} says."), say("{t.why}."), say("{t.detail}"), say("{union.last}, [on the telephone from a field|between two meetings]: “[It goes round and round, like a mill|Nobody can say we did not warn them].”"), say("The union's demand stands at {aid}.")),
            after=(2, 5), weight=0.3, covered=0.1, chance=0.9,
        ),
        Stage(
            titles=("{t.end_head}", "{c.name}: relief for farmers and their {t.crop}", "Good news about {t.crop} from {region}"),
            abstracts=("{t.end}.", "The worst is over, says {union.name}, who heads the farmers' union.", "{t.end}. Farmers had asked for {aid}."),
            leads=("{t.end}, it was announced in {c.name} {on}.", "Better news from {region} in {c.name}, where the {t.crop} had caused worry: {t.end:lower}.", "{t.end}. For {farmer.name}, {t.who}, near {city.name} in {c.name}, it comes [late|just in time]."),
            then=(say("“[We take it and say thank you, that's two things we are not used to|It isn't the end of the trouble, but I slept|My neighbour says I whistled],” said {farmer.name}[|, who farms near {city.name}].",),),
            loose=(say("Before that, the news had been that {t.turn:lower}."), say("It had begun {t0:on} with the report that {t.news}."), say("{union.last} [was less easily pleased|spoke of a start]. “[I'll clap when the money is in the bank|One does not heal a field by decree],” {union.he} said."), say("{minister.last} [called it a sensible solution|thanked both sides]."), say("{adviser.last} warns that it may [come back|happen again]. “{t.why},” {adviser.he} said. “Nothing about that has changed.”")),
            after=(3, 6), weight=0.3, covered=0.12, chance=0.9,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Good:
    """Something to buy: `unit` for its price between `low` and `high`, what made it dear and what people do."""

    name: str
    unit: str
    low: float
    high: float
    cause: str
    cook: str
    word: str
    swap: str
    relief: str


GOODS: tuple[Good, ...] = (
    Good("butter", "a packet of butter", 1.8, 2.6, "cows give less milk since the spring was wet and feed is dear", "a pastry chef", "[I hide it behind the oat milk, my own staff spread it too thick|A croissant is butter with an excuse]", "margarine is on offer everywhere, and sells badly", "dairies abroad have begun to ship what they held back"),
    Good("olive oil", "a litre of olive oil", 6.5, 9.8, "two harvests in a row have failed in the south", "who runs a trattoria", "[I measure it with a thimble|On the tables it's in bottles with a chain, I'm ashamed of it]", "shops report thefts and have put the bottles behind glass", "rain has come in time for the new harvest"),
    Good("eggs", "ten eggs", 2.2, 3.4, "bird flu has emptied barns from the coast to the hills", "who runs a breakfast café", "[An omelette is a luxury, who'd have thought|We poach, we don't fold]", "supermarkets sell no more than two boxes to a customer", "young hens have begun to lay"),
    Good("coffee", "a pound of coffee", 5.4, 7.9, "frost and drought have hit the growers one after the other", "who has an espresso bar", "[I've raised the cup by twenty cents and lost two friends|They order small and sit long]", "roasters shrink the packet and leave the price", "the new crop is larger than feared"),
    Good("chocolate", "a bar of chocolate", 1.1, 1.9, "a virus is killing cocoa trees, and heat does the rest", "a chocolatier", "[I make hollow rabbits with thinner walls|My truffle used to be the size of a walnut, it's a hazelnut now]", "makers stretch the bar with nuts and wafers", "speculators have sold what they had hoarded"),
    Good("rice", "a kilogram of rice", 1.4, 2.3, "two of the largest exporters have stopped selling abroad", "who cooks in a canteen", "[Two hundred portions a day, I count the grains|Potatoes are back, nobody cheers]", "shops in some districts have rationed it", "one exporter has opened its ports again"),
    Good("oranges", "a litre of orange juice", 1.7, 2.9, "a bacterium turns the fruit green and bitter", "who has a juice stall", "[Carrot, apple, beetroot: I've become a greengrocer|People look at the price and then drink water in front of me]", "bottlers mix in mandarins", "growers have found trees that bear the disease"),
    Good("beef", "a kilogram of minced beef", 8.0, 11.5, "herds were reduced in the drought and take years to grow back", "a butcher", "[They come in for steak and leave with sausages|I explain oxtail to people under forty]", "lentils are sold at the meat counter, as a suggestion", "ranchers have started to keep their heifers"),
    Good("tomatoes", "a kilogram of tomatoes", 2.3, 3.9, "growers leave their greenhouses cold, since gas costs too much", "who sells at a market", "[In winter it was always a lie in red, now it's an expensive lie|I've put up a sign: see you in June]", "chains have taken them out of the sandwiches", "the first fruit from the south is on its way"),
    Good("bread", "a loaf of mixed bread", 2.4, 3.8, "flour, power and wages have all gone up at once", "a baker", "[I know what they earn, I know the price hurts, and I know my bill|At six in the evening the queue for yesterday's is longer]", "discount shops bake frozen dough and sell it for half", "grain costs less than it has for two years"),
    Good("onions", "a net of onions", 1.2, 2.2, "the crop shrivelled in the field, and a border was closed", "a street cook", "[A stew without onions is soup|I cry before I cut them, at the market]", "dried onions have sold out", "the border has been opened to lorries"),
    Good("potatoes", "a bag of potatoes", 1.9, 3.1, "a good part of the harvest lay under water for weeks", "who has a chip stand", "[Small, medium, and one says sorry|They are wet, they drink the oil, and oil is dear too]", "restaurants put rice on the plate", "early varieties are three weeks ahead"),
    Good("cheese", "a kilogram of mountain cheese", 14.0, 19.0, "the summer pastures were dry by July and the cows came down early", "who keeps a cheese stall", "[I cut it thinner, they notice|One old lady buys forty grams and asks me to wrap it like a present]", "sandwich shops have turned to spreads", "the cellars hold more old wheels than thought"),
    Good("honey", "a jar of honey", 4.8, 7.2, "hives came out of the winter half empty", "a beekeeper", "[I sell by the spoon, almost|People ask why mine costs three times what the squeezy bottle does, and I say: because it's honey]", "inspectors have found syrup in every sixth jar of the cheap sort", "lime trees are in good leaf"),
    Good("fish fingers", "a box of fish fingers", 2.7, 4.1, "quotas for white fish were cut by a third", "a father of four", "[They count them on the plate, there are fewer|We've tried a vegetable one, the dog declined as well]", "makers have gone over to fish nobody has heard of", "stocks have been found in better shape than reckoned"),
)  # fmt: skip


@dataclass(frozen=True)
class Price:
    g: Good
    c: Country
    city: City
    now: Money
    before: Money
    eased: Money
    pct: int
    rate: float
    basket: float
    cook: Person
    shopper: Person
    economist: Person
    lobby: Person
    minister: Person
    banks: int


def _price(scene: Scene) -> Price:
    g = scene.fresh("dear good", GOODS, uses=3)
    c = scene.country()
    scale = 40 if c.currency.unit else 1
    before = scene.rng.uniform(g.low, g.high) * scale
    now = before * (1 + scene.between(18, 58) / 100)

    def shown(amount: float) -> Money:
        return Money(round(amount) if scale > 1 else round(amount, 1) + (0.09 if amount < 90 else 0), c.currency)

    pct = round((shown(now).amount / shown(before).amount - 1) * 100)
    return Price(
        g, c, scene.fresh("price city", c.cities, uses=4), shown(now), shown(before), shown((now * 2 + before) / 3), pct, scene.tenth(3.1, 8.8), scene.tenth(1.4, 3.0),
        scene.person(c, she=False if "father" in g.cook else None), scene.person(c), scene.person(c, "an economist"), scene.person(c, "who speaks for the retailers"), c.minister("agriculture"), scene.between(14, 61),
    )  # fmt: skip


PRICES = Beat(
    "food prices",
    _price,
    (
        Stage(
            titles=("{g.name:cap} {pct}% dearer in {c.name}", "Food prices: {c.name} pays {now} for {g.unit}", "{now} for {g.unit}: {c.name} and its latest price shock", "Price of {g.name} jumps {pct}% in {c.name}", "Shoppers in {c.name} feel rise in price of {g.name}"),
            abstracts=("A year ago {g.unit} cost {before}. The cause: {g.cause}.", "“{g.word},” says {cook.name}, {g.cook}.", "Food as a whole costs {rate}% more than a year ago. Nothing has risen like {g.name}."),
            leads=("The price of {g.name} in {c.name} has risen by {pct}% in a year, the statistics office said {on}: {g.unit} costs {now}, after {before}.", "{shopper.name} stands before the shelf in {city.name} and puts it back. {g.unit:cap} costs {now}, a year ago it was {before}.", "In the shops of {city.name}, {g.unit} now costs {now}. That is {pct}% more than a year ago, {c.demonym} statisticians reported {on}.", "Of all that {c.name} eats, nothing has become dearer so fast: {g.unit} costs {now}, {pct}% more than a year ago."),
            then=(say("The reason, say traders, is that {g.cause}.", "Behind it is a simple fact: {g.cause}.", "{economist.last} [has a plain answer|doesn't blame the shops]: {g.cause}."), say("“{g.word},” said {cook.name}, {g.cook} in {city.name}.", "{cook.name}, {g.cook} in {city.name}, [feels it daily|has stopped joking about it]. “{g.word},” {cook.he} said.")),
            loose=(say("Shops and kitchens find ways out: {g.swap}.", "Meanwhile {g.swap}."), say("Food as a whole was {rate}% dearer than a year before; general inflation stood at {basket}%.", "All food taken together costs {rate}% more than a year ago, at an inflation of {basket}%.", "A whole basket of food has risen by {rate}% in {c.name}, all prices by {basket}%.", "Inflation in {c.name} is {basket}%; for food alone it is {rate}%.", "{shopper.last:s} whole shopping, if it is like the average, has gone up by {rate}%."), say("{lobby.last} [would not hear of|rejected talk of] profiteering. “[Our margin would fit under a fingernail|We buy dear and we're shouted at cheap],” {lobby.he} said.", "“[We pass on what we have to and not what we could|Ask the wholesalers],” said {lobby.last}."), say("From {minister.last} there was [sympathy and no money|a promise to watch the margins].", "{minister.last} [has ruled out a price cap|is looking at lower value added tax on staples]."), say("{shopper.name}, [a pensioner|who has three children|a student] in {city.name}, [keeps a notebook|compares leaflets]. “[I used to buy what I wanted, and now I want what I buy|The list gets shorter, the bill doesn't],” {shopper.he} said.")),
            weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("Food banks in {c.name} run out of {g.name}", "Watchdog looks into price of {g.name} in {c.name}", "Dear {g.name} in {c.name}: who earns on it?", "How kitchens in {city.name} cope with dear {g.name}"),
            abstracts=("The competition office has asked {banks} dealers for their books.", "“{g.word},” says {cook.name}, {g.cook}. Others have found substitutes.", "Since the price rose by {pct}%, {g.swap}."),
            leads=("The {c.demonym} competition office has asked {banks} dealers for their books, to find out who earns on {g.name}, it said {on}.", "Dear {g.name} changes kitchens. In {city.name}, where {g.unit} costs {now}, {g.swap}.", "Three cooks, one subject: in {city.name} they met {on} to talk about {g.name}, up {pct}% within a year in {c.name}."),
            then=(say("“{g.word},” said {cook.name}, {g.cook}.",),),
            loose=(say("{economist.last} expects little of it. “[There is no villain in this play, only weather|Between the field and the fork eleven hands are held out, all of them clean],” {economist.he} said."), say("Traders say that {g.cause}."), say("{lobby.last} [promised to open the books|was annoyed]. “[We have nothing to hide but the recipes|It's a hunt with no fox],” {lobby.he} said."), say("Food banks in {c.name} have {banks} outlets[, and queues at each|]; donations of {g.name} have nearly stopped."), say("In the figures published {t0:on}, {g.unit} stood at {now}."), say("{shopper.name} of {city.name} has [changed habits|given it up]. “[One can live without, it turns out, but one mentions it|My daughter thinks I am being political],” {shopper.he} said.")),
            after=(2, 5), weight=0.3, covered=0.12, chance=0.9,
        ),
        Stage(
            titles=("{g.name:cap}: prices in {c.name} begin to fall", "Relief at the till: {g.unit} for {eased}", "{c.name} pays less for {g.name} again", "{g.name:cap} to get cheaper in {c.name}"),
            abstracts=("{g.unit:cap} costs {eased}, after {now}. The reason: {g.relief}.", "Two chains cut the price. But a year ago it was {before}."),
            leads=("Two supermarket chains in {c.name} cut the price of {g.name} {on}: {g.unit} now costs {eased}, down from {now}.", "The peak may have passed. In {city.name}, {g.unit} could be had for {eased} {on}, after {now} only [days|a week] ago, and others in {c.name} are expected to follow."),
            then=(say("The reason: {g.relief}.", "Traders explain it like this: {g.relief}."),),
            loose=(say("{economist.last} warned against rejoicing. “[Prices take the lift up and the stairs down|It is cheaper than it was and dearer than it should be],” {economist.he} said."), say("A year ago the price was {before}."), say("{cook.name}, {g.cook}, [is waiting|has ordered a little more]. “[I shall believe it at the till|I've learned to do without, I may unlearn it],” {cook.he} said."), say("The competition office, which asked {banks} dealers for their books, [has not closed its file|will report in the autumn or later]."), say("{shopper.name} in {city.name} bought two. “[One for now and one out of mistrust|It felt like a party],” {shopper.he} said."), say("The cut [shows that competition works|proves that nobody had been hoarding], according to {lobby.last}.", "“[We said so all along|A price is not a verdict],” said {lobby.last}.")),
            after=(3, 6), weight=0.3, covered=0.12, chance=0.85,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Gossip:
    head: str
    news: str
    quote: str
    why: str
    guest: str
    then_head: str
    then: str
    then_quote: str


GOSSIPS: tuple[Gossip, ...] = (
    Gossip("{place} in {city.name} hands back its star", "has sent back its star and taken the tablecloths off", "[I was cooking for a man with a notebook|I want to be full, not famous]", "The star brought guests who photographed the butter and did not finish it.", "[It was never about the star, it was about the gravy|I can afford to come again]", "Without star, {place} is fuller than ever", "{place} has had to put a second sitting on since it gave up its star", "[We have run out of stew on three evenings|My mother books under her maiden name]"),
    Gossip("{place} closes after {n} years, and {city.name} queues for a last lunch", "will close after {n} years, because the rent is to double", "[I can pay for the fish or for the walls|You can't fry a sense of belonging, the landlord said, or something like it]", "The building has been sold twice within a year.", "[I proposed at table four, and I was divorced at table nine|Where am I going to be known?]", "Regulars buy the house of {place}", "Regulars of {place} have put together enough money to buy the building", "[I came in to cry and went out a tenant|They own the walls, I own the soup, that's how it should be]"),
    Gossip("No phones, no photographs: {place} locks them in a tin", "asks guests to leave their telephones in a biscuit tin", "[The food was getting cold under the cameras|People look at each other, some for the first time in years]", "On a Saturday, {n} tables had waited an average of four minutes before the first bite.", "[I didn't know where to put my hands|We talked, it was alarming]", "Telephone ban at {place}: a thief and a tin", "The tin with {n} telephones was stolen from {place} and returned within an hour, for all of them rang", "[It was the loudest theft in the history of the street|We have bought a safe, it's pink]"),
    Gossip("Cooks at {place} buy the restaurant from its chef", "now belongs to its eleven employees", "[I'm sixty and have burnt my hands enough|They knew the numbers better than I did, so let them have the numbers]", "The founder had no children and did not want to sell to a chain.", "[The dumplings are the same and people smile|The dishwasher signed my receipt, he owns nine per cent]", "First dispute among the owners of {place}: Mondays", "The eleven owners of {place} have voted, by six to five, to close on Mondays", "[Democracy takes longer than a stock|I was against it, and I slept until ten]"),
    Gossip("Head chef of {place} walks out in mid-service", "has lost its head chef, who took off the apron between two courses and left", "[I had shouted at a boy of nineteen for a parsley leaf, and I heard my father|I went home and boiled an egg]", "Cooks had complained for months about sixteen-hour days.", "[The main course never came, so we got to know the next table|We were told it was a new concept]", "Chef who walked out returns to {place}, with new rules", "The chef is back at {place}, under rules that the kitchen wrote: four days, no shouting, lunch at a table", "[I have to put a coin in a jar, it's full|It's quieter, you can hear the butter]"),
    Gossip("School canteen cook named chef of the year in {c.name}", "has lost an award that its chef had been sure of, to a school cook with {many} guests a day", "[I clapped, and I meant about half of it|I went to eat there, I asked for seconds]", "The jury ate lunch in a gymnasium and asked to come back.", "[She makes lentils taste like a birthday|The children know her name, nobody knows mine]", "{place} lets the school cook take over for one night", "{place} was given over for an evening to the cook who had beaten it, and served shepherd's pie", "[Three grown men asked for the skin of the custard|I was the kitchen porter, I've seldom learned so much]"),
    Gossip("Deposit for a table: {place} charges those who don't turn up", "takes a deposit of {fee} a head from anyone who books", "[On a Saturday {few} tables stay empty and the fish does not care|I have a house to pay and not a theatre with no-shows]", "One booking in eight in {city.name} is not honoured.", "[I pay for the cinema before I see it|My grandmother was in hospital, they kept the money, then they sent soup]", "After deposits, {place} reports no empty tables", "Since it began to ask for deposits, {place} has had one empty chair, whose owner had fainted in the tram", "[We sent him his dessert|The fish is happier, in a manner of speaking]"),
    Gossip("Tips: waiters of {place} share with the dishwashers", "divides all tips equally, from the sommelier to the dishwasher", "[A plate isn't served if it isn't clean|Two waiters left, and eleven people bought shoes]", "Waiters had earned twice what the kitchen did.", "[I tip the same, I feel better|I'd like to tip the sauce directly, and now I can]", "Waiter sues {place} over shared tips", "A waiter has taken {place} to court over the rule that tips are shared", "[They are mine, I smiled for them|He was the best we had, and he knew the wine, I'm sorry]"),
    Gossip("{place} drops dishes by name of region after dispute", "has taken a “{region} ham” off its menu, because the ham came from elsewhere", "[It was a good ham with a false passport|I believed the label, as my guests believed me]", "An inspector had eaten there in private and recognised the salt.", "[It tasted exactly the same, that's what annoys me|I drove two hours for that ham]", "Ham affair: {place} cooks for its critics", "{place} invited the real ham makers to dinner, who brought their own", "[They sliced it themselves, they didn't trust me with the knife|By the third glass we were on first-name terms]"),
    Gossip("Robot fries, human salts: {place} tries a kitchen machine", "has a robot at the fryer", "[It does not burn itself, it doesn't smoke and it never has a cousin's wedding|I couldn't find a human for the fryer in nine months]", "The arm turns out {n} portions an hour and stops if somebody coughs on the sensor.", "[The chips are perfect, I found it a bit sad|My son wants to go there every day, to watch]", "Robot at {place} sent back", "The robot at {place} has gone, after a Friday evening on which it fried only the baskets", "[It did so with great precision|We have found a boy of seventeen who sings]"),
    Gossip("Cooks in {city.name} save food: a menu of leftovers at {place}", "cooks one evening a week with what others would throw away", "[A carrot with two legs walks just as well|The best sauce I ever made was from prawn heads that were in the bin]", "Restaurants in {city.name} discard about {pct}% of what they buy.", "[I had bread soup, and I licked the spoon|It's my cheapest evening out, and the noblest]", "Leftovers night at {place} has run out of leftovers", "So many kitchens have copied {place} that there is nothing left to collect for it on Mondays", "[It's the nicest way of going out of business|We had to buy carrots, straight ones]"),
    Gossip("Five courses at eight in the morning: {place} opens for night workers", "serves a full dinner at eight in the morning for those who come off a night shift", "[They have been up all night saving lives, and get a dry roll|It's the same stock, it only has to get up earlier]", "Nurses, bakers and tram drivers are among the first guests.", "[A glass of red at half past eight, and nobody looks|I fell asleep over the cheese, they put a coat over me]", "Morning dinners at {place} draw late revellers", "Nurses have complained of revellers at the morning dinners of {place}, who now must show a pay slip", "[No pay slip, no soup|One brought his mother's]"),
)  # fmt: skip


@dataclass(frozen=True)
class Chef:
    g: Gossip
    c: Country
    city: City
    region: str
    place: str
    n: int
    few: int
    many: int
    pct: int
    fee: Money
    chef: Person
    guest: Person
    other: Person
    critic: Person


def _chef(scene: Scene) -> Chef:
    g = scene.fresh("gossip", GOSSIPS, uses=2)
    c = scene.country()
    return Chef(g, c, scene.fresh("chef city", c.cities, uses=4), scene.pick(c.land.regions), scene.fresh("chef place", CHEFS_PLACES), scene.between(13, 44), scene.between(3, 7), scene.near(240, 640), scene.between(12, 29), Money(float(scene.pick((10, 15, 20, 25)) * (20 if c.currency.unit else 1)), c.currency), scene.person(c), scene.person(c), scene.person(c), scene.person(c, "a restaurant critic"))  # fmt: skip


CHEFS = Beat(
    "chefs",
    _chef,
    (
        Stage(
            titles=("{g.head}", "“{g.quote}”: the chef of {place}", "Restaurant {place} makes {city.name} talk"),
            abstracts=("{g.why}", "“{g.quote},” says {chef.name}, the chef.", "{place}, in {city.name}, {g.news}.", "“{g.guest},” says one guest."),
            leads=("{place}, a restaurant in {city.name}, {g.news}.", "{chef.name} has run {place} in {city.name} for {n} years. Now the restaurant {g.news}.", "The {c.demonym} restaurant {place}, in {city.name}, {g.news}, it [said|let its guests know] {on}.", "There was a note on the door of {place} in {city.name} {on}. In short: the restaurant {g.news}."),
            then=(say("“{g.quote},” says {chef.name}, the chef.", "{chef.name}, who cooks there, [dries {chef.his} hands|sits down on a crate]. “{g.quote},” {chef.he} says."),),
            loose=(say("{g.why}"), say("{guest.name}, who [eats there once a month|has been coming for years|lives across the road], [took a while to get used to it|had a view]. “{g.guest},” {guest.he} says.", "“{g.guest},” says {guest.name}, a regular."), say("{critic.last} [sees a sign of the times|is not surprised]. “[Restaurants are the only theatre where the audience can leave hungry|The trade is changing its clothes in public],” {critic.he} says.", "“[In this city a kitchen lives for {few} years on average, so every one that thinks is worth a visit|I give it a year, and I hope I'm wrong],” says {critic.last}."), say("{place} has {n} tables[ and a waiting list|]."), say("Colleagues in {city.name} [are watching closely|shake their heads, and ask for the figures].")),
            weight=0.25, covered=0.12,
        ),
        Stage(
            titles=("{g.then_head}", "“{g.then_quote}”: news from {place}", "{place} in {city.name}: a second helping"),
            abstracts=("{g.then}.", "“{g.then_quote},” says {chef.name}.", "{g.why} Now there is a sequel."),
            leads=("{g.then}. [Nobody in {city.name} had expected it|In {city.name} it is the talk of the kitchens].", "{g.then}. The {c.demonym} restaurant had made news {t0:on}, when it became known that it {g.news}.", "The story of {place} in {city.name}, which {g.news}, goes on. {g.then}."),
            then=(say("“{g.then_quote},” says {chef.name}, the chef.",),),
            loose=(say("{other.name}, a waiter, [has seen it all|was there]. “[I've worked in quieter places and in duller ones|You could sell tickets],” {other.he} says."), say("[Word got out|It became known] {t0:on}, and {city.name} has talked of little else since[|, at least over lunch]."), say("{guest.name}, a regular, has kept coming. “{g.guest},” {guest.he} says."), say("{critic.last} has [been back|booked]. “[I ate well and learned something, one of the two would have done|The bread is better than ever, perhaps it's the nerves],” {critic.he} says."), say("{g.why}"), say("The menu [stays as it is|has lost one dish and gained none], {place} says.", "{chef.name} has cooked in {city.name} for {n} years[ and plans no speeches|].")),
            after=(3, 7), weight=0.25, covered=0.1, chance=0.85,
        ),
    ),
    share=0.7,
    rhythm=LEISURE,
)  # fmt: skip
