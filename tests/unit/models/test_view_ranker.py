"""The ranker of one view. Oracle: FL-MV-DSSM's eqs. 3 to 6 by hand."""

from __future__ import annotations

import pytest
import torch

from models.builders.dssm import GAMMA, fl_dssm_ranker, multi_view_ranker
from models.shapes import private_names

DIM = 8


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def inputs(rows: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    clicks, mask = torch.randn(3, rows, DIM), torch.ones(3, rows)
    mask[0, : rows - 2] = 0
    return clicks, mask, torch.randn(3, 4, DIM)


def test_view_ranker_scores_the_mean_vector_by_the_towers_cosine() -> None:
    model = fl_dssm_ranker(DIM, (6, 4))
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.3 * torch.randn_like(value))
    clicks, mask, candidates = inputs()
    means = torch.stack([row[held > 0].mean(dim=0) for row, held in zip(clicks, mask, strict=True)])
    users = means / means.norm(dim=-1, keepdim=True)
    items = candidates / candidates.norm(dim=-1, keepdim=True)
    towers = model.user_tower(users)[:, None], model.item_tower(items)
    wanted = GAMMA * torch.cosine_similarity(*towers, dim=-1)
    torch.testing.assert_close(model(clicks, mask, candidates), wanted)
    torch.testing.assert_close(model.loss(clicks, mask, candidates), -wanted.log_softmax(dim=-1)[:, 0].mean())


def test_towers_start_equal_so_that_an_article_matches_itself_best() -> None:
    model = multi_view_ranker(DIM, (6, 4))
    news = torch.randn(1, 9, DIM)
    for row in range(9):
        scores = model(news[:, row : row + 1], torch.ones(1, 1), news)
        assert int(scores.argmax()) == row
        torch.testing.assert_close(scores[0, row], torch.tensor(GAMMA))


def test_click_order_vector_length_and_padding_change_no_score() -> None:
    model = multi_view_ranker(DIM, (6, 4))
    clicks, mask, candidates = inputs()
    found = model(clicks, mask, candidates)
    noise = torch.where(mask.unsqueeze(-1) > 0, clicks, torch.randn_like(clicks))
    torch.testing.assert_close(model(noise, mask, candidates), found)
    torch.testing.assert_close(model(clicks.flip(1), mask.flip(1), candidates), found)
    torch.testing.assert_close(model(3 * clicks, mask, 7 * candidates), found)


def test_semi_keeps_the_user_tower_private_and_fl_dssm_shares_both() -> None:
    semi, shared = multi_view_ranker(DIM, (6, 4)), fl_dssm_ranker(DIM, (6, 4))
    assert set(private_names(semi)) == {name for name, _ in semi.named_parameters() if name.startswith("user_tower.")}
    assert private_names(shared) == ()
    sizes = {name: value.shape for name, value in semi.user_tower.named_parameters()}
    assert sizes == {name: value.shape for name, value in semi.item_tower.named_parameters()}


def test_live_towers_have_18528_parameters_and_wrong_shapes_are_refused() -> None:
    model = multi_view_ranker()
    assert sum(value.numel() for value in model.item_tower.parameters()) == 256 * 64 + 64 + 64 * 32 + 32 == 18_528
    with pytest.raises(ValueError, match="gamma must be above 0"):
        type(model)(DIM, (4,), 0)
    clicks, mask, candidates = inputs()
    with pytest.raises(ValueError, match="candidates"):
        multi_view_ranker(DIM)(clicks, mask, candidates[..., :3])
