"""One exported graph with the same work in torch, and how long each takes: what `graphs.py` makes its tables of."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from device_app.ranking.session import GraphSession
from device_app.wire.recall import CLICKS_AXIS
from experiments.bench.textbook import plain
from exporters.architectures import architectures
from exporters.graph_writer import bytes_of
from exporters.model_graphs import export_gradient_graph, export_inference_graph
from exporters.readers import SOME, draw_inputs
from exporters.signature import GraphInput, GraphSpec, parameters
from models.shapes import CLICKS

ROUNDS = 40
WARM_UP = 3
SEED = 7
CLICKS_PLACES = {"clicks": 1, "click_mask": 1, "membership": 2}

GraphInputs = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Exported:
    """A model's graph of one purpose."""

    model: nn.Module
    spec: GraphSpec
    graph: bytes


@dataclass(frozen=True)
class Case:
    """One graph with the same work in torch."""

    graph: bytes
    feed: GraphInputs
    eager: Callable[[], object]
    plain: Callable[[], object]

    def run(self, session: ort.InferenceSession) -> Callable[[], object]:
        declared = {each.name for each in session.get_inputs()}
        feed = {name: each for name, each in self.feed.items() if name in declared}
        return lambda: session.run(None, feed)

    def on_device(self) -> Callable[[], object]:
        """As a device runs it: nothing kept between runs, padding that all readers share cut off."""
        weights = {name.removeprefix("p."): each for name, each in self.feed.items() if name.startswith("p.")}
        session = GraphSession(self.graph, weights)
        given = {name: each for name, each in self.feed.items() if name in session.inputs}
        return lambda: session(**given)


@cache
def _exported(name: str, purpose: str) -> Exported:
    model = architectures()[name].build()
    spec = next(each for each in architectures()[name].graphs(model) if each.purpose == purpose)
    proto = export_gradient_graph(model, spec) if spec.with_gradients else export_inference_graph(model, spec)
    return Exported(model, spec, bytes_of(proto))


def drawn_case(
    name: str, purpose: str, batch: int, reader: str = SOME, clicks: int = CLICKS, columns: int = CLICKS
) -> Case:
    """Readers with at most `clicks` clicks, the newest `columns` of whose padded histories are fed."""
    made = _exported(name, purpose)
    drawn = draw_inputs(_free(made.spec), (reader,) * batch, torch.Generator().manual_seed(SEED), clicks=clicks)
    inputs = {key: _fitted(each, key, columns) for key, each in drawn.items()}
    feed: GraphInputs = {f"p.{key}": each.numpy() for key, each in parameters(made.model).items()}
    feed |= {key: each.numpy() for key, each in inputs.items()}
    given = list(inputs.values())
    return Case(made.graph, feed, in_torch(made.model, made.spec, given), in_torch(plain(made.model), made.spec, given))


def _free(spec: GraphSpec) -> GraphSpec:
    """Of histories of any length, also where the graph wants fifty."""

    def freed(given: GraphInput) -> GraphInput:
        place = CLICKS_PLACES.get(given.name)
        return replace(given, axes=tuple(CLICKS_AXIS if at == place else axis for at, axis in enumerate(given.axes)))

    return replace(spec, inputs=tuple(map(freed, spec.inputs)))


def _fitted(value: Tensor, name: str, columns: int) -> Tensor:
    """Histories padded to 50 on the left, then the newest columns of them."""
    if name not in CLICKS_PLACES:
        return value
    place = CLICKS_PLACES[name]
    missing = CLICKS - value.shape[place]
    padding = value.new_zeros([missing if axis == place else size for axis, size in enumerate(value.shape)])
    return torch.cat([padding, value], dim=place).narrow(place, CLICKS - columns, columns).contiguous()


def clicks_of(case: Case) -> tuple[int, int]:
    """How many clicks are real, and how many the longest history has."""
    counts = case.feed["click_mask"].sum(axis=1)
    return int(counts.sum()), int(counts.max())


def in_torch(model: nn.Module, spec: GraphSpec, inputs: list[Tensor]) -> Callable[[], object]:
    """What a training loop in torch does; the graph's parity with it is the exporters' test."""
    if not isinstance(spec.method, str):
        raise TypeError(f"graph {spec.purpose}: only methods are benched")
    method = getattr(model, spec.method)

    def train() -> None:
        model.zero_grad()
        method(*inputs).backward()

    def compute() -> None:
        with torch.inference_mode():
            method(*inputs)

    return train if spec.with_gradients else compute


def open_graph(graph: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def timed(*works: Callable[[], object]) -> list[float]:
    """Median milliseconds of each, taken in turn, so that a busy machine is busy for all of them."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(WARM_UP + ROUNDS):
        for work, times in zip(works, taken, strict=True):
            started = time.thread_time()
            work()
            if turn >= WARM_UP:
                times.append((time.thread_time() - started) * 1000)
    return [float(np.median(times)) for times in taken]
