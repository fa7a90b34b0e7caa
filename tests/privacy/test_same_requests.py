"""With reports, counts and training switched off, requests don't depend on the reader.

A backend that keeps every byte tries to distinguish readers by what they request, in which order and how often: one who
reads, searches, follows and saves; one who does the same with other articles; and one who opens nothing at all.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.requests import COMMON
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.new_page import new_page
from tests.doubles.news import NOW
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter

OFF: dict[str, object] = {"counting": False, "training": False}
READERS = (None, 0, 1)
"""Nobody, and who reads what stands at even and at odd places."""
Request = tuple[str, str, bytes]


def lived(folder: Path, reads: int | None, privacy: dict[str, object]) -> tuple[list[Request], int]:
    """Return the requests of a reader over two days, and how many stories the reader opened."""
    backend, clock = FakeBackend(), StillClock(NOW)
    device = build_device(
        DeviceSettings.model_validate({"data_dir": folder, "privacy": privacy}),
        transport=backend.transport(),
        noise=SeededNoise("same requests"),
        chance=random.Random(5),
        clock=clock,
    )
    for _ in range(2):
        device.sync()
        device.reading.feed(refresh=True)
        if reads is not None:
            cards = [card for listed in device.reading.explore() for card in listed.cards][reads::2]
            for card in cards[:8]:
                clock.go_on(10.0)
                device.reading.open(card.id)
            first, second = (item.card for item in device.reading.feed().items[:2])
            device.library.react(first.id, "save")
            device.library.react(second.id, "less")
            device.interests.stance("topic", cards[0].topic, "follow")
            device.library.save_search(first.title)
            device.library.search(second.title)
            device.library.delete_click(device.library.history().entries[0].click_id)
        new_page(device)
        while device.prefetch_step():
            pass
        device.train_step()
        device.privacy.overview()
        if reads is not None:
            device.training()
        clock.go_on(24 * 3_600.0 - (80.0 if reads is not None else 0.0))
    opened = device.library.history().total
    device.close()
    return backend.requests, opened


@pytest.mark.parametrize("mode", ["none", "broadcast", "code"])
def test_requests_are_independent_of_the_reader_when_all_channels_are_off(tmp_path: Path, mode: str) -> None:
    privacy = OFF | {"mode": mode} | ({"epsilon_per_day_reports": 0.0} if mode == "code" else {})
    lives = {reads: lived(tmp_path / str(reads), reads, privacy) for reads in READERS}
    assert lives[None][1] == 0
    assert all(lives[reads][1] > 5 for reads in READERS if reads is not None), "they have read"
    quiet = lives[None][0]
    assert len(quiet) > 5
    for reads in READERS:
        assert lives[reads][0] == quiet, reads


def test_comparison_detects_the_reader_when_reports_are_on(tmp_path: Path) -> None:
    """The comparison works: a report and the requests after its answer are noticed at once."""
    quiet, read = (lived(tmp_path / str(reads), reads, OFF)[0] for reads in READERS[:2])
    assert quiet != read


def test_default_list_requests_are_identical_for_all_readers(tmp_path: Path) -> None:
    """Reports are on, so texts requested after a report are counted apart from those of the default list."""
    asked = {}
    for reads in READERS:
        lived(tmp_path / str(reads), reads, OFF)
        with closing(sqlite3.connect(DeviceSettings(data_dir=tmp_path / str(reads)).database)) as database:
            texts = "SELECT mechanism, body FROM traffic WHERE purpose = 'bodies' ORDER BY id"
            asked[reads] = database.execute(texts).fetchall()
    everybodys = {reads: [row for row in rows if row[0] == COMMON] for reads, rows in asked.items()}
    assert everybodys[None] == everybodys[0] == everybodys[1] != []
    assert len({str(rows) for rows in asked.values()}) > 1, "texts after a report differ, so a difference is noticed"


@pytest.mark.parametrize("reads", [False, True])
def test_round_polls_are_independent_of_reading(tmp_path: Path, reads: bool) -> None:
    """Counts are on, as by default. Missing polls would reveal within seconds when stories are opened."""
    backend, clock = FakeBackend(), StillClock(NOW)
    settings = DeviceSettings.model_validate({"data_dir": tmp_path})
    device = build_device(settings, transport=backend.transport(), chance=random.Random(5), clock=clock)
    device.sync()
    feed = new_page(device)
    backend.requests.clear()
    for item in feed.items[:3]:
        clock.go_on(60.0)
        if reads:
            device.reading.open(item.card.id, feed.feed_id)
        clock.go_on(5.0)
        device.train_step()
    device.close()
    assert backend.paths() == ["/v1/rounds/current"] * 3


@pytest.mark.parametrize("privacy", [{}, {"training": True, "epsilon_per_day_training": 5.0}, OFF])
def test_opening_the_training_page_sends_no_request(tmp_path: Path, privacy: dict[str, object]) -> None:
    """Regression: opening the page requested the running round, at most once in five seconds."""
    backend, clock = FakeBackend(), StillClock(NOW)
    settings = DeviceSettings.model_validate({"data_dir": tmp_path, "privacy": privacy})
    device = build_device(settings, transport=backend.transport(), chance=random.Random(5), clock=clock)
    device.sync()
    app = create_app(device=device)
    home = f"http://127.0.0.1:{settings.port}"
    browser = enter(TestClient(app, base_url=home, follow_redirects=False, headers=FOLLOWS_A_LINK), app.state.page_key)
    backend.requests.clear()
    for _ in range(3):
        assert browser.get("/training").status_code == 200
        clock.go_on(60.0)
    assert backend.requests == []
    device.train_step()
    looked = {"/v1/rounds/current"} if privacy is not OFF else set()
    assert set(backend.paths()) == looked, "the background's own look"
    device.close()


def test_opening_any_page_sends_no_request(tmp_path: Path) -> None:
    """The background sends requests at its own pace; a page shows what is stored."""
    backend, clock = FakeBackend(), StillClock(NOW)
    settings = DeviceSettings.model_validate({"data_dir": tmp_path})
    device = build_device(settings, transport=backend.transport(), chance=random.Random(5), clock=clock)
    device.sync()
    feed = new_page(device)
    while device.prefetch_step():
        pass
    app = create_app(device=device)
    home = f"http://127.0.0.1:{settings.port}"
    browser = enter(TestClient(app, base_url=home, follow_redirects=False, headers=FOLLOWS_A_LINK), app.state.page_key)
    card = feed.items[0].card
    here = {
        "news_id": card.id, "feed_id": feed.feed_id, "section": card.section, "topic": card.topic, "version": "0",
        "publisher": card.publisher, "name": "none", "entry_id": "1", "oldest_id": "1", "newest_id": "3",
    }  # fmt: skip
    backend.requests.clear()
    paths = [path for path, methods in app.openapi()["paths"].items() if "get" in methods]
    assert len(paths) > 30
    found = [browser.get(path.format_map(here)).status_code for path in paths]
    assert found.count(200) > 25
    assert backend.requests == []
    pressed = {"/feed/refresh": {}, "/feed/more": {"feed": feed.feed_id}, "/welcome": {"skip": "1"}}
    ours = {"origin": home, "sec-fetch-site": "same-origin"}
    assert {browser.post(path, data=data, headers=ours).status_code for path, data in pressed.items()} == {303}
    assert len(device.reading.feed().items) == 30
    assert backend.requests == [], "nor a page that is asked for"
    device.close()
