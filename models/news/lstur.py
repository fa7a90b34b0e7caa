"""LSTUR's news vector with topics: title, category and subcategory side by side (ALGORITHMS 7)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.layers.word_embedding import WordEmbedding
from models.news.text import TitleEncoder
from models.shapes import expect_shape


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
