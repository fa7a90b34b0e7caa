"""POST /v1/recall with every kind of report, over the real server in process."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from backend.popularity.estimate import SHARPNESS, log_popularity
from backend.recall.posterior import code_weights
from protocol.recall import RecallAnswer
from protocol.server_timing import parse_server_timing
from tests.doubles.recall_app import Running, running_server
from tests.doubles.recall_world import report

REPORTS: dict[str, dict[str, Any]] = {
    "code": {"kind": "code", "codebook": 16, "code": 11},
    "high utility": {"kind": "code", "codebook": 64, "code": 63},
    "topics": {"kind": "topics", "codebook": 16, "weights": [0.2] * 16},
    "subset": {"kind": "subset", "codebook": 16, "topics": [3, 4]},
    "basis_laplace": report(),
    "basis_l1": {"kind": "basis_l1", "scores": report()["scores"], "shares": [0.5, 0.4, 0.1]},
    "none": {"kind": "none"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("kinds"), news=600, pool_poll_sec=3_600) as started:
        yield started


def post(server: Running, kind: dict[str, Any], limit: int = 200) -> Any:
    return server.client.post("/v1/recall", json={"release": 1, "limit": limit, "report": kind})


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_kind_is_answered_with_distinct_candidates(server: Running, name: str) -> None:
    answer = post(server, REPORTS[name])
    assert answer.status_code == 200, answer.text
    ids = [card.id for card in RecallAnswer.model_validate_json(answer.content).candidates]
    assert len(set(ids)) == len(ids) == 200


def test_answer_to_a_code_is_the_best_list_for_the_posterior_mean_vector(server: Running) -> None:
    catalogue, release = server.services.live.current, server.services.served.current
    book = release.codebooks[16]
    popular = log_popularity(catalogue.published_at, catalogue.weights, catalogue.built_at)
    vector = code_weights(np.full(16, 1 / 16), 4.0, 11) @ book.prototypes
    scores = SHARPNESS * (catalogue.vectors[:] @ vector) + popular
    expected = [catalogue.ids[row] for row in np.argsort(-scores, kind="stable")[:200]]
    found = RecallAnswer.model_validate_json(post(server, REPORTS["code"]).content).candidates
    assert [card.id for card in found] == expected


def test_code_is_composed_and_searched_within_two_milliseconds(server: Running) -> None:
    times = []
    for code in range(16):
        answer = post(server, {"kind": "code", "codebook": 16, "code": code})
        stages = parse_server_timing(answer.headers["server-timing"])
        times.append(stages["aggregate"] + stages["search"])
    assert np.median(times) < 2.0


@pytest.mark.parametrize(
    ("kind", "field", "limit"),
    [
        ({"kind": "code", "codebook": 32, "code": 1}, "report.codebook", "one of 16, 64"),
        ({"kind": "code", "codebook": 16, "code": 16}, "report", ""),
        ({"kind": "code", "codebook": 16, "code": -1}, "report.code", "at least 0"),
        ({"kind": "code", "codebook": 16, "code": 1.5}, "report.code", ""),
        ({"kind": "code", "codebook": 10_000, "code": 1}, "report.codebook", "at most 1024"),
        ({"kind": "topics", "codebook": 32, "weights": [0.0] * 32}, "report.codebook", "one of 16, 64"),
        ({"kind": "topics", "codebook": 16, "weights": [0.0] * 15}, "report", ""),
        ({"kind": "subset", "codebook": 16, "topics": [4, 3]}, "report", ""),
        ({**report(), "scores": [[0.0] * 29] * 3}, "report.scores", "exactly 30 scores a channel"),
        (
            {"kind": "basis_l1", "scores": [[0.0] * 29] * 3, "shares": []},
            "report.scores",
            "exactly 30 scores a channel",
        ),
    ],
)
def test_invalid_report_is_answered_with_a_problem_naming_field_and_limit(
    server: Running, kind: dict[str, Any], field: str, limit: str
) -> None:
    answer = post(server, kind)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["field"] == field
    assert limit in (problem.get("limit") or "")
    assert "9999" not in answer.text


@pytest.mark.parametrize("name", REPORTS)
def test_cached_code_answer_is_compressed_and_unchanged(server: Running, name: str) -> None:
    def answer(encoding: str) -> tuple[Mapping[str, str], bytes]:
        asked = {"release": 1, "limit": 150, "report": REPORTS[name]}
        with server.client.stream("POST", "/v1/recall", json=asked, headers={"accept-encoding": encoding}) as response:
            assert response.status_code == 200
            return response.headers, b"".join(response.iter_raw())

    plain = answer("identity")
    assert "content-encoding" not in plain[0]
    for _ in range(2):  # the second is what was kept of the first
        headers, sent = answer("gzip")
        by_code = REPORTS[name]["kind"] == "code"
        assert (headers.get("content-encoding"), headers.get("vary")) == (
            ("gzip", "Accept-Encoding") if by_code else (None, None)
        )
        assert (gzip.decompress(sent) if by_code else sent) == plain[1]
        assert not by_code or len(sent) < 0.7 * len(plain[1])
    assert answer("gzip;q=0")[1] == plain[1]
