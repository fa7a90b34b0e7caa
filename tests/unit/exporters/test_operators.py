"""Operators as ONNX Runtime computes them, one by one, at three sizes of the free axis. Oracle: torch."""

from __future__ import annotations

from collections.abc import Callable

import onnxruntime as ort
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as f
from torch.testing import assert_close

from exporters.graph import export_gradient_graph, export_inference_graph
from exporters.signature import GraphInput, GraphSpec
from models.layers.gru import MaskedGru

X = GraphInput("x", ("batch", 4, 6))
ROWS = GraphInput("rows", ("batch", 4), indexes=4)
OTHER = GraphInput("other", ("news", 6))
SIZES = (2, 1, 5)


class Parameterless(nn.Module):
    """A model without parameters: the functions are given."""


def on_rows(x: Tensor, rows: Tensor) -> Tensor:
    return x.gather(1, rows[:, :, None].expand(-1, -1, 6))


VALUES: dict[str, Callable[..., Tensor]] = {
    "arithmetic": lambda x: (x + 2) * x - 3 / (1 + x * x) + torch.sub(x, x.flip(1), alpha=0.5),
    "subtracted from a number": lambda x: 1 - x,
    "integers and floats": lambda x: (x > 0).sum(dim=-1) * 2 + x.sum(dim=-1),
    "comparisons": lambda x: ((x > 0) & (x < 1) | (x == 0)).float() + (x >= 0.5).float() + (x <= -0.5).float(),
    "negation": lambda x: (~(x != 0)).float() + torch.logical_not(x > 0).float(),
    "unary": lambda x: x.exp().log() + x.tanh() * x.sigmoid() + x.abs().sqrt() + x.sign() + x.erf() - x.neg().relu(),
    "powers": lambda x: x**2 + x**3 + (x * x + 1) ** 0.5 + (x * x + 1).rsqrt() + (x * x + 1).reciprocal(),
    "clamps": lambda x: x.clamp(-0.5, 0.5) + x.clamp_min(0.1) + x.clamp(max=0.2) + f.hardtanh(x, -0.3, 0.4),
    "gelu": lambda x: f.gelu(x),
    "where": lambda x: torch.where(x > 0, x, torch.finfo(x.dtype).min).amax(dim=-1),
    "extremes": lambda x: torch.maximum(x, x.flip(2)) + torch.minimum(x, x.new_zeros(6)),
    "views": lambda x: x.reshape(-1, 6).view(-1, 3, 2).unsqueeze(1).squeeze(1).flatten(1).unflatten(1, (2, 3)),
    "a view with two free axes": lambda x: (x.flatten(1) @ x.flatten(1).t()).unsqueeze(-1).squeeze(-1),
    "transposes": lambda x: x.permute(0, 2, 1).permute(1, 0, 2).transpose(0, 1) + x.transpose(1, 2),
    "pieces": lambda x: torch.cat([*x.split([1, 3], dim=1), x[:, 1:3], x[:, :, ::2].repeat_interleave(2, -1)], dim=1),
    "slices": lambda x: torch.cat([x[:, 1:3], x[:, -2:], x[:, :1]], dim=1) * x.flatten(1)[:, 3:9].unsqueeze(1),
    "selection": lambda x: x[:, -1] + x[:, 0] + x.select(1, 2),
    "padding": lambda x: f.pad(x, (1, 2, 0, 1), value=3.0),
    "numbers": lambda x: x * torch.arange(6) + torch.ones_like(x) + x.new_full((4, 1), 2.0) + torch.eye(6)[:4],
    "means": lambda x: x.mean(dim=1) + x.mean() + x.sum(dim=(0, 1)) + x.amin(dim=1) + x.sum(),
    "softmax": lambda x: x.softmax(dim=-1) + x.log_softmax(dim=1),
    "norm": lambda x: f.normalize(x, dim=-1) + x.norm(dim=1, keepdim=True),
    "cumsum and argmax": lambda x: x.cumsum(dim=1) + x.argmax(dim=-1, keepdim=True),
    "products": lambda x: x @ x.transpose(1, 2) @ x + x @ torch.eye(6) + f.linear(x, torch.ones(6, 6), torch.ones(6)),
    "layer norm": lambda x: f.layer_norm(x, (6,), torch.ones(6) * 2, torch.ones(6)),
    "expansion": lambda x: x.mean(dim=1, keepdim=True).expand(-1, 4, -1).transpose(1, 2) + x.transpose(1, 2),
}  # fmt: skip
INDEXED: dict[str, Callable[..., Tensor]] = {
    "rows of a table": lambda x, rows: f.embedding(rows, x[0]) + x.index_select(1, rows[0]),
    "indices": lambda x, rows: x[:, rows[0]] + x[0][rows],
    "indices of two axes": lambda x, rows: x[torch.arange(x.shape[0])[:, None], rows],
    "gather": on_rows,
    "scatter": lambda x, rows: torch.zeros_like(x).scatter(1, rows[:, :1, None], 1.0) + x,
    "scatter_add": lambda x, rows: x.scatter_add(1, rows[:, :, None].expand(-1, -1, 6), x),
    "put": lambda x, rows: x[0].index_put((rows,), x, accumulate=True),
}


def one_thread(graph: bytes) -> ort.InferenceSession:
    """Use one thread: additions into one row race between the threads of a graph (docs/decisions/030)."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


class Recurrence(nn.Module):
    """A GRU over four rows of six, some of them padding; `start` is 0 or the mean row."""

    def __init__(self, *, started: bool) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.gru = MaskedGru(6, 3)
        self.started = started

    def forward(self, x: Tensor, rows: Tensor) -> Tensor:
        mask = (rows > 0).to(x.dtype)
        state: Tensor = self.gru(x, mask, x.mean(dim=1)[:, :3] if self.started else None)
        return state


def exported(inputs: tuple[GraphInput, ...], function: Callable[..., Tensor]) -> ort.InferenceSession:
    spec = GraphSpec("score", lambda _, *tensors: function(*tensors), inputs, "result")
    graph = export_inference_graph(Parameterless(), spec).SerializeToString()
    return one_thread(graph)


def random_inputs(inputs: tuple[GraphInput, ...], batch: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(batch)
    sizes = {"batch": batch, "news": 3}
    return {
        each.name: torch.randn(each.shape(sizes), generator=draw)
        if each.indexes is None
        else torch.randint(each.rows(sizes), each.shape(sizes), generator=draw)
        for each in inputs
    }


def check(inputs: tuple[GraphInput, ...], function: Callable[..., Tensor], sizes: tuple[int, ...] = SIZES) -> None:
    session = exported(inputs, function)
    read = {each.name for each in session.get_inputs()}
    for batch in sizes:
        tensors = random_inputs(inputs, batch)
        (got,) = session.run(None, {name: each.numpy() for name, each in tensors.items() if name in read})
        assert_close(torch.from_numpy(got), function(*tensors.values()), atol=2e-6, rtol=1e-6)


@pytest.mark.parametrize("started", [False, True])
def test_gru_without_gradients_uses_onnxs_operator(started: bool) -> None:
    model = Recurrence(started=started)
    graph = export_inference_graph(model, GraphSpec("score", "forward", (X, ROWS), "result"))
    assert sum(node.op_type == "GRU" for node in graph.graph.node) == 1
    session = one_thread(graph.SerializeToString())
    weights = {f"p.{name}": each.detach().numpy() for name, each in model.named_parameters()}
    for rows in ([[0, 0, 0, 0]], [[0, 0, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]]):
        x, masked = torch.randn(len(rows), 4, 6), torch.tensor(rows)
        (got,) = session.run(None, {**weights, "x": x.numpy(), "rows": masked.numpy()})
        assert_close(torch.from_numpy(got), model(x, masked).detach(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", list(VALUES))
def test_values_match_torch(name: str) -> None:
    check((X,), VALUES[name])


def squared(name: str) -> GraphSpec:
    """The sum of squares and its gradient."""

    def loss(_: nn.Module, x: Tensor) -> Tensor:
        return VALUES[name](x).square().sum()

    return GraphSpec("gradient", loss, (X,), "loss", with_gradients=True, wrt=("x",))


@pytest.mark.parametrize("name", list(INDEXED))
def test_indexed_values_match_torch(name: str) -> None:
    check((X, ROWS), INDEXED[name])


def test_graph_with_two_free_axes_keeps_both_sizes() -> None:
    def product(x: Tensor, other: Tensor) -> Tensor:
        return (x.flatten(0, 1) @ other.t()).view(x.shape[0], 4, other.shape[0]).transpose(1, 2)

    check((X, OTHER), product)


@pytest.mark.parametrize(
    "name",
    ["arithmetic", "views", "slices", "selection", "padding", "layer norm", "products", "gelu", "where", "means"],
)
def test_gradients_match_autograd(name: str) -> None:
    graph = export_gradient_graph(Parameterless(), squared(name)).SerializeToString()
    session = one_thread(graph)
    for batch in SIZES:
        x = random_inputs((X,), batch)["x"].requires_grad_(True)
        loss = VALUES[name](x).square().sum()
        (wanted,) = torch.autograd.grad(loss, [x])
        got = session.run(["g.x"], {"x": x.detach().numpy()})[0]
        assert_close(torch.from_numpy(got), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("name", "said"), [("clamps", "logical_and_"), ("norm", "copy_"), ("pieces", "with a step")])
def test_gradient_without_a_translation_is_named_in_the_error(name: str, said: str) -> None:
    with pytest.raises(NotImplementedError, match=said):
        export_gradient_graph(Parameterless(), squared(name))


def test_function_depending_on_the_batch_size_is_refused() -> None:
    with pytest.raises((RuntimeError, NotImplementedError), match=r"one size|depends on"):
        exported((X,), lambda x: x * 2 if x.shape[0] == 2 else x)
