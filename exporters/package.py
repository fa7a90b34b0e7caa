"""Packages a model for a release: graphs by purpose and weights by name, checked against torch."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from torch import nn

from exporters.architectures import architectures, name_of
from exporters.exported import ExportedModel, GraphReport, Kind
from exporters.graph import export_gradient_graph, export_inference_graph
from exporters.graph_cache import CachedGraphs, GraphCache, entry_name, graphs_of
from exporters.graphs import (
    pooled_head_graphs,
    reported_basis_graphs,
    word_model_graphs,
    word_model_vectors,
)
from exporters.parity import check_parity
from exporters.signature import GraphSpec, parameters
from exporters.translate import bytes_of
from models.builders.news import fednewsrec_words, lstur_words, naml_words
from models.news.plm import PooledHead
from models.recall.basis import ReportedBasis
from models.shapes import TITLE_WORDS, private_names
from models.user.candidate_attention import FeatureRanker
from protocol.graph_check import check_graph
from protocol.releases import ModelRole

WORD_MODELS = {"fednewsrec_words": fednewsrec_words, "naml_words": naml_words, "lstur_words": lstur_words}
"""News models on given word vectors, by architecture; functions of E and D."""


def export_recall(model: nn.Module, cache: GraphCache | None = None) -> ExportedModel:
    """Export the graphs of this recall model; Uni-FedRec has `context`, `decompose` and `gradient`.

    cache: may hold graphs of such a model that were compared with torch when they were made. Raises ParityError.
    """
    return _export_as("recall", model, cache)


def export_ranker(model: nn.Module, cache: GraphCache | None = None) -> ExportedModel:
    """Export the graphs of this ranker: `score`, and `gradient` if it is trained.

    cache: as in `export_recall`. Raises ParityError.
    """
    return _export_as("ranker", model, cache)


def export_head_gradient(width: int, dimensions: int) -> bytes:
    """Export the graph with which devices train a news encoder's head, as rounds carry it.

    The head maps S = `width` to D = `dimensions`. Raises ParityError, or GraphRefused if devices would refuse the
    graph.
    """
    head = PooledHead.sized(width, dimensions)
    graph = export_model("pooled_head", "news", head, pooled_head_graphs(head)).graphs["gradient"]
    check_graph(graph)
    return graph


def export_word_model(
    word_dim: int, dimensions: int, cache: GraphCache | None = None, *, architecture: str = "fednewsrec_words"
) -> ExportedModel:
    """Export a news model on word vectors of E = `word_dim`, for news vectors of D = `dimensions`.

    Its graphs are `gradient`, with which devices train it in rounds, and `news`, with which the server computes the
    pool's vectors.

    architecture: one of WORD_MODELS. cache: as in `export_recall`. Raises ParityError, or GraphRefused if devices would
    refuse `gradient`.
    """
    model = WORD_MODELS[architecture](word_dim, dimensions)

    def make() -> CachedGraphs:
        graphs = export_model(architecture, "news", model, word_model_graphs(model)).graphs
        check_graph(graphs["gradient"])
        vectors = word_model_vectors(model)
        graphs["news"] = bytes_of(export_inference_graph(model, vectors))
        for length in (1, 9, TITLE_WORDS):
            check_parity(model, vectors, graphs["news"], length=length)
        return CachedGraphs(graphs, {})

    specs = (*word_model_graphs(model), word_model_vectors(model))
    kept = make() if cache is None else cache.kept(entry_name("word model", *graphs_of(model, specs)), make)
    return ExportedModel(architecture, "news", dict(kept.graphs), _weights_of(model))


def export_basis_gradient(size: int, axes: int, dimensions: int, sharpness: float) -> bytes:
    """Export the graph with which devices train the basic interests that reports refer to, as rounds carry it.

    K = `size` basic interests of D = `dimensions` move along m = `axes` directions, for lists of this sharpness. Raises
    ParityError, or GraphRefused if devices would refuse the graph.
    """
    model = ReportedBasis(size, axes, dimensions, sharpness=sharpness)
    return export_model("reported_basis", "recall", model, reported_basis_graphs(model)).graphs["gradient"]


def _export_as(kind: Kind, model: nn.Module, cache: GraphCache | None) -> ExportedModel:
    name = name_of(model, kind)
    specs = architectures()[name].graphs(model)
    return export_model(name, kind, model, specs) if cache is None else export_once(name, kind, model, specs, cache)


def export_once(
    architecture: str, kind: Kind, model: nn.Module, specs: Sequence[GraphSpec], cache: GraphCache
) -> ExportedModel:
    """`export_model`, reusing the cache's graphs and the reports made with them."""

    def make() -> CachedGraphs:
        exported = export_model(architecture, kind, model, specs)
        return CachedGraphs(exported.graphs, {"reports": [asdict(report) for report in exported.reports]})

    kept = cache.kept(entry_name(kind, architecture, *graphs_of(model, specs)), make)
    reports = tuple(GraphReport(**each) for each in kept.facts["reports"])
    return ExportedModel(architecture, kind, dict(kept.graphs), _weights_of(model), *_described(model), reports)


def export_model(architecture: str, kind: Kind, model: nn.Module, specs: Sequence[GraphSpec]) -> ExportedModel:
    """Export every graph of `specs` and check it against torch.

    Raises ParityError; GraphRefused for a graph of a ranker or recall model that devices would refuse; ValueError for
    weights that are not finite.
    """
    weights = _weights_of(model)
    graphs: dict[str, bytes] = {}
    reports = []
    for spec in specs:
        started = time.perf_counter()
        proto = export_gradient_graph(model, spec) if spec.with_gradients else export_inference_graph(model, spec)
        graphs[spec.purpose] = blob = bytes_of(proto)
        if kind in get_args(ModelRole):
            check_graph(blob)  # devices would refuse the whole release
        seconds = time.perf_counter() - started
        parity = check_parity(model, spec, blob)
        nodes = len(proto.graph.node)
        reports.append(GraphReport(spec.purpose, len(blob), nodes, seconds, parity.largest_difference, parity.relative))
    return ExportedModel(architecture, kind, graphs, weights, *_described(model), tuple(reports))


def _described(model: nn.Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The model's private parameters, and its features."""
    return private_names(model), model.features if isinstance(model, FeatureRanker) else ()


def _weights_of(model: nn.Module) -> dict[str, NDArray[np.float32]]:
    weights = {name: each.numpy() for name, each in parameters(model).items()}
    if bad := [name for name, each in weights.items() if not np.isfinite(each).all()]:
        raise ValueError(f"parameter {bad[0]} must be finite")
    return weights
