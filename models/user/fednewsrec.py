"""FedNewsRec's user model: long-term interest, short-term interest, and attention over the two (section 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.layers.attention import AdditiveAttention, SelfAttention
from models.layers.gru import MaskedGru
from models.one_vector import UserModel

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
    """Return the last `count` real rows, left-padded, wherever padding stands.

    clicks [b, H, D], click_mask [b, H] -> rows [b, count, D], mask [b, count]. Computed as a product with a matrix of
    zeros and ones: slicing would assume left padding, and a gather with a free batch does not export with a gradient.
    """
    newer = click_mask.sum(dim=-1, keepdim=True) - click_mask.cumsum(dim=-1)  # real rows after each [b, H]
    places = torch.arange(count - 1, -1, -1, dtype=click_mask.dtype, device=click_mask.device)  # [count]
    chosen = (newer.unsqueeze(1) == places[:, None]).to(click_mask.dtype) * click_mask.unsqueeze(1)  # [b, count, H]
    return chosen @ clicks, chosen.sum(dim=-1)
