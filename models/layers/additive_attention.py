"""Additive attention: a learnt scorer weighs the rows of a sequence (ALGORITHMS 1.1)."""

from __future__ import annotations

from torch import Tensor, nn

from models.layers.masked_softmax import masked_softmax
from models.layers.real_rows import by_row
from models.shapes import expect_shape


class AdditiveAttention(nn.Module):
    """e_t = q . tanh(W x_t + b) + c;  a = softmax(e) over real rows;  out = sum_t a_t x_t.

    A dense scorer of two layers. Its last bias c has no effect on the weights and so no gradient; it stays because the
    papers count it (561,601 and 244,993 parameters).
    """

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        if dim < 1 or hidden_dim < 1:
            raise ValueError(f"dim and hidden_dim must be at least 1, got {dim} and {hidden_dim}")
        self.hidden = nn.Linear(dim, hidden_dim)
        self.query = nn.Linear(hidden_dim, 1)
        for layer in (self.hidden, self.query):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def start_uniform(self) -> None:
        """Set q = 0, so that all real rows weigh the same; W stays random, so that q can learn from the first step."""
        nn.init.zeros_(self.query.weight)
        nn.init.zeros_(self.query.bias)

    def weights(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attention weights over rows.

        x: [b, H, D]; mask: [b, H] for one pooling of each sequence, or [b, C, H] for C poolings of the same rows.
        Returns the shape of `mask`.
        """
        expect_shape("x", x, "b", "H", self.hidden.in_features)
        expect_shape("mask", mask, x.shape[0], *(["C"] if mask.dim() == x.dim() else []), x.shape[1])
        real = mask.amax(dim=1) if mask.dim() == x.dim() else mask
        (scores,) = by_row(self._scores, x, real)
        scores = scores.squeeze(-1)  # [b, H]
        if mask.dim() == x.dim():
            scores = scores.unsqueeze(-2)  # [b, 1, H]
        return masked_softmax(scores, mask)

    def _scores(self, rows: Tensor) -> tuple[Tensor]:
        return (self.query(self.hidden(rows).tanh()),)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Pool rows. x: [b, H, D]; mask: [b, H] -> [b, D], or [b, C, H] -> [b, C, D]. All-masked -> zeros."""
        weights = self.weights(x, mask)
        if mask.dim() == x.dim():
            return weights @ x  # [b, C, D]
        return (weights.unsqueeze(-2) @ x).squeeze(-2)  # [b, D]
