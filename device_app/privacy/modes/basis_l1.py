"""`basis_l1`, for comparison: Uni-FedRec's report with its gaps closed (`mechanisms.basis_l1`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from device_app.privacy.mechanisms.basis_l1 import BasisL1
from device_app.privacy.modes.mode import WORDS, Clear, OnTheBasis, ReportInput, ReportMode
from device_app.privacy.noise_sources import NoiseSource
from device_app.wire.recall import BasisL1Report


@dataclass(frozen=True)
class BasisL1Reporter(OnTheBasis):
    """Reports noisy scores of C_max channels. Formal guarantees: `BasisL1`'s, for each report."""

    mechanism: BasisL1
    name: ClassVar[str] = "basis_l1"

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[BasisL1Report, Clear]:
        """Draw noisy scores of C_max channels."""
        clear = self.mechanism.projected(reader.scores)
        noisy = self.mechanism.release(reader.scores, noise)
        shares = self.mechanism.release_shares(np.array(reader.counts, dtype=np.int64), noise)
        report = BasisL1Report(scores=tuple(map(tuple, noisy.tolist())), shares=tuple(shares.tolist()))
        return report, tuple(map(tuple, clear.tolist()))


BASIS_L1 = ReportMode(
    name="basis_l1",
    title=WORDS("basis_l1_title"),
    paragraph=lambda book: WORDS("basis_l1_paragraph"),
    for_comparison=True,
    report=BasisL1Report,
    reporter=lambda terms: BasisL1Reporter(BasisL1.under(terms.protocol), under=terms.under),
    made_from="decomposition",
    rows=lambda report: report.scores,
)
