"""Pictures are fetched in the background, with a fixed clock and servers of the test.

Oracles: the servers' requests, the contents of the storage, and what a device unpacks of the list.
"""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from backend.news.pictures import fetcher as fetcher_module
from backend.news.pictures.converter import convert
from backend.news.pictures.fetcher import FIRST_WAIT, LIMIT_BYTES, TRIES, PictureMissing, download
from backend.news.pictures.shards import RUN
from protocol.pictures import PictureList, picture_size
from tests.doubles.picture_files import picture_file, small_picture
from tests.doubles.picture_rig import EVERY, FEED, OTHER, Rig, picture_response


def test_only_pictures_of_permitted_feeds_are_requested(rig: Rig) -> None:
    rig.add("a", "b")
    rig.add("c", feed=OTHER)
    rig.worker.step()
    assert sorted(rig.asked) == ["https://img.example/a.jpg", "https://img.example/b.jpg"]
    assert sorted(rig.served()) == ["a", "b"]
    rig.worker.step()
    assert len(rig.asked) == 2, "what is here isn't asked for again"


def test_picture_is_converted_by_the_real_converter(engine: Engine, tmp_path: Path) -> None:
    rig = Rig(engine, tmp_path)
    rig.feeds.add(FEED, rig.clock(), pictures=True)
    rig.add("a")
    rig.answer = lambda _: picture_response(picture_file("PNG"), content_type="text/html")
    rig.worker.step()
    assert rig.served() == {"a": convert(picture_file("PNG"), 480, 300)}


def test_withdrawn_permission_removes_pictures_in_the_next_step(rig: Rig) -> None:
    rig.add("a")
    rig.worker.step()
    assert rig.stored()
    rig.feeds.allow_pictures(FEED, False)
    rig.worker.step()
    assert (rig.served(), rig.stored(), rig.asked) == ({}, set(), ["https://img.example/a.jpg"])
    assert list((rig.folder / "picture-shards").iterdir()) == []
    rig.feeds.allow_pictures(FEED, True)
    rig.worker.step()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    assert sorted(rig.served()) == ["a"], "allowed again it is fetched again"


def test_story_taken_down_or_expired_loses_its_picture(rig: Rig) -> None:
    rig.answer = lambda url: picture_response(url.encode())
    rig.add("a", "b")
    rig.worker.step()
    rig.pool.take_down("a")
    rig.worker.step()
    assert sorted(rig.served()) == ["b"]
    assert len(rig.stored()) == 1
    rig.clock.go_on(31 * 86_400)
    rig.pool.expire(rig.clock())
    rig.worker.step()
    assert rig.served() == {}


def test_shared_picture_is_kept_until_its_last_story_is_gone(rig: Rig) -> None:
    rig.add("a", "b", picture="https://img.example/same.jpg")
    rig.worker.step()
    assert (len(rig.stored()), sorted(rig.served())) == (1, ["a", "b"])
    rig.pool.take_down("a")
    rig.worker.step()
    assert (len(rig.stored()), sorted(rig.served())) == (1, ["b"])


def test_failing_server_is_retried_a_few_times_with_growing_pauses(rig: Rig) -> None:
    rig.add("a", "b", "c")
    rig.answer = lambda _: httpx.Response(503)
    assert not rig.worker.step(), "nothing more is due at once"
    rig.worker.step()
    assert len(rig.asked) == 1, "its other pictures are not asked for meanwhile"
    asked_at = []
    for _ in range(60):
        rig.clock.go_on(FIRST_WAIT.total_seconds())
        before = rig.asked.count("https://img.example/c.jpg")
        rig.worker.step()
        if rig.asked.count("https://img.example/c.jpg") > before:
            asked_at.append(rig.clock())
    assert rig.asked.count("https://img.example/c.jpg") == TRIES
    pauses = [later - earlier for earlier, later in pairwise(asked_at)]
    assert pauses == [FIRST_WAIT * 4, FIRST_WAIT * 16]
    counts = rig.worker.store.counts(5)
    assert counts.by_state == {"refused": 3}
    assert counts.reasons[0][2] == "Its server answered 503."


def test_missing_or_invalid_picture_is_dropped_at_once(rig: Rig, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(fetcher_module, "convert", convert)
    rig.add("gone", "svg", "fine")
    files = {
        "gone": httpx.Response(404),
        "svg": picture_response(b"<svg/>", content_type="image/png"),
        "fine": picture_response(picture_file()),
    }
    rig.answer = lambda url: files[url.split("/")[-1].removesuffix(".jpg")]
    rig.worker.step()
    assert sorted(rig.served()) == ["fine"]
    assert {why for _, _, why in rig.worker.store.counts(5).reasons} == {
        "Its server answered 404.",
        "It is not a JPEG, PNG, WebP or GIF.",
    }
    rig.clock.go_on(10 * 86_400)
    rig.worker.step()
    assert len(rig.asked) == 3


def test_total_bytes_are_bounded_with_the_default_list_first(engine: Engine, tmp_path: Path, rig: Rig) -> None:
    size = len(small_picture("teal"))
    small = Rig(engine, tmp_path / "small", served_bytes=10_000 + 2 * size)
    small.answer = lambda _: picture_response(b"\0")
    small.add(*(f"n{number}" for number in range(8)))
    small.listed = ["n1"]
    while small.worker.step():
        pass
    small.clock.go_on(EVERY.total_seconds())
    small.worker.step()
    served = small.served()
    assert {"n1", "n7"} <= set(served), "the listed one, and the newest"
    assert sum(map(len, served.values())) <= 10_000 + 2 * size
    assert len(small.asked) < 8, "what could not be served is not even asked for"


def test_list_changes_rarely_and_a_new_picture_changes_one_shard(rig: Rig) -> None:
    rig.add(*(f"n{number}" for number in range(RUN + 3)))
    while rig.worker.step():
        pass
    first = PictureList.model_validate_json(rig.shards.listing()[0])
    rig.add("late")
    rig.worker.step()
    assert PictureList.model_validate_json(rig.shards._stored()[0]) == first, "too soon"
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    second = PictureList.model_validate_json(rig.shards._stored()[0])
    assert len({*second.shards} - {*first.shards}) == 1
    assert {*second.shards} & {*first.shards}


def test_picture_added_later_is_fetched_and_a_new_signature_of_its_address_ignored(rig: Rig) -> None:
    words = "The same words in every delivery of it"
    rig.add("a", title=words, picture="")
    version = rig.pool.version()
    rig.add("a", title=words, picture="https://img.example/a.jpg?signed=1")
    rig.worker.step()
    rig.add("a", title=words, picture="https://img.example/a.jpg?signed=2")
    rig.worker.step()
    assert rig.asked == ["https://img.example/a.jpg?signed=1"]
    assert rig.pool.version() == version
    rig.add("a", title=words, picture="https://img.example/other.jpg", feed=OTHER)
    assert rig.asked == ["https://img.example/a.jpg?signed=1"], "another feed doesn't choose its picture"


def test_pictures_lost_by_the_storage_are_fetched_again(rig: Rig, tmp_path: Path) -> None:
    """A database was restored from a backup without the pictures; a new process doesn't know the old list."""
    rig.add("a")
    rig.worker.step()
    for file in (tmp_path / "pictures").iterdir():
        file.unlink()
    rig.shards._cut.clear()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    rig.worker.step()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    assert rig.asked == ["https://img.example/a.jpg"] * 2
    assert sorted(rig.served()) == ["a"]


def transport_of(response: httpx.Response) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: response)


def test_download_is_bounded_and_restricted_to_public_addresses() -> None:
    big = httpx.Response(200, stream=httpx.ByteStream(b"0" * (LIMIT_BYTES + 1)))
    with pytest.raises(PictureMissing, match="more than 8,000,000 bytes"):
        download("https://img.example/a", transport=transport_of(big))
    said = httpx.Response(200, headers={"content-length": "9" * 12}, stream=httpx.ByteStream(b""))
    with pytest.raises(PictureMissing, match="more than 8,000,000 bytes"):
        download("https://img.example/a", transport=transport_of(said))
    loop = httpx.Response(302, headers={"location": "https://img.example/b"})
    with pytest.raises(PictureMissing, match="redirected more than 5 times"):
        download("https://img.example/a", transport=transport_of(loop))
    away = httpx.Response(302, headers={"location": "file:///etc/passwd"})
    with pytest.raises(PictureMissing, match="Only http and https"):
        download("https://img.example/a", transport=transport_of(away))
    squeezed = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b""))
    with pytest.raises(PictureMissing, match="encoding"):
        download("https://img.example/a", transport=transport_of(squeezed))
    for inside in ("http://127.0.0.1:9000/a.jpg", "http://169.254.169.254/latest", "http://[::1]:9000/a.jpg"):
        with pytest.raises(PictureMissing, match="not public"):
            download(inside)


def test_story_taken_down_during_a_download_is_removed_at_once(rig: Rig) -> None:
    rig.add("a")
    rig.worker.step()
    asked, answered = threading.Event(), threading.Event()

    def slow(url: str) -> httpx.Response:
        asked.set()
        answered.wait(60)
        return picture_response(url.encode())

    rig.answer = slow
    rig.add("b")
    fetching = threading.Thread(target=rig.worker.step)
    fetching.start()
    try:
        assert asked.wait(60)
        rig.pool.take_down("a")
        rig.worker.step()
        assert PictureList.model_validate_json(rig.shards._stored()[0]).shards == ()
        assert rig.stored() == set()
    finally:
        answered.set()
        fetching.join()
    rig.clock.go_on(EVERY.total_seconds())
    rig.worker.step()
    assert sorted(rig.served()) == ["b"]


def test_text_pictures_follow_card_pictures_and_are_deleted_with_their_story(engine: Engine, tmp_path: Path) -> None:
    rig = Rig(engine, tmp_path)
    rig.feeds.add(FEED, rig.clock(), pictures=True)
    comic = "https://img.example/comic.png"
    rig.add("a", text_pictures=(comic, "https://img.example/two.png"), body='<img alt="x"><p>Two ducks.</p><img>')
    rig.add("b")
    rig.answer = lambda url: picture_response(picture_file("PNG", (1_000, 500) if url == comic else (300, 900)))
    rig.worker.step()
    assert sorted(rig.served()) == ["a", "a 1", "a 2", "b"]
    assert picture_size(rig.served()["a 1"]) == (800, 400), "made smaller, and nothing cut off"
    assert picture_size(rig.served()["a 2"]) == (300, 900)
    assert picture_size(rig.served()["b"]) == (480, 300)
    asked = len(rig.asked)
    rig.worker.step()
    assert len(rig.asked) == asked, "what is here isn't asked for again"
    rig.feeds.allow_pictures(FEED, False)
    rig.worker.step()
    assert (rig.served(), rig.stored()) == ({}, set())


def test_card_pictures_precede_text_pictures_when_space_is_short(engine: Engine, tmp_path: Path) -> None:
    rig = Rig(engine, tmp_path, served_bytes=30_000)
    rig.feeds.add(FEED, rig.clock(), pictures=True)
    rig.add("a", "b", "c", text_pictures=("https://img.example/t.png",))
    rig.answer = lambda _: picture_response(picture_file("PNG"))
    rig.worker.step()
    assert [url for url in rig.asked if "/t.png" in url] == []
    assert sorted(rig.served()) == ["a", "b", "c"]
