# ruff: noqa: E501 (prose reads better unbroken)
"""How the business desk covers companies: results, mergers, chiefs, sites."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.grammar import plural
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Company, Money


@dataclass(frozen=True)
class Results:
    co: Company
    thing: str
    sales: Money
    profit: Money
    sales_pct: int
    profit_pct: int
    up: str | None
    down: str | None
    quarter: str
    analyst: Person
    house: str
    outlook: str
    outlook_now: str
    dividend: str
    cause_up: str
    cause_down: str
    share_pct: float
    hires: int
    worker: Person


_HOUSES = (
    "Carrow & Vane",
    "Lindqvist Partners",
    "Oriel Research",
    "Bankhaus Tillmann",
    "Marram Capital",
    "Cordwain Securities",
)


_KEPT = ("kept its forecast for the year", "keeps forecast")
_RAISED = ("raised its forecast for the year", "raises forecast")
_CUT = ("cut its forecast for the year", "cuts forecast")
_NONE = ("said it could no longer give a forecast", "drops forecast")
_QUARTERS = ("fourth", "first", "second", "third")


def _results(scene: Scene) -> Results:
    co = scene.fresh("results", scene.world.companies)
    up = scene.chance(0.6)
    sales = co.revenue.times(scene.rng.uniform(0.22, 0.28))
    thing = scene.pick(co.sector.things)
    return Results(
        co, thing, sales, sales.times(scene.rng.uniform(0.03, 0.12)), scene.between(2, 9), scene.between(6, 31),
        "" if up else None, None if up else "", _QUARTERS[(scene.start.month - 1) // 3], scene.person(co.country, "an analyst"),
        scene.pick(_HOUSES),
        *scene.pick((_KEPT, _RAISED) if up else (_KEPT, _CUT, _NONE)),
        scene.pick(("The dividend stays as it was.", "Shareholders will get a slightly higher dividend.") if up else
                   ("The dividend stays as it was.", "There will be no interim dividend.")),
        scene.pick((f"strong demand for {thing}", f"a successful line of {thing}", f"lower {co.sector.input}", "new customers abroad")),
        scene.pick((f"higher {co.sector.input}", f"weak demand for {thing}", "a costly computer failure", "a strong currency",
                    "discounts that ate into margins")), scene.tenth(1.1, 7.9), scene.near(40, 400), scene.person(co.country),
    )  # fmt: skip


RESULTS = Beat(
    "company results",
    _results,
    (
        Stage(
            titles=(
                "{up}{co.name} profit [rises|climbs|jumps] {profit_pct}% on {cause_up}",
                "{down}{co.name} profit [falls|slides|drops] {profit_pct}% on {cause_down}",
                "{up}{co.noun:cap} {co.name} [beats expectations|does better than expected] with {profit:adj} profit",
                "{down}{co.noun:cap} {co.name} [disappoints|misses expectations] as earnings drop {profit_pct}%",
                "{co.name} {outlook_now} after {quarter}-quarter sales of {sales}",
                "{up}{cause_up:cap} behind earnings rise at {co.name}",
                "{down}Shares in {co.name} fall {share_pct}% after [weak|poor] results",
            ),
            abstracts=(
                "{up}The {co.noun} earned {profit} in the {quarter} quarter, {profit_pct}% more than a year ago. It {outlook}.",
                "{down}The {co.noun} earned {profit} in the {quarter} quarter, {profit_pct}% less than a year ago. It {outlook}.",
                "{up}Sales at the {co.city.name} company rose {sales_pct}% to {sales}, helped by {cause_up}.",
                "{down}The {co.city.name} company blames {cause_down}. Sales [fell|slipped] {sales_pct}% to {sales}.",
                "{co.chief.name}, chief executive of the {co.noun}, calls the quarter “instructive”.",
            ),
            leads=(
                "{up}{co.name}, the {co.country.demonym} {co.noun}, [reported|posted] a {profit_pct}% rise in {quarter}-quarter profit {on}, helped by {cause_up}.",
                "{down}{co.name}, the {co.country.demonym} {co.noun}, [reported|posted] a {profit_pct}% fall in {quarter}-quarter profit {on} and blamed {cause_down}.",
                "{up}{cause_up:cap} helped {co.name} to a profit of {profit} in the {quarter} quarter, the {co.city.name} {co.noun} said {on}, {profit_pct}% more than a year earlier.",
                "{down}Profit at {co.name} fell by {profit_pct}% to {profit} in the {quarter} quarter, the {co.noun} said {on}, citing {cause_down}.",
            ),
            then=(
                say("{up}Sales rose {sales_pct}% to {sales}. {dividend}", "{down}Sales fell {sales_pct}% to {sales}. {dividend}",
                    "{up}[On|From] sales of {sales}, [up {sales_pct}% on the year|{sales_pct}% more than a year ago], the [company|{co.noun}] [earned|made] {profit}.",
                    "{down}[On|From] sales of {sales}, [down {sales_pct}% on the year|{sales_pct}% less than a year ago], the [company|{co.noun}] [earned|made] {profit}."),
                say("{up}“[We sold more {thing} at better prices, which is the whole trick|The order book is the fullest I have seen|I am pleased and I am not relaxed],” said {co.chief.name}, the chief executive.",
                    "{up}{co.chief.name}, the chief executive, said the quarter showed “[what happens when you leave good people alone|that three years of dull work were worth it]”.",
                    "{down}“[It was a poor quarter and I will not dress it up|We saw it coming and not how fast|People still want {thing}; they want them cheaper],” said {co.chief.name}, the chief executive.",
                    "{down}{co.chief.name}, the chief executive, [told analysts the worst was over|asked shareholders for patience]. “[Costs are a choice and we will make it|Two of our five markets did all the damage],” {co.chief.he} said."),
            ),
            loose=(
                say("{analyst.name} of {house} said the numbers were “{up}[better than the story that came with them|hard to argue with|the sort that ends meetings early|a relief more than a surprise]”.",
                    "{analyst.name}, an analyst at {house}, called it “{down}[a quarter to forget, if the next one allows it|worse than the headline|the bottom, or the stair above it]”.", "“{down}[I had pencilled in less and they came in under it|Somebody will ask about the dividend, and it might be me],” said {analyst.name}, who follows the company for {house}.", "“{up}[They promised little and kept more|I have raised my estimate and sharpened my pencil],” said {analyst.name}, who follows the company for {house}."),
                say("The company {outlook}.", "Looking ahead, {co.name} {outlook}[ and promised more detail next month|].", "For the months ahead, the {co.noun} {outlook}; [nobody on the call asked why|analysts had expected as much|some had hoped for more].", "With the figures, {co.name} {outlook}[, in a single sentence|, on the last page]."),
                say("{down}Shares fell by {share_pct}%.", "{up}Shares rose by {share_pct}%."),
                say("{co.finance.name}, the finance chief, said {co.sector.input} would [remain the main worry|be watched week by week] in the coming months.",
                    "“[The sum I look at every morning is|What keeps me awake is] {co.sector.input},” said {co.finance.name}, the finance chief.",
                    "{down}{co.finance.last} [put costs down to|blamed part of the bill on] {co.sector.input}[, which nobody in the trade can plan for|].",
                    "Debt was [lower than a year ago|little changed], said {co.finance.name}, who looks after the books. “[We owe less and sleep more|We pay what we owe],” {co.finance.he} added.",),
                say("{co.name}, based in {co.city.name}, employs {co.staff} people and had sales of {co.revenue} last year."),
                say("Hiring goes on[, the company said|]: it is looking for {hires} people, most of them for its largest {co.sector.site}.",
                    "{worker.name}, a {co.sector.worker} [who sits on the works council|and union member], asked for “[patience with the people who do the work|a bonus that means something|fewer targets and more colleagues]”.",
                    "“[We notice the results when the overtime changes|I read it on the noticeboard like everybody else|Good or bad, the shift starts at six],” said {worker.name}, a {co.sector.worker} in {co.city.name}.",
                    "Headcount, at {co.staff}, is to [stay about the same|grow slightly|shrink by not replacing those who leave].",
                    "At the largest {co.sector.site}, [a third shift is being considered|some machines are due for renewal], the company said.",
                    "Investment in new {co.sector.site:plural} will [stay at last year's level|be spread over three years instead of two], {co.name} said."),
            ),
            weight=0.35,
            covered=0.15,
        ),
    ),
    share=1.2,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Merger:
    buyer: Company
    target: Company
    price: Money
    better: Money
    premium: int
    saving: Money
    jobs: int
    votes: int
    cleared: bool
    analyst: Person
    holder: Person
    official: Person
    house: str
    remedy: str


def _merger(scene: Scene) -> Merger:
    target = scene.fresh("merger", scene.world.companies)
    rivals = [one for one in scene.world.companies if one.sector is target.sector and one is not target]
    buyer = scene.fresh("merger", rivals)
    price = Money(target.revenue.times(scene.rng.uniform(0.5, 1.4)).amount, target.currency)
    return Merger(
        buyer, target, price, price.times(scene.rng.uniform(1.07, 1.18)), scene.between(18, 44), price.times(scene.rng.uniform(0.02, 0.05)),
        scene.near(200, 2_400), scene.between(71, 97), scene.chance(0.75), scene.person(None, "an analyst"), scene.person(None),
        scene.person(target.country, "who heads the competition office"), scene.pick(_HOUSES),
        scene.pick((f"sell two {plural(target.sector.site)}", "keep both brands for five years", "open its supply contracts to rivals")),
    )  # fmt: skip


MERGER = Beat(
    "mergers",
    _merger,
    (
        Stage(
            titles=(
                "{buyer.name} [offers|bids] {price} for rival {target.noun} {target.name}",
                "{buyer.noun:cap} {buyer.name} launches {price:adj} takeover of {target.name}",
                "{target.name} weighs {price:adj} takeover bid from {buyer.name}",
                "Merger talk: {buyer.name} wants to buy {target.name} for {price}",
            ),
            abstracts=(
                "The offer is {premium}% above the last share price. {target.name} says it will [look at it|respond in due course].",
                "A union of the two would save {saving} a year, {buyer.name} says. Unions fear for {jobs} jobs.",
                "{buyer.chief.name} has made {buyer.chief.his} move for {target.name}, a {target.noun} from {target.city.name}.",
            ),
            leads=(
                "{buyer.name} offered {price} for its rival {target.name} {on}, {premium}% more than the market value the day before.",
                "The {buyer.country.demonym} {buyer.noun} {buyer.name} wants to buy {target.name} of {target.city.name} for {price}, it said {on}.",
                "{target.name} woke {on} to an offer: {price}, from {buyer.name}, a {buyer.noun} that it has [competed with|fought] for decades.",
            ),
            then=(
                say("“[Together we will sell more and duplicate less|The two maps fit like a zip|I have admired this company from across the street for years],” said {buyer.chief.name}, chief executive of {buyer.name}.",),
                say("{target.chair.name}, who chairs {target.name}, said the board would “[read every page|treat it as it treats any letter]” and [asked|told] shareholders to do nothing for now."),
            ),
            loose=(
                say("{buyer.name} expects to save {saving} a year, mostly in purchasing[ and head offices|]."),
                say("A union said up to {jobs} jobs could go[, and asked for guarantees|]. {buyer.name} called the number “[guesswork|premature]”."),
                say("{analyst.name} of {house} thought the price “[a first word|low by a tenth]”.", "“[At this premium somebody will want more|It makes sense, which does not mean it will happen],” said {analyst.name} of {house}."),
                say("{target.name} employs {target.staff} people and had sales of {target.revenue} last year; {buyer.name} has {buyer.staff} employees."),
                say("{holder.name}, whose fund owns shares in {target.name}, said {holder.he} would [not sell at that price|wait for a better one]."),
            ),
            weight=0.6,
            covered=0.4,
        ),
        Stage(
            titles=(
                "{target.name} rejects {price:adj} offer from {buyer.name}",
                "{target.name} board says {buyer.name} takeover bid “undervalues” {target.noun}",
                "{target.name} tells {buyer.name} to think again on takeover price",
            ),
            abstracts=("The board calls {price} too low. Analysts expect {buyer.name} to return.", "{target.chair.name} says {target.name} is worth more than {price}."),
            leads=("The board of {target.name} unanimously rejected the {price:adj} offer from {buyer.name} {on}.", "{target.name} turned down its rival {buyer.name} {on}, saying that {price} did not reflect what the {target.noun} is worth."),
            then=(say("“[We know this company better than its suitor does|The offer is opportunistic and, I am afraid, cheap|There is a price at which one listens, and this is not it],” said {target.chair.name}, the chair."),),
            loose=(say("{buyer.name} made the bid {t0:on}, {premium}% above the share price."), say("{buyer.chief.name}, who runs {buyer.name}, said {buyer.chief.he} was “[disappointed and patient|still at the table]”."),
                   say("{analyst.name} of {house} expects a new bid of around {better}."), say("{holder.name}, a shareholder, welcomed the decision. “[One does not sell the house to the first bell|They can do better],” {holder.he} said."),
                   say("Workers at {target.city.name} [were relieved|stopped for ten minutes to hear the news]. Their union had warned of the loss of {jobs} jobs.")),
            after=(1, 3), weight=0.45, covered=0.15,
        ),
        Stage(
            titles=("{target.name} accepts sweetened {better:adj} bid from {buyer.name}", "{buyer.name} to buy {target.name} after raising takeover offer to {better}", "{buyer.name} and {target.name} agree {better:adj} merger"),
            abstracts=("The price rose from {price}. Shareholders and the competition office must agree.", "{buyer.name} raises its bid and {target.name} says yes."),
            leads=("{target.name} agreed {on} to be bought by {buyer.name} for {better}, up from the {price} that it turned down {t1:on}.", "After [days of|discreet] talks, {buyer.name} raised its offer for {target.name} to {better} {on}, and the board of the {target.noun} recommended it."),
            then=(say("“[It is a fair price and a good home|We said there was a number|I slept for the first time this week],” said {target.chair.name}, who chairs {target.name}."),),
            loose=(say("The companies promise savings of {saving} a year and [no compulsory cuts before next year|a guarantee for the {target.city.name} headquarters]."), say("{official.name}, who heads the competition office, said it would look at the deal “[without haste|as it would at any other]”."),
                   say("{holder.name}, an investor who had held out, said {holder.he} would accept."), say("The union, which fears for {jobs} jobs, [asked for a meeting|was not convinced]. “[Synergy is a word for somebody's desk|We have read promises before],” one official said."),
                   say("{buyer.chief.name}, the chief executive of {buyer.name}, will lead the combined group.")),
            after=(2, 4), weight=0.6, covered=0.35,
        ),
        Stage(
            titles=("Competition office [clears|approves] {buyer.name} takeover of {target.name}", "{buyer.name} may buy {target.name} if it agrees to {remedy}"),
            abstracts=("{official.name} sets one condition: the buyer must {remedy}.",),
            leads=("The competition office approved the {better:adj} takeover of {target.name} by {buyer.name} {on}, on condition that the buyer agree to {remedy}.",),
            then=(say("“[Two strong rivals are better than one, and three are left|With that condition customers keep a choice],” said {official.name}, who heads the office."),),
            loose=(say("{buyer.chief.name}, chief executive of {buyer.name}, said the company “[could live with it|had expected worse]”."), say("The two companies agreed on the deal {t2:on}, after a first offer of {price} had been rejected."),
                   say("The union said {jobs} jobs remained at risk."), say("{analyst.name} of {house} called the condition “[mild|sensible]”."), say("The purchase should be complete within three months.")),
            after=(3, 5), weight=0.4, when=lambda f: f.cleared,
        ),
        Stage(
            titles=("Competition office [blocks|forbids] {buyer.name} takeover of {target.name}", "{better:adj} {buyer.name} deal for {target.name} blocked"),
            abstracts=("{official.name} says the merger would leave too few rivals. {buyer.name} may appeal.",),
            leads=("The competition office forbade {buyer.name} {on} from buying {target.name} for {better}, saying that prices would rise.",),
            then=(say("“[We looked for a remedy and did not find one|Customers would have paid for this wedding],” said {official.name}, who heads the office."),),
            loose=(say("{buyer.chief.name}, chief executive of {buyer.name}, called the ruling “[a mistake with footnotes|hard to understand]” and [may|could] go to court."), say("The two had agreed on the deal {t2:on}."),
                   say("{target.chair.name}, who chairs {target.name}, said the company had “[a future either way|work to get back to]”."), say("Workers' representatives [cheered|were relieved]: they had feared for {jobs} jobs."), say("{analyst.name} of {house} said {target.name} would now “[need a plan of its own|be someone else's dinner]”.")),
            after=(0, 0), weight=0.55, covered=0.25, when=lambda f: not f.cleared,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Handover:
    co: Company
    heir: Person
    heir_from: str
    years: int
    reason: str
    analyst: Person
    house: str
    worker: Person
    task: str


def _handover(scene: Scene) -> Handover:
    co = scene.fresh("handover", scene.world.companies)
    return Handover(
        co, scene.person(co.country), scene.pick(("who runs its foreign business", "a former rival", "its head of operations", "who came from a consultancy", "a relative of the founder",
                                                  "an engineer who joined as an apprentice")),
        scene.between(3, 14), scene.pick(("to spend time with a sick parent", "after a disagreement about strategy", "at the usual age", "to lead a university", "after a difficult year")),
        scene.person(co.country, "an analyst"), scene.pick(_HOUSES), scene.person(co.country),
        scene.pick((f"bring down {co.sector.input}", "win back younger customers", "open up abroad", "mend relations with the unions", "make a slow company quicker")),
    )  # fmt: skip


HANDOVER = Beat(
    "executives",
    _handover,
    (
        Stage(
            titles=("{co.name} chief {co.chief.last} to step down after {years} years", "{heir.last} to succeed {co.chief.last} as boss of {co.noun} {co.name}", "{co.name} names {heir.last} chief executive",
                    "New boss for {co.noun} {co.name} as {co.chief.last} leaves"),
            abstracts=("{co.chief.name} leaves {reason}. {heir.name}, {heir_from}, takes over.", "{heir.name} becomes chief executive of the {co.city.name} {co.noun}. The first task: {task}.", "After {years} years, {co.chief.name} hands the {co.noun} to {heir.name}."),
            leads=("{co.chief.name}, who has led {co.name} for {years} years, will step down {reason}, the {co.noun} said {on}. {heir.name}, {heir_from}, will succeed {co.chief.him}.",
                   "{co.name} named {heir.name}, {heir_from}, as its next chief executive {on}.", "The {co.country.demonym} {co.noun} {co.name} is changing its chief executive: {co.chief.name} goes {reason}, and {heir.name} comes."),
            then=(say("“[I leave it in better order than my office|It is time for somebody with more hair and fewer habits|You know it is time when you finish the questions for people],” {co.chief.last} said.", "“{co.chief.name} [taught half of this company its trade|knew every {co.sector.site} by its smell|said no when it was expensive to say no],” said {co.chair.name}, the chair. “[We could not have asked for a better handover|It is a good moment, so we take it|The next chapter needs another pen].”"),
                  say("{heir.last} said {heir.his} first task was to {task}. “[I will listen for six weeks and then I will be annoying|No grand plan, only a long list|I start on the floor, not with slides],” {heir.he} said.", "To {task} comes first, said {heir.last}. “[After that, I will ask what I have forgotten|I have a notebook, and it is empty, and that is the point],” {heir.he} added.", "“[Nobody wants a speech from somebody who has been here for an hour|I'll know the names by Friday and the numbers by the summer],” said {heir.last}, who is to {task}.")),
            loose=(say("{analyst.name} of {house} called the choice “[safe|a surprise, and a good one|braver than it looks]”."), say("{co.name} employs {co.staff} people and had sales of {co.revenue} last year."),
                   say("{worker.name}, a {co.sector.worker} who sits on the works council, hoped for “[fewer visitors and more spare parts|somebody who says good morning]”.",
                    "On the shop floor, {worker.name}, a {co.sector.worker}, [had one question|shrugged]. “[Will the overtime stay?|They change up there, the clock down here does not],” {worker.he} said.",
                    "The works council asked for [an early meeting|a word on job security][; {worker.name}, its spokesperson, said it had met three chief executives in ten years|].",), say("{co.chair.name}, the chair, stays on. {heir.last} starts [next month|at the turn of the quarter]."),
                   say("Shares in the company [barely moved|rose slightly] on the news.", "On the stock exchange the change [was taken calmly|made no great stir].", "Investors, who had [guessed as much|expected a change this year], hardly reacted."), say("Under {co.chief.last}, sales had [grown by half|hardly changed] while {co.sector.input} [doubled|went up and down].")),
            weight=0.35, covered=0.2,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip
