"""Lists in which popularity counts besides interest vectors: s <v, d> + log pop(d).

Popularity (`backend.popularity.estimate`), the probability that any reader opens an article, dominates recall
(docs/results/recall.md). `PopularNews` makes the lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from backend.recall.indexes.index import VectorRows
from protocol.recall import CANDIDATES_LIMIT

HEAD_SHARE = 4
"""Popular articles considered besides each list, as a multiple of its length. With this many, lists of 400 on MIND
equal those of the whole pool at every epsilon; with as many as the list is long they lose up to half a point of
R@400."""


@dataclass(frozen=True)
class PopularNews:
    """vectors [n, D] and log_popularity [n] of a pool, and its most popular rows [h], best first.

    The vectors of these rows are stored contiguously [h, D]; place [n] is a row's place in the order of all.
    """

    vectors: VectorRows
    log_popularity: NDArray[np.float32]
    rows: NDArray[np.intp]
    head: NDArray[np.float32]
    place: NDArray[np.intp]

    @classmethod
    def of(cls, vectors: VectorRows, log_popularity: NDArray[np.float32]) -> Self:
        """Build from a pool; of equal popularity the lower row comes first."""
        order = np.argsort(-log_popularity, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        rows = order[: HEAD_SHARE * CANDIDATES_LIMIT]
        return cls(vectors, log_popularity, rows, np.ascontiguousarray(vectors[rows]), place)

    def near(
        self, queries: NDArray[np.float32], nearest: Sequence[Sequence[int]], k: int, *, sharpness: float
    ) -> list[list[int]]:
        """For each query v [c, D], the k rows with the greatest s <v, d> + log pop(d), best first.

        Candidates are its `nearest` rows and the HEAD_SHARE k most popular ones. The length of a query says how much is
        known: the query of a report without information is short, and its list is the most popular articles.
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
