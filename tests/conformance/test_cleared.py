"""Restoring the browser's device after its store was cleared never lowers what was spent.

An empty store charges nothing before its reader has answered. Oracles: the limits of the default settings (8 a day for
reports), and sums worked out by hand.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conformance.node_end import ask_node

pytestmark = pytest.mark.node
NOW = datetime(2026, 11, 26, 9, 30, tzinfo=UTC).timestamp() * 1_000
SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000
A_DAY = 8.0
SPENT = 4.0
NOTHING_LEFT = {"reports": 0, "training": 0, "counts": 0}


def ask_browser(what: str, **given: object) -> Any:
    (answer,) = ask_node([(what, {"now": NOW, **given})])
    return answer


def restore_copy(
    unseen_ms: int, *, settled: bool = False, between: tuple[float, ...] = (), cleared: bool = False
) -> Any:
    return ask_browser("cleared_put_back", unseenMs=unseen_ms, settled=settled, between=between, clearedToo=cleared)


def test_recent_copy_in_a_tab_restores_exactly_the_spent_budget() -> None:
    found = restore_copy(5 * SECOND)
    assert found["refusedWhileOpen"], "an empty store charges nothing before its reader has answered"
    assert found["refusedAfter"], "what is charged once the copy is handed over would be in no ledger"
    assert found["once"]["question"] is None
    assert found["once"]["total"] == SPENT
    assert found["once"]["left"]["reports"] == A_DAY - SPENT
    assert found["once"]["training"], "the reader's switches hold again"
    assert found["twice"] == found["once"]


def test_restoring_a_copy_keeps_charges_and_switches_made_since() -> None:
    found = restore_copy(5 * SECOND, settled=True, between=(1.0, 2.0))
    assert found["once"]["total"] == SPENT + 3
    assert not found["once"]["training"], "what the reader switched off since stays off"
    assert not found["once"]["counting"]
    assert found["twice"] == found["once"]


def test_frozen_tab_charges_a_full_day_if_the_store_was_lost_meanwhile() -> None:
    found = restore_copy(HOUR, settled=True, between=(2.0, 2.0, 2.0), cleared=True)
    assert found["once"]["question"] is None
    assert found["once"]["left"] == NOTHING_LEFT
    assert found["once"]["total"] == A_DAY
    assert found["twice"] == found["once"], "putting it back again costs nothing more"


def test_copy_from_a_tab_frozen_for_days_charges_every_day_in_full() -> None:
    found = restore_copy(2 * DAY)
    assert found["once"]["left"] == NOTHING_LEFT
    assert found["once"]["total"] == 3 * A_DAY


def test_device_with_an_unrestorable_copy_refuses_charges_until_the_reader_answers() -> None:
    found = ask_browser("cleared_refused")
    assert "later than this device's clock" in found["why"]
    assert found["question"] == "lost"
    assert not found["spent"]
    assert found["left"] == NOTHING_LEFT


def test_copy_made_before_the_reader_answered_does_not_count_as_an_answer() -> None:
    found = ask_browser("cleared_unanswered")
    assert found["put"]["question"] == "new"
    assert found["put"]["left"] == NOTHING_LEFT
    assert found["found"]["question"] == "lost"


def test_reader_starting_over_without_a_file_has_no_budget_until_tomorrow() -> None:
    found = ask_browser("cleared_begin_again")
    assert found["today"]["question"] is None
    assert found["today"]["left"] == NOTHING_LEFT
    assert not found["spent"]
    assert found["tomorrow"]["left"]["reports"] == A_DAY
