"""Reporters of scores on a release's basic interests: Uni-FedRec's as published, and with its privacy gaps closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.mechanisms.basis_l1 import BasisL1
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.report_meaning import ReportMeaning, meaning_of_release
from device_app.privacy.reporter import Clear, Decompose, MadeFrom, ReportInput
from device_app.reports.reporters.base import M, ModeReporter, ReportTerms
from protocol.recall import BasisL1Report, BasisLaplaceReport

GRID = 2.0**-16


@dataclass(frozen=True, kw_only=True)
class OnTheBasis(ModeReporter[M]):
    """Base of reporters of scores on a release's basis; each report is drawn."""

    made_from: ClassVar[MadeFrom] = "decomposition"

    @classmethod
    def of(cls, mechanism: Callable[..., M], terms: ReportTerms) -> Self:
        """The reporter with the noise that the release asks for."""
        drawing: Any = mechanism
        return cls(mechanism=drawing.under(terms.protocol), under=terms.under)

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """The input with its scores on the basis."""
        scores, counts = on_basis()
        return replace(reader, scores=scores, counts=counts)

    @staticmethod
    def known(reader: ReportInput | None, basis_size: int) -> ReportInput:
        """The reader's input; for a blank report, one channel without any interest."""
        return reader or ReportInput(np.empty((0, 0), np.float32), np.zeros((1, basis_size), np.float32), (1,))

    @property
    def meaning(self) -> ReportMeaning:
        """The release's basis."""
        return meaning_of_release(self.name, self.under.release, self.under.encoder, self.under.generation)


class BasisLaplaceReporter(OnTheBasis[BasisLaplace]):
    """Reports noisy scores, and counts in clear. Formal guarantees: `BasisLaplace`'s, for each report."""

    name, report = "basis_laplace", BasisLaplaceReport

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[BasisLaplaceReport, Clear]:
        """Draw noisy scores; the counts go in clear, and those of a blank report are one channel of one click."""
        known = self.known(reader, self.mechanism.basis_size)
        clear = self.mechanism.clipped(known.scores)
        noisy = np.round(self.mechanism.release(known.scores, noise) / GRID) * GRID
        report = BasisLaplaceReport(scores=tuple(map(tuple, noisy.tolist())), counts=known.counts)
        return report, () if reader is None else tuple(map(tuple, clear.tolist()))


class BasisL1Reporter(OnTheBasis[BasisL1]):
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
