"""The initial rankers of a release, and the export of a torch model as one of its entries.

Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from backend.releases.codebooks import first_groups
from backend.releases.errors import ReleaseNotPublished
from backend.releases.store import ReleaseStore
from exporters.graph_cache import GraphCache
from exporters.package import ExportedModel
from exporters.parity import ParityError
from models.rankers import RANKERS, offered
from models.shapes import private_names
from models.user.candidate_attention import FeatureRanker
from protocol.releases import USER_TOWER, USER_TOWERS, ModelEntry
from protocol.tensors import pack


def chosen(rankers: Sequence[str], dimensions: int) -> dict[str, nn.Module]:
    """Return the initial rankers of a release with D = `dimensions` that offers these."""
    return {name: RANKERS[name].build(dimensions) for name in offered(tuple(rankers))}


def entry_of(
    store: ReleaseStore,
    model: nn.Module,
    export: Callable[[nn.Module, GraphCache | None], ExportedModel],
    cache: GraphCache | None = None,
) -> tuple[ModelEntry, dict[str, float]]:
    """Return the model's entry and the largest difference of each graph from torch.

    The entry has no private weights. The differences are by purpose. Raises ReleaseNotPublished if a graph differs too
    much from torch.
    """
    try:
        exported = export(model, cache)
    except ParityError as failed:
        raise ReleaseNotPublished(str(failed)) from failed
    private = private_names(model)
    weights = {name: value for name, value in exported.weights.items() if name not in private}
    entry = ModelEntry(
        architecture=exported.architecture,
        role=exported.role,
        graphs={purpose: store.add_blob(graph) for purpose, graph in exported.graphs.items()},
        weights=store.add_blob(pack(weights)) if weights else None,
        private=private,
        features=model.features if isinstance(model, FeatureRanker) else (),
    )
    return entry, {report.purpose: report.largest_difference for report in exported.reports}


def with_view_towers(store: ReleaseStore, name: str, entry: ModelEntry) -> ModelEntry:
    """Return a ranker's entry with an equal user tower for each view, if it has several."""
    views = RANKERS[name].views
    if not views or entry.weights is None:
        return entry
    weights = store.read_weights(entry.weights)
    towers = {each: value for each, value in weights.items() if each.startswith(USER_TOWER)}
    named = {
        f"{USER_TOWERS}{view}.{each.removeprefix(USER_TOWER)}": value
        for view in views
        for each, value in towers.items()
    }
    common = {each: value for each, value in weights.items() if each not in towers}
    return entry.model_copy(update={"weights": store.add_blob(pack(common | named))})


def grouped(store: ReleaseStore, name: str, entry: ModelEntry, recall: ModelEntry, seed: int) -> ModelEntry:
    """Return the entry of a ranker with its groups' models or its views' towers, if it has any.

    Raises ReleaseNotPublished as `first_groups` does.
    """
    entry = with_view_towers(store, name, entry)
    size = RANKERS[name].groups
    return first_groups(store, entry, recall, size=size, seed=seed) if size else entry
