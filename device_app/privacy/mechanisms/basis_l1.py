"""Uni-FedRec's report with a correct guarantee: vectors bounded in L1, always C_max of them, and no counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.exact_samplers import discrete_laplace
from device_app.privacy.mechanisms.basis_laplace import check_sizes, checked
from device_app.privacy.noise_sources import NoiseSource
from protocol.recall import onto_l1_ball
from protocol.releases import RecallProtocol

NAME = "basis_l1"
GRID_BITS = 16


@dataclass(frozen=True)
class BasisL1:
    """Each channel's a_c [B] projected onto the L1 ball of radius A, then discrete Laplace noise on every score.

    radius: A. scale: lambda. share_scale: Laplace scale of the shares of clicks by channel, or None to send none (the
    server then gives all channels equal weight). Channels that a reader lacks are also sent, as noise around zero.

    Formal guarantees, in pure local differential privacy, for any two readers whatsoever, of integers on a grid of
    2^-16 with `exact_samplers.discrete_laplace`, so exactly:

    - one *whole channel* (not one score): 2 A / lambda. With A = delta this is the figure that Uni-FedRec states for
    one coordinate, 0.333 at the paper's 0.2 and 1.2;
    - one report: C_max times that, 1.667, plus 2 / share_scale if shares are sent. C itself is not revealed.
    - S fresh reports: S times. Sending one again costs nothing.

    Not covered: whether and when a reader reports, and from which address. With this much noise the scores reveal
    hardly anything (docs/results/recall.md): this is a correct form of the paper's mechanism, but not a useful one.
    """

    radius: float
    scale: float
    basis_size: int
    channels_limit: int
    share_scale: float | None = None

    def __post_init__(self) -> None:
        scales = [("radius", self.radius), ("scale", self.scale)]
        if self.share_scale is not None:
            scales.append(("share_scale", self.share_scale))
        for name, value in scales:
            if not (math.isfinite(value) and 2.0**-10 <= value <= 2.0**10):
                raise ValueError(f"{name} must be 2^-10 to 2^10; got {value}")
        check_sizes(self.basis_size, self.channels_limit)

    @classmethod
    def under(cls, protocol: RecallProtocol) -> BasisL1:
        """The mechanism at a release's figures: A = delta, lambda = lambda_I, no shares."""
        return cls(protocol.score_clip, protocol.score_noise, protocol.basis_size, protocol.channels_limit)

    @property
    def epsilon_per_channel(self) -> float:
        """2 A / lambda, of a whole channel."""
        return 2 * self.radius / self.scale

    @property
    def epsilon_of_shares(self) -> float:
        """2 / share_scale: two points of the simplex differ by at most 2 in L1. 0 if none are sent."""
        return 0.0 if self.share_scale is None else 2 / self.share_scale

    @property
    def epsilon_per_report(self) -> float:
        """What one fresh report costs."""
        return self.epsilon_per_channel * self.channels_limit + self.epsilon_of_shares

    def projected(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Scores [C, B] to [C_max, B], each row within the L1 ball, missing channels zero.

        Raises ValueError for another shape or a value not finite.
        """
        checked_scores = checked(scores, self.basis_size, self.channels_limit)
        whole = np.zeros((self.channels_limit, self.basis_size))
        whole[: len(checked_scores)] = [onto_l1_ball(row, self.radius) for row in checked_scores]
        return whole

    def release(self, scores: NDArray[np.floating], source: NoiseSource) -> NDArray[np.float64]:
        """Scores [C, B] to noisy scores [C_max, B]. See the class for the guarantee; errors as in `projected`."""
        bound = math.floor(self.radius * 2**GRID_BITS)
        steps = np.trunc(self.projected(scores) * 2**GRID_BITS).astype(np.int64)  # towards 0: the norm only shrinks
        for row in steps:
            over = int(np.abs(row).sum()) - bound
            if over > 0:
                at = int(np.argmax(np.abs(row)))
                row[at] -= np.sign(row[at]) * over
        noise = discrete_laplace(source, math.ceil(self.scale * 2**GRID_BITS), steps.size)
        noisy: NDArray[np.float64] = (steps + noise.reshape(steps.shape)) / 2**GRID_BITS
        return noisy

    def release_shares(self, counts: NDArray[np.int64], source: NoiseSource) -> NDArray[np.float64]:
        """Clicks by channel [C] to noisy shares [C_max]; empty if none are sent. See the class."""
        if self.share_scale is None:
            return np.empty(0)
        if not 1 <= len(counts) <= self.channels_limit or counts.min() < 0 or not counts.sum():
            raise ValueError(f"counts must be 1 to {self.channels_limit} numbers of clicks; got {counts.tolist()}")
        steps = np.zeros(self.channels_limit, dtype=np.int64)
        steps[: len(counts)] = counts * 2**GRID_BITS // counts.sum()
        noise = discrete_laplace(source, math.ceil(self.share_scale * 2**GRID_BITS), self.channels_limit)
        noisy: NDArray[np.float64] = (steps + noise) / 2**GRID_BITS
        return noisy

    def parameters(self) -> dict[str, float]:
        """Return the mechanism's numbers, for the ledger."""
        shares = {} if self.share_scale is None else {"share_scale": self.share_scale}
        return {
            "radius": self.radius,
            "scale": self.scale,
            "basis_size": float(self.basis_size),
            "channels_limit": float(self.channels_limit),
        } | shares

    def figures(self) -> dict[str, float]:
        """Return its figures for display, by their names in its label's texts."""
        return {
            "channels": self.channels_limit,
            "basis": self.basis_size,
            "radius": self.radius,
            "deviation": self.scale * 2**0.5,
        }
