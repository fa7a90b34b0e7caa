"""`subset`, for comparison: a random set of topics that holds the reader's main one with a raised probability."""

from __future__ import annotations

import numpy as np

from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.mechanisms.topics import histogram
from device_app.privacy.modes.by_codebook import ByCodebook, by_codebook
from device_app.privacy.modes.mode import WORDS, Clear, ReportInput, ReportMode
from device_app.privacy.noise_sources import NoiseSource
from device_app.wire.recall import SubsetReport


class SubsetReporter(ByCodebook):
    """Reports the topic with most clicks. Formal guarantees: `TopicSubset`'s, one drawing a value and codebook."""

    name = "subset"

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


SUBSET = ReportMode(
    name="subset",
    title=WORDS("subset_title"),
    paragraph=lambda book: WORDS("subset_paragraph"),
    for_comparison=True,
    report=SubsetReport,
    reporter=by_codebook(SubsetReporter),
    rows=lambda report: (tuple(map(float, report.topics)),),
    in_a_sentence=True,
)
