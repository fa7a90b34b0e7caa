"""A torch model as an entry of a release: exported, compared with torch, its blobs kept. Brings torch."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from backend.releases.errors import ReleaseNotPublished
from backend.releases.store import ReleaseStore
from device_app.wire.releases import ModelEntry
from device_app.wire.tensors import pack
from exporters.package import ExportedModel
from exporters.parity import ParityError
from models.scopes import private_names
from models.user.feature_ranker import FeatureRanker


def entry_of(
    store: ReleaseStore, model: nn.Module, export: Callable[[nn.Module], ExportedModel]
) -> tuple[ModelEntry, dict[str, float]]:
    """The entry, without private weights, and by purpose the largest difference of a graph from torch.

    Raises ReleaseNotPublished for a graph that is not torch's.
    """
    try:
        exported = export(model)
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
