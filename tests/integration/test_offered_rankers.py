"""A paper's ranker that the operator offers is chosen by readers and trained by their devices, live."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from backend.operations.admin_client import Operator
from backend.releases.publish import publish_rankers
from device_app.fleet.fleet import Fleet, Member, catch_up, train
from device_app.settings import FeedSettings
from exporters.graph_cache import GraphCache
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld, warm_up_to_train

DEVICES = 2
MODEL = "ranker.naml"


@pytest.fixture
def fleet(world: SmallWorld) -> Iterator[Fleet]:
    made = Fleet(world.device_settings(feed=FeedSettings(ranker=MODEL)), DEVICES, seed=3)
    yield made
    made.close()


def ranks_by(member: Member) -> tuple[str | None, str]:
    feed = new_page(member.device)
    assert feed.items
    return feed.release, member.device.parts.serving.models().ranker.name


def test_readers_choose_an_offered_ranker_and_train_it(world: SmallWorld, fleet: Fleet) -> None:
    assert world.services is not None
    store = world.services.releases
    offered = publish_rankers(store, ("naml",), cache=GraphCache(world.settings.graphs_dir))
    assert (offered.release, offered.default_ranker) == ("r2", "ranker.features")
    fleet.run(warm_up_to_train)
    assert fleet.failures == []
    assert {ranks_by(member) for member in fleet.members} == {("r2", MODEL)}

    operator = Operator(world.url, world.settings.admin_token_file)
    opened = operator.open_round("naml", cohort=DEVICES, cohort_minimum=DEVICES, seconds=120)
    fleet.run(train)
    *_, status = operator.follow(opened)
    assert (status.state, status.published, status.uploaded) == ("applied", "r3", DEVICES), status.reason

    fleet.run(catch_up)
    assert {ranks_by(member) for member in fleet.members} == {("r3", MODEL)}
    trained = store.manifest("r3")
    for model in offered.models:
        before, after = store.weights(offered, model), store.weights(trained, model)
        moved = max(float(np.abs(after[name] - before[name]).max()) for name in before)
        # eta (delta + 40 lambda): the mean of two Laplace draws passes 40 scales with probability e^-40.
        assert (0 < moved < 0.5 * (0.005 + 40 * 0.015)) if model == MODEL else moved == 0
