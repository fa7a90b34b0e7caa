"""News vectors from a pretrained language model (Efficient-FedRec).

Token states are pooled by attention; a linear head follows.

The trainable part consists of the language model's top layers, pooling and head. The layers below are frozen, so their
token states can be stored and need not be computed again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from models.layers.attention import AdditiveAttention
from models.scoring import unit
from models.starts import fitted_head


class PlmNewsEncoder(nn.Module):
    """BERT -> masked additive attention over word pieces -> linear -> optionally length 1.

    Attention starts uniform (q = 0), so the pooled state starts as the mean over real word pieces. The head starts
    orthogonal; `fit_head` fits it to the articles.

    Args:
        bert: a transformers encoder; `bert.config.hidden_size` is S and its result has `last_hidden_state`.
        head_dim: D. If it exceeds S, the vectors span only S dimensions.
        unit_length: L2-normalise the news vectors.
    """

    def __init__(self, bert: nn.Module, head_dim: int = 256, *, unit_length: bool = True) -> None:
        super().__init__()
        config: Any = bert.config
        width: int = config.hidden_size
        if head_dim < 1:
            raise ValueError(f"head_dim must be at least 1, got {head_dim}")
        self.bert = bert
        self.pooling = AdditiveAttention(width, max(width // 2, 1))
        self.pooling.start_uniform()
        self.head = nn.Linear(width, head_dim)
        nn.init.orthogonal_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.unit_length = unit_length

    @torch.no_grad()
    def fit_head(self, pooled: Tensor) -> float:
        """Set the head to the main directions of pooled states [n, S], as `models.starts.fitted_head` says.

        Returns the share of the squared length that the head keeps. Raises ValueError for another shape, or values that
        are not finite.
        """
        out_dim, width = self.head.weight.shape
        if pooled.dim() != 2 or pooled.shape[1] != width or not len(pooled):
            raise ValueError(f"pooled must have shape [n, {width}] with n at least 1, got {tuple(pooled.shape)}")
        weight, kept = fitted_head(pooled.numpy(), out_dim)
        self.head.weight.copy_(torch.from_numpy(weight))
        nn.init.zeros_(self.head.bias)
        return kept

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """Token states [b, L, S] and their mask [b, L] -> pooled states [b, S]."""
        pooled: Tensor = self.pooling(states, mask)
        return pooled

    def project(self, pooled: Tensor) -> Tensor:
        """Pooled states [b, S] -> news vectors [b, D]."""
        vectors: Tensor = self.head(pooled)
        return normalize(vectors, dim=-1) if self.unit_length else vectors

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Word piece ids [b, L] -> token states [b, L, S]."""
        states: Tensor = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Word piece ids [b, L] and their mask [b, L] -> news vectors [b, D].

        A text without words gives the head's bias.
        """
        states = self.states(input_ids, attention_mask)
        return self.project(self.pool(states, attention_mask.to(states.dtype)))


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
