"""FedNewsRec, NAML and LSTUR whole: what devices compute is the gradient of end-to-end training.

Oracle: torch's autograd through `EndToEnd`, word table, news model and user model, on all samples in one place, in
float64. The tolerance is 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.news_gradient import NewsGradientTask
from device_app.training.tasks.task import Update
from device_app.training.tasks.word_gradient import ABSTRACT, TITLE, WordModelInputs
from exporters.graphs import ranker_graphs, word_model_graphs
from models.builders.news import cnn_view, fednewsrec_view
from models.builders.user import fednewsrec, lstur, naml
from models.layers.attention import AdditiveAttention
from models.layers.words import WordEmbedding
from models.news.words import ElementView, WordVectorLstur, WordVectorNaml, WordVectorNews
from models.one_vector import UserModel
from models.shapes import private_names
from protocol.graph_check import check_graph
from protocol.words_of_titles import ABSTRACT_WORDS_LIMIT, WORDS_LIMIT
from tests.doubles.graphs import kept_graph
from tests.doubles.split_world import NEGATIVES, NEWS, batch_of, drawn_by, news_id, parameters, readers

VOCABULARY, WORD_DIM, DIM = 40, 12, 16
SECTIONS, TOPICS = 4, 7
BAR = 1e-5
FLOAT32 = 2e-6


def fednewsrec_news() -> WordVectorNews:
    return WordVectorNews(fednewsrec_view(word_dim=WORD_DIM, filters=10, heads=4, head_dim=4, attention_dim=8))


def naml_news() -> WordVectorNaml:
    def element(rows: int) -> ElementView:
        return ElementView(WordEmbedding(rows, 5), nn.Linear(5, 10))

    title, abstract = (cnn_view(word_dim=WORD_DIM, filters=10, attention_dim=8) for _ in range(2))
    joined = nn.Linear(10, DIM, bias=False)
    return WordVectorNaml(title, abstract, element(SECTIONS), element(TOPICS), AdditiveAttention(10, 8), joined)


def lstur_news() -> WordVectorLstur:
    sections, topics = (WordEmbedding(rows, 3) for rows in (SECTIONS, TOPICS))
    title = cnn_view(word_dim=WORD_DIM, filters=10, attention_dim=8)
    return WordVectorLstur(title, sections, topics, nn.Linear(10 + 2 * 3, DIM, bias=False))


@dataclass(frozen=True)
class NewsModelKind:
    """A news model, its user model, and a parameter used only by its own inputs."""

    news: Callable[[], nn.Module]
    user: Callable[[], UserModel]
    felt: str
    abstracts: bool = False
    categories: bool = False


KINDS = {
    "fednewsrec": NewsModelKind(
        fednewsrec_news, lambda: fednewsrec(heads=4, head_dim=4, attention_dim=8), "title.layers.0.window.weight"
    ),
    "naml": NewsModelKind(
        naml_news,
        lambda: naml(dim=DIM, attention_dim=8),
        "subcategory.elements.weight",
        abstracts=True,
        categories=True,
    ),
    "lstur": NewsModelKind(lstur_news, lambda: lstur("ini", dim=DIM), "category.weight", categories=True),
}


class OnWords(nn.Module):
    """A word table below a news model: word ids [n, L] of texts and ids [n] of categories to news vectors."""

    def __init__(self, words: WordEmbedding, news: nn.Module, texts: int) -> None:
        super().__init__()
        self.words = words
        self.news = news
        self.texts = texts

    def forward(self, *read: Tensor) -> Tensor:
        texts = [each for ids in read[: self.texts] for each in self.words(ids)]
        vectors: Tensor = self.news(*texts, *read[self.texts :])
        return vectors


def user_model(kind: NewsModelKind) -> UserModel:
    torch.manual_seed(1)
    return kind.user()


def news_model(kind: NewsModelKind) -> nn.Module:
    torch.manual_seed(2)
    return kind.news()


def texts_of(length: int, least: int) -> np.ndarray:
    """Return texts [NEWS, length], the first of `least` words, the second of full length."""
    draw = np.random.default_rng(length)
    lengths = np.concatenate([[least, length], draw.integers(2, 12, size=NEWS - 2)])
    words = draw.integers(1, VOCABULARY, size=(NEWS, length))
    return np.asarray(np.where(np.arange(length) < lengths[:, None], words, 0), dtype=np.int32)


def texts(kind: NewsModelKind) -> dict[str, np.ndarray]:
    """Return the texts; the first abstract is empty."""
    read = {TITLE: texts_of(WORDS_LIMIT, 1)}
    return read | ({ABSTRACT: texts_of(ABSTRACT_WORDS_LIMIT, 0)} if kind.abstracts else {})


def categories(kind: NewsModelKind) -> np.ndarray | None:
    """Return section and topic [NEWS, 2], some of them unknown."""
    draw = np.random.default_rng(5)
    columns = [draw.integers(rows, size=NEWS) for rows in (SECTIONS, TOPICS)]
    return np.stack(columns, axis=1).astype(np.int32) if kind.categories else None


def word_table() -> np.ndarray:
    table = np.random.default_rng(4).normal(size=(VOCABULARY, WORD_DIM)).astype(np.float16)
    table[0] = 0
    return table


def weights(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: each.detach().numpy() for name, each in model.named_parameters()}


def read_by(kind: NewsModelKind) -> list[Tensor]:
    ids = categories(kind)
    columns = [] if ids is None else list(ids.T)
    return [torch.from_numpy(np.ascontiguousarray(each)).long() for each in (*texts(kind).values(), *columns)]


class EndToEnd(nn.Module):
    """Encodes each article once; readers name articles by row."""

    def __init__(self, news: nn.Module, user: nn.Module) -> None:
        super().__init__()
        self.news, self.user = news, user

    def loss(self, *inputs: Tensor) -> Tensor:
        *news, click_rows, click_mask, candidate_rows = inputs
        vectors = self.news(*news)
        loss: Tensor = self.user.loss(vectors[click_rows], click_mask, vectors[candidate_rows])  # type: ignore[operator]
        return loss


def end_to_end(kind: NewsModelKind) -> EndToEnd:
    words = WordEmbedding(VOCABULARY, WORD_DIM).requires_grad_(False)
    with torch.no_grad():
        words.weight.copy_(torch.from_numpy(word_table()))
    return EndToEnd(OnWords(words, news_model(kind), len(texts(kind))), user_model(kind)).double()


def held_vectors(whole: EndToEnd, kind: NewsModelKind) -> np.ndarray:
    """Return vectors as devices hold them, which differ from the model's by the rounding of int8 codes."""
    with torch.no_grad():
        vectors = whole.news(*read_by(kind)).numpy().astype(np.float32)
    return np.asarray(vectors + np.random.default_rng(0).normal(scale=1e-3, size=vectors.shape), dtype=np.float32)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> NewsModelKind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def graphs(kind: NewsModelKind) -> tuple[bytes, bytes]:
    """Return the gradient graphs of the user model, as in a release, and of the news model, as in a round."""
    user, news = user_model(kind), news_model(kind)
    of_user = next(each for each in ranker_graphs(user) if each.purpose == "table_gradient")
    made = kept_graph(news, word_model_graphs(news)[0])
    check_graph(made)
    return kept_graph(user, of_user), made


def updates(kind: NewsModelKind, graphs: tuple[bytes, bytes], known: range = range(NEWS)) -> list[Update]:
    of_user, of_news = graphs
    row_of = {news_id(row): place for place, row in enumerate(known)}
    here, ids = list(known), categories(kind)
    read = {text: words[here] for text, words in texts(kind).items()}
    columns = None if ids is None else ids[here]
    news = WordModelInputs(weights(news_model(kind)), OnnxGradients(of_news), row_of, read, word_table(), columns)
    task = NewsGradientTask(news, NEGATIVES, 32)
    params = parameters(user_model(kind))  # type: ignore[arg-type]
    found = [
        task.run(params, samples, OnnxGradients(of_user), np.random.default_rng(seed))
        for seed, samples in enumerate(readers(held_vectors(end_to_end(kind), kind)))
    ]
    assert all({name: each.shape for name, each in one.tensors.items()} == task.shapes(params) for one in found)
    return found


def test_weighted_device_gradients_match_end_to_end_training(kind: NewsModelKind, graphs: tuple[bytes, bytes]) -> None:
    whole = end_to_end(kind)
    drawn = [drawn_by(one, seed) for seed, one in enumerate(readers(held_vectors(whole, kind)))]
    clicks, mask, candidates = (torch.cat(each) for each in zip(*map(batch_of, drawn), strict=True))
    if clicks.shape[1] < 50 and private_names(whole.user):  # a GRU's training is unrolled over 50 clicks
        missing = 50 - clicks.shape[1]
        clicks = nn.functional.pad(clicks, (missing, 0))
        mask = nn.functional.pad(mask, (missing, 0))
    whole.loss(*read_by(kind), clicks, mask, candidates).backward()
    on_words = whole.news
    assert isinstance(on_words, OnWords)
    wanted = {f"g.news.{name}": each.grad for name, each in on_words.news.named_parameters()}
    wanted |= {f"g.{name}": each.grad for name, each in whole.user.named_parameters()}
    assert on_words.words.weight.grad is None, "word vectors stand still"

    found = updates(kind, graphs)
    total = sum(one.samples for one in found)
    assert found[0].tensors.keys() == wanted.keys()
    for name, slope in wanted.items():
        exact = np.zeros(found[0].tensors[name].shape) if slope is None else slope.numpy()
        mean = sum(one.samples * one.tensors[name].astype(np.float64) for one in found) / total
        assert np.abs(mean - exact).max() <= FLOAT32 < BAR, name
    felt = wanted[f"g.news.{kind.felt}"]
    assert felt is not None
    assert felt.abs().max() > 100 * BAR, "another would show"


def test_reader_whose_clicked_articles_expired_trains_only_the_user_model(
    kind: NewsModelKind, graphs: tuple[bytes, bytes]
) -> None:
    for update in updates(kind, graphs, range(NEWS, NEWS)):
        of_news = [each for name, each in update.tensors.items() if name.startswith("g.news.")]
        assert of_news
        assert not any(each.any() for each in of_news)
        assert any(each.any() for each in update.tensors.values())
