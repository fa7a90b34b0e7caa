"""The meaning of a report's number, and whether another release's codebook means the same.

A server chooses the names of its prototypes, so this device relies on what it can compute: their inner products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

GRAM_TOLERANCE = 1e-4
"""Largest allowed change of an inner product of two carried prototypes. A rotation rounded to float32 changes one by
2e-7, a thousand successive rotations by 3e-6. It decides what a number means, not what is sent."""


@dataclass(frozen=True)
class ReportMeaning:
    """Two reports with the same `name` and the same number say the same.

    name: hash of everything that the server controls and that the true value is computed from. mechanism: by name, with
    size and epsilon. encoder: of the reader's vectors. directions: hash of what these are compared with, the
    prototypes; empty for reports by the basis, which are never carried over. gram: the directions' inner products [n,
    n], which no rotation of the space changes.
    """

    name: str
    mechanism: str
    encoder: str
    directions: str = ""
    gram: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))

    def carried_to(self, offered: ReportMeaning) -> bool:
        """Return whether a number drawn under this meaning may be sent again under `offered`.

        It is sent unchanged. It may under the same meaning; with the same directions in the space of the same encoder;
        and, in the space of another news encoder, if the offered directions are a rotation of these: same mechanism,
        and same inner products within GRAM_TOLERANCE. A rotation without a new encoder has no legitimate reason.
        """
        if self.name == offered.name:
            return True
        if self.mechanism != offered.mechanism or not self.gram.size or self.gram.shape != offered.gram.shape:
            return False
        if self.encoder == offered.encoder:
            return self.directions == offered.directions
        return bool(np.abs(self.gram - offered.gram).max() <= GRAM_TOLERANCE)


def gram(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return inner products [n, n] of all these rows [.., D] together."""
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
