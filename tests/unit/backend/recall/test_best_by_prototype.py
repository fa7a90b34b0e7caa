"""The best rows and normalisers of prototypes against sorting and summing whole pools in float64."""

from __future__ import annotations

import numpy as np
import pytest

from backend.recall.prototype_lists import NEWS_AT_ONCE, BestByPrototype

SHARPNESS = 1.5


@pytest.mark.parametrize("count", [1, 90, 2 * NEWS_AT_ONCE + 17])
def test_excluded_rows_never_beat_the_threshold_and_normalisers_cover_all(count: int) -> None:
    draw = np.random.default_rng(5)
    prototypes = draw.normal(size=(4, 6)).astype(np.float32)
    vectors = draw.normal(size=(count, 6)).astype(np.float32)
    popular = draw.normal(size=count).astype(np.float32)
    scores = SHARPNESS * (prototypes.astype(np.float64) @ vectors.T.astype(np.float64)) + popular  # [4, n]
    best = BestByPrototype.of(prototypes, vectors, popular, sharpness=SHARPNESS, depth=50)
    np.testing.assert_allclose(best.log_normalisers, np.log(np.exp(scores).sum(axis=1)), rtol=1e-5)
    for rows, end, mine in zip(best.rows, best.ends, scores, strict=True):
        assert len(set(rows.tolist())) == len(rows) == min(50, count)
        assert set(np.argsort(-mine)[:50].tolist()) <= set(rows.tolist())
        out = np.delete(mine, rows)
        assert (out <= end + 1e-4).all()


def test_ties_leave_no_more_rows_than_requested() -> None:
    same = np.ones((500, 2), dtype=np.float32)
    best = BestByPrototype.of(same[:1], same, np.zeros(500, np.float32), sharpness=1.0, depth=20)
    assert len(best.rows[0]) == 20
    assert best.ends[0] == 2.0
