"""The union of a cohort's articles as a secure sum (Efficient-FedRec, section 3.4, eq. 8)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from protocol.concentrated import epsilon_of, rho_of_sum
from protocol.ids import Message
from protocol.ring import RingVector, WeightedSum, as_integers, marked_rows
from protocol.secagg import MEMBERS_LIMIT, NOISE_REACH, SumTerms, TrustMode

NEWS = "news"
"""The one tensor of such an update: float32 [n], 1 at this device's news and 0 elsewhere."""
SAFETY = 3.0
"""Standard deviations of the noise by which a count must exceed the required number."""


class UnionMarks(Message):
    """The union of a cohort's articles, computed by a secure sum.

    Row i stands for the i-th article of a public list. There are two forms. owners_minimum 1: marks. Each device puts a
    random nonzero ring element at its articles. The opened sum reveals which articles somebody holds, and nothing else:
    neither who nor how many. An article with several owners is missed with probability about 2^-bits.

    owners_minimum m above 1: owner counts. Each device puts a 1 at its articles; articles with fewer than m owners are
    not opened. An owner is a device whose samples contain the article; only devices that took part here send the
    gradients in the next sum, from these samples. An opened row can still come from one device alone, if the others
    drop out before gradients are summed (`alone_chance`). The opened sum reveals, for every article, how many of the
    survivors hold it, which is more than marks reveal. With sigma > 0 each device adds a share of discrete Gaussian
    noise, the counts have noise sigma sqrt(n), and the threshold rises by three standard deviations: an article with
    fewer than m owners is opened with probability below 0.0014, some that nobody holds are opened too, and an (epsilon,
    delta) bounds all of it.

    dummies: with marks, each device also marks this many random articles that it doesn't hold, and sends zeros as their
    gradients. They protect against readers of the list of opened articles, which every device gets: held and random
    articles can't be distinguished. They don't protect against the server: an exact sum of gradients has zeros in rows
    that nobody used, and rows with one owner still are that device's, so against the server dummies need noise in the
    gradients. They are drawn again each round, so an article that recurs round after round is a held one. With owner
    counts dummies are refused: a dummy would count as an owner and open a row with a single real owner.

    rows_limit bounds what one device marks of its own. A malicious client can send larger numbers, since nothing proves
    their range. The constructor raises ValueError unless the counts and their noise fit the ring.
    """

    kind: Literal["union_marks"] = "union_marks"
    owners_minimum: int = Field(default=1, ge=1, le=MEMBERS_LIMIT, description="m")
    sigma: int = Field(default=0, ge=0, le=2**20, description="One share of the noise on counts; 0: exact.")
    dummies: int = Field(default=0, ge=0, le=65_536, description="Random news that a device marks besides its own.")
    rows_limit: int = Field(default=512, ge=1, le=65_536, description="Most news of one device.")
    delta: float = Field(
        default=1e-6, gt=0, lt=1, description="At which the server tells epsilon; devices figure it at their own."
    )
    mode: TrustMode = "active"
    graph: Literal["complete", "by_cohort"] = "by_cohort"
    bits: Literal[32, 64] = 32
    cohort_limit: int = Field(default=1_000, ge=2, le=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.sigma and self.owners_minimum == 1:
            raise ValueError("owners_minimum: noise needs owner counts (2 or more), since marks carry no noise")
        if self.dummies and self.counts:
            raise ValueError("dummies: must be 0 with owner counts, since dummies would count as owners")
        self.terms("check", cohort=self.cohort_limit, cohort_minimum=2, coordinates=1)
        return self

    @property
    def counts(self) -> bool:
        """Whether owners are counted."""
        return self.owners_minimum > 1

    def terms(self, round_id: str, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms:
        """Return the terms against which both ends check a round's messages.

        coordinates: the number of articles in the list. Raises ValueError if the cohort is too large for the ring.
        """
        return SumTerms(
            round=round_id,
            mode=self.mode,
            graph=SumTerms.graph_of(self.graph, cohort, self.cohort_limit),
            cohort=cohort,
            cohort_minimum=cohort_minimum,
            length=coordinates,
            bits=self.bits,
            fraction_bits=0,
            bound=1.0,
            headroom=NOISE_REACH * self.sigma * math.sqrt(cohort),
        )

    def layout(self, shapes: Mapping[str, tuple[int, ...]], terms: SumTerms) -> UnionLayout:
        """Return the layout of an opened sum under these terms.

        Raises ValueError unless the shapes are one row of articles.
        """
        if shapes != {NEWS: (terms.length,)}:
            raise ValueError(f"shapes: expected {NEWS} of {terms.length} news, got {dict(shapes)}")
        return UnionLayout(self.counts, terms.length)

    def threshold(self, survivors: int) -> float:
        """Return the number of owners from which a row is opened."""
        return self.owners_minimum + SAFETY * self.sigma * math.sqrt(survivors)

    @property
    def reach_steps(self) -> float:
        """The largest distance by which replacing a device's articles moves its counts.

        rows_limit ones are replaced by rows_limit others.
        """
        return math.sqrt(2 * self.rows_limit)

    def rho(self, contributors: int, coordinates: int) -> float:
        """Return rho of the opened counts, for replacing all of a device's articles.

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


def alone_chance(owners: int, dropout: float) -> float:
    """Return the chance that only one of a row's owners remains when gradients are summed.

    dropout: the chance that a counted device has dropped out by then, independently of the others. With three owners
    and a tenth it is 0.027, with four 0.0036.
    """
    return owners * (1.0 - dropout) * dropout ** (owners - 1)


@dataclass(frozen=True)
class UnionLayout:
    """The layout of an opened sum of articles; the counterpart of `UpdateLayout`."""

    counts: bool
    length: int

    @property
    def coordinates(self) -> int:
        """The number of articles in the list."""
        return self.length

    def sums(self, total: RingVector, survivors: int) -> WeightedSum:
        """Return `news`, float64 [n]: how many devices own each article, including the noise if there is any.

        For marks it is 1 where at least one does.

        Raises ValueError for a vector of another length.
        """
        if total.shape != (self.length,):
            raise ValueError(f"total: expected {self.length} elements, got {total.shape}")
        if self.counts:
            return WeightedSum({NEWS: as_integers(total).astype(np.float64)}, survivors)
        held = np.zeros(self.length, dtype=np.float64)
        held[marked_rows(total)] = 1.0
        return WeightedSum({NEWS: held}, survivors)


def opened_rows(protection: UnionMarks, owners: NDArray[np.float64], survivors: int) -> NDArray[np.int64]:
    """Return the rows whose gradients may be requested, ascending."""
    return np.flatnonzero(owners >= protection.threshold(survivors)).astype(np.int64)
