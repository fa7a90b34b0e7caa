"""Live systems of groups without HTTP, readers of two populations. Oracles: identities, and known tastes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.federation.grouping import Constant
from backend.federation.optimizers import Sgd
from backend.federation.strategies.grouped import Grouped
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.federation.systems.finding import PROTOTYPES
from device_app.ranking.ranker import FEATURES
from experiments.bench.heldout_readers import Pool
from experiments.papers.finding import synthetic_populations as under_test
from experiments.papers.finding.live import RANKER_MODEL, LiveRounds, ServedModels
from experiments.papers.finding.synthetic_populations import SyntheticPopulation, purity_of_groups
from experiments.simulation.strategies.method import ModelChoice
from models.metrics import auc
from protocol.protections import SecureSum
from tests.doubles.news import NOW, synthetic_pool

GROUPS_EXACT = COMPOSED["groups/exact/mean"]
SMALL_RANKER = COMPOSED["small_ranker/local/mean"]
SMALL_RANKER_EXACT = COMPOSED["small_ranker/exact/mean"]

WIDE = SecureSum(clip=50.0, weight_limit=32, bits=64)
RECENCY = tuple(FEATURES).index("recency")
WARM, COLD = 36, 8


@pytest.fixture(scope="module")
def pool() -> Pool:
    drawn = synthetic_pool(600)
    return Pool(tuple(drawn.cards), np.asarray(drawn.vectors, dtype=np.float32))


@pytest.fixture(scope="module")
def readers(pool: Pool) -> SyntheticPopulation:
    sections = sorted({card.section for card in pool.cards})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(under_test, "TRUE_GROUPS", (tuple(sections[:4]), tuple(sections[4:])))
        rng = np.random.default_rng(0)
        return SyntheticPopulation.drawn(pool, NOW, RANKER_MODEL.model(0), rng, warm=WARM, cold=COLD, opposite=True)


@pytest.fixture(scope="module")
def rehearsal(readers: SyntheticPopulation) -> LiveRounds:
    return LiveRounds(readers)


def grouped(share: float, rate: float, every: int = 1_000) -> SystemSpec:
    assert isinstance(GROUPS_EXACT.strategy, Grouped)
    strategy = replace(GROUPS_EXACT.strategy, personalisation=Constant(share), recluster_every=every)
    return replace(GROUPS_EXACT, protection=WIDE, strategy=strategy, optimizer=Sgd(rate))


def last(rehearsal: LiveRounds, spec: SystemSpec, rounds: int, cohort: int = 12) -> ServedModels:
    *_, end = rehearsal.releases(spec, rounds=rounds, cohort=cohort, every=1, seed=3)
    assert end.rounds == rounds
    return end


def test_evaluation_articles_are_disjoint_from_clicks_and_training(pool: Pool, readers: SyntheticPopulation) -> None:
    assert readers.readers == WARM
    assert readers.population.tolist() == [number % 2 for number in range(WARM + COLD)]
    for reader in readers.judges:
        before, later = set(reader.before.rows.tolist()), set(reader.later.rows.tolist())
        assert len(before) == len(later) == 200
        assert not before & later
        clicked = {row for row in before | later if (pool.vectors[row] == reader.clicks).all(axis=1).any()}
        assert not clicked
        assert 0 < reader.later.opened.sum() < 200


def test_one_population_prefers_fresh_stories_and_the_other_older_ones(readers: SyntheticPopulation) -> None:
    def freshness(true_group: int) -> float:
        mine = [reader.before for reader in readers.warm if reader.true_group == true_group]
        opened = np.concatenate([met.features[met.opened == 1, RECENCY] for met in mine])
        left = np.concatenate([met.features[met.opened == 0, RECENCY] for met in mine])
        return float(opened.mean() - left.mean())

    assert freshness(0) > 0.05
    assert freshness(1) < -0.05


def test_samples_pair_opened_stories_with_unopened_ones(readers: SyntheticPopulation) -> None:
    source, met = readers.source(2), readers.warm[2].before
    drawn = source.draw(negatives=4, limit=32, rng=np.random.default_rng(0), features=tuple(FEATURES))
    opened = {each.tobytes() for each in readers.news[met.rows[met.opened == 1]]}
    assert drawn.candidates.shape == (len(opened), 5, 256)
    assert {each.tobytes() for each in drawn.candidates[:, 0]} == opened
    assert not {each.tobytes() for each in drawn.candidates[:, 1:].reshape(-1, 256)} & opened
    with pytest.raises(ValueError, match="features: section_affinity"):
        source.draw(negatives=4, limit=32, rng=np.random.default_rng(0))


def test_groups_without_personal_layers_equal_the_system_with_one_model(
    rehearsal: LiveRounds, readers: SyntheticPopulation
) -> None:
    """lambda = 0 (GROUPS, section 5.3.3), through the devices' tasks, the live strategies and a clustering."""
    one = last(rehearsal, replace(SMALL_RANKER_EXACT, protection=WIDE, optimizer=Sgd(0.2)), 5)
    groups = last(rehearsal, grouped(0.0, 0.2, every=2), 5)
    chosen = groups.models_for(readers.judging)
    for model in (groups.shared, *chosen.models):
        for name, value in one.shared.items():
            np.testing.assert_allclose(model[name], value, rtol=0, atol=2e-6)
    assert float(np.abs(one.shared["feature_weights"] - rehearsal.start["feature_weights"]).max()) > 0.01


def test_groups_learn_the_opposite_preferences_of_their_populations(
    rehearsal: LiveRounds, readers: SyntheticPopulation
) -> None:
    start = float(rehearsal.start["feature_weights"][RECENCY])
    served = last(rehearsal, grouped(1.0, 0.5, every=5), 12, cohort=WARM)
    chosen = served.models_for(readers.judging)
    assert purity_of_groups(chosen.which, readers.population) > 0.8
    weights = np.array([chosen.models[group]["feature_weights"][RECENCY] for group in chosen.which]) - start
    assert weights[readers.population == 0].mean() > 0.02
    assert weights[readers.population == 1].mean() < -0.02


def test_each_evaluated_reader_is_ranked_by_its_own_model(rehearsal: LiveRounds, readers: SyntheticPopulation) -> None:
    start = rehearsal.start
    turned = {**start, "matching.metric": -start["matching.metric"], "feature_weights": -start["feature_weights"]}
    everybody = len(readers.judges)
    plain = readers.aucs(ModelChoice.one(start, everybody))
    mixed = readers.aucs(ModelChoice((start, turned), np.arange(everybody) % 2))
    np.testing.assert_allclose(mixed[::2], plain[::2])
    assert (mixed[1::2] != plain[1::2]).all()


def test_readers_without_clicks_get_the_first_group_and_click_free_features(
    rehearsal: LiveRounds, readers: SyntheticPopulation
) -> None:
    new = readers.without_clicks()
    assert all(not len(clicks) for clicks in new.judging)
    served = last(rehearsal, grouped(1.0, 0.5), 1)
    assert served.models_for(new.judging).which.tolist() == [0] * len(new.judges)
    zeros = {name: np.zeros_like(value) for name, value in rehearsal.start.items()}
    fresh = zeros["feature_weights"].copy()
    fresh[RECENCY] = 1.0
    found = new.aucs(ModelChoice.one({**rehearsal.start, "feature_weights": fresh}, len(new.judges)))
    for reader, each in zip(readers.judges, found, strict=True):
        assert each == pytest.approx(auc(reader.later.opened, reader.later.features[:, RECENCY]), abs=1e-9)
    of_clicks = [place for place, name in enumerate(FEATURES) if name.endswith("affinity")]
    assert of_clicks == [0, 1]
    assert not any(reader.later.features[:, of_clicks].any() for reader in new.judges)
    assert all(reader.later.features[:, of_clicks].any() for reader in readers.judges)


def test_population_separation_matches_a_hand_computation() -> None:
    population = np.array([0, 0, 0, 1, 1, 1])
    assert purity_of_groups(np.array([2, 2, 2, 0, 0, 0]), population) == 1
    assert purity_of_groups(np.zeros(6, np.int64), population) == 0.5
    assert purity_of_groups(np.array([0, 0, 1, 1, 1, 1]), population) == pytest.approx(5 / 6)


def test_systems_without_secure_sum_steps_are_refused(rehearsal: LiveRounds) -> None:
    for spec, words in ((SMALL_RANKER, "does not step by secure sums"), (PROTOTYPES, "does not step")):
        with pytest.raises(ValueError, match=words):
            next(iter(rehearsal.releases(spec, rounds=1, cohort=2, every=1, seed=0)))
