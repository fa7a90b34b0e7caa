# ruff: noqa: E501 (prose reads better unbroken)
"""How the climate desk covers storms, floods and heat."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.climate_matters import coast_of, country_of
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.world import Country, Money

_NAMES = ("Agatha", "Boris", "Clementine", "Dragan", "Edda", "Ferdinand", "Gisela", "Horatio", "Ismene", "Jasper", "Karla", "Leander", "Minna", "Nestor", "Odile", "Primo", "Quirina", "Roland", "Selma", "Thaddeus", "Ursula", "Valentin", "Wanda", "Xaver", "Yvette", "Zeno", "Bruna", "Casper", "Dido", "Evander")  # fmt: skip

_STORM_SCENES = (
    "In {city.name} the wind took the roof off a sports hall and set it down, almost whole, on the car park of a supermarket.",
    "A container ship dragged its anchor for two miles before a tug caught it within sight of the breakwater at {city.name}.",
    "The bronze mayor on the square of {city.name}, who had stood since 1911, lay on his side with his hat still on.",
    "On the promenade of {city.name} the waves threw stones the size of loaves through the windows of three hotels.",
    "Passengers of a night train spent eleven hours in a cutting outside {city.name}, with a beech across the line in front and another behind.",
    "The big wheel of the fairground at {city.name} turned on its own, faster than it ever had with passengers.",
    "A freight plane circled three times over {city.name} and went to another country to land.",
    "In the cathedral of {city.name} the bells rang without anyone pulling.",
    "Firemen in {city.name} counted four hundred calls by midnight, most of them trees, one of them a trampoline on a balcony on the sixth floor.",
    "A hundred and forty caravans at a camp site near {city.name} were blown into a hedge, where they lay like a shunted train.",
    "The old lime avenue into {city.name}, planted for a royal visit, is gone but for nine trees.",
    "A hospital in {city.name} ran on diesel for nine hours; two babies were born by torchlight, both of them well.",
    "The roof of a cowshed near {city.name} came down on the only side where there were no cows.",
    "Market stalls that had been tied together in {city.name} flew together.",
    "At the harbour of {city.name} forty yachts lay in a heap against the eastern wall, masts crossed.",
    "An oak fell on the police station of {city.name}, which had sent its officers home an hour before.",
)

_STORM_VOICES = (
    (
        "who runs the harbour kiosk in {city.name}",
        "[I nailed the shutters and the wind took the nails|It sounded like a lorry that never arrived]",
    ),
    ("a retired pilot in {city.name}", "[I have been up in worse, but I had wings|You could lean on it like a bar]"),
    (
        "who teaches at the village school near {city.name}",
        "[The gym is open to the sky, the children find it an improvement|We sang, one couldn't hear it, but we sang]",
    ),
    (
        "a dairy farmer near {city.name}",
        "[I milked by hand, sixty cows, my fingers remember it|They stood with their backs to it and thought their own thoughts]",
    ),
    (
        "who lives on the eleventh floor in {city.name}",
        "[The water in the bath had waves|We slept in the corridor with the neighbours and their parrot]",
    ),
    ("a lineman from {city.name}", "[You mend one pole and hear the next one go|They bring us soup up the ladder]"),
    ("the captain of the island ferry", "[I don't sail, and I don't discuss it|The sea had no top]"),
    (
        "who breeds apples near {city.name}",
        "[Forty years, and it was done in a quarter of an hour|They all fell the same way, as if they had agreed]",
    ),
    (
        "a baker in {city.name}",
        "[I baked with gas and a candle, people queued with torches|The bread rose, it doesn't watch the news]",
    ),
    (
        "who keeps the lighthouse museum",
        "[It has been automatic since the eighties, but I went up and sat with it|The glass sang]",
    ),
    (
        "a roofer in {city.name}",
        "[The telephone has rung since four, and I have one ladder|I'd say it's good for business, but it was my roof too]",
    ),
    (
        "a nurse in {city.name}",
        "[I walked to my shift, eight kilometres, with my bicycle on top of me at one point|Everyone who could come came]",
    ),
    (
        "who moved to the coast in spring",
        "[The estate agent called it breezy|We unpacked our candles before our plates]",
    ),
    (
        "a ranger in the coastal park",
        "[The dune is where the car park was and the car park is in the sea|The seals have moved to the football ground]",
    ),
)


@dataclass(frozen=True)
class Storm:
    c: Country
    city: City
    coast: str
    kind: str
    name: str
    gust: int
    forecast: int
    homes: int
    dark: int
    away: int
    dead: int | None
    scene: str
    scene2: str
    who: str
    word: str
    who2: str
    word2: str
    cost: Money
    claims: int
    trees: int
    witness: Person
    neighbour: Person
    met: Person
    grid: Person
    mayor: Person
    insurer: Person
    rain: int
    hours: int
    measure: str


def _storm(scene: Scene) -> Storm:
    warm = scene.chance(0.35)
    c = country_of(scene, "warm" if warm else "cold")
    gust, homes = scene.between(124, 171), scene.near(48_000, 420_000)
    if warm:
        gust += 40
    first, second = (scene.fresh("storm scene", _STORM_SCENES, uses=4) for _ in range(2))
    (who, word), (who2, word2) = (scene.fresh("storm voice", _STORM_VOICES, uses=4) for _ in range(2))
    return Storm(
        c, scene.pick(c.cities), coast_of(scene, c), "cyclone" if warm else "storm", scene.fresh("storm name", _NAMES), gust, gust - scene.between(3, 14), homes, int(homes * 0.11 / 100) * 100, scene.near(2_000, 60_000), scene.maybe(0.6, scene.between(2, 9)),
        first, second if second != first else "", who, word, who2, word2, scene.money(8e7, 2.4e9, c.currency), scene.near(9_000, 160_000), scene.near(2_000, 40_000), scene.person(c), scene.person(c), scene.person(c, "a forecaster at the weather service"),
        scene.person(c, "who runs the grid company's control room"), scene.person(c, "the mayor"), scene.person(c, "who speaks for the insurers"), scene.between(48, 190), scene.between(9, 30),
        scene.pick(("Schools stay closed and ferries stay in port", "Zoos, parks and cemeteries are shut", "The football league has called off its matches", "Rail operators have taken their trains off the coastal lines", "Lorries may not cross the bridges")),
    )  # fmt: skip


STORM = Beat(
    "storms",
    _storm,
    (
        Stage(
            titles=("{kind:cap} {name}: {coast} told to expect gusts of {forecast} km/h", "{c.name} braces for {kind} {name}", "Red warning as {kind} {name} heads for {coast}", "Forecasters warn of {kind} {name} in {c.name}"),
            abstracts=("Winds of up to {forecast} kilometres an hour and {rain} millimetres of rain are forecast. {measure}.", "“[Please be bored, at home|We would rather be laughed at than right],” says {met.name} of the weather service.", "The {kind} is expected {t1:on}. {measure}."),
            leads=("The {c.demonym} weather service issued its highest warning {on} for {coast}, where {kind} {name} is due with gusts of up to {forecast} kilometres an hour.", "It still has no shape but a white hook on a screen. But by {t1:day} the {kind} that forecasters have called {name} will reach {coast}, they said {on}.", "{c.name} got ready {on} for {kind} {name}, which may bring gusts of {forecast} kilometres an hour and {rain} millimetres of rain to {coast}."),
            then=(say("“[Please be bored, at home|We would rather be laughed at than right|It's the kind of map that one prints out and keeps],” said {met.last}."), say("{measure}.", "Precautions began at once. {measure}.")),
            loose=(say("In {city.name}, sandbags [were handed out behind the fire station|ran out by noon]. {mayor.last} asked people to [bring in whatever can fly|look in on their neighbours]."), say("The models agree on the path [and less on the strength|, which is rare]: its centre is to cross {coast} within about {hours} hours."), say("{witness.name}, {who}, [had seen a few|did not mean to leave]. “[My grandmother's roof held, mine will|I've filled the bath and fed the cat],” {witness.he} said."),
                   say("{grid.last} has called in every crew. “[Charge your telephone, and then don't use it|We know which poles will go, we just don't know in which order],” {grid.he} said."), say("About {away} people in low-lying streets have been asked to [stay with friends|sleep elsewhere].", "In the lowest streets, {away} people are [packing|moving upstairs or away]; [a school hall has beds|buses are waiting]."), say("Warm water feeds such a {kind}; the sea is [one and a half degrees|more than a degree] above its usual temperature.")),
            weight=0.5, covered=0.25,
        ),
        Stage(
            titles=("{kind:cap} {name} hits {coast} with gusts of {gust} km/h", "{homes} homes without power as {kind} {name} reaches {c.name}", "{kind:cap} {name} tears through {city.name}", "Power cuts and felled trees: {kind} {name} crosses {coast}"),
            abstracts=("Gusts of {gust} kilometres an hour were measured, and {homes} homes are without electricity.", "{scene}", "“{word},” says {witness.name}, {who}."),
            leads=("{kind:cap} {name} reached {coast} {on} with gusts of up to {gust} kilometres an hour and left {homes} homes without electricity.", "{scene} {kind:cap} {name} had arrived, with gusts of {gust} kilometres an hour, and {homes} homes in {c.name} lost power.", "Gusts of {gust} kilometres an hour, {rain} millimetres of rain and {homes} homes in the dark: {kind} {name} crossed {coast} {on}.", "Roofs, trees and power lines gave way {on} as {kind} {name} swept over {coast}; some {homes} homes had no electricity."),
            then=(say("“{word},” said {witness.name}, {who}.",),),
            loose=(say("At least {dead} people [died|were killed], most of them by falling trees[ or in their cars|].", "The authorities spoke of {dead} dead[ and feared for a fishing crew|]."), say("{scene2}"), say("{grid.last} had counted {homes} homes without power by evening. “[We start at dawn, one doesn't climb in that|First the hospitals, then the pumps, then everybody],” {grid.he} said."), say("{neighbour.name}, {who2}, [was still shaking|took it lightly]. “{word2},” {neighbour.he} said."),
                   say("{met.last} said the strongest gust, {gust} kilometres an hour, [came an hour later than forecast|was measured just before the instrument broke]."), say("Roads and railways in {coast} were blocked by an estimated {trees} trees."), say("Around {away} people had left their homes after the warning of {t0:day}.")),
            after=(1, 2), weight=0.75, covered=0.6,
        ),
        Stage(
            titles=("After {kind} {name}: {dark} homes in {coast} still dark", "Chainsaws and soup: {city.name} clears up after {kind} {name}", "{kind:cap} {name}: {coast} counts the damage", "How {city.name} came through {kind} {name}"),
            abstracts=("Some {trees} trees are down; power has come back for most. “{word2},” says {neighbour.name}, {who2}.", "Of {homes} homes that lost power, {dark} are still without electricity.", "{scene2}"),
            leads=("The wind has gone and the sound is of chainsaws: {coast} began {on} to clear up after {kind} {name}.", "Electricity has returned to most of the {homes} homes that lost it in {kind} {name}, but {dark} were still in the dark {on}.", "{scene2} [So it looks|That is how it looks] in {city.name}, two tides after {kind} {name}."),
            then=(say("“{word2},” said {neighbour.name}, {who2}.",),),
            loose=(say("{mayor.last} went from street to street. “[It looks worse than it is and it will cost more than it looks|Everyone asks what they can do: bring a saw],” {mayor.he} said."), say("{grid.last} promised power for everybody [by the end of the week|within three days]."), say("The {kind} struck {t1:on} with gusts of {gust} kilometres an hour."), say("Foresters put the number of fallen trees at {trees}, [about what they cut in a year|enough to keep the sawmills busy until summer]."),
                   say("The number of dead stands at {dead}."), say("{witness.name}, {who}, [is back home|helps where {witness.he} can]. “[We have had three offers of a generator and one of a goat|You find out who your neighbours are],” {witness.he} said."), say("Climate researchers are careful: [there are not more such storms, they say, but they carry more rain|a single storm proves nothing, a row of them begins to].")),
            after=(1, 2), weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{kind:cap} {name} to cost insurers {cost}", "Insurers put damage of {kind} {name} at {cost}", "{c.demonym} storm bill: {cost} for {name}", "Who pays for {kind} {name}?"),
            abstracts=("So far {claims} claims have come in. A good part of the damage was not insured.", "“[Roofs are easy, grief over trees is not in the policy|The dear part is water in cellars],” says {insurer.name}, who speaks for the insurers."),
            leads=("{kind:cap} {name} will cost insurers about {cost}, their association said {on}, after {claims} claims.", "A first bill for {kind} {name}, which crossed {coast} {t1:on}, was presented {on}: {cost}.", "Insurers finished their first count {on} of what {kind} {name} did: {claims} claims and {cost}."),
            then=(say("“[Roofs are easy, grief over trees is not in the policy|The dear part is water in cellars|Every tenth claim is a greenhouse],” said {insurer.last}.",),),
            loose=(say("About a third of the damage [was not insured|will be paid by nobody]. The government in {c.capital} has promised grants."), say("{neighbour.name}, {who2}, has sent [eleven photographs|a letter of four pages]. “[They asked for the receipt for the roof|A man came with a drone and left a form],” {neighbour.he} said."), say("At its height {homes} homes had no electricity."), say("{witness.name}, {who}, is not insured. “[I paid for thirty years and stopped last spring|It would have cost more than the shed],” {witness.he} said."), say("Premiums in {coast} are likely to rise[, brokers say|]."), say("Gusts reached {gust} kilometres an hour and brought down some {trees} trees.")),
            after=(3, 5), weight=0.3, covered=0.1, chance=0.85,
        ),
    ),
    share=1.1,
)  # fmt: skip


_RIVERS = (
    "the Lesk",
    "the Ombra",
    "the Sorne",
    "the Halla",
    "the Isker",
    "the Gran",
    "the Tava",
    "the Alda",
    "the Nerva",
    "the Soma",
    "the Lune",
    "the Kara",
    "the Dara",
    "the Velna",
    "the Tura",
    "the Oma",
    "the Rima",
    "the Ister",
    "the Belna",
    "the Marna",
)

_FLOOD_SCENES = (
    "In the swimming baths of {city.name} the water stood higher outside the pool than in it.",
    "At the church of {city.name} a mark from 1784 vanished at four in the afternoon.",
    "A piano floated out of the music school and got stuck, lid open, under the footbridge.",
    "Cows were led up to the first floor of a furniture store, where they stood among the beds.",
    "The archive of {city.name} passed its papers from hand to hand up four flights, 200 people on the stairs.",
    "Divers brought up the medals of the rowing club, the one club that had thought itself prepared.",
    "In the allotments only the flagpoles and a weathercock showed.",
    "A wedding was moved to the fire station, and the bride came by boat.",
    "On the high street of {city.name} a carp was caught in front of the fishmonger's.",
    "The tax office put its files on the roof, under plastic, guarded by two trainees.",
    "At the cemetery volunteers tied down the gravestones' lanterns one by one.",
    "The bridge at the mill, which had been closed to lorries for years, went at dusk and without a sound.",
    "A school bus was pulled out by a tractor, all 31 children singing.",
    "Pumps had been delivered in the autumn; they stood in boxes in the cellar that was now full.",
)

_FLOOD_VOICES = (
    (
        "who has a bookshop by the river",
        "[The crime section is gone, philosophy stands higher up|I saved the till and the cat, in the wrong order]",
    ),
    (
        "a widower of 84",
        "[My wife's chair is dry, the rest is furniture|I've carried that carpet upstairs four times in my life]",
    ),
    (
        "who runs a launderette",
        "[Everyone's washing came to visit|I'm probably the only one who could say it's my trade]",
    ),
    (
        "a volunteer fireman",
        "[You hear the pumps in your sleep, if there is sleep|We don't count the hours, we count the sandbags]",
    ),
    (
        "a student who filled sandbags",
        "[I came for an hour on the first day|Nobody asked anybody's name and everyone had mud on]",
    ),
    (
        "who farms on the flood plain",
        "[The map says lake, my deeds say field|The winter wheat has drowned, and the worms with it]",
    ),
    (
        "a teacher whose school was flooded",
        "[The geography room is a lesson now|We have lost nine hundred exercise books, not everyone is sad]",
    ),
    (
        "who bought {witness.his} house in May",
        "[It smells like the bottom of a vase|The surveyor wrote: pleasant view of the water]",
    ),
    (
        "a boat builder",
        "[First time that my stock went out on its own|I've lent all eleven boats, one of them isn't finished]",
    ),
    ("a pharmacist", "[We handed out insulin from a rowing boat|The leaflets say: store in a dry place]"),
    ("who keeps the lock", "[I opened everything there is to open|She comes up brown, and then she comes up fast]"),
    (
        "a chef",
        "[I cooked for the pumps, two hundred bowls, on three burners|My cellar was the best in town, and now it's the largest glass of wine]",
    ),
)


@dataclass(frozen=True)
class Flood:
    c: Country
    city: City
    region: str
    river: str
    rain: int
    hours: int
    level: float
    usual: float
    peak: float
    away: int
    homes: int
    bags: int
    dead: int | None
    scene: str
    scene2: str
    who: str
    word: str
    who2: str
    word2: str
    witness: Person
    neighbour: Person
    gauge: Person
    mayor: Person
    premier: Person
    aid: Money
    asked: Money
    engineer: Person
    years: int


def _flood(scene: Scene) -> Flood:
    c = scene.country()
    peak = scene.tenth(5.6, 9.4)
    first, second = (scene.fresh("flood scene", _FLOOD_SCENES, uses=4) for _ in range(2))
    (who, word), (who2, word2) = (scene.fresh("flood voice", _FLOOD_VOICES, uses=4) for _ in range(2))
    aid = scene.money(9e6, 4e8, c.currency)
    return Flood(
        c, scene.pick(c.cities), scene.pick(c.land.regions), scene.fresh("river", _RIVERS, uses=2), scene.between(62, 210), scene.pick((24, 30, 36, 48)), round(peak - scene.tenth(1.1, 2.0), 1), scene.tenth(1.6, 2.9), peak, scene.near(600, 24_000), scene.near(300, 9_000), scene.near(8_000, 160_000), scene.maybe(0.45, scene.between(2, 7)),
        first, second, who, word, who2.replace("witness", "neighbour"), word2, scene.person(c, she=False if "widower" in who else None), scene.person(c, she=False if "widower" in who2 else None), scene.person(c, "who reads the river gauges"), scene.person(c, "the mayor"), c.premier, aid, aid.times(scene.rng.uniform(2.2, 4)),
        scene.person(c, "a flood engineer"), scene.between(11, 36),
    )  # fmt: skip


FLOOD = Beat(
    "floods",
    _flood,
    (
        Stage(
            titles=("Flood warning for {city.name} as {river} rises to {level} metres", "{rain} millimetres of rain: {river} threatens {city.name}", "{city.name} fills sandbags against {river}", "Rain without end: flood alarm along {river}"),
            abstracts=("The river usually stands at {usual} metres. A crest is expected {t1:on}.", "Within {hours} hours {rain} millimetres fell. Some {away} people may have to leave.", "“{word},” says {witness.name}, {who}."),
            leads=("{river:cap} has risen to {level} metres at {city.name} after {rain} millimetres of rain in {hours} hours, and the city raised the alarm {on}.", "At {usual} metres, its usual level in {city.name}, {river} is a pleasant river. Its gauge showed {level} metres {on}, and rising.", "Sirens in {city.name} called the volunteer fire brigades together {on}: {river} had reached {level} metres, and more rain is on the way to {region}."),
            then=(say("“[She takes her time, and then she doesn't|What fell in the hills this morning is here by breakfast tomorrow],” said {gauge.last}.",),),
            loose=(say("{witness.name}, {who}, [was carrying boxes|had begun with the cellar]. “{word},” {witness.he} said."), say("Soldiers and students had filled {bags} sandbags by nightfall."), say("The crest is expected {t1:on}, at about {peak} metres.", "Forecasters expect the crest {t1:on}."), say("{mayor.last} has asked about {away} people in the lower town to [pack a bag|be ready to leave within an hour]."), say("The last flood of this kind was {years} years ago; [since then the dykes have been raised|many of those who live by the river now were not there then]."), say("Rail services along {river} were [stopped|cut to one track].")),
            weight=0.45, covered=0.2,
        ),
        Stage(
            titles=("{river:cap} floods {city.name}", "Flood in {city.name}: {away} people leave homes", "Dyke breaks on {river}, {city.name} under water", "{river:cap} crests at {peak} metres in {city.name}"),
            abstracts=("Some {homes} houses are under water after {river} crested at {peak} metres.", "{scene}", "About {away} people have been taken to safety. {scene2}"),
            leads=("{river:cap} burst its banks at {city.name} {on} and flooded {homes} houses. About {away} people were taken to safety.", "{scene} {river:cap} crested at {peak} metres in {city.name} {on}, {homes} houses stood in water and {away} people had left.", "The dyke held for {hours} hours. Then it gave way, and {river} ran into {homes} houses in the lower town of {city.name}."),
            then=(say("“{word2},” said {neighbour.name}, {who2}.",),),
            loose=(say("At least {dead} people have died in {region}.", "The authorities confirmed {dead} deaths in {region}."), say("{scene2}"), say("{witness.name}, {who}, [was on the roof of a garage|had got out in time]. “{word},” {witness.he} said."), say("At {peak} metres the crest was [a hand's breadth above|just below] that of {years} years ago, said {gauge.last}."), say("Helicopters [flew until dark|took people off roofs]. Camp beds were set up in gymnasiums."), say("{mayor.last} [asked sightseers to stay away|thanked those who came with shovels]. “[We need pumps, socks and soup|This town has been wet before and got dry],” {mayor.he} said."), say("The {bags} sandbags [were not enough|held in two places out of three].")),
            after=(1, 2), weight=0.7, covered=0.5,
        ),
        Stage(
            titles=("Flood aid: {premier.last} promises {aid} for {city.name}", "After the flood, mud: {city.name} cleans up", "{city.name} asks for {asked} after flood, gets {aid}", "Why the dyke at {city.name} broke"),
            abstracts=("{premier.name} visited the flooded town. The city puts the damage at {asked}.", "“{word},” says {witness.name}, {who}.", "Water is draining away. An engineer says the dyke was {years} years older than its papers."),
            leads=("{premier.last} came to {city.name} {on} in borrowed rubber boots and promised {aid} for those whom {river} has flooded.", "The water has gone from most of {city.name}, and left mud, freezers and a question: why did the flood of {t1:day} find the town unready?", "{city.name} put the damage done by {river} at {asked} {on}. The government has promised {aid}."),
            then=(say("“[It's a beginning, and I'll be at the door again|I've asked for dykes in four budgets],” said {mayor.last}.",), say("{engineer.last} [had walked the dyke|looked at the breach]. “[Moles, roots and a footpath: it was a cheese|A river needs room, and if you build on its room it comes in],” {engineer.he} said.")),
            loose=(say("{witness.name}, {who}, [was hosing down a chair|had a skip in front of the house]. “{word},” {witness.he} said."), say("At the crest, {peak} metres were measured, against {usual} in ordinary times."), say("About {homes} houses were flooded."), say("Most of the {away} people who had been taken to safety [are back|may go back, if only to look]."), say("Per household there is to be a first payment [within ten days|without many questions]."), say("Such rain, {rain} millimetres in {hours} hours, [used to come once in a lifetime|has become about twice as likely], climate researchers say.")),
            after=(2, 5), weight=0.4, covered=0.2,
        ),
    ),
    share=1.0,
)  # fmt: skip


_HEAT_SCENES = (
    "The asphalt of the bus station took the print of every heel.",
    "At the zoo the bears were given blocks of frozen fish, and the keepers the shade.",
    "Rails were painted white, by hand, on eleven kilometres of line.",
    "Builders began at four in the morning, by floodlight, and went home at eleven.",
    "A court sat in the cellar among its own files.",
    "Libraries stayed open until midnight, and readers came who had not held a book for years.",
    "Shops sold their last fan before ten in the morning.",
    "Children slept on roofs, as their grandparents had.",
    "The cathedral, three degrees cooler than the square, had more visitors than at Easter.",
    "Pigeons stood in the fountain up to the belly, and nobody chased them.",
    "On the trams the drivers wore shorts, after a telephone call from the union.",
    "Water was sold by the glass where it had always been free.",
    "In the market hall the fishmonger closed first and the ice-cream stall last.",
    "A bridge was sprayed with water because it had grown too long for its bearings.",
)

_HEAT_VOICES = (
    ("a roofer", "[The nails burn through the glove|At ten I come down, and the boss can come up if he likes]"),
    ("a tram driver", "[It is 41 in the cab, and I have a window that opens a finger's width|My water boils, nearly]"),
    (
        "who lives under the roof",
        "[I sit in the bath with the newspaper until it falls in|The cat has found the only cool tile, and she doesn't share]",
    ),
    (
        "a nurse in a home for the elderly",
        "[They don't feel thirst, so we play a game with it|Wet towels, open windows, and singing, to see who still answers]",
    ),
    ("a date grower", "[Even the palms hang their heads|The well is forty metres deeper than my father's]"),
    (
        "a delivery rider",
        "[The pizza gets there hotter than it left|Nobody tips, nobody comes to the door, they lower a basket]",
    ),
    ("a goat farmer", "[They lie down at nine and look at me as if it were my doing|The river is a path now]"),
    (
        "who runs an ice factory",
        "[I sell all that I can freeze and would like to be able to freeze myself|We have a queue of hospitals]",
    ),
    (
        "a schoolteacher",
        "[At eleven I teach sleepers|We moved school to five in the morning, and they're wide awake, the monsters]",
    ),
    ("a fisherman", "[The fish go deep, and so would I|The lake has gone down by the height of my son]"),
    (
        "an imam",
        "[I've shortened the sermon, God understands, and so do the worshippers|The stone floor is the best thing we can offer]",
    ),
    ("a fireman", "[A spark from a mower, that's all|We drink eight litres a day and wear thirty kilos]"),
)


@dataclass(frozen=True)
class Heat:
    c: Country
    city: City
    region: str
    temp: float
    record: float
    nights: int
    days: int
    ill: int
    burned: int
    reservoir: int
    scene: str
    scene2: str
    who: str
    word: str
    who2: str
    word2: str
    witness: Person
    neighbour: Person
    met: Person
    doctor: Person
    chief: Person
    minister: Person
    measure: str
    cut: int
    year: str


def _heat(scene: Scene) -> Heat:
    c = country_of(scene, "any" if 6 <= scene.start.month <= 8 else "warm")
    record = scene.tenth(40.2, 46.9)
    first, second = (scene.fresh("heat scene", _HEAT_SCENES, uses=4) for _ in range(2))
    (who, word), (who2, word2) = (scene.fresh("heat voice", _HEAT_VOICES, uses=4) for _ in range(2))
    return Heat(
        c, scene.fresh("heat city", c.cities, uses=3), scene.pick(c.land.regions), round(record + scene.tenth(0.2, 1.4), 1), record, scene.between(5, 14), scene.between(8, 19), scene.near(140, 1_900), scene.near(900, 18_000), scene.between(14, 34), first, second, who, word, who2, word2,
        scene.person(c, she=False if "imam" in who else None), scene.person(c, she=False if "imam" in who2 else None), scene.person(c, "a meteorologist"), scene.person(c, "who runs an emergency department"), scene.person(c, "the fire chief"), c.minister("environment"),
        scene.pick(("Schools close at ten in the morning", "Outdoor work is banned between noon and four", "Water will be cut off at night", "Buses are free for people over 65", "Gardens may not be watered")), scene.between(4, 9), str(scene.start.year - scene.between(9, 48)),
    )  # fmt: skip


HEAT = Beat(
    "heatwaves",
    _heat,
    (
        Stage(
            titles=("{temp} degrees in {city.name}: heat record falls", "Heatwave: {city.name} hotter than ever at {temp} degrees", "{c.name} swelters as heatwave enters day {nights}", "Heat record of {year} beaten in {city.name}"),
            abstracts=("The old record, {record} degrees, dated from {year}. No relief is in sight.", "{measure}. Doctors have treated {ill} people.", "{scene}", "“{word},” says {witness.name}, {who}."),
            leads=("{city.name} measured {temp} degrees {on}, more than ever before. The record had been {record} degrees, set in {year}.", "{scene} It was {temp} degrees in {city.name} {on}, {c.name} had a new record, and night brought no relief.", "The heat that has lain over {c.name} for {nights} days broke a record {on}: {temp} degrees in {city.name}."),
            then=(say("“{word},” said {witness.name}, {who}.",), say("{met.last} blamed [a high that does not move|air from the desert that cannot get away]. “[It's a lid, and we are under it|I have run out of red on my map],” {met.he} said.")),
            loose=(say("{measure}, the city has ordered.", "{measure}, by order of the city."), say("Hospitals have treated {ill} people for heatstroke[, most of them old|]. {doctor.last} expects more. “[The third hot night is the dangerous one|They come in when it's cooler, that is when they notice],” {doctor.he} said."), say("{scene2}"), say("{neighbour.name}, {who2}, [tries to be cheerful|has no choice]. “{word2},” {neighbour.he} said."), say("Reservoirs in {region} are {reservoir}% full."), say("Heatwaves of this kind used to come once in fifty years in {c.name}; [now it is about once in six|statistically, the next is five years away].")),
            weight=0.5, covered=0.25,
        ),
        Stage(
            titles=("Wildfire in {region} after heatwave: {burned} hectares burn", "Heat, wind, fire: {burned} hectares burn in {region}", "Drought after heatwave: reservoirs in {region} at {reservoir}%", "Heatwave near {city.name} turns into drought and fire"),
            abstracts=("The fire has consumed {burned} hectares. Reservoirs are {reservoir}% full.", "“{word2},” says {neighbour.name}, {who2}.", "After {days} days without rain, the forests are as dry as paper."),
            leads=("A wildfire fed by the heatwave had burned {burned} hectares in {region} by nightfall {on}.", "First the heat, then the smoke. In {region}, where it has not rained for {days} days, {burned} hectares of scrub and forest are burning.", "After {days} days without rain, the reservoirs of {region} are {reservoir}% full, and {burned} hectares of forest are on fire."),
            then=(say("“[It jumps roads as a child jumps puddles|We're not putting it out, we are steering it|What we need is a cloud],” said {chief.last}.",),),
            loose=(say("{neighbour.name}, {who2}, watched the smoke. “{word2},” {neighbour.he} said."), say("{minister.last} [asked neighbouring countries for aircraft|flew over the area]. “[There will be questions about the forest, and they are fair|Rain isn't a policy, water is],” {minister.he} said."), say("In {city.name}, {temp} degrees had been measured {t0:on}, a record."), say("People have left {cut} villages, most of them in their own cars."), say("{scene}"), say("Water in the reservoirs would last for {days} weeks at the present rate[, the utility said|]."), say("The smoke can be [smelled in {city.name}|seen from space].")),
            after=(1.5, 3), weight=0.5, covered=0.25,
        ),
        Stage(
            titles=("Heatwave in {c.name} ends with thunder", "Cooler at last: {city.name} counts cost of heatwave", "After heatwave, {city.name} plans for the next", "Rain ends heatwave in {city.name} after {days} days"),
            abstracts=("Doctors treated {ill} people and {burned} hectares burned. {city.name} wants shade.", "The temperature fell by a dozen degrees within an hour. What remains is a list of things to do."),
            leads=("Thunder rolled over {city.name} {on}, the temperature fell by a dozen degrees within an hour, and people stood in the street with their faces up.", "The heatwave in {c.name} is over. After {days} dry days rain fell on {city.name} {on}.", "It began with a smell of dust, and then it rained: {city.name} was rid {on} of a heat that had sent {ill} people to hospital."),
            then=(say("“[I have never been so happy to be wet|I left the washing out on purpose|We danced, at our age],” said {witness.name}, {who}.",),),
            loose=(say("{doctor.last} [was less cheerful|had numbers]. “[We treated {ill} people, and most of them live alone|Next time I want a list of those who live under a roof],” {doctor.he} said."), say("The fires in {region}, which destroyed {burned} hectares, are [under control|out]."), say("{city.name} wants to plant trees along {cut} avenues and to open [cool rooms|its cellars] in every district.", "Among the plans of {city.name}: {cut} new fountains, awnings over the market and a telephone chain for the old."), say("{met.last} gave no all-clear. “[The lid is off, and the pot is still warm|There's another high behind it],” {met.he} said."), say("Reservoirs, at {reservoir}%, [will need a wet season|rose by a centimetre]."), say("The record of {temp} degrees, measured {t0:on}, [will stand, for a time|has been confirmed].")),
            after=(2, 4), weight=0.35, covered=0.15,
        ),
    ),
    share=0.8,
)  # fmt: skip
