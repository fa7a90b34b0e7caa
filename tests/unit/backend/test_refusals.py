"""Errors, problems and the request limits: complete, plain, and without quoting the request."""

from __future__ import annotations

import errno
import logging

import pytest
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from backend.db.engine import DatabaseUnreachable
from backend.errors import OwnfeedError, catalogue
from backend.server.problems import install_problems, problem_of
from backend.server.request_limits import RequestLimits, body_limit_bytes
from tests.doubles.backend_modules import import_all


def app() -> FastAPI:
    made = FastAPI()

    @made.post("/v1/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    @made.post("/broken")
    async def broken(request: Request) -> None:
        raise RuntimeError(str(await request.body()))

    @made.put("/v1/kept")
    async def kept() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/private")

    @made.get("/v1/away")
    async def away() -> None:
        raise DatabaseUnreachable("postgresql://reader@db.internal/news", "the server is shutting down")

    install_problems(made)
    made.add_middleware(RequestLimits)
    return made


def every_error() -> list[type[OwnfeedError]]:
    import_all()
    found, queue = [], [OwnfeedError]
    while queue:
        found.append(queue.pop())
        queue += found[-1].__subclasses__()
    return found


def test_every_error_has_its_own_code_status_and_title() -> None:
    errors = every_error()
    known = catalogue()  # raises if one code means two things
    for error in errors:
        assert known[error.code] == (error.status, error.title)
        assert error.code == error.code.lower().replace("_", "-")
        assert 400 <= error.status < 600
    assert len(errors) > 15


def test_duplicate_error_codes_are_detected() -> None:
    class DuplicateCodeError(OwnfeedError):
        code, status, title = "not-found", 500, "Another meaning"

    try:
        with pytest.raises(ValueError, match="not-found"):
            catalogue()
    finally:
        DuplicateCodeError.code = DuplicateCodeError.title = "gone-again"


def test_problem_contains_the_facts_of_its_error() -> None:
    problem = problem_of(OwnfeedError("One sentence.", field="f", limit="l", current="r3"))
    assert problem.model_dump()["current"] == "r3"


def test_unknown_address_and_wrong_method_are_answered_with_problems() -> None:
    client = TestClient(app())
    missing, wrong = client.get("/nowhere"), client.get("/v1/echo")
    assert (missing.status_code, missing.json()["type"]) == (404, "urn:ownfeed:problem:not-found")
    assert (wrong.status_code, wrong.json()["type"]) == (405, "urn:ownfeed:problem:method-not-allowed")
    assert wrong.json()["limit"] == wrong.headers["allow"] == "POST"


def test_unexpected_error_shows_no_internals_and_logs_no_message(caplog: pytest.LogCaptureFixture) -> None:
    response = TestClient(app()).post("/broken", content=b"the secret " + b"recipe")
    assert (response.status_code, response.json()["type"]) == (500, "urn:ownfeed:problem:unexpected")
    assert "the secret" not in response.text + caplog.text
    assert "RuntimeError" in caplog.text
    assert "test_refusals.py" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "code", "logged"),
    [
        ("PUT", "/v1/kept", "disk-full", "/somewhere/private"),
        ("GET", "/v1/away", "database-unreachable", "db.internal"),
    ],
)
def test_transient_failure_answers_503_with_retry_after_and_no_internals(
    caplog: pytest.LogCaptureFixture, method: str, path: str, code: str, logged: str
) -> None:
    response = TestClient(app()).request(method, path)
    assert (response.status_code, response.json()["type"]) == (503, f"urn:ownfeed:problem:{code}")
    assert int(response.headers["retry-after"]) > 0
    assert logged not in response.text
    assert logged in caplog.text, "the operator is told which"


def test_body_limit_depends_on_the_route() -> None:
    assert body_limit_bytes("POST", "/v1/recall") == 64 * 1024
    assert body_limit_bytes("PUT", "/v1/rounds/round-3/updates/abc") == 64 * 1024 * 1024
    assert body_limit_bytes("POST", "/v1/news/bodies") == 128 * 1024


@pytest.mark.parametrize(("size", "status"), [(128 * 1024, 200), (128 * 1024 + 1, 413)])
def test_body_may_reach_its_limit_but_not_exceed_it(size: int, status: int) -> None:
    client = TestClient(app())
    declared = client.post("/v1/echo", content=b"x" * size)
    streamed = client.post("/v1/echo", content=iter([b"x" * (size - 1), b"x"]))
    assert (declared.status_code, streamed.status_code) == (status, status)


def test_request_log_has_no_query_and_no_pseudonym(caplog: pytest.LogCaptureFixture) -> None:
    client = TestClient(app())
    with caplog.at_level(logging.INFO, logger="backend.requests"):
        client.get("/console?token=secret-token")
        client.put("/v1/rounds/round-1/updates/some-pseudonym", content=b"abc")
    assert "GET /console 404" in caplog.text
    assert "PUT /v1/rounds/round-1/updates/... 404" in caplog.text
    assert "secret-token" not in caplog.text
    assert "some-pseudonym" not in caplog.text
