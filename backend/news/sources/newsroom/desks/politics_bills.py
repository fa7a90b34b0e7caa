# ruff: noqa: E501 (prose reads better unbroken)
"""How the politics desk follows a bill from draft to vote."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.politics_matters import BILLS, Bill
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class BillFacts:
    c: Country
    bill: Bill
    n: int
    minister: Person
    critic: Person
    campaigner: Person
    rebel: Person
    ayes: int
    noes: int
    margin: int
    rebels: int
    passed: str | None
    failed: str | None
    amendments: int
    start_on: str


def _bill(scene: Scene) -> BillFacts:
    bill = scene.fresh("bill", BILLS, uses=2)
    c = scene.country(f"bill {bill.name}")
    seats = scene.pick((240, 300, 350, 410, 480))
    passed = scene.chance(0.72)
    margin = scene.between(2, 58)
    noes = (seats - margin) // 2 - scene.between(0, 12)
    ayes = noes + margin
    if not passed:
        ayes, noes = noes, ayes
    return BillFacts(
        c, bill, scene.between(*bill.range), c.minister(bill.office), scene.person(c, f"a member of {c.opposition.name}"), scene.person(c, "a campaigner"),
        scene.person(c, f"a member of {c.party.name}"),
        ayes, noes, margin, scene.between(4, 9), "passed" if passed else None, None if passed else "failed",
        scene.between(11, 64), scene.pick(("in the spring", "in January", "from next autumn", "within a year",
                                            "at the start of next year", "after the summer recess")),
    )  # fmt: skip


BILL = Beat(
    "legislation",
    _bill,
    (
        Stage(
            titles=(
                "{c.demonym} government [unveils|publishes|sets out] {bill.name} to {bill.aim}",
                "{bill.name:cap} would {bill.aim}, says {c.demonym} minister {minister.last}",
                "{c.name}: {minister.last} [bets on|puts forward|presents] {bill.name} to {bill.aim}",
                "Ministers in {c.capital} [move|plan|promise] to {bill.aim} with {bill.name}",
                "{c.demonym} {bill.name}: what the government wants and who objects",
                "{bill.people:cap} [at odds|split|divided] over {c.demonym} {bill.name}",
            ),
            abstracts=(
                "{minister.name}, the {bill.office} minister, says the measure {bill.means}. {c.opposition.name:cap} "
                "[calls it unworkable|says it will vote against|wants it rewritten].",
                "The draft law, [published|put before the {c.house}] {on}, {bill.means}. It would take effect {start_on}.",
                "[Weeks of leaks|Months of talks|A long consultation] ended {on} with a text that {bill.means}; "
                "{bill.people} [are not of one mind|have already begun to line up for and against].",
                "What the {bill.name} contains, why {minister.name} wants it [now|this year], and why "
                "{bill.people} are [watching closely|worried|arguing about it].",
                "The government in {c.capital} hopes to {bill.aim}. Its draft {bill.means}.",
            ),
            leads=(
                "{c.name}'s government [published|unveiled|put its name to] a {bill.name} {on} that {bill.means}, "
                "[opening|setting up] what promises to be [one of the longer fights|a hard-fought few weeks] of this session.",
                "{minister.name}, the {c.demonym} {bill.office} minister, [laid out|presented] plans {on} to {bill.aim}. "
                "The draft {bill.means}.",
                "A law that {bill.means} could be in force {start_on} if the {c.demonym} government gets its way. "
                "{minister.name}, the {bill.office} minister, sent the draft to the {c.house} {on}.",
                "After months of hints, the {bill.office} ministry in {c.capital} showed its hand {on}: a {bill.name} "
                "that {bill.means}.",
                "The government of {c.premier.name} wants to {bill.aim}, and {on} it said how. Its {bill.name} {bill.means}.",
            ),
            then=(
                say(
                    "“{bill.pro},” {minister.last} told [reporters|members of the {c.house}|a news conference] in "
                    "{c.capital}. “[That is all this law does|I think most people see that|It is not more complicated than that].”",
                    "{minister.last} [made the case|defended the plan] [in a short speech|at some length]. “{bill.pro},” {minister.he} said.",
                    "“{bill.pro},” said {minister.last}, who has been {bill.office} minister [since the last election|"
                    "for two years|since last spring].",
                    "Introducing the text, {minister.last} [put it in plain words|spoke without notes]: “{bill.pro}.”",
                ),
                say(
                    "{c.opposition.name:cap} was [quick to object|not persuaded]. “{bill.con},” said {critic.name}, who "
                    "speaks for the party on {bill.field}.",
                    "“{bill.con},” {critic.name} of {c.opposition.name} [replied|answered|said] within the hour.",
                    "For {c.opposition.name}, {critic.name} [disagreed|saw it otherwise]. “{bill.con}.”",
                ),
            ),
            loose=(
                say("{bill.detail}"),
                say(
                    "{campaigner.name}, who [runs|leads] {bill.group}, [welcomed|gave a guarded welcome to] the draft but "
                    "said [the money behind it was thin|enforcement would decide everything|ministers had promised as much before].",
                    "{bill.group:cap} [said the text was better than expected|asked for changes|had hoped for more]. “[The intention "
                    "is right. The drafting is not there yet|Somebody has to check that it is done, and we cannot find who that would be|We will judge it by its second "
                    "year, not its first week],” said {campaigner.name}, who [heads|speaks for] it.",
                    "Outside the {c.house}, {campaigner.name} of {bill.group} [was handing out leaflets|had been waiting since the morning]. “[We have "
                    "asked for this for ten years|This is half of what we asked for|I have read it twice and I still have questions],” {campaigner.he} said.",
                ),
                say(
                    "The bill goes to committee [next week|before the month is out], where {c.ally.name}, whose votes the government needs, is "
                    "[expected|likely] to ask for changes on {bill.clash}.",
                    "Much will turn on {bill.clash}. {c.ally.name:cap}, the [smaller|junior] partner in the coalition, has said it "
                    "[will not sign a blank cheque|wants that part tightened|has an open mind].",
                    "The hardest [talks|arguments] will be about {bill.clash}, [officials|people in both governing parties] say.",
                ),
                say(
                    "If it passes, the law would apply {start_on}.",
                    "The ministry wants the law in force {start_on}, [a timetable that several lawmakers called brisk|which leaves little time for committee work].",
                    "A first reading is due [next week|within ten days]; the government hopes the law will apply {start_on}.",
                ),
                say(
                    "{c.premier.name}, the {c.title}, [made the idea part of|put the idea into] {c.premier.his} last campaign, and aides say {c.premier.he} "
                    "[asks about it weekly|wants it done before anything else on {bill.field}].",
                    "{c.name} has tried before. [A weaker version|An earlier attempt] ran out of time in the last session, when the "
                    "two governing parties could not agree on {bill.clash}.",
                    "Neighbouring countries are watching: [at least two|several] have promised laws on {bill.field} and none has yet found the votes.",
                ),
            ),
            weight=0.5,
            covered=0.25,
        ),
        Stage(
            titles=(
                "{c.demonym} {bill.name} [in trouble|under strain|faces revolt] as {rebels} [rebels|government members] threaten to vote no",
                "Coalition [row|quarrel] over {bill.clash} [delays|slows|clouds] {c.demonym} {bill.name}",
                "{rebel.last} leads revolt against {bill.name} in {c.capital}",
                "{amendments} amendments and counting: {bill.name} [limps|crawls] through {c.demonym} committee",
                "{c.demonym} lawmakers [dig in|clash] over {bill.clash} before {bill.name} vote",
            ),
            abstracts=(
                "{rebels} members of the governing parties say they cannot back the text unless {bill.clash} is [changed|dealt with].",
                "A committee [worked until late|sat for nine hours] on the {bill.name} without settling {bill.clash}.",
                "{minister.name} says [there is still time for a compromise|the core of the bill is not for sale]; the rebels, led by {rebel.name}, "
                "say they [have the numbers|are not bluffing].",
                "The plan to {bill.aim} has met resistance inside {c.party.name}. The dispute is about {bill.clash}.",
            ),
            leads=(
                "The {c.demonym} government's plan to {bill.aim} ran into [trouble|resistance] in its own ranks {on}, when "
                "{rebels} members of the coalition said they would not vote for the {bill.name} as it stands.",
                "{rebel.name}, a backbencher for {c.party.name} whom few voters could have named a week ago, may decide the fate of the "
                "{bill.name}. {rebel.he:cap} says {rebels} colleagues, {rebel.himself} included, will oppose it unless {bill.clash} is [changed|settled].",
                "With a vote [days away|approaching], {c.demonym} lawmakers [were still arguing|spent {today} arguing] about {bill.clash}, "
                "the part of the {bill.name} that has [divided|split] the coalition.",
                "A committee of the {c.demonym} {c.house} [took up|began on] {amendments} amendments to the {bill.name} {on}. "
                "[By evening it had dealt with a third of them|It adjourned with most of them untouched].",
            ),
            then=(
                say(
                    "“I was elected to {bill.aim}, not to wave through whatever is [printed|put in front of me],” {rebel.last} said. "
                    "“[Show me an answer on|Fix] {bill.clash} and [you have my vote|we can all go home].”",
                    "“[Nobody enjoys this|It gives me no pleasure],” said {rebel.name}, one of the rebels. “But on {bill.clash} the text is [simply wrong|a muddle], and I said so in private first.”",
                    "{rebel.last}, who [sits for a rural seat|chaired the drafting group|was a minister until last year], said the dispute over {bill.clash} was “[not a detail|the whole point]”.",
                ),
            ),
            loose=(
                say(
                    "The bill, published {t0:on}, {bill.means}.",
                    "As published {t0:on}, the text {bill.means}. [Little of that|None of that part] is in dispute.",
                    "Under the draft, which {minister.last} presented {t0:on}, the law {bill.means}.",
                ),
                say(
                    "{minister.name}, the {bill.office} minister, [met the rebels|saw the group] for an hour {on}. {minister.he:cap} said afterwards that “[doors are open|we are talking about a paragraph, not a principle]”.",
                    "The {bill.office} ministry said it was “[listening|looking at wording]”. {minister.name} [cancelled a trip|cleared {minister.his} diary] to stay in {c.capital}.",
                ),
                say(
                    "“{bill.con},” said {critic.name} of {c.opposition.name}, [which|whose party] has [watched the quarrel with some pleasure|offered the rebels nothing but encouragement].",
                    "The opposition has kept its distance. {critic.name} of {c.opposition.name} said {critic.his} party would “[not rescue a bill its own authors dislike|vote on what is in front of us]”.",
                ),
                say("{bill.detail}"),
                say(
                    "{bill.group:cap} urged both sides to [keep to the timetable|settle]. “[A delay helps only those who want nothing|Every month costs people something real],” {campaigner.name} said.",
                    "For {bill.people}, the [wait|uncertainty] has [costs|a price]. {campaigner.name} of {bill.group} said [calls had doubled since the draft appeared|many had put off decisions until the vote].",
                ),
                say(
                    "A vote is [pencilled in|set] for {t2:day}.",
                    "The {c.house} is due to vote {t2:on}. [A whip for the coalition|One party official], asked whether it had the numbers, said: “[Ask me that morning|We can all count].”",
                ),
            ),
            after=(2, 4),
            weight=0.42,
            covered=0.15,
        ),
        Stage(
            titles=(
                "{c.demonym} {c.house} [passes|approves|backs] {bill.name} by {ayes} votes to {noes}",
                "{bill.name:cap} [becomes law|clears final vote] in {c.name} after [late|last-minute] deal on {bill.clash}",
                "{minister.last} wins {bill.name} vote [by {margin}|with {margin} to spare]",
                "{c.name} votes to {bill.aim}",
                "[Cheers and groans|Applause and boos] as {c.demonym} lawmakers [adopt|vote through] {bill.name}",
            ),
            abstracts=(
                "The measure, which {bill.means}, [won|was carried] by {ayes:fig} votes to {noes:fig}. It takes effect {start_on}.",
                "A [compromise|deal] on {bill.clash} brought most of the rebels back. The law applies {start_on}.",
                "The government wins its vote to {bill.aim} with a majority of {margin}, [after a week of bargaining|to the relief of {minister.name}].",
                "{c.opposition.name:cap} says it will [repeal|rewrite] the law if it comes to power.",
            ),
            leads=(
                "{c.name} will {bill.aim} after the {c.house} [passed|approved] the {bill.name} {on} by {ayes:fig} votes to {noes:fig}.",
                "The {c.demonym} government [won|carried] the vote on its {bill.name} {on}, {ayes:fig} to {noes:fig}, [after a day of bargaining|hours after settling with its rebels] over {bill.clash}.",
                "By {ayes:fig} votes to {noes:fig}, {c.demonym} lawmakers {on} [adopted|backed] a law that {bill.means}.",
                "The speaker had to read out the figures twice over the noise: {ayes:fig} for, {noes:fig} against. With that, the {c.demonym} {bill.name} [had passed|was law].",
            ),
            then=(
                say(
                    "“{bill.pro},” {minister.name}, the {bill.office} minister, said [afterwards|in the lobby], [looking tired|to applause from {minister.his} own benches].",
                    "{minister.name}, the {bill.office} minister, [shook hands along the front bench|left without a speech]. “[It took longer than I would have liked|Good laws take arguing],” {minister.he} said.",
                ),
                say(
                    "The revolt led by {rebel.name} [melted away|shrank] after ministers [agreed to|accepted] a review of {bill.clash} [after two years|every year]. [Three of the rebels still voted no|In the end only a handful held out].",
                    "{rebel.name}, who had threatened to vote against with {rebels} others, [came round|changed {rebel.his} mind] after the government gave ground on {bill.clash}. “[We got a page. It is a good page|I asked for an answer and got one],” {rebel.he} said.",
                ),
            ),
            loose=(
                say("{bill.detail}"),
                say(
                    "{critic.name} of {c.opposition.name} [was unmoved|kept up the attack]. “{bill.con},” {critic.he} said, [promising|pledging] to [amend|undo] the law after the next election.",
                    "“{bill.con},” {critic.name} told the {c.house} in the last speech of the debate. {c.opposition.members} voted against to the last [one|member].",
                ),
                say(
                    "The law applies {start_on}.",
                    "The [first|main] provisions apply {start_on}; the rest need [decrees|rules] that the {bill.office} ministry [has yet to write|says are nearly ready].",
                ),
                say(
                    "{campaigner.name} of {bill.group} said the work now was “[dull and important: forms, inspectors, money|to make it true outside this building]”.",
                    "For {bill.people}, the change will [not be felt at once|come slowly]. {bill.group:cap} said it would [publish a guide|run advice sessions] [this month|before the law applies].",
                ),
                say(
                    "The bill had been in [doubt|trouble] since {t1:since}, when the rebels went public, [and party managers were counting names until the morning|and few in {c.capital} would have bet on a majority of {margin}].",
                    "It is a [much-needed|rare] win for {c.premier.name}, the {c.title}, whose government has [lost|dropped] two other bills [this session|since the winter].",
                ),
            ),
            after=(2, 4),
            weight=0.6,
            covered=0.3,
            when=lambda f: f.passed is not None,
        ),
        Stage(
            titles=(
                "{c.demonym} {bill.name} [defeated|falls|voted down], {ayes} votes to {noes}",
                "Blow for {minister.last} as {c.demonym} {c.house} rejects {bill.name}",
                "{c.demonym} plan to {bill.aim} [collapses|fails] after revolt over {bill.clash}",
                "Rebels sink {bill.name} in {c.capital} by {margin} votes",
            ),
            abstracts=(
                "Members of the governing parties joined the opposition to defeat the measure, {noes:fig} votes to {ayes:fig}.",
                "The government falls {margin} votes short. {minister.name} says [the plan is not dead|there will be a new text by the autumn].",
                "A last-minute offer on {bill.clash} was not enough for {rebel.name} and other rebels.",
            ),
            leads=(
                "The {c.demonym} government [lost|suffered a defeat on] its {bill.name} {on}, when enough of its own members joined the opposition to reject it by {noes:fig} votes to {ayes:fig}.",
                "A plan to {bill.aim} [failed|fell] in the {c.demonym} {c.house} {on}: {ayes:fig} members voted for, {noes:fig} against.",
                "{minister.name}, the {c.demonym} {bill.office} minister, left the chamber by a side door {on} after the {bill.name}, {minister.his} [biggest|most cherished] project, was voted down by {noes:fig} to {ayes:fig}.",
            ),
            then=(
                say(
                    "“[We warned them in private and then in public|They were told],” said {rebel.name}, who led the revolt over {bill.clash}. “[A government that cannot count should listen|Nobody is celebrating].”",
                    "{rebel.name}, the leader of the revolt, said {rebel.he} took “[no joy|no pleasure at all]” in the result. “With {bill.clash} put right I would have [voted yes|walked through the other door].”",
                ),
                say(
                    "{minister.last} said a new text would come “[when tempers have cooled|in the autumn]”. “{bill.pro},” {minister.he} added. “That is [as true tonight as it was this morning|still so].”",
                    "“{bill.pro},” {minister.last} said, [sounding more weary than angry|reading from a card]. {minister.he:cap} [would not say whether {minister.he} had offered to resign|brushed aside a question about {minister.his} future].",
                ),
            ),
            loose=(
                say("{bill.detail}"),
                say("“{bill.con},” said {critic.name} of {c.opposition.name}, [which|whose party] voted against as one.",
                    "{critic.name} of {c.opposition.name} called on the government to [drop the idea|start again with all parties]. “{bill.con}.”"),
                say("{campaigner.name} of {bill.group} was [blunt|close to tears]. “[Two years of work went in an evening|People will ask me what happened and I will have to say: arithmetic],” {campaigner.he} said.",
                    "{bill.group:cap} said {bill.people} had been “[let down by a quarrel about a clause|left where they were]”."),
                say("The draft, published {t0:on}, {bill.means}.", "As it stood, the bill {bill.means}."),
                say("It is [only the second|the first] government bill to be defeated this session. {c.premier.name}, the {c.title}, said {c.premier.he} had “[full confidence|every confidence]” in {minister.last}.",
                    "Allies of {c.premier.name}, the {c.title}, [played down|shrugged off] talk of a confidence vote. “[It is one bill|Governments lose votes],” one said."),
            ),
            after=(0.0, 0.0),
            weight=0.65,
            covered=0.35,
            when=lambda f: f.failed is not None,
        ),
    ),
    share=1.5,
    rhythm=OFFICE,
)  # fmt: skip
