"""Attention against examples by hand, and the properties every layer must keep."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call
from torch.testing import assert_close

from models.builders.rankers import self_attention
from models.layers.attention import AdditiveAttention, SelfAttention, masked_softmax
from models.layers.gru import MaskedGru
from models.layers.words import TextCnn

seeds = st.integers(0, 2**31)
lengths = st.integers(1, 9)


def random_tensor(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def golden_attention() -> AdditiveAttention:
    layer = AdditiveAttention(2, 2)
    with torch.no_grad():
        layer.hidden.weight.copy_(torch.eye(2))
        layer.hidden.bias.zero_()
        layer.query.weight.copy_(torch.tensor([[1.0, -1.0]]))
        layer.query.bias.zero_()
    return layer


GOLDEN_X = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])


def test_additive_attention_matches_the_golden_values_of_section_1_1() -> None:
    layer = golden_attention()
    mask = torch.ones(1, 3)
    assert_close(layer.weights(GOLDEN_X, mask), torch.tensor([[0.593494, 0.129391, 0.277115]]), atol=1e-6, rtol=0)
    assert_close(layer(GOLDEN_X, mask), torch.tensor([[0.870609, 0.406506]]), atol=1e-6, rtol=0)


def test_additive_attention_matches_the_golden_with_a_masked_row() -> None:
    weights = golden_attention().weights(GOLDEN_X, torch.tensor([[1.0, 1.0, 0.0]]))
    assert_close(weights, torch.tensor([[0.821007, 0.178993, 0.0]]), atol=1e-6, rtol=0)


def test_additive_attention_pools_channels_as_each_alone() -> None:
    layer = AdditiveAttention(6, 4).double()
    x, masks = random_tensor(1, 2, 5, 6), (random_tensor(2, 2, 3, 5) > 0).double()
    alone = torch.stack([layer(x, masks[:, c]) for c in range(3)], dim=1)
    assert_close(layer(x, masks), alone)


def test_attention_with_a_uniform_start_pools_to_the_mean_of_real_rows() -> None:
    layer = AdditiveAttention(6, 4).double()
    layer.start_uniform()
    x = random_tensor(3, 1, 5, 6)
    assert_close(layer(x, torch.tensor([[0.0, 1, 1, 1, 0]]).double()), x[:, 1:4].mean(dim=1))


def test_masked_softmax_is_torchs_softmax_over_the_real_entries() -> None:
    scores = torch.tensor([[1.0, 50.0, -2.0, 3.0]])
    out = masked_softmax(scores, torch.tensor([[1.0, 0.0, 1.0, 1.0]]))
    assert_close(out[0, [0, 2, 3]], scores[0, [0, 2, 3]].softmax(-1))
    assert out[0, 1] == 0


@pytest.mark.parametrize("size", [0.0, 1e4, -1e4, 1e30, -1e30])
def test_masked_softmax_of_a_fully_masked_row_is_zero_with_zero_gradient(size: float) -> None:
    scores = torch.full((2, 4), size, requires_grad=True)
    out = masked_softmax(scores, torch.tensor([[0.0] * 4, [1.0] * 4]))
    assert_close(out.detach(), torch.tensor([[0.0] * 4, [0.25] * 4]))
    (out * torch.arange(4)).sum().backward()
    assert scores.grad is not None
    assert scores.grad[0].eq(0).all()
    assert scores.grad.isfinite().all()


@settings(max_examples=40, deadline=None)
@given(seeds, lengths, st.integers(0, 5))
def test_padding_on_the_left_changes_no_attention(seed: int, length: int, padding: int) -> None:
    torch.manual_seed(seed)
    heads, pool = self_attention(dim=8, heads=2, head_dim=4, bias=True).double(), AdditiveAttention(8, 5).double()
    x = random_tensor(seed, 1, length, 8)
    padded = torch.cat([random_tensor(seed + 1, 1, padding, 8), x], dim=1)  # what lies under the mask must not matter
    mask = torch.cat([torch.zeros(1, padding), torch.ones(1, length)], dim=1).double()
    contexts = heads(padded, mask)
    assert_close(contexts[:, padding:], heads(x, torch.ones(1, length).double()))
    assert contexts[:, :padding].eq(0).all()
    assert_close(pool(padded, mask), pool(x, torch.ones(1, length).double()))


@settings(max_examples=40, deadline=None)
@given(seeds, lengths)
def test_self_attention_is_permutation_equivariant(seed: int, length: int) -> None:
    torch.manual_seed(seed)
    heads = self_attention(dim=8, heads=2, head_dim=4, bias=False).double()
    x, order = random_tensor(seed, 1, length, 8), torch.randperm(length)
    mask = torch.ones(1, length).double()
    assert_close(heads(x[:, order], mask), heads(x, mask)[:, order])


def test_self_attention_equals_scaled_dot_product_attention_of_torch() -> None:
    heads = self_attention(dim=8, heads=2, head_dim=4, bias=True).double()
    x = random_tensor(5, 3, 6, 8)
    q, k, v = (layer(x).unflatten(-1, (2, 4)).transpose(1, 2) for layer in (heads.query, heads.key, heads.value))
    oracle = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    assert_close(heads(x, torch.ones(3, 6).double()), oracle)


def test_self_attention_without_any_real_row_is_zero() -> None:
    heads = self_attention(dim=8, heads=2, head_dim=4, bias=True)
    assert heads(torch.randn(2, 3, 8), torch.zeros(2, 3)).eq(0).all()


def test_self_attention_with_a_mean_start_gives_every_row_the_mean() -> None:
    heads = self_attention(dim=8, heads=2, head_dim=4, bias=True).double()
    heads.start_mean()
    x = random_tensor(6, 1, 5, 8)
    assert_close(heads(x, torch.ones(1, 5).double()), x.mean(dim=1, keepdim=True).expand(1, 5, 8))


def test_self_attention_with_a_sharp_start_returns_each_row_at_a_large_scale() -> None:
    heads = self_attention(dim=8, heads=2, head_dim=4, bias=False).double()
    x = torch.nn.functional.normalize(random_tensor(7, 1, 5, 2, 4), dim=-1).flatten(2)
    heads.start_sharp(200.0)
    assert_close(heads(x, torch.ones(1, 5).double()), x)


@pytest.mark.parametrize("layer", [self_attention(dim=4, heads=2, head_dim=2, bias=True), AdditiveAttention(4, 3)])
def test_gradients_match_finite_differences(layer: SelfAttention | AdditiveAttention) -> None:
    layer = layer.double()
    names = [name for name, _ in layer.named_parameters()]
    mask = torch.tensor([[0.0, 1, 1], [0, 0, 0], [1, 1, 1]]).double()

    def compute(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return functional_call(layer, dict(zip(names, values, strict=True)), (x, mask))

    x = random_tensor(8, 3, 3, 4).requires_grad_(True)
    values = [each.detach().clone().requires_grad_(True) for each in layer.parameters()]
    assert torch.autograd.gradcheck(compute, (x, *values))


def test_wrong_sizes_are_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="3 heads for width 8"):
        SelfAttention(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), heads=3)
    with pytest.raises(ValueError, match="the same width"):
        SelfAttention(torch.nn.Linear(8, 4), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), heads=2)
    with pytest.raises(ValueError, match="at least 1"):
        AdditiveAttention(0, 3)


def test_error_names_mismatched_shapes_and_the_expected_ones() -> None:
    heads, pool = self_attention(dim=8, heads=2, head_dim=4, bias=True), AdditiveAttention(8, 3)
    x, mask = torch.ones(2, 3, 8), torch.ones(2, 3)
    for layer in (heads, pool):
        with pytest.raises(ValueError, match=r"x must have shape \[b, H, 8\], got \[2, 3, 7\]"):
            layer(x[..., :7], mask)
        with pytest.raises(ValueError, match=r"mask must have shape \[2, 3\], got \[3, 2\]"):
            layer(x, mask.t())
    with pytest.raises(ValueError, match=r"mask must have shape \[2, C, 3\], got \[2, 4, 5\]"):
        pool(x, torch.ones(2, 4, 5))


@pytest.mark.parametrize(
    "build",
    [
        lambda: self_attention(dim=6, heads=2, head_dim=3, bias=True),
        lambda: AdditiveAttention(6, 4),
        lambda: TextCnn(6, 5),
        lambda: MaskedGru(6, 5),
    ],
    ids=["self-attention", "additive attention", "text CNN", "GRU"],
)
@settings(max_examples=25, deadline=None)
@given(seed=seeds, length=lengths)
def test_masked_row_has_no_influence_no_gradient_and_gives_no_nan(
    build: Callable[[], nn.Module], seed: int, length: int
) -> None:
    torch.manual_seed(seed)
    layer, mask = build().double(), (random_tensor(seed, 3, length) > 0).double()
    mask[0] = 0  # one sequence without any real row
    x = random_tensor(seed + 1, 3, length, 6).requires_grad_(True)
    out = layer(x, mask)
    garbage = torch.where(mask.unsqueeze(-1) > 0, x.detach(), 1e6 * random_tensor(seed + 2, 3, length, 6))
    assert_close(layer(garbage, mask), out.detach())
    assert out[0].eq(0).all()
    out.square().sum().backward()
    assert x.grad is not None
    assert x.grad[mask == 0].eq(0).all()
    assert x.grad.isfinite().all()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in layer.parameters())


def test_self_attention_has_the_parameters_of_section_1_2() -> None:
    for bias, count in ((False, 3 * 300 * 256), (True, 3 * 300 * 256 + 3 * 256)):
        layer = self_attention(dim=300, heads=16, head_dim=16, bias=bias)
        assert sum(each.numel() for each in layer.parameters()) == count
