"""Compute one view's gradient on its own store; only a protected part of it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.local_aggregate import ViewProtection
from device_app.privacy.noise_sources import NoiseSource
from device_app.ranking.padding import left_padded
from device_app.ranking.views_ranker import user_tower
from device_app.reading.interest_profile import InterestNames
from device_app.store.clicks import Clicks
from device_app.store.database import Database
from device_app.store.impressions import ImpressionStore
from device_app.store.news import NewsStore
from device_app.store.opinions import Stances
from device_app.store.preferences import Preferences, TowerStore
from device_app.store.searches import Searches
from device_app.training.gradients import GRADIENT_PREFIX, GradientFn, OnnxGradients
from device_app.training.multiview.job import ViewJob
from device_app.training.samples import ReaderSamples, Samples, StoredSamples
from device_app.training.tasks.full_gradient import ranker_batch
from device_app.training.tasks.task import pooled_gradient
from protocol.recall import CLICKS_LIMIT

NO_FEATURES_HALF_LIFE_HOURS = 48.0
"""Placeholder half-life of articles: views have no features, so it is never used."""


def view_gradient(
    job: ViewJob, database: Database, source: NoiseSource, rng: np.random.Generator, grad: GradientFn | None = None
) -> Mapping[str, NDArray[np.float64]] | None:
    """Return g_I of this view (Algorithm 1), clipped and with its own noise (eq. 7).

    The view's own user tower makes a step first. None if the view has nothing to learn from. The tower's gradient, the
    loss and the number of samples never leave the view in any form.

    Formal guarantees: what is returned is `ViewProtection.noisy` of the clipped gradient of the shared parameters; its
    epsilon covers everything that a view hands over. Whether there is anything to hand over is not covered.
    """
    samples = _samples(job, database)
    if not samples.available:
        return None
    towers = TowerStore(database)
    own = user_tower(job.parameters, towers.get(job.model))
    drawn = samples.draw(negatives=job.negatives, limit=job.samples_limit, rng=rng)
    update = pooled_gradient(
        len(drawn),
        lambda rows: ranker_batch(drawn, rows),
        {**job.parameters, **own},
        grad or OnnxGradients(job.graph),
    )
    shared = {name: update.tensors[GRADIENT_PREFIX + name] for name in job.parameters}
    protection = ViewProtection(job.terms.clip, job.terms.sigma)
    noisy = protection.noisy(protection.bounded(shared), source)
    if own:
        rate = np.float32(job.terms.tower_rate)
        towers.keep(job.model, {name: own[name] - rate * update.tensors[GRADIENT_PREFIX + name] for name in own})
    return {GRADIENT_PREFIX + name: each for name, each in noisy.tensors.items()}


def _samples(job: ViewJob, database: Database) -> ReaderSamples | SearchedSamples:
    if job.view == "searches":
        return SearchedSamples(Searches(database), Stances(database), job.encoder, job.items)
    reading = StoredSamples(
        Clicks(database),
        ImpressionStore(database),
        NewsStore(database),
        half_life_hours=NO_FEATURES_HALF_LIFE_HOURS,
        muted=InterestNames(Preferences(database)).muted,
    )
    return reading.samples(job.encoder)


TimedQuery = tuple[datetime, NDArray[np.float32]]


class SearchedSamples:
    """A SampleSource over the view's own store and the item set.

    A positive is an article opened from search results while something was saved or followed; in place of clicks, the
    user's rows are the vectors of what was saved or followed by then (the newest fifty). Negatives are items that were
    never opened from results. Sensitive: see ReaderSamples.
    """

    def __init__(
        self,
        searches: Searches,
        stances: Stances,
        encoder: str,
        items: tuple[Sequence[str], NDArray[np.float32]],
    ) -> None:
        held = searches.meanings(encoder)
        wished = [(one.saved_at, ("search", one.words)) for one in searches.saved()]
        wished += [(since, ("topic", name)) for name, since in stances.followed_topics()]
        queries: list[TimedQuery] = sorted(
            ((at, held[key].vector) for at, key in wished if key in held), key=lambda query: query[0]
        )
        opened = searches.openings()
        self._positives = [
            (held["news", news_id].vector, rows)
            for news_id, at in opened
            if ("news", news_id) in held and len(rows := _before(queries, at))
        ]
        ever = {news_id for news_id, _ in opened}
        ids, vectors = items
        self._others = vectors[[place for place, news_id in enumerate(ids) if news_id not in ever]]

    @property
    def available(self) -> int:
        """The number of articles that samples can be made of."""
        return len(self._positives) if len(self._others) else 0

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Return newly drawn samples.

        Raises ValueError if there is nothing to draw from, or for features, which a view doesn't have.
        """
        if features:
            raise ValueError(f"features: this view computes none, got {', '.join(features)}")
        if not self.available:
            raise ValueError("samples: no story has been opened from search results yet")
        chosen = [self._positives[place] for place in rng.permutation(len(self._positives))[:limit]]
        users = [left_padded(rows) for _, rows in chosen]
        offered = [
            np.concatenate([clicked[None], self._others[rng.integers(len(self._others), size=negatives)]])
            for clicked, _ in chosen
        ]
        return Samples(
            clicks=np.concatenate([rows for rows, _ in users]),
            click_mask=np.concatenate([mask for _, mask in users]),
            candidates=np.stack(offered),
        )


def _before(queries: Sequence[TimedQuery], at: datetime) -> NDArray[np.float32]:
    rows = [vector for since, vector in queries if since <= at][-CLICKS_LIMIT:]
    return np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)
