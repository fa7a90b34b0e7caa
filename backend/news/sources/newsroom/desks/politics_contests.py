# ruff: noqa: E501 (prose reads better unbroken)
"""How the politics desk follows contests inside parties: the race to be deputy leader."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import ROUND
from backend.news.sources.newsroom.world import Country, Party


@dataclass(frozen=True)
class Platform:
    """What a candidate stands for: `past` is who they were, `plan` follows 'wants to', `line` and `doubt` are said."""

    past: str
    plan: str
    line: str
    doubt: str
    crowd: str


PLATFORMS: tuple[Platform, ...] = (
    Platform("a former tram driver", "hold every second conference outside the capital", "Our party knows every restaurant in the capital and no bus stop outside it", "We tried that once, and nobody found the hall", "drivers in uniform"),
    Platform("a surgeon who still operates on Fridays", "send members to knock on doors all year", "You don't examine a patient once every four years", "People open the door to a surgeon, they don't open it to me", "nurses with a banner"),
    Platform("who grew up above a chip shop", "cut the membership fee to the price of a lunch", "A party that costs more than a lunch will only meet people who have had one", "Cheap members are gone by spring", "the whole chip shop"),
    Platform("a village mayor with 21 years in office", "give towns a third of the seats on the executive", "I've mended more roads than this executive has driven on", "It's a party, not a parish", "eleven other mayors"),
    Platform("a constitutional lawyer", "put all party decisions to a vote of members", "Ask them everything, they might know", "Members have jobs, and we'd be voting until midnight", "two former judges"),
    Platform("a farmer with four hundred sheep", "open party offices in market towns", "I listen for a living, sheep complain all day", "Half the offices we have are closed for want of a key", "a sheepdog on the platform"),
    Platform("who ran a call centre", "answer every letter within a week", "Nobody has ever been converted by silence", "It would take forty people who do nothing else", "former colleagues with headsets"),
    Platform("a trade unionist from the docks", "win back workers who have stopped voting", "They didn't move away from us, we moved away and left no address", "They have heard that speech from every one of us", "a dockers' choir"),
    Platform("the youngest member of the house", "keep one place in three for candidates under 35", "I'm told to wait my turn by people who have had four", "Experience isn't a disease that one gets over", "students on the balcony"),
    Platform("a former television weather presenter", "explain policy on one page", "I did the weather in ninety seconds, and people took an umbrella", "The world doesn't fit on a page, and the page knows it", "viewers who asked for autographs"),
    Platform("a professor of statistics", "publish the party's accounts down to the biscuits", "What we hide looks worse than what we spend", "Nobody has yet lost an election over biscuits", "a row of doctoral students"),
    Platform("a retired colonel", "end the quarrels with the party's youth wing", "I've made peace between people who had guns", "You can't give orders to volunteers", "veterans with folding chairs"),
    Platform("who runs a food bank", "put housing first in every campaign", "I meet our voters in a queue", "Housing is a matter for councils, and whoever promises it will own it", "volunteers in aprons"),
    Platform("a headteacher on leave", "train candidates before they stand", "We let people make laws who'd not be let near a class of ten-year-olds", "Voters like amateurs", "former pupils, now with beards"),
    Platform("an engineer who built bridges abroad", "bring the party's warring wings together", "A bridge is held up by things that push against each other", "They will both hang from it", "relatives from three provinces"),
    Platform("a pharmacist from the north", "stop taking gifts from companies", "I know what a side effect looks like", "Then who pays for the hall?", "customers who had closed the shop for the day"),
)  # fmt: skip


@dataclass(frozen=True)
class Contest:
    c: Country
    party: Party
    city: str
    one: Person
    two: Person
    a: Platform
    b: Platform
    winner: Person
    loser: Person
    plan: str
    lost: str
    left: Person
    years: int
    delegate: Person
    scholar: Person
    pct: int
    rest: int
    voters: int
    reason: str


def _contest(scene: Scene) -> Contest:
    which = scene.between(0, 2)
    c = scene.country(f"contest {which}")
    party = (c.party, c.opposition, c.ally)[which]
    a, b = scene.fresh("platform", PLATFORMS, uses=5), scene.fresh("platform", PLATFORMS, uses=5)
    if a is b:
        b = next(one for one in PLATFORMS if one is not a)
    one, two = scene.person(c, a.past), scene.person(c, b.past)
    first = scene.chance(0.5)
    pct = scene.between(51, 63)
    return Contest(
        c, party, scene.pick(c.cities).name, one, two, a, b, one if first else two, two if first else one, (a if first else b).plan,
        (b if first else a).plan, scene.person(c, "the departing deputy leader"), scene.between(3, 12), scene.person(c), scene.person(c, "who studies parties"),
        pct, 100 - pct, scene.near(4_000, 96_000), scene.deal("deputy leaves", _REASONS),
    )  # fmt: skip


_REASONS = ("[for reasons of health|on a doctor's advice]", "[to lead a charity|for a post at a charity]", "after a quarrel over the party's finances", "to spend more time with [grandchildren and bees|an orchard]",
            "[to return to teaching|for a chair at a university]", "after two lost by-elections", "[to become an ambassador|for an embassy]", "after a remark about pensioners that was not meant for the microphone")  # fmt: skip


LEADERSHIP = Beat(
    "party leadership",
    _contest,
    (
        Stage(
            titles=("{one.last} and {two.last} to fight for deputy leadership of {party.name}", "{party.adjective} leadership race: {one.last} enters against {two.last}", "{c.name}: {party.name} to choose deputy leader", "{one.last} wants to be deputy leader of {c.demonym} {party.members}", "Two candidates, one post: {c.demonym} {party.members} look for a deputy leader"),
            abstracts=("{one.name}, {a.past}, and {two.name}, {b.past}, want to be deputy leader of {party.name}.", "{left.name} gives up the post after {years:count year}. Some {voters} members will choose between {one.name} and {two.name}.", "“{a.line},” says {one.name}. {two.name} would {b.plan}."),
            leads=(
                "{one.name}, {a.past}, said {on} that {one.he} would stand for deputy leader of {party.name} in {c.name}. {one.he:cap} will face {two.name}, {b.past}.", "“{a.line},” said {one.name}, {a.past}, in {city} {on}, and declared {one.himself} a candidate for the deputy leadership of {party.name}.",
                "The race to be deputy leader of {party.name}, of {c.name}, is down to two: {one.name}, {a.past}, and {two.name}, {b.past}. The lists closed {on}.", "{left.name}, deputy leader of {party.name} in {c.name} for {years:count year}, is going {reason}. By {today} there were two who want the post: {one.name}, {a.past}, and {two.name}, {b.past}.",
            ),
            then=(say("{one.last} wants to {a.plan}. “{a.line},” {one.he} [told supporters|likes to say]. {two.last} would {b.plan}.", "Their plans differ. {one.last} wants to {a.plan}, {two.last} to {b.plan}. “{b.line},” said {two.last}."),),
            loose=(
                say("At {one.last:s} first meeting there were {a.crowd}; at {two.last:s}, {b.crowd}.", "{two.last} opened {two.his} campaign in {city}, in front of {b.crowd}."),
                say("“{a.doubt},” [said {delegate.name}, a delegate from {city}, about {one.last:s} plan|was the answer of {delegate.name}, a delegate from {city}, to {one.last}].", "{delegate.name}, a delegate from {city}, is [not convinced|for neither]. “{b.doubt},” {delegate.he} said about {two.last}."),
                say("Some {voters} members may vote[, by post|, by post or on their telephones].", "The ballot papers go to {voters} members [this week|in the coming days]."),
                say("{scholar.last} sees [more difference in manner than in matter|a choice of audience]. “[One wants to be heard, the other to be counted|Deputies are elected by those who already agree],” {scholar.he} said."),
                say("{left.name}, who held the post for {years:count year}, left {reason}.", "The vacancy arose when {left.name} went {reason}[; {left.he} has not said whom {left.he} prefers|]."),
            ),
            weight=0.35, covered=0.15,
        ),
        Stage(
            titles=("{one.last} and {two.last} trade blows in {party.adjective} leadership debate", "“{b.line}”: {two.last} wins applause in {c.demonym} leadership debate", "{c.demonym} {party.members} pack hall for deputy leadership debate", "{party.adjective} rivals debate in {city}: {one.last} on the offensive"),
            abstracts=("{one.name} wants to {a.plan}; {two.name} wants to {b.plan}. In {city} they told each other why not.", "“{b.line},” said {two.name}. {delegate.name}, a delegate, has made up {delegate.his} mind.", "The candidates for deputy leader of {party.name} met in a full hall in {city}."),
            leads=(
                "The two who would be deputy leader of {party.name} met for [the only|a two-hour] debate in {city} {on}. “{b.line},” said {two.name}; “{a.line},” {one.name} replied.", "{two.name} [drew the louder applause|was the first to lose {two.his} notes] when the candidates for deputy leader of {c.demonym} {party.members} debated in {city} {on}.",
                "For [an hour|ninety minutes] {on}, {one.name} and {two.name} were polite to each other in a hall in {city}. Then they came to the question of how to lead {party.name}.",
            ),
            then=(say("“{b.doubt},” said {one.last} of {two.last:s} wish to {b.plan}. {two.last} [smiled|took a sip of water]: “{a.doubt}.”", "{two.last} would {b.plan}. {one.last} [shook {one.his} head|was not having it]. “{b.doubt},” {one.he} said."),),
            loose=(
                say("{a.crowd:cap} had come for {one.last}, {b.crowd} for {two.last}.", "{two.last} had brought {b.crowd}."),
                say("{delegate.name}, a delegate, [has decided and will not say|changed sides twice during the evening]. “[I came for one and clapped for the other|Both are right, and that's what worries me],” {delegate.he} said."),
                say("The debate over, [both candidates stacked chairs|they shared a car to the station].", "There was [one heckler, and he was thanked|no moderator, only a bell]."),
                say("The ballot of {voters} members closes [in a few days|soon]. The candidates were confirmed {t0:on}."),
                say("{scholar.last} thought {two.last} [better prepared|the warmer of the two] and {one.last} [quicker|harder to interrupt]."),
            ),
            after=(1.5, 4), weight=0.3, covered=0.1,
        ),
        Stage(
            titles=("{winner.last} elected deputy leader of {party.name}", "{winner.last} beats {loser.last} to {party.adjective} deputy leadership in {c.name}", "{c.demonym} {party.members} choose {winner.last} by {pct}% to {rest}%", "Deputy leader {winner.last}: {party.name} decides in {c.capital}", "{loser.last} loses {party.adjective} leadership vote to {winner.last}"),
            abstracts=("{winner.name} wins {pct}% of the members' votes and succeeds {left.name}.", "{winner.name} beat {loser.name} and now wants to {plan}.", "Members of {party.name} prefer {winner.name} to {loser.name} by {pct}% to {rest}%."),
            leads=(
                "{winner.name} is the new deputy leader of {party.name}. {winner.he:cap} won {pct}% of the votes of {c.demonym} members in a count that ended {on}, and {loser.name} {rest}%.", "{c.demonym} members of {party.name} have chosen {winner.name} over {loser.name} as their deputy leader, by {pct}% to {rest}%, the party said {on}.",
                "It was {winner.name} in the end. With {pct}% of the vote, {winner.he} beat {loser.name} {on} and becomes deputy leader of {party.name} in {c.name}.",
            ),
            then=(say("“[Thank you, and now let's stop talking about ourselves|I won by some of you and I'll work for all of you|I'd like to begin by hiring the loser],” said {winner.last}, who has promised to {plan}.", "{winner.last} means to {plan}. “[I said it in every hall, so I can't get out of it|It'll be done by the next conference, or ask me why],” {winner.he} said."),),
            loose=(
                say("{loser.last} [congratulated {winner.last} and left by the front door|offered {loser.his} help]. “[I was beaten by a better list of telephone numbers|My plan to {lost} can be borrowed],” {loser.he} said.", "For {loser.last}, who had wanted to {lost}, [it was a second defeat in a year|there was long applause]."),
                say("{delegate.name}, a delegate from {city}, [had hoped for a closer result|was content]. “[We needed a quarrel and we had a decent one|Now somebody has to answer the letters],” {delegate.he} said."),
                say("Some {voters} members had been able to vote; [about two in three did|turnout was higher than last time].", "Of the {voters} members who could vote, [more than half|nearly two thirds] did."),
                say("{winner.last} succeeds {left.name}, who left {reason}.", "{left.name}, the outgoing deputy, [handed over a key and a plant|wished {winner.last} patience]."),
                say("{scholar.last} expects [little change before the autumn|that the two will work together]. “[Deputy leaders make the calls that leaders are seen taking|It is the post from which one waits],” {scholar.he} said."),
                say("The two had debated in {city} {t1:on}[, and it was not always gentle|]."),
            ),
            after=(1.5, 4), weight=0.45, covered=0.25,
        ),
    ),
    share=0.8,
    rhythm=ROUND,
)  # fmt: skip
