"""The parity check must fail for a wrong graph; these tests make wrong graphs."""

from __future__ import annotations

import logging
import warnings

import onnx
import pytest
import torch
from torch import Tensor, nn

from exporters import parity
from exporters.graph import export_gradient_graph, export_inference_graph
from exporters.graphs import recall_graphs
from exporters.news_encoder import without_known_noise
from exporters.parity import FULL, NONE, ONE, SOME, ParityError, check_parity, draw_inputs
from exporters.signature import GraphInput, GraphSpec, parameters

SPEC = GraphSpec(
    "score",
    "forward",
    (
        GraphInput("clicks", ("batch", 6, 4)),
        GraphInput("click_mask", ("batch", 6)),
        GraphInput("candidates", ("batch", "news", 4)),
    ),
    "scores",
)


class SumRanker(nn.Module):
    """score(d) = <scale * sum of clicks, d> + offset."""

    def __init__(self, offset: float = 0.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.unread = nn.Parameter(torch.tensor(1.0))
        self.offset = offset

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        user = (clicks * click_mask[..., None]).sum(1, keepdim=True) * self.scale
        return (candidates @ user.transpose(1, 2)).squeeze(-1) + self.offset


@pytest.fixture(scope="module")
def graph() -> onnx.ModelProto:
    return export_inference_graph(SumRanker(), SPEC)


def test_correct_graph_passes_with_its_measured_difference(graph: onnx.ModelProto) -> None:
    found = check_parity(SumRanker(), SPEC, graph.SerializeToString())
    assert found.largest_difference < 1e-5
    assert found.cases == 18  # six batches, own weights and two fresh sets


def test_graph_of_another_function_fails_naming_output_and_readers(graph: onnx.ModelProto) -> None:
    with pytest.raises(ParityError, match=r"graph score, output scores, batch of 1 \(no clicks\): differs .* by 0.001"):
        check_parity(SumRanker(offset=0.001), SPEC, graph.SerializeToString())


def test_batch_near_a_kink_is_drawn_again_once(graph: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([1.0, *[0.0] * 18])
    monkeypatch.setattr(parity, "_difference", lambda ours, theirs: next(found))
    assert check_parity(SumRanker(), SPEC, graph.SerializeToString()).cases == 18
    assert next(found, None) is None
    monkeypatch.setattr(parity, "_difference", lambda ours, theirs: 1.0)
    with pytest.raises(ParityError, match="batch of 1"):
        check_parity(SumRanker(), SPEC, graph.SerializeToString())


def test_graph_with_constant_weights_is_refused(graph: onnx.ModelProto) -> None:
    baked = onnx.ModelProto()
    baked.CopyFrom(graph)
    del baked.graph.input[:]
    baked.graph.input.extend(each for each in graph.graph.input if each.name != "p.scale")
    baked.graph.initializer.append(onnx.helper.make_tensor("p.scale", onnx.TensorProto.FLOAT, [], [1.0]))
    with pytest.raises(ParityError, match="output scores"):
        check_parity(SumRanker(), SPEC, baked.SerializeToString())


def test_graph_producing_nan_is_refused(graph: onnx.ModelProto) -> None:
    broken = onnx.ModelProto()
    broken.CopyFrom(graph)
    last = next(node for node in broken.graph.node if "scores" in node.output)
    last.output[0] = "before"
    broken.graph.node.extend(
        [
            onnx.helper.make_node("Sub", ["before", "before"], ["zero"]),
            onnx.helper.make_node("Div", ["zero", "zero"], ["scores"]),
        ]
    )
    with pytest.raises(ParityError, match="by inf"):
        check_parity(SumRanker(), SPEC, broken.SerializeToString())


def test_graph_valid_for_only_one_history_length_is_refused() -> None:
    free = (
        GraphInput("clicks", ("batch", "clicks", 4)),
        GraphInput("click_mask", ("batch", "clicks")),
        GraphInput("candidates", ("batch", "news", 4)),
    )
    spec = GraphSpec("score", "forward", free, "scores")

    class MeanRanker(SumRanker):
        def __init__(self, rows: int | None) -> None:
            super().__init__()
            self.rows = rows

        def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
            return super().forward(clicks, click_mask, candidates) / (self.rows or clicks.shape[1])

    right = export_inference_graph(MeanRanker(None), spec).SerializeToString()
    assert check_parity(MeanRanker(None), spec, right).cases == 27  # nine batches: three of other lengths than 50
    burnt_in = export_inference_graph(MeanRanker(50), spec).SerializeToString()
    with pytest.raises(ParityError, match="output scores"):
        check_parity(MeanRanker(None), spec, burnt_in)


def test_unused_parameter_is_not_an_input(graph: onnx.ModelProto) -> None:
    assert [each.name for each in graph.graph.input] == ["p.scale", "clicks", "click_mask", "candidates"]


def test_sample_readers_are_drawn_as_a_device_feeds_them() -> None:
    spec = recall_graphs(8)[2]
    drawn = draw_inputs(spec, (NONE, ONE, FULL, SOME), torch.Generator().manual_seed(0))
    assert list(drawn) == ["clicks", "click_mask", "membership", "quotas", "candidates"]
    counts = drawn["click_mask"].sum(1)
    assert counts[:3].tolist() == [0, 1, 50]
    assert drawn["click_mask"].diff(dim=1).min() >= 0  # left padding
    assert drawn["membership"].sum(1).equal(drawn["click_mask"])  # each real click in one channel, padding in none
    assert drawn["quotas"].sum(1).tolist() == pytest.approx([0, 1, 1, 1])
    assert (drawn["membership"].sum(-1) == 0).any(dim=1).all()  # every reader has an empty channel


def test_model_with_buffers_is_refused() -> None:
    model = SumRanker()
    model.register_buffer("mean", torch.zeros(4))
    with pytest.raises(ValueError, match="buffers can't be graph inputs: mean"):
        parameters(model)


def test_only_known_library_messages_are_suppressed(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = logger.propagate
    logger.propagate = True
    try:
        with without_known_noise():
            logger.warning("torchvision is not installed. Skipping torchvision::nms")
            logger.warning("something else")
            with pytest.warns(FutureWarning, match="another"):
                warnings.warn("another warning", FutureWarning, stacklevel=1)
        logger.warning("torchvision is not installed. Skipping torchvision::nms")
    finally:
        logger.propagate = before
    logged = [record.getMessage() for record in caplog.records]
    assert logged == ["something else", "torchvision is not installed. Skipping torchvision::nms"]


def test_tolerance_scales_with_the_output_size_only() -> None:
    model = SumRanker()
    with torch.no_grad():
        model.scale.fill_(1e6)
    graph = export_inference_graph(model, SPEC).SerializeToString()
    assert 0 < check_parity(model, SPEC, graph).relative < 1e-6
    model.offset = 300.0
    with pytest.raises(ParityError, match="output scores"):
        check_parity(model, SPEC, graph)


class Lookup(nn.Module):
    """Sums rows of a trained and of a frozen table."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Parameter(torch.randn(9, 4), requires_grad=False)
        self.learnt = nn.Parameter(torch.randn(9, 4))

    def loss(self, category: Tensor, table: Tensor) -> Tensor:
        return ((self.frozen[category] + self.learnt[category]) * table).sum()


def test_gradients_are_output_for_inputs_in_wrt_but_not_for_frozen_parameters() -> None:
    inputs = (GraphInput("category", ("news",), indexes=9), GraphInput("table", ("news", 4)))
    spec = GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True, wrt=("table",))
    graph = export_gradient_graph(Lookup(), spec)
    assert [each.name for each in graph.graph.input] == ["p.frozen", "p.learnt", "category", "table"]
    assert [each.name for each in graph.graph.output] == ["loss", "g.learnt", "g.table"]
    assert check_parity(Lookup(), spec, graph.SerializeToString()).cases == 18


@pytest.mark.parametrize(
    ("inputs", "with_gradients", "wrt", "said"),
    [
        ((GraphInput("table", ("news", 4)),), False, ("table",), "wrt needs with_gradients"),
        ((GraphInput("words", ("news", 4), indexes=9),), True, ("words",), "words, which is not a float32 input"),
        ((GraphInput("table", ("news", 4)),), True, ("rows",), "rows, which is not a float32 input"),
        ((GraphInput("click_rows", ("batch", 4), indexes="news"),), False, (), "click_rows indexes news"),
    ],
)
def test_inconsistent_graph_spec_is_refused(
    inputs: tuple[GraphInput, ...], with_gradients: bool, wrt: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        GraphSpec("gradient", "loss", inputs, "loss", with_gradients=with_gradients, wrt=wrt)


def test_input_without_a_sample_is_named_in_the_error() -> None:
    spec = GraphSpec("score", "forward", (GraphInput("mood", ("batch",)),), "scores")
    with pytest.raises(ValueError, match="no sample input is defined for mood"):
        draw_inputs(spec, (SOME,), torch.Generator())


def test_operator_without_a_translation_is_named_in_the_error() -> None:
    class Sorter(nn.Module):
        def forward(self, table: Tensor) -> Tensor:
            return table.sort(dim=-1).values

    spec = GraphSpec("score", "forward", (GraphInput("table", ("news", 4)),), "sorted")
    with pytest.raises(NotImplementedError, match=r"operator aten.sort.default has no translation"):
        export_inference_graph(Sorter(), spec)
