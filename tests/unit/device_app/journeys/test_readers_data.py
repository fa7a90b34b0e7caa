"""What the reader can view, name, mute, export and erase."""

from __future__ import annotations

import json

import pytest

from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import PAPER, TOPIC, Make, click_on, share
from tests.doubles.new_page import new_page


def test_interests_can_be_named_muted_and_forgotten(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(**PAPER)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    click_on(device, backend, "section5 topic0", 3, clock)
    first, second = device.interests.clusters()
    assert (first.label, first.clicks, second.label, second.clicks) == (TOPIC, 4, "section5 topic0", 3)
    device.interests.rename(first.key, "On the river")
    assert device.interests.clusters()[0].label == "On the river"
    assert any(item.reason.interest == "On the river" for item in new_page(device).items)

    device.interests.mute(first.key, True)
    muted = new_page(device)
    assert share(muted, TOPIC) == 0
    report = device.privacy.overview().report
    assert report is not None
    assert report.counts == (3,)
    assert [(one.label, one.muted) for one in device.interests.clusters()] == [
        ("section5 topic0", False),
        ("On the river", True),
    ]
    device.interests.mute(first.key, False)
    assert [one.muted for one in device.interests.clusters()] == [False, False]

    device.interests.forget(second.key)
    assert [one.label for one in device.interests.clusters()] == ["On the river"]
    assert device.library.history().total == 4


def test_history_is_searched_and_pruned_by_the_reader(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    page = device.library.history("topic1")
    assert (page.total, page.pages, len(page.entries)) == (3, 1, 3)
    assert page.entries[0].at > page.entries[1].at
    assert device.library.delete_click(page.entries[0].click_id)
    assert not device.library.delete_click(page.entries[0].click_id)
    assert device.library.history().total == 2
    assert device.library.history("nothing like it").entries == ()


def test_privacy_overview_shows_the_exact_bytes_sent(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(**PAPER)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    new_page(device)
    view = device.privacy.overview()
    assert view.mechanism is not None
    assert view.mechanism.epsilon_per_report == pytest.approx(50)
    assert (view.budgets[0].spent_today, view.budgets[0].left_today) == pytest.approx((50, 100))
    line = next(entry for entry in view.log.lines if entry.url.endswith("/v1/recall"))
    assert line.epsilon == pytest.approx(50)
    traffic = device.privacy.traffic(line.entry_id)
    assert traffic is not None
    assert traffic.request_body == next(body for _, path, body in backend.requests if path == "/v1/recall")
    assert traffic.request_head.startswith("POST /v1/recall HTTP/1.1")
    assert view.report is not None
    assert view.report.clear is not None
    assert len(view.report.noisy) == len(view.report.clear) == len(view.report.labels) == 1
    assert max(abs(score) for score in view.report.clear[0]) <= 0.2
    assert view.clicks_until_report == 3
    assert device.privacy.traffic(10_000) is None


def test_deleted_click_does_not_change_when_a_report_is_due(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(**PAPER)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    new_page(device)
    assert (device.privacy.overview().new_clicks, device.privacy.overview().clicks_until_report) == (0, 3)
    reported = device.privacy.overview().report
    assert reported is not None
    click_on(device, backend, "section1 topic1", 2, clock)
    assert (device.privacy.overview().new_clicks, device.privacy.overview().clicks_until_report) == (2, 1)
    newest = device.library.history().entries[0].click_id
    assert device.library.delete_click(newest)
    assert (device.privacy.overview().new_clicks, device.privacy.overview().clicks_until_report) == (1, 1)
    assert device.library.delete_click(newest - 1)
    view = device.privacy.overview()
    assert (view.new_clicks, view.clicks_until_report) == (0, 1)
    assert view.report is not None
    assert view.report.labels == reported.labels, "of the very clicks that it was made from"


def test_export_holds_everything_and_erase_leaves_nothing_of_the_reader(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    device.interests.choose_sections(("section6",))
    new_page(device)
    tables = json.loads(json.dumps(device.privacy.export()))["tables"]
    assert len(tables["click"]) == 3
    assert {"impression", "charge", "traffic", "report_memo", "drawn_report", "preference"} <= tables.keys()
    device.privacy.erase()
    tables = device.privacy.export()["tables"]
    for name in (
        "click",
        "impression",
        "traffic",
        "report_memo",
        "drawn_report",
        "feed",
        "reaction",
    ):
        assert tables[name] == [], name
    assert "pool" not in tables, "what can be fetched again is no part of an export"
    assert list(device.parts.stores.database.rows("SELECT 1 FROM pool")) == []
    assert [one["name"] for one in tables["preference"]] == ["left_before_erase"], "how often something left today"
    assert device.privacy.overview().budgets[0].spent_today == 4
    assert new_page(device).mode == "cold"
    assert device.status().chosen_sections is None


def test_training_is_off_unless_switched_on(make: Make, backend: FakeBackend) -> None:
    device = make()
    device.reading.feed(refresh=True)
    view = device.training()
    assert (view.settings.training, view.paused, view.round) == (False, False, None)
    assert "training is not switched on" in (view.why_not or "")
    assert view.updates == (), "no model of this release has a gradient"
    device.pause_training(True)
    assert device.training().paused
    assert device.train_step().state == "idle"
