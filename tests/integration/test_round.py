"""One federated round of real devices over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from backend.operator import Operator
from device_app.fleet.fleet import Fleet, catch_up, train, warm_up
from device_app.wire.rounds import RoundStatus
from tests.doubles.small_world import SmallWorld

DEVICES = 20
COHORT = 15


def followed(operator: Operator, status: RoundStatus) -> RoundStatus:
    *_, last = operator.follow(status)
    return last


@pytest.fixture
def fleet(world: SmallWorld) -> Iterator[Fleet]:
    made = Fleet(world.device_settings(), DEVICES, seed=7)
    yield made
    made.close()


def test_twenty_devices_read_train_and_swap_and_go_on_reading(world: SmallWorld, fleet: Fleet) -> None:
    fleet.run(warm_up)
    assert fleet.failures == []
    clicks = [member.device.parts.stores.clicks.count() for member in fleet.members]
    assert sum(count >= 8 for count in clicks) >= COHORT, clicks

    operator = Operator(world.url, world.settings.admin_token_file)
    opened = operator.open_round("uni_fedrec_as_printed", cohort=COHORT, cohort_minimum=COHORT, seconds=120)
    fleet.run(train)
    status = followed(operator, opened)
    assert (status.state, status.published) == ("applied", "r2"), status.reason
    assert status.uploaded >= COHORT
    assert status.received_bytes > COHORT * 900_000, "about 245,000 float32 each"

    fleet.run(catch_up)
    assert fleet.failures == []
    assert fleet.releases() == {"r2": DEVICES}
    for member in fleet.members[:4]:
        feed = member.device.feed(refresh=True)
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
