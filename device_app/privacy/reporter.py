"""The input of a report and the interface that draws a noisy report from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.report_meaning import ReportMeaning
from protocol.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    NoReport,
    SubsetReport,
    TopicsReport,
)


@dataclass(frozen=True)
class ReportInput:
    """Sensitive: the data a report is made from. clicks is [H, D].

    H is 0 if no clicked article has a vector here. For modes that use the decomposition: raw scores [C, B] on the
    basic interests, and counts [C], the clicks of each channel. searched is the second view's vector [D], of length 1,
    from saved searches and followed topics; None if there are none, or if the reader keeps them out of reports.
    """

    clicks: NDArray[np.float32]
    scores: NDArray[np.floating] = field(default_factory=lambda: np.empty((0, 0)))
    counts: tuple[int, ...] = ()
    searched: NDArray[np.float32] | None = None

    @property
    def vector(self) -> NDArray[np.float32]:
        """u: the mean of the click vectors, scaled to length 1 (zero if they cancel out).

        With a second view, it is the mean of both views' vectors, scaled to length 1 again. Views have equal weight, as
        in FL-MV-DSSM's Algorithm 2: each contributes its vector, not how much data it is based on.
        """
        read = user_vector(self.clicks)
        return read if self.searched is None else user_vector(np.stack([read, self.searched]))


def user_vector(clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of clicks [H, D], scaled to length 1.

    Zero where they cancel out, or where there are none.
    """
    if not len(clicks):
        return np.zeros(clicks.shape[1], dtype=np.float32)
    mean = clicks.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 0 else mean, dtype=np.float32)


UNKNOWN = -1
"""The value under which a blank report is stored, where one draw per value is kept and reused."""

MadeReport = BasisLaplaceReport | BasisL1Report | CodeReport | TopicsReport | SubsetReport | NoReport
Clear = tuple[tuple[float, ...], ...]
MadeFrom = Literal["clicks", "vector", "decomposition"]
"""What a report is made from: the clicks, both views together, or the decomposition on the release's basis."""
Decompose = Callable[[], tuple[NDArray[np.floating], tuple[int, ...]]]
"""Computes scores on the release's basis, and the clicks of each channel."""


class Mechanism(Protocol):
    """A mechanism as the ledger and the page see it.

    Where they apply, it also has `truth`, the chance that what is sent is true, `epsilon_per_score` and
    `epsilon_per_channel`.
    """

    @property
    def epsilon_per_report(self) -> float:
        """What one fresh report costs."""

    def parameters(self) -> dict[str, float]:
        """Return the mechanism's numbers, for the ledger."""

    def figures(self) -> Mapping[str, float]:
        """Return the mechanism's numbers for people, by the names that its label's texts use."""


class Reporter(Protocol):
    """Makes the reports of one mode under one release."""

    @property
    def name(self) -> str:
        """The name of its report mode."""

    @property
    def made_from(self) -> MadeFrom:
        """The part of the reader's input that it reports."""

    @property
    def meaning(self) -> ReportMeaning:
        """The meaning of its reports.

        It decides under what a draw is stored and whether it is carried over.
        """

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that it draws from, with its epsilon."""

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """The input with its clicks decomposed on basic interests, if it reports these.

        labels [H]: the channel of every click.
        """

    def shown(self, reader: ReportInput) -> Clear:
        """What the report is made of, for the reader alone: the true value, and the steps that led to it."""

    def value(self, reader: ReportInput | None) -> int | None:
        """Return the true value that is sent with noise, if each value is drawn only once.

        UNKNOWN for a blank report; None if every report is drawn again.
        """

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[MadeReport, Clear]:
        """Make a fresh report, and what it says without the noise, for the reader alone.

        Raises ValueError. reader None: a blank report, of a reader who has read too little for one; it says nothing in
        clear.

        Formal guarantees: a blank report is one more input of the mechanism, at the same epsilon. By a codebook it
        is the mechanism on a value drawn uniformly: a mixture of distributions, each of which lies within
        exp(epsilon) of any other, lies within exp(epsilon) of each of them. On a basis it is the scores 0 of one
        channel, within the mechanism's bounds. It is computed from no click.
        """
