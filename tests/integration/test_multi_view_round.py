"""SEMI-FL-MV-DSSM and FL-DSSM live, for readers who read and search.

Each view is a process; an exact secure sum runs over HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from backend.operations.admin_client import Operator
from backend.releases.publish import publish_rankers
from device_app.fleet.fleet import Fleet, Member, catch_up, search
from device_app.privacy.local_aggregate import exact_epsilon
from device_app.settings import FeedSettings, PrivacySettings
from device_app.store.preferences import TowerStore
from device_app.training.multiview.job import VIEWS
from device_app.training.multiview.worker import version
from device_app.training.tasks.multi_view import MultiViewTask
from device_app.training.tasks.task import Update
from exporters.graph_cache import GraphCache
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld, warm_up_to_train

DEVICES = 2
MODEL = "ranker.multi_view"
STEPS_SEC = 300.0
pytestmark = pytest.mark.skipif(not version(), reason="this kernel has no Landlock, and so no views are kept apart")


def fleet_of(world: SmallWorld, ranker: str) -> Fleet:
    privacy = PrivacySettings(
        training=True, epsilon_per_day_training=1e9, epsilon_per_day_reports=40.0, secure_sum="exact", smallest_sum=2
    )
    settings = world.device_settings(feed=FeedSettings(ranker=ranker)).model_copy(update={"privacy": privacy})
    return Fleet(settings, DEVICES, seed=3)


@pytest.fixture
def fleet(world: SmallWorld) -> Iterator[Fleet]:
    made = fleet_of(world, MODEL)
    yield made
    made.close()


@pytest.fixture
def recorded_updates(monkeypatch: pytest.MonkeyPatch) -> list[Update]:
    """Record the updates that tasks of views return."""
    updates: list[Update] = []
    run = MultiViewTask.run

    def recording(self: MultiViewTask, *given: object) -> Update:
        update = run(self, *given)  # type: ignore[arg-type]
        updates.append(update)
        return update

    monkeypatch.setattr(MultiViewTask, "run", recording)
    return updates


def round_of(world: SmallWorld, fleet: Fleet, system: str) -> str:
    """Open a round, let every member take its steps, and return the release that it published."""
    assert world.services is not None
    operator = Operator(world.url, world.settings.admin_token_file)
    opened = operator.open_round(system, cohort=DEVICES, cohort_minimum=DEVICES, seconds=900)
    until = time.monotonic() + STEPS_SEC
    while world.services.coordinator.status(opened.round).state not in ("applied", "failed"):
        assert time.monotonic() < until, "the round has not ended"
        outcomes = [member.device.train_step() for member in fleet.members]
        assert not any(outcome.state in ("declined", "failed") for outcome in outcomes), outcomes
    *_, status = operator.follow(opened)
    assert (status.state, status.uploaded, status.survivors) == ("applied", DEVICES, DEVICES), status.reason
    assert status.published is not None
    return status.published


def test_item_tower_is_shared_between_views_and_user_towers_stay_private(
    world: SmallWorld, fleet: Fleet, recorded_updates: list[Update]
) -> None:
    assert world.services is not None
    store = world.services.releases
    offered = publish_rankers(store, ("multi_view",), cache=GraphCache(world.settings.graphs_dir))
    entry = offered.models[MODEL]
    assert entry.architecture == "multi_view"
    assert all(name.startswith("user_tower.") for name in entry.private)
    assert set(store.weights(offered, MODEL)) == {name.replace("user_", "item_") for name in entry.private}
    fleet.run(warm_up_to_train)
    fleet.run(search)
    assert fleet.failures == []
    for member in fleet.members:
        member.device.library.save_search("regatta lake")
        feed = new_page(member.device)
        assert (feed.release, member.device.parts.serving.models().ranker.name) == (offered.release, MODEL)

    published = round_of(world, fleet, "multi_view")
    fleet.run(catch_up)
    assert fleet.failures == []
    trained = store.manifest(published)
    before, after = store.weights(offered, MODEL), store.weights(trained, MODEL)
    assert len(recorded_updates) == DEVICES
    for name, value in before.items():
        # The server's first step of Adam goes 0.001 against the sign of the mean (times m / (sqrt(v) + tau) < 1).
        mean = np.mean([update.tensors[f"g.{name}"] for update in recorded_updates], axis=0)
        moved = after[name] - value
        large = np.abs(mean) > 0.05
        assert large.any()
        assert (np.sign(moved[large]) == -np.sign(mean[large])).all()
        assert np.abs(moved).max() <= 0.0011
    for member in fleet.members:
        stores = member.device.parts.stores
        towers = [TowerStore(database).get(MODEL) for database in (stores.database, stores.search_database)]
        for tower in towers:
            assert tower is not None, "each view has stepped its own"
            assert set(tower) == set(entry.private)
        for view in ("reading", "searches"):
            assert stores.view_log.sigmas(view) == [1.0]
        feed = new_page(member.device)
        assert (feed.release, feed.notice) == (trained.release, None)
        sent = stores.database.rows("SELECT url, head, body FROM traffic")
        for row in sent:
            joined = b"\n".join(each.encode() if isinstance(each, str) else each for each in row).lower()
            assert b"regatta lake" not in joined
            assert b"user_tower" not in joined
        sources = member.device.privacy.overview().sources.sources
        assert [(source.rounds, source.epsilon) for source in sources] == [(1, exact_epsilon(1.0, 1, 1e-3))] * 2


def handed_over(member: Member) -> list[list[float]]:
    """Return noise multipliers of the rounds in which each view contributed."""
    return [member.device.parts.stores.view_log.sigmas(view) for view in VIEWS]


def test_fl_dssm_trains_both_towers_from_the_reading_view_only(
    world: SmallWorld, recorded_updates: list[Update]
) -> None:
    """The other value of the setting: no private tower and one view; these readers' searches aren't used."""
    assert world.services is not None
    store = world.services.releases
    offered = publish_rankers(store, ("fl_dssm",), cache=GraphCache(world.settings.graphs_dir))
    entry = offered.models["ranker.fl_dssm"]
    assert (entry.architecture, tuple(entry.private)) == ("fl_dssm_news", ())
    fleet = fleet_of(world, "ranker.fl_dssm")
    try:
        fleet.run(warm_up_to_train)
        fleet.run(search)
        assert fleet.failures == []
        earlier = [handed_over(member) for member in fleet.members]
        published = round_of(world, fleet, "fl_dssm")
        before, after = (store.weights(each, "ranker.fl_dssm") for each in (offered, store.manifest(published)))
        assert {name.split(".")[0] for name in before} == {"item_tower", "user_tower"}
        assert len(recorded_updates) == DEVICES
        for name, value in before.items():
            mean = np.mean([update.tensors[f"g.{name}"] for update in recorded_updates], axis=0)
            large = np.abs(mean) > 0.05
            assert (np.sign((after[name] - value)[large]) == -np.sign(mean[large])).all()
            assert large.any(), name
        fleet.run(catch_up)
        assert fleet.failures == []
        for member, (reading, searches) in zip(fleet.members, earlier, strict=True):
            stores = member.device.parts.stores
            assert handed_over(member) == [[*reading, 1.0], searches]
            for database in (stores.database, stores.search_database):
                assert TowerStore(database).get("ranker.fl_dssm") is None, "no tower is private"
            assert new_page(member.device).release == published
    finally:
        fleet.close()


def test_device_that_requires_noisy_sums_declines_an_exact_one(world: SmallWorld) -> None:
    assert world.services is not None
    publish_rankers(world.services.releases, ("multi_view",), cache=GraphCache(world.settings.graphs_dir))
    fleet = Fleet(world.device_settings(), 1, seed=3)
    try:
        fleet.run(warm_up_to_train)
        operator = Operator(world.url, world.settings.admin_token_file)
        operator.open_round("multi_view", cohort=2, cohort_minimum=2, seconds=120)
        (member,) = fleet.members
        outcome = member.device.train_step()
        assert outcome.state == "declined"
        assert "the settings allow" in (outcome.why or "")
    finally:
        fleet.close()
