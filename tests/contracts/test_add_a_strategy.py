"""Following docs/add-a-strategy.md is enough: a toy strategy in the registry of systems plans and concludes a round.

Oracle: the step worked out by hand from three known updates, of a size that no real strategy takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult, Strategy
from backend.federation.systems import COMPOSED
from protocol.rounds import RoundManifest
from tests.doubles.plain_rounds import PlainRoundRig, upload_update
from tests.doubles.small_release import WEIGHTS, migrated_engine, small_store

SHARE = 0.25


@dataclass(frozen=True)
class ToyStrategy:
    """Moves the weights by a share of the mean, without an optimizer."""

    share: float

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        assert system.model is not None
        return Plan(gradient_shapes(context.releases.weights(context.release, system.model)))

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        assert system.model is not None
        mean = total.mean()
        weights = context.releases.weights(context.release, system.model)
        moved = {name: (value - self.share * mean[f"g.{name}"]).astype(np.float32) for name, value in weights.items()}
        return RoundResult(weights={system.model: moved}, facts={"toy": self.share})


def test_registering_a_strategy_is_enough_to_plan_sum_and_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy: Strategy = ToyStrategy(SHARE)
    monkeypatch.setitem(COMPOSED, "toy", replace(COMPOSED["uni_fedrec"], name="toy", strategy=strategy, optimizer=None))
    engine = migrated_engine(tmp_path)
    rig = PlainRoundRig(tmp_path, engine, small_store(engine, tmp_path))
    coordinator = rig.coordinator()

    coordinator.open_round("toy", cohort=3, cohort_minimum=2, seconds=60.0)
    for value in (0.01, 0.02, 0.06):
        upload_update(coordinator, value)
    ended = coordinator.step()

    assert ended is not None
    assert (ended.system, ended.state, ended.published) == ("toy", "applied", "r2")
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    for name, before in WEIGHTS.items():
        np.testing.assert_allclose(stepped[name], before - SHARE * 0.03, rtol=0, atol=1e-6)
    assert rig.releases.history()[0].facts["toy"] == SHARE
