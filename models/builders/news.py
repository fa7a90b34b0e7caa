"""Builders of news encoders.

Parameter counts exclude word vectors; the papers use GloVe's 300 numbers a word. Presets take the vocabulary size as an
argument, because each release has its own vocabulary.
"""

from functools import partial

from torch import nn

from models.builders.rankers import self_attention
from models.layers.attention import AdditiveAttention
from models.layers.words import TextCnn, WordEmbedding
from models.news.plm import PlmNewsEncoder
from models.news.words import (
    ElementView,
    NamlNews,
    Rectified,
    TextView,
    TitleEncoder,
    TopicNews,
    WordVectorLstur,
    WordVectorNaml,
    WordVectorNews,
)
from models.shapes import HEAD_DIM, HEADS, NEWS_DIM, heads_of

WORD_DIM = 300
VOCABULARY = 30_000
CATEGORIES = 32  # MIND has 18 and Adressa fewer; 0 is unknown
SUBCATEGORIES = 512  # MIND-small has 270
POOLING_DIM = 200
FILTERS = 400
"""F of FedNewsRec's and NAML's text CNN."""
ELEMENT_DIM = 100
"""Numbers of a category's vector in NAML."""


def cnn_view(*, word_dim: int, filters: int, attention_dim: int) -> TextView:
    """Return a text CNN of width 3, followed by additive attention."""
    return TextView([TextCnn(word_dim, filters)], AdditiveAttention(filters, attention_dim))


def fednewsrec_title(
    *,
    vocabulary: int,
    word_dim: int,
    filters: int,
    heads: int,
    head_dim: int,
    attention_dim: int,
    train_words: bool,
    rectified: bool,
) -> TitleEncoder:
    """Return FedNewsRec's title encoder: text CNN, self-attention without bias, additive attention.

    `rectified` adds the ReLU of the published code, which the paper does not mention.
    """
    view = fednewsrec_view(
        word_dim=word_dim,
        filters=filters,
        heads=heads,
        head_dim=head_dim,
        attention_dim=attention_dim,
        rectified=rectified,
    )
    return TitleEncoder(WordEmbedding(vocabulary, word_dim, trainable=train_words), view)


def fednewsrec_view(
    *, word_dim: int, filters: int, heads: int, head_dim: int, attention_dim: int, rectified: bool = False
) -> TextView:
    """Return the layers that `fednewsrec_title` applies to word vectors."""
    contexts: nn.Module = self_attention(dim=filters, heads=heads, head_dim=head_dim, bias=False)
    layers = [TextCnn(word_dim, filters), Rectified(contexts) if rectified else contexts]
    return TextView(layers, AdditiveAttention(heads * head_dim, attention_dim))


def fednewsrec_words(word_dim: int, dim: int = NEWS_DIM) -> WordVectorNews:
    """Return FedNewsRec's news model on given word vectors, at the paper's 400 filters.

    For news vectors of 256 it has 1,200 E + 359,201 parameters: 820,001 on BERT's word pieces (E = 384) and 719,201 on
    GloVe (E = 300).
    """
    heads, head_dim = heads_of(dim)
    return WordVectorNews(
        fednewsrec_view(word_dim=word_dim, filters=FILTERS, heads=heads, head_dim=head_dim, attention_dim=POOLING_DIM)
    )


def naml_words(word_dim: int, dim: int = NEWS_DIM) -> WordVectorNaml:
    """Return NAML's news model on given word vectors, at the paper's 400 filters and category vectors of 100.

    For news vectors of 256 it has 2,400 E + 479,603 parameters: 1,401,203 on BERT's word pieces (E = 384) and 1,199,603
    on GloVe (E = 300).
    """

    def element(rows: int) -> ElementView:
        return ElementView(WordEmbedding(rows, ELEMENT_DIM), nn.Linear(ELEMENT_DIM, FILTERS))

    text = partial(cnn_view, word_dim=word_dim, filters=FILTERS, attention_dim=POOLING_DIM)
    return WordVectorNaml(
        text(),
        text(),
        element(CATEGORIES),
        element(SUBCATEGORIES),
        AdditiveAttention(FILTERS, POOLING_DIM),
        nn.Linear(FILTERS, dim, bias=False),
    )


def lstur_words(word_dim: int, dim: int = NEWS_DIM) -> WordVectorLstur:
    """Return LSTUR's news model on given word vectors, with topic vectors of 100 and NAML's 400 filters.

    For news vectors of 256 it has 1,200 E + 288,801 parameters: 749,601 on BERT's word pieces (E = 384) and 648,801 on
    GloVe (E = 300).
    """
    return WordVectorLstur(
        cnn_view(word_dim=word_dim, filters=FILTERS, attention_dim=POOLING_DIM),
        WordEmbedding(CATEGORIES, ELEMENT_DIM),
        WordEmbedding(SUBCATEGORIES, ELEMENT_DIM),
        nn.Linear(FILTERS + 2 * ELEMENT_DIM, dim, bias=False),
    )


def nrms_title_encoder(
    *, vocabulary: int, word_dim: int, heads: int, head_dim: int, attention_dim: int
) -> TitleEncoder:
    """Return self-attention over words with bias, followed by additive attention."""
    contexts = self_attention(dim=word_dim, heads=heads, head_dim=head_dim, bias=True)
    return TitleEncoder(
        WordEmbedding(vocabulary, word_dim), TextView([contexts], AdditiveAttention(heads * head_dim, attention_dim))
    )


def naml(
    *,
    vocabulary: int,
    categories: int,
    subcategories: int,
    word_dim: int,
    element_dim: int,
    filters: int,
    attention_dim: int,
) -> NamlNews:
    """Return NAML with its four views, each of size `filters`."""
    return NamlNews(
        WordEmbedding(vocabulary, word_dim),
        cnn_view(word_dim=word_dim, filters=filters, attention_dim=attention_dim),
        cnn_view(word_dim=word_dim, filters=filters, attention_dim=attention_dim),
        ElementView(WordEmbedding(categories, element_dim), nn.Linear(element_dim, filters)),
        ElementView(WordEmbedding(subcategories, element_dim), nn.Linear(element_dim, filters)),
        AdditiveAttention(filters, attention_dim),
    )


def cnn_title(*, vocabulary: int, word_dim: int, filters: int, attention_dim: int) -> TitleEncoder:
    """Return LSTUR's title encoder."""
    view = cnn_view(word_dim=word_dim, filters=filters, attention_dim=attention_dim)
    return TitleEncoder(WordEmbedding(vocabulary, word_dim), view)


def topic_news(
    *,
    vocabulary: int,
    categories: int,
    subcategories: int,
    word_dim: int,
    topic_dim: int,
    filters: int,
    attention_dim: int,
) -> TopicNews:
    """Return LSTUR with topics: news vectors of size filters + 2 topic_dim."""
    return TopicNews(
        cnn_title(vocabulary=vocabulary, word_dim=word_dim, filters=filters, attention_dim=attention_dim),
        WordEmbedding(categories, topic_dim),
        WordEmbedding(subcategories, topic_dim),
    )


def plm_nr(bert: nn.Module, *, head_dim: int, top_layers: int, unit_length: bool = False) -> PlmNewsEncoder:
    """Return Efficient-FedRec's news model on a loaded language model.

    Its last `top_layers` layers and head train.
    """
    encoder = PlmNewsEncoder(bert, head_dim, unit_length=unit_length)
    encoder.train_top(top_layers)
    return encoder


def plm_nr_400(bert: nn.Module) -> PlmNewsEncoder:
    """Return PLM-NR as published: layers 6 to 11 of BERT-base train, 400 numbers an article.

    It has 110,085,521 parameters with BERT-base and its unused pooler.
    """
    return plm_nr(bert, head_dim=400, top_layers=6)


def plm_nr_256(bert: nn.Module) -> PlmNewsEncoder:
    """Return PLM-NR at Uni-FedRec's 256; the last two of all-MiniLM-L6-v2's six layers train."""
    return plm_nr(bert, head_dim=NEWS_DIM, top_layers=2)


def fednewsrec_news() -> TitleEncoder:
    """Return FedNewsRec at the paper's sizes: 920,801 parameters without its frozen word vectors."""
    return fednewsrec_title(
        vocabulary=VOCABULARY,
        word_dim=WORD_DIM,
        filters=FILTERS,
        heads=20,
        head_dim=20,
        attention_dim=POOLING_DIM,
        train_words=False,
        rectified=False,
    )


def nrms_title() -> TitleEncoder:
    """Return NRMS with 16 x 16 heads: 282,769 parameters without word vectors."""
    return nrms_title_encoder(
        vocabulary=VOCABULARY, word_dim=WORD_DIM, heads=HEADS, head_dim=HEAD_DIM, attention_dim=POOLING_DIM
    )


def nrms_title_400() -> TitleEncoder:
    """Return NRMS with 20 x 20 heads: 441,601 parameters without word vectors."""
    return nrms_title_encoder(
        vocabulary=VOCABULARY, word_dim=WORD_DIM, heads=20, head_dim=20, attention_dim=POOLING_DIM
    )


def naml_news() -> NamlNews:
    """Return NAML at 256 filters and category vectors of 100: 667,827 parameters without its three tables."""
    return naml(
        vocabulary=VOCABULARY,
        categories=CATEGORIES,
        subcategories=SUBCATEGORIES,
        word_dim=WORD_DIM,
        element_dim=100,
        filters=NEWS_DIM,
        attention_dim=POOLING_DIM,
    )


def lstur_news() -> TitleEncoder:
    """Return LSTUR's title encoder at 256 filters: 282,257 parameters without word vectors."""
    return cnn_title(vocabulary=VOCABULARY, word_dim=WORD_DIM, filters=NEWS_DIM, attention_dim=POOLING_DIM)


def lstur_topic_news() -> TopicNews:
    """Return LSTUR with topics: 192 filters and two vectors of 32, 256 in all.

    It has 211,793 parameters without its tables.
    """
    return topic_news(
        vocabulary=VOCABULARY,
        categories=CATEGORIES,
        subcategories=SUBCATEGORIES,
        word_dim=WORD_DIM,
        topic_dim=32,
        filters=192,
        attention_dim=POOLING_DIM,
    )
