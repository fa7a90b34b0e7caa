"""Rounds over MIND's readers, replayed: the lowest release of each system that trains the default ranker."""

from __future__ import annotations

from pathlib import Path

from backend.federation.systems.small_ranker_secure import SMALL_RANKER_EXACT, SMALL_RANKER_SECURE
from experiments.bench.table import Cell, Table
from experiments.datasets.mind import FOLDER, load_mind
from experiments.quality.replay import Replay

ROUNDS, COHORT, EVERY, SEEDS = 100, 60, 5, 2
BAR = 0.003


def run(data: Path) -> list[Table]:
    """A row a system and seed. Raises DataMissing."""
    replay = Replay(load_mind(data / FOLDER))
    rows: list[tuple[Cell, ...]] = []
    for spec in (SMALL_RANKER_SECURE, SMALL_RANKER_EXACT):
        for seed in range(SEEDS):
            found = list(replay.releases(spec, rounds=ROUNDS, cohort=COHORT, every=EVERY, seed=seed))
            start, lowest = found[0].auc, min(found[1:], key=lambda each: each.auc)
            rows.append(
                (
                    spec.name,
                    seed,
                    f"{start:.4f}",
                    f"{lowest.auc - start:+.4f}",
                    lowest.rounds,
                    f"{found[-1].auc - start:+.4f}",
                    "yes" if lowest.auc >= start - BAR else "no",
                )
            )
    columns = ("system", "seed", "start AUC", "lowest", "after rounds", "at the end", f"never {BAR} below")
    note = (
        f"{ROUNDS} rounds of {COHORT} of {replay.readers:,} readers with shown lists, dev AUC every {EVERY} rounds; "
        "one AUC has a standard error of .011. Popularity is 0, since nothing was counted. Noise is seeded."
    )
    return [Table("Rounds over replayed readers, MIND subset", columns, rows, (note,))]
