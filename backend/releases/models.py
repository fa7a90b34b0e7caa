"""The rankers of a release at their start, and a torch model as an entry of it. Brings torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from backend.releases.errors import ReleaseNotPublished
from backend.releases.groups import first_groups
from backend.releases.store import ReleaseStore
from device_app.wire.releases import USER_TOWER, USER_TOWERS, ModelEntry
from device_app.wire.tensors import pack
from exporters.graph_cache import GraphCache
from exporters.package import ExportedModel
from exporters.parity import ParityError
from models.rankers import RANKERS, offered
from models.scopes import private_names
from models.user.feature_ranker import FeatureRanker


def chosen(rankers: Sequence[str], dimensions: int) -> dict[str, nn.Module]:
    """The rankers of a release of that D for which the operator chose these, each at its start."""
    return {name: RANKERS[name].build(dimensions) for name in offered(tuple(rankers))}


def entry_of(
    store: ReleaseStore,
    model: nn.Module,
    export: Callable[[nn.Module, GraphCache | None], ExportedModel],
    cache: GraphCache | None = None,
) -> tuple[ModelEntry, dict[str, float]]:
    """The entry, without private weights, and by purpose the largest difference of a graph from torch.

    Raises ReleaseNotPublished for a graph that is not torch's.
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
    """The entry of the ranker of that name with a user tower for each of its views, all alike, if it has several."""
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
    """The entry of the ranker of that name with its groups' models or its views' towers, if it is one that has them.

    Raises ReleaseNotPublished as `first_groups` does.
    """
    entry = with_view_towers(store, name, entry)
    size = RANKERS[name].groups
    return first_groups(store, entry, recall, size=size, seed=seed) if size else entry
