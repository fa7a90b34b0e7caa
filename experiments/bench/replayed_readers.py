"""The opened secure sum of replayed readers, and which of MIND's readers can be replayed.

As in the fleet's replay (device_app/fleet/replay.py), samples are only clicks in shown lists, because histories have no
list; popularity is 0, because nothing was counted.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate
from backend.federation.protections.registry import resolve
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.systems.composition import SystemSpec
from device_app.ranking.ranker import FEATURES
from device_app.training.gradients import Params
from device_app.training.tasks.task import Update
from experiments.datasets.mind import RaggedArray
from experiments.datasets.samples import TrainingSamples
from experiments.ranking.models import STUDY_MODELS
from experiments.simulation.readers import Library
from protocol.protections import SecureSum
from protocol.ring import WeightedSum

RANKER_MODEL = STUDY_MODELS["feature ranker 256"]
POPULARITY = tuple(FEATURES).index("popularity")


class Updates(Protocol):
    """The updates of simulated devices, one for each reader."""

    def update(self, params: Params, reader: int, round_number: int) -> Update:
        """One reader's update under these weights."""


def opened(
    devices: Updates,
    weights: Params,
    readers: Sequence[int],
    number: int,
    protection: SecureSum,
    rng: np.random.Generator,
) -> WeightedSum:
    """Return the opened secure sum of these readers, without fixed-point rounding."""
    sums: dict[str, NDArray[np.float64]] = {}
    count = 0
    for reader in readers:
        update = devices.update(weights, reader, number)
        weight = min(update.samples, protection.weight_limit)
        factor = weight * clip_factor(update, protection.clip)
        for name, each in update.tensors.items():
            sums[name] = sums.get(name, 0.0) + factor * each.astype(np.float64)
        count += weight
    spread = protection.sigma * 2.0**-protection.fraction_bits * np.sqrt(len(readers))
    noisy = {name: each + rng.normal(scale=spread, size=each.shape) if spread else each for name, each in sums.items()}
    return WeightedSum(noisy, count)


def summed(
    devices: Updates,
    weights: Params,
    readers: Sequence[int],
    number: int,
    system: SystemSpec,
    rng: np.random.Generator,
) -> Aggregate:
    """Return a round's result for these readers: one sum, or the joined sums of its groups.

    The minimum is ten, or what a group requires. Readers come in the random order in which they were drawn, so the
    groups are random too. Raises TypeError for a system without sums of clipped vectors.
    """
    protection, join = secure_sum_of(system.protection), system.join
    parts = 0
    if join is not None:
        minimum = min(join.members, len(readers))
        terms = protection.terms("round-1", cohort=len(readers), cohort_minimum=minimum, coordinates=1)
        parts = join.split_of(len(readers)).parts_of(len(readers), terms)
    if join is None or not parts:
        return Aggregate.of_opened(opened(devices, weights, readers, number, protection, rng), protection.clip)
    sums = [opened(devices, weights, readers[part::parts], number, protection, rng) for part in range(parts)]
    return join.join(sums, protection.clip, resolve(protection).noise_variance(1))


def clip_factor(update: Update, clip: float) -> float:
    """Return the factor that scales the whole update into the L2 ball."""
    length = float(np.sqrt(sum(np.square(each, dtype=np.float64).sum() for each in update.tensors.values())))
    return min(1.0, clip / length) if length else 1.0


def shown_only(samples: TrainingSamples) -> TrainingSamples:
    """Return the samples with a shown list, and the readers who have any."""
    rows = np.flatnonzero(samples.shown.lengths > 0)
    users = np.unique(samples.reader[rows])
    return TrainingSamples(
        reader=np.searchsorted(users, samples.reader[rows]),
        clicks=samples.clicks[rows],
        positive=samples.positive[rows],
        shown=RaggedArray.of([samples.shown[int(row)] for row in rows]),
        read=tuple(samples.read[int(user)] for user in users),
        popular=samples.popular,
        news=samples.news,
    )


def uncounted(library: Library) -> Library:
    """Return the library without popularity, since that of the train split contains the very clicks that are trained
    on.
    """
    features = library.features
    assert features is not None

    def columns(clicks: NDArray[np.int64], candidates: NDArray[np.int64]) -> NDArray[np.float32]:
        found = features(clicks, candidates)
        found[..., POPULARITY] = 0.0
        return found

    return replace(library, features=columns)
