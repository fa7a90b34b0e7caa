"""The sender of generated requests finds what an OpenAPI document omits, and accepts a correct one."""

from __future__ import annotations

from typing import Annotated

import pytest
from fastapi import FastAPI, HTTPException, Path

from tests.doubles import openapi_fuzz
from tests.doubles.openapi_fuzz import fuzz


def app(*, breaks_at: int | None = None) -> FastAPI:
    made = FastAPI()

    @made.get("/things/{number}", responses={404: {"description": "No such thing."}})
    def thing(number: Annotated[int, Path(ge=0, le=99)]) -> int:
        if breaks_at is not None and number >= breaks_at:
            raise HTTPException(500)
        if number > 50:
            raise HTTPException(404)
        return number

    return made


def test_documented_app_passes_with_valid_and_broken_requests() -> None:
    made = app()
    answers = fuzz(made, made.openapi())
    assert set(answers) == {f"GET /things/{{number}} {status}" for status in (200, 404, 422)}


def test_same_requests_are_sent_at_every_run() -> None:
    made = app()
    assert fuzz(made, made.openapi()) == fuzz(made, made.openapi())


def test_server_error_is_found_with_a_reproducing_request() -> None:
    made = app(breaks_at=7)
    with pytest.raises(AssertionError, match="http://testserver/things/"):
        fuzz(made, made.openapi())


def test_undocumented_answer_is_found() -> None:
    made = app()
    document = made.openapi()
    del document["paths"]["/things/{number}"]["get"]["responses"]["404"]
    with pytest.raises(AssertionError, match="Undocumented status code"):
        fuzz(made, document)


def test_known_paths_and_bodies_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(openapi_fuzz.EXAMPLES_VARIABLE, "60")
    made, asked = FastAPI(), list[str]()

    @made.post("/{name}", responses={400: {"description": "Not even text."}})
    def take(name: str, body: dict[str, str]) -> None:
        asked.append(f"{name} {body}")

    answers = fuzz(made, made.openapi(), known=[{"name": "known"}], bodies={"POST /{name}": [{"a": "b"}]})
    assert "known {'a': 'b'}" in asked
    assert sum(answers.values()) >= 60
