"""`direction`, for comparison: a random direction biased to the reader's, by PrivUnit (`mechanisms.direction`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.mechanisms.direction import PrivUnit
from device_app.privacy.modes.mode import WORDS, Clear, DrawnAnew, ReportInput, ReportMode, ReportRelease, ReportTerms
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.report_meaning import ReportMeaning, gram, meaning_name
from device_app.wire.recall import DirectionReport


@dataclass(frozen=True)
class DirectionReporter(DrawnAnew):
    """Reports the vector in a projection [8, D]. Formal guarantees: `PrivUnit`'s, for each report.

    matrix is the projection's hash; prototypes stand beside it to show a turn of the space.
    """

    epsilon: float
    projection: NDArray[np.float32]
    matrix: str = ""
    prototypes: tuple[NDArray[np.float32], ...] = ()
    under: ReportRelease = field(default_factory=ReportRelease)
    name: ClassVar[str] = "direction"

    @property
    def meaning(self) -> ReportMeaning:
        """The projection [8, D], whose rows are orthonormal in every release: a turn shows together with prototypes."""
        mechanism = f"{self.name}/{self.epsilon!r}"
        name = meaning_name(mechanism, self.matrix, self.under.generation)
        return ReportMeaning(
            name, mechanism, self.under.encoder, self.matrix, gram([self.projection, *self.prototypes])
        )

    @property
    def mechanism(self) -> PrivUnit:
        """PrivUnit."""
        return PrivUnit(self.epsilon, len(self.projection))

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[DirectionReport, Clear]:
        """Draw a direction; a reader whose clicks cancel out counts as one in the first axis."""
        true = self.projection.astype(np.float64) @ reader.vector
        length = float(np.linalg.norm(true))
        true = true / length if length > 0 else np.eye(len(true))[0]
        return DirectionReport(vector=tuple(self.mechanism.release(true, noise).tolist())), (tuple(true.tolist()),)


def _reporter(terms: ReportTerms) -> DirectionReporter | None:
    offered, spaces = terms.protocol.projection, terms.spaces
    if offered is None or spaces.projection is None or offered.epsilon > terms.epsilon_limit:
        return None
    beside = tuple(spaces.prototypes[size] for size in sorted(spaces.prototypes))
    return DirectionReporter(offered.epsilon, spaces.projection, offered.matrix.sha256, beside, terms.under)


DIRECTION = ReportMode(
    name="direction",
    title=WORDS("direction_title"),
    paragraph=lambda book: WORDS("direction_paragraph"),
    for_comparison=True,
    report=DirectionReport,
    reporter=_reporter,
    made_from="vector",
    rows=lambda report: (report.vector,),
    row_label="Direction",
)
