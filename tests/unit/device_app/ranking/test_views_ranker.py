"""Prediction by combining views (Algorithm 2). Oracle: torch's model of one view, and the mean by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from device_app.errors import GraphMismatch
from device_app.ranking.ranker import Ranker
from device_app.ranking.session import GraphSession
from device_app.ranking.views_ranker import ReaderViews, ViewsRanker, user_tower
from models.scoring import cosines
from tests.doubles.view_graph import view_model

DIM = 8
RNG = np.random.default_rng(4)
CANDIDATES, CLICKS = RNG.normal(size=(2, 30, DIM)).astype(np.float32)
CLICKS = CLICKS[:7]
SEARCHED = RNG.normal(size=(1, DIM)).astype(np.float32)


def ranker(views: ReaderViews | None = None) -> ViewsRanker:
    model = view_model(DIM)
    made = ViewsRanker(model.graphs["score"], model.shared, name="ranker.multi_view")
    return made if views is None else made.with_views(lambda _: views)


def probabilities(
    rows: NDArray[np.float32], tower: dict[str, NDArray[np.float32]] | None = None
) -> NDArray[np.float64]:
    """Return P(d | u) of one view, by torch."""
    model = view_model(DIM)
    weights = {**model.shared, **user_tower(model.shared, tower)}
    inputs = (rows[None], np.ones((1, len(rows)), np.float32), CANDIDATES[None])
    with torch.no_grad():
        scores = torch.func.functional_call(
            model.model,
            {name: torch.from_numpy(each) for name, each in weights.items()},
            tuple(map(torch.from_numpy, inputs)),
        )
    return scores[0].double().softmax(dim=-1).numpy()


def test_one_view_ranks_by_its_own_probabilities() -> None:
    np.testing.assert_allclose(np.exp(ranker().score(CLICKS, CANDIDATES)), probabilities(CLICKS), rtol=1e-4)


def test_two_views_rank_by_the_mean_of_their_towers_probabilities() -> None:
    rng = np.random.default_rng(9)
    start = user_tower(view_model(DIM).shared, None)
    own = {name: (each + rng.normal(size=each.shape)).astype(np.float32) for name, each in start.items()}
    found = ranker(ReaderViews(searched=SEARCHED, towers={"searches": own})).score(CLICKS, CANDIDATES)
    wanted = (probabilities(CLICKS) + probabilities(SEARCHED, own)) / 2
    np.testing.assert_allclose(np.exp(found), wanted, rtol=1e-4)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
    start_only = ranker(ReaderViews(searched=SEARCHED)).score(CLICKS, CANDIDATES)
    assert np.abs(found - start_only).max() > 0.01


def test_views_ranker_predicts_the_mean_of_the_views_probabilities() -> None:
    """Oracle: FL-MV-DSSM's prediction (Algorithm 2) by torch's towers."""
    model = view_model(DIM).model
    user = CLICKS.sum(axis=0) / np.linalg.norm(CLICKS.sum(axis=0))
    searched = SEARCHED[0] / np.linalg.norm(SEARCHED[0])
    items = CANDIDATES / np.linalg.norm(CANDIDATES, axis=1, keepdims=True)
    with torch.no_grad():
        reading, searches, seen = (
            model.item_tower(torch.from_numpy(each.astype(np.float32))) for each in (user, searched, items)
        )
        each = [(model.gamma * cosines(one[None], seen[None])[0]).softmax(0) for one in (reading, searches)]
        wanted = torch.stack(each).mean(dim=0).numpy()
    found = ranker(ReaderViews(searched=SEARCHED)).score(CLICKS, CANDIDATES)
    np.testing.assert_allclose(np.exp(found), wanted, rtol=1e-4)


def test_reader_without_clicks_is_ranked_by_searches_or_by_nothing() -> None:
    none = np.zeros((0, DIM), np.float32)
    found = ranker(ReaderViews(searched=SEARCHED)).score(none, CANDIDATES)
    np.testing.assert_allclose(np.exp(found), probabilities(SEARCHED), rtol=1e-4)
    assert ranker().score(none, CANDIDATES).tolist() == [0] * len(CANDIDATES)
    assert ranker().score(CLICKS, none).tolist() == []


def test_rankers_without_views_do_not_read_the_views() -> None:
    model = view_model(DIM, semi=False)
    plain = Ranker(GraphSession(model.graphs["score"], model.shared), name="ranker.one")

    def never(_: str) -> ReaderViews:
        raise AssertionError("asked for views")

    assert plain.with_views(never) is plain


def test_mismatched_graph_or_non_finite_vector_is_named_in_the_error() -> None:
    model = view_model(DIM)
    short = {name: each for name, each in model.shared.items() if not name.endswith("layers.0.bias")}
    with pytest.raises(GraphMismatch, match=r"layers\.0\.bias"):
        ViewsRanker(model.graphs["score"], short, name="ranker.multi_view")
    with pytest.raises(GraphMismatch, match=r"scores of ranker\.multi_view: not finite"):
        ranker().score(np.full((1, DIM), np.nan, np.float32), CANDIDATES)
