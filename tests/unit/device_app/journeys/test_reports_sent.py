"""When a report leaves, what it costs, and what happens where none may."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from device_app.feed import recall_answers, report_choice
from device_app.privacy.reports import seal_report
from device_app.privacy.sealed import Sealed
from device_app.settings import PrivacySettings
from device_app.wire.news import BodiesRequest
from device_app.wire.problem import Problem
from device_app.wire.recall import CodeReport, RecallRequest
from device_app.wire.releases import RELEASES_ANSWERED
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import PAPER, TOPIC, Make, click_on, share


def test_a_click_reaches_the_backend_in_no_request(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(clicks_before_report=1)
    device.feed(refresh=True)
    backend.requests.clear()
    news_id = device.feed(refresh=True).items[3].card.id
    device.open(news_id, device.feed().feed_id)
    device.feed(refresh=True)
    while device.prefetch_step():
        pass
    posted = [(path, body) for method, path, body in backend.requests if method == "POST"]
    assert {path for path, _ in posted} == {"/v1/recall", "/v1/news/bodies"}
    for path, body in posted:
        if path == "/v1/news/bodies":
            assert len(BodiesRequest.model_validate_json(body).ids) >= 400
        else:
            assert news_id.encode() not in body


def test_a_spent_budget_leaves_the_common_list_ranked_here(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make(epsilon_per_day_reports=3.9)
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed(refresh=True)
    assert feed.mode == "front"
    assert "budget" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert share(feed, TOPIC) >= 0.2
    assert device.status().shield == "amber"


def test_reports_switched_off_while_a_page_is_made_leave_it_without_one(
    make: Make, backend: FakeBackend, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a second tab, between the choice of a report and its payment."""
    device = make(clicks_before_report=1)
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)

    def switched_off(*made_of: Any, **more: Any) -> Sealed[RecallRequest]:
        device.set_privacy(mode="none")
        return seal_report(*made_of, **more)

    monkeypatch.setattr(report_choice, "seal_report", switched_off)
    feed = device.feed(refresh=True)
    assert feed.mode == "front"
    assert len(feed.items) == 30
    assert "switched off" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert device.parts.ledger.total("reports") == 0


def test_with_a_report_already_paid_for_a_spent_budget_goes_on_with_it(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(**PAPER | {"epsilon_per_day_reports": 50, "clicks_per_report": 1})
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 2, clock)
    assert device.feed(refresh=True).notice is None
    click_on(device, backend, "section5 topic0", 2, clock)
    device.parts.serving.feed_context.recall.forget()
    feed = device.feed(refresh=True)
    assert (feed.mode, "last report" in (feed.notice or "")) == ("personal", True)
    first, second = [body for _, path, body in backend.requests if path == "/v1/recall"]
    assert first == second
    clock.go_on(24 * 3600)
    device.parts.serving.changed()
    assert device.feed(refresh=True).notice is None


def test_a_code_is_reported_by_default_costs_four_and_is_shown_with_the_truth(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 2, clock)
    assert device.feed(refresh=True).mode == "cold", "two clicks say too little to pay for"
    assert "/v1/recall" not in backend.paths()
    click_on(device, backend, TOPIC, 3, clock)
    assert device.feed(refresh=True).mode == "personal"
    (body,) = [body for _, path, body in backend.requests if path == "/v1/recall"]
    report = RecallRequest.model_validate_json(body).report
    assert isinstance(report, CodeReport)
    view = device.privacy()
    assert view.report is not None
    assert view.report.noisy == ((float(report.code),),)
    assert view.report.clear is not None
    clicks = device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
    mean = np.mean([click.vector for click in clicks], axis=0)
    assert view.report.clear == ((float(np.argmax(backend.prototypes @ mean)),),)
    assert view.mechanism is not None
    assert (view.mechanism.epsilon_per_report, view.budgets[0].lifetime, view.budgets[0].lifetime_limit) == (4, 4, 40)


def test_thirty_sessions_of_one_taste_send_one_code_and_pay_once(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    for _ in range(30):
        clock.go_on(24 * 3600)
        device.parts.serving.feed_context.recall.forget()
        device.feed(refresh=True)
    bodies = {body for _, path, body in backend.requests if path == "/v1/recall"}
    assert len([path for path in backend.paths() if path == "/v1/recall"]) == 30
    assert len(bodies) == 1
    assert device.privacy().budgets[0].lifetime == 4


def test_a_code_outlives_more_releases_than_the_server_answers_and_goes_under_the_one_in_use(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    device.feed(refresh=True)
    named = []
    for _ in range(RELEASES_ANSWERED + 2):
        backend.publish()
        assert device.sync()
        device.feed(refresh=True)
        named.append(
            RecallRequest.model_validate_json([body for _, path, body in backend.requests if path == "/v1/recall"][-1])
        )
    assert [request.release for request in named] == list(range(2, RELEASES_ANSWERED + 4)), "each names the one in use"
    assert len({request.report.model_dump_json() for request in named}) == 1
    sent = [line.words for line in device.privacy(1, "all").log.lines if "report of your interests" in line.words]
    assert all(words.startswith("The same report") for words in sent[:-1]), "not even drawn anew and found again"
    assert device.privacy().budgets[0].lifetime == 4


@pytest.mark.parametrize(("answered", "named"), [(RELEASES_ANSWERED, [1]), (2, [1]), (1, [1, 2])])
def test_a_report_of_an_earlier_release_is_in_use_only_while_the_manifest_says_that_is_answered(
    make: Make, backend: FakeBackend, clock: StillClock, answered: int, named: list[int]
) -> None:
    backend.releases_answered = answered
    device = make(**PAPER)
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 2, clock)
    device.feed(refresh=True)
    backend.publish()
    assert device.sync()
    device.feed(refresh=True)
    bodies = [body for _, path, body in backend.requests if path == "/v1/recall"]
    assert [RecallRequest.model_validate_json(body).release for body in bodies] == named
    assert device.privacy().budgets[0].lifetime == pytest.approx(50 * len(named))


def test_a_lower_limit_of_a_report_takes_the_old_one_out_of_use_at_once_and_the_way_back_is_free(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    assert device.feed(refresh=True).mode == "personal"
    device.set_privacy(epsilon_per_report=2)
    assert device.feed(refresh=True).mode == "front"
    device.set_privacy(epsilon_per_report=4)
    assert device.feed(refresh=True).mode == "personal"
    assert device.privacy().budgets[0].lifetime == 4


def test_a_release_without_a_codebook_within_the_limit_reports_nothing_and_says_so(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make(epsilon_per_report=2)
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed(refresh=True)
    assert feed.mode == "front"
    assert "no way to report within 2 epsilon" in (feed.notice or "")
    assert "the list that everybody gets" in (feed.notice or "")
    assert "/v1/recall" not in backend.paths()
    assert device.status().shield == "amber"


def test_reports_switched_off_send_no_report_and_stay_off(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.set_privacy(mode="none")
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 4, clock)
    feed = device.feed(refresh=True)
    assert (feed.mode, "switched off" in (feed.notice or "")) == ("front", True)
    assert share(feed, TOPIC) >= 0.2
    device.erase()
    device.close()  # a profile is one process's at a time
    again = make()
    assert again.privacy().settings.mode == "none"
    assert "/v1/recall" not in backend.paths()


def test_a_privacy_setting_out_of_bounds_changes_nothing(make: Make) -> None:
    device = make()
    with pytest.raises(ValidationError, match="clicks_per_report"):
        device.set_privacy(clicks_per_report=0, training=True)
    assert device.privacy().settings == PrivacySettings()
    device.set_privacy(clicks_per_report=9)
    device.close()
    assert make().privacy().settings.clicks_per_report == 9


def test_a_refused_report_gives_the_common_list_and_the_reason(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed(refresh=True)
    backend.refuse_recall = Problem(type="urn:x", title="Bad report", status=422, detail="too short")
    click_on(device, backend, TOPIC, 3, clock)
    feed = device.feed(refresh=True)
    assert feed.mode == "front"
    assert "Bad report: too short" in (feed.notice or "")
    assert len(feed.items) == 30


@pytest.mark.parametrize("status", [429, 503])
def test_a_backend_with_too_much_to_do_costs_neither_the_last_feed_nor_a_report(
    make: Make, backend: FakeBackend, clock: StillClock, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, now = make(), SimpleNamespace(sec=1_000.0)
    monkeypatch.setattr(recall_answers, "time", SimpleNamespace(monotonic=lambda: now.sec))
    before = device.feed(refresh=True)
    backend.refuse_recall = Problem(type="urn:x", title="Too much", status=status, detail="come later")
    click_on(device, backend, TOPIC, 3, clock)
    feed = device.feed(refresh=True)
    assert (feed.mode, feed.feed_id) == ("offline", before.feed_id)
    assert "Too much: come later" in (feed.notice or "")
    assert "your last page" in (feed.notice or "")
    spent = device.privacy().budgets[0].spent_today
    device.feed(refresh=True)
    assert backend.paths().count("/v1/recall") == 1, "asked to wait, it waits"
    backend.refuse_recall, now.sec = None, now.sec + 2 * recall_answers.BUSY_RETRY_SEC
    feed = device.feed(refresh=True)
    assert feed.mode == "personal"
    asked = [body for _, path, body in backend.requests if path == "/v1/recall"]
    assert len(asked) == 2
    assert asked[0] == asked[1], "the same report, paid for once"
    assert device.privacy().budgets[0].spent_today == spent

    now.sec += 3_600
    backend.refuse_recall = Problem(type="urn:x", title="Too much", status=status, detail="come later")
    feed = device.feed(refresh=True)
    assert (feed.mode, "from the last answer" in (feed.notice or "")) == ("personal", True)
    assert len(feed.items) == 30


def test_without_any_feed_a_backend_with_too_much_to_do_leaves_the_common_list(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    with device.parts.stores.database.transaction():
        device.parts.stores.database.write("DELETE FROM feed")
    backend.refuse_recall = Problem(type="urn:x", title="Too much", status=503, detail="come later")
    feed = device.feed(refresh=True)
    assert (feed.mode, len(feed.items)) == ("front", 30)
    assert "Too much: come later" in (feed.notice or "")


def test_a_new_release_does_not_cost_a_new_report(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    device = make()
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 3, clock)
    device.feed(refresh=True)
    backend.publish()
    assert device.sync()
    device.parts.serving.feed_context.recall.forget()
    feed = device.feed(refresh=True)
    assert (feed.release, feed.mode) == ("r2", "personal")
    assert device.privacy().budgets[0].spent_today == 4
