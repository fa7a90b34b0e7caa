"""Which updates are accepted, and which are refused."""

from __future__ import annotations

import numpy as np
import pytest

from backend.federation.errors import (
    RoundClosed,
    UnknownPseudonym,
    UnknownRound,
    UpdateConflict,
    UpdateRefused,
)
from protocol.tensors import pack
from tests.doubles.plain_rounds import PlainRoundRig, joined, open_round, update, upload_update
from tests.doubles.small_release import WEIGHTS


def test_repeated_upload_gets_the_same_receipt(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, minimum=1)
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


def test_different_upload_under_a_used_pseudonym_is_refused(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    offer = upload_update(coordinator, 0.01)
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
def test_invalid_update_is_refused_and_the_round_continues(rig: PlainRoundRig, content: bytes) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    offer = joined(coordinator)
    with pytest.raises(UpdateRefused):
        coordinator.plain.accept("round-1", offer.pseudonym, content)
    assert coordinator.status("round-1").uploaded == 0
    coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.01)))
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "applied"


def test_largest_value_that_noise_can_produce_is_accepted(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, minimum=1)

    upload_update(coordinator, 0.1 + 59 * 0.01)
    assert coordinator.status("round-1").uploaded == 1


def test_late_and_foreign_uploads_are_refused_before_their_body(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
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
