"""The seam of reports: how each mode turns what this device knows into the one message that may leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.carried import ReportMeaning, gram
from device_app.privacy.mechanisms.basis_l1 import BasisL1
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.mechanisms.direction import PrivUnit
from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.mechanisms.topics import NoisyTopics, histogram
from device_app.privacy.noise import NoiseSource
from device_app.settings import Mode, PrivacySettings
from device_app.wire.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    DirectionReport,
    NoReport,
    SubsetReport,
    TopicsReport,
)
from device_app.wire.releases import Codebook, RecallProtocol

MadeReport = BasisLaplaceReport | BasisL1Report | CodeReport | TopicsReport | DirectionReport | SubsetReport | NoReport
Clear = tuple[tuple[float, ...], ...]
GRID = 2.0**-16
BY_BASIS: frozenset[Mode] = frozenset({"basis_laplace", "basis_l1"})
"""Modes whose reports are made from the decomposition on the release's basis, the others from click vectors alone."""
BY_VECTOR: frozenset[Mode] = frozenset({"code", "direction"})
"""Modes whose reports are made from the reader's one vector, in which both views count."""


@dataclass(frozen=True)
class ReportInput:
    """Sensitive: what a report is made from. clicks is [H, D]; H is 0 where no clicked news has a vector here.

    For the modes BY_BASIS alone: raw scores [C, B] on the basic interests, and counts [C], the clicks of each channel.
    searched is the second view's vector [D], of length 1: saved searches and followed topics. None: there are none, or
    they are kept out of reports.
    """

    clicks: NDArray[np.float32]
    scores: NDArray[np.floating] = field(default_factory=lambda: np.empty((0, 0)))
    counts: tuple[int, ...] = ()
    searched: NDArray[np.float32] | None = None

    @property
    def vector(self) -> NDArray[np.float32]:
        """u: the mean of the click vectors, scaled to length 1 (zero where they cancel out); with a second view, the
        mean of both views' vectors, scaled again.

        Views count alike, as in FL-MV-DSSM's Algorithm 2: each gives its vector and not how much stands behind it.
        """
        read = user_vector(self.clicks)
        return read if self.searched is None else user_vector(np.stack([read, self.searched]))

    def views_of(self, mode: Mode) -> int:
        """How many views weigh in a report of this mode."""
        return 1 + (self.searched is not None and mode in BY_VECTOR)


@dataclass(frozen=True)
class Spaces:
    """A release's public vectors: prototypes [K, D] by K, and the projection [8, D]."""

    prototypes: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)
    projection: NDArray[np.float32] | None = None


class Mechanism(Protocol):
    """A mechanism as the ledger and the page know it."""

    @property
    def epsilon_per_report(self) -> float:
        """What one fresh report costs."""

    def parameters(self) -> dict[str, float]:
        """The mechanism's numbers, for the ledger."""

    def words(self) -> str:
        """What is sent, in one sentence for the reader."""


class Reporter(Protocol):
    """Makes the reports of one mode under one release."""

    @property
    def name(self) -> Mode:
        """The mode."""

    @property
    def meaning(self) -> ReportMeaning:
        """What its reports mean, which is what a drawn number hangs on."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""

    def value(self, reader: ReportInput) -> int | None:
        """The true value that is told with noise, where one drawing a value serves for good; else None."""

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[MadeReport, Clear]:
        """A fresh report, and what it tells without the noise, for the reader alone. Raises ValueError."""


@dataclass(frozen=True)
class Under:
    """Which release a report is made under, and in the vectors of which encoder.

    generation names those vectors as they are on this device (`PulledShards.generation`): an encoder that went and came
    back has another.
    """

    release: str = ""
    encoder: str = ""
    generation: str = ""


@dataclass(frozen=True)
class _ByCodebook:
    """Reports by a codebook's prototypes [K, D]."""

    codebook: Codebook
    prototypes: NDArray[np.float32]
    under: Under = Under()
    name: Mode = "code"

    @property
    def meaning(self) -> ReportMeaning:
        """Prototypes, K, epsilon, and the vectors that they are compared with."""
        book = self.codebook
        mechanism = f"{self.name}/{book.size}/{book.epsilon!r}"
        name = _named(mechanism, book.prototypes.sha256, self.under.generation)
        return ReportMeaning(name, mechanism, self.under.encoder, book.prototypes.sha256, gram([self.prototypes]))


class _DrawnAnew:
    """Tells one of too many values for what was drawn to serve again."""

    def value(self, reader: ReportInput) -> None:
        """None."""


@dataclass(frozen=True)
class CodeReporter(_ByCodebook):
    """`code`."""

    name: Mode = "code"

    @property
    def mechanism(self) -> RandomisedCode:
        """Randomised response."""
        return RandomisedCode(self.codebook.size, self.codebook.epsilon)

    def value(self, reader: ReportInput) -> int:
        """The nearest prototype."""
        return nearest(self.prototypes, reader.vector)

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[CodeReport, Clear]:
        """Draw a code."""
        true = self.value(reader)
        return CodeReport(codebook=self.codebook.size, code=self.mechanism.release(true, noise)), ((float(true),),)


@dataclass(frozen=True)
class SubsetReporter(_ByCodebook):
    """`subset`."""

    name: Mode = "subset"

    @property
    def mechanism(self) -> TopicSubset:
        """Subset selection."""
        return TopicSubset(self.codebook.size, self.codebook.epsilon)

    def value(self, reader: ReportInput) -> int:
        """The topic with most clicks; of equal ones the first."""
        return int(np.argmax(histogram(self.prototypes, reader.clicks)))

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[SubsetReport, Clear]:
        """Draw a set."""
        true = self.value(reader)
        return SubsetReport(codebook=self.codebook.size, topics=self.mechanism.release(true, noise)), ((float(true),),)


@dataclass(frozen=True)
class TopicsReporter(_DrawnAnew, _ByCodebook):
    """`topics`."""

    name: Mode = "topics"

    @property
    def mechanism(self) -> NoisyTopics:
        """Laplace on the simplex."""
        return NoisyTopics(self.codebook.size, self.codebook.epsilon)

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[TopicsReport, Clear]:
        """Draw a noisy histogram."""
        shares = histogram(self.prototypes, reader.clicks)
        sent = tuple(self.mechanism.release(shares, noise).tolist())
        return TopicsReport(codebook=self.codebook.size, weights=sent), (tuple(shares.tolist()),)


@dataclass(frozen=True)
class DirectionReporter(_DrawnAnew):
    """`direction`."""

    epsilon: float
    projection: NDArray[np.float32]
    matrix: str = ""
    prototypes: tuple[NDArray[np.float32], ...] = ()
    under: Under = Under()
    name: Mode = "direction"

    @property
    def meaning(self) -> ReportMeaning:
        """The projection [8, D], whose rows are orthonormal in every release: a turn shows together with prototypes."""
        mechanism = f"{self.name}/{self.epsilon!r}"
        name = _named(mechanism, self.matrix, self.under.generation)
        return ReportMeaning(
            name, mechanism, self.under.encoder, self.matrix, gram([self.projection, *self.prototypes])
        )

    @property
    def mechanism(self) -> PrivUnit:
        """PrivUnit."""
        return PrivUnit(self.epsilon, len(self.projection))

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[DirectionReport, Clear]:
        """Draw a direction; a reader whose clicks cancel out counts as one in the first axis."""
        true = self.projection.astype(np.float64) @ reader.vector
        length = float(np.linalg.norm(true))
        true = true / length if length > 0 else np.eye(len(true))[0]
        return DirectionReport(vector=tuple(self.mechanism.release(true, noise).tolist())), (tuple(true.tolist()),)


@dataclass(frozen=True)
class BasisLaplaceReporter(_DrawnAnew):
    """`basis_laplace`: the paper, for reproduction."""

    mechanism: BasisLaplace
    under: Under = Under()
    name: Mode = "basis_laplace"

    @property
    def meaning(self) -> ReportMeaning:
        """The release's basis."""
        return _of_release(self.name, self.under)

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[BasisLaplaceReport, Clear]:
        """Draw noisy scores; the counts go in clear."""
        clear = self.mechanism.clipped(reader.scores)
        noisy = np.round(self.mechanism.release(reader.scores, noise) / GRID) * GRID
        report = BasisLaplaceReport(scores=tuple(map(tuple, noisy.tolist())), counts=reader.counts)
        return report, tuple(map(tuple, clear.tolist()))


@dataclass(frozen=True)
class BasisL1Reporter(_DrawnAnew):
    """`basis_l1`: the paper's report with its gaps closed."""

    mechanism: BasisL1
    under: Under = Under()
    name: Mode = "basis_l1"

    @property
    def meaning(self) -> ReportMeaning:
        """The release's basis."""
        return _of_release(self.name, self.under)

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[BasisL1Report, Clear]:
        """Draw noisy scores of C_max channels."""
        clear = self.mechanism.projected(reader.scores)
        noisy = self.mechanism.release(reader.scores, noise)
        shares = self.mechanism.release_shares(np.array(reader.counts, dtype=np.int64), noise)
        report = BasisL1Report(scores=tuple(map(tuple, noisy.tolist())), shares=tuple(shares.tolist()))
        return report, tuple(map(tuple, clear.tolist()))


def user_vector(clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of clicks [H, D], scaled to length 1; zero where they cancel out, or where there are none."""
    if not len(clicks):
        return np.zeros(clicks.shape[1], dtype=np.float32)
    mean = clicks.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 0 else mean, dtype=np.float32)


def affordable(protocol: RecallProtocol, epsilon_limit: float) -> Codebook | None:
    """The codebook of the greatest epsilon within the limit (of equal ones, the largest); None if there is none."""
    within = [book for book in protocol.codebooks if book.epsilon <= epsilon_limit]
    return max(within, key=lambda book: (book.epsilon, book.size), default=None)


def reporter_of(
    settings: PrivacySettings, protocol: RecallProtocol, spaces: Spaces, under: Under | None = None
) -> Reporter | None:
    """What makes the reader's reports under a release; None where its mode makes none or the release can't serve it.

    The release proposes codebooks and their epsilons; only those within `epsilon_per_report` are used.
    """
    mode, limit, under = settings.mode, settings.epsilon_per_report, under or Under()
    if mode == "basis_laplace":
        return BasisLaplaceReporter(BasisLaplace.under(protocol), under)
    if mode == "basis_l1":
        return BasisL1Reporter(BasisL1.under(protocol), under)
    if mode == "direction":
        offered = protocol.projection
        if offered is None or spaces.projection is None or offered.epsilon > limit:
            return None
        beside = tuple(spaces.prototypes[size] for size in sorted(spaces.prototypes))
        return DirectionReporter(offered.epsilon, spaces.projection, offered.matrix.sha256, beside, under)
    if mode not in _BY_CODEBOOK:
        return None
    book = affordable(protocol, limit)
    if book is None or book.size not in spaces.prototypes:
        return None
    return _BY_CODEBOOK[mode](book, spaces.prototypes[book.size], under)


_BY_CODEBOOK: Mapping[Mode, Callable[[Codebook, NDArray[np.float32], Under], Reporter]] = {
    "code": CodeReporter,
    "topics": TopicsReporter,
    "subset": SubsetReporter,
}


def _named(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()


def _of_release(mode: Mode, under: Under) -> ReportMeaning:
    return ReportMeaning(_named(mode, under.release, under.generation), mode, under.encoder)
