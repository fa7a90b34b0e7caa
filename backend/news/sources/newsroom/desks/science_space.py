# ruff: noqa: E501 (prose reads better unbroken)
"""How the science desk follows space missions, from a scrubbed launch to the first data."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import ROUND
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Mission:
    """`craft` with its article, `goal` a verb phrase, `first` what it sent home first, `shock` what that changed."""

    name: str
    craft: str
    target: str
    goal: str
    tool: str
    first: str
    shock: str
    image: str
    near: bool = False
    """Whether it arrives within days of its launch."""

    @property
    def soon(self) -> str | None:
        return self.first if self.near else None


_MISSIONS: tuple[Mission, ...] = (
    Mission("Lantern", "the lunar lander", "the moon", "look for ice in a crater that has never seen the sun", "a drill as long as an arm", "a picture of a grey slope with a bright patch", "the bright patch is frost", "It's the coldest place we have ever put anything that cost money", True),
    Mission("Gullwing", "the Mars glider", "Mars", "fly over canyons that no rover can enter", "wings folded {some} times", "eleven seconds of film from the air", "there is fog in the canyon at dawn", "We threw a paper plane at another planet, and it flew"),
    Mission("Thimble", "the asteroid probe", "an asteroid", "bring home a spoonful of dust", "an arm with a vacuum bag", "a picture of boulders as large as houses", "the asteroid is a heap of rubble", "It's like landing on a ball pit at forty kilometres a second"),
    Mission("Harbinger", "the sun observer", "the sun", "watch the sun's poles, which nobody has seen from above", "a shield of white ceramic", "a film of the southern pole", "the pole has holes the size of planets", "We have looked at its waistline for four hundred years and never at its hat"),
    Mission("Plumb Line", "the gravity satellites", "low orbit", "weigh the ground water of every country from above", "two craft that measure their distance to a hair", "a map of where water vanished in a year", "two basins are emptying faster than feared", "They feel a mountain the way you feel a step in the dark", True),
    Mission("Night Heron", "the space telescope", "a point beyond the moon", "look for air on planets of other stars", "a mirror of {small} petals", "a first image of {some} stars, sharp to the edge", "one planet has clouds of something like sand", "The petals opened one after another, and nobody in the room breathed"),
    Mission("Corkscrew", "the Venus probe", "Venus", "sink through the clouds and survive for an hour", "a shell of titanium", "fifty-eight minutes of temperature and wind", "it rains acid that never reaches the ground", "You build a diving bell and drop it into an oven"),
    Mission("Postbag", "the comet chaser", "a comet", "wait in space for a comet that nobody has discovered yet", "three small craft that split up", "a view of a tail from three sides", "the comet's ice is older than the sun", "We are parked at a bus stop without a timetable"),
    Mission("Ferryman", "the cargo capsule", "the space station", "carry {some} experiments to the station, and the rubbish home", "a docking ring made by a firm of clockmakers", "a picture of the station with the earth behind it", "the seedlings on board had grown on the way", "It's a removal van, and we love it", True),
    Mission("Tidemark", "the sea level satellite", "polar orbit", "measure the height of the sea to a finger's breadth", "a radar on two masts", "a picture of a tidal wave in a river", "eddies carry more heat than assumed", "We're reading the ocean's meniscus from thirteen hundred kilometres up", True),
    Mission("Blackbird", "the ice moon orbiter", "an icy moon of a giant planet", "fly through the plumes that spray from cracks in the ice", "a jar for catching grains", "a picture of blue stripes", "the grains contain salt, and something organic", "It's a taste test at the end of the world"),
    Mission("Magpie", "the debris catcher", "low orbit", "catch a dead satellite with a net", "a net of {small}00 knots, tied by hand", "a film of the net closing", "the dead satellite had been spinning the wrong way", "My aunt mends nets, and she checked the drawings", True),
    Mission("Candle", "the solar sail", "the path of the earth", "steer by sunlight alone", "a sail thinner than a soap film", "a picture of the sail with a wrinkle in it", "the wrinkle makes it faster", "Light pushes, a little, and it never stops", True),
    Mission("Inkwell", "the lunar far-side telescope", "the far side of the moon", "listen to the first stars, where the earth's radio is silent", "an antenna laid out by a rover", "a minute of hiss", "the hiss has a dip where the first stars should be", "It is the quietest place within reach, and we're going to sit there and listen", True),
    Mission("Second Wind", "the weather satellite", "a fixed point over the equator", "take a picture of every storm once a minute", "a camera that never blinks", "a film of a thunderstorm being born", "lightning runs {km} kilometres sideways", "Forecasting has been like watching a film with nine frames in ten missing", True),
    Mission("Cartwheel", "the crew capsule", "the moon's orbit", "take {crew} astronauts round the moon and back", "a heat shield with a new glue", "a picture of the crew's faces at the window", "radiation on board was half of what was feared", "It is a car for {crew} with the best view there is", True),
    Mission("Beachcomber", "the asteroid hunter", "a path inside that of the earth", "look for asteroids that come out of the sun", "an eye for heat", "a list of {some} rocks nobody had seen", "one of them will pass inside the moon's path", "The dangerous ones come with the light behind them, as in a western"),
    Mission("Quill", "the Mercury lander", "Mercury", "land on the line between day and night and walk with it", "{small} legs", "a picture of its own foot", "the ground is as soft as flour", "Stand still and you cook or freeze, so it walks, for ever"),
)  # fmt: skip

_DELAYS = (
    ("a stuck valve", "It opens, it closes, and the sensor says it does neither"),
    ("a fishing boat in the danger zone", "A man was after mackerel, and I can't blame him"),
    ("high winds", "The rocket doesn't mind, but the wind at eleven kilometres was turning like a key"),
    ("a fuel leak", "It was the size of a pinhole, and hydrogen finds pinholes"),
    ("a computer that restarted itself", "It wanted an update, at minus forty seconds"),
    ("an owl's nest on the launch tower", "There are three eggs, and there's a law"),
    ("a cracked seal", "A part that costs four of anything can cost you a year"),
    ("lightning nearby", "The rules say ten miles, and the flash said eight"),
    ("a wrong reading from a thermometer", "One of them says summer and nine say winter"),
)
_TROUBLES = (
    (
        "lost contact for {hours} hours",
        "a switch to its spare antenna",
        "You sit there and look at a flat line, and the coffee goes cold",
    ),
    ("went into safe mode", "a restart, line by line", "It did the right thing: it curled up and phoned home"),
    (
        "opened only one of its two solar panels",
        "a slow roll towards the sun that warmed the hinge",
        "We shook it like a bottle of ketchup, but by the millimetre",
    ),
    (
        "began to tumble",
        "three short burns of its engine",
        "It was spinning once in nine seconds; you get dizzy from the numbers",
    ),
    (
        "sent nothing but noise",
        "a new receiver setting found by an intern",
        "She asked whether anyone had tried the other polarisation, and nobody had",
    ),
    ("used twice as much fuel as planned", "a longer, cheaper path", "We sat down with pencils, like in the old days"),
    ("got too warm", "a quarter turn into its own shade", "It had a sunburn on one side and we turned it over"),
)


@dataclass(frozen=True)
class Flight:
    m: Mission
    c: Country
    agency: str
    port: City
    head: Person
    lead: Person
    engineer: Person
    scholar: Person
    watcher: Person
    delay: str
    excuse: str
    trouble: str
    cure: str
    tale: str
    cost: Money
    years: int
    days: int
    hours: int
    some: int
    small: int
    km: int
    kilos: int
    crew: int
    crowd: int


def _flight(scene: Scene) -> Flight:
    m = scene.fresh("mission", _MISSIONS)
    c = scene.country()
    delay, excuse = scene.deal("launch delay", _DELAYS)
    trouble, cure, tale = scene.deal("space trouble", _TROUBLES)
    return Flight(
        m, c, f"the {c.demonym} space agency", scene.pick(c.cities), scene.person(c, "who heads the agency"), scene.person(c, f"the chief scientist of {m.name}"), scene.person(c, "the flight director"),
        scene.person(None, scene.pick(("an astronomer not on the team", "a planetary scientist", "a historian of spaceflight", "who advises rival agencies"))), scene.person(c), delay, excuse, trouble, cure, tale,
        scene.money(1.2e8, 2.6e9, c.currency), scene.between(6, 19), scene.between(2, 6), scene.between(7, 40), scene.between(11, 40), scene.between(4, 9), scene.near(110, 480), scene.near(180, 2_900), scene.between(3, 5), scene.near(3_000, 60_000),
    )  # fmt: skip


_PAST = (
    say(
        "{m.name} has cost {cost} and taken {years} years to build[, longer than planned|].",
        "The mission, {years} years in the making, costs {cost}.",
        "{agency:cap} is spending {cost} on {m.name}; [{small} countries|universities in {small} countries] have built parts of it.",
    ),
    say(
        "{m.craft:cap} weighs {kilos} kilograms and carries {m.tool}.",
        "On board is {m.tool}, [tested for years|the pride of its builders].",
    ),
)


MISSIONS = Beat(
    "space missions",
    _flight,
    (
        Stage(
            titles=("Rocket launch of {m.name} to {m.target} postponed by {delay}", "{delay:cap} delays space mission {m.name}", "Countdown stopped: {m.name} stays on the ground in {port.name}", "{delay:cap} keeps {m.craft} {m.name} on launch pad"),
            abstracts=("{m.craft:cap} is to {m.goal}. The next attempt is in {days} days at the earliest.", "The countdown was halted because of {delay}. Some {crowd} people had come to watch."),
            leads=("The launch of {m.name}, {m.craft} that is to {m.goal}, was called off {on} because of {delay}, {agency} said.", "{delay:cap} has put off the start of {m.name}: the rocket that was to carry {m.craft} to {m.target} stayed on its pad near {port.name} {on}."),
            then=(say("“{excuse},” said {engineer.last}.", "{engineer.last} [explained the decision|took it with humour]. “{excuse},” {engineer.he} said."),),
            loose=(*_PAST, say("Some {crowd} people [had gathered on the beaches|had come to the dunes|were watching from boats and beaches] near {port.name}. “[We'll be back, we've got the tent|My son counted backwards all the way home|I've seen eleven delays and two launches],” said {watcher.name}, one of them.", "{watcher.name}, who had [driven all night|brought folding chairs], [was philosophical|packed up again]. “[You don't come for the rocket, you come for the waiting|It's the fourth time, and I know everybody by now],” {watcher.he} said."),
                   say("A new attempt is planned in {days} days[, if the weather holds|]. The window stays open for {small} weeks.", "The agency has [another {small} chances|until the end of the month]; after that {m.target} stands badly for {years} months."),
                   say("“{m.image},” {lead.last} had said [in the days before|on the eve of the launch].", "The aim is to {m.goal}. “{m.image},” said {lead.last}."), say("{scholar.last} advised patience. “[Nobody remembers a delay, everyone remembers a fireball|Rockets are bombs with good manners],” {scholar.he} said.", "“[A scrubbed launch is a success of the people who check|I'd worry if nothing ever stopped them],” said {scholar.last}.")),
            weight=0.4, covered=0.25,
        ),
        Stage(
            titles=("{m.name} lifts off from {port.name} for {m.target}", "Rocket carries {m.craft} {m.name} into space", "{c.demonym} space mission {m.name} on its way to {m.target}", "Second countdown lucky: {m.name} launched from {port.name}"),
            abstracts=("{m.craft:cap} is to {m.goal}.", "The rocket rose near {port.name}, after a delay caused by {delay}.", "{kilos} kilograms, {years} years of work: {m.name} is in space."),
            leads=("A rocket carrying {m.craft} {m.name} lifted off near {port.name} {on}, bound for {m.target}.", "{m.name} is in space. {m.craft:cap}, which is to {m.goal}, was launched near {port.name} {on}.", "{on:cap}, {days} days later than planned, {agency} launched {m.name}, {m.craft} that is to {m.goal}."),
            then=(say("“[I have been saying 'if' for {years} years, and now I have to learn 'when'|We waved, which is silly, and everybody did it|It's very quiet in the hall now; the toy is gone],” said {lead.last}.", "{lead.last} [wept|did not look]. “[I watched the faces instead; they told me everything|That was my handwriting going up, in a manner of speaking],” {lead.he} said."),),
            loose=(*_PAST, say("A first attempt was stopped {t0:on} by {delay}."), say("It separated from the rocket [after half an hour|as planned] and [unfolded its panels|sent a first signal].", "The first signal was caught by [a dish in {c.name}|a ground station] within the hour."), say("“{m.image},” said {head.last}. {head.he:cap} [had feared for the budget|thanked the taxpayers].", "{head.last} [opened a bottle|shook every hand in the room]. “{m.image},” {head.he} said."),
                   say("{watcher.name}, on the beach with {crowd} others, [felt it in the chest|took no pictures]. “[The windows rattle and then your teeth|It goes up so slowly, you want to push],” {watcher.he} said."), say("{scholar.last} [called it|spoke of] a good day. “[The easy part was loud; the hard part will be silent|Half of such missions fail later, so enjoy the evening],” {scholar.he} said.")),
            after=(2, 5), weight=0.55, covered=0.4,
        ),
        Stage(
            titles=("Space probe {m.name} in trouble: craft {trouble}", "{c.demonym} engineers fight to save {m.name} on way to {m.target}", "{m.name} {trouble}, space agency says"),
            abstracts=("{m.craft:cap} {trouble}. The control room is working in shifts.", "{engineer.name} sees a chance for {m.name}: {cure}."),
            leads=("{m.name}, {m.craft} launched {t1:on}, {trouble}, {agency} said {on}.", "There is trouble aboard {m.name}: {m.craft} {trouble} {on}, and engineers in {c.capital} are looking for a way out."),
            then=(say("“{tale},” said {engineer.last}."),),
            loose=(*_PAST, say("The plan now is {cure}."), say("{lead.last} had [slept in the building|cancelled a lecture]. “[You know every screw of it and can't touch one|It's like having a child abroad],” {lead.he} said."), say("The mission is to {m.goal}. [Without a remedy|If all else fails], that would be [out of reach|lost]."), say("{scholar.last} [gave it good odds|was reminded of earlier rescues]. “[They have the best tool there is, a copy on the ground|Probes are tougher than their builders],” {scholar.he} said."), say("{head.last} said [it was too early for blame|an inquiry could wait]. “[First the patient, then the paperwork|I've brought pastries, that's what I can do],” {head.he} said.")),
            after=(2, 4), weight=0.45, covered=0.2,
        ),
        Stage(
            titles=("{m.name} saved by {cure}", "{c.demonym} space mission {m.name} back on course", "{cure:cap} rescues {m.craft} {m.name}"),
            abstracts=("{m.craft:cap} answers again. It can still {m.goal}.",),
            leads=("Engineers have rescued {m.name} with {cure}, {agency} said {on}, and {m.craft} is back on course for {m.target}.", "{m.name} is answering again. {cure:cap} did it, the flight director said {on}."),
            then=(say("“[At four in the morning it said hello, and so did we|There was a cheer, and then everybody fell asleep where they sat|It will limp a little, like the rest of us],” said {engineer.last}."),),
            loose=(*_PAST, say("The trouble had begun {t2:on}, when {m.craft} {trouble}."), say("“{tale},” {engineer.last} said of the {hours} hours in between.", "“{m.image},” said {lead.last}, relieved."), say("A first sign of life is {m.soon}[, which {lead.last} has hung in the corridor|].", "It has since sent {m.soon}."), say("{scholar.last} raised {scholar.his} hat. “[They'll be teaching that one|It was boring, careful and brilliant],” {scholar.he} said.")),
            after=(0.5, 2), weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{m.name} sends {m.first}", "First data from {m.name}: {m.shock}", "What {m.name} saw: {m.shock}", "Space scientists surprised: {m.shock}"),
            abstracts=("{m.craft:cap} has sent {m.first}. It shows that {m.shock}.", "“We had it wrong,” says {lead.name}, the chief scientist of {m.name}."),
            leads=("{m.name} has sent {m.first}, {agency} said {on}, and scientists conclude that {m.shock}.", "The first data from {m.craft} {m.name} show that {m.shock}, {lead.name}, the chief scientist, said {on}."),
            then=(say("“[We had it wrong, and I haven't been so happy in years|I looked at it upside down at first, and it was still odd|There are {some} of us, and for a minute nobody had a theory],” said {lead.last}."),),
            loose=(*_PAST, say("The mission is to {m.goal}. It was launched {t1:on}."), say("“{m.image},” said {head.last}."), say("{scholar.last} [urged caution|was thrilled]. “[One picture is a postcard; let's wait for the album|If it holds, I have to rewrite chapter four|It's what one hopes for and doesn't dare to predict],” {scholar.he} said."), say("On the way, {m.craft} {trouble}; {cure} saved it."), say("The data are [public|free for all to use]. {watcher.name}, [an amateur|a teacher] from {port.name}, [has already made a poster of them|found a speck that nobody had noticed].")),
            after=(1, 4), weight=0.5, covered=0.3, when=lambda f: f.m.near,
        ),
        Stage(
            titles=("{m.name} looks back and photographs the earth", "First picture from {m.craft} {m.name} shows where it came from", "{c.demonym} space probe {m.name} passes first test", "{m.name} tries out its instruments on way to {m.target}"),
            abstracts=("The picture was a test: {m.craft} has months of travel before it.", "{lead.name} is content with {m.craft}. Now comes the long part."),
            leads=("{m.name} has sent its first picture, of the earth, {agency} said {on}; {m.craft} is still far from where it is going.", "The instruments of {m.name} work: {m.craft} tried them on the earth as it looked back, {agency} said {on}."),
            then=(say("“[Everybody looked for their own roof, and there is a cloud over {c.name}|It's an odd feeling to be a dot in one's own picture|The focus is right, and I hadn't slept over the focus],” said {lead.last}."),),
            loose=(*_PAST, say("The mission is to {m.goal}. It was launched {t1:on}."), say("“{m.image},” said {head.last}."), say("{scholar.last} [was pleased for the team|recalled other journeys]. “[The long quiet is what kills them, or saves them|Space is mostly waiting, with a great deal of arithmetic],” {scholar.he} said."), say("Early on, {m.craft} {trouble}; {cure} saved it."), say("[Many months|More than a year] will pass until it gets there.", "{watcher.name}, [an amateur|a teacher] from {port.name}, has found {watcher.his} own coast in the picture.")),
            after=(0, 0), weight=0.35, covered=0.25, when=lambda f: not f.m.near,
        ),
    ),
    share=1.1,
    rhythm=ROUND,
)  # fmt: skip
