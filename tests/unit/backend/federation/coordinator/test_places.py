"""Who gets a place in a round."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Connection, event

from backend.federation.errors import RoundClosed, UnknownPseudonym, UnknownRound
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.records import CheckIns
from backend.federation.systems import COMPOSED
from protocol.ids import PROTOCOL_VERSION
from protocol.protections import SecureSum
from protocol.secagg import Complaints
from protocol.tensors import pack
from tests.doubles.plain_rounds import CHECK_IN, PlainRoundRig, joined, open_round, update


def test_place_is_offered_only_to_suitable_devices_while_available(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    assert coordinator.check_in(CHECK_IN) is None, "no round"
    open_round(coordinator, cohort=2)

    assert coordinator.check_in(CHECK_IN.model_copy(update={"release": 9})) is None
    assert coordinator.check_in(CHECK_IN.model_copy(update={"tasks": ("split_gradient",)})) is None
    assert coordinator.check_in(CHECK_IN.model_copy(update={"protocol": PROTOCOL_VERSION + 1})) is None
    first = joined(coordinator)
    second = joined(coordinator)
    assert first.pseudonym != second.pseudonym
    assert first.manifest.protection == COMPOSED["uni_fedrec"].protection
    assert coordinator.check_in(CHECK_IN) is None, "full"
    assert coordinator.check_ins("round-1") == CheckIns({"release": 1, "task": 2, "full": 1}, address=0, polls=None)
    coordinator.polls.note()
    coordinator.cancel("round-1")
    assert coordinator.check_ins("round-1").polls == 1


def test_over_selection_offers_more_places_than_updates_needed(rig: PlainRoundRig) -> None:
    spec = replace(COMPOSED["uni_fedrec"], over_selection=1.5)
    coordinator = Coordinator(rig.engine, rig.releases, {"uni_fedrec": spec}, rig.folder, rig.clock)
    open_round(coordinator, cohort=2, minimum=1)
    offers = [joined(coordinator) for _ in range(3)]
    assert coordinator.check_in(CHECK_IN) is None
    for offer in offers[:2]:
        coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.01)))

    with pytest.raises(RoundClosed, match="complete"):
        coordinator.plain.accept("round-1", offers[2].pseudonym, pack(update(0.01)))


def test_joining_after_the_deadline_is_refused(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    rig.clock.go_on(60)

    assert coordinator.check_in(CHECK_IN) is None


def test_admission_of_one_half_accepts_about_half_of_the_check_ins(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    coordinator.open_round("uni_fedrec", cohort=300, cohort_minimum=1, seconds=60, admission=0.5)
    taken = sum(coordinator.check_in(CHECK_IN) is not None for _ in range(200))

    assert 60 <= taken <= 140, "outside with probability below 1e-7 at a fair coin"


def test_message_from_a_stranger_takes_no_database_lock(rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: devices without a place waited for the write lock, and made everybody else wait for it."""
    summed = replace(COMPOSED["uni_fedrec"], name="summed", protection=SecureSum(clip=1.0, weight_limit=32))
    monkeypatch.setitem(COMPOSED, "summed", summed)
    coordinator = rig.coordinator()
    coordinator.open_round("summed", cohort=3, cohort_minimum=3, seconds=60.0)
    offer = joined(coordinator)
    writes: list[bool] = []

    def begun(connection: Connection) -> None:
        writes.append(bool(connection.get_execution_options().get("ownfeed_writes")))

    event.listen(rig.engine, "begin", begun)
    try:
        for round_id, error in (("round-1", UnknownPseudonym), ("round-2", UnknownRound)):
            with pytest.raises(error):
                coordinator.sums.receive(round_id, "complaints", "p" * 32, Complaints(members=()), b"")
        assert writes
        assert not any(writes)
        with pytest.raises(UnknownPseudonym):  # it has a place, and hasn't advertised keys
            coordinator.sums.receive("round-1", "complaints", offer.pseudonym, Complaints(members=()), b"")
        assert any(writes)
    finally:
        event.remove(rig.engine, "begin", begun)
