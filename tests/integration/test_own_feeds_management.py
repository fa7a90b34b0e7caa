"""A reader manages their feeds on the pages of their own device, in front of their own server, both in this process.

Oracles: the server's rows, the requests to publishers, and the request log.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from protocol.own_feeds import Preparation
from tests.doubles.own_world import COURANT, POST, TOKEN, World, own_world
from tests.doubles.pages_reader import OURS


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with own_world(tmp_path) as one:
        yield one


def test_start_without_feeds_asks_for_one_then_shows_newest_stories(
    world: World,
) -> None:
    world.device.sync()
    assert world.pages.get("/").headers["location"] == "/feeds/start"
    page = world.pages.get("/feeds/start").text
    assert "Paste an address" in page
    assert "OPML" in page
    assert "https://xkcd.com/atom.xml" in page
    assert world.asked == [], "no publisher is asked before the reader chooses one"

    assert world.post("/feeds/manage/follow", url=COURANT, back="start").headers["location"].startswith("/?said=")
    assert "Waiting for the first stories" in world.pages.get("/").text
    world.read_feeds()
    text = world.pages.get("/").text
    titles = [text.index(f"Courant story {number}") for number in (2, 1, 0)]
    assert titles == sorted(titles), "newest first"
    assert world.device.release() is None


def test_story_opened_before_any_ranking_counts_as_a_click(world: World) -> None:
    world.device.sync()
    world.post("/feeds/manage/follow", url=COURANT)
    world.read_feeds()
    (newest, *_) = world.device.reading.newest(3)
    world.device.reading.click(newest.id)
    article = world.device.reading.open(newest.id, clicked=False)
    assert "The whole text of story 2." in " ".join(map(str, article.paragraphs))
    assert world.device.parts.stores.clicks.count() == 1
    assert newest.id in world.device.library.read_news()


def test_page_shows_the_progress_of_the_first_ranking(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = world.services.first_release
    assert first is not None
    monkeypatch.setattr(first, "_now", Preparation(step="Reading the headlines with BERT", done=300, total=1_000))
    world.post("/feeds/manage/follow", url=COURANT)
    world.read_feeds()
    assert "reading the headlines with BERT, 300 of 1,000" in world.pages.get("/").text
    assert "300 of 1,000" in world.pages.get("/pulse").json()["preparing"]


def test_feed_is_renamed_moved_paused_and_removed_with_undo(world: World) -> None:
    followed = world.services.feeds.followed
    world.device.sync()
    world.post("/feeds/manage/follow", url=COURANT, folder="News / Local")
    world.read_feeds()
    assert followed.one(COURANT).folder == ("News", "Local")
    world.post(
        "/feeds/manage/change",
        key=COURANT,
        title="The paper",
        folder="Papers",
        section="",
        pictures=["off", "on"],
        full_text=["off", "on"],
    )
    changed = followed.one(COURANT)
    assert (changed.title, changed.folder, changed.pictures, changed.full_text) == (
        "The paper",
        ("Papers",),
        True,
        True,
    )
    page = world.pages.get("/feeds/manage").text
    assert "The paper" in page
    assert "Papers" in page

    world.post("/feeds/manage/change", key=COURANT, paused="yes")
    assert followed.one(COURANT).paused
    listed = world.device.own_server.feed(COURANT)  # type: ignore[union-attr]
    assert listed is not None
    assert (listed.taken, listed.refused, listed.reasons) == (3, 0, ())
    assert "Paused" in world.pages.get(f"/feeds/manage/feed?feed={COURANT}").text
    world.post("/feeds/manage/change", key=COURANT, paused="no")
    assert not followed.one(COURANT).paused

    gone = world.post("/feeds/manage/remove", key=COURANT).headers["location"]
    assert followed.find(COURANT) is None
    assert "is no longer followed" in world.pages.get(gone).text
    world.post("/feeds/manage/restore", key=COURANT)
    restored = followed.one(COURANT)
    assert (restored.title, restored.folder) == ("The paper", ("Papers",))
    world.post("/feeds/manage/folder", folder="Papers", to="")
    assert followed.one(COURANT).folder == ()


def test_failing_feed_shows_its_reason_and_can_be_refreshed(world: World) -> None:
    world.device.sync()
    world.post("/feeds/manage/follow", url="https://dead.example/feed")
    world.read_feeds()
    page = world.pages.get("/feeds/manage").text
    assert "1 with problems" in page
    assert "the server answered 500" in page
    assert "1 with problems" in world.pages.get("/you").text
    world.asked.clear()
    world.post("/feeds/manage/refresh")
    world.services.feeds.step()
    assert world.asked == ["https://dead.example/feed"]


def test_opml_list_is_imported_with_a_report_and_exported(world: World) -> None:
    opml = (
        f'<opml><body><outline text="News"><outline text="My Courant" xmlUrl="{COURANT}"/></outline>'
        f'<outline text="Old" xmlUrl="ftp://old.example/feed"/><outline xmlUrl="{POST}"/></body></opml>'
    )
    world.device.sync()
    world.post("/feeds/manage/follow", url=POST)
    answer = world.pages.post("/feeds/manage/opml", files={"file": ("feeds.opml", opml.encode())}, headers=OURS)
    assert "1 feed added, 1 followed already, 1 left out" in answer.text
    assert "must be complete and start with http" in answer.text
    known = world.services.feeds.followed.one(COURANT)
    assert (known.title, known.folder) == ("My Courant", ("News",))
    exported = world.pages.get("/feeds/manage/feeds.opml")
    assert "attachment" in exported.headers["content-disposition"]
    assert COURANT in exported.text
    assert "My Courant" in exported.text
    refused = world.pages.post("/feeds/manage/opml", files={"file": ("x.opml", b"nothing")}, headers=OURS)
    assert refused.status_code == 422
    assert "x.opml" in refused.text


def test_refused_address_shows_the_reason_and_keeps_the_input(world: World) -> None:
    world.device.sync()
    answer = world.post("/feeds/manage/find", pasted="ftp://old.example/x")
    assert answer.status_code == 422
    assert "ftp://old.example/x" in answer.text
    assert 'role="alert"' in answer.text


def test_request_log_shows_each_request_without_the_token(world: World) -> None:
    world.device.sync()
    world.post("/feeds/manage/follow", url=COURANT)
    world.post("/feeds/manage/remove", key=COURANT)
    log = world.pages.get("/privacy?shown=all").text
    assert "To your own server on this machine: add a feed" in log
    assert "To your own server on this machine: remove a feed" in log
    everything = world.pages.get("/privacy/export").text
    assert "own server" in everything
    assert TOKEN not in everything


def test_server_answers_only_the_device_with_the_token(world: World) -> None:
    every = [getattr(route, "path", "") for route in world.backend.routes]
    paths = [path for path in every if path.startswith("/v1/own/")]
    assert len(paths) >= 11
    for client, headers in (
        (TestClient(world.backend, client=("127.0.0.1", 5)), {}),
        (TestClient(world.backend, client=("127.0.0.1", 5)), {"authorization": f"Bearer {TOKEN}x"}),
        (TestClient(world.backend, client=("192.168.1.7", 5)), {"authorization": f"Bearer {TOKEN}"}),
    ):
        for path in paths:
            for method in ("GET", "POST"):
                answer = client.request(method, path, headers=headers, content=b"{}")
                assert answer.status_code in (401, 405), (path, method)
    here = TestClient(world.backend, client=("127.0.0.1", 5))
    assert here.get("/v1/own/feeds", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
