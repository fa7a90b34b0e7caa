"""A gated recurrent unit over masked rows that exports together with its gradients (FedNewsRec, section 3.1)."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from models.layers.real_rows import by_row, real_places
from models.shapes import expect_shape


class MaskedGru(nn.Module):
    """r, z = sigmoid(W x + b + U h);  n = tanh(W x + b + r * (U h));  h' = (1 - z) n + z h;  masked rows keep h.

    This is the gate convention of torch and of reset-after Keras: the reset gate acts after the matrix product. The
    paper's Keras 2.2.4 resets before it and has hard-sigmoid gates. There is one bias, as in that Keras, so the unit
    has 3 (Din + D + 1) D parameters: `nn.GRU` with `bias_hh` = 0. A second bias would add 3 D and take FedNewsRec's
    user model from 1,602,002 to 1,603,202. Gates are stacked in torch's order r, z, n.

    With gradients the recurrence is unrolled: H is fixed in such a graph and should be 50 at most. Without gradients it
    is one operator, in torch and in ONNX.
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
        """Return the state after the last real row.

        Args:
            x: rows, oldest first [b, H, Din].
            mask: 1 for real rows [b, H].
            start: the state before the first row [b, D]; zeros without it.

        Returns:
            [b, D]. Without any real row it is `start`, and the parameters have zero gradients.
        """
        expect_shape("x", x, "b", "H", self.input.in_features)
        expect_shape("mask", mask, *x.shape[:2])
        state = x.new_zeros(x.shape[0], self.state_dim) if start is None else start
        expect_shape("start", state, x.shape[0], self.state_dim)
        last: Tensor
        if torch.is_grad_enabled():
            (steps,) = by_row(lambda rows: (self.input(rows),), x, mask)
            last = _Recurrence.apply(steps, mask, self.recurrent.weight, state)  # type: ignore[no-untyped-call]
        else:
            last = last_state(*_real_first(x, mask), self.input.weight, self.recurrent.weight, self.input.bias, state)
        return last  # [b, D]


def _real_first(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Move real rows before padding, in their order.

    x [b, H, Din], mask [b, H] -> rows [b, H, Din], their number [b] int32.
    """
    places = torch.arange(mask.shape[1], dtype=mask.dtype, device=mask.device)  # [H]
    chosen = (mask.cumsum(dim=-1).unsqueeze(1) - 1 == places[:, None]).to(mask.dtype) * mask.unsqueeze(1)  # [b, H, H]
    return chosen @ x, mask.sum(dim=-1).to(torch.int32)


@torch.library.custom_op("ownfeed::gru_last_state", mutates_args=())
def last_state(x: Tensor, lengths: Tensor, input: Tensor, recurrent: Tensor, bias: Tensor, start: Tensor) -> Tensor:
    """Return the GRU's state after row lengths - 1, computed by torch's own GRU.

    It has no gradients, and is one operator when traced.

    x [b, H, Din], lengths [b] whole numbers, input [3 D, Din], recurrent [3 D, D], bias [3 D], start [b, D] -> [b, D];
    `start` where the length is 0.
    """
    weights = [input, recurrent, bias, torch.zeros_like(bias)]
    states, _ = torch.gru(x, start.unsqueeze(0).contiguous(), weights, True, 1, 0.0, False, False, True)  # [b, H, D]
    after = torch.cat([start.unsqueeze(1), states], dim=1)  # [b, 1 + H, D]
    return after[torch.arange(len(x), device=x.device), lengths.long()].contiguous()


@last_state.register_fake
def _(x: Tensor, lengths: Tensor, input: Tensor, recurrent: Tensor, bias: Tensor, start: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], recurrent.shape[1])


@torch.library.custom_op("ownfeed::gru_step_by_step", mutates_args=())
def step_by_step(
    gates_in: Tensor, new_in: Tensor, mask: Tensor, to_gates: Tensor, to_product: Tensor, start: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Run all steps of the recurrence; one operator when traced, since tracing fifty steps would take seconds.

    gates_in [b, 2 H D] and new_in [b, H D] are the inputs' contributions to each step's gates and candidate; mask [b,
    H]; to_gates [2 D, D] and to_product [D, D] are parts of U; start [b, D]. Returns the last state [b, D], and for
    every step the state before it [b, H D], the gates [b, 2 H D], the candidate and U_new h [b, H D] each.
    """
    D = to_product.shape[0]
    state = start.clone()
    states, gates, news, products = [], [], [], []
    for gate_in, candidate, real in zip(
        torch.split(gates_in, 2 * D, dim=1), torch.split(new_in, D, dim=1), torch.split(mask, 1, dim=1), strict=True
    ):
        gate = torch.sigmoid(torch.addmm(gate_in, state, to_gates.t()))  # [b, 2 D]
        product = state @ to_product.t()  # [b, D]
        reset, move = torch.split(gate, D, dim=1)
        new = torch.tanh(candidate + reset * product)
        states.append(state)
        gates.append(gate)
        news.append(new)
        products.append(product)
        state = state + real * move * (new - state)
    return state, *(torch.cat(each, dim=1) for each in (states, gates, news, products))  # type: ignore[return-value]


@step_by_step.register_fake
def _(
    gates_in: Tensor, new_in: Tensor, mask: Tensor, to_gates: Tensor, to_product: Tensor, start: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    flat = [each.new_empty(each.shape) for each in (new_in, gates_in, new_in, new_in)]
    return start.new_empty(start.shape), *flat  # type: ignore[return-value]


@torch.library.custom_op("ownfeed::gru_back_step_by_step", mutates_args=())
def back_step_by_step(gradient: Tensor, through: Tensor, past: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Carry the gradient of the last state [b, D] back through all steps; one operator when traced.

    through [b, 3 H D] is each step's d h' / d (U h), past [b, H D] its direct d h' / d h, and weight [3 D, D] = U.
    Returns the gradient that arrives at each step's h' [b, H D], and that of the state before the first step [b, D].
    """
    D = weight.shape[1]
    arriving = []  # last step first
    for share, kept in zip(
        reversed(torch.split(through, 3 * D, dim=1)), reversed(torch.split(past, D, dim=1)), strict=True
    ):
        arriving.append(gradient)
        gradient = torch.addmm(gradient * kept, torch.cat([gradient] * 3, dim=1) * share, weight)
    return torch.cat(arriving[::-1], dim=1), gradient


@back_step_by_step.register_fake
def _(gradient: Tensor, through: Tensor, past: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return past.new_empty(past.shape), gradient.new_empty(gradient.shape)


class _Recurrence(torch.autograd.Function):
    """All steps, with their gradient written out.

    Autograd's own graph of 50 steps has twice the nodes, because it multiplies and adds the gradient of U fifty times.
    Here everything that does not depend on the next step's gradient is computed for all steps at once. First
    derivatives only.
    """

    @staticmethod
    def forward(ctx: Any, steps: Tensor, mask: Tensor, weight: Tensor, start: Tensor) -> Tensor:
        """steps [b, H, 3 D] = W x + b, mask [b, H], weight [3 D, D] = U, start [b, D] -> the last state [b, D]."""
        D, H = weight.shape[1], mask.shape[1]
        reset_in, keep_in, new_in = torch.split(steps, D, dim=2)
        gates_in = torch.cat([reset_in, -keep_in], dim=2)  # sigmoid(-a) = 1 - z, how far a step moves the state
        U_reset, U_keep, U_new = torch.split(weight, D)
        to_gates = torch.cat([U_reset, -U_keep])  # [2 D, D]
        state: Tensor
        state, *flat = step_by_step(gates_in.flatten(1), new_in.flatten(1), mask, to_gates, U_new, start)
        kept = (each.reshape(mask.shape[0], H, -1) for each in flat)
        ctx.save_for_backward(mask, weight, *kept)
        return state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:
        """Gradient of the last state [b, D] -> those of steps, weight and start."""
        mask, weight, states, gates, news, products = ctx.saved_tensors  # [b, H, D] or [b, H, 2 D]
        D = weight.shape[1]
        reset, free = torch.split(gates, D, dim=2)
        real = mask.unsqueeze(-1)
        move = real * free
        # d h' / d (pre-activation) for all steps at once, to be multiplied by the gradient of h'
        to_new = move * (1 - news * news)
        to_keep = real * (states - news) * free * (1 - free)
        to_reset = to_new * products * reset * (1 - reset)
        to_product = torch.cat([to_reset, to_keep, to_new * reset], dim=2)  # d h' / d (U h), [b, H, 3 D]
        arriving, at_start = back_step_by_step(gradient, to_product.flatten(1), (1 - move).flatten(1), weight)
        each_state = arriving.reshape(states.shape)  # the gradient of each step's h'
        products_gradient = torch.cat([each_state] * 3, dim=2) * to_product  # [b, H, 3 D]
        steps_gradient = torch.cat([products_gradient[:, :, : 2 * D], each_state * to_new], dim=2)
        places, _ = real_places(mask)
        real_products, real_states = (
            each.flatten(0, 1).index_select(0, places) for each in (products_gradient, states)
        )
        weight_gradient = real_products.t() @ real_states
        return steps_gradient, None, weight_gradient, at_start
