"""The order in which pictures are fetched, and how a slow or busy server affects others."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from backend.news.pictures import fetcher as fetcher_module
from backend.news.pictures.fetcher import FEED_AT_ONCE, LONGEST_WAIT, in_turn
from backend.news.pictures.store import PicturedStory
from backend.news.pictures.worker import FIRST_LIST_AFTER, PictureRules, PictureWorker
from backend.news.public_addresses import networks
from protocol.pictures import PictureList
from tests.doubles.picture_files import small_picture
from tests.doubles.picture_rig import EVERY, FEED, OTHER, Rig, picture_response


def test_pictures_not_fetched_yet_do_not_displace_fetched_ones(
    engine: Engine, tmp_path: Path, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Rig(engine, tmp_path / "small", served_bytes=10_000 + len(small_picture("teal")))
    small.add("a")
    small.worker.step()
    monkeypatch.setattr(fetcher_module, "FETCHED_AT_ONCE", 0)
    small.add(*(f"n{number}" for number in range(8)))
    small.clock.go_on(EVERY.total_seconds())
    small.worker.step()
    assert sorted(small.served()) == ["a"]


def story(number: int, feed: str, host: str) -> PicturedStory:
    return PicturedStory(number, f"n{number}", f"https://{host}/{number}", None, 0, None, None, None, None, feed)


def test_picture_downloads_alternate_between_feeds_and_hosts() -> None:
    many = [story(number, "slow", "IMG.example:443" if number % 2 else "img.example") for number in range(99)]
    fewer = [story(100, "small", "b.example"), story(101, "small", "b.example"), story(102, "small", "c.example")]
    batch = in_turn([*many, *fewer])
    assert [each.number for each in batch[:6]] == [0, 100, 102, 1, 101, 2]
    assert len(batch) == FEED_AT_ONCE + len(fewer)


def test_one_host_in_any_spelling_gets_one_request_at_a_time(rig: Rig) -> None:
    rig.answer = lambda _: httpx.Response(503)
    for number, host in enumerate(("img.example", "IMG.example", "img.example:443", "img.example.")):
        rig.add(f"n{number}", picture=f"https://{host}/{number}.jpg")
    rig.worker.step()
    assert len(rig.asked) == 1


def test_first_list_waits_a_limited_time_for_due_pictures(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "FETCHED_AT_ONCE", 1)
    rig.add("a", "b", "c", "d")
    assert rig.worker.step()
    assert rig.served() == {}
    rig.clock.go_on(FIRST_LIST_AFTER.total_seconds())
    rig.shards._read = None
    assert rig.worker.step()
    assert len(PictureList.model_validate_json(rig.shards._stored()[0]).shards) == 1


def test_edit_that_only_signs_the_picture_address_again_keeps_picture_and_place(rig: Rig) -> None:
    rig.answer = lambda url: picture_response(b"same") if "/a." in url else picture_response(url.encode())
    rig.add("a", picture="https://img.example/a.jpg?signed=1")
    rig.worker.step()
    rig.add("b")
    rig.worker.step()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    before, listed = rig.served(), rig.shards._stored()[0]
    rig.add("a", picture="https://img.example/a.jpg?signed=2", abstract="Another one.")
    rig.answer = lambda _: httpx.Response(503)
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    assert rig.asked[-1].endswith("signed=2")
    assert rig.served() == before, "until it is known what is there"
    rig.answer = lambda _: picture_response(b"same")
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    assert rig.shards._stored()[0] == listed
    assert rig.asked.count("https://img.example/a.jpg?signed=2") == 2
    rig.add("a", picture="https://img.example/a.jpg?signed=3", abstract="A third.")
    rig.answer = lambda _: httpx.Response(404)
    rig.worker.step()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    assert sorted(rig.served()) == ["b"], "what its publisher has replaced by nothing goes"


def test_feed_that_redirects_to_a_failing_host_does_not_block_that_host_for_others(rig: Rig) -> None:
    rig.feeds.allow_pictures(OTHER, True)
    rig.answer = lambda url: (
        httpx.Response(302, headers={"location": "https://victim.example/x"})
        if "evil.example" in url
        else httpx.Response(503, headers={"retry-after": "86400"})
    )
    rig.add("a", picture="https://evil.example/a.jpg", feed=OTHER)
    rig.worker.step()
    rig.answer = lambda _: picture_response(b"bytes")
    rig.add("b", picture="https://victim.example/b.jpg")
    rig.worker.step()
    assert rig.asked[-1] == "https://victim.example/b.jpg"
    rig.asked.clear()
    rig.add("c", picture="https://victim.example/c.jpg", feed=OTHER)
    rig.worker.step()
    assert rig.asked == [], "for the feed itself its host rests"
    rig.clock.go_on(LONGEST_WAIT.total_seconds())
    rig.worker.step()
    assert len(rig.asked) == 2, "a day isn't heeded whole"


def test_clock_set_back_stops_no_download(rig: Rig) -> None:
    rig.add("a")
    rig.answer = lambda _: httpx.Response(503)
    rig.worker.step()
    rig.clock.go_on(-20 * 86_400)
    rig.answer = lambda _: picture_response(b"bytes")
    rig.worker.step()
    rig.worker.step()
    assert (len(rig.asked), sorted(rig.served())) == (2, ["a"])


def test_shard_deleted_by_another_process_is_stored_again(rig: Rig, tmp_path: Path) -> None:
    rig.add("a")
    rig.worker.step()
    before = rig.served()
    for file in (tmp_path / "picture-shards").iterdir():
        file.unlink()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    assert rig.served() == before


def test_private_networks_are_used_only_for_pictures_of_feeds_in_them(engine: Engine, tmp_path: Path) -> None:
    """Oracle: the reason says what is refused without a request; nothing listens at the other's port."""
    rig = Rig(engine, tmp_path)
    rules = PictureRules(4_000_000, EVERY, timedelta(days=30), networks(["127.0.0.0/8"]))
    worker = PictureWorker(engine, rig.shards, rules, lambda: (), clock=rig.clock)
    inside = "http://127.0.0.2:1998/rss"
    for feed in (FEED, inside):
        rig.feeds.add(feed, rig.clock(), pictures=True)
    rig.add("a", picture="http://127.0.0.1:1999/a.jpg")
    rig.add("b", picture="http://127.0.0.1:1999/b.jpg", feed=inside)
    worker.step()
    whys = {url[-5:]: why for url, _, why in worker.store.counts(5).reasons}
    assert "not public" in whys["a.jpg"]
    assert "Connection refused" in whys["b.jpg"]


def test_pictures_are_decoded_one_at_a_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []

    def convert_noting(*_: object) -> bytes:
        held.append(fetcher_module.CONVERTING.locked())
        return small_picture("teal")

    monkeypatch.setattr(fetcher_module, "convert", convert_noting)
    rig.add("a")
    rig.worker.step()
    assert held == [True]
