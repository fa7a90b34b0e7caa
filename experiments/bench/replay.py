"""Federated rounds simulated on MIND: the lowest AUC of any release, for each system of the default ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console

from backend.federation.systems.finding import FINDING, FINDING_EXACT
from backend.federation.systems.small_ranker import SMALL_RANKER_EXACT, SMALL_RANKER_SECURE
from experiments.datasets.mind import FOLDER, load_mind
from experiments.finding.live import RANKER_MODEL, LiveRounds
from experiments.finding.replayed import Replayed
from experiments.study import Study, conduct
from experiments.table import Cell, Table, required

SYSTEMS = {spec.name: spec for spec in (SMALL_RANKER_SECURE, SMALL_RANKER_EXACT, FINDING, FINDING_EXACT)}
ROUNDS, COHORT, EVERY, SEEDS = 100, 60, 5, 2
BAR = 0.003
ReplayJob = tuple[str, int]
"""System and seed."""
Course = tuple[tuple[int, float], ...]
"""Rounds behind a release, and its AUC."""


@dataclass(frozen=True)
class ReplayStudy(Study[ReplayJob, Course]):
    """The same readers in rounds of each system."""

    data: Path

    @cached_property
    def readers(self) -> Replayed:
        """Raises DataMissing."""
        return Replayed(load_mind(self.data / FOLDER), RANKER_MODEL.model(0))

    @cached_property
    def _rounds(self) -> LiveRounds:
        return LiveRounds(self.readers)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of cohorts and noise."""
        return tuple(range(SEEDS))

    @property
    def jobs(self) -> Sequence[ReplayJob]:
        """System by system."""
        return [(name, seed) for name in SYSTEMS for seed in self.seeds]

    def prepare(self) -> None:
        """Look for the folder."""
        required(self.data / FOLDER)

    def run(self, job: ReplayJob) -> Course:
        """All rounds."""
        releases = self._rounds.releases(SYSTEMS[job[0]], rounds=ROUNDS, cohort=COHORT, every=EVERY, seed=job[1])
        return tuple(
            (served.rounds, float(self.readers.aucs(served.models_for(self.readers.judging)).mean()))
            for served in releases
        )

    def line(self, job: ReplayJob, run: Course) -> str:
        """AUC at the start and at the end."""
        return f"{job[0]}, seed {job[1]}: AUC {run[0][1]:.4f} -> {run[-1][1]:.4f}"

    def tables(self, runs: Mapping[ReplayJob, Course]) -> list[Table]:
        """A row a system and seed."""
        rows: list[tuple[Cell, ...]] = []
        for (name, seed), found in runs.items():
            start, end = found[0][1], found[-1][1]
            when, lowest = min(found[1:], key=lambda each: each[1])
            kept = "yes" if lowest >= start - BAR else "no"
            rows.append((name, seed, f"{start:.4f}", f"{lowest - start:+.4f}", when, f"{end - start:+.4f}", kept))
        columns = ("system", "seed", "start AUC", "lowest", "after rounds", "at the end", f"never {BAR} below")
        note = (
            f"{ROUNDS} rounds of {COHORT} of {self.readers.readers:,} readers with shown lists, dev AUC every {EVERY} "
            "rounds, each reader by the model of its group where a system has groups; one AUC has a standard error of "
            ".011. Popularity is 0, since nothing was counted. Noise is seeded."
        )
        return [Table("Rounds over replayed readers, MIND subset", columns, rows, (note,))]


def run(data: Path) -> list[Table]:
    """A row a system and seed. Raises DataMissing."""
    return conduct(ReplayStudy(data), console=Console(stderr=True))
