"""One view's computation on its own store: a gradient, of which only the protected shared part leaves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.local_aggregate import ViewProtection
from device_app.privacy.noise_sources import NoiseSource
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
from device_app.training.multiview.searched_samples import SearchedSamples
from device_app.training.samples import ReaderSamples, StoredSamples
from device_app.training.tasks.full_gradient import ranker_batch
from device_app.training.tasks.task import pooled_gradient

NO_FEATURES_HALF_LIFE_HOURS = 48.0
"""Views have no features, so nothing asks how fast news ages."""


def view_gradient(
    job: ViewJob, database: Database, source: NoiseSource, rng: np.random.Generator, grad: GradientFn | None = None
) -> Mapping[str, NDArray[np.float64]] | None:
    """g_I of this view (Algorithm 1), clipped with noise of its own (eq. 7), after a step of its own user tower.

    None if the view has nothing to learn from. The tower's gradient, the loss and the number of samples never leave the
    view in any form.

    Formal guarantees: what is returned is `ViewProtection.noisy` of the clipped gradient of the shared parameters; the
    total over all that a view hands over is counted by its epsilon. Whether there is anything to hand over is not
    covered.
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
