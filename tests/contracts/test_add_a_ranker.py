"""docs/add-a-ranker.md is true: a toy ranker, known to two registries alone, is exported and passes parity with torch.

Oracle: the toy's score worked out in numpy.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor

from backend.releases.models import RANKERS
from exporters.architectures import ARCHITECTURES, Architecture
from exporters.graphs import ranker_graphs
from exporters.package import export_ranker
from models.one_vector import UserModel
from models.shapes import NEWS_DIM


class ToyRanker(UserModel):
    """A reader is a weighed sum of the clicks: u = w * sum_j m_j click_j."""

    def __init__(self) -> None:
        super().__init__(NEWS_DIM)
        self.weight = torch.nn.Parameter(torch.ones(NEWS_DIM))

    def cosine_start(self) -> None:
        with torch.no_grad():
            self.weight.fill_(1.0)

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        return self.weight * (clicks * click_mask.unsqueeze(-1).to(clicks.dtype)).sum(dim=1)


def test_a_toy_ranker_of_the_registries_alone_is_exported_and_scores_as_it_should(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ARCHITECTURES, "toy", Architecture("ranker", ToyRanker, ToyRanker, ranker_graphs))
    monkeypatch.setitem(RANKERS, "ranker.toy", ToyRanker)

    exported = export_ranker(RANKERS["ranker.toy"]())  # raises ParityError where a graph differs from torch

    assert (exported.architecture, exported.role) == ("toy", "ranker")
    assert {"score", "user", "gradient", "table_gradient"} <= set(exported.graphs)
    rng = np.random.default_rng(0)
    clicks = rng.normal(size=(1, 50, NEWS_DIM)).astype(np.float32)
    mask = np.zeros((1, 50), np.float32)
    mask[0, -7:] = 1
    session = onnxruntime.InferenceSession(exported.graphs["user"], providers=["CPUExecutionProvider"])
    given = {"clicks": clicks, "click_mask": mask, **{f"p.{name}": each for name, each in exported.weights.items()}}
    feeds = {
        each.name: given[each.name].astype(bool) if each.type == "tensor(bool)" else given[each.name]
        for each in session.get_inputs()
    }
    (vector,) = session.run(None, feeds)
    np.testing.assert_allclose(vector[0], clicks[0, -7:].sum(axis=0), rtol=1e-4, atol=1e-4)
