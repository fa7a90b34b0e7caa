"""One round of the small ranker, by real devices over real HTTP.

Devices learn from what they were served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.operations.admin_client import Operator, OperatorRefused
from device_app.fleet.fleet import Fleet, catch_up, train
from device_app.ranking.ranker import FeatureContext, Ranker, feature_columns
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.task import Update
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld, warm_up_to_train

DEVICES = 6
MODEL = "ranker.features"
Weights = Mapping[str, NDArray[np.float32]]


@pytest.fixture
def fleet(world: SmallWorld) -> Iterator[Fleet]:
    made = Fleet(world.device_settings(), DEVICES, seed=7)
    yield made
    made.close()


def weights(world: SmallWorld, release: str, model: str) -> Weights:
    assert world.services is not None
    store = world.services.releases
    return store.weights(store.manifest(release), model)


def test_small_ranker_round_changes_only_its_own_weights(
    world: SmallWorld, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: dict[bytes, NDArray[np.float32]] = {}
    score = Ranker.score

    def recording_serving(
        self: Ranker,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext | None = None,
    ) -> NDArray[np.float32]:
        assert context_features is not None
        columns = feature_columns(self.features, context_features)
        for vector, row in zip(candidates, columns, strict=True):
            served.setdefault(clicks[-50:].tobytes() + vector.tobytes(), row)
        return score(self, clicks, candidates, context_features)

    monkeypatch.setattr(Ranker, "score", recording_serving)
    fleet.run(warm_up_to_train)
    assert fleet.failures == []

    clear: list[Update] = []
    run = FullGradientTask.run
    met = 0

    def recording_training(self: FullGradientTask, params: Weights, samples: ReaderSamples, *rest: object) -> Update:
        nonlocal met
        drawn = samples.draw(negatives=4, limit=32, rng=np.random.default_rng(0), features=self.features)
        assert drawn.features is not None
        for clicks, mask, candidates, rows in zip(
            drawn.clicks, drawn.click_mask, drawn.candidates, drawn.features, strict=True
        ):
            for vector, row in zip(candidates, rows, strict=True):
                then = served.get(clicks[mask > 0].tobytes() + vector.tobytes())
                if then is not None:
                    met += 1
                    np.testing.assert_allclose(row[:3], then[:3], rtol=0, atol=1e-6)
                    np.testing.assert_allclose(row[3], then[3], rtol=1e-3)  # seconds pass while a feed is made
        update = run(self, params, samples, *rest)  # type: ignore[arg-type]
        clear.append(update)
        return update

    monkeypatch.setattr(FullGradientTask, "run", recording_training)
    operator = Operator(world.url, world.settings.admin_token_file)
    opened = operator.open_round("small_ranker/local/mean", cohort=DEVICES, cohort_minimum=DEVICES, seconds=120)
    fleet.run(train)
    *_, status = operator.follow(opened)
    assert (status.state, status.published, status.uploaded) == ("applied", "r2", DEVICES), status.reason
    assert status.received_bytes < DEVICES * 4_000, "262 numbers of four bytes, and their names"
    assert met > DEVICES, "samples were met again as they were served"

    fleet.run(catch_up)
    assert fleet.releases() == {"r2": DEVICES}
    assert fleet.failures == []
    for member in fleet.members:
        feed = new_page(member.device)
        assert (feed.release, len(feed.items)) == ("r2", 30)
        spent = member.device.parts.ledger.spent_today("training")
        assert spent == pytest.approx(2 * 0.01 / 0.1 * 262)

    # The oracle: the clear updates, which never left the devices. The mean of six Laplace(0, 0.1) has a standard
    # deviation of 0.1 sqrt(2 / 6) = 0.058; times the learning rate 0.1, six of them are 0.035.
    before, after = weights(world, "r1", MODEL), weights(world, "r2", MODEL)
    for name, value in before.items():
        mean = np.mean([np.clip(update.tensors[f"g.{name}"], -0.01, 0.01) for update in clear], axis=0)
        np.testing.assert_allclose(after[name], value - 0.1 * mean, rtol=0, atol=0.035)
        assert (after[name] != value).all(), "noise reaches every coordinate"
    for model in ("recall", "ranker.cosine"):
        one, two = weights(world, "r1", model), weights(world, "r2", model)
        assert all((one[name] == two[name]).all() for name in one)


@pytest.mark.parametrize(
    ("system", "words"), [("poetry", "fednewsrec_user, fednewsrec_whole"), ("nrms", "small_ranker, uni_fedrec")]
)
def test_unavailable_system_is_refused_with_the_available_names(world: SmallWorld, system: str, words: str) -> None:
    operator = Operator(world.url, world.settings.admin_token_file)
    with pytest.raises(OperatorRefused, match=words) as refused:
        operator.open_round(system, cohort=1, cohort_minimum=1, seconds=60)
    assert "\n" not in str(refused.value)
