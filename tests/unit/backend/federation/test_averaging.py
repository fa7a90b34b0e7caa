from __future__ import annotations

import numpy as np
import pytest

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from backend.federation.optimizers import Sgd
from backend.federation.rounds.selection import admitted, draw_pseudonym, places
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.systems import COMPOSED
from protocol.protections import LocalLaplace


def test_fedavg_step_matches_numpy() -> None:
    rng = np.random.default_rng(0)
    weights = {"a": rng.normal(size=(3, 4)).astype(np.float32), "b": rng.normal(size=5).astype(np.float32)}
    updates = [
        {"g.a": rng.normal(size=(3, 4)).astype(np.float32), "g.b": rng.normal(size=5).astype(np.float32)}
        for _ in range(7)
    ]
    total = Aggregate(gradient_shapes(weights))
    for update in updates:
        total.add(update)
    stepped = FedAvg().apply(total, weights, Sgd(learning_rate=0.05))

    assert total.count == 7
    for name, value in weights.items():
        mean = np.mean([update[f"g.{name}"].astype(np.float64) for update in updates], axis=0)
        np.testing.assert_allclose(stepped[name], value - 0.05 * mean, rtol=1e-7, atol=0)
        assert stepped[name].dtype == np.float32


def test_thousand_small_updates_are_not_lost_to_rounding() -> None:
    total = Aggregate({"g.a": (1,)})
    total.add({"g.a": np.array([1e8], np.float32)})
    for _ in range(1_000):
        total.add({"g.a": np.array([1.0], np.float32)})

    assert total.mean()["g.a"][0] == (1e8 + 1_000) / 1_001, "a float32 sum would have stayed at 1e8"


def test_mean_without_updates_raises_an_error() -> None:
    with pytest.raises(ValueError, match="zero updates"):
        Aggregate({"g.a": (1,)}).mean()


def test_learning_rate_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="learning_rate"):
        Sgd(learning_rate=0.0)


def test_uni_fedrec_has_the_papers_settings() -> None:
    spec = COMPOSED["uni_fedrec"]

    assert (spec.task, spec.model, spec.architecture, spec.negatives) == ("recall", "recall", "basis", 4)
    assert spec.protection == LocalLaplace(clip=0.1, scale=0.01)
    assert spec.optimizer == Sgd(learning_rate=0.05)
    assert all(name == each.name for name, each in COMPOSED.items())


def test_check_ins_are_admitted_with_the_given_probability() -> None:
    rng = np.random.default_rng(3)

    assert all(admitted(1.0, rng.random) for _ in range(100))
    share = sum(admitted(0.3, rng.random) for _ in range(20_000)) / 20_000
    assert share == pytest.approx(0.3, abs=0.015)


def test_number_of_places_is_rounded_up_and_pseudonyms_never_repeat() -> None:
    assert (places(10, 1.0), places(10, 1.25), places(1, 1.3)) == (10, 13, 2)
    assert len({draw_pseudonym() for _ in range(1_000)}) == 1_000


def test_sums_of_an_aggregate_are_read_only() -> None:
    total = Aggregate({"g.a": (2,)})
    total.add({"g.a": np.ones(2, dtype=np.float32)})
    with pytest.raises(ValueError, match="read-only"):
        total.sums()["g.a"][0] = 5.0
    total.add({"g.a": np.ones(2, dtype=np.float32)})
    np.testing.assert_array_equal(total.sums()["g.a"], [2.0, 2.0])
