"""One reader's own feeds: what is followed, what is refused, and how device and backend are started."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from backend.news.feed_scheduler import JITTER
from backend.news.opml import Subscription
from backend.server.local_processes import LocalProcesses, StartRefused
from backend.server.progress import SilentSteps
from backend.settings import load_settings
from backend.setup.own_feeds import ReaderPlan, StartLinks, start_reading
from device_app.settings import DeviceSettings
from tests.doubles.small_world import free_port

GOOD, DEAD = "https://good.example/feed", "https://dead.example/feed"


class RecordedProcesses(LocalProcesses):
    """Records what would be started, and how."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.started: dict[str, tuple[list[str], dict[str, str]]] = {}

    def start(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        self.started[name] = (arguments, environment)

    def wait_until_served(self, *_: object, **__: object) -> None:
        pass


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReaderPlan:
    monkeypatch.chdir(tmp_path)
    plan = ReaderPlan(tmp_path / "read", free_port(), free_port(), 15.0, networks=("10.1.0.0/16",))
    for written in (plan.backend_settings().admin_token_file, plan.data_dir / "devices" / "reader" / "page.key"):
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text("secret", encoding="utf-8")
    return plan


def begin(plan: ReaderPlan, processes: LocalProcesses, *urls: str) -> StartLinks:
    return start_reading(plan, [Subscription(url) for url in urls], processes, SilentSteps())


def test_start_follows_the_given_feeds_and_the_next_start_continues_with_them(plan: ReaderPlan) -> None:
    processes = RecordedProcesses(plan.data_dir / "logs")
    first = begin(plan, processes, GOOD, DEAD)
    assert set(processes.started) == {"device", "backend"}
    assert first.added == 2
    assert {feed.url for feed in first.feeds} == {GOOD, DEAD}
    again = begin(plan, RecordedProcesses(plan.data_dir / "logs"))
    assert (again.added, len(again.feeds)) == (0, 2)


def test_start_without_a_feed_lets_the_reader_choose_feeds_on_the_pages(plan: ReaderPlan) -> None:
    processes = RecordedProcesses(plan.data_dir / "logs")
    assert begin(plan, processes).feeds == []
    assert set(processes.started) == {"device", "backend"}


def test_each_start_gives_both_processes_a_new_token_in_a_private_file(plan: ReaderPlan) -> None:
    tokens = []
    for _ in range(2):
        processes = RecordedProcesses(plan.data_dir / "logs")
        begin(plan, processes, GOOD)
        (device, backend) = (processes.started[name][1] for name in ("device", "backend"))
        named = {device["OWNFEED_DEVICE_OWN_FEEDS_TOKEN_FILE"], backend["OWNFEED_BACKEND_OWN_FEEDS_TOKEN_FILE"]}
        assert named == {str(plan.token_file)}
        assert plan.token_file.stat().st_mode & 0o077 == 0
        tokens.append(plan.token_file.read_text(encoding="utf-8"))
    assert len(set(tokens)) == 2


def test_pictures_of_new_feeds_are_on_unless_switched_off(plan: ReaderPlan) -> None:
    logs = plan.data_dir / "logs"
    assert [feed.pictures for feed in begin(plan, RecordedProcesses(logs), GOOD).feeds] == [True]
    wanted = replace(plan, pictures="on")
    assert [feed.pictures for feed in begin(wanted, RecordedProcesses(logs), DEAD).feeds] == [True, True]
    assert [feed.pictures for feed in begin(plan, RecordedProcesses(logs)).feeds] == [True, True]
    assert [feed.pictures for feed in begin(replace(plan, pictures="off"), RecordedProcesses(logs)).feeds] == [
        False
    ] * 2


def test_own_feeds_device_reports_nothing_and_joins_no_count(
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
    assert settings.feed_refresh_minutes * (1 + JITTER) < (plan.every_minutes or 0)
    assert settings.feed_refresh_longest_minutes == settings.feed_refresh_minutes
    assert settings.data_dir == plan.backend_settings().data_dir
    assert settings.feed_refresh_minutes == plan.backend_settings().feed_refresh_minutes


def test_invalid_interval_and_network_are_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="--every must be at least 2 minutes"):
        ReaderPlan(tmp_path, every_minutes=1)
    with pytest.raises(StartRefused, match=r"--allow-network: '300\.0\.0\.0/8'"):
        ReaderPlan(tmp_path, networks=("300.0.0.0/8",))
