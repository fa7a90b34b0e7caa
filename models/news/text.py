"""News vectors from words: layers over word vectors, then attention pooling.

FedNewsRec (section 3.1), NRMS, LSTUR's title encoder and NAML's text views differ only in their layers: a text CNN,
self-attention, or both. The builders choose them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.layers.attention import AdditiveAttention
from models.layers.words import WordEmbedding
from models.scoring import unit
from models.shapes import expect_shape


class TextView(nn.Module):
    """A text's word vectors -> layers -> additive attention -> one vector.

    Args:
        layers: modules called as layer(x [n, L, ...], mask [n, L]).
        pooling: pools the last layer's output.
    """

    def __init__(self, layers: Sequence[nn.Module], pooling: AdditiveAttention) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.pooling = pooling

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Word vectors [n, L, E] and their mask [n, L] -> [n, D]; a text without words -> zeros."""
        for layer in self.layers:
            x = layer(x, mask)
        pooled: Tensor = self.pooling(x, mask)
        return pooled  # [n, D]


class Rectified(nn.Module):
    """relu(layer(x, mask)): FedNewsRec's code has this after self-attention, its paper does not."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Same shapes as `layer`."""
        return torch.relu(self.layer(x, mask))


class TitleEncoder(nn.Module):
    """A news vector from the title alone."""

    def __init__(self, words: WordEmbedding, title: TextView) -> None:
        super().__init__()
        self.words = words
        self.title = title

    def forward(self, words: Tensor) -> Tensor:
        """Word ids int64 [n, L], 0 is padding -> news vectors [n, D]; no word -> zeros."""
        expect_shape("words", words, "n", "L")
        vectors: Tensor = self.title(*self.words(words))
        return vectors


class WordVectorNews(nn.Module):
    """A unit news vector from the title's given, frozen word vectors (FedNewsRec).

    The word table is not part of the model, so its graphs fit every vocabulary.
    """

    def __init__(self, title: TextView) -> None:
        super().__init__()
        self.title = title

    def forward(self, word_vectors: Tensor, word_mask: Tensor) -> Tensor:
        """word_vectors [n, L, E], word_mask [n, L] -> [n, D]; no word -> zeros."""
        return unit(self.title(word_vectors, word_mask))
