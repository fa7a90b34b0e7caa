"""The short form of `python -m tests.qa.faults`: a few seeded points of each. Oracles: those of the drivers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.qa.faults.clocks import set_clocks
from tests.qa.faults.failing_parts import restarted_database
from tests.qa.faults.files import damaged_files
from tests.qa.faults.full_disks import full_at_points, full_servers, moments
from tests.qa.faults.killed_servers import killed_servers
from tests.qa.faults.kills import KilledWork, killed_at_points
from tests.qa.faults.operator import OperatorWork
from tests.qa.faults.reader import ReaderWork


@pytest.mark.timeout(900)
def test_device_killed_at_any_write_loses_no_acknowledged_data(tmp_path: Path) -> None:
    tally = killed_at_points(ReaderWork(), tmp_path / "tries", points=2, seed=7)
    assert tally.wrong == []
    assert tally.kills.total() == 2
    assert tally.points["write"] > 200, "the points are counted"


@pytest.mark.timeout(900)
def test_server_killed_during_a_round_applies_it_once(
    tmp_path: Path,
) -> None:
    tally = killed_servers(tmp_path / "tries", points=2, seed=3)
    assert tally.wrong == []
    assert tally.kills.total() >= 1, "a run may have fewer points than the one that they are drawn from"
    assert tally.points["write"] > 50
    assert tally.points["await"] > 200


@pytest.mark.timeout(900)
def test_killed_operator_command_can_be_repeated(tmp_path: Path) -> None:
    tally = killed_at_points(OperatorWork(), tmp_path / "tries", points=1, seed=5)
    assert tally.wrong == []
    assert tally.points["write"] > 200


@pytest.mark.timeout(900)
@pytest.mark.parametrize("work", [ReaderWork(), OperatorWork()], ids=["a reader's device", "an operator's commands"])
def test_full_disk_is_reported_without_partial_writes_or_loss(tmp_path: Path, work: KilledWork) -> None:
    tally = full_at_points(work, tmp_path / "tries", points=2, seed=2)
    assert tally.wrong == []
    assert tally.kills.total() == 2
    assert tally.points["room"] > 500, "what asks for room is counted"


def test_full_disk_trials_sample_every_kind_of_write_evenly() -> None:
    asked = ["write a-0123456789abcdef", "write a-fedcba9876543210", *(f"write {name}" for name in "bcdefgh")]
    first_kind = {1, 2}  # the same but for a hash
    of_each = moments(asked, 8, random.Random(1))
    assert len(first_kind & {*of_each}) == 1
    assert first_kind | {*of_each} == {*range(1, 10)}
    assert sorted(moments(asked, 100, random.Random(1))) == [*range(1, 10)]
    assert {number for seed in range(60) for number in moments(asked, 3, random.Random(seed))} == {*range(1, 10)}


@pytest.mark.timeout(900)
def test_server_with_a_temporarily_full_disk_finishes_its_rounds(tmp_path: Path) -> None:
    tally = full_servers(tmp_path / "tries", points=1, seed=2)
    assert tally.wrong == []
    assert tally.points["room"] > 100


@pytest.mark.postgres
@pytest.mark.timeout(900)
def test_database_restart_only_delays_rounds(tmp_path: Path) -> None:
    tally = restarted_database(tmp_path / "tries", points=1, seed=3)
    assert tally.wrong == []
    assert tally.kills.total() >= 1


@pytest.mark.timeout(900)
def test_clock_jumps_return_no_budget_and_block_no_round(tmp_path: Path) -> None:
    tally = set_clocks(tmp_path / "tries", points=6, seed=1)
    assert tally.wrong == []
    assert {"the server's set back", "a device's set forward"} <= tally.kills.keys()


@pytest.mark.timeout(900)
def test_damaged_backend_file_is_named_or_rebuilt(tmp_path: Path) -> None:
    tally = damaged_files(tmp_path / "tries", points=28, seed=1)
    assert tally.wrong == []
    assert tally.kills.total() == 28
