"""`ownfeed feeds`: how its commands change a backend's folder, and what they print about each feed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from backend.db.engine import migrate, open_engine
from backend.news.errors import FeedNotFollowed, FeedRefused
from backend.news.followed_feeds import FollowedFeeds
from backend.news.opml import read_opml
from backend.terminal import feed_commands as feeds

A, B = "https://a.example/feed", "https://b.example/feed"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of `ownfeed read`, which contains the backend's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("backend.news.public_addresses.resolved", lambda host, port: [])
    (tmp_path / "read" / "backend").mkdir(parents=True)
    return tmp_path / "read"


@pytest.fixture
def list_feeds(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, object]]]:
    def call() -> list[dict[str, object]]:
        capsys.readouterr()
        feeds.list_(folder, as_json=True)
        found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
        return found

    return call


def test_feeds_are_added_paused_resumed_and_removed(
    folder: Path, list_feeds: Callable[[], list[dict[str, object]]], capsys: pytest.CaptureFixture[str]
) -> None:
    feeds.add([A, B], folder)
    feeds.add([A], folder)
    said = capsys.readouterr()
    assert said.out == "2 added\n0 added\n"
    assert f"can't be read now: {A}" in said.err
    feeds.pause(A, folder)
    assert [(one["url"], one["paused"], one["last_answered"]) for one in list_feeds()] == [
        (A, True, None),
        (B, False, None),
    ]
    feeds.resume(A, folder)
    feeds.remove(B, folder)
    assert [(one["url"], one["paused"]) for one in list_feeds()] == [(A, False)]
    with pytest.raises(FeedNotFollowed):
        feeds.remove(B, folder)
    feeds.restore(B, folder)
    assert [one["url"] for one in list_feeds()] == [A, B]


def test_list_shows_the_last_answer_and_the_failure_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feeds.add([A, B], folder)
    url = f"sqlite:///{folder / 'backend' / 'ownfeed.sqlite'}"
    migrate(url)
    followed = FollowedFeeds(open_engine(url))
    followed.answered(A, at=NOON, due_at=NOON)
    followed.failed(B, "It answered 500.", failures=2, due_at=NOON)
    capsys.readouterr()
    feeds.list_(folder)
    assert capsys.readouterr().out == (
        f"{A}\n    last answered 2026-11-22 12:00 UTC; asked again at 12:00 UTC\n"
        f"{B}\n    never answered; failed 2 times, asked again at 12:00 UTC: It answered 500.\n"
    )


def test_exported_feeds_can_be_imported_and_files_are_not_overwritten(folder: Path, tmp_path: Path) -> None:
    feeds.add([A, B], folder, folder=["News", "Daily / weekly"])
    feeds.rename(A, "The Wire & Post", folder)
    feeds.folder_(B, [], folder)
    feeds.section_(B, "Sports", folder)
    feeds.rename_folder(["News"], ["World", "News"], folder)
    feeds.export(tmp_path / "feeds.opml", folder)
    listed = read_opml(tmp_path / "feeds.opml").feeds
    assert [(one.url, one.title, one.folder, one.section) for one in listed] == [
        (A, "The Wire & Post", ("World", "News", "Daily / weekly"), None),
        (B, "", (), "sport"),
    ]
    with pytest.raises(FileExistsError):
        feeds.export(tmp_path / "feeds.opml", folder)


def test_section_of_a_feed_is_set_by_its_reader_or_taken_from_its_folder(
    folder: Path, tmp_path: Path, list_feeds: Callable[[], list[dict[str, object]]]
) -> None:
    folders = [("Tech", A), ("Mine", B)]
    outlines = "".join(f'<outline text="{name}"><outline xmlUrl="{url}"/></outline>' for name, url in folders)
    (tmp_path / "in.opml").write_text(f"<opml>{outlines}</opml>", encoding="utf-8")
    feeds.add([str(tmp_path / "in.opml")], folder)
    feeds.add(["https://c.example/"], folder, section="Sports")
    assert [one["section"] for one in list_feeds()] == ["technology", None, "sport"]
    assert [one["folder"] for one in list_feeds()] == [["Tech"], ["Mine"], []]
    feeds.section_(B, "My blogs", folder)
    feeds.section_(A, None, folder)
    assert [one["section"] for one in list_feeds()] == [None, "my blogs", "sport"]
    assert [one["pictures"] for one in list_feeds()] == [False, False, False], "off until somebody allows them"
    feeds.pictures_(B, True, folder)
    feeds.add([A], folder, pictures=True)
    assert [one["pictures"] for one in list_feeds()] == [True, True, False]
    feeds.pictures_(B, False, folder)
    assert [one["pictures"] for one in list_feeds()] == [True, False, False]


def test_bad_line_is_listed_and_the_rest_followed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], list_feeds: Callable[[], list[dict[str, object]]]
) -> None:
    lines = [A, "ftp://old.example/feed", "feed://b.example/feed"]
    outlines = "\n".join(f'<outline text="{number}" xmlUrl="{url}"/>' for number, url in enumerate(lines))
    (tmp_path / "in.opml").write_text(f"<opml>\n{outlines}\n</opml>", encoding="utf-8")
    with pytest.raises(typer.Exit) as ended:
        feeds.add([str(tmp_path / "in.opml")], folder)
    assert ended.value.exit_code == 1
    said = capsys.readouterr()
    assert said.out == "2 added\n"
    assert "in.opml, line 3: ftp://old.example/feed: the address must be complete" in said.err
    assert [one["url"] for one in list_feeds()] == ["http://b.example/feed", A]


def test_certificate_exception_and_proxy_are_shown_plainly(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feeds.add([A], folder)
    feeds.certificate_(A, False, folder)
    feeds.proxy_(A, "http://me:secret@via.example:3128", folder)
    capsys.readouterr()
    feeds.list_(folder)
    assert "; CERTIFICATE NOT CHECKED; read through http://via.example:3128\n" in capsys.readouterr().out
    feeds.certificate_(A, True, folder)
    feeds.proxy_(A, None, folder)
    feeds.list_(folder)
    assert "never answered\n" in capsys.readouterr().out
    with pytest.raises(FeedRefused, match="SOCKS"):
        feeds.proxy_(A, "socks5://via.example:1080", folder)


def test_missing_folder_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="--data-dir"):
        feeds.list_(tmp_path / "nowhere")
