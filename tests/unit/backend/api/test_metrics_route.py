"""The backend's metrics and logs. Oracles: Prometheus' own parser, and the requests that the test made."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from backend.server.log import LOG_FILE
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn
from tests.doubles.recall_app import Running, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("server"), log_format="json") as started:
        yield started


def figures(server: Running) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    token = _token(server).read_text()
    answer = server.client.get("/metrics", headers={"authorization": f"Bearer {token.strip()}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def _token(server: Running) -> Path:
    return server.services.settings.data_dir / "metrics.token"


def test_metrics_token_opens_only_the_metrics(server: Running) -> None:
    for authorization in ("", "Bearer wrong", f"Bearer {server.services.admin_token}"):
        assert server.client.get("/metrics", headers={"authorization": authorization}).status_code == 401
    mine = {"authorization": f"Bearer {_token(server).read_text().strip()}"}
    assert server.client.get("/metrics", headers=mine).status_code == 200
    assert server.client.get("/v1/admin/rounds", headers=mine).status_code == 401
    assert stat.S_IMODE(_token(server).stat().st_mode) == 0o600


def test_error_for_a_wrong_metrics_token_says_which_token_is_needed_and_where_it_is(server: Running) -> None:
    refused = server.client.get("/metrics", headers={"authorization": f"Bearer {server.services.admin_token}"})
    assert refused.headers["www-authenticate"] == "Bearer"
    problem = refused.json()
    assert (problem["type"], problem["title"]) == (
        "urn:ownfeed:problem:metrics-token-needed",
        "The token for figures is needed",
    )
    assert _token(server).name in problem["detail"]
    assert "data_dir" in problem["detail"]
    assert server.services.metrics_token not in refused.text
    assert server.client.get("/v1/admin/rounds").json()["type"] == "urn:ownfeed:problem:not-signed-in"


def test_feed_tokens_in_addresses_do_not_appear_in_metrics(server: Running) -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    addresses = [
        "https://anna:sesame@paper.example:8443/feed?token=s3cr3t",
        "https://paper.example/feed?token=s3cr3t",
    ]
    for url in addresses:
        server.services.feeds.followed.add(url, now)
    try:
        reported = figures(server)
    finally:
        for url in addresses:
            server.services.feeds.followed.remove(url, now)
    assert not any(word in str(key) for key in reported for word in ("s3cr3t", "sesame", "anna", "https"))
    for name in ("ownfeed_backend_feed_failures", "ownfeed_backend_feed_answered_timestamp_seconds"):
        named = {key[1] for key in reported if key[0] == name}
        assert named == {
            (("feed", sha256(url.encode()).hexdigest()[:8]), ("host", "paper.example")) for url in addresses
        }, "each has a name of its own, the same at every scrape"


def test_metrics_cover_requests_stages_rounds_pool_and_index(server: Running) -> None:
    server.services.latency.record("recall", {"search": 0.6}, 1.5)
    before = figures(server)
    server.client.get("/v1/health")
    server.client.get("/v1/rounds/round-77")
    server.client.get("/nowhere/at-all")
    server.client.request("BREW", "/v1/health")
    reported = figures(server)

    def grown(name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return reported[key] - before.get(key, 0.0)

    assert grown("ownfeed_backend_requests_total", method="GET", route="/v1/health", status="200") == 1
    assert grown("ownfeed_backend_requests_total", method="GET", route="/v1/rounds/{round_id}", status="404") == 1
    assert grown("ownfeed_backend_requests_total", method="GET", route="none", status="404") == 1
    assert grown("ownfeed_backend_request_seconds_count", route="/v1/health") >= 1
    assert not any("round-77" in str(key) or "BREW" in str(key) or "nowhere" in str(key) for key in reported)
    assert reported["ownfeed_backend_stage_seconds_count", (("request", "recall"), ("stage", "search"))] == 1
    assert reported["ownfeed_backend_pool_news", ()] == server.services.pool.counts().news
    assert reported["ownfeed_backend_index_news", ()] == len(server.services.live.current)
    assert reported["ownfeed_backend_release", ()] == 1
    states = {key[1][0][1]: value for key, value in reported.items() if key[0] == "ownfeed_backend_pictures"}
    assert states == {"made": 0, "failed": 0, "refused": 0, "left": 0}
    assert {key[1][0][1] for key in reported if key[0] == "ownfeed_backend_rounds"} == {
        "open",
        "updates",
        "applied",
        "failed",
    }


def test_log_lines_are_objects_without_queries_bodies_or_tokens(server: Running) -> None:
    server.client.get("/v1/health?reader=anna")
    check_in = CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("a-task-of-anna",))
    server.client.post(
        "/v1/rounds/check-in", content=check_in.model_dump_json(), headers={"content-type": "application/json"}
    )
    server.client.put("/v1/rounds/round-1/updates/" + "f" * 32, content=b"secret-bytes")
    figures(server)
    text = (server.services.settings.data_dir / LOG_FILE).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert all({"at", "level", "logger", "message"} <= line.keys() for line in lines)
    assert any("/v1/health" in line["message"] for line in lines)
    for word in (
        "anna",
        "secret-bytes",
        "f" * 32,
        server.services.admin_token,
        server.services.metrics_token,
        "127.0.0.1",
    ):
        assert word not in text, word
