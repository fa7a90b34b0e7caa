"""A wrong address gets a browser a page, on the console and elsewhere on the backend, and a program a problem."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.console.routes import router
from backend.server.problems import install_problems
from protocol.ids import PROBLEM_MEDIA_TYPE
from tests.doubles.console_services import TOKEN, StandInServices

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    app.include_router(router(StandInServices()))  # type: ignore[arg-type]
    install_problems(app)
    return TestClient(app, base_url="http://127.0.0.1:8400")


@pytest.mark.parametrize("path", ["/console/nowhere", "/console/rounds/nowhere/at/all"])
def test_unknown_console_address_gets_a_console_page_after_sign_in(client: TestClient, path: str) -> None:
    assert client.get(path, headers=BROWSER).status_code == 401
    client.get(f"/console?token={TOKEN}", headers=BROWSER)
    answer = client.get(path, headers=BROWSER)
    assert answer.status_code == 404
    assert "The console has no page at this address." in answer.text
    assert '<a href="/console">Back</a>' in answer.text


def test_out_of_range_number_gets_a_page_naming_it(client: TestClient) -> None:
    client.get(f"/console?token={TOKEN}", headers=BROWSER)
    answer = client.get(f"/console/pool?page={10**30}", headers=BROWSER)
    assert answer.status_code in (200, 422)
    assert answer.headers["content-type"].startswith("text/html")


def test_unknown_address_gives_a_browser_a_page_and_a_program_a_problem(client: TestClient) -> None:
    for path, status in (("/nowhere", 404), ("/news/99999999999999999999999", 404), ("/", 200)):
        page = client.get(path, headers=BROWSER)
        assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert 'href="/console"' in page.text
        problem = client.get(path, headers={"accept": "application/json"})
        assert (problem.status_code, problem.headers["content-type"]) == (404, PROBLEM_MEDIA_TYPE)
    assert client.get("/v1/nowhere", headers=BROWSER).headers["content-type"] == PROBLEM_MEDIA_TYPE
    assert "<script>" not in client.get("/<script>alert(1)</script>", headers=BROWSER).text
