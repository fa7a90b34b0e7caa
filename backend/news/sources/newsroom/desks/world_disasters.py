# ruff: noqa: E501 (prose reads better unbroken)
"""The world desk on earthquakes, storms, floods and fires: the first hours, the search, the reckoning."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.world_cast import among, head, neighbour
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Disaster:
    """One kind of disaster: what it did, what was seen and said, and what people blame in the end."""

    noun: str
    event: str
    damage: str
    seen: str
    search: str
    rescue: str
    hope: str
    warning: str
    blame: str
    dead: tuple[int, int]
    where: tuple[str, ...] = ()


_WARM = ("Castara", "Belmara", "Montavia", "Zamburi")
_TROPICAL = ("Pelinang", "Sundara", "Belmara", "Naruma")
_MOUNTAIN = ("Castara", "Naruma", "Torgan", "Montavia", "Sundara", "Lorvenia")

DISASTERS: tuple[Disaster, ...] = (
    Disaster("earthquake", "an earthquake of magnitude {size} shook {region} and brought down apartment blocks in {city}",
             "Two of the five storeys of the teachers' college have folded into one, and the minaret or bell tower that every street used to steer by is gone",
             "The wardrobe walked across the room, and then the room was not there", "Searchers with listening poles ask whole streets to fall silent, four times an hour",
             "a baker who had crawled into his own oven", "an eight-year-old boy who had been tapping on a pipe with a spoon", "aftershocks, the strongest of magnitude 4.8, keep people out of their houses",
             "pillars cut away on the ground floor to make room for shops", (60, 420), _MOUNTAIN),
    Disaster("cyclone", "a cyclone with winds of {wind} kilometres an hour came ashore near {city} and crossed {region}",
             "Tin roofs lie in the mangroves, and fishing boats stand in the square in front of the post office",
             "First it screamed, then for ten minutes it was quiet, and then it came back from the other side", "Boats go from roof to roof, where families sit with their goats and their televisions",
             "eleven schoolgirls from the top of a water tower", "a ferryman who had lashed himself to a palm", "rivers inland are still rising and will crest within two days",
             "shelters that were built in the last decade and whose keys nobody could find", (25, 190), _TROPICAL),
    Disaster("flood", "the river broke its banks above {city} and a flood swept through the lower towns of {region}",
             "A brown line on the walls, higher than the doors, shows where the water stood",
             "It did not rise, it arrived", "Divers feel their way through cellars and underground car parks",
             "a couple who had floated for nine hours on a mattress", "a nurse and two patients from the roof of a clinic", "a second band of rain is expected before the ground has drained",
             "a warning that was drafted in the afternoon and sent after the water came", (14, 96)),
    Disaster("landslide", "a hillside gave way and a landslide buried the upper streets of a town near {city}",
             "Where the market was, there is a slope with a bicycle wheel sticking out of it",
             "I heard the dogs, then trees breaking, and I ran without knowing from what", "Soldiers and neighbours dig with shovels, since machines would set the slope moving again",
             "a girl of six who had been trapped beside her grandmother's loom", "a bus driver who had stayed at the wheel", "the slope is still moving by several centimetres a day",
             "a road cut into the foot of the hill two years ago, against the advice of a geologist", (18, 120), (*_MOUNTAIN, "Zamburi")),
    Disaster("wildfire", "a wildfire driven by dry wind jumped a motorway and reached the edge of {city}",
             "Whole rows of houses are gone to the chimney, while one garden with its washing line stands untouched",
             "We drove through it with wet towels on the windscreen and the radio telling us to stay calm", "Crews go through the ash with dogs, house number by house number",
             "four hikers who had lain down in a reservoir", "an old man who had refused to leave his donkeys", "the wind is forecast to turn and freshen again",
             "a power line that a farmer had reported three times", (7, 48), _WARM),
    Disaster("volcanic eruption", "a volcano that had been silent for {years} years erupted in {region} and sent ash over {city}",
             "Ash lies ankle deep on the coffee terraces, and shopkeepers sweep it into sacks as if it could be sold",
             "It was noon and the streetlights came on", "Helicopters cannot fly in the ash, so rescue teams walk up with donkeys",
             "a party of pilgrims from a chapel on the rim", "two shepherds burned on the hands but alive", "the mountain is swelling, and a second eruption cannot be ruled out",
             "an observatory that had lost half of its instruments to thieves and budget cuts", (9, 60), ("Castara", "Naruma", "Pelinang", "Zamburi")),
    Disaster("dam burst", "an earth dam gave way above {city} and emptied its lake into the valley within an hour",
             "The valley road is now a bed of pale stones, with a piano lying in it",
             "My mother was counting the children on the roof, over and over, to be sure of the number", "Searchers follow the river on foot for thirty kilometres, turning over every tree",
             "three brothers clinging to the cable of a footbridge", "a farm worker who had been carried six kilometres", "two smaller dams below are full to the lip",
             "a crack that was photographed in the autumn and filed under routine", (30, 210), ("Belmara", "Castara", "Wislania", "Oyala", "Torgan")),
    Disaster("winter storm", "a winter storm buried {region} under two metres of snow and cut the power in {city}",
             "Pylons stand bent like hairpins, and cars on the coast road show only their aerials",
             "We burned the chairs first, then the good chairs", "Volunteers on skis knock at every farm that has no smoke over it",
             "a coachload of pensioners after thirty hours on a mountain pass", "a newborn and her mother from a stranded ambulance", "temperatures are to fall below minus twenty before they rise",
             "a grid that was meant to be put underground after the last storm of this kind", (6, 34), ("Skarland", "Ontara", "Wislania", "Vestria", "Torgan")),
    Disaster("avalanche", "an avalanche broke through a forest and struck a village in the mountains above {city}",
             "The church tower stands alone in a white field that was a street the day before",
             "There was no noise at all, only a push, and then it was dark", "Rescuers stand shoulder to shoulder with poles and advance one step at a time",
             "a cook who had been under the snow for five hours", "a father and son in a cellar, playing cards by a bicycle lamp", "the upper slopes still hold a great deal of unstable snow",
             "new chalets on land that an old map calls the White Lane", (5, 27), ("Montavia", "Vestria", "Skarland", "Torgan", "Naruma")),
    Disaster("tsunami", "a tsunami set off by an undersea quake ran up the shore near {city}",
             "The harbour is empty of water at one hour and full of cars the next",
             "The sea went out like a tablecloth being pulled", "Searchers work between the tides, in the mud of three fishing harbours",
             "a kindergarten class that had climbed the lighthouse stairs", "a sailor found twenty kilometres out on a refrigerator", "harbour gauges show that smaller waves may follow for a day",
             "a buoy that had stopped reporting in the spring and was not replaced", (20, 240), ("Naruma", "Haesan", "Pelinang", "Castara")),
    Disaster("tornado", "a tornado cut a path of forty kilometres through {region} and flattened a suburb of {city}",
             "A school bus lies in a church, and the pages of its library are found three villages away",
             "It took the roof and left the lamp burning", "Neighbours call names into cellars and mark the doors with spray paint when somebody answers",
             "a family of seven from a storm cellar under a fallen oak", "two night watchmen at a grain silo", "the front that bred it will pass over the same farms again",
             "sirens that were tested on Mondays and failed on the day", (8, 55), ("Ontara", "Belmara", "Castara")),
    Disaster("mudslide", "mud and boulders from a burnt hillside slid into the southern quarter of {city}",
             "Mud fills the ground floors to the light switches and has set there like brick",
             "I opened the front door to look and the door came in with the hill", "Excavators are let in one at a time, so that people underneath can be heard",
             "a pharmacist from behind his own counter", "twins, five years old, in an upstairs bath", "the next shower could bring down what is left of the slope",
             "a slope that nobody replanted after last year's fire", (9, 58), ("Castara", "Belmara", "Montavia", "Pelinang")),
)  # fmt: skip


@dataclass(frozen=True)
class Toll:
    c: Country
    d: Disaster
    city: City
    region: str
    size: float
    wind: int
    years: int
    dead: int
    dead_later: int
    dead_last: int
    missing: int
    hurt: int
    homeless: int
    helpers: int
    hours: int
    mayor: Person
    survivor: Person
    rescuer: Person
    expert: Person
    aid: Person
    premier: Person
    friend: Country
    cost: Money
    offer: str


def _toll(scene: Scene) -> Toll:
    d = scene.fresh("disaster", DISASTERS, uses=2)
    c = among(scene, f"{d.noun} in", d.where)
    city = scene.pick(c.cities[1:])
    last = scene.between(*d.dead)
    later = max(4, round(last * scene.rng.uniform(0.6, 0.85)))
    first = max(3, round(later * scene.rng.uniform(0.2, 0.6)))
    return Toll(
        c, d, city, scene.pick(c.land.regions), scene.tenth(5.9, 7.3), scene.between(16, 24) * 10, scene.between(41, 230),
        first, later, max(last, later + 1), scene.between(later // 2 + 3, later + 14), scene.near(later * 2 + 12, later * 5 + 30), scene.near(1_100, 48_000), scene.near(240, 3_900), scene.between(19, 44),
        scene.person(c, f"the mayor of {city.name}"), scene.person(c), scene.person(c, "the head of the rescue service"),
        scene.person(c, f"{scene.pick(('a geographer', 'a hazard researcher', 'an engineer'))} at the university in {c.capital}"),
        scene.person(None, "who coordinates relief for an aid agency"), head(c), neighbour(scene, c), scene.money(3e8, 9e9, c.currency),
        scene.pick(("two field hospitals", "a cargo plane of blankets", "forty rescue dogs and their handlers", "water purifiers for ten thousand people", "a company of army engineers", "six helicopters")),
    )  # fmt: skip


DISASTER = Beat(
    "natural disasters",
    _toll,
    (
        Stage(
            titles=("{d.noun:cap} in {c.name} kills at least {dead:fig}", "At least {dead:fig} dead as {d.noun} strikes {region}", "{c.name}: {d.noun} near {city.name}, rescuers on the way", "{city.name} counts its dead after {d.noun}", "{d.noun:cap} hits {c.name}, {homeless} lose their homes", "Thousands flee {d.noun} in {region}, {c.name}"),
            abstracts=("Officials speak of {dead:fig} dead and expect more. Some {homeless} people have left their homes.", "“{d.seen},” says {survivor.name} in {city.name}. {c.premier.name}, the {c.title}, has declared an emergency.", "Roads to {city.name} are cut and {d.warning}.", "The worst is feared in the villages around {city.name}, which nobody had reached by evening."),
            leads=("In {city.name} they will date things from {today}: {d.event}, and killed at least {dead:fig} people.", "At least {dead:fig} people were killed in {c.name} {on} when {d.event}.", "“{d.seen},” said {survivor.name} of {city.name}, one of thousands of people driven from their homes in {c.name} {on}, when {d.event}.", "Rescuers were struggling to reach the worst-hit parts of {c.name} {on} after {d.event}. Officials put the dead at {dead:fig} and [said the number would rise|hardly dared to guess further]."),
            then=(say("{d.damage}. {mayor.last} said that at least {missing:count person/people} could not be found. “[We are counting by asking|I have lists, and I do not trust my lists|Ask me tomorrow, today we dig],” {mayor.he} said.",
                      "“[We have no light and no telephones, but we have hands|Every family here is looking for somebody|I have slept on the floor of the fire station],” said {mayor.last}, who put the missing at {missing:fig}. {d.damage}.",
                      "{d.damage}. By evening the hospitals of {region} had taken in {hurt} injured people, according to {mayor.last}."),),
            loose=(say("{survivor.name}, [who was at home|who had been getting the children ready|a shopkeeper in {city.name}], [told it in one sentence|found few words]: “{d.seen}.”", "“{d.seen},” said {survivor.name}, wrapped in [a tablecloth|a blanket from the railway|somebody else's coat] outside a school in {city.name}."),
                   say("{premier.last} [cut short a visit abroad|cancelled a party congress|flew over the area in a helicopter] and declared a state of emergency in {region}. “[The state will pay, and it will pay before the forms are filled in|Nobody will be left to do this alone],” {premier.he} said.", "The government in {c.capital} sent {helpers} soldiers and firefighters. {premier.last} asked people to [stay off the roads|keep the telephone lines free|boil their water].", "An emergency was declared in {region}, which lets {premier.last} [send in the army without a vote|spend from the reserve]. {premier.he:cap} is due in {city.name} {t1:on}."),
                   say("{expert.last} said the danger was not over: {d.warning}.", "For now, {d.warning}, according to {expert.last}[, who has studied {region} for two decades|].", "“[People ask when it will be over, and I can't say|It is too early to go home],” said {expert.last}. {expert.he:cap} pointed out that {d.warning}."),
                   say("{friend.name} offered {offer}. {c.name} [accepted within the hour|said it would take whatever could be landed]."), say("Some {homeless} people are sleeping in [schools, stadiums and cars|tents and gymnasiums|railway carriages and churches], [and nobody knows for how long|the interior ministry said].")),
            weight=0.72, covered=0.45,
        ),
        Stage(
            titles=("Rescuers pull survivor from ruins {hours} hours after {c.demonym} {d.noun}", "{c.name}: {d.noun} toll rises to {dead_later:fig}", "“We still hear voices”: search goes on after {d.noun} in {c.name}", "{d.noun:cap} in {c.name}: {dead_later:fig} dead, {missing:fig} missing", "Survivors found in {city.name} as {d.noun} toll climbs to {dead_later:fig}"),
            abstracts=("The number of dead in {c.name} has risen to {dead_later:fig}. {d.search}.", "Rescuers in {city.name} brought out {d.rescue}. Hope for {missing:fig} missing people is fading.", "After {hours} hours, one piece of good news from {region}: {d.rescue}."),
            leads=("Rescuers in {city.name} brought out {d.rescue} {on}, [to applause|in front of a crowd that had been told to keep silent], some {hours} hours after the {d.noun} that has now killed {dead_later:fig} people in {c.name}.",
                   "The number of people known to have died in the {d.noun} in {c.name} rose to {dead_later:fig} {on}, with {missing:fig} still missing.", "{d.search}. In {c.name}, where a {d.noun} struck {t0:on}, the dead now number {dead_later:fig}, and still there are [rescues|voices].", "{today} brought one piece of good news to {city.name} and much bad: rescuers found {d.rescue}, while the toll of the {c.demonym} {d.noun} reached {dead_later:fig}."),
            then=(say("“[He asked what day it was|They said thank you, and asked for tea|I cried, and I do not do that],” said a firefighter who had been there. The rescued were taken to hospital in {c.capital}, where doctors called their condition [stable|better than anybody had a right to expect].", "{rescuer.last} called it “[luck and ears|the reason we do not send the crews home]”. Some {helpers} people are taking part in the search.", "{rescuer.last} [warned against false hope|chose the words with care]. “[There are air pockets and there are miracles. I plan for air pockets|After the third day we find fewer, and we look just as hard],” {rescuer.he} said."),),
            loose=(say("{d.search}. {rescuer.last} says {rescuer.his} {helpers} people [work in shifts of four hours|sleep where they sit]."),
                   say("Beyond {city.name}, {d.warning}.", "The work is dangerous, since {d.warning}."), say("{aid.name}, {aid.role}, said the most urgent need was for [clean water|tents|insulin and nappies|fuel]. “[Blankets we have. What we lack is a road|Everybody sends clothes; please send pumps],” {aid.he} said.", "Relief is [slow|coming in], said {aid.name}, {aid.role}: “[The first lorry was mobbed and the second was empty|We can feed twenty thousand today and nobody promises me tomorrow].”"),
                   say("{premier.last} visited {city.name} {on} and was [met with silence|shouted at by a woman looking for her sons|asked where the army had been]. “[They are right to be angry|I did not come to make a speech],” {premier.he} said."), say("About {homeless} people cannot go home. {mayor.last} has opened [the ice rink|two hotels|the opera house|the bus depot] to them.", "{mayor.last} spent the day [handing out keys to hotel rooms|arguing for generators]. “[I have {homeless} people and {hurt} beds|Yesterday they needed water, today they need their glasses and their pills],” {mayor.he} said."),
                   say("The help that {friend.name} had promised, {offer}, [arrived|reached the airport] {on}.")),
            after=(0.9, 1.9), weight=0.6, covered=0.3,
        ),
        Stage(
            titles=("After the {d.noun}: {c.name} asks who is to blame", "{c.name}: questions over {d.noun} that killed {dead_last:fig}", "{d.noun:cap} damage in {c.name} put at {cost}", "{city.name} buries its dead and wants answers about the {d.noun}", "Inquiry ordered into {c.demonym} {d.noun} response"),
            abstracts=("Survivors point to {d.blame}. {c.premier.name} has ordered an inquiry.", "The toll stands at {dead_last:fig} and rebuilding will cost {cost}. Attention turns to {d.blame}.", "A report of {expert.name} names {d.blame}."),
            leads=("With {dead_last:fig} people confirmed dead, the talk in {city.name} has turned from the {d.noun} itself to {d.blame}.", "{premier.last} ordered an inquiry {on} into the {d.noun} that killed {dead_last:fig} people, after reports of {d.blame}.", "The search in {city.name} was called off {on}. The {d.noun} killed {dead_last:fig} people and left damage that the {c.demonym} government puts at {cost}.", "Some things about the {c.demonym} {d.noun} could not have been helped. {d.blame:cap} is not one of them, say people in {city.name}, who began to bury their dead {on}."),
            then=(say("“[Nature did the first half|It was written down, it was signed and it was put in a drawer],” said {expert.last}, who has [looked through the files|walked the ground with a camera]. The main charge concerns {d.blame}.", "{survivor.name}, who lost [two cousins|a neighbour|the shop and both rooms above it], was more direct: “[They knew|Somebody was paid to know this|I want a name, not a committee].” Many here speak of {d.blame}."),
                  say("{premier.last} promised [that the report would be published in full|to have an answer within ninety days]. {c.rival.name}, the leader of the opposition, said {c.rival.he} had “[heard that after the last one|no faith in a government that investigates itself]”.", "The government [would not comment on|did not deny the reports of] {d.blame}. “[If mistakes were made, they will be named|This is a week for funerals],” {premier.last} said.")),
            loose=(say("Rebuilding will cost about {cost}, according to a first estimate. [Little of it was insured|Insurers expect to pay a fifth]."), say("Classes in {city.name} have begun again, [in shifts|in tents|with a third of the desks empty].", "In the centre of {city.name} [a barber has set up his chair on the pavement|the first bakery has opened, and the queue is the town's newspaper|traffic lights are working again, and people stop to look at them]."),
                   say("{friend.name} will help with [prefabricated houses|a loan without interest|engineers for a year], its government said."), say("{mayor.last}, [hoarse after a week of it|still in the same jacket], wants the town rebuilt [higher up|with fewer storeys|where it stands]. “[My grandmother was born here and so will somebody's be|We will not do it the same way twice],” {mayor.he} said."),
                   say("{aid.name}, {aid.role}, warned that attention was moving on. “[In a month they will need more than now, and nobody will be filming|The tents were meant for summer],” {aid.he} said.")),
            after=(2.5, 5), weight=0.42, covered=0.15, chance=0.85,
        ),
    ),
    share=1.2,
)  # fmt: skip
