"""The frontier over bytes and pool size: its measurements in a synthetic world, and the device's figures from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.measurements.frontier import PairedGain
from experiments import records
from experiments.bench.headlines import Headline
from experiments.bench.pools import CHOSEN, tables
from experiments.datasets.mind import NewsTable
from experiments.recall import pools
from experiments.recall.auto_choice import CONTROL, LOST_MOST, POPULAR, RECORD, frontier_of, judged, recorded
from experiments.recall.measure import splits
from experiments.recall.pools import PLACES, PoolPart, RecallMethod
from protocol.recall_frontier import packaged_frontier

NEWS, BESIDE, WIDTH = 1_500, 1_200, 48


@pytest.fixture(scope="module")
def world() -> list[PoolPart]:
    """Readers of one of six groups of articles each, and headlines that nobody reads."""
    draw = np.random.default_rng(3)
    middles = draw.normal(size=(6, WIDTH))

    def near(count: int) -> np.ndarray:
        return (middles[np.arange(count) % 6] + 0.5 * draw.normal(size=(count, WIDTH))).astype(np.float32)

    def clicks(group: int) -> np.ndarray:
        return draw.choice(np.flatnonzero(np.arange(NEWS) % 6 == group), size=9, replace=False)

    names = tuple(map(str, range(NEWS)))
    mind = NewsTable(names, ("news",) * NEWS, ("",) * NEWS, tuple(f"title {name}" for name in names), ("",) * NEWS)
    beside = [Headline("agency", "world", f"headline {at}", "and its abstract") for at in range(BESIDE)]
    validation, test = splits([clicks(reader % 6) for reader in range(400)], NEWS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pools, "HEADLINES_BESIDE", (0, BESIDE, 50_000))
        patched.setattr(pools, "REPORTS", {4: 2.0, 16: 4.0})
        patched.setattr(pools, "SHARPNESSES", (4.0,))
        same = {pools.EPOCH: np.eye(WIDTH, dtype=np.float32)}
        patched.setattr(pools, "train_tower", lambda titles, readers, kept: same)
        return pools.measure(mind, near(NEWS), beside, near(BESIDE), validation, test)


def test_recall_falls_with_the_pool_and_rises_with_longer_lists_which_are_larger(world: list[PoolPart]) -> None:
    small, large = world
    assert (small.news, large.news) == (NEWS, NEWS + BESIDE), "what the headlines don't reach is left out"
    for part in world:
        for way in part.ways:
            assert list(way.found) == sorted(way.found), way.name
            assert list(way.weight) == sorted(way.weight), way.name
        exact, popular = part.ways[-1], part.ways[0]
        assert exact.found[0] > popular.found[0] + 5, "readers of one group"
        assert popular.gain[0] == PairedGain(0.0, 0.0, 0.0)
        assert popular.weight[0] < exact.weight[0], "the list for everybody is sent compressed"
    for mine, theirs in zip(small.ways, large.ways, strict=True):
        assert mine.found[0] > theirs.found[0], mine.name
    copies = [next(way for way in part.ways if way.name.startswith("broadcast")).weight[0] for part in world]
    assert copies[1] > 1.1 * copies[0]


def test_packaged_figures_match_the_tables_and_never_recommend_the_exact_vector(
    world: list[PoolPart],
) -> None:
    found, weight, chosen = tables(world, "Left out: the rest")
    frontier = frontier_of(found, weight, "test")
    assert frontier.pools == (NEWS, NEWS + BESIDE)
    assert {each.mode for each in frontier.lists} == {"none", "interest", "broadcast"}
    code = next(each for each in frontier.lists if (each.codebook, each.places) == (16, 400))
    way = next(way for way in world[1].ways if way.name == "code K=16")
    at = PLACES.index(400)
    popular, common = (next(each for each in world[1].ways if each.name == name) for name in (POPULAR, CONTROL))
    beyond_content = max(0.0, common.found[at] - popular.found[at])
    assert code.found[1] == pytest.approx(way.found[at] - beyond_content, abs=0.011)
    assert code.weight[1] == way.weight[PLACES.index(400)]
    assert "Left out: the rest" in found.notes
    assert chosen.title == CHOSEN
    assert max(row.lost for row in judged(frontier)) <= LOST_MOST


def test_mode_missing_in_a_pool_is_named_in_the_error(world: list[PoolPart]) -> None:
    found, weight, _ = tables(world)
    with pytest.raises(ValueError, match="popular"):
        frontier_of(replace(found, rows=found.rows[1:]), weight, "test")


def test_recommendation_that_loses_too_much_recall_is_detected() -> None:
    def way(name: str, reported: float, found: float, weight: int) -> RecallMethod:
        gain = (PairedGain(0.0, 0.0, 0.0),) * len(PLACES)
        return RecallMethod(name, reported, (found,) * len(PLACES), gain, (weight,) * len(PLACES))

    part = PoolPart(10_000, (way("popular", 0.0, 50.0, 10), way("code K=16", 4.0, 50.2, 10)), 9)
    found, weight, _ = tables([part])
    (reported,) = {row.chosen.mode for row in judged(frontier_of(found, weight, "test")) if row.epsilon_limit == 4.0}
    assert reported == "none", "a report that adds less than the error of the figures isn't worth its epsilon"
    dear = PoolPart(10_000, (way("popular", 0.0, 50.0, 10), way("code K=16", 4.0, 51.0, 10)), 9)
    found, weight, _ = tables([dear])
    rows = judged(frontier_of(found, weight, "test"))
    assert {row.chosen.mode for row in rows if row.epsilon_limit == 4.0} == {"interest"}
    assert max(row.lost for row in rows) == 0


def test_packaged_figures_match_the_record() -> None:
    """To see where they differ: `python -m experiments.recall.auto_choice`."""
    assert packaged_frontier() == recorded(records.read(RECORD))


def test_auto_mode_loses_at_most_half_a_point_to_the_best() -> None:
    rows = judged(packaged_frontier())
    assert {row.news for row in rows} == set(packaged_frontier().pools)
    assert len(rows) >= 72, "three pools, four epsilons, and six weights: lists of one length weigh alike"
    worst = max(rows, key=lambda row: row.lost)
    assert worst.lost <= LOST_MOST, worst
    for row in rows:
        assert row.chosen.epsilon <= row.epsilon_limit
        assert row.chosen.weight <= row.bytes_limit
