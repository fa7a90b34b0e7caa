"""The log of requests over a real store: what is drawn together, what never is, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from device_app.privacy.sealed import digest
from device_app.shelves import Shelves
from device_app.store.byte_log import Departure
from device_app.store.ledger_book import LedgerEntry
from device_app.views.traffic import looks_page, traffic_log, traffic_view
from tests.doubles.news import NOW

LOOK, LIST = "A look for a new release.", "The list that every device gets."


@pytest.fixture
def shelves(tmp_path: Path) -> Iterator[Shelves]:
    opened = Shelves(tmp_path / "device.sqlite")
    yield opened
    opened.database.close()


def look(shelves: Shelves, at_sec: float, words: str = LOOK, *, answered: bool = True) -> int:
    """Keep a GET that says nothing about the reader: 10 bytes of head."""
    at = NOW + timedelta(seconds=at_sec)
    entry = shelves.byte_log.record(Departure(at, "sync", words, "GET", "http://h/x", b"GET /x 123", b""))
    if answered:
        shelves.byte_log.answered(entry, status=304, head=b"HTTP 304", response_bytes=2, ms=1.0)
    return entry


def report(shelves: Shelves, at_sec: float, epsilon: float = 50.0) -> int:
    """Keep a report."""
    sent = Departure(
        NOW + timedelta(seconds=at_sec), "recall", "A blurred list.", "POST", "http://h/recall", b"POST", b"body",
        mechanism="basis_laplace", epsilon=epsilon,
    )  # fmt: skip
    return shelves.byte_log.record(sent)


def test_looks_in_turn_are_drawn_together_by_their_words_and_a_report_parts_them(shelves: Shelves) -> None:
    for at in range(14):
        look(shelves, 5 * at)
        look(shelves, 5 * at + 1, LIST)
    told = report(shelves, 80)
    look(shelves, 90)
    log = traffic_log(shelves, 1, "all")
    assert [(line.words, line.count) for line in log.lines] == [
        (LOOK, 1),
        ("A blurred list.", 1),
        (LIST, 14),
        (LOOK, 14),
    ]
    looks = log.lines[3]
    assert (looks.first_at, looks.at) == (NOW, NOW + timedelta(seconds=65))
    assert (looks.sent_bytes, looks.received_bytes, looks.unanswered) == (140, 140, 0)
    assert len(looks.looks) == 10
    assert looks.looks[0].entry_id == looks.entry_id
    assert (log.requests, log.concerning) == (30, 1)
    (line,) = traffic_log(shelves, 1, None).lines
    assert (line.entry_id, line.epsilon, line.concerns) == (told, 50.0, True)


def test_reports_are_never_drawn_together_even_when_they_cost_nothing(shelves: Shelves) -> None:
    ids = [report(shelves, at, 0.0) for at in range(3)]
    assert [line.entry_id for line in traffic_log(shelves, 1, None).lines] == ids[::-1]


def test_looks_at_a_stage_of_a_sum_are_one_line_and_the_masked_vector_shows_what_the_ledger_was_charged(
    shelves: Shelves,
) -> None:
    def stage(at: int, body: bytes, method: str, mechanism: str) -> int:
        when = NOW + timedelta(seconds=at)
        words = "Masked." if body else "A stage."
        return shelves.byte_log.record(
            Departure(when, "training", words, method, "http://h/r", b"", body, mechanism=mechanism)
        )

    stage(0, b"keys", "PUT", "secure_sum")
    for at in range(1, 8):
        stage(at, b"", "GET", "presence")
    stage(9, b"masked", "PUT", "secure_sum")
    sha256 = digest(b"masked")
    shelves.ledger_book.append(LedgerEntry(NOW, "training", "secure_sum", {}, 1.5, 1e-6, sha256, "round-1"))

    masked, looks, keys = traffic_log(shelves, 1, None).lines
    assert (masked.epsilon, looks.count, len(looks.looks), keys.epsilon) == (1.5, 7, 7, 0.0)
    whole = shelves.byte_log.entry(masked.entry_id)
    assert whole is not None
    assert traffic_view(shelves, whole).entry.epsilon == 1.5


def test_a_device_that_told_nothing_shows_everything(shelves: Shelves) -> None:
    assert traffic_log(shelves, 1, None).lines == ()
    look(shelves, 0)
    log = traffic_log(shelves, 1, None)
    assert (log.shown, len(log.lines)) == ("all", 1)
    assert traffic_log(shelves, 1, "concerning").lines == ()


def test_looks_of_two_days_and_looks_without_an_answer_are_told_apart(shelves: Shelves) -> None:
    look(shelves, 0)
    look(shelves, 5, answered=False)
    look(shelves, 86_400)
    assert [(line.count, line.unanswered) for line in traffic_log(shelves, 1, "all").lines] == [(1, 0), (2, 1)]


def test_every_request_stands_in_exactly_one_line_over_all_pages(shelves: Shelves) -> None:
    ids = set()
    for at in range(130):
        ids.add(report(shelves, 10 * at, 0.0))
        ids.update(look(shelves, 10 * at + part) for part in (1, 2, 3))
    pages = traffic_log(shelves, 1, "all").pages
    lines = [line for page in range(1, pages + 1) for line in traffic_log(shelves, page, "all").lines]
    assert pages == 6
    assert sum(line.count for line in lines) == len(ids) == 520
    assert {look.entry_id for line in lines for look in (line.looks or (line,))} == ids
    assert traffic_log(shelves, 7, "all").lines == ()


def test_the_looks_behind_a_line_have_pages_of_their_own(shelves: Shelves) -> None:
    for at in range(120):
        look(shelves, at)
        look(shelves, at, LIST)
    line = traffic_log(shelves, 1, "all").lines[1]
    pages = [looks_page(shelves, line.oldest_id, line.entry_id, page) for page in (1, 2, 3)]
    found = [entry for page in pages if page is not None for entry in page.entries]
    assert [len(page.entries) for page in pages if page is not None] == [50, 50, 20]
    assert {entry.words for entry in found} == {LOOK}
    assert len({entry.entry_id for entry in found}) == 120
    assert looks_page(shelves, 1, 9_999, 1) is None
