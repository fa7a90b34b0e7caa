"""A backend, as its own process, is killed with SIGKILL at every stage of a secure round of fleet devices."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from backend.federation.systems import COMPOSED
from backend.operations.admin_client import Operator
from device_app.fleet.fleet import Fleet, Member, catch_up, train, warm_up
from device_app.privacy.secagg.messages import SumState
from device_app.settings import PrivacySettings
from device_app.store.participations import SumParts
from protocol.protections import SecureSum
from protocol.rounds import RoundStatus
from tests.doubles.small_world import SmallWorld, backend_process, free_port

DEVICES = 4
WITHIN_SEC = 60.0
ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=100, smallest_sum=3, epsilon_per_sum=50)


def past(fleet: Fleet, stage: str) -> RoundStatus:
    """Return the round's status once it has left this stage."""
    lookout = fleet.members[0].device.parts.uplink
    until = time.monotonic() + WITHIN_SEC
    while (status := lookout.round_status("round-1")).state == stage:
        assert time.monotonic() < until, f"the round stays at {stage}"
        time.sleep(0.02)
    return status


def take_turns(fleet: Fleet) -> None:
    """Train one device after the other, so that at most the last to send its message goes on to the next stage.

    At the same time, on a slow machine, all of them may find that the stage has ended.
    """
    for member in fleet.members:
        train(member)


def hear_shares(member: Member) -> None:
    """Receive boxes until this client may complain about unreadable ones, still within stage shares."""
    parts, until = SumParts(member.device.parts.stores.database), time.monotonic() + WITHIN_SEC
    while True:
        (mine,) = parts.under_way()
        if SumState.model_validate_json(mine.state).stage == "complaints":
            return
        assert time.monotonic() < until, "the shares do not come"
        train(member)
        time.sleep(0.02)


def test_backend_killed_at_every_stage_applies_the_secure_round_once(idle_world: SmallWorld) -> None:
    world = idle_world
    port = free_port()
    world.url = f"http://127.0.0.1:{port}"
    fleet = Fleet(world.device_settings(privacy=ALLOWS), DEVICES, seed=11, prefix="secure")
    try:
        with backend_process(world.settings, port) as process:
            fleet.run(warm_up)
            assert fleet.failures == []
            operator = Operator(world.url, world.settings.admin_token_file)
            opened = operator.open_round(
                "small_ranker/secure/median", cohort=DEVICES, cohort_minimum=DEVICES, seconds=600
            )
            assert [train(member).state for member in fleet.members[:2]] == ["waiting", "waiting"]
            process.kill()
            process.join()
        stages = ("keys", "shares", "masked", "agree", "unmask")
        for stage, then in pairwise(stages):
            if stage == "shares":
                with backend_process(world.settings, port) as process:
                    take_turns(fleet)
                    hear_shares(fleet.members[0])
                    process.kill()
                    process.join()
            with backend_process(world.settings, port) as process:
                take_turns(fleet)
                assert past(fleet, stage).state == then
                process.kill()
                process.join()
                # The last to send its message may have heard the answer, and be a message ahead of the others.
                assert train(fleet.members[0]).state in ("waiting", "idle"), "there is nobody to ask"
        with backend_process(world.settings, port):
            take_turns(fleet)
            stores = [member.device.parts.stores for member in fleet.members]
            parts = [one.participations.get("round-1") for one in stores]
            assert {part.state for part in parts if part} <= {"uploaded", "applied"}
            assert len([part for part in parts if part]) == DEVICES
            *_, status = operator.follow(opened)
            assert (status.state, status.survivors, status.published) == ("applied", DEVICES, "r2"), status.reason
            protection = COMPOSED["small_ranker/secure/median"].protection
            assert isinstance(protection, SecureSum)
            assert status.epsilon == pytest.approx(protection.epsilon(DEVICES, 262), rel=0.02), "four shares of noise"
            fleet.run(catch_up)
            assert fleet.releases() == {"r2": DEVICES}
            paid = [member.device.parts.ledger.total("training") for member in fleet.members]
            assert paid == pytest.approx([status.epsilon] * DEVICES, rel=0.02), "one payment, the server's figure"
    finally:
        fleet.close()
