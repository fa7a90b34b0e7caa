"""The small ranker and its variant with features."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from models.builders.rankers import candidate_attention, feature_ranker
from models.user.candidate_attention import FEATURES, START_BETA, CandidateAttention, CosineRanker, FeatureRanker

seeds = st.integers(0, 2**31)
D = 8
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def random_batch(seed: int, count: int = 6) -> Batch:
    """One reader's clicks with `count` real rows, and four candidates, of any length."""
    draw = torch.Generator().manual_seed(seed)
    mask = (torch.arange(6) >= 6 - count).float()[None]
    return 3 * torch.randn(1, 6, D, generator=draw), mask, 0.2 * torch.randn(1, 4, D, generator=draw)


def written_out(model: CandidateAttention, clicks: torch.Tensor, news: torch.Tensor) -> float:
    """The formula for one candidate, in Python floats."""
    metric, beta = model.metric.tolist(), float(model.beta.detach())
    d = (news / news.norm()).tolist()
    matches = [sum(h * m * x for h, m, x in zip((c / c.norm()).tolist(), metric, d, strict=True)) for c in clicks]
    weights = [math.exp(beta * s) for s in matches]
    return sum(w * s for w, s in zip(weights, matches, strict=True)) / sum(weights)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 6))
def test_scores_match_the_formula(seed: int, count: int) -> None:
    model = CandidateAttention(D)
    clicks, mask, news = random_batch(seed, count)
    with torch.no_grad():
        model.metric.copy_(torch.randn(D, generator=torch.Generator().manual_seed(seed)))
        model.beta.fill_(3.0)
        scores = model(clicks, mask, news)
    wanted = [[written_out(model, clicks[0, 6 - count :], each) for each in news[0]]]
    assert_close(scores, torch.tensor(wanted), atol=1e-5, rtol=1e-5)


def test_candidate_attention_has_386_parameters_at_384_and_258_at_256() -> None:
    for dim, wanted in ((384, 386), (256, 258)):
        assert sum(each.numel() for each in candidate_attention(dim).parameters()) == wanted
    with_features = sum(each.numel() for each in feature_ranker().parameters())
    assert with_features == 258 + len(FEATURES) == 262


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(0, 6))
def test_candidate_attention_starts_at_the_softmax_weighted_cosine(seed: int, count: int) -> None:
    clicks, mask, news = random_batch(seed, count)
    wanted = CosineRanker(START_BETA, dim=clicks.shape[-1])(clicks, mask, news)
    assert_close(CandidateAttention(D)(clicks, mask, news), wanted, atol=1e-6, rtol=0)
    model = FeatureRanker(CandidateAttention(D))
    model.known_start()
    model.cosine_start()
    assert_close(model(clicks, mask, news, torch.rand(1, 4, len(FEATURES))), wanted, atol=1e-6, rtol=0)


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 6))
def test_padding_and_order_of_clicks_change_no_score(seed: int, count: int) -> None:
    model = CandidateAttention(D)
    clicks, mask, news = random_batch(seed, count)
    scores = model(clicks, mask, news)
    alone = model(clicks[:, 6 - count :], torch.ones(1, count), news)
    assert_close(scores, alone, atol=1e-6, rtol=1e-5)
    assert_close(model(clicks.flip(1), mask.flip(1), news), scores, atol=1e-6, rtol=1e-5)


def test_every_parameter_learns_from_the_first_step() -> None:
    model = FeatureRanker(CandidateAttention(D))
    clicks, mask, news = random_batch(1)
    model.loss(clicks, mask, news, torch.rand(1, 4, len(FEATURES))).backward()
    for name, each in model.named_parameters():
        assert each.grad is not None
        assert each.grad.abs().max() > 1e-6, name


def test_candidate_attention_without_clicks_scores_zero_with_finite_gradients() -> None:
    model = CandidateAttention(D)
    clicks, _, news = random_batch(1)
    news.requires_grad_(True)
    zeros = torch.zeros_like(clicks).requires_grad_(True)
    assert model(zeros, torch.zeros(1, 6), news).eq(0).all()
    model.loss(zeros, torch.zeros(1, 6), news).backward()
    assert all(each.grad is not None and each.grad.eq(0).all() for each in (model.metric, model.beta, zeros, news))


def test_candidate_attention_without_clicks_scores_by_its_features() -> None:
    model = feature_ranker(D)
    clicks, _, news = random_batch(1)
    features = torch.eye(4)[None]
    assert_close(model(clicks, torch.zeros(1, 6), news, features)[0], model.feature_weights)


def test_weighted_features_are_added_to_the_score() -> None:
    model = feature_ranker(D)
    clicks, mask, news = random_batch(1)
    features = torch.rand(1, 4, 4)
    wanted = model.matching(clicks, mask, news) + (features * model.feature_weights).sum(-1)
    assert_close(model(clicks, mask, news, features), wanted)
    assert all(model.feature_weights > 0), "the known start uses every feature"
    assert model.matching.beta.item() == 3.0


def test_gradients_of_clicks_and_candidates_match_finite_differences() -> None:
    model = feature_ranker(D).double()
    clicks, mask, news = (each.double() for each in random_batch(1, 4))
    clicks.requires_grad_(True)
    news.requires_grad_(True)
    features = torch.rand(1, 4, 4).double()
    assert torch.autograd.gradcheck(lambda c, n: model.loss(c, mask.double(), n, features), (clicks, news))


def test_sharpness_of_the_loss_does_not_change_scores() -> None:
    model = CandidateAttention(D)
    before = model(*random_batch(1)).detach()
    with torch.no_grad():
        model.sharpness.fill_(0.3)
    assert_close(model(*random_batch(1)).detach(), before)
    assert model.loss(*random_batch(1)) > 0


def test_metric_learns_which_vector_dimensions_matter() -> None:
    """Readers click articles that agree with their clicks in the first half of the dimensions; the second is noise."""
    draw = torch.Generator().manual_seed(0)
    clicks, news = torch.randn(256, 6, D, generator=draw), torch.randn(256, 5, D, generator=draw)
    news[:, 0, :4] = clicks[:, :, :4].mean(1) * 3
    model = CandidateAttention(D)
    adam = torch.optim.Adam(model.parameters(), lr=0.05)
    mask = torch.ones(256, 6)
    before = float(model.loss(clicks, mask, news).detach())
    for _ in range(30):
        adam.zero_grad()
        model.loss(clicks, mask, news).backward()
        adam.step()
    assert float(model.loss(clicks, mask, news).detach()) < before - 0.1
    assert model.metric[:4].min() > model.metric[4:].max()


@pytest.mark.parametrize(
    ("clicks", "mask", "news", "features", "message"),
    [
        ((1, 6, 9), (1, 6), (1, 4, 8), (1, 4, 4), r"clicks must have shape \[b, H, 8\], got \(1, 6, 9\)"),
        ((1, 6, 8), (1, 6, 1), (1, 4, 8), (1, 4, 4), r"click_mask must have shape \[b, 6\]"),
        ((1, 6, 8), (1, 6), (1, 4, 9), (1, 4, 4), r"candidates must have shape \[b, R, 8\], got \(1, 4, 9\)"),
        ((1, 6, 8), (1, 6), (1, 4, 8), (1, 4, 3), r"features must have shape \[b, R, 4\], got \(1, 4, 3\)"),
    ],
)
def test_mismatched_shapes_are_named_in_the_error(
    clicks: tuple[int, ...], mask: tuple[int, ...], news: tuple[int, ...], features: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        feature_ranker(D)(torch.zeros(clicks), torch.zeros(mask), torch.zeros(news), torch.zeros(features))


@pytest.mark.parametrize("names", [(), ("recency", "recency")])
def test_features_have_distinct_names(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="features must be distinct names"):
        FeatureRanker(CandidateAttention(D), names)
