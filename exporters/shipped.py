"""Graphs that travel with Ownfeed, so that a first start needs no torch.

The folder `shipped` holds what `make graphs` exported with torch and compared with it: the recall model
and the small rankers of a first release, the graph of rounds of basic interests, and the news encoder's graph, for each
size of news vectors that the settings allow. The names of entries contain everything that the sources below don't fix.
A test exports everything again and compares every byte. Entries have the form of `exporters.graph_cache`.

The news encoder's graph contains BERT, 90 MB that are already on the disk. So its entry has the graph without BERT's
weights; `filled` puts them back from the model's own file.
"""

import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporters.exported import ExportedModel, GraphReport
from exporters.graph_cache import CachedGraphs, GraphCache

FOLDER = Path(str(files("exporters"))) / "shipped"
DEFAULT_DIMENSIONS = 256
SHORTEST_WEIGHT_BYTES = 1_024
"""Shorter weights stay in the graph."""

Weights = Mapping[str, NDArray[Any]]
Hole = tuple[int, str, bool]
"""A weight that was taken out of a graph: its offset in what is left, its name, and whether it was transposed."""


def ranker_entry(architecture: str, dimensions: int) -> str:
    """Return the name of a ranker's entry."""
    return f"{architecture}-{dimensions}"


def recall_entry(dimensions: int, basis_size: int, score_clip: float) -> str:
    """Return the name of the recall model's entry, which has no weights: they depend on the pool."""
    return f"basis-{dimensions}-{basis_size}-{score_clip:g}"


def reported_basis_entry(size: int, axes: int, dimensions: int, sharpness: float) -> str:
    """Return the name of the entry of the graph with which devices train the basic interests of reports."""
    return f"reported_basis-{dimensions}-{size}-{axes}-{sharpness:g}"


def encoder_entry(bert_sha256: str, dimensions: int) -> str:
    """Return the name of the entry of the encoder with this BERT."""
    return f"encoder-{dimensions}-{bert_sha256[:16]}"


def shipped(entry: str) -> CachedGraphs | None:
    """Return an entry; None if no version ships it."""
    return GraphCache(FOLDER).read(entry)


def is_shipped(architecture: str) -> bool:
    """Whether the graphs of this ranker travel with Ownfeed, for the default size of news vectors."""
    return (FOLDER / f"{ranker_entry(architecture, DEFAULT_DIMENSIONS)}.json").is_file()


def shipped_model(entry: str) -> ExportedModel | None:
    """Return an entry as the model that was exported; None if no version ships it."""
    found = shipped(entry)
    if found is None:
        return None
    about = found.facts
    return ExportedModel(
        about["architecture"],
        about["kind"],
        dict(found.graphs),
        {name: np.array(value, dtype=np.float32) for name, value in about["weights"].items()},
        tuple(about["private"]),
        tuple(about["features"]),
        tuple(GraphReport(**each) for each in about["reports"]),
    )


def without_weights(graph: bytes, initializers: Sequence[bytes], weights: Weights) -> tuple[bytes, list[Hole]]:
    """Take these weights out of a graph's bytes; return what is left, and the holes in order.

    initializers: the contents of the graph's constants, in order. Constants that are not weights stay.
    """
    known = {
        (value.T if transposed else value).tobytes(): (name, transposed)
        for name, value in weights.items()
        for transposed in ((True, False) if value.ndim == 2 else (False,))
        if value.nbytes >= SHORTEST_WEIGHT_BYTES
    }
    left, holes, end = bytearray(), [], 0
    for raw in initializers:
        if raw in known:
            at = graph.index(raw, end)
            left += graph[end:at]
            holes.append((len(left), *known[raw]))
            end = at + len(raw)
    return bytes(left + graph[end:]), holes


def filled(left: bytes, holes: Sequence[Hole], weights: Weights, sha256: str) -> bytes:
    """Return the graph with its weights; the inverse of `without_weights`.

    sha256: the whole graph's. Raises ValueError if the result has another, KeyError for a missing weight.
    """
    parts, end = [], 0
    for at, name, transposed in holes:
        parts += [left[end:at], (weights[name].T if transposed else weights[name]).tobytes()]
        end = at
    graph = b"".join([*parts, left[end:]])
    if hashlib.sha256(graph).hexdigest() != sha256:
        raise ValueError("the graph with these weights differs from the one that was exported")
    return graph
