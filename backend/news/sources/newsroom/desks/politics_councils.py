# ruff: noqa: E501 (prose reads better unbroken)
"""How the politics desk covers town halls, budgets and opinion polls."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.politics_matters import TOWN_MATTERS, TownMatter
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money, Party


@dataclass(frozen=True)
class TownFacts:
    c: Country
    town: str
    m: TownMatter
    mayor: Person
    critic: Person
    local: Person
    ayes: int
    noes: int
    hours: int
    crowd: int
    signatures: int
    party: Party
    after: str


def _town(scene: Scene) -> TownFacts:
    m = scene.fresh("town matter", TOWN_MATTERS, uses=2)
    c = scene.country()
    town = scene.fresh("town hall", c.cities).name
    ayes = scene.between(24, 41)
    return TownFacts(
        c, town, m, scene.person(c), scene.person(c), scene.person(c), ayes, ayes - scene.between(2, 17), scene.between(3, 7),
        scene.near(120, 900), scene.near(3_000, 19_000), scene.pick((c.party, c.opposition, c.ally)),
        scene.pick(("from the first of next month", "in the spring", "after the summer", "in January")),
    )  # fmt: skip


TOWN_HALL = Beat(
    "local government",
    _town,
    (
        Stage(
            titles=(
                "{town} {m.head}",
                "Council vote: {town} {m.head}",
                "{town} council [votes|decides] to {m.vote}",
                "{town} mayor {mayor.last} wins vote to {m.vote}",
            ),
            abstracts=(
                "Councillors vote {ayes} to {noes}. {m.why}.",
                "{m.why}, the mayor's office says. The change comes {after}.",
                "“{m.pro},” says mayor {mayor.name}. Not everyone in {town} agrees.",
            ),
            leads=(
                "Councillors in {town} voted {ayes} to {noes} {on} to {m.vote}, [after|at the end of] a debate that lasted {hours} hours.",
                "The city of {town} will {m.vote}. The council decided so {on} by {ayes} votes to {noes}.",
                "It took the council of {town} {hours} hours {on} to decide to {m.vote}; the vote was {ayes} to {noes}.",
            ),
            then=(
                say("{m.why}.", "{m.why}, according to papers the council had before it."),
                say("“{m.pro},” said {mayor.name}, the mayor, who belongs to {party.name}.",
                    "{mayor.name}, mayor of {town} for {party.name}, was in no doubt. “{m.pro},” {mayor.he} said."),
                say("{m.detail}"),
            ),
            loose=(
                say("“{m.con},” said {local.name}, {m.who}.", "In the public gallery sat {local.name}, {m.who}. “{m.con},” {local.he} said on the way out."),
                say("About {crowd} people [had gathered outside|waited in front of the town hall], some with drums, [some with placards|and a few with children on their shoulders].",
                    "The gallery was full, and the list of speakers ran to four pages."),
                say("{critic.name}, who led those against, said {critic.he} [would ask a court to look at the decision|would collect signatures for a referendum]. “The margin was {ayes} to {noes}. That is not a mandate, it is a warning.”",
                    "The decision was carried against the votes of {critic.name} and {noes} others. “[I lost the vote and I have not changed my mind|We will see each other again in court],” {critic.he} said.",
                    "“[Ask again in a year and count again|They have voted with their eyes shut],” said {critic.name}, who spoke for the opponents.",),
                say("The change takes effect {after}.", "Officials have until the change comes into force, {after}, to work out the details."),
                say("Other {c.demonym} cities [have asked for the papers|are watching]; {c.capital} put off a similar decision last year."),
            ),
            weight=0.35,
            covered=0.2,
        ),
        Stage(
            titles=(
                "Petition against {town} decision to {m.vote} passes {signatures}",
                "{town}: opponents of {m.topic_word} decision take council to court",
                "Row over {m.topic_word} in {town} goes on as mayor {mayor.last} holds firm",
            ),
            abstracts=(
                "{critic.name} says {signatures} people have signed against the plan to {m.vote}.",
                "A week of argument in {town} has not moved mayor {mayor.name}. “{m.pro},” {mayor.he} says.",
            ),
            leads=(
                "Opponents of the decision by {town} to {m.vote} said {on} that they had collected {signatures} signatures.",
                "The dispute over {m.topic_word} in {town} is not over. {critic.name}, who led the votes against the decision to {m.vote}, said {on} that {signatures} people had signed a petition to reverse it.",
            ),
            then=(
                say("“{m.con},” said {local.name}, {m.who}, [who has signed|at a table outside the market hall].",
                    "{local.name}, {m.who}, is among those who signed. “{m.con},” {local.he} said."),
                say("{mayor.name}, the mayor, said {mayor.he} took the signatures seriously but would not [turn back|reopen the vote]. “{m.pro}.”",
                    "The mayor, {mayor.name}, offered to meet the petitioners. “I have been wrong before,” {mayor.he} said. “Not this time, I think.”"),
            ),
            loose=(
                say("The council took the decision {t0:on} by {ayes} votes to {noes}.", "{t0:on} the council had voted {ayes} to {noes} in favour, after {hours} hours."),
                say("{m.why}."), say("{m.detail}"),
                say("A court may have to decide whether {signatures} names are enough.",
                    "{critic.name} wants a vote of all residents[, and soon|]; the mayor's lawyers say [the law does not allow it|that would need twice as many names].",
                    "Lawyers disagree on whether a petition can stop a decision already taken. [The district court may have to say|A first hearing could come within weeks]."),
                say("The plan is due to start {after}."),
            ),
            after=(3, 6),
            weight=0.25,
            chance=0.7,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class BudgetFacts:
    c: Country
    finance: Person
    critic: Person
    economist: Person
    institute: str
    total: Money
    gap: float
    growth: float
    extra: Money
    winner: str
    loser: str
    cut: Money
    tax: str
    tax_line: str
    institute_line: str


_WINNERS = (
    "hospitals",
    "railways",
    "schools",
    "the armed forces",
    "social housing",
    "child care",
    "flood defences",
    "police",
)
_LOSERS = ("foreign aid", "road building", "farm subsidies", "the arts", "fuel discounts", "regional airports")
_TAXES = (
    ("a higher tax on company cars", "heavier cars will be taxed more, and electric ones no longer go free"),
    ("a lower rate of sales tax on repairs", "mending a bicycle or a boot will be taxed at half the usual rate"),
    ("a levy on bank profits", "banks will pay a one-off levy on profits above the average of the past five years"),
    ("a frozen income tax threshold", "the sum that can be earned tax-free stays where it is for two years"),
    ("an inheritance tax on large estates", "estates above two million will be taxed for the first time in decades"),
    ("a tax credit for first-time parents", "parents of a first child will get a credit in the year of the birth"),
    ("a duty on flights of under an hour", "the shortest flights will carry a duty that rises every year"),
)


def _budget(scene: Scene) -> BudgetFacts:
    c = scene.country("budget")
    tax, line = scene.deal("budget tax", _TAXES)
    total = scene.money(c.land.people_m * 8e9, c.land.people_m * 14e9, c.currency)
    return BudgetFacts(
        c, c.minister("finance"), scene.person(c), scene.person(c), f"{scene.pick(c.cities).name} Institute for Public Finance",
        total, scene.tenth(0.8, 4.6), scene.tenth(0.3, 2.9), total.times(scene.rng.uniform(0.01, 0.03)), scene.pick(_WINNERS),
        scene.pick(_LOSERS), total.times(scene.rng.uniform(0.003, 0.009)), tax, line,
        scene.pick(("the sums depend on growth that nobody else expects", "most of the saving comes in years after the next election",
                    "it is a cautious budget that hopes to be taken for a bold one",
                    "the figures add up, which is not said every year")),
    )  # fmt: skip


BUDGET = Beat(
    "budget",
    _budget,
    (
        Stage(
            titles=(
                "{c.demonym} budget: more for {winner}, less for {loser}, and {tax}",
                "{finance.last} [presents|unveils] {total:adj} {c.demonym} budget with {tax}",
                "{c.demonym} finance minister finds {extra} for {winner} in new budget",
                "Budget in {c.capital}: who gains and who pays",
            ),
            abstracts=(
                "{finance.name} plans to spend {total}, with {extra} more for {winner}. The deficit would be {gap}% of output.",
                "The plan includes {tax} and takes {cut} from {loser}. {c.opposition.name:cap} [calls it timid|says the numbers are wishful].",
                "{c.name}'s government expects growth of {growth}% and a deficit of {gap}%.",
            ),
            leads=(
                "{finance.name}, the {c.demonym} finance minister, [presented|set out] a budget of {total} {on} that gives {extra} more to {winner} and introduces {tax}.",
                "{c.name} will spend {total} next year, {extra} of it new money for {winner}, under a budget [presented|tabled] {on} by {finance.name}, the finance minister.",
                "There was something for {winner} and rather less for {loser} in the budget that {finance.name}, the {c.demonym} finance minister, read to the {c.house} {on}.",
            ),
            then=(
                say("Under the plan, {tax_line}. Spending on {loser} falls by {cut}.",
                    "The main change in taxation is {tax}: {tax_line}. To help pay for it all, {cut} is taken from {loser}."),
                say("“[This is a budget for people who read the small print|We are mending the roof while the ladder is there|You cannot borrow your way to a better school],” {finance.last} said.",
                    "{finance.last} said the plan was “[careful with money and generous with attention|what the country can afford, and a little of what it wants]”."),
            ),
            loose=(
                say("The deficit is forecast at {gap}% of output, on the assumption that the economy grows by {growth}%.",
                    "The finance ministry expects growth of {growth}% and a deficit of {gap}% of output."),
                say("{economist.name} of the {institute} said {institute_line}.", "“In short, {institute_line},” said {economist.name}, an economist at the {institute}."),
                say("{critic.name}, who speaks on finance for {c.opposition.name}, said voters would “[pay twice and be thanked once|look for the catch and find three]”.",
                    "“[Take away the adjectives and little is left|It is a budget of postponed decisions],” said {critic.name} of {c.opposition.name}."),
                say("Lobbies for {loser} [protested at once|said they had not been warned]. A ministry official said the cut “[was never a secret|brings spending back to where it stood two years ago]”."),
                say("The {c.house} is to vote on the budget next month.", "Committees have three weeks to examine the plan."),
            ),
            weight=0.65,
            covered=0.4,
        ),
        Stage(
            titles=(
                "The small print of the {c.demonym} budget",
                "{institute} [doubts|questions] growth figure in {c.demonym} budget",
                "{c.demonym} budget fight: opposition targets cut to {loser}",
            ),
            abstracts=(
                "{economist.name} of the {institute} says {institute_line}.",
                "Committees begin work on {finance.name:s} plan to give {winner} {extra} more.",
            ),
            leads=(
                "A close reading of the {c.demonym} budget shows that {institute_line}, {economist.name} of the {institute} said {on}.",
                "The {c.demonym} budget came under fire in committee {on}, when {c.opposition.name} attacked the {cut} taken from {loser}.",
            ),
            then=(
                say("{finance.name}, the finance minister, presented the plan {t0:on}. It gives {extra} more to {winner} and brings in {tax}."),
                say("“Growth of {growth}% is [possible|not out of the question],” {economist.last} said. “I would not [hang a hospital on it|sign a contract on it].”"),
            ),
            loose=(
                say("{critic.name} of {c.opposition.name} asked why {loser} should pay for {winner}. “[One hand gives, the other is in somebody's pocket|It is a choice, so let them defend it as one],” {critic.he} said."),
                say("Under the tax change, {tax_line}."),
                say("The ministry stood by a deficit of {gap}% of output. {finance.last} said {finance.he} would “[gladly be proved too cautious|answer every question, twice if need be]”."),
                say("A vote of the {c.house} on the {total:adj} plan is due next month."),
            ),
            after=(1, 3),
            weight=0.35,
            chance=0.85,
        ),
    ),
    share=0.6,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Poll:
    c: Country
    pollster: str
    head: Person
    first: Party
    second: Party
    first_pct: int
    second_pct: int
    third_pct: int
    move: int
    approve: int
    asked: int
    issue: str
    issue_pct: int
    weeks: int


def _poll(scene: Scene) -> Poll:
    c = scene.fresh("poll", scene.world.countries, uses=2)
    first, second = (c.party, c.opposition) if scene.chance(0.45) else (c.opposition, c.party)
    first_pct = scene.between(27, 36)
    return Poll(
        c, f"{scene.pick(('Barometer', 'Civitas', 'Plumb Line', 'Panel', 'Forum', 'Signal'))} {scene.pick(('Research', 'Surveys', 'Opinion'))}",
        scene.person(c), first, second, first_pct, first_pct - scene.between(2, 8), scene.between(8, 16), scene.between(2, 4),
        scene.between(28, 55), scene.near(1_000, 2_600), scene.pick(("health care", "the cost of living", "housing", "security", "education", "climate")),
        scene.between(31, 52), scene.between(3, 8),
    )  # fmt: skip


POLL = Beat(
    "opinion polls",
    _poll,
    (
        Stage(
            titles=(
                "{c.demonym} poll: {first.name} leads with {first_pct}%, {second.name} slips",
                "Poll puts approval of {c.demonym} {c.title} {c.premier.last} at {approve}%",
                "{first.name:cap} [ahead|in front] in {c.demonym} opinion poll",
                "{c.demonym} voters rank {issue} as top concern, survey finds",
            ),
            abstracts=(
                "{first.name:cap} is on {first_pct}% and {second.name} on {second_pct}%, according to {pollster}.",
                "Some {issue_pct}% of those asked name {issue} as the country's main problem.",
                "The survey of {asked} people finds {approve}% content with {c.premier.name:s} work.",
            ),
            leads=(
                "{first.name:cap} would win {first_pct}% of the vote if {c.name} voted now, against {second_pct}% for {second.name}, a poll by {pollster} [found|showed] {on}.",
                "{c.premier.name}, {c.name:s} {c.title}, has the approval of {approve}% of voters, according to a survey published {on} by {pollster}.",
                "Asked what troubles them most, {issue_pct}% of {c.demonym} voters say {issue}, a poll by {pollster} found {on}.",
            ),
            then=(
                say("{first.name:cap} stands at {first_pct}%, {second.name} at {second_pct}% and {c.ally.name} at {third_pct}%. {second.members:cap} lost {move:count point} compared with the last survey {weeks:count week} ago.",
                    "Compared with {weeks:count week} ago, {second.name} is down {move:count point}, to {second_pct}%. {first.name:cap} is on {first_pct}% and {c.ally.name} on {third_pct}%."),
            ),
            loose=(
                say("“[Polls are a photograph, not a forecast|Small moves, but all in one direction|Most people are not thinking about parties at all, and it shows],” said {head.name}, who runs the firm."),
                say("The {c.title} has an approval rating of {approve}%[; the leader of the opposition was not rated|].",),
                say("{issue:cap} was named as the main problem by {issue_pct}%[, more than any other subject|]."),
                say("{pollster} asked {asked} adults by telephone and online. The margin of error is about three points.", "The {asked} interviews were done over four days; the margin of error is three points either way."),
                say("No election is expected soon. Party managers [shrugged|said the only poll that counts is on the day].",),
            ),
            weight=0.3,
            covered=0.2,
        ),
    ),
    share=0.35,
    rhythm=OFFICE,
)  # fmt: skip
