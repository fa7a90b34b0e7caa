"""A gated recurrent unit over masked rows that exports together with its gradients (ALGORITHMS 4.1, 7)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class MaskedGru(nn.Module):
    """r, z = sigmoid(W x + b + U h);  n = tanh(W x + b + r * (U h));  h' = (1 - z) n + z h;  masked rows keep h.

    The modern gate convention of torch and of reset-after Keras: the reset gate acts after the matrix product. The
    paper's Keras 2.2.4 resets before it and has hard-sigmoid gates. One bias, as that Keras has, so 3 (Din + D + 1) D
    parameters: `nn.GRU` with `bias_hh` = 0, whose second bias would add 3 D and take FedNewsRec's user model from
    1,602,002 to 1,603,202. Gates are stacked in torch's order r, z, n.

    The recurrence is unrolled: H is fixed in an exported graph and should be 50 at most.
    """

    def __init__(self, dim: int, state_dim: int) -> None:
        super().__init__()
        if dim < 1 or state_dim < 1:
            raise ValueError(f"dim and state_dim must be at least 1, got {dim} and {state_dim}")
        self.input = nn.Linear(dim, 3 * state_dim)
        self.recurrent = nn.Linear(state_dim, 3 * state_dim, bias=False)
        self.state_dim = state_dim
        bound = 1 / math.sqrt(state_dim)  # nn.GRU's start
        for each in self.parameters():
            nn.init.uniform_(each, -bound, bound)
        nn.init.zeros_(self.input.bias)

    def forward(self, x: Tensor, mask: Tensor, start: Tensor | None = None) -> Tensor:
        """The state after the last real row.

        Args:
            x: rows, oldest first [b, H, Din].
            mask: 1 for real rows [b, H].
            start: the state before the first row [b, D]; zeros without it.

        Returns:
            [b, D]. Without any real row it is `start`, and the parameters have zero gradients.
        """
        D = self.state_dim
        state = x.new_zeros(x.shape[0], D) if start is None else start
        steps = self.input(x).flatten(1).split(3 * D, dim=1)  # H times [b, 3 D], one product for all steps
        for step, real in zip(steps, mask.split(1, dim=1), strict=True):
            state = self._step(state, step, real)
        return state  # [b, D]

    def _step(self, state: Tensor, step: Tensor, real: Tensor) -> Tensor:
        """One row: state [b, D], its share W x + b [b, 3 D], its mask [b, 1] -> the next state [b, D]."""
        D = self.state_dim
        gates_in, new_in = step.split((2 * D, D), dim=1)
        gates_state, new_state = self.recurrent(state).split((2 * D, D), dim=1)
        reset, keep = torch.sigmoid(gates_in + gates_state).split(D, dim=1)
        new = torch.tanh(new_in + reset * new_state)
        return state + real * (1 - keep) * (new - state)
