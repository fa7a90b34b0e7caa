"""GET /v1/news/front, POST /v1/news/bodies, GET /v1/health."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.news import BodiesAnswer
from protocol.recall import DefaultListAnswer, RecallAnswer
from tests.doubles.recall_app import Running, running_server
from tests.doubles.recall_world import items


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("server")) as started:
        yield started


def test_default_list_is_the_same_for_everybody_and_cached_by_etag(server: Running) -> None:
    first = server.client.get("/v1/news/front?limit=50")
    again = server.client.get("/v1/news/front?limit=50", headers={"if-none-match": first.headers["etag"]})
    other = server.client.get("/v1/news/front?limit=51", headers={"if-none-match": first.headers["etag"]})
    assert len(RecallAnswer.model_validate_json(first.content).candidates) == 50
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200


def test_default_list_since_a_known_one_is_answered_by_changes(server: Running) -> None:
    whole = server.client.get("/v1/news/front")
    etag = whole.headers["etag"]
    since = server.client.get("/v1/news/front", params={"since": etag.strip('"')})
    unknown = server.client.get("/v1/news/front", params={"since": "unknown"})
    changes = DefaultListAnswer.model_validate_json(since.content)
    ids = [card.id for card in DefaultListAnswer.model_validate_json(whole.content).candidates]
    assert (changes.candidates, changes.listed(ids), since.headers["etag"]) == ((), ids, etag)
    assert len(since.content) < len(whole.content) / 10
    assert unknown.content == whole.content
    assert server.client.get("/v1/news/front", params={"since": "x" * 81}).json()["field"] == "query.since"


def test_default_list_is_compressed_only_for_clients_accepting_it(server: Running) -> None:
    plain = server.client.get("/v1/news/front?limit=50", headers={"accept-encoding": "identity"})
    zipped = server.client.get("/v1/news/front?limit=50", headers={"accept-encoding": "gzip"})
    refused = server.client.get("/v1/news/front?limit=50", headers={"accept-encoding": "gzip;q=0"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refused.headers
    assert zipped.content == plain.content == refused.content


@pytest.mark.parametrize(("limit", "words"), [("0", "at least 1"), ("5000", "at most 1000"), ("x", "an integer")])
def test_default_list_limit_out_of_range_is_named_in_the_error(server: Running, limit: str, words: str) -> None:
    problem = server.client.get(f"/v1/news/front?limit={limit}").json()
    assert (problem["status"], problem["field"], problem["limit"]) == (422, "query.limit", words)


def test_bodies_of_a_whole_list_are_returned_once_each_without_unknown_ids(server: Running) -> None:
    wanted = [f"n{row}" for row in range(60)]
    response = server.client.post("/v1/news/bodies", json={"ids": [*wanted, "gone", wanted[0]]})
    answer = BodiesAnswer.model_validate_json(response.content)
    assert [body.id for body in answer.bodies] == wanted
    assert answer.bodies[7].body == items(60)[7].body
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["cache-control"] == "no-store"


def test_empty_or_oversized_body_requests_are_refused(server: Running) -> None:
    few = server.client.post("/v1/news/bodies", json={"ids": []}).json()
    many = server.client.post("/v1/news/bodies", json={"ids": ["n1"] * 1_001}).json()
    assert (few["field"], few["limit"]) == ("ids", "at least 1 entries")
    assert (many["field"], many["limit"]) == ("ids", "at most 1000 entries")


def test_health_reports_what_is_served(server: Running) -> None:
    assert server.client.get("/v1/health").json() == {
        "status": "ready",
        "release": "r1",
        "pool_version": server.services.live.current.pool_version,
        "news": 300,
    }


def test_server_without_release_or_articles_runs_and_reports_that_it_is_empty(tmp_path: Path) -> None:
    with running_server(tmp_path, news=0, releases=0) as bare:
        assert bare.client.get("/v1/health").json()["status"] == "empty"
        problem = bare.client.get("/v1/news/front").json()
        assert (problem["type"], problem["status"]) == ("urn:ownfeed:problem:nothing-published", 503)
