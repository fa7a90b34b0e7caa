"""Scores behind noisy ones. Oracles: least squares over many draws, and the popular list for uninformative reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.db.engine import open_engine
from backend.recall.decode import aggregate
from backend.recall.popularity import PopularNews
from backend.recall.posterior import CHANNEL_LENGTH, Bound, ScorePrior, clipped, within_l1
from backend.recall.served_releases import ServedReleases
from backend.releases.store import ReleaseStore
from protocol.tensors import pack
from tests.doubles.recall_world import BASIS_SIZE, DIMENSIONS, publish, recall_draft, settings_in

B, D, CLIP = 6, 12, 0.2


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture
def basis() -> tuple[np.ndarray, np.ndarray]:
    """Return keys and topics."""
    draw = np.random.default_rng(3)
    topics = unit(draw.normal(size=(B, D)))
    return (0.5 * topics + 0.02 * draw.normal(size=(B, D))).astype(np.float32), topics


def typical(keys: np.ndarray, topics: np.ndarray, bounded: Bound) -> np.ndarray:
    return bounded((CHANNEL_LENGTH * topics @ keys.T).astype(np.float64))


@pytest.mark.parametrize("bounded", [clipped(CLIP), within_l1(CLIP)], ids=["clipped", "within L1"])
@pytest.mark.parametrize("noise_scale", [0.02, 0.2, 2.0])
def test_score_prior_is_the_best_linear_estimator(
    basis: tuple[np.ndarray, np.ndarray], bounded: Bound, noise_scale: float
) -> None:
    keys, topics = basis
    draw = np.random.default_rng(8)
    scores = typical(keys, topics, bounded)[draw.integers(B, size=200_000)]
    noisy = scores + draw.laplace(0, noise_scale, scores.shape)
    best, *_ = np.linalg.lstsq(np.column_stack([noisy, np.ones(len(noisy))]), scores, rcond=None)
    prior = ScorePrior.of(keys, topics, bounded, noise_scale)

    found = ((prior.given(noisy) - scores) ** 2).mean()
    least = ((noisy @ best[:B] + best[B] - scores) ** 2).mean()
    assert found == pytest.approx(least, rel=2e-3)


def test_scores_without_noise_stay_and_scores_drowned_in_noise_become_the_mean(
    basis: tuple[np.ndarray, np.ndarray],
) -> None:
    keys, topics = basis
    sent = typical(keys, topics, clipped(CLIP))
    np.testing.assert_allclose(ScorePrior.of(keys, topics, clipped(CLIP), 1e-7).given(sent), sent, atol=1e-4)
    drowned = ScorePrior.of(keys, topics, clipped(CLIP), 1e5).given(1e4 * np.ones((1, B)))
    np.testing.assert_allclose(drowned, [sent.mean(axis=0)], atol=1e-3)


def test_popular_articles_near_a_vector_match_a_brute_force_search() -> None:
    draw = np.random.default_rng(5)
    vectors, popularity = unit(draw.normal(size=(6_000, D))), draw.normal(scale=2.0, size=6_000).astype(np.float32)
    news = PopularNews.of(vectors, popularity)
    queries = np.stack([unit(draw.normal(size=(1, D)))[0], np.zeros(D, dtype=np.float32)])
    content = [np.argsort(-(vectors @ query), kind="stable")[:300].tolist() for query in queries]
    whole = 4.0 * queries @ vectors.T + popularity

    own, common = news.near(queries, content, 300, sharpness=4.0)
    assert own == np.argsort(-whole[0], kind="stable")[:300].tolist()
    assert common == np.argsort(-popularity, kind="stable")[:300].tolist()


def test_report_at_the_papers_noise_gets_nearly_the_popular_list(basis: tuple[np.ndarray, np.ndarray]) -> None:
    keys, topics = basis
    draw = np.random.default_rng(6)
    vectors, popularity = unit(draw.normal(size=(2_000, D))), draw.normal(size=2_000).astype(np.float32)
    noisy = draw.laplace(0, 1.2, (5, B))
    values = topics - topics.mean(axis=0)
    common = set(np.argsort(-popularity, kind="stable")[:200].tolist())
    shared = []
    for scores in (noisy, ScorePrior.of(keys, values, clipped(CLIP), 1.2).given(noisy)):
        queries = aggregate(scores, values)
        content = [np.argsort(-(vectors @ query), kind="stable")[:200].tolist() for query in queries]
        lists = PopularNews.of(vectors, popularity).near(queries, content, 200, sharpness=4.0)
        shared.append(np.mean([len(common & set(each)) for each in lists]) / 200)
    assert shared[1] > 0.9 > shared[0] + 0.2


def test_release_with_rotated_news_vectors_reads_scores_unchanged(tmp_path: Path) -> None:
    """Oracle: `backend/releases/alignment.py` rotates values like articles, and attention so that contexts stay the
    same."""
    settings = settings_in(tmp_path)
    publish(settings)
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    before = store.require_current()
    alignment = np.linalg.qr(np.random.default_rng(2).normal(size=(DIMENSIONS, DIMENSIONS)))[0].astype(np.float32)
    weights = store.weights(before, "recall")
    turned = {
        "basis_keys": weights["basis_keys"],
        "basis_values": weights["basis_values"] @ alignment,
        "attention.value.weight": alignment,
    }
    entry = before.models["recall"].model_copy(update={"weights": store.add_blob(pack(turned))})
    draft = recall_draft(store)
    store.commit(replace(draft, models={**draft.models, "recall": entry}), note="turned")
    served = ServedReleases(store, answered=2)
    served.refresh()
    sent = np.random.default_rng(3).laplace(0, 1.2, (4, BASIS_SIZE))

    for kind in ("basis_laplace", "basis_l1"):
        old, new = (served.answered(short).score_readings[kind] for short in (1, 2))
        np.testing.assert_allclose(new.given(sent), old.given(sent), atol=1e-5)
