"""Searches and followed topics on a whole device: what they influence, and that their words are in no sent byte.

Oracles: the complete requests as the backend receives them; means of vectors by hand.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from numpy.typing import NDArray
from starlette.testclient import TestClient

from device_app.composition import build_device
from device_app.device import Device
from device_app.pages.local_origin import LocalOriginMiddleware
from device_app.pages.routes import router
from device_app.pages.story_links import StoryLinks
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.reporter import ReportInput
from device_app.privacy.sealed_reports import BOTH_VIEWS
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from protocol.news import NewsCard
from protocol.recall import CodeReport, RecallRequest
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import click_on
from tests.doubles.new_page import new_page
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter, page_key

TOPIC, WANTED = "section2 topic1", "section5 topic0"
WORDS = "axolotl quagga"
Make = Callable[..., Device]


class RecordingBackend(FakeBackend):
    """The fake backend, which records every request byte by byte: method, address, headers and body."""

    def answer(self, request: httpx.Request) -> httpx.Response:
        received = b"\n".join([request.method.encode(), str(request.url).encode(), *sum(request.headers.raw, ())])
        self.received = [*getattr(self, "received", []), received + b"\n" + request.read()]
        return super().answer(request)


@pytest.fixture
def backend() -> RecordingBackend:
    pool = synthetic_pool()
    named = set(pool.of_topic(WANTED)[:6])
    cards = tuple(
        card.model_copy(update={"title": f"Axolotl and quagga: {card.title}"}) if row in named else card
        for row, card in enumerate(pool.cards)
    )
    return RecordingBackend(pool=replace(pool, cards=cards))


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def make(tmp_path: Path, backend: RecordingBackend, clock: StillClock) -> Iterator[Make]:
    made: list[Device] = []

    def build(**privacy: object) -> Device:
        device = build_device(
            DeviceSettings(
                data_dir=tmp_path,
                privacy=PrivacySettings.model_validate(privacy),
                performance=PerformanceSettings(bodies_wait_sec=0.2),
            ),
            transport=backend.transport(),
            noise=SeededNoise(3),
            chance=random.Random(5),
            clock=clock,
        )
        made.append(device)
        device.reading.feed(refresh=True)
        return device

    yield build
    for device in made:
        device.close()


def vectors(device: Device, backend: FakeBackend, cards: Sequence[NewsCard]) -> NDArray[np.float32]:
    present, found = device.parts.stores.news.vectors([card.id for card in cards], backend.encoder)
    return found[present]


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    mean = rows.mean(axis=0)
    scaled: NDArray[np.float32] = mean / np.linalg.norm(mean)
    return scaled


def clear_code(device: Device) -> int:
    report = device.privacy.overview().report
    assert report is not None
    assert report.clear is not None
    return int(report.clear[0][0])


def test_search_is_answered_locally_and_can_be_saved_followed_and_deleted(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    asked = len(backend.requests)
    found = device.library.search(WORDS).cards
    assert {card.topic for card in found} == {WANTED}
    assert len(found) >= 3
    assert device.library.search("axol QUAG").cards == found, "words may be begun only"
    saved = device.library.save_search(f" {WORDS} ")
    clock.go_on(60)
    line = device.library.searches().searches[0]
    assert (line.search.words, line.stories, line.new) == (WORDS, len(found), 0)
    device.interests.stance("topic", WANTED, "follow")
    assert [topic.name for topic in device.library.searches().topics] == [WANTED]
    assert device.library.searches().saved(WORDS) == saved
    assert device.library.delete_search(saved.id)
    assert device.library.searches().searches == ()
    assert len(backend.requests) == asked, "none of it asked anybody anything"


def test_saved_searches_weigh_as_much_in_the_report_as_reading(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    found = device.library.search(WORDS).cards
    device.library.save_search(WORDS)
    click_on(device, backend, TOPIC, 5, clock)
    assert new_page(device).mode == "personal"
    read = [
        click.vector for click in device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
    ]
    searched = unit(vectors(device, backend, found[:20]))
    held = device.parts.searched.vector(backend.encoder)
    assert held is not None
    np.testing.assert_allclose(held, searched, atol=1e-6)
    both = unit(np.stack([unit(np.stack(read)), searched]))
    assert clear_code(device) == int(np.argmax(backend.prototypes @ both))
    entry = next(row for row in device.privacy.overview(shown="all").log.lines if "interest report" in row.words)
    assert entry.words.endswith(BOTH_VIEWS)
    charge = device.parts.stores.ledger_entries.entries().rows[0]
    assert charge.parameters["views"] == 2
    assert charge.epsilon == 4, "two views cost what one does: it is one report"


def test_report_from_both_views_differs_from_one_of_either_view_alone(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    click_on(device, backend, TOPIC, 5, clock)
    read = np.stack(
        [click.vector for click in device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active]
    )
    index, news = device.parts.stores.search_index, device.parts.stores.news
    searched = unit(vectors(device, backend, news.cards(index.find(WORDS, 20))))
    corners = np.stack([unit(read), searched, unit(np.stack([unit(read), searched]))])
    reported = [
        int(np.argmax(corners @ reader.vector))
        for reader in (ReportInput(read), ReportInput(searched[None]), ReportInput(read, searched=searched))
    ]
    assert reported == [0, 1, 2]


def test_reader_can_exclude_searches_from_reports_at_once(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    device.library.save_search(WORDS)
    click_on(device, backend, TOPIC, 5, clock)
    new_page(device)
    assert device.library.searches().use == "report"
    device.privacy.change(searches_in_reports=False)
    device.parts.serving.feed_context.recall.forget()
    new_page(device)
    read = [
        click.vector for click in device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
    ]
    assert clear_code(device) == int(np.argmax(backend.prototypes @ unit(np.stack(read))))
    assert device.library.searches().use == "off"
    words = [row.words for row in device.privacy.overview(shown="all").log.lines if "interest report" in row.words]
    assert len(words) == 2
    assert BOTH_VIEWS not in words[0]
    assert BOTH_VIEWS in words[1]
    assert device.settings.privacy.searches_in_reports, "the switch is the reader's, kept in the store"
    device.privacy.change(mode="topics")
    assert device.library.searches().use == "off"
    device.privacy.change(searches_in_reports=True)
    assert device.library.searches().use == "mode"


def test_deleted_searches_and_blocked_topics_do_not_influence_the_report(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    saved = device.library.save_search(WORDS)
    searched = device.parts.searched
    assert searched.vector(backend.encoder) is not None
    device.library.delete_search(saved.id)
    assert searched.vector(backend.encoder) is None
    device.interests.stance("topic", TOPIC, "follow")
    followed = searched.vector(backend.encoder)
    assert followed is not None
    assert followed @ unit(backend.pool.vectors[backend.pool.of_topic(TOPIC)]) > 0.8
    device.interests.stance("topic", TOPIC, "block")
    assert searched.vector(backend.encoder) is None
    device.interests.stance("topic", WANTED, "block")
    device.library.save_search(WORDS)
    assert searched.vector(backend.encoder) is None, "all it finds is blocked"
    assert device.library.search(WORDS).cards, "whoever searches for it still finds it"


def test_search_vector_comes_from_its_results_and_is_renewed_daily(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    device.library.save_search(WORDS)
    before = device.parts.searched.vector(backend.encoder)
    cards = device.library.search(WORDS).cards
    gone, kept = cards[0], cards[1:]
    with device.parts.stores.database.transaction():
        device.parts.stores.database.write("DELETE FROM news WHERE id = ?", (gone.id,))
    np.testing.assert_array_equal(device.parts.searched.vector(backend.encoder), before)
    clock.go_on(24 * 3600)
    again = device.parts.searched.vector(backend.encoder)
    assert again is not None
    np.testing.assert_allclose(again, unit(vectors(device, backend, kept)), atol=1e-6)
    with device.parts.stores.database.transaction():
        device.parts.stores.database.write("DELETE FROM news")
    clock.go_on(24 * 3600)
    assert device.parts.searched.vector(backend.encoder) is not None, "it means what it meant"
    assert device.parts.searched.vector("another encoder") is None


def test_opened_result_is_remembered_until_its_click_is_deleted(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    found = device.library.search(WORDS).cards
    device.reading.open(found[0].id, found=True)
    device.reading.open(found[1].id)
    searches = device.parts.stores.searches
    assert [news_id for news_id, _ in searches.openings()] == [found[0].id]
    held = searches.meanings(backend.encoder)["news", found[0].id]
    np.testing.assert_allclose(held.vector, unit(vectors(device, backend, found[:1])), atol=1e-6)
    entries = device.library.history().entries
    for entry in entries:
        device.library.delete_click(entry.click_id)
    assert searches.openings() == []
    assert ("news", found[0].id) not in searches.meanings(backend.encoder)


def test_search_and_topic_names_appear_in_no_sent_byte(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    for mode in ("code", "basis_laplace", "none"):
        device = make(mode=mode, epsilon_per_day_reports=1e6, epsilon_lifetime_reports=None)
        device.library.search("xyzzyword never saved")
        device.library.save_search(WORDS)
        device.library.save_search("plughword alone")
        device.interests.stance("topic", "frobnitz topic", "follow")
        device.interests.stance("publisher", "Frobnitz Press", "block")
        for card in device.library.search(WORDS).cards[:3]:
            device.reading.open(card.id, found=True)
        click_on(device, backend, TOPIC, 5, clock)
        new_page(device)
        while device.prefetch_step():
            pass
        device.sync()
        device.close()
    assert any(b"/v1/recall" in request for request in backend.received)
    assert len(backend.received) > 10
    for request in backend.received:
        for word in (b"xyzzyword", b"plughword", b"frobnitz", b"axolotl", b"quagga"):
            assert word not in request.lower(), request[:200]


def test_stored_searches_are_exported_and_erased(make: Make, tmp_path: Path) -> None:
    device = make()
    device.library.save_search(WORDS)
    device.interests.stance("topic", WANTED, "follow")
    exported = device.privacy.export()
    assert [row["words"] for row in exported["views"]["searches"]["search"]] == [WORDS]
    assert [row["name"] for row in exported["views"]["searches"]["stance"]] == [WANTED]
    assert not [name for name in exported["tables"] if name.startswith("news_text")], "the index is the news again"
    device.privacy.erase()
    assert device.library.searches().searches == ()
    assert device.privacy.export()["views"]["searches"]["search"] == []
    device.close()
    for file in tmp_path.rglob("*.sqlite*"):
        assert b"axolotl" not in file.read_bytes().lower(), file.name


def test_deleted_data_is_in_no_file_while_the_device_runs(make: Make, tmp_path: Path) -> None:
    device = make()
    device.library.save_search("dormouse")
    device.interests.stance("topic", "okapi", "follow")
    device.parts.stores.clicks.add("plughword", None, NOW)
    assert kept_words(tmp_path) == {b"dormouse", b"okapi", b"plughword"}
    device.library.delete_search(device.library.searches().searches[0].search.id)
    assert kept_words(tmp_path) == {b"okapi", b"plughword"}
    device.interests.stance("topic", "okapi", None)
    assert kept_words(tmp_path) == {b"plughword"}
    device.library.delete_click(device.parts.stores.clicks.latest_id())
    assert kept_words(tmp_path) == set()
    device.close()


def kept_words(folder: Path) -> set[bytes]:
    """Return which of these words are in a database or its write-ahead log."""
    files = [file.read_bytes().lower() for file in folder.rglob("*.sqlite*")]
    return {word for word in (b"dormouse", b"okapi", b"plughword") if any(word in file for file in files)}


def test_local_recall_uses_reading_and_searches(make: Make, backend: RecordingBackend, clock: StillClock) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(mode="broadcast")
    device.sync()
    click_on(device, backend, TOPIC, 4, clock)

    def share() -> float:
        found = device.parts.serving.feed_context.recall
        device.reading.feed(refresh=True)
        reading = device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
        models = device.parts.serving.models()
        reader = found._reports.reader(models, np.stack([click.vector for click in reading]))
        nearest = found.broadcast.find(reader.vector, 60, backend.encoder)
        return float(np.mean([card.topic == WANTED for card in nearest.cards]))

    before = share()
    device.library.save_search(WORDS)
    assert share() > before + 0.1
    assert "/v1/recall" not in backend.paths()
    assert device.library.searches().use == "here"


def test_code_report_with_searches_is_still_one_number(
    make: Make, backend: RecordingBackend, clock: StillClock
) -> None:
    device = make()
    device.library.save_search(WORDS)
    click_on(device, backend, TOPIC, 5, clock)
    new_page(device)
    (body,) = [body for _, path, body in backend.requests if path == "/v1/recall"]
    request = RecallRequest.model_validate_json(body)
    assert isinstance(request.report, CodeReport)
    assert set(request.report.model_dump()) == {"kind", "codebook", "code"}


def test_search_pages_work_on_a_complete_device(make: Make, backend: RecordingBackend) -> None:
    device = make()
    home = f"http://127.0.0.1:{device.settings.port}"
    ours = {"origin": home, "sec-fetch-site": "same-origin"}
    asked = len(backend.received)
    app = FastAPI(openapi_url=None)
    app.include_router(router(device, page_key(device.settings.port)))
    app.add_middleware(LocalOriginMiddleware, port=device.settings.port, key=page_key(device.settings.port))
    reader = enter(TestClient(app, base_url=home, headers=FOLLOWS_A_LINK), page_key(device.settings.port))
    found = device.library.search(WORDS).cards
    results = reader.get("/search", params={"q": WORDS})
    assert f"{len(found)} stories<" in results.text
    link = StoryLinks(page_key(device.settings.port)).link(found[0].id, found=WORDS)
    assert link.startswith(f"/story/{found[0].id}?found=axolotl+quagga&token=")
    assert escape(link) in results.text
    assert reader.post("/searches", data={"words": WORDS}, headers=ours).status_code == 200
    assert reader.get(link).status_code == 200
    assert [news_id for news_id, _ in device.parts.stores.searches.openings()] == [found[0].id]
    for path in ("/searches", "/search"):
        assert "axolotl quagga" in reader.get(path).text
    privacy = reader.get("/privacy").text
    assert "1 search, 0 topics" in privacy
    assert len(backend.received) == asked
