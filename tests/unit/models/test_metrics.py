"""Metrics compared with examples by hand and a plain implementation of the definitions."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.metrics import auc, by_impression, mrr, ndcg, top_k

LABELS, SCORES = (1, 0, 0, 1, 0, 0), (0.3, 0.9, 0.1, 0.8, 0.4, 0.2)

impressions = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=1, max_size=12), min_size=1, max_size=6
).filter(lambda rows: any(len({label for label, _ in row}) == 2 for row in rows))


def plain_auc(row: list[tuple[int, int]]) -> float:
    pairs = [(p, n) for (y, p), (z, n) in itertools.product(row, row) if y > z]
    return sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs) / len(pairs)


def plain_ranking(row: list[tuple[int, int]], k: int) -> tuple[float, float]:
    ranked = [y for y, _ in sorted(row, key=lambda pair: -pair[1])]  # Python's sort is stable
    positives = [rank for rank, y in enumerate(ranked, 1) if y]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(positives)) + 1))
    gain = sum(1 / math.log2(rank + 1) for rank in positives if rank <= k)
    return sum(1 / rank for rank in positives) / len(positives), gain / ideal


def test_metrics_match_the_golden_values_of_section_1_8() -> None:
    assert auc(LABELS, SCORES) == pytest.approx(0.625)
    assert mrr(LABELS, SCORES) == pytest.approx(0.375)
    assert ndcg(LABELS, SCORES, 5) == pytest.approx(0.650921, abs=1e-6)
    assert ndcg(LABELS, SCORES, 10) == pytest.approx(0.650921, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(impressions)
def test_impression_means_match_a_plain_implementation_with_ties(rows: list[list[tuple[int, int]]]) -> None:
    flat = [(group, *pair) for group, row in enumerate(rows) for pair in row]
    seen = by_impression(*map(list, zip(*flat, strict=True)))
    kept = [row for row in rows if len({label for label, _ in row}) == 2]
    assert seen.auc == pytest.approx(np.mean([plain_auc(row) for row in kept]))
    assert seen.mrr == pytest.approx(np.mean([plain_ranking(row, 5)[0] for row in kept]))
    assert seen.ndcg5 == pytest.approx(np.mean([plain_ranking(row, 5)[1] for row in kept]))
    assert seen.ndcg10 == pytest.approx(np.mean([plain_ranking(row, 10)[1] for row in kept]))
    assert (seen.impressions, seen.skipped) == (len(kept), len(rows) - len(kept))


@given(st.lists(st.integers(0, 1), min_size=2, max_size=30).filter(lambda labels: 0 < sum(labels) < len(labels)))
def test_constant_scores_have_auc_of_exactly_one_half(labels: list[int]) -> None:
    assert auc(labels, [0.1] * len(labels)) == 0.5


def test_impressions_may_be_interleaved() -> None:
    order = np.random.default_rng(0).permutation(12)
    groups, labels, scores = np.repeat([7, 3], 6)[order], np.tile(LABELS, 2)[order], np.tile(SCORES, 2)[order]
    assert by_impression(groups, labels, scores).auc == pytest.approx(0.625)


@pytest.mark.parametrize(
    ("labels", "scores", "words"),
    [
        ([1, 1], [0.1, 0.2], "a 0 and a 1"),
        ([0, 2], [0.1, 0.2], "labels must be 0 or 1"),
        ([0, 1], [0.1, float("nan")], "scores must not be NaN"),
        ([0, 1], [0.1], "of one length"),
        ([], [], "not empty"),
    ],
)
def test_bad_input_is_named_in_the_error(labels: list[int], scores: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        auc(labels, scores)


def test_ndcg_at_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        ndcg(LABELS, SCORES, 0)


@settings(max_examples=100, deadline=None)
@given(impressions, st.integers(1, 15))
def test_precision_recall_and_ndcg_at_k_match_a_plain_implementation(rows: list[list[tuple[int, int]]], k: int) -> None:
    flat = [(group, *pair) for group, row in enumerate(rows) for pair in row]
    seen = top_k(*map(list, zip(*flat, strict=True)), k=k)  # type: ignore[arg-type, misc]
    kept = [row for row in rows if any(y for y, _ in row)]
    hits = [sum(y for y, _ in sorted(row, key=lambda pair: -pair[1])[:k]) for row in kept]
    assert seen.precision == pytest.approx(np.mean([hit / k for hit in hits]))
    assert seen.recall == pytest.approx(
        np.mean([hit / sum(y for y, _ in row) for hit, row in zip(hits, kept, strict=True)])
    )
    assert seen.ndcg == pytest.approx(np.mean([plain_ranking(row, k)[1] for row in kept]))
    assert (seen.impressions, seen.skipped) == (len(kept), len(rows) - len(kept))


def test_precision_divides_by_ten_even_with_fewer_candidates() -> None:
    seen = top_k([0] * 6, LABELS, SCORES)
    assert (seen.precision, seen.recall) == pytest.approx((0.2, 1.0))


def test_labels_without_a_positive_are_refused() -> None:
    with pytest.raises(ValueError, match="contain a 1"):
        top_k([0, 0], [0, 0], [0.1, 0.2])


def test_hundred_thousand_impressions_take_about_a_second() -> None:
    draw = np.random.default_rng(0)
    groups = np.repeat(np.arange(100_000), draw.integers(2, 20, 100_000))
    labels, scores = draw.integers(0, 2, len(groups)), draw.normal(size=len(groups))
    started = time.perf_counter()
    seen = by_impression(groups, labels, scores)
    assert time.perf_counter() - started < 5  # 0.7 to 1.0 s on a shared core, for a million candidates
    assert seen.auc == pytest.approx(0.5, abs=0.005)
    assert seen.impressions + seen.skipped == 100_000
