"""Every report mode against a real backend over HTTP.

Oracle: the requests as the server received them.
"""

from __future__ import annotations

import json

import pytest

from device_app.privacy.settings import ModeName
from device_app.reports.modes import MODES
from device_app.settings import PerformanceSettings, PrivacySettings
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld

ALWAYS_ASKS = PerformanceSettings(default_list_limit=200, bodies_wait_sec=0.2)
SILENT = [mode.name for mode in MODES.values() if mode.reporter is None]


@pytest.mark.parametrize("mode", MODES)
def test_every_report_mode_recalls_stories_of_a_readers_topic(world: SmallWorld, mode: ModeName) -> None:
    privacy = PrivacySettings(mode=mode, epsilon_per_day_reports=100.0, epsilon_lifetime_reports=None)
    device = world.device(f"reader-{mode.replace('_', '-')}", performance=ALWAYS_ASKS, privacy=privacy)
    cold = new_page(device)
    for card in [card for listed in device.reading.explore() for card in listed.cards if card.topic == "physics"][:6]:
        device.reading.open(card.id, cold.feed_id)
    device.sync()
    before = len(world.requests())
    warm = new_page(device)
    asked = [one for one in world.requests()[before:] if one.path == "/v1/recall"]

    assert len(warm.items) == 30
    if mode in SILENT:
        assert asked == []
    else:
        kinds = [(one.status, json.loads(one.body)["report"]["kind"]) for one in asked]
        assert kinds == [(200, MODES[mode].decoder)]
    # of a pool that one list holds, auto takes that list
    assert warm.mode == ("front" if mode in ("none", "auto") else "personal"), warm.notice


def test_broadcast_requests_do_not_depend_on_the_reader(world: SmallWorld) -> None:
    traces = []
    for topic in ("rowing", "vaccines"):
        privacy = PrivacySettings(mode="broadcast")
        device = world.device(f"broadcast-{topic}", performance=ALWAYS_ASKS, privacy=privacy)
        cold = new_page(device)
        for card in [card for listed in device.reading.explore() for card in listed.cards if card.topic == topic][:4]:
            device.reading.open(card.id, cold.feed_id)
        before = len(world.requests())
        device.sync()
        new_page(device)
        traces.append(
            sorted(f"{one.method} {one.path}" for one in world.requests()[before:] if "/bodies" not in one.path)
        )
    assert traces[0] == traces[1]
    assert any(line.endswith("/codes") for line in traces[0])


def test_auto_mode_follows_the_pool_size_and_reader_limits(world: SmallWorld) -> None:
    assert world.services is not None
    news = world.services.releases.require_current().news
    assert news is not None
    assert 200 < news <= 600
    few = PerformanceSettings(default_list_limit=50, bodies_wait_sec=0.2)
    for name, privacy, places in (
        ("light", PrivacySettings(mode="auto", epsilon_per_report=0.5, bytes_per_list=100_000), 200),
        ("wide", PrivacySettings(mode="auto"), news),  # a list holds all of it
    ):
        device = world.device(f"auto-{name}", performance=few, privacy=privacy)
        device.sync()
        choice = device.parts.policy.choice()
        assert choice is not None
        assert (choice.news, choice.mode) == (news, "none")
        view = device.privacy.overview()
        assert (view.own.mode, view.settings.mode) == ("auto", "none")
        listed = device.parts.stores.default_list.current()
        assert listed is not None
        assert len(listed.news_ids) == places
        assert device.parts.stores.pool.current() is None
        new_page(device)
        assert device.parts.ledger.total("reports") == 0
