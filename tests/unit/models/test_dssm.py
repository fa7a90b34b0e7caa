"""DSSM towers and their cosines: examples by hand, the paper's sizes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from models.builders.dssm import dssm_tower
from models.dssm import Tower, ViewRanker
from models.scoring import cosines, info_nce, unit


def random_tensor(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_cosine_matches_torch_and_ignores_vector_lengths(seed: int, scale: float) -> None:
    user, items = random_tensor(seed, 2, 4), random_tensor(seed + 1, 2, 5, 4)
    wanted = torch.cosine_similarity(user[:, None], items, dim=-1)
    assert_close(cosines(scale * user, items), wanted)
    assert_close(cosines(user, scale * items), wanted)


def test_zero_vector_has_cosine_zero_and_no_gradient() -> None:
    user = torch.zeros(2, 3)
    user[1] = torch.tensor([1.0, 2, 3])
    items = torch.randn(2, 4, 3)
    items[:, 1] = 0
    user.requires_grad_(True), items.requires_grad_(True)
    scores = cosines(user, items)
    assert scores[0].eq(0).all()
    assert scores[:, 1].eq(0).all()
    (scores * torch.randn(2, 4)).sum().backward()
    assert user.grad is not None
    assert items.grad is not None
    assert user.grad.isfinite().all()
    assert user.grad[0].eq(0).all()
    assert items.grad[:, 1].eq(0).all()
    assert items.grad.isfinite().all()
    assert unit(torch.full((3,), 1e-20)).eq(0).all()


def test_towers_have_the_number_of_parameters_of_section_6_1() -> None:
    sizes = {4_739: 305_968, 23: 4_144, 30: 4_592}
    assert {each: sum(one.numel() for one in dssm_tower(each).parameters()) for each in sizes} == sizes


def test_tower_matches_its_formula() -> None:
    x, tower = random_tensor(1, 3, 5), Tower((5, 4, 3)).double()
    for place, each in enumerate(tower.parameters()):
        each.data.copy_(random_tensor(2 + place, *each.shape))
    named = dict(tower.named_parameters())
    first = (x @ named["layers.0.weight"].t() + named["layers.0.bias"]).tanh()
    assert_close(tower(x), (first @ named["layers.1.weight"].t() + named["layers.1.bias"]).tanh())


@pytest.mark.parametrize(
    ("gamma", "probabilities", "loss"),
    [(1.0, [0.473041, 0.352937, 0.174022], 0.748573), (10.0, [0.949217, 0.050740, 0.000043], 0.052117)],
)
def test_softmax_of_cosines_and_its_loss_match_the_golden_values_of_section_6_1(
    gamma: float, probabilities: list[float], loss: float
) -> None:
    found = cosines(torch.tensor([[1.0, 0]]), torch.tensor([[[1.0, 0], [1, 1], [0, 1]]]))
    assert_close(found, torch.tensor([[1, 0.707107, 0]]), atol=1e-6, rtol=0)
    assert_close((gamma * found).softmax(dim=-1), torch.tensor([probabilities]), atol=1e-6, rtol=0)
    assert_close(info_nce(gamma * found).item(), loss, atol=1e-6, rtol=0)


def test_bad_input_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match=r"features must have shape \[\.\.\., 3\], got \(2, 4\)"):
        Tower((3, 2))(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="sizes"):
        Tower((3,))
    with pytest.raises(ValueError, match="gamma"):
        ViewRanker(3, (2,), 0.0)
