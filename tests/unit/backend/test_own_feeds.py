"""One reader's own feeds: what is followed, what is refused, and what device and backend are told at their start."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

import backend.own_feeds
from backend.local_processes import LocalProcesses, StartRefused
from backend.news.feed_scheduler import JITTER
from backend.opml import OpmlRefused, Subscription
from backend.own_feeds import FeedsUnreadable, ReaderPlan, Started, start_reading, subscriptions
from backend.progress import SilentSteps
from backend.settings import load_settings
from device_app.settings import DeviceSettings
from tests.doubles.small_world import free_port

GOOD, DEAD = "https://good.example/feed", "https://dead.example/feed"
RSS = (
    '<?xml version="1.0"?><rss version="2.0"><channel><title>Courant</title>'
    "<item><title>The ferry sails again</title><link>https://good.example/1</link></item></channel></rss>"
)


class RecordedProcesses(LocalProcesses):
    """Notes what would be started, and how."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.started: dict[str, tuple[list[str], dict[str, str]]] = {}

    def start(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        self.started[name] = (arguments, environment)

    def wait_until_served(self, *_: object, **__: object) -> None:
        pass


PREPARES_NOTHING = SimpleNamespace(news_are_here=lambda: None, follow=lambda steps: None)
"""In the place of the process that prepares."""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReaderPlan:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        backend.own_feeds, "FirstStartProcess", lambda settings, *, waits: nullcontext(PREPARES_NOTHING)
    )
    plan = ReaderPlan(tmp_path / "read", free_port(), free_port(), networks=("10.1.0.0/16",))
    for written in (plan.backend_settings().admin_token_file, plan.data_dir / "devices" / "reader" / "page.key"):
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text("secret", encoding="utf-8")
    return plan


def answered(request: httpx.Request) -> httpx.Response:
    return (
        httpx.Response(200, stream=httpx.ByteStream(RSS.encode()))
        if request.url.host == "good.example"
        else httpx.Response(500)
    )


def begin(plan: ReaderPlan, processes: LocalProcesses, *urls: str) -> Started:
    wanted = [Subscription(url) for url in urls]
    return start_reading(plan, wanted, processes, SilentSteps(), httpx.MockTransport(answered))


def test_a_dead_feed_is_shown_and_the_others_are_read_and_the_next_start_goes_on(plan: ReaderPlan) -> None:
    first = begin(plan, RecordedProcesses(plan.data_dir / "logs"), GOOD, DEAD)
    by_url = {feed.url: feed for feed in first.feeds}
    assert first.added == 2
    assert by_url[GOOD].fetched_at is not None
    assert (by_url[DEAD].failures, by_url[DEAD].fetched_at) == (1, None)
    assert "500" in str(by_url[DEAD].error)
    again = begin(plan, RecordedProcesses(plan.data_dir / "logs"))
    assert (again.added, len(again.feeds)) == (0, 2)


def test_pictures_are_off_until_the_reader_says_so_of_all_feeds_and_stay_as_they_were_said(plan: ReaderPlan) -> None:
    logs = plan.data_dir / "logs"
    assert [feed.pictures for feed in begin(plan, RecordedProcesses(logs), GOOD).feeds] == [False]
    wanted = replace(plan, pictures="on")
    assert [feed.pictures for feed in begin(wanted, RecordedProcesses(logs), DEAD).feeds] == [True, True]
    assert [feed.pictures for feed in begin(plan, RecordedProcesses(logs)).feeds] == [True, True]
    assert [feed.pictures for feed in begin(replace(plan, pictures="off"), RecordedProcesses(logs)).feeds] == [
        False
    ] * 2


def test_the_first_page_waits_for_no_server_that_keeps_silent(
    plan: ReaderPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers, answered_late = threading.Event(), threading.Event(), threading.Event()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "dead.example":
            asked.set()
            answers.wait(60)
            answered_late.set()
        return answered(request)

    monkeypatch.setattr(backend.own_feeds, "GIVEN_UP_WITHIN_SEC", 0.1)
    processes = RecordedProcesses(plan.data_dir / "logs")
    begin(plan, processes, GOOD)
    processes.started.clear()
    monkeypatch.setattr(backend.own_feeds, "FIRST_READ_SEC", 0.5)
    started = start_reading(plan, [Subscription(DEAD)], processes, SilentSteps(), httpx.MockTransport(answer))
    try:
        assert not answered_late.is_set()
        assert set(processes.started) == {"device", "backend"}
        assert [(feed.url, feed.error) for feed in started.feeds if feed.url == DEAD] == [(DEAD, None)], "still due"
    finally:
        answers.set()
        assert answered_late.wait(30) or not asked.is_set()


def test_without_a_single_story_the_start_is_refused_with_the_reason(plan: ReaderPlan) -> None:
    with pytest.raises(StartRefused, match="No feed is followed yet"):
        begin(plan, RecordedProcesses(plan.data_dir / "logs"))
    with pytest.raises(FeedsUnreadable, match=r"1 of 1 feeds could not be read. The first: .*answered 500"):
        begin(plan, RecordedProcesses(plan.data_dir / "logs"), DEAD)


def test_the_reader_reports_nothing_and_counts_with_nobody(
    plan: ReaderPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    processes = RecordedProcesses(plan.data_dir / "logs")
    begin(plan, processes, GOOD)
    assert set(processes.started) == {"device", "backend"}, "no fleet"
    for name in [name for name in os.environ if name.startswith("OWNFEED_")]:
        monkeypatch.delenv(name)
    for _, environment in processes.started.values():
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
    device = DeviceSettings(data_dir=tmp_path)
    assert (device.privacy.mode, device.privacy.training, device.privacy.counting) == ("broadcast", False, False)
    assert device.backend_url == plan.backend_url
    settings = load_settings()
    assert settings.counts_every_minutes == 0
    assert settings.feed_networks == ("10.1.0.0/16",)
    assert settings.feed_refresh_minutes * (1 + JITTER) < plan.every_minutes
    assert settings.data_dir == plan.backend_settings().data_dir
    assert settings.feed_refresh_minutes == plan.backend_settings().feed_refresh_minutes


def test_addresses_and_lists_are_taken_together_each_feed_once(tmp_path: Path) -> None:
    path = tmp_path / "feeds.opml"
    path.write_text(f'<opml>\n<outline xmlUrl="{GOOD}"/>\n<outline xmlUrl="{DEAD}"/></opml>', encoding="utf-8")
    assert [one.url for one in subscriptions([DEAD, str(path)])] == [DEAD, GOOD]


def test_an_address_that_can_not_be_followed_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "feeds.opml"
    path.write_text('<opml>\n<outline xmlUrl="ftp://example.org/"/></opml>', encoding="utf-8")
    with pytest.raises(StartRefused, match=r"feeds.opml, line 2: .*only whole addresses"):
        subscriptions([str(path)])
    with pytest.raises(StartRefused, match=r"^The feed's address"):
        subscriptions(["gopher://example.org/"])
    with pytest.raises(OpmlRefused, match="no such file"):
        subscriptions(["missing.opml"])


def test_a_pace_and_a_network_that_make_no_sense_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="--every must be at least 2 minutes"):
        ReaderPlan(tmp_path, every_minutes=1)
    with pytest.raises(StartRefused, match=r"--allow-network: '300\.0\.0\.0/8'"):
        ReaderPlan(tmp_path, networks=("300.0.0.0/8",))
