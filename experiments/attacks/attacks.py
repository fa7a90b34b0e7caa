"""Attacks by malicious devices: what they add to their masked vectors, and to a private count.

Nobody can check a single masked vector, so an attack is anything that passes the checks of the sum. An attacker knows
everything public: the weights, the clip, the noise, the number of participants, the server's limits. It also gets the
round's honest gradient, which it could estimate from readers of its own.

The study of counts uses live bounds, groups, join and rows, without messages and masks. A malicious device may add
anything to its group's sum, so only the number of groups with one matters. Every attack is tried at every strength
below, on articles that few readers open. Forged clicks are the difference from the same row without the attack.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import UpdateRefused
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.protections.sum_bounds import (
    alike_deviations,
    check_sum,
    noise_deviation,
    noise_length,
    noise_reach,
)
from backend.federation.strategies.counting import Counting, opened_count
from backend.federation.strategies.joined_sums import JoinOfSums
from backend.federation.systems import COMPOSED
from backend.federation.systems.private_counts import MEMBERS
from experiments.ranking.popularity import AT
from experiments.records import Cell, Table
from protocol.popularity import CLICKED, DISPLAYED
from protocol.protections import SecureSum
from protocol.ring import WeightedSum

Vector = NDArray[np.float64]
LENGTH_FACTOR: Final = 0.9
"""Share of the longest allowed length that attack vectors have, so that noise seldom gets them refused."""
NOISE_ROOM: Final = 3.0
"""Standard deviations of noise that each number leaves free below its bound."""


@dataclass(frozen=True)
class AttackerKnowledge:
    """What an attacker knows.

    Args:
        weights: the model [d], laid out as an update.
        honest: the mean gradient [d] of the honest devices.
        features: which of the d are feature weights.
        protection: the sum's protection.
        survivors: number in the sum that the attack goes into.
        malicious: number of malicious devices that act together.
        groups: number of sums that the cohort is split into.
        alone: whether no other group has malicious devices; otherwise the sums must not be too alike.
    """

    weights: Vector
    honest: Vector
    features: NDArray[np.bool_]
    protection: SecureSum
    survivors: int
    malicious: int
    groups: int = 1
    alone: bool = True

    def longest(self, direction: Vector) -> Vector:
        """Return an attack vector in this direction, just short enough to pass the checks more often than not.

        The length leaves room below the norm's bound and the bound of one number for noise of its usual length. It also
        keeps groups with the same attack below the similarity limit.
        """
        deviation, d = noise_deviation(self.protection, self.survivors), len(self.weights)
        honest_length, unit = self.survivors * self.protection.clip, _unit(direction)
        limit = honest_length + noise_length(deviation, d)
        lengths = [float(np.sqrt(max(0.0, limit**2 - deviation**2 * d)))]
        number = honest_length + noise_reach(deviation, d) - NOISE_ROOM * deviation
        lengths.append(number / max(float(np.abs(unit).max()), 1e-30))
        if not self.alone:
            lengths.append(self._alike(honest_length, deviation, d))
        return LENGTH_FACTOR * min(lengths) * unit

    def _alike(self, honest_length: float, deviation: float, d: int) -> float:
        """Return the longest attack that another group of this size can share, at the limit of `too_alike`.

        With x the length of each sum, x^2 = L^2 + s^2 d and L^2 = g^2 + z s (g + x).
        """
        reach = alike_deviations(self.groups) * deviation
        rest = honest_length**2 + reach * honest_length + deviation**2 * d
        length = (reach + np.sqrt(reach**2 + 4 * rest)) / 2
        return float(np.sqrt(length**2 - deviation**2 * d))


def sign_flip(known: AttackerKnowledge) -> Vector:
    """Return the opposite of the honest direction, at the full clip; it can't be detected."""
    return -known.malicious * known.protection.clip * _unit(known.honest)


def boosted(known: AttackerKnowledge) -> Vector:
    """Return the sign-flip attack, as long as the bound allows."""
    return -known.longest(known.honest)


def turned_features(known: AttackerKnowledge) -> Vector:
    """Return a step towards feature weights of the opposite sign, as long as the bound allows."""
    return known.longest(np.where(known.features, known.weights, 0.0))


def shrunk(known: AttackerKnowledge) -> Vector:
    """Return a step towards a model of zeros, as long as the bound allows."""
    return known.longest(known.weights)


def huge(known: AttackerKnowledge) -> Vector:
    """Return 1e4 in every number: refused, since a ring of 32 bits with 16 fraction bits ends at 2^15, so the round
    fails.
    """
    return np.full(len(known.weights), 1e4)


Attack = Callable[[AttackerKnowledge], Vector]
ATTACKS: Final[Mapping[str, Attack]] = {
    "sign flip at the clip": sign_flip,
    "sign flip at the bound": boosted,
    "feature weights turned": turned_features,
    "weights to zero": shrunk,
    "1e4 in every number": huge,
}


class DrawnGroups:
    """A cohort split into groups, its malicious members, and each group's own noise stream.

    lying: the places of malicious members; smaller sets of them are contained in larger ones.
    """

    def __init__(self, cohort: int, groups: int, malicious: int, seed: tuple[int, ...]) -> None:
        rng = np.random.default_rng((*seed, groups))
        self.groups, self._seed = groups, seed
        self._places = [each.tolist() for each in np.array_split(rng.permutation(cohort), groups)]
        self.lying: frozenset[int] = frozenset(
            np.random.default_rng((*seed, 0, 1)).permutation(cohort)[:malicious].tolist()
        )

    @property
    def lying_groups(self) -> int:
        """The number of groups with a malicious member."""
        return sum(bool(self.lying.intersection(places)) for places in self._places)

    def __iter__(self) -> Iterator[tuple[list[int], int, np.random.Generator]]:
        """Yield the places of each group, how many are malicious, and its noise source."""
        for at, places in enumerate(self._places):
            rng = np.random.default_rng((*self._seed, self.groups, at))
            yield places, len(self.lying.intersection(places)), rng


def _unit(vector: Vector) -> Vector:
    return vector / max(float(np.linalg.norm(vector)), 1e-30)


PRIVATE_COUNTS = COMPOSED["private_counts/secure/huber"]

PROTECTION = secure_sum_of(PRIVATE_COUNTS.protection)
CLICKS = 3
"""Clicks of an honest device: between the mean of MIND's readers (1.5) and the limit (5)."""
SIZES = (20, 60, 65, 66, 71, 76, 88, 120, 200, 1_000)
COLUMNS = (
    "devices",
    "groups",
    "bound",
    "one sum",
    "most",
    "groups, 1 malicious device",
    "most",
    "groups, 3 malicious devices",
    "most",
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ForgedCount:
    """The clicks that the strongest attack adds to an article: the mean over articles and draws, and the largest."""

    mean: float = 0.0
    most: float = 0.0


@dataclass(frozen=True)
class CountedCohort:
    """Counts by this many devices, some of them malicious.

    join: how groups are joined; None for one sum.
    """

    devices: int
    malicious: int = 1
    join: JoinOfSums | None = None
    news: int = 1_500
    draws: int = 5
    strategy: Counting = field(default_factory=Counting)

    @property
    def groups(self) -> int:
        """The groups, drawn as `graph.CohortSplit` does."""
        if self.join is None:
            return 1
        minimum = min(MEMBERS, self.devices)
        terms = PROTECTION.terms("round-1", cohort=self.devices, cohort_minimum=minimum, coordinates=2 * self.news)
        return self.join.split_of(self.devices).parts_of(self.devices, terms) or 1

    @property
    def tail(self) -> float:
        """Return one click plus the largest noise of one sum of all devices."""
        return 1 + noise_reach(noise_deviation(PROTECTION, self.devices), 2 * self.news)

    def strongest(self) -> ForgedCount:
        """Return the result of the strongest attack tried."""
        found: dict[tuple[int, float], list[Floats]] = {}
        for seed in range(self.draws):
            rng = np.random.default_rng((seed, self.devices))
            sums = list(self._honest(rng))
            lying = sorted(set(rng.permutation(np.arange(self.devices) % self.groups)[: self.malicious].tolist()))
            honest = self._rows(sums)
            assert honest is not None, "honest sums pass but once in 1e9"
            for stories, strength in _lies(self.devices // self.groups, self.news):
                where = rng.choice(np.arange(self.news // 2, self.news), size=stories, replace=False)
                sent = self._rows(
                    [_lied(each, where, strength) if at in lying else each for at, each in enumerate(sums)]
                )
                added = np.zeros(stories) if sent is None else (sent - honest)[where]
                found.setdefault((stories, strength), []).append(added)
        every = [np.stack(each) for each in found.values()]
        return ForgedCount(max(float(each.mean()) for each in every), max(float(each.max()) for each in every))

    def _honest(self, rng: np.random.Generator) -> Iterator[WeightedSum]:
        """Yield one honest sum per group; some stories are far more popular than others."""
        likely = -np.log(np.arange(1, self.news + 1))
        for at in range(self.groups):
            size = len(range(at, self.devices, self.groups))
            order = np.argsort(-(likely + rng.gumbel(size=(size, self.news))), axis=1)
            shown = np.bincount(order[:, : self.strategy.displayed_limit].ravel(), minlength=self.news)
            clicked = np.bincount(order[:, :CLICKS].ravel(), minlength=self.news)
            noise = rng.normal(0, noise_deviation(PROTECTION, size), (2, self.news))
            yield WeightedSum(
                {CLICKED: clicked + noise[0], DISPLAYED: shown * self.strategy.displayed_unit + noise[1]}, size
            )

    def _rows(self, sums: Sequence[WeightedSum]) -> Floats | None:
        """Return clicks as the server stores them; None if the round fails."""
        passed = [each for each in sums if _passes(each)]
        if len(passed) < (1 if self.join is None else min(self.join.left, len(sums))):
            return None
        if len(sums) == 1 or self.join is None:
            total = Aggregate.of_opened(passed[0])
        else:
            share = noise_deviation(PROTECTION, 1) ** 2
            total = self.join.join(passed, PROTECTION.clip, share)
        listed = self.strategy.listed(tuple(f"n{at}" for at in range(self.news)))
        opened = opened_count(listed, total, PROTECTION, round_number=1, counted_at=AT)
        return np.array(list(opened.clicks.values()))


def _lies(devices: int, news: int) -> Iterator[tuple[int, float]]:
    """Yield the attacks: numbers of articles and clicks for each, in one sum of this many devices."""
    deviation = noise_deviation(PROTECTION, devices)
    reach = noise_reach(deviation, 2 * news)
    for stories in (10, 50):
        for strength in (2 * deviation, 5 * deviation, devices, devices + 3 * deviation, 0.8 * reach, devices + reach):
            yield stories, float(strength)
    for part in (0.3, 0.6, 1.0):
        yield news // 2, part * deviation


def _lied(each: WeightedSum, where: NDArray[np.int64], strength: float) -> WeightedSum:
    clicks = each.tensors[CLICKED].copy()
    clicks[where] += strength
    return WeightedSum({**each.tensors, CLICKED: clicks}, each.samples)


def _passes(each: WeightedSum) -> bool:
    try:
        check_sum(PROTECTION, each, each.samples)
    except UpdateRefused:
        return False
    return True


def forged_table(*, draws: int, sizes: Sequence[int] = SIZES) -> Table:
    """Return the table of one and three malicious devices, in one sum and in groups."""
    rows: list[tuple[Cell, ...]] = []
    for devices in sizes:
        cohort = CountedCohort(devices, draws=draws, join=PRIVATE_COUNTS.join)
        cells: list[Cell] = [f"{devices:,}", cohort.groups, round(cohort.tail)]
        found = [CountedCohort(devices, draws=draws).strongest()]
        if cohort.groups > 1:
            three = CountedCohort(devices, malicious=3, draws=draws, join=PRIVATE_COUNTS.join)
            found += [cohort.strongest(), three.strongest()]
        for each in found:
            cells += [round(each.mean), round(each.most)]
        rows.append((*cells, *[None] * (len(COLUMNS) - len(cells))))
    notes = (
        "1,500 articles. Clicks that the strongest of 15 attacks adds to an article: mean over the forged articles and "
        f"{draws} draws, and the most in any draw. Bound: one click of each device and the tail of the noise of one "
        "sum. In one sum three malicious devices do no more than one.",
    )
    return Table("Forged clicks in private counts", COLUMNS, rows, notes)
