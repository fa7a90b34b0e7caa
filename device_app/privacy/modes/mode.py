"""What a report mode is: one value that says how interests are reported, in what words, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.report_meaning import ReportMeaning, meaning_of_release
from device_app.prose import Prose
from device_app.recall_frontier import ListChoice
from device_app.wire.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    DirectionReport,
    NoReport,
    SubsetReport,
    TopicsReport,
)
from device_app.wire.releases import Codebook, RecallProtocol


@dataclass(frozen=True)
class ReportInput:
    """Sensitive: what a report is made from. clicks is [H, D]; H is 0 where no clicked news has a vector here.

    For modes made from the decomposition alone: raw scores [C, B] on the basic interests, and counts [C], the clicks
    of each channel. searched is the second view's vector [D], of length 1: saved searches and followed topics. None:
    there are none, or they are kept out of reports.
    """

    clicks: NDArray[np.float32]
    scores: NDArray[np.floating] = field(default_factory=lambda: np.empty((0, 0)))
    counts: tuple[int, ...] = ()
    searched: NDArray[np.float32] | None = None

    @property
    def vector(self) -> NDArray[np.float32]:
        """u: the mean of the click vectors, scaled to length 1 (zero where they cancel out); with a second view, the
        mean of both views' vectors, scaled again.

        Views count alike, as in FL-MV-DSSM's Algorithm 2: each gives its vector and not how much stands behind it.
        """
        read = user_vector(self.clicks)
        return read if self.searched is None else user_vector(np.stack([read, self.searched]))


def user_vector(clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of clicks [H, D], scaled to length 1; zero where they cancel out, or where there are none."""
    if not len(clicks):
        return np.zeros(clicks.shape[1], dtype=np.float32)
    mean = clicks.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 0 else mean, dtype=np.float32)


MadeReport = BasisLaplaceReport | BasisL1Report | CodeReport | TopicsReport | DirectionReport | SubsetReport | NoReport
Clear = tuple[tuple[float, ...], ...]
FEWEST_NEW_CLICKS = 3
WORDS = Prose("device_app.privacy", "words.toml")
WHEN = WORDS("uncovered")


@dataclass(frozen=True)
class PublicVectors:
    """A release's public vectors: prototypes [K, D] by K, and the projection [8, D]."""

    prototypes: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)
    projection: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class ReportRelease:
    """Which release a report is made under, and in the vectors of which encoder.

    generation names those vectors as they are on this device (`PulledShards.generation`): an encoder that went and came
    back has another.
    """

    release: str = ""
    encoder: str = ""
    generation: str = ""


@dataclass(frozen=True)
class ReportTerms:
    """What a release proposes and a reader allows. epsilon_limit: most that one report by a codebook or a projection
    may cost; the costs of reports by the basis are the release's."""

    epsilon_limit: float
    protocol: RecallProtocol
    spaces: PublicVectors
    under: ReportRelease


class Mechanism(Protocol):
    """A mechanism as the ledger and the page know it.

    One that has them besides shows `truth`, the chance that what is sent is true, `epsilon_per_score` and
    `epsilon_per_channel`.
    """

    @property
    def epsilon_per_report(self) -> float:
        """What one fresh report costs."""

    def parameters(self) -> dict[str, float]:
        """The mechanism's numbers, for the ledger."""

    def words(self) -> str:
        """What is sent, in one sentence for the reader."""


class Reporter(Protocol):
    """Makes the reports of one mode under one release."""

    @property
    def name(self) -> str:
        """The name of its report mode."""

    @property
    def meaning(self) -> ReportMeaning:
        """What its reports mean, on which hang what a drawn number is kept by and whether it is carried over."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that it draws from, with its epsilon."""

    def value(self, reader: ReportInput) -> int | None:
        """The true value that is told with noise, where one drawing a value serves for good; else None."""

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[MadeReport, Clear]:
        """A fresh report, and what it tells without the noise, for the reader alone. Raises ValueError."""


class DrawnAnew:
    """Base of reporters that tell one of too many values for what was drawn to serve again."""

    def value(self, reader: ReportInput) -> None:
        """None: each report is drawn anew and charged."""


@dataclass(frozen=True, kw_only=True)
class OnTheBasis(DrawnAnew):
    """Base of reporters of scores on a release's basic interests; `name` is the mode's."""

    name: ClassVar[str]
    under: ReportRelease = field(default_factory=ReportRelease)

    @property
    def meaning(self) -> ReportMeaning:
        """The release's basis."""
        return meaning_of_release(self.name, self.under.release, self.under.encoder, self.under.generation)


def as_many_again(clicks_behind: int, clicks_per_report: int) -> int:
    """New clicks after which a report is out of date: as many as stood behind it, 3 to `clicks_per_report`.

    A report made from three clicks says little; once there are many, 20 new ones change little (docs/decisions/021).
    """
    return min(clicks_per_report, max(FEWEST_NEW_CLICKS, clicks_behind))


@dataclass(frozen=True)
class PoolTerms:
    """By what a list is chosen: what a release says to every device, and what the reader allows; nothing of clicks.

    news: of the pool, as the release says. epsilon_limit: most that a report may cost; bytes_limit: most that an
    answer, or the copy of the pool, may weigh.
    """

    news: int
    protocol: RecallProtocol
    epsilon_limit: float
    bytes_limit: float


@dataclass(frozen=True)
class ReportMode:
    """One way of reporting interests, or of doing without.

    name: as in the settings, on the page and in the ledger. finds: who finds news beyond the default list: the server
    by a report, this device in its copy of the pool ('here'), or nobody. paragraph: the page's words, given the
    codebook that the reader's limit allows. for_comparison: offered apart from the modes for readers.

    Of a mode that reports: reporter makes its reports under terms, None where the release can't serve it. report is the
    wire's type; the server decodes it by its kind. made_from: what of `ReportInput` a report is made from: the 'clicks'
    themselves, the reader's one 'vector', in which both views weigh, or the 'decomposition' on the release's basis.
    outdated_after: new clicks after which a report is out of date, given those behind it and the setting
    `clicks_per_report`; what has a report carried over to another release is its reporter's `meaning`. rows and counts:
    what a report says, row by row, and the counts it tells in clear; row_label names a row that is no channel, and
    in_a_sentence says that there is but one true number, shown in a sentence. uncovered: what no figure covers.

    stricter_up_to: recommended as the stricter choice for pools of at most so many news.

    chooses: of a mode that stands for another by the pool's size: which, and how long a list. Until a release has said
    how large its pool is, it reports nothing.
    """

    name: str
    title: str
    paragraph: Callable[[Codebook | None], str]
    finds: Literal["server", "here", "nobody"] = "server"
    for_comparison: bool = False
    report: type[MadeReport] | None = None
    reporter: Callable[[ReportTerms], Reporter | None] | None = None
    made_from: Literal["clicks", "vector", "decomposition"] = "clicks"
    outdated_after: Callable[[int, int], int] = as_many_again
    rows: Callable[[Any], Clear] = lambda report: ()
    counts: Callable[[Any], tuple[int, ...]] = lambda report: ()
    row_label: str | None = None
    in_a_sentence: bool = False
    uncovered: str = WHEN
    stricter_up_to: int | None = None
    chooses: Callable[[PoolTerms], ListChoice] | None = None

    def __post_init__(self) -> None:
        if (self.finds == "server") != (self.report is not None) or (self.report is None) != (self.reporter is None):
            raise ValueError(f"{self.name}: a mode needs report and reporter exactly where the server finds news by it")

    @property
    def decoder(self) -> str | None:
        """The name of the server's decoder, which is the kind of its reports; None where nothing is reported."""
        return None if self.report is None else str(self.report.model_fields["kind"].default)
