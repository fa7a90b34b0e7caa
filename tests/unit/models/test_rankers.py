"""The two rankers: their starts, and what they never depend on."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from models.builders.rankers import cosine_ranker, nrms, nrms_user
from models.user.candidate_attention import CosineRanker

seeds = st.integers(0, 2**31)


def unit_news(seed: int, *shape: int) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=-1)


def left_mask(counts: list[int], length: int) -> torch.Tensor:
    return (torch.arange(length) >= length - torch.tensor(counts)[:, None]).float()


def test_nrms_has_the_248_977_parameters_of_the_design_study() -> None:
    assert sum(each.numel() for each in nrms_user().parameters()) == 248_977


def test_nrms_starts_at_the_cosine_with_the_mean_click() -> None:
    clicks, mask, news = unit_news(1, 3, 50, 256), left_mask([1, 7, 50], 50), unit_news(2, 3, 40, 256)
    scores = nrms_user()(clicks, mask, news)
    mean = (clicks * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    assert_close(scores / mean.norm(dim=-1, keepdim=True), torch.cosine_similarity(mean[:, None], news, dim=-1))
    cosines = torch.cosine_similarity(clicks[:, None], news[:, :, None], dim=-1)
    mean_cosine = (cosines * mask[:, None]).sum(-1) / mask.sum(-1, keepdim=True)
    assert_close(scores, mean_cosine, atol=1e-5, rtol=0)


def test_nrms_has_gradients_at_its_cosine_start() -> None:
    model, clicks, mask = nrms_user(), unit_news(1, 8, 50, 256), left_mask([50] * 8, 50)
    model.loss(clicks, mask, unit_news(2, 8, 5, 256)).backward()
    assert model.attention.key.weight.grad is not None
    assert model.attention.value.weight.grad is not None
    assert model.attention.key.weight.grad.abs().max() > 0
    assert model.attention.value.weight.grad.abs().max() > 0


def plain_cosine_score(clicks: torch.Tensor, news: torch.Tensor, beta: float) -> float:
    """The formula of the design study for one reader and one candidate, written out."""
    cosines = [float(c @ news / (c.norm() * news.norm())) for c in clicks]
    weights = [math.exp(beta * s) for s in cosines]
    return sum(w * s for w, s in zip(weights, cosines, strict=True)) / sum(weights)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 6), st.floats(0, 20))
def test_cosine_ranker_computes_its_formula_for_vectors_of_any_length(seed: int, count: int, beta: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    clicks, news = 3 * torch.randn(1, 6, 8, generator=draw), 0.2 * torch.randn(1, 4, 8, generator=draw)
    scores = CosineRanker(beta, dim=clicks.shape[-1])(clicks, left_mask([count], 6), news)
    wanted = [[plain_cosine_score(clicks[0, 6 - count :], each, beta) for each in news[0]]]
    assert_close(scores.detach(), torch.tensor(wanted), atol=1e-5, rtol=0)


def test_cosine_ranker_of_beta_8_has_one_parameter() -> None:
    assert {name: each.item() for name, each in cosine_ranker().named_parameters()} == {"beta": 8.0}


@pytest.mark.parametrize("model", [cosine_ranker(), nrms(heads=2, head_dim=4, attention_dim=3)])
@settings(max_examples=20, deadline=None)
@given(seed=seeds, count=st.integers(1, 6))
def test_padding_and_order_of_clicks_change_no_score(model: torch.nn.Module, seed: int, count: int) -> None:
    clicks, news, mask = unit_news(seed, 1, 6, 8), unit_news(seed + 1, 1, 5, 8), left_mask([count], 6)
    scores = model(clicks, mask, news)
    alone = model(clicks[:, 6 - count :], torch.ones(1, count), news)
    assert_close(scores, alone, atol=1e-6, rtol=1e-5)
    shuffled = clicks.clone()
    shuffled[:, 6 - count :] = clicks[:, 6 - count :].flip(1)
    assert_close(model(shuffled, mask, news), scores, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("model", [cosine_ranker(), nrms(heads=2, head_dim=4, attention_dim=3)])
def test_reader_without_clicks_and_zero_vector_score_zero(model: torch.nn.Module) -> None:
    news = unit_news(1, 1, 5, 8)
    assert model(torch.zeros(1, 6, 8), torch.zeros(1, 6), news).eq(0).all()
    assert model(unit_news(2, 1, 6, 8), torch.ones(1, 6), torch.zeros(1, 1, 8)).eq(0).all()


def test_nrms_gradients_match_finite_differences() -> None:
    model = nrms(heads=2, head_dim=2, attention_dim=3).double()
    clicks, news = (unit_news(seed, 2, 5, 4).double().requires_grad_(True) for seed in (1, 2))
    mask = left_mask([2, 0], 5).double()
    assert torch.autograd.gradcheck(lambda c, n: model.loss(c, mask, n), (clicks, news))
