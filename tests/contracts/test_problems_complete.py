"""Every refusal of the whole server is a problem of the catalogue (RFC 9457), on every route."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
from fastapi import FastAPI
from httpx2 import Response  # what the test client of Starlette answers with

from backend.errors import OwnfeedError, catalogue
from backend.server.problems import URN
from protocol.ids import PROBLEM_MEDIA_TYPE, Problem
from tests.doubles.backend_modules import import_all
from tests.doubles.recall_app import Running, running_server

METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH"}
GOOD_PARTS = {
    "{sha256}": "ab" * 32,
    "{release}": "r1",
    "{shard}": "2026-11-20.0",
    "{round_id}": "round-1",
    "{pseudonym}": "a" * 22,
    "{number}": "1",
}
TAKES_JSON = {
    ("POST", "/v1/recall"),
    ("POST", "/v1/news/bodies"),
    ("POST", "/v1/rounds/check-in"),
    ("POST", "/v1/admin/rounds"),
    ("PUT", "/v1/admin/timetable/schedule"),
}
TAKES_TENSORS = {("PUT", "/v1/rounds/{round_id}/updates/{pseudonym}")}
SUM_STAGES = ("keys", "shares", "complaints", "agree", "unmask")
TAKES_A_PLACE = {("PUT", f"/v1/rounds/{{round_id}}/{stage}/{{pseudonym}}") for stage in (*SUM_STAGES, "masked")}
"""Of a secure sum: who has no place in the round is refused before the body is read."""
TAKES_NOTHING = {
    ("POST", "/v1/admin/rounds/{round_id}/cancel"),
    ("POST", "/v1/admin/queue/{number}/cancel"),
    ("POST", "/v1/admin/timetable/pause"),
    ("POST", "/v1/admin/timetable/resume"),
    ("DELETE", "/v1/admin/timetable/schedule"),
}


def errors() -> set[type[OwnfeedError]]:
    import_all()
    found: set[type[OwnfeedError]] = set()
    queue: list[type[OwnfeedError]] = [OwnfeedError]
    while queue:
        one = queue.pop()
        queue += one.__subclasses__()
        if one.__module__.startswith("backend."):
            found.add(one)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("problems"), news=40) as one:
        yield one


def routes(app: FastAPI) -> dict[str, set[str]]:
    """Return methods by path template, with console and static files."""
    found: dict[str, set[str]] = {}
    for path, methods in _flat(app.routes, ""):
        found.setdefault(path, set()).update(methods)
    return found


def _flat(some: Iterable[object], prefix: str) -> Iterator[tuple[str, set[str]]]:
    """Yield all routes, with those of included routers, which FastAPI keeps together under their prefix."""
    for route in some:
        inner = getattr(route, "original_router", None)
        if inner is None:
            yield prefix + str(route.path), set(route.methods or ())  # type: ignore[attr-defined]
        else:
            yield from _flat(inner.routes, prefix + route.include_context.prefix)  # type: ignore[attr-defined]


def filled(path: str) -> str:
    for name, value in GOOD_PARTS.items():
        path = path.replace(name, value)
    return re.sub(r"\{[^}]+\}", "x", path)


def problem(answer: Response) -> Problem:
    """Return the answer as a problem that the catalogue knows."""
    assert answer.headers["content-type"].split(";")[0] == PROBLEM_MEDIA_TYPE, (answer.status_code, answer.text[:200])
    found = Problem.model_validate_json(answer.content)
    known = catalogue()[found.type.removeprefix(URN)]
    assert (found.status, found.title) == (known.status, known.title) == (answer.status_code, found.title)
    assert found.detail.endswith(".")
    assert "\n" not in found.detail
    return found


def test_every_error_has_its_own_code_status_and_title() -> None:
    seen: dict[str, str] = {}
    for error in sorted(errors(), key=lambda one: one.__qualname__):
        assert {"code", "status", "title"} <= vars(error).keys(), f"{error.__qualname__} borrows its meaning"
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", error.code), error.code
        assert 400 <= error.status < 600, error.code
        assert error.title[0].isupper() or error.title.startswith("JSON"), error.title
        assert not error.title.endswith("."), error.title
        assert seen.setdefault(error.code, error.__qualname__) == error.__qualname__, error.code
        assert error.__doc__, error.__qualname__
    assert len(seen) > 25


def test_every_server_route_is_checked(server: Running) -> None:
    found = routes(server.app)
    api = {(method, path) for path, methods in found.items() for method in methods if path.startswith("/v1/")}
    changing = {(method, path) for method, path in api if method not in ("GET", "HEAD")}
    assert changing == TAKES_JSON | TAKES_TENSORS | TAKES_A_PLACE | TAKES_NOTHING, "say here what a new route takes"
    assert {path for path in found if path.startswith("/v1/")} >= {"/v1/health", "/v1/blobs/{sha256}", "/v1/admin/pool"}
    assert any(path.startswith("/console") for path in found)


def test_wrong_method_is_answered_with_a_problem_on_every_route(server: Running) -> None:
    tried = 0
    for path, methods in routes(server.app).items():
        for method in METHODS - methods - ({"GET"} if "HEAD" in methods else set()):
            answer = server.client.request(method, filled(path), follow_redirects=False)
            found = problem(answer)
            assert found.status in (405, 422), f"{method} {path}: {found}"
            if found.status == 405:
                assert answer.headers["allow"]
            tried += 1
    assert tried > 60


def auth(server: Running) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.services.admin_token}"}


@pytest.mark.parametrize(("method", "path"), sorted(TAKES_JSON))
@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[1, 2]", "application/json", 422),
        (b'{"unknown": 1}', "application/json", 422),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
    ],
)
def test_malformed_json_body_is_answered_with_a_problem_on_every_route(
    server: Running, method: str, path: str, content: bytes, kind: str, status: int
) -> None:
    answer = server.client.request(method, path, content=content, headers=auth(server) | {"Content-Type": kind})
    assert problem(answer).status == status


def test_malformed_update_is_answered_with_a_problem(server: Running) -> None:
    (method, path) = next(iter(TAKES_TENSORS))
    assert problem(server.client.request(method, filled(path), content=b"x")).status == 415
    right = {"Content-Type": "application/vnd.safetensors"}
    assert problem(server.client.request(method, filled(path), content=b"x", headers=right)).status in (404, 409, 410)


@pytest.mark.parametrize(("method", "path"), sorted(TAKES_A_PLACE))
def test_secure_sum_message_from_a_stranger_is_answered_with_a_problem(server: Running, method: str, path: str) -> None:
    assert problem(server.client.request(method, filled(path), content=b"x")).status == 415
    kind = "application/octet-stream" if "/masked/" in path else "application/json"
    refused = server.client.request(method, filled(path), content=b"{}", headers={"Content-Type": kind})
    # A short message is read before its place is looked up: both ask the database the same.
    assert problem(refused).status == (404 if "/masked/" in path else 422)
    if "/unmask/" not in path:
        assert problem(server.client.get(filled(path))).status == 404


def test_malformed_address_is_answered_with_a_problem_that_does_not_quote_it(server: Running) -> None:
    tried = 0
    for path, methods in routes(server.app).items():
        if not path.startswith("/v1/") or "{" not in path:
            continue
        for method in methods - {"HEAD"}:
            bad = re.sub(r"\{[^}]+\}", "Ada%20Lovelace", path)
            found = problem(server.client.request(method, bad, headers=auth(server)))
            assert found.status == 422
            assert found.field
            assert "Lovelace" not in found.model_dump_json()
            tried += 1
    assert tried >= 6


def test_missing_resource_is_answered_with_a_problem(server: Running) -> None:
    for path in ("/v1/blobs/" + "ab" * 32, "/v1/rounds/round-9", "/v1/releases/15/vectors"):
        assert problem(server.client.get(path)).status == 404, path


def test_operator_routes_check_the_token_first(server: Running) -> None:
    for path, methods in routes(server.app).items():
        if path.startswith("/v1/admin"):
            for method in methods - {"HEAD"}:
                assert problem(server.client.request(method, filled(path), content=b"{")).status == 401, path
