"""The text CNN against torch's Conv1d with same padding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from models.layers.words import TextCnn

seeds = st.integers(0, 2**31)


def random_tensor(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(seed: int = 0, width: int = 3) -> TextCnn:
    torch.manual_seed(seed)
    cnn = TextCnn(5, 7, width).double()
    nn.init.normal_(cnn.window.bias)
    return cnn


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 9), st.sampled_from([1, 3, 5]))
def test_text_cnn_without_padding_matches_conv1d_same_with_relu(seed: int, length: int, width: int) -> None:
    cnn, x = small(seed, width), random_tensor(seed + 1, 2, length, 5)
    oracle = nn.Conv1d(5, 7, width, padding="same").double()
    assert oracle.bias is not None
    with torch.no_grad():
        oracle.weight.copy_(cnn.window.weight.view(7, width, 5).transpose(1, 2))
        oracle.bias.copy_(cnn.window.bias)
    theirs = oracle(x.transpose(1, 2)).relu().transpose(1, 2)
    assert_close(cnn(x, torch.ones(2, length).double()), theirs)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 9), st.integers(0, 4), st.integers(0, 4))
def test_padding_on_either_side_changes_no_word_and_gives_zeros(seed: int, length: int, left: int, right: int) -> None:
    cnn, x = (
        small(seed),
        random_tensor(seed + 1, 1, left + length + right, 5),
    )  # what lies under the mask must not matter
    mask = torch.zeros(1, left + length + right).double()
    mask[:, left : left + length] = 1
    alone = x[:, left : left + length]
    out = cnn(x, mask)
    assert_close(out[:, left : left + length], cnn(alone, torch.ones(1, length).double()))
    assert out[mask == 0].eq(0).all()


def test_text_without_words_is_zero_with_zero_gradients() -> None:
    cnn, x = small(), random_tensor(1, 2, 4, 5).requires_grad_(True)
    out = cnn(x, torch.zeros(2, 4).double())
    assert out.eq(0).all()
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.eq(0).all()
    assert all(each.grad is not None and each.grad.eq(0).all() for each in cnn.parameters())


def test_gradients_match_finite_differences() -> None:
    cnn, mask = small(), torch.tensor([[1.0, 1, 1, 0], [1, 0, 0, 0]]).double()
    assert torch.autograd.gradcheck(lambda x: cnn(x, mask), (random_tensor(1, 2, 4, 5).requires_grad_(True),))


def test_section_4_1_sizes_have_360_400_parameters() -> None:
    assert sum(each.numel() for each in TextCnn(300, 400).parameters()) == 3 * 300 * 400 + 400


@pytest.mark.parametrize("width", [0, 2, -1])
def test_even_width_is_named_in_the_error(width: int) -> None:
    with pytest.raises(ValueError, match=f"width must be odd and positive, got {width}"):
        TextCnn(4, 4, width)


def test_mismatched_shapes_are_named_in_the_error() -> None:
    cnn, x = small(), random_tensor(1, 2, 4, 5)
    with pytest.raises(ValueError, match=r"x must have shape \[n, L, 5\], got \[2, 4, 3\]"):
        cnn(x[..., :3], torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"mask must have shape \[2, 4\], got \[4, 2\]"):
        cnn(x, torch.ones(4, 2))
