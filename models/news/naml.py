"""NAML's news vector from several views: title, abstract, category, subcategory (ALGORITHMS 5.7, 7)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.layers.additive_attention import AdditiveAttention
from models.layers.word_embedding import WordEmbedding
from models.news.text import TextView
from models.shapes import expect_shape


class ElementView(nn.Module):
    """An id's vector -> dense -> ReLU; id 0 is unknown and has no view."""

    def __init__(self, elements: WordEmbedding, dense: nn.Linear) -> None:
        super().__init__()
        self.elements = elements
        self.dense = dense
        nn.init.xavier_uniform_(dense.weight)
        nn.init.zeros_(dense.bias)

    def forward(self, element: Tensor) -> tuple[Tensor, Tensor]:
        """int64 [n] -> [n, D] and its mask [n]."""
        vectors, mask = self.elements(element)
        return torch.relu(self.dense(vectors)), mask


class NamlNews(nn.Module):
    """Views of one news, pooled by additive attention. Title and abstract share word vectors.

    A view that is missing (no abstract, as in Adressa; unknown category) is masked: the others share its weight.
    """

    def __init__(
        self,
        words: WordEmbedding,
        title: TextView,
        abstract: TextView,
        category: ElementView,
        subcategory: ElementView,
        pooling: AdditiveAttention,
    ) -> None:
        super().__init__()
        self.words = words
        self.title = title
        self.abstract = abstract
        self.category = category
        self.subcategory = subcategory
        self.pooling = pooling

    def views(self, title: Tensor, abstract: Tensor, category: Tensor, subcategory: Tensor) -> tuple[Tensor, Tensor]:
        """The arguments of `forward` -> four views [n, 4, D] and which of them exist [n, 4]."""
        expect_shape("title", title, "n", "L")
        n = title.shape[0]
        expect_shape("abstract", abstract, n, "L")
        expect_shape("category", category, n)
        expect_shape("subcategory", subcategory, n)
        vectors, present = [], []
        for view, ids in ((self.title, title), (self.abstract, abstract)):
            x, mask = self.words(ids)
            vectors.append(view(x, mask))
            present.append(mask.amax(dim=1))
        for element, ids in ((self.category, category), (self.subcategory, subcategory)):
            vector, known = element(ids)
            vectors.append(vector)
            present.append(known)
        return torch.stack(vectors, dim=1), torch.stack(present, dim=1)

    def forward(self, title: Tensor, abstract: Tensor, category: Tensor, subcategory: Tensor) -> Tensor:
        """Word ids int64 [n, L] and [n, L2], ids int64 [n] and [n] -> [n, D]; 0 is padding or unknown everywhere."""
        pooled: Tensor = self.pooling(*self.views(title, abstract, category, subcategory))
        return pooled  # [n, D]
