"""`basis_laplace`, for reproduction: Uni-FedRec's noisy scores as the paper has them (`mechanisms.basis_laplace`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.modes.mode import WHEN, WORDS, Clear, OnTheBasis, ReportInput, ReportMode
from device_app.privacy.noise_sources import NoiseSource
from device_app.wire.recall import BasisLaplaceReport

GRID = 2.0**-16


@dataclass(frozen=True)
class BasisLaplaceReporter(OnTheBasis):
    """Reports noisy scores, and counts in clear. Formal guarantees: `BasisLaplace`'s, for each report."""

    mechanism: BasisLaplace
    name: ClassVar[str] = "basis_laplace"

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[BasisLaplaceReport, Clear]:
        """Draw noisy scores; the counts go in clear."""
        clear = self.mechanism.clipped(reader.scores)
        noisy = np.round(self.mechanism.release(reader.scores, noise) / GRID) * GRID
        report = BasisLaplaceReport(scores=tuple(map(tuple, noisy.tolist())), counts=reader.counts)
        return report, tuple(map(tuple, clear.tolist()))


BASIS_LAPLACE = ReportMode(
    name="basis_laplace",
    title=WORDS("basis_laplace_title"),
    paragraph=lambda book: WORDS("basis_laplace_paragraph"),
    for_comparison=True,
    report=BasisLaplaceReport,
    reporter=lambda terms: BasisLaplaceReporter(BasisLaplace.under(terms.protocol), under=terms.under),
    made_from="decomposition",
    rows=lambda report: report.scores,
    counts=lambda report: report.counts,
    uncovered=WORDS("uncovered_counts", uncovered=WHEN),
)
