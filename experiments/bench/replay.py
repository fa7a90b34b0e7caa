"""Simulates federated rounds on MIND and reports each default-ranker system's AUC, including the lowest of any
release.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console

from backend.federation.systems import COMPOSED
from experiments.datasets.mind import FOLDER, load_mind
from experiments.papers.finding.live import RANKER_MODEL, LiveRounds
from experiments.papers.finding.protocol import Replayed
from experiments.records import Cell, Table, required
from experiments.study import Study, conduct

GROUPS = COMPOSED["groups/secure/median"]
GROUPS_EXACT = COMPOSED["groups/exact/mean"]
SMALL_RANKER_EXACT = COMPOSED["small_ranker/exact/mean"]
SMALL_RANKER_SECURE = COMPOSED["small_ranker/secure/median"]

SYSTEMS = {spec.name: spec for spec in (SMALL_RANKER_SECURE, SMALL_RANKER_EXACT, GROUPS, GROUPS_EXACT)}
ROUNDS, COHORT, EVERY, SEEDS = 100, 60, 5, 2
BAR = 0.003
ReplayJob = tuple[str, int]
Course = tuple[tuple[int, float], ...]
"""Rounds before a release, and its AUC."""


@dataclass(frozen=True)
class ReplayStudy(Study[ReplayJob, Course]):
    """Runs each system's rounds with the same readers."""

    data: Path

    @cached_property
    def readers(self) -> Replayed:
        """Return the readers. Raises DataMissing."""
        return Replayed(load_mind(self.data / FOLDER), RANKER_MODEL.model(0))

    @cached_property
    def _rounds(self) -> LiveRounds:
        return LiveRounds(self.readers)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(SEEDS))

    @property
    def jobs(self) -> Sequence[ReplayJob]:
        return [(name, seed) for name in SYSTEMS for seed in self.seeds]

    def prepare(self) -> None:
        required(self.data / FOLDER)

    def run(self, job: ReplayJob) -> Course:
        releases = self._rounds.releases(SYSTEMS[job[0]], rounds=ROUNDS, cohort=COHORT, every=EVERY, seed=job[1])
        return tuple(
            (served.rounds, float(self.readers.aucs(served.models_for(self.readers.judging)).mean()))
            for served in releases
        )

    def line(self, job: ReplayJob, run: Course) -> str:
        return f"{job[0]}, seed {job[1]}: AUC {run[0][1]:.4f} -> {run[-1][1]:.4f}"

    def tables(self, runs: Mapping[ReplayJob, Course]) -> list[Table]:
        rows: list[tuple[Cell, ...]] = []
        for (name, seed), found in runs.items():
            start, end = found[0][1], found[-1][1]
            when, lowest = min(found[1:], key=lambda each: each[1])
            kept = "yes" if lowest >= start - BAR else "no"
            rows.append((name, seed, f"{start:.4f}", f"{lowest - start:+.4f}", when, f"{end - start:+.4f}", kept))
        columns = ("system", "seed", "start AUC", "lowest", "after rounds", "at the end", f"never {BAR} below")
        note = (
            f"{ROUNDS} rounds of {COHORT} of {self.readers.readers:,} readers; dev AUC every {EVERY} rounds, each "
            "reader by the model of its group; one AUC has a standard error of .011. Popularity is 0: nothing was "
            "counted."
        )
        return [Table("Rounds over replayed readers, MIND subset", columns, rows, (note,))]


def run(data: Path) -> list[Table]:
    return conduct(ReplayStudy(data), console=Console(stderr=True))
