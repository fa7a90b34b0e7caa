"""Baselines that read entities: DKN (Wang et al. 2018) and DAN (Zhu et al. 2019)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.papers.news_baselines.articles import WORD_DIM, ArticleColumns
from experiments.papers.news_baselines.training import NewsRanker, PairAttention
from models.layers.words import TextCnn

WINDOWS = (1, 2, 3, 4)
FILTERS, HIDDEN = 16, 32
"""Filters of each window of DKN, where the paper has 100; the attention's and the score's hidden size."""
PART = 32
"""Numbers of each of DAN's two parts of an article."""


class Dkn(NewsRanker):
    """KCNN over words, entities and contexts; attention to the candidate; a dense network scores both vectors.

    Words, and entities and contexts mapped by tanh(M e + b), are three channels of one convolution. A word that names
    no entity has zeros there.
    """

    def __init__(self, columns: ArticleColumns) -> None:
        super().__init__(columns)
        self.to_words = nn.Linear(WORD_DIM, WORD_DIM)
        self.windows = nn.ModuleList(nn.Linear(width * 3 * WORD_DIM, FILTERS) for width in WINDOWS)
        dim = FILTERS * len(WINDOWS)
        self.attention = PairAttention(dim, HIDDEN)
        self.score = nn.Sequential(nn.Linear(2 * dim, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))

    def articles(self, rows: NDArray[np.int64]) -> Tensor:
        """Rows [m] -> max over words of each filter [m, 4 * 16]."""
        known = self.columns
        words, entities = known.words[rows], known.entities[rows]
        real = torch.from_numpy((words > 0).astype(np.float32))[..., None]
        # Each word's and entity's product with all filters is computed once: [3, E, 16 * (1 + 2 + 3 + 4)]
        filters = dict(self.windows.named_parameters())
        each_place = [
            filters[f"{place}.weight"].view(FILTERS, -1, 3, WORD_DIM).permute(2, 3, 1, 0).flatten(2)
            for place in range(len(WINDOWS))
        ]
        of_words, of_entities, of_contexts = torch.cat(each_place, dim=-1)
        distinct, at = np.unique(words, return_inverse=True)
        products = (torch.from_numpy(known.vectors[distinct]) @ of_words)[torch.from_numpy(at.reshape(words.shape))]
        named, at = np.unique(entities, return_inverse=True)
        pairs = ((known.entity_vectors, of_entities), (known.contexts, of_contexts))
        mapped = [torch.tanh(self.to_words(torch.from_numpy(table[named]))) @ each for table, each in pairs]
        aligned = (mapped[0] + mapped[1]) * torch.from_numpy((named > 0).astype(np.float32))[:, None]
        products = products + aligned[torch.from_numpy(at.reshape(words.shape))]  # [m, L, 10 * 16]
        padded = nn.functional.pad(products, (0, 0, 0, max(WINDOWS) - 1)).view(len(rows), -1, sum(WINDOWS), FILTERS)
        found, first, length = [], 0, words.shape[1]
        for place, width in enumerate(WINDOWS):
            parts = [padded[:, step : step + length, first + step] for step in range(width)]
            found.append((torch.relu(torch.stack(parts).sum(dim=0) + filters[f"{place}.bias"]) * real).amax(dim=1))
            first += width
        return self.thinned(torch.cat(found, dim=-1))

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """G [attended clicks; candidate]."""
        user = self.attention(clicks, mask, candidates)
        found: Tensor = self.score(torch.cat([user, candidates], dim=-1)).squeeze(-1)
        return found


class Dan(NewsRanker):
    """Two CNNs, of title and entities with their types; attention over clicks and over an LSTM's states; <u, d>.

    The candidate is the query of both attentions. Uncertain: we don't have the paper's text; sizes are ours.
    """

    def __init__(self, columns: ArticleColumns) -> None:
        super().__init__(columns)
        self.title = TextCnn(WORD_DIM, PART)
        self.kinds = nn.Embedding(int(columns.kinds.max()) + 1, WORD_DIM)
        self.profile = TextCnn(2 * WORD_DIM, PART)
        self.interest = PairAttention(2 * PART, HIDDEN)
        self.sequence = PairAttention(2 * PART, HIDDEN)
        self.cell = nn.LSTMCell(2 * PART, 2 * PART)
        self.joined = nn.Linear(4 * PART, 2 * PART)

    def articles(self, rows: NDArray[np.int64]) -> Tensor:
        """Rows [m] -> max over the title's words and over the entities [m, 2 * 32]."""
        known = self.columns
        words, profile = known.titles[rows], known.profile[rows]
        kinds = self.kinds(torch.from_numpy(known.kinds[profile]))
        entities = torch.cat([torch.from_numpy(known.entity_vectors[profile]), kinds], dim=-1)
        texts = ((self.title, torch.from_numpy(known.vectors[words]), words), (self.profile, entities, profile))
        masks = [torch.from_numpy((ids > 0).astype(np.float32)) for _, _, ids in texts]
        found = [cnn(given, mask).amax(dim=1) for (cnn, given, _), mask in zip(texts, masks, strict=True)]
        return self.thinned(torch.cat(found, dim=-1))

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """<W [interest; sequence] + b, candidate>."""
        state, memory = (clicks.new_zeros(len(clicks), clicks.shape[-1]) for _ in range(2))
        states = []
        for at in range(clicks.shape[1]):
            real = mask[:, at, None]
            moved = self.cell(clicks[:, at], (state, memory))
            state, memory = (real * new + (1 - real) * old for new, old in zip(moved, (state, memory), strict=True))
            states.append(state)
        of_sequence = self.sequence(torch.stack(states, dim=1), mask, candidates)
        user = self.joined(torch.cat([self.interest(clicks, mask, candidates), of_sequence], dim=-1))
        found: Tensor = (user * candidates).sum(dim=-1)
        return found
