"""Reporters by a release's codebook: the basic interest that weighs most, and others for comparison.

The others report the prototype nearest to the mean of the clicks, the topic read most, and the topics' shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.exact_samplers import uniform_below
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.mechanisms.topics import NoisyTopics, histogram
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.report_meaning import ReportMeaning, gram, meaning_name
from device_app.privacy.reporter import UNKNOWN, Clear, Decompose, MadeFrom, ReportInput
from device_app.reading.click_clusters import counts
from device_app.reading.decomposition import on_prototypes
from device_app.reports.reporters.base import M, ModeReporter, ReportTerms
from protocol.recall import CodeReport, SubsetReport, TopicsReport
from protocol.releases import Codebook, RecallProtocol


@dataclass(frozen=True, kw_only=True)
class ByCodebook(ModeReporter[M]):
    """Base of reporters by a codebook's prototypes [K, D]."""

    made_from: ClassVar[MadeFrom] = "clicks"
    codebook: Codebook
    prototypes: NDArray[np.float32]

    @classmethod
    def of(cls, mechanism: Callable[[int, float], M], terms: ReportTerms) -> Self | None:
        """The reporter by the finest codebook within the reader's limit."""
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
    """The codebook of the greatest epsilon within the limit (of equal ones, the largest); None if there is none."""
    within = [book for book in protocol.codebooks if book.epsilon <= epsilon_limit]
    return max(within, key=lambda book: (book.epsilon, book.size), default=None)


class InterestReporter(ByCodebook[RandomisedCode]):
    """Reports the basic interest with the largest weight over all interest clusters (the default; docs/decisions/019).

    The prototypes are the basic interests. A cluster's weights are the inner products of its mean click with them, and
    its quota is its share of the clicks. Saved searches and followed topics are a second view of equal weight.

    Formal guarantees: `RandomisedCode`'s, one drawing a value and codebook. The value is a function of the clicks'
    vectors, the searches and the prototypes alone: clusters only group sums that are exact (`on_prototypes`), so a
    release can't change the value by another graph of contexts or another distance between clusters.
    """

    name, report, made_from = "interest", CodeReport, "vector"

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """The input with every cluster's scores on the prototypes."""
        scores = on_prototypes(self.prototypes, reader.clicks, labels)
        return replace(reader, scores=scores, counts=counts(labels))

    def weights(self, reader: ReportInput) -> NDArray[np.float64]:
        """The weight of each basic interest [K]: the clusters' weights by quota, and the searches' with equal say."""
        total = np.zeros(self.codebook.size) if not reader.counts else reader.scores.sum(axis=0)
        if reader.searched is None:
            return np.asarray(total / max(1, sum(reader.counts)), dtype=np.float64)
        length = float(np.linalg.norm(reader.clicks.sum(axis=0, dtype=np.float64)))
        read = total / length if length > 0 else total
        return np.asarray((read + self.prototypes.astype(np.float64) @ reader.searched) / 2, dtype=np.float64)

    def value(self, reader: ReportInput | None) -> int:
        """The basic interest with the largest weight; of equal ones the first."""
        return UNKNOWN if reader is None else int(np.argmax(self.weights(reader)))

    def shown(self, reader: ReportInput) -> Clear:
        """The value; the weights by quota [K]; and for each cluster its number of clicks and its weights [K]."""
        rows = [
            (float(count), *np.round(scores / count, 4).tolist())
            for count, scores in zip(reader.counts, reader.scores, strict=True)
        ]
        return (float(self.value(reader)),), tuple(np.round(self.weights(reader), 4).tolist()), *rows

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[CodeReport, Clear]:
        """Draw a number; a blank one of a basic interest drawn uniformly."""
        true = self.uniform(noise) if reader is None else self.value(reader)
        report = CodeReport(codebook=self.codebook.size, code=self.mechanism.release(true, noise))
        return report, () if reader is None else self.shown(reader)


class CodeReporter(ByCodebook[RandomisedCode]):
    """Reports the nearest prototype. Formal guarantees: `RandomisedCode`'s, one drawing a value and codebook."""

    name, report, made_from = "code", CodeReport, "vector"

    def value(self, reader: ReportInput | None) -> int:
        """The nearest prototype."""
        return UNKNOWN if reader is None else nearest(self.prototypes, reader.vector)

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[CodeReport, Clear]:
        """Draw a code."""
        true = self.uniform(noise) if reader is None else self.value(reader)
        report = CodeReport(codebook=self.codebook.size, code=self.mechanism.release(true, noise))
        return report, () if reader is None else ((float(true),),)


class SubsetReporter(ByCodebook[TopicSubset]):
    """Reports the topic with most clicks. Formal guarantees: `TopicSubset`'s, one drawing a value and codebook."""

    name, report = "subset", SubsetReport

    def value(self, reader: ReportInput | None) -> int:
        """The topic with most clicks; of equal ones the first."""
        return UNKNOWN if reader is None else int(np.argmax(histogram(self.prototypes, reader.clicks)))

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[SubsetReport, Clear]:
        """Draw a set."""
        true = self.uniform(noise) if reader is None else self.value(reader)
        report = SubsetReport(codebook=self.codebook.size, topics=self.mechanism.release(true, noise))
        return report, () if reader is None else ((float(true),),)


class TopicsReporter(ByCodebook[NoisyTopics]):
    """Reports the topic histogram. Formal guarantees: `NoisyTopics`', for each report."""

    name, report = "topics", TopicsReport

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[TopicsReport, Clear]:
        """Draw a noisy histogram; a blank one of a topic drawn uniformly."""
        size = self.codebook.size
        shares = np.eye(size)[self.uniform(noise)] if reader is None else histogram(self.prototypes, reader.clicks)
        sent = tuple(self.mechanism.release(shares, noise).tolist())
        return TopicsReport(codebook=size, weights=sent), () if reader is None else (tuple(shares.tolist()),)
