"""Exported models as a release carries them. The oracle of every number is torch's autograd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from torch.testing import assert_close

from exporters.architectures import architectures, name_of
from exporters.exported import ExportedModel
from exporters.graph_cache import GraphCache
from exporters.package import export_ranker, export_recall
from models.builders.rankers import cosine_ranker, nrms_user
from models.builders.recall import uni_fedrec_recall
from models.recall.basis import BasisRecall
from tests.doubles.graphs import shared_graphs

CLICKS = {"clicks": ["batch", "clicks", 256], "click_mask": ["batch", "clicks"]}
SAMPLE = {"candidates": ["batch", 5, 256]}
ROWS = {
    "table": ["news", 256],
    "click_rows": ["batch", "clicks"],
    "click_mask": ["batch", "clicks"],
    "candidate_rows": ["batch", 5],
}
CHANNELS = {"membership": ["batch", 5, "clicks"], "quotas": ["batch", 5]}


@pytest.fixture(scope="module")
def recall_model() -> BasisRecall:
    model = uni_fedrec_recall()
    model.cosine_start(torch.nn.functional.normalize(torch.randn(30, 256), dim=-1))
    return model


class Exports(dict[str, ExportedModel]):
    """Exports by architecture, each made when it is first asked for: an export takes seconds."""

    def __init__(self, recall: BasisRecall, cache: GraphCache) -> None:
        super().__init__()
        self._makers: dict[str, Callable[[], ExportedModel]] = {
            "basis": lambda: export_recall(recall, cache),
            "cosine": lambda: export_ranker(cosine_ranker(), cache),
            "nrms": lambda: export_ranker(nrms_user(), cache),
        }

    def __missing__(self, architecture: str) -> ExportedModel:
        self[architecture] = self._makers[architecture]()
        return self[architecture]


@pytest.fixture(scope="module")
def exported(recall_model: BasisRecall) -> Exports:
    return Exports(recall_model, shared_graphs())


Axes = dict[str, list[str | int]]


def axes(value: onnx.ValueInfoProto) -> list[str | int]:
    return [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize(
    ("architecture", "purpose", "inputs", "outputs"),
    [
        ("basis", "context", CLICKS, {"contexts": ["batch", "clicks", 256]}),
        (
            "basis",
            "decompose",
            {"contexts": ["batch", "clicks", 256], "membership": ["batch", 5, "clicks"]},
            {"scores": ["batch", 5, 30]},
        ),
        ("basis", "gradient", CLICKS | CHANNELS | SAMPLE, {"loss": []}),
        ("cosine", "score", CLICKS | {"candidates": ["batch", "news", 256]}, {"scores": ["batch", "news"]}),
        ("nrms", "score", CLICKS | {"candidates": ["batch", "news", 256]}, {"scores": ["batch", "news"]}),
        ("nrms", "user", CLICKS, {"user": ["batch", 256]}),
        ("nrms", "gradient", CLICKS | SAMPLE, {"loss": []}),
        ("nrms", "table_gradient", ROWS, {"loss": []}),
    ],
)
def test_inputs_and_outputs_match_the_contract(
    exported: Exports, architecture: str, purpose: str, inputs: Axes, outputs: Axes
) -> None:
    model = exported[architecture]
    graph = onnx.load_from_string(model.graphs[purpose]).graph
    assert {each.name: axes(each) for each in graph.input if not each.name.startswith("p.")} == inputs
    assert {each.name: axes(each) for each in graph.output if not each.name.startswith("g.")} == outputs
    declared = {each.name[2:]: axes(each) for each in graph.input if each.name.startswith("p.")}
    assert declared.items() <= {name: list(each.shape) for name, each in model.weights.items()}.items()
    gradients = {each.name[2:]: axes(each) for each in graph.output if each.name.startswith("g.")}
    wanted = {name: list(each.shape) for name, each in model.weights.items()} if "gradient" in purpose else {}
    assert gradients == wanted | ({"table": ["news", 256]} if purpose == "table_gradient" else {})
    types = {each.name: each.type.tensor_type.elem_type for each in (*graph.input, *graph.output)}
    rows = dict.fromkeys(("click_rows", "candidate_rows"), onnx.TensorProto.INT64)
    assert types == {name: rows.get(name, onnx.TensorProto.FLOAT) for name in types}


@pytest.mark.parametrize(
    ("architecture", "role", "purposes"),
    [
        ("basis", "recall", ["context", "decompose", "gradient"]),
        ("cosine", "ranker", ["score"]),
        ("nrms", "ranker", ["user", "score", "gradient", "table_gradient"]),
    ],
)
def test_export_has_its_architecture_role_and_purposes(
    exported: Exports, architecture: str, role: str, purposes: list[str]
) -> None:
    model = exported[architecture]
    assert (model.architecture, model.role, list(model.graphs)) == (architecture, role, purposes)


def test_weights_are_the_parameters_in_float32(exported: Exports, recall_model: BasisRecall) -> None:
    weights = exported["basis"].weights
    assert weights.keys() == {name for name, _ in recall_model.named_parameters()}
    assert {"basis_keys", "basis_values"} <= weights.keys()
    assert {each.dtype for each in weights.values()} == {np.dtype(np.float32)}
    assert_close(torch.from_numpy(weights["basis_values"]), recall_model.basis_values.detach(), atol=0, rtol=0)
    assert exported["cosine"].weights["beta"].shape == ()


@pytest.mark.parametrize("architecture", ["basis", "cosine", "nrms"])
def test_graphs_are_valid_small_without_metadata_and_of_opset_18(exported: Exports, architecture: str) -> None:
    for purpose, blob in exported[architecture].graphs.items():
        proto = onnx.load_from_string(blob)
        onnx.checker.check_model(proto, full_check=True)
        assert [(opset.domain, opset.version) for opset in proto.opset_import] == [("", 18)], purpose
        assert not proto.graph.value_info
        assert not any(node.metadata_props or node.doc_string for node in proto.graph.node)
        assert len(blob) < 8 * 1024, purpose


def test_gradients_match_autograd_at_another_batch_size(exported: Exports, recall_model: BasisRecall) -> None:
    draw = torch.Generator().manual_seed(4)
    labels = torch.randint(5, (64, 50), generator=draw)
    members = torch.nn.functional.one_hot(labels, 5).transpose(1, 2).float()
    inputs = {
        "clicks": torch.nn.functional.normalize(torch.randn(64, 50, 256, generator=draw), dim=-1),
        "click_mask": torch.ones(64, 50),
        "membership": members,
        "quotas": members.mean(-1),
        "candidates": torch.nn.functional.normalize(torch.randn(64, 5, 256, generator=draw), dim=-1),
    }
    session = ort.InferenceSession(exported["basis"].graphs["gradient"], providers=["CPUExecutionProvider"])
    feed = {name: each.numpy() for name, each in inputs.items()}
    feed |= {f"p.{name}": each for name, each in exported["basis"].weights.items()}
    declared = {each.name for each in session.get_inputs()}
    names = [each.name for each in session.get_outputs()]
    got = dict(zip(names, session.run(names, {k: v for k, v in feed.items() if k in declared}), strict=True))
    recall_model.zero_grad()
    loss = recall_model.loss(**inputs)
    loss.backward()
    assert_close(torch.from_numpy(got["loss"]), loss.detach(), atol=1e-5, rtol=0)
    for name, each in recall_model.named_parameters():
        assert_close(torch.from_numpy(got[f"g.{name}"]), each.grad, atol=2e-6, rtol=0)


@pytest.mark.parametrize("architecture", ["basis", "cosine", "nrms"])
def test_every_parity_report_is_within_tolerance(exported: Exports, architecture: str) -> None:
    model = exported[architecture]
    assert [report.purpose for report in model.reports] == list(model.graphs)
    for report in model.reports:
        assert report.largest_difference <= (2e-6 if "gradient" in report.purpose else 1e-5)
        assert report.size_bytes == len(model.graphs[report.purpose])


def test_model_of_an_unknown_class_is_refused() -> None:
    with pytest.raises(ValueError, match="no ranker architecture has models of class Linear"):
        export_ranker(torch.nn.Linear(2, 2))


def test_non_finite_weights_are_named_in_the_error() -> None:
    model = cosine_ranker()
    with torch.no_grad():
        model.beta.fill_(float("nan"))
    with pytest.raises(ValueError, match="parameter beta must be finite"):
        export_ranker(model)


def test_part_of_a_model_is_refused_as_a_release_model() -> None:
    part = ExportedModel("pooled_head", "news", {}, {})
    with pytest.raises(ValueError, match=r"pooled_head \(news\) is not a ranker or recall model"):
        _ = part.role


def test_exporting_again_gives_the_same_bytes(exported: Exports) -> None:
    assert export_ranker(cosine_ranker()).graphs == exported["cosine"].graphs


@pytest.mark.parametrize(
    "name", ["basis", "youtubenet_residual", "ebnr_residual", "sasrec_residual", "octopus", "ebnr", "huita"]
)
def test_architecture_is_recognised_from_the_model(name: str) -> None:
    assert name_of(architectures()[name].build(), "recall") == name
