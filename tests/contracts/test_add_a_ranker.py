"""Following docs/add-a-ranker.md is enough: a toy ranker in one registry is chosen, exported and released.

Oracle: the toy's score computed in numpy. Every graph is compared with torch when it is exported.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from backend.releases.publish import publish_rankers
from backend.settings import BackendSettings
from exporters.architectures import architectures
from exporters.graphs import ranker_graphs
from models.one_vector import UserModel
from models.rankers import RANKERS, RankerSpec
from models.shapes import NEWS_DIM, PAPER_DIM
from tests.doubles.checklists import files_to_touch
from tests.doubles.small_release import migrated_engine, small_store


class ToyRanker(UserModel):
    """Represents a reader by a weighted sum of the clicks: u = w * sum_j m_j click_j."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def cosine_start(self) -> None:
        with torch.no_grad():
            self.weight.fill_(1.0)

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        return self.weight * (clicks * click_mask.unsqueeze(-1).to(clicks.dtype)).sum(dim=1)


def toy(dim: int) -> ToyRanker:
    """Build the toy at its start, as in models/builders/."""
    return ToyRanker(dim)


def test_registering_a_ranker_is_enough_to_publish_and_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ValidationError, match=r"rankers\.0\n.*no ranker is called 'toy'; choose one of nrms, naml, lstur"
    ):
        BackendSettings(data_dir=tmp_path, rankers=("toy",))

    monkeypatch.setitem(RANKERS, "ranker.toy", RankerSpec("toy", f"{__name__}:ToyRanker", f"{__name__}:toy"))

    chosen = BackendSettings(data_dir=tmp_path, rankers=("toy",)).rankers
    engine = migrated_engine(tmp_path)
    store = small_store(engine, tmp_path)
    release = publish_rankers(store, chosen)  # raises ReleaseNotPublished where a graph differs from torch
    entry = release.models["ranker.toy"]
    assert (entry.architecture, entry.role) == ("toy", "ranker")
    assert {"score", "user", "gradient", "table_gradient"} <= set(entry.graphs)
    assert entry.weights is not None
    weights = store.read_weights(entry.weights)
    rng = np.random.default_rng(0)
    clicks = rng.normal(size=(1, 50, release.dimensions)).astype(np.float32)
    mask = np.zeros((1, 50), np.float32)
    mask[0, -7:] = 1
    graph = store.read_blob(entry.graphs["user"].sha256)
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    given = {"clicks": clicks, "click_mask": mask, **{f"p.{name}": each for name, each in weights.items()}}
    feeds = {
        each.name: given[each.name].astype(bool) if each.type == "tensor(bool)" else given[each.name]
        for each in session.get_inputs()
    }
    (vector,) = session.run(None, feeds)
    np.testing.assert_allclose(vector[0], clicks[0, -7:].sum(axis=0), rtol=1e-4, atol=1e-4)
    engine.dispose()


def test_checklist_for_a_ranker_names_module_preset_and_registry() -> None:
    assert files_to_touch("add-a-ranker") == ["models/user/", "models/builders/", "models/rankers.py"]


@pytest.mark.parametrize("dim", [NEWS_DIM, PAPER_DIM])
@pytest.mark.parametrize("name", RANKERS)
def test_ranker_preset_builds_the_registered_class_and_its_graphs(name: str, dim: int) -> None:
    spec = RANKERS[name]
    model = spec.build(dim)
    assert type(model) is spec.model_class()
    assert architectures()[spec.architecture].fits(model)
    vectors = [each for graph in ranker_graphs(model) for each in graph.inputs if each.name in ("clicks", "candidates")]
    assert vectors
    assert {each.axes[-1] for each in vectors} == {dim}
