# ruff: noqa: E501 (prose reads better unbroken)
"""How the markets desk covers the price of money: what central banks decide and what governments pay to borrow."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.markets_shares import HOUSES, TRADING
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Decision:
    c: Country
    city: City
    governor: Person
    hawk: Person
    minister: Person
    economist: Person
    house: str
    debtor: Person
    saver: Person
    firm: Person
    rate: float
    new: float
    step: float
    inflation: float
    before: float
    jobless: float
    votes: int
    against: int
    years: int
    small: int
    what: str
    what_now: str
    doubt: str
    cut: str | None
    rise: str | None
    hold: str | None
    surprise: str | None
    expected: str | None
    monthly: Money


_WORRIES = (
    "wages that rise faster than output", "rents", "the price of food", "weak investment", "a labour market that is cooling", "dear energy", "household debt", "a currency under pressure", "empty shops", "a building trade on its knees", "tariffs", "the banks' bad loans", "young people without work",
)  # fmt: skip


def _decision(scene: Scene) -> Decision:
    c = scene.fresh("central bank", [one for one in scene.world.countries if one.currency.sign != "€"])
    way = scene.pick(("cut", "cut", "rise", "hold"))
    step = 0.25 if scene.chance(0.75) else 0.5
    rate = scene.between(6, 34) * 0.25
    new = rate + {"cut": -step, "rise": step, "hold": 0.0}[way]
    inflation = scene.tenth(1.4, 3.2) if way == "cut" else scene.tenth(3.1, 7.8)
    before = round(inflation + scene.tenth(0.2, 0.9) * (1 if way == "cut" else -1), 1)
    against = scene.between(1, 3)
    surprise = scene.chance(0.3)
    return Decision(
        c, scene.pick(c.cities), c.minister("central bank"), scene.person(c, "a member of the bank's board"), c.minister("finance"), scene.person(c, "an economist"), scene.pick(HOUSES), scene.person(c), scene.person(c), scene.person(c), rate, new, step, inflation, before, scene.tenth(3.1, 9.4), scene.between(5, 7), against,
        scene.between(2, 9), scene.between(3, 9), {"cut": "lowers", "rise": "raises", "hold": "keeps"}[way], {"cut": "a cut", "rise": "an increase", "hold": "no change"}[way], scene.deal("central bank worry", _WORRIES), "" if way == "cut" else None, "" if way == "rise" else None, "" if way == "hold" else None,
        "" if surprise else None, None if surprise else "", scene.money(30, 210, c.currency),
    )  # fmt: skip


_QUEUE = (
    say("{cut}{debtor.name}, who is paying off a flat in {city.name}, [does the sum on an envelope|follows it closely]. “[That's {monthly} a month, which is the electricity|I'd given up looking at the letters from the bank],” {debtor.he} said.", "{rise}{debtor.name}, who is paying off a flat in {city.name}, [does the sum on an envelope|follows it closely]. “[Another {monthly} a month, and the car will have to do|We put off the kitchen, and now we put off the tiles],” {debtor.he} said.", "{hold}“[I'd hoped for {monthly} a month less and I get a speech|No news costs me the same as last month],” said {debtor.name}, who is paying off a flat in {city.name}.",
        "{saver.name}, a pensioner in {city.name}, [sees it the other way round|thinks of the savings book]. “[My savings have been asleep for {years} years|What they call stimulus I call my pension],” {saver.he} said."),
    say("{firm.name}, who owns a [joinery|print shop|small hotel|haulage firm] in {city.name}, [has an investment in the drawer|was about to sign for a loan]. “[A quarter of a point doesn't buy a machine, customers do|I watch orders, and then I watch the bank|My banker rings more often when rates move, that's the main effect],” {firm.he} said.",
        "In {city.name}, {firm.name}, an estate agent, [expects more viewings|has empty afternoons]. “[People don't ask about the view any more, they ask about the fix|Everybody is waiting for somebody to move first],” {firm.he} said."),
    say("Inflation stood at {inflation}% in the latest month, after {before}%[; the bank aims for 2%|].", "Prices rose by {inflation}% over the year, statisticians said, after {before}% the month before.", "Unemployment is {jobless}%[, little changed|]."),
)  # fmt: skip


DECISIONS = Beat(
    "interest rates",
    _decision,
    (
        Stage(
            titles=("{c.demonym} central bank: economists expect {what_now} in rates", "Rates at {rate}%: what will the {c.demonym} central bank do?", "Inflation of {inflation}% sets scene for {c.demonym} rate decision", "{governor.last} hints at {what_now} in {c.demonym} interest rates"),
            abstracts=("The policy rate stands at {rate}%. Inflation was {inflation}% in the latest month.", "{economist.name} of {house} expects {what_now}. The board worries about {doubt}."),
            leads=("Inflation in {c.name} was {inflation}% in the latest month, after {before}%, statisticians said {on}, days before the central bank decides on interest rates.", "The {c.demonym} central bank meets within days, and most economists expected {what_now} in its rate of {rate}%, a survey showed {on}.", "In a speech in {city.name} {on}, {governor.name}, governor of the {c.demonym} central bank, prepared markets for {what_now} in interest rates."),
            then=(say("“[We look at the data, and then we look out of the window|Nobody on the board has a crystal ball, I have asked|There's a time to steer and a time to keep one's hands still],” said {governor.last}."),),
            loose=(say("{economist.name} of {house} expects {what_now}. “[They have said it in every way but plainly|The door is open and somebody has put a wedge in it],” {economist.he} said.", "“[I'd be surprised by anything but {what_now}|My model says one thing and my stomach another],” said {economist.name} of {house}."), say("The board [is worried about|has named as its main concern] {doubt}.", "Minutes of the last meeting mention {doubt} {small} times."), say("{hawk.last} [warned against haste|sees no room for mistakes]. “[Inflation is a guest who comes back for the umbrella|I was young in the last crisis, and I remember it],” {hawk.he} said."), say("{minister.last} [would not be drawn|said the bank was independent]. “[I have wishes and I keep them to myself|We do budgets, they do rates],” {minister.he} said."), *_QUEUE),
            weight=0.32, covered=0.35,
        ),
        Stage(
            titles=("{cut}{c.demonym} central bank cuts interest rate to {new}%", "{rise}{c.demonym} central bank raises interest rate to {new}%", "{hold}{c.demonym} central bank holds interest rate at {new}%", "{cut}{surprise}Surprise rate cut in {c.name}: {new}%", "{rise}{surprise}Surprise rate rise in {c.name}: {new}%", "{cut}Borrowing gets cheaper in {c.name} as bank cuts to {new}%", "{rise}Borrowing gets dearer in {c.name} as bank goes to {new}%", "{hold}No change: {c.demonym} rates stay at {new}%"),
            abstracts=("The board voted by {votes} to {against}. {governor.name} points to {doubt}.", "{surprise}Markets had not expected it. Inflation is {inflation}%.", "{expected}Markets had expected it. Inflation is {inflation}%."),
            leads=("{cut}The {c.demonym} central bank cut its policy rate by {step} points to {new}% {on}.", "{rise}The {c.demonym} central bank raised its policy rate by {step} points to {new}% {on}.", "{hold}The {c.demonym} central bank left its policy rate at {new}% {on}.", "{cut}{surprise}To the surprise of markets, the {c.demonym} central bank cut interest rates {on}: the policy rate falls from {rate}% to {new}%.", "{rise}{surprise}To the surprise of markets, the {c.demonym} central bank raised interest rates {on}: the policy rate goes from {rate}% to {new}%.", "By {votes} votes to {against}, the board of the {c.demonym} central bank decided {on} on {what_now} in interest rates: the policy rate stands at {new}%."),
            then=(say("{cut}“[The worst of inflation is behind us and I'd like to say that only once|We are easing the brake; that isn't the accelerator],” said {governor.last}.", "{rise}“[We would rather be disliked than late|Inflation takes most from those who have least],” said {governor.last}.", "{hold}“[Doing nothing is also a decision, and today a long one|We wait for one more month of figures],” said {governor.last}."),),
            loose=(say("As its chief concern, the bank named {doubt}.", "In its statement, the bank [mentions|dwells on] {doubt}."), say("{hawk.last}, who voted against, [explained {hawk.his} dissent|spoke of a risk]. “[I heard good arguments and wasn't moved|Someone has to be the one who spoils the photograph],” {hawk.he} said."), say("{surprise}Bond prices moved sharply[, and bank shares with them|].", "{expected}Markets hardly moved; the decision had been priced in."), say("{economist.name} of {house} [sees it as the first of several|thinks that is it for this year]. “[One should read the last paragraph, that's where they hide it|It buys time, and time is what they lack|They've done what they said; it's rarer than you think],” {economist.he} said."), say("{minister.last} [took note of the decision|welcomed the decision]."), *_QUEUE),
            after=(2, 5), weight=0.55, covered=0.5,
        ),
        Stage(
            titles=("Minutes show split at {c.demonym} central bank over {doubt}", "{c.demonym} banks pass on rate decision, slowly", "What {new}% means for borrowers in {c.name}", "{hawk.last} warns {c.demonym} central bank over {doubt}"),
            abstracts=("The board argued for {small} hours. {hawk.name} voted against.", "Banks in {c.name} are adjusting their offers. Savers come last."),
            leads=("Minutes published {on} show how divided the {c.demonym} central bank was over {doubt} when it set its rate at {new}% {t1:on}.", "The first banks in {c.name} changed their terms {on}, after the central bank's decision {t1:on}. The policy rate stands at {new}%."),
            then=(say("“[We don't sing in unison, and we shouldn't|There's always one more number one would like to have],” {governor.last} said in {city.name}."),),
            loose=(say("“[I stand by my vote|It would have been cheaper to do it properly once],” said {hawk.last}."), say("{economist.name} of {house} [read the minutes twice|counted the adverbs]. “[Where they wrote somewhat they now write rather, and that's a quarter of a point|The tone is a step ahead of the vote],” {economist.he} said."), say("The vote was {votes} to {against}."), say("Comparison services found [{small} offers that had changed|mortgage terms that differ by half a point between banks]."), *_QUEUE),
            after=(2, 5), weight=0.28, covered=0.2, chance=0.85,
        ),
    ),
    share=1.0,
    rhythm=TRADING,
)  # fmt: skip

_DOUBTS = (
    ("a hole of {gap} in the budget", "They've spent the same money twice and voted for it both times"),
    ("a quarrel in the coalition over pensions", "Investors can live with a bad budget, and not with two"),
    ("the cost of floods in {region}", "You can't blame them for the rain, you can only price it"),
    ("a court ruling against a wealth tax", "The judges took out a wall, and it was load-bearing"),
    ("a bank that may need help", "When a bank sneezes, the state reaches for its own handkerchief"),
    (
        "a promise to cut taxes before the election",
        "It's a present with the receipt attached, and the receipt says: later",
    ),
    (
        "debts of the state railway that had been kept off the books",
        "They were in a drawer, and the drawer was in the ministry",
    ),
    ("growth that is weaker than planned", "The whole plan rests on a number that was hoped, not counted"),
    ("falling income from fuel duty", "Electric cars don't stop at the pump, and half the budget used to"),
    ("a strike of tax inspectors", "Nobody has ever thanked them, and now one can see what they did"),
    ("guarantees for a bankrupt shipyard", "A guarantee is a debt that hasn't rung the bell yet"),
    ("a dispute with {other.name} over old loans", "It's fifty years old, and interest has a good memory"),
)
_NOTES = ("AA", "AA-", "A+", "A", "A-", "BBB+", "BBB")


@dataclass(frozen=True)
class Bond:
    c: Country
    other: Country
    region: str
    doubt: str
    quip: str
    yield_: float
    rise: float
    spread: float
    sold: Money
    gap: Money
    minister: Person
    trader: Person
    analyst: Person
    house: str
    fund: Person
    mayor: Person
    agency: str
    note: str
    lower: str
    years: int
    cover: float
    small: int
    cut: str | None
    kept: str | None
    debt: int


def _bond(scene: Scene) -> Bond:
    c = scene.fresh("bonds", [one for one in scene.world.countries if one.name != "Vestria"])
    doubt, quip = scene.fresh("bond doubt", _DOUBTS, uses=2)
    at = scene.between(0, len(_NOTES) - 2)
    cut = scene.chance(0.55)
    per_head = {"£": 1.0, "€": 1.0, "$": 1.0}.get(c.currency.sign, 12.0)
    return Bond(c, scene.pick([one for one in scene.world.countries if one is not c]), scene.pick(c.land.regions), doubt, quip, scene.tenth(3.1, 7.6), scene.between(11, 46) / 100, scene.tenth(1.1, 3.6), scene.money(1.1e9 * per_head, 6e9 * per_head, c.currency), scene.money(2e9 * per_head, 2e10 * per_head, c.currency), c.minister("finance"), scene.person(None, "a bond trader"), scene.person(None, "a fixed income strategist"), scene.pick(HOUSES),
                scene.person(c, "who manages a pension fund"), scene.person(c), scene.pick(("Harbinger Ratings", "Cardinal Ratings", "Thornfield Ratings")), _NOTES[at], _NOTES[at + 1], scene.between(3, 12), scene.tenth(1.1, 1.6), scene.between(3, 9), "" if cut else None, None if cut else "", scene.between(48, 128))  # fmt: skip


BONDS = Beat(
    "government bonds",
    _bond,
    (
        Stage(
            titles=("{c.demonym} bond yields at {years}-year high on {doubt}", "{c.demonym} government bonds fall on {doubt}", "Borrowing costs rise in {c.name}: ten-year yield at {yield_}%", "Bond investors worry about {doubt} in {c.name}", "Government bonds: {c.demonym} yield jumps {rise} points"),
            abstracts=("Ten-year bonds now yield {yield_}%. Investors are worried about {doubt}.", "{minister.name} sees no reason for alarm. The market sees {doubt}."),
            leads=("The yield on ten-year {c.demonym} government bonds rose by {rise} points to {yield_}% {on}, the highest in {years} years; investors are worried about {doubt}.", "Investors sold {c.demonym} government bonds {on} because of {doubt}. The ten-year yield rose to {yield_}%."),
            then=(say("“{quip},” said {trader.last}.", "“{quip},” said {trader.last}, who has dealt in {c.demonym} debt for {years} years."),),
            loose=(say("{minister.last} [spoke of a storm in a teacup|promised a tight budget]. “[We pay our debts, and have done since my grandfather's time|The market reads headlines, and I read the accounts|Every yield goes up before it comes down],” {minister.he} said."), say("The gap to Vestrian bonds, which count as the safest, is {spread} points.", "Compared with Vestrian bonds, investors ask for {spread} points more."), say("{analyst.name} of {house} [was not alarmed|advised selling]. “[It's a reminder, not a crisis|Lenders can forgive, but they charge for it|The question is who blinks, and it's never the bond market],” {analyst.he} said."),
                   say("{fund.last} [bought|has been waiting]. “[For years I got nothing for lending to them, and now I get a wage|At {yield_}% I can pay pensions and sleep],” {fund.he} said."), say("Public debt is {debt}% of a year's output."), say("Every extra point costs the budget {gap} over [five|four] years, the finance ministry estimates.")),
            weight=0.35, covered=0.35,
        ),
        Stage(
            titles=("{c.name} sells {sold} of bonds at {yield_}%", "{c.demonym} bond auction: {sold} sold, at a price", "Test passed? {c.name} finds buyers for {sold} of debt"),
            abstracts=("Bids covered the offer {cover} times. The yield was {yield_}%.", "Investors asked for a premium because of {doubt}."),
            leads=("{c.name} sold ten-year bonds worth {sold} {on} at a yield of {yield_}%; bids covered the offer {cover} times.", "In an auction watched more closely than most, {c.name} found buyers for {sold} of bonds {on}."),
            then=(say("“[They got it away, and paid for the lift|It was no triumph and no accident|Nobody wanted to be first and then everybody was third],” said {trader.last}."),),
            loose=(say("Yields had risen {t0:on} because of {doubt}."), say("“{quip},” {trader.last} had said then."), say("{minister.last} [was relieved|spoke of a vote of confidence]. “[The order book is the only poll I read|I never doubted it, and I had a sandwich again],” {minister.he} said."), say("{fund.last} took part. “[I put in for a round sum and got half|It's our own state; if it doesn't pay, I have other worries],” {fund.he} said."), say("{analyst.name} of {house} pointed out that [foreign buyers had stayed away|domestic banks took two-thirds]."), say("By the end of the year, {c.name} has to borrow another {gap}.")),
            after=(2, 4), weight=0.3, covered=0.2,
        ),
        Stage(
            titles=("{cut}{agency} cuts rating of {c.name} to {lower}", "{kept}{agency} keeps rating of {c.name} at {note}", "{cut}{c.name} loses its {note} rating", "{kept}{c.name} escapes downgrade"),
            abstracts=("{cut}The agency cites {doubt}. {minister.name} calls the step “hard to follow”.", "{kept}The agency trusts the government to deal with {doubt}."),
            leads=("{cut}The rating agency {agency} lowered its mark for {c.name} from {note} to {lower} {on}, citing {doubt}.", "{kept}The rating agency {agency} left its mark for {c.name} at {note} {on}, although it is worried about {doubt}."),
            then=(say("{cut}“[They were wrong about us {years} years ago and they've kept the habit|A letter doesn't build a road, but it makes the road dearer],” said {minister.last}.", "{kept}“[It's a grade, not a medal, and we'll take it|The work has been seen],” said {minister.last}."),),
            loose=(say("The country's debt is {debt}% of a year's output, the agency notes."), say("Ten-year yields stood at {yield_}% {t0:on}."), say("“{quip},” said {trader.last}."), say("{analyst.name} of {house} [expects little reaction|was surprised by the timing]. “[The market had marked that paper a week ago|Agencies are historians with deadlines],” {analyst.he} said."), say("{mayor.name}, a mayor in {region}, [fears for a school|shrugged]. “[Our loan for the school hangs on that letter|We borrow for a bridge, and they borrow for everything],” {mayor.he} said."), say("{cut}Some funds must sell bonds rated below {note}.", "{kept}The outlook [remains negative|was set to stable].")),
            after=(2, 5), weight=0.42, covered=0.3, chance=0.85,
        ),
    ),
    share=0.9,
    rhythm=TRADING,
)  # fmt: skip
