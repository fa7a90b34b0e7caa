"""What malicious devices cost the default ranker.

The study runs rounds with poisoned sums and the release gate, and honest rounds. The devices' own tasks and the live
protection, bounds, strategy, optimizer and gate are used; only messages and masks are left out. Sums are of a whole
cohort, or of its groups, joined by a median.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import PREFIX, Aggregate
from backend.federation.errors import UpdateRefused
from backend.federation.optimizers import Memory
from backend.federation.protections.registry import resolve
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.protections.sum_bounds import check_sum, noise_deviation, noise_reach
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.joined_sums import JoinedSums, MedianOfSums
from backend.federation.strategies.release_gate import ReleaseGate, judge_sums
from backend.federation.systems import COMPOSED
from backend.federation.systems.release_gate import RELEASE_GATE
from device_app.ranking.ranker import FEATURES
from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.task import Update
from experiments.attacks.attacks import ATTACKS, AttackerKnowledge, DrawnGroups
from experiments.bench.heldout_readers import Pool
from experiments.bench.replayed_readers import clip_factor
from experiments.papers.finding.live import RANKER_MODEL
from experiments.papers.finding.synthetic_populations import TRUE_GROUPS, SyntheticPopulation
from experiments.records import Cell, Table
from experiments.simulation.clients import gradient_graph, ranker_inputs
from experiments.simulation.strategies.method import ModelChoice
from experiments.study import Study
from exporters.signature import parameters
from models.shapes import NEWS_DIM
from protocol.news import NewsCard
from protocol.protections import SecureSum
from protocol.ring import GAIN, SHAPES, WeightedSum, written

SMALL_RANKER_SECURE = COMPOSED["small_ranker/secure/median"]

VOTED_DOWN: Final = "honest releases voted down"
"""Case in which malicious devices only vote."""
BARS: Final = {1: 0.005, 3: 0.01}
JOIN: Final = MedianOfSums()
COHORT, SUMS, VOTE, SECOND_VOTE = range(1, 5)
"""A round's streams of random numbers."""
FORMS: Final = {"one sum": 1, "median of five sums": 5}

Weights = Mapping[str, NDArray[np.float32]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PoisoningSizes:
    """Sizes of the study.

    Rounds of `cohort` of the `readers`. Half of the readers and of the `judges` vote; the other judges evaluate rounds.
    `news` articles in several topics a section.
    """

    rounds: int = 10
    cohort: int = 60
    seeds: int = 3
    readers: int = 240
    judges: int = 300
    topics: int = 4
    news: int = 1_600

    def __post_init__(self) -> None:
        """Raises ValueError, naming the size and its limit, if there are too few readers to train or vote."""
        limits = {
            "rounds": 1,
            "cohort": max(*FORMS.values(), *BARS),
            "seeds": 1,
            "readers": self.cohort,
            "judges": max(1, 2 * self.cohort - self.readers),
            "topics": 1,
            "news": 1,
        }
        why = {
            "readers": ", the cohort",
            "judges": ", twice the cohort less the readers: a cohort of half of both votes",
        }
        for name, least in limits.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: at least {least}{why.get(name, '')}, got {getattr(self, name)}")


@dataclass(frozen=True)
class PoisoningOutcome:
    """AUC at the start and after the last round, rounds with refused sums, and releases that the gate reverted."""

    start: float
    auc: float
    refused: int
    taken_back: int


def planted_pool(sizes: PoisoningSizes, now: datetime, rng: np.random.Generator) -> Pool:
    """Articles whose vectors lie around a direction of their topic, in the sections of the newsroom."""
    sections = [section for true_group in TRUE_GROUPS for section in true_group]
    names = [(section, f"{section}-{number}") for section in sections for number in range(sizes.topics)]
    centres = rng.normal(size=(len(names), NEWS_DIM))
    which = rng.integers(len(names), size=sizes.news)
    vectors = centres[which] + 1.5 * rng.normal(size=(sizes.news, NEWS_DIM))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cards = tuple(
        NewsCard(
            id=f"n{row}",
            title=f"News {row}",
            abstract="",
            url="",
            publisher="",
            section=names[topic][0],
            topic=names[topic][1],
            published_at=now - timedelta(hours=float(rng.uniform(0, 96))),
            weight=1.0,
        )
        for row, topic in enumerate(which.tolist())
    )
    return Pool(cards, vectors.astype(np.float32))


class PoisonedRounds:
    """Rounds of one population; the first half of its judges votes, the second evaluates."""

    def __init__(self, readers: SyntheticPopulation, cohort: int) -> None:
        self._readers, self._cohort = readers, cohort
        model = RANKER_MODEL.model(0)
        self._engine = OnnxGradients(gradient_graph(model, ranker_inputs(NEWS_DIM, len(FEATURES))))
        self.start: Weights = {name: value.numpy().copy() for name, value in parameters(model).items()}
        spec = SMALL_RANKER_SECURE
        self._task = FullGradientTask(spec.negatives, spec.samples_limit, tuple(FEATURES))
        self._protection = secure_sum_of(spec.protection)
        self._voters = len(readers.judges) // 2
        self._at_start: dict[tuple[int, int], Mapping[str, Floats]] = {}

    def judged(self, weights: Weights) -> float:
        """Return the mean AUC of the judges who only evaluate."""
        return float(self._aucs(weights, range(self._voters, len(self._readers.judges))).mean())

    @cached_property
    def first(self) -> float:
        """Return the mean AUC of these judges under the first release."""
        return self.judged(self.start)

    def run(self, attack: str | None, malicious: int, groups: int, rounds: int, seed: int) -> PoisoningOutcome:
        """Run this many rounds, each followed by its gate.

        Rounds with the same number have the same cohort, groups, noise, voters and malicious devices under every
        attack, so that outcomes differ only by the attack.
        """
        weights, memory = self.start, Memory()
        refused = taken_back = 0
        optimizer = SMALL_RANKER_SECURE.optimizer
        assert optimizer is not None
        for number in range(rounds):
            rng = np.random.default_rng((seed, number, COHORT))
            cohort = rng.choice(self._readers.readers, size=self._cohort, replace=False)
            drawn = DrawnGroups(self._cohort, groups, malicious if attack in ATTACKS else 0, (seed, number, SUMS))
            total = self._sum(weights, cohort, attack, drawn, number)
            if total is None:
                refused += 1
                continue
            stepped, learnt = optimizer.advance(weights, FedAvg().gradient(total), memory)
            if self._falls(stepped, weights, attack, (seed, number), malicious, groups):
                taken_back += 1
                continue
            weights, memory = stepped, learnt
        return PoisoningOutcome(self.first, self.judged(weights), refused, taken_back)

    def _sum(
        self, weights: Weights, cohort: NDArray[np.int64], attack: str | None, drawn: DrawnGroups, number: int
    ) -> Aggregate | None:
        """Return the cohort's sum as the server accepts it; None if nothing passes its bounds."""
        updates = [self._clipped(weights, int(reader), number) for reader in cohort]
        names = sorted(updates[0])
        honest = np.mean([_flat(each, names) for each in updates], axis=0)
        opened = []
        for places, mine, noise in drawn:
            flat = np.sum([_flat(updates[place], names) for place in places if place not in drawn.lying], axis=0)
            flat = flat + noise_deviation(self._protection, len(places)) * noise.normal(size=flat.shape)
            if mine and attack is not None:
                known = AttackerKnowledge(
                    weights=_flat(weights, [name.removeprefix(PREFIX) for name in names]),
                    honest=honest,
                    features=_flat(_where_features(updates[0]), names) > 0,
                    protection=self._protection,
                    survivors=len(places),
                    malicious=mine,
                    groups=drawn.groups,
                    alone=drawn.lying_groups == 1,
                )
                flat = flat + ATTACKS[attack](known)
            sums = WeightedSum(_shaped(flat, updates[0], names), len(places))
            try:
                check_sum(self._protection, sums, len(places))
            except UpdateRefused:
                continue
            opened.append(sums)
        if drawn.groups == 1:
            return Aggregate.of_opened(opened[0], self._protection.clip) if opened else None
        variance = resolve(self._protection).noise_variance(1)
        try:
            return JOIN.join(opened, self._protection.clip, variance) if len(opened) >= JOIN.left else None
        except UpdateRefused:
            return None

    def _clipped(self, weights: Weights, reader: int, number: int) -> Mapping[str, Floats]:
        if weights is self.start and (reader, number) in self._at_start:
            return self._at_start[reader, number]
        rng = np.random.default_rng((reader, number))
        update: Update = self._task.run(weights, self._readers.source(reader), self._engine, rng)
        factor = clip_factor(update, self._protection.clip)
        clipped = {name: factor * each.astype(np.float64) for name, each in update.tensors.items()}
        if weights is self.start:
            self._at_start[reader, number] = clipped
        return clipped

    def _falls(
        self, new: Weights, old: Weights, attack: str | None, seed: tuple[int, int], malicious: int, groups: int
    ) -> bool:
        """Return the gate's verdict, after a second vote if the first doubts the release.

        Both votes have the same number of malicious voters.
        """
        protection, rule = secure_sum_of(RELEASE_GATE.protection), RELEASE_GATE.strategy
        assert isinstance(rule, ReleaseGate)
        first: Sequence[WeightedSum] = ()
        while True:
            stream = (*seed, SECOND_VOTE if first else VOTE)
            voters = np.random.default_rng(stream).choice(self._voters, size=self._cohort, replace=False)
            drawn = DrawnGroups(self._cohort, groups, malicious if attack else 0, stream)
            total = _voted(protection, self._aucs(new, voters), self._aucs(old, voters), attack, drawn)
            if total is None:
                return True
            verdict = judge_sums(total, protection, tolerance=rule.tolerance, confidence=rule.confidence, first=first)
            if not (verdict.doubted and isinstance(total, JoinedSums)):
                return verdict.falls
            first = total.parts

    def _aucs(self, weights: Weights, who: Iterable[int]) -> Floats:
        """Return these judges' AUC on the articles that they saw later."""
        some = replace(self._readers, warm=(), cold=[self._readers.judges[place] for place in who])
        return some.aucs(ModelChoice.one(weights, len(some.judges)))


def _voted(protection: SecureSum, new: Floats, old: Floats, attack: str | None, drawn: DrawnGroups) -> Aggregate | None:
    """Return the sum of one vote; None if it fails.

    Malicious devices vote as strongly as the bounds allow: for the release they poisoned, or against everything.
    """
    sign = -1.0 if attack == VOTED_DOWN else 1.0
    opened = []
    for places, mine, noise in drawn:
        parts = [written(float(new[place]), float(old[place])) for place in places if place not in drawn.lying]
        deviation = noise_deviation(protection, len(places))
        numbers = {name: np.array([sum(part[name] for part in parts) + deviation * noise.normal()]) for name in SHAPES}
        if mine:
            # The highest mean that passes; the server clips it to the range of possible votes.
            numbers[GAIN][0] += sign * (len(places) + noise_reach(deviation, 3) / 2)
        sums = WeightedSum(numbers, len(places))
        try:
            check_sum(protection, sums, len(places))
        except UpdateRefused:
            continue
        opened.append(sums)
    if len(opened) < min(drawn.groups, JOIN.left):
        return None
    return Aggregate.of_opened(opened[0]) if drawn.groups == 1 else JOIN.join(opened, None)


PoisoningJob = tuple[int, str, str | None, int]
"""Seed, kind of sum, attack, number of malicious devices."""
PoisoningCase = tuple[str, str | None, int]


@dataclass(frozen=True)
class PoisoningStudy(Study[PoisoningJob, PoisoningOutcome]):
    """Every kind of sum, attack and number of malicious devices, compared on the same readers and cohorts."""

    sizes: PoisoningSizes = PoisoningSizes()

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.sizes.seeds))

    @property
    def jobs(self) -> Sequence[PoisoningJob]:
        return [(seed, *case) for seed in self.seeds for case in _cases()]

    @property
    def settings(self) -> Mapping[str, int]:
        """Return the sizes, except the number of populations."""
        return {name: value for name, value in asdict(self.sizes).items() if name != "seeds"}

    @cached_property
    def _populations(self) -> dict[int, PoisonedRounds]:
        return {}

    def _rounds(self, seed: int) -> PoisonedRounds:
        if seed not in self._populations:
            rng, now = np.random.default_rng((11, seed)), datetime(2026, 11, 22, tzinfo=UTC)
            pool, sizes = planted_pool(self.sizes, now, rng), self.sizes
            readers = SyntheticPopulation.drawn(
                pool, now, RANKER_MODEL.model(0), rng, warm=sizes.readers, cold=sizes.judges, opposite=False
            )
            readers = SyntheticPopulation(pool.vectors, readers.warm, readers.cold, readers.model)
            self._populations[seed] = PoisonedRounds(readers, sizes.cohort)
        return self._populations[seed]

    def run(self, job: PoisoningJob) -> PoisoningOutcome:
        """Run all rounds of one case."""
        seed, form, attack, malicious = job
        return self._rounds(seed).run(attack, malicious, FORMS[form], self.sizes.rounds, seed)

    def line(self, job: PoisoningJob, run: PoisoningOutcome) -> str:
        seed, form, attack, malicious = job
        return f"seed {seed}, {form}, {malicious} of {attack}: {run}"

    def tables(self, runs: Mapping[PoisoningJob, PoisoningOutcome]) -> list[Table]:
        """Return one row for each form of the sum, attack and number of malicious devices."""
        found: dict[PoisoningCase, list[PoisoningOutcome]] = {}
        for (_, form, attack, malicious), ended in runs.items():
            found.setdefault((form, attack, malicious), []).append(ended)
        return [_table(found, self.sizes)]

    def rows(self, job: PoisoningJob, run: PoisoningOutcome) -> list[dict[str, Any]]:
        return [dict(zip(("seed", "form", "attack", "malicious"), job, strict=True)) | {"outcome": asdict(run)}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[PoisoningJob, PoisoningOutcome]:
        return {
            (row["seed"], row["form"], row["attack"], row["malicious"]): PoisoningOutcome(**row["outcome"])
            for row in rows
        }


def _cases() -> Iterator[PoisoningCase]:
    for form in FORMS:
        yield form, None, 0
        for attack in (*ATTACKS, VOTED_DOWN):
            for malicious in BARS:
                yield form, attack, malicious


def _table(found: Mapping[PoisoningCase, Sequence[PoisoningOutcome]], sizes: PoisoningSizes) -> Table:
    start = float(np.mean([each.start for ended in found.values() for each in ended]))
    rows: list[tuple[Cell, ...]] = []
    for (form, attack, malicious), ended in found.items():
        none = [each.auc for each in found[form, None, 0]]
        gaps = [each.auc - other for each, other in zip(ended, none, strict=True)]
        mean = float(np.mean(gaps))
        rows.append(
            (
                form,
                attack or "none",
                malicious,
                f"{np.mean([each.auc for each in ended]):.4f}",
                f"{mean:+.4f}",
                f"{min(gaps):+.4f}",
                f"{np.mean([each.refused for each in ended]):.1f}",
                f"{np.mean([each.taken_back for each in ended]):.1f}",
                "-" if attack is None else "yes" if mean >= -BARS[malicious] else "no",
            )
        )
    columns = (
        "sums",
        "attack",
        "malicious",
        "AUC",
        "against none",
        "worst seed",
        "refused",
        "taken back",
        "within the bar",
    )
    notes = (
        f"{sizes.rounds} rounds of {sizes.cohort} of {sizes.readers} synthetic readers, {sizes.seeds} seeds, with the "
        f"release gate; AUC of other readers on later articles, {start:.4f} at the start. Bars: {BARS[1]} for one "
        f"malicious device, {BARS[3]} for three.",
    )
    return Table("Poisoned sums, default ranker", columns, rows, notes)


def _flat(tensors: Mapping[str, NDArray[np.floating]], names: Sequence[str]) -> Floats:
    return np.concatenate([np.asarray(tensors[name], dtype=np.float64).ravel() for name in names])


def _shaped(flat: Floats, like: Mapping[str, Floats], names: Sequence[str]) -> dict[str, Floats]:
    ends = np.cumsum([like[name].size for name in names])
    parts = np.split(flat, ends[:-1])
    return {name: part.reshape(like[name].shape) for name, part in zip(names, parts, strict=True)}


def _where_features(like: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name: np.full(each.shape, float(name.endswith("feature_weights"))) for name, each in like.items()}
