"""How likely a piece of news is to be read by anybody: what personal lists are measured against and lean on.

Popularity (`backend.popularity.prior`) dominates recall (docs/results/recall.md). `PopularNews` makes lists by
interest vectors in which popularity counts as it does everywhere else: s <v, d> + log pop(d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from backend.recall.index import VectorRows
from device_app.wire.recall import CANDIDATES_LIMIT

HEAD_SHARE = 4
"""Popular news looked at beside each list, as a multiple of its length: with that many, lists of 400 on MIND are those
of the whole pool at every epsilon; with as many as the list is long they lose up to half a point of R@400."""


@dataclass(frozen=True)
class PopularNews:
    """vectors [n, D] and log_popularity [n] of a pool; rows [h] the most popular, best first, with their own vectors
    [h, D] side by side; place [n] is where a row stands in the order of all."""

    vectors: VectorRows
    log_popularity: NDArray[np.float32]
    rows: NDArray[np.intp]
    head: NDArray[np.float32]
    place: NDArray[np.intp]

    @classmethod
    def of(cls, vectors: VectorRows, log_popularity: NDArray[np.float32]) -> Self:
        """Ties to the lower row."""
        order = np.argsort(-log_popularity, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        rows = order[: HEAD_SHARE * CANDIDATES_LIMIT]
        return cls(vectors, log_popularity, rows, np.ascontiguousarray(vectors[rows]), place)

    def near(
        self, queries: NDArray[np.float32], nearest: Sequence[Sequence[int]], k: int, *, sharpness: float
    ) -> list[list[int]]:
        """For each query v [c, D] the k rows with the greatest s <v, d> + log pop(d), best first.

        They are looked for among its `nearest` rows and the HEAD_SHARE k most popular ones. The length of a query says
        how much is known: that of a report that tells nothing is short, and its list the popular one.
        """
        rows = self.rows[: HEAD_SHARE * k]
        popular = sharpness * (queries @ self.head[: len(rows)].T) + self.log_popularity[rows]  # [c, h]
        lists = []
        for query, mine, scores in zip(queries, nearest, popular, strict=True):
            among = np.array(mine, dtype=np.intp)
            among = among[self.place[among] >= len(rows)]
            both = np.concatenate([among, rows])
            all_scores = np.concatenate(
                [sharpness * (self.vectors[among] @ query) + self.log_popularity[among], scores]
            )
            lists.append(both[np.lexsort((both, -all_scores))][:k].tolist())
        return lists
