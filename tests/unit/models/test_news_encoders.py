"""News models on word vectors: the papers' sizes, padding, missing views, and Conv1d as an oracle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, normalize
from torch.testing import assert_close

from models.builders.news import cnn_view, fednewsrec_view, fednewsrec_words, lstur_words, naml_words
from models.layers.attention import AdditiveAttention
from models.layers.words import TextCnn, WordEmbedding
from models.news.words import ElementView, WordVectorLstur, WordVectorNaml, WordVectorNews

E, F, D = 5, 6, 3


def trained_sizes(model: nn.Module) -> int:
    """Parameters without the tables of topics."""
    tables = {id(each.weight) for each in model.modules() if isinstance(each, WordEmbedding)}
    return sum(each.numel() for each in model.parameters() if id(each) not in tables)


@pytest.mark.parametrize(
    ("preset", "count"),
    [
        # FedNewsRec's 920,801 at 400-d (section 4.1), with vectors of 256 instead of 400
        (partial(fednewsrec_words, 300), 901 * 400 + 3 * 400 * 256 + 200 * 256 + 401),
        # two text views of 901 F + 200 F + 401, two dense of 101 F, one pooling; at E = 384 1,153 F in place of 901 F;
        # W is D times what it reads, without a bias
        (partial(naml_words, 384), 2 * (1153 * 400 + 80_401) + 2 * 101 * 400 + 80_401 + 256 * 400),
        (partial(lstur_words, 384), 1153 * 400 + 80_401 + 256 * 600),
    ],
)
def test_presets_have_the_parameters_of_the_papers(preset: Callable[[], nn.Module], count: int) -> None:
    assert trained_sizes(preset()) == count


def fednewsrec() -> WordVectorNews:
    torch.manual_seed(0)
    return WordVectorNews(fednewsrec_view(word_dim=E, filters=F, heads=2, head_dim=3, attention_dim=4)).double()


def element(rows: int) -> ElementView:
    return ElementView(WordEmbedding(rows, 2), nn.Linear(2, F))


def naml() -> WordVectorNaml:
    torch.manual_seed(0)
    title, abstract = (cnn_view(word_dim=E, filters=F, attention_dim=4) for _ in range(2))
    pooling, joined = AdditiveAttention(F, 4), nn.Linear(F, D, bias=False)
    return WordVectorNaml(title, abstract, element(4), element(6), pooling, joined).double()


def lstur() -> WordVectorLstur:
    torch.manual_seed(0)
    topics = WordEmbedding(4, 2), WordEmbedding(6, 2)
    view = cnn_view(word_dim=E, filters=F, attention_dim=4)
    return WordVectorLstur(view, *topics, nn.Linear(F + 4, D, bias=False)).double()


def drawn(seed: int, n: int, length: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, length, E, generator=draw, dtype=torch.float64), torch.ones(n, length).double()


def naml_inputs() -> list[Tensor]:
    return [*drawn(1, 3, 5), *drawn(2, 3, 8), torch.tensor([1, 2, 3]), torch.tensor([5, 1, 2])]


def test_fednewsrec_is_conv1d_then_attention_then_pooling() -> None:
    model, (x, mask) = fednewsrec(), drawn(1, 3, 6)
    mask[0, 4:] = 0
    cnn, attention = model.title.layers
    assert isinstance(cnn, TextCnn)
    kernel = cnn.window.weight.view(F, 3, E).transpose(1, 2)
    real = (x * mask[..., None]).transpose(1, 2)
    filtered = conv1d(real, kernel, cnn.window.bias, padding=1).relu().transpose(1, 2) * mask[..., None]
    assert_close(model(x, mask), normalize(model.title.pooling(attention(filtered, mask), mask), dim=-1))


def test_appended_padding_changes_no_news_vector() -> None:
    for model, rest in ((fednewsrec(), []), (lstur(), [torch.tensor([1, 2, 3]), torch.tensor([5, 1, 2])])):
        x, mask = drawn(3, 3, 5)
        padded = torch.cat([x, torch.full((3, 2, E), 9.0).double()], dim=1), torch.cat([mask, torch.zeros(3, 2)], dim=1)
        assert_close(model(*padded, *rest), model(x, mask, *rest))


def test_naml_weighs_its_views_by_attention() -> None:
    model, inputs = naml(), naml_inputs()
    texts = [model.title(*inputs[:2]), model.abstract(*inputs[2:4])]
    dense = [
        (each.elements.weight[ids] @ each.dense.weight.t() + each.dense.bias).relu()
        for each, ids in ((model.category, inputs[4]), (model.subcategory, inputs[5]))
    ]
    views = torch.stack([*texts, *dense], dim=1)
    scores = model.pooling.query(model.pooling.hidden(views).tanh()).squeeze(-1).softmax(-1)
    pooled = torch.einsum("nv,nvd->nd", scores, views)
    assert_close(model(*inputs), normalize(model.joined(pooled), dim=-1))


@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_naml_leaves_a_missing_view_out_of_the_pooling(missing: int) -> None:
    model, inputs = naml(), naml_inputs()
    place = (1, 3, 4, 5)[missing]
    inputs[place] = torch.zeros_like(inputs[place])
    whole = [model.title(*inputs[:2]), model.abstract(*inputs[2:4])]
    whole += [model.category(inputs[4])[0], model.subcategory(inputs[5])[0]]
    views = torch.stack([each for view, each in enumerate(whole) if view != missing], dim=1)
    pooled = model.pooling(views, torch.ones(3, 3).double())
    assert_close(model(*inputs), normalize(model.joined(pooled), dim=-1))


@pytest.mark.parametrize("build", [fednewsrec, naml])
def test_article_without_any_input_is_zero_without_gradients(build: Callable[[], nn.Module]) -> None:
    model = build()
    inputs = naml_inputs() if build is naml else list(drawn(1, 2, 4))
    out = model(*(torch.zeros_like(each) for each in inputs))
    assert out.eq(0).all()
    out.sum().backward()
    assert all(each.grad is None or each.grad.eq(0).all() for each in model.parameters())


def test_lstur_joins_title_and_topics_and_an_unknown_topic_is_zero() -> None:
    model, text = lstur(), drawn(1, 2, 5)
    vectors = model(*text, torch.tensor([3, 0]), torch.tensor([0, 5]))
    none = torch.zeros(2, dtype=torch.float64)
    first, second = model.title(*text)
    wanted = [
        torch.cat([first, model.category.weight[3], none]),
        torch.cat([second, none, model.subcategory.weight[5]]),
    ]
    assert_close(vectors, normalize(model.joined(torch.stack(wanted)), dim=-1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (torch.tensor([[1, 20]]), r"words \[1, 2\] must be ids from 0 to 19 of this vocabulary, got 1 to 20"),
        (torch.tensor([[-1, 2]]), r"words \[1, 2\] must be ids from 0 to 19 of this vocabulary, got -1 to 2"),
        (torch.ones(1, 2), r"words \[1, 2\] must be int64, got torch.float32"),
    ],
)
def test_error_names_bad_words_and_the_expected_form(words: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WordEmbedding(20, 3)(words)


def test_padding_row_is_read_as_zeros_and_a_table_needs_two_rows() -> None:
    table = WordEmbedding(4, 3)
    with torch.no_grad():
        table.weight[0] = 1e3
    vectors, mask = table(torch.tensor([2, 0]))
    assert vectors[1].eq(0).all()
    assert mask.tolist() == [1, 0]
    with pytest.raises(ValueError, match="vocabulary must be at least 2"):
        WordEmbedding(1, 2)
