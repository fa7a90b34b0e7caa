"""User models of NRMS, NAML and LSTUR (EMNLP 2019, IJCAI 2019, ACL 2019).

NRMS: self-attention over clicked articles, then additive attention. NAML: additive attention over the clicks. LSTUR: a
vector of the reader for the long term, a GRU over clicks for the short term.
"""

from __future__ import annotations

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
        """Make the GRU a running mean: h' = .9 h + .1 tanh(.1 x); the newest click weighs most.

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
