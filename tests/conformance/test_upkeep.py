"""A failing part of the browser's device doesn't stop the others. Oracle: what each part is for, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.node_end import ask_node

pytestmark = pytest.mark.node


def answer(what: str, given: Any = None) -> Any:
    (found,) = ask_node([(what, given)])
    return found


@pytest.mark.parametrize("fails", ["error", "message error"])
def test_failed_runtime_is_started_again_when_next_needed(fails: str) -> None:
    found = answer("upkeep_runtime", fails)
    failed, *others = found["reported"]
    assert failed == "its worker could not be started"
    assert others == ["done"] * 4, "another one answers, and goes on when it errs after it has answered"
    assert found["terminated"] == [True, False]


@pytest.mark.parametrize(
    ("fault", "said", "online"), [("", "done", True), ("refused", "done", True), ("unreachable", "", False)]
)
def test_missing_round_models_do_not_interrupt_a_poll(fault: str, said: str, online: bool) -> None:
    found = answer("upkeep_rest_of_sync", [fault])
    assert found["said"].startswith(said)
    assert (found["online"], found["silentSince"] is None, found["pruned"]) == (online, online, 1)
    assert found["lastAt"], "the feed's part of the look was whole"
    assert found["asked"][:5] == ["release", "popularity", "texts", "pool", "rest"]


@pytest.mark.parametrize(("fault", "pictured"), [("", "done"), ("unreachable", "done"), ("waits", "waits")])
def test_missing_or_slow_pictures_do_not_fail_a_poll_or_round(fault: str, pictured: str) -> None:
    found = answer("upkeep_rest_of_sync", ["", fault])
    assert found["asked"] == ["release", "popularity", "texts", "pool", "rest", "pictures", "rest"]
    assert (found["said"], found["pictured"], found["rounds"]) == ("done", pictured, "done")
    assert (found["online"], found["silentSince"]) == (True, None), "the look was answered"


@pytest.mark.parametrize(("fault", "alerts"), [("", []), ("refused", ["training"]), ("unreachable", [])])
def test_running_sum_continues_when_models_for_later_rounds_are_missing(fault: str, alerts: list[str]) -> None:
    found = answer("upkeep_sum_first", fault)
    assert found["went"] == ["giveUpCutOff", "followUp", "goOnSumming", "rest"] + (
        [] if fault else ["releaseOrNull"]
    ), "no place in a round is taken without its models"
    assert found["alerts"] == alerts
    assert found["state"] == (None if fault else "idle")


def test_release_unusable_for_rounds_is_reported_at_each_step() -> None:
    found = answer("upkeep_release_rest")
    assert found["said"] == ["Release r1 was refused"] * 2 + ["Release r2 was refused"] * 3
    assert found["asked"] == ["r1", "r2"], "what is here is not fetched again"
