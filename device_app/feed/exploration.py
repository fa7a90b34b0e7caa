"""Divides a page between the reader's interests and places that don't depend on the profile.

Fresh places show recent articles drawn without the profile; explore places show sections the reader rarely opens.
`PageShares` guarantees a minimum to what the reader picked and reads, and limits the rest. Scores alone don't keep
these shares: a few reads would fill a page with their topic, or three refreshes would use the topic up.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, Codes
from device_app.feed.diversity import Cap, Share
from device_app.feed.preference_reader import UserPreferences
from device_app.feed.scores import age_hours, recency
from device_app.settings import FeedSettings

FRESH_POOL = 40
"""Fresh articles are drawn from this many of the newest."""
COLUMN_SHARE = 0.75
"""Share of `reading_share` that one topic's personal places may fill; its developing stories come on top."""


def fresh_rows(
    candidates: Candidates,
    free: NDArray[np.bool_],
    now: datetime,
    settings: FeedSettings,
    chance: random.Random,
) -> list[int]:
    """Return rows of the last hours, drawn at random from the newest.

    They come from different sections if possible. free [n]: the rows that may be used. The draw depends on the reader
    only through `free`.
    """
    age = age_hours(candidates, now)
    recent = np.flatnonzero(free & (age <= settings.fresh_hours))
    newest = [int(row) for row in recent[np.argsort(age[recent], kind="stable")[:FRESH_POOL]]]
    lots = _lots(chance, [candidates.cards[row].id for row in newest])
    newest.sort(key=lambda row: lots[candidates.cards[row].id])
    sections: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for row in newest:
        section = candidates.cards[row].section
        ranked.append((sections[section], row))
        sections[section] += 1
    ranked.sort(key=lambda pair: pair[0])
    return [row for _, row in ranked[: settings.fresh_slots]]


def explore_rows(
    candidates: Candidates,
    free: NDArray[np.bool_],
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    chance: random.Random,
) -> list[int]:
    """Return the best articles of sections that the reader rarely opens.

    The best article of a section has the highest editorial weight plus recency. Sections are drawn without replacement
    with weight 1 / (1 + clicks in the section) ** 2, so that the least read are drawn most often and every section has
    a chance.
    """
    rows = np.flatnonzero(free)
    worth = candidates.weights + recency(candidates, now, settings.half_life_hours)
    ranked = rows[np.argsort(-worth[rows], kind="stable")]
    firsts = ranked[np.unique(candidates.sections[ranked], return_index=True)[1]]
    best = {candidates.cards[row].section: int(row) for row in firsts}
    read = Counter(card.section for card in user_preferences.clicks)
    lots = _lots(chance, best)
    # Weighted sampling without replacement by one key each, the largest u ** (1 / weight) first (Efraimidis and
    # Spirakis 2006).
    keys = {name: math.log(max(lots[name], 1e-300)) * (1.0 + read[name]) ** 2 for name in best}
    return [best[name] for name in sorted(best, key=lambda name: -keys[name])[: settings.explore_slots]]


def _lots(chance: random.Random, names: Iterable[str]) -> dict[str, float]:
    """Return one uniform number in [0, 1) per name.

    Adding or removing a name doesn't change the numbers of the others.
    """
    salt = chance.getrandbits(64)
    return {name: random.Random(f"{salt} {name}").random() for name in names}


@dataclass(frozen=True)
class PageShares:
    """Minimum shares and caps of one page.

    topics, sections and chosen are the shares of topics and sections that the reader reads, and of sections picked at
    the first visit. limits [n] caps each candidate's section: half of the page for one that the reader picked, follows
    or reads, section_share for others. column_topic caps one topic among the personal places. unwanted counts, by
    topic, stories the reader wants less of.
    """

    topics: dict[int, Share]
    sections: dict[int, Share]
    chosen: Share | None
    limits: NDArray[np.int64]
    half: int
    column_topic: int
    unwanted: Mapping[int, int]
    candidates: Candidates

    @classmethod
    def of(
        cls, candidates: Candidates, user_preferences: UserPreferences, settings: FeedSettings, size: int
    ) -> PageShares:
        """Return the shares that the settings prescribe for a page of `size` places."""
        clicks = user_preferences.clicks
        reading = settings.reading_share * size * min(1.0, len(clicks) / settings.reads_for_share)
        picked = user_preferences.chosen_sections
        in_picked = candidates.named(candidates.sections, picked)
        blending = bool(picked) and len(clicks) < settings.blend_reads
        mine = {card.section for card in clicks} | picked | user_preferences.followed.sections
        topics = _by_name(candidates.topics, [card.topic for card in clicks if card.topic], reading)
        read_in: dict[int, set[str]] = {}
        for card in clicks:
            read_in.setdefault(hash(card.topic), set()).add(card.section)
        topics = {  # "injuries" of a sport that is read are no injuries of another
            code: Share(share.rows & candidates.named(candidates.sections, read_in[code]), share.least)
            for code, share in topics.items()
        }
        own, half = candidates.named(candidates.sections, mine), max(1, size // 2)
        return cls(
            topics=topics,
            sections=_by_name(candidates.sections, [card.section for card in clicks], reading),
            chosen=Share(in_picked, math.ceil(settings.chosen_share * size)) if blending else None,
            limits=np.where(own, half, max(1, int(settings.section_share * size))),
            half=half,
            column_topic=math.ceil(COLUMN_SHARE * settings.reading_share * size - 1e-9),
            unwanted=Counter(map(hash, user_preferences.unwanted)),
            candidates=candidates,
        )

    @property
    def outermost(self) -> tuple[Share, ...]:
        """The shares that are not contained in another one; only picked sections may overlap with read ones."""
        return (*self.sections.values(), *(() if self.chosen is None else (self.chosen,)))

    @property
    def least(self) -> tuple[Share, ...]:
        """All shares, in the order in which they are filled."""
        return (*self.topics.values(), *self.outermost)

    def caps(self, topic_limit: int, taken: Sequence[int], places: int) -> tuple[Cap, ...]:
        """Return the caps on topics, sections and picked sections for `places` further personal places.

        taken: rows that are already placed. A topic may have `topic_limit` places, or its share if that is more, minus
        one for each of its stories that the reader wants less of, but at least one: hiding a topic completely is a
        separate choice. Without that deduction, a section that the reader reads would fill its share with stories the
        reader keeps dismissing. A section may have its limit, and all picked sections together half of the page. The
        personal places, which a reader sees as one column, are capped too: `column_topic` of one topic, and half of one
        section.
        """
        topics, sections = self.candidates.topics, self.candidates.sections
        of_topics = {code: share.least for code, share in self.topics.items() if share.least > topic_limit}
        of_topics |= {code: max(1, of_topics.get(code, topic_limit) - less) for code, less in self.unwanted.items()}
        of_sections = dict(zip(sections.tolist(), self.limits.tolist(), strict=True))
        found = [_beside(Cap(topics, topic_limit, of_topics), taken)]
        found.append(_beside(Cap(sections, self.half, of_sections), taken))
        found.append(Cap(topics, max(topic_limit, self.column_topic)))
        found.append(Cap(sections, max(1, places // 2)))
        if self.chosen is not None:
            apart = np.where(self.chosen.rows, -1, np.arange(len(self.limits)))
            found.append(_beside(Cap(apart, self.half), taken))
        return tuple(found)

    def room(self, taken: Sequence[int]) -> NDArray[np.bool_]:
        """Return whether each row's section may have one more place once these rows are placed, [n]."""
        counts = Counter(self.candidates.sections[list(taken)].tolist())
        held = np.fromiter(map(counts.__getitem__, self.candidates.sections.tolist()), np.int64, len(self.limits))
        return held < self.limits


def _beside(cap: Cap, taken: Sequence[int]) -> Cap:
    """Return what is left of a cap once these rows are placed."""
    counts = Counter(cap.column[list(taken)].tolist())
    return Cap(
        cap.column, cap.limit, {**cap.more, **{code: cap.more.get(code, cap.limit) - n for code, n in counts.items()}}
    )


def _by_name(column: Codes, read: Sequence[str], places: float) -> dict[int, Share]:
    """Return each read name's proportional share, largest first.

    Leaves out shares below one place.
    """
    if not read:
        return {}
    shares = {
        hash(name): Share(column == hash(name), math.floor(places * count / len(read) + 1e-9))
        for name, count in Counter(read).most_common()
    }
    return {code: share for code, share in shares.items() if share.least}
