"""News encoders: the papers' sizes, padding, missing views, and torch's MultiheadAttention and Conv1d as oracles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from models.builders.news import (
    cnn_title,
    fednewsrec_news,
    fednewsrec_title,
    lstur_news,
    lstur_topic_news,
    lstur_words,
    naml,
    naml_news,
    naml_words,
    nrms_title,
    nrms_title_400,
    nrms_title_encoder,
    topic_news,
)
from models.layers.attention import SelfAttention
from models.layers.words import TextCnn, WordEmbedding
from models.news.words import NamlNews, TitleEncoder, WordVectorLstur, WordVectorNaml

seeds = st.integers(0, 2**31)
VOCABULARY = 20


def small_fednewsrec(*, rectified: bool = False) -> TitleEncoder:
    return fednewsrec_title(
        vocabulary=VOCABULARY,
        word_dim=5,
        filters=7,
        heads=2,
        head_dim=3,
        attention_dim=4,
        train_words=False,
        rectified=rectified,
    )


def small_nrms() -> TitleEncoder:
    return nrms_title_encoder(vocabulary=VOCABULARY, word_dim=5, heads=2, head_dim=3, attention_dim=4)


def small_lstur() -> TitleEncoder:
    return cnn_title(vocabulary=VOCABULARY, word_dim=5, filters=6, attention_dim=4)


def small_naml(seed: int = 0) -> NamlNews:
    torch.manual_seed(seed)
    return naml(
        vocabulary=VOCABULARY, categories=4, subcategories=6, word_dim=5, element_dim=3, filters=6, attention_dim=4
    ).double()


TITLES: list[Callable[[], TitleEncoder]] = [small_fednewsrec, small_nrms, small_lstur]


def trained_sizes(model: nn.Module) -> int:
    """Parameters without the tables of words and topics."""
    tables = {id(each.weight) for each in model.modules() if isinstance(each, WordEmbedding)}
    return sum(each.numel() for each in model.parameters() if id(each) not in tables)


def drawn_words(seed: int, n: int, length: int) -> Tensor:
    return torch.randint(1, VOCABULARY, (n, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("preset", "count"),
    [
        (fednewsrec_news, 920_801),  # 920,801 by hand
        # by hand: 3 (300 + 1) D for the heads, 200 D + 401 for the pooling
        (nrms_title, 3 * 301 * 256 + 200 * 256 + 401),
        (nrms_title_400, 3 * 301 * 400 + 200 * 400 + 401),
        # two text views of 901 F + 200 F + 401, two dense of 101 F, one pooling
        (naml_news, 2 * (901 * 256 + 200 * 256 + 401) + 2 * 101 * 256 + 200 * 256 + 401),
        (lstur_news, 901 * 256 + 200 * 256 + 401),
        (lstur_topic_news, 901 * 192 + 200 * 192 + 401),
        # at E = 384 a text view is 1,153 F + 200 F + 401; W is D times what it reads, without a bias
        (partial(naml_words, 384), 2 * (1153 * 400 + 80_401) + 2 * 101 * 400 + 80_401 + 256 * 400),
        (partial(lstur_words, 384), 1153 * 400 + 80_401 + 256 * 600),
    ],
)
def test_presets_have_the_parameters_of_the_papers(preset: Callable[[], nn.Module], count: int) -> None:
    assert trained_sizes(preset()) == count


def test_fednewsrec_freezes_only_its_word_vectors() -> None:
    frozen = [name for name, each in fednewsrec_news().named_parameters() if not each.requires_grad]
    assert frozen == ["words.weight"]


@pytest.mark.parametrize("build", TITLES)
@settings(max_examples=20, deadline=None)
@given(seed=seeds, length=st.integers(1, 7), padding=st.integers(1, 4))
def test_appended_padding_changes_no_news_vector(
    build: Callable[[], TitleEncoder], seed: int, length: int, padding: int
) -> None:
    torch.manual_seed(seed)
    model, words = build().double(), drawn_words(seed, 3, length)
    padded = torch.cat([words, torch.zeros(3, padding, dtype=torch.int64)], dim=1)
    assert_close(model(padded), model(words))


@pytest.mark.parametrize("build", TITLES)
def test_title_without_words_is_zero_without_gradients(build: Callable[[], TitleEncoder]) -> None:
    model = build()
    out = model(torch.zeros(2, 6, dtype=torch.int64))
    assert out.eq(0).all()
    out.sum().backward()
    for name, each in model.named_parameters():
        assert each.grad is None or each.grad.eq(0).all(), name


def test_word_order_matters_only_to_encoders_with_a_cnn() -> None:
    torch.manual_seed(0)
    words = drawn_words(1, 3, 6)
    for build, ordered in ((small_nrms, False), (small_fednewsrec, True), (small_lstur, True)):
        model = build().double()
        difference = (model(words) - model(words.flip(1))).abs().max()
        assert (difference > 1e-3) if ordered else (difference < 1e-12)


def test_nrms_contexts_match_torchs_multihead_attention_with_padding_masked() -> None:
    model, words = small_nrms().double(), drawn_words(1, 3, 6)
    words[0, 4:] = 0
    ours = model.title.layers[0]
    assert isinstance(ours, SelfAttention)
    theirs = nn.MultiheadAttention(6, 2, kdim=6, vdim=6, batch_first=True, dtype=torch.float64)
    x, mask = model.words(words)
    with torch.no_grad():  # their projections are square: ours go before, theirs and the output's are the identity
        theirs.in_proj_weight.copy_(torch.eye(6).repeat(3, 1))
        theirs.in_proj_bias.zero_()
        theirs.out_proj.weight.copy_(torch.eye(6))
        theirs.out_proj.bias.zero_()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        contexts, _ = theirs(ours.query(x), ours.key(x), ours.value(x), key_padding_mask=mask == 0)
    assert_close(ours(x, mask), contexts * mask[..., None])


def test_fednewsrec_is_conv1d_then_attention_with_an_optional_relu() -> None:
    torch.manual_seed(0)
    plain, words = small_fednewsrec().double(), drawn_words(1, 3, 6)
    rectified = small_fednewsrec(rectified=True).double()
    renamed = {name.replace("layers.1.", "layers.1.layer."): each for name, each in plain.state_dict().items()}
    rectified.load_state_dict(renamed)
    cnn, attention = plain.title.layers
    x, mask = plain.words(words)
    assert isinstance(cnn, TextCnn)
    kernel = cnn.window.weight.view(7, 3, 5).transpose(1, 2)
    filtered = nn.functional.conv1d(x.transpose(1, 2), kernel, cnn.window.bias, padding=1).relu().transpose(1, 2)
    contexts = attention(filtered, mask)
    assert_close(plain(words), plain.title.pooling(contexts, mask))
    assert_close(rectified(words), plain.title.pooling(contexts.relu(), mask))


def naml_inputs(n: int = 3) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return drawn_words(1, n, 5), drawn_words(2, n, 8), torch.tensor([1, 2, 3])[:n], torch.tensor([5, 1, 2])[:n]


def test_naml_views_of_categories_are_dense_relu_and_those_of_texts_attention_pooled() -> None:
    model, inputs = small_naml(), naml_inputs()
    views, present = model.views(*inputs)
    assert views.shape == (3, 4, 6)
    assert present.eq(1).all()
    element = model.category
    expected = (element.elements.weight[inputs[2]] @ element.dense.weight.t() + element.dense.bias).relu()
    assert_close(views[:, 2], expected)
    assert_close(views[:, 0], model.title(*model.words(inputs[0])))
    scores = model.pooling.query(model.pooling.hidden(views).tanh()).squeeze(-1).softmax(-1)
    assert_close(model(*inputs), torch.einsum("nv,nvd->nd", scores, views))


@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_naml_leaves_a_missing_view_out_of_the_pooling(missing: int) -> None:
    model, inputs = small_naml(), list(naml_inputs())
    inputs[missing] = torch.zeros_like(inputs[missing])
    views, present = model.views(*inputs)
    assert present.sum(1).eq(3).all()
    kept = [view for view in range(4) if view != missing]
    assert_close(model(*inputs), model.pooling(views[:, kept], torch.ones(3, 3).double()))


def test_naml_without_any_view_is_zero_without_gradients() -> None:
    model = small_naml()
    out = model(*(torch.zeros_like(each) for each in naml_inputs()))
    assert out.eq(0).all()
    out.sum().backward()
    assert all(each.grad is None or each.grad.eq(0).all() for each in model.parameters())


def test_lstur_represents_an_unknown_topic_by_zeros() -> None:
    model = topic_news(
        vocabulary=VOCABULARY, categories=4, subcategories=6, word_dim=5, topic_dim=2, filters=6, attention_dim=3
    )
    words = drawn_words(1, 2, 5)
    vectors = model(words, torch.tensor([3, 0]), torch.tensor([0, 5]))
    assert vectors.shape == (2, 10)
    assert_close(vectors[:, :6], model.title(words))
    assert_close(vectors[0, 6:8], model.category.weight[3])
    assert vectors[1, 6:8].eq(0).all()
    assert vectors[0, 8:].eq(0).all()
    assert_close(vectors[1, 8:], model.subcategory.weight[5])


def test_naml_and_lstur_on_word_vectors_match_the_table_models() -> None:
    """The first article has all views, the others lack abstract and category or subcategory."""
    inputs = naml_inputs()
    inputs[1][1:] = 0
    inputs[2][1], inputs[3][2] = 0, 0
    whole, joined = small_naml(), nn.Linear(6, 5, bias=False).double()
    given = WordVectorNaml(whole.title, whole.abstract, whole.category, whole.subcategory, whole.pooling, joined)
    texts = (*whole.words(inputs[0]), *whole.words(inputs[1]))
    assert_close(given(*texts, *inputs[2:]), nn.functional.normalize(joined(whole(*inputs)), dim=-1))
    topics = topic_news(
        vocabulary=VOCABULARY, categories=4, subcategories=6, word_dim=5, topic_dim=2, filters=6, attention_dim=3
    ).double()
    wide = nn.Linear(10, 5, bias=False).double()
    title = topics.title
    expected = nn.functional.normalize(wide(topics(inputs[0], *inputs[2:])), dim=-1)
    on_vectors = WordVectorLstur(title.title, topics.category, topics.subcategory, wide)
    assert_close(on_vectors(*title.words(inputs[0]), *inputs[2:]), expected)


def test_gradients_match_finite_differences_and_repeated_words_sum_theirs() -> None:
    torch.manual_seed(0)
    model = small_lstur().double()
    words = torch.tensor([[3, 3, 7, 0], [7, 3, 0, 0]])

    def compute(table: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(model, {"words.weight": table}, (words,))
        return out

    table = model.words.weight.detach().clone().requires_grad_(True)
    assert torch.autograd.gradcheck(compute, (table,))
    (got,) = torch.autograd.grad(compute(table).sum(), table)
    assert got.abs().sum(-1).nonzero().flatten().tolist() == [3, 7]


def test_padding_row_values_are_ignored() -> None:
    model, words = small_nrms(), torch.tensor([[4, 5, 0, 0]])
    before = model(words)
    with torch.no_grad():
        model.words.weight[0] = 1e3
    assert_close(model(words), before)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (torch.tensor([[1, 20]]), r"words \[1, 2\] must be ids from 0 to 19 of this vocabulary, got 1 to 20"),
        (torch.tensor([[-1, 2]]), r"words \[1, 2\] must be ids from 0 to 19 of this vocabulary, got -1 to 2"),
        (torch.tensor([1, 2]), r"words must have shape \[n, L\], got \[2\]"),
        (torch.ones(1, 2), r"words \[1, 2\] must be int64, got torch.float32"),
    ],
)
def test_error_names_bad_words_and_the_expected_form(words: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_nrms()(words)


def test_error_names_bad_views_and_tables_and_the_expected_form() -> None:
    title, abstract, category, subcategory = naml_inputs()
    with pytest.raises(ValueError, match=r"abstract must have shape \[3, L\], got \[2, 8\]"):
        small_naml()(title, abstract[:2], category, subcategory)
    with pytest.raises(ValueError, match=r"category must have shape \[3\], got \[3, 1\]"):
        small_naml()(title, abstract, category[:, None], subcategory)
    with pytest.raises(ValueError, match="vocabulary must be at least 2"):
        WordEmbedding(1, 2)
