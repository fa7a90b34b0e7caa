"""SASRec: causality, positions, and torch's own attention and norm as the oracle of a block."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from models.builders.recall import sequence_recall
from models.recall.baselines import CausalAttention, CausalBlock, SasRec

seeds = st.integers(0, 2**31)


def random_tensor(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(seed: int, blocks: int = 2) -> SasRec:
    torch.manual_seed(seed)
    return sequence_recall(dim=8, heads=2, blocks=blocks, clicks_limit=12).double()


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 9), st.data())
def test_changing_a_click_changes_only_its_own_and_later_states(seed: int, length: int, data: st.DataObject) -> None:
    model, x, mask = small(seed), random_tensor(seed, 1, length, 8), torch.ones(1, length).double()
    at = data.draw(st.integers(0, length - 1))
    other = x.clone()
    other[:, at] = random_tensor(seed + 1, 8)
    before, after = model.states(x, mask), model.states(other, mask)
    assert_close(after[:, :at], before[:, :at], atol=0, rtol=0)
    assert not torch.allclose(after[:, at], before[:, at])
    if at < length - 1:
        assert not torch.allclose(after[:, -1], before[:, -1])


def test_user_is_the_state_at_the_last_real_click_for_any_padding() -> None:
    model, x = small(1), random_tensor(2, 1, 5, 8)
    for mask, newest in (([0, 0, 1, 1, 1], 4), ([1, 1, 1, 0, 0], 2), ([1, 0, 1, 0, 0], 2)):
        real = torch.tensor([mask]).double()
        states = model.states(x, real)
        assert_close(model.user_vector(x, real), states[:, newest] / 8**0.5)
        assert states[real == 0].eq(0).all()


def test_positions_count_from_the_newest_click() -> None:
    model, x = small(3, blocks=1), random_tensor(4, 1, 4, 8)
    with torch.no_grad():
        for each in model.blocks.parameters():
            each.zero_()  # a block of zeros adds nothing: states are clicks and positions
    assert_close(model.states(x, torch.ones(1, 4).double()), 8**0.5 * x + model.positions[:4].flip(0))


def test_block_matches_torchs_attention_norm_and_feed_forward() -> None:
    torch.manual_seed(5)
    block = CausalBlock(CausalAttention(8, 2), 8).double()
    x, seen = random_tensor(6, 3, 5, 8), torch.ones(5, 5).tril().bool()
    for norm in (block.attention_norm, block.feed_norm):
        norm.weight.data.copy_(random_tensor(7, 8))
        norm.bias.data.copy_(random_tensor(8, 8))

    def normed(rows: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(rows, (8,), random_tensor(7, 8), random_tensor(8, 8))

    q, k, v = (
        (normed(x) @ layer.weight.t()).unflatten(-1, (2, 4)).transpose(1, 2)
        for layer in (block.attention.query, block.attention.key, block.attention.value)
    )
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2)
    y = x + mixed
    wanted = y + block.feed[2](block.feed[0](normed(y)).relu())
    assert_close(block(x, seen.double().expand(3, 5, 5)), wanted)


def test_sizes_and_histories_beyond_the_limits_are_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="3 heads for dim 8"):
        CausalAttention(8, 3)
    with pytest.raises(ValueError, match="got 0 and 12"):
        sequence_recall(dim=8, heads=1, blocks=0, clicks_limit=12)
    with pytest.raises(ValueError, match=r"at most 12 rows, got \(1, 13, 8\)"):
        small(1).states(torch.zeros(1, 13, 8).double(), torch.ones(1, 13).double())
