"""Octopus: assignment, elastic activation, the positive's channel and orthogonality. Oracle: a plain implementation."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from models.builders.recall import octopus
from models.recall.baselines import Octopus, one_hot_of_largest

seeds = st.integers(0, 2**31)


def random_tensor(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(seed: int, penalty: float = 0.0) -> Octopus:
    torch.manual_seed(seed)
    model = Octopus(6, 3, penalty).double()
    torch.nn.init.normal_(model.hidden.bias)
    return model


def plain(model: Octopus, clicks: Tensor) -> dict[int, Tensor]:
    """Return the vectors of one reader's active channels, click by click."""
    nearest = [int((model.channels @ click).argmax()) for click in clicks]
    vectors = {}
    for channel in sorted(set(nearest)):
        own = torch.stack([click for click, home in zip(clicks, nearest, strict=True) if home == channel])
        scores = torch.stack([model.channels[channel] @ torch.tanh(model.hidden(click)) for click in own])
        vectors[channel] = scores.softmax(0) @ own
    return vectors


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 8), st.integers(0, 3))
def test_channels_scores_and_loss_match_a_plain_implementation(seed: int, length: int, padding: int) -> None:
    model, news = small(seed), random_tensor(seed + 2, 1, 5, 6)
    clicks = random_tensor(seed, 1, padding + length, 6)
    mask = torch.cat([torch.zeros(1, padding), torch.ones(1, length)], dim=1).double()
    wanted = plain(model, clicks[0, padding:])
    vectors = model.channel_vectors(clicks, mask)[0]
    for channel in range(3):
        assert_close(vectors[channel], wanted.get(channel, torch.zeros(6).double()))
    scores = torch.stack([vector @ news[0].t() for vector in wanted.values()])  # [active, R]
    assert_close(model(clicks, mask, news)[0], scores.amax(dim=0))
    chosen = scores[scores[:, 0].argmax()]
    assert_close(model.loss(clicks, mask, news), -chosen.log_softmax(-1)[0])


def test_inactive_channel_never_wins_even_against_negative_scores() -> None:
    model = small(1)
    click = model.channels[0].detach()
    scores = model(click[None, None], torch.ones(1, 1).double(), -click[None, None])
    assert_close(scores, -click.square().sum()[None, None])


def test_click_equally_near_to_several_channels_goes_to_the_first_alone() -> None:
    assert one_hot_of_largest(torch.tensor([[2.0, 5.0, 5.0], [0.0, 0.0, 0.0]])).tolist() == [[0, 1, 0], [1, 0, 0]]
    model = small(2)
    with torch.no_grad():
        model.channels[1] = model.channels[0]
    members = model.membership(random_tensor(3, 2, 9, 6), torch.ones(2, 9).double())
    assert members.sum(1).eq(1).all()
    assert members[:, 1].eq(0).all()


def test_orthogonality_penalty_is_the_gram_matrix_distance_and_starts_at_zero() -> None:
    torch.manual_seed(0)
    assert octopus().orthogonality() < 1e-9
    model = small(4)
    with torch.no_grad():
        model.channels.copy_(torch.tensor([[2.0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]))
    assert_close(model.orthogonality().item(), 3.0**2 + 1 + 1)
    free, bound = small(5), small(5, penalty=2.0)
    for each in (free, bound):
        each.channels.data.copy_(model.channels)
    clicks, mask, news = random_tensor(6, 1, 4, 6), torch.ones(1, 4).double(), random_tensor(7, 1, 5, 6)
    assert_close(bound.loss(clicks, mask, news) - free.loss(clicks, mask, news), torch.tensor(22.0).double())


def test_untrained_octopus_scores_by_the_mean_cosine_of_the_best_channels_clicks() -> None:
    torch.manual_seed(0)
    model = octopus()
    unit = torch.nn.functional.normalize
    clicks, news = unit(random_tensor(1, 1, 50, 256).float(), dim=-1), unit(random_tensor(2, 1, 9, 256).float(), dim=-1)
    homes = (clicks[0] @ model.channels.t()).argmax(-1)
    cosine = torch.cosine_similarity(clicks[0, None], news[0, :, None], dim=-1)  # [R, H]
    each = torch.stack([cosine[:, homes == channel].mean(-1) for channel in homes.unique()])
    assert len(each) == 8
    assert_close(model(clicks, torch.ones(1, 50), news)[0], each.amax(0), atol=1e-5, rtol=0)
    one = clicks[:, homes == homes[0]]
    alone = model(one, torch.ones(1, one.shape[1]), news)[0]
    assert_close(alone, cosine[:, homes == homes[0]].mean(-1), atol=1e-5, rtol=0)


def test_channels_and_attention_learn_from_the_start() -> None:
    torch.manual_seed(0)
    model = octopus()
    clicks, mask, news = torch.randn(4, 50, 256), torch.ones(4, 50), torch.randn(4, 5, 256)
    learners = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        learners.zero_grad()
        model.loss(clicks, mask, news).backward()
        learners.step()
    assert all(each.grad is not None and each.grad.abs().max() > 0 for each in model.parameters())


@pytest.mark.parametrize(("channels", "penalty", "words"), [(0, 0.0, "got 0"), (7, 0.0, "got 7"), (3, -1.0, "got -1")])
def test_sizes_out_of_range_are_named_in_the_error(channels: int, penalty: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Octopus(6, channels, penalty)
