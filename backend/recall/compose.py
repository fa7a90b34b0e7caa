"""What a report says becomes something to search with: interest vectors, or weights of a codebook's prototypes.

Each kind of report has its decoder in `DECODERS`; a new kind is a new entry there, a mechanism on the device and a
member of the wire's union. Interest vectors are Uni-FedRec's, of scores without what the noise
probably put there (`score_prior.py`); weights are those of docs/decisions/018.

Symbols: C channels, B basis size, K prototypes, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import InvalidRequest
from backend.recall.bayes import direction_weights, subset_weights, topics_weights, typical_histograms
from backend.recall.priv_unit import cap_edge
from backend.recall.served_releases import ServedCodebook, ServedRelease
from device_app.wire.recall import (
    DIRECTION_DIMENSIONS,
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    DirectionReport,
    NoReport,
    Report,
    SubsetReport,
    TopicsReport,
)

COUNTS_OF_SHARES = 1_000
TYPICAL_COSINES = np.linspace(0.4, 0.95, 9)
"""Of readers and their nearest prototypes, in the 8 numbers of a direction."""
MAIN_TOPIC_SHARE = 0.5
"""Clicks that a typical reader has at the nearest prototype, for want of counted readers."""


@dataclass(frozen=True)
class InterestVectors:
    """What to search for: r^_c [C, D] and the clicks behind each channel. C = 0: nothing is known of the reader."""

    vectors: NDArray[np.float32]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Coded:
    """One of K reports, whose lists are ready."""

    codebook: ServedCodebook
    code: int


@dataclass(frozen=True)
class Weighted:
    """weights [K] of a codebook's prototypes, adding up to 1: the list is that of their mixture."""

    codebook: ServedCodebook
    weights: NDArray[np.float64]


Wanted = InterestVectors | Coded | Weighted


def compose(report: Report, release: ServedRelease) -> Wanted:
    """Decode a report under the release it names. Raises InvalidRequest if its shape isn't the release's."""
    return DECODERS[report.kind](report, release)


def aggregate(scores: NDArray[np.float64], basis_values: NDArray[np.float32]) -> NDArray[np.float32]:
    """r^_c = sum_i softmax(a^_c)_i value_i: scores [C, B], basis_values [B, D] -> [C, D].

    Each row lies in the convex hull of the value rows; adding a constant to a row of scores changes nothing.
    """
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))  # [C, B]
    weights = powers / powers.sum(axis=1, keepdims=True)
    interests: NDArray[np.float64] = weights @ basis_values  # [C, D]
    return interests.astype(np.float32)


def counts_of_shares(shares: tuple[float, ...], channels: int) -> tuple[int, ...]:
    """Noisy shares of the clicks as the counts that `merge` takes: a negative share counts as 0; all alike without."""
    positive = np.maximum(np.array(shares, dtype=np.float64), 0.0)
    if not positive.sum() > 0:
        return (1,) * channels
    return tuple(np.rint(COUNTS_OF_SHARES * positive / positive.max()).astype(int).tolist())


def _decode_basis_laplace(report: BasisLaplaceReport, release: ServedRelease) -> InterestVectors:
    return InterestVectors(_basis_vectors(report, release), report.counts)


def _decode_basis_l1(report: BasisL1Report, release: ServedRelease) -> InterestVectors:
    return InterestVectors(_basis_vectors(report, release), counts_of_shares(report.shares, len(report.scores)))


def _basis_vectors(report: BasisLaplaceReport | BasisL1Report, release: ServedRelease) -> NDArray[np.float32]:
    basis_size = len(release.basis_values)
    width, channels = len(report.scores[0]), len(report.scores)
    if width != basis_size:
        raise InvalidRequest(
            f"Each channel has {width} scores; release {release.release} has a basis of {basis_size}.",
            field="report.scores",
            limit=f"exactly {basis_size} scores a channel",
        )
    if channels > release.channels_limit:
        raise InvalidRequest(
            f"The report has {channels} channels; release {release.release} takes at most {release.channels_limit}.",
            field="report.scores",
            limit=f"at most {release.channels_limit} channels",
        )
    noisy = np.array(report.scores, dtype=np.float64)
    return aggregate(release.score_readings[report.kind].given(noisy), release.basis_values)


def _decode_code(report: CodeReport, release: ServedRelease) -> Coded:
    return Coded(_codebook(report.codebook, release), report.code)


def _decode_topics(report: TopicsReport, release: ServedRelease) -> Weighted:
    codebook = _codebook(report.codebook, release)
    typical = typical_histograms(codebook.prototypes, MAIN_TOPIC_SHARE)
    noisy = np.array(report.weights, dtype=np.float64)
    return Weighted(codebook, topics_weights(codebook.shares, codebook.epsilon, noisy, typical))


def _decode_subset(report: SubsetReport, release: ServedRelease) -> Weighted:
    codebook = _codebook(report.codebook, release)
    return Weighted(codebook, subset_weights(codebook.shares, codebook.epsilon, report.topics))


def _decode_direction(report: DirectionReport, release: ServedRelease) -> Weighted:
    if release.projection is None or not release.codebooks:
        raise InvalidRequest(
            f"Release {release.release} takes no reports of a direction.",
            field="report.kind",
            limit="a kind that the release declares",
        )
    codebook = release.codebooks[max(release.codebooks)]  # the finest: a direction of 8 numbers can tell more than 16
    directions = codebook.prototypes.astype(np.float64) @ release.projection.matrix.T  # [K, 8]
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-12)
    epsilon = release.projection.epsilon
    weights = direction_weights(
        codebook.shares,
        directions,
        np.array(report.vector, dtype=np.float64),
        edge=cap_edge(epsilon, DIRECTION_DIMENSIONS),
        epsilon=epsilon,
        cosines=TYPICAL_COSINES,
    )
    return Weighted(codebook, weights)


def _decode_none(report: NoReport, release: ServedRelease) -> InterestVectors:
    return InterestVectors(np.empty((0, release.basis_values.shape[1]), dtype=np.float32), ())


def _codebook(size: int, release: ServedRelease) -> ServedCodebook:
    codebook = release.codebooks.get(size)
    if codebook is None:
        sizes = ", ".join(map(str, release.codebooks)) or "none"
        raise InvalidRequest(
            f"Release {release.release} has no codebook of {size}; its sizes: {sizes}.",
            field="report.codebook",
            limit=f"one of {sizes}" if release.codebooks else "no codebook in this release",
        )
    return codebook


DECODERS: Mapping[str, Callable[[Any, ServedRelease], Wanted]] = {
    "basis_laplace": _decode_basis_laplace,
    "basis_l1": _decode_basis_l1,
    "code": _decode_code,
    "topics": _decode_topics,
    "direction": _decode_direction,
    "subset": _decode_subset,
    "none": _decode_none,
}
