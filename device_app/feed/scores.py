"""The adjusted local score: fit to the reader plus small terms, all in units of one spread of the fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, unit
from device_app.feed.preferences import UserPreferences
from device_app.settings import FeedSettings

TermName = Literal[
    "content",
    "topic_affinity",
    "section_affinity",
    "recency",
    "popularity",
    "editorial",
    "followed",
    "chosen",
    "reactions",
    "seen",
]


def age_hours(candidates: Candidates, now: datetime) -> NDArray[np.float64]:
    """[n]: hours since publication; news dated in the future counts as published now."""
    return np.maximum(0.0, (now.timestamp() - candidates.published_sec) / 3_600)


def recency(candidates: Candidates, now: datetime, half_life_hours: float) -> NDArray[np.float64]:
    """[n]: 1 for news of this moment, 1/2 after one half-life, and so on."""
    return np.exp2(-age_hours(candidates, now) / half_life_hours)


SPREAD_WITHOUT_CLICKS = 0.06
"""One spread of the default ranker's fit over a pool, for the reader in the middle: .045 to .078 on MIND's dev."""


@dataclass(frozen=True)
class ScoreTerms:
    """What the scores of n candidates are made of: each term [n], by name, in units of one spread of the fit.

    A reason is read off these (`feed.reasons`): it names what lifted a story above the usual one, and nothing else.
    """

    terms: Mapping[TermName, NDArray[np.float64]]

    @property
    def total(self) -> NDArray[np.float64]:
        """[n]: the score, which is their sum."""
        return np.asarray(sum(self.terms.values()), dtype=np.float64)

    def lifts(self, row: int) -> dict[TermName, float]:
        """By how much each term puts this row above the mean of all: what all rows have alike decides no place."""
        return {name: float(values[row]) - self._usual[name] for name, values in self.terms.items()}

    @cached_property
    def _usual(self) -> dict[TermName, float]:
        """The mean of each term over all rows."""
        return {name: float(values.mean()) for name, values in self.terms.items()}


def adjusted(
    fit: NDArray[np.float32],
    candidates: Candidates,
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    *,
    weighed: Mapping[str, NDArray[np.float64]] | None = None,
    popularity: NDArray[np.float64] | None = None,
    times_seen: NDArray[np.float64] | None = None,
) -> ScoreTerms:
    """Standardised fit + recency + popularity + editorial weight + names followed or chosen + reactions - seen.

    fit is [n], the ranker's scores; weighed holds what each of the ranker's own features adds to them, [n] by name
    (`Ranker.contributions`): those terms are part of the fit and are not counted again. popularity is [n], from -1 to 1
    (`feed.popular`); None: nothing is known of any. times_seen is [n], in how many feeds each was looked at and not
    opened: the first costs seen_penalty, three twice as much. None: none was.
    Without clicks the features alone make up the fit; its spread would make too much of them: a typical one is used.
    """
    weighed = weighed or {}
    spread = _spread(fit, SPREAD_WITHOUT_CLICKS if weighed and not user_preferences.clicks else None)
    learnt = {name: _over(values, spread) for name, values in weighed.items()}
    none = np.zeros(len(candidates))
    content = _over(fit - sum(weighed.values(), none), spread)
    terms: dict[TermName, NDArray[np.float64]] = {
        "content": content,
        "topic_affinity": none,
        "section_affinity": none,
        "recency": settings.recency_weight * recency(candidates, now, settings.half_life_hours),
        "popularity": none if popularity is None else settings.popularity_weight * popularity,
    }
    terms |= {name: learnt[name] for name in terms if name in learnt}
    terms["content"] = content + sum((learnt[name] for name in learnt if name not in terms), none)
    terms |= {
        "editorial": settings.editorial_weight * candidates.weights,
        "followed": settings.follow_weight * followed(candidates, user_preferences).astype(np.float64),
        "chosen": settings.chosen_section_weight * chosen(candidates, user_preferences, settings.blend_reads),
        "reactions": settings.reaction_weight * reacted(candidates, user_preferences, settings.reaction_reach),
        "seen": none if times_seen is None else -settings.seen_penalty * np.log2(1.0 + times_seen),
    }
    return ScoreTerms(terms)


def _spread(fit: NDArray[np.float32], given: float | None) -> float:
    """What the fit is divided by, so that the other terms mean the same under every ranker."""
    if given is not None:
        return given
    return float(fit.astype(np.float64).std()) if len(fit) else 0.0


def _over(values: NDArray[np.floating[Any]], spread: float) -> NDArray[np.float64]:
    """[n]: their distances from their mean, in units of the spread; zeros where all are equal."""
    wide = values.astype(np.float64)
    if spread < 1e-9:
        return np.zeros_like(wide)
    return np.asarray((wide - wide.mean()) / spread)


def followed(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """[n]: True where topic, section or publisher is followed."""
    return (
        candidates.named(candidates.topics, user_preferences.followed.topics)
        | candidates.named(candidates.sections, user_preferences.followed.sections)
        | candidates.named(candidates.publishers, user_preferences.followed.publishers)
    )


def chosen(candidates: Candidates, user_preferences: UserPreferences, blend_reads: int) -> NDArray[np.float64]:
    """[n]: 1 in the sections picked at the first visit, falling evenly to 0 over the first `blend_reads` clicks."""
    hits = candidates.named(candidates.sections, user_preferences.chosen_sections)
    return hits.astype(np.float64) * max(0.0, 1.0 - len(user_preferences.clicks) / blend_reads)


def reacted(candidates: Candidates, user_preferences: UserPreferences, reach: int) -> NDArray[np.float64]:
    """[n]: pull of liked news less pull of news the reader wants less of, each from 0 to 1.

    A reaction reaches the `reach` candidates that are most like it, in the measure of their cosine: whatever it is
    about, it moves few cards. "Less" reaches one, since the card that was pressed is gone as well.
    """
    liked, disliked = user_preferences.liked, user_preferences.disliked
    return _pull(candidates, liked, reach) - _pull(candidates, disliked, min(reach, 1))


def _pull(candidates: Candidates, vectors: NDArray[np.float32], reach: int) -> NDArray[np.float64]:
    """[n]: the greatest cosine to a reaction that reaches the candidate; 0 where none does."""
    if not len(vectors) or not len(candidates) or not reach:
        return np.zeros(len(candidates))
    cosines = np.maximum(candidates.unit_vectors @ unit(vectors).T, 0.0).astype(np.float64)  # [n, m]
    if reach < len(candidates):
        last = np.partition(cosines, -reach, axis=0)[-reach]
        cosines[cosines < last] = 0.0
    return np.asarray(cosines.max(axis=1))
