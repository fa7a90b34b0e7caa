"""User models of NRMS, NAML, LSTUR and FedNewsRec (EMNLP 2019, IJCAI 2019, ACL 2019, EMNLP Findings 2020).

NRMS: self-attention over clicked articles, then additive attention. NAML: additive attention over the clicks. LSTUR: a
vector of the reader for the long term, a GRU over clicks for the short term.
FedNewsRec: long-term interest, short-term interest, and attention over the two (section 3.1).
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from models.layers.attention import AdditiveAttention, SelfAttention
from models.layers.gru import MaskedGru
from models.one_vector import UserModel
from models.shapes import Scope


class NrmsUser(UserModel):
    """u = AddAttn(MHSA(clicks)). The order of clicks is irrelevant; no clicks -> zeros."""

    def __init__(self, attention: SelfAttention, pooling: AdditiveAttention) -> None:
        super().__init__(attention.value.in_features)
        self.attention = attention
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Set the parameters so that score(d) = mean_j cos(click_j, d) for unit vectors.

        That is the cosine with the mean click times its length, which does not change the order of candidates.
        """
        self.attention.start_mean()
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        user: Tensor = self.pooling(self.attention(clicks, click_mask), click_mask)
        return user


class NamlUser(UserModel):
    """u = AddAttn(clicks). The order of clicks is irrelevant; no clicks -> zeros."""

    def __init__(self, dim: int, pooling: AdditiveAttention) -> None:
        super().__init__(dim)
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Set uniform attention: for unit vectors score(d) = mean_j cos(click_j, d)."""
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        user: Tensor = self.pooling(clicks, click_mask)
        return user


START_KEEP = 0.9  # share of the state kept at each click; .8 to .98 rank MIND dev within .003 AUC of the plain mean
START_SCALE = 0.1  # tanh(.1 x) / .1 is x within 1e-5 for the numbers of a unit vector of 256


class LsturUser(UserModel):
    """What both forms of LSTUR share. The reader's id embedding never leaves the device.

    The paper's embedding table over readers would reveal to the server who is who. Here each device holds only its own
    row, which is zero until trained, as the paper has it for an unknown reader. The paper drops the row with p = .5 in
    training; a device does so for a round at a time (`RoundManifest.dropout`).
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {"user_embedding": "private"}

    def __init__(self, dim: int, gru: MaskedGru) -> None:
        super().__init__(dim)
        if gru.state_dim != dim or gru.input.in_features != dim:
            raise ValueError(f"gru must map {dim} to {dim}, got {gru.input.in_features} to {gru.state_dim}")
        self.gru = gru
        self.user_embedding = nn.Parameter(torch.zeros(dim))

    @torch.no_grad()
    def cosine_start(self) -> None:
        """Make the GRU a running mean: h' = .9 h + .1 tanh(.1 x); the newest click has the greatest weight.

        The start is therefore sum_j .1 .9^(H - j) cos(click_j, d), times .1: a weighted mean of cosines that favours
        recent clicks. No weights of a GRU give the plain mean of any number of clicks.
        """
        D = self.dim
        for each in self.gru.parameters():
            nn.init.zeros_(each)
        self.gru.input.bias[D : 2 * D].fill_(math.log(START_KEEP / (1 - START_KEEP)))  # z = .9
        self.gru.input.weight[2 * D :].copy_(START_SCALE * torch.eye(D))
        nn.init.zeros_(self.user_embedding)


class LsturIniUser(LsturUser):
    """`ini`: u is the state of a GRU that starts from the reader's vector.

    With a zero vector it is a plain GRU. For a reader without clicks, u is that vector itself.
    """

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        user: Tensor = self.gru(clicks, click_mask, self.user_embedding.expand(clicks.shape[0], -1))
        return user


class LsturConUser(LsturUser):
    """`con`: u = W (GRU state, reader's vector).

    The paper halves both sizes. This variant has full sizes and a dense layer 2 D -> D, because the cosine start needs
    a state as wide as the news vectors.
    """

    def __init__(self, dim: int, gru: MaskedGru) -> None:
        super().__init__(dim, gru)
        self.joined = nn.Linear(2 * dim, dim, bias=False)

    @torch.no_grad()
    def cosine_start(self) -> None:
        """Set W = (10 I, I), which undoes the GRU's factor .1."""
        super().cosine_start()
        D = self.dim
        self.joined.weight.copy_(torch.cat([torch.eye(D) / START_SCALE, torch.eye(D)], dim=1))

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        recent = self.gru(clicks, click_mask)  # [b, D]
        own = self.user_embedding.expand(clicks.shape[0], -1)  # [b, D]
        user: Tensor = self.joined(torch.cat([recent, own], dim=-1))
        return user


SHORT_CLICKS = 20  # the paper gives no number; its code has 20


class FedNewsRecUser(UserModel):
    """long = AddAttn(MHSA(clicks)); short = GRU(the 20 most recent clicks); u = AddAttn(long, short).

    At 400-d with 20 x 20 heads it has the paper's 1,602,002 parameters: MHSA 480,000 without biases, two AddAttn of
    80,401, and a GRU of 961,200 with one bias for each gate. The gates are a modern GRU's (see `MaskedGru`).
    """

    def __init__(
        self, attention: SelfAttention, pooling: AdditiveAttention, gru: MaskedGru, fusion: AdditiveAttention
    ) -> None:
        super().__init__(attention.value.in_features)
        if gru.state_dim != self.dim:
            raise ValueError(f"gru must have states of size {self.dim}, got {gru.state_dim}")
        self.attention = attention
        self.pooling = pooling
        self.gru = gru
        self.fusion = fusion

    @torch.no_grad()
    def cosine_start(self) -> None:
        """Set V = 2 I, uniform pooling and fusion, and a GRU that stays at zero: u = (2 mean click + 0) / 2.

        Only the GRU's map of the click to the candidate state starts at zero. That map has a gradient from the first
        step, and the rest of the GRU from the second.
        """
        self.attention.start_mean()
        self.attention.value.weight.mul_(2)
        self.pooling.start_uniform()
        self.fusion.start_uniform()
        taken_in = slice(2 * self.gru.state_dim, None)
        nn.init.zeros_(self.gru.input.weight[taken_in])
        nn.init.zeros_(self.gru.input.bias[taken_in])

    def long_term(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> [b, D]; the order of clicks is irrelevant."""
        long: Tensor = self.pooling(self.attention(clicks, click_mask), click_mask)
        return long

    def short_term(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> the GRU's state after the newest click [b, D]."""
        short: Tensor = self.gru(*most_recent(clicks, click_mask, SHORT_CLICKS))
        return short

    def fuse(self, long: Tensor, short: Tensor, present: Tensor) -> Tensor:
        """long, short [b, D]; present [b, 2] marks which of the two exist -> u [b, D].

        A missing term has weight 0, so the other has weight 1.
        """
        user: Tensor = self.fusion(torch.stack([long, short], dim=1), present)
        return user

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        any_click = click_mask.amax(dim=-1, keepdim=True)  # [b, 1]
        return self.fuse(
            self.long_term(clicks, click_mask), self.short_term(clicks, click_mask), any_click.expand(-1, 2)
        )


def most_recent(clicks: Tensor, click_mask: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the last `count` real rows, left-padded; padding in the input may be anywhere.

    clicks [b, H, D], click_mask [b, H] -> rows [b, count, D], mask [b, count]. Computed as a product with a matrix of
    zeros and ones: slicing would assume left padding, and a gather with a free batch does not export with a gradient.
    """
    newer = click_mask.sum(dim=-1, keepdim=True) - click_mask.cumsum(dim=-1)  # real rows after each [b, H]
    places = torch.arange(count - 1, -1, -1, dtype=click_mask.dtype, device=click_mask.device)  # [count]
    chosen = (newer.unsqueeze(1) == places[:, None]).to(click_mask.dtype) * click_mask.unsqueeze(1)  # [b, count, H]
    return chosen @ clicks, chosen.sum(dim=-1)
