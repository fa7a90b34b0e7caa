# ruff: noqa: E501 (prose reads better unbroken)
"""The food desk: restaurants, recipes and drinks; farms, prices and chefs are in food_farms."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Desk, Scene, Stage, say
from backend.news.sources.newsroom.desks.food_farms import CHEFS, FARMING, PRICES
from backend.news.sources.newsroom.desks.food_table import (
    DRINKS,
    KITCHENS,
    NOISE,
    PLACES,
    RECIPES,
    ROOMS,
    SERVICE,
    Drink,
    Kitchen,
    Recipe,
)
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import LEISURE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Meal:
    k: Kitchen
    c: Country
    city: City
    place: str
    room: str
    service: str
    noise: str
    best: str
    best_was: str
    next: str
    next_was: str
    third: str
    third_was: str
    bad: str
    bad_was: str
    sweet: str
    stars: int
    good: str | None
    mixed: str | None
    price: Money
    mains: Money
    chef: Person
    waiter: Person
    before: str
    months: int
    street: str


_BEFORE = ("on cruise ships", "in a hospital kitchen", "for an ambassador", "in three famous kitchens and one infamous one", "as a surveyor", "on an oil platform", "at a grandmother's elbow", "in the army", "as a pastry chef", "in a prison, as a teacher", "as a drummer", "at a school canteen")  # fmt: skip
_STREETS = ("Mill Street", "the Old Ropewalk", "Tanners' Row", "Station Road", "Canal Quay", "the fish market", "Bishop's Lane", "the tram depot", "Orchard Street", "the upper town", "Lime Walk", "the law courts", "Glover Street", "the botanical garden")  # fmt: skip


def _meal(scene: Scene) -> Meal:
    k = scene.deal("kitchen", KITCHENS)
    c = scene.country()
    (best, best_was), (after, after_was), (third, third_was) = scene.sample(k.dishes, 3)
    bad, bad_was = scene.pick(k.poor)
    stars = scene.pick((2, 3, 3, 4, 4, 4, 5))
    scale = 25 if c.currency.unit else 1
    mains = scene.between(14, 29)
    return Meal(
        k, c, scene.pick(c.cities), scene.fresh("restaurant", PLACES), scene.deal("room", ROOMS), scene.deal("service", SERVICE), scene.deal("noise", NOISE), best, best_was, after, after_was, third, third_was, bad, bad_was, scene.pick(k.sweet), stars,
        "" if stars >= 4 else None, None if stars >= 4 else "", Money(float(mains * scale * 2 + scene.between(9, 24) * scale), c.currency), Money(float(mains * scale), c.currency), scene.person(c), scene.person(c), scene.deal("chef before", _BEFORE), scene.between(2, 11), scene.deal("street", _STREETS),
    )  # fmt: skip


RESTAURANT = Beat(
    "restaurants",
    _meal,
    (
        Stage(
            titles=("{place}, {city.name}: restaurant review", "Restaurant review: {best} at {place}", "{good}{place} in {city.name}: come for the {k.style} cooking, stay for {sweet}", "{mixed}{place}, {city.name}: a {k.style} restaurant with {best} and some problems", "{stars} stars for {place}, a {k.style} restaurant in {city.name}", "{k.style:cap} cooking in {city.name}: a table at {place}", "{good}{best:cap} and other reasons to book at {place}"),
            abstracts=("{k.style:cap} cooking in {room}. Rating: {stars} out of five.", "{best:cap}: {best_was}. The rest of the menu [keeps up|is not far behind].", "{mixed}{best:cap} is worth the journey, but {bad} {bad_was}.", "{good}{service}. Dinner for one comes to about {price}, with a glass.", "{chef.name}, who cooked {before}, has opened a place of {chef.his} own."),
            leads=("{place} is {room}, near {street} in {city.name}. {service}, [and then the food came|but one comes for the food].", "Begin with {best}. At {place} in {city.name}, {best_was}.", "Before {chef.name} opened {place} in {city.name}, {chef.he} cooked {before}. It shows, [in the good sense|mostly in a good way].", "{service}. That is how it starts at {place}, {months} months old, in {city.name}, {room}.", "The best thing I ate this [month|season] was {best}. I ate it in {room}: {place}, near {street}, in {city.name}."),
            then=(say("The {k.style} menu is short. {next:cap}: {next_was}. {third:cap}: {third_was}.", "{next:cap} came next, which is {k.style} cooking at full strength: {next_was}. And {third}: {third_was}.", "We had {next}: {next_was}. We had {third}: {third_was}. For a {k.style} kitchen it is a [fine|strong] start.", "Two more from the {k.style} card. First, {next}: {next_was}. Second, {third}: {third_was}.", "{third:cap}: {third_was}. {next:cap}: {next_was}. [So much for|That settles] the question whether {city.name} needs another {k.style} place."),
                  say("{mixed}Alas, {bad} {bad_was}.", "{mixed}Not everything works: {bad} {bad_was}.", "{mixed}And then {bad} {bad_was}. [One forgives and does not forget|Nobody at our table finished it].", "{good}If I must complain: {bad} {bad_was}.", "{good}Only {bad} {bad_was}[, and it was the smallest plate|, which I mention for the sake of order].", "{good}There was a single lapse: {bad} {bad_was}.")),
            loose=(say("{noise}"), say("For pudding there was {sweet}. [I would walk for it|We had one with two spoons and then another with one|It was gone before it was described].", "End with {sweet}[, whatever the waiter says|, and with nothing after it].", "{sweet:cap} [closed the evening as a good joke does|came last and was talked about first]."), say("Main courses cost about {mains}; [with a glass of wine one gets away for|two courses and a drink come to] {price}.", "A main course is {mains} or so, the whole evening {price} a head.", "The bill came to {price} a head with wine. Mains are around {mains}.", "[Count on|Reckon with] {price} for three courses and a glass."),
                   say("{chef.name}, who cooked {before} before this, [comes out late, in clogs|stays behind the pass|greets the last guests]. “[People want to be looked after, and fed, in that order|I cook what I'd like to come home to|I don't do concepts, I do Tuesdays|Salt, heat, and somebody to talk to],” {chef.he} says.", "[Late in the evening|After the puddings] {chef.name} sits down at the bar. “[My best dish is the one they ask to take home|A full plate is a short speech|I have burned more than most people eat],” {chef.he} says.", "“[Nobody was ever made happy by a garnish|I buy in the morning and write the menu at noon|Let them talk, as long as they chew],” says {chef.name}, whose kitchen it is."), say("{waiter.name}, our waiter, [recommended the wrong wine with such charm that we kept it|knew which farm, and which field|had opinions about salt]."), say("The wine list has [thirty names and a few surprises|more from the neighbours than from abroad|a page headed “odd”].", "Wine comes [by the carafe|in small glasses, so that one can try]; [the house white is from the next hill|there is cider for those who ask].", "To drink there is [beer from two streets away|a red from {city.name} that surprises everybody], [and water is free|and a jug of something with elderflower].", "[Those who don't drink are not bored: there are five home-made lemonades|The list of wines fits on a postcard, and the postcard is on every table].")),
            close=(say("{place}, near {street}, {city.name}. Open Tuesday to Saturday, evenings.", "{place}, {city.name}. Food {stars} out of five. Booking [advised|hardly needed on weekdays].", "{place}, near {street}, {city.name}. About {price} a head. Closed on Mondays.", chance=0.75),),
            weight=0.22, covered=0.05,
        ),
    ),
    share=1.0,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Dish:
    r: Recipe
    cook: Person
    c: Country
    city: City
    work: str
    minutes: int
    serves: int


_COOKS = ("keeps a canteen for tram drivers", "writes cookery books", "teaches evening classes in cooking", "has a stall at the Saturday market", "runs a village inn", "cooks in a home for the elderly", "is a retired ship's cook", "has a bakery with four tables")  # fmt: skip


def _dish(scene: Scene) -> Dish:
    c = scene.country()
    r = scene.fresh("recipe", RECIPES)
    return Dish(r, scene.person(c), c, scene.pick(c.cities), scene.pick(_COOKS), r.minutes, r.serves)  # fmt: skip


RECIPE = Beat(
    "recipes",
    _dish,
    (
        Stage(
            titles=("Recipe: {r.head:lower}", "{r.head}", "How to make {r.dish}", "Tonight, {r.dish}: a recipe from {city.name}", "{r.dish:cap}, and the trick that makes it work"),
            abstracts=("A recipe for {serves} that takes {minutes:fig} minutes, because {r.why}.", "{cook.name} {work} in {city.name} and makes {r.dish} like this.", "{r.trick}. And another thing: {r.swap}."),
            leads=("{cook.name}, who {work} in {city.name}, {r.tale}. {r.dish:cap} is what people ask {cook.him} for.", "There are days for {r.dish}. The point of it: {r.why}. The recipe is from {cook.name}, who {work} in {city.name}.", "“I make {r.dish} when I want [to please without showing off|company in the kitchen|peace],” says {cook.name}, who {work} in {city.name}. It has one great merit: {r.why}.", "{r.dish:cap}: the {c.demonym} cook {cook.name} {r.tale}. It takes {minutes:fig} minutes, most of them idle."),
            then=(say("For {serves} you need {r.needs}.", "What you need (for {serves}): {r.needs}.", "Shopping list for {serves}: {r.needs}."), say("{r.first}"), say("{r.then}"), say("{r.last}")),
            loose=(say("The trick: {r.trick:lower}.", "{cook.name} insists on one point. “{r.trick},” {cook.he} says.", "{r.trick}. Everything else is [forgiven|a matter of taste]."), say("Variations are allowed: {r.swap}.", "And if something is missing? Then {r.swap}."), say("[Reckon with|Allow] {minutes:fig} minutes in all, including [the washing of the knife|a glass of something]."), say("What is left over [tastes better the next day|makes a good lunch], says {cook.name}[, if there is any|].")),
            weight=0.18, covered=0.12,
        ),
    ),
    share=0.45,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Glass:
    d: Drink
    c: Country
    city: City
    region: str
    n: int
    few: int
    many: int
    pct: int
    price: Money
    maker: Person
    critic: Person
    guest: Person


def _glass(scene: Scene) -> Glass:
    d = scene.fresh("drink", DRINKS, uses=2)
    c = scene.country()
    return Glass(d, c, scene.fresh("drink city", c.cities, uses=4), scene.pick(c.land.regions), scene.between(18, 64), scene.between(3, 8), scene.near(420, 980), scene.between(11, 34), Money(float(scene.between(3, 6) * (25 if c.currency.unit else 1)), c.currency), scene.person(c), scene.person(None), scene.person(c))  # fmt: skip


DRINK = Beat(
    "drinks",
    _glass,
    (
        Stage(
            titles=("{d.head}", "{d.head2}", "“{d.quote}”: {d.kind} from {c.name}", "Drinks: {d.kind} in {city.name}, tasted", "What is in the glass? {d.kind:cap} from {c.name}"),
            abstracts=("{d.news:cap}.", "{d.how} “{d.quote},” says {maker.name}.", "In the glass: {d.taste}.", "“{d.critic},” says {critic.name}, who tasted it."),
            leads=("{d.news:cap}, and {c.name} [has noticed|raises a glass].", "In {c.name} the subject is {d.kind}: {d.news}.", "“{d.quote},” says {maker.name}, {d.maker}, in {city.name}, {c.name}. The drink is {d.kind}, and there is news of it: {d.news}.", "First the nose: {d.taste}. Then the news, from {c.name}: {d.news}."),
            then=(say("“{d.quote},” says {maker.name}, {d.maker}.", "{maker.name}, {d.maker}, [fills a glass|wipes the counter|laughs]. “{d.quote},” {maker.he} says."), say("{d.how}")),
            loose=(say("How does it taste? Of {d.taste}.", "In the glass: {d.taste}."), say("{critic.name}, [a sommelier|who judges such things for a living], [tasted it blind|took notes]. “{d.critic},” {critic.he} says.", "“{d.critic},” says {critic.name}, a wine writer."), say("{d.figure}"), say("{guest.name}, [a guest at the bar|who had come in out of the rain|who had been talked into it|whose train was late], [was won over|needed a second sip|asked what was in it]. “[I'd have said I don't like it|It tastes like a place I have been to|My father would have sent it back],” {guest.he} says."), say("{d.end}.", "What comes next? {d.end}.")),
            weight=0.2, covered=0.12,
        ),
    ),
    share=0.6,
    rhythm=LEISURE,
)  # fmt: skip

FOOD = Desk("food", (RESTAURANT, RECIPE, DRINK, FARMING, PRICES, CHEFS), share=0.9)
