"""Baselines of recall: EBNR, HUITA, YoutubeNet, SASRec and Octopus."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.layers.attention import AdditiveAttention, masked_softmax
from models.layers.gru import MaskedGru
from models.layers.real_rows import by_row
from models.one_vector import OneVectorModel, mean_click, require_candidates, require_clicks
from models.scoring import info_nce, inner_products


class Ebnr(OneVectorModel):
    """u = the state after the newest click of a GRU 256 that reads the clicks from oldest to newest.

    Padding keeps the state, so it may be anywhere. Uncertain: Uni-FedRec reports no sizes; the original also trains
    an article encoder on similar articles, which the fixed news vectors replace here, and weighs recent sessions more.
    Every coordinate of u lies in (-1, 1), as in any GRU state.
    """

    def __init__(self, gru: MaskedGru) -> None:
        super().__init__(gru.state_dim)
        if gru.input.in_features != gru.state_dim:
            raise ValueError(
                f"state_dim must be the size of a news vector, {gru.input.in_features}; got {gru.state_dim}"
            )
        self.gru = gru

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        user: Tensor = self.gru(clicks, click_mask)
        return user


class Huita(OneVectorModel):
    """u = AddAttn(x_1 .. x_H), hidden 200; the order of the clicks is irrelevant.

    The original is made for reviews, in three tiers (words, sentences, reviews), each with its CNN and attention, and
    has id embeddings (Wu et al. 2019, HUITA). Here the news model is the word tier, a title is one sentence, and there
    are no ids. Uncertain: Uni-FedRec reports no sizes.
    """

    def __init__(self, pooling: AdditiveAttention) -> None:
        super().__init__(pooling.hidden.in_features)
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Set uniform attention: score(d) = mean_j <x_j, d>, the mean cosine for unit vectors.

        The paper's form is unchanged.
        """
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        user: Tensor = self.pooling(clicks, click_mask)
        return user


class YoutubeNet(OneVectorModel):
    """u = tower(mean_j x_j); the order of the clicks is irrelevant; no clicks -> zeros, even if the tower has biases.

    Sizes: dense ReLU 256-256, or no tower, which has nothing to train. Uncertain: Uni-FedRec names the baseline and
    reports no sizes; the original has three layers from 1,024 down, and more features than the watched videos (search
    words, age, sex, country), which readers here do not reveal. As in the original, the last layer has a ReLU, so u has
    no negative coordinate.

    Args:
        tower: D -> D. `nn.Identity()` for none.
        dim: D.
    """

    def __init__(self, tower: nn.Module, dim: int) -> None:
        super().__init__(dim)
        self.tower = tower

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        any_click = click_mask.amax(dim=-1, keepdim=True)  # [b, 1]
        user: Tensor = self.tower(mean_click(clicks, click_mask))
        return user * any_click


POSITION_SPREAD = 0.02


class CausalAttention(nn.Module):
    """softmax(X Wq (X Wk)^T / sqrt(d)) X Wv over each row's visible rows.

    Heads concatenated, no output projection.
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"heads must divide dim, got {heads} heads for dim {dim}")
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        for layer in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        """x [b, H, D], visible [b, H, H], 1 where the row attends to the column -> [b, H, D]."""
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        weights = self._weights(q @ k.transpose(-1, -2), visible)  # [b, h, H, H]
        return (weights @ v).transpose(1, 2).flatten(2)

    def of_one(self, row: Tensor, x: Tensor, visible: Tensor) -> Tensor:
        """The output of one row: row [b, 1, D], x [b, H, D], visible [b, 1, H] -> [b, 1, D].

        For one row (q Wk) x^T and (a x) Wv^T are the same products with H times fewer multiplications: the keys and
        values of the other rows are never formed.
        """
        keys, values = (layer.weight.view(self.heads, -1, x.shape[-1]) for layer in (self.key, self.value))  # [h, d, D]
        rows = x.unsqueeze(1)  # [b, 1, H, D]
        weights = self._weights(self._split(self.query(row)) @ keys @ rows.transpose(-1, -2), visible)  # [b, h, 1, H]
        return (weights @ rows @ values.transpose(-1, -2)).transpose(1, 2).flatten(2)

    def _weights(self, products: Tensor, visible: Tensor) -> Tensor:
        return masked_softmax(products / math.sqrt(self.query.out_features // self.heads), visible.unsqueeze(1))

    def _split(self, rows: Tensor) -> Tensor:
        return rows.view(rows.shape[0], rows.shape[1], self.heads, -1).transpose(1, 2)  # [b, h, rows, d]


class CausalBlock(nn.Module):
    """x + Attn(norm(x)), then x + W2 relu(W1 norm(x) + b1) + b2 (the paper's section III.B)."""

    def __init__(self, attention: CausalAttention, dim: int) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_norm = nn.LayerNorm(dim)
        self.feed = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        """x [b, H, D], visible [b, H, H] -> [b, H, D]."""
        return self._fed(x + self.attention(self.attention_norm(x), visible))

    def of_one(self, place: Tensor, x: Tensor, visible: Tensor) -> Tensor:
        """The output of the row at `place` [b, 1, H], one 1 or none: x [b, H, D], visible [b, 1, H] -> [b, 1, D]."""
        seen = self.attention_norm(x)
        return self._fed(place @ x + self.attention.of_one(place @ seen, seen, visible))

    def _fed(self, x: Tensor) -> Tensor:
        fed: Tensor = self.feed(self.feed_norm(x))
        return x + fed


class SasRec(OneVectorModel):
    """u = the state at the newest real click, of blocks over sqrt(D) x_j + position_j, divided by sqrt(D).

    Sizes: 2 blocks of one head, D = 256, feed-forward 256 (the paper's number of blocks and heads; its D is 50).
    Deviations: no dropout (the device's gradient graph is deterministic); candidates are the fixed news vectors rather
    than a trained item table; InfoNCE with K negatives rather than the binary loss with one; trained at the newest
    click
    rather than at each. From the published code, not the paper's text: the factor sqrt(D), without which the norms
    would
    multiply gradients by 16. Ours: u is divided by it, so that it has the size of a news vector as in the other models;
    without the division, one step of Adam moves scores 16 times as far. In the published code but not here: a norm
    after
    the last block. Uncertain: Uni-FedRec reports no sizes.

    Positions count backwards from the newest real click, which is 0. With left padding that is the paper's numbering; a
    mask with gaps or padding on the right gives the same states.

    Args:
        blocks: one or two CausalBlock.
        dim: D.
        clicks_limit: number of positions, the largest H.
    """

    def __init__(self, blocks: Sequence[CausalBlock], dim: int, clicks_limit: int) -> None:
        super().__init__(dim)
        if not blocks or clicks_limit < 1:
            raise ValueError(f"blocks and clicks_limit must be at least 1, got {len(blocks)} and {clicks_limit}")
        self.positions = nn.Parameter(torch.empty(clicks_limit, dim).normal_(std=POSITION_SPREAD))
        self.blocks = nn.ModuleList(blocks)

    def states(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> states [b, H, D], zero at padding.

        A state depends on its own click and those before it, and on the number of real clicks after it.
        """
        x, visible = self._placed(clicks, click_mask)
        for block in self.blocks:
            x = block(x, visible)
        return x * click_mask.unsqueeze(-1)

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]; no clicks -> zeros.

        The last block is computed for the newest row only, because the other states are not needed.
        """
        x, visible = self._placed(clicks, click_mask)
        newest = (click_mask * (_clicks_after(click_mask) == 0)).unsqueeze(1)  # [b, 1, H], one 1 or none
        *below, last = self.blocks
        for block in below:
            x = block(x, visible)
        assert isinstance(last, CausalBlock)
        user = last.of_one(newest, x, click_mask.unsqueeze(1)).squeeze(1)
        return user * click_mask.amax(dim=-1, keepdim=True) / math.sqrt(self.dim)

    def _placed(self, clicks: Tensor, click_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Clicks with their positions [b, H, D], and a mask of the clicks that each click sees [b, H, H]."""
        require_clicks(clicks, click_mask, self.dim)
        limit = len(self.positions)
        if limit < clicks.shape[1]:
            raise ValueError(f"clicks must have at most {limit} rows, got {tuple(clicks.shape)}")
        after = _clicks_after(click_mask)
        # A product with one-hot rows: indexing positions would need a scatter in the gradient graph.
        here = (after.unsqueeze(-1) == torch.arange(limit, device=clicks.device)).to(clicks.dtype)  # [b, H, limit]
        # "Not newer" by counting real clicks: a constant triangle would add 10 KB to every graph.
        visible = (after.unsqueeze(1) >= after.unsqueeze(2)) * click_mask.unsqueeze(1)  # [b, H, H]
        return math.sqrt(self.dim) * clicks + here @ self.positions, visible


def _clicks_after(click_mask: Tensor) -> Tensor:
    """The number of real clicks after each row: [b, H] -> [b, H], whole numbers as floats."""
    return click_mask.sum(dim=-1, keepdim=True) - click_mask.cumsum(dim=-1)


class Octopus(nn.Module):
    """Each click goes to its nearest channel.

    Every channel with clicks has its own interest vector. With channel vectors E [M, D]: m(j) = argmax_m <E_m, x_j>;
    e_j = E_m(j) . tanh(W x_j + b); the channel's vector u_m = sum_j softmax_{j in m}(e_j) x_j. Loss: InfoNCE of <u_m*,
    d>, m* the active channel that scores the positive best, plus `penalty` ||E E^T - I||_F^2. Assignment and m* are
    choices without a gradient: E learns through the attention and the penalty.

    Sizes: M = 8 (the paper's figure 1), D = 256. Uncertain, because we have secondary sources only: the attention's
    form (this one is ours), the penalty's weight, and whether negatives are scored by the positive's channel (here, as
    in other multi-interest models) or each by its best channel. Serving: `forward` lets the channels compete by score;
    the paper's alternative is a quota for each.

    Args:
        dim: D.
        channels: M, at most D, so that they can be orthogonal.
        penalty: weight of the orthogonality penalty, 0 or more.
    """

    def __init__(self, dim: int, channels: int, penalty: float) -> None:
        super().__init__()
        if not 1 <= channels <= dim:
            raise ValueError(f"channels must be 1 to dim, got {channels} for dim {dim}")
        if not penalty >= 0:
            raise ValueError(f"penalty must be 0 or more, got {penalty}")
        self.dim = dim
        self.penalty = penalty
        self.channels = nn.Parameter(nn.init.orthogonal_(torch.empty(channels, dim)))
        self.hidden = nn.Linear(dim, dim)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)

    @torch.no_grad()
    def cosine_start(self) -> None:
        """Set W = 0, b = 0: uniform attention.

        For unit vectors score(d) is then the mean cosine with the clicks of the active channel where that is largest:
        with one active channel, the mean cosine of the whole history.
        """
        nn.init.zeros_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)

    def membership(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> [b, M, H], 1 in the channel of each real click. No gradient."""
        require_clicks(clicks, click_mask, self.dim)
        return one_hot_of_largest(clicks @ self.channels.t()).transpose(1, 2) * click_mask.unsqueeze(1)

    def channel_vectors(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, M, D]; zero for an inactive channel."""
        members = self.membership(clicks, click_mask)  # [b, M, H]
        (hidden,) = by_row(lambda rows: (self.hidden(rows).tanh(),), clicks, click_mask)  # [b, H, D]
        scores = self.channels @ hidden.transpose(1, 2)  # [b, M, H]
        return masked_softmax(scores, members) @ clicks

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """candidates [b, R, D] -> the score of each by its best active channel, [b, R]; no clicks -> zeros."""
        require_candidates(candidates, self.dim)
        active = self.membership(clicks, click_mask).amax(dim=-1)  # [b, M]
        scores = candidates @ self.channel_vectors(clicks, click_mask).transpose(1, 2)  # [b, R, M]
        best = _where_active(scores, active.unsqueeze(1)).amax(dim=-1)
        return best * click_mask.amax(dim=-1, keepdim=True)

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first, in the positive's channel, plus the penalty."""
        require_candidates(candidates, self.dim)
        active = self.membership(clicks, click_mask).amax(dim=-1)  # [b, M]
        vectors = self.channel_vectors(clicks, click_mask)  # [b, M, D]
        positive = inner_products(candidates[:, 0], vectors)  # [b, M]
        chosen = one_hot_of_largest(_where_active(positive, active))  # [b, M]
        user = (chosen.unsqueeze(1) @ vectors).squeeze(1)  # [b, D]
        return info_nce(inner_products(user, candidates)) + self.penalty * self.orthogonality()

    def orthogonality(self) -> Tensor:
        """||E E^T - I||_F^2 -> []; 0 for orthonormal channels."""
        gram = self.channels @ self.channels.t()  # [M, M]
        return (gram - torch.eye(len(gram), dtype=gram.dtype, device=gram.device)).square().sum()


def one_hot_of_largest(scores: Tensor) -> Tensor:
    """1 at the largest entry of the last axis, the first among equals, 0 elsewhere; no gradient passes."""
    places = torch.arange(scores.shape[-1], device=scores.device)
    return (scores.argmax(dim=-1, keepdim=True) == places).to(scores.dtype)


def _where_active(scores: Tensor, active: Tensor) -> Tensor:
    return torch.where(active != 0, scores, torch.finfo(scores.dtype).min)
