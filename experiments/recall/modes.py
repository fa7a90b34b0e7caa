"""The lists that readers of one split get in each report mode, by the server's own decoders if it has one.

Lists are always ranked by s <v, d> + log pop; `EmbeddedSplit` holds what all modes share.

One mode exists only here: a random direction biased towards the reader's (PrivUnit, Bhowmick et al. 2018), the closest
rival of `code`. No device offers it: it does no better than `code`, and its guarantee is that of an ideal distribution.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri

from backend.recall.code_lists import aggregated
from backend.recall.pool_codes import decode, encode, train_book
from backend.recall.posterior import code_weights, normalised, subset_weights, topics_weights
from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.noise_sources import NoiseSource, SeededNoise, laplace
from experiments.recall.measure import DEPTH, PossibleLists, Rows, WarmSplit, best
from experiments.recall.tower import Vectors, reader_vectors

Floats = NDArray[np.float64]

DIRECTIONS = 8
GRID = 2.0**-20
SPLITS = 400


@dataclass(frozen=True)
class PrivUnit:
    """A unit vector v of R^d: with probability p from the cap <v, u> >= gamma around the reader's u, else from outside.

    epsilon: eps of one report. dimensions: d = 8. p and gamma are those with ln(p / (1 - p)) + ln((1 - q) / q) = eps,
    q the share of the sphere in the cap, for which E<v, u> is greatest (Bhowmick et al. 2018; Asi, Feldman and Talwar,
    ICML 2022, for the choice).

    Formal guarantees, in pure local differential privacy, for any two readers whatsoever: the density of what is sent
    is p / q inside the cap and (1 - p) / (1 - q) outside, so one report costs eps, for the ideal distribution.

    What this one lacks, unlike `code`: the distribution is continuous and sampled with doubles. The coin with chance p
    is drawn from 53 bits, the direction by inverse distribution functions of uniforms of 53 bits, and what is sent is
    rounded to a grid of 2^-20, which is post-processing. No proof covers the low bits, so the guarantee is that of the
    ideal distribution. S fresh reports cost S eps. Not covered: that and when a reader reports, and from which address.
    """

    epsilon: float
    dimensions: int = DIRECTIONS

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and 2.0**-10 <= self.epsilon <= 64):
            raise ValueError(f"epsilon must be 2^-10 to 64; got {self.epsilon}")
        if self.dimensions < 2:
            raise ValueError(f"dimensions must be 2 or more; got {self.dimensions}")

    @property
    def cap_chance(self) -> float:
        """p, the probability that the vector sent is from the cap."""
        return _best(self.epsilon, self.dimensions)[0]

    @property
    def cap_edge(self) -> float:
        """gamma: the cap holds the v with <v, u> >= gamma."""
        return _best(self.epsilon, self.dimensions)[1]

    @property
    def cap_share(self) -> float:
        """q, the share of the sphere that the cap covers."""
        return float(cap_share(self.cap_edge, self.dimensions))

    @property
    def mean_cosine(self) -> float:
        """E<v, u>: dividing by it makes v an unbiased estimate of u."""
        return mean_cosine(self.cap_chance, self.cap_edge, self.dimensions)

    def release(self, direction: NDArray[np.floating], source: NoiseSource) -> NDArray[np.float64]:
        """Directions [n, d] or [d], of any positive length, to unit vectors of the same shape. See the class.

        Raises ValueError for another width, or a direction that is zero or not finite.
        """
        rows = np.atleast_2d(direction).astype(np.float64)
        if rows.shape[1] != self.dimensions or not np.isfinite(rows).all():
            raise ValueError(f"direction has shape {direction.shape} or values not finite; expected {self.dimensions}")
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not lengths.all():
            raise ValueError("direction is zero: nothing is released")
        unit = rows / lengths
        n, d = unit.shape
        uniform = _uniform(source, n * (d + 2)).reshape(n, d + 2)
        inside, depth, normal = uniform[:, 0] < self.cap_chance, uniform[:, 1], ndtri(uniform[:, 2:])
        q = self.cap_share
        # Quantile of <v, u> under the uniform distribution: the cap is its top q, the rest the bottom 1 - q.
        quantile = np.where(inside, 1 - q * depth, (1 - q) * depth)
        cosine = 2 * betaincinv((d - 1) / 2, (d - 1) / 2, quantile) - 1
        sideways = normal - (normal * unit).sum(axis=1, keepdims=True) * unit
        sideways /= np.linalg.norm(sideways, axis=1, keepdims=True)
        sent = cosine[:, None] * unit + np.sqrt(np.maximum(0.0, 1 - cosine**2))[:, None] * sideways
        rounded: NDArray[np.float64] = np.round(sent / GRID) * GRID
        return rounded.reshape(direction.shape)


def direction_weights(
    shares: Floats, directions: Floats, vector: Floats, *, edge: float, epsilon: float, cosines: Floats
) -> Floats:
    """Weights after PrivUnit: a vector v with <v, u> >= edge is e^eps times as likely as another, u being the reader's.

    directions [K, d] are the prototypes in the report's space and vector [d] the report, all of length 1. A reader's
    direction u differs from its prototype: it lies at one of the cosines c (below 1, equally likely) and in any
    direction, u = c v_k + sqrt(1 - c^2) w with w uniform on the sphere orthogonal to v_k. So P(<v, u> >= edge | k) is a
    mean share of spheres in caps; a cap around the prototype itself would contain no reports at a large epsilon.
    """
    along = np.clip(directions @ vector, -1.0, 1.0)[:, None]  # [K, 1]
    across = np.sqrt((1 - cosines**2) * np.maximum(1 - along**2, 1e-12))  # [K, c]
    inside = cap_share((edge - cosines * along) / across, directions.shape[1] - 1).mean(axis=1)
    return normalised(shares * (math.exp(-epsilon) + (1 - math.exp(-epsilon)) * inside))


def cap_share(edge: Floats | float, dimensions: int) -> Floats:
    """Return q, the share of the unit sphere of R^d with <v, u> >= edge, elementwise; edges may lie beyond -1 and 1."""
    half = (dimensions - 1) / 2
    return np.asarray(betainc(half, half, np.clip((1 - np.asarray(edge)) / 2, 0.0, 1.0)), dtype=np.float64)


def mean_cosine(chance: float, edge: float, dimensions: int) -> float:
    """Return E<v, u> of a vector that is from the cap with this probability, else from the rest."""
    half = (dimensions - 1) / 2
    q = float(cap_share(edge, dimensions))
    # The integral of t (1 - t^2)^(half - 1) over [edge, 1], over that of (1 - t^2)^(half - 1) over [-1, 1].
    moment = (1 - edge**2) ** half / (2 * half) / (math.sqrt(math.pi) * math.gamma(half) / math.gamma(half + 0.5))
    return float(moment * (chance / q - (1 - chance) / (1 - q)))


@lru_cache(maxsize=32)
def _best(epsilon: float, dimensions: int) -> tuple[float, float]:
    """Return p and gamma of the greatest mean cosine, over splits of epsilon between the coin and the cap's share."""
    half = (dimensions - 1) / 2
    found: list[tuple[float, float, float]] = []
    for at in range(SPLITS):
        coin = epsilon * at / SPLITS
        chance = 1 / (1 + math.exp(-coin))
        share = 1 / (1 + math.exp(epsilon - coin))
        edge = 1 - 2 * float(betaincinv(half, half, share))
        found.append((mean_cosine(chance, edge, dimensions), chance, edge))
    _, chance, edge = max(found)
    return chance, edge


def _uniform(source: NoiseSource, n: int) -> NDArray[np.float64]:
    """Return n uniforms of 53 bits, none of them 0 or 1."""
    words = np.frombuffer(source.uniform_bits(8 * n), dtype="<u8") >> np.uint64(11)
    return (words.astype(np.float64) + 0.5) * 2.0**-53


SMOOTHING = 0.1
"""Number of clicks assumed for an article without clicks."""
DRAWS = 3


@dataclass(frozen=True)
class EmbeddedSplit:
    """One split in one tower's vectors: articles [n, D], and clicks [n] by article, whose logarithm is the prior.

    The reference is `popular`; a study of attacks uses the counts of all clicks instead of recent ones.
    """

    split: WarmSplit
    news: Vectors
    clicks: NDArray[np.int64]

    @cached_property
    def log_popularity(self) -> NDArray[np.float32]:
        """Return the logarithm of the prior, [n]."""
        return np.asarray(np.log(self.clicks + SMOOTHING), dtype=np.float32)

    @cached_property
    def readers(self) -> Vectors:
        """Return the measured readers' unit vectors [u, D]."""
        return reader_vectors(self.news, self.split.measured.histories)

    @cached_property
    def trained(self) -> Vectors:
        """Return the training readers' unit vectors [t, D]."""
        return reader_vectors(self.news, [clicks[-50:] for clicks in self.split.train])

    def popular(self, depth: int = DEPTH) -> PossibleLists:
        """Return the popular list, the same for every reader."""
        order = best(self.log_popularity[None, :], depth)[0]
        return PossibleLists.common(order, len(self.split.measured))

    def scores(self, vectors: Vectors, sharpness: float) -> NDArray[np.float32]:
        """Return s <v, d> + log pop of vectors [q, D]: [q, n]."""
        return sharpness * (vectors @ self.news.T) + self.log_popularity

    def exact(self, sharpness: float, depth: int = DEPTH) -> PossibleLists:
        """Return lists for the reader's exact vector, without noise."""
        return PossibleLists.own(best(self.scores(self.readers, sharpness), depth))

    def broadcast(self, sharpness: float, subspaces: int, depth: int = DEPTH) -> PossibleLists:
        """Return lists for the reader's exact vector, computed on the device, over product-quantised articles."""
        quantised = decode(self.codes(subspaces), train_book(self.news, subspaces))
        prior = self.log_popularity.astype(np.float16).astype(np.float32)
        return PossibleLists.own(best(sharpness * (self.readers @ quantised.T) + prior, depth))

    def codes(self, subspaces: int) -> NDArray[np.uint8]:
        """Return the articles' product-quantisation codes, uint8 [n, M]."""
        return encode(self.news, train_book(self.news, subspaces))

    def ranking(self, sharpness: float) -> NDArray[np.float32]:
        """Return a device's scores of the candidates, [u, n]."""
        return self.scores(self.readers, sharpness)


@dataclass(frozen=True)
class ReportCodebook:
    """Prototypes [K, D] of length 1, each one's share of readers, and typical topic histograms [K, K]."""

    prototypes: Vectors
    shares: Floats
    typical: Floats

    @property
    def size(self) -> int:
        return len(self.prototypes)


def learned_book(study: EmbeddedSplit, size: int, seed: int) -> ReportCodebook:
    """Return k-means of the training readers' vectors, with the training readers' shares and histograms."""
    prototypes = _kmeans(study.trained, size, seed)
    codes = nearest(study.trained, prototypes)
    counts = np.bincount(codes, minlength=size)
    histograms = np.stack([topic_histogram(study.news[clicks[-50:]], prototypes) for clicks in study.split.train])
    typical = np.stack([histograms[codes == k].mean(axis=0) if counts[k] else np.eye(size)[k] for k in range(size)])
    return ReportCodebook(prototypes, (counts + 0.5) / (counts + 0.5).sum(), typical)


def topic_book(study: EmbeddedSplit, size: int, seed: int) -> ReportCodebook:
    """Return topic centroids of the pool with equal shares, as in a first release."""
    return ReportCodebook(prototypes_of(study, size, seed), np.full(size, 1 / size), np.eye(size))


def nearest(vectors: Vectors, prototypes: Vectors) -> Rows:
    """Return the nearest prototype's code for each vector [q, D]."""
    return np.asarray(np.argmax(vectors @ prototypes.T, axis=1), dtype=np.int64)


def topic_histogram(clicks: Vectors, prototypes: Vectors) -> Floats:
    """Return the shares [K] of clicks [H, D] by nearest prototype."""
    return np.bincount(nearest(clicks, prototypes), minlength=len(prototypes)) / len(clicks)


@dataclass(frozen=True)
class Mixtures:
    """The lists of one codebook's weighted prototypes over the articles, as the server finds them."""

    study: EmbeddedSplit
    book: ReportCodebook
    sharpness: float

    def lists(self, weights: Floats, depth: int = DEPTH) -> Rows:
        """Return the lists [q, depth] of weights [q, K]."""
        return best(self.study.scores(aggregated(weights, self.book.prototypes), self.sharpness), depth)

    def code(self, epsilon: float, depth: int = DEPTH) -> PossibleLists:
        """Return lists by k-ary randomised response on the nearest prototype, exact expectation."""
        K = self.book.size
        lists = self.lists(np.stack([code_weights(self.book.shares, epsilon, code) for code in range(K)]), depth)
        true = nearest(self.study.readers, self.book.prototypes)  # [u]
        odds = np.full((K, K), 1 / (1 + (K - 1) * np.exp(-epsilon)) * np.exp(-epsilon))
        np.fill_diagonal(odds, 1 / (1 + (K - 1) * np.exp(-epsilon)))
        return PossibleLists(lists, np.tile(np.arange(K), (len(true), 1)), odds[true])

    def subset(self, epsilon: float) -> PossibleLists:
        """Return lists by subset selection of the nearest prototype, averaged over draws of the device's mechanism."""
        mechanism = TopicSubset(self.book.size, epsilon)
        true = nearest(self.study.readers, self.book.prototypes)

        def weights(noise: SeededNoise) -> Floats:
            drawn = [mechanism.release(int(topic), noise) for topic in true]
            return np.stack([subset_weights(self.book.shares, epsilon, topics) for topics in drawn])

        return self._drawn(weights)

    def topics(self, epsilon: float) -> PossibleLists:
        """Return lists by a merged topic histogram with Laplace noise, averaged over draws."""
        histories = self.study.split.measured.histories
        histograms = np.stack([topic_histogram(self.study.news[rows], self.book.prototypes) for rows in histories])

        def weights(noise: SeededNoise) -> Floats:
            scale = 2 / epsilon  # two histograms differ by at most 2 in L1
            noisy = histograms + laplace(noise, scale, histograms.shape)
            return np.stack([topics_weights(self.book.shares, epsilon, row, self.book.typical) for row in noisy])

        return self._drawn(weights)

    def direction(self, epsilon: float) -> PossibleLists:
        """Return lists by PrivUnit in the 8 principal directions of the articles, averaged over draws."""
        axes = _principal_axes(self.study.news)
        mechanism = PrivUnit(epsilon)
        edge = mechanism.cap_edge
        directions = _unit(self.book.prototypes.astype(np.float64) @ axes.T)
        trained = _unit(self.study.trained @ axes.T)
        theirs = directions[nearest(self.study.trained, self.book.prototypes)]
        cosines = np.quantile((trained * theirs).sum(axis=1), np.arange(0.1, 0.95, 0.1))

        def weights(noise: SeededNoise) -> Floats:
            sent = mechanism.release(self.study.readers @ axes.T, noise)
            rows = [
                direction_weights(self.book.shares, directions, row, edge=edge, epsilon=epsilon, cosines=cosines)
                for row in sent
            ]
            return np.stack(rows)

        return self._drawn(weights)

    def _drawn(self, weights: Callable[[SeededNoise], Floats]) -> PossibleLists:
        return PossibleLists.either(
            [PossibleLists.own(self.lists(weights(SeededNoise(seed)))) for seed in range(DRAWS)]
        )


MIXED: dict[str, Callable[[Mixtures, float], PossibleLists]] = {
    "interest": Mixtures.code,  # by quota the clusters' weights add up to those of the mean click: the same number
    "code": Mixtures.code,
    "subset": Mixtures.subset,
    "topics": Mixtures.topics,
    "direction": Mixtures.direction,
}
"""Lists for a mode's reports at an epsilon, by report mode."""


def prototypes_of(study: EmbeddedSplit, size: int, seed: int) -> Vectors:
    """Return topic centroids of the pool: float32 [size, D] of length 1."""
    return _kmeans(study.news, size, seed)


def _kmeans(vectors: Vectors, size: int, seed: int) -> Vectors:
    means = faiss.Kmeans(
        vectors.shape[1],
        size,
        niter=40,
        nredo=3,
        seed=seed,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=len(vectors),
    )
    means.train(np.ascontiguousarray(vectors))
    return _unit(np.asarray(means.centroids, dtype=np.float32))


def _principal_axes(news: Vectors) -> Vectors:
    """Return the directions in which the articles vary most, float32 [8, D]."""
    centred = news - news.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T.astype(np.float64) @ centred)
    return np.asarray(axes[:, : -DIRECTIONS - 1 : -1].T, dtype=np.float32)


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
