"""The protections that an update may need before it leaves a device, a tagged union."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from protocol.concentrated import epsilon_of, rho_of_sum
from protocol.ids import Message
from protocol.ring import FixedPoint, UpdateLayout
from protocol.secagg import MEMBERS_LIMIT, NOISE_REACH, SumTerms, TrustMode
from protocol.union import UnionMarks

SAMPLES = "samples"
"""Name of the tensor [1] that holds n_u in an update under local noise whose devices are weighted."""


class LocalLaplace(Message):
    """Clip every coordinate to [-clip, clip] and add Laplace(0, scale), on the device.

    With a weight_limit above 1 a device also sends n_u, its number of samples, unencrypted, as the tensor SAMPLES. No
    epsilon bounds what n_u reveals.

    Source: Uni-FedRec, eq. 8; FedNewsRec, eqs. 4 to 6.
    """

    kind: Literal["local_laplace"] = "local_laplace"
    clip: float = Field(default=0.1, gt=0, description="theta")
    scale: float = Field(default=0.01, gt=0, description="lambda_g")
    weight_limit: int = Field(
        default=1,
        ge=1,
        le=1024,
        description="The cap of n_u, sent in clear; 1: devices count alike, n_u isn't sent.",
    )

    def epsilon_per_coordinate(self) -> float:
        """Return 2 theta / lambda_g, the figure in the papers.

        It is the pure epsilon of one coordinate of one upload.
        """
        return 2 * self.clip / self.scale

    def epsilon_per_upload(self, coordinates: int) -> float:
        """Return the pure epsilon of a whole upload with this many coordinates."""
        return self.epsilon_per_coordinate() * coordinates


class SecureSum(Message):
    """A secure sum of clipped, weighted updates (Efficient-FedRec, eq. 4, section 3.4).

    A device scales its mean gradient into the L2 ball of radius clip, weights it by n_u, encodes it in fixed point, and
    sends it under masks, so that only the sum over the cohort can be opened.

    sigma is each device's share of discrete Gaussian noise, in steps of 2^-fraction_bits, so that the opened sum of n
    survivors has noise sigma sqrt(n). 0 means no noise: then the exact sum is opened, and no epsilon bounds what it
    reveals. With noise all devices have equal weight (weight_limit 1), since n_u would be in the sum under noise scaled
    for gradients.

    The constructor raises ValueError unless a sum of cohort_limit vectors, and their noise, fits the ring.
    """

    kind: Literal["secure_sum"] = "secure_sum"
    clip: float = Field(gt=0, description="C")
    weight_limit: int = Field(default=1, ge=1, le=1024, description="The cap of n_u; 1: devices count alike.")
    sigma: int = Field(default=0, ge=0, le=2**24, description="One share of the noise, in steps; 0: none.")
    delta: float = Field(
        default=1e-6, gt=0, lt=1, description="At which the server tells epsilon; devices figure it at their own."
    )
    mode: TrustMode = "active"
    graph: Literal["complete", "by_cohort"] = Field(default="by_cohort", description="Sparse above 100 devices.")
    bits: Literal[32, 64] = 32
    fraction_bits: int = Field(default=16, ge=0, le=62, description="f")
    cohort_limit: int = Field(default=1_000, ge=2, le=MEMBERS_LIMIT)
    nonnegative: bool = Field(
        default=False, description="No value is below 0, as in counts: exchanging data then moves less."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.sigma and self.weight_limit != 1:
            raise ValueError(f"weight_limit: must be 1 if the sum has noise, got {self.weight_limit}")
        self._fixed_point(self.cohort_limit)
        return self

    @property
    def bound(self) -> float:
        """X: the largest absolute value of a coordinate of n_u g."""
        return self.clip * self.weight_limit

    @property
    def reach_steps(self) -> float:
        """The largest distance by which replacing a device's data moves its vector, in steps.

        It is 2 C, the diameter of the ball, or sqrt(2) C if no value is negative, since then |x - y|^2 <= |x|^2 +
        |y|^2.
        """
        return (math.sqrt(2) if self.nonnegative else 2) * self.clip * 2.0**self.fraction_bits

    def terms(self, round_id: str, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms:
        """Return the terms against which both ends check a round's messages.

        Raises ValueError if the cohort is too large for the ring.
        """
        return SumTerms(
            round=round_id,
            mode=self.mode,
            graph=SumTerms.graph_of(self.graph, cohort, self.cohort_limit),
            cohort=cohort,
            cohort_minimum=cohort_minimum,
            length=coordinates + 1,
            bits=self.bits,
            fraction_bits=self.fraction_bits,
            bound=self.bound,
            headroom=self._headroom(cohort),
        )

    def layout(self, shapes: Mapping[str, tuple[int, ...]], terms: SumTerms) -> UpdateLayout:
        """Return the layout of an update's tensors in a vector under these terms."""
        return UpdateLayout(shapes, terms.fixed_point(), self.weight_limit)

    def rho(self, contributors: int, coordinates: int) -> float:
        """Return rho of the opened sum with this many shares of noise.

        It is for replacing all of a device's data.

        Raises ValueError without noise.
        """
        if not self.sigma:
            raise ValueError("sigma: rho is not defined without noise")
        return rho_of_sum(self.reach_steps, self.sigma, contributors, coordinates)

    def epsilon(self, contributors: int, coordinates: int) -> float:
        """Return `rho` as an epsilon at `delta`, for the server's pages.

        Devices compute their charges at their own delta.
        """
        return epsilon_of(self.rho(contributors, coordinates), self.delta)

    def _headroom(self, cohort: int) -> float:
        return NOISE_REACH * self.sigma * math.sqrt(cohort)

    def _fixed_point(self, cohort: int) -> FixedPoint:
        fixed = FixedPoint(self.bits, self.fraction_bits, self.bound, cohort, self._headroom(cohort))
        # The layout checks that the sum of all n_u fits as well.
        UpdateLayout({"g": (1,)}, fixed, self.weight_limit)
        return fixed


SUMMED = (SecureSum, UnionMarks)
"""Protections whose rounds are secure sums, with terms."""
Protection = Annotated[LocalLaplace | SecureSum | UnionMarks, Field(discriminator="kind")]
Half = TypeVar("Half")

_FEDNEWSREC = LocalLaplace(clip=0.005, scale=0.015)
LOCAL_NOISE: Mapping[str, LocalLaplace] = {
    "recall": LocalLaplace(clip=0.1, scale=0.01),
    "ranker.features": LocalLaplace(clip=0.01, scale=0.1),
    "ranker.fednewsrec": _FEDNEWSREC,
    "ranker.nrms": _FEDNEWSREC,
    "ranker.naml": _FEDNEWSREC,
    "ranker.lstur": _FEDNEWSREC,
}
"""Noise by model of a release, for training without secure sums: as published, and for the default ranker as in
`small_ranker`. The server's systems use it, and a device computes from it the cost that it shows; other models are
trained in secure sums only. A round's manifest takes precedence.
"""


WITH_NEWS_MODEL = frozenset({"ranker.fednewsrec", "ranker.naml", "ranker.lstur"})
"""Models of a release whose rounds may also train an article model under the same noise. Its number of coordinates is
in no release: a round states it before a device joins."""


def of_kind(halves: Mapping[str, Callable[[Any], Half]], protection: Protection) -> Half:
    """Return one end's implementation of a protection, by its kind.

    Raises ValueError for an unsupported kind.
    """
    made = halves.get(protection.kind)
    if made is None:
        raise ValueError(f"protection: {protection.kind!r} is unknown here, expected one of {', '.join(halves)}")
    return made(protection)
