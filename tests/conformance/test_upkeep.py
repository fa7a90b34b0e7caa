"""A part of the browser's device that fails keeps no other from its work. Oracle: what each part is for, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.node_end import ask_node

pytestmark = pytest.mark.node


def answer(what: str, given: Any = None) -> Any:
    (found,) = ask_node([(what, given)])
    return found


@pytest.mark.parametrize("fails", ["error", "message error"])
def test_a_runtime_that_could_not_be_started_is_started_again_when_it_is_needed_next(fails: str) -> None:
    found = answer("upkeep_runtime", fails)
    failed, *others = found["told"]
    assert failed == "its worker can't be had"
    assert others == ["done"] * 4, "another one answers, and goes on when it errs after it has answered"
    assert found["terminated"] == [True, False]


@pytest.mark.parametrize(
    ("fault", "said", "online"), [("", "done", True), ("refused", "done", True), ("unreachable", "", False)]
)
def test_models_of_rounds_that_cant_be_had_keep_no_look_at_what_is_new_from_its_end(
    fault: str, said: str, online: bool
) -> None:
    found = answer("upkeep_rest_of_sync", [fault])
    assert found["said"].startswith(said)
    assert (found["online"], found["silentSince"] is None, found["pruned"]) == (online, online, 1)
    assert found["lastAt"], "the feed's part of the look was whole"
    assert found["asked"][:5] == ["release", "popularity", "texts", "pool", "rest"]


@pytest.mark.parametrize(("fault", "pictured"), [("", "done"), ("unreachable", "done"), ("waits", "waits")])
def test_pictures_that_cant_be_had_or_are_long_in_coming_are_no_trouble_of_a_look_or_a_round(
    fault: str, pictured: str
) -> None:
    found = answer("upkeep_rest_of_sync", ["", fault])
    assert found["asked"] == ["release", "popularity", "texts", "pool", "rest", "pictures", "rest"]
    assert (found["said"], found["pictured"], found["rounds"]) == ("done", pictured, "done")
    assert (found["online"], found["silentSince"]) == (True, None), "the look was answered"


@pytest.mark.parametrize(("fault", "alerts"), [("", []), ("refused", ["training"]), ("unreachable", [])])
def test_a_sum_under_way_goes_on_without_the_models_of_rounds_to_come(fault: str, alerts: list[str]) -> None:
    found = answer("upkeep_sum_first", fault)
    assert found["went"] == ["giveUpCutOff", "followUp", "goOnSumming", "rest"] + (
        [] if fault else ["releaseOrNull"]
    ), "no place in a round is taken without its models"
    assert found["alerts"] == alerts
    assert found["state"] == (None if fault else "idle")


def test_what_rounds_cant_use_of_a_release_is_told_each_time_and_another_releases_is_its_own() -> None:
    found = answer("upkeep_release_rest")
    assert found["said"] == ["Release r1 was refused"] * 2 + ["Release r2 was refused"] * 3
    assert found["asked"] == ["r1", "r2"], "what is here is not fetched again"
