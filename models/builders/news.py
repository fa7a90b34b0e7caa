"""Builders of news models on given word vectors; the papers use GloVe's 300 numbers a word."""

from functools import partial

from torch import nn

from models.builders.rankers import self_attention
from models.layers.attention import AdditiveAttention
from models.layers.words import TextCnn, WordEmbedding
from models.news.words import (
    ElementView,
    TextView,
    WordVectorLstur,
    WordVectorNaml,
    WordVectorNews,
)
from models.shapes import NEWS_DIM, heads_of

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


def fednewsrec_view(*, word_dim: int, filters: int, heads: int, head_dim: int, attention_dim: int) -> TextView:
    """Return FedNewsRec's title encoder: text CNN, self-attention without bias, additive attention."""
    contexts = self_attention(dim=filters, heads=heads, head_dim=head_dim, bias=False)
    return TextView([TextCnn(word_dim, filters), contexts], AdditiveAttention(heads * head_dim, attention_dim))


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
