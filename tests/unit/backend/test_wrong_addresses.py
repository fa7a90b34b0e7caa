"""A wrong address in a browser gets a page, on the console and elsewhere on the backend; a program gets a problem."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.console.routes import router
from backend.problems import install_problems
from device_app.wire.problem import PROBLEM_MEDIA_TYPE
from tests.doubles.console_services import TOKEN, StandInServices

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    app.include_router(router(StandInServices()))  # type: ignore[arg-type]
    install_problems(app)
    return TestClient(app, base_url="http://127.0.0.1:8400")


@pytest.mark.parametrize("path", ["/console/nowhere", "/console/rounds/nowhere/at/all"])
def test_the_console_says_so_on_a_page_of_its_own_to_who_is_signed_in(client: TestClient, path: str) -> None:
    assert client.get(path, headers=BROWSER).status_code == 401
    client.get(f"/console?token={TOKEN}", headers=BROWSER)
    answer = client.get(path, headers=BROWSER)
    assert answer.status_code == 404
    assert "There is no page of the console at this address." in answer.text
    assert '<a href="/console">Back</a>' in answer.text


def test_a_figure_beyond_its_limit_gets_a_page_that_names_it(client: TestClient) -> None:
    client.get(f"/console?token={TOKEN}", headers=BROWSER)
    answer = client.get(f"/console/pool?page={10**30}", headers=BROWSER)
    assert answer.status_code in (200, 422)
    assert answer.headers["content-type"].startswith("text/html")


def test_elsewhere_a_browser_gets_a_page_and_a_program_a_problem(client: TestClient) -> None:
    for path, status in (("/nowhere", 404), ("/news/99999999999999999999999", 404), ("/", 200)):
        page = client.get(path, headers=BROWSER)
        assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert 'href="/console"' in page.text
        problem = client.get(path, headers={"accept": "application/json"})
        assert (problem.status_code, problem.headers["content-type"]) == (404, PROBLEM_MEDIA_TYPE)
    assert client.get("/v1/nowhere", headers=BROWSER).headers["content-type"] == PROBLEM_MEDIA_TYPE
    assert "<script>" not in client.get("/<script>alert(1)</script>", headers=BROWSER).text
