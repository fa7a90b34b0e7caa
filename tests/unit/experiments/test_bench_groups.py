"""The bench of groups. Oracles: gains by hand, and a pool of synthetic topics."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.bench.groups import PAIRS, GroupsOutcome, GroupsSizes, new_readers_table, outcomes_table, played
from experiments.bench.heldout_readers import Pool
from experiments.papers.finding import synthetic_populations
from tests.doubles.news import NOW, synthetic_pool


def outcomes(gain: float, apart: float = 0.5) -> dict[str, GroupsOutcome]:
    start = np.full(5, 0.6)
    one = GroupsOutcome(start + 0.05, start, 0.5, start, start)
    groups = GroupsOutcome(one.aucs + gain * np.array([1, 1, 1, 0, 0]), start, apart, start - gain, start + 0.01)
    return {spec.name: each for pair in PAIRS for spec, each in zip(pair, (one, groups), strict=True)}


def test_groups_are_compared_with_one_model_for_warm_and_cold_readers() -> None:
    table = outcomes_table(
        {"two kinds": [outcomes(0.01, 0.8), outcomes(0.03, 1.0)]}, GroupsSizes(seeds=2, warm=3, cold=2)
    )
    rows = {str(row[1]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(rows) == [
        "small_ranker/exact/mean",
        "groups/exact/mean",
        "small_ranker/secure/median",
        "groups/secure/median",
    ]
    assert rows["groups/exact/mean"]["warm AUC"] == "0.6700"
    assert rows["groups/exact/mean"]["cold AUC"] == rows["small_ranker/exact/mean"]["cold AUC"] == "0.6500"
    assert str(rows["groups/exact/mean"]["warm - one model"]).startswith("+0.0200 (+0.01")
    assert rows["groups/exact/mean"]["cold - one model"] == "+0.0000 (+0.0000 to +0.0000)"
    assert rows["groups/exact/mean"]["in own group"] == "0.90"
    assert rows["small_ranker/exact/mean"]["warm - one model"] is None


def test_readers_without_clicks_are_scored_by_first_group_and_global_model() -> None:
    table = new_readers_table({"two kinds": [outcomes(0.01), outcomes(0.03)]})
    rows = {str(row[1]): row for row in table.rows}
    assert list(rows) == ["groups/exact/mean", "groups/secure/median"]
    for row in rows.values():
        assert (row[2], row[3], row[5]) == ("0.5800", "0.6100", "0.6000")
        assert str(row[4]).startswith("-0.0300 (-0.03")


def test_every_system_is_run_on_the_same_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = synthetic_pool(600)
    sections = sorted({card.section for card in drawn.cards})
    monkeypatch.setattr(synthetic_populations, "TRUE_GROUPS", (tuple(sections[:4]), tuple(sections[4:])))
    pool = Pool(tuple(drawn.cards), np.asarray(drawn.vectors, dtype=np.float32))
    found = played(pool, NOW, "two kinds", 0, GroupsSizes(rounds=1, cohort=2, seeds=1, warm=4, cold=2))
    assert set(found) == {spec.name for pair in PAIRS for spec in pair}
    starts = [each.start for each in found.values()]
    for start in starts:
        np.testing.assert_array_equal(start, starts[0])
    assert all(each.aucs.shape == (6,) for each in found.values())
    assert (found["groups/secure/median"].aucs != found["small_ranker/secure/median"].aucs).any()
    for one, groups in PAIRS:
        np.testing.assert_array_equal(found[one.name].new, found[one.name].new_common)
        assert (found[groups.name].new != found[groups.name].aucs).any()
