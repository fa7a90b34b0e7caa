"""What a report says becomes vectors to search with (ALGORITHMS 2.3, steps 6 and 7).

Symbols: C channels, B basis size, D dimensions. Each kind of report has its decoder in `DECODERS`; a new kind is a new
entry there, a mechanism on the device and a member of the wire's union.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import InvalidRequest
from backend.recall.served import ServedRelease
from device_app.wire.recall import BasisLaplaceReport, NoReport


@dataclass(frozen=True)
class Interests:
    """What to search for: r^_c [C, D] and the clicks behind each channel. C = 0: nothing is known of the reader."""

    vectors: NDArray[np.float32]
    counts: tuple[int, ...]


def aggregate(scores: NDArray[np.float64], basis_values: NDArray[np.float32]) -> NDArray[np.float32]:
    """r^_c = sum_i softmax(a^_c)_i value_i: scores [C, B], basis_values [B, D] -> [C, D].

    Each row lies in the convex hull of the value rows; adding a constant to a row of scores changes nothing.
    """
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))  # [C, B]
    weights = powers / powers.sum(axis=1, keepdims=True)
    interests: NDArray[np.float64] = weights @ basis_values  # [C, D]
    return interests.astype(np.float32)


def _decode_basis_laplace(report: BasisLaplaceReport, release: ServedRelease) -> Interests:
    basis_size = len(release.basis_values)
    width, channels = len(report.scores[0]), len(report.scores)
    if width != basis_size:
        raise InvalidRequest(
            f"Each channel has {width} scores; release {release.release} has a basis of {basis_size}.",
            field="report.scores",
            limit=f"exactly {basis_size} scores a channel",
        )
    if channels > release.channels_limit:
        raise InvalidRequest(
            f"The report has {channels} channels; release {release.release} takes at most {release.channels_limit}.",
            field="report.scores",
            limit=f"at most {release.channels_limit} channels",
        )
    return Interests(aggregate(np.array(report.scores, dtype=np.float64), release.basis_values), report.counts)


def _decode_none(report: NoReport, release: ServedRelease) -> Interests:
    return Interests(np.empty((0, release.basis_values.shape[1]), dtype=np.float32), ())


DECODERS: Mapping[str, Callable[[Any, ServedRelease], Interests]] = {
    "basis_laplace": _decode_basis_laplace,
    "none": _decode_none,
}


def compose(report: BasisLaplaceReport | NoReport, release: ServedRelease) -> Interests:
    """Decode a report under the release it names. Raises InvalidRequest if its shape isn't the release's."""
    return DECODERS[report.kind](report, release)
