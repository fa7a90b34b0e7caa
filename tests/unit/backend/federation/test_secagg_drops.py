"""Dropouts at every stage. Oracle: numpy's sum of the survivors' vectors, in the ring."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from itertools import combinations
from math import comb

import pytest

from backend.federation.errors import SumFailed
from backend.federation.secagg.secure_sum import SecureSumServer
from tests.doubles.secure_sums import (
    STAGES,
    SumDevice,
    answer,
    cohort,
    deliver,
    plain_sum,
    restarted_server,
    run_sum,
    terms,
)


def subsets(places: Collection[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(places) + 1):
        yield from combinations(sorted(places), size)


class Patterns:
    """Every pattern of dropouts as a tree: what patterns share up to a stage is computed once, then forked."""

    def __init__(self, mode: str, size: int, threshold: int) -> None:
        self.threshold = threshold
        self.stages = [stage for stage in STAGES if stage != "agree" or mode == "active"]
        self.opened = self.failed = 0
        server, devices = cohort(terms(size, mode=mode), threshold=threshold)
        for device in devices:
            device.start()
        self.explore(server, dict(enumerate(devices)), 0, [])

    def explore(
        self, server: SecureSumServer, devices: dict[int, SumDevice], depth: int, summed: list[SumDevice]
    ) -> None:
        stage = self.stages[depth]
        for alive in subsets(devices):
            fork = restarted_server(server)
            left = {place: devices[place].revived() for place in alive}
            for device in left.values():
                assert device.state.stage == stage
                deliver(fork, device)
            if len(alive) < self.threshold:
                with pytest.raises(SumFailed):
                    fork.open() if stage == "unmask" else fork.close()
                assert fork.stage == "failed"
                assert not fork.total.any(), "nothing is left of a sum that failed"
                self.failed += 1
            elif stage == "unmask":
                assert fork.complete
                assert (fork.open().vector == plain_sum(summed, range(len(summed)))).all()
                self.opened += 1
            else:
                fork.close()
                for device in left.values():
                    device.receive(answer(fork, device))
                self.explore(fork, left, depth + 1, list(left.values()) if stage == "masked" else summed)


def test_sum_of_five_devices_is_exact_or_refused_for_every_dropout_pattern() -> None:
    found = Patterns("semi_honest", 5, 3)
    # At most 2 of 5 vanish, each at one of the five stages.
    assert found.opened == sum(comb(5, gone) * 5**gone for gone in range(3)) == 276
    assert found.failed > 0


def test_active_sum_of_four_devices_is_exact_or_refused_for_every_dropout_pattern() -> None:
    found = Patterns("active", 4, 3)
    assert found.opened == sum(comb(4, gone) * 6**gone for gone in range(2)) == 25
    assert found.failed > 0


@pytest.mark.parametrize("stage", ["shares", "complaints", "masked", "unmask"])
def test_thirty_percent_of_fifty_devices_may_drop_out_at_any_stage(stage: str) -> None:
    rng = random.Random(stage)
    gone = set(rng.sample(range(50), 15))
    server, devices = cohort(terms(50, length=9), threshold=34)
    opened = run_sum(server, devices, {stage: gone})
    summed = [place for place in range(50) if stage == "unmask" or place not in gone]
    assert len(opened.survivors) == len(summed)
    assert (opened.vector == plain_sum(devices, summed)).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_thirty_percent_of_fifty_devices_may_drop_out_over_all_stages(seed: int) -> None:
    rng = random.Random(seed)
    mode, stages = rng.choice([("active", STAGES[1:]), ("semi_honest", ("shares", "complaints", "masked", "unmask"))])
    when = {place: rng.choice(stages) for place in rng.sample(range(50), 15)}
    gone = {stage: {place for place, at in when.items() if at == stage} for stage in stages}
    server, devices = cohort(terms(50, length=9, mode=mode), threshold=34)
    opened = run_sum(server, devices, gone)
    summed = [place for place in range(50) if when.get(place) not in ("shares", "complaints", "masked")]
    assert (opened.vector == plain_sum(devices, summed)).all()


def test_sum_with_one_dropout_too_many_is_not_opened() -> None:
    server, devices = cohort(terms(10, mode="active"), threshold=7)
    with pytest.raises(SumFailed, match=r"6 of the 7 shares"):
        run_sum(server, devices, {"unmask": {0, 3, 5, 9}})
    assert server.stage == "failed"
    assert not server.total.any()


def test_sum_with_fewer_survivors_than_the_minimum_cohort_is_not_opened() -> None:
    server, devices = cohort(terms(6, cohort_minimum=6), threshold=4)
    with pytest.raises(SumFailed, match="5 members sent a masked vector; 6 are needed"):
        run_sum(server, devices, {"masked": {2}})
    assert not server.total.any()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_sum_is_exact_in_every_ring(bits: int) -> None:
    server, devices = cohort(terms(5, length=1_003, bits=bits, bound=1.0), threshold=3)
    opened = run_sum(server, devices, {"masked": {1}, "unmask": {2}})
    assert (opened.vector == plain_sum(devices, [0, 2, 3, 4])).all()
