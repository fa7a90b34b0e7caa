"""What every reporter shares: the terms that it reports under, and its interface to a mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.report_meaning import ReportMeaning
from device_app.privacy.reporter import Clear, Decompose, MadeFrom, MadeReport, Mechanism, ReportInput
from protocol.releases import RecallProtocol

M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True)
class PublicVectors:
    """A release's public vectors: prototypes [K, D] by K."""

    prototypes: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReportRelease:
    """The release that a report is made under, and the encoder of its vectors.

    generation names those vectors as stored on this device (`PulledShards.generation`): an encoder that was replaced
    and later restored has a different one.
    """

    release: str = ""
    encoder: str = ""
    generation: str = ""


@dataclass(frozen=True)
class ReportTerms:
    """What a release proposes and a reader allows. epsilon_limit: most that one report by a codebook may cost; the
    release sets the cost of reports by the basis."""

    epsilon_limit: float
    protocol: RecallProtocol
    spaces: PublicVectors
    under: ReportRelease


@dataclass(frozen=True, kw_only=True)
class ModeReporter(ABC, Generic[M]):
    """A `privacy.reporter.Reporter` with its mechanism; subclasses say what they report and how.

    name: of the mode. report: the protocol's type of its reports. made_from: the part of the input that it reports.
    """

    name: ClassVar[str]
    report: ClassVar[type[MadeReport]]
    made_from: ClassVar[MadeFrom]
    mechanism: M
    under: ReportRelease = field(default_factory=ReportRelease)

    @classmethod
    @abstractmethod
    def of(cls, mechanism: Callable[..., M], terms: ReportTerms) -> Self | None:
        """The reporter under these terms, drawing from such a mechanism; None if the release doesn't support it."""

    @property
    @abstractmethod
    def meaning(self) -> ReportMeaning:
        """See `Reporter.meaning`."""

    def decomposed(self, reader: ReportInput, labels: NDArray[np.int64], on_basis: Decompose) -> ReportInput:
        """See `Reporter.decomposed`; by default the input as it is."""
        return reader

    def shown(self, reader: ReportInput) -> Clear:
        """See `Reporter.shown`; by default the true value alone."""
        value = self.value(reader)
        return () if value is None else ((float(value),),)

    def value(self, reader: ReportInput | None) -> int | None:
        """See `Reporter.value`; None if there are too many values to keep each draw: then every report is drawn."""
        return None

    @abstractmethod
    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[Any, Clear]:
        """See `Reporter.make`."""
