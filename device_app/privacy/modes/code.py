"""`code`, the default: the number of the nearest prototype, by randomised response (`mechanisms.code`)."""

from __future__ import annotations

from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.modes.by_codebook import ByCodebook, by_codebook
from device_app.privacy.modes.mode import WORDS, Clear, ReportInput, ReportMode
from device_app.privacy.noise_sources import NoiseSource
from device_app.wire.recall import CodeReport
from device_app.wire.releases import Codebook


class CodeReporter(ByCodebook):
    """Reports the nearest prototype. Formal guarantees: `RandomisedCode`'s, one drawing a value and codebook."""

    name = "code"

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


def _paragraph(book: Codebook | None) -> str:
    size, truth = (book.size, RandomisedCode(book.size, book.epsilon).truth) if book else (16, _DEFAULT.truth)
    return WORDS("code_paragraph", size=size, truth=truth)


_DEFAULT = RandomisedCode(16, 4.0)
CODE = ReportMode(
    name="code",
    title=WORDS("code_title"),
    paragraph=_paragraph,
    report=CodeReport,
    reporter=by_codebook(CodeReporter),
    made_from="vector",
    rows=lambda report: ((float(report.code),),),
    in_a_sentence=True,
)
