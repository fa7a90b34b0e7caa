"""One federated round of real devices over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from backend.operations.admin_client import Operator
from device_app.fleet.fleet import Fleet, catch_up, train, warm_up
from protocol.rounds import RoundStatus
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld

DEVICES = 8
COHORT = 6


def followed(operator: Operator, status: RoundStatus) -> RoundStatus:
    *_, last = operator.follow(status)
    return last


@pytest.fixture
def fleet(world: SmallWorld) -> Iterator[Fleet]:
    made = Fleet(world.device_settings(), DEVICES, seed=7)
    yield made
    made.close()


def test_devices_read_train_swap_releases_and_keep_reading(world: SmallWorld, fleet: Fleet) -> None:
    fleet.run(warm_up)
    assert fleet.failures == []
    clicks = [member.device.parts.stores.clicks.count() for member in fleet.members]
    assert sum(count >= 8 for count in clicks) >= COHORT, clicks

    operator = Operator(world.url, world.settings.admin_token_file)
    opened = operator.open_round("uni_fedrec", cohort=COHORT, cohort_minimum=COHORT, seconds=120)
    fleet.run(train)
    status = followed(operator, opened)
    assert (status.state, status.published) == ("applied", "r2"), status.reason
    assert status.uploaded >= COHORT
    assert status.received_bytes > COHORT * 900_000, "about 245,000 float32 each"

    fleet.run(catch_up)
    assert fleet.failures == []
    assert fleet.releases() == {"r2": DEVICES}
    for member in fleet.members[:4]:
        feed = new_page(member.device)
        assert feed.release == "r2"
        assert len(feed.items) == 30
        assert feed.mode in ("personal", "cold")

    assert world.services is not None
    store = world.services.releases
    before, after = (store.weights(store.manifest(one), "recall") for one in ("r1", "r2"))
    for name in before:
        step = np.abs(after[name] - before[name])
        assert 0 < step.max() < 0.05 * (0.1 + 0.01 * 30), "the learning rate times what clip and noise allow"
    uploads = [one for one in world.requests() if one.method == "PUT"]
    assert len({one.path for one in uploads}) == len(uploads) >= COHORT, "a pseudonym each"
    assert not any(name.encode() in one.headers for one in uploads for name in ("fleet-0", "cookie"))
