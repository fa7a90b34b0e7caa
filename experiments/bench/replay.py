"""Rounds over MIND's readers, replayed: the lowest release of each system that trains the default ranker."""

from __future__ import annotations

from pathlib import Path

from backend.federation.systems.finding import FINDING, FINDING_EXACT
from backend.federation.systems.small_ranker import SMALL_RANKER_EXACT, SMALL_RANKER_SECURE
from experiments.bench.table import Cell, Table
from experiments.datasets.mind import FOLDER, load_mind
from experiments.finding.live import CONTESTANT, LiveRounds
from experiments.finding.replayed import Replayed

SYSTEMS = (SMALL_RANKER_SECURE, SMALL_RANKER_EXACT, FINDING, FINDING_EXACT)
ROUNDS, COHORT, EVERY, SEEDS = 100, 60, 5, 2
BAR = 0.003


def run(data: Path) -> list[Table]:
    """A row a system and seed. Raises DataMissing."""
    readers = Replayed(load_mind(data / FOLDER), CONTESTANT.model(0))
    rehearsal = LiveRounds(readers)
    rows: list[tuple[Cell, ...]] = []
    for spec in SYSTEMS:
        for seed in range(SEEDS):
            found = [
                (served.rounds, float(readers.aucs(served.models_for(readers.judging)).mean()))
                for served in rehearsal.releases(spec, rounds=ROUNDS, cohort=COHORT, every=EVERY, seed=seed)
            ]
            start, end = found[0][1], found[-1][1]
            when, lowest = min(found[1:], key=lambda each: each[1])
            rows.append(
                (
                    spec.name,
                    seed,
                    f"{start:.4f}",
                    f"{lowest - start:+.4f}",
                    when,
                    f"{end - start:+.4f}",
                    "yes" if lowest >= start - BAR else "no",
                )
            )
    columns = ("system", "seed", "start AUC", "lowest", "after rounds", "at the end", f"never {BAR} below")
    note = (
        f"{ROUNDS} rounds of {COHORT} of {readers.readers:,} readers with shown lists, dev AUC every {EVERY} rounds, "
        "each reader by the model of its group where a system has groups; one AUC has a standard error of .011. "
        "Popularity is 0, since nothing was counted. Noise is seeded."
    )
    return [Table("Rounds over replayed readers, MIND subset", columns, rows, (note,))]
