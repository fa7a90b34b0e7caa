"""`python -m backend.setup.shipping`: exports the graphs that travel with Ownfeed again (`make graphs`).

See `exporters.shipped`. Imports torch.
"""

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from safetensors.numpy import load_file

from backend.embedding.initial_encoder import ENCODER, HEAD_GRADIENT
from backend.embedding.torch_encoder import export_encoder
from backend.embedding.weights import PACKAGED, WEIGHTS_FILE, find_weights
from backend.federation.strategies.reported_basis import BasisRounds
from backend.popularity.estimate import SHARPNESS
from backend.releases.publish import SCORE_CLIP
from backend.settings import DIMENSIONS
from exporters.exported import ExportedModel
from exporters.graph_cache import CachedGraphs, GraphCache
from exporters.news_encoder import constants
from exporters.package import export_basis_gradient, export_ranker, export_recall
from exporters.shipped import (
    FOLDER,
    encoder_entry,
    ranker_entry,
    recall_entry,
    reported_basis_entry,
    without_weights,
)
from models.builders.recall import uni_fedrec_recall
from models.rankers import RANKERS, offered
from models.shapes import BASIS_SIZE


def small_entries(dim: int) -> Iterator[tuple[str, CachedGraphs]]:
    """Export all entries for news vectors of this size but the encoder's, by name. Raises ParityError."""
    recall = export_recall(uni_fedrec_recall(score_clip=SCORE_CLIP, dim=dim))
    yield recall_entry(dim, BASIS_SIZE, SCORE_CLIP), _entry(recall, with_weights=False)
    for name in offered(()):
        ranker = export_ranker(RANKERS[name].build(dim))
        yield ranker_entry(RANKERS[name].architecture, dim), _entry(ranker)
    size, axes = BasisRounds.size, BasisRounds.axes
    graph = export_basis_gradient(size, axes, dim, SHARPNESS)
    yield reported_basis_entry(size, axes, dim, SHARPNESS), CachedGraphs({"gradient": graph}, {})


def encoder_entry_of(dimensions: int) -> tuple[str, CachedGraphs]:
    """Export the encoder's entry for news vectors of this size, with its name. Raises ParityError."""
    weights = find_weights(PACKAGED)
    bert = load_file(weights.folder / WEIGHTS_FILE)
    graph, head_gradient = export_encoder(weights, dimensions)
    left, holes = without_weights(graph, constants(graph), bert)
    facts = {"holes": holes, "sha256": hashlib.sha256(graph).hexdigest()}
    return encoder_entry(weights.sha256, dimensions), CachedGraphs({ENCODER: left, HEAD_GRADIENT: head_gradient}, facts)


def _entry(model: ExportedModel, *, with_weights: bool = True) -> CachedGraphs:
    facts = {
        "architecture": model.architecture,
        "kind": model.kind,
        "weights": {name: value.tolist() for name, value in model.weights.items()} if with_weights else {},
        "private": model.private,
        "features": model.features,
        # how long it took is different each time
        "reports": [asdict(each) | {"export_sec": 0.0} for each in model.reports],
    }
    return CachedGraphs(model.graphs, facts)


def write_all(folder: Path) -> None:
    """Write all entries into the folder, in place of those there."""
    shutil.rmtree(folder, ignore_errors=True)
    kept = GraphCache(folder)
    for dim in DIMENSIONS:
        for name, entry in (*small_entries(dim), encoder_entry_of(dim)):
            kept.write(name, entry)


if __name__ == "__main__":
    write_all(FOLDER)
