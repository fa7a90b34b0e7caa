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
"""Standard deviations of the noise by which a count must lie above what it has to reach."""


class UnionMarks(Message):
    """The articles of a cohort by a secure sum.

    Row i stands for the i-th article of a public list. There are two forms. owners_minimum 1: marks. Each device puts a
    random nonzero ring element at its articles. The opened sum reveals which articles somebody holds, and nothing else:
    neither who nor how many. An article of several owners vanishes with probability about 2^-bits.

    owners_minimum m above 1: owner counts. Each device puts a 1 at its articles; articles with fewer than m owners stay
    closed. An owner is a device whose samples name the article; only devices that took part here give the gradients
    that follow, from these samples. A row that is opened can still be one device's: the others may have dropped out
    when gradients are summed (`alone_chance`). The opened sum reveals, for every article, how many of the survivors
    hold it: more than marks reveal. With sigma > 0 each device adds a share of discrete Gaussian noise, the counts have
    noise sigma sqrt(n), and the threshold rises by three of those: an article with fewer than m owners is opened with
    probability below 0.0014, some that nobody holds are opened too, and an (epsilon, delta) bounds all of it.

    dummies: with marks, each device also marks this many random articles that it doesn't hold, and sends zeros as their
    gradients. They protect against whoever reads the list of opened articles, which every device gets: held and random
    articles can't be told apart. They don't protect against the server: an exact sum of gradients has zeros in rows
    that nobody used, and rows of one owner are that device's as before, so against the server dummies need noise in the
    gradients. They are drawn again each round, so an article that recurs round after round is held. With owner counts
    they are refused: a dummy would count as an owner and open the row of a single one.

    rows_limit bounds what one device marks of its own. A malicious client can put larger numbers: no range is proved.
    Raises ValueError when made, unless the counts and their noise fit the ring.
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
            raise ValueError("owners_minimum: marks carry no noise; noise needs owner counts, 2 or more")
        if self.dummies and self.counts:
            raise ValueError("dummies: they would count as owners; with owner counts there are none")
        self.terms("check", cohort=self.cohort_limit, cohort_minimum=2, coordinates=1)
        return self

    @property
    def counts(self) -> bool:
        """Whether owners are counted."""
        return self.owners_minimum > 1

    def terms(self, round_id: str, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms:
        """Return what both ends hold a round's messages against; coordinates: news of the list.

        Raises ValueError for a cohort the ring has no room for.
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
        """Return how an opened sum of these terms reads.

        Raises ValueError unless it is of one row of news.
        """
        if shapes != {NEWS: (terms.length,)}:
            raise ValueError(f"shapes: expected {NEWS} of {terms.length} news, got {dict(shapes)}")
        return UnionLayout(self.counts, terms.length)

    def threshold(self, survivors: int) -> float:
        """Return rho of the opened counts, for replacing all of a device's articles."""
        return self.owners_minimum + SAFETY * self.sigma * math.sqrt(survivors)

    @property
    def reach_steps(self) -> float:
        """The largest distance by which replacing a device's articles moves its counts.

        It replaces rows_limit ones by rows_limit others.
        """
        return math.sqrt(2 * self.rows_limit)

    def rho(self, contributors: int, coordinates: int) -> float:
        """Return what the opened counts cost a device when its articles are exchanged for any others.

        ValueError without noise.
        """
        if not self.sigma:
            raise ValueError("sigma: without noise there is no rho")
        return rho_of_sum(self.reach_steps, self.sigma, contributors, coordinates)

    def epsilon(self, contributors: int, coordinates: int) -> float:
        """Return `rho` as an epsilon at `delta`, for the server's pages.

        Devices compute their charges at their own delta.
        """
        return epsilon_of(self.rho(contributors, coordinates), self.delta)


def alone_chance(owners: int, dropout: float) -> float:
    """Return the chance that a row with so many owners is one device's alone in the sum.

    dropout: the chance that a counted device has dropped out by then, independently. With three owners and a tenth it
    is 0.027, with four 0.0036.
    """
    return owners * (1.0 - dropout) * dropout ** (owners - 1)


@dataclass(frozen=True)
class UnionLayout:
    """What the elements of an opened sum say; the counterpart of `UpdateLayout`."""

    counts: bool
    length: int

    @property
    def coordinates(self) -> int:
        """How many news the list has."""
        return self.length

    def sums(self, total: RingVector, survivors: int) -> WeightedSum:
        """`news` float64 [n]: how many own each news, with the noise if there is any.

        For marks 1 where somebody does.

        Raises ValueError for a vector of another length.
        """
        if total.shape != (self.length,):
            raise ValueError(f"total: {self.length} elements, got {total.shape}")
        if self.counts:
            return WeightedSum({NEWS: as_integers(total).astype(np.float64)}, survivors)
        held = np.zeros(self.length, dtype=np.float64)
        held[marked_rows(total)] = 1.0
        return WeightedSum({NEWS: held}, survivors)


def opened_rows(protection: UnionMarks, owners: NDArray[np.float64], survivors: int) -> NDArray[np.int64]:
    """Return rows whose gradients may be asked for, ascending."""
    return np.flatnonzero(owners >= protection.threshold(survivors)).astype(np.int64)
