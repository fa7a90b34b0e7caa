"""A user model fed from a table of distinct news vectors, as Efficient-FedRec's devices are (ALGORITHMS 3.2).

The gradient of the table is then one row for each distinct news: a news that was clicked twice, or clicked and a
candidate, sums what it got; a row that no reader names is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn
from torch.nn.functional import embedding


def table_loss(
    model: nn.Module, table: Tensor, click_rows: Tensor, click_mask: Tensor, candidate_rows: Tensor, *features: Tensor
) -> Tensor:
    """model.loss with vectors taken from a table.

    table [n, D]; click_rows int64 [b, H], any row where click_mask [b, H] is 0; candidate_rows int64 [b, 1 + K];
    features [b, 1 + K, F] for rankers that take them -> [].
    """
    loss = cast(Callable[..., Tensor], model.loss)
    return loss(embedding(click_rows, table), click_mask, embedding(candidate_rows, table), *features)
