"""The layers as torch users write them, autograd doing the rest: what an exported gradient graph is compared with.

models.layers writes two backward passes out and leaves padding uncomputed, which makes torch eager faster too; these
have the same values.
"""

from __future__ import annotations

import copy
import math
from typing import TypeVar

import torch
from torch import Tensor, nn

from models.layers.attention import AdditiveAttention, SelfAttention, masked_softmax
from models.layers.gru import MaskedGru

ModelT = TypeVar("ModelT", bound=nn.Module)


class PlainAttention(nn.Module):
    """SelfAttention by its formula: products, a masked softmax, a product."""

    def __init__(self, layer: SelfAttention) -> None:
        super().__init__()
        self.query, self.key, self.value = layer.query, layer.key, layer.value
        self.heads = layer.heads

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [b, H, Din], mask [b, H] -> [b, H, h d]."""
        q, k, v = (
            layer(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        weights = masked_softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), mask[:, None, None, :])
        contexts: Tensor = (weights @ v).transpose(1, 2).flatten(2) * mask.unsqueeze(-1)
        return contexts


class PlainPooling(nn.Module):
    """AdditiveAttention by its formula, over all rows."""

    def __init__(self, layer: AdditiveAttention) -> None:
        super().__init__()
        self.hidden, self.query = layer.hidden, layer.query

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [b, H, D], mask [b, H] -> [b, D], or mask [b, C, H] -> [b, C, D]."""
        each = mask if mask.dim() == x.dim() else mask.unsqueeze(1)  # [b, C, H]
        weights = masked_softmax(self.query(self.hidden(x).tanh()).transpose(1, 2), each)
        pooled: Tensor = weights @ x
        return pooled if mask.dim() == x.dim() else pooled.squeeze(1)


class PlainGru(nn.Module):
    """MaskedGru by nn.GRU over all rows, real ones first, and the state after the last real one."""

    def __init__(self, layer: MaskedGru) -> None:
        super().__init__()
        self.input, self.recurrent = layer.input, layer.recurrent

    def forward(self, x: Tensor, mask: Tensor, start: Tensor | None = None) -> Tensor:
        """x [b, H, Din], mask [b, H], start [b, D] -> [b, D]."""
        order = mask.argsort(dim=1, descending=True, stable=True)
        rows = x.gather(1, order.unsqueeze(-1).expand_as(x))
        state = x.new_zeros(len(x), self.recurrent.in_features) if start is None else start
        bias = self.input.bias
        weights = [self.input.weight, self.recurrent.weight, bias, torch.zeros_like(bias)]
        states, _ = torch.gru(rows, state.unsqueeze(0).contiguous(), weights, True, 1, 0.0, True, False, True)
        after = torch.cat([state.unsqueeze(1), states], dim=1)
        return after[torch.arange(len(x)), mask.sum(dim=1).long()]


def plain(model: ModelT) -> ModelT:
    """A copy of the model with these layers in place of ours, and parameters of the same values."""
    made = copy.deepcopy(model)
    for parent in list(made.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, SelfAttention):
                setattr(parent, name, PlainAttention(child))
            elif isinstance(child, AdditiveAttention):
                setattr(parent, name, PlainPooling(child))
            elif isinstance(child, MaskedGru):
                setattr(parent, name, PlainGru(child))
    return made
