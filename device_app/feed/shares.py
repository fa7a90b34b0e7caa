"""What share of a feed belongs to what its reader picked and reads, and what it is for others at most.

Scores alone don't keep it: a few reads would fill a page with their topic, or three refreshes use it up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.columns import Codes
from device_app.feed.diversity import Cap, Share
from device_app.feed.preferences import UserPreferences
from device_app.settings import FeedSettings


@dataclass(frozen=True)
class PageShares:
    """Of one page.

    topics, sections and chosen are the shares of what is read and of the sections picked at the first visit; own [n]
    tells which candidates are of a section that the reader picked, follows or reads; section_limit is what another
    section may have of the page, half what one of these may; unwanted tells of how many stories of a topic the reader
    wants less.
    """

    topics: dict[int, Share]
    sections: dict[int, Share]
    chosen: Share | None
    own: NDArray[np.bool_]
    section_limit: int
    half: int
    unwanted: Mapping[int, int]
    candidates: Candidates

    @classmethod
    def of(
        cls, candidates: Candidates, user_preferences: UserPreferences, settings: FeedSettings, size: int
    ) -> PageShares:
        """As the settings have them, for a page of `size` places."""
        clicks = user_preferences.clicks
        reading = settings.reading_share * size * min(1.0, len(clicks) / settings.reads_for_share)
        picked = user_preferences.chosen_sections
        in_picked = candidates.named(candidates.sections, picked)
        blending = bool(picked) and len(clicks) < settings.blend_reads
        mine = {card.section for card in clicks} | picked | user_preferences.followed.sections
        topics = _by_name(candidates.topics, [card.topic for card in clicks if card.topic], reading)
        return cls(
            topics=topics,
            sections=_by_name(candidates.sections, [card.section for card in clicks], reading),
            chosen=Share(in_picked, math.ceil(settings.chosen_share * size)) if blending else None,
            own=candidates.named(candidates.sections, mine),
            section_limit=max(1, int(settings.section_share * size)),
            half=max(1, size // 2),
            unwanted=Counter(map(hash, user_preferences.unwanted)),
            candidates=candidates,
        )

    @property
    def outermost(self) -> tuple[Share, ...]:
        """Shares of which none lies within another (but picked sections may be read as well)."""
        return (*self.sections.values(), *(() if self.chosen is None else (self.chosen,)))

    @property
    def least(self) -> tuple[Share, ...]:
        """All, in the order in which they are filled."""
        return (*self.topics.values(), *self.outermost)

    def caps(self, topic_limit: int, taken: Sequence[int]) -> tuple[Cap, ...]:
        """What a topic, a section and the picked sections together may still have beside these rows.

        A topic: `topic_limit`, or its share if that is more, and one less for each of its stories of which less is
        wanted, but one of a page; to hide it whole is another choice. Without that a section that is read fills its
        share with what its reader keeps waving away. A section that is none of the reader's own: section_limit; one of
        them, and all that were picked together: half of the page.
        """
        topics, sections = self.candidates.topics, self.candidates.sections
        of_topics = {code: share.least for code, share in self.topics.items() if share.least > topic_limit}
        of_topics |= {code: max(1, of_topics.get(code, topic_limit) - less) for code, less in self.unwanted.items()}
        of_own = dict.fromkeys(sections[self.own].tolist(), self.half)
        found = [_beside(Cap(topics, topic_limit, of_topics), taken)]
        found.append(_beside(Cap(sections, self.section_limit, of_own), taken))
        if self.chosen is not None:
            apart = np.where(self.chosen.rows, -1, np.arange(len(self.own)))
            found.append(_beside(Cap(apart, self.half), taken))
        return tuple(found)

    def room(self, taken: Sequence[int]) -> NDArray[np.bool_]:
        """[n]: whether a row's section may have another place beside these rows."""
        counts = Counter(self.candidates.sections[list(taken)].tolist())
        full = [code for code, count in counts.items() if count >= self.section_limit]
        return self.own | ~np.isin(self.candidates.sections, full)


def _beside(cap: Cap, taken: Sequence[int]) -> Cap:
    """What is left of a cap once these rows have their places."""
    counts = Counter(cap.column[list(taken)].tolist())
    return Cap(
        cap.column, cap.limit, {**cap.more, **{code: cap.more.get(code, cap.limit) - n for code, n in counts.items()}}
    )


def _by_name(column: Codes, read: Sequence[str], places: float) -> dict[int, Share]:
    """The share of each name that was read, in proportion, greatest first; names with no whole place have none."""
    if not read:
        return {}
    shares = {
        hash(name): Share(column == hash(name), math.floor(places * count / len(read) + 1e-9))
        for name, count in Counter(read).most_common()
    }
    return {code: share for code, share in shares.items() if share.least}
