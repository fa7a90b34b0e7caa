"""A backend, as its own process, is killed in the middle of a round."""

from __future__ import annotations

from backend.operations.admin_client import Operator
from device_app.fleet.fleet import Fleet, catch_up, train, warm_up
from tests.doubles.small_world import SmallWorld, backend_process, free_port


def test_backend_killed_during_a_round_continues_it(idle_world: SmallWorld) -> None:
    world = idle_world
    port = free_port()
    world.url = f"http://127.0.0.1:{port}"
    fleet = Fleet(world.device_settings(), 4, seed=11, prefix="restart")
    try:
        with backend_process(world.settings, port) as process:
            fleet.run(warm_up)
            assert fleet.failures == []
            release = fleet.members[0].device.release()
            assert release is not None
            operator = Operator(world.url, world.settings.admin_token_file)
            opened = operator.open_round("uni_fedrec", cohort=4, cohort_minimum=4, seconds=300)
            for member in fleet.members[:2]:
                assert train(member).state == "uploaded"
            process.kill()
            process.join()
            assert train(fleet.members[2]).state != "uploaded", "there is nobody to upload to"
        with backend_process(world.settings, port):
            changes = operator.follow(opened)
            next(changes)
            assert next(changes).uploaded == 2, "what had come stays"
            states = [train(member).state for member in fleet.members]
            assert states[2:] == ["uploaded", "uploaded"]
            *_, status = operator.follow(opened)
            assert (status.state, status.uploaded) == ("applied", 4), status.reason
            assert status.release == release.id
            fleet.run(catch_up)
            assert fleet.releases() == {status.published: 4}
    finally:
        fleet.close()
