"""Mapping only the real rows. Oracle: the same map of all rows, with padding masked afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from models.layers.real_rows import by_row, real_places

MASKS = {
    "padding on the left": [[0, 0, 1], [0, 1, 1]],
    "padding anywhere": [[1, 0, 1], [0, 1, 0]],
    "a reader without rows": [[0, 0, 0], [1, 1, 1]],
    "no padding": [[1, 1, 1], [1, 1, 1]],
    "padding only": [[0, 0, 0], [0, 0, 0]],
}


def gradients(mask: Tensor, x: Tensor, layer: nn.Linear, *, packed: bool) -> list[Tensor]:
    """Return the result and the gradients of a sum of masked results, each with another weight."""
    rows = x.clone().requires_grad_()
    layer.zero_grad()
    (made,) = by_row(lambda each: (layer(each).tanh(),), rows, mask) if packed else (layer(rows).tanh(),)
    shown = made * mask.unsqueeze(-1)
    (shown * torch.arange(shown.numel()).view(shown.shape)).sum().backward()
    found = [each.grad for each in (rows, layer.weight, layer.bias)]
    return [shown.detach(), *(each.clone() for each in found if each is not None)]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_real_rows_alone_give_the_values_and_gradients_of_all_rows(mask: list[list[int]]) -> None:
    torch.manual_seed(0)
    layer, real = nn.Linear(4, 5).double(), torch.tensor(mask).double()
    x = torch.randn(2, 3, 4).double()
    for got, wanted in zip(
        gradients(real, x, layer, packed=True), gradients(real, x, layer, packed=False), strict=True
    ):
        assert_close(got, wanted, atol=1e-12, rtol=0)


def test_mapping_runs_only_on_real_rows() -> None:
    seen = []

    def maps(rows: Tensor) -> tuple[Tensor, ...]:
        seen.append(tuple(rows.shape))
        return (rows,)

    mask = torch.tensor([[0.0, 0, 1], [1, 1, 1]])
    by_row(maps, torch.randn(2, 3, 4), mask)
    with torch.no_grad():
        by_row(maps, torch.randn(2, 3, 4), mask)
    assert seen == [(5, 4), (2, 3, 4)]  # the very first row always counts


def test_every_padding_row_points_to_a_real_row() -> None:
    places, shown = real_places(torch.tensor([[0.0, 0, 1], [0, 1, 1]]))
    assert places.tolist() == [0, 2, 4, 5]
    assert shown.tolist() == [0, 0, 1, 1, 2, 3]


def test_mismatched_mask_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="mask must have shape"):
        by_row(lambda rows: (rows,), torch.randn(2, 3, 4), torch.ones(2, 4))
