"""The backend's answers are checked before use; an in-process app answers like a socket."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi import FastAPI, Request, Response

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.clipping import clip_elementwise
from device_app.privacy.noise_sources import SystemNoise
from device_app.privacy.protections.local_laplace import LaplaceProtection, reseal
from device_app.privacy.requests import seal_check_in, seal_returned
from device_app.settings import PrivacySettings
from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.participations import Outbox
from device_app.uplink.backend_client import Uplink, read_codes, read_vectors, upload_path
from device_app.uplink.http import HttpClient
from protocol.ids import PROTOCOL_VERSION
from protocol.protections import LocalLaplace
from protocol.recall import RecallAnswer
from protocol.rounds import CheckIn, RoundManifest, RoundOffer, sign_offer
from protocol.tensors import pack, quantise
from tests.doubles.in_process import InProcess
from tests.doubles.sealing import allowing, seal_nothing
from tests.doubles.sharing import shared

Answering = Callable[[httpx.Request], httpx.Response]
VECTORS = np.random.default_rng(3).standard_normal((2, 8)).astype(np.float32)


@pytest.fixture
def uplink_to(log: ByteLog, now: datetime) -> Iterator[Callable[[Answering], Uplink]]:
    uplinks: list[Uplink] = []

    def build(answering: Answering) -> Uplink:
        uplinks.append(Uplink(HttpClient("http://backend.example", log, lambda: now, httpx.MockTransport(answering))))
        return uplinks[-1]

    yield build
    for uplink in uplinks:
        uplink.client.close()


def recall_answer(now: datetime, release: str = "r1", ids: tuple[str, ...] = ("A", "B")) -> RecallAnswer:
    card = {"title": "t", "abstract": "", "url": "u", "publisher": "p", "section": "s", "topic": "t", "weight": 0.5}
    cards = [card | {"id": one, "published_at": now} for one in ids]
    return RecallAnswer.model_validate(
        {"release": release, "encoder": "e", "candidates": cards, "vectors": pack(quantise(VECTORS))}
    )


def test_recall_returns_candidates_vectors_and_server_stages(
    uplink_to: Callable[[Answering], Uplink], now: datetime
) -> None:
    asked: list[bytes] = []

    def answering(request: httpx.Request) -> httpx.Response:
        asked.append(request.content)
        headers = {"server-timing": "search;dur=1.5, merge;dur=0.25"}
        return httpx.Response(200, headers=headers, content=recall_answer(now).model_dump_json())

    sealed = seal_nothing(release="r1", limit=2)
    answer, stages_ms = uplink_to(answering).recall(sealed)
    assert asked == [sealed.payload]
    assert stages_ms == {"search": 1.5, "merge": 0.25}
    np.testing.assert_allclose(read_vectors(answer, 8), VECTORS, atol=np.abs(VECTORS).max() / 127)


def test_equal_answers_and_cards_are_cached_and_a_changed_card_is_read(
    uplink_to: Callable[[Answering], Uplink], now: datetime
) -> None:
    answers = [recall_answer(now), recall_answer(now), recall_answer(now)]
    changed = answers[2].candidates[1].model_copy(update={"title": "Another headline"})
    answers[2] = answers[2].model_copy(update={"candidates": (answers[2].candidates[0], changed)})
    coming = iter(answers)
    uplink = uplink_to(lambda request: httpx.Response(200, content=next(coming).model_dump_json()))
    sealed = seal_nothing(release="r1", limit=2)
    first, again, third = (uplink.recall(sealed)[0] for _ in range(3))
    assert again is first == answers[0]
    assert third == answers[2]
    assert third.candidates[0] is first.candidates[0]
    assert third.candidates[1].title == "Another headline"
    uplink.forget()
    coming = iter(answers[:1])
    assert uplink.recall(sealed)[0] is not first


def test_invalid_card_is_refused_despite_the_cache(uplink_to: Callable[[Answering], Uplink], now: datetime) -> None:
    whole = recall_answer(now).model_dump_json()
    coming = iter([whole, whole.replace('"weight":0.5', '"weight":7', 1)])
    assert next(iter(recall_answer(now).candidates)).weight == 0.5
    uplink = uplink_to(lambda request: httpx.Response(200, content=next(coming)))
    sealed = seal_nothing(release="r1", limit=2)
    uplink.recall(sealed)
    with pytest.raises(AnswerMalformed, match=r"candidates\.0\.weight"):
        uplink.recall(sealed)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"<html>", "body: Invalid JSON"),
        (b'{"release":"r1"}', "encoder: Field required"),
    ],
)
def test_malformed_answer_is_refused_naming_the_field(
    uplink_to: Callable[[Answering], Uplink], content: bytes, why: str
) -> None:
    with pytest.raises(AnswerMalformed, match=why):
        uplink_to(lambda request: httpx.Response(200, content=content)).recall(seal_nothing(release="r1", limit=2))


def test_too_many_candidates_or_another_release_are_refused(
    uplink_to: Callable[[Answering], Uplink], now: datetime
) -> None:
    uplink = uplink_to(lambda request: httpx.Response(200, content=recall_answer(now).model_dump_json()))
    with pytest.raises(AnswerMalformed, match="2 candidates, at most 1 were requested"):
        uplink.recall(seal_nothing(release="r1", limit=1))
    with pytest.raises(AnswerMalformed, match="for release r1, expected one of number 2 modulo 16"):
        uplink.recall(seal_nothing(release="r2", limit=2))


def test_vectors_of_another_shape_are_refused(now: datetime) -> None:
    with pytest.raises(AnswerMalformed, match="tensor codes: shape"):
        read_vectors(recall_answer(now), 16)
    with pytest.raises(AnswerMalformed, match="tensor codes: shape"):
        read_vectors(recall_answer(now, ids=("A",)), 8)


def test_unrequested_texts_are_refused(uplink_to: Callable[[Answering], Uplink], now: datetime) -> None:
    sealed = seal_returned(recall_answer(now))
    uplink = uplink_to(lambda request: httpx.Response(200, json={"bodies": [{"id": "A", "body": "text"}]}))
    assert uplink.bodies(sealed).bodies[0].body == "text"
    uplink = uplink_to(lambda request: httpx.Response(200, json={"bodies": [{"id": "X", "body": "text"}]}))
    with pytest.raises(AnswerMalformed, match="X was not requested"):
        uplink.bodies(sealed)


def offer(now: datetime) -> RoundOffer:
    manifest = RoundManifest(
        round="round-1",
        release="r1",
        system="uni_fedrec",
        task="recall",
        model="recall",
        protection=LocalLaplace(),
        negatives=4,
        samples_limit=16,
        closes_at=now + timedelta(minutes=5),
    )
    return RoundOffer(manifest=manifest, pseudonym="p" * 22)


def test_client_returns_none_without_a_round_and_otherwise_an_offer(
    uplink_to: Callable[[Answering], Uplink], now: datetime
) -> None:
    sealed = seal_check_in(CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",)))
    nothing = uplink_to(lambda request: httpx.Response(204))
    assert nothing.check_in(sealed) is None
    assert nothing.open_rounds() == ()
    signed = sign_offer(offer(now), Ed25519PrivateKey.generate())
    chosen = uplink_to(lambda request: httpx.Response(200, content=signed.model_dump_json()))
    assert chosen.check_in(sealed) == signed


def test_failed_upload_is_resent_byte_for_byte(
    uplink_to: Callable[[Answering], Uplink], database: Database, log: ByteLog, now: datetime
) -> None:
    arrived: list[tuple[str, str, bytes]] = []

    def answering(request: httpx.Request) -> httpx.Response:
        arrived.append((request.method, request.url.path, request.content))
        if len(arrived) == 1:
            raise httpx.ReadError("cut")
        digest = sha256(request.content).hexdigest()
        return httpx.Response(200, json={"round": "round-1", "sha256": digest, "duplicate": len(arrived) > 2})

    uplink, outbox = uplink_to(answering), Outbox(database)
    ledger = Ledger(LedgerRepository(database), allowing(PrivacySettings(epsilon_per_day_training=1e6)), lambda: now)
    clipped = clip_elementwise(shared({"g.beta": np.array([0.5, -0.01], np.float32)}), 0.1)
    sealed = LaplaceProtection(LocalLaplace()).seal(clipped, round_id="round-1", ledger=ledger, noise=SystemNoise())
    outbox.put(
        subject="round-1",
        method="PUT",
        path=upload_path(offer(now)),
        content_type=sealed.content_type,
        payload=sealed.payload,
        words=sealed.words,
        at=now,
        expires_at=now + timedelta(minutes=5),
    )
    with pytest.raises(BackendUnreachable):
        uplink.upload(offer(now), sealed)
    (item,) = outbox.due(now)
    assert not uplink.resend(reseal(item, ledger, PrivacySettings())).duplicate
    assert uplink.resend(reseal(item, ledger, PrivacySettings())).duplicate
    assert len(set(arrived)) == 1
    assert arrived[0] == ("PUT", f"/v1/rounds/round-1/updates/{'p' * 22}", sealed.payload)
    assert [line.epsilon for line in log.entries().rows] == [0, 0, pytest.approx(40)]


def test_receipt_for_other_bytes_is_refused(
    uplink_to: Callable[[Answering], Uplink], database: Database, now: datetime
) -> None:
    ledger = Ledger(LedgerRepository(database), allowing(PrivacySettings(epsilon_per_day_training=1e6)), lambda: now)
    clipped = clip_elementwise(shared({"g.beta": np.array([0.5], np.float32)}), 0.1)
    sealed = LaplaceProtection(LocalLaplace()).seal(clipped, round_id="round-1", ledger=ledger, noise=SystemNoise())
    receipt = {"round": "round-1", "sha256": "ab" * 32, "duplicate": False}
    with pytest.raises(AnswerMalformed, match="other bytes"):
        uplink_to(lambda request: httpx.Response(200, json=receipt)).upload(offer(now), sealed)


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()

    @app.post("/v1/recall")
    async def recall(request: Request) -> Response:
        return Response(
            await request.body(), media_type="application/json", headers={"x-host": request.headers["host"]}
        )

    @app.get("/v1/boom")
    async def boom() -> None:
        raise RuntimeError("inside the app")

    return app


def test_in_process_server_answers_many_devices_at_once(
    app: FastAPI, tmp_path: Path, migrated: Path, now: datetime
) -> None:
    transport = InProcess(app)
    databases = [Database(Path(shutil.copy(migrated, tmp_path / f"{one}.sqlite"))) for one in range(4)]
    doors = [HttpClient("http://backend.example", ByteLog(one), lambda: now, transport) for one in databases]
    sealed = seal_nothing(release="r1", limit=2)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda client: client.deliver(sealed, "/v1/recall", purpose="recall"), doors * 5))
    assert {answer.body for answer in answers} == {sealed.payload}
    assert answers[0].headers["x-host"] == "backend.example"
    assert [ByteLog(one).entries().total for one in databases] == [5] * 4
    with pytest.raises(BackendRefused, match="HTTP 500"):
        doors[0].get("/v1/boom", words="A look.", purpose="sync")
    transport.close()
    transport.close()
    for one in databases:
        one.close()


@pytest.mark.parametrize("scale", [3.4e38, 2e6, -2e6])
def test_overflowing_vectors_are_refused_as_malformed(scale: float) -> None:
    """In a recall answer and a default list, which are read alike, and in a shard: 127 times 3.4e38 is no float32."""
    codes = quantise(VECTORS)
    codes["scales"][0] = scale
    with pytest.raises(AnswerMalformed, match=r"tensor scales: at most 1e\+06, got "):
        read_codes(pack(codes), 2, 8, "recall", 10_000)
    codes["scales"][0] = 1e6
    assert np.isfinite(np.square(read_codes(pack(codes), 2, 8, "recall", 10_000))).all()
