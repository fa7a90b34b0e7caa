"""The short form of `python -m tests.faults`: a few seeded points of each. Oracles: those of the drivers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.clocks import set_clocks
from tests.faults.failing_parts import restarted_database
from tests.faults.files import damaged_files
from tests.faults.full_disks import full_at_points, full_servers, moments
from tests.faults.killed_servers import killed_servers
from tests.faults.kills import KilledWork, killed_at_points
from tests.faults.operator import OperatorWork
from tests.faults.reader import ReaderWork


@pytest.mark.timeout(900)
def test_a_device_killed_at_any_write_of_a_readers_day_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    tally = killed_at_points(ReaderWork(), tmp_path / "tries", points=3, seed=7)
    assert tally.wrong == []
    assert tally.kills.total() >= 2
    assert tally.points["write"] > 200, "the points are counted"


@pytest.mark.timeout(900)
def test_a_server_killed_at_any_write_or_await_of_a_round_applies_it_once_with_all_it_acknowledged(
    tmp_path: Path,
) -> None:
    tally = killed_servers(tmp_path / "tries", points=2, seed=3)
    assert tally.wrong == []
    assert tally.kills.total() >= 1, "a run may have fewer points than the one that they are drawn from"
    assert tally.points["write"] > 50
    assert tally.points["await"] > 200


@pytest.mark.timeout(900)
def test_an_operators_command_killed_at_any_write_is_given_again_and_ends_as_ever(tmp_path: Path) -> None:
    tally = killed_at_points(OperatorWork(), tmp_path / "tries", points=1, seed=5)
    assert tally.wrong == []
    assert tally.points["write"] > 200


@pytest.mark.timeout(900)
@pytest.mark.parametrize("work", [ReaderWork(), OperatorWork()], ids=["a reader's device", "an operator's commands"])
def test_a_full_disk_is_told_keeps_no_half_and_costs_nothing_that_was_answered(
    tmp_path: Path, work: KilledWork
) -> None:
    tally = full_at_points(work, tmp_path / "tries", points=2, seed=2)
    assert tally.wrong == []
    assert tally.kills.total() == 2
    assert tally.points["room"] > 500, "what asks for room is counted"


def test_a_full_disk_is_met_by_every_kind_of_write_once_before_any_twice_and_not_by_the_first_kinds_alone() -> None:
    asked = ["write a-0123456789abcdef", "write a-fedcba9876543210", *(f"write {name}" for name in "bcdefgh")]
    first_kind = {1, 2}  # the same but for a hash
    of_each = moments(asked, 8, random.Random(1))
    assert len(first_kind & {*of_each}) == 1
    assert first_kind | {*of_each} == {*range(1, 10)}
    assert sorted(moments(asked, 100, random.Random(1))) == [*range(1, 10)]
    assert {number for seed in range(60) for number in moments(asked, 3, random.Random(seed))} == {*range(1, 10)}


@pytest.mark.timeout(900)
def test_a_server_whose_disk_is_full_for_a_while_ends_its_rounds_as_ever(tmp_path: Path) -> None:
    tally = full_servers(tmp_path / "tries", points=1, seed=2)
    assert tally.wrong == []
    assert tally.points["room"] > 100


@pytest.mark.postgres
@pytest.mark.timeout(900)
def test_a_database_restarted_under_rounds_costs_nothing_but_time(tmp_path: Path) -> None:
    tally = restarted_database(tmp_path / "tries", points=1, seed=3)
    assert tally.wrong == []
    assert tally.kills.total() >= 1


@pytest.mark.timeout(900)
def test_clocks_set_an_hour_forward_and_back_give_no_budget_back_and_hold_up_no_round(tmp_path: Path) -> None:
    tally = set_clocks(tmp_path / "tries", points=20, seed=1)
    assert tally.wrong == []
    assert {"the server's set back", "a device's set forward"} <= tally.kills.keys()


@pytest.mark.timeout(900)
def test_a_damaged_file_of_a_backend_is_named_or_made_again_and_gives_no_other_answer(tmp_path: Path) -> None:
    tally = damaged_files(tmp_path / "tries", points=28, seed=1)
    assert tally.wrong == []
    assert tally.kills.total() == 28
