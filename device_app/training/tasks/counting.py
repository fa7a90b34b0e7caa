"""What a device adds to a private count: which news were displayed to its reader, and which were clicked."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from device_app.wire.popularity import CLICKED, DISPLAYED, CountList


def count_vector(
    listed: CountList, displayed: Collection[str], clicked: Collection[str], rng: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    """The tensors `displayed` and `clicked`, each [n] in the order of the list: w or 1 at what is contributed, else 0.

    Of more displays than D, or clicks than B, a random choice is contributed, each with the same chance and without
    regard to the other, so that clicks over displays stay in proportion to the rate. News that aren't listed, and what
    happened to one of them twice, change nothing.

    Formal guarantees: whatever the reader did, at most D entries of `displayed` are w and at most B of `clicked` are 1,
    all others being 0: the L2 norm of both together is at most `listed.norm`, and no entry is negative.
    """
    place = {news_id: row for row, news_id in enumerate(listed.news)}

    def entries(news: Collection[str], limit: int, unit: float) -> NDArray[np.float32]:
        # In the list's order before the draw: the order of a set is no seeded thing.
        rows = sorted({place[news_id] for news_id in news if news_id in place})
        chosen = rng.permutation(np.array(rows, dtype=np.intp))[:limit]
        vector = np.zeros(len(listed.news), dtype=np.float32)
        vector[chosen] = unit
        return vector

    return {
        DISPLAYED: entries(displayed, listed.displayed_limit, listed.displayed_unit),
        CLICKED: entries(clicked, listed.clicked_limit, 1.0),
    }
