"""Uni-FedRec's recall model on MIND's readers.

It works as served: with the device's clusters, decomposition and noise, and the server's decoder, aggregation,
popularity and merge. The model starts as in the first release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from backend.popularity.estimate import SHARPNESS
from backend.recall.decode import aggregate
from backend.recall.posterior import Bound, ScorePrior, clipped, within_l1
from backend.releases.codebooks import calibrate, pseudo_readers, topic_centroids
from backend.releases.publish import SEED
from device_app.privacy.noise_sources import SeededNoise, laplace
from device_app.reading.click_clusters import average_linkage, membership, quotas
from experiments.recall.interests import Channels, lists
from experiments.recall.measure import PossibleLists, Rows
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.tower import Vectors
from exporters.signature import parameters
from models.builders.recall import uni_fedrec_recall
from models.recall.basis import BasisRecall
from models.shapes import BASIS_SIZE, CHANNELS_LIMIT

Weights = Mapping[str, NDArray[np.float32]]

BOUNDS: dict[str, Callable[[float], Bound]] = {"basis_laplace": clipped, "basis_l1": within_l1}
"""By report mode: the bound of a channel's scores before noise, given the clip."""


@dataclass(frozen=True)
class FirstModel:
    """The recall model of a first release with these articles, and the distance at which clusters are cut."""

    model: BasisRecall
    distance: float

    @classmethod
    def of(cls, news: Vectors) -> FirstModel:
        """Build it from news vectors [n, D] of length 1."""
        torch.manual_seed(SEED)
        centroids, topics = topic_centroids(news, basis_size=BASIS_SIZE, seed=SEED)
        model = uni_fedrec_recall()
        model.cosine_start(torch.from_numpy(centroids))
        readers = pseudo_readers(news, topics, np.random.default_rng(SEED))
        found = calibrate(readers, lambda clicks: contexts(model, clicks), channels_limit=CHANNELS_LIMIT, seed=SEED)
        return cls(model, found.cluster_distance)

    @property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of the model's weights, by name."""
        return {name: value.numpy().copy() for name, value in parameters(self.model).items()}

    def under(self, weights: Weights) -> FirstModel:
        """Return the same model with other weights; clusters are still cut at the same distance."""
        model = uni_fedrec_recall()
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(torch.from_numpy(np.asarray(weights[name])))
        return FirstModel(model, self.distance)


def contexts(model: BasisRecall, clicks: Vectors) -> Vectors:
    """Return g [H, D] of one history [H, D]."""
    with torch.no_grad():
        rows = torch.from_numpy(np.ascontiguousarray(clicks))[None]
        return np.asarray(model.contexts(rows, torch.ones(rows.shape[:2]))[0].numpy())


@dataclass(frozen=True)
class Decomposed:
    """All readers' channels, grouped by reader, decomposed on the basis.

    r_c [c, D], raw scores [c, B], each channel's number of clicks; the model's keys and values; topics: the values as
    contexts.
    """

    channels: Vectors
    scores: NDArray[np.float64]
    counts: tuple[tuple[int, ...], ...]
    keys: Vectors
    values: Vectors
    topics: Vectors

    @classmethod
    def of(cls, found: FirstModel, news: Vectors, histories: Sequence[Rows]) -> Decomposed:
        """Compute what these readers' devices compute before any protection."""
        vectors, counts = [], []
        for rows in histories:
            states = contexts(found.model, news[rows])
            labels = average_linkage(states, found.distance, CHANNELS_LIMIT)
            members = membership(labels, CHANNELS_LIMIT)[: labels.max() + 1]
            with torch.no_grad():
                mine = found.model.channels(torch.from_numpy(states)[None], torch.from_numpy(members)[None])[0]
            vectors.append(mine.numpy())
            counts.append(tuple(np.bincount(labels).tolist()))
        keys, values = (each.detach().numpy() for each in (found.model.basis_keys, found.model.basis_values))
        channels, seen_as = np.concatenate(vectors), found.model.attention.value.weight.detach().numpy()
        scores = (channels @ keys.T).astype(np.float64)
        return cls(channels, scores, tuple(counts), keys, values, values @ seen_as.T)

    def served(
        self, study: EmbeddedSplit, kind: str, *, clip: float, noise_scale: float, draw: int = 1
    ) -> PossibleLists:
        """Return lists for reports of this kind; with noise scale 0, scores are only clipped."""
        bound = BOUNDS[kind](clip)
        sent = bound(self.scores)
        if noise_scale:
            sent = sent + laplace(SeededNoise(draw), noise_scale, sent.shape)
            sent = ScorePrior.of(self.keys, self.topics, bound, noise_scale).given(sent)
        return lists(study, Channels(aggregate(sent, self.values), self.counts), SHARPNESS)

    def naive(self, study: EmbeddedSplit, *, clip: float, noise_scale: float, draw: int = 1) -> PossibleLists:
        """Return lists of the paper's decoder, which uses noisy scores unchanged."""
        sent = clipped(clip)(self.scores) + laplace(SeededNoise(draw), noise_scale, self.scores.shape)
        return lists(study, Channels(aggregate(sent, self.values), self.counts), SHARPNESS)

    def whole(self, study: EmbeddedSplit) -> PossibleLists:
        """Return lists for the channels' own vectors, without the basis."""
        return lists(study, Channels(self.channels, self.counts), SHARPNESS)


def scale_of(kind: str, epsilon: float, clip: float) -> float:
    """Return the lambda at which a report of C_max channels costs epsilon, counting all channels."""
    sensitivity = 2 * clip * (BASIS_SIZE if kind == "basis_laplace" else 1)
    return sensitivity * CHANNELS_LIMIT / epsilon


def unified_scores(found: FirstModel, clicks: Vectors, candidates: Vectors) -> NDArray[np.float64]:
    """Return z(d) of candidates [R, D] for one history [H, D], as in training: clipped, without noise."""
    if not len(clicks):
        return np.zeros(len(candidates))
    states = contexts(found.model, clicks)
    labels = average_linkage(states, found.distance, CHANNELS_LIMIT)
    with torch.no_grad():
        members = torch.from_numpy(membership(labels, CHANNELS_LIMIT))[None]
        scores = found.model.clip(found.model.decompose(torch.from_numpy(states)[None], members))
        shares = torch.from_numpy(quotas(labels, CHANNELS_LIMIT).astype(np.float32))[None]
        interests = found.model.aggregate(scores)
        unified = found.model.unified_score(interests, shares, torch.from_numpy(candidates)[None])
    return np.asarray(unified[0].numpy(), dtype=np.float64)
