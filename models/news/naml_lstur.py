"""News vectors of NAML (four views of a piece of news) and of LSTUR with topics."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.layers.attention import AdditiveAttention
from models.layers.word_embedding import WordEmbedding
from models.news.text import TextView, TitleEncoder
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


class TopicNews(nn.Module):
    """[title; category; subcategory]; the title encoder without topics is `TitleEncoder` itself.

    An unknown topic, id 0, is a zero vector in its place.
    """

    def __init__(self, title: TitleEncoder, category: WordEmbedding, subcategory: WordEmbedding) -> None:
        super().__init__()
        self.title = title
        self.category = category
        self.subcategory = subcategory

    def forward(self, title: Tensor, category: Tensor, subcategory: Tensor) -> Tensor:
        """Word ids int64 [n, L], ids int64 [n] and [n] -> [n, F + 2 E_topic]."""
        expect_shape("title", title, "n", "L")
        expect_shape("category", category, title.shape[0])
        expect_shape("subcategory", subcategory, title.shape[0])
        parts = [self.title(title), self.category(category)[0], self.subcategory(subcategory)[0]]
        return torch.cat(parts, dim=-1)
