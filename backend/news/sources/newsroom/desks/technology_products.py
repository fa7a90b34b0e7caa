# ruff: noqa: E501 (prose reads better unbroken)
"""How the technology desk covers what people hold in their hands: new devices and the apps on them."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.technology_security import crowd
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import DOLLAR, City
from backend.news.sources.newsroom.schedule import LEISURE, ROUND
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Gadget:
    """A device: its `new` feature (a noun phrase), how it did in use (`good`, `bad`: sentences), and who should buy it."""

    kind: str
    new: str
    claim: str
    good: str
    bad: str
    price: tuple[int, int]
    defect: str


_GADGETS: tuple[Gadget, ...] = (
    Gadget("smartphone", "a battery that lasts four days", "People told us they wanted a phone they could forget to charge", "After three days of maps, calls and a film, a fifth of the charge was left.", "It is as thick as a paperback and slides off sofas.", (590, 890), "screens that turn green in the cold"),
    Gadget("folding phone", "a hinge without a visible crease", "We folded it four hundred thousand times, in a room where nobody could hear it", "Open, it replaces a tablet; the crease is gone unless you look for it.", "Sand is its enemy, and so are the pockets of summer jackets.", (1_290, 1_790), "hinges that click"),
    Gadget("smartphone", "a camera that sees in moonlight", "Half of all pictures are taken after dark, and most of those are of nothing", "A cat on an unlit wall came out with whiskers.", "By day, colours look like a travel brochure.", (690, 1_090), "a camera that hums in video"),
    Gadget("repairable phone", "a back held by two screws", "Anyone who can change a bulb can change this battery", "Our tester swapped the screen in eleven minutes, with coffee in between.", "The processor is two years old and the camera feels it.", (430, 620), "a loose charging socket"),
    Gadget("phone for children", "no browser and no shop", "It rings, it has a torch, and it knows the way home", "A nine-year-old declared it boring after an hour, which one could take as praise.", "Grandparents must install an app before they may call.", (120, 190), "an alarm that cannot be switched off"),
    Gadget("smart watch", "a sensor for blood pressure", "It doesn't replace a doctor; it sends you to one earlier", "Its readings stayed close to those of a clinic's cuff.", "It wants to be tightened until it leaves a mark.", (290, 490), "straps that cause a rash"),
    Gadget("laptop", "a screen readable in full sun", "We designed it on a bench in a park, and the bench is now in our lobby", "On a beach at noon the text stood out like print.", "Indoors the same screen looks a little grey.", (980, 1_690), "fans that stop after an update"),
    Gadget("tablet", "a pencil that needs no charging", "Children lose pencils, so we made one that is cheap to lose", "Writing feels like paper, down to a faint scratch.", "The software tidies handwriting whether one likes it or not.", (340, 690), "a screen that comes unglued"),
    Gadget("pair of earphones", "live translation in the ear", "You hear the other person, only in your language and a second late", "At a market stall it haggled for us and won.", "In a noisy bar it translated the song.", (180, 320), "a case that overheats"),
    Gadget("e-reader", "colour pages", "Comics, cookery and children: the three things grey could not do", "A picture book kept its charm and the battery its charge.", "Colours are those of an old newspaper supplement.", (190, 310), "pages that turn by themselves"),
    Gadget("pair of smart glasses", "subtitles for conversations", "My father stopped coming to dinner because he couldn't follow it; he's back", "In a quiet room, every word appears beneath the speaker's chin.", "With three people talking it becomes a poem.", (490, 890), "a frame that gets hot"),
    Gadget("robot vacuum", "legs for stairs", "The stairs were the last frontier, and we've lost forty prototypes to them", "It climbs like a careful toddler and cleans each step.", "It needs nine minutes for a floor and frightens the dog.", (880, 1_390), "a habit of falling at night"),
    Gadget("home speaker", "no connection to the internet", "What it hears stays in your kitchen, because there is no wire out of it", "Timers, radio and light switches work at once, without a far-off server.", "Ask about anything beyond the kitchen and it says so, every time.", (110, 210), "a volume that jumps"),
    Gadget("action camera", "a lens you can replace", "Everybody scratches the lens on the second day", "After a week of gravel and surf, a new lens took a minute to fit.", "Its menus are made for smaller fingers than anyone has.", (310, 480), "a seal that lets in water"),
    Gadget("mini projector", "focus that corrects itself", "You put it down crooked and it doesn't mind", "On a bumpy bedroom wall the picture squared itself in two seconds.", "The fan joins in during quiet scenes.", (390, 690), "a lamp that flickers"),
    Gadget("electric scooter", "a brake that feels wet leaves", "Autumn is when our customers fall, so autumn is where we tested", "On wet cobbles it stopped straight.", "At nineteen kilos it turns the third floor into a workout.", (590, 990), "a throttle that sticks"),
    Gadget("digital camera", "a shutter without menus", "Four dials, because you have four things to decide", "One is ready before the bird has flown.", "It has no video at all, and says so proudly on the box.", (1_190, 2_300), "dials that come loose"),
    Gadget("games handheld", "a screen you can roll up", "It goes into a pencil case, which is where it belongs", "Racing games look splendid on the long picture.", "The roll makes a sigh that everybody on the train hears.", (360, 560), "a roll that jams"),
    Gadget("smart ring", "payment by knock", "You knock on the till twice, like on a friend's door", "It paid for coffee, bus and paper for a week without a phone.", "Guitarists and climbers will take it off.", (210, 390), "a coating that peels"),
    Gadget("keyboard", "keys that change their letters", "Four alphabets in one family is normal, and keyboards pretend it isn't", "Switching to another script takes one key and no stickers.", "It costs as much as a small computer.", (240, 410), "keys that go dark"),
    Gadget("budget phone", "seven years of updates", "The cheapest phone is the one you don't have to replace", "It does what phones costing three times as much do, a moment later.", "The camera gives up at dusk.", (140, 220), "a speaker that crackles"),
    Gadget("satellite phone", "text messages from anywhere", "There is no valley so deep that you can't complain about it", "From the floor of a gorge a message took forty seconds.", "Under trees one has to wave it about like a divining rod.", (420, 680), "an emergency key that is pressed too easily"),
    Gadget("baby-sitting robot", "a face that dims at bedtime", "It reads aloud and never skips a page", "Two children listened to the same bear story five times.", "It could not tell crying from laughing.", (690, 1_100), "eyes that stay open"),
    Gadget("desktop computer", "parts that click in without tools", "I wanted my mother to upgrade it, and she has, twice", "New memory took ten seconds, and a disc fifteen.", "Every part comes from the same shop, at that shop's prices.", (790, 1_490), "a lid that rattles"),
)  # fmt: skip

_MAKERS = ("Tindra", "Halyard", "Oblik", "Sundial Electronics", "Pentimento", "Ferrule", "Quarterdeck", "Marram Devices", "Hikari Works", "Novella", "Brightside Mobile", "Anvil & Ash", "Lumibird", "Copperline", "Seventh Floor")  # fmt: skip
_MODELS = ("Plover", "Atlas", "Finch", "Meridian", "Slate", "Echo Lake", "Nomad", "Juno", "Solstice", "Pebble Road", "Vantage", "Fable", "Orchid", "Drift", "Kodiak", "Luma", "Tern", "Cobalt", "Willow", "Rambler", "Onyx", "Sparrow", "Comet", "Harbour")  # fmt: skip


_HEAVY = (
    "robot vacuum",
    "electric scooter",
    "desktop computer",
    "mini projector",
    "baby-sitting robot",
    "home speaker",
    "laptop",
    "keyboard",
    "digital camera",
)
"""Devices of which neither the weight nor the hours of battery are worth a line."""


@dataclass(frozen=True)
class Device:
    g: Gadget
    maker: str
    model: str
    boss: Person
    tester: Person
    buyer: Person
    analyst: Person
    c: Country
    city: City
    price: Money
    old: Money
    weeks: int
    grams: int | None
    hours: int | None
    stars: int
    sold: int
    cases: int
    share: int
    good: str | None
    mixed: str | None
    rival: str


def _device(scene: Scene) -> Device:
    g = scene.fresh("gadget", _GADGETS)
    heavy = g.kind in _HEAVY
    maker, rival = scene.sample(_MAKERS, 2)
    c = scene.country()
    stars = scene.pick((2, 3, 3, 4, 4, 5))
    price = float(scene.between(g.price[0] // 10, g.price[1] // 10) * 10 - 1)
    currency = c.currency if not c.currency.unit else DOLLAR
    model = f"{scene.fresh('gadget model', _MODELS)} {scene.pick(('2', '3', '5', 'One', 'Pro', 'Air', 'S'))}"
    return Device(
        g, maker, model, scene.person(c, f"who runs {maker}"), scene.person(c), scene.person(c), scene.person(c, "a market analyst"), c, scene.pick(c.cities), Money(price, currency),
        Money(price - scene.pick((30, 40, 50, 60)) if price > 200 else price - 20, currency), scene.between(2, 6), None if heavy else scene.between(140, 640), None if heavy else scene.between(9, 41), stars, scene.near(20_000, 700_000), scene.near(40, 900), scene.between(6, 31),
        "" if stars >= 4 else None, None if stars >= 4 else "", rival,
    )  # fmt: skip


GADGETS = Beat(
    "gadgets",
    _device,
    (
        Stage(
            titles=("{maker} unveils {model}, a {g.kind} with {g.new}", "{g.new:cap}: {maker} shows its new {g.kind}", "New {g.kind} {model} from {maker} costs {price}", "{maker} puts {g.new} into a {price} {g.kind}"),
            abstracts=("The {model} has {g.new} and costs {price}. It is in shops in {weeks} weeks.", "{maker} wants to win back buyers with {g.new}.", "A first look at the {model}, the {g.kind} that {maker} showed in {city.name}."),
            leads=("{maker} presented a {g.kind} with {g.new} in {city.name} {on}. The {model} costs {price}[ and goes on sale in {weeks} weeks|].", "The {model}, a {g.kind} that the electronics maker {maker} showed in {city.name} {on}, has {g.new}. It costs {price}.", "{g.new:cap}: that is what {maker} promises buyers of its new {g.kind}, the {model}, which it unveiled {on}."),
            then=(say("“{g.claim},” said {boss.last} [on stage|at the launch|in {city.name}].", "“{g.claim},” {boss.last} told [an audience of developers and reporters|a full hall]."),),
            loose=(say("The {model} weighs {grams} grams and, the company says, runs for {hours} hours [on one charge|between two charges].", "At {grams} grams, the device is [lighter than the one before|no featherweight]; [officially|on paper] it lasts {hours} hours."), say("The model before it cost {old}. {maker} blames [dearer memory chips|the cost of parts] for the rise.", "That is more than the {old} asked for its predecessor."),
                   say("{analyst.last} [sees a gap in the market|was doubtful]. “[People keep their devices for four years now, so you need a reason|It's a good idea for a tenth of the buyers|{rival} will have the same by next year, and cheaper],” {analyst.he} said.", "“[The feature gets them into the shop, the price sends them to the next shelf|Nobody needs it and everybody will try it],” said {analyst.last}."),
                   say("{maker} holds {share}% of the {c.demonym} market; {rival} is [well ahead|close behind].", "Its competitor {rival} [is expected to answer next month|has a similar device in the works]."), say("In a brief trial at the stand, [it did what it should|the software was not quite finished|it was hard to fault]. A full review follows.", "[Five|Ten] minutes with the {model} were too few for a verdict; [first impressions are good|the queue behind us was long]. We will test it [next week|soon].", "We were allowed to [hold it|try it] [for a moment|under the eyes of a minder]. [It works|It froze once]; more when the {model} is in our hands."),
                   say("It comes in [grey, sand and a green that the brochure calls moss|two sizes and three colours|black, unless one waits].", "The box contains [no charger|a cable and a card of thanks].")),
            weight=0.3, covered=0.25,
        ),
        Stage(
            titles=("{model} review: {g.new}, and a catch", "{maker} {model} tested: {stars} out of five for the {g.kind}", "{good}{g.kind:cap} review: the {maker} {model} is a pleasure", "{mixed}{g.kind:cap} review: {maker} {model} promises more than it keeps", "A week with the {maker} {model}"),
            abstracts=("{g.good} {g.bad}", "Test of the {model}, a {g.kind} with {g.new} for {price}. Rating: {stars} out of five.", "Is {g.new} worth {price}? We tried."),
            leads=("{maker} promises {g.new}. After a week with the {model}, [the promise holds, mostly|one can say: yes, but|we have a clearer idea of it].", "The {model} is the {g.kind} that {maker} unveiled {t0:on}. We have used it [for a week|on buses, in bed and in the rain].", "{g.good} That is [the best thing|the first thing] to say about the {model}, the new {g.kind} by {maker}."),
            then=(say("{g.good}"), say("{g.bad}")),
            loose=(say("In our test the battery ran for {hours} hours, [as promised|an hour less with a bright screen].", "{maker} says {hours} hours of battery; [we got close|we never got there]."), say("{tester.name}, who tried it for us on the way to work, [did not want to give it back|gave it back early]. “[I stopped thinking about it, which is high praise|It's clever and it knows it|My old one had a scratch that I miss],” {tester.he} said.", "“[It took me two days to stop swearing and three to be won over|I like it more than I need it],” said {tester.name}, a colleague who borrowed it."),
                   say("It weighs {grams} grams and is [well made|solid, apart from a creak|pleasant to hold]."), say("At {price}, it is [fairly priced|dear]; the {rival} equivalent costs [less|about as much]."), say("{good}Verdict: {stars} out of five. [Buy it if your old one is broken|Those who have waited can stop waiting].", "{mixed}Verdict: {stars} out of five. [Wait for the next one|For enthusiasts|Wait for an update, or a discount]."),
                   say("Setting it up took [eleven minutes|two attempts]; [the manual is a web address|the manual has pictures, and they help].")),
            after=(2, 5), weight=0.2, covered=0.06, chance=0.9, rhythm=LEISURE,
        ),
        Stage(
            titles=("{maker} promises fix for {g.defect} on {model}", "Buyers of the {model} report {g.defect}", "{cases} complaints about {g.defect}: {maker} {model} under scrutiny"),
            abstracts=("{cases} buyers of the {g.kind} have complained. {maker} [apologises|is looking into it].",),
            leads=("Buyers of the {model}, the {g.kind} from {maker}, have reported {g.defect}; the company had counted {cases} complaints by {today}.", "{maker} will repair or replace the {model} of customers who suffer from {g.defect}, it said {on}."),
            then=(say("“[It's a batch, not the design|We've found it, and it's embarrassing in a small way|One in a thousand is one too many],” said {boss.last}."),),
            loose=(say("{buyer.name}, one of the first buyers, [had queued for it|wants a refund]. “[I paid {price} for {g.defect}|They were nice on the telephone and I'm still without one|At first I thought it was a feature],” {buyer.he} said."), say("The device was presented {t0:on} and has sold {sold} times[, the company says|]."), say("{analyst.last} did not expect lasting harm. “[How they handle it is the advertisement|Everybody forgets, if it's over by the weekend],” {analyst.he} said."), say("Reviewers had praised it. {g.good}"), say("An update [is to follow this month|cannot mend it, repairers say]."), say("Shops [went on selling|took down] the {model}.")),
            after=(2, 5), weight=0.3, chance=0.5,
        ),
    ),
    share=1.0,
    rhythm=ROUND,
)  # fmt: skip


@dataclass(frozen=True)
class App:
    name: str
    kind: str
    act: str
    people: str


_APPS: tuple[App, ...] = (
    App("Murmur", "messaging app", "send messages", "users"), App("Tramline", "timetable app", "see when the next bus comes", "commuters"), App("Pocketful", "payment app", "pay", "customers"), App("Duckling", "video app", "post or watch clips", "teenagers"),
    App("Knockknock", "neighbourhood app", "reach their neighbours", "members"), App("Larder", "grocery app", "order food", "households"), App("Wayside", "navigation app", "find their way", "drivers"), App("Cloudshelf", "photo storage app", "open their pictures", "families"),
    App("Sofa Club", "streaming app", "watch anything", "viewers"), App("Hopscotch", "ride app", "call a car", "riders"), App("Tickbox", "school app", "see homework or report a sick child", "parents"), App("Ledgerly", "banking app", "see their balance", "account holders"),
    App("Parlour", "audio chat app", "talk", "members"), App("Featherweight", "workout app", "log their runs", "joggers"), App("Penpal", "email app", "read their post", "users"), App("Swapshop", "second-hand app", "buy or sell", "sellers"),
)  # fmt: skip

_CAUSES = (
    ("an expired certificate that nobody had renewed", "It's the digital version of forgetting the gas bill"),
    ("an update that went out at the wrong hour", "Somebody pressed go at four, and it was meant for four tomorrow"),
    (
        "a digger that cut a cable",
        "You can build the cleverest network in the world, and then comes a man with a shovel",
    ),
    ("a fire alarm in a data centre", "The sprinklers stayed off, thank heavens; the people had to leave"),
    ("a fault in the clock of a server", "For a few hours part of our system lived in yesterday"),
    ("a wrong entry in an address book of the internet", "We had moved house and told everybody the wrong street"),
    ("a surge of new sign-ups after a television report", "Fame, it turns out, needs more memory"),
    ("a cleaner who unplugged a rack", "She needed a socket, and there was one"),
    ("a cooling pump that failed at the weekend", "The room was at forty degrees when the first of us got in"),
    ("a test that was run on the live system", "There are two windows on that screen, and they look the same"),
    ("a licence that had run out", "The reminder went to a man who retired in the spring"),
    ("a full disc", "I wish it were more interesting"),
)
_CHANGES = (
    (
        "charge for reading old messages",
        "My mother's last messages are in there",
        "storage costs money",
        "Nobody pays for a cupboard",
    ),
    (
        "show posts in order of time again",
        "I saw what my sister had for lunch, on the day she had it",
        "users had asked for it for years",
        "A feed without an engine is a bus without a driver, and some of us like walking",
    ),
    (
        "hide the number of followers",
        "I feel lighter, and I'm annoyed about it",
        "numbers made young people anxious",
        "They'll count something else instead",
    ),
    (
        "lock out users under 14",
        "All of my class is fifteen as of this morning",
        "the law is about to change",
        "Any child can subtract",
    ),
    (
        "switch itself off for an hour each evening",
        "We had dinner, and it was awkward",
        "people should sleep",
        "It's like a brewery closing at ten: it makes the news and people buy two",
    ),
    (
        "let users take their contacts to a rival",
        "I've moved forty people and one family feud",
        "regulators insisted",
        "A door that opens is a reason to stay",
    ),
    (
        "label pictures made by machines",
        "My holiday photograph got a label, because of the sky",
        "trust is all we have",
        "They label the honest ones",
    ),
    (
        "end anonymous accounts",
        "I review restaurants in a small town; do the sum",
        "abuse has doubled",
        "The worst insults I get are signed",
    ),
    (
        "pay users who report bugs",
        "I earn more from their mistakes than from my job",
        "outsiders find what we miss",
        "It is cheaper than testing and works better",
    ),
    (
        "sell a version without advertisements",
        "I'd pay twice to be rid of the dancing sofa",
        "choice is good for everyone",
        "Now the rest of us are the ones who can't afford quiet",
    ),
    (
        "delete accounts unused for two years",
        "My late brother's account is the only place where he still laughs",
        "old accounts are a risk",
        "There should be a drawer for the dead",
    ),
    (
        "read messages aloud in the sender's voice",
        "My boss was in the kitchen, and he wasn't",
        "voices carry warmth",
        "I can hear the fraudsters rubbing their hands",
    ),
)


@dataclass(frozen=True)
class Outage:
    a: App
    c: Country
    city: City
    chief: Person
    user: Person
    second: Person
    expert: Person
    cause: str
    quip: str
    hours: int
    reports: int
    users: int | str
    rival: str
    price: Money


def _outage(scene: Scene) -> Outage:
    a = scene.fresh("outage app", _APPS)
    cause, quip = scene.fresh("outage cause", _CAUSES, uses=2)
    c = scene.country()
    return Outage(a, c, scene.pick(c.cities), scene.person(c, f"the technical director of {a.name}"), scene.person(c), scene.person(c), scene.person(c, scene.pick(("who studies networks", "a software engineer", "who measures internet traffic"))), cause, quip,
                  scene.between(3, 14), scene.near(8_000, 160_000), crowd(scene.near(2e6, 8e7)), scene.pick([one.name for one in _APPS if one.kind == a.kind and one is not a] or ["a rival"]), scene.money(3, 9, c.currency))  # fmt: skip


OUTAGE = Beat(
    "outages",
    _outage,
    (
        Stage(
            titles=("{a.kind:cap} {a.name} down for [thousands|many] in {c.name}", "Outage at {a.kind} {a.name}: {reports} reports within an hour", "{a.name} outage leaves {a.people} unable to {a.act}"),
            abstracts=("{a.people:cap} could not {a.act}. The company is looking for the cause.", "The {a.kind} stopped working in the [morning|middle of the day]. More than {reports} people complained."),
            leads=("The {a.kind} {a.name} stopped working for [much|large parts] of {c.name} {on}, and {a.people} could not {a.act}.", "{a.people:cap} in {c.name} were unable to {a.act} {on} because of an outage at {a.name}.", "More than {reports} people reported within an hour {on} that the {a.kind} {a.name} had gone down."),
            then=(say("“[Our engineers see it and don't understand it yet|It's not an attack, as far as we know|We're on it, all of us, with cold pizza],” said {chief.last}."),),
            loose=(say("{user.name} [noticed it on a platform|noticed at breakfast|restarted the phone four times]. “[I asked a stranger instead, and it was nice|For a moment I thought I had been blocked by everyone|I had no plan B; I hadn't known there was a plan A],” {user.he} said.", "“[You reach for it like a light switch, and it's dark|I have paper somewhere],” said {user.name} in {city.name}."),
                   say("{second.name}, who runs a [café|shop|small firm] in {city.name}, lost [half a morning's business|several orders]. “[They hold up their screens as if I could do something|People were friendlier than usual, I must say],” {second.he} said."), say("{a.name} has some {users} users."), say("{expert.last} saw traffic [fall within seconds|collapse as if cut off]. “[Everybody leaves, nobody can get in, and then they all knock at once|So much hangs on so few nails],” {expert.he} said."), say("On social media, [jokes and complaints|rumours of a hack] spread[ faster than any notice from the company|]."), say("By [the evening|the time of printing], some {a.people} could {a.act} again.")),
            weight=0.4, covered=0.35,
        ),
        Stage(
            titles=("{a.name} back after {hours} hours; {cause} to blame", "What brought down {a.name}: {cause}", "{a.name} outage caused by {cause}, company says"),
            abstracts=("The {a.kind} was down for {hours} hours. {chief.name} apologises.", "{cause:cap} stopped the {a.kind} in {c.name}, a report says."),
            leads=("The outage of the {a.kind} {a.name} was caused by {cause}, the company said {on}.", "After {hours} hours, {a.people} could {a.act} again: {a.name} put the failure down to {cause}, it said {on}."),
            then=(say("“{quip},” said {chief.last}."),),
            loose=(say("The {a.kind} had failed {t0:on}; {reports} people complained within an hour."), say("Paying customers [will get|are to be given] {price} [as an apology|back]."), say("{expert.last} was [not surprised|grateful for the candour]. “[It's always something with a plug or a date|Most firms would have written 'technical issue'],” {expert.he} said."), say("{user.name}, who had [been stranded by it|tried all day in vain], [laughed|was not amused]. “[I had suspected spies, or my son|All that, for that],” {user.he} said."), say("{second.name}, a business owner in {city.name}, has since [put a notebook by the till|signed up with a second service]."), say("The regulator has asked for [a written report|a talk].")),
            after=(0.2, 2), weight=0.3, covered=0.15,
        ),
    ),
    share=0.7,
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    a: App
    c: Country
    chief: Person
    user: Person
    critic: Person
    scholar: Person
    plan: str
    moan: str
    why: str
    doubt: str
    users: int | str
    names: int
    weeks: int
    back: str | None
    stays: str | None
    pct: int


def _change(scene: Scene) -> Change:
    a = scene.fresh(
        "change app",
        [one for one in _APPS if one.name in ("Murmur", "Duckling", "Knockknock", "Parlour")],
        uses=3,
    )
    plan, moan, why, doubt = scene.fresh("app change", _CHANGES)
    c = scene.country()
    back = scene.chance(0.4)
    return Change(a, c, scene.person(None, f"the head of {a.name}"), scene.person(c), scene.person(c, scene.pick(("who writes about the industry", "a designer who once worked there", "of the users' association"))), scene.person(c, scene.pick(("a media scholar", "a psychologist", "an economist who studies platforms"))), plan, moan, why, doubt,
                  crowd(scene.near(4e6, 9e7)), scene.near(9_000, 400_000), scene.between(2, 6), "" if back else None, None if back else "", scene.between(3, 19))  # fmt: skip


CHANGE = Beat(
    "apps",
    _change,
    (
        Stage(
            titles=("{a.name} to {plan}", "{a.kind:cap} {a.name} will {plan}", "Users divided as {a.name} plans to {plan}"),
            abstracts=("The change comes in {weeks} weeks, because {why}, says {chief.name}.", "“{moan},” says one of {users} users."),
            leads=("The {a.kind} {a.name} will {plan}, it told its {users} users {on}.", "In {weeks} weeks {a.name} will {plan}. The {a.kind} announced the change {on} because, it said, {why}."),
            then=(say("“{moan},” said {user.name}, who uses the app [daily|for work|far too much, as {user.he} admits]."), say("{chief.last} defended the step: {why}. “[We tried it on {pct}% of users and they stayed|You can't please everybody in one screen|Some will leave, and most of those come back],” {chief.he} said.")),
            loose=(say("{critic.last} was [not persuaded|of two minds]. “{doubt},” {critic.he} said."), say("{scholar.last} [has studied such changes|was reminded of earlier attempts]. “[Habits last longer than platforms|People protest with their mouths and stay with their thumbs|It depends on what your friends do, it always does],” {scholar.he} said."), say("A petition against it had {names} signatures by [the evening|{today} night]."), say("{a.name} has {users} users, a third of them in {c.name} and its neighbours."), say("Rivals [tried the same and gave up|are watching].", "It would be the biggest change to the app in [years|its history]."), say("In trials, use [fell by {pct}%|hardly changed].")),
            weight=0.32, covered=0.25,
        ),
        Stage(
            titles=("{back}{a.name} backs down: it will not {plan} after all", "{stays}{a.name} goes ahead despite {names} signatures", "{stays}A first week after {a.name} began to {plan}"),
            abstracts=("{back}A protest by {names} users has worked.", "{stays}{chief.name} stands by the change: {why}."),
            leads=("{back}{a.name} has dropped its plan to {plan}, the {a.kind} said {on}, after a petition with {names} signatures.", "{stays}{a.name} will {plan} as announced, it said {on}, although {names} people signed against it."),
            then=(say("{back}“[We listened, somewhat late|It was the wrong idea, explained badly],” said {chief.last}.", "{stays}“[We have read every one of the {names}, with a machine|I'd rather be disliked for this than for what comes without it],” said {chief.last}."),),
            loose=(say("The plan was announced {t0:on}. The reason given was that {why}."), say("“{moan},” {user.name}, a user, had said."), say("{critic.last} [commented drily|saw it coming]: “{doubt}.”"), say("{scholar.last} called it “[a lesson in who owns the sofa|a quarrel about furniture in a rented flat]”."), say("About {pct}% of users have [tried another service|threatened to leave], surveys say.")),
            after=(2, 5), weight=0.25, chance=0.8,
        ),
    ),
    share=0.5,
)  # fmt: skip
