"""The initial models of a release: graphs that travel with Ownfeed, or exported from torch.

Only the latter imports torch.
"""

from collections.abc import Callable

from backend.errors import require_training
from backend.releases.codebooks import first_groups
from backend.releases.errors import ReleaseNotPublished
from backend.releases.store import ReleaseStore
from exporters.exported import ExportedModel
from exporters.graph_cache import GraphCache
from exporters.shipped import ranker_entry, recall_entry, shipped_model
from models.rankers import RANKERS
from protocol.releases import USER_TOWER, USER_TOWERS, ModelEntry
from protocol.tensors import pack


def initial_ranker(name: str, dimensions: int, seed: int, cache: GraphCache | None = None) -> ExportedModel:
    """Return the ranker of that name in its initial state, for news vectors of D = `dimensions`.

    cache: may hold graphs that were compared with torch when they were made. Raises TrainingNotInstalled, or
    ReleaseNotPublished if a graph differs too much from torch.
    """
    spec = RANKERS[name]
    if (found := shipped_model(ranker_entry(spec.architecture, dimensions))) is not None:
        return found
    require_training(f"Preparing {name}")
    import torch

    from exporters.package import export_ranker

    torch.manual_seed(seed)
    return _compared(lambda: export_ranker(spec.build(dimensions), cache))


def initial_recall(
    dimensions: int, basis_size: int, score_clip: float, cache: GraphCache | None = None
) -> ExportedModel:
    """Return the recall model, whose weights are still to be made (`models.starts.basis_recall_start`).

    cache: as for `initial_ranker`. Raises TrainingNotInstalled, or ReleaseNotPublished if a graph differs too much from
    torch.
    """
    if (found := shipped_model(recall_entry(dimensions, basis_size, score_clip))) is not None:
        return found
    require_training("A recall model of another size or clip than the defaults")
    from exporters.package import export_recall
    from models.builders.recall import uni_fedrec_recall

    model = uni_fedrec_recall(basis_size=basis_size, score_clip=score_clip, dim=dimensions)
    return _compared(lambda: export_recall(model, cache))


def _compared(export: Callable[[], ExportedModel]) -> ExportedModel:
    from exporters.parity import ParityError

    try:
        return export()
    except ParityError as failed:
        raise ReleaseNotPublished(str(failed)) from failed


def entry_of(store: ReleaseStore, exported: ExportedModel) -> tuple[ModelEntry, dict[str, float]]:
    """Return the model's entry and the largest difference of each graph from torch, by purpose.

    The entry has no private weights.
    """
    weights = {name: value for name, value in exported.weights.items() if name not in exported.private}
    entry = ModelEntry(
        architecture=exported.architecture,
        role=exported.role,
        graphs={purpose: store.add_blob(graph) for purpose, graph in exported.graphs.items()},
        weights=store.add_blob(pack(weights)) if weights else None,
        private=exported.private,
        features=exported.features,
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
