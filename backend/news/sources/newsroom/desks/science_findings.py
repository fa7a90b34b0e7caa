# ruff: noqa: E501 (prose reads better unbroken)
"""How the science desk reports a finding: the news, two who know about it, details, and what came after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Role, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import ROUND
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class Finding:
    """`quote` is said by the finder, `reply` by a colleague; `later` is said when the story goes on (`next_…`)."""

    head: str
    head2: str
    brief: str
    lead: str
    quote: str
    d0: str
    d1: str
    d2: str
    reply: str
    next_head: str
    next_lead: str
    later: str
    later_by: str = "who"


@dataclass(frozen=True)
class Discovery:
    f: Finding
    c: Country
    city: City
    region: str
    other: Country
    who: Person
    critic: Person
    local: Person
    later: Person
    scribe: Person
    uni: str
    small: int
    some: int
    big: int
    pct: int
    km: int
    weeks: int


def finding_facts(
    tag: str, table: tuple[Finding, ...], finders: tuple[str, ...], colleagues: tuple[str, ...]
) -> Callable[[Scene], Discovery]:
    """Draws one finding of the table with its place and people; each is told once."""

    def facts(scene: Scene) -> Discovery:
        f = scene.fresh(tag, table)
        c = scene.country()
        other = scene.pick([one for one in scene.world.countries if one is not c])
        who, critic = (
            scene.person(c, scene.deal(f"{tag} finder", finders)),
            scene.person(None, scene.deal(f"{tag} colleague", colleagues)),
        )
        later = {"who": who, "critic": critic}.get(f.later_by) or scene.person(c, f.later_by)
        return Discovery(
            f, c, scene.fresh(f"{tag} city", c.cities, uses=3), scene.pick(c.land.regions), other, who, critic, scene.person(c), later, scene.person(c), scene.pick(other.cities).name,
            scene.between(3, 9), scene.between(12, 46), scene.near(2_100, 38_000), scene.between(14, 71), scene.near(21, 190), scene.between(2, 7),
        )  # fmt: skip

    return facts


def finding_beat(topic: str, facts: Callable[[Scene], Discovery], context: tuple[Role, ...], share: float) -> Beat:
    """A beat that tells findings in two reports; `context` are the topic's own loose paragraphs."""
    return Beat(
        topic,
        facts,
        (
            Stage(
                titles=("{f.head}", "{f.head2}"),
                abstracts=("{f.brief}",),
                leads=("{f.lead}",),
                then=(say("“{f.quote},” said {who.last}.", "“{f.quote},” {who.last} said.", "{who.last} [put it plainly|chose another image|needed one sentence]: “{f.quote}.”", "“{f.quote},” said {who.last}."),),
                loose=(say("{f.d0}"), say("{f.d1}"), say("{f.d2}"), say("“{f.reply},” said {critic.last}.", "{critic.last} [has read the paper twice|knows the field well]. “{f.reply},” {critic.he} said."), *context),
                weight=0.38, covered=0.6,
            ),
            Stage(
                titles=("{f.next_head}",),
                abstracts=("“{f.later},” says {later.name}.", "{f.d0}", "{f.d1}"),
                leads=("{f.next_lead}",),
                then=(say("“{f.later},” said {later.last}.", "{later.last} [did not hesitate|took it calmly|smiled]: “{f.later}.”"),),
                loose=(say("{f.d0}"), say("{f.d1}"), say("{f.d2}"), say("{critic.last} had [been careful|been asked] [from the start|{t0:on}]. “{f.reply},” {critic.he} said then.", "“{f.reply},” {critic.last} had said [when the news broke|{t0:on}]."), *context),
                after=(2, 6), weight=0.28, covered=0.35, chance=0.95,
            ),
        ),
        share=share,
        rhythm=ROUND,
    )  # fmt: skip
