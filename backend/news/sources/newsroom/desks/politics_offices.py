# ruff: noqa: E501 (prose reads better unbroken)
"""How the politics desk follows officials and parties: scandals, leadership contests, elections and polls."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.politics_matters import SCANDALS, Scandal
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import EVENING, OFFICE
from backend.news.sources.newsroom.world import Country, Party


@dataclass(frozen=True)
class Affair:
    c: Country
    affair: Scandal
    junior: Person
    senior: Person
    critic: Person
    heir: Person
    aide: Person
    years: int
    out: bool
    source: str


def _affair(scene: Scene) -> Affair:
    affair = scene.fresh("scandal", SCANDALS, uses=2)
    c = scene.country("scandal")
    return Affair(
        c, affair, scene.person(c, f"the junior {affair.office} minister"), c.minister(affair.office),
        scene.person(c, f"a member of {c.opposition.name}"), scene.person(c), scene.person(c, "a former colleague"),
        scene.between(2, 6), scene.chance(0.65),
        scene.pick(("a weekly newspaper", "the public broadcaster", "a local radio station", "an anti-corruption website")),
    )  # fmt: skip


SCANDAL = Beat(
    "scandals",
    _affair,
    (
        Stage(
            titles=(
                "{c.demonym} junior minister {junior.last} [faces questions|under pressure] over {affair.short}",
                "Junior {affair.office} minister {affair.what}, [report says|papers suggest]",
                "{affair.short:cap} [affair|allegations] put {c.demonym} minister {junior.last} on the defensive",
                "Opposition [demands answers|wants inquiry] over {junior.last} and the {affair.short}",
            ),
            abstracts=(
                "{source:cap} says {junior.name}, a junior {affair.office} minister in {c.name}, {affair.what}. {junior.he:cap} denies wrongdoing.",
                "The report rests on {affair.proof}. “{affair.denial},” {junior.name} says.",
                "{junior.name} [calls the report misleading|says the report leaves out half the story]; the opposition wants an inquiry.",
            ),
            leads=(
                "A junior minister in the {c.demonym} government {affair.what}, according to {affair.proof} seen by {source}.",
                "{junior.name}, the junior {affair.office} minister of {c.name}, came under pressure {on} after {source} reported that {junior.he} {affair.what}.",
                "The {c.demonym} government spent {today} [fending off|answering] questions about {junior.name}, a junior {affair.office} minister, who, {source} says, {affair.what}.",
            ),
            then=(
                say(
                    "“{affair.denial},” {junior.last} said [in a statement|outside {junior.his} office|on breakfast radio]. {junior.he:cap} [would not take questions|promised to publish documents].",
                    "{junior.last} [denied doing anything wrong|rejected the report]. “{affair.denial},” {junior.he} said.",
                ),
                say(
                    "{critic.name}, who speaks on ethics for {c.opposition.name}, [asked|called on] the {c.house} to [open|set up] an inquiry. “[There may be an innocent answer. We have not heard it|If it is all so innocent, it can be said under oath],” {critic.he} said.",
                    "For {c.opposition.name}, {critic.name} said the story “[gets worse each time it is explained|does not survive a second reading]” and asked for an inquiry.",
                ),
            ),
            loose=(
                say(
                    "{source:cap} based its account on {affair.proof}. A former colleague, {aide.name}, confirmed [parts of it|that the papers were genuine].",
                    "At the heart of the report lie {affair.proof}, [handed over|provided] by a former colleague, {aide.name}.",
                ),
                say(
                    "{senior.name}, the {affair.office} minister and {junior.last}'s superior, said {senior.he} had “[asked for a full account|no reason to doubt a valued colleague]”.",
                    "{c.premier.name}, the {c.title}, who came to office promising clean government, [said little|would say only that rules apply to everyone].",
                ),
                say(
                    "{junior.last}, who has held the post for {years:count year}, was [seen as a coming figure in|regarded as one of the steadier hands of] {c.party.name}.",
                    "{junior.last} has sat in the {c.house} for {c.party.name} for {years:count year} [and won {junior.his} seat by a wide margin|and was tipped for promotion].",
                ),
                say(
                    "Under {c.demonym} rules, ministers must [report gifts and holdings within 30 days|tell a standards officer of any conflict of interest]. The officer [declined to comment|said only that the matter was being looked at].",
                    "The standards officer of the {c.house} [has been sent|asked for] the papers and can recommend a fine or a reprimand, but not a dismissal.",
                ),
            ),
            weight=0.55,
            covered=0.3,
        ),
        Stage(
            titles=(
                "{c.demonym} {c.house} opens inquiry into {junior.last} and {affair.short}",
                "[New papers|Fresh documents] deepen {affair.short} affair around {junior.last}",
                "Ethics inquiry: {junior.last} to be questioned about {affair.short} in {c.capital}",
                "“I will not resign”: {junior.last} fights on in {affair.short} affair",
            ),
            abstracts=(
                "Members vote to examine whether {junior.name} broke the ministerial code. {junior.he:cap} says {junior.he} will cooperate.",
                "An ethics panel has {affair.proof} and expects to hear {aide.name} first.",
                "{junior.name} says {junior.he} will not step aside while the panel works; some in {c.party.name} wish {junior.he} would.",
            ),
            leads=(
                "An ethics panel of the {c.demonym} {c.house} will examine whether {junior.name}, the junior {affair.office} minister, broke the ministerial code, members decided {on}.",
                "{junior.name} said {on} that {junior.he} would not resign, hours after the {c.demonym} {c.house} opened an inquiry into reports that {junior.he} {affair.what}.",
                "The {affair.short} affair moved {on} from the newspapers to the {c.demonym} {c.house}, which voted to question {junior.name} [in public|next week|under oath].",
            ),
            then=(
                say(
                    "“{affair.denial},” {junior.last} [repeated|said again]. “[I look forward to saying so to people who will read the whole file|That will be clear to anyone who listens].”",
                    "{junior.last} [has hired a lawyer|arrived with a lawyer]. “I will answer everything,” {junior.he} said.",
                ),
            ),
            loose=(
                say("The report by {source}, published {t0:on}, said {junior.he} {affair.what}.",
                    "It was {t0:on} that {source} reported, citing {affair.proof}, that {junior.last} {affair.what}."),
                say("Within {c.party.name}, patience is [thin|wearing out]. “[{junior.he:cap} is becoming the only thing we are asked about|Every day of this costs us],” one member said, asking not to be named.",
                    "Colleagues [rallied in public and sighed in private|were careful with their words]. One said the matter should be “[over by the weekend, one way or the other|settled quickly]”."),
                say("{critic.name} of {c.opposition.name} said the panel needed “[the documents, not the adjectives|every page]”.",
                    "“Nobody is above a form that the rest of us fill in,” said {critic.name} of {c.opposition.name}."),
                say("The panel meets behind closed doors unless a witness asks otherwise.",
                    "Its first witness is to be {aide.name}, the former colleague who [confirmed|provided] the papers."),
                say("{c.premier.name}, the {c.title}, said {c.premier.he} would “wait for the facts”, [wording that some heard as a warning|and left it at that].",),
            ),
            after=(1.5, 3),
            weight=0.45,
            covered=0.15,
        ),
        Stage(
            titles=(
                "{c.demonym} minister {junior.last} resigns over {affair.short}",
                "{junior.last} quits as junior {affair.office} minister after ethics findings",
                "{affair.short:cap} affair ends career of {c.demonym} junior minister {junior.last}",
                "{heir.last} replaces {junior.last} after {affair.short} resignation in {c.capital}",
            ),
            abstracts=(
                "An ethics panel found that {affair.finding}. {heir.name} takes over the post.",
                "{junior.name} steps down as junior {affair.office} minister, [still denying|without admitting] that {junior.he} did wrong.",
                "“I have become the story,” says {junior.name}, who leaves after the panel found that {affair.finding}.",
            ),
            leads=(
                "{junior.name} resigned as {c.demonym} junior {affair.office} minister {on}, after an ethics panel found that {affair.finding}.",
                "The {affair.short} affair cost a {c.demonym} minister {junior.his} job {on}. {junior.name} [stepped down|handed in a one-page letter] shortly after the ethics panel reported that {affair.finding}.",
                "It took the ethics panel four pages to say that {affair.finding}, and {junior.name} less than an hour to resign as junior {affair.office} minister of {c.name}.",
            ),
            then=(
                say(
                    "“[I have become the story, and the work is more important than I am|I leave with a clear conscience and a heavy heart|Staying would help nobody],” {junior.last} [wrote|said].",
                    "In a letter to {c.premier.name}, the {c.title}, {junior.last} [apologised for “the distraction”|said {junior.he} had “made mistakes but never for gain”].",
                ),
                say("{heir.name}, a [former judge|member for a northern seat|tax lawyer], was named as successor.",
                    "The post goes to {heir.name}, [until now a committee chair|a newcomer to government]. “There is a desk full of work,” {heir.he} said."),
            ),
            loose=(
                say("{junior.last} had insisted {t1:on} that {junior.he} would stay. “{affair.denial},” {junior.he} said then.",
                    "When {source} broke the story {t0:on}, {junior.last} said: “{affair.denial}.”"),
                say("The panel relied on {affair.proof} and on the evidence of {aide.name}, a former colleague.",
                    "{aide.name}, the former colleague who gave evidence, said {aide.he} felt “[no triumph|mostly tired]”."),
                say("{critic.name} of {c.opposition.name} said the resignation was “[right, and a week late|the least that could be expected]”.",
                    "The opposition wants more. “[Who else knew?|The question is who signed it off?],” asked {critic.name} of {c.opposition.name}."),
                say("{senior.name}, the {affair.office} minister, thanked {junior.last} for “[hard work|loyal service]” and [did not mention|passed over] the findings.",
                    "{c.premier.name}, the {c.title}, accepted the letter “with regret” [and within minutes|the same evening]."),
                say("{junior.last} keeps {junior.his} seat in the {c.house}.", "Prosecutors in {c.capital} have [asked for|received] the file. {junior.last} keeps {junior.his} seat."),
            ),
            after=(2, 4),
            weight=0.7,
            covered=0.45,
            when=lambda f: f.out,
        ),
        Stage(
            titles=(
                "{c.demonym} ethics panel clears {junior.last} in {affair.short} affair",
                "{junior.last} [keeps job|survives] as inquiry into {affair.short} ends with a reprimand",
                "Reprimand, not resignation, for {c.demonym} minister {junior.last}",
            ),
            abstracts=(
                "The panel finds carelessness but no breach serious enough for {junior.name} to go.",
                "{junior.name} apologises for incomplete records. The opposition calls the verdict soft.",
            ),
            leads=(
                "{junior.name} will stay on as {c.demonym} junior {affair.office} minister after an ethics panel {on} called {junior.his} conduct careless but not dishonest.",
                "An ethics panel [reprimanded|rebuked] {junior.name} {on} but found no ground for dismissing {junior.him} in the affair about the {affair.short}.",
            ),
            then=(
                say("“I am relieved, and I have learned to keep [better|every] paper,” {junior.last} said.",
                    "“{affair.denial},” {junior.last} had said from the start. After the ruling {junior.he} added: “I should have said it with documents.”"),
            ),
            loose=(
                say("The inquiry began after {source} reported {t0:on} that {junior.he} {affair.what}, citing {affair.proof}.",
                    "The panel studied {affair.proof} and heard {aide.name}, a former colleague, for two hours."),
                say("{critic.name} of {c.opposition.name} said the ruling “[tells everyone where the line is: nowhere|was written by friends]”.",
                    "“Careless is a kind word,” said {critic.name} of {c.opposition.name}."),
                say("{c.premier.name}, the {c.title}, [said the matter was closed|called the ruling clear].",
                    "{senior.name}, the {affair.office} minister, said {senior.he} was “glad to have {junior.last} back at the table”."),
                say("Rules on disclosure will be tightened, the panel's chair said, [with a register open to anyone|so that the question does not come up again]."),
            ),
            after=(0, 0),
            weight=0.5,
            covered=0.2,
            when=lambda f: not f.out,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Vote:
    c: Country
    winner: Party
    loser: Party
    third: Party
    head: Person
    beaten: Person
    kingmaker: Person
    pollster: Person
    voter: Person
    first_pct: float
    second_pct: float
    third_pct: float
    turnout: int
    turnout_before: int
    seats: int
    won: int
    lost: int
    held: int
    issue: str
    issue_line: str
    lead: int
    change: str
    region: str
    town: str


_ISSUES = (
    ("hospital waiting lists", "people ask me when their hip will be done, not who sits where"),
    ("the price of heating", "it is the bill on the kitchen table that decides this"),
    ("housing", "a young couple should not need a lottery ticket to find a flat"),
    ("pensions", "we will not balance the books on people of eighty"),
    ("crime in the big cities", "nobody should cross the street because of a doorway"),
    ("schools", "there are classes of thirty-four, and that is a choice somebody made"),
    ("jobs in the old industrial towns", "a town needs a pay packet before it needs a slogan"),
    ("corruption", "a clean desk is the first promise and the last"),
    ("immigration", "we can be decent and orderly at once"),
)


def _vote(scene: Scene) -> Vote:
    c = scene.country("election")
    government_wins = scene.chance(0.4)
    winner, loser = (c.party, c.opposition) if government_wins else (c.opposition, c.party)
    head, beaten = (c.premier, c.rival) if government_wins else (c.rival, c.premier)
    first, gap = scene.tenth(29, 38), scene.tenth(0.6, 6)
    second = round(first - gap, 1)
    third = scene.tenth(8, 15)
    seats = scene.pick((200, 250, 300, 350, 450))
    won, lost, held = (round(seats * share / 100 * 1.1) for share in (first, second, third))
    turnout = scene.between(58, 79)
    issue, line = scene.pick(_ISSUES)
    return Vote(
        c, winner, loser, c.ally, head, beaten, scene.person(c, f"the leader of {c.ally.name}"), scene.person(c, "a pollster"),
        scene.person(c), first, second, third,
        turnout, turnout + scene.pick((-6, -5, -4, -3, 3, 4, 5, 6)), seats, won, lost, held, issue, line,
        scene.between(2, 6), "gained" if scene.chance(0.5) else "lost", scene.pick(c.land.regions), scene.pick(c.cities).name,
    )  # fmt: skip


ELECTION = Beat(
    "elections",
    _vote,
    (
        Stage(
            titles=(
                "{c.name} election: parties [fight|argue] over {issue} as campaign enters last week",
                "{c.demonym} election campaign turns to {issue}",
                "{issue:cap} at the centre of {c.demonym} election as {head.last} and {beaten.last} tour {region}",
                "In {town}, {c.demonym} voters weigh {issue} before election",
            ),
            abstracts=(
                "With days to go before the vote, {head.name} and {beaten.name} are close in the polls.",
                "{issue:cap} came up at every stop in {region}, where both main candidates campaigned {on}.",
                "Polls give {winner.name} a lead of {lead:count point}, within the margin of error, over {loser.name}.",
            ),
            leads=(
                "{head.name} and {beaten.name} both brought their campaigns to {region} {on}, and both were asked, again and again, about {issue}.",
                "With the {c.demonym} election days away, the contest between {head.name} of {winner.name} and {beaten.name} of {loser.name} has come down to {issue}.",
                "In the market hall of {town}, the talk {on} was of {issue}. {c.name} votes {t2:on}, and nobody here was sure how it would end.",
            ),
            then=(
                say("“{issue_line:cap},” {head.last} told a crowd in {town}.",
                    "{head.last}, speaking in {town}, kept it short: “{issue_line:cap}.”",
                    "“{issue_line:cap},” said {head.name}, to [long|loud] applause."),
                say("{beaten.last} [answered|replied] that {winner.name} had “no sums behind its promises”.",
                    "{beaten.name} spent the day in {c.capital}, [warning against experiments|shaking hands at a bus depot]. “A promise without a price is only a wish,” {beaten.he} said."),
            ),
            loose=(
                say("The latest poll puts {winner.name} {lead:count point} ahead, with one voter in six undecided.",
                    "{pollster.name}, a pollster, calls it “[a coin still in the air|too close for adjectives]”: {winner.name} leads by {lead:count point}, within the margin of error."),
                say("{voter.name}, [a nurse|who runs a hardware shop|a retired tram driver|a student] in {town}, has voted for both parties in the past. “[I will decide in the booth, as usual|They all come in spring and leave in autumn|I want somebody to finish something],” {voter.he} said.",),
                say("{third.name:cap}, led by {kingmaker.name}, [may hold the balance|could decide who governs]. {kingmaker.he:cap} has [ruled out neither side|kept both doors open]."),
                say("Both parties [have spent heavily|are putting their last money] in {region}, where a dozen seats changed hands last time.",
                    "{region:cap} sends only a few members to the {c.house}, but [its seats change hands often|they tend to go the way of the country]."),
                say("The {c.house} has {seats} seats. Polling stations open at seven.", "About {c.land.people_m} million people live in {c.name}; a little under three-quarters of them may vote."),
            ),
            weight=0.5,
            covered=0.15,
        ),
        Stage(
            titles=(
                "{c.demonym} election debate: {head.last} and {beaten.last} clash over {issue}",
                "{head.last} and {beaten.last} trade blows on {issue} in {c.demonym} TV debate",
                "No knockout in {c.demonym} leaders' debate before election",
            ),
            abstracts=(
                "Ninety minutes of television, one sharp exchange about {issue}, and no clear winner.",
                "The two main candidates met for the only debate before {c.name} votes.",
            ),
            leads=(
                "{head.name} and {beaten.name} met {on} for the only televised debate of the {c.demonym} election campaign, and saved their sharpest words for {issue}.",
                "The {c.demonym} leaders' debate {on} produced one memorable exchange, about {issue}, and few new votes.",
            ),
            then=(
                say("“{issue_line:cap},” said {head.last}, turning to the camera. {beaten.last} [shook {beaten.his} head|let the applause pass]: “And who was in the room when it was decided?”",),
            ),
            loose=(
                say("A quick survey of viewers gave {head.last} a narrow edge, though the difference is [little|well within its error].",
                    "{pollster.name}, a pollster, said such evenings “[confirm more than they convert|move opinions by a hair]”."),
                say("{kingmaker.name} of {third.name}, at the third lectern, [was the calmest of the three|spoke least and was quoted most]."),
                say("In {town}, {voter.name} watched with neighbours. “[I turned the sound off after an hour|Nobody answered the question about my rent],” {voter.he} said."),
                say("{c.name} votes {t2:on}.", "Polls open {t2:on} at seven in the morning."),
                say("The candidates also argued about defence, taxes and who had [invited|snubbed] whom to a farmers' fair."),
            ),
            after=(2, 3),
            rhythm=EVENING,
            weight=0.5,
        ),
        Stage(
            titles=(
                "{winner.name:cap} [wins|comes first in] {c.demonym} election with {first_pct}% of vote",
                "{c.demonym} election: {head.last} [claims victory|ahead], {beaten.last} concedes",
                "{head.last} wins {c.demonym} election but needs partners",
                "Election night in {c.capital}: {winner.name} takes {won} seats",
            ),
            abstracts=(
                "{winner.name:cap} takes {won} of {seats} seats, short of a majority. Turnout was {turnout}%.",
                "With nearly all votes counted, {winner.name} has {first_pct}% and {loser.name} {second_pct}%. Talks with {third.name} are likely.",
                "{beaten.name} concedes; {head.name} must now find a majority in the {c.house}.",
            ),
            leads=(
                "{winner.name:cap}, led by {head.name}, won the {c.demonym} election {on} with {first_pct}% of the vote, ahead of {loser.name} with {second_pct}%, according to near-complete results.",
                "{beaten.name} conceded defeat in {c.name}'s election {on} after results gave {winner.name} {first_pct}% of the vote and {loser.name} {second_pct}%.",
                "{head.name} came first in the {c.demonym} election {on}, but with {won} of {seats} seats {head.he} will need partners to govern.",
            ),
            then=(
                say("“[Tonight we celebrate, tomorrow we telephone|You have given us a task, not a throne|The people have spoken in several voices, and we heard them all],” {head.last} told supporters in {c.capital}.",),
                say("{beaten.last} [spoke briefly|needed two minutes]. “[It was close, and it is clear|I have congratulated {head.name}],” {beaten.he} said.",),
            ),
            loose=(
                say("{winner.name:cap} will have {won} seats, {loser.name} {lost} and {third.name}, led by {kingmaker.name}, {held}.",
                    "The {c.house} has {seats} seats: {won} go to {winner.name}, {lost} to {loser.name}, {held} to {third.name}, which took {third_pct}% of the vote. The rest is shared by smaller groups."),
                say("Turnout was {turnout}%, compared with {turnout_before}% last time.", "Turnout, at {turnout}%, [compared with {turnout_before}% at the last election|was not far from the {turnout_before}% of the last election]."),
                say("{issue:cap} had dominated the campaign, and exit polls suggest the subject moved more voters than any other.",
                    "“It was {issue} in the end,” said {pollster.name}, a pollster. “Everything else was weather.”"),
                say("In {region}, where both leaders had campaigned, {winner.name} [made its largest gains|took every seat but two].",),
                say("{kingmaker.name}, whose {third.adjective} deputies may decide who governs, said {kingmaker.his} telephone was “[fully charged|already warm]”.",),
            ),
            after=(3, 4),
            rhythm=EVENING,
            weight=0.9,
            covered=0.7,
        ),
        Stage(
            titles=(
                "{head.last} opens coalition talks with {third.name} in {c.capital}",
                "After {c.demonym} election, haggling: {head.last} and {kingmaker.last} start coalition talks",
                "Coalition talks in {c.name}: what {kingmaker.last} wants from {head.last}",
            ),
            abstracts=(
                "{winner.name:cap} and {third.name} hold {won} and {held} seats. {issue:cap} tops the agenda.",
                "The election winner sits down with {third.name}. Both sides say it will take weeks.",
            ),
            leads=(
                "{head.name}, whose party won the {c.demonym} election {t2:on}, began coalition talks {on} with {kingmaker.name} of {third.name}.",
                "Coffee, water and a list of eleven subjects were on the table when {head.name} and {kingmaker.name} began coalition talks in {c.capital} {on}.",
            ),
            then=(
                say("“[We know where we differ. We are here for the rest|It was friendly, and it was arithmetic],” {kingmaker.last} said [after three hours|on leaving].",),
            ),
            loose=(
                say("{issue:cap}, the campaign's main theme, was left for [last|later].", "A working group on {issue} reports first."),
                say("Together the two parties hold {won} and {held} of {seats} seats[; a third partner may be needed|, which is not quite enough without a smaller group]."),
                say("{beaten.name}, who lost with {second_pct}% of the vote, said {loser.name} would “[oppose, and with pleasure|be ready if this fails]”."),
                say("“Programmes are the easy part,” said {pollster.name}, who has watched four such rounds. “Then comes the list of ministries.”"),
                say("{third.members:cap} must approve any agreement in a ballot.", "The outgoing cabinet stays in office until then."),
            ),
            after=(2, 4),
            weight=0.5,
            rhythm=OFFICE,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip
