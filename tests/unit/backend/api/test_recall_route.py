"""POST /v1/recall: a valid request, and every invalid one with the exact problem it gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.recall import RecallAnswer
from protocol.server_timing import SERVER_STAGES, parse_server_timing
from tests.doubles.recall_app import Running, running_server
from tests.doubles.recall_world import ENCODER, report

URN = "urn:ownfeed:problem:"
KINDS = "one of 'basis_laplace', 'basis_l1', 'code', 'topics', 'subset', 'none'"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("server"), releases=7) as started:
        yield started


def body(**changes: Any) -> dict[str, Any]:
    return {"release": 7, "limit": 100, "report": report(), **changes}


def with_report(**changes: Any) -> dict[str, Any]:
    return body(report={**report(), **changes})


def post(server: Running, content: str | bytes | dict[str, Any], content_type: str = "application/json") -> Any:
    raw = json.dumps(content) if isinstance(content, dict) else content
    return server.client.post("/v1/recall", content=raw, headers={"content-type": content_type})


def refused(server: Running, content: Any, content_type: str = "application/json") -> dict[str, Any]:
    response = post(server, content, content_type)
    problem: dict[str, Any] = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert response.status_code == problem["status"]
    return problem


def test_valid_request_gets_candidates_with_vectors_and_stage_times(server: Running) -> None:
    response = post(server, body())
    answer = RecallAnswer.model_validate_json(response.content)
    assert (response.status_code, answer.release, answer.encoder) == (200, "r7", ENCODER)
    assert len({card.id for card in answer.candidates}) == 100
    assert list(parse_server_timing(response.headers["server-timing"])) == list(SERVER_STAGES)
    assert response.headers["cache-control"] == "no-store"
    assert "set-cookie" not in response.headers


def test_request_time_is_recorded_in_the_latency_log(server: Running) -> None:
    before = server.services.latency.summary().get("recall")
    post(server, body())
    after = server.services.latency.summary()["recall"]
    assert after.seen == (before.seen if before else 0) + 1
    assert set(after.stages) == {*SERVER_STAGES, "total"}


def test_report_for_an_older_release_still_in_use_is_answered(server: Running) -> None:
    answer = RecallAnswer.model_validate_json(post(server, body(release=3)).content)
    assert answer.release == "r3"


@pytest.mark.parametrize(
    ("content", "field", "limit"),
    [
        (with_report(scores=[[0.0] * 29] * 3), "report.scores", "exactly 30 scores a channel"),
        (with_report(counts=[1, -2, 3]), "report.counts.1", "at least 1"),
        (with_report(counts=[1, 51, 3]), "report.counts.1", "at most 50"),
        (with_report(counts=[1, 2.5, 3]), "report.counts.1", "an integer"),
        (with_report(scores=[[0.0] * 30] * 6, counts=[1] * 6), "report.scores", "at most 5 entries"),
        (with_report(scores=[[1e9] * 30] * 3), "report.scores.0.0", "at most 10000"),
        (with_report(scores=[], counts=[]), "report.scores", "at least 1 entries"),
        (
            with_report(kind="clicks"),
            "report",
            "one of 'basis_laplace', 'basis_l1', 'code', 'topics', 'subset', 'none'",
        ),
        (with_report(name="Ada"), "report.name", "no unknown fields"),
        (body(cookie="x"), "cookie", "no unknown fields"),
        (body(limit=0), "limit", "at least 1"),
        (body(limit=5000), "limit", "at most 1000"),
        (body(release="r7"), "release", "an integer"),
        (body(release=16), "release", "less than 16"),
        ({"release": 7}, "report", "required"),
    ],
)
def test_invalid_field_is_named_in_the_error_with_its_limit(
    server: Running, content: Any, field: str, limit: str
) -> None:
    problem = refused(server, content)
    assert problem["type"] == URN + "invalid-request"
    assert (problem["status"], problem["field"], problem["limit"]) == (422, field, limit)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_field_with_a_non_finite_number_is_named_in_the_error(server: Running, literal: str) -> None:
    raw = json.dumps(with_report(scores=[[0.0] * 29 + ["HERE"]], counts=[1])).replace('"HERE"', literal)
    problem = refused(server, raw)
    assert (problem["status"], problem["field"]) == (422, "report.scores.0.29")
    assert problem["limit"] == "a finite number"


def test_mismatched_counts_and_channels_are_refused(server: Running) -> None:
    problem = refused(server, with_report(counts=[1, 2]))
    assert (problem["status"], problem["field"]) == (422, "report")
    assert "counts has 2 entries for 3 channels of scores" in problem["detail"]


def test_wrong_basis_size_is_answered_with_the_releases_size(server: Running) -> None:
    assert "release r7 has a basis of 30" in refused(server, with_report(scores=[[0.0] * 29] * 3))["detail"]


def test_report_for_an_unpublished_release_is_answered_409_with_the_current_one(server: Running) -> None:
    problem = refused(server, body(release=15))
    assert (problem["type"], problem["status"]) == (URN + "release-not-answered", 409)
    assert (problem["field"], problem["current"]) == ("release", "r7")


def test_report_for_a_retired_release_is_answered_410_with_the_current_one(server: Running) -> None:
    problem = refused(server, body(release=2))
    assert (problem["type"], problem["status"], problem["current"]) == (URN + "release-retired", 410, "r7")


@pytest.mark.parametrize("content", ["", "{", "no json", '{"release": 7,}', b"\xff\xfe"])
def test_body_that_is_not_json_is_answered_400(server: Running, content: str | bytes) -> None:
    problem = refused(server, content)
    assert (problem["type"], problem["status"], problem["field"]) == (URN + "malformed-json", 400, "body")


@pytest.mark.parametrize("content", ["[]", "null", "17"])
def test_json_that_is_not_an_object_is_refused(server: Running, content: str) -> None:
    assert refused(server, content)["type"] == URN + "invalid-request"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_refused(server: Running, content_type: str) -> None:
    problem = refused(server, body(), content_type)
    assert (problem["type"], problem["status"]) == (URN + "unsupported-media-type", 415)
    assert problem["limit"] == "application/json"


def test_body_of_5_mb_is_refused_by_its_declared_length(server: Running) -> None:
    problem = refused(server, b" " * 5_000_000)
    assert (problem["type"], problem["status"], problem["limit"]) == (URN + "body-too-large", 413, "65536 bytes")


def test_chunked_body_of_5_mb_is_refused_while_reading(server: Running) -> None:
    sent = []

    def pieces() -> Iterator[bytes]:
        for _ in range(500):
            sent.append(1)
            yield b" " * 10_000

    response = server.client.post("/v1/recall", content=pieces(), headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert response.json()["type"] == URN + "body-too-large"


def test_refusals_do_not_quote_the_request(server: Running) -> None:
    secret = 0.123456789
    for content in (with_report(scores=[[secret] * 29] * 3), with_report(kind=str(secret)), body(limit=secret)):
        assert "0.123456789" not in post(server, content).text


def test_server_log_holds_the_request_line_without_the_body(server: Running, tmp_path: Path) -> None:
    marked = with_report(scores=[[0.987654321] * 30] * 3)
    post(server, marked)
    post(server, json.dumps(marked).replace("[0.987654321", "[NaN, 0.987654321", 1))
    log = (server.folder / "server.log").read_text()
    assert "POST /v1/recall 200 received=" in log
    assert "POST /v1/recall 422" in log
    assert "0.987654321" not in log
