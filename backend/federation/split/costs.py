"""What a round moves, in numbers, as the papers count it (ALGORITHMS 3.7)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SplitCost:
    """Efficient-FedRec: vectors of the union and the user model down, their gradients up.

    news: of the union; dimensions: of a news vector; user_model: its parameters.
    The papers count neither the union itself nor keys, shares and the ring's width; bytes are in the round's status.
    """

    news: int
    dimensions: int
    user_model: int

    @property
    def one_way(self) -> int:
        """Numbers of one direction."""
        return self.dimensions * self.news + self.user_model

    @property
    def total(self) -> int:
        """Both directions."""
        return 2 * self.one_way


def whole_cost(news_model: int, user_model: int) -> int:
    """FedRec, where devices train the news model too: both models down and up."""
    return 2 * (news_model + user_model)


def bert_size(
    *, layers: int, width: int, pieces: int = 30_522, positions: int = 512, segments: int = 2, feed: int | None = None
) -> int:
    """Parameters of a BERT with its pooler (Devlin et al. 2019): embeddings, layers, pooler.

    feed: width of the inner dense layer, 4 x width if not given.
    """
    inner = 4 * width if feed is None else feed
    embeddings = (pieces + positions + segments) * width + 2 * width
    attention = 4 * (width * width + width)
    dense = width * inner + inner + inner * width + width
    norms = 2 * 2 * width
    return embeddings + layers * (attention + dense + norms) + width * width + width


def plm_head_size(width: int, dimensions: int) -> int:
    """Additive attention of hidden size width / 2 and a dense layer to the news vector (ALGORITHMS 3.1)."""
    hidden = width // 2
    return width * hidden + hidden + hidden + 1 + width * dimensions + dimensions
