"""The log of requests over a real store: which lines are grouped, which never are, and that none is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from device_app.privacy.requests import COMMON
from device_app.privacy.sealed import digest
from device_app.store.byte_log import Departure
from device_app.store.ledger_entries import LedgerEntry
from device_app.stores import DeviceStores
from device_app.view_models.export import export_all
from device_app.view_models.traffic import request_group_page, traffic_log, traffic_view
from tests.doubles.news import NOW

LOOK, LIST = "A look for a new release.", "The list that every device gets."


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    opened = DeviceStores(tmp_path / "device.sqlite")
    yield opened
    opened.database.close()


def record_poll(stores: DeviceStores, at_sec: float, words: str = LOOK, *, answered: bool = True) -> int:
    """Record a GET that reveals nothing about the reader: 10 bytes of head."""
    at = NOW + timedelta(seconds=at_sec)
    entry = stores.byte_log.record(Departure(at, "sync", words, "GET", "http://h/x", b"GET /x 123", b""))
    if answered:
        stores.byte_log.answered(entry, status=304, head=b"HTTP 304", response_bytes=2, ms=1.0)
    return entry


def texts(stores: DeviceStores, at_sec: float, stories: int, mechanism: str = COMMON) -> int:
    """Record a request for the texts of a list of this many stories; by default of the default list."""
    body = json.dumps({"ids": [f"n{number}" for number in range(stories)]}).encode()
    at = NOW + timedelta(seconds=at_sec)
    words = f"The texts of the {stories} stories."
    kept = Departure(at, "bodies", words, "POST", "http://h/bodies", b"POST", body, mechanism=mechanism)
    return stores.byte_log.record(kept)


def report(stores: DeviceStores, at_sec: float, epsilon: float = 50.0) -> int:
    """Record a report."""
    sent = Departure(
        NOW + timedelta(seconds=at_sec), "recall", "A blurred list.", "POST", "http://h/recall", b"POST", b"body",
        mechanism="basis_laplace", epsilon=epsilon,
    )  # fmt: skip
    return stores.byte_log.record(sent)


def test_consecutive_polls_are_grouped_up_to_the_next_report(stores: DeviceStores) -> None:
    for at in range(14):
        record_poll(stores, 5 * at)
        record_poll(stores, 5 * at + 1, LIST)
    reported = report(stores, 80)
    record_poll(stores, 90)
    log = traffic_log(stores, 1, "all")
    assert [(line.words, line.count) for line in log.lines] == [
        (LOOK, 1),
        ("A blurred list.", 1),
        (LIST, 14),
        (LOOK, 14),
    ]
    polls = log.lines[3]
    assert (polls.first_at, polls.at) == (NOW, NOW + timedelta(seconds=65))
    assert (polls.sent_bytes, polls.received_bytes, polls.unanswered) == (140, 140, 0)
    assert len(polls.polls) == 10
    assert polls.polls[0].entry_id == polls.entry_id
    assert (log.requests, log.concerning) == (30, 1)
    (line,) = traffic_log(stores, 1, None).lines
    assert (line.entry_id, line.epsilon, line.concerns) == (reported, 50.0, True)


def test_reports_are_never_grouped_even_when_they_cost_nothing(stores: DeviceStores) -> None:
    ids = [report(stores, at, 0.0) for at in range(3)]
    assert [line.entry_id for line in traffic_log(stores, 1, None).lines] == ids[::-1]


def test_messages_of_a_sum_are_one_log_line_with_the_vectors_charge(
    stores: DeviceStores,
) -> None:
    def stage(at: int, body: bytes, method: str, mechanism: str) -> int:
        when = NOW + timedelta(seconds=at)
        words = "Masked." if body else "A stage."
        return stores.byte_log.record(
            Departure(when, "training", words, method, "http://h/r", b"", body, mechanism=mechanism)
        )

    stage(0, b"keys", "PUT", "secure_sum")
    for at in range(1, 8):
        stage(at, b"", "GET", "presence")
    stage(9, b"masked", "PUT", "secure_sum")
    sha256 = digest(b"masked")
    stores.ledger_entries.append(LedgerEntry(NOW, "training", "secure_sum", {}, 1.5, 1e-6, sha256, "round-1"))

    masked, polls, keys = traffic_log(stores, 1, None).lines
    assert (masked.epsilon, polls.count, len(polls.polls), keys.epsilon) == (1.5, 7, 7, 0.0)
    whole = stores.byte_log.entry(masked.entry_id)
    assert whole is not None
    assert traffic_view(stores, whole).entry.epsilon == 1.5


def test_default_list_texts_are_one_log_line_and_not_personal(
    stores: DeviceStores,
) -> None:
    ids = []
    for at, stories in enumerate((40, 41, 43)):
        ids.append(texts(stores, 10 * at, stories))
        record_poll(stores, 10 * at + 1)
    own = texts(stores, 50, 400, "post_processing")
    (line,) = traffic_log(stores, 1, "concerning").lines
    assert (line.entry_id, line.count) == (own, 1), "of an answer to a report, each stands alone"
    log = traffic_log(stores, 1, "all")
    assert (log.requests, log.concerning) == (7, 1)
    assert [(each.words, each.count, each.concerns) for each in log.lines] == [
        ("The texts of the 400 stories.", 1, True),
        (LOOK, 3, False),
        ("The texts of the 43 stories.", 3, False),
    ]
    together = log.lines[2]
    assert [each.entry_id for each in together.polls] == ids[::-1]
    group = request_group_page(stores, together.oldest_id, together.entry_id, 1)
    assert group is not None
    assert [each.words for each in group.entries] == [f"The texts of the {n} stories." for n in (43, 41, 40)]
    for entry_id, stories in zip(ids, (40, 41, 43), strict=True):
        kept = stores.byte_log.entry(entry_id)
        assert kept is not None
        shown = traffic_view(stores, kept)
        assert len(json.loads(shown.request_body)["ids"]) == stories, "to the byte"
        assert not shown.entry.concerns
    exported = export_all(stores.database, {}, "reader", NOW)["tables"]["traffic"]
    assert [row["id"] for row in exported if row["mechanism"] == COMMON] == ids


def test_device_that_sent_nothing_personal_shows_everything(stores: DeviceStores) -> None:
    assert traffic_log(stores, 1, None).lines == ()
    record_poll(stores, 0)
    log = traffic_log(stores, 1, None)
    assert (log.shown, len(log.lines)) == ("all", 1)
    assert traffic_log(stores, 1, "concerning").lines == ()


def test_polls_of_two_days_and_unanswered_polls_are_separated(stores: DeviceStores) -> None:
    record_poll(stores, 0)
    record_poll(stores, 5, answered=False)
    record_poll(stores, 86_400)
    assert [(line.count, line.unanswered) for line in traffic_log(stores, 1, "all").lines] == [(1, 0), (2, 1)]


def test_every_request_appears_in_exactly_one_line(stores: DeviceStores) -> None:
    ids = set()
    for at in range(130):
        ids.add(report(stores, 10 * at, 0.0))
        ids.update(record_poll(stores, 10 * at + part) for part in (1, 2, 3))
    pages = traffic_log(stores, 1, "all").pages
    lines = [line for page in range(1, pages + 1) for line in traffic_log(stores, page, "all").lines]
    assert pages == 6
    assert sum(line.count for line in lines) == len(ids) == 520
    assert {look.entry_id for line in lines for look in (line.polls or (line,))} == ids
    assert traffic_log(stores, 7, "all").lines == ()


def test_polls_grouped_in_one_line_are_listed_on_pages(stores: DeviceStores) -> None:
    for at in range(120):
        record_poll(stores, at)
        record_poll(stores, at, LIST)
    line = traffic_log(stores, 1, "all").lines[1]
    pages = [request_group_page(stores, line.oldest_id, line.entry_id, page) for page in (1, 2, 3)]
    found = [entry for page in pages if page is not None for entry in page.entries]
    assert [len(page.entries) for page in pages if page is not None] == [50, 50, 20]
    assert {entry.words for entry in found} == {LOOK}
    assert len({entry.entry_id for entry in found}) == 120
    assert request_group_page(stores, 1, 9_999, 1) is None
