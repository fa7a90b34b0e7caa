"""How the console describes a secure round. Oracle: the state machine's own order of stages."""

from __future__ import annotations

from functools import partial

import pytest

from backend.console.round_pages import opened_message, scheduled, steps
from backend.federation.protections.registry import resolve
from backend.federation.rounds.scheduling import Schedule
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED
from protocol.formatting import number
from protocol.protections import SUMMED
from tests.doubles import secure_round_status

status = partial(secure_round_status.status, cohort=6, cohort_minimum=4, joined=6)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("open", ["now", "", "", ""]),
        ("keys", ["now", "", "", ""]),
        ("shares", ["done", "now", "", ""]),
        ("masked", ["done", "done", "now", ""]),
        ("agree", ["done", "done", "done", "now"]),
        ("unmask", ["done", "done", "done", "now"]),
        ("applied", ["done", "done", "done", "done"]),
    ],
)
def test_each_stage_of_a_secure_round_is_shown(state: str, shown: list[str]) -> None:
    assert [each for _, _, each in steps(status(state))] == shown


@pytest.mark.parametrize(
    ("uploaded", "shown"),
    [(0, ["failed", "", "", ""]), (3, ["done", "done", "failed", ""]), (4, ["done", "done", "done", "failed"])],
)
def test_failed_secure_round_shows_how_far_it_came(uploaded: int, shown: list[str]) -> None:
    assert [each for _, _, each in steps(status("failed", uploaded=uploaded))] == shown


def test_opened_sum_is_shown_with_survivors_and_price() -> None:
    assert opened_message(status("masked")) == "not opened yet"
    assert opened_message(status("failed", finished_at=secure_round_status.OPENED)) == "nothing was opened"
    applied = status(
        "applied", published="r2", survivors=5, finished_at=secure_round_status.OPENED, epsilon=4.3254, delta=1e-6
    )
    assert opened_message(applied) == "r2: the sum of 5 devices, epsilon 4.33 at delta 1e-06"
    exact = applied.model_copy(update={"epsilon": None, "delta": None})
    assert opened_message(exact).endswith("no noise, so no epsilon limits what the sum reveals")


def test_unpublished_sum_is_shown_without_a_release() -> None:
    counted = status("applied", survivors=5, finished_at=secure_round_status.OPENED, epsilon=4.3254, delta=1e-6)
    assert opened_message(counted) == "the sum of 5 devices, epsilon 4.33 at delta 1e-06"
    plain = status("applied", stages="updates", finished_at=secure_round_status.OPENED)
    assert steps(plain)[-1] == ("Averaged and published", "no release", "done")


@pytest.mark.parametrize("name", COMPOSED)
def test_every_systems_protection_has_a_description(name: str) -> None:
    protection = COMPOSED[name].protection
    words = resolve(protection).describe(number)

    assert ("masks" in words) is isinstance(protection, SUMMED)
    assert ("no noise" in words) is (isinstance(protection, SUMMED) and not protection.sigma)


@pytest.mark.parametrize(
    ("every", "waiting", "words"),
    [
        (15.0, None, "every 15 minutes"),
        (None, 40, "when about 40 devices are waiting"),
        (15.0, 40, "when about 40 devices are waiting, at most every 15 minutes"),
    ],
)
def test_schedule_is_described_in_a_sentence(every: float | None, waiting: int | None, words: str) -> None:
    assert scheduled(Schedule(RoundRequest("small_ranker/secure/median", 60, 30, 60.0), every, waiting)) == words
