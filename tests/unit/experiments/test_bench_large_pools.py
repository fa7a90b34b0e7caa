"""The bench of large pools, on small ones: its vectors, and a frontier that is known by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.bench.headlines import clustered_vectors
from experiments.bench.large_pools import ALL_NEWS, CANDIDATES, measure, noisy_copies


def test_large_pool_consists_of_its_seed_vectors_and_distinct_noisy_copies(tmp_path: Path) -> None:
    seeds = clustered_vectors(70, dimensions=64, clusters=20)
    vectors = noisy_copies(seeds, 150, tmp_path / "pool")
    np.testing.assert_allclose(vectors[:70], seeds, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    near = (vectors[70:140] * seeds).sum(axis=1)
    assert (near > 0.9).all()
    assert (near < 0.999).all()
    assert len(np.unique(vectors, axis=0)) == 150


def test_full_scan_finds_everything_and_approximate_indexes_find_more_with_higher_settings(tmp_path: Path) -> None:
    flat, codes = CANDIDATES[0], CANDIDATES[2]
    table = measure(clustered_vectors(500), (1_500,), tmp_path, [flat, codes])
    recall = {str(row[1]): float(row[2] or 0) for row in table.rows}
    assert recall[ALL_NEWS] == recall["Flat"] == 1.0
    coarse, middle, fine = (recall[f"{codes.factory} {setting}"] for setting in codes.settings)
    assert 0.5 < coarse <= middle <= fine < 1.0
    assert [row[0] for row in table.rows] == [1_500] * 5
    assert "Bar at 1,500" in table.notes[1]
