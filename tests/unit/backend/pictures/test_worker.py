"""Pictures fetched in the background, by a clock that stands still and servers of the test's own. Oracles: what those
servers were asked, what lies in the storage, and what a device unpacks of the list."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from backend.pictures import fetcher as fetcher_module
from backend.pictures.converter import convert
from backend.pictures.download import LIMIT_BYTES, PictureMissing, download
from backend.pictures.fetcher import FIRST_WAIT, TRIES
from backend.pictures.shards import RUN
from device_app.wire.pictures import PictureList
from tests.doubles.picture_files import picture_file, small_picture
from tests.doubles.picture_rig import EVERY, FEED, OTHER, Rig, sent


def test_only_pictures_of_feeds_that_may_have_theirs_shown_are_asked_for(rig: Rig) -> None:
    rig.add("a", "b")
    rig.add("c", feed=OTHER)
    rig.worker.step()
    assert sorted(rig.asked) == ["https://img.example/a.jpg", "https://img.example/b.jpg"]
    assert sorted(rig.served()) == ["a", "b"]
    rig.worker.step()
    assert len(rig.asked) == 2, "what is here isn't asked for again"


def test_a_picture_goes_through_the_real_converter(engine: Engine, tmp_path: Path) -> None:
    rig = Rig(engine, tmp_path)
    rig.feeds.add(FEED, rig.clock(), pictures=True)
    rig.add("a")
    rig.answer = lambda _: sent(picture_file("PNG"), content_type="text/html")
    rig.worker.step()
    assert rig.served() == {"a": convert(picture_file("PNG"), 480, 300)}


def test_a_withdrawn_permission_takes_pictures_from_list_and_storage_in_the_next_step(rig: Rig) -> None:
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


def test_a_story_taken_down_or_expired_leaves_no_picture_behind(rig: Rig) -> None:
    rig.answer = lambda url: sent(url.encode())
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


def test_two_stories_with_one_picture_share_it_until_the_last_has_gone(rig: Rig) -> None:
    rig.add("a", "b", picture="https://img.example/same.jpg")
    rig.worker.step()
    assert (len(rig.stored()), sorted(rig.served())) == (1, ["a", "b"])
    rig.pool.take_down("a")
    rig.worker.step()
    assert (len(rig.stored()), sorted(rig.served())) == (1, ["b"])


def test_a_server_in_trouble_is_left_alone_and_tried_again_a_few_times_at_growing_pauses(rig: Rig) -> None:
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


def test_a_picture_that_is_gone_or_none_is_given_up_at_once_and_the_next_is_taken(rig: Rig, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(fetcher_module, "convert", convert)
    rig.add("gone", "svg", "fine")
    files = {
        "gone": httpx.Response(404),
        "svg": sent(b"<svg/>", content_type="image/png"),
        "fine": sent(picture_file()),
    }
    rig.answer = lambda url: files[url.split("/")[-1].removesuffix(".jpg")]
    rig.worker.step()
    assert sorted(rig.served()) == ["fine"]
    assert {why for _, _, why in rig.worker.store.counts(5).reasons} == {
        "Its server answered 404.",
        "It is no JPEG, PNG, WebP or GIF.",
    }
    rig.clock.go_on(10 * 86_400)
    rig.worker.step()
    assert len(rig.asked) == 3


def test_bytes_are_bounded_and_the_default_list_comes_first(engine: Engine, tmp_path: Path, rig: Rig) -> None:
    size = len(small_picture("teal"))
    small = Rig(engine, tmp_path / "small", served_bytes=10_000 + 2 * size)
    small.answer = lambda _: sent(b"\0")
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


def test_the_list_changes_only_now_and_then_and_a_new_picture_changes_one_shard(rig: Rig) -> None:
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


def test_a_picture_that_a_story_gets_later_is_taken_and_a_signed_address_changes_nothing(rig: Rig) -> None:
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


def test_what_the_storage_has_lost_is_fetched_again(rig: Rig, tmp_path: Path) -> None:
    """A database put back from a backup without the pictures; a new process knows nothing of the old list's shards."""
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


def answering(response: httpx.Response) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: response)


def test_a_download_is_bounded_and_follows_no_address_that_is_not_public() -> None:
    big = httpx.Response(200, stream=httpx.ByteStream(b"0" * (LIMIT_BYTES + 1)))
    with pytest.raises(PictureMissing, match="more than 8,000,000 bytes"):
        download("https://img.example/a", transport=answering(big))
    said = httpx.Response(200, headers={"content-length": "9" * 12}, stream=httpx.ByteStream(b""))
    with pytest.raises(PictureMissing, match="more than 8,000,000 bytes"):
        download("https://img.example/a", transport=answering(said))
    loop = httpx.Response(302, headers={"location": "https://img.example/b"})
    with pytest.raises(PictureMissing, match="leads on more than 5 times"):
        download("https://img.example/a", transport=answering(loop))
    away = httpx.Response(302, headers={"location": "file:///etc/passwd"})
    with pytest.raises(PictureMissing, match="Only http and https"):
        download("https://img.example/a", transport=answering(away))
    squeezed = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b""))
    with pytest.raises(PictureMissing, match="encoding"):
        download("https://img.example/a", transport=answering(squeezed))
    for inside in ("http://127.0.0.1:9000/a.jpg", "http://169.254.169.254/latest", "http://[::1]:9000/a.jpg"):
        with pytest.raises(PictureMissing, match="not public"):
            download(inside)


def test_a_story_taken_down_while_a_picture_is_waited_for_goes_at_once(rig: Rig) -> None:
    rig.add("a")
    rig.worker.step()
    asked, answered = threading.Event(), threading.Event()

    def slow(url: str) -> httpx.Response:
        asked.set()
        answered.wait(60)
        return sent(url.encode())

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
