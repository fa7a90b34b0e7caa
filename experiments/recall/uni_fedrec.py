"""Uni-FedRec's recall model on MIND's readers: channels, scores on the basis, the paper's noise, the server's lists.

As it is served: the device's clusters, decomposition and noise, the server's reading of noisy scores, aggregation,
popularity and merge. The model starts as the first release has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from backend.popularity.prior import SHARPNESS
from backend.recall.compose import aggregate
from backend.recall.score_prior import Bound, ScorePrior, clipped, within_l1
from backend.releases.calibration import calibrate, pseudo_readers
from backend.releases.codebooks import topic_centroids
from backend.releases.publish import SEED
from device_app.interests.click_clusters import average_linkage, membership, quotas
from device_app.privacy.noise_sources import SeededNoise, laplace
from experiments.recall.interests import Channels, lists
from experiments.recall.measure import PossibleLists
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.tower import Vectors
from experiments.recall.warm import Rows
from exporters.signature import parameters
from models.builders.recall import uni_fedrec_recall
from models.recall.basis import BasisRecall
from models.shapes import BASIS_SIZE, CHANNELS_LIMIT

Weights = Mapping[str, NDArray[np.float32]]

BOUNDS: dict[str, Callable[[float], Bound]] = {"basis_laplace": clipped, "basis_l1": within_l1}
"""By report mode: what a channel's scores are brought within before noise, given the clip."""


@dataclass(frozen=True)
class FirstModel:
    """The recall model of a first release over these news, and the distance at which its clusters are cut."""

    model: BasisRecall
    distance: float

    @classmethod
    def of(cls, news: Vectors) -> FirstModel:
        """news [n, D], of length 1."""
        torch.manual_seed(SEED)
        centroids, topics = topic_centroids(news, basis_size=BASIS_SIZE, seed=SEED)
        model = uni_fedrec_recall()
        model.cosine_start(torch.from_numpy(centroids))
        readers = pseudo_readers(news, topics, np.random.default_rng(SEED))
        found = calibrate(readers, lambda clicks: contexts(model, clicks), channels_limit=CHANNELS_LIMIT, seed=SEED)
        return cls(model, found.cluster_distance)

    @property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Of the start."""
        return {name: value.numpy().copy() for name, value in parameters(self.model).items()}

    def under(self, weights: Weights) -> FirstModel:
        """The same model with other weights; clusters are still cut at the same distance."""
        model = uni_fedrec_recall()
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(torch.from_numpy(np.asarray(weights[name])))
        return FirstModel(model, self.distance)


def contexts(model: BasisRecall, clicks: Vectors) -> Vectors:
    """g [H, D] of one history [H, D]."""
    with torch.no_grad():
        rows = torch.from_numpy(np.ascontiguousarray(clicks))[None]
        return np.asarray(model.contexts(rows, torch.ones(rows.shape[:2]))[0].numpy())


@dataclass(frozen=True)
class Decomposed:
    """All readers' channels, one reader's after the other: r_c [c, D], raw scores [c, B], and each one's clicks; the
    model's keys and values, and topics, the values as contexts."""

    channels: Vectors
    scores: NDArray[np.float64]
    counts: tuple[tuple[int, ...], ...]
    keys: Vectors
    values: Vectors
    topics: Vectors

    @classmethod
    def of(cls, found: FirstModel, news: Vectors, histories: Sequence[Rows]) -> Decomposed:
        """What the devices of these readers compute before any protection."""
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
        """The lists that reports of this kind get; a noise scale of 0 for none, where scores are only bounded."""
        bound = BOUNDS[kind](clip)
        sent = bound(self.scores)
        if noise_scale:
            sent = sent + laplace(SeededNoise(draw), noise_scale, sent.shape)
            sent = ScorePrior.of(self.keys, self.topics, bound, noise_scale).given(sent)
        return lists(study, Channels(aggregate(sent, self.values), self.counts), SHARPNESS)

    def naive(self, study: EmbeddedSplit, *, clip: float, noise_scale: float, draw: int = 1) -> PossibleLists:
        """The lists of the paper's decoder, which takes noisy scores as they are."""
        sent = clipped(clip)(self.scores) + laplace(SeededNoise(draw), noise_scale, self.scores.shape)
        return lists(study, Channels(aggregate(sent, self.values), self.counts), SHARPNESS)

    def whole(self, study: EmbeddedSplit) -> PossibleLists:
        """The lists of the channels' own vectors, no basis between."""
        return lists(study, Channels(self.channels, self.counts), SHARPNESS)


def scale_of(kind: str, epsilon: float, clip: float) -> float:
    """lambda at which a report of C_max channels honestly costs epsilon."""
    sensitivity = 2 * clip * (BASIS_SIZE if kind == "basis_laplace" else 1)
    return sensitivity * CHANNELS_LIMIT / epsilon


def unified_scores(found: FirstModel, clicks: Vectors, candidates: Vectors) -> NDArray[np.float64]:
    """z(d) of candidates [R, D] for one history [H, D], as training sees it: clipped, without noise."""
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
