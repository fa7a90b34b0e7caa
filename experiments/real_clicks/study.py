"""`ownfeed evaluate real-clicks`: federated learning, noise and private counts on EB-NeRD's clicks, as tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.ebnerd import FOLDER, EbNerd, Week, load_ebnerd
from experiments.datasets.mind import RaggedArray
from experiments.real_clicks.features import FEATURES, OWN, Floats, Log, own_features, plain_counts
from experiments.real_clicks.private_hours import HOURS_A_DAY, HourlyNoise, hourly_counts, private_counts
from experiments.real_clicks.ranker import Lists, ReaderMetrics, central_weights, train_in_rounds
from experiments.records import Cell, Table
from experiments.simulation.clients import Protect, in_clear
from experiments.simulation.protections import CentralGaussian, ElementwiseLaplace, noise_multiplier
from experiments.simulation.rounds import Rounds
from experiments.study import Study
from protocol.protections import LOCAL_NOISE

DELTA = 1e-5
CLIP = 0.5
LOCAL = LOCAL_NOISE["ranker.features"]
IDLE_PARAMETERS = 3
"""Parameters that stay unused: the text match, its sharpness, and that of the loss; an update under local noise has
them too.
"""
COUNT_NOISE_SD = 2.83
"""Standard deviation of noise, in clicks; as in the study of private counts on MIND."""
NORMAL_95 = 1.96
CENTRAL_BAR, NOISE_BAR, COUNTS_BAR = 0.003, 0.005, 0.5
SMOKE_IMPRESSIONS = 1_500


@dataclass(frozen=True)
class Case:
    """What is trained.

    Args:
        counts: where the features of all readers' clicks come from; None: there are none.
        central: whether all lists are in one place.
        epsilon: of noise in the secure sum, for all rounds; None: no such noise.
        local: whether devices add the default ranker's local noise.
        sd: of the noise in an hour's count, in clicks.
        copies: devices that behave like each reader, in hourly counts.
    """

    counts: Literal["plain", "hourly"] | None = "plain"
    central: bool = False
    epsilon: float | None = None
    local: bool = False
    sd: float = 0.0
    copies: int = 1


CENTRAL, FEDERATED, LOCAL_CASE, NO_COUNTS, EXACT_HOURS = "central", "federated", "local noise", "none", "hourly, exact"
NOISY = {f"noise in the sum, epsilon {epsilon:g}": Case(epsilon=epsilon) for epsilon in (2.0, 1.0)}
PRIVATE = {
    f"hourly, private, {copies} device{'s' * (copies > 1)} a reader": Case("hourly", sd=COUNT_NOISE_SD, copies=copies)
    for copies in (1, 3, 10, 20)
}
CASES: Mapping[str, Case] = {
    CENTRAL: Case(central=True),
    FEDERATED: Case(),
    **NOISY,
    LOCAL_CASE: Case(local=True),
    NO_COUNTS: Case(None),
    EXACT_HOURS: Case("hourly"),
    **PRIVATE,
}


@dataclass(frozen=True)
class RealClicksSizes:
    """Rounds, devices per round, and seeds; impressions: of each week, None for all."""

    rounds: int = 60
    cohort: int = 60
    seeds: int = 3
    impressions: int | None = None

    @property
    def marks(self) -> tuple[int, ...]:
        """Return the rounds after which the test week is evaluated."""
        return tuple(sorted({math.ceil(self.rounds / 12), math.ceil(self.rounds / 3), self.rounds}))


SMOKE = RealClicksSizes(rounds=3, cohort=5, seeds=1, impressions=SMOKE_IMPRESSIONS)


@dataclass(frozen=True)
class RealClicksRun:
    """One training.

    curve: round, AUC and nDCG@10 of the test week. auc, ndcg10: of each reader, summed over the reader's impressions.
    """

    case: str
    seed: int
    curve: tuple[tuple[int, float, float], ...]
    auc: tuple[float, ...]
    ndcg10: tuple[float, ...]
    impressions: tuple[int, ...]
    readers: int


Job = tuple[str, int]


@dataclass(frozen=True)
class RealClicksStudy(Study[Job, RealClicksRun]):
    """Every case with every seed; the second week is the test."""

    data: Path
    sizes: RealClicksSizes = RealClicksSizes()

    @cached_property
    def log(self) -> Log:
        """Return the data. Raises DataMissing and MalformedRow."""
        return Log.of(first_impressions(load_ebnerd(self.data / FOLDER), self.sizes.impressions))

    @cached_property
    def _own(self) -> Floats:
        return own_features(self.log)

    @cached_property
    def _plain(self) -> Floats:
        return plain_counts(self.log)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.sizes.seeds))

    @property
    def jobs(self) -> Sequence[Job]:
        return [(case, seed) for case in CASES for seed in self.seeds]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The sizes, except the number of seeds."""
        return {name: value for name, value in asdict(self.sizes).items() if name != "seeds"}

    def prepare(self) -> None:
        readers = len(np.unique(self.log.users[~self.log.test]))
        if self.sizes.cohort > readers:
            raise ValueError(f"cohort: at most the {readers} readers of the first week, got {self.sizes.cohort}")

    def run(self, job: Job) -> RealClicksRun:
        name, seed = job
        case = CASES[name]
        found = self._features(case, seed)
        train, test = (Lists.of(self.log, found, test=week) for week in (False, True))
        curve: list[tuple[int, ReaderMetrics]] = []
        readers = len(train.of_reader)
        if case.central:
            curve = [(0, ReaderMetrics.of(test, central_weights(train)))]
        else:

            def evaluate(number: int, weights: Floats) -> None:
                if number in self.sizes.marks:
                    curve.append((number, ReaderMetrics.of(test, weights)))

            plan = Rounds(self.sizes.rounds, self.sizes.cohort, readers, seed)
            names = FEATURES if case.counts else OWN
            train_in_rounds(train, names, plan, self._protect(case, readers), evaluate)
        last = curve[-1][1]
        return RealClicksRun(
            name,
            seed,
            tuple((number, *means(each)) for number, each in curve),
            tuple(np.round(last.auc, 6).tolist()),
            tuple(np.round(last.ndcg10, 6).tolist()),
            tuple(last.impressions.tolist()),
            readers,
        )

    def _features(self, case: Case, seed: int) -> Floats:
        if case.counts is None:
            return self._own
        if case.counts == "plain":
            return np.concatenate([self._plain, self._own], axis=1)
        rng = np.random.default_rng((seed, case.copies))
        counts = hourly_counts(self.log, case.sd, case.copies, rng)
        return np.concatenate([private_counts(self.log, counts), self._own], axis=1)

    def _protect(self, case: Case, readers: int) -> Protect:
        if case.local:
            return ElementwiseLaplace(LOCAL)
        return (
            in_clear
            if case.epsilon is None
            else CentralGaussian(CLIP, self._multiplier(case, readers), self.sizes.cohort)
        )

    def _multiplier(self, case: Case, readers: int) -> float:
        assert case.epsilon is not None
        return noise_multiplier(
            epsilon=case.epsilon, delta=DELTA, cohort=self.sizes.cohort, readers=readers, rounds=self.sizes.rounds
        )

    def line(self, job: Job, run: RealClicksRun) -> str:
        _, auc, ndcg10 = run.curve[-1]
        return f"{run.case}, seed {run.seed}: AUC {auc:.4f}, nDCG@10 {ndcg10:.4f}"

    def rows(self, job: Job, run: RealClicksRun) -> list[dict[str, Any]]:
        return [asdict(run)]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, RealClicksRun]:
        found = [
            RealClicksRun(
                **{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
                | {"curve": tuple((int(number), auc, ndcg) for number, auc, ndcg in row["curve"])}
            )
            for row in rows
        ]
        return {(run.case, run.seed): run for run in found}

    def tables(self, runs: Mapping[Job, RealClicksRun]) -> list[Table]:
        """Return one table of trainings, and one of counts."""
        cases: dict[str, list[RealClicksRun]] = {}
        for (name, _), run in runs.items():
            cases.setdefault(name, []).append(run)
        return [self._trainings(cases), self._counts(cases)]

    def _trainings(self, cases: Mapping[str, Sequence[RealClicksRun]]) -> Table:
        central, readers = mean_by_reader(cases[CENTRAL]), cases[CENTRAL][0].readers
        rows: list[tuple[Cell, ...]] = []
        gaps = {}
        for name in (CENTRAL, FEDERATED, *NOISY, LOCAL_CASE):
            case, found = CASES[name], mean_by_reader(cases[name])
            curve = np.mean([[auc for _, auc, _ in run.curve] for run in cases[name]], axis=0)
            early: list[Cell] = (
                [None] * (len(self.sizes.marks) - 1) if case.central else [_four(one) for one in curve[:-1]]
            )
            gap, half = difference(found, central)
            gaps[name] = gap
            epsilon: Cell = None
            if case.epsilon is not None:
                epsilon = f"{case.epsilon:g}"
            elif case.local:
                epsilon = f"{LOCAL.epsilon_per_upload(len(FEATURES) + IDLE_PARAMETERS):.1f} an upload, pure"
            against = None if case.central else f"{gap:+.4f} +- {half:.4f}"
            rows.append((name, *early, _four(curve[-1]), _four(means(found)[1]), against, epsilon))
        rounds = tuple(f"AUC, {number} rounds" for number in self.sizes.marks)
        multipliers = " and ".join(f"{self._multiplier(case, readers):.2f}" for case in NOISY.values())
        _, half = difference(central, replace(central, auc=np.zeros(len(central.auc))))
        federated, private = gaps[FEDERATED], min(gaps[name] for name in NOISY)
        notes = (
            f"{self.sizes.rounds} rounds of {self.sizes.cohort} of {readers:,} readers; test: "
            f"{int(central.impressions.sum()):,} impressions of {len(central.auc):,} readers a week later. Central: "
            f"the optimum on all lists, AUC +- {half:.4f}. +-: 1.96 standard errors by reader.",
            f"Epsilon: of all rounds, delta {DELTA:g}, one reader more or less, Poisson sampling; noise {multipliers} "
            f"times the clip of {CLIP:g}. Local: Laplace noise {LOCAL.scale:g}, clip {LOCAL.clip:g}.",
            f"Bars: federated within {CENTRAL_BAR} of central, {_met(federated >= -CENTRAL_BAR)} ({federated:+.4f}); "
            f"noise in the sum within {NOISE_BAR}, {_met(private >= -NOISE_BAR)} ({private:+.4f}).",
        )
        return Table(
            "Real clicks, trainings", ("training", *rounds, "nDCG@10", "AUC - central", "epsilon"), rows, notes
        )

    def _counts(self, cases: Mapping[str, Sequence[RealClicksRun]]) -> Table:
        nothing, plain = mean_by_reader(cases[NO_COUNTS]), mean_by_reader(cases[FEDERATED])
        whole, _ = difference(plain, nothing)
        readers, rows = cases[NO_COUNTS][0].readers, []
        shares = {}
        for name in (NO_COUNTS, FEDERATED, EXACT_HOURS, *PRIVATE):
            case, found = CASES[name], mean_by_reader(cases[name])
            gain, half = difference(found, nothing)
            shares[name] = gain / whole if whole else math.nan
            noise = HourlyNoise(case.sd, readers * case.copies)
            row: tuple[Cell, ...] = (
                "plain, to the second" if name == FEDERATED else name,
                *(_four(each) for each in means(found)),
                None if name == NO_COUNTS else f"{gain:+.4f} +- {half:.4f}",
                None if name == NO_COUNTS else f"{shares[name]:.0%}",
                readers * case.copies if case.sd else None,
                f"{noise.epsilon(self.log.articles):.1f}" if case.sd else None,
                f"{noise.epsilon(self.log.articles, HOURS_A_DAY):.1f}" if case.sd else None,
            )
            rows.append(row)
        enough = [readers * CASES[name].copies for name in PRIVATE if shares[name] >= COUNTS_BAR]
        notes = (
            f"Federated without noise. Private: noise of {COUNT_NOISE_SD} clicks in an hour's sum, at most one click "
            f"a device, in at most {HOURS_A_DAY} hours a day; with several devices a reader, only counts grow. "
            "Epsilon: for all clicks of a reader in that time, delta 1e-6.",
            f"Bar: private counts bring {COUNTS_BAR:.0%} of the gain of plain ones, "
            + (f"met from {min(enough):,} devices." if enough else "missed."),
        )
        columns = ("counts", "AUC", "nDCG@10", "gain in AUC", "of plain", "devices", "epsilon, hour", "epsilon, day")
        return Table("Real clicks, counts", columns, rows, notes)


def first_impressions(data: EbNerd, most: int | None) -> EbNerd:
    """Return the data with only the first impressions of each week; None keeps all."""

    def cut(week: Week) -> Week:
        if most is None or most >= len(week):
            return week
        until = week.candidates.offsets[most]
        candidates = RaggedArray(week.candidates.values[:until], week.candidates.offsets[: most + 1])
        return replace(
            week,
            users=week.users[:most],
            times_sec=week.times_sec[:most],
            candidates=candidates,
            clicked=week.clicked[:until],
        )

    return replace(data, train=cut(data.train), validation=cut(data.validation))


def means(found: ReaderMetrics) -> tuple[float, float]:
    """Return AUC and nDCG@10, means over impressions."""
    total = found.impressions.sum()
    return float(found.auc.sum() / total), float(found.ndcg10.sum() / total)


def mean_by_reader(runs: Sequence[RealClicksRun]) -> ReaderMetrics:
    """Return each reader's sums, averaged over runs of the same test."""
    auc, ndcg10 = (np.mean([getattr(run, name) for run in runs], axis=0) for name in ("auc", "ndcg10"))
    return ReaderMetrics(auc, ndcg10, np.array(runs[0].impressions, dtype=np.int64))


def difference(first: ReaderMetrics, second: ReaderMetrics) -> tuple[float, float]:
    """Return the difference of two AUCs over the same impressions, and 1.96 standard errors by reader.

    The mean over impressions is a ratio of sums over readers, whose standard error is
    sqrt(R / (R - 1) sum_r (d_r - n_r mean)^2) / N, for R readers with differences d_r summed over n_r of N impressions.
    """
    gaps: NDArray[np.float64] = first.auc - second.auc
    readers, total = len(gaps), float(first.impressions.sum())
    mean = float(gaps.sum()) / total
    if readers < 2:
        return mean, math.nan
    spread = float(np.square(gaps - first.impressions * mean).sum()) * readers / (readers - 1)
    return mean, NORMAL_95 * math.sqrt(spread) / total


def _four(figure: float) -> str:
    """Return the figure with four digits: the table's own format would round away a difference of .003."""
    return f"{figure:.4f}"


def _met(met: bool) -> str:
    return "met" if met else "missed"
