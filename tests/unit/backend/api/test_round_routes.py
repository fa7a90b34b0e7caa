"""The routes of rounds, releases and the operator over HTTP, against the real coordinator and stores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from backend.api import releases as release_routes
from backend.api.admin import is_operator
from backend.federation.rounds.queue import QUEUE_LIMIT
from backend.federation.systems import COMPOSED
from backend.popularity.estimate import utc_moments
from backend.recall.vector_shards import SHARD_ROWS, VectorShardStore
from backend.releases.blobs import digest
from backend.releases.errors import UnknownShard
from backend.releases.store import ReleaseStore
from backend.server.problems import install_problems
from backend.server.shared_answers import SharedAnswers
from backend.storage.object_store import LocalFolder
from protocol.ids import PROTOCOL_VERSION
from protocol.releases import ShardList, SignedManifest, verify
from protocol.rounds import (
    OpenRounds,
    QueuedRound,
    RoundOffer,
    RoundStatus,
    SignedOffer,
    UploadReceipt,
    verify_offer,
)
from protocol.tensors import TensorSpec, dequantise, pack, unpack
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW
from tests.doubles.round_rig import BASIS, DIM, TOKEN, BackendRig

OPERATOR = {"Authorization": f"Bearer {TOKEN}"}
TENSORS = {"content-type": "application/vnd.safetensors"}
REQUEST = {"system": "uni_fedrec", "cohort": 2, "cohort_minimum": 1, "seconds": 60}
UPDATE = pack({f"g.basis_{half}": np.full((BASIS, DIM), 0.01, np.float32) for half in ("keys", "values")})


@pytest.fixture
def backend(tmp_path: Path) -> BackendRig:
    return BackendRig.make(tmp_path, StillClock())


@pytest.fixture
def client(backend: BackendRig) -> Iterator[httpx.Client]:
    with httpx.Client(transport=InProcess(backend.app), base_url="http://backend") as client:
        yield client


def joined(client: httpx.Client) -> RoundOffer:
    assert client.post("/v1/admin/rounds", json=REQUEST, headers=OPERATOR).status_code == 201
    answer = client.post("/v1/rounds/check-in", json={"protocol": PROTOCOL_VERSION, "release": 1, "tasks": ["recall"]})
    assert answer.status_code == 200, answer.text
    signed = SignedOffer.model_validate_json(answer.content)
    return verify_offer(signed, signed.public_key)


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].removeprefix("urn:ownfeed:problem:")


def test_offers_are_signed_outside_the_event_loop(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signing key is looked up in the database, which would block the event loop."""
    sign, asked = ReleaseStore.sign_offer, []

    def signing(store: ReleaseStore, offer: RoundOffer) -> SignedOffer:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        asked.append(offer)
        return sign(store, offer)

    monkeypatch.setattr(ReleaseStore, "sign_offer", signing)
    assert asked == [joined(client)]


def test_round_runs_over_http(client: httpx.Client, backend: BackendRig) -> None:
    assert client.get("/v1/rounds/current").status_code == 204
    offer = joined(client)
    path = f"/v1/rounds/round-1/updates/{offer.pseudonym}"
    receipt = UploadReceipt.model_validate_json(client.put(path, content=UPDATE, headers=TENSORS).content)
    again = UploadReceipt.model_validate_json(client.put(path, content=UPDATE, headers=TENSORS).content)
    (current,) = OpenRounds.model_validate_json(client.get("/v1/rounds/current").content).rounds

    assert (receipt.sha256, receipt.duplicate, again.duplicate) == (digest(UPDATE), False, True)
    assert (current.state, current.uploaded, current.received_bytes) == ("updates", 1, len(UPDATE))
    backend.clock.go_on(61)
    backend.coordinator.step()
    ended = RoundStatus.model_validate_json(client.get("/v1/rounds/round-1").content)
    assert (ended.state, ended.published) == ("applied", "r2")
    assert client.get("/v1/rounds/current").status_code == 204


def test_every_invalid_upload_gets_its_own_problem_and_the_round_continues(client: httpx.Client) -> None:
    offer = joined(client)
    path = f"/v1/rounds/round-1/updates/{offer.pseudonym}"

    assert problem(client.put(path, content=b"garbage", headers=TENSORS)) == (422, "update-refused")
    assert problem(client.put(path, content=UPDATE + bytes(100_000), headers=TENSORS)) == (413, "body-too-large")
    assert problem(client.put(path, content=UPDATE)) == (415, "unsupported-media-type")
    foreign = f"/v1/rounds/round-1/updates/{'x' * 32}"
    assert problem(client.put(foreign, content=UPDATE, headers=TENSORS)) == (403, "unknown-pseudonym")
    assert problem(client.put(foreign.replace("x" * 32, "x"), content=UPDATE, headers=TENSORS))[0] == 422
    gone = path.replace("round-1", "round-9")
    assert problem(client.put(gone, content=UPDATE, headers=TENSORS)) == (404, "unknown-round")
    assert client.put(path, content=UPDATE, headers=TENSORS).status_code == 200
    other = pack({f"g.basis_{half}": np.zeros((BASIS, DIM), np.float32) for half in ("keys", "values")})
    assert problem(client.put(path, content=other, headers=TENSORS)) == (409, "update-conflict")
    assert client.get("/v1/rounds/round-1").json()["uploaded"] == 1


def test_body_without_a_declared_length_is_cut_off_at_the_limit(client: httpx.Client) -> None:
    offer = joined(client)

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield bytes(4_096)

    answer = client.put(f"/v1/rounds/round-1/updates/{offer.pseudonym}", content=endless(), headers=TENSORS)
    assert problem(answer) == (413, "body-too-large")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "malformed-json"),
        (b"{}", "invalid-request"),
        (b'{"protocol": 1, "release": 1, "tasks": [], "device": "me"}', "invalid-request"),
        (json.dumps({"protocol": 1, "release": 1, "tasks": ["t"] * 17}).encode(), "invalid-request"),
    ],
)
def test_malformed_check_in_is_answered_with_a_problem(client: httpx.Client, body: bytes, code: str) -> None:
    answer = client.post("/v1/rounds/check-in", content=body, headers={"content-type": "application/json"})
    assert problem(answer)[1] == code


@pytest.mark.parametrize("method_path", ["POST /rounds", "POST /rounds/round-1/cancel", "GET /rounds", "GET /pool"])
@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer "])
def test_operator_routes_require_the_operators_token(
    client: httpx.Client, method_path: str, header: str | None
) -> None:
    method, path = method_path.split()
    headers = {} if header is None else {"Authorization": header}
    answer = client.request(method, f"/v1/admin{path}", headers=headers)

    assert problem(answer) == (401, "not-signed-in")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_bearer_scheme_may_have_any_case_but_the_token_must_match_exactly() -> None:
    assert is_operator("bearer abc", "abc")
    assert is_operator("Bearer  abc ", "abc")
    assert not is_operator("Bearer ab", "abc")
    assert not is_operator("Bearer ä", "abc")
    assert not is_operator("", "abc")


def test_devices_see_all_open_rounds_oldest_first(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/v1/rounds/current").status_code == 204
    joined(client)
    monkeypatch.setitem(COMPOSED, "beside", replace(COMPOSED["uni_fedrec"], name="beside", changes="counts"))
    assert client.post("/v1/admin/rounds", json=REQUEST | {"system": "beside"}, headers=OPERATOR).status_code == 201
    answer = client.get("/v1/rounds/current")
    assert answer.headers["content-type"] == "application/json"
    found = OpenRounds.model_validate_json(answer.content)
    assert [each.round for each in found.rounds] == ["round-1", "round-2"]
    check_in = {"protocol": PROTOCOL_VERSION, "release": 1, "tasks": ["recall"]}
    for named, given in (({}, "round-1"), ({"round": "round-2"}, "round-2")):
        signed = SignedOffer.model_validate_json(client.post("/v1/rounds/check-in", json=check_in | named).content)
        assert verify_offer(signed, signed.public_key).manifest.round == given
    assert client.post("/v1/rounds/check-in", json=check_in | {"round": "round-9"}).status_code == 204


def test_queued_round_shows_its_place_and_can_be_removed(client: httpx.Client) -> None:
    joined(client)
    waits = client.post("/v1/admin/rounds", json=REQUEST, headers=OPERATOR)
    assert waits.status_code == 202
    queued = QueuedRound.model_validate_json(waits.content)
    assert (queued.number, queued.place, queued.waits_for) == (1, 1, "round-1")
    assert client.get("/v1/admin/queue", headers=OPERATOR).json() == [waits.json()]
    for _ in range(QUEUE_LIMIT - 1):
        assert client.post("/v1/admin/rounds", json=REQUEST, headers=OPERATOR).status_code == 202
    assert problem(client.post("/v1/admin/rounds", json=REQUEST, headers=OPERATOR)) == (409, "round-queue-full")
    out = client.post("/v1/admin/queue/1/cancel", headers=OPERATOR).json()
    assert (out["place"], out["reason"]) == (None, "cancelled by the operator")
    assert client.get("/v1/admin/queue/1", headers=OPERATOR).json() == out
    assert problem(client.post("/v1/admin/queue/1/cancel", headers=OPERATOR)) == (409, "no-longer-waiting")
    assert problem(client.get("/v1/admin/queue/99", headers=OPERATOR)) == (404, "unknown-queued-round")


def test_operator_opens_lists_and_cancels_rounds(client: httpx.Client) -> None:
    joined(client)
    cancelled = client.post("/v1/admin/rounds/round-1/cancel", headers=OPERATOR).json()
    assert (cancelled["state"], cancelled["reason"]) == ("failed", "cancelled by the operator")
    assert problem(client.post("/v1/admin/rounds/round-1/cancel", headers=OPERATOR)) == (409, "illegal-transition")
    assert [each["round"] for each in client.get("/v1/admin/rounds", headers=OPERATOR).json()] == ["round-1"]
    unknown = client.post("/v1/admin/rounds", json=REQUEST | {"system": "oracle"}, headers=OPERATOR)
    assert problem(unknown) == (422, "unknown-system")
    assert (
        problem(client.post("/v1/admin/rounds", json=REQUEST | {"cohort": 0}, headers=OPERATOR))[1] == "invalid-request"
    )
    assert (
        problem(client.post("/v1/admin/rounds", json=REQUEST | {"participation": 0.1}, headers=OPERATOR))[1]
        == "invalid-request"
    )


def test_release_is_fetched_once_then_unchanged(client: httpx.Client) -> None:
    answer = client.get("/v1/releases/current")
    signed = SignedManifest.model_validate_json(answer.content)

    assert verify(signed, signed.public_key).release == "r1"
    assert answer.headers["etag"] == '"1"'  # modulo 16, so that a look for a release can't name a device
    again = client.get("/v1/releases/current", headers={"if-none-match": 'W/"1"'})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/v1/releases/current", headers={"if-none-match": '"0"'}).status_code == 200


def test_blobs_are_immutable_and_match_their_hash(client: httpx.Client, backend: BackendRig) -> None:
    ref = backend.releases.require_current().models["recall"].graphs["gradient"]
    answer = client.get(f"/v1/blobs/{ref.sha256}")

    assert digest(answer.content) == ref.sha256
    assert "immutable" in answer.headers["cache-control"]
    assert problem(client.get(f"/v1/blobs/{'0' * 64}")) == (404, "unknown-blob")
    assert problem(client.get("/v1/blobs/..%2Fsigning.key"))[0] in (404, 422)


class PartOfCatalogue(SimpleNamespace):
    """Supports weak references, unlike its base class and like a catalogue."""


def catalogue(rows: int) -> PartOfCatalogue:
    """The parts of a catalogue that shards are cut from: two days, the first with most of the rows."""
    vectors = np.random.default_rng(0).normal(size=(rows, DIM)).astype(np.float32)
    return PartOfCatalogue(
        encoder="test-encoder",
        ids=tuple(f"n{row}" for row in range(rows)),
        vectors=vectors,
        published_at=utc_moments([NOW + timedelta(days=int(row % 10 == 9)) for row in range(rows)]),
        built_at=NOW + timedelta(days=1),
    )


def test_vector_shards_hold_every_vector_once_by_day_with_at_most_4096_rows() -> None:
    live = SimpleNamespace(current=catalogue(5_000))
    store = VectorShardStore(live)  # type: ignore[arg-type]
    encoder, shards = store.list()

    assert encoder == "test-encoder"
    assert [(each.name, each.count) for each in shards] == [
        ("2026-11-20.0", SHARD_ROWS),
        ("2026-11-20.1", 4_500 - SHARD_ROWS),
        ("2026-11-21.0", 500),
    ]
    found: dict[str, np.ndarray] = {}
    for each in shards:
        ref, blob = store.blob(each.name)
        assert (digest(blob), len(blob)) == (each.blob.sha256, each.blob.size_bytes)
        assert store.by_hash(each.blob.sha256) == blob
        specs = {"codes": TensorSpec("int8", (each.count, DIM)), "scales": TensorSpec("float32", (each.count,))}
        tensors = unpack(blob, specs, limit_bytes=10**7)
        ids = json.loads(store.ids(each.name)[1])
        found |= dict(zip(ids, dequantise(tensors["codes"], tensors["scales"]), strict=True))
        assert ref == each
    assert sorted(found) == sorted(live.current.ids)
    for row, news_id in enumerate(live.current.ids):
        vector = live.current.vectors[row]
        np.testing.assert_allclose(found[news_id], vector, atol=np.abs(vector).max() / 127)


def test_shards_follow_the_live_catalogue(backend: BackendRig) -> None:
    live = SimpleNamespace(current=catalogue(20))
    store = VectorShardStore(live)  # type: ignore[arg-type]
    before = store.list()[1]
    live.current = catalogue(9)

    assert [each.count for each in before] == [18, 2]
    assert [each.count for each in store.list()[1]] == [9]
    with pytest.raises(UnknownShard):
        store.blob("2026-11-21.0")


def test_vectors_are_available_only_under_a_known_release(backend: BackendRig, tmp_path: Path) -> None:
    services = SimpleNamespace(
        engine=backend.engine,
        releases=backend.releases,
        live=SimpleNamespace(current=catalogue(20)),
        counts=None,
        storage=LocalFolder(tmp_path),
    )
    app = FastAPI()
    app.include_router(release_routes.router(services))  # type: ignore[arg-type]
    app.add_middleware(SharedAnswers, keep_sec=0, on_request={})
    install_problems(app)
    with httpx.Client(transport=InProcess(app), base_url="http://backend") as client:
        listed = ShardList.model_validate_json(client.get("/v1/releases/1/vectors").content)
        shard = listed.shards[0]
        answer = client.get(f"/v1/releases/1/vectors/{shard.name}")
        ids = client.get(f"/v1/releases/1/vectors/{shard.name}/ids")
        by_hash = client.get(f"/v1/blobs/{shard.blob.sha256}")

        assert digest(answer.content) == digest(by_hash.content) == shard.blob.sha256
        assert answer.headers["etag"] == ids.headers["etag"] == f'"{shard.blob.sha256}"'
        assert len(ids.json()) == shard.count
        same = client.get(f"/v1/releases/1/vectors/{shard.name}", headers={"if-none-match": answer.headers["etag"]})
        assert same.status_code == 304
        assert problem(client.get("/v1/releases/9/vectors")) == (404, "unknown-release")
        assert problem(client.get("/v1/releases/1/vectors/2020-01-01.0")) == (404, "unknown-shard")
        services.live.current.encoder = "newer-encoder"
        assert problem(client.get("/v1/releases/1/vectors")) == (503, "catalogue-behind")
