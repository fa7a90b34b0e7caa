from __future__ import annotations

import asyncio
import shutil
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine

import backend.federation.settlement as settlement
from backend.federation.coordinator import Coordinator
from backend.federation.errors import (
    IllegalTransition,
    RoundClosed,
    RoundImpossible,
    RoundUnderWay,
    UnknownPseudonym,
    UnknownRound,
    UnknownSystem,
    UpdateConflict,
    UpdateRefused,
)
from backend.federation.systems import SYSTEMS
from backend.releases.errors import NothingPublished
from backend.releases.publish import publish_next
from backend.releases.store import ReleaseStore
from device_app.wire.ids import PROTOCOL_VERSION
from device_app.wire.rounds import CheckIn, RoundOffer
from device_app.wire.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.small_release import WEIGHTS, migrated_engine, small_store

CHECK_IN = CheckIn(protocol=PROTOCOL_VERSION, release="r1", tasks=("recall",))


@dataclass
class Rig:
    folder: Path
    engine: Engine
    releases: ReleaseStore
    clock: StillClock = field(default_factory=StillClock)

    def coordinator(self) -> Coordinator:
        """A coordinator as a freshly started process has it."""
        return Coordinator(self.engine, self.releases, SYSTEMS, self.folder, self.clock)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    engine = migrated_engine(tmp_path)
    return Rig(tmp_path, engine, small_store(engine, tmp_path))


def update(value: float) -> dict[str, NDArray[np.float32]]:
    return {f"g.{name}": np.full_like(weights, value) for name, weights in WEIGHTS.items()}


def opened(coordinator: Coordinator, *, cohort: int = 3, minimum: int = 2, seconds: float = 60.0) -> None:
    coordinator.open_round("uni_fedrec", cohort=cohort, cohort_minimum=minimum, seconds=seconds)


def joined(coordinator: Coordinator) -> RoundOffer:
    offer = coordinator.check_in(CHECK_IN)
    assert offer is not None
    return offer


def sent(coordinator: Coordinator, value: float) -> RoundOffer:
    offer = joined(coordinator)
    coordinator.plain.accept("round-1", offer.pseudonym, pack(update(value)))
    return offer


def test_a_complete_cohort_is_applied_and_its_release_is_the_mean_step(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator)
    for value in (0.01, 0.02, 0.06):
        sent(coordinator, value)
    ended = coordinator.step()

    assert ended is not None
    assert (ended.state, ended.published, ended.joined, ended.uploaded) == ("applied", "r2", 3, 3)
    assert ended.received_bytes == 3 * len(pack(update(0.0)))
    assert ended.finished_at == rig.clock.now
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    for name, value in WEIGHTS.items():
        np.testing.assert_allclose(stepped[name], value - 0.05 * 0.03, rtol=0, atol=1e-6)
    assert rig.releases.history()[0].facts["updates"] == 3
    assert list((rig.folder / "rounds").iterdir()) == [], "no single update outlives its round"
    assert coordinator.step() is None


def test_the_states_are_passed_in_order(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator)
    states = [coordinator.status("round-1").state]
    sent(coordinator, 0.01)
    states.append(coordinator.status("round-1").state)
    rig.clock.go_on(61)
    coordinator.step()
    states.append(coordinator.status("round-1").state)

    assert states == ["open", "updates", "failed"]


def test_the_deadline_applies_what_came_if_it_is_enough(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=5, minimum=2)
    sent(coordinator, 0.02)
    sent(coordinator, 0.04)
    assert coordinator.step() is None
    rig.clock.go_on(60)
    ended = coordinator.step()

    assert ended is not None
    assert (ended.state, ended.uploaded, ended.published) == ("applied", 2, "r2")


@pytest.mark.parametrize("updates", [0, 1])
def test_too_few_updates_at_the_deadline_fail_the_round_with_the_reason(rig: Rig, updates: int) -> None:
    coordinator = rig.coordinator()
    opened(coordinator)
    for _ in range(updates):
        sent(coordinator, 0.01)
    rig.clock.go_on(61)
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "failed"
    assert ended.reason == f"{updates} updates came until the deadline; the minimum is 2"
    assert rig.releases.require_current().release == "r1"


def test_only_one_round_is_under_way(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator)
    with pytest.raises(RoundUnderWay, match="round-1"):
        opened(coordinator)
    coordinator.cancel("round-1")
    opened(coordinator)

    assert [(each.round, each.state) for each in coordinator.history()] == [("round-2", "open"), ("round-1", "failed")]
    current = coordinator.current()
    assert current is not None
    assert current.round == "round-2"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cohort": 0}, "cohort"),
        ({"cohort_minimum": 0}, "cohort_minimum"),
        ({"cohort_minimum": 4}, "cohort_minimum"),
        ({"seconds": 0.0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"admission": 0.0}, "admission"),
        ({"admission": 1.1}, "admission"),
    ],
)
def test_a_round_that_makes_no_sense_is_refused_by_field(rig: Rig, change: dict[str, float], named: str) -> None:
    asked = {"cohort": 3, "cohort_minimum": 2, "seconds": 60.0, "admission": 1.0} | change
    with pytest.raises(RoundImpossible) as refused:
        rig.coordinator().open_round("uni_fedrec", **asked)  # type: ignore[arg-type]
    assert refused.value.field == named


def test_a_round_needs_a_known_system_and_a_release(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(UnknownSystem) as refused:
        rig.coordinator().open_round("oracle", cohort=1, cohort_minimum=1, seconds=1)
    assert refused.value.limit == ", ".join(SYSTEMS)

    folder = tmp_path_factory.mktemp("empty")
    engine = migrated_engine(folder)
    empty = Coordinator(engine, small_store(engine, folder, publish=False), SYSTEMS, folder)
    with pytest.raises(NothingPublished):
        empty.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=1)


def test_a_release_without_the_model_can_not_be_trained(rig: Rig) -> None:
    other = {"uni_fedrec": replace(SYSTEMS["uni_fedrec"], architecture="two_tower")}
    coordinator = Coordinator(rig.engine, rig.releases, other, rig.folder, rig.clock)
    with pytest.raises(RoundImpossible, match="two_tower"):
        opened(coordinator)


def test_a_refusal_names_the_systems_that_the_release_can_train(rig: Rig) -> None:
    with pytest.raises(RoundImpossible, match=r"no trainable model 'ranker\.nrms'") as refused:
        rig.coordinator().open_round("nrms", cohort=1, cohort_minimum=1, seconds=1)
    assert refused.value.limit == "uni_fedrec", "the small release has no other trainable model"


def test_a_place_is_offered_only_to_devices_that_fit_and_only_while_there_are_places(rig: Rig) -> None:
    coordinator = rig.coordinator()
    assert coordinator.check_in(CHECK_IN) is None, "no round"
    opened(coordinator, cohort=2)

    assert coordinator.check_in(CHECK_IN.model_copy(update={"release": "r9"})) is None
    assert coordinator.check_in(CHECK_IN.model_copy(update={"tasks": ("split_gradient",)})) is None
    assert coordinator.check_in(CHECK_IN.model_copy(update={"protocol": PROTOCOL_VERSION + 1})) is None
    first, second = joined(coordinator), joined(coordinator)
    assert first.pseudonym != second.pseudonym
    assert first.manifest.protection == SYSTEMS["uni_fedrec"].protection
    assert coordinator.check_in(CHECK_IN) is None, "full"


def test_over_selection_gives_more_places_than_updates_are_wanted(rig: Rig) -> None:
    spec = replace(SYSTEMS["uni_fedrec"], over_selection=1.5)
    coordinator = Coordinator(rig.engine, rig.releases, {"uni_fedrec": spec}, rig.folder, rig.clock)
    opened(coordinator, cohort=2, minimum=1)
    offers = [joined(coordinator) for _ in range(3)]
    assert coordinator.check_in(CHECK_IN) is None
    for offer in offers[:2]:
        coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.01)))

    with pytest.raises(RoundClosed, match="complete"):
        coordinator.plain.accept("round-1", offers[2].pseudonym, pack(update(0.01)))


def test_nobody_joins_after_the_deadline(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator)
    rig.clock.go_on(60)

    assert coordinator.check_in(CHECK_IN) is None


def test_a_low_admission_takes_some_check_ins_and_not_others(rig: Rig) -> None:
    coordinator = rig.coordinator()
    coordinator.open_round("uni_fedrec", cohort=300, cohort_minimum=1, seconds=60, admission=0.5)
    taken = sum(coordinator.check_in(CHECK_IN) is not None for _ in range(200))

    assert 60 <= taken <= 140, "outside with probability below 1e-7 at a fair coin"


def test_the_same_bytes_again_get_the_same_receipt_at_any_time(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, minimum=1)
    offer = joined(coordinator)
    content = pack(update(0.01))
    first = coordinator.plain.accept("round-1", offer.pseudonym, content)
    again = coordinator.plain.accept("round-1", offer.pseudonym, content)
    rig.clock.go_on(61)
    coordinator.step()
    later = coordinator.plain.accept("round-1", offer.pseudonym, content)

    assert (first.duplicate, again.duplicate, later.duplicate) == (False, True, True)
    assert first.sha256 == again.sha256 == later.sha256
    status = coordinator.status("round-1")
    assert (status.state, status.uploaded) == ("applied", 1), "counted once"


def test_other_bytes_under_a_used_pseudonym_are_refused_and_the_first_count(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=1, minimum=1)
    offer = sent(coordinator, 0.01)
    with pytest.raises(UpdateConflict):
        coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.1)))
    coordinator.step()

    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    np.testing.assert_allclose(stepped["values"], 0.5 - 0.05 * 0.01, atol=1e-7)


GARBAGE = {
    "not safetensors": b"\x00" * 64,
    "empty": b"",
    "a tensor missing": pack({"g.keys": np.zeros((2, 3), np.float32)}),
    "a tensor too many": pack(update(0.0) | {"g.more": np.zeros(1, np.float32)}),
    "weights' names": pack({name: np.zeros_like(value) for name, value in WEIGHTS.items()}),
    "another shape": pack(update(0.0) | {"g.keys": np.zeros((3, 2), np.float32)}),
    "half precision": pack(update(0.0) | {"g.keys": np.zeros((2, 3), np.float16)}),
    "NaN": pack(update(0.0) | {"g.values": np.full(4, np.nan, np.float32)}),
    "infinity": pack(update(0.0) | {"g.values": np.full(4, np.inf, np.float32)}),
    "too large a value": pack(update(0.0) | {"g.values": np.full(4, 0.8, np.float32)}),
    "too many bytes": pack(update(0.0)) + b" " * 10_000,
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_garbage_update_is_refused_and_the_round_goes_on(rig: Rig, content: bytes) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=1, minimum=1)
    offer = joined(coordinator)
    with pytest.raises(UpdateRefused):
        coordinator.plain.accept("round-1", offer.pseudonym, content)
    assert coordinator.status("round-1").uploaded == 0
    coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.01)))
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "applied"


def test_the_largest_value_that_noise_can_give_is_accepted(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, minimum=1)

    sent(coordinator, 0.1 + 59 * 0.01)
    assert coordinator.status("round-1").uploaded == 1


def test_late_and_foreign_uploads_are_refused_before_their_body_is_read(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator)
    offer = joined(coordinator)

    assert coordinator.plain.limit_bytes("round-1", offer.pseudonym) >= len(pack(update(0.0)))
    with pytest.raises(UnknownPseudonym):
        coordinator.plain.limit_bytes("round-1", "x" * 32)
    with pytest.raises(UnknownRound):
        coordinator.plain.limit_bytes("round-2", offer.pseudonym)
    rig.clock.go_on(60)
    with pytest.raises(RoundClosed, match="late"):
        coordinator.plain.limit_bytes("round-1", offer.pseudonym)
    with pytest.raises(RoundClosed, match="late"):
        coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.01)))
    with pytest.raises(UnknownPseudonym):
        coordinator.plain.accept("round-1", "x" * 32, pack(update(0.01)))


def test_a_cancelled_round_fails_and_its_updates_are_gone(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator)
    sent(coordinator, 0.01)
    status = coordinator.cancel("round-1")

    assert (status.state, status.reason) == ("failed", "cancelled by the operator")
    assert list((rig.folder / "rounds").iterdir()) == []
    with pytest.raises(IllegalTransition):
        coordinator.cancel("round-1")
    with pytest.raises(UnknownRound):
        coordinator.cancel("round-7")


def test_a_round_whose_release_is_no_longer_current_fails(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=1, minimum=1)
    sent(coordinator, 0.01)
    publish_next(rig.releases, rig.releases.require_current(), "recall", WEIGHTS, "by hand")
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "failed"
    assert ended.reason == "The round was for r1; r2 was published meanwhile."


def test_a_restart_while_open_keeps_the_offers(rig: Rig) -> None:
    opened(rig.coordinator(), cohort=1, minimum=1)
    offer = joined(rig.coordinator())
    rig.coordinator().plain.accept("round-1", offer.pseudonym, pack(update(0.01)))
    ended = rig.coordinator().step()

    assert ended is not None
    assert ended.state == "applied"


def test_a_restart_among_updates_keeps_them(rig: Rig) -> None:
    before = rig.coordinator()
    opened(before, cohort=3, minimum=2)
    sent(before, 0.02)
    sent(before, 0.04)
    after = rig.coordinator()
    assert after.status("round-1").uploaded == 2
    rig.clock.go_on(61)
    ended = after.step()

    assert ended is not None
    assert ended.state == "applied"
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    np.testing.assert_allclose(stepped["values"], 0.5 - 0.05 * 0.03, atol=1e-7)


def test_a_kill_before_the_release_is_committed_applies_nothing_and_the_restart_applies_it_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rig.coordinator()
    opened(before, cohort=1, minimum=1)
    sent(before, 0.02)

    class Killed(BaseException):
        """Not an Exception: no handler of the coordinator may see it, as none sees a kill."""

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(settlement, "publish_changes", killed)
        with pytest.raises(Killed):
            before.step()
    assert rig.releases.require_current().release == "r1"
    assert rig.coordinator().status("round-1").state == "updates"

    after = rig.coordinator()
    ended = after.step()
    assert ended is not None
    assert (ended.state, ended.published) == ("applied", "r2")
    assert after.step() is None
    assert [each.release for each in rig.releases.history()] == ["r2", "r1"]


def test_a_kill_after_the_commit_leaves_only_files_to_sweep(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rig.coordinator()
    opened(before, cohort=1, minimum=1)
    sent(before, 0.02)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    before.step()
    monkeypatch.undo()
    assert list((rig.folder / "rounds").iterdir()) != []
    after = rig.coordinator()

    assert list((rig.folder / "rounds").iterdir()) == []
    assert after.step() is None
    assert after.status("round-1").state == "applied"


def test_a_restart_after_an_end_changes_nothing(rig: Rig) -> None:
    before = rig.coordinator()
    opened(before)
    before.cancel("round-1")
    after = rig.coordinator()

    assert after.step() is None
    assert after.current() is None
    assert after.status("round-1") == before.status("round-1")


def test_an_update_damaged_on_disk_is_left_out_and_the_rest_applied(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=3, minimum=2)
    first = sent(coordinator, 0.1)
    sent(coordinator, 0.02)
    sent(coordinator, 0.04)
    (damaged,) = (rig.folder / "rounds" / "round-1").glob(f"{first.pseudonym}*")
    damaged.write_bytes(b"gone")
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "applied"
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    np.testing.assert_allclose(stepped["values"], 0.5 - 0.05 * 0.03, atol=1e-7)
    assert rig.releases.history()[0].facts["damaged"] == 1


def test_updates_lost_from_disk_below_the_minimum_fail_the_round(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=2, minimum=2)
    sent(coordinator, 0.1)
    sent(coordinator, 0.02)
    shutil.rmtree(rig.folder / "rounds" / "round-1")
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "failed"
    assert "2 accepted updates are damaged" in str(ended.reason)


def test_a_full_disk_at_publishing_fails_the_round_cleanly(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=1, minimum=1)
    sent(coordinator, 0.02)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(settlement, "publish_changes", full)
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "failed"
    assert "No space left" in str(ended.reason)


def test_an_unforeseen_error_fails_the_round_and_is_raised(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=1, minimum=1)
    sent(coordinator, 0.02)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(settlement, "publish_changes", broken)
    with pytest.raises(ZeroDivisionError):
        coordinator.step()
    assert coordinator.status("round-1").reason == "unforeseen: ZeroDivisionError"


def test_a_tick_leaves_the_event_loop_free(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=1, minimum=1)
    sent(coordinator, 0.02)
    entered, go_on = threading.Event(), threading.Event()
    publish = settlement.publish_changes

    def slow(*args: object, **kwargs: object) -> object:
        entered.set()
        assert go_on.wait(10)
        return publish(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(settlement, "publish_changes", slow)

    async def main() -> None:
        ticking = asyncio.create_task(coordinator.tick())
        while not entered.is_set():
            await asyncio.sleep(0.01)
        await coordinator.tick()  # a second tick meanwhile does nothing
        go_on.set()
        await ticking

    asyncio.run(main())
    assert coordinator.status("round-1").state == "applied"
    assert [each.release for each in rig.releases.history()] == ["r2", "r1"]


def test_many_threads_join_and_upload_at_once(rig: Rig) -> None:
    coordinator = rig.coordinator()
    opened(coordinator, cohort=24, minimum=24)
    failures: list[BaseException] = []

    def device(number: int) -> None:
        try:
            offer = joined(coordinator)
            content = pack(update(number / 1_000))
            coordinator.plain.accept("round-1", offer.pseudonym, content)
            assert coordinator.plain.accept("round-1", offer.pseudonym, content).duplicate
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=device, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = coordinator.step()

    assert failures == []
    assert ended is not None
    assert (ended.state, ended.uploaded) == ("applied", 24)
