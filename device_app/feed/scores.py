"""Adjusts local scores: the ranker's score (fit) plus small terms, in units of its standard deviation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, unit
from device_app.feed.preference_reader import UserPreferences
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
    "rare",
    "seen",
]


def age_hours(candidates: Candidates, now: datetime) -> NDArray[np.float64]:
    """Return hours since publication, [n]; a future date counts as now."""
    return np.maximum(0.0, (now.timestamp() - candidates.published_sec) / 3_600)


def recency(candidates: Candidates, now: datetime, half_life_hours: float) -> NDArray[np.float64]:
    """Return 2 ** (-age / half-life), [n]: 1 for an article published now."""
    return np.exp2(-age_hours(candidates, now) / half_life_hours)


SPREAD_WITHOUT_CLICKS = 0.06
"""Standard deviation of the default ranker's fit over a pool, for the median reader.

On MIND's dev set it ranges from .045 to .078.
"""


@dataclass(frozen=True)
class ScoreTerms:
    """The terms of n candidates' scores, by name: each [n], in standard deviations of the fit.

    Reasons are derived from these terms alone (`feed.reasons`): they name what raised a story above the average.
    """

    terms: Mapping[TermName, NDArray[np.float64]]

    @property
    def total(self) -> NDArray[np.float64]:
        """The score, which is the sum of the terms, [n]."""
        return np.asarray(sum(self.terms.values()), dtype=np.float64)

    def lifts(self, row: int) -> dict[TermName, float]:
        """Return how much each term raises this row above the mean of all rows.

        What all rows share doesn't affect the order.
        """
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
    rare: NDArray[np.float64] | None = None,
) -> ScoreTerms:
    """Return the terms of the scores: fit, recency, popularity, weights, names and reactions.

    Their sum is the score; articles seen before get a lower one. fit [n] is the ranker's scores, which are
    standardised. weighed holds what each of the ranker's own features contributes, [n] by name
    (`Ranker.contributions`): those terms are part of the fit and are not counted twice. popularity [n] lies between -1
    and 1 (`feed.lists`); None if unknown. times_seen [n] counts the feeds in which the reader saw each without opening
    it: one costs seen_penalty, three cost twice that. None: no article was seen. rare [n]: 0 to 1 (`feed.rare`);
    None: no lift.

    Without clicks, the fit consists of the features alone and its small spread would exaggerate them, so a typical
    spread is used.
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
        "rare": none if rare is None else settings.rare_weight * rare,
        "seen": none if times_seen is None else -settings.seen_penalty * np.log2(1.0 + times_seen),
    }
    return ScoreTerms(terms)


def _spread(fit: NDArray[np.float32], fixed: float | None) -> float:
    """Return the divisor of the fit, so that the other terms have the same weight under every ranker."""
    if fixed is not None:
        return fixed
    return float(fit.astype(np.float64).std()) if len(fit) else 0.0


def _over(values: NDArray[np.floating[Any]], spread: float) -> NDArray[np.float64]:
    """Return deviations from the mean in units of the spread, [n]; zeros if all are equal."""
    wide = values.astype(np.float64)
    if spread < 1e-9:
        return np.zeros_like(wide)
    return np.asarray((wide - wide.mean()) / spread)


def followed(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """Return True where the topic, section or publisher is followed, [n]."""
    return (
        candidates.named(candidates.topics, user_preferences.followed.topics)
        | candidates.named(candidates.sections, user_preferences.followed.sections)
        | candidates.named(candidates.publishers, user_preferences.followed.publishers)
    )


def chosen(candidates: Candidates, user_preferences: UserPreferences, blend_reads: int) -> NDArray[np.float64]:
    """Return 1 in sections picked at the first visit, 0 elsewhere, [n].

    The 1 falls linearly to 0 over the first `blend_reads` clicks.
    """
    hits = candidates.named(candidates.sections, user_preferences.chosen_sections)
    return hits.astype(np.float64) * max(0.0, 1.0 - len(user_preferences.clicks) / blend_reads)


def reacted(candidates: Candidates, user_preferences: UserPreferences, reach: int) -> NDArray[np.float64]:
    """Return the effect of liked articles minus that of disliked ones, each between 0 and 1, [n].

    A reaction affects only the `reach` most similar candidates, weighted by cosine, so that it moves few cards
    regardless of its subject. "Less" affects one more card besides the dismissed one.
    """
    liked, disliked = user_preferences.liked, user_preferences.disliked
    return _pull(candidates, liked, reach) - _pull(candidates, disliked, min(reach, 1))


def _pull(candidates: Candidates, vectors: NDArray[np.float32], reach: int) -> NDArray[np.float64]:
    """Return the highest cosine to a reaction that reaches the candidate, [n]; 0 if none does."""
    if not len(vectors) or not len(candidates) or not reach:
        return np.zeros(len(candidates))
    cosines = np.maximum(candidates.unit_vectors @ unit(vectors).T, 0.0).astype(np.float64)  # [n, m]
    if reach < len(candidates):
        last = np.partition(cosines, -reach, axis=0)[-reach]
        cosines[cosines < last] = 0.0
    return np.asarray(cosines.max(axis=1))
