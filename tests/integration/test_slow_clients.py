"""Clients that stall, against the real server on a real port: all other readers are served."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from backend.api.rounds import READ_AT_ONCE_BYTES
from device_app.privacy.secagg.messages import begin_sum
from device_app.uplink.backend_client import ANSWERS, stage_path, upload_path
from protocol.rounds import RoundOffer, SumStage
from protocol.secagg import Sharers, SumTerms
from protocol.tensors import pack
from tests.doubles.secure_sums import SumDevice, random_vector
from tests.doubles.served_backend import Served, serve_backend, wait_until
from tests.doubles.slow_clients import PATIENCE_SEC, answer_of, begin_request, is_closed_by_the_server

TENSORS, RING, JSON = "application/vnd.safetensors", "application/octet-stream", "application/json"
SLOW = 60
"""More than the 40 threads that a server has for everything else unless it is told otherwise."""


@pytest.fixture(scope="module")
def served_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_backend(tmp_path_factory.mktemp("served")) as served:
        yield served


def test_slow_update_uploads_do_not_block_other_clients(tmp_path: Path) -> None:
    with serve_backend(tmp_path) as served, ExitStack() as held:
        for offer in served.offers("private_counts/local/mean", SLOW):
            held.enter_context(half_an_update(served, offer))
        wait_until(lambda: served.services.uploads.under_way == SLOW)
        served.everybody_else()


def test_early_masked_vectors_are_refused_before_their_bodies(tmp_path: Path) -> None:
    with serve_backend(tmp_path) as served, ExitStack() as held:
        offers = served.offers("private_counts/secure/huber", SLOW)
        clients = [
            held.enter_context(
                begin_request(served.url, "PUT", stage_path(offer, "masked"), RING, size_of(offer), b"half of it")
            )
            for offer in offers
        ]
        served.everybody_else()
        for client in clients:
            status, problem = answer_of(client)
            assert (status, problem_code(problem)) == (403, "unknown-pseudonym")  # not a member before its keys


def test_slow_masked_vector_uploads_do_not_block_others_and_count_once_complete(tmp_path: Path) -> None:
    with serve_backend(tmp_path, worker_threads=2, round_threads=1) as served, ExitStack() as held:
        offers = served.offers("private_counts/secure/huber", 10)
        devices = [
            SumDevice(offer.pseudonym, begin_sum(terms_of(offer)), random_vector(terms_of(offer).length))
            for offer in offers
        ]
        send_stage(served, offers, devices, "keys")
        send_stage(served, offers, devices, "shares", after="keys")
        send_stage(served, offers, devices, "complaints", after="shares")
        halves = []
        for offer, device in zip(offers, devices, strict=True):
            device.receive(Sharers.model_validate_json(answer_to(served, offer, "complaints")))
            assert device.step is not None
            payload = device.step.sealed.payload
            half = len(payload) // 2
            path = stage_path(offer, "masked")
            client = held.enter_context(begin_request(served.url, "PUT", path, RING, len(payload), payload[:half]))
            halves.append((client, payload[half:]))
        served.everybody_else()
        for client, rest in halves:
            client.sendall(rest)
            assert answer_of(client)[0] == 200
        status = served.client.get(f"/v1/rounds/{offers[0].manifest.round}").json()
        assert status["uploaded"] == len(offers)


def test_new_upload_of_a_place_replaces_its_stalled_one(tmp_path: Path) -> None:
    with serve_backend(tmp_path) as served:
        (offer, *_) = served.offers("private_counts/local/mean", 10)
        update = update_of(offer)
        with half_an_update(served, offer) as stalled:
            wait_until(lambda: served.services.uploads.under_way == 1)
            answer = served.client.put(upload_path(offer), content=update, headers={"content-type": TENSORS})
            assert answer.status_code == 200, answer.text
            status, problem = answer_of(stalled)
        assert (status, problem_code(problem)) == (409, "upload-replaced")


def test_uploads_beyond_the_limit_are_refused_until_there_is_room(tmp_path: Path) -> None:
    with serve_backend(tmp_path, uploads_limit=2) as served:
        offers = served.offers("private_counts/local/mean", 10)
        with ExitStack() as held:
            for offer in offers[:2]:
                held.enter_context(half_an_update(served, offer))
            wait_until(lambda: served.services.uploads.under_way == 2)
            third = held.enter_context(half_an_update(served, offers[2]))
            status, problem = answer_of(third)
            assert (status, problem_code(problem)) == (503, "over-capacity")
        wait_until(lambda: served.services.uploads.under_way == 0)
        again = served.client.put(upload_path(offers[2]), content=b"x", headers={"content-type": TENSORS})
        assert problem_code(again.content) == "update-refused", "it was read"


def test_invalid_sum_message_is_refused_after_its_body(served_once: Served) -> None:
    (offer, *_) = served_once.offers("private_counts/secure/huber", 10)
    message: dict[str, list[int]] = {"members": []}
    strange = offer.model_copy(update={"pseudonym": "p" * 32})
    try:
        for sender in (offer, strange):
            answer = served_once.client.put(stage_path(sender, "complaints"), json=message)
            assert (answer.status_code, problem_code(answer.content)) == (403, "unknown-pseudonym")
    finally:
        served_once.services.coordinator.cancel(offer.manifest.round)


@pytest.mark.parametrize(
    ("system", "stage", "length", "refused"),
    [
        ("private_counts/local/mean", "masked", 100, (404, "unknown-sum")),
        ("private_counts/secure/huber", "shares", READ_AT_ONCE_BYTES["shares"] + 1, (403, "unknown-pseudonym")),
        ("private_counts/secure/huber", "unmask", READ_AT_ONCE_BYTES["unmask"] + 1, (403, "unknown-pseudonym")),
        ("private_counts/secure/huber", "updates", 100, (409, "round-closed")),
        ("private_counts/secure/huber", "keys", 1_000_000, (413, "body-too-large")),
        ("private_counts/local/mean", "updates", 60_000_000, (413, "body-too-large")),
    ],
)
def test_disallowed_upload_is_refused_before_its_body(
    served_once: Served, system: str, stage: str, length: int, refused: tuple[int, str]
) -> None:
    (offer, *_) = served_once.offers(system, 10)
    path = f"/v1/rounds/{offer.manifest.round}/{stage}/{offer.pseudonym}"
    media_type = {"updates": TENSORS, "masked": RING}.get(stage, JSON)
    try:
        with begin_request(served_once.url, "PUT", path, media_type, length) as client:
            status, problem = answer_of(client)
        assert (status, problem_code(problem)) == refused
    finally:
        served_once.services.coordinator.cancel(offer.manifest.round)


def test_second_upload_of_another_size_is_refused_before_its_body(tmp_path: Path) -> None:
    with serve_backend(tmp_path) as served:
        (offer, *_) = served.offers("private_counts/local/mean", 10)
        update = update_of(offer)
        headers = {"content-type": TENSORS}
        assert served.client.put(upload_path(offer), content=update, headers=headers).status_code == 200
        with begin_request(served.url, "PUT", upload_path(offer), TENSORS, len(update) - 1) as other:
            status, problem = answer_of(other)
        assert (status, problem_code(problem)) == (409, "update-conflict")
        assert served.client.put(upload_path(offer), content=update, headers=headers).json()["duplicate"] is True


@pytest.mark.parametrize("path", ["/v1/recall", "/v1/news/bodies", "/v1/rounds/check-in"])
@pytest.mark.parametrize("length", [50, None])
def test_stalled_body_times_out(tmp_path: Path, path: str, length: int | None) -> None:
    with (
        serve_backend(tmp_path, body_wait_sec=1.0) as served,
        begin_request(served.url, "POST", path, JSON, length) as stalled,
    ):
        status, problem = answer_of(stalled)
        assert (status, problem_code(problem)) == (408, "body-too-slow")
        assert is_closed_by_the_server(stalled)


def test_text_requests_use_only_their_share_of_worker_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: sixty clients that requested 1,000 texts again and again delayed everything else by a second."""
    with serve_backend(tmp_path, worker_threads=3) as served:
        go_on = threading.Event()

        def slow(ids: Iterable[str]) -> dict[str, str]:
            assert go_on.wait(PATIENCE_SEC)
            return dict.fromkeys(ids, "text")

        monkeypatch.setattr(served.services.pool, "bodies", slow)
        asked = json.dumps({"ids": ["n1", "n2"]}).encode()
        with ExitStack() as held:
            clients = [
                held.enter_context(begin_request(served.url, "POST", "/v1/news/bodies", JSON, len(asked), asked))
                for _ in range(8)
            ]
            try:
                served.everybody_else()
            finally:
                go_on.set()
            assert {answer_of(client)[0] for client in clients} <= {200, 503}, "who waited for over two seconds"


def send_stage(
    served: Served,
    offers: Sequence[RoundOffer],
    devices: Sequence[SumDevice],
    stage: SumStage,
    after: SumStage | None = None,
) -> None:
    """Send all devices' messages of a stage, once the previous one has closed."""
    for offer, device in zip(offers, devices, strict=True):
        if after is None:
            device.start()
        else:
            device.receive(ANSWERS[after].model_validate_json(answer_to(served, offer, after)))
        assert device.step is not None
        body = device.step.sealed.payload
        answer = served.client.put(stage_path(offer, stage), content=body, headers={"content-type": JSON})
        assert answer.status_code == 200, answer.text


def answer_to(served: Served, offer: RoundOffer, stage: SumStage) -> bytes:
    """Return the server's answer for a stage, once it has closed it."""
    found = b""

    def reported() -> bool:
        nonlocal found
        answer = served.client.get(stage_path(offer, stage))
        found = answer.content
        return answer.status_code == 200

    wait_until(reported)
    return found


def update_of(offer: RoundOffer) -> bytes:
    """Return an update of zeros."""
    return pack({name: np.zeros(shape, np.float32) for name, shape in offer.manifest.shapes.items()})


def half_an_update(served: Served, offer: RoundOffer) -> socket.socket:
    """Begin an allowed upload that doesn't end."""
    update = update_of(offer)
    return begin_request(served.url, "PUT", upload_path(offer), TENSORS, len(update), update[: len(update) // 2])


def terms_of(offer: RoundOffer) -> SumTerms:
    """Return the terms of its secure sum."""
    assert offer.manifest.terms is not None
    return offer.manifest.terms


def size_of(offer: RoundOffer) -> int:
    """Return the size of its masked vector in bytes."""
    return terms_of(offer).vector_bytes


def problem_code(content: bytes) -> str:
    """Return the last part of a problem's type."""
    return str(json.loads(content)["type"]).rsplit(":", 1)[1]
