"""Uni-FedRec's noisy scores ("Privacy Protection"): clip every score, then add independent Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource, laplace
from protocol.releases import RecallProtocol


def check_sizes(basis_size: int, channels_limit: int) -> None:
    """Raises ValueError unless B and C_max are 1 or more."""
    if basis_size < 1 or channels_limit < 1:
        raise ValueError(f"basis_size and channels_limit must be 1 or more; got {basis_size}, {channels_limit}")


def checked(scores: NDArray[np.floating], basis_size: int, channels_limit: int) -> NDArray[np.float64]:
    """Return raw scores [C, B] as doubles. Raises ValueError for another shape or a value not finite."""
    if scores.ndim != 2 or scores.shape[1] != basis_size or not 1 <= len(scores) <= channels_limit:
        raise ValueError(f"scores has shape {scores.shape}; expected 1 to {channels_limit} channels of {basis_size}")
    if not np.isfinite(scores).all():
        raise ValueError("scores has values that are not finite: nothing is released")
    return scores.astype(np.float64)


NAME = "basis_laplace"


@dataclass(frozen=True)
class BasisLaplace:
    """a^_{c,i} = clip(a_{c,i}, -delta, delta) + Laplace(0, lambda_I).

    clip: delta. scale: lambda_I. basis_size: B. channels_limit: C_max. Raises ValueError for a scale of 0: scores
    without noise never leave the device.

    Formal guarantees, in pure local differential privacy of the scores, for any two readers whatsoever (the sensitivity
    2 delta of a clipped score needs no notion of neighbouring histories). At the paper's delta = 0.2, lambda_I = 1.2,
    B = 30, C_max = 5:

    - one score: epsilon = 2 delta / lambda_I = 0.333. This is the figure that the paper states;
    - one channel: B scores at once, 10;
    - one report (session): up to C_max channels, 50. The ledger always charges this figure, even for fewer channels;
    - S reports with fresh noise: 50 S. A report that is sent again is not fresh: it costs nothing.

    An epsilon of 50 is no practical protection by itself. What hides a reader at these settings is that the noise
    (standard deviation 1.7) swamps scores of at most 0.2; so recall, too, gains little (docs/results/recall.md).

    Not covered by any of these figures, because they carry no noise:

    - C, how many channels a reader has, and the counts |H_c| of clicks in each;
    - that a reader has no clicks (then visibly nothing is reported);
    - when reports change, the network address they come from, and what the server infers from several reports that it
    can link.

    The limits of floating-point Laplace noise: adding doubles leaves traces of the exact score in the low bits
    (Mironov, CCS 2012), so the bounds hold for the ideal distribution, not for every bit of these doubles. `reports`
    rounds what it sends to a grid of 2^-16, far coarser than those traces, which is post-processing and removes the
    known attack; the proof needs a sampler that is exact on a grid (discrete Laplace) or the snapping mechanism. Draws
    also never pass 36.74 lambda_I, an extra delta below 2^-53 a score.
    """

    clip: float
    scale: float
    basis_size: int
    channels_limit: int

    def __post_init__(self) -> None:
        for name, value in (("clip", self.clip), ("scale", self.scale)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be positive and finite; got {value}")
        check_sizes(self.basis_size, self.channels_limit)

    @classmethod
    def under(cls, protocol: RecallProtocol) -> BasisLaplace:
        """The mechanism with a release's parameters."""
        return cls(protocol.score_clip, protocol.score_noise, protocol.basis_size, protocol.channels_limit)

    @property
    def epsilon_per_score(self) -> float:
        """2 delta / lambda_I, the papers' figure for one coordinate."""
        return 2 * self.clip / self.scale

    @property
    def epsilon_per_channel(self) -> float:
        """2 delta B / lambda_I."""
        return self.epsilon_per_score * self.basis_size

    @property
    def epsilon_per_report(self) -> float:
        """2 delta B C_max / lambda_I: charged for every fresh report, since C itself reveals the number of channels."""
        return self.epsilon_per_channel * self.channels_limit

    def clipped(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Scores [C, B] bounded to [-delta, delta]. Raises ValueError for another shape or a value not finite."""
        return np.clip(checked(scores, self.basis_size, self.channels_limit), -self.clip, self.clip)

    def release(self, scores: NDArray[np.floating], source: NoiseSource) -> NDArray[np.float64]:
        """Clip, then noise: [C, B] to [C, B]. See the class for the guarantee; errors as in `clipped`."""
        bounded = self.clipped(scores)
        return bounded + laplace(source, self.scale, bounded.shape)

    def parameters(self) -> dict[str, float]:
        """Return the mechanism's numbers, for the ledger."""
        return {
            "clip": self.clip,
            "scale": self.scale,
            "basis_size": float(self.basis_size),
            "channels_limit": float(self.channels_limit),
        }

    def figures(self) -> dict[str, float]:
        """Return its figures for display, by their names in its label's texts."""
        return {
            "channels": self.channels_limit,
            "basis": self.basis_size,
            "clip": self.clip,
            "deviation": self.scale * 2**0.5,
        }
