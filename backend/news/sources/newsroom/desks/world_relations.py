# ruff: noqa: E501 (prose reads better unbroken)
"""The world desk on quarrels between neighbours and on the summits where they meet."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.world_cast import head, minister, pair
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class Row:
    """A quarrel between two neighbours: what one did, what both say, who suffers, and how it may end."""

    short: str
    deed: str
    claim: str
    answer: str
    detail: str
    who: str
    felt: str
    way_out: str
    sea: bool = False


ROWS: tuple[Row, ...] = (
    Row("fishing rights", "boarded and held two trawlers from {b.name} in waters that both countries claim", "A line on our chart is not a suggestion", "These are the grounds our grandfathers fished, and they did not ask for a stamp", "The disputed strip is eleven nautical miles wide and holds most of the season's cod",
        "the skipper of a boat that turned back", "I have been fined by both coastguards for the same net", "a shared quota, with inspectors from both sides on every tenth boat", True),
    Row("spying claims", "expelled three {b.demonym} diplomats whom it accuses of buying plans of a naval dockyard", "They were collecting drawings, not stamps", "The accusation is invented, and badly", "Police say that payments were hidden in tins of biscuits",
        "a receptionist at the cultural institute, which has closed until further notice", "I hand out library cards, and now there is a camera on my door", "a quiet exchange of one detained man for another"),
    Row("river water", "began to fill a reservoir that will hold back the river on which {b.name:s} farmers depend", "We are using our own rain", "A river doesn't carry a passport, and you cannot arrest it at the border", "Downstream gauges have fallen by a third within ten days",
        "a rice grower on the lower bank", "My pump has been sucking air since the weekend", "slower filling, with the gates opened during sowing"),
    Row("border closure", "closed its busiest road crossing with {b.name} after smuggled cigarettes were found in official cars", "The gate opens when the lists are handed over", "One does not close a road because of a dozen cartons", "Lorries are queuing for fourteen kilometres, some with flowers aboard",
        "a lorry driver with eighteen tonnes of tulips", "By tomorrow I am driving compost", "joint customs teams in one shared building"),
    Row("stolen statue", "recalled its ambassador from {b.name} over a bronze statue that a museum there refuses to return", "It was taken from a temple, not found on a beach", "The piece was bought in good faith and with a receipt", "The receipt is dated on a Sunday, for a sum in a currency that was introduced two years later",
        "a curator who asked not to be photographed with it", "Scholars on both sides agree, and nobody has asked us", "a long loan that neither side would call a return"),
    Row("airspace", "closed its airspace to {b.demonym} carriers after a military aircraft strayed across the frontier", "Four minutes is not a mistake, it is a visit", "There was a storm, and the pilot said so on an open channel", "Flights must take a detour of fifty minutes, and one service has been dropped",
        "a doctor who commutes by air between the two capitals", "The sky used to be the simple part", "a hotline between control towers and an apology for the pilot's choice of words"),
    Row("exiled editor", "demanded that {b.name} hand over an editor who has lived there in exile for six years", "This is a warrant, not a review of his articles", "Our courts read such requests carefully, and this one is thin", "The charge sheet lists forty-one articles, three of which are recipes",
        "a colleague of the editor's", "He has bought bolts for a door on the fifth floor", "a court hearing late enough for tempers to cool"),
    Row("wartime graves", "stopped {b.demonym} officials from laying wreaths at a cemetery for soldiers of the last war", "Wreaths yes, speeches no", "It is hard to insult the dead, but somebody has managed", "The quarrel is about one word in an inscription, which can mean either defended or occupied",
        "the gardener of the cemetery", "I cut the grass on all of them", "a stone with dates and names and no verbs"),
    Row("undersea cable", "summoned the {b.demonym} ambassador after a data cable between the two countries was cut for the second time", "Anchors do not fall twice in the same place", "We have asked for the ship's log and been sent a photograph of it", "A freighter had slowed down above the cable for thirty-one minutes with its transponder off",
        "a shopkeeper on an island that lost its connection", "I take cash again, and I have learned that people owe me a great deal", "an inspection of the freighter by a third country", True),
    Row("visa rules", "told {b.demonym} citizens that they will need visas from next month, after three decades without", "It's a form and a fee, like everywhere", "Families here have an aunt on each side, and now they have a queue", "The consulate has two windows and expects four thousand applications a week",
        "who is to be married on the wrong side of the rule", "We have invited two hundred people and half of them are now foreigners", "exemptions for people who live within fifty kilometres of the border"),
    Row("warship visit", "protested to {b.name} over a destroyer that anchored for a night off an unlit island", "One night is how it starts", "The ship had a sick sailor, and the sea is free", "The island has a lighthouse, a hut and about nine hundred goats",
        "the lighthouse keeper", "They sent over biscuits, I sent over cheese, then the newspapers came", "rules for notice and distance, such as the two navies had until the last government", True),
    Row("power cut-off", "cut the supply of electricity to {b.demonym} border towns over a bill that has been disputed for two winters", "A kilowatt delivered is a kilowatt owed", "They have read the meter upside down and now they turn off the light", "The sum at issue depends on whether one counts in winter or in summer prices",
        "a hairdresser in one of the dark towns", "I cut by daylight and guess after four", "arbitration, with the current flowing in the meantime"),
    Row("refused landing", "turned back a plane with {b.name:s} trade minister on board, citing papers that were not in order", "A rule that spares ministers is not a rule", "The stamp they wanted was abolished by both countries in the spring", "The minister spent five hours on the tarmac and was offered a sandwich, for which he paid",
        "a fellow passenger", "He was very polite and ate half of it", "a new invitation, this time in writing"),
    Row("poisoned bees", "blamed a pesticide sprayed across the border in {b.name} for the death of eleven million bees", "Bees fly home to die, so we can count them", "One bad spring does not make a neighbour a poisoner", "Samples from both sides have been sent to four laboratories, which do not agree",
        "a beekeeper of thirty years", "You open the hive and it is quiet, like a house after an argument", "a spraying calendar, exchanged every month"),
)  # fmt: skip


@dataclass(frozen=True)
class Quarrel:
    a: Country
    b: Country
    row: Row
    amin: Person
    bmin: Person
    local: Person
    expert: Person
    envoy: Person
    days: int
    trade: str
    reply: str
    hours: int
    eased: str | None
    stuck: str | None


def _quarrel(scene: Scene) -> Quarrel:
    row = scene.fresh("quarrel", ROWS, uses=3)
    a, b = pair(scene, f"quarrel over {row.short}", sea=row.sea)
    eased = scene.chance(0.6)
    return Quarrel(
        a, b, row, minister(a, "foreign"), minister(b, "foreign"), scene.person(b if scene.chance(0.6) else a), scene.person(None), scene.person(b, f"the {b.demonym} ambassador in {a.capital}"),
        scene.between(5, 40), f"{scene.between(6, 31)}%", scene.pick(("called back its own ambassador", "cancelled a meeting of ministers", "stopped talks about a railway", "returned an invitation to a state dinner", "postponed a joint exercise of the two armies", "dropped out of a youth games")),
        scene.between(2, 7), "" if eased else None, None if eased else "",
    )  # fmt: skip


DIPLOMACY = Beat(
    "diplomacy",
    _quarrel,
    (
        Stage(
            titles=("{a.name} and {b.name} in diplomatic row over {row.short}", "{b.name} protests to {a.name} in dispute over {row.short}", "Ambassador summoned as {a.name} and {b.name} quarrel over {row.short}", "{row.short:cap} dispute sours ties between {a.name} and {b.name}", "Diplomatic crisis: {b.name} hits back at {a.name} over {row.short}"),
            abstracts=("{a.name} {row.deed}. {b.name} has protested and {reply}.", "“{row.claim},” says {a.capital}. “{row.answer},” says {b.capital}. Trade is at stake, and a good deal of pride.", "The dispute between the neighbours is about {row.short}. {row.detail}."),
            leads=("{a.name} {row.deed}, setting off the worst quarrel between the two countries in {days} months.", "{b.name} {reply} {on} after {a.name} {row.deed}.", "Relations between {a.name} and {b.name} took a turn for the worse {on}, when {a.name} {row.deed}.", "It began with {row.short} and has become a matter for ambassadors. {a.name} {row.deed}; within hours, {b.name} {reply}."),
            then=(say("“{row.claim},” said {amin.last}. {bmin.last} [did not let it stand|replied from a trip abroad|answered in kind]: “{row.answer}.”", "{bmin.last} [handed over|read out] a note of protest. “{row.answer},” {bmin.he} said. In {a.capital}, {amin.last} was unmoved: “{row.claim}.”", "{amin.last} told the {a.house} that the step was lawful. “{row.claim}.” For the other side, {bmin.last} said: “{row.answer}.”"),
                  say("{row.detail}.")),
            loose=(say("{local.name}, {row.who}, [would rather not have become a symbol|has followed the dispute from close by]. “{row.felt},” {local.he} said.", "“{row.felt},” said {local.name}, {row.who}."), say("{envoy.last} was called to the foreign ministry, kept waiting for {hours} hours, and [left by the side door|said on leaving that the coffee had been good].", "{envoy.last} spent {hours} hours at the foreign ministry. “[We exchanged views, and kept our own|It was frank, which is the word we use],” {envoy.he} said."),
                   say("About {trade} of {b.demonym} exports go to {a.name}, [and traders are nervous|a figure much quoted {today}].", "The two countries share [a power line, two railways and a history|more than either likes to admit]; {trade} of the foreign trade of {b.name} is with {a.name}."),
                   say("{expert.name}, who [was a negotiator in an earlier round|teaches international law], sees a way out: {row.way_out}. “[Both know it, and neither can be first|They need a week to be angry],” {expert.he} said.", "Diplomats talk of {row.way_out}. “[It is on the table, face down|The drafting would take an afternoon. Getting them into the room takes longer],” said {expert.name}, a former envoy.")),
            weight=0.45, covered=0.25,
        ),
        Stage(
            titles=("{eased}{a.name} and {b.name} step back in row over {row.short}", "{eased}Envoys meet as {a.name} and {b.name} seek way out of {row.short} dispute", "{stuck}{b.name} takes {row.short} dispute with {a.name} to international court", "{stuck}No end to diplomatic row as {a.name} rejects {b.demonym} offer on {row.short}", "{eased}Ambassador returns: thaw between {a.name} and {b.name} over {row.short}"),
            abstracts=("{eased}Officials of both countries are working on {row.way_out}.", "{stuck}{a.name} will not discuss {row.way_out}. “{row.claim},” it says.", "{stuck}A week of notes and counter-notes about {row.short} has moved nobody.", "{eased}The ministers spoke by telephone for {hours} hours. {local.name}, {row.who}, will believe it on seeing it."),
            leads=("{eased}{a.name} and {b.name} agreed {on} to settle their quarrel over {row.short} by talks.", "{eased}The two foreign ministers met {on} on neutral ground, without flags, and came out with a plan for {row.way_out}.", "{stuck}{a.name} rejected {on} an offer by {b.name} to settle the dispute over {row.short} through {row.way_out}.", "{stuck}{b.name} said {on} that it would take the quarrel over {row.short} to an international court, having [run out of patience|heard nothing for days]."),
            then=(say("{eased}“[We have found a sentence that both of us can read aloud at home|I will not say who moved; we both did, a little],” said {amin.last}. {bmin.last} called it “[sensible, and overdue|a relief to everyone who has to work there]”.", "{stuck}“{row.answer},” said {bmin.last}. {amin.last} [repeated|stood by] {amin.his} words of last week: “{row.claim}.”", "{eased}{amin.last} and {bmin.last} shook hands [for the cameras, twice|and did not take questions]. Their officials have [a month|six weeks|until the summer] to [work out the details|write it down].", "{stuck}{amin.last} said {a.name} would “[not be hurried by a press release|gladly explain its position to any judge]”. {bmin.last} said {b.name} had “[tried everything that was polite|knocked at the front door long enough]”."),),
            loose=(say("The quarrel came into the open {t0:on}, when {b.name} {reply}. {a.name} {row.deed}."), say("{row.detail}."), say("“{row.felt},” said {local.name}, {row.who}, who is waiting [for an end to it|to see what it will mean in practice].", "{local.name}, {row.who}, had [heard the news on the radio|not heard the news]. “{row.felt},” {local.he} said."), say("{expert.name}, a former negotiator, [was not surprised|had expected as much]. “[Quarrels between neighbours end at the table or in the cellar|The week after is when the real talking is done],” {expert.he} said.", "Business groups in both countries, for which {trade} of {b.demonym} exports are at stake, had [begged for calm|written to both governments]."),
                   say("{eased}{envoy.last} is to return to {envoy.his} post [within days|on the next train].", "{stuck}{envoy.last} remains [in {b.capital}|at home “for consultations”].", "{stuck}A ruling would take [two years at least|longer than the life of either government].", "{eased}Experts from both sides are to meet [before the month is out|every fortnight].")),
            after=(2, 5), weight=0.35, covered=0.15, chance=0.85,
        ),
    ),
    share=1.1,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """What a summit is about: the stake, the clash, the text in the end and the scene around it."""

    name: str
    aim: str
    clash: str
    rich: str
    poor: str
    text: str
    missing: str
    scene: str
    street: str


CAUSES: tuple[Cause, ...] = (
    Cause("oceans summit", "protect a third of the high seas from fishing", "who pays for patrols on water that belongs to nobody", "Reserves without ships to watch them are blue paint on a map", "We are asked to guard the fish that others have eaten", "reserves in four named areas and a fund for patrol boats", "any date by which the boats must sail", "Delegates walk past a whale skeleton to reach the buffet, which serves no fish", "islanders in canoes blocked the ferry pier for an hour"),
    Cause("trade summit", "cut duties on medicines and farm tools", "whether beef and sugar should be on the list", "You cannot open half a door", "Our farmers have read the last agreement and remember it", "lower duties on nine hundred goods, in steps", "beef, sugar and the word fair", "Interpreters sit two to a chair, since the main hall is twelve seats short", "farmers parked forty tractors along the route, with their radios on"),
    Cause("debt summit", "write off part of the debts of the poorest states", "how private lenders are to be made to join in", "A debt is a promise, and promises hold the roof up", "We pay more in interest than for every school we have", "a standstill on payments for eighteen countries", "a duty on private lenders to take part", "A clock in the lobby shows the interest falling due, until somebody unplugs it", "students lay down in the square in the shape of a zero"),
    Cause("migration summit", "share out asylum seekers more evenly", "whether a state may pay instead of taking people in", "Geography is not guilt, and we should stop treating it as such", "Our town halls have become reception camps", "a fund, a common register and quotas that a state may buy out of", "what happens to children who travel alone", "The seating plan was redrawn three times to keep two leaders apart", "a choir of refugees sang outside until the batteries of their loudspeaker gave out"),
    Cause("vaccine summit", "build a common reserve of vaccines for the next pandemic", "who may open the patents in an emergency", "Without patents there is nothing to open", "Last time we were at the end of a queue that we had helped to pay for", "factories on three continents and a reserve of four hundred million doses", "who decides what counts as an emergency", "Hand gel stands on each table, out of habit, and nobody touches it", "nurses in uniform handed out paper masks with the names of colleagues"),
    Cause("water summit", "agree on rules for rivers that cross borders", "whether those upstream must ask before they build", "We will notify. We won't beg", "The river is our only reservoir", "a duty to share measurements and to wait ninety days before building", "the word permission", "Tap water is served in carafes labelled with the name of a river", "boatmen carried a dry oar through the streets"),
    Cause("security summit", "set up a joint force of eight thousand soldiers", "who would command it", "Somebody must be able to give an order before the third meeting", "We will send battalions, but not blank cheques", "a rotating command and a headquarters without a site", "the city in which the headquarters will stand", "Sharpshooters on the roofs share their soup with the camera crews", "pensioners with a brass band marched for peace and lost their way"),
    Cause("food summit", "keep grain moving when harvests fail", "a ban on export stops in years of shortage", "I have to answer for bread at home before I answer for bread abroad", "A full granary behind a closed gate feeds nobody", "reserves in five ports and notice of thirty days before any export stop", "what befalls a state that gives no notice", "The bread at the leaders' lunch was baked by prisoners, a fact that came out over the soup", "bakers gave away loaves with the price of flour baked into the crust"),
    Cause("space summit", "clear dead satellites out of orbit", "who pays for junk that nobody admits to owning", "The owner of a wreck pays for its removal; that law is older than rockets", "We have one satellite and are asked to sweep up after nine thousand", "a register, a deposit per launch and a first clean-up mission", "the size of the deposit", "A bolt that fell through a barn roof is on show beside the cloakroom", "amateur astronomers set up telescopes and charged nobody"),
    Cause("data summit", "agree who may read messages that cross frontiers", "police access without a judge", "Criminals do not wait for office hours", "A letter is a letter, even when it is made of light", "access with a warrant, within seventy-two hours", "messages stored in countries outside the pact", "All telephones are kept in lead boxes at the door, to general unease", "privacy campaigners read out the leaders' own old postcards"),
)  # fmt: skip


@dataclass(frozen=True)
class Summit:
    a: Country
    b: Country
    host: Country
    town: City
    cause: Cause
    count: int
    hours: int
    pages: int
    brackets: int
    hosthead: Person
    ahead: Person
    bhead: Person
    aide: Person
    campaigner: Person
    absent: Country
    fund: str


def _summit(scene: Scene) -> Summit:
    cause = scene.fresh("summit", CAUSES, uses=1)
    a, b, host, absent = scene.sample(scene.world.countries, 4)
    return Summit(
        a, b, host, scene.pick(host.cities), cause, scene.between(14, 62), scene.between(11, 27), scene.between(6, 38), scene.between(12, 90), head(host), head(a), head(b),
        scene.person(None), scene.person(None), absent, f"${scene.between(2, 40)}bn",
    )  # fmt: skip


SUMMIT = Beat(
    "summits",
    _summit,
    (
        Stage(
            titles=("Leaders of {count} countries gather in {town.name} for {cause.name}", "{cause.name:cap} in {town.name}: what is at stake", "World leaders divided before {cause.name} in {host.name}", "{host.name} braces for {cause.name} and hopes for a deal"),
            abstracts=("The aim is to {cause.aim}. The quarrel is about {cause.clash}.", "A draft with {brackets} disputed passages awaits {count} delegations in {town.name}.", "{absent.name} is staying away. Leaders hope to {cause.aim} all the same."),
            leads=("Leaders and ministers from {count} countries arrived in {town.name} {on} for a summit that is meant to {cause.aim}.", "The motorcades began to roll into {town.name} {on}. By the end of the {cause.name}, {count} governments hope to {cause.aim}, if they can settle {cause.clash}.", "Can {count} governments {cause.aim}? The {cause.name}, which opened in {town.name} in {host.name} {on}, has three days to find out."),
            then=(say("The draft text has {pages} pages and {brackets} passages in brackets, which is to say, in dispute. Most of them concern {cause.clash}.", "What divides them is {cause.clash}. Of the {pages} pages of the draft, {aide.name}, an official who helped to write it, said {aide.he} would “[bet on four|call two thirds safe]”."),
                  say("“{cause.rich},” said {ahead.last}. {bhead.last} speaks for the other camp: “{cause.poor}.”", "{bhead.last} set the tone on arrival. “{cause.poor}.” {ahead.last}, who landed an hour later, [shook {bhead.his} hand and disagreed|saw things otherwise]: “{cause.rich}.”")),
            loose=(say("{cause.scene}."), say("Outside the fence, {cause.street}.", "Some came without an invitation: {cause.street}."), say("{hosthead.last} has staked [some of {hosthead.his} reputation|a good deal of money] on the meeting. “[I have asked my guests to bring one concession each, like a dish to a party|We have beds for three nights and no more],” {hosthead.he} said."), say("{absent.name} sent [an ambassador instead of a leader|its regrets].", "The leader of {absent.name} is staying away, [for reasons of health, officially|in protest against the agenda]."), say("{campaigner.name}, who has [followed nine such summits|come with a coalition of charities], expected “[a fine preamble|less than is needed and more than nothing]”.")),
            weight=0.5, covered=0.3,
        ),
        Stage(
            titles=("{cause.name:cap} in {town.name}: talks run into the night over {cause.clash}", "{a.name} and {b.name} clash at {cause.name}", "Leaders at {town.name} summit [wrangle|fight] over {pages} pages and one word", "{hosthead.last} pleads for compromise at {cause.name}"),
            abstracts=("The sticking point remains {cause.clash}. {hosthead.name}, the host, has seen leaders one by one.", "“{cause.poor},” {bhead.name} tells the plenary, to applause from half of the hall.", "Of {brackets} disputed passages, about half are settled."),
            leads=("The second day of the {cause.name} belonged to the quarrel over {cause.clash}.", "{ahead.last} and {bhead.last} clashed in front of {count} delegations in {town.name} {on} over {cause.clash}.", "By the time the interpreters were sent for sandwiches, the leaders in {town.name} had settled half of {brackets} disputed passages. The rest, {on}, was {cause.clash}."),
            then=(say("“{cause.rich},” {ahead.last} told the hall. “{cause.poor},” {bhead.last} said when {bhead.his} turn came, and [half of the room clapped|folded {bhead.his} notes].", "“{cause.poor},” said {bhead.last}. The reply of {ahead.last} was short: “{cause.rich}.”"),
                  say("{hosthead.last} called leaders into a side room, [in pairs|five at a time]. “[I am a waiter with bad news|Everyone has told me what they cannot do. I am collecting the other list],” {hosthead.he} said.")),
            loose=(say("{cause.scene}."), say("The summit, which opened {t0:on}, hopes to {cause.aim}."), say("{aide.name}, an official close to the drafting, said the text was “[shorter than this morning, which is something|growing footnotes]”.", "A fund of {fund} has been mentioned. [Nobody has said whose money it would be|So far it is a number without a signature]."), say("{campaigner.name}, for a coalition of charities, [handed out a score sheet|was losing hope]. “[They are negotiating with the clock, and the clock wins|I have seen worse second days],” {campaigner.he} said."), say("Meanwhile {cause.street}.")),
            after=(0.9, 1.3), weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{cause.name:cap} ends with deal on {cause.text}", "Leaders in {town.name} agree {fund} plan to {cause.aim}", "What the {cause.name} in {town.name} decided, and what it left out", "{hours} hours over time, {cause.name} reaches agreement", "Summit deal in {town.name} leaves out {cause.missing}"),
            abstracts=("The final text promises {cause.text}. It leaves out {cause.missing}.", "{hosthead.name} calls it “good enough to keep”. Campaigners point to a gap: {cause.missing}.", "After {hours} hours of extra time, {count} countries sign a text of {pages} pages."),
            leads=("Leaders of {count} countries agreed in {town.name} {on} on {cause.text}, after {hours} hours of extra time.", "The {cause.name} closed {on} with an agreement that promises {cause.text}, and leaves out {cause.missing}.", "The gavel fell {hours} hours late. In return, the {cause.name} in {town.name} ended {on} with {cause.text}."),
            then=(say("“[It is good enough to keep|Nobody is delighted, so I think it is fair],” {hosthead.last} said. The text provides for {cause.text}, with {fund} [promised so far|over ten years].", "Besides {cause.text}, the {pages} pages name a sum, {fund}. {hosthead.last} [hugged the chief translator|asked delegations to leave before they changed their minds]."),
                  say("Missing is {cause.missing}. {bhead.last} [said so at once|regretted it]: “{cause.poor}.” {ahead.last} was [content|the first to leave].", "For {campaigner.name}, of a coalition of charities, the hole in the text is {cause.missing}. “[They have built the bridge up to the middle|It is a start, and we have had many starts],” {campaigner.he} said.")),
            loose=(say("The question of {cause.clash} was settled [by leaving it to a committee|at a breakfast of six leaders|with a comma, according to one delegate]."), say("{absent.name}, which had no leader at the table, [said it would study the text|joined by letter]."), say("{aide.name}, one of the drafters, had not slept for two nights. “[Ask me what it says when I have slept|There is one verb in it of which I am proud],” {aide.he} said."), say("The meeting opened {t0:on} with {brackets} passages in dispute."), say("It must now be ratified. [Six parliaments are enough|Past agreements of the kind took two to five years]; {a.name} [has promised to be among the first|gave no date].")),
            after=(0.9, 1.8), weight=0.6, covered=0.4,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip
