# ruff: noqa: E501 (prose reads better unbroken)
"""How the markets desk covers shares: the day on the exchanges, flotations, and those who bet on a fall."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random

from backend.news.sources.newsroom.beat import Beat, Scene, SpentError, Stage, say
from backend.news.sources.newsroom.grammar import plural
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import OFFICE, Rhythm
from backend.news.sources.newsroom.world import Company, Country, Money, World

HOUSES = ("Carrow & Vane", "Lindqvist Partners", "Oriel Research", "Bankhaus Tillmann", "Marram Capital", "Cordwain Securities", "Harrow & Pell", "Nordlys Asset Management", "Banco Serrano", "Tideway Brokers")  # fmt: skip
_DAYS_KEPT = 45

TRADING = Rhythm(OFFICE.weekday, (0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
"""Hardly anything happens on days when the exchanges are closed."""


@dataclass(frozen=True)
class Tape:
    """A country's share index with its closing level on each trading day."""

    name: str
    closes: dict[date, int]

    def before(self, day: date) -> date:
        """The trading day before `day`."""
        return max(one for one in self.closes if one < day)


def tapes(world: World) -> dict[str, Tape]:
    """Index levels for the weeks up to the world's now, so that all reports of a day agree."""
    rng = Random(f"{world.seed}:tapes")
    first = world.now.date() - timedelta(days=_DAYS_KEPT)
    days = [first + timedelta(days=n) for n in range(_DAYS_KEPT + 1)]
    mood = {day: rng.gauss(0, 0.5) for day in days}
    found = {}
    for country in world.countries:
        level = rng.uniform(900, 24_000)
        closes = {}
        for day in days:
            if day.weekday() < 5:
                level *= 1 + (mood[day] + rng.gauss(0.03, 0.75)) / 100
                closes[day] = round(level)
        found[country.name] = Tape(f"the {country.capital} {rng.choice((20, 30, 40, 50, 100, 200))}", closes)
    return found


_UP = (
    "hopes of lower interest rates", "a truce in the quarrel over tariffs", "better results than feared", "cheaper oil", "strong orders for industry", "a wave of takeovers", "a calm auction of government bonds",
    "figures that showed inflation slowing", "buying by pension funds", "relief over the budget", "a rally in banks", "signs of life in housebuilding", "record exports", "a good start to the shopping season",
)  # fmt: skip
_DOWN = (
    "fears of higher interest rates", "new tariffs", "a string of profit warnings", "dearer oil", "weak orders for industry", "doubts about spending on artificial intelligence", "a failed bond auction", "figures that showed inflation rising again",
    "selling by foreign funds", "worries about the budget", "losses at two banks", "a slump in car sales", "tension at sea on a trade route", "an unexpected rise in unemployment",
)  # fmt: skip


@dataclass(frozen=True)
class Session:
    c: Country
    index: str
    level: int
    points: int
    pct: float
    up: str | None
    down: str | None
    flat: str | None
    reason: str
    winner: Company
    loser: Company
    third: Company
    won: float
    lost: float
    moved: float
    why_won: str
    why_lost: str
    trader: Person
    strategist: Person
    house: str
    volume: int
    best_level: int | None
    worst_level: int | None
    week: float | None
    week_up: str | None
    week_down: str | None
    abroad: Country
    abroad_index: str
    abroad_pct: float
    abroad_way: str
    times: tuple[datetime, ...]


def _session(scene: Scene) -> Session:
    now = scene.world.now
    found = scene.world.kept("share indices", lambda: tapes(scene.world))
    day = min(scene.start, now - timedelta(hours=2))
    if day.hour < 17:
        day -= timedelta(days=1)
    while day.weekday() >= 5:
        day -= timedelta(days=1)
    for _ in range(8):
        c = scene.country()
        with suppress(SpentError):
            scene.once("session", (c.name, day.date()))
            break
    else:
        days = [one for one in found[c.name].closes if now.date() - timedelta(days=13) <= one < now.date()]
        name, told = scene.fresh("session", [(one.name, day) for one in scene.world.countries for day in days])
        c = next(one for one in scene.world.countries if one.name == name)
        day = datetime.combine(told, time(17), UTC)
    tape, today = found[c.name], day.date()
    level, last = tape.closes[today], tape.closes[tape.before(today)]
    pct = round(abs(level - last) / last * 100, 1)
    calm = pct < 0.2
    up, down = level > last and not calm, level < last and not calm
    month = [close for one, close in tape.closes.items() if one < today]
    listed = [one for one in scene.world.companies if one.country is c]
    winner, loser, third = scene.sample(listed, 3) if len(listed) >= 3 else scene.sample(scene.world.companies, 3)
    friday = max((one for one in tape.closes if one < today and one.weekday() == 4), default=today)
    week = round((level / tape.closes[friday] - 1) * 100, 1) if today.weekday() == 4 else 0.0
    abroad = scene.pick([one for one in scene.world.countries if one is not c])
    other = found[abroad.name]
    other_pct = round((other.closes[today] / other.closes[other.before(today)] - 1) * 100, 1)
    at = datetime.combine(today, time(scene.between(17, 19), scene.between(0, 59), scene.between(0, 59)), UTC)
    return Session(
        c, tape.name, level, abs(level - last), pct, "" if up else None, "" if down else None, None if up or down else "", scene.pick(_DOWN if level < last else _UP), winner, loser, third, scene.tenth(2.1, 9.8), scene.tenth(2.1, 11.4), scene.tenth(0.6, 4.4),
        scene.pick(("after a broker raised its price target", "on talk of a bid", "after winning a large order", "after raising its dividend", "on news of a share buyback", "after naming a new finance chief")),
        scene.pick(("after a profit warning", "after a large shareholder sold", "on a broker's downgrade", "after a recall", "as an order was cancelled", "after weak figures from a rival")),
        scene.person(c), scene.person(c, "a strategist"), scene.pick(HOUSES), scene.between(6, 38), level if level > max(month) else None, level if level < min(month) else None,
        abs(week) if week else None, "" if week > 0 else None, "" if week < 0 else None, abroad, other.name, abs(other_pct), "higher" if other_pct >= 0 else "lower", (at,),
    )  # fmt: skip


SESSION = Beat(
    "stock markets",
    _session,
    (
        Stage(
            titles=("{up}{c.demonym} shares [rise|climb|gain] {pct}% on {reason}", "{down}{c.demonym} shares [fall|slide|slip] {pct}% on {reason}", "{flat}{c.demonym} shares little changed despite {reason}", "{up}Stocks: {index} up {pct}% as {winner.name} jumps", "{down}Stocks: {index} down {pct}% as {loser.name} tumbles",
                    "{flat}Stocks tread water in {c.capital}; {winner.name} gains {won}%", "{up}{index:cap} closes at {level}, lifted by {reason}", "{down}{index:cap} ends at {level} amid {reason}", "{c.capital} stock market: {winner.name} gains, {loser.name} falls", "{up}{reason:cap}: {c.demonym} stocks end day {pct}% higher", "{down}{reason:cap}: {c.demonym} stocks lose {pct}%"),
            abstracts=("{up}{index:cap} closed {pct}% higher at {level}. {winner.name} rose {won}%, {loser.name} fell {lost}%.", "{down}{index:cap} closed {pct}% lower at {level}. {winner.name} rose {won}%, {loser.name} fell {lost}%.", "{up}{reason:cap} lifted the market by {points} points, or {pct}%. {winner.name} led the gains.", "{down}{reason:cap} cost the market {points} points, or {pct}%. {loser.name} was the biggest loser.", "{flat}The index moved by {points} points. {winner.name} stood out."),
            leads=("{up}{c.demonym} shares [rose|gained] {on} on {reason}; {index} closed {pct}% higher at {level} points.", "{down}{c.demonym} shares [fell|lost ground] {on} on {reason}; {index} closed {pct}% lower at {level} points.", "{flat}{c.demonym} shares ended [almost where they began|little changed] {on}: {index} stood at {level} points in the end, {reason} notwithstanding.", "{up}{reason:cap} [lifted|pushed up] {index} by {points} points to {level} {on}.", "{down}{reason:cap} [dragged|pulled] {index} down by {points} points to {level} {on}.",
                   "{winner.name} and {loser.name} told the story of the day in {c.capital} {on}: one rose by {won}%, the other fell by {lost}%, and {index} closed at {level}.", "{up}Investors in {c.capital} [bought|were in a buying mood] {on}. {index:cap} gained {pct}%, mainly on {reason}.", "{down}Investors in {c.capital} [sold|took fright] {on}. {index:cap} lost {pct}%, mainly on {reason}."),
            then=(say("{winner.name}, the {winner.noun}, rose {won}% {why_won}. {loser.name} lost {lost}% {why_lost}.", "[Among|Of] the large companies, {winner.name} [did best|led], up {won}% {why_won}; {loser.name} was last, down {lost}% {why_lost}.", "{loser.name} fell by {lost}% {why_lost}. {winner.name}, by contrast, [added|put on] {won}% {why_won}.", "Shares in {winner.name} [rose|went up] by {won}% {why_won}[, and those of|; those of] {loser.name} [fell|dropped] by {lost}% {why_lost}."),),
            loose=(say("{up}“[Nobody wants to be the one who missed it|It's a rally that people don't trust and still buy|There is money at the side of the road, and it's getting impatient|I'd call it relief, and relief has a short shelf life|It takes two such days before I believe one|Someone large was short and isn't any more],” said {strategist.name} of {house}.", "{down}“[Everyone wanted to leave by the same door|It's profit-taking with a reason attached|We've had a long walk without a stone in the shoe, and here it is|Selling begets selling until lunch, and then one looks at the prices|I wouldn't frame today's chart, nor would I burn it|It went down in a straight line, which is rare and rather honest],” said {strategist.name} of {house}.", "{flat}“[A day for tidying one's desk|The market is waiting, and it doesn't know for what],” said {strategist.name} of {house}.",
                       "{strategist.name} of {house} [advised clients to|told clients to] [hold steady|keep some cash|look at smaller companies]. “[{c.demonym} shares aren't dear, they are unloved|I look at {reason} and then at the calendar|One day is noise, even a loud one|Earnings decide in the end, and they're a month away|I'd rather be early than clever],” {strategist.he} said."),
                   say("{up}{third.name} [rose|went up] by {moved}%.", "{down}{third.name} [fell|eased] by {moved}%.", "{third.name}, the {third.noun} from {third.city.name}, moved by {moved}% [without news|in thin trading]."),
                   say("Trading was [brisk|busy], with {volume}% more shares changing hands than usual.", "Volumes were {volume}% [below|under] the average[ of recent weeks|]."),
                   say("At {best_level} points, the index closed at its highest level in [more than a month|weeks].", "At {worst_level} points, [the index|{index}] had not been so low for [more than a month|weeks]."),
                   say("{week_up}Over the week, the index gained {week}%.", "{week_up}[It was a good week, with|The week brought] a gain of {week}%.", "{week_down}For the week, that makes [a loss|a fall] of {week}%.", "{week_down}[Since last Friday|Within the week], {index} has lost {week}%.", "{week_down}Over five days the index is down {week}%."),
                   say("In {abroad.name}, {abroad_index} closed {abroad_pct}% {abroad_way}.", "Abroad, {abroad_index} [ended|finished] {abroad_pct}% {abroad_way}."),
                   say("{trader.name}, a trader on the floor in {c.capital}, [kept one eye on the clock|ate lunch at the desk]. “[The phone rang all morning and nobody wanted advice|After three it was like a library|I've learned not to have an opinion before the closing bell|The young ones were pale, and the old ones did the crossword|I traded more before breakfast than all of last week|Two calls from clients, both to ask whether I was still there],” {trader.he} said.", "“[There were more orders than sense|You could hear the air conditioning by four|I got out at the top, by mistake|We had a fire drill at noon, and prices stood still for the first time|I've seen louder funerals|Half of it was one fund with a big foot],” said {trader.name}, a trader.")),
            weight=0.3, covered=0.12,
        ),
    ),
    share=1.2,
)  # fmt: skip


@dataclass(frozen=True)
class Float:
    co: Company
    share: str
    low: Money
    high: Money
    price: Money
    close: Money
    pct: float
    worth: Money
    stake: int
    raised: Money
    times_wanted: int
    buyer: Person
    analyst: Person
    house: str
    owner: str
    purpose: str
    risk: str
    up: str | None
    down: str | None
    pulled: str | None
    listed: str | None


def _float(scene: Scene) -> Float:
    co = scene.fresh("flotation", scene.world.companies)
    low = scene.between(8, 40)
    high = low + scene.between(2, 6)
    goes = scene.chance(0.75)
    up = scene.chance(0.6)
    price = scene.between(low, high)
    pct = scene.tenth(2.2, 24.0)
    close = price * (1 + pct / 100 * (1 if up else -1))
    worth = co.revenue.times(scene.rng.uniform(0.6, 1.8))
    stake = scene.between(15, 45)
    cur = co.currency
    return Float(
        co, cur.unit, Money(float(low), cur), Money(float(high), cur), Money(float(price), cur), Money(round(close, 2), cur), pct, worth, stake, worth.times(stake / 100), scene.between(3, 9), scene.person(co.country), scene.person(None, "an analyst"), scene.pick(HOUSES),
        scene.pick(("the founding family", "a private equity fund", "the state", "a foundation", "its former parent company", "two brothers who do not speak")), scene.pick(("pay off debt", f"build new {plural(co.sector.site)}", "expand abroad", "buy a rival", "let old shareholders leave")),
        scene.pick((co.sector.input, "its dependence on three large customers", "a lawsuit over patents", "the age of its founder", "currency swings")), "" if up else None, None if up else "", None if goes else "", "" if goes else None,
    )  # fmt: skip


FLOTATION = Beat(
    "flotations",
    _float,
    (
        Stage(
            titles=("{co.name} plans stock market flotation worth {worth}", "{co.noun:cap} {co.name} to go public", "Flotation of {co.name} could raise {raised}", "{co.name} sets price range for shares at {low} to {high}"),
            abstracts=("The {co.noun} offers {stake}% of its shares at {low} to {high}. The money is to {purpose}.", "{owner:cap} will sell {stake}% of {co.name}. It could be worth {worth}.", "With the flotation, the {co.city.name} company wants to {purpose}."),
            leads=("{co.name}, a {co.country.demonym} {co.noun}, will float on the {co.country.capital} stock exchange, it said {on}; the shares are offered at {low} to {high} each.", "{owner:cap} will take {co.name} public. The {co.noun} from {co.city.name} set a price range of {low} to {high} {on}, which values it at up to {worth}.", "A stake of {stake}% in {co.name} is coming to the stock market, the {co.noun} said {on}; as a whole, it would be worth up to {worth}."),
            then=(say("“[We've been private for long enough to know what we give up|It's time that customers could own a piece|People ask why now; because we're ready, for once|I've promised my board to stop saying adventure|Our books have been open to the bank for years, so what's a few thousand more readers|We need {raised} and can't find it under the cushions|A listed company gets up earlier, I'm told],” said {co.chief.name}, the chief executive."),),
            loose=(say("The proceeds, up to {raised}, are to help it {purpose}.", "{co.name} wants to {purpose} with the proceeds."), say("Among the risks, the prospectus names {co.sector.input}.", "On page {stake}, the prospectus lists {risk} among the risks.", "The prospectus warns of {risk}[, in small print|]."), say("{analyst.name} of {house} thought the range “[ambitious|fair, with a bow on top|a little full]”.", "“[At the lower end I'd buy, and at the upper end I'd wait|Good company, nervous market|They are selling after a good year, as one does],” said {analyst.name} of {house}."),
                   say("{co.name} employs {co.staff} people and had sales of {co.revenue} last year."), say("{owner:cap} will keep the majority[ for at least a year|].", "After the flotation, {owner} will still hold most of {co.name}.", "[No more than {stake}%|A stake of {stake}% and no more] will be sold; the rest stays with {owner}."), say("{buyer.name}, a pensioner in {co.city.name} who has [invested|bought shares] since {buyer.his} youth, [is tempted|has read every page]. “[I know their {co.sector.site}, it is clean|I buy what I can see from the tram|I'm in for a hundred, for my grandson],” {buyer.he} said."), say("[For {times_wanted} weeks|Over the next {times_wanted} weeks] {co.finance.name}, the finance chief, will [travel|go from fund to fund] to [meet|court] investors.")),
            weight=0.4, covered=0.25,
        ),
        Stage(
            titles=("{up}{co.name} shares jump {pct}% on stock market debut", "{down}{co.name} shares fall {pct}% on first day of trading", "{up}Strong stock market debut for {co.noun} {co.name}", "{down}{co.name} flotation flops: shares down {pct}%"),
            abstracts=("The issue price was {price}, the first close {close}.", "{up}The shares had been {times_wanted} times oversubscribed.", "{down}Investors doubt the value of {worth}.", "Sold at {price}, the shares ended the day at {close}."),
            leads=("{up}Shares in {co.name} rose {pct}% to {close} on their first day on the {co.country.capital} stock exchange {on}.", "{down}Shares in {co.name} fell {pct}% to {close} on their first day on the {co.country.capital} stock exchange {on}.", "{co.name} made its stock market debut in {co.country.capital} {on}: sold at {price}, the shares closed at {close}."),
            then=(say("{up}“[I rang the bell twice, they only wanted it once|It's a good day, and tomorrow we earn our money the slow way again],” said {co.chief.name}, who runs the company.", "{down}“[We didn't come for one day|The market has an opinion, and so have we|A first day is a first day],” said {co.chief.name}, who runs the company."),),
            loose=(say("The flotation brought in {raised}. The company wants to {purpose}."), say("{up}Demand had exceeded supply {times_wanted} times.", "{down}Banks had to [buy|support] the shares [in the afternoon|at midday]."), say("{up}{analyst.name} of {house} called the price “[generous to the buyers|a present]”.", "{down}{analyst.name} of {house} called the price “[a stretch too far|a lesson in greed]”."), say("{buyer.name}, a small investor, [looked at it on the telephone|watched from {buyer.his} kitchen]. “[I bought ten, which makes me part-owner of a door handle|My grandson asked whether we're rich now, and I said, ask tomorrow|I don't sell on the first day, that's my only rule],” {buyer.he} said."), say("The {co.noun} had announced its plans {t0:on}."), say("{owner:cap} holds the rest of the shares.")),
            after=(3, 6), weight=0.42, covered=0.25, when=lambda f: f.listed is not None,
        ),
        Stage(
            titles=("{co.name} calls off flotation", "{co.noun:cap} {co.name} pulls stock market debut at last minute", "No buyers at {low}: {co.name} cancels flotation"),
            abstracts=("Investors would not pay {low}. The {co.noun} blames the market.", "{owner:cap} will keep {co.name} for now."),
            leads=("{co.name} cancelled its flotation {on}, a day before the shares were to be priced.", "The {co.noun} {co.name} will not go public after all, it said {on}; investors had offered less than {low} a share."),
            then=(say("“[We don't sell for less than it's worth to us|A bad price is for ever, a bad week isn't],” said {co.chief.name}, the chief executive."),),
            loose=(say("The plan, announced {t0:on}, would have brought in up to {raised}."), say("{analyst.name}, who follows the company for {house}, put it down to {risk}.", "“[The story was good and the sums were tired|Everybody liked it, at two-thirds of the price],” said {analyst.name} of {house}."), say("With the money, the company had wanted to {purpose}."), say("{owner:cap} remains the owner."), say("{buyer.name}, a small investor in {co.city.name}, [shrugged|was disappointed]. “[Then I'll mend the roof|My broker says there's always another one],” {buyer.he} said."), say("A new attempt is [possible next year|not planned].")),
            after=(0, 0), weight=0.38, covered=0.15, when=lambda f: f.pulled is not None,
        ),
    ),
    share=0.6,
    rhythm=TRADING,
)  # fmt: skip

_CHARGES = (
    (
        "counts goods as sold while they stand in its own car park",
        "Drone pictures show {big} pallets under tarpaulin.",
        "They stood there because of the floods",
    ),
    (
        "has customers that share a letter box",
        "Of its ten largest customers, {small} have the same address above a hairdresser's.",
        "A business park is a modest place",
    ),
    (
        "hides debt in companies named after the chairman's horses",
        "The horses win more often than the companies.",
        "Those are ordinary leasing firms, and the names are a private joke",
    ),
    (
        "has fewer factories than it says",
        "An investigator found a field of rape at one address.",
        "That plant is under construction and was always described as such",
    ),
    (
        "pays its suppliers with loans from the same suppliers",
        "Payment now takes {days} days on average.",
        "Supply chain finance is used by everybody in the trade",
    ),
    (
        "books ten-year contracts as if they were paid today",
        "Cash has lagged profit in {small} of the past ten quarters.",
        "Our auditors have seen each of those contracts",
    ),
    (
        "sold its best business to a friend of the chief executive",
        "The price was a third of what a rival had offered.",
        "The rival's offer was full of conditions",
    ),
    (
        "has lost its licence in its largest market",
        "A notice in the official gazette was overlooked for {days} days.",
        "The licence was renewed under another number",
    ),
    (
        "has a pension gap it does not show",
        "Actuaries changed one assumption on page {days}.",
        "The assumption is the prudent one",
    ),
    (
        "paid bloggers to praise its products",
        "Some {small} of them used the same three adjectives.",
        "People like our products, and they like adjectives",
    ),
    (
        "has inflated its number of users",
        "A third of the accounts have not been opened for two years.",
        "A dormant user is a user with other things to do",
    ),
    (
        "understates the cost of old mines it must clean up",
        "Ground water at two sites is orange.",
        "The colour is natural",
    ),
    (
        "capitalises the wages of its cleaners",
        "They appear in the accounts as “development”.",
        "They clean the laboratories",
    ),
    (
        "has a chief auditor who is also its landlord",
        "The rent is {small} times that of the house next door.",
        "The auditor rents to many people",
    ),
)
_SHORTERS = (
    "Gadfly Research",
    "Cold Shower Capital",
    "Pinprick",
    "Heron Short",
    "Nettle & Thorn",
    "Lamplighter Research",
    "Burdock Partners",
)


@dataclass(frozen=True)
class Attack:
    co: Company
    charge: str
    proof: str
    answer: str
    shorter: str
    boss: Person
    analyst: Person
    house: str
    holder: Person
    official: Person
    fall: int
    more: int
    gain: Money
    pages: int
    small: int
    days: int
    big: int
    right: str | None
    wrong: str | None


def _attack(scene: Scene) -> Attack:
    co = scene.fresh("short seller", scene.world.companies)
    charge, proof, answer = scene.fresh("short charge", _CHARGES)
    shorter = scene.deal("short house", _SHORTERS)
    right = scene.chance(0.5)
    return Attack(co, charge, proof, answer, shorter, scene.person(None, f"who runs {shorter}"), scene.person(None, "an analyst"), scene.pick(HOUSES), scene.person(co.country), scene.person(co.country, "who heads the market watchdog"),
                  scene.between(11, 34), scene.between(8, 27), co.revenue.times(scene.rng.uniform(0.04, 0.2)), scene.between(38, 140), scene.between(3, 7), scene.between(60, 140), scene.near(2_000, 19_000), "" if right else None, None if right else "")  # fmt: skip


ATTACK = Beat(
    "short sellers",
    _attack,
    (
        Stage(
            titles=("{co.name} shares plunge {fall}% after attack by short seller", "Short seller {shorter} takes aim at {co.noun} {co.name}", "{shorter} says {co.name} {charge}"),
            abstracts=("A report of {pages} pages says that the {co.noun} {charge}. The company denies it.", "{gain} of market value vanished in a morning. {co.name} speaks of lies.", "{proof} {shorter} bets on a fall."),
            leads=("Shares in {co.name} lost {fall}% of their value {on} after the short seller {shorter} published a report that accuses the {co.noun} of false accounts.", "The {co.noun} {co.name} {charge}: so says the short seller {shorter} in a report of {pages} pages. The shares fell by {fall}% {on}."),
            then=(say("“[I have read their accounts more often than they have|We're paid if we're right, which is more than analysts can say|It took us a year and a pair of rubber boots],” said {boss.last}."), say("“{answer},” said {co.finance.name}, the finance chief of {co.name}.", "{co.name} rejected the report. “{answer},” said {co.finance.name}, its finance chief.")),
            loose=(say("{proof}"), say("Short sellers borrow shares, sell them and hope to buy them back for less. {shorter} [did not say how much it stands to gain|holds a bet worth several millions]."), say("{analyst.name} of {house} [had praised the shares a week ago|has put the rating under review|was not convinced].", "“[There's smoke, and there's a man selling smoke|I've gone through it line by line and have questions],” said {analyst.name} of {house}."), say("{holder.name}, whose fund holds {small}% of the company, [has not sold|bought more]. “[I want to hear it from the auditors|You don't leave the cinema because someone shouts],” {holder.he} said."), say("{official.last} said [trading was being looked at|both sides would be heard]."), say("The fall wiped out {gain} in market value.")),
            weight=0.5, covered=0.35,
        ),
        Stage(
            titles=("{co.name} orders audit after short seller's claims", "{co.name} answers {shorter}: “{answer}”", "Watchdog looks into {co.name} and short seller"),
            abstracts=("An outside firm will look at the accounts. The shares fell another {more}%.", "{co.chair.name} promises results within weeks."),
            leads=("{co.name} will have its accounts examined by outsiders, the {co.noun} said {on}, after a short seller accused it of deceit.", "The market watchdog opened an inquiry {on} into {co.name} and into the short seller {shorter}."),
            then=(say("“[Sunlight is cheap|If there's something, I want to be the first to know],” said {co.chair.name}, who chairs the board."),),
            loose=(say("{shorter} had claimed {t0:on} that the company {charge}."), say("{proof}"), say("“{answer},” {co.finance.name}, the finance chief, repeated."), say("The shares have lost {fall}% since."), say("{boss.last} [welcomed|mocked] the step. “[They're hiring somebody to count what they can't find|I'll send them our map],” {boss.he} said."), say("{holder.name}, a large shareholder, [wants an extraordinary meeting|keeps {holder.his} shares].")),
            after=(1, 3), weight=0.35, covered=0.12,
        ),
        Stage(
            titles=("{right}Audit confirms short seller's claims against {co.name}", "{right}{co.name} finance chief {co.finance.last} resigns", "{wrong}Audit clears {co.name}; shares recover {more}%", "{wrong}Short seller {shorter} was wrong about {co.name}, audit finds"),
            abstracts=("{right}The {co.noun} must restate its profits. {co.finance.name} goes.", "{wrong}The accounts are sound, say the auditors. The shares rose by {more}%."),
            leads=("{right}{co.name} must correct its accounts: an audit has confirmed that it {charge}, the {co.noun} said {on}.", "{wrong}An audit found nothing to support the claim that {co.name} {charge}, the {co.noun} said {on}; the shares rose by {more}%."),
            then=(say("{right}“[I'm not pleased; I'm paid|Next time, they might read their post],” said {boss.last}.", "{wrong}“[We lost {fall}% to a rumour and won't send flowers|I'd like that morning back],” said {co.chair.name}, who chairs the board."),),
            loose=(say("The affair began {t0:on}, when the shares fell by {fall}%."), say("{proof}"), say("{right}{co.finance.name}, the finance chief, [resigned|is to leave at once]. {co.finance.he:cap} had said: “{answer}.”", "{wrong}{boss.last} [stands by the report|closed the position at a loss]. “[I've been wrong before, and it's expensive|We'll read the audit, as we read everything],” {boss.he} said."), say("{official.last} said [rules for short sellers might be needed|the case showed that markets need critics]."), say("{analyst.name} of {house} called it “[a good day for patience|an expensive fortnight for everyone but the lawyers]”.")),
            after=(2, 5), weight=0.4, covered=0.2,
        ),
    ),
    share=0.6,
    rhythm=TRADING,
)  # fmt: skip
