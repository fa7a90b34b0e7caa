"""Requests generated from the OpenAPI of the reader's pages, valid and broken.

No server error, no undocumented answer. The device is complete: its stores, its feed and its requests to a backend in
memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.pages.assets import read_assets
from device_app.pages.openapi import document
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.new_page import new_page
from tests.doubles.openapi_fuzz import A_FEW, EXAMPLES_VARIABLE, fuzz, shares
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter

STORIES_READ = 12
ERASE = "/privacy/erase"
HALF_AS_MANY = A_FEW // 2
"""Requests of each operation and kind, where the variable names no number: a page takes longer than an answer."""
SCRIPTED = ("/stance", "/story/{news_id}/react")
"""Forms that a script posts, too, and that answer it with 204."""


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    """A device that has synced, read, searched and reported, with interests to name."""
    settings = DeviceSettings(profile="anna", data_dir=tmp_path / "data")
    made = build_device(settings, transport=FakeBackend().transport())
    made.sync()
    made.interests.choose_sections(("section1",))
    for item in made.reading.feed().items[:STORIES_READ]:
        made.reading.open(item.card.id)
    made.library.save_search("axolotl")
    new_page(made)
    yield made
    made.close()


@pytest.fixture
def pages(device: Device) -> FastAPI:
    return create_app(device=device)


@pytest.fixture
def browser(pages: FastAPI, device: Device) -> TestClient:
    """A browser with the cookie."""
    home = f"http://127.0.0.1:{device.settings.port}"
    return enter(TestClient(pages, base_url=home, follow_redirects=False, headers=FOLLOWS_A_LINK), pages.state.page_key)


def headers_of(browser: TestClient) -> dict[str, str]:
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
    return {"Host": browser.base_url.netloc.decode(), "Cookie": cookies, **FOLLOWS_A_LINK}


def known_parameters(device: Device) -> list[dict[str, object]]:
    """Return existing things by the names of path parameters."""
    clicks = device.library.history().entries
    lines = device.privacy.overview().log.lines
    interests = device.interests.clusters()
    assert len(clicks) > 2
    assert interests
    oldest, newest = lines[-1].oldest_id, lines[0].entry_id
    return [
        {
            "news_id": item.card.id,
            "feed_id": device.reading.feed().feed_id,
            "section": item.card.section,
            "topic": item.card.topic,
            "publisher": item.card.publisher,
            "key": interests[at % len(interests)].key,
            "search_id": 1,
            "click_id": clicks[at].click_id,
            "entry_id": newest - at,
            "oldest_id": oldest,
            "newest_id": newest,
            "version": read_assets().version,
            "name": "css/tokens.css",
        }
        for at, item in enumerate(device.reading.feed().items[:3])
    ]


def forms(device: Device, exported: bytes) -> dict[str, list[object]]:
    """Return forms that a generator would hardly find. exported: a whole device, as its page exports it."""
    switches = {
        "mode": "code",
        "epsilon_per_day_reports": "8",
        "epsilon_per_day_training": "2",
        "clicks_per_report": "5",
        "training": "on",
        "counting": ["off", "on"],
        "epsilon_per_sum_alone": "24",
        "epsilon_per_click_alone": "8",
    }
    return {
        "POST /welcome": [{"section": ["section1", "section2"]}, {"skip": "yes"}],
        "POST /settings/level": [{"level": "strict"}, {"level": "custom"}, {"level": "balanced", "back": "/privacy"}],
        "POST /feed/more": [{"feed": device.reading.feed().feed_id}],
        "POST /list/refresh": [{"name": "fresh", "back": "/fresh"}, {"name": "none"}],
        "POST /searches": [{"words": "harbour", "back": "/search?q=harbour"}, {"words": " "}],
        "POST /story/{news_id}/react": [{"kind": "save", "back": "/saved"}, {"kind": "like", "back": "//evil.example"}],
        "POST /stance": [{"kind": "section", "name": "section1", "stance": "follow"}],
        "POST /interests/{key}/name": [{"name": "Ports"}],
        "POST /interests/{key}/mute": [{"muted": "yes"}, {"muted": "no"}],
        "POST /privacy/switches": [switches, switches | {"epsilon_per_report": "-1"}],
        "POST /privacy/import": [{"file": exported, "used": "no", "settings": "off"}],
        "POST /privacy/erase": [{"confirm": "erase"}, {"confirm": "no"}],
    }


def test_every_page_answer_is_documented_and_none_is_an_error(
    pages: FastAPI, device: Device, browser: TestClient
) -> None:
    described = pages.openapi()
    paths = described["paths"]
    paths[ERASE] = paths.pop(ERASE)  # last: all that comes after would find nothing
    bodies = forms(device, browser.get("/privacy/export").content)
    known, few = known_parameters(device), None if EXAMPLES_VARIABLE in os.environ else HALF_AS_MANY
    answers = fuzz(pages, described, headers=headers_of(browser), known=known, bodies=bodies, examples=few)
    print(shares(answers))  # noqa: T201
    assert not {answer for answer in answers if answer.rsplit(" ", 1)[1].startswith("5")}
    operations = {f"{method.upper()} {path}" for path, each in paths.items() for method in each}
    assert {answer.rsplit(" ", 1)[0] for answer in answers} == operations
    done = {answer.rsplit(" ", 1)[0] for answer in answers if answer.rsplit(" ", 1)[1][0] in "23"}
    own = {each for each in operations if each.split(" ")[1].startswith("/feeds")}
    assert done - own == operations - own, "valid requests are among them; a publisher's device has no feeds (404)"
    assert answers.total() >= int(os.environ.get(EXAMPLES_VARIABLE, "500"))


def test_script_form_answers_match_their_documentation(pages: FastAPI, device: Device, browser: TestClient) -> None:
    described = pages.openapi()
    described["paths"] = {path: described["paths"][path] for path in SCRIPTED}
    headers = headers_of(browser) | {"Accept": "application/json"}
    bodies = forms(device, b"")
    answers = fuzz(pages, described, headers=headers, known=known_parameters(device), bodies=bodies, examples=A_FEW)
    assert all(answers[f"POST {path} 204"] for path in SCRIPTED)


def test_unreadable_form_is_answered_with_a_page(browser: TestClient) -> None:
    broken = {"content-type": "multipart/form-data", "origin": str(browser.base_url)}
    answer = browser.post("/stance", content=b"--x\r\nnothing", headers=broken)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert "be read</h1>" in answer.text
    missing = browser.get("/privacy/requests/999999/body")
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")


def test_openapi_document_is_not_served_and_holds_no_reader_data(pages: FastAPI, browser: TestClient) -> None:
    for path in ("/openapi.json", "/docs", "/redoc"):
        assert browser.get(path).status_code == 404
    assert "anna" not in str(document(pages))


def test_documented_operations_without_the_key_answer_403(pages: FastAPI, browser: TestClient) -> None:
    without_key = headers_of(browser) | {"Cookie": "ownfeed=none"}
    described = pages.openapi()
    described["paths"] = {path: each for path, each in described["paths"].items() if not path.startswith("/static/")}
    answers = fuzz(pages, described, headers=without_key, examples=1)
    assert {answer.rsplit(" ", 1)[1] for answer in answers} == {"403"}
