"""Codebooks learned in simulated rounds, on readers whose groups are planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.federation.strategies.learned_codebook import NOISE_MOST, LearnedCodebook
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from experiments.recall.codebook_rounds import Learned, learn
from protocol.protections import SecureSum

CODEBOOK = COMPOSED["codebook/secure/mean"]
CODEBOOK_EXACT = COMPOSED["codebook/exact/mean"]

DIM, GROUPS = 48, 6


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture(scope="module")
def planted_readers() -> dict[str, np.ndarray]:
    """Readers near centres that share a direction, topics some way off the centres, and a fine codebook."""
    draw = np.random.default_rng(4)
    centres = unit(unit(draw.normal(size=(GROUPS, DIM))) + 0.5 * unit(draw.normal(size=(1, DIM))))
    near = centres[draw.integers(GROUPS, size=2_500)]
    readers = unit(near + 0.5 * draw.normal(size=near.shape) / np.sqrt(DIM))
    topics = unit(centres + 0.8 * draw.normal(size=centres.shape) / np.sqrt(DIM))
    return {"centres": centres, "readers": readers, "topics": topics, "finest": np.concatenate([topics, centres])}


def learned(spec: SystemSpec, planted: dict[str, np.ndarray], cohort: int) -> Learned:
    return learn(spec, planted["topics"], planted["finest"], planted["readers"], cohort=cohort, rounds=10, seed=1)


def apart(rows: np.ndarray) -> np.ndarray:
    return unit(rows - rows.mean(axis=0))


def test_rounds_without_noise_move_prototypes_towards_the_true_groups(
    planted_readers: dict[str, np.ndarray],
) -> None:
    found = learned(CODEBOOK_EXACT, planted_readers, 300)
    before = (apart(planted_readers["topics"]) * apart(planted_readers["centres"])).sum(axis=1).mean()
    assert found.noise == 0
    assert (found.published * apart(planted_readers["centres"])).sum(axis=1).mean() > before + 0.1


def test_draft_of_sixty_readers_is_not_published_and_that_of_two_thousand_is(
    planted_readers: dict[str, np.ndarray],
) -> None:
    spec = replace(CODEBOOK, strategy=replace(CODEBOOK.strategy, size=GROUPS, axes=2 * GROUPS))  # type: ignore[type-var]
    drowned = learned(replace(spec, protection=SecureSum(clip=1.0, sigma=49_000)), planted_readers, 60)
    assert drowned.noise > NOISE_MOST
    assert drowned.published is planted_readers["topics"]
    clear = learned(replace(spec, protection=SecureSum(clip=1.0, sigma=1_000)), planted_readers, 2_000)
    assert clear.noise <= NOISE_MOST
    assert clear.published is not planted_readers["topics"]


def test_sums_are_projected_onto_the_finest_codebooks_principal_directions() -> None:
    finest = np.eye(3, 5)[:2].repeat(4, axis=0)
    sums = np.arange(10.0).reshape(2, 5)
    kept = LearnedCodebook(size=2, axes=2).within(sums, finest)
    np.testing.assert_allclose(kept, sums * [1, 1, 0, 0, 0], atol=1e-12)
    np.testing.assert_array_equal(LearnedCodebook(size=2).within(sums, finest), sums)


def test_reported_draft_noise_matches_its_spread_over_draws(planted_readers: dict[str, np.ndarray]) -> None:
    """Oracle: the same rounds repeated, differing by the noise alone."""
    strategy = LearnedCodebook(size=GROUPS)
    mine = planted_readers["readers"]
    near = np.argmax(mine @ planted_readers["topics"].T, axis=1)
    sums = np.zeros((GROUPS, DIM))
    np.add.at(sums, near, mine)
    members = np.bincount(near, minlength=GROUPS).astype(float)
    variance = 90.0
    means = []
    for seed in range(400):
        noise = np.random.default_rng(seed)
        draft = strategy.begin(planted_readers["topics"])
        for _ in range(3):
            noisy = sums + np.sqrt(variance) * noise.normal(size=sums.shape)
            draft = draft.seen(noisy, members, len(mine), sums_variance=variance, members_variance=0.0)
        means.append(draft.means)
    np.testing.assert_allclose(np.var(means, axis=0).mean(axis=1), draft.noises, rtol=0.05)
