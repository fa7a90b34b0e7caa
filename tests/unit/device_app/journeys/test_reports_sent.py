"""When a report is sent, what it costs, and what happens when none may be sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from device_app.privacy.sealed import Sealed
from device_app.privacy.sealed_reports import seal_report
from device_app.reports import choice
from device_app.settings import PrivacySettings
from protocol.ids import Problem
from protocol.news import BodiesRequest
from protocol.recall import CodeReport, RecallRequest
from protocol.releases import RELEASES_ANSWERED
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import PAPER, TOPIC, Make, click_on, share
from tests.doubles.new_page import new_page


def test_click_appears_in_no_request(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(clicks_before_report=1)
    device.reading.feed(refresh=True)
    backend.requests.clear()
    news_id = new_page(device).items[3].card.id
    device.reading.open(news_id, device.reading.feed().feed_id)
    new_page(device)
    while device.prefetch_step():
        pass
    posted = [(path, body) for method, path, body in backend.requests if method == "POST"]
    assert {path for path, _ in posted} == {"/v1/recall", "/v1/news/bodies"}
    for path, body in posted:
        if path == "/v1/news/bodies":
            assert len(BodiesRequest.model_validate_json(body).ids) >= 400
        else:
            assert news_id.encode() not in body


def test_spent_budget_ranks_the_default_list_locally(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(epsilon_per_day_reports=3.9)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = new_page(device)
    assert feed.mode == "front"
    assert "sharing limit" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert share(feed, TOPIC) >= 0.2
    assert device.status().shield == "amber"


def test_report_is_not_sent_if_reports_are_switched_off_while_a_page_is_built(
    make: Make, backend: FakeBackend, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a second tab, between choosing a report and paying for it."""
    device = make(clicks_before_report=1)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)

    def switched_off(*made_of: Any, **more: Any) -> Sealed[RecallRequest]:
        device.privacy.change(mode="none")
        return seal_report(*made_of, **more)

    monkeypatch.setattr(choice, "seal_report", switched_off)
    feed = new_page(device)
    assert feed.mode == "front"
    assert len(feed.items) == 30
    assert "reports are off" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert device.parts.ledger.total("reports") == 0


def test_paid_report_stays_in_use_after_the_budget_is_spent(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(**PAPER | {"epsilon_per_day_reports": 50, "clicks_per_report": 1})
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 2, clock)
    assert new_page(device).notice is None
    click_on(device, backend, "section5 topic0", 2, clock)
    device.parts.serving.feed_context.recall.forget()
    feed = new_page(device)
    assert (feed.mode, "earlier report" in (feed.notice or "")) == ("personal", True)
    first, second = [body for _, path, body in backend.requests if path == "/v1/recall"]
    assert first == second
    clock.go_on(24 * 3600)
    device.parts.serving.changed()
    assert new_page(device).notice is None


def test_default_report_costs_four_and_the_reader_sees_the_number_and_weights_behind_it(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 2, clock)
    assert device.reading.feed(refresh=True).mode == "cold", "two clicks say too little"
    click_on(device, backend, TOPIC, 3, clock)
    assert new_page(device).mode == "personal"
    (body,) = [body for _, path, body in backend.requests if path == "/v1/recall"]
    report = RecallRequest.model_validate_json(body).report
    assert isinstance(report, CodeReport)
    view = device.privacy.overview()
    assert view.report is not None
    assert view.report.noisy == ((float(report.code),),)
    assert view.report.clear is not None
    clicks = device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
    mean = np.mean([click.vector for click in clicks], axis=0)
    (number, weights, *interests) = view.report.clear
    assert number == (float(np.argmax(backend.prototypes @ mean)),)
    np.testing.assert_allclose(weights, backend.prototypes @ mean, atol=1e-4)
    assert sum(count for count, *_ in interests) == len(clicks)
    assert view.mechanism is not None
    assert (view.mechanism.epsilon_per_report, view.budgets[0].lifetime, view.budgets[0].lifetime_limit) == (4, 4, 40)


def test_thirty_sessions_with_the_same_interests_send_one_code_and_pay_once(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    for _ in range(30):
        clock.go_on(24 * 3600)
        device.parts.serving.feed_context.recall.forget()
        new_page(device)
    bodies = {body for _, path, body in backend.requests if path == "/v1/recall"}
    assert len([path for path in backend.paths() if path == "/v1/recall"]) == 30
    assert len(bodies) == 1
    assert device.privacy.overview().budgets[0].lifetime == 4


def test_code_is_sent_again_under_a_new_release_without_a_new_charge(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    new_page(device)
    named = []
    for _ in range(RELEASES_ANSWERED + 2):
        backend.publish()
        assert device.sync()
        new_page(device)
        named.append(
            RecallRequest.model_validate_json([body for _, path, body in backend.requests if path == "/v1/recall"][-1])
        )
    assert [request.release for request in named] == list(range(2, RELEASES_ANSWERED + 4)), "each names the one in use"
    assert len({request.report.model_dump_json() for request in named}) == 1
    sent = [line.words for line in device.privacy.overview(1, "all").log.lines if "report" in line.words]
    same = "Your interest report, the same as last time"
    assert all(words.startswith(same) for words in sent[:-1]), "not even drawn again and found again"
    assert device.privacy.overview().budgets[0].lifetime == 4


@pytest.mark.parametrize(("answered", "named"), [(RELEASES_ANSWERED, [1, 1]), (2, [1, 1]), (1, [1, 2])])
def test_report_of_an_earlier_release_is_used_only_while_answered(
    make: Make, backend: FakeBackend, clock: StillClock, answered: int, named: list[int]
) -> None:
    backend.releases_answered = answered
    device = make(**PAPER)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 2, clock)
    new_page(device)
    backend.publish()
    assert device.sync()
    new_page(device)
    bodies = [body for _, path, body in backend.requests if path == "/v1/recall"]
    assert [RecallRequest.model_validate_json(body).release for body in bodies] == named
    assert device.privacy.overview().budgets[0].lifetime == pytest.approx(50 * len(set(bodies)))


def test_lowering_the_report_limit_drops_the_old_report_and_raising_it_again_is_free(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    assert new_page(device).mode == "personal"
    device.privacy.change(epsilon_per_report=2)
    assert new_page(device).mode == "front"
    device.privacy.change(epsilon_per_report=4)
    assert new_page(device).mode == "personal"
    assert device.privacy.overview().budgets[0].lifetime == 4


def test_reports_stop_with_a_notice_if_no_codebook_is_affordable(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(epsilon_per_report=2)
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = new_page(device)
    assert feed.mode == "front"
    assert "is not available within 2 epsilon" in (feed.notice or "")
    assert "the list everyone gets" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert device.status().shield == "amber"


def test_no_report_is_sent_while_reports_are_switched_off(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.privacy.change(mode="none")
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = new_page(device)
    assert (feed.mode, "reports are off" in (feed.notice or "")) == ("front", True)
    assert share(feed, TOPIC) >= 0.2
    device.privacy.erase()
    device.close()  # a profile is one process's at a time
    again = make()
    assert again.privacy.overview().settings.mode == "none"
    assert "/v1/recall" not in backend.paths()


def test_invalid_privacy_setting_changes_nothing(make: Make) -> None:
    device = make()
    with pytest.raises(ValidationError, match="clicks_per_report"):
        device.privacy.change(clicks_per_report=0, training=True)
    assert device.privacy.overview().settings == PrivacySettings()
    device.privacy.change(clicks_per_report=9)
    device.close()
    assert make().privacy.overview().settings.clicks_per_report == 9


def test_refused_report_gives_the_default_list_and_the_reason(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    backend.refuse_recall = Problem(type="urn:x", title="Bad report", status=422, detail="too short")
    click_on(device, backend, TOPIC, 3, clock)
    feed = new_page(device)
    assert feed.mode == "front"
    assert "Bad report: too short" in (feed.notice or "")
    assert len(feed.items) == 30


@pytest.mark.parametrize("status", [429, 503])
def test_page_is_made_and_a_paid_report_kept_while_the_backend_is_busy(
    make: Make, backend: FakeBackend, clock: StillClock, status: int
) -> None:
    device = make()
    before = device.reading.feed(refresh=True)
    backend.refuse_recall = Problem(type="urn:x", title="Too much", status=status, detail="come later")
    click_on(device, backend, TOPIC, 3, clock)
    feed = new_page(device)
    assert (feed.mode, len(feed.items)) == ("front", 30)
    assert feed.feed_id != before.feed_id
    assert "Too much: come later" in (feed.notice or "")
    spent = device.privacy.overview().budgets[0].spent_today
    for _ in range(3):
        device.reading.feed(refresh=True)
    assert backend.paths().count("/v1/recall") == 1, "pages ask nobody"
    backend.refuse_recall = None
    feed = new_page(device)
    assert (feed.mode, feed.notice) == ("personal", None)
    asked = [body for _, path, body in backend.requests if path == "/v1/recall"]
    assert len(asked) == 2
    assert asked[0] == asked[1], "the same report, paid for once"
    assert device.privacy.overview().budgets[0].spent_today == spent

    backend.refuse_recall = Problem(type="urn:x", title="Too much", status=status, detail="come later")
    feed = new_page(device)
    assert (feed.mode, "from the last suggestions" in (feed.notice or "")) == ("personal", True)
    assert len(feed.items) == 30


@pytest.mark.parametrize("reads", [0, 2, 4])
def test_device_sends_and_pays_for_a_report_however_little_its_reader_reads(
    make: Make, backend: FakeBackend, clock: StillClock, reads: int
) -> None:
    """A missing request would reveal that few stories were opened, and a free one when they were."""
    device = make()
    device.reading.feed(refresh=True)
    if reads:
        click_on(device, backend, TOPIC, reads, clock)
    for _ in range(3):
        device.recall_step()
    (report,) = {body for _, path, body in backend.requests if path == "/v1/recall"}
    assert isinstance(RecallRequest.model_validate_json(report).report, CodeReport)
    assert backend.paths().count("/v1/recall") == 3
    assert device.privacy.overview().budgets[0].lifetime == 4
    words = {line.words for line in device.privacy.overview(1, "all").log.lines}
    assert any("you are new" in each for each in words) == (reads < 3)


def test_blank_report_is_replaced_once_there_are_enough_clicks(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 2, clock)
    device.recall_step()
    view = device.privacy.overview()
    assert view.report is not None
    assert view.report.clear == (), "there is nothing that it says"
    assert (view.blank, view.clicks_until_report) == (True, 1)
    click_on(device, backend, "section5 topic0", 1, clock)
    assert new_page(device).mode == "personal"
    assert device.privacy.overview().report.clear != ()  # type: ignore[union-attr]
    assert device.privacy.overview().budgets[0].lifetime == 8


@pytest.mark.parametrize("clicks", [0, 5])
def test_device_with_a_spent_budget_and_no_valid_report_sends_a_cover_report(
    make: Make, backend: FakeBackend, clock: StillClock, clicks: int
) -> None:
    device = make(epsilon_lifetime_reports=4)
    device.reading.feed(refresh=True)
    device.recall_step()
    if clicks:
        click_on(device, backend, TOPIC, clicks, clock)
    device.parts.stores.report_memo.clear()  # as where an interest is muted or forgotten
    with device.parts.stores.database.transaction():
        device.parts.stores.database.write("DELETE FROM drawn_report")  # as where everything is erased
    backend.requests.clear()
    for _ in range(3):
        device.recall_step()
    (cover,) = {body for _, path, body in backend.requests if path == "/v1/recall"}
    assert backend.paths().count("/v1/recall") == 3
    assert isinstance(RecallRequest.model_validate_json(cover).report, CodeReport)
    assert device.privacy.overview().budgets[0].lifetime == 4, "it costs nothing: it is of nobody"


def test_new_release_with_the_same_codebook_needs_no_new_report(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    new_page(device)
    backend.publish()
    assert device.sync()
    device.parts.serving.feed_context.recall.forget()
    feed = new_page(device)
    assert (feed.release, feed.mode) == ("r2", "personal")
    assert device.privacy.overview().budgets[0].spent_today == 4
