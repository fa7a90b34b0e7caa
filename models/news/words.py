"""News vectors from words: layers over word vectors, then attention pooling.

FedNewsRec (section 3.1), NRMS, LSTUR's title encoder and NAML's text views differ only in their layers: a text CNN,
self-attention, or both. The builders choose them.

All read given, frozen word vectors, for training on devices. NAML (four views of an article) and LSTUR with topics end
in a linear map W to a unit vector of D numbers, which the papers don't have. Without it, vectors would be nonnegative
(the views end in a ReLU) and so could not match the vectors that the server publishes now, and recall needs unit
vectors.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.layers.attention import AdditiveAttention
from models.layers.words import WordEmbedding
from models.scoring import unit


class TextView(nn.Module):
    """A text's word vectors -> layers -> additive attention -> one vector.

    Args:
        layers: modules called as layer(x [n, L, ...], mask [n, L]).
        pooling: pools the last layer's output.
    """

    def __init__(self, layers: Sequence[nn.Module], pooling: AdditiveAttention) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.pooling = pooling

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Word vectors [n, L, E] and their mask [n, L] -> [n, D]; a text without words -> zeros."""
        for layer in self.layers:
            x = layer(x, mask)
        pooled: Tensor = self.pooling(x, mask)
        return pooled  # [n, D]


class WordVectorNews(nn.Module):
    """A unit news vector from the title's given, frozen word vectors (FedNewsRec).

    The word table is not part of the model, so its graphs fit every vocabulary.
    """

    def __init__(self, title: TextView) -> None:
        super().__init__()
        self.title = title

    def forward(self, word_vectors: Tensor, word_mask: Tensor) -> Tensor:
        """word_vectors [n, L, E], word_mask [n, L] -> [n, D]; no word -> zeros."""
        return unit(self.title(word_vectors, word_mask))


class ElementView(nn.Module):
    """A category's vector -> dense -> ReLU; id 0 is unknown and has no view."""

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


def _views(
    texts: Sequence[tuple[TextView, Tensor, Tensor]], elements: Sequence[tuple[ElementView, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Return the four views [n, 4, D] and a mask of those that exist [n, 4].

    texts: views with their word vectors [n, L, E] and masks [n, L]; elements: views with their ids [n].
    """
    vectors = [view(x, mask) for view, x, mask in texts]
    present = [mask.amax(dim=1) for _, _, mask in texts]
    for element, ids in elements:
        vector, known = element(ids)
        vectors.append(vector)
        present.append(known)
    return torch.stack(vectors, dim=1), torch.stack(present, dim=1)


class WordVectorNaml(nn.Module):
    """NAML on given word vectors: e = W (attention over title, abstract, category and subcategory), of length 1.

    The word table is not part of the model, so its graphs fit every vocabulary.

    Args:
        title: view of the title; `abstract`, `category` and `subcategory` likewise.
        pooling: weighs the views; a missing one is masked, and the others share its weight.
        joined: W, without bias.
    """

    def __init__(
        self,
        title: TextView,
        abstract: TextView,
        category: ElementView,
        subcategory: ElementView,
        pooling: AdditiveAttention,
        joined: nn.Linear,
    ) -> None:
        super().__init__()
        self.title = title
        self.abstract = abstract
        self.category = category
        self.subcategory = subcategory
        self.pooling = pooling
        self.joined = joined

    def forward(
        self,
        word_vectors: Tensor,
        word_mask: Tensor,
        abstract_vectors: Tensor,
        abstract_mask: Tensor,
        category: Tensor,
        subcategory: Tensor,
    ) -> Tensor:
        """Titles [n, L, E] and [n, L], abstracts [n, L2, E] and [n, L2], ids int64 [n], 0 for unknown -> [n, D].

        An article without any known input gives zeros.
        """
        texts = ((self.title, word_vectors, word_mask), (self.abstract, abstract_vectors, abstract_mask))
        views = _views(texts, ((self.category, category), (self.subcategory, subcategory)))
        return unit(self.joined(self.pooling.of_few(*views)))


class WordVectorLstur(nn.Module):
    """LSTUR with topics on given word vectors: e = W [title; category; subcategory], of length 1.

    An unknown topic gives a zero vector.

    Args:
        title: the title encoder.
        category: vectors of categories; `subcategory` likewise.
        joined: W, without bias.
    """

    def __init__(self, title: TextView, category: WordEmbedding, subcategory: WordEmbedding, joined: nn.Linear) -> None:
        super().__init__()
        self.title = title
        self.category = category
        self.subcategory = subcategory
        self.joined = joined

    def forward(self, word_vectors: Tensor, word_mask: Tensor, category: Tensor, subcategory: Tensor) -> Tensor:
        """word_vectors [n, L, E], word_mask [n, L], ids int64 [n], 0 for unknown -> [n, D]."""
        topics = (self.category(category)[0], self.subcategory(subcategory)[0])
        return unit(self.joined(torch.cat([self.title(word_vectors, word_mask), *topics], dim=-1)))
