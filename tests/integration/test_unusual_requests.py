"""Requests that none of our clients sends, and what a curious stranger may try with them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from backend.storage.durable_files import files_below
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn
from protocol.tensors import pack
from tests.doubles.recall_app import Running, running_server

TENSORS = {"content-type": "application/vnd.safetensors"}
PATIENCE_SEC = 120.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running_server(tmp_path, news=60) as started:
        yield started


def test_update_under_another_spelling_of_the_round_id_is_refused(
    server: Running,
) -> None:
    """Regression: round-001 found the row of round-1 but wrote its file elsewhere, so one member failed the round."""
    coordinator = server.services.coordinator
    coordinator.open_round("private_counts/local/mean", cohort=2, cohort_minimum=2, seconds=3_600)
    for _ in range(2):
        offer = coordinator.check_in(CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("count",)))
        assert offer is not None
        update = pack({name: np.zeros(shape, np.float32) for name, shape in offer.manifest.shapes.items()})
        for other in ("round-001", "round-1%20", "round-01", "round-\u0661"):
            answer = server.client.put(f"/v1/rounds/{other}/updates/{offer.pseudonym}", content=update, headers=TENSORS)
            assert (answer.status_code, answer.json()["field"]) == (422, "path.round_id")
        answer = server.client.put(f"/v1/rounds/round-1/updates/{offer.pseudonym}", content=update, headers=TENSORS)
        assert answer.status_code == 200
    deadline = time.monotonic() + PATIENCE_SEC
    while coordinator.status("round-1").finished_at is None or list(files_below(server.folder / "rounds")):
        assert time.monotonic() < deadline, "it has ended, and no update is kept longer than that"
        time.sleep(0.02)
    assert coordinator.status("round-1").state == "applied", coordinator.status("round-1").reason


def test_log_lines_escape_control_characters_and_stay_short(server: Running) -> None:
    forged = "2026-11-23 07:00:00,000 INFO backend.requests POST /v1/admin/rounds 201"
    server.client.get(f"/a%0a{forged}%0d%1b[2J%e2%80%ae%c2%85b")
    server.client.get("/" + "c" * 60_000)
    log = (server.folder / "server.log").read_text(encoding="utf-8")
    assert forged in log, "it stands in the line of its own request"
    assert not any(line.startswith(forged) for line in log.splitlines())
    assert log.replace("\n", "").isprintable()
    assert max(map(len, log.splitlines())) < 1_000


def test_server_never_redirects_to_the_host_in_a_request(server: Running) -> None:
    for path in ("/v1/health/", "/v1/rounds/current/", "/console/", "//evil.example/"):
        answer = server.client.get(path, headers={"host": "evil.example"}, follow_redirects=False)
        # The console asks who it is before it says that there is no such page.
        expected = 401 if path == "/console/" else 404
        assert (answer.status_code, "location" in answer.headers) == (expected, False), path


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "\xff", "http://a]b", ""])
def test_form_with_a_malformed_origin_is_refused(server: Running, origin: str) -> None:
    sent = {b"origin": origin.encode("latin-1"), b"content-type": b"application/x-www-form-urlencoded"}
    answer = server.client.post("/console/sign-in", content=b"token=a", headers=sent)
    assert answer.status_code == 403


def test_polls_of_one_address_count_up_to_its_limit_of_places(server: Running) -> None:
    for _ in range(50):
        server.client.get("/v1/rounds/current", headers={"x-forwarded-for": "203.0.113.9"})
    assert server.services.coordinator.polls.waiting() == server.services.settings.places_per_address
