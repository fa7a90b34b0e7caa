"""What the modes that report by a release's codebook have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.modes.mode import Reporter, ReportRelease, ReportTerms
from device_app.privacy.report_meaning import ReportMeaning, gram, meaning_name
from device_app.wire.releases import Codebook, RecallProtocol


@dataclass(frozen=True)
class ByCodebook:
    """Base of reporters by a codebook's prototypes [K, D]."""

    codebook: Codebook
    prototypes: NDArray[np.float32]
    under: ReportRelease = field(default_factory=ReportRelease)
    name: ClassVar[str]

    @property
    def meaning(self) -> ReportMeaning:
        """Prototypes, K, epsilon, and the vectors that they are compared with."""
        book = self.codebook
        mechanism = f"{self.name}/{book.size}/{book.epsilon!r}"
        name = meaning_name(mechanism, book.prototypes.sha256, self.under.generation)
        return ReportMeaning(name, mechanism, self.under.encoder, book.prototypes.sha256, gram([self.prototypes]))


def affordable(protocol: RecallProtocol, epsilon_limit: float) -> Codebook | None:
    """The codebook of the greatest epsilon within the limit (of equal ones, the largest); None if there is none."""
    within = [book for book in protocol.codebooks if book.epsilon <= epsilon_limit]
    return max(within, key=lambda book: (book.epsilon, book.size), default=None)


def by_codebook(
    make: Callable[[Codebook, NDArray[np.float32], ReportRelease], Reporter],
) -> Callable[[ReportTerms], Reporter | None]:
    """`ReportMode.reporter` of a mode by the finest codebook within the reader's limit."""

    def reporter(terms: ReportTerms) -> Reporter | None:
        book = affordable(terms.protocol, terms.epsilon_limit)
        if book is None or book.size not in terms.spaces.prototypes:
            return None
        return make(book, terms.spaces.prototypes[book.size], terms.under)

    return reporter
