"""Baselines that read titles: EBNR (Okura et al. 2017), NPA (Wu et al. 2019), LSTUR, and models of two given parts.

DKN (Wang et al. 2018) and DAN (Zhu et al. 2019) read the entities named in titles as well.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout, softplus

from experiments.datasets.samples import TrainingSamples
from experiments.papers.news_baselines.articles import WORD_DIM, ArticleColumns
from experiments.papers.news_baselines.training import NewsRanker, PairAttention
from models.builders.news import cnn_view, fednewsrec_view
from models.builders.rankers import nrms, self_attention
from models.builders.user import fednewsrec
from models.layers.attention import AdditiveAttention, masked_softmax
from models.layers.gru import MaskedGru
from models.layers.words import TextCnn
from models.news.words import TextView
from models.one_vector import UserModel
from models.recall.baselines import Ebnr
from models.scoring import inner_products

DIM, HEADS, HEAD_DIM, ATTENTION_DIM = 64, 8, 8, 64
"""Of an article's vector, where the papers have 400, and what makes it."""
READER_DIM, QUERY_DIM = 50, 64
"""Of NPA's readers and of the queries computed from them."""
CORRUPTED, DENOISED, DENOISING_STEPS, DENOISING_RATE = 0.3, 100, 300, 1e-3
"""EBNR's autoencoder: share of words left out, triples a step, steps, and Adam's rate."""
WINDOWS = (1, 2, 3, 4)
FILTERS, HIDDEN = 16, 32
"""Filters of each window of DKN, where the paper has 100; the attention's and the score's hidden size."""
PART = 32
"""Numbers of each of DAN's two parts of an article."""
Rows = NDArray[np.int64]


class TwoParts(NewsRanker):
    """A model of titles and a model of readers, which score by <u, d>."""

    def __init__(self, columns: ArticleColumns, view: TextView, user: UserModel) -> None:
        super().__init__(columns)
        self.view = view
        self.user = user

    def articles(self, rows: Rows) -> Tensor:
        """Rows [m] -> vectors of their titles [m, D]."""
        words = self.columns.titles[rows]
        mask = torch.from_numpy((words > 0).astype(np.float32))
        return self.thinned(self.view(torch.from_numpy(self.columns.vectors[words]), mask))

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """<u, d>."""
        found: Tensor = self.user(clicks, mask, candidates)
        return found


def fednewsrec_model(columns: ArticleColumns) -> TwoParts:
    """Return FedNewsRec's model, that of CenNewsRec, CenRec and FedRec, too."""
    view = fednewsrec_view(word_dim=WORD_DIM, filters=DIM, heads=HEADS, head_dim=HEAD_DIM, attention_dim=ATTENTION_DIM)
    return TwoParts(columns, view, fednewsrec(heads=HEADS, head_dim=HEAD_DIM, attention_dim=ATTENTION_DIM))


def nrms_model(columns: ArticleColumns) -> TwoParts:
    contexts = self_attention(dim=WORD_DIM, heads=HEADS, head_dim=HEAD_DIM, bias=True)
    view = TextView([contexts], AdditiveAttention(DIM, ATTENTION_DIM))
    return TwoParts(columns, view, nrms(heads=HEADS, head_dim=HEAD_DIM, attention_dim=ATTENTION_DIM))


class Lstur(NewsRanker):
    """LSTUR-ini: a title's CNN next to vectors of section and topic; a GRU that starts at the reader's vector."""

    def __init__(self, columns: ArticleColumns, readers: int) -> None:
        super().__init__(columns)
        self.view = cnn_view(word_dim=WORD_DIM, filters=DIM, attention_dim=ATTENTION_DIM)
        self.topics = nn.Embedding(len(columns.entity_vectors), DIM, padding_idx=0)
        self.gru = MaskedGru(3 * DIM, 3 * DIM)
        self.reader = nn.Embedding(readers + 1, 3 * DIM, padding_idx=0)
        with torch.no_grad():
            self.reader.weight.mul_(0.1)
            self.topics.weight.mul_(0.1)

    def articles(self, rows: Rows) -> Tensor:
        """Rows [m] -> [title; section; topic] [m, 3 D]."""
        words = self.columns.titles[rows]
        mask = torch.from_numpy((words > 0).astype(np.float32))
        title = self.view(torch.from_numpy(self.columns.vectors[words]), mask)
        topics = self.topics(torch.from_numpy(self.columns.profile[rows, :2]))
        return self.thinned(torch.cat([title, topics.flatten(1)], dim=-1))

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """<GRU(clicks), d>; half of the readers' vectors are dropped in training, as in the paper."""
        kept = dropout(torch.ones(len(readers), 1), 0.5, self.training) > 0
        return inner_products(self.gru(clicks, mask, self.reader(readers) * kept), candidates)


class Npa(NewsRanker):
    """Attention over words and over clicks, whose queries are computed from the reader's vector.

    a = softmax(c' tanh(W q + b)) with q = relu(V e + v), once for words c and once for articles. 0, the unknown reader,
    has a vector of zeros.
    """

    def __init__(self, columns: ArticleColumns, readers: int) -> None:
        super().__init__(columns)
        self.cnn = TextCnn(WORD_DIM, DIM)
        self.reader = nn.Embedding(readers + 1, READER_DIM, padding_idx=0)
        self.queries = nn.ModuleList(nn.Linear(READER_DIM, QUERY_DIM) for _ in range(2))
        self.mapped = nn.ModuleList(nn.Linear(QUERY_DIM, DIM) for _ in range(2))

    def articles(self, rows: Rows) -> Tensor:
        """Rows [m] -> words' contexts with their mask as last column [m, L, D + 1]."""
        words = self.columns.titles[rows]
        mask = torch.from_numpy((words > 0).astype(np.float32))
        contexts = self.thinned(self.cnn(torch.from_numpy(self.columns.vectors[words]), mask))
        return torch.cat([contexts, mask[..., None]], dim=-1)

    def pooled(self, part: int, rows: Tensor, mask: Tensor, readers: Tensor) -> Tensor:
        """Rows [b, ..., n, D], mask [b, ..., n] -> [b, ..., D], by the query of words (0) or articles (1)."""
        query = torch.tanh(self.mapped[part](torch.relu(self.queries[part](self.reader(readers)))))
        scores = torch.einsum("b...d,bd->b...", rows, query)
        return (masked_softmax(scores, mask)[..., None] * rows).sum(dim=-2)

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """<u, d>, both with this reader's attention."""
        read, shown = (self.pooled(0, each[..., :-1], each[..., -1], readers) for each in (clicks, candidates))
        return inner_products(self.pooled(1, read, mask, readers), shown)


class Denoised(NewsRanker):
    """EBNR: an autoencoder's article vectors, which don't train on, and a GRU over the clicks.

    h = s(W x + b) - s(b), so that no words give zeros; triples of two articles of a section and one of another add
    log(1 + exp(<h0, h2> - <h0, h1>)) to the reconstruction's loss.
    """

    def __init__(self, columns: ArticleColumns) -> None:
        super().__init__(columns)
        width = columns.bag.shape[1]
        self.encode, self.decode = nn.Linear(width, DIM), nn.Linear(DIM, width)
        self.user = Ebnr(MaskedGru(DIM, DIM))
        for each in (*self.encode.parameters(), *self.decode.parameters()):
            each.requires_grad_(False)

    def encoded(self, bags: Tensor) -> Tensor:
        """[m, F] -> [m, D]."""
        return torch.sigmoid(self.encode(bags)) - torch.sigmoid(self.encode.bias)

    def articles(self, rows: Rows) -> Tensor:
        """Rows [m] -> [m, D]; scaled, as no words are left out."""
        return self.encoded((1 - CORRUPTED) * torch.from_numpy(self.columns.bag[rows].toarray()))

    def scores(self, clicks: Tensor, mask: Tensor, candidates: Tensor, readers: Tensor) -> Tensor:
        """<u, d>."""
        return inner_products(self.user.user_vector(clicks, mask), candidates)

    def denoising_loss(self, triples: Tensor, left_out: Tensor) -> Tensor:
        """The loss of triples [m, 3, F], of which `left_out` [m, 3, F] is masked."""
        hidden = self.encoded(triples.masked_fill(left_out, 0))
        rebuilt = ((self.decode(hidden) - triples) ** 2).sum(dim=-1).mean()
        first, same, other = hidden.unbind(dim=1)
        found: Tensor = rebuilt + softplus((first * other).sum(dim=-1) - (first * same).sum(dim=-1)).mean()
        return found

    def prepare(self, samples: TrainingSamples, seed: int) -> None:
        """Train the autoencoder on triples of articles by section."""
        rng, generator = np.random.default_rng((seed, 2)), torch.Generator().manual_seed(seed)
        section = self.columns.profile[:-1, 0]
        trained = [*self.encode.parameters(), *self.decode.parameters()]
        for each in trained:
            each.requires_grad_(True)
        optimizer = torch.optim.Adam(trained, lr=DENOISING_RATE)
        members = {int(each): np.flatnonzero(section == each) for each in np.unique(section)}
        for _ in range(DENOISING_STEPS):
            first = rng.integers(len(section), size=DENOISED)
            same = np.array([rng.choice(members[int(section[row])]) for row in first])
            other = rng.integers(len(section), size=DENOISED)
            while (alike := section[other] == section[first]).any():
                other[alike] = rng.integers(len(section), size=int(alike.sum()))
            rows = np.stack([first, same, other], axis=1)
            triples = torch.from_numpy(self.columns.bag[rows.ravel()].toarray()).view(DENOISED, 3, -1)
            optimizer.zero_grad()
            torch.autograd.backward(
                self.denoising_loss(triples, torch.rand(triples.shape, generator=generator) < CORRUPTED)
            )
            optimizer.step()
        for each in trained:
            each.requires_grad_(False)


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
