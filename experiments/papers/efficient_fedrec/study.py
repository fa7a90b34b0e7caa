"""`ownfeed evaluate efficient-fedrec`: figure 4a of Efficient-FedRec, the union of a group's news by its size.

A reader's own set is what its local behaviours hold: the last 50 clicks and every candidate shown. The union is what a
group asks for together (section 3.4), so it hides who asked for what and sets the bytes of a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import Impressions, load_behaviors, load_news
from experiments.records import Cell, Table, required
from experiments.study import Study
from models.builders.user import nrms_400
from models.shapes import CLICKS, PAPER_DIM

FOLDER = "mind-train"
GROUPS = (1, 10, 20, 30, 40, 50)
PUBLISHED = {1: 114, 40: 1_115}
"""Section 4.5; the figure's other values aren't in the paper's text."""
BYTES = 4
"""Of a number, as float32."""
NewsSet = NDArray[np.int64]


@dataclass(frozen=True)
class UnionStudy(Study[int, list[int]]):
    """One job for each group size: the unions of `groups` random groups."""

    data: Path
    groups: int = 200
    seed: int = 0

    @property
    def jobs(self) -> Sequence[int]:
        """The group sizes."""
        return GROUPS

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of the groups."""
        return (self.seed,)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Groups and their seed."""
        return {"groups": self.groups, "seed": self.seed}

    def prepare(self) -> None:
        """Check that the folder exists. Raises DataMissing."""
        required(self.data / FOLDER)

    @cached_property
    def _shown(self) -> Impressions:
        return load_behaviors(self.data / FOLDER / "behaviors.tsv", load_news(self.data / FOLDER / "news.tsv"))

    @cached_property
    def readers(self) -> list[NewsSet]:
        """The news of each reader's behaviours."""
        shown = self._shown
        found: dict[str, list[NewsSet]] = {}
        for row, user in enumerate(shown.users):
            found.setdefault(user, []).extend((shown.histories[row][-CLICKS:], shown.candidates[row]))
        return [np.unique(np.concatenate(each)) for each in found.values()]

    def run(self, job: int) -> list[int]:
        """The size of each group's union."""
        rng = np.random.default_rng((self.seed, job))
        return [union(self.readers, rng.choice(len(self.readers), job, replace=False)) for _ in range(self.groups)]

    def line(self, job: int, run: list[int]) -> str:
        """The mean union."""
        return f"group of {job}: {np.mean(run):.0f} news"

    def rows(self, job: int, run: list[int]) -> list[dict[str, Any]]:
        """One row."""
        return [{"group": job, "unions": run}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[int, list[int]]:
        """The unions of stored rows."""
        return {row["group"]: list(row["unions"]) for row in rows}

    def tables(self, runs: Mapping[int, list[int]]) -> list[Table]:
        """Figure 4a, with the bytes that a reader's share of a round takes."""
        model = sum(each.numel() for each in nrms_400().parameters())
        rows: list[tuple[Cell, ...]] = []
        for group in GROUPS:
            size, own = float(np.mean(runs[group])), float(np.mean(runs[1]))
            numbers = 2 * (size * PAPER_DIM + model)
            paper = (PUBLISHED.get(group), round(PUBLISHED[group] / PUBLISHED[1], 1) if group in PUBLISHED else None)
            rows.append((group, round(size), paper[0], f"{size / own:.1f}", paper[1], f"{BYTES * numbers / 1e6:.2f}"))
        each = len(self._shown.users) / len(self.readers)
        notes = (
            f"Mean of {self.groups} random groups of {len(self.readers):,} readers with {each:.1f} impressions each, "
            "where the paper has all of them. MB: news vectors of 400 numbers and the user model, float32, there and "
            "back; without the other devices' keys and shares.",
        )
        columns = ("group", "union", "union paper", "times own", "times own paper", "MB a reader and round")
        return [Table("Union news set by group size (Figure 4a)", columns, rows, notes)]


def union(readers: Sequence[NewsSet], group: NDArray[np.int64]) -> int:
    """Return how many news the readers of a group have together."""
    return len(np.unique(np.concatenate([readers[each] for each in group])))
