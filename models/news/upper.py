"""The trainable part of a PLM news encoder (Efficient-FedRec).

It consists of the language model's top layers, pooling and head. The layers below are frozen, so their token states can
be stored and need not be computed again.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from models.layers.attention import AdditiveAttention
from models.news.plm import PlmNewsEncoder
from models.scoring import unit


class UpperEncoder(nn.Module):
    """Token states of the layer below [b, L, S] and their mask [b, L] -> news vectors [b, D].

    Args:
        layers: the language model's top layers, lowest first; may be empty.
        pooling, head: as in PlmNewsEncoder.
        unit_length: L2-normalise the news vectors.
    """

    def __init__(
        self, layers: list[nn.Module], pooling: AdditiveAttention, head: nn.Linear, *, unit_length: bool = True
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.pooling = pooling
        self.head = head
        self.unit_length = unit_length
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0

    @classmethod
    def of(cls, encoder: PlmNewsEncoder, layers: int) -> UpperEncoder:
        """Return the upper part of an encoder; it shares the encoder's modules.

        Raises ValueError for more layers than there are.
        """
        top = list(stack(encoder.bert, layers)) if layers else []
        return cls(top, encoder.pooling, encoder.head, unit_length=encoder.unit_length)

    @classmethod
    def headed(cls, layers: list[nn.Module], width: int, head_dim: int) -> UpperEncoder:
        """Return an upper part without meaningful weights, to be loaded later."""
        return cls(layers, AdditiveAttention(width, max(width // 2, 1)), nn.Linear(width, head_dim))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """states [b, L, S], mask [b, L] -> [b, D]."""
        real = mask.to(states.dtype)
        if len(self.layers):
            # Attention is written out. The scores of padding get the most negative number there is.
            added = (1.0 - real)[:, None, None, :] * torch.finfo(states.dtype).min
            for layer in self.layers:
                out = layer(states, added)
                states = out[0] if isinstance(out, tuple) else out
        vectors: Tensor = self.head(self.pooling(states, real))
        return normalize(vectors, dim=-1) if self.unit_length else vectors


class PooledHead(nn.Module):
    """Pooled states [n, S] -> news vectors [n, D]: the only trainable part if pooling is frozen too.

    Args:
        head: as in PlmNewsEncoder.
        unit_length: L2-normalise the news vectors.
    """

    def __init__(self, head: nn.Linear, *, unit_length: bool = True) -> None:
        super().__init__()
        self.head = head
        self.unit_length = unit_length

    @classmethod
    def sized(cls, width: int, head_dim: int) -> PooledHead:
        """Return a head without meaningful weights, to be loaded later: S = width, D = head_dim."""
        return cls(nn.Linear(width, head_dim))

    def forward(self, pooled: Tensor) -> Tensor:
        """pooled [n, S] -> [n, D]."""
        vectors: Tensor = self.head(pooled)
        return unit(vectors) if self.unit_length else vectors

    def product(self, pooled: Tensor, slopes: Tensor) -> Tensor:
        """sum_i <e_i, G_i> -> [], for pooled [n, S] and G [n, D], the gradients of a loss for the vectors e.

        By the chain rule its gradient for the head is that of the loss (Efficient-FedRec, eq. 6); its gradient for G is
        e.
        """
        vectors: Tensor = self(pooled)
        return (vectors * slopes).sum()


def stack(bert: nn.Module, layers: int) -> nn.ModuleList:
    """The last `layers` layers of a language model that keeps them in `encoder.layer`.

    Raises ValueError for a model without `encoder.layer`, or for more layers than it has.
    """
    all_layers = getattr(getattr(bert, "encoder", None), "layer", None)
    if not isinstance(all_layers, nn.ModuleList):
        raise ValueError(f"bert must have its layers in encoder.layer, got {type(bert).__name__}")
    if not 0 <= layers <= len(all_layers):
        raise ValueError(f"layers must be between 0 and {len(all_layers)}, got {layers}")
    found: nn.ModuleList = all_layers[len(all_layers) - layers :]
    return found
