"""The input of a report, and the interface for drawing a noisy report from it.

A report's number may mean the same under another release's codebook. A server chooses the names of its prototypes, so
this device relies on what it can compute: their inner products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource
from protocol.recall import BasisL1Report, BasisLaplaceReport, CodeReport, NoReport, SubsetReport, TopicsReport

GRAM_TOLERANCE = 1e-4
"""Largest allowed change of an inner product of two carried prototypes. A rotation rounded to float32 changes one by
2e-7, a thousand successive rotations by 3e-6. It decides what a number means, not what is sent."""


@dataclass(frozen=True)
class ReportMeaning:
    """What a report's number means: reports with the same `name` and number say the same.

    name: hash of everything that the server controls and that the true value is computed from. mechanism: its name,
    size and epsilon. encoder: the encoder of the reader's vectors. directions: hash of the prototypes that the vectors
    are compared with; empty for reports by the basis, which are never carried over. gram: the directions' inner
    products [n, n], which no rotation of the space changes.
    """

    name: str
    mechanism: str
    encoder: str
    directions: str = ""
    gram: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))

    def carried_to(self, offered: ReportMeaning) -> bool:
        """Return whether a number drawn under this meaning may be sent again under `offered`.

        It would be sent unchanged. This is allowed under the same meaning; with the same directions and the same
        encoder; and, with another news encoder, if the offered directions are a rotation of these: same mechanism, and
        same inner products within GRAM_TOLERANCE. There is no legitimate reason for a rotation without a new encoder.
        """
        if self.name == offered.name:
            return True
        if self.mechanism != offered.mechanism or not self.gram.size or self.gram.shape != offered.gram.shape:
            return False
        if self.encoder == offered.encoder:
            return self.directions == offered.directions
        return bool(np.abs(self.gram - offered.gram).max() <= GRAM_TOLERANCE)


def gram(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the inner products [n, n] of all these rows [.., D] together."""
    stacked = np.concatenate([each.astype(np.float64) for each in rows])
    return np.asarray(stacked @ stacked.T, dtype=np.float32)


def meaning_name(*parts: str) -> str:
    """Return `ReportMeaning.name`, the SHA-256 of these parts.

    They must be all that the server controls and that a true value is computed from.
    """
    return sha256("\n".join(parts).encode()).hexdigest()


def meaning_of_release(mode: str, release: str, encoder: str, generation: str) -> ReportMeaning:
    """Return the meaning of reports by a release's own basis.

    They are never carried over to another release.
    """
    return ReportMeaning(meaning_name(mode, release, generation), mode, encoder)


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
"""Key under which a blank report is stored by mechanisms that keep one draw per value."""

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
        """Return the mechanism's figures for display, by their names in its label's texts."""


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

        It decides which stored draw is reused and whether it is carried over.
        """

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that it draws from, with its epsilon."""

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """Return the input with its clicks decomposed on basic interests, if the mode reports these.

        labels [H]: the channel of each click.
        """

    def shown(self, reader: ReportInput) -> Clear:
        """Return what the report is made from, for the reader only: the true value and the steps to it."""

    def value(self, reader: ReportInput | None) -> int | None:
        """Return the true value that is sent with noise, if each value is drawn only once.

        UNKNOWN for a blank report; None if every report is a fresh draw.
        """

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[MadeReport, Clear]:
        """Make a fresh report, and its content without noise for the reader only.

        Raises ValueError. reader None: a blank report, of a reader who has read too little for one; its content without
        noise is empty.

        Formal guarantees: a blank report is one more possible input of the mechanism, at the same epsilon. With a
        codebook it is the mechanism applied to a uniformly drawn value: a mixture of distributions, each of which lies
        within exp(epsilon) of any other, lies within exp(epsilon) of each of them. With a basis it is one channel of
        zero scores, within the mechanism's bounds. It is computed from no click.
        """
