"""Every way of reporting against a real backend over HTTP. Oracle: the requests as the server received them."""

from __future__ import annotations

import json

import pytest

from device_app.privacy.modes import MODES
from device_app.privacy.settings import ModeName
from device_app.settings import PerformanceSettings, PrivacySettings
from tests.doubles.small_world import SmallWorld

ALWAYS_ASKS = PerformanceSettings(recall_max_age_sec=0, default_list_limit=200, bodies_wait_sec=0.2)
SILENT = [mode.name for mode in MODES.values() if mode.report is None]


@pytest.mark.parametrize("mode", MODES)
def test_a_reader_of_one_topic_is_recalled_for_by_every_kind_of_report(world: SmallWorld, mode: ModeName) -> None:
    privacy = PrivacySettings(mode=mode, epsilon_per_day_reports=100.0, epsilon_lifetime_reports=None)
    device = world.device(f"reader-{mode.replace('_', '-')}", performance=ALWAYS_ASKS, privacy=privacy)
    cold = device.feed(refresh=True)
    for card in [card for listed in device.explore() for card in listed.cards if card.topic == "physics"][:6]:
        device.open(card.id, cold.feed_id)
    device.sync()
    before = len(world.requests())
    warm = device.feed(refresh=True)
    asked = [one for one in world.requests()[before:] if one.path == "/v1/recall"]

    assert len(warm.items) == 30
    if mode in SILENT:
        assert asked == []
    else:
        assert [(one.status, json.loads(one.body)["report"]["kind"]) for one in asked] == [(200, mode)]
    # of a pool that one list holds, auto takes that list
    assert warm.mode == ("front" if mode in ("none", "auto") else "personal"), warm.notice


def test_the_pool_pulled_for_broadcast_is_asked_for_by_the_same_requests_whoever_reads(world: SmallWorld) -> None:
    traces = []
    for topic in ("rowing", "vaccines"):
        privacy = PrivacySettings(mode="broadcast")
        device = world.device(f"broadcast-{topic}", performance=ALWAYS_ASKS, privacy=privacy)
        cold = device.feed(refresh=True)
        for card in [card for listed in device.explore() for card in listed.cards if card.topic == topic][:4]:
            device.open(card.id, cold.feed_id)
        before = len(world.requests())
        device.sync()
        device.feed(refresh=True)
        traces.append(
            sorted(f"{one.method} {one.path}" for one in world.requests()[before:] if "/bodies" not in one.path)
        )
    assert traces[0] == traces[1]
    assert any(line.endswith("/codes") for line in traces[0])


def test_auto_goes_by_the_size_that_the_release_tells_and_by_its_readers_limits(world: SmallWorld) -> None:
    assert world.services is not None
    news = world.services.releases.require_current().news
    assert news is not None
    assert 200 < news <= 600
    few = PerformanceSettings(recall_max_age_sec=0, default_list_limit=50, bodies_wait_sec=0.2)
    for name, privacy, places in (
        ("light", PrivacySettings(mode="auto", epsilon_per_report=0.5, bytes_per_list=100_000), 200),
        ("wide", PrivacySettings(mode="auto"), news),  # a list holds all of it
    ):
        device = world.device(f"auto-{name}", performance=few, privacy=privacy)
        device.sync()
        choice = device.parts.ledger.choice()
        assert choice is not None
        assert (choice.news, choice.mode) == (news, "none")
        view = device.privacy()
        assert (view.own.mode, view.settings.mode) == ("auto", "none")
        listed = device.parts.stores.default_list.current()
        assert listed is not None
        assert len(listed.news_ids) == places
        assert device.parts.stores.pool.current() is None
        device.feed(refresh=True)
        assert device.parts.ledger.total("reports") == 0
