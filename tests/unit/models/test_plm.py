"""The news encoder on a tiny stand-in for BERT: its pooling, and what its head keeps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from models.news.plm import PlmNewsEncoder
from models.starts import rotation

WIDTH = 32


class TinyBert(nn.Module):
    """Token states from an embedding table; ignores the mask, so that only the pooling can hide padding."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(hidden_size=WIDTH)
        self.table = nn.Embedding(50, WIDTH)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=self.table(input_ids))


def encoder(head_dim: int = 16, *, unit_length: bool = True) -> PlmNewsEncoder:
    torch.manual_seed(1)
    return PlmNewsEncoder(TinyBert(), head_dim, unit_length=unit_length)


def pooled_news(count: int = 400, rank: int = WIDTH) -> Tensor:
    draw = torch.Generator().manual_seed(2)
    return torch.randn(count, rank, generator=draw) @ torch.randn(rank, WIDTH, generator=draw) + 1.0


def test_start_pools_to_the_mean_over_real_word_pieces() -> None:
    model = encoder()
    ids, mask = torch.tensor([[3, 4, 5, 0]]), torch.tensor([[1, 1, 1, 0]])
    pooled = model.pool(model.states(ids, mask), mask.float())
    assert_close(pooled, model.states(ids, mask)[:, :3].mean(dim=1))


def test_padding_changes_no_vector() -> None:
    model = encoder()
    plain = model(torch.tensor([[3, 4, 5]]), torch.ones(1, 3, dtype=torch.long))
    padded = model(torch.tensor([[3, 4, 5, 9, 9]]), torch.tensor([[1, 1, 1, 0, 0]]))
    assert_close(padded, plain)


def test_vectors_have_length_one_by_default() -> None:
    ids, mask = torch.randint(50, (4, 6)), torch.ones(4, 6, dtype=torch.long)
    assert_close(encoder()(ids, mask).norm(dim=-1), torch.ones(4))
    raw = encoder(unit_length=False)
    assert_close(nn.functional.normalize(raw(ids, mask), dim=-1), encoder()(ids, mask))


def test_fitted_head_keeps_every_cosine_of_states_that_fit_its_rank() -> None:
    model, pooled = encoder(), pooled_news(rank=15)  # 15 directions and the constant span at most 16
    assert model.fit_head(pooled) == pytest.approx(1.0, abs=1e-9)
    vectors, rows = model.project(pooled), nn.functional.normalize(pooled, dim=-1)
    assert_close(vectors @ vectors.t(), rows @ rows.t(), atol=1e-5, rtol=0)


def test_fitted_head_keeps_as_much_as_the_best_svd_projection() -> None:
    model, pooled = encoder(), pooled_news()
    kept = model.fit_head(pooled)
    values = torch.linalg.svdvals(nn.functional.normalize(pooled.double(), dim=-1)) ** 2
    assert kept == pytest.approx(float(values[:16].sum() / values.sum()))
    assert kept < 1


def test_fitted_head_spreads_vector_length_about_equally_over_attention_heads() -> None:
    torch.manual_seed(3)
    model = PlmNewsEncoder(TinyBert(), WIDTH)
    model.fit_head(pooled_news() * torch.linspace(3, 0.01, WIDTH))
    shares = model.project(pooled_news() * torch.linspace(3, 0.01, WIDTH)).square().view(-1, 4, 8).sum(-1).mean(0)
    assert shares.min() > 0.1
    assert shares.max() < 0.5


def test_rotation_matrix_is_orthogonal_and_reproducible() -> None:
    np.testing.assert_allclose(rotation(16) @ rotation(16).T, np.eye(16), atol=1e-12)
    assert (rotation(16) == rotation(16)).all()


def test_fitting_twice_gives_the_same_head() -> None:
    one, two = encoder(), encoder()
    one.fit_head(pooled_news())
    two.fit_head(pooled_news().flip(0))
    assert_close(one.head.weight, two.head.weight, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("pooled", "words"),
    [
        (torch.zeros(4, 3), r"\[n, 32\]"),
        (torch.zeros(0, WIDTH), "n at least 1"),
        (torch.full((2, WIDTH), float("inf")), "finite"),
    ],
)
def test_bad_states_are_named_in_the_error(pooled: Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        encoder().fit_head(pooled)


def test_head_wider_than_the_model_keeps_every_cosine() -> None:
    model, pooled = encoder(40), pooled_news()
    assert model.fit_head(pooled) == pytest.approx(1.0, abs=1e-9)
    vectors, rows = model.project(pooled), nn.functional.normalize(pooled, dim=-1)
    assert vectors.shape[1] == 40
    assert_close(vectors @ vectors.t(), rows @ rows.t(), atol=1e-5, rtol=0)


def test_head_of_size_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="head_dim must be at least 1, got 0"):
        encoder(0)
