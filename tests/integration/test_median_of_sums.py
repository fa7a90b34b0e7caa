"""A live round with three groups, each a secure sum, joined by a median.

A malicious client spoils only one group. The world of `test_poisoned_sums`, thirteen devices of which the first one's
network is the attacker's; groups need three survivors instead of ten, so that thirteen devices make three groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from backend.db.engine import reading_session
from backend.db.tables import CountRoundRow, ParticipationRow, RoundRow, SecureSumRow
from backend.federation.accounting import spending
from backend.federation.bounded_mean import reach
from backend.federation.protections.sum_bounds import noise_deviation, noise_reach
from backend.federation.secagg.sum_files import StoredSums
from backend.federation.strategies.joined_sums import HUBER_VARIANCE, MEDIAN_VARIANCE, HuberOfSums, MedianOfSums
from backend.federation.systems import COMPOSED
from backend.storage.object_store import LocalFolder
from device_app.training.secagg_client import APPLIED_WITHOUT
from protocol.rounds import RoundStatus
from tests.doubles.long_form import by_length
from tests.doubles.round_rig import BackendRig
from tests.integration.test_poisoned_sums import (
    ALLOWS,
    COORDINATES,
    DEVICES,
    NEWS,
    RATE,
    PoisonedRound,
    forged_weights,
    made_world,
    protection_of,
)

SYSTEM = "small_ranker_groups_of_three"
COUNTS = "private_counts_of_three"
STAGES = ("keys", "shares", "complaints", "masked", "agree", "unmask")
TURNED = np.array([0.0, -1.0, 1.0])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PoisonedRound]:
    spec = replace(COMPOSED["small_ranker/secure/median"], name=SYSTEM, join=MedianOfSums(members=3))
    one_sum = replace(COMPOSED["small_ranker/secure/median"], name="small_ranker_one_sum", join=None)
    monkeypatch.setitem(COMPOSED, spec.name, spec)
    monkeypatch.setitem(COMPOSED, one_sum.name, one_sum)
    counts = replace(COMPOSED["private_counts/secure/huber"], name=COUNTS, join=HuberOfSums(members=3))
    monkeypatch.setitem(COMPOSED, counts.name, counts)
    with made_world(tmp_path, ALLOWS.model_copy(update={"epsilon_per_sum": 50.0})) as world:
        yield world


def facts(world: PoisonedRound, number: int = 1) -> dict[str, object]:
    with reading_session(world.backend.engine) as session:
        return dict(session.get_one(RoundRow, number).facts or {})


def sums(world: PoisonedRound) -> dict[str, tuple[str, str | None]]:
    """Return stage and running sum of every secure sum of the server."""
    with reading_session(world.backend.engine) as session:
        rows = session.scalars(select(SecureSumRow).order_by(SecureSumRow.name)).all()
        return {row.name: (row.stage, row.total) for row in rows}


def files(world: PoisonedRound) -> list[str]:
    return sorted(path.name for path in (world.backend.folder / "sums").iterdir())


def groups(world: PoisonedRound, number: int = 1) -> dict[int, str]:
    """Return each device's group, from the server's messages. Devices asked for their places in order."""
    stored = StoredSums(world.backend.engine, LocalFolder(world.backend.folder / "sums"))
    with reading_session(world.backend.engine) as session:
        wanted = (
            select(ParticipationRow.pseudonym).where(ParticipationRow.round == number).order_by(ParticipationRow.number)
        )
        places, connection = session.scalars(wanted).all(), session.connection()
        names = [stored.of_member(connection, f"round-{number}", each).name for each in places]
    assert len(names) == DEVICES
    return dict(enumerate(names))


def open_round(world: PoisonedRound, seconds: float = 60.0) -> RoundStatus:
    return world.backend.coordinator.open_round(SYSTEM, cohort=DEVICES, cohort_minimum=3, seconds=seconds)


def steps(world: PoisonedRound, which: list[int] | None = None) -> None:
    for number in range(DEVICES) if which is None else which:
        world.devices[number].trainer.step()
    world.backend.coordinator.step()


def weight_change(world: PoisonedRound) -> float:
    return float(np.linalg.norm(world.weights(world.backend.releases.require_current().release) - world.weights("r1")))


def longest_step() -> float:
    """Return the rate times the longest mean of at least two groups, which have at least eight devices."""
    noise = noise_deviation(protection_of(SYSTEM), 8) / 8
    return RATE * reach(protection_of(SYSTEM).clip, MEDIAN_VARIANCE * noise**2, COORDINATES) * (1 + 1e-5)


def test_malicious_member_spoils_only_its_own_group(world: PoisonedRound) -> None:
    """Regression: every round with this malicious client failed."""
    added = forged_weights(32_000.0, TURNED)
    assert world.run("small_ranker_one_sum", added, minimum=3).state == "failed"

    world.attacker.sent = 0
    status = world.run(SYSTEM, added, minimum=3)
    assert (status.state, status.published, status.uploaded) == ("applied", "r2", DEVICES), status.reason
    assert 0 < weight_change(world) <= longest_step()
    reported = facts(world, 2)
    assert (sorted(reported["groups"]), reported["groups_joined"]) == ([4, 4, 5], 2)  # type: ignore[call-overload]
    for device in world.devices[1:]:
        device.trainer.step()
        mine = device.stores.participations.get("round-2")
        assert mine is not None
        assert mine.state == "applied"
        assert "1 of 3 groups was left out" in (mine.detail or ""), (
            "regression: those in the malicious member's group were told that their contribution was applied"
        )


def test_round_of_groups_is_charged_by_its_smallest_group(world: PoisonedRound) -> None:
    status = world.run(SYSTEM, None, minimum=3)
    assert (status.state, status.survivors, status.uploaded) == ("applied", 4, DEVICES), status.reason
    assert status.epsilon == pytest.approx(protection_of(SYSTEM).epsilon(4, COORDINATES), rel=0.02)
    (line,) = spending(world.backend.engine).rounds
    assert (line.survivors, line.rho) == (4, protection_of(SYSTEM).rho(4, COORDINATES))
    for device in world.devices:
        paid = device.stores.ledger_entries.total("training")
        assert paid == pytest.approx(protection_of(SYSTEM).epsilon(3, COORDINATES)), "a device pays for the fewest"
    assert {stage for stage, _ in sums(world).values()} == {"opened"}
    assert len(sums(world)) == 4, "the whole and its three groups"
    assert files(world) == [], "running sums go with the round"


def test_false_sum_within_bounds_moves_the_mean_no_further_than_an_honest_group_could(world: PoisonedRound) -> None:
    """The median of three groups lies between the two honest ones, whatever the third sends."""
    status = world.run(SYSTEM, forged_weights(4.0, TURNED), minimum=3)
    assert status.state == "applied", status.reason
    assert weight_change(world) <= longest_step()


def test_group_with_a_detectable_false_sum_is_dropped_and_the_drop_is_reported(world: PoisonedRound) -> None:
    """Regression: it failed the whole count. `test_malicious_clicks` tests, with the same join, what noise may hide."""
    protection = protection_of("private_counts/secure/huber")
    added = np.zeros(2 * NEWS + 1, dtype=np.int64)
    added[:3] = round(300.0 * 2**protection.fraction_bits)
    status = world.run(COUNTS, added, minimum=3)
    assert status.state == "applied", status.reason
    reported = facts(world)
    assert (sorted(reported["groups"]), reported["groups_joined"]) == ([4, 4, 5], 2)  # type: ignore[call-overload]
    counted, deviation = world.counted("clicks"), noise_deviation(protection, 5)
    forged = [counted[f"count{row:02}"] - world.clicks[f"count{row:02}"] for row in range(NEWS)]
    assert max(forged) <= 1 + noise_reach(noise_deviation(protection, DEVICES), 2 * NEWS)
    assert forged[0] <= 3 * 6 * deviation, "of the two honest groups' noise, times three"
    with reading_session(world.backend.engine) as session:
        made = session.get_one(CountRoundRow, 1)
        noise = noise_deviation(protection, made.devices) ** 2
        assert made.clicks_variance == pytest.approx(noise * HUBER_VARIANCE)
        assert made.devices in (8, 9), "only those whose groups were joined are counted"
    for device in world.devices[1:]:
        device.trainer.step()
        mine = device.stores.participations.get("round-1")
        assert mine is not None
        assert "1 of 3 groups was left out" in (mine.detail or "")


def test_too_few_devices_for_three_groups_form_one_sum(world: PoisonedRound) -> None:
    open_round(world)
    most = list(range(11))
    steps(world, most)
    world.backend.clock.go_on(31)
    world.backend.coordinator.step()
    for _ in STAGES[1:]:
        steps(world, most)
    status = world.backend.coordinator.status("round-1")
    assert (status.state, status.survivors) == ("applied", 11), status.reason
    assert list(sums(world)) == ["round-1"]


def test_dropouts_remove_noise_shares_and_a_group_with_too_many_dropouts_is_dropped(world: PoisonedRound) -> None:
    open_round(world)
    steps(world)
    where = groups(world)
    by_group = {name: [one for one in where if where[one] == name] for name in set(where.values())}
    assert sorted(len(each) for each in by_group.values()) == [4, 4, 5]
    assert world.backend.coordinator.status("round-1").cohort_minimum == 3 + 3, "two groups of four must be left"
    first, second, third = (by_group[name] for name in sorted(by_group))
    gone = {first[0], second[0], second[1]}
    alive = [one for one in range(DEVICES) if one not in gone]
    steps(world)  # shares
    steps(world)  # complaints
    assert world.backend.coordinator.status("round-1").state == "masked"
    steps(world, alive)
    steps(world, alive)  # the third group is complete, and a stage ahead
    world.backend.clock.go_on(11)
    world.backend.coordinator.step()  # the deadline of stage masked: the second group has failed
    assert sums(world)["round-1.2"] == ("failed", None)
    for _ in STAGES[3:]:
        steps(world, alive)
    status = world.backend.coordinator.status("round-1")
    assert (status.state, status.survivors) == ("applied", len(first) - 1), status.reason
    reported = facts(world)
    assert (reported["groups"], reported["groups_joined"]) == ([len(first) - 1, len(third)], 2)
    left = world.devices[second[2]].stores.participations.get("round-1")
    assert left is not None
    assert (left.state, left.detail) == ("applied", APPLIED_WITHOUT), "its group's sum is in no release"
    for member in (first[1], third[0]):
        summed = world.devices[member].stores.participations.get("round-1")
        assert summed is not None
        assert (summed.state, summed.detail) == ("applied", None)
    assert "group" not in status.model_dump_json(exclude={"system"}), "who has no part in it is not told"
    assert files(world) == []


def test_round_of_groups_fails_below_its_minimum(world: PoisonedRound) -> None:
    open_round(world)
    steps(world)
    where = groups(world)
    gone = [one for name in ("round-1.1", "round-1.3") for one in [each for each in where if where[each] == name][:3]]
    steps(world)
    steps(world)
    alive = [one for one in range(DEVICES) if one not in gone]
    steps(world, alive)
    steps(world, alive)
    world.backend.clock.go_on(11)
    world.backend.coordinator.step()
    status = world.backend.coordinator.status("round-1")
    assert status.state == "failed"
    assert "1 of 3 groups are left; 2 are needed" in (status.reason or "")
    assert {stage for stage, _ in sums(world).values()} == {"failed"}
    assert files(world) == []


@pytest.mark.long_form
@pytest.mark.parametrize("stages", [STAGES, *by_length([], long=[(one,) for one in STAGES])], ids="-".join)
def test_restarted_server_continues_with_the_same_groups(world: PoisonedRound, stages: tuple[str, ...]) -> None:
    """The short form restarts it at every stage of one round, the long form also at each alone."""
    open_round(world)
    before: dict[int, str] | None = None
    for at in STAGES:
        for device in world.devices:
            device.trainer.step()
        if at in stages:
            old = world.backend
            # Between the last message of the stage and its end, and once more after it.
            new = BackendRig.over(old.engine, old.releases, old.folder, old.clock)
            new.coordinator.step()
            world.backend = BackendRig.over(old.engine, old.releases, old.folder, old.clock)
        else:
            world.backend.coordinator.step()
        if at == "keys":
            before = groups(world)
        elif at != "unmask":
            assert groups(world) == before
    status = world.backend.coordinator.status("round-1")
    assert (status.state, status.published, status.survivors) == ("applied", "r2", 4), status.reason


def test_groups_are_redrawn_every_round(world: PoisonedRound) -> None:
    drawn = set()
    for number in range(1, 4):
        open_round(world)
        steps(world)
        drawn.add(tuple(name.split(".")[1] for name in groups(world, number).values()))
        world.backend.coordinator.cancel(f"round-{number}")
        assert {stage for stage, _ in sums(world).values()} == {"failed"}
        steps(world)  # devices hear of it
    assert len(drawn) > 1
