"""The models of a release: which rankers it may carry, and a torch model as an entry of it. Brings torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import nn

from backend.releases.errors import ReleaseNotPublished
from backend.releases.store import ReleaseStore
from backend.settings import RankerName
from device_app.wire.releases import ModelEntry
from device_app.wire.tensors import pack
from exporters.package import ExportedModel
from exporters.parity import ParityError
from models.builders.dssm import fl_dssm_ranker, multi_view_ranker
from models.builders.rankers import cosine_ranker, feature_ranker, nrms_256
from models.builders.user import fednewsrec_user_256, lstur_user, naml_user
from models.scopes import private_names
from models.user.feature_ranker import FeatureRanker

DEFAULT = "ranker.features"
ALWAYS = (DEFAULT, "ranker.cosine")
"""Small, so every release carries them; the papers' models are the operator's choice (BackendSettings.rankers)."""

RANKERS: Mapping[str, Callable[[], nn.Module]] = {
    DEFAULT: feature_ranker,
    "ranker.cosine": cosine_ranker,
    "ranker.nrms": nrms_256,
    "ranker.naml": naml_user,
    "ranker.lstur": lambda: lstur_user("ini"),
    "ranker.fednewsrec": fednewsrec_user_256,
    "ranker.multi_view": multi_view_ranker,
    "ranker.fl_dssm": fl_dssm_ranker,
    "ranker.finding": feature_ranker,
}


def chosen(rankers: Sequence[RankerName]) -> dict[str, nn.Module]:
    """The rankers of a release for which the operator chose these, each at its start."""
    names = dict.fromkeys((*ALWAYS, *(f"ranker.{name}" for name in rankers)))
    return {name: RANKERS[name]() for name in names}


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
