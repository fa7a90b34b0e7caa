"""`ownfeed feeds`: what its commands do to a backend's folder, and what they say of each feed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.db.engine import migrate, open_engine
from backend.news.errors import FeedNotFollowed
from backend.news.followed_feeds import FollowedFeeds
from backend.news.ingest import ingest
from backend.news.pool import NewsPool
from backend.opml import read_opml
from backend.terminal import feed_commands as feeds
from tests.doubles.small_world import hand_made_news

A, B = "https://a.example/feed", "https://b.example/feed"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `ownfeed read` keeps: the backend's folder lies in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "read" / "backend").mkdir(parents=True)
    return tmp_path / "read"


@pytest.fixture
def listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, object]]]:
    def call() -> list[dict[str, object]]:
        capsys.readouterr()
        feeds.list_(folder, as_json=True)
        found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
        return found

    return call


def test_feeds_are_added_paused_resumed_and_removed(
    folder: Path, listed: Callable[[], list[dict[str, object]]], capsys: pytest.CaptureFixture[str]
) -> None:
    feeds.add([A, B], folder)
    feeds.add([A], folder)
    assert capsys.readouterr().out == "2 added\n0 added\n"
    feeds.pause(A, folder)
    assert [(one["url"], one["paused"], one["last_answered"]) for one in listed()] == [
        (A, True, None),
        (B, False, None),
    ]
    feeds.resume(A, folder)
    feeds.remove(B, folder)
    assert [(one["url"], one["paused"]) for one in listed()] == [(A, False)]
    with pytest.raises(FeedNotFollowed):
        feeds.remove(B, folder)


def test_the_list_says_when_each_last_answered_and_why_one_does_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feeds.add([A, B], folder)
    url = f"sqlite:///{folder / 'backend' / 'ownfeed.sqlite'}"
    migrate(url)
    followed = FollowedFeeds(open_engine(url))
    followed.answered(A, at=NOON, due_at=NOON)
    followed.failed(B, "It answered 500.", failures=2, due_at=NOON)
    capsys.readouterr()
    feeds.list_(folder)
    assert capsys.readouterr().out == (
        f"{A}\n    last answered 2026-11-22 12:00 UTC\n"
        f"{B}\n    never answered; failed 2 times, asked again at 12:00 UTC: It answered 500.\n"
    )


def test_what_is_exported_can_be_added_elsewhere_and_never_overwrites(folder: Path, tmp_path: Path) -> None:
    """Red before: the list named every feed by its address."""
    feeds.add([A, B], folder)
    engine = open_engine(f"sqlite:///{folder / 'backend' / 'ownfeed.sqlite'}")
    names = ("The Old Wire", "The Wire & Post")
    for number, name in enumerate(names):
        item = hand_made_news(NOON)[number].model_copy(update={"publisher": name})
        ingest(NewsPool(engine), [item], source=A)
    feeds.export(tmp_path / "feeds.opml", folder)
    assert [(one.url, one.title) for one in read_opml(tmp_path / "feeds.opml")] == [(A, "The Wire & Post"), (B, B)]
    with pytest.raises(FileExistsError):
        feeds.export(tmp_path / "feeds.opml", folder)


def test_a_feed_has_a_section_where_its_reader_or_its_folder_names_one(
    folder: Path, tmp_path: Path, listed: Callable[[], list[dict[str, object]]]
) -> None:
    folders = [("Tech", A), ("Mine", B)]
    outlines = "".join(f'<outline text="{name}"><outline xmlUrl="{url}"/></outline>' for name, url in folders)
    (tmp_path / "in.opml").write_text(f"<opml>{outlines}</opml>", encoding="utf-8")
    feeds.add([str(tmp_path / "in.opml")], folder)
    feeds.add(["https://c.example/"], folder, section="Sports")
    assert [one["section"] for one in listed()] == ["technology", None, "sport"]
    feeds.section_(B, "My blogs", folder)
    feeds.section_(A, None, folder)
    assert [one["section"] for one in listed()] == [None, "my blogs", "sport"]
    assert [one["pictures"] for one in listed()] == [False, False, False], "off until somebody allows them"
    feeds.pictures_(B, True, folder)
    feeds.add([A], folder, pictures=True)
    assert [one["pictures"] for one in listed()] == [True, True, False]
    feeds.pictures_(B, False, folder)
    assert [one["pictures"] for one in listed()] == [True, False, False]
    feeds.export(tmp_path / "out.opml", folder)
    assert [(one.url, one.folder) for one in read_opml(tmp_path / "out.opml")] == [
        (A, ""), (B, "my blogs"), ("https://c.example/", "sport")
    ]  # fmt: skip


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="--data-dir"):
        feeds.list_(tmp_path / "nowhere")
