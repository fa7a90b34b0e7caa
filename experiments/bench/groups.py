"""Measures whether groups help, for readers of two populations with known interests and for readers of one kind.

The live systems run without HTTP: each system with groups beside the system with one model and the same protection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from backend.db.engine import open_engine
from backend.federation.systems import COMPOSED
from backend.releases.store import ReleaseStore
from experiments.bench.heldout_readers import Pool
from experiments.bench.newspaper import prepared_newspaper
from experiments.bench.quality import gain_interval, pool_of
from experiments.papers.finding.live import RANKER_MODEL, LiveRounds
from experiments.papers.finding.synthetic_populations import SyntheticPopulation, purity_of_groups
from experiments.records import Cell, Table
from experiments.simulation.strategies.method import ModelChoice
from experiments.study import Study, conduct

GROUPS = COMPOSED["groups/secure/median"]
GROUPS_EXACT = COMPOSED["groups/exact/mean"]
SMALL_RANKER_EXACT = COMPOSED["small_ranker/exact/mean"]
SMALL_RANKER_SECURE = COMPOSED["small_ranker/secure/median"]

PAIRS = ((SMALL_RANKER_EXACT, GROUPS_EXACT), (SMALL_RANKER_SECURE, GROUPS))
KINDS = {"two kinds": True, "one kind": False}
"""Kinds of readers, and whether each has two populations of opposite tastes."""
NEW_COLUMNS = (
    "readers",
    "system",
    "by the first group",
    "by everybody's model",
    "first group - everybody's",
    "one model",
)
COLUMNS = ("readers", "system", "start", "warm AUC", "cold AUC", "warm - one model", "cold - one model", "in own group")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupsSizes:
    """Sizes of the comparison; cold readers take no part in rounds."""

    rounds: int = 100
    cohort: int = 60
    seeds: int = 3
    warm: int = 600
    cold: int = 300


@dataclass(frozen=True)
class GroupsOutcome:
    """AUC of every evaluated reader at the end and at the start, [m], and how well groups separate the populations.

    new, new_common: AUC of the same readers without clicks, by the model that a device then takes, and by the global
    model.
    """

    aucs: Floats
    start: Floats
    apart: float
    new: Floats
    new_common: Floats


GroupsOutcomes = Mapping[str, GroupsOutcome]


GroupsJob = tuple[str, int]


@dataclass(frozen=True)
class GroupsStudy(Study[GroupsJob, GroupsOutcomes]):
    """The comparison on one pool; each seed draws its own readers."""

    pool: Pool
    now: datetime
    sizes: GroupsSizes = GroupsSizes()

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.sizes.seeds))

    @property
    def jobs(self) -> Sequence[GroupsJob]:
        return [(kind, seed) for kind in KINDS for seed in self.seeds]

    def run(self, job: GroupsJob) -> GroupsOutcomes:
        return played(self.pool, self.now, *job, self.sizes)

    def line(self, job: GroupsJob, run: GroupsOutcomes) -> str:
        aucs = ", ".join(f"{name} {each.aucs.mean():.4f}" for name, each in run.items())
        return f"{job[0]}, seed {job[1]}: AUC {aucs}"

    def tables(self, runs: Mapping[GroupsJob, GroupsOutcomes]) -> list[Table]:
        found: dict[str, list[GroupsOutcomes]] = {}
        for (kind, _), run in runs.items():
            found.setdefault(kind, []).append(run)
        return [outcomes_table(found, self.sizes), new_readers_table(found)]


def run(data: Path) -> list[Table]:
    """Return the table, one row for each population and system."""
    now = datetime.now(UTC)
    settings = prepared_newspaper()
    engine = open_engine(settings.database_url)
    try:
        encoder = ReleaseStore.open(engine, settings).require_current().encoder
    finally:
        engine.dispose()
    return conduct(GroupsStudy(pool_of(settings, now, encoder), now), console=Console(stderr=True))


def played(pool: Pool, now: datetime, kind: str, seed: int, sizes: GroupsSizes) -> GroupsOutcomes:
    """Run all systems on readers of one kind, drawn with one seed."""
    rng = np.random.default_rng((5, seed))
    readers = SyntheticPopulation.drawn(
        pool, now, RANKER_MODEL.model(0), rng, warm=sizes.warm, cold=sizes.cold, opposite=KINDS[kind]
    )
    live, found = LiveRounds(readers), {}
    new = readers.without_clicks()
    for spec in (spec for pair in PAIRS for spec in pair):
        first, last = live.releases(spec, rounds=sizes.rounds, cohort=sizes.cohort, every=sizes.rounds, seed=seed)
        start, end = first.models_for(readers.judging), last.models_for(readers.judging)
        found[spec.name] = GroupsOutcome(
            readers.aucs(end),
            readers.aucs(start),
            purity_of_groups(end.which, readers.population),
            new.aucs(last.models_for(new.judging)),
            new.aucs(ModelChoice.one(last.shared, len(new.judges))),
        )
    return found


def outcomes_table(found: Mapping[str, Sequence[GroupsOutcomes]], sizes: GroupsSizes) -> Table:
    """Return the table of groups, by kind of readers."""
    rows: list[tuple[Cell, ...]] = []
    for kind, seeds in found.items():
        for one, groups in PAIRS:
            against = [each[one.name] for each in seeds]
            rows.append(_row(kind, one.name, against, None, sizes.warm))
            rows.append(_row(kind, groups.name, [each[groups.name] for each in seeds], against, sizes.warm))
    notes = (
        f"AUC on later articles after {sizes.rounds} rounds of {sizes.cohort} of {sizes.warm} readers (warm); "
        f"{sizes.cold} others (cold) choose a group by their clicks. {sizes.seeds} seeds; differences are paired by "
        "reader and seed, with 95 % intervals. in own group: share of readers in a group that is mostly of their kind.",
    )
    return Table("Groups of readers, newsroom", COLUMNS, rows, notes)


def new_readers_table(found: Mapping[str, Sequence[GroupsOutcomes]]) -> Table:
    """Return the table of readers without clicks."""
    rows: list[tuple[Cell, ...]] = []
    for kind, seeds in found.items():
        for one, groups in PAIRS:
            first, common = (
                np.stack([each[groups.name].new for each in seeds]),
                np.stack([each[groups.name].new_common for each in seeds]),
            )
            alone = np.mean([each[one.name].new for each in seeds])
            rows.append((kind, groups.name, *_means(first, common), _gain(first - common), f"{alone:.4f}"))
    notes = (
        "The same readers before their first click. everybody's model: the mean over all groups' steps, w_g. one "
        "model: the same protection without groups.",
    )
    return Table("Readers without clicks, newsroom", NEW_COLUMNS, rows, notes)


def _means(*aucs: Floats) -> tuple[str, ...]:
    return tuple(f"{each.mean():.4f}" for each in aucs)


def _row(
    kind: str, system: str, ended: Sequence[GroupsOutcome], against: Sequence[GroupsOutcome] | None, warm: int
) -> tuple[Cell, ...]:
    aucs = np.stack([each.aucs for each in ended])  # [seeds, judges]
    start = np.stack([each.start for each in ended])
    compared: list[Cell] = [None, None]
    if against is not None:
        gains = aucs - np.stack([each.aucs for each in against])
        compared = [_gain(gains[:, :warm]), _gain(gains[:, warm:])]
    return (
        kind,
        system,
        f"{start.mean():.4f}",
        f"{aucs[:, :warm].mean():.4f}",
        f"{aucs[:, warm:].mean():.4f}",
        *compared,
        f"{np.mean([each.apart for each in ended]):.2f}" if against is not None else None,
    )


def _gain(gains: Floats) -> str:
    low, high = gain_interval(gains.reshape(-1))
    return f"{gains.mean():+.4f} ({low:+.4f} to {high:+.4f})"
