"""InfoNCE against examples by hand."""

from __future__ import annotations

import math

import torch
from torch.testing import assert_close

from models.scoring import info_nce


def test_info_nce_matches_the_golden_values_of_section_1_5() -> None:
    assert_close(info_nce(torch.tensor([[2.0, 1.0, 0.0]])).item(), 0.407606, atol=1e-6, rtol=0)


def test_untrained_model_with_four_negatives_has_the_loss_ln_5() -> None:
    assert_close(info_nce(torch.zeros(7, 5)).item(), math.log(5), atol=1e-6, rtol=0)


def test_gradients_of_user_and_candidates_match_the_golden_values_of_section_1_5() -> None:
    user = torch.tensor([1.0, 2.0], requires_grad=True)
    news = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], requires_grad=True)
    info_nce((news @ user)[None]).backward()
    assert user.grad is not None
    assert news.grad is not None
    assert_close(user.grad, torch.tensor([-0.244728, 0.909969]), atol=1e-6, rtol=0)
    assert_close(news.grad[0], torch.tensor([-0.909969, -1.819939]), atol=1e-6, rtol=0)
    assert_close(news.grad.sum(dim=0), torch.zeros(2), atol=1e-6, rtol=0)


def test_loss_is_the_mean_over_rows_and_handles_large_scores() -> None:
    assert_close(info_nce(torch.tensor([[0.0, 0.0], [1e4, -1e4]])).item(), math.log(2) / 2, atol=1e-6, rtol=0)
