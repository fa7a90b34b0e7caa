"""Exports the news encoder: BERT's weights are inside the graph, pooling and head are inputs.

BERT is the same in every release and too large to pass at each run; what training changes is an input `p.<name>`.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnxscript.rewriter.ort_fusions.bias_gelu import fuse_bias_gelu
from onnxscript.rewriter.ort_fusions.erfgelu import fuse_erfgelu
from torch import Tensor, nn
from torch.export import Dim
from torch.func import functional_call

from exporters.translate import OPSET

BERT_PREFIX = "bert."
PIECES_MAX = 512


class _FedHead(nn.Module):
    """The encoder with its small parameters given as arguments; also returns the token states."""

    def __init__(self, encoder: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.encoder = encoder
        self.names = names

    def forward(self, *tensors: Tensor) -> Any:
        fed = {f"encoder.{name}": each for name, each in zip(self.names, tensors, strict=False)}
        return functional_call(_WithStates(self.encoder), fed, tensors[len(self.names) :])


class _WithStates(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, pieces: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        encoder: Any = self.encoder
        states = encoder.states(pieces, mask)
        return encoder.project(encoder.pool(states, mask.to(states.dtype))), states


def head_parameters(encoder: nn.Module) -> dict[str, Tensor]:
    """Return the parameters that are graph inputs: all except BERT's."""
    return {
        name: value.detach().clone() for name, value in encoder.named_parameters() if not name.startswith(BERT_PREFIX)
    }


def export_news_encoder(encoder: nn.Module) -> onnx.ModelProto:
    """(p.<name>..., pieces int64 [b, L], piece_mask int64 [b, L]) -> vectors [b, D], states [b, L, S]; b, L are free.

    `encoder` is a PlmNewsEncoder whose language model is called `bert`.
    """
    head = head_parameters(encoder)
    pieces = torch.ones(2, 8, dtype=torch.long)
    batch, length = Dim("batch", min=1, max=65_536), Dim("length", min=2, max=PIECES_MAX)
    shapes = (tuple([{} for _ in head] + [{0: batch, 1: length}] * 2),)
    flat = (*head.values(), pieces, torch.ones_like(pieces))
    with without_known_noise(), torch.no_grad():
        program = torch.export.export(_FedHead(encoder.eval(), list(head)), flat, strict=False, dynamic_shapes=shapes)
        exported = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=OPSET,
            verbose=False,
            input_names=[f"p.{name}" for name in head] + ["pieces", "piece_mask"],
            output_names=["vectors", "states"],
        )
    if exported is None:
        raise RuntimeError("torch exported no graph for the news encoder")
    # One kernel in place of five, of each layer's widest tensor; ONNX Runtime doesn't find this pattern by itself.
    fuse_erfgelu(exported.model)
    fuse_bias_gelu(exported.model)
    return strip(exported.model_proto)


def constants(graph: bytes) -> list[bytes]:
    """Return the contents of a graph's initializers, in their order."""
    return [each.raw_data for each in onnx.load_from_string(graph).graph.initializer]


TEXTS = {"word": ("pieces", "piece_mask"), "abstract": ("abstract_pieces", "abstract_piece_mask")}
"""The inputs of a text in a graph with the word table, by the prefix of its inputs in a graph on word vectors."""


def with_table(graph: bytes, table: NDArray[np.float16]) -> bytes:
    """Add a frozen word table [V, E] to a graph that takes word vectors, so that it takes word pieces instead.

    Given a graph (p.<name>..., word_vectors [b, L, E], word_mask [b, L]) -> vectors, it returns a graph (p.<name>...,
    pieces int64 [b, L], piece_mask int64 [b, L]) -> vectors [b, D], as `export_news_encoder`. An abstract's inputs are
    replaced in the same way (TEXTS); other inputs stay.
    """
    model = onnx.load_from_string(graph)
    declared = {each.name for each in model.graph.input}
    nodes, given = [], []
    for text, (pieces, mask) in TEXTS.items():
        if f"{text}_vectors" not in declared:
            continue
        nodes += [
            helper.make_node("Gather", ["table", pieces], [f"table.{text}_rows"]),
            helper.make_node("Cast", [f"table.{text}_rows"], [f"{text}_vectors"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Cast", [mask], [f"{text}_mask"], to=onnx.TensorProto.FLOAT),
        ]
        declared -= {f"{text}_vectors", f"{text}_mask"}
        axes = ["news", f"{text}_length"]
        given += [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, axes) for name in (pieces, mask)]
    nodes += model.graph.node
    kept = [each for each in model.graph.input if each.name in declared]
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.extend(nodes)
    model.graph.input.extend([*kept, *given])
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(table), "table"))
    return bytes(model.SerializeToString(deterministic=True))


def strip(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop nodes without effect and parameter inputs that no node reads.

    Works in place; returns `model`.
    """
    graph = model.graph
    model.doc_string = ""
    graph.doc_string = ""
    graph.name = "main"
    for owner in (model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        del owner.metadata_props[:]
        owner.doc_string = ""
    del graph.value_info[:]
    for place, node in enumerate(graph.node):
        node.name = f"{node.op_type}_{place}"
    read = {name for node in graph.node for name in node.input}
    kept = [each for each in graph.input if each.name in read or not each.name.startswith("p.")]
    del graph.input[:]
    graph.input.extend(kept)
    return model


_REGISTRATION = "torch.onnx._internal.exporter._registration"


def _is_news(record: logging.LogRecord) -> bool:
    return "torchvision is not installed" not in record.getMessage()


@contextmanager
def without_known_noise() -> Iterator[None]:
    """Filter out two known warnings while exporting.

    They concern torchvision's missing operators (no graph of ours has one) and a deprecated class that torch itself
    copies while it decomposes a program.
    """
    logger = logging.getLogger(_REGISTRATION)
    logger.addFilter(_is_news)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
    finally:
        logger.removeFilter(_is_news)
