"""What a round refuses over its real routes, and that it continues after each. Oracle: the round's own status."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn, RoundOffer
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.round_rig import BASIS, DIM, BackendRig

TENSORS = {"content-type": "application/vnd.safetensors"}
UPDATE = pack({f"g.{name}": np.zeros((BASIS, DIM), np.float32) for name in ("basis_keys", "basis_values")})


@pytest.fixture
def rig(tmp_path: Path) -> BackendRig:
    return BackendRig.make(tmp_path, StillClock(NOW + timedelta(days=1)))


@pytest.fixture
def client(rig: BackendRig) -> TestClient:
    return TestClient(rig.app, base_url="http://127.0.0.1:8400")


def joined(rig: BackendRig, *, release: int = 1, task: str = "recall") -> RoundOffer | None:
    return rig.coordinator.check_in(CheckIn(protocol=PROTOCOL_VERSION, release=release, tasks=(task,)))


def put(client: TestClient, round_id: str, pseudonym: str, content: bytes) -> tuple[int, str]:
    answer = client.put(f"/v1/rounds/{round_id}/updates/{pseudonym}", content=content, headers=TENSORS)
    return answer.status_code, answer.json().get("type", "").rsplit(":", 1)[-1]


def test_update_of_an_earlier_round_counts_in_no_later_one(rig: BackendRig, client: TestClient) -> None:
    rig.coordinator.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=60.0)
    first = joined(rig)
    assert first is not None
    assert put(client, "round-1", first.pseudonym, UPDATE) == (200, "")
    rig.coordinator.step()
    rig.coordinator.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=60.0)

    assert put(client, "round-2", first.pseudonym, UPDATE) == (403, "unknown-pseudonym")
    assert put(client, "round-1", first.pseudonym, UPDATE) == (200, ""), "the same bytes have the same receipt"
    assert rig.coordinator.status("round-2").uploaded == 0


def test_device_with_a_stale_release_or_without_the_task_gets_no_place(rig: BackendRig) -> None:
    rig.coordinator.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=60.0)

    assert joined(rig, release=7) is None
    assert joined(rig, task="full_gradient") is None
    assert rig.coordinator.status("round-1").joined == 0
    assert joined(rig) is not None


def test_oversized_body_is_cut_off_and_the_place_kept(rig: BackendRig, client: TestClient) -> None:
    rig.coordinator.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=60.0)
    offer = joined(rig)
    assert offer is not None
    flood = b"\0" * (rig.coordinator.plain.limit_bytes("round-1", offer.pseudonym) + 1)

    assert put(client, "round-1", offer.pseudonym, flood)[0] == 413
    assert put(client, "round-1", offer.pseudonym, UPDATE) == (200, "")
    ended = rig.coordinator.step()
    assert ended is not None
    assert ended.state == "applied"


def test_secure_round_refuses_plain_updates_and_a_plain_round_masked_vectors(
    rig: BackendRig, client: TestClient
) -> None:
    rig.coordinator.open_round("small_ranker/secure/median", cohort=3, cohort_minimum=2, seconds=60.0)
    offer = joined(rig, task="full_gradient")
    assert offer is not None
    assert put(client, "round-1", offer.pseudonym, UPDATE) == (409, "round-closed")
    rig.coordinator.cancel("round-1")
    rig.coordinator.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=60.0)
    plain = joined(rig)
    assert plain is not None
    masked = client.put(
        f"/v1/rounds/round-2/masked/{plain.pseudonym}",
        content=b"\0" * 64,
        headers={"content-type": "application/octet-stream"},
    )
    assert masked.status_code == 404
    assert rig.coordinator.status("round-2").uploaded == 0


def test_secure_round_offers_a_third_more_places_than_needed(rig: BackendRig) -> None:
    rig.coordinator.open_round("small_ranker/secure/median", cohort=10, cohort_minimum=2, seconds=60.0)
    offers = [joined(rig, task="full_gradient") for _ in range(20)]

    assert sum(offer is not None for offer in offers) == 13
    assert rig.coordinator.status("round-1").cohort == 10
