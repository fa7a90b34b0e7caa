"""FedNewsRec whole: what devices compute is the gradient of end-to-end training.

Oracle: torch's autograd through `EndToEnd`, word table, news model and user model, on all samples in one place, in
float64. The bar is 1e-5.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.news_gradient import NewsGradientTask
from device_app.training.tasks.task import Update
from device_app.training.tasks.word_gradient import WordedNews
from device_app.wire.graphs.check import check_graph
from device_app.wire.words_of_titles import WORDS_LIMIT
from exporters.graph_writer import bytes_of
from exporters.graphs import ranker_graphs, word_model_graphs
from exporters.model_graphs import export_gradient_graph
from models.builders.news import fednewsrec_view
from models.builders.user import fednewsrec
from models.end_to_end import EndToEnd
from models.layers.word_embedding import WordEmbedding
from models.news.text import WordVectorNews
from models.user.fednewsrec import FedNewsRecUser
from tests.doubles.split_world import NEGATIVES, NEWS, batch_of, drawn_by, news_id, parameters, readers

VOCABULARY, WORD_DIM = 40, 12
BAR = 1e-5
FLOAT32 = 2e-6


class UnitTitles(nn.Module):
    """Word ids [n, L] -> news vectors: the word table under `WordVectorNews`."""

    def __init__(self, words: WordEmbedding, news: WordVectorNews) -> None:
        super().__init__()
        self.words = words
        self.news = news

    def forward(self, words: Tensor) -> Tensor:
        vectors: Tensor = self.news(*self.words(words))
        return vectors


def user_model() -> FedNewsRecUser:
    torch.manual_seed(1)
    return fednewsrec(heads=4, head_dim=4, attention_dim=8)


def news_model() -> WordVectorNews:
    torch.manual_seed(2)
    return WordVectorNews(fednewsrec_view(word_dim=WORD_DIM, filters=10, heads=4, head_dim=4, attention_dim=8))


def titles() -> np.ndarray:
    """[NEWS, 30], of 1 to 30 words."""
    draw = np.random.default_rng(3)
    lengths = np.concatenate([[1, WORDS_LIMIT], draw.integers(2, 12, size=NEWS - 2)])
    words = draw.integers(1, VOCABULARY, size=(NEWS, WORDS_LIMIT))
    return np.asarray(np.where(np.arange(WORDS_LIMIT) < lengths[:, None], words, 0), dtype=np.int32)


def word_table() -> np.ndarray:
    table = np.random.default_rng(4).normal(size=(VOCABULARY, WORD_DIM)).astype(np.float16)
    table[0] = 0
    return table


def weights(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: each.detach().numpy() for name, each in model.named_parameters()}


def end_to_end() -> EndToEnd:
    words = WordEmbedding(VOCABULARY, WORD_DIM, trainable=False)
    with torch.no_grad():
        words.weight.copy_(torch.from_numpy(word_table()))
    return EndToEnd(UnitTitles(words, news_model()), user_model()).double()


def held_vectors(whole: EndToEnd) -> np.ndarray:
    """Vectors as devices hold them, which differ from the model's by what int8 codes lose."""
    with torch.no_grad():
        vectors = whole.news(torch.from_numpy(titles()).long()).numpy().astype(np.float32)
    return np.asarray(vectors + np.random.default_rng(0).normal(scale=1e-3, size=vectors.shape), dtype=np.float32)


@pytest.fixture(scope="module")
def graphs() -> tuple[bytes, bytes]:
    """Of the user model by a table, as a release has it, and of the news model, as a round brings it."""
    user, news = user_model(), news_model()
    of_user = next(each for each in ranker_graphs(user) if each.purpose == "table_gradient")
    made = bytes_of(export_gradient_graph(news, word_model_graphs(news)[0]))
    check_graph(made)
    return bytes_of(export_gradient_graph(user, of_user)), made


def updates(graphs: tuple[bytes, bytes], known: range = range(NEWS)) -> list[Update]:
    of_user, of_news = graphs
    row_of = {news_id(row): place for place, row in enumerate(known)}
    news = WordedNews(weights(news_model()), OnnxGradients(of_news), row_of, titles()[list(known)], word_table())
    task = NewsGradientTask(news, NEGATIVES, 32)
    params = parameters(user_model())  # type: ignore[arg-type]
    found = [
        task.run(params, samples, OnnxGradients(of_user), np.random.default_rng(seed))
        for seed, samples in enumerate(readers(held_vectors(end_to_end())))
    ]
    assert all({name: each.shape for name, each in one.tensors.items()} == task.shapes(params) for one in found)
    return found


def test_weighted_gradients_of_devices_are_those_of_end_to_end_training(graphs: tuple[bytes, bytes]) -> None:
    whole = end_to_end()
    drawn = [drawn_by(one, seed) for seed, one in enumerate(readers(held_vectors(whole)))]
    clicks, mask, candidates = (torch.cat(each) for each in zip(*map(batch_of, drawn), strict=True))
    whole.loss(torch.from_numpy(titles()).long(), clicks, mask, candidates).backward()
    titled = whole.news
    assert isinstance(titled, UnitTitles)
    wanted = {f"g.news.{name}": each.grad for name, each in titled.news.named_parameters()}
    wanted |= {f"g.{name}": each.grad for name, each in whole.user.named_parameters()}
    assert titled.words.weight.grad is None, "word vectors stand still"

    found = updates(graphs)
    total = sum(one.samples for one in found)
    assert found[0].tensors.keys() == wanted.keys()
    for name, slope in wanted.items():
        exact = np.zeros(found[0].tensors[name].shape) if slope is None else slope.numpy()
        mean = sum(one.samples * one.tensors[name].astype(np.float64) for one in found) / total
        assert np.abs(mean - exact).max() <= FLOAT32 < BAR, name
    filters = wanted["g.news.title.layers.0.window.weight"]
    assert filters is not None
    assert filters.abs().max() > 100 * BAR, "another would show"


def test_a_reader_of_news_that_have_left_the_pool_trains_the_user_model_alone(graphs: tuple[bytes, bytes]) -> None:
    for update in updates(graphs, range(NEWS, NEWS)):
        of_news = [each for name, each in update.tensors.items() if name.startswith("g.news.")]
        assert of_news
        assert not any(each.any() for each in of_news)
        assert any(each.any() for each in update.tensors.values())
