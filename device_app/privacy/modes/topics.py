"""`topics`, for comparison: the shares of the clicks by topic with Laplace noise (`mechanisms.topics`)."""

from __future__ import annotations

from device_app.privacy.mechanisms.topics import NoisyTopics, histogram
from device_app.privacy.modes.by_codebook import ByCodebook, by_codebook
from device_app.privacy.modes.mode import WORDS, Clear, DrawnAnew, ReportInput, ReportMode
from device_app.privacy.noise_sources import NoiseSource
from device_app.wire.recall import TopicsReport


class TopicsReporter(DrawnAnew, ByCodebook):
    """Reports the topic histogram. Formal guarantees: `NoisyTopics`', for each report."""

    name = "topics"

    @property
    def mechanism(self) -> NoisyTopics:
        """Laplace on the simplex."""
        return NoisyTopics(self.codebook.size, self.codebook.epsilon)

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[TopicsReport, Clear]:
        """Draw a noisy histogram."""
        shares = histogram(self.prototypes, reader.clicks)
        sent = tuple(self.mechanism.release(shares, noise).tolist())
        return TopicsReport(codebook=self.codebook.size, weights=sent), (tuple(shares.tolist()),)


TOPICS = ReportMode(
    name="topics",
    title=WORDS("topics_title"),
    paragraph=lambda book: WORDS("topics_paragraph"),
    for_comparison=True,
    report=TopicsReport,
    reporter=by_codebook(TopicsReporter),
    rows=lambda report: (report.weights,),
    row_label="Topics",
)
