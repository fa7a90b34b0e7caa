"""A model as a release carries it: graphs by purpose, weights by name, checked against torch.

Batch axes are free everywhere; H = 50, C_max = 5, K = 4 are fixed in the graphs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import nn

from device_app.wire.releases import Role
from exporters.gradient_graph import export_gradient_graph
from exporters.inference_graph import export_inference_graph
from exporters.parity import check_parity
from exporters.signature import GraphInput, GraphSpec, parameters
from models.recall.basis import BasisRecall
from models.shapes import CHANNELS_LIMIT, CLICKS, NEGATIVES, NEWS_DIM
from models.user.cosine import CosineRanker
from models.user.feature_ranker import FeatureRanker
from models.user.nrms import NrmsUser


@dataclass(frozen=True)
class GraphReport:
    """How one graph came out."""

    purpose: str
    size_bytes: int
    nodes: int
    export_sec: float
    largest_difference: float


@dataclass(frozen=True)
class ExportedModel:
    """graphs: purpose -> ONNX bytes; weights: torch parameter name -> float32, graph input `p.<name>`."""

    architecture: str
    role: Role
    graphs: dict[str, bytes]
    weights: dict[str, NDArray[np.float32]]
    reports: tuple[GraphReport, ...] = field(default=(), compare=False)


def export_recall(model: BasisRecall) -> ExportedModel:
    """Graphs `context`, `decompose` and `gradient`. Raises ParityError."""
    return export_model("basis", "recall", model, recall_graphs(model.basis_keys.shape[1]))


def export_ranker(model: CosineRanker | FeatureRanker | NrmsUser) -> ExportedModel:
    """Graph `score`, and `gradient` where the ranker is trained. Raises ParityError."""
    if isinstance(model, FeatureRanker):
        return export_model("feature_ranker", "ranker", model, feature_ranker_graphs(model))
    architecture = "cosine" if isinstance(model, CosineRanker) else "nrms"
    return export_model(architecture, "ranker", model, ranker_graphs(model))


def export_model(architecture: str, role: Role, model: nn.Module, specs: Sequence[GraphSpec]) -> ExportedModel:
    """Export every graph of `specs` and check it against torch. Raises ParityError."""
    graphs: dict[str, bytes] = {}
    reports = []
    for spec in specs:
        started = time.perf_counter()
        proto = export_gradient_graph(model, spec) if spec.with_gradients else export_inference_graph(model, spec)
        graphs[spec.purpose] = blob = proto.SerializeToString(deterministic=True)
        seconds = time.perf_counter() - started
        parity = check_parity(model, spec, blob)
        reports.append(GraphReport(spec.purpose, len(blob), len(proto.graph.node), seconds, parity.largest_difference))
    weights = {name: each.numpy() for name, each in parameters(model).items()}
    return ExportedModel(architecture, role, graphs, weights, tuple(reports))


def recall_graphs(dim: int) -> list[GraphSpec]:
    """The recall model's three graphs, split where the device clusters and where privacy clips and adds noise."""
    clicks, mask = _clicks(dim)
    membership = GraphInput("membership", ("batch", CHANNELS_LIMIT, CLICKS))
    quotas = GraphInput("quotas", ("batch", CHANNELS_LIMIT))
    contexts = GraphInput("contexts", ("batch", CLICKS, dim))
    return [
        GraphSpec("context", "contexts", (clicks, mask), "contexts"),
        GraphSpec("decompose", "decompose", (contexts, membership), "scores"),
        GraphSpec("gradient", "loss", (clicks, mask, membership, quotas, _sample(dim)), "loss", with_gradients=True),
    ]


def ranker_graphs(model: CosineRanker | NrmsUser) -> list[GraphSpec]:
    """Scores of any number of candidates; for NRMS also loss and gradients on one positive and K negatives a row."""
    dim = NEWS_DIM if isinstance(model, CosineRanker) else model.attention.value.in_features
    score = GraphSpec("score", "forward", (*_clicks(dim), GraphInput("candidates", ("batch", "news", dim))), "scores")
    if isinstance(model, CosineRanker):
        return [score]
    return [score, GraphSpec("gradient", "loss", (*_clicks(dim), _sample(dim)), "loss", with_gradients=True)]


def feature_ranker_graphs(model: FeatureRanker) -> list[GraphSpec]:
    """As `ranker_graphs`, with F features of every candidate as the last input."""
    dim, count = model.matching.dim, len(model.features)
    news = (GraphInput("candidates", ("batch", "news", dim)), GraphInput("features", ("batch", "news", count)))
    sample = (_sample(dim), GraphInput("features", ("batch", 1 + NEGATIVES, count)))
    return [
        GraphSpec("score", "forward", (*_clicks(dim), *news), "scores"),
        GraphSpec("gradient", "loss", (*_clicks(dim), *sample), "loss", with_gradients=True),
    ]


def _clicks(dim: int) -> tuple[GraphInput, GraphInput]:
    return GraphInput("clicks", ("batch", CLICKS, dim)), GraphInput("click_mask", ("batch", CLICKS))


def _sample(dim: int) -> GraphInput:
    return GraphInput("candidates", ("batch", 1 + NEGATIVES, dim))
