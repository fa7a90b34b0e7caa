"""The masked GRU against torch's nn.GRU on the real suffix, and finite differences."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.testing import assert_close

from models.layers.gru import MaskedGru

seeds = st.integers(0, 2**31)


def random_tensor(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(seed: int = 0) -> MaskedGru:
    torch.manual_seed(seed)
    gru = MaskedGru(5, 4).double()
    nn.init.normal_(gru.input.bias)
    return gru


def oracle(gru: MaskedGru) -> nn.GRU:
    """nn.GRU with the same weights and no second bias."""
    theirs = nn.GRU(gru.input.in_features, gru.state_dim, batch_first=True, dtype=gru.input.weight.dtype)
    theirs.load_state_dict(
        {
            "weight_ih_l0": gru.input.weight,
            "weight_hh_l0": gru.recurrent.weight,
            "bias_ih_l0": gru.input.bias,
            "bias_hh_l0": torch.zeros(3 * gru.state_dim),
        }
    )
    return theirs


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 8), st.integers(0, 5), st.booleans())
def test_left_padding_gives_nn_grus_state_on_the_real_suffix(
    seed: int, length: int, padding: int, started: bool
) -> None:
    gru, x = small(seed), random_tensor(seed + 1, 3, padding + length, 5)
    mask = torch.cat([torch.zeros(3, padding), torch.ones(3, length)], dim=1).double()
    start = random_tensor(seed + 2, 3, 4) if started else None
    theirs = oracle(gru)(x[:, padding:], None if start is None else start[None])[1][0]
    assert_close(gru(x, mask, start), theirs, atol=1e-6, rtol=0)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 8), st.booleans())
def test_state_without_gradients_matches_the_recurrence_for_any_padding(seed: int, rows: int, started: bool) -> None:
    gru, x = small(seed), random_tensor(seed + 1, 4, rows, 5)
    mask = (random_tensor(seed + 2, 4, rows) > 0).double()
    mask[0] = 0
    start = random_tensor(seed + 3, 4, 4) if started else None
    with torch.no_grad():
        got = gru(x, mask, start)
    assert_close(got, gru(x, mask, start).detach(), atol=1e-9, rtol=0)
    assert got[0].equal(torch.zeros(4).double() if start is None else start[0])


def test_gradients_match_nn_gru_on_the_real_suffix() -> None:
    gru, x, start = small(), random_tensor(1, 3, 9, 5), random_tensor(2, 3, 4)
    theirs = oracle(gru)
    mask = torch.cat([torch.zeros(3, 4), torch.ones(3, 5)], dim=1).double()
    (gru(x, mask, start) * random_tensor(3, 3, 4)).sum().backward()
    (theirs(x[:, 4:], start[None])[1][0] * random_tensor(3, 3, 4)).sum().backward()
    assert_close(gru.input.weight.grad, theirs.weight_ih_l0.grad, atol=1e-6, rtol=0)
    assert_close(gru.recurrent.weight.grad, theirs.weight_hh_l0.grad, atol=1e-6, rtol=0)
    assert_close(gru.input.bias.grad, theirs.bias_ih_l0.grad, atol=1e-6, rtol=0)


def test_padding_between_and_after_rows_is_skipped() -> None:
    gru, x = small(), random_tensor(1, 1, 5, 5)
    mask = torch.tensor([[1.0, 0, 1, 1, 0]]).double()
    assert_close(gru(x, mask), oracle(gru)(x[:, [0, 2, 3]])[1][0], atol=1e-6, rtol=0)


def test_gradients_match_finite_differences_and_skip_masked_rows() -> None:
    gru = small()
    names = [name for name, _ in gru.named_parameters()]
    mask = torch.tensor([[0.0, 1, 1, 1], [0, 0, 0, 1]]).double()

    def compute(x: Tensor, start: Tensor, *values: Tensor) -> Tensor:
        out: Tensor = functional_call(gru, dict(zip(names, values, strict=True)), (x, mask, start))
        return out

    leaves = [each.detach().clone().requires_grad_(True) for each in gru.parameters()]
    x, start = random_tensor(1, 2, 4, 5).requires_grad_(True), random_tensor(2, 2, 4).requires_grad_(True)
    assert torch.autograd.gradcheck(compute, (x, start, *leaves))
    (got,) = torch.autograd.grad(compute(x, start, *leaves).sum(), x)
    assert got[mask == 0].eq(0).all()
    assert got[mask == 1].abs().sum(-1).gt(0).all()


@pytest.mark.parametrize("filling", [0.0, 1e30, -1e30])
def test_state_without_real_rows_is_the_initial_state_and_has_zero_gradients(filling: float) -> None:
    gru, start = small(), random_tensor(1, 2, 4)
    x, mask = torch.full((2, 3, 5), filling, dtype=torch.float64, requires_grad=True), torch.zeros(2, 3).double()
    assert gru(x, mask).eq(0).all()
    out = gru(x, mask, start)
    assert out.equal(start)
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.eq(0).all()
    for name, each in gru.named_parameters():
        assert each.grad is not None, name
        assert each.grad.eq(0).all(), name


def test_order_of_rows_matters() -> None:
    gru, x = small(), random_tensor(1, 1, 5, 5)
    mask = torch.ones(1, 5).double()
    assert (gru(x, mask) - gru(x.flip(1), mask)).abs().max() > 1e-2


def test_paper_gru_has_961_200_parameters_and_torchs_1_200_more() -> None:
    assert sum(each.numel() for each in MaskedGru(400, 400).parameters()) == 961_200
    assert sum(each.numel() for each in nn.GRU(400, 400).parameters()) == 961_200 + 1_200


def test_sizes_out_of_range_are_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="dim and state_dim must be at least 1, got 0 and 4"):
        MaskedGru(0, 4)


def test_mismatched_shapes_are_named_in_the_error() -> None:
    gru, x = small(), random_tensor(1, 2, 3, 5)
    with pytest.raises(ValueError, match=r"x must have shape \[b, H, 5\], got \[2, 3, 4\]"):
        gru(x[..., :4], torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"mask must have shape \[2, 3\], got \[2, 4\]"):
        gru(x, torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"start must have shape \[2, 4\], got \[1, 4\]"):
        gru(x, torch.ones(2, 3), random_tensor(1, 1, 4))
