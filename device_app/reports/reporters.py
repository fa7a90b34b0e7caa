"""Reporters: what a mode reports, under which terms.

With a release's codebook: the basic interest with the largest weight, and for comparison the prototype nearest to the
mean of the clicks, the topic read most, and the topics' shares.

With scores on a release's basic interests: Uni-FedRec's reports as published, and with their privacy gaps closed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.exact_samplers import uniform_below
from device_app.privacy.mechanisms.basis_l1 import BasisL1
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.mechanisms.topics import NoisyTopics, histogram
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.reporter import (
    UNKNOWN,
    Clear,
    Decompose,
    MadeFrom,
    MadeReport,
    Mechanism,
    ReportInput,
    ReportMeaning,
    gram,
    meaning_name,
    meaning_of_release,
)
from device_app.reading.click_clusters import counts
from device_app.reading.decomposition import on_prototypes
from protocol.recall import BasisL1Report, BasisLaplaceReport, CodeReport, SubsetReport, TopicsReport
from protocol.releases import Codebook, RecallProtocol

M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True)
class PublicVectors:
    """A release's public vectors: prototypes [K, D] by K."""

    prototypes: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReportRelease:
    """The release that a report is made under, and the encoder of its vectors.

    generation names those vectors as stored on this device (`PulledShards.generation`): an encoder that was replaced
    and later restored has a different one.
    """

    release: str = ""
    encoder: str = ""
    generation: str = ""


@dataclass(frozen=True)
class ReportTerms:
    """What a release offers and the reader allows. epsilon_limit: the maximum cost of a report with a codebook; the
    release sets the cost of reports with the basis."""

    epsilon_limit: float
    protocol: RecallProtocol
    spaces: PublicVectors
    under: ReportRelease


@dataclass(frozen=True, kw_only=True)
class ModeReporter(ABC, Generic[M]):
    """A `privacy.reporter.Reporter` with its mechanism; subclasses say what they report and how.

    name: the mode's name. report: the protocol's type of its reports. made_from: the part of the input that it reports.
    """

    name: ClassVar[str]
    report: ClassVar[type[MadeReport]]
    made_from: ClassVar[MadeFrom]
    mechanism: M
    under: ReportRelease = field(default_factory=ReportRelease)

    @classmethod
    @abstractmethod
    def of(cls, mechanism: Callable[..., M], terms: ReportTerms) -> Self | None:
        """Return the reporter under these terms, using such a mechanism; None if the release doesn't support it."""

    @property
    @abstractmethod
    def meaning(self) -> ReportMeaning:
        """See `Reporter.meaning`."""

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """See `Reporter.decomposed`; by default the unchanged input."""
        return reader

    def shown(self, reader: ReportInput) -> Clear:
        """See `Reporter.shown`; by default the true value alone."""
        value = self.value(reader)
        return () if value is None else ((float(value),),)

    def value(self, reader: ReportInput | None) -> int | None:
        """See `Reporter.value`; None if there are too many values to store the draw of each; then every report is a
        fresh draw."""
        return None

    @abstractmethod
    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[Any, Clear]:
        """See `Reporter.make`."""


@dataclass(frozen=True, kw_only=True)
class CodebookReporter(ModeReporter[M]):
    """Base class of reporters with a codebook's prototypes [K, D]."""

    made_from: ClassVar[MadeFrom] = "clicks"
    codebook: Codebook
    prototypes: NDArray[np.float32]

    @classmethod
    def of(cls, mechanism: Callable[[int, float], M], terms: ReportTerms) -> Self | None:
        """Return the reporter with the largest codebook within the reader's limit."""
        book = affordable(terms.protocol, terms.epsilon_limit)
        if book is None or book.size not in terms.spaces.prototypes:
            return None
        prototypes = terms.spaces.prototypes[book.size]
        drawing = mechanism(book.size, book.epsilon)
        return cls(mechanism=drawing, codebook=book, prototypes=prototypes, under=terms.under)

    @property
    def meaning(self) -> ReportMeaning:
        """Prototypes, K, epsilon, and the vectors that they are compared with."""
        book = self.codebook
        mechanism = f"{self.name}/{book.size}/{book.epsilon!r}"
        name = meaning_name(mechanism, book.prototypes.sha256, self.under.generation)
        return ReportMeaning(name, mechanism, self.under.encoder, book.prototypes.sha256, gram([self.prototypes]))

    def uniform(self, noise: NoiseSource) -> int:
        """A number drawn uniformly: the value of a blank report."""
        return int(uniform_below(noise, self.codebook.size, 1)[0])


def affordable(protocol: RecallProtocol, epsilon_limit: float) -> Codebook | None:
    """Return the codebook with the greatest epsilon within the limit (if equal, the largest); None if there is none."""
    within = [book for book in protocol.codebooks if book.epsilon <= epsilon_limit]
    return max(within, key=lambda book: (book.epsilon, book.size), default=None)


class InterestReporter(CodebookReporter[RandomisedCode]):
    """Reports the basic interest with the largest weight over all interest clusters (the default; docs/decisions/019).

    The prototypes are the basic interests. A cluster's weights are the inner products of its mean click with them, and
    its quota is its share of the clicks. Saved searches and followed topics are a second view of equal weight.

    Formal guarantees: `RandomisedCode`'s, with one draw for each value and codebook. The value is a function of the
    clicks' vectors, the searches and the prototypes alone: clusters only group sums that are exact (`on_prototypes`),
    so a release can't change the value through its context graph or its clustering distance.
    """

    name, report, made_from = "interest", CodeReport, "vector"

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """The input with every cluster's scores on the prototypes."""
        scores = on_prototypes(self.prototypes, reader.clicks, labels)
        return replace(reader, scores=scores, counts=counts(labels))

    def weights(self, reader: ReportInput) -> NDArray[np.float64]:
        """Return the weight of each basic interest [K]: the clusters' weights by quota, averaged with the weights of
        the searches."""
        total = np.zeros(self.codebook.size) if not reader.counts else reader.scores.sum(axis=0)
        if reader.searched is None:
            return np.asarray(total / max(1, sum(reader.counts)), dtype=np.float64)
        length = float(np.linalg.norm(reader.clicks.sum(axis=0, dtype=np.float64)))
        read = total / length if length > 0 else total
        return np.asarray((read + self.prototypes.astype(np.float64) @ reader.searched) / 2, dtype=np.float64)

    def value(self, reader: ReportInput | None) -> int:
        """Return the basic interest with the largest weight; ties go to the first."""
        return UNKNOWN if reader is None else int(np.argmax(self.weights(reader)))

    def shown(self, reader: ReportInput) -> Clear:
        """The value; the weights by quota [K]; and for each cluster its number of clicks and its weights [K]."""
        rows = [
            (float(count), *np.round(scores / count, 4).tolist())
            for count, scores in zip(reader.counts, reader.scores, strict=True)
        ]
        return (float(self.value(reader)),), tuple(np.round(self.weights(reader), 4).tolist()), *rows

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[CodeReport, Clear]:
        """Draw a number; for a blank report, from a uniformly drawn basic interest."""
        true = self.uniform(noise) if reader is None else self.value(reader)
        report = CodeReport(codebook=self.codebook.size, code=self.mechanism.release(true, noise))
        return report, () if reader is None else self.shown(reader)


class CodeReporter(CodebookReporter[RandomisedCode]):
    """Reports the nearest prototype. Formal guarantees: `RandomisedCode`'s, with one draw for each value and
    codebook."""

    name, report, made_from = "code", CodeReport, "vector"

    def value(self, reader: ReportInput | None) -> int:
        """The nearest prototype."""
        return UNKNOWN if reader is None else nearest(self.prototypes, reader.vector)

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[CodeReport, Clear]:
        true = self.uniform(noise) if reader is None else self.value(reader)
        report = CodeReport(codebook=self.codebook.size, code=self.mechanism.release(true, noise))
        return report, () if reader is None else ((float(true),),)


class SubsetReporter(CodebookReporter[TopicSubset]):
    """Reports the topic with the most clicks. Formal guarantees: `TopicSubset`'s, with one draw for each value and
    codebook."""

    name, report = "subset", SubsetReport

    def value(self, reader: ReportInput | None) -> int:
        """Return the topic with the most clicks; ties go to the first."""
        return UNKNOWN if reader is None else int(np.argmax(histogram(self.prototypes, reader.clicks)))

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[SubsetReport, Clear]:
        """Draw a set."""
        true = self.uniform(noise) if reader is None else self.value(reader)
        report = SubsetReport(codebook=self.codebook.size, topics=self.mechanism.release(true, noise))
        return report, () if reader is None else ((float(true),),)


class TopicsReporter(CodebookReporter[NoisyTopics]):
    """Reports the topic histogram. Formal guarantees: `NoisyTopics`', for each report."""

    name, report = "topics", TopicsReport

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[TopicsReport, Clear]:
        """Draw a noisy histogram; for a blank report, of a uniformly drawn topic."""
        size = self.codebook.size
        shares = np.eye(size)[self.uniform(noise)] if reader is None else histogram(self.prototypes, reader.clicks)
        sent = tuple(self.mechanism.release(shares, noise).tolist())
        return TopicsReport(codebook=size, weights=sent), () if reader is None else (tuple(shares.tolist()),)


GRID = 2.0**-16


@dataclass(frozen=True, kw_only=True)
class BasisReporter(ModeReporter[M]):
    """Base class of reporters of scores on a release's basis; each report is a fresh draw."""

    made_from: ClassVar[MadeFrom] = "decomposition"

    @classmethod
    def of(cls, mechanism: Callable[..., M], terms: ReportTerms) -> Self:
        """Return the reporter with the noise that the release states."""
        drawing: Any = mechanism
        return cls(mechanism=drawing.under(terms.protocol), under=terms.under)

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """The input with its scores on the basis."""
        scores, counts = on_basis()
        return replace(reader, scores=scores, counts=counts)

    @staticmethod
    def known(reader: ReportInput | None, basis_size: int) -> ReportInput:
        """Return the reader's input; for a blank report, one channel of zeros."""
        return reader or ReportInput(np.empty((0, 0), np.float32), np.zeros((1, basis_size), np.float32), (1,))

    @property
    def meaning(self) -> ReportMeaning:
        """The release's basis."""
        return meaning_of_release(self.name, self.under.release, self.under.encoder, self.under.generation)


class BasisLaplaceReporter(BasisReporter[BasisLaplace]):
    """Reports noisy scores, and counts in the clear. Formal guarantees: `BasisLaplace`'s, for each report."""

    name, report = "basis_laplace", BasisLaplaceReport

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[BasisLaplaceReport, Clear]:
        """Draw noisy scores; the counts are sent in the clear, and a blank report has one channel of one click."""
        known = self.known(reader, self.mechanism.basis_size)
        clear = self.mechanism.clipped(known.scores)
        noisy = np.round(self.mechanism.release(known.scores, noise) / GRID) * GRID
        report = BasisLaplaceReport(scores=tuple(map(tuple, noisy.tolist())), counts=known.counts)
        return report, () if reader is None else tuple(map(tuple, clear.tolist()))


class BasisL1Reporter(BasisReporter[BasisL1]):
    """Reports noisy scores of C_max channels. Formal guarantees: `BasisL1`'s, for each report."""

    name, report = "basis_l1", BasisL1Report

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[BasisL1Report, Clear]:
        """Draw noisy scores of C_max channels."""
        known = self.known(reader, self.mechanism.basis_size)
        clear = self.mechanism.projected(known.scores)
        noisy = self.mechanism.release(known.scores, noise)
        shares = self.mechanism.release_shares(np.array(known.counts, dtype=np.int64), noise)
        report = BasisL1Report(scores=tuple(map(tuple, noisy.tolist())), shares=tuple(shares.tolist()))
        return report, () if reader is None else tuple(map(tuple, clear.tolist()))
