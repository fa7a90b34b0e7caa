"""Decodes a report into what recall searches with: interest vectors, or weights of a codebook's prototypes.

Each kind of report has its decoder in `DECODERS`; a new kind needs an entry there, a mechanism on the device and a
member of the protocol's union. Interest vectors follow Uni-FedRec, after its scores are corrected for noise
(`ScorePrior` in `posterior.py`); weights follow docs/decisions/019.

Symbols: C channels, B basis size, K prototypes, D dimensions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import InvalidRequest
from backend.recall.posterior import subset_weights, topics_weights, typical_histograms
from backend.recall.served_releases import ServedCodebook, ServedRelease
from protocol.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    NoReport,
    Report,
    SubsetReport,
    TopicsReport,
)

COUNTS_OF_SHARES = 1_000
MAIN_TOPIC_SHARE = 0.5
"""Assumed share of a typical reader's clicks at the nearest prototype, until readers have been counted."""


@dataclass(frozen=True)
class InterestVectors:
    """What to search for: r^_c [C, D] and the clicks behind each channel.

    C = 0: nothing is known of the reader.
    """

    vectors: NDArray[np.float32]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Coded:
    """One of K possible reports, whose list is found in advance."""

    codebook: ServedCodebook
    code: int


@dataclass(frozen=True)
class PrototypeWeights:
    """Weights [K] of a codebook's prototypes, summing to 1, by which these are aggregated."""

    codebook: ServedCodebook
    weights: NDArray[np.float64]


Wanted = InterestVectors | Coded | PrototypeWeights


def compose(report: Report, release: ServedRelease) -> Wanted:
    """Decode a report under the release it names.

    Raises InvalidRequest if its shape differs from the release's.
    """
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
    """Convert noisy shares of the clicks to the counts that `merge` takes.

    A negative share counts as 0; without any positive share all channels count the same.
    """
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


def _decode_topics(report: TopicsReport, release: ServedRelease) -> PrototypeWeights:
    codebook = _codebook(report.codebook, release)
    typical = typical_histograms(codebook.prototypes, MAIN_TOPIC_SHARE)
    noisy = np.array(report.weights, dtype=np.float64)
    return PrototypeWeights(codebook, topics_weights(codebook.shares, codebook.epsilon, noisy, typical))


def _decode_subset(report: SubsetReport, release: ServedRelease) -> PrototypeWeights:
    codebook = _codebook(report.codebook, release)
    return PrototypeWeights(codebook, subset_weights(codebook.shares, codebook.epsilon, report.topics))


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
    "subset": _decode_subset,
    "none": _decode_none,
}
